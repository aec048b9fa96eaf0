"""TyDi QA, gold passage task (Clark et al., 2020): its English questions, for comparison with XOR-TyDi QA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import GivenPassage, RagDoc
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, HubDataset
from mrag_eval.datasets._files import (
    file_in,
    hub_dataset,
    hub_place,
    read_squad,
    require_columns,
    require_path,
    require_text,
)
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import DataError

HUB = HubDataset(id="google-research-datasets/tydiqa", licence=None)
BENCHMARK = Declaration(
    name="tydiqa",
    title="TyDi QA",
    asks="English questions of the gold passage task, short answers",
    sources=(HUB,),
    shareable=False,
    languages=("en",),
    main_metric="char3gram_recall",
    modes=("no_ir", "en_only", "qlang", "qlang+en", "all"),
    papers=("clark2020tydi", "chirkova2024mrag"),
    published=("mrag",),
    needs=("download", "index"),
    tasks="tydi",
)
FILE = "tydiqa-goldp-v1.1-dev.json"
# Number of English questions in the paper (its Table 4).
PAPER_ROWS = 440
_COLUMNS = ("id", "title", "context", "question", "answers")
# Question ids begin with the language.
_PREFIX = "english-"


class TydiqaBlock(DataBlock):
    """Data block: ``path`` is ``tydiqa-goldp-v1.1-dev.json`` or its folder; only the English questions are read."""

    split: Literal["validation"] = "validation"
    revision: str | None = HUB.revision
    language: Literal["en"] = "en"


def load(block: TydiqaBlock) -> Benchmark:
    """Load the English questions, each with its gold passage as ``given_passages``."""
    rows, place = _from_hub(block) if block.path is None else _from_file(require_path(block.path, "tydiqa"))
    docs = [_doc(row, where) for where, row in rows if str(row["id"]).startswith(_PREFIX)]
    if not docs:
        raise DataError(
            f"tydiqa: none of the {len(rows)} questions is in English (ids that begin with '{_PREFIX}')",
            f"data.path is {FILE} as published",
        )
    seen: set[str] = set()
    for doc in docs:
        if doc.id in seen:
            raise DataError(f"tydiqa: question id '{doc.id}' occurs twice")
        seen.add(doc.id)
    notes = (f"{len(docs):,} questions in English, of {len(rows):,} in the file",)
    return Benchmark("tydiqa", docs, None, notes, Origin(place, parts={"English": Part.of(docs)}))


def _from_hub(block: TydiqaBlock) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    rows = hub_dataset("tydiqa", HUB.id, "secondary_task", block.split, block.revision, _COLUMNS)
    found = [(f"{HUB.id}, row {index}", row) for index, row in enumerate(rows)]
    return found, hub_place(HUB.id, block.revision, rows, split=block.split)


def _from_file(path: Path) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    next_step = f"download it from the dataset {HUB.id}"
    path = file_in(path, (FILE, f"{FILE}.gz"), f"tydiqa: {path}", next_step)
    rows, digest = read_squad(path)
    return [(str(path), row) for row in rows], {"path": str(path), "sha256": digest}


def _doc(row: dict[str, Any], where: str) -> RagDoc:
    require_columns(row, _COLUMNS, where)
    where = f"{where}, question {row['id']}"
    answers = row["answers"]
    texts = answers["text"] if isinstance(answers, dict) else [answer["text"] for answer in answers]
    answers = tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not answers:
        raise DataError(f"{where}: has no answer")
    gold = GivenPassage(
        id=f"{row['id']}-passage",
        lang="en",
        text=require_text(row["context"], where, "context"),
        title=str(row["title"] or ""),
        doc_id=str(row["title"] or row["id"]),
        is_gold=True,
    )
    return RagDoc(
        id=str(row["id"]),
        query=require_text(row["question"], where, "question").strip(),
        query_lang="en",
        answers=answers,
        given_passages=(gold,),
        gold_doc_lang="en",
    )


def published(block: TydiqaBlock) -> Mapping[str, int]:
    """Return the mRAG paper's count."""
    return {"English": PAPER_ROWS}


def expected(block: TydiqaBlock) -> Expected:
    """Return what the mRAG paper's count tells of the rows."""
    return Expected(PAPER_ROWS, (block.language,))


LOADER = LoaderSpec(BENCHMARK, TydiqaBlock, load, expected=expected, published=published)
