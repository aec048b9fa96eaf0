"""The evaluation under way, told by the harness's own call of ``evaluate``: the one function of it that is wrapped.

``simple_evaluate`` calls ``evaluate`` as a global of its module, after the model and all tasks are loaded. What that
call is given decides every reply, and nothing of it reaches a task otherwise: the model, the tasks that run together,
``--limit``, ``--samples``, the system instruction. A program that calls ``lm_eval.evaluate`` itself with a reference
from before our first task was built is not seen; :func:`running` is None then, and the results say what is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from inspect import BoundArguments, signature
from typing import Any

from lm_eval import evaluator
from lm_eval.api.model import CachingLM

from mrag_eval.harness._command import without_traceback

# The harness's own word for a figure that does not exist.
_NO_VALUE = "N/A"


@dataclass(frozen=True)
class Running:
    """One call of the harness's ``evaluate``.

    Attributes:
        lm: the evaluated model, without the harness's cache of replies, which would keep whatever it is asked besides.
        tasks: the tasks that run together, by name.
        arguments: every other argument of the call, by name, its defaults included.
        defaults: what the harness takes an argument for that is left out, by name.
        asked: the object that the harness asks: the model, or its cache of replies around it.
    """

    lm: Any
    tasks: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    asked: Any = field(default=None, repr=False)

    @property
    def given(self) -> dict[str, Any]:
        """Return the arguments whose values are not the harness's defaults."""
        return {key: value for key, value in self.arguments.items() if value != self.defaults.get(key)}

    @property
    def key_args(self) -> Mapping[str, Any]:
        """Return the model's arguments for its key, of which its class knows nothing: those told to our tasks."""
        return next((found for task in self.tasks.values() if (found := getattr(task, "key_args", None))), {})


_NOW: ContextVar[Running | None] = ContextVar("the evaluation under way", default=None)

# Around the harness's evaluation: entered when the tasks are loaded, left when all is scored.
Around = Callable[[Running], Any]


def running() -> Running | None:
    """Return the evaluation under way; None outside of one, so while tasks are being built, too."""
    return _NOW.get()


def watch_evaluate(around: Around) -> None:
    """Have each evaluation of this process run inside ``around`` and known to :func:`running`.

    Calling it again replaces ``around``; the harness's function is wrapped once.
    """
    now = evaluator.evaluate
    harness_evaluate = getattr(now, "mrag_eval_wraps", now)
    parameters = signature(harness_evaluate)

    @wraps(harness_evaluate)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        call = parameters.bind(*args, **kwargs)
        begun = _begun(call)
        with without_traceback(), _as_running(begun), around(begun):
            results = harness_evaluate(*args, **kwargs)
        if results is not None:
            blank_half_groups(results)
        return results

    evaluate.mrag_eval_wraps = harness_evaluate  # type: ignore[attr-defined]
    evaluator.evaluate = evaluate


def _begun(call: BoundArguments) -> Running:
    call.apply_defaults()
    defaults = {name: parameter.default for name, parameter in call.signature.parameters.items()}
    arguments = dict(call.arguments)
    lm, loaded = arguments.pop("lm"), arguments.pop("task_dict")
    if "tasks" not in loaded:
        # the harness's former form: task or group -> object, or the group's tasks
        loaded = {"tasks": {name: task for name, task in loaded.items() if not isinstance(task, Mapping)}}
    return Running(
        lm.lm if isinstance(lm, CachingLM) else lm,
        loaded["tasks"],
        arguments,
        defaults,
        asked=lm,
    )


@contextmanager
def _as_running(begun: Running) -> Iterator[None]:
    token = _NOW.set(begun)
    try:
        yield
    finally:
        _NOW.reset(token)


def blank_half_groups(results: Mapping[str, Any]) -> None:
    """Blank each mean of a group of which a task has no value: a mean over the rest is no mean of the group."""
    groups = results.get("group_subtasks") or {}

    def leaves(name: str, above: tuple[str, ...] = ()) -> list[str]:
        inner = [] if name in above else groups.get(name) or []
        return [leaf for child in inner for leaf in leaves(child, (*above, name))] if inner else [name]

    for group in groups:
        own = [results["results"].get(leaf, {}) for leaf in leaves(group)]
        for shown in (results["results"].get(group, {}), (results.get("groups") or {}).get(group, {})):
            for key in [key for key, value in shown.items() if isinstance(value, float) and "," in key]:
                if "_stderr," in key or all(isinstance(part.get(key), int | float) for part in own):
                    continue
                shown[key] = shown[key.replace(",", "_stderr,", 1)] = _NO_VALUE
