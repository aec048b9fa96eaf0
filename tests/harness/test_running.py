"""The wrap of the harness's ``evaluate``: what it tells, that it is called, and the groups that it blanks."""

from __future__ import annotations

import gc
import inspect
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval import evaluator
from lm_eval.tasks import TaskManager

from mrag_eval.harness import Running, blank_half_groups, running
from mrag_eval.harness._command import collect_less
from mrag_eval.platform import DataError
from mrag_eval.retrieval.sources._index import IndexSearch
from mrag_eval.task import RagTask
from tests.worlds.small import ScriptedLM


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Running | None]:
    """Return what is known of the evaluation at each retrieval."""
    found: list[Running | None] = []
    real = IndexSearch.retrieve

    def spy(self: IndexSearch, docs: Any, translator: Any = None) -> Any:
        found.append(running())
        return real(self, docs, translator)

    monkeypatch.setattr(IndexSearch, "retrieve", spy)
    return found


@pytest.fixture
def manager(tasks: Path) -> TaskManager:
    (tasks / "other.yaml").write_text("include: small.yaml\ntask: other\n", "utf-8")
    return TaskManager(include_path=str(tasks), include_defaults=False)


def test_simple_evaluate_calls_the_function_that_is_wrapped() -> None:
    # what the wrap stands on: a global of the module, looked up at the call
    assert "evaluate" in evaluator.simple_evaluate.__wrapped__.__code__.co_names
    parameters = inspect.signature(getattr(evaluator.evaluate, "mrag_eval_wraps", evaluator.evaluate)).parameters
    assert {"lm", "task_dict", "limit", "samples", "system_instruction", "apply_chat_template"} <= set(parameters)


def test_a_task_knows_the_model_and_the_tasks_that_run_with_it(
    manager: TaskManager, seen: list[Running | None], tmp_path: Path
) -> None:
    model = ScriptedLM(lambda prompt: "?")
    for cache in (None, str(tmp_path / "replies")):
        seen.clear()
        lm_eval.simple_evaluate(
            model=model, tasks=["small", "other"], task_manager=manager, bootstrap_iters=0, limit=2, use_cache=cache
        )
        assert len(seen) == 2
        for found in seen:
            assert found is not None
            assert found.lm is model
            assert list(found.tasks) == ["small", "other"]
            assert found.arguments["limit"] == 2
            assert found.arguments["samples"] is None
    assert running() is None


def test_every_argument_of_the_harness_is_passed_on(manager: TaskManager, seen: list[Running | None]) -> None:
    lm_eval.simple_evaluate(
        model=ScriptedLM(lambda prompt: "?"),
        tasks=["small"],
        task_manager=manager,
        bootstrap_iters=0,
        samples={"small": [1]},
        system_instruction="Answer in one word.",
    )
    (found,) = seen
    assert found is not None
    asked = inspect.signature(evaluator.evaluate).parameters.keys() - {"lm", "task_dict"}
    assert found.arguments.keys() == asked
    assert found.arguments["system_instruction"] == "Answer in one word."
    assert found.arguments["samples"] == {"small": [1]}


def test_all_tasks_are_checked_before_the_first_retrieves(
    manager: TaskManager, seen: list[Running | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(self: RagTask, *, judged: bool = True) -> None:
        if self._name == "other":
            raise DataError("task other: its judge cannot be reached", "start it")

    monkeypatch.setattr(RagTask, "check", check)
    with pytest.raises(DataError, match="task other"):
        lm_eval.simple_evaluate(
            model=ScriptedLM(lambda prompt: "?"), tasks=["small", "other"], task_manager=manager, bootstrap_iters=0
        )
    assert seen == []
    assert running() is None


def _results(**values: dict[str, Any]) -> dict[str, Any]:
    return {
        "results": {name: dict(found) for name, found in values.items()},
        "groups": {name: dict(values[name]) for name in ("all", "tier")},
        "group_subtasks": {"all": ["tier", "c"], "tier": ["a", "b"], "a": [], "b": [], "c": []},
    }


def test_a_group_without_the_value_of_one_task_has_no_mean() -> None:
    found = _results(
        all={"acc,none": 0.5, "acc_stderr,none": 0.1, "f1,none": 0.25},
        tier={"acc,none": 0.5, "f1,none": 0.5},
        a={"acc,none": 0.25, "f1,none": 0.5},
        b={"acc,none": 0.75, "f1,none": 0.5},
        c={"f1,none": 0.0},
    )
    blank_half_groups(found)
    for column in ("results", "groups"):
        assert found[column]["all"]["acc,none"] == "N/A"
        assert found[column]["all"]["acc_stderr,none"] == "N/A"
        assert found[column]["all"]["f1,none"] == 0.25
        assert found[column]["tier"]["acc,none"] == 0.5


def test_a_group_that_lacks_nothing_stays_as_it_is() -> None:
    whole = {"acc,none": 0.5, "acc_stderr,none": 0.1, "alias": "all"}
    found = _results(all=whole, tier=whole, a=whole, b=whole, c=whole)
    blank_half_groups(found)
    assert found == _results(all=whole, tier=whole, a=whole, b=whole, c=whole)


# ------------------------------------------------------- garbage collection


def test_it_pauses_while_a_task_is_built(manager: TaskManager, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[bool] = []
    real = RagTask.load_rows

    def spy(self: RagTask) -> list[dict[str, Any]]:
        paused.append(not gc.isenabled())
        return real(self)

    monkeypatch.setattr(RagTask, "load_rows", spy)
    manager.load(["small", "other"])
    assert paused == [True, True]
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("program", "rarer"),
    [("bin/lm_eval", 10), ("lm_eval/__main__.py", 10), ("bin/mrag-eval", 10), ("my_program.py", 1), ("", 1)],
)
def test_a_command_runs_few_full_collections_and_a_program_as_many_as_it_says(
    program: str, rarer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, at_the_end = gc.get_threshold(), []
    monkeypatch.setattr("sys.argv", [program])
    monkeypatch.setattr("atexit.register", at_the_end.append)
    collect_less.cache_clear()
    try:
        # each task that is built asks for it
        collect_less()
        collect_less()
        assert gc.get_threshold() == (*before[:2], before[2] * rarer)
        assert at_the_end == ([gc.freeze] if rarer > 1 else [])
    finally:
        gc.set_threshold(*before)
        collect_less.cache_clear()
