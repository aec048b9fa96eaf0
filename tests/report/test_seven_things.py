"""Seven things that decide or spoil a run's figures, and what every output says of each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mrag_eval.config import deep_merge
from mrag_eval.platform import DataError, content_key, tasks_folder
from mrag_eval.report import (
    EXPORTS,
    GateRules,
    Options,
    compare,
    comparison_text,
    export,
    finding_lines,
    findings_of,
    gate,
    gate_lines,
    render,
    verify,
    write_report,
)
from mrag_eval.report.tables._layouts import layout_tables
from tests.report.rows import filling
from tests.report.runs import row
from tests.report.test_outcomes import SEEN

ROWS = 40
DUMP = "Wikimedia dump, frwiki-20231101-pages-articles{}.bz2"
WHOLE = {"fr": 13_000_000}


class Thing(NamedTuple):
    """A run of a task: what its record has, what came of it, and the words by which outputs tell it."""

    task: str
    layout: str
    record: Mapping[str, Any]
    came: Mapping[str, Any]
    words: str
    groups: Mapping[str, Any] = {}
    arguments: Mapping[str, Any] = {}


def corpus(passages: Mapping[str, int], source: str) -> dict[str, Any]:
    index = {"passages": passages, "recipe": {"sources": {"fr": source}}, "content_hash": content_key(source)}
    return {"data": {"index": index}}


CORPUS = "mkqa_qlang_fr"
THINGS: dict[str, Thing] = {
    "prompts cut": Thing(CORPUS, "mrag", {}, SEEN["prompts cut"][1], "1 of 40 prompts cut"),
    "replies cut": Thing(CORPUS, "mrag", {}, SEEN["replies cut"][1], "3 of 40 replies cut"),
    "an index of 91 passages": Thing(
        CORPUS, "mrag", corpus({"fr": 91}, DUMP.format(".xml")), {}, "91 passages of an edition"
    ),
    "one file of a dump": Thing(
        CORPUS, "mrag", corpus(WHOLE, DUMP.format("1.xml-p1p306134")), {}, "1 file of the dump"
    ),
    "a table as translator": Thing(
        "xrag_multi_eqes_de", "xrag", {"instrument": {"translator": {"backend": "table", "model": None}}}, {}, "table"
    ),
    "another prompt of judges": Thing(
        "xrag_multi_de", "xrag", {"setting": {"judge": {"prompt": "always_correct"}}}, {}, "judge.prompt"
    ),
    "a context of the model's arguments": Thing(
        CORPUS, "mrag", {}, {}, "context.max", arguments={"max_length": 512}
    ),
    "a redefined group": Thing(
        CORPUS, "", {}, {}, "other tasks than those of the group as shipped", {"mkqa": [CORPUS]}
    ),
}  # fmt: skip


def write(folder: Path, thing: Thing, *, plain: bool = False) -> Path:
    """Write a run with a thing, or without it."""
    leaf = filling(thing.task, {"corpus": "Wikipedia 20231101", "retriever": "BAAI/bge-m3", "judges": 3})
    record = leaf.measurement.to_dict()
    base = corpus(WHOLE, DUMP.format(".xml")) if thing.task == CORPUS else {}
    record = deep_merge(record, {**base, "data": {**base.get("data", {}), "ran": {"rows": ROWS, "of": ROWS}}})
    if thing.task == CORPUS:
        record["data"]["index"] |= base["data"]["index"]
    scores: dict[str, Any] = {
        "rows": ROWS,
        "metrics": {"match": {"value": 0.5, "n": ROWS}},
        "query_langs": {"en": ROWS},
    }
    groups: Mapping[str, Any] = {}
    if "instrument" in thing.record:
        record["instrument"] = {"translator": {"backend": "google", "model": "nmt"}}
    if not plain:
        record = deep_merge(record, thing.record)
        if thing.task == CORPUS and thing.record:
            record["data"]["index"] |= thing.record["data"]["index"]
        ends = {key: value for key, value in thing.came.items() if key == "finish_reasons"}
        scores |= {key: value for key, value in thing.came.items() if key not in ends}
        record["outcome"] = {**record.get("outcome", {}), **ends}
        groups = thing.groups
    folder.mkdir(parents=True)
    stamp = "2026-01-01T00-00-00.000000"
    rows = [row(i, match=float(i < ROWS // 2)) for i in range(ROWS)]
    lines = [json.dumps({"doc": {"id": one["row"]}, "rows": one, "filtered_resps": ["x"]}) + "\n" for one in rows]
    (folder / f"samples_{thing.task}_{stamp}.jsonl").write_text("".join(lines), "utf-8")
    arguments = {} if plain else thing.arguments
    config = {"task": thing.task, "scores": scores, "measurement": record, "metadata": {**arguments}}
    content = {
        "configs": {thing.task: config},
        "results": {name: {"match,none": 0.5} for name in (*groups, thing.task)},
        "group_subtasks": dict(groups),
        "model_name": "m",
        "date": 1_767_225_601.0,
        "config": {"model": "hf", "model_args": {"pretrained": "m", **arguments}},
    }
    (folder / f"results_{stamp}.json").write_text(json.dumps(content), "utf-8")
    return folder


def exported(name: str) -> Callable[[Path, Path, Path], str]:
    def out(folder: Path, _: Path, tmp: Path) -> str:
        options = Options(output=tmp / f"{name}-{folder.name}", dataset="me/bench", metrics=("match",))
        return "\n".join(path.read_text("utf-8") for path in export([folder], name, options).files)

    return out


def verified(folder: Path, _: Path, tmp: Path) -> str:
    """Return what verify says of the settings and the outcome, which needs no samples."""
    alone = Path(shutil.copytree(folder, tmp / f"alone-{folder.name}", dirs_exist_ok=True))
    for samples in alone.glob("samples_*"):
        samples.unlink()
    (found,) = verify([alone], tasks_folder())
    return "\n".join(f"{one.kind}: {one.text}" for one in found.findings if one.kind in ("deviation", "note"))


def compared(folder: Path, plain: Path, _: Path) -> str:
    try:
        return comparison_text(compare([plain], [folder]))
    except DataError as error:
        return error.message


def page(folder: Path, plain: Path, tmp: Path) -> str:
    write_report([folder, plain], tmp / f"{folder.name}.html")
    return (tmp / f"{folder.name}.html").read_text("utf-8")


def page_of_one(folder: Path, _: Path, tmp: Path) -> str:
    return page(folder, folder, tmp)


def text_of_one(folder: Path, _: Path, __: Path) -> str:
    return "\n".join(finding_lines(findings_of([folder])))


def gated(folder: Path, plain: Path, _: Path) -> str:
    (task,) = {path.name.split("_2026")[0].removeprefix("samples_") for path in folder.glob("samples_*")}
    rules = GateRules.model_validate({"rules": [{"metric": "match", "task": task, "max_drop": 0.1}], "min_n": 10})
    return "\n".join(gate_lines(gate([plain], [folder], rules), verbose=True))


OUTPUTS: dict[str, Callable[[Path, Path, Path], str]] = {
    **{name: exported(name) for name in EXPORTS},
    "verify": verified,
    "compare": compared,
    "page": page,
    "page of one run": page_of_one,
    "text of one run": text_of_one,
    "gate": gated,
}
# What an output says in other words, or not: pages and tables by task name no group.
SILENT = {("a redefined group", "page"), ("a redefined group", "compare"), ("a redefined group", "mteb"),
          ("a redefined group", "verify"), ("a redefined group", "gate"),
          ("a redefined group", "page of one run"), ("a redefined group", "text of one run")}  # fmt: skip
TOLD_APART = ("compare", "gate", "page")
# Where two runs are told apart by the names of the settings, not by what these say.
BY_KEY = {
    **{(name, output): "index." for name in ("an index of 91 passages", "one file of a dump") for output in TOLD_APART},
    **{("a table as translator", output): "translator.backend" for output in ("compare", "gate")},
    ("a table as translator", "page"): "backend=table",
    ("a table as translator", "page of one run"): "translator=table, not a model",
    ("a table as translator", "verify"): "deviation: translator is table, 'a model' in",
}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", THINGS)
def test_every_output_says_it_and_says_nothing_of_a_run_without(name: str, output: str, tmp_path: Path) -> None:
    thing = THINGS[name]
    with_it, plain = write(tmp_path / "with", thing), write(tmp_path / "plain", thing, plain=True)
    words = BY_KEY.get((name, output), thing.words)
    said = OUTPUTS[output](with_it, plain, tmp_path)
    if (name, output) not in SILENT:
        assert words in said, said[:3000]
    if output not in TOLD_APART:
        assert words not in OUTPUTS[output](plain, plain, tmp_path)


@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.layout])
def test_a_layout_says_it_beneath_its_table_once(name: str, tmp_path: Path) -> None:
    thing = THINGS[name]
    found = layout_tables(thing.layout, [write(tmp_path / "with", thing)])
    ours = [(table, one) for table in found for one in table.rows if one.labels[-1] == "m"]
    told = [(table, one) for table, one in ours if any(cell.task == thing.task for cell in one.cells)]
    assert told
    for table, one in told:
        assert thing.words in one.source or any(thing.words in text for text in one.differs), one
        assert len(one.source) <= 60
        assert render([table]).count(thing.words) >= 1
    if not thing.came:
        assert all(
            {cell.state for cell in one.cells if cell.task == thing.task} <= {"run otherwise"} for _, one in told
        )
