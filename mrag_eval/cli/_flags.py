"""Flags of the harness, checked before it sees them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrag_eval.config import RAG
from mrag_eval.platform import ConfigError, JsonFault, did_you_mean, json_from, json_value, keep_secrets_of

_SAMPLES = """--samples '{"TASK": [0, 1]}'   or a file with such an object"""
_TASKS = "--tasks NAME,NAME   with names from: mrag-eval tasks"
# The name of an argument in KEY=VALUE,KEY=VALUE.
_NAME = re.compile(r"(?:^|,)\s*([\w.-]+)\s*=")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True)
class _Rule:
    """The values that a flag may have: a test, the words for them, and an example."""

    fits: Callable[[Any], bool]
    expected: str
    example: str


def _number(low: float, high: float = math.inf, *, whole: bool = True) -> Callable[[Any], bool]:
    """Return a test for numbers from ``low`` to ``high``; infinity is not a number here."""

    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        return low <= value <= high and (not whole or value == int(value))

    return fits


def _any_of(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_limit(value: Any) -> bool:
    return _number(1)(value) or (_number(0, 1, whole=False)(value) and value > 0)


def _is_seed(value: Any) -> bool:
    seeds = value if isinstance(value, list) else [value]
    return len(seeds) in (1, 3, 4) and all(seed is None or _number(0, 2**32 - 1)(seed) for seed in seeds)


def _is_pairs(value: Any) -> bool:
    try:
        return "" not in pairs_of(value)
    except ValueError:
        return False


def _is_texts(value: Any) -> bool:
    return all(isinstance(text, str) for text in (value if isinstance(value, list) else [value]))


_TEXT = _Rule(_any_of(str), "a text", "TEXT")
_YES_OR_NO = _Rule(lambda value: value in (True, False), "true or false", "true")
# By the harness's types of its settings. Its flags have them already, a config file may not.
_BY_TYPE: Mapping[Any, _Rule] = {
    bool: _YES_OR_NO,
    bool | None: _YES_OR_NO,
    bool | str: _Rule(_any_of(bool, str), "true, false or a name", "true"),
    dict: _Rule(_is_pairs, "keys and values", "KEY=VALUE,KEY=VALUE"),
    str | None: _TEXT,
}
# Settings of which not every value of their type will do.
_VALUES: Mapping[str, _Rule] = {
    "model": _Rule(lambda value: isinstance(value, str) and bool(value), "the name of a model type", "hf"),
    "limit": _Rule(_is_limit, "a number of rows, or a fraction between 0 and 1", "10   or   --limit 0.1"),
    "batch_size": _Rule(
        lambda value: re.fullmatch(r"auto(:[0-9]+(\.[0-9]+)?)?|[1-9][0-9]*", str(value)) is not None,
        "auto, auto:N or a whole number from 1",
        "8",
    ),
    "max_batch_size": _Rule(_number(1), "a whole number from 1", "64"),
    "num_fewshot": _Rule(_number(0), "a whole number from 0", "0"),
    "seed": _Rule(_is_seed, "one whole number from 0 below 2**32, or four, or None for some", "42"),
    "device": _Rule(
        lambda value: re.fullmatch(r"auto|(cpu|cuda|mps|npu|xpu|hpu|tpu)(:[0-9]+)?", str(value)) is not None,
        "cpu, cuda, cuda:N, mps, auto, or another kind of processor",
        "cpu",
    ),
    "verbosity": _Rule(lambda value: value in _LEVELS, f"one of {', '.join(_LEVELS)}", "INFO"),
    "include_path": _Rule(_is_texts, "a folder", "FOLDER"),
    "cache_requests": _Rule(_any_of(Mapping), "true, refresh or delete, as a flag", "true"),
}
# Settings of the generation that every type of model knows.
_GENERATION: Mapping[str, _Rule] = {
    "max_gen_toks": _Rule(_number(1), "a whole number from 1", "max_gen_toks=64"),
    "temperature": _Rule(_number(0, whole=False), "a number from 0", "temperature=0.7"),
    "top_p": _Rule(_number(0, 1, whole=False), "a number from 0 to 1", "top_p=0.95"),
    "do_sample": replace(_YES_OR_NO, example="do_sample=true"),
    "until": _Rule(_is_texts, "a text, or a list of texts", """'until=["\\n\\n"]'"""),
}


def check_given_once(arguments: Iterable[str]) -> None:
    """Raise ConfigError for an argument with two values, such as ``--metadata k=3,k=5``: the last would count."""
    flag, given = "", set[tuple[str, str]]()
    for argument in arguments:
        value = argument
        if argument.startswith("--"):
            flag, _, value = argument.partition("=")
        elif argument == "-a":
            flag, value = "--model_args", ""
        if _rule_of_type(flag.removeprefix("--")) is not _BY_TYPE[dict]:
            continue
        if value.lstrip().startswith("{"):
            with suppress(JsonFault):  # the harness names what is no JSON at all
                json_value(value, lax="all")
                json_from(value, flag, "give each key once", error=ConfigError)
            continue
        for name in _NAME.findall(value):
            if (flag, name) in given:
                raise ConfigError(f"{flag}: '{name}' is given twice", "give it once")
            given.add((flag, name))


def check_flags(asked: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first flag, or key of the ``--config`` file, whose value no run can have.

    Secrets among the arguments are hidden from now on.
    """
    if (tasks := asked.get("tasks")) is None:
        raise ConfigError("--tasks is missing", _TASKS)
    if not isinstance(tasks, str | list) or not _is_texts(tasks):
        raise ConfigError(f"--tasks: {_shown(tasks)} is not a list of names", _TASKS)
    if not "".join(tasks).strip(", "):
        raise ConfigError("--tasks is empty", _TASKS)
    for key, value in asked.items():
        rule = _VALUES.get(key) or _rule_of_type(key)
        if value is not None and rule is not None and not rule.fits(value):
            raise ConfigError(f"--{key} {_shown(value)}: expected {rule.expected}", f"--{key} {rule.example}")
    keep_secrets_of([pairs_of(asked.get(key)) for key in ("model_args", "metadata")])
    given = pairs_of(asked.get("gen_kwargs"))
    for key, rule in _GENERATION.items():
        if given.get(key) is not None and not rule.fits(given[key]):
            raise ConfigError(
                f"--gen_kwargs {key}={_shown(given[key])}: expected {rule.expected}", f"--gen_kwargs {rule.example}"
            )


def _rule_of_type(key: str) -> _Rule | None:
    if key in ("tasks", "samples"):
        return None
    from mrag_eval.harness import setting_types

    return _BY_TYPE.get(setting_types().get(key))


def pairs_of(value: Any) -> Mapping[str, Any]:
    """Return the arguments in the value of a flag. Raises ValueError for anything but keys and values."""
    if isinstance(value, str):
        from mrag_eval.harness import parse_arguments

        return parse_arguments(value)
    if not isinstance(value, Mapping | None):
        raise ValueError(f"{value!r} is not keys and values")
    return value or {}


def check_model(asked: Mapping[str, Any]) -> None:
    """Raise ConfigError for an evaluated model that cannot be built or called.

    The flags were checked by :func:`check_flags`.
    """
    from mrag_eval import harness

    hint = "e.g. --model hf --model_args pretrained=Qwen/Qwen3-1.7B"
    if asked.get("model") == RAG and asked.get("use_cache"):
        raise ConfigError(
            f"--use_cache: it keeps the answers of --model {RAG} without their contexts",
            "leave it out: what a stopped run has asked is kept anyway",
        )
    harness.check_model(asked.get("model", "hf"), pairs_of(asked.get("model_args")), hint, asked.get("device"))


def check_for_tasks(
    asked: Mapping[str, Any], samples: Mapping[str, Any] | None, tasks: Iterable[str], names: Iterable[str]
) -> None:
    """Raise ConfigError for flags that a run of these tasks, all of them ours, cannot have.

    ``names`` are those of all tasks, groups and tags.
    """
    from mrag_eval.config import unread
    from mrag_eval.datasets import LOADERS

    for key, close in unread(pairs_of(asked.get("metadata")), {*names, *LOADERS}).items():
        raise ConfigError(
            f"--metadata {key}: no task reads it" + (f"; did you mean {', '.join(close)}?" if close else ""),
            "leave it out, or name a setting: docs/reference/configuration.md",
        )
    if asked.get("num_fewshot"):
        raise ConfigError(
            f"--num_fewshot {asked['num_fewshot']}: retrieval tasks have no examples to show", "leave --num_fewshot out"
        )
    known = set(tasks)
    for task in samples or ():
        if task not in known:
            raise ConfigError(f"--samples: '{task}' is not a task of this run{did_you_mean(task, known)}", _SAMPLES)


def samples_of(asked: Mapping[str, Any]) -> dict[str, list[int]] | None:
    """Return the value of ``--samples``, from its JSON or a file of it."""
    value = asked.get("samples")
    if value is None:
        return None
    if isinstance(value, str):
        path = Path(value)
        try:
            value = json_value(path.read_bytes() if path.is_file() else value)
        except (OSError, ValueError):
            raise ConfigError(f"--samples {_shown(value)}: neither JSON nor a file of it", _SAMPLES) from None
    if not isinstance(value, Mapping) or not all(isinstance(rows, list) for rows in value.values()):
        raise ConfigError(f"--samples: expected lists of row numbers by task, not {_shown(value)}", _SAMPLES)
    if asked.get("limit") is not None:
        raise ConfigError("--samples cannot be combined with --limit", "leave one of them out")
    for task, rows in value.items():
        wrong = next((row for row in rows if isinstance(row, bool) or not isinstance(row, int)), None)
        if not rows or wrong is not None:
            fault = "no row is named" if not rows else f"{wrong!r} is not the number of a row"
            raise ConfigError(f"--samples, {task}: {fault}", _SAMPLES)
    return {str(task): list(rows) for task, rows in value.items()} or None


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
