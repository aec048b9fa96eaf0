"""Settings of ``--metadata`` under a prefix, and of the config file by benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

from mrag_eval.config import TaskBlocks
from mrag_eval.platform import ConfigError
from tests.worlds.small import BASE, write_task, write_world

_GROUPS = {
    "inner": {"group": "inner", "task": ["one"]},
    "outer": {"group": "outer", "task": ["inner", {"group": "written", "task": ["two"]}]},
    "tagged": {"group": "tagged", "task": ["both"]},
    "round": {"group": "round", "task": ["round"]},
}


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tasks of the benchmark ``jsonl`` and one of ``demo``, in groups and under tags."""
    monkeypatch.setenv("MRAG_CONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(tmp_path / "questions.jsonl"), "corpus": str(tmp_path / "corpus.jsonl")}
    search = {"mode": "all", "kind": "bm25"}
    write_task(tmp_path, "one", **BASE, tag=["both", "first"], data=data, retrieval=search)
    # the benchmark is in the file that this one includes
    (tmp_path / "two.yaml").write_text("include: one.yaml\ntask: two\ntag: both\ndata: {seed: 3}\n", "utf-8")
    write_task(tmp_path, "demo.one", **{**BASE, "metrics": ["match"]}, data={"benchmark": "demo"}, retrieval=search)
    for name, group in _GROUPS.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(group), "utf-8")
    return tmp_path


def load(folder: Path, asked: Any, metadata: dict[str, Any] | None = None) -> dict[str, TaskBlocks]:
    manager = TaskManager(include_path=str(folder), include_defaults=False, metadata=metadata)
    return {name: task.blocks for name, task in manager.load(asked)["tasks"].items()}


@pytest.mark.parametrize(
    ("metadata", "k"),
    [
        # k of the tasks one, two and demo.one; 5 is the default
        ({"retrieval.k": 2}, (2, 2, 2)),
        ({"jsonl.retrieval.k": 2}, (2, 2, 5)),
        ({"demo.retrieval.k": 2}, (5, 5, 2)),
        ({"demo.one.retrieval.k": 2}, (5, 5, 2)),
        ({"both.retrieval.k": 2}, (2, 2, 5)),
        ({"first.retrieval.k": 2}, (2, 5, 5)),
        ({"inner.retrieval.k": 2}, (2, 5, 5)),
        ({"outer.retrieval.k": 2}, (2, 2, 5)),
        ({"tagged.retrieval.k": 2}, (2, 2, 5)),
        ({"one.retrieval.k": 2}, (2, 5, 5)),
        # the narrower name wins, in whatever order they are given
        ({"jsonl.retrieval.k": 2, "retrieval.k": 3}, (2, 2, 3)),
        ({"first.retrieval.k": 2, "jsonl.retrieval.k": 3}, (2, 3, 5)),
        ({"one.retrieval.k": 2, "both.retrieval.k": 3, "jsonl.retrieval.k": 4}, (2, 3, 5)),
        # names of one level that agree, or set different keys
        ({"both.retrieval.k": 2, "inner.retrieval.k": 2}, (2, 2, 5)),
        ({"both.retrieval.k": 2, "inner.retrieval.seed": 2}, (2, 2, 5)),
        ({"inner.retrieval.k": 2, "demo.retrieval.k": 3}, (2, 5, 3)),
        # JSON, whole or with dotted keys in it
        ({"jsonl": {"retrieval": {"k": 2}}}, (2, 2, 5)),
        ({"jsonl": {"retrieval.k": 2}, "one": {"retrieval": {"k": 3}}}, (3, 2, 5)),
        ({"demo.one": {"retrieval": {"k": 2}}}, (5, 5, 2)),
        # arguments of the model, which come with them
        ({"dtype": "auto", "chat_template_args": {"k": 1}, "both": {"retrieval": {"k": 2}}}, (2, 2, 5)),
    ],
)
def test_a_prefix_sets_the_tasks_of_its_name(metadata: dict[str, Any], k: tuple[int, ...], tasks: Path) -> None:
    blocks = load(tasks, ["one", "two", "demo.one"], metadata)
    assert tuple(blocks[name].retrieval.k for name in ("one", "two", "demo.one")) == k


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (["one"], {"one"}),
        (["outer"], {"one", "two"}),
        (["tagged"], {"one", "two"}),
        (["both", "demo.one"], {"one", "two", "demo.one"}),
    ],
)
def test_names_are_those_of_the_tasks_in_a_run(asked: list[str], names: set[str], tasks: Path) -> None:
    """A name that holds no task of the run is refused, in whichever place of the run its task would be."""
    every = {"one", "two", "demo.one"}
    for name in every:
        metadata = {f"{name}.retrieval.k": 2}
        if name in names:
            blocks = load(tasks, asked, metadata)
            assert {task for task, found in blocks.items() if found.retrieval.k == 2} == {name}
        else:
            with pytest.raises(ConfigError, match=f"is called '{name}'"):
                load(tasks, asked, metadata)


def test_files_of_tasks_are_known_by_the_names_in_them(tasks: Path) -> None:
    paths = [str(tasks / f"{name}.yaml") for name in ("one", "demo.one")]
    metadata = {"demo.retrieval.k": 2, "first.retrieval.k": 3, "one.retrieval.seed": 4}
    # by path, as mrag-eval run has them, and by content, as the harness's own command has them
    for asked in (paths, [load_yaml(path, resolve_func=True) for path in paths]):
        blocks = load(tasks / "none", asked, metadata)
        assert [blocks[name].retrieval.k for name in ("one", "demo.one")] == [3, 2]


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"jsonll.data.path": "x"}, ("--metadata jsonll.data.path", "did you mean 'jsonl'?")),
        ({"jsonll": {"data": {"path": "x"}}}, ("--metadata jsonll.data", "did you mean 'jsonl'?")),
        ({"xquad.data.path": "x"}, ("--metadata xquad.data.path", "no task of this run")),
        ({"outr.retrieval.k": 1}, ("outr", "did you mean 'outer'?")),
        ({"jsonl.dta.path": "x"}, ("jsonl.dta.path", "no block 'dta'", "did you mean 'data'?")),
        ({"jsonl": {"dta": {"path": "x"}}}, ("jsonl.dta", "no block 'dta'", "did you mean 'data'?")),
        ({"jsonl": {"one.data.path": "x"}}, ("jsonl.one.data.path", "no block 'one'")),
        ({"jsonl": "x"}, ("jsonl", "expected settings", "'x'")),
        ({"jsonl.data": "x"}, ("data", "'x'")),
        ({"jsonl.data.pth": "x"}, ("unknown key 'pth'", "did you mean 'path'?")),
        ({"retreival.k": 1}, ("no block 'retreival'", "did you mean 'retrieval'?")),
        ({"both.retrieval.k": 1, "inner.retrieval.k": 2}, ("both.retrieval.k=1", "contradicts", "inner.retrieval.k=2")),
        (
            {"both.retrieval.rerank": None, "inner.retrieval.rerank.kind": "api"},
            ("both.retrieval.rerank=None", "contradicts", "inner.retrieval.rerank.kind=api"),
        ),
    ],
)
def test_a_prefix_that_cannot_be_meant_is_one_line(
    metadata: dict[str, Any], named: tuple[str, ...], tasks: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tasks, ["demo.one", "outer"], metadata)
    assert "\n" not in caught.value.message
    assert caught.value.next_step
    for part in named:
        assert part in caught.value.message


def test_what_one_task_was_given_is_what_its_provenance_says(tasks: Path) -> None:
    blocks = load(tasks, ["outer"], {"jsonl.retrieval.k": 2, "one": {"prompt": {"max_tokens": 900}}})
    assert blocks["one"].overrides == {"retrieval": {"k": 2}, "prompt": {"max_tokens": 900}}
    assert blocks["two"].overrides == {"retrieval": {"k": 2}}


# ------------------------------------------------------------------ the config file


def _configure(folder: Path, data: Any) -> None:
    (folder / "mrag.yaml").write_text(json.dumps({"data": data}), "utf-8")


def test_the_config_file_fills_what_the_tasks_files_leave_out(tasks: Path) -> None:
    _configure(tasks, {"jsonl": {"path": "elsewhere.jsonl", "seed": 7}, "demo": {"seed": 8}})
    blocks = load(tasks, ["one", "two", "demo.one"], {"demo.data.seed": 9})
    questions = str(tasks / "questions.jsonl")
    assert [blocks[name].data["seed"] for name in ("one", "two", "demo.one")] == [7, 3, 9]
    assert [blocks[name].data["path"] for name in ("one", "two")] == [questions, questions]
    assert [blocks[name].from_file for name in ("one", "two", "demo.one")] == [{"seed": 7}, {}, {}]


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"xrg": {"path": "x"}}, ("data: unknown benchmark 'xrg'", "did you mean 'xrag'?")),
        ({"xrag": {"pth": "x"}}, ("data.xrag: unknown key 'pth'", "did you mean 'path'?")),
        ({"xrag": {"path": [1]}}, ("data.xrag.path", "[1]")),
        ({"xrag": {"path": True}}, ("data.xrag", "'path' is true")),
        ({"xrag": {"benchmark": "mkqa"}}, ("data.xrag.benchmark",)),
        ({"bordirlines": {"imbalance": {"keep_englsh": 1}}}, ("data.bordirlines.imbalance", "keep_english")),
        ({"xrag": "x"}, ("data.xrag",)),
        (["xrag"], ("data",)),
    ],
)
def test_a_fault_of_the_config_file_names_file_and_key(data: Any, named: tuple[str, ...], tasks: Path) -> None:
    _configure(tasks, data)
    with pytest.raises(ConfigError) as caught:
        load(tasks, "demo.one")
    assert "\n" not in caught.value.message
    for part in ("mrag.yaml", *named):
        assert part in caught.value.message
