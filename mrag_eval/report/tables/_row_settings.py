"""The settings of a row of a paper's table, and those in which a run differs from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from mrag_eval.config import Differs, Measurement, by_block, harmless, is_named
from mrag_eval.planning import deviations, shipped
from mrag_eval.report.files._results import LeafResult
from mrag_eval.report.tables._requirements import ANY, REQUIRED, is_met, value_text

# What changes only how the passages found are used.
OF_THE_ANSWER = (
    *("prompt", "generation_kwargs", "num_fewshot", "output_type", "run", "seeds"),
    *("texts.prompt", "texts.judge", "texts.sufficiency", "judge.prompt", "judge.reply", "judge.scale"),
    *("judge.tie", "judge.language_check", "judge.languages", "judge.sufficiency", "judge.correct_language"),
    *("normalizer", "reliability"),
)
# What changes no question and no reference answer.
OF_A_RUN = (
    *(*OF_THE_ANSWER, "retrieval", "agent", "judge", "texts", "index"),
    *("judges", "planner", "critic", "translator", "reranker", "languages"),
)
# Keys of the data that the comparison with the task as shipped covers.
_OF_THE_ROWS = ("source", "ran")
# Texts that count the rows of a task.
OF_ITS_ROWS = ("rows=", "source")
_NUMBER = re.compile(r"\d+(?:,\d+)*")


def fit(leaf: LeafResult, stated: Mapping[str, Any], ignoring: Sequence[str] = ()) -> tuple[str, ...]:
    """Return how a run differs from a row of a paper's table, as texts; empty for "this run".

    A row is the task as shipped, over all of the published rows, with the settings that it states. What the task leaves
    open, such as its judges, is as the row requires it (:data:`REQUIRED`). ``ignoring`` names keys, or blocks of them,
    that do not change the row's figures.
    """
    required = {name: wanted for name, wanted in stated.items() if name in REQUIRED}
    settings = {name: wanted for name, wanted in stated.items() if name not in REQUIRED}
    free = [name for name, wanted in settings.items() if wanted is None]
    decided = (*ignoring, *free, *(key for name in required for key in REQUIRED[name].decides))
    texts = min((unlike(leaf.measurement, decided, changes) for changes in _choices(settings)), key=len)
    for name, wanted in required.items():
        value = REQUIRED[name].found(leaf)
        if None not in (value, wanted) and not is_met(name, value, wanted):
            texts.append(f"{name}={value_text(value)}, not {value_text(wanted)}")
    return tuple(dict.fromkeys(texts))


def unlike(
    record: Measurement | None, ignoring: Sequence[str] = (), changes: Mapping[str, Any] | None = None
) -> list[str]:
    """Return how a run differs from its task as shipped with ``changes``, as texts, and what it says of other data."""
    found = deviations(record, changes=changes)
    if record is not None:
        found += [
            Differs(role, key, value, None)
            for key, (role, value) in record.flat(["data"]).items()
            if not is_named(key, _OF_THE_ROWS) and harmless(key) is None
        ]
    return said([one for one in found if not is_named(one.key, ignoring)])


def _choices(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each combination of the values that a row allows."""
    named = {
        name: list(wanted[ANY]) if isinstance(wanted, Mapping) and ANY in wanted else [wanted]
        for name, wanted in settings.items()
        if wanted is not None
    }
    for values in product(*named.values()):
        yield dict(zip(named, values, strict=True))


def unlike_shipped(leaf: LeafResult, ignoring: Sequence[str] = ()) -> list[str]:
    """Return how a run of any task differs from the package's; empty for a task of the user's own, which has none."""
    return [] if shipped(leaf.task) is None else unlike(leaf.measurement, ignoring)


def listed_once(differs: Iterable[str]) -> tuple[str, ...]:
    """Return differences, each once: those of several tasks in the rows that they have as one."""
    said: dict[str, dict[str, None]] = {}
    for text in differs:
        said.setdefault(alike(text), {})[text] = None
    return tuple(next(iter(texts)) if len(texts) == 1 else name for name, texts in said.items())


def alike(text: str) -> str:
    """Return a text on the rows of a task without their numbers, which differ between the tasks of one row."""
    if text.startswith("rows="):
        return "a part of the rows, not all"
    return _NUMBER.sub("…", text) if text.startswith(OF_ITS_ROWS) else text


def said(found: Sequence[Differs], other: str = "the task") -> list[str]:
    """Return differences from ``other`` as texts; a block that one side lacks as a whole is named once."""
    return [one.against(other) for one in by_block(found)]
