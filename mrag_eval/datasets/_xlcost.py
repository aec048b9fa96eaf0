"""The Cross-Lingual Cost (Amiraz et al.): questions in Arabic or English on UAE travel advice and on UAE law.

The language of a question and that of the one document that answers it were drawn independently. The files have no
document ids: a judge, or its lexical proxy, decides which passage answers a question.

The published files are cleaned unless ``as_published`` is set: the second half of the travel questions repeats the
first one, a few questions occur twice, and about a tenth of the travel rows are tagged Arabic although question and
answer are English. Without repeated questions the legal file has exactly the counts of the paper's Table 4.

The domain ``own`` is a user's benchmark in the same files, in any languages (``mrag-eval build qa``). Its rows may name
their document and their categories.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from mrag_eval.config import AbsolutePath
from mrag_eval.core import PAGE, Passage, RagDoc, is_language, normalize_language, suggestion
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, GitHubFiles
from mrag_eval.datasets._files import github_file, parquet, require_path, require_text, sha256_file, unique_ids
from mrag_eval.datasets._imbalance import Imbalance, refuse_imbalance
from mrag_eval.datasets._origin import Origin
from mrag_eval.datasets._versions import Version, imbalanced
from mrag_eval.datasets._xlcost_corpus import CorpusPassages, counted, country_pages, read_xlcost_passages
from mrag_eval.platform import DataError, JsonFault, content_key, json_value, number_of

REPOSITORY = GitHubFiles(
    id="chenamiraz/cross-lingual-cost", revision="7e548b57935dbac3b8fa2cb0536cf76f863337eb", licence="CC-BY-4.0"
)
LANGUAGES: Mapping[str, str] = {"arabic": "ar", "english": "en"}
BENCHMARK = Declaration(
    name="xlcost",
    title="The Cross-Lingual Cost",
    asks="travel advice and law of the UAE, questions and documents in Arabic or English",
    sources=(REPOSITORY,),
    shareable=True,
    languages=tuple(LANGUAGES.values()),
    main_metric="judge_correct",
    papers=("amiraz2025crosslingual",),
    published=("xlcost",),
    needs=("download", "judge"),
    tasks="xlcost",
    own={"domain": "own"},
)
# Number of questions of a domain in the files, and of those that are left once they are cleaned.
_PUBLISHED = {"travel": 2_066, "legal": 1_285}
_CLEANED = {"travel": 1_019, "legal": 1_282}
# Number of documents, where it is known.
_DOCUMENTS = {"travel": 191}
_COLUMNS = ("question", "answer", "supporting_document_language", "user_language")
# Optional fields of a user's rows: the id of the document, a JSON object of categories, the kind of question.
_OWN_COLUMNS = ("document", "categories", "q_type")
_FOLDERS = {"benchmark": "benchmarks", "corpus": "corpora"}


class XlcostBlock(DataBlock):
    """Data block: ``domain`` is ``travel``, ``legal`` or ``own``; ``path`` a folder with the authors' files, or a
    user's.

    ``corpus`` is a Parquet or JSON Lines file of documents instead of theirs, or ``none`` (nothing is searched).
    Passages have up to ``passage_tokens`` tokens of ``tokenizer``: by default those that ``mrag-eval build qa`` wrote
    the corpus for, else 100 of ``cl100k_base``. ``as_published`` keeps every row and tag of the file; ``sample`` is the
    number of questions to keep, drawn with ``seed``.
    """

    domain: Literal["travel", "legal", "own"] = "travel"
    corpus: Literal["none"] | AbsolutePath | None = Field(default=None, union_mode="left_to_right")
    tokenizer: Literal["cl100k_base", "model_free"] | None = None
    passage_tokens: int | None = Field(default=None, ge=1)
    as_published: bool = False
    sample: int | None = Field(default=None, ge=1)


@dataclass(frozen=True)
class _Row:
    """A line of the file, its languages as BCP 47; ``tagged`` is the published language of the question."""

    question: str
    answer: str
    doc_lang: str
    user_lang: str
    tagged: str
    own: Mapping[str, str] = field(default_factory=dict, hash=False)


def load(block: XlcostBlock) -> Benchmark:
    """Load the questions of a domain, cleaned, and its passages."""
    file = _file(block, "benchmark")
    rows = _read(file, own=block.domain == "own")
    kept, counts = (rows, {}) if block.as_published else _cleaned(rows, relabel=block.domain != "own")
    docs = loaded = _docs(kept)
    if block.sample is not None and block.sample < len(docs):
        import numpy as np

        drawn = np.random.default_rng(block.seed).choice(len(docs), size=block.sample, replace=False)
        docs = [docs[i] for i in sorted(drawn.tolist())]
    passages = None
    if block.corpus != "none":
        passages = read_xlcost_passages(_corpus_file(block), block.passage_tokens, block.tokenizer)
    if passages and block.domain == "travel":
        pages = country_pages(docs, passages.passages)
        docs = [replace(doc, extra={**doc.extra, PAGE: pages[doc.id]}) if doc.id in pages else doc for doc in docs]
    corpus, fetched = passages.passages if passages else None, block.path is None and block.corpus is None
    drawn_corpus: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    if block.imbalance is not None:
        if passages is None or not passages.parallel:
            raise refuse_imbalance("xlcost")
        asked = len(docs)
        docs, corpus, note = _imbalanced(docs, passages, block.imbalance, block.seed)
        pages_kept = {str(p.doc_id): p.lang for p in corpus}
        settings["imbalance"] = {"seed": block.seed} | block.imbalance.model_dump(exclude_none=True)
        drawn_corpus = {**counted(corpus, list(pages_kept.values())), "drawn": settings["imbalance"]}
        notes = (note, f"{number_of(asked - len(docs), 'question')} left out: the document that answers is not known")
    settings |= {
        "counts": {"file": len(rows), **counts, "kept": len(kept), "run": len(docs)},
        "pairs": {"file": _pairs(rows), "kept": _pairs(kept)},
    }
    if block.sample is not None:
        settings |= {"seed": block.seed, "sample": content_key(sorted(doc.id for doc in docs))}
    fetched = block.path is None and block.corpus is None
    origin = Origin(
        _place(file, block.path is None, block.revision),
        settings,
        {_part(block): Part.of(loaded)},
        documents=None if passages is None else {block.domain: Part.of(passages.documents)},
        corpus={} if passages is None else {**passages.made, **drawn_corpus},
        beside={} if passages is None else {"corpus": _place(passages.file, fetched, block.revision)},
    )
    return Benchmark("xlcost", docs, corpus, (*_notes(block, settings, passages), *notes), origin)


def _part(block: XlcostBlock) -> str:
    return f"{block.domain}, as published" if block.as_published else block.domain


def _place(file: Path, fetched: bool, revision: str | None) -> dict[str, Any]:
    where = (
        {"repository": REPOSITORY.id, "revision": revision or REPOSITORY.revision} if fetched else {"path": str(file)}
    )
    return {**where, "sha256": {file.name: sha256_file(file)}}


def _imbalanced(
    docs: Sequence[RagDoc], passages: CorpusPassages, block: Imbalance, seed: int
) -> tuple[list[RagDoc], list[Passage], str]:
    """Return the questions whose document is known, with its drawn version, the corpus, and a note on the draw."""
    known = [
        doc if doc.relevant_ids else replace(doc, relevant_ids=(doc.extra[PAGE],))
        for doc in docs
        if doc.relevant_ids or PAGE in doc.extra
    ]
    versions = [Version(passages.parallel.get(str(p.doc_id)), p, p.title, p.text) for p in passages.passages]
    moved, corpus, note = imbalanced(known, passages.passages, versions, block, seed)
    return (
        [
            # a page is a guess from the question; only a user's own rows name their documents
            replace(doc, relevant_ids=(), extra={**doc.extra, PAGE: doc.relevant_ids[0]}) if PAGE in doc.extra else doc
            for doc in moved
        ],
        corpus,
        note,
    )


def _notes(block: XlcostBlock, settings: Mapping[str, Any], passages: CorpusPassages | None) -> tuple[str, ...]:
    rows = settings["counts"]
    cleaning = {
        "repeated_half": "of a half that repeats the first",
        "repeated_rows": "repeated rows",
        "repeated_questions": "repeated questions with another answer",
    }
    left_out = [f"{rows[key]} {what}" for key, what in cleaning.items() if rows.get(key)]
    notes = [f"{rows['kept']:,} questions of {rows['file']:,} rows" + (", as published" if block.as_published else "")]
    if left_out:
        notes.append(f"left out: {', '.join(left_out)}")
    if rows.get("relabelled"):
        notes.append(f"{rows['relabelled']} questions tagged with another language than they are in: tag corrected")
    if rows["run"] < rows["kept"]:
        notes.append(f"{rows['run']} of them drawn with seed {block.seed}")
    if passages is not None:
        notes.append(f"{len(passages.passages):,} passages of {len(passages.documents):,} documents")
    return tuple(notes)


def _docs(rows: Sequence[_Row]) -> list[RagDoc]:
    # derived from the question, so that a row keeps its id in any copy of the file
    groups = [hashlib.sha256(row.question.encode()).hexdigest()[:12] for row in rows]
    ids, _ = unique_ids(groups)
    return [
        RagDoc(
            id=name,
            query=row.question,
            query_lang=row.user_lang,
            answers=(row.answer,),
            gold_doc_lang=row.doc_lang,
            group_id=group,
            extra=_extra(row),
            relevant_ids=(row.own["document"],) if "document" in row.own else (),
            relevant_documents="document" in row.own,
        )
        for name, group, row in zip(ids, groups, rows, strict=True)
    ]


def _extra(row: _Row) -> dict[str, Any]:
    tag = {} if row.tagged == row.user_lang else {"tagged_language": row.tagged}
    return tag | {key: value for key, value in row.own.items() if key != "document"}


def _cleaned(rows: Sequence[_Row], *, relabel: bool) -> tuple[list[_Row], dict[str, int]]:
    """Return the rows without repetitions, the first one kept, and (``relabel``) with detected question languages."""
    half, odd = divmod(len(rows), 2)
    repeats = not odd and rows[:half] == rows[half:]
    once = list(rows[:half] if repeats else rows)
    distinct = list(dict.fromkeys(once))
    first: dict[str, _Row] = {}
    for row in distinct:
        first.setdefault(row.question, row)
    kept = list(first.values())
    if relabel:
        kept = _relabelled(kept)
    counts = {
        "repeated_half": half if repeats else 0,
        "repeated_rows": len(once) - len(distinct),
        "repeated_questions": len(distinct) - len(kept),
        "relabelled": sum(row.user_lang != row.tagged for row in kept),
    }
    return kept, counts


class _KeepTag:
    """Keeps the tag of texts that the script does not settle: a guess on a few words is worse than the authors' tag."""

    def detect(self, texts: Sequence[str]) -> list[str]:
        return ["und"] * len(texts)


def _relabelled(rows: Sequence[_Row]) -> list[_Row]:
    """Return rows with the language of their question's script; with their tag if it is in both scripts or neither."""
    from mrag_eval.metrics import ScriptDetector

    detector = ScriptDetector(sorted(LANGUAGES.values()), fallback=_KeepTag())
    found = detector.detect([row.question for row in rows])
    return [
        replace(row, user_lang=row.tagged if code == "und" else code) for row, code in zip(rows, found, strict=True)
    ]


def _pairs(rows: Sequence[_Row]) -> dict[str, int]:
    """Count the rows by question language and document language."""
    return dict(sorted(Counter(f"{row.user_lang}->{row.doc_lang}" for row in rows).items()))


def _file(block: XlcostBlock, kind: str) -> Path:
    """Return the domain's benchmark or corpus file: in the given folder (flat, or as in the repository), or fetched."""
    name = f"{block.domain}_{kind}.parquet"
    if block.path is None:
        if block.domain == "own":
            raise DataError(
                "xlcost: data.domain=own is your own benchmark: set data.path to its folder",
                "--metadata data.path=FOLDER, as `mrag-eval build qa` wrote it",
            )
        commit = block.revision or REPOSITORY.revision
        return github_file("xlcost", REPOSITORY.id, commit, f"{_FOLDERS[kind]}/{name}")
    folder = require_path(block.path, "xlcost")
    found = next((path for path in (folder / name, folder / _FOLDERS[kind] / name) if path.is_file()), None)
    if found is None:
        whose = "that `mrag-eval build qa` wrote" if block.domain == "own" else "of a copy of the authors' repository"
        raise DataError(f"xlcost: {folder} has no file {name}", f"give the folder {whose}")
    return found


def _corpus_file(block: XlcostBlock) -> Path:
    if isinstance(block.corpus, Path):
        if not block.corpus.is_file():
            raise DataError(f"xlcost: data.corpus={block.corpus} is not a file", "give a .parquet or .jsonl file")
        return block.corpus
    try:
        return _file(block, "corpus")
    except DataError as error:
        if block.domain != "legal":
            raise
        raise DataError(
            f"xlcost: the legal corpus is not available ({error.message.removeprefix('xlcost: ')})",
            "name it: --metadata data.corpus=FILE (.parquet or .jsonl with doc_id, language, title, content); "
            "the tasks that retrieve nothing (norag in their names) need none: data.corpus=none",
        ) from None


def _read(path: Path, *, own: bool) -> list[_Row]:
    with parquet(path) as file:
        there = file.schema_arrow.names
        for name in _COLUMNS:
            if name not in there:
                raise DataError(f"{path}: column '{name}' is missing; found: {', '.join(there) or 'none'}")
        columns = [*_COLUMNS, *(name for name in _OWN_COLUMNS if own and name in there)]
        records = file.read(columns).to_pylist()
    if not records:
        raise DataError(f"{path}: holds no question")
    return [_row(record, f"{path}, row {i}", own) for i, record in enumerate(records)]


def _row(record: Mapping[str, Any], where: str, own: bool) -> _Row:
    question, answer = (require_text(record[key], where, key).strip() for key in ("question", "answer"))
    document, tagged = (_code(record[key], where, key, own) for key in _COLUMNS[2:])
    return _Row(question, answer, document, tagged, tagged, _own(record, where) if own else {})


def _code(value: Any, where: str, key: str, own: bool) -> str:
    if value in LANGUAGES:
        return LANGUAGES[value]
    if not own:
        raise DataError(f"{where}: {key} is {value!r}, neither 'arabic' nor 'english'")
    if not isinstance(value, str) or not is_language(value):
        raise DataError(f"{where}: {key} is {value!r}, not a known language", suggestion(str(value)))
    return normalize_language(value)


def _own(record: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the optional fields of a user's row: ``document``, ``q_type``, and a text for every category."""
    found = {key: str(record[key]) for key in ("document", "q_type") if record.get(key)}
    listed = record.get("categories") or "{}"
    try:
        categories = json_value(listed)
    except (TypeError, AttributeError, JsonFault):
        categories = None
    if not isinstance(categories, dict) or not all(isinstance(value, str) for value in categories.values()):
        raise DataError(f"{where}: 'categories' must be a JSON object of texts, found {listed!r:.60}")
    return {**categories, **found}


def published(block: XlcostBlock) -> Mapping[str, int] | None:
    """Return the number of rows in the authors' file, or of those that are left once it is cleaned."""
    rows = (_PUBLISHED if block.as_published else _CLEANED).get(block.domain)
    return None if rows is None else {_part(block): rows}


def documents(block: XlcostBlock) -> Mapping[str, int] | None:
    """Return the number of the authors' documents, where it is known."""
    return {block.domain: _DOCUMENTS[block.domain]} if block.domain in _DOCUMENTS else None


def expected(block: XlcostBlock) -> Expected:
    """Return what is known of the rows: their number is that of the files as they were last cleaned."""
    rows = sum(found.values()) if (found := published(block)) else None
    return Expected(rows if rows is None or block.sample is None else min(rows, block.sample), ("ar", "en"))


LOADER = LoaderSpec(
    BENCHMARK, XlcostBlock, load, versions=True, expected=expected, published=published, documents=documents
)
