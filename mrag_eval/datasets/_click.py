"""CLIcK, Culture half: Korean multiple choice on eight subjects (Kim et al., 2024), as CORAL evaluates it.

The original repository has one folder per subject. The hub copy has neither folder nor category column, so there the
subject is derived from the question id. All four or five options are kept, in file order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import RagDoc
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec, option_facts
from mrag_eval.datasets._content import parts_by
from mrag_eval.datasets._declaration import Declaration, HubDataset
from mrag_eval.datasets._files import (
    hub_dataset,
    hub_place,
    read_json,
    require_columns,
    require_path,
    require_text,
    unique_ids,
)
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import DataError

HUB = HubDataset(id="EunsuKim/CLIcK", licence=None)
BENCHMARK = Declaration(
    name="click",
    title="CLIcK",
    asks="Korean culture in eight subjects, multiple choice",
    sources=(HUB,),
    shareable=False,
    languages=("ko",),
    breakdowns=("category",),
    main_metric="acc",
    papers=("kim-etal-2024-click",),
    published=("coral",),
    needs=("download", "index"),
    tasks="click",
)
# Published number of questions per subject (CORAL, Table 5).
CATEGORY_SIZES = {
    "society": 309,
    "tradition": 222,
    "history": 280,
    "law": 219,
    "politics": 84,
    "economy": 59,
    "geography": 131,
    "popular": 41,
}
Category = Literal["society", "tradition", "history", "law", "politics", "economy", "geography", "popular"]
_COLUMNS = ("id", "paragraph", "question", "choices", "answer")
# KIIP_society_84, Kedu_Society_3, CSAT_geography_21_4, PSE_history_44_2: exam, subject, numbers.
_NAMED = re.compile(rf"(?:KIIP|Kedu|CSAT|PSE)_({'|'.join(CATEGORY_SIZES)})_\d+(?:_\d+)?", re.IGNORECASE)
# Two exams cover one subject each and do not name it: KHB_50_12, PSAT_14_2.
_UNNAMED = re.compile(r"(KHB|PSAT)_\d+_\d+")
# <Subject>_<EXAM>.json: some copies have old and new versions of a file in one folder (Law_PSAT_new.json).
_FILE = re.compile(r"[A-Za-z]+_(?:KIIP|Kedu|CSAT|PSE|KHB|PSAT)\.json")
_BY_EXAM = {"KHB": "history", "PSAT": "law"}


class ClickBlock(DataBlock):
    """Data block: ``category`` keeps one of the eight subjects (default: all)."""

    split: str = "train"
    revision: str | None = HUB.revision
    category: Category | None = None


def category_of(question_id: str) -> str | None:
    """Return the subject of a question id; None for questions of the Language half of CLIcK."""
    if named := _NAMED.fullmatch(question_id):
        return named[1].lower()
    if unnamed := _UNNAMED.fullmatch(question_id):
        return _BY_EXAM[unnamed[1]]
    return None


def load(block: ClickBlock) -> Benchmark:
    """Load CLIcK's Culture questions (1,345 as published), for one subject or all."""
    rows, place = _from_hub(block) if block.path is None else _from_folder(block.path)
    ids, repeated = unique_ids([row["id"] for row, _, _ in rows])
    docs = [
        _doc(name, row, category, where)
        for name, (row, category, where) in zip(ids, rows, strict=True)
        if block.category in (None, category)
    ]
    if not docs:
        raise DataError(f"click: no question of category '{block.category}' in {place.get('path', HUB.id)}")
    notes = [f"{len(docs)} questions" + (f", category {block.category}" if block.category else "")]
    if repeated:
        notes.append(f"{repeated} repeated question ids were given a suffix (~2)")
    equal = sum("equal_choices" in doc.extra for doc in docs)
    if equal:
        notes.append(f"{equal} question(s) with two options of the same text")
    origin = Origin(place, parts=parts_by(docs, lambda doc: doc.extra["category"]))
    return Benchmark("click", docs, None, tuple(notes), origin)


def _from_folder(path: Path) -> tuple[list[tuple[dict[str, Any], str, str]], dict[str, Any]]:
    root = require_path(path, "click")
    files = sorted(file for file in root.glob("**/Korean */*.json") if _FILE.fullmatch(file.name))
    rows: list[tuple[dict[str, Any], str, str]] = []
    hashes = {}
    for file in files:
        category = file.parent.name.removeprefix("Korean ").lower()
        if category not in CATEGORY_SIZES:
            continue
        value, hashes[file.relative_to(root).as_posix()] = read_json(file)
        if not isinstance(value, list):
            raise DataError(f"{file}: expected a list of questions, found {type(value).__name__}")
        rows += [(row, category, f"{file}, question {index}") for index, row in enumerate(value)]
    if not rows:
        raise DataError(
            f"click: no file '.../Korean <Subject>/<Subject>_<EXAM>.json' under {root}",
            "data.path is the folder Dataset (or Dataset/Culture) of the original repository",
        )
    for row, _, where in rows:
        _check(row, where)
    return rows, {"path": str(path), "sha256": hashes}


def _from_hub(block: ClickBlock) -> tuple[list[tuple[dict[str, Any], str, str]], dict[str, Any]]:
    dataset = hub_dataset("click", HUB.id, None, block.split, block.revision, _COLUMNS)
    rows = []
    for index, row in enumerate(dataset):
        where = f"{HUB.id}, row {index}"
        _check(row, where)
        category = category_of(row["id"])
        if category is not None:
            rows.append((row, category, where))
    return rows, hub_place(HUB.id, block.revision, dataset, split=block.split)


def _check(row: Any, where: str) -> None:
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected a JSON object, found {type(row).__name__}")
    require_columns(row, _COLUMNS, where)
    require_text(row["id"], where, "id")
    require_text(row["question"], where, "question")
    if not isinstance(row["choices"], list) or len(row["choices"]) < 2:
        raise DataError(f"{where}: 'choices' must be a list of at least two options")
    if row["answer"] not in row["choices"]:
        raise DataError(f"{where}: the answer of {row['id']} is not among its choices")


def _doc(name: str, row: dict[str, Any], category: str, where: str) -> RagDoc:
    choices = tuple(require_text(choice, where, "choices").strip() for choice in row["choices"])
    paragraph = (row["paragraph"] or "").strip()
    question = row["question"].strip()
    gold = choices.index(row["answer"].strip())
    return RagDoc(
        id=name,
        query=f"{paragraph}\n\n{question}" if paragraph else question,
        query_lang="ko",
        answers=(choices[gold],),
        choices=choices,
        gold_choice=gold,
        culture_lang="ko",
        relevant_langs=("ko",),
        extra={"category": category, "exam": row["id"].partition("_")[0], **option_facts(choices)},
    )


def published(block: ClickBlock) -> Mapping[str, int]:
    """Return the published sizes of the subjects."""
    return {name: size for name, size in CATEGORY_SIZES.items() if block.category in (None, name)}


def expected(block: ClickBlock) -> Expected:
    """Return what the published sizes of the subjects tell of the rows."""
    return Expected(sum(published(block).values()), ("ko",), ("ko",))


LOADER = LoaderSpec(BENCHMARK, ClickBlock, load, expected=expected, published=published)
