"""NoMIRACL: questions with ten retrieved passages that people judged, in 18 languages (Thakur et al., 2024).

At least one passage answers a question of the subset ``relevant``; none answers one of ``non_relevant``. The hub's
loading script no longer runs, so its raw files are read: questions (``topics``), judgements (``qrels``) and passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from mrag_eval.core import ANSWERABLE, GivenPassage, RagDoc
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import parts_by
from mrag_eval.datasets._declaration import Declaration, HubDataset
from mrag_eval.datasets._files import (
    file_in,
    hub_folder,
    hub_place,
    iter_jsonl,
    read_bytes,
    require_columns,
    require_path,
    require_text,
    sha256_file,
)
from mrag_eval.datasets._origin import Origin
from mrag_eval.datasets._relevant import read_judgements
from mrag_eval.datasets._share import shared
from mrag_eval.platform import DataError, decode, number_of

HUB = HubDataset(id="miracl/nomiracl", revision="7712349da074b4512384233eb7cb2b021f632684", licence="Apache-2.0")
Language = Literal[
    "ar", "bn", "de", "en", "es", "fa", "fi", "fr", "hi", "id", "ja", "ko", "ru", "sw", "te", "th", "yo", "zh"
]  # fmt: skip
Subset = Literal["relevant", "non_relevant"]
BENCHMARK = Declaration(
    name="nomiracl",
    title="NoMIRACL",
    asks="whether any of ten passages answers a question, or none",
    sources=(HUB,),
    shareable=True,
    languages=get_args(Language),
    breakdowns=("subset",),
    main_metric="nomiracl_accuracy",
    papers=("thakur2024nomiracl",),
    needs=("download",),
    tasks="nomiracl",
)
# Folders of the languages.
_FOLDERS: dict[str, str] = {
    "ar": "arabic", "bn": "bengali", "de": "german", "en": "english", "es": "spanish", "fa": "persian",
    "fi": "finnish", "fr": "french", "hi": "hindi", "id": "indonesian", "ja": "japanese", "ko": "korean",
    "ru": "russian", "sw": "swahili", "te": "telugu", "th": "thai", "yo": "yoruba", "zh": "chinese",
}  # fmt: skip
# Tokens of ten passages of Wikipedia.
_GIVEN_TOKENS = 2_000


class NomiraclBlock(DataBlock):
    """Data block: ``language``, and of each subset ``sample`` questions, drawn with ``seed`` (null: all of them).

    ``subset`` keeps one of the two.
    """

    split: Literal["test", "dev"] = "test"
    revision: str | None = HUB.revision
    language: Language
    subset: Subset | None = None
    sample: int | None = Field(default=250, ge=1)


def load(block: NomiraclBlock) -> Benchmark:
    """Load one language; ``given_passages`` are in the order of the judgements, as in the paper's prompts."""
    folder = _folder(block)
    hashes: dict[str, str] = {}

    def read(path: Path, columns: int) -> Iterator[Sequence[str]]:
        hashes[path.relative_to(folder).as_posix()] = sha256_file(path)
        return _lines(path, columns)

    rows: list[RagDoc] = []
    for subset in get_args(Subset):
        name = f"{block.split}.{subset}.tsv"
        questions = {cells[0]: cells[1] for cells in read(folder / "topics" / name, 2)}
        judged: dict[str, dict[str, bool]] = {question: {} for question in questions}
        qrels = folder / "qrels" / name
        hashes[qrels.relative_to(folder).as_posix()] = sha256_file(qrels)
        for question, grades in read_judgements(qrels).items():
            if question in judged:
                judged[question] = {passage: grade > 0 for passage, grade in grades.items()}
        rows += [_doc(block, subset, questions[name], name, grades, folder) for name, grades in judged.items()]
    corpus = file_in(folder, ("corpus.jsonl.gz", "corpus.jsonl"), f"nomiracl: {folder}", f"copy it from {HUB.id}")
    hashes[corpus.name] = sha256_file(corpus)
    docs = _with_texts(rows, corpus)
    kept = [doc for subset in get_args(Subset) for doc in _drawn(docs, subset, block)]
    if not kept:
        raise DataError(f"nomiracl: {folder} holds no question whose passages are in {corpus.name}")
    notes = [f"{len(kept)} of {len(docs)} questions in {block.language}"]
    if len(docs) < len(rows):
        notes.append(
            f"{number_of(len(rows) - len(docs), 'question')} left out, without a passage or without the text of one"
        )
    if uneven := sum(len(doc.given_passages) != 10 for doc in kept):
        notes.append(f"{number_of(uneven, 'question')} with another number of passages than ten")
    place = {"path": str(block.path)} if block.path else hub_place(HUB.id, block.revision, folder)
    settings = {"seed": block.seed, "sample": block.sample, "subset": block.subset}
    parts = parts_by(docs, lambda doc: doc.extra["subset"])
    return Benchmark("nomiracl", kept, None, tuple(notes), Origin({**place, "sha256": hashes}, settings, parts))


def _folder(block: NomiraclBlock) -> Path:
    """Return the folder of a language: in the hub's cache, or in a copy of the dataset or of its folder ``data``."""
    name = _FOLDERS[block.language]
    if block.path is None:
        return hub_folder("nomiracl", HUB.id, [f"data/{name}/*"], block.revision) / "data" / name
    root = require_path(block.path, "nomiracl")
    found = next((path for path in (root / "data" / name, root / name) if path.is_dir()), None)
    if found is None:
        raise DataError(f"nomiracl: {root} has no folder data/{name}", f"copy it from the dataset {HUB.id}")
    return found


def _lines(path: Path, columns: int) -> Iterator[list[str]]:
    """Yield the cells of a tab-separated file without a header; quotation marks are text."""
    for number, line in enumerate(decode(read_bytes(path), str(path)).split("\n"), 1):
        cells = line.rstrip("\r").split("\t")
        if cells == [""]:
            continue
        if len(cells) != columns:
            raise DataError(f"{path}, line {number}: {columns} columns expected, found {len(cells)}")
        yield cells


def _doc(
    block: NomiraclBlock, subset: Subset, question: str, name: str, grades: Mapping[str, bool], folder: Path
) -> RagDoc:
    """Return a question with its passages, which have no text yet."""
    if grades and any(grades.values()) != (subset == "relevant"):
        raise DataError(f"{folder}: question '{name}' is not {subset} by its judgements")
    return RagDoc(
        id=f"{subset}-{name}",
        query=require_text(question, f"{folder}, question {name}", "query").strip(),
        query_lang=block.language,
        given_passages=tuple(GivenPassage(p, block.language, "", doc_id=p, is_gold=g) for p, g in grades.items()),
        relevant_langs=(block.language,),
        relevant_ids=tuple(p for p, gold in grades.items() if gold),
        extra={"question_id": name, "subset": subset, ANSWERABLE: subset == "relevant"},
    )


def _with_texts(rows: Sequence[RagDoc], corpus: Path) -> list[RagDoc]:
    """Return the rows with the texts of their passages; those that lack one are left out."""
    wanted = {passage.id for doc in rows for passage in doc.given_passages}
    texts: dict[str, tuple[str, str]] = {}
    for number, row in iter_jsonl(corpus):
        where = f"{corpus}, line {number}"
        require_columns(row, ("docid", "title", "text"), where)
        if row["docid"] in wanted and row["text"]:
            text = require_text(row["text"], where, "text").strip()
            texts[row["docid"]] = str(row["title"] or "").strip(), text
    out = []
    for doc in rows:
        filled = [
            replace(passage, title=texts[passage.id][0], text=texts[passage.id][1])
            for passage in doc.given_passages
            if passage.id in texts
        ]
        if filled and len(filled) == len(doc.given_passages):
            out.append(replace(doc, given_passages=tuple(filled)))
    return out


def _drawn(docs: Sequence[RagDoc], subset: str, block: NomiraclBlock) -> list[RagDoc]:
    own = [doc for doc in docs if doc.extra["subset"] == subset and block.subset in (None, subset)]
    if block.sample is None or block.sample >= len(own):
        return own
    return shared(own, block.sample / len(own), block.seed)


def expected(block: NomiraclBlock) -> Expected:
    """Return what is known of the rows: most languages have more than 250 questions of each subset."""
    subsets = 2 if block.subset is None else 1
    rows = None if block.sample is None else subsets * min(block.sample, 250)
    return Expected(rows, (block.language,), given_tokens=_GIVEN_TOKENS)


LOADER = LoaderSpec(BENCHMARK, NomiraclBlock, load, expected=expected)
