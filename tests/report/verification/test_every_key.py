"""Every key of samples and results: a change of it is found, or it is on the list of what cannot be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from typing import Any, get_args, get_type_hints

import pytest

from mrag_eval.report import UNCHECKED
from mrag_eval.scoring import TaskScores
from tests.worlds.finished_runs import RUNS
from tests.worlds.forged_runs import KeyPath, Run, change, dotted, keys_of

pytestmark = pytest.mark.slow
Forged = Callable[[str], Run]


def field_names(kind: Any) -> Iterator[str]:
    """Yield the names of the fields of a record, and of the records in it."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        for part in fields(kind):
            yield part.name
            yield from field_names(hints[part.name])
    for inner in get_args(kind):
        yield from field_names(inner)


SCORES = {*field_names(TaskScores), "schema_version"}


def accepted(run: Run, key: str, clean: set[str]) -> bool:
    """Return whether a change of a key is found, or printed as what cannot be checked."""
    if {*run.blamed()} - clean:
        return True
    found = run.verified()
    assert found is not None
    listed = [entry.keys for entry in UNCHECKED if entry.what in found.unchecked]
    return any(fnmatchcase(key, end) for keys in listed for name in keys for end in (name, f"{name}.*"))


def largest(run: Run) -> str:
    """Return the task of a run with most rows."""
    return max(run.samples, key=lambda task: len(run.samples[task]))


def keys_of_samples(run: Run) -> dict[str, tuple[int, KeyPath]]:
    """Return the keys of the samples of a run's largest task, each with the first row that has it."""
    first: dict[str, tuple[int, KeyPath]] = {}
    for number, row in enumerate(run.samples[largest(run)]):
        for path in keys_of(row):
            first.setdefault(dotted(path), (number, path))
    assert len(first) > 40
    return first


def keys_of_results(run: Run) -> dict[str, KeyPath]:
    """Return the keys of a run's results; names of tasks and of what scores are given by are one key each."""
    tasks = {*run.content["configs"]}
    first: dict[str, KeyPath] = {}
    for path in keys_of(run.content):
        inner = path[:1] == ("configs",) and "scores" in path
        named = [part if not inner or i < 3 or part in SCORES else "*" for i, part in enumerate(path)]
        first.setdefault(dotted(tuple("*" if part in tasks else part for part in named)), path)
    assert len(first) > 40
    return first


def earlier(name: str) -> list[str]:
    """Return the runs that stand before one: a key is changed in the first run that has it."""
    return [*RUNS][: [*RUNS].index(name)]


@pytest.mark.parametrize("name", [name for name in RUNS if name != "whole_benchmark"])
def test_of_samples(name: str, forged: Forged) -> None:
    """A key is changed in a row alone, and together with everything that is computed from the rows."""
    run = forged(name)
    clean = {*run.blamed()}
    task = largest(run)
    known = {key for other in earlier(name) for key in keys_of_samples(forged(other))}
    missed = []
    for key, (number, path) in keys_of_samples(run).items():
        if key in known:
            continue
        for careful in (False, True):
            run.restore()
            whole = run.samples[task][number]
            before = deepcopy(whole)
            change(whole, path)
            # a key that is itself computed from the rows is as it was
            if careful and (not run.agree(task) or whole == before):
                continue
            if not accepted(run, key, clean):
                missed.append((key, careful))
    assert not missed, "\n".join(f"{key}{', with all that follows from it' * careful}" for key, careful in missed)


@pytest.mark.parametrize("name", ["bordirlines", "judged", "small"])
def test_of_results(name: str, forged: Forged) -> None:
    """A key is changed alone, and for a setting together with the record of what was measured."""
    run = forged(name)
    clean = {*run.blamed()}
    keys = keys_of_results(run)
    if name == "small":
        # it has what the others lack: groups
        keys = {key: path for key, path in keys.items() if path[0] != "configs"}
    elif name == "judged":
        known = keys_of_results(forged("bordirlines"))
        keys = {key: path for key, path in keys.items() if key not in known}
    missed = []
    for key, path in keys.items():
        for careful in (False, True):
            run.restore()
            before = deepcopy(run.content)
            change(run.content, path)
            if careful:
                if path[0] != "configs" or "scores" in path:
                    continue
                run.record(str(path[1]))
            if run.content == before:
                continue
            if not accepted(run, f"results:{key}", clean):
                missed.append((key, careful))
    assert not missed, "\n".join(f"{key}{', with all that follows from it' * careful}" for key, careful in missed)


def test_a_key_that_nothing_knows_is_a_fault(forged: Forged) -> None:
    run = forged("small")
    run.samples["wide"][0]["reviewed"] = True
    run.samples["wide"][1]["rows"]["reviewed"] = True
    run.samples["wide"][2]["doc"]["reviewed"] = True
    run.content["configs"]["wide"]["scores"]["reviewed"] = True
    text = "\n".join(run.blamed())
    for key in ("reviewed of 1", "rows.reviewed of 1", "doc.reviewed of 1", "reviewed True, nothing by the samples"):
        assert key in text
