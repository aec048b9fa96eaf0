"""The settings that decide a task's results, and those in which two runs differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_eval.config import Agent, Judge, Prompt, Retrieval, dotted, is_place
from mrag_eval.core import name_of_model
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import TaskScores

if TYPE_CHECKING:
    from pydantic import BaseModel

# Blocks of a task's configuration that decide what is measured.
_BLOCKS = ("version", "data", "source", "index", "retrieval", "prompt", "judge", "agent", "generation_kwargs")
# Names that disable every check.
EVERYTHING = "all"
# Keys whose value may be a model's folder; what the folder holds is in the index's revision and translator's identity.
_MODELS = ("index.embedder", "retrieval.embedder", "retrieval.embedder.model", "retrieval.translator.model")
# The translator, as people name it and as its output is determined.
_TRANSLATOR, _IDENTITY = "translator", "translator_identity"


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold the settings that must agree for two runs to measure the same thing.

    ``blocks`` are those of the task's configuration. ``texts`` are the hashes of its prompts by purpose. ``asked``
    names the translators and judges that a task leaves to the config file.
    """

    blocks: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.blocks)

    @classmethod
    def of(cls, config: TaskConfig, scores: TaskScores | None) -> Settings:
        """Return the settings of a task, from its configuration and the translators and judges that its scores name."""
        blocks = {name: config.raw[name] for name in (*_BLOCKS, "metadata") if name in config.raw}
        return cls(blocks, config.texts, _asked(scores))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON, for baseline files."""
        out = dict(self.blocks)
        if self.texts:
            out["provenance"] = {"texts": dict(self.texts)}
        return {**out, "asked": dict(self.asked)} if self.asked else out

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Settings:
        """Return the settings behind :meth:`to_dict`."""
        blocks = {name: block for name, block in value.items() if name not in ("provenance", "asked")}
        return cls(blocks, (value.get("provenance") or {}).get("texts") or {}, value.get("asked") or {})

    def names(self) -> set[str]:
        """Return every name under which a setting, or a block of settings, may be said to differ."""
        keys = {*self.flat(), *dotted(self.asked), *(f"{name}.text" for name in self.texts)}
        parts = [key.split(".") for key in keys]
        known = {".".join(key[:n]) for key in parts for n in range(1, len(key) + 1)}
        return known | {*_BLOCKS, *_known_keys(), _TRANSLATOR, "judges", "relevance_judges"}

    def flat(self) -> dict[str, Any]:
        """Return every setting of the blocks under its dotted key."""
        chosen = {name: block for name, block in self.blocks.items() if name in _BLOCKS}
        chosen["version"] = (self.blocks.get("metadata") or {}).get("version")
        return dotted(chosen)


def _known_keys() -> Iterator[str]:
    """Yield the keys of the blocks, which older runs, or runs with their defaults, may not have recorded."""
    blocks: Mapping[str, type[BaseModel]] = {"retrieval": Retrieval, "agent": Agent, "prompt": Prompt, "judge": Judge}
    for name, block in blocks.items():
        yield from (f"{name}.{key}" for key in block.model_fields)


def _asked(scores: TaskScores | None) -> dict[str, Any]:
    if scores is None:
        return {}
    translation, judge, relevance = scores.translation, scores.judge, scores.relevance
    found = {
        _TRANSLATOR: None if translation is None else translation.translator,
        _IDENTITY: None if translation is None else translation.identity,
        "judges": {} if judge is None else {seat: column.model for seat, column in judge.judges.items()},
        "relevance_judges": None if relevance is None else relevance.judges,
    }
    return {name: value for name, value in found.items() if value}


def differing(first: Settings, second: Settings, allowed: Sequence[str] = ()) -> dict[str, str]:
    """Return dotted key -> ``first | second`` for every setting that is not the same.

    ``allowed`` names blocks or keys that differ on purpose (``retrieval``, ``retrieval.mode``, ``all``).
    """
    a, b = first.flat(), second.flat()
    one, other = dict(first.asked), dict(second.asked)
    if _IDENTITY in one and _IDENTITY in other:
        # one label may name different files or models, and two labels the same one
        for asked in (one, other):
            asked[_TRANSLATOR] = asked.pop(_IDENTITY)
    # a name alone does not determine a prompt's text; older runs did not record the text
    for name in {*first.texts} & {*second.texts}:
        a[f"{name}.text"], b[f"{name}.text"] = first.texts[name], second.texts[name]
    for key in _MODELS:
        for settings in (a, b):
            if isinstance(settings.get(key), str):
                settings[key] = name_of_model(settings[key])
    # one alone translates or judges by its other settings
    a |= dotted({name: value for name, value in one.items() if name in other})
    b |= dotted({name: value for name, value in other.items() if name in one})
    return {
        key: f"{a.get(key, 'not set')} | {b.get(key, 'not set')}"
        for key in sorted({*a, *b})
        if a.get(key) != b.get(key) and not is_place(key) and not _is_allowed(key, allowed)
    }


def _is_allowed(key: str, allowed: Sequence[str]) -> bool:
    return any(name in (EVERYTHING, key) or key.startswith(f"{name}.") for name in allowed)
