"""Whether two runs of a task measured the same thing: the settings that must agree, and those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.config import PLACES, dotted

# Blocks of a task's configuration that decide what is measured.
_BLOCKS = ("version", "data", "source", "index", "retrieval", "prompt", "judge", "agent", "generation_kwargs")
# Names that stand for "leave everything unchecked".
EVERYTHING = "all"


def differing(first: Mapping[str, Any], second: Mapping[str, Any], allowed: Sequence[str] = ()) -> dict[str, str]:
    """Dotted key -> ``first | second`` for every setting that is not the same in two task configurations.

    ``allowed`` names blocks or keys that differ on purpose (``retrieval``, ``retrieval.mode``, ``all``).
    """
    a, b = _flat(first), _flat(second)
    one, other = _asked(first), _asked(second)
    if "translator_identity" in one and "translator_identity" in other:
        # behind one label there may be another file or model, and behind two labels the same
        for asked in (one, other):
            asked["translator"] = asked.pop("translator_identity")
    # a name alone does not tell what a prompt said; a run of before this was recorded says nothing of it
    for name in {*_texts(first)} & {*_texts(second)}:
        a[f"{name}.text"], b[f"{name}.text"] = _texts(first)[name], _texts(second)[name]
    # one alone translates or judges by its other settings
    a |= dotted({name: value for name, value in one.items() if name in other})
    b |= dotted({name: value for name, value in other.items() if name in one})
    return {
        key: f"{a.get(key, 'not set')} | {b.get(key, 'not set')}"
        for key in sorted({*a, *b})
        if a.get(key) != b.get(key) and key not in PLACES and not _is_allowed(key, allowed)
    }


def _is_allowed(key: str, allowed: Sequence[str]) -> bool:
    return any(name in (EVERYTHING, key) or key.startswith(f"{name}.") for name in allowed)


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a task's configuration that decides what is measured."""
    kept = {name: config[name] for name in (*_BLOCKS, "metadata") if name in config}
    if _texts(config):
        kept["provenance"] = {"texts": _texts(config)}
    asked = _asked(config)
    return {**kept, "asked": asked} if asked else kept


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    """The hashes of the prompts, by what they are for."""
    return dict((config.get("provenance") or {}).get("texts") or {})


def _asked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Who translated and judged, as the scores say it: a task leaves that to the config file, which no block shows."""
    if "asked" in config:
        return dict(config["asked"])
    scores = config.get("scores") or {}
    translation = scores.get("translation") or {}
    judges = (scores.get("judge") or {}).get("judges") or {}
    found = {
        "translator": translation.get("translator"),
        "translator_identity": translation.get("identity"),
        "judges": {seat: judge.get("model") for seat, judge in judges.items() if isinstance(judge, Mapping)},
        "relevance_judges": (scores.get("relevance") or {}).get("judges"),
    }
    return {name: value for name, value in found.items() if value}


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {name: config[name] for name in _BLOCKS if name in config}
    chosen["version"] = (config.get("metadata") or {}).get("version")
    return dotted(chosen)
