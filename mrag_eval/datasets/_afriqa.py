"""AfriQA: questions in African languages whose answers stand in English or French Wikipedia (Ogundepo et al., 2023).

Each question has its translation by people into the pivot language, and a gold passage of the pivot's Wikipedia. The
hub's copies are loading scripts, which no longer run, so the files of the authors' repository are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from mrag_eval.core import Passage, RagDoc, language_name, titled
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, GitHubFiles
from mrag_eval.datasets._files import github_file, iter_jsonl, require_columns, require_path, require_text, sha256_file
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import DataError, number_of

REPOSITORY = GitHubFiles(
    id="masakhane-io/afriqa", revision="5c29933753692c28773c34ac1f68482007f1d2bb", licence="CC-BY-4.0", megabytes=3
)
# Language -> its code in the names of files, and its pivot language.
_FILES = {
    "bem": ("bem", "en"), "fon": ("fon", "fr"), "ha": ("hau", "en"), "ig": ("ibo", "en"), "rw": ("kin", "en"),
    "sw": ("swa", "en"), "tw": ("twi", "en"), "yo": ("yor", "en"), "zu": ("zul", "en"),
}  # fmt: skip
Code = Literal["bem", "fon", "ha", "ig", "rw", "sw", "tw", "yo", "zu"]
# Number of test questions with a gold passage, of the languages whose file was counted.
TEST_ROWS = {"fon": 386, "ha": 300, "ig": 409, "sw": 295, "zu": 325}
_COLUMNS = ("id", "question_lang", "question_translated", "title", "context", "answer_pivot", "answer_lang")
BENCHMARK = Declaration(
    name="afriqa",
    title="AfriQA",
    asks="questions in nine African languages, answered in English or French Wikipedia",
    sources=(REPOSITORY,),
    shareable=True,
    languages=tuple(_FILES),
    main_metric="char3gram_recall",
    metrics=("exact_match_unicode", "f1_unicode", "match"),
    modes=("no_ir", "all", "oracle"),
    papers=("ogundepo-etal-2023-cross",),
    needs=("download", "index"),
    tasks="afriqa",
)


class AfriqaBlock(DataBlock):
    """Data block: ``language`` of the questions; ``answers`` in it (``own``) or in the ``pivot`` language.

    ``corpus``: ``pooled`` searches the gold passages of all ``languages`` (default: all nine); ``none`` leaves the
    passages and the relevant ids out, for an index of your own.
    """

    split: Literal["train", "dev", "test"] = "test"
    revision: str = REPOSITORY.revision
    language: Code
    answers: Literal["own", "pivot"] = "own"
    corpus: Literal["pooled", "none"] = "pooled"
    languages: tuple[Code, ...] | None = None

    @field_validator("languages")
    @classmethod
    def _named_once(cls, value: tuple[Code, ...] | None) -> tuple[Code, ...] | None:
        if value is not None and (not value or len({*value}) < len(value)):
            raise ValueError("name at least one language, and each once")
        return value


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    asked: str
    translated: str
    answer: str
    pivot_answers: tuple[str, ...]
    passage: Passage


@dataclass(frozen=True)
class _File:
    rows: tuple[_Row, ...]
    unanswered: int
    sha256: str


def load(block: AfriqaBlock) -> Benchmark:
    """Load the questions of one language; ``group_id`` and the relevant id are those of the gold passage."""
    own, pivot = _file(block, block.language), _FILES[block.language][1]
    docs = [_doc(row, block, pivot) for row in own.rows]
    notes = [f"{len(docs)} questions in {language_name(block.language)}, translated into {language_name(pivot)}"]
    if own.unanswered:
        notes.append(f"{number_of(own.unanswered, 'question')} without an answer left out")
    files: dict[str, _File] = {block.language: own}
    corpus, documents = None, None
    if block.corpus == "pooled":
        # those of the language itself are always there, as they answer
        files = {code: _file(block, code) for code in _pooled(block)}
        pool = {row.passage.id: row.passage for file in files.values() for row in file.rows}
        corpus = [pool[name] for name in sorted(pool)]
        documents = {language_name(code): _passages(file) for code, file in files.items()}
        notes.append(f"{len(corpus):,} gold passages of {number_of(len(files), 'language')}")
    hashes = {code: file.sha256 for code, file in files.items()}
    place = {"path": str(block.path)} if block.path else {"repository": REPOSITORY.id, "revision": block.revision}
    origin = Origin(
        {**place, "sha256": hashes},
        {"answers": block.answers},
        {language_name(block.language): Part.of([[row.id, row.asked, row.translated, row.answer, row.pivot_answers,
                                                  row.passage.id] for row in own.rows])},
        documents=documents,
    )  # fmt: skip
    parallel = [{block.language: row.asked, pivot: row.translated} for row in own.rows]
    english = {row.id: row.pivot_answers[0] for row in own.rows} if pivot == "en" else {}
    return Benchmark("afriqa", docs, corpus, tuple(notes), origin, parallel=parallel, english=english)


def _pooled(block: AfriqaBlock) -> list[str]:
    return sorted({block.language, *(block.languages or _FILES)})


def _passages(file: _File) -> Part:
    found = {row.passage.id: [row.passage.title, row.passage.text] for row in file.rows}
    return Part.of(list(found.values()))


def _doc(row: _Row, block: AfriqaBlock, pivot: str) -> RagDoc:
    in_pivot = block.answers == "pivot"
    return RagDoc(
        id=row.id,
        query=row.asked,
        query_lang=block.language,
        answers=row.pivot_answers if in_pivot else (row.answer,),
        gold_doc_lang=pivot,
        relevant_langs=(pivot,),
        relevant_ids=() if block.corpus == "none" else (row.passage.id,),
        group_id=row.passage.id,
        # short_answer_in names it
        extra={"answer_language": language_name(pivot)} if in_pivot else {},
    )


def _file(block: AfriqaBlock, language: str) -> _File:
    code, pivot = _FILES[language]
    name = f"gold_span_passages.afriqa.{code}.{pivot}.{block.split}.json"
    inside = f"data/gold_passages/{code}/{name}"
    if block.path is None:
        path = github_file("afriqa", REPOSITORY.id, block.revision, inside)
    else:
        root = require_path(block.path, "afriqa")
        copies = [root / place for one in (name, inside, f"{code}/{name}") for place in (one, f"{one}.gz")]
        found = next((copy for copy in copies if copy.is_file()), None)
        if found is None:
            raise DataError(
                f"afriqa: {root} has no file {name}(.gz)",
                f"copy it there, or leave {language_name(language)} out of data.languages",
            )
        path = found
    status = path.stat()
    return _read(path, language, status.st_mtime_ns, status.st_size)


# The tasks of all languages read the same files in succession.
@lru_cache(maxsize=2 * len(_FILES))
def _read(path: Path, language: str, _mtime_ns: int, _size: int) -> _File:
    rows: dict[str, _Row] = {}
    count = 0
    for where, record in ((f"{path}, line {number}", row) for number, row in iter_jsonl(path)):
        count += 1
        row = _row(record, where, *_FILES[language])
        if row is None:
            continue
        if row.id in rows:
            raise DataError(f"{where}: id '{record['id']}' was used before")
        rows[row.id] = row
    if not rows:
        raise DataError(f"{path}: holds no question with an answer")
    return _File(tuple(rows.values()), count - len(rows), sha256_file(path))


def _row(record: Mapping[str, Any], where: str, code: str, pivot: str) -> _Row | None:
    """Return a question with its passage; None if it has no answer in one of the two languages."""
    require_columns(record, _COLUMNS, where)
    spans = record["answer_pivot"]
    texts = spans.get("text") if isinstance(spans, Mapping) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: 'answer_pivot' must be an object with a list of texts under 'text'")
    answer, answers = str(record["answer_lang"] or "").strip(), tuple(_stripped(texts))
    if not answer or not answers:
        return None
    title = str(record["title"] or "").strip()
    text = titled(title, require_text(record["context"], where, "context").strip())
    # equal passages of two files are one
    name = f"{pivot}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return _Row(
        f"{code}-{record['id']}",
        require_text(record["question_lang"], where, "question_lang").strip(),
        require_text(record["question_translated"], where, "question_translated").strip(),
        answer,
        answers,
        Passage(id=name, lang=pivot, text=text, title=title, doc_id=name),
    )


def _stripped(texts: list[str]) -> Iterator[str]:
    yield from dict.fromkeys(text.strip() for text in texts if text.strip())


def published(block: AfriqaBlock) -> Mapping[str, int] | None:
    """Return the number of test questions, where it is known."""
    rows = TEST_ROWS.get(block.language) if block.split == "test" else None
    return None if rows is None else {language_name(block.language): rows}


def expected(block: AfriqaBlock) -> Expected:
    """Return what the counts of the files tell of the rows."""
    return Expected(TEST_ROWS.get(block.language) if block.split == "test" else None, (block.language,))


LOADER = LoaderSpec(BENCHMARK, AfriqaBlock, load, expected=expected, published=published)
