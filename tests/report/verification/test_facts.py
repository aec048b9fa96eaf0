"""Facts of ours in a results file: each stands once, and one that contradicts the harness is refused."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.platform import DataError
from mrag_eval.report import read_results
from tests.task.test_hook import build, run
from tests.worlds.finished_runs import RUNS
from tests.worlds.forged_runs import Run, change
from tests.worlds.small import BASE, ScriptedLM, write_task, write_world

Forged = Callable[[str], Run]
# The harness's keys of a task: those that the record repeats are compared with it when a file is read.
OURS = ("scores", "provenance", "measurement")
# What may have one value in two places, by a part of both keys, with the reason.
COINCIDENCES = {
    "schema_version": "each record states the version of its own schema",
    "judges": "two seats may have one model and one way of decoding; votes are counted by model",
    "place": "where something was read, because a setting says so; two files may hold the same",
    "path": "the same",
    "corpus": "the same",
    "generation": "each model has decoding of its own",
    "ledger": "every ledger counts its own calls",
    "outcomes": "of one task by its rows, and of the run by its requests",
    "published": "questions and passages are compared with the published ones, each on their own",
    "translator": "the scores sum up what rows say of their translator",
    "translation": "the same",
}
Leaf = tuple[tuple[str, ...], Any]


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Yield path and value of everything that says something: no null, no empty list or object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key)))
    elif value not in (None, [], ""):
        yield path, value


def repeated(config: dict[str, Any]) -> dict[str, list[str]]:
    """Return what stands twice: a value under one name in two blocks of one name, or a long text in any two places."""
    found: dict[tuple[Any, str], list[tuple[str, ...]]] = defaultdict(list)
    for path, value in leaves({name: config[name] for name in OURS if name in config}):
        text = json.dumps(value, sort_keys=True)
        found["" if isinstance(value, str) and len(value) > 20 else path[-2:], text].append(path)
    return {
        text: [".".join(path) for path in paths]
        for (_, text), paths in found.items()
        # scores repeat numbers and methods among themselves
        if len(paths) > 1
        and any(path[0] != "scores" for path in paths)
        and not all(COINCIDENCES.keys() & {*path} for path in paths)
    }


@pytest.mark.parametrize("name", [name for name in RUNS if name != "whole_benchmark"])
def test_no_fact_of_a_run_stands_twice(name: str, made: Callable[[str], Path]) -> None:
    (path,) = (made(name) / "out").rglob("results_*.json")
    configs = json.loads(path.read_text("utf-8"))["configs"]
    assert len([*leaves({task: config["measurement"] for task, config in configs.items()})]) > 50
    assert {task: found for task, config in configs.items() if (found := repeated(config))} == {}


def test_no_fact_of_a_scored_log_stands_twice(tmp_path: Path) -> None:
    rows = [{"question": "When?", "answer": "1841", "contexts": ["In 1841."], "reference": "1841", "lang": "en"}]
    path = mrag_eval.score(rows, output=tmp_path).path
    (config,) = json.loads(path.read_text("utf-8"))["configs"].values()
    assert repeated(config) == {}


def test_a_copy_is_found() -> None:
    """Each kind of repetition that results once had."""
    block = {"retrieval": {"mode": "all"}}
    assert repeated({"provenance": block, "measurement": {"setting": block}})
    assert repeated({"scores": {"cut": {"limit": 600}}, "measurement": {"outcome": {"cut": {"limit": 600}}}})
    assert repeated({"provenance": {"file": "a" * 64}, "measurement": {"data": {"content": "a" * 64}}})
    assert not repeated({"provenance": {"one": "all"}, "measurement": {"other": "all"}})


CONTRADICTIONS: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "decoding": (("generation_kwargs", "max_gen_toks"), 999, "generation_kwargs.max_gen_toks is 999, in the record"),
    "version": (("metadata", "version"), 99, "metadata.version is 99, in the record"),
    "task": (("task",), "other", "task is other, in the record"),
    "output": (("output_type",), "multiple_choice", "output_type is multiple_choice, in the record"),
    "an own key": (("measurement", "task"), "other", "task is xquad_rag_de, in the record of what was measured other"),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_facts_that_contradict_each_other_are_one_line_with_file_and_key(what: str, forged: Forged) -> None:
    own = forged("xquad")
    path, value, expected = CONTRADICTIONS[what]
    change(own.content, ("configs", "xquad_rag_de", *path), lambda _: value)
    own.write()
    with pytest.raises(DataError) as caught:
        read_results([own.path])
    assert f"{own.path}: configs.xquad_rag_de.{expected}" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("how", ["no record", "a block beside it"])
def test_results_of_another_version_are_refused_in_one_line(how: str, forged: Forged) -> None:
    own = forged("xquad")
    config = own.content["configs"]["xquad_rag_de"]
    if how == "no record":
        del config["measurement"]
    else:
        config["retrieval"] = config["measurement"]["setting"]["retrieval"]
    own.write()
    with pytest.raises(DataError, match="another version wrote these results") as caught:
        read_results([own.path])
    assert caught.value.next_step == "run again with this version of mrag-eval"


def test_the_record_is_made_before_the_first_request(tmp_path: Path) -> None:
    """A prompt's file that changes while the model is asked: the record has what was asked with."""
    world = write_world(tmp_path)
    prompt = world / "mine.jinja"
    prompt.write_text("{% block user %}{{ query }}{% endblock %}", "utf-8")
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    keys = {**BASE, "prompt": {"template": str(prompt)}, "retrieval": {"mode": "all", "k": 2, "kind": "bm25"}}
    write_task(world, "small", **keys, data=data)
    before = build(world).dump_config()["measurement"]["setting"]["contents"]

    def reply(asked: str) -> str:
        prompt.write_text("{% block user %}Now: {{ query }}{% endblock %}", "utf-8")
        return "1841"

    record = run(world, lm=ScriptedLM(reply), limit=2)["configs"]["small"]["measurement"]
    assert record["setting"]["contents"] == before
    assert record["data"]["ran"]["rows"] == 2
    assert build(world).dump_config()["measurement"]["setting"]["contents"] != before
