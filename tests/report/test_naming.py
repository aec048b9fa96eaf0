"""Every key of a record, changed, in every place of the papers' tables that calls a run "this run": it is named there,
harmless, or decided by what the row states.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, get_args

import pytest
from lm_eval import evaluator
from pydantic import BaseModel

from mrag_eval.config import MODES, Agent, Judge, Measurement, Prompt, Retrieval, dotted, harmless, is_named
from mrag_eval.datasets import validate_data
from mrag_eval.report import LeafResult, load_layout
from mrag_eval.report.tables import _by_mode, _loop_tables, _policies
from mrag_eval.report.tables._requirements import REQUIRED
from mrag_eval.report.tables._row_settings import OF_A_RUN, OF_THE_ANSWER, fit, unlike_shipped
from tests.report.rows import every_slot, filling, with_record

PAPERS = ("bordirlines", "coral", "mrag", "xlcost", "xrag")
# Roles that no table of a paper compares.
OF_NO_ROW = {
    "subject": "the evaluated model has rows of its own",
    "environment": "versions decide no number that a task's version does not",
    "outcome": "shown, never compared",
}
# Keys that the settings of a task say nothing of.
OF_NO_TASK = {
    "ran.ids": "the ids of all rows follow from the rows",
    "source.content": "the run compares it with that of the published rows; source.published says what came of it",
    "source.rows": "as the content",
    "source.corpus.content": "as that of the rows",
    "source.corpus.rows": "as that of the rows",
    "source.corpus.languages": "follows from the content",
}
# Arguments of the harness's evaluation that are not settings of a run.
NOT_FLAGS = ("lm", "task_dict", "apply_chat_template")
# The block of each of a task's settings.
BLOCKS: Mapping[str, type[BaseModel]] = {"retrieval": Retrieval, "agent": Agent, "prompt": Prompt, "judge": Judge}

Path = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """A place that compares runs.

    Attributes:
        paper, name: where it is.
        leaf: a run that is "this run" there.
        told: what it says of a run.
        decided: keys that its row states, requires, or is not about.
    """

    paper: str
    name: str
    leaf: LeafResult
    told: Callable[[LeafResult], Sequence[str]]
    decided: Sequence[str]


def cells(paper: str) -> Iterator[Place]:
    """Yield the cells of a paper's tables, those once that state the same of tasks of one mode."""
    seen = set()
    for name, table, slot in every_slot():
        leaf = filling(slot.task, slot.stated) if name == paper else None
        key = (leaf and leaf.config.mode, json.dumps(slot.stated, sort_keys=True))
        if leaf is None or key in seen:
            continue
        seen.add(key)
        free = [key for key, wanted in slot.stated.items() if wanted is None]
        required = [key for name in slot.stated if name in REQUIRED for key in REQUIRED[name].decides]

        def told(leaf: LeafResult, stated: Mapping[str, Any] = slot.stated) -> Sequence[str]:
            return fit(leaf, stated)

        yield Place(paper, f"table {table}, {slot.row}, {slot.column.name}", leaf, told, (*free, *required))


def others(paper: str) -> Iterator[Place]:
    """Yield the tables whose rows no cell of a layout names."""
    figures = {
        "bordirlines": [
            ("2", "bordirlines_qlang_direct_openai", OF_THE_ANSWER),
            ("Figures 4, 10", "bordirlines_rel_langs_citation_openai", ()),
            ("Figures 15, 16", "bordirlines_rel_langs_direct_m3", OF_THE_ANSWER),
        ],
        "mrag": [("4", "mkqa_en_only_fr", OF_A_RUN)],
        "xrag": [("2", "xrag_multi_de", OF_A_RUN)],
    }
    for name, task, ignoring in figures.get(paper, ()):
        yield Place(paper, name, filling(task, {}), lambda leaf, given=ignoring: fit(leaf, {}, given), ignoring)
    searching = {"coral": "blend_multirag_su", "mrag": "mkqa_fr", "xlcost": "xlcost_travel"}
    if paper in searching:
        leaf = filling(searching[paper], {})
        # the source of a row says which part of the rows ran, a note who judged
        ignored = (*_policies._Policy(leaf, {}).ignored, *_policies._SAID, "ran")
        yield Place(paper, "policies", leaf, _told_by_policies(leaf), ignored)
        side = _by_mode._IGNORED
        yield Place(paper, "modes", leaf, lambda leaf: unlike_shipped(leaf, side), (*side, "ran", "judges"))
    if paper == "coral":
        stated = load_layout("coral").expect
        leaf = filling("blend_coral_su", stated)
        decided = [key for name in stated for key in (REQUIRED[name].decides if name in REQUIRED else (name,))]
        yield Place(paper, "loops", leaf, _told_by_loops(leaf), (*decided, *_loop_tables._OF_JUDGES))


def _told_by_policies(usual: LeafResult) -> Callable[[LeafResult], Sequence[str]]:
    def place(leaf: LeafResult) -> tuple[Any, str]:
        return _policies._setting(leaf.config), _policies._label(leaf.config)

    def told(leaf: LeafResult) -> Sequence[str]:
        return [
            *_policies._Policy(leaf, {}).differs,
            *(["another table or row"] if place(leaf) != place(usual) else []),
        ]

    return told


def _told_by_loops(usual: LeafResult) -> Callable[[LeafResult], Sequence[str]]:
    def told(leaf: LeafResult) -> Sequence[str]:
        apart = _loop_tables._settings(leaf) != _loop_tables._settings(usual)
        found = fit(leaf, load_layout("coral").expect, _loop_tables._OF_JUDGES)
        return [*found, *(["another table or row"] if apart else [])]

    return told


# --------------------------------------------------------------------------------------------------------- the keys


def paths_of(leaf: LeafResult) -> set[Path]:
    """Return the path of every key that the record of such a run can have: role, then key."""
    record = _whole(leaf)
    found = {
        path for role in ("setting", "instrument", "data", *OF_NO_ROW) for path in _walk(getattr(record, role), role)
    }
    setting = record.setting
    blocks: dict[str, type[BaseModel]] = {name: block for name, block in BLOCKS.items() if name in setting}
    blocks["data"] = type(validate_data({key: value for key, value in setting["data"].items() if value is not None}))
    for name, block in blocks.items():
        found |= {("setting", name, *path) for path in _fields(block)}
    flags = [name for name in inspect.signature(evaluator.evaluate).parameters if name not in NOT_FLAGS]
    found |= {("setting", "run", flag) for flag in flags}
    # what nobody has heard of yet
    found |= {("setting", "unheard_of"), ("data", "unheard_of"), ("setting", "generation_kwargs", "unheard_of")}
    if "index" in record.data:
        found |= {("data", "index", name) for name in ("store", "approximate", "settings", "query_vectors", "part")}
    return found


def _whole(leaf: LeafResult) -> Measurement:
    """Return the record with entries in every role."""
    assert leaf.measurement is not None
    subject = {"model_args": {"pretrained": "m"}, "chat_template_applied": True}
    return replace(
        leaf.measurement, subject=subject, environment={"versions": {"a": "1"}}, outcome={"prompts": {"n": 3}}
    )


def _walk(value: Any, *path: str) -> Iterator[Path]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _walk(inner, *path, str(key))
    elif len(path) > 1:
        yield path


def _fields(block: type[BaseModel], *path: str) -> Iterator[Path]:
    for name, field in block.model_fields.items():
        inner = [one for one in (field.annotation, *get_args(field.annotation)) if _is_block(one)]
        if not inner:
            yield (*path, name)
        for one in inner:
            yield from _fields(one, *path, name)


def _is_block(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _changed(leaf: LeafResult, path: Path) -> LeafResult:
    role, *keys = path
    record = _whole(leaf)

    def change(value: Any, keys: Sequence[str]) -> Any:
        if not keys:
            return _other(value, path)
        inner = value if isinstance(value, Mapping) else {}
        return {**inner, keys[0]: change(inner.get(keys[0]), keys[1:])}

    changes: dict[str, Any] = {role: change(getattr(record, role), keys)}
    return with_record(leaf, replace(record, **changes))


def _other(value: Any, path: Path) -> Any:
    if path == ("setting", "retrieval", "mode"):
        searches = MODES[value].searches
        return next(name for name, mode in MODES.items() if name != value and mode.searches == searches)
    if isinstance(value, bool):
        return not value
    if path == ("setting", "retrieval", "depth"):
        return (value or 0) + 99
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [*value, "other"]
    return f"{value or ''}other"


# ------------------------------------------------------------------------------------------------------- the verdict


def verdict(place: Place, path: Path) -> str | None:
    """Return why a key does not make a run "this run" unduly; None if it does."""
    role, *keys = path
    key = ".".join(keys)
    told = place.told(_changed(place.leaf, path))
    if _is_named(told, keys):
        return "named"
    if role in OF_NO_ROW or harmless(key) is not None:
        return "harmless" if not told else None
    if not MODES[place.leaf.config.mode].searches and key.startswith("retrieval.") and key not in _compared(place.leaf):
        # a key of a search that this mode does not make
        return "harmless" if not told else None
    if any(key in REQUIRED[name].decides or is_named(key, REQUIRED[name].decides) for name in _said_by(told)):
        return "named"
    if is_named(key, place.decided):
        return "decided"
    return "of no task" if is_named(key, tuple(OF_NO_TASK)) else None


def _compared(leaf: LeafResult) -> Mapping[str, Any]:
    assert leaf.measurement is not None
    return leaf.measurement.deciding()


def _is_named(told: Sequence[str], keys: Sequence[str]) -> bool:
    names = [".".join(keys[:n]) for n in range(1, len(keys) + 1)]
    names += ["rows"] if keys[0] == "ran" else []
    return any(text.startswith((f"{name}=", f"{name} ", f"{name}: ")) for text in told for name in names) or (
        "another table or row" in told
    )


def _said_by(told: Sequence[str]) -> list[str]:
    return [name for name in REQUIRED if any(text.startswith(f"{name}=") for text in told)]


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.slow
def test_every_key_of_a_record_is_named_wherever_runs_are_compared(
    paper: str, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    keys: set[Path] = set()
    missed = []
    number = count()
    for place in (*cells(paper), *others(paper)):
        next(number)
        assert place.told(place.leaf) in ((), []), place.name
        paths = paths_of(place.leaf)
        keys |= paths
        for path in sorted(paths):
            found = verdict(place, path)
            counts[found or "missed"] += 1
            missed += [] if found else [f"{place.name}: {'.'.join(path)}"]
    told = f"{paper}: {len(keys)} keys, {next(number)} places, {dict(counts)}"
    record_property("counts", told)
    print(told)
    assert missed == [], told
    assert counts["named"] > 100, told


# A paper and a table, a task that fills it, what is otherwise, and what the row says.
RUNS: Sequence[tuple[str, str, dict[str, Any], str]] = (
    ("xlcost 1", "xlcost_travel", {"setting.retrieval.languages": ["en"]},
     "retrieval.languages=en, not set in the task"),
    *(
        ("coral 1", "blend_multirag_su", changed, text)
        for changed, text in (
            ({"setting.retrieval.languages": ["en"]}, "retrieval.languages=en, not set in the task"),
            ({"setting.retrieval.merge": "quota"}, "retrieval.merge=quota, not set in the task"),
            ({"setting.retrieval.document_translation": "en"},
             "retrieval.document_translation=en, not set in the task"),
            ({"setting.prompt.system": "short_en"}, "prompt.system=short_en, not set in the task"),
            ({"setting.data.seed": 7}, "data.seed=7, not 0"),
            ({"data.ran.rows": 10, "data.ran.of": 286}, "rows=10 of 286, not all"),
            ({"data.index.recipe.sources": {"ko": "own"}, "data.index.passages": {"ko": 98}},
             "index.recipe=own, 98 passages in ko, not a known source"),
        )
    ),
    *(
        ("xrag 4", "xrag_mono_de", changed, text)
        for changed, text in (
            ({"setting.data.language": "es"}, "data.language=es, not de"),
            ({"setting.prompt.max_tokens": 900}, "prompt.max_tokens=900, not set in the task"),
            ({"setting.prompt.name_language": True}, "prompt.name_language=True, not False"),
            ({"instrument.judges": {"gpt": {}}}, "judges=1, not 3"),
            ({"instrument.judges": {"gpt": {}, "gpt#2": {}, "gpt#3": {}}}, "judges=1, not 3"),
            ({"data.ran.rows": 10, "data.ran.of": 1000}, "rows=10 of 1,000, not all"),
        )
    ),
    ("xrag 5", "xrag_multi_de", {"setting.data.setting": "mono"}, "data.setting=mono, not multi"),
    *(
        ("mrag 1 (MKQA)", "mkqa_fr", changed, text)
        for changed, text in (
            ({"setting.judge.correct_language.detector": "lingua"},
             "judge.correct_language.detector=lingua, not fasttext"),
            ({"setting.retrieval.languages": ["fr"]}, "retrieval.languages=fr, not set in the task"),
            ({"data.index.passages": {"fr": 76}}, "languages=fr, not ar de en es fi fr it ja ko pt ru th zh"),
            ({"data.ran.rows": 13, "data.ran.of": 2827}, "rows=13 of 2,827, not all"),
        )
    ),
    *(
        ("bordirlines 4", "bordirlines_qlang_direct_openai", changed, text)
        for changed, text in (
            ({"setting.run.system_instruction": "You are a proud patriot of X."},
             "run.system_instruction=You are a proud patriot of X., not set in the task"),
            ({"data.source.published.status": "other", "data.source.published.reason": "a copy whose rows differ"},
             "source: a copy whose rows differ"),
        )
    ),
)  # fmt: skip


@pytest.mark.parametrize(("place", "task", "changed", "text"), RUNS)
def test_a_run_of_other_settings_says_in_which(place: str, task: str, changed: dict[str, Any], text: str) -> None:
    paper, _, table = place.partition(" ")
    stated = next(s.stated for name, at, s in every_slot() if (name, at, s.task) == (paper, table, task))
    leaf = filling(task, stated)
    assert fit(leaf, stated) == ()
    record = leaf.measurement
    assert record is not None
    roles = {role: getattr(record, role) for role in ("setting", "instrument", "data")}
    made = _replaced(roles, changed)
    assert fit(with_record(leaf, replace(record, **made)), stated) == (text,)


def _replaced(nested: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with the values at dotted keys replaced, whole blocks included."""
    out: dict[str, Any] = json.loads(json.dumps(nested))
    for key, value in changed.items():
        *path, last = key.split(".")
        block = out
        for part in path:
            block = block.setdefault(part, {})
        block[last] = value
    return out


def test_what_no_task_says_anything_of_is_not_named_elsewhere() -> None:
    """An entry that a comparison covers is a needless one."""
    place = next(place for place in cells("xlcost") if place.leaf.config.index)
    for name in OF_NO_TASK:
        paths = [path for path in paths_of(place.leaf) if is_named(".".join(path[1:]), (name,))]
        assert paths
        assert any(verdict(place, path) == "of no task" for path in paths), name


def test_the_keys_are_those_of_the_blocks() -> None:
    leaf = filling("mkqa_en_only_fr", {})
    found = {".".join(path[1:]) for path in paths_of(leaf) if path[0] == "setting"}
    assert leaf.measurement is not None
    assert {*dotted(leaf.measurement.setting)} <= found
    assert {"retrieval.merge", "retrieval.languages", "judge.correct_language.detector", "data.path"} <= found
    assert "run.system_instruction" in found
