"""The strategies that can be tried: IR modes and other settings of the retrieval, in all combinations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from mrag_eval._front._strategy_merges import TRIED
from mrag_eval.config import MODES, Retrieval, upper_bound, validated
from mrag_eval.platform import ConfigError, MragError, did_you_mean

# Settings that name other documents, or change what a strategy is measured on.
_FIXED = ("corpus", "given", "run", "run_folder", "run_language", "run_may_differ", "shuffle", "unanswerable", "uri")
_KINDS = ("dense", "bm25", "hybrid")
_K, _DEPTH = 5, 20
_VARIED = "such as --vary mode=all,balanced --vary k=3,5   (docs/reference/configuration.md has all keys)"


@dataclass(frozen=True)
class Strategy:
    """A way to retrieve: the name of its task, the settings that vary, and its whole ``retrieval`` block."""

    name: str
    settings: Mapping[str, Any]
    block: Mapping[str, Any]


def strategies_of(
    vary: Mapping[str, Sequence[Any]], *, answered: bool, fixed: Mapping[str, Any]
) -> tuple[list[Strategy], dict[str, MragError]]:
    """Return the strategies, the default first, and the reasons why others cannot run, by name.

    Args:
        vary: key of the ``retrieval`` block -> its values; the first of each is the default's.
        answered: whether a model answers, so that a mode that shows nothing found can be judged.
        fixed: settings that all of them have; what it names is not varied.

    Raises ConfigError for a key that no strategy can have, and for one that is fixed as well.
    """
    for key in vary:
        if key in _FIXED or key not in Retrieval.model_fields:
            known = [name for name in Retrieval.model_fields if name not in _FIXED]
            raise ConfigError(f"--vary {key}: no setting that strategies vary{did_you_mean(key, known)}", _VARIED)
        if key in fixed:
            raise ConfigError(f"--vary {key}: --metadata retrieval.{key} fixes it", "give it in one of the two")
        kind = Retrieval.model_fields[key]
        if kind.default is None and "'none'" not in repr(kind.annotation):
            # it is no word of this key's own
            vary = {**vary, key: [None if value == "none" else value for value in vary[key]]}
        for value in vary[key]:
            try:
                validated(Retrieval, {key: value}, "--vary", joint=" ")
            except ConfigError as error:
                # what another setting must go with is that strategy's reason
                if error.message.startswith(f"--vary {key}:"):
                    raise ConfigError(error.message, _VARIED) from None
    modes = ["all", *(name for name in MODES if name != "all")]
    own = fixed.get("retriever") is not None or any(vary.get("retriever", ()))
    defaults = {"mode": modes, "kind": ("own", *_KINDS) if own else _KINDS}
    # merges are for lists that several languages fill, by scores that compare
    merged = not {"mode", "merge"} & {*vary, *fixed}
    grid = {key: [fixed[key]] if key in fixed else values for key, values in defaults.items()} | dict(vary)
    found: dict[str, Strategy] = {}
    refused: dict[str, MragError] = {}
    combined = list(_combined(grid))
    if merged:
        direct = [one for one in combined if (one["mode"], one.get("kind")) == ("all", "dense")]
        combined += [{**one, "merge": merge} for one in direct for merge in TRIED]
    for settings in combined:
        shown = {
            key: value for key, value in settings.items() if len(grid.get(key, TRIED)) > 1 or key in ("mode", "kind")
        }
        name = "_".join(_word(key, value) for key, value in shown.items())
        if name in found or name in refused:
            name = f"{name}_{len(found) + len(refused)}"
        block = {"k": _K, **fixed, **settings}
        if block.get("retriever") is not None and _is_ours(settings):
            del block["retriever"]
        block = {"depth": max(_DEPTH, block["k"]) if isinstance(block["k"], int) else None, **block}
        try:
            _check(block, name, answered=answered)
        except MragError as error:
            refused[name] = error
        else:
            found[name] = Strategy(name, shown, block)
    return list(found.values()), refused


def _combined(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield all combinations, each once: nothing else of a search matters to a mode that searches nothing, nor a
    retriever of the user's to a search of ours.
    """
    seen = []
    for values in product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        mode = MODES.get(str(settings["mode"]))
        if mode is not None and not mode.searches:
            settings = {"mode": settings["mode"]}
        elif _is_ours(settings):
            settings.pop("retriever", None)
        if settings not in seen:
            seen.append(settings)
            yield settings


def _is_ours(settings: Mapping[str, Any]) -> bool:
    return settings.get("kind", "") not in (None, "own")


def _check(block: Mapping[str, Any], name: str, *, answered: bool) -> None:
    mode = MODES.get(str(block["mode"]))
    if mode is not None and mode.asks_system:
        raise ConfigError(f"{name}: {mode.summary}, which retrieves by itself", "mrag-eval run --model rag asks it")
    retrieval = validated(Retrieval, block, "retrieval")
    bound = upper_bound(block)
    if bound is not None:
        raise ConfigError(f"{name}: {bound}", "which no system is: docs/reports.md")
    if retrieval.preset.swaps:
        raise ConfigError(f"{name}: searches with another question on purpose", "docs/ir_modes.md")
    if not answered and not retrieval.searches:
        raise ConfigError(f"{name}: {retrieval.preset.summary}: answers alone can judge it", "name a --model")


def _word(key: str, value: Any) -> str:
    """Return a setting as a part of a task's name."""
    if value is None:
        return f"no-{key}"
    if isinstance(value, Mapping):
        value = value.get("model") or value.get("kind") or value.get("backend") or key
    text = re.sub(r"[^\w.]+", "_", str(value).rpartition("/")[2]).strip("_")
    return text if key in ("mode", "kind", "merge") else f"{key}{text}" if text.isdigit() else f"{key}-{text}"
