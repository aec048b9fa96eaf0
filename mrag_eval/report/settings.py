"""Whether two runs of a task measured the same thing: the settings that must agree, and those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Blocks of a task's configuration that decide what is measured.
_BLOCKS = ("version", "data", "source", "index", "retrieval", "prompt", "judge", "agent", "generation_kwargs")
# Where files lie and where a model runs differs between machines and changes no score; files, indexes and runs are
# told by their hashes.
_PLACES = frozenset(
    {
        "data.path",
        "data.assignment",
        "source.path",
        "source.assignment",
        "retrieval.corpus",
        "retrieval.run",
        "retrieval.device",
        "judge.required",
    }
)
# Names that stand for "leave everything unchecked".
EVERYTHING = "all"


def differing(first: Mapping[str, Any], second: Mapping[str, Any], allowed: Sequence[str] = ()) -> dict[str, str]:
    """Dotted key -> ``first | second`` for every setting that is not the same in two task configurations.

    ``allowed`` names blocks or keys that differ on purpose (``retrieval``, ``retrieval.mode``, ``all``).
    """
    a, b = _flat(first), _flat(second)
    return {
        key: f"{a.get(key, 'not set')} | {b.get(key, 'not set')}"
        for key in sorted({*a, *b})
        if a.get(key) != b.get(key) and key not in _PLACES and not _is_allowed(key, allowed)
    }


def _is_allowed(key: str, allowed: Sequence[str]) -> bool:
    return any(name in (EVERYTHING, key) or key.startswith(f"{name}.") for name in allowed)


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a task's configuration that decides what is measured."""
    return {name: config[name] for name in (*_BLOCKS, "metadata") if name in config}


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {name: config[name] for name in _BLOCKS if name in config}
    chosen["version"] = (config.get("metadata") or {}).get("version")
    out: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif value is not None:
            out[prefix] = value

    walk("", chosen)
    return out
