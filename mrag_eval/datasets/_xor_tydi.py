"""XOR-TyDi QA, full task (Asai et al., 2021): questions answered in Wikipedia of the question's language or English.

The hub's copies join the answers into one text and drop the ids, so the authors' own file is read. For yes/no answers
the file has the English word; as in RAG in multilingual settings, the words of the question's language are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import RagDoc, language_name
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, WebFile
from mrag_eval.datasets._files import (
    file_in,
    iter_jsonl,
    require_columns,
    require_path,
    require_text,
    sha256_file,
    web_file,
)
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import DataError

FILE = "xor_dev_full_v1_1.jsonl"
ORIGINAL = WebFile(
    url=f"https://nlp.cs.washington.edu/xorqa/XORQA_site/data/{FILE}",
    licence=None,
    note="the licence of the repository, MIT, is not said to be that of the data",
)
# Number of questions in the paper (its Table 4).
PAPER_ROWS = {"ar": 708, "fi": 615, "ja": 433, "ko": 371, "ru": 568}
LANGUAGES = tuple(PAPER_ROWS)
BENCHMARK = Declaration(
    name="xor_tydi",
    title="XOR-TyDi QA",
    asks="questions in five languages, answered in Wikipedia of their own or English",
    sources=(ORIGINAL,),
    shareable=False,
    languages=LANGUAGES,
    main_metric="char3gram_recall",
    modes=("no_ir", "en_only", "qlang", "qlang+en", "all"),
    papers=("asai2021xor", "chirkova2024mrag"),
    published=("mrag",),
    needs=("download", "index"),
    tasks="xor_tydi",
)
YES_NO: dict[str, dict[str, tuple[str, ...]]] = {
    "ar": {"yes": ("نعم", "أجل", "بلى"), "no": ("لا",)},
    "fi": {"yes": ("kyllä", "joo"), "no": ("ei",)},
    "ja": {"yes": ("はい",), "no": ("いいえ",)},
    "ko": {"yes": ("예",), "no": ("아니요",)},
    "ru": {"yes": ("да",), "no": ("нет",)},
}
_COLUMNS = ("id", "question", "lang", "answers")


class XorTydiBlock(DataBlock):
    """Data block: ``language`` of the questions; ``path`` is ``xor_dev_full_v1_1.jsonl`` or its folder."""

    split: Literal["dev"] = "dev"
    language: Literal["ar", "fi", "ja", "ko", "ru"]


def load(block: XorTydiBlock) -> Benchmark:
    """Load the questions of one language; relevant pages are unknown for every row."""
    path = _file(block)
    rows = _read(path, path.stat().st_mtime_ns)
    chosen = [(where, row) for where, row in rows if row["lang"] == block.language]
    if not chosen:
        found = ", ".join(sorted({str(row["lang"]) for _, row in rows}))
        raise DataError(
            f"xor_tydi: {path} holds no question in '{block.language}' ({len(rows)} rows, languages {found})"
        )
    docs = [doc for where, row in chosen if (doc := _doc(row, block.language, where)) is not None]
    if not docs:
        raise DataError(f"xor_tydi: none of the {len(chosen)} questions in '{block.language}' of {path} has an answer")
    notes = [f"{len(docs):,} questions in {language_name(block.language)}"]
    if len(docs) < len(chosen):
        notes.append(f"{len(chosen) - len(docs):,} without an answer were left out")
    place = {"path": str(path)} if block.path else {"url": ORIGINAL.url}
    origin = Origin({**place, "sha256": sha256_file(path)}, parts={language_name(block.language): Part.of(docs)})
    return Benchmark("xor_tydi", docs, None, tuple(notes), origin)


def _file(block: XorTydiBlock) -> Path:
    if block.path is None:
        return web_file("xor_tydi", ORIGINAL.url)
    path = require_path(block.path, "xor_tydi")
    return file_in(path, (FILE, f"{FILE}.gz"), f"xor_tydi: {path}", f"download it: {ORIGINAL.url}")


# The leaves of a group read the same file in succession.
@lru_cache(maxsize=2)
def _read(path: Path, _mtime_ns: int) -> list[tuple[str, dict[str, Any]]]:
    rows: list[tuple[str, dict[str, Any]]] = []
    seen: dict[str, str] = {}
    for number, row in iter_jsonl(path):
        where = f"{path}, line {number}"
        require_columns(row, _COLUMNS, where)
        name = str(row["id"])
        if name in seen:
            raise DataError(f"{where}: id '{name}' was used before ({seen[name]})")
        seen[name] = where
        rows.append((where, row))
    if not rows:
        raise DataError(f"{path}: holds no question")
    return rows


def _doc(row: dict[str, Any], language: str, where: str) -> RagDoc | None:
    """Return the question; None if it has no answer."""
    answers = row["answers"]
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise DataError(f"{where}: 'answers' must be a list of texts (the hub's copies join them: use {FILE})")
    kept = dict.fromkeys(answer.strip() for answer in answers if answer.strip())
    if not kept:
        return None
    added = dict.fromkeys(word for answer in kept for word in YES_NO[language].get(answer.casefold(), ()))
    return RagDoc(
        id=str(row["id"]),
        query=require_text(row["question"], where, "question").strip(),
        query_lang=language,
        answers=tuple(kept | added),
    )


def answers_of_the_file(answers: Sequence[str], language: str) -> list[str]:
    """Return a question's answers without the words in its language that were added for yes and no."""
    words = YES_NO.get(language, {})
    added = {word for answer in answers for word in words.get(answer.casefold(), ())}
    return [answer for answer in answers if answer not in added]


def published(block: XorTydiBlock) -> Mapping[str, int]:
    """Return the mRAG paper's count."""
    return {language_name(block.language): PAPER_ROWS[block.language]}


def expected(block: XorTydiBlock) -> Expected:
    """Return what the mRAG paper's counts tell of the rows."""
    return Expected(PAPER_ROWS[block.language], (block.language,))


LOADER = LoaderSpec(BENCHMARK, XorTydiBlock, load, expected=expected, published=published)
