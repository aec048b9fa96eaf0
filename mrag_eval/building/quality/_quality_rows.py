"""Rows of a built set, for its statistics: XRAG's layout, that of The Cross-Lingual Cost, or territories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.core import is_language, normalize_language, suggestion
from mrag_eval.datasets import iter_jsonl, parquet, require_columns, sha256_file
from mrag_eval.platform import DataError, json_from

# Enough of an article to detect its language.
_DETECT_CHARS = 500


@dataclass(frozen=True, slots=True)
class BuiltRow:
    """One question. ``sources`` are the language and text of its documents, ``part`` its part of the set.

    ``kinds`` maps the name of a classification to the question's class (``q_type``, ``crossdoc_type``, ``a_type``,
    categories). ``group`` is shared by questions on the same sources and by versions of one question.
    """

    id: str
    part: str
    question: str
    answer: str
    lang: str
    doc_langs: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    kinds: Mapping[str, str] = field(default_factory=dict)
    group: str = ""


@dataclass(frozen=True)
class BuiltSet:
    """A built set of ``kind`` xrag, qa or territories. ``hashes`` are the SHA-256 of the files that its runs name as
    source.
    """

    kind: str
    folder: Path
    rows: tuple[BuiltRow, ...]
    hashes: frozenset[str]


def read_built(folder: Path) -> BuiltSet:
    """Read the set in a folder written by ``mrag-eval build``; raise DataError if there is none."""
    splits = [path for split in ("test", "dev") if (path := folder / f"xrag.{split}.jsonl").is_file()]
    if splits:
        return _xrag(folder, splits)
    if (folder / "own_benchmark.parquet").is_file():
        return _qa(folder)
    if (folder / "borderlines" / "disputed_territories.csv").is_file():
        return _territories(folder)
    raise DataError(
        f"{folder}: no set that `mrag-eval build` wrote (no xrag.test.jsonl, own_benchmark.parquet or borderlines)",
        "name the --output folder of a build",
    )


def _xrag(folder: Path, files: Sequence[Path]) -> BuiltSet:
    records = []
    for path in files:
        for number, record in iter_jsonl(path):
            needed = ("id", "question", "answer", "en_question", "en_answer", "language", "articles", "is_support")
            require_columns(record, needed, f"{path}, line {number}")
            records.append(record)
    if not records:
        raise DataError(f"{files[0]}: holds no question", "name a set that mrag-eval build has written")
    languages = _article_languages(records)
    rows = [_xrag_row(record, codes) for record, codes in zip(records, languages, strict=True)]
    english = {
        (row.part, record["en_question"]): BuiltRow(
            f"{row.id} (en)",
            f"{row.part}, English originals",
            record["en_question"],
            record["en_answer"],
            "en",
            row.doc_langs,
            row.sources,
            row.kinds,
            row.group,
        )
        for record, row in zip(reversed(records), reversed(rows), strict=True)
    }
    return BuiltSet("xrag", folder, (*rows, *reversed(english.values())), frozenset(map(sha256_file, files)))


def _xrag_row(record: Mapping[str, Any], languages: Sequence[str]) -> BuiltRow:
    lang = normalize_language(record["language"])
    gold = [i for i, mark in enumerate(record["is_support"]) if str(mark) in ("1", "True")]
    kinds = {key: str(record[key]) for key in ("q_type", "crossdoc_type", "a_type") if record.get(key) is not None}
    multi = record.get("setting", "multi" if any(code != "en" for code in languages) else "mono") == "multi"
    return BuiltRow(
        str(record["id"]),
        "multilingual retrieval" if multi else "monolingual retrieval",
        record["question"],
        record["answer"],
        lang,
        tuple(dict.fromkeys(languages[i] for i in gold)),
        tuple((languages[i], record["articles"][i]) for i in gold),
        kinds,
        record["en_question"],
    )


def _article_languages(records: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the articles' languages from the rows, or detect them (XRAG's own files do not name them)."""
    asked = [r for r in records if "article_languages" not in r]
    texts = [article[:_DETECT_CHARS].replace("\n", " ") for r in asked for article in r["articles"]]
    labels: list[str] = []
    if texts:
        from mrag_eval.metrics import default_detector

        labels = default_detector().detect(texts)
    found = iter(labels)
    return [
        list(record["article_languages"])
        if "article_languages" in record
        else [next(found) for _ in record["articles"]]
        for record in records
    ]


def _qa(folder: Path) -> BuiltSet:
    path = folder / "own_benchmark.parquet"
    with parquet(path) as file:
        records = file.read().to_pylist()
    rows = []
    for number, record in enumerate(records):
        needed = ("question", "answer", "user_language", "supporting_document_language")
        require_columns(record, needed, f"{path}, row {number}")
        doc_lang = _code(record["supporting_document_language"], f"{path}, row {number}")
        categories = json_from(record.get("categories") or "{}", f"{path}, row {number}, categories")
        answer = {"a_type": "corrected" if record["corrected"] else "original"} if "corrected" in record else {}
        rows.append(
            BuiltRow(
                str(record.get("id") or number),
                "questions on documents",
                record["question"],
                record["answer"],
                _code(record["user_language"], f"{path}, row {number}"),
                (doc_lang,),
                ((doc_lang, record["excerpt"]),) if record.get("excerpt") else (),
                {**categories, **answer},
                str(record.get("document") or number),
            )
        )
    if not rows:
        raise DataError(f"{path}: holds no question", "name a set that mrag-eval build has written")
    return BuiltSet("qa", folder, tuple(rows), frozenset({sha256_file(path)}))


def _code(value: Any, where: str) -> str:
    if not isinstance(value, str) or not is_language(value):
        raise DataError(f"{where}: unknown language {value!r}", suggestion(str(value)))
    return normalize_language(value)


def _territories(folder: Path) -> BuiltSet:
    from mrag_eval.datasets import load_benchmark

    loaded = load_benchmark({"benchmark": "bordirlines", "path": str(folder)})
    rows = [
        BuiltRow(
            doc.id,
            "territories",
            doc.query,
            "",
            doc.query_lang,
            (),
            (),
            {
                "query": "control" if doc.extra["control_query"] else "in a claimant's language",
                "options": str(len(doc.choices or ())),
                "controller": "unknown" if doc.gold_choice is None else "known",
            },
            doc.extra["territory"],
        )
        for doc in loaded.docs
    ]
    table = folder / "borderlines" / "disputed_territories.csv"
    return BuiltSet("territories", folder, tuple(rows), frozenset({sha256_file(table)}))
