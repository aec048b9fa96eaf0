"""The ``translator`` of a retrieval block or of the config file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from mrag_eval.config._validation import Block, Device

# Keys of each backend; with another one they would have no effect.
_KEYS: dict[str, frozenset[str]] = {
    "lm": frozenset({"model", "prompt", "max_tokens", "save"}),
    "nllb": frozenset({"model", "revision", "max_tokens", "num_beams", "batch_size", "device", "save"}),
    "google": frozenset({"model", "save"}),
    "table": frozenset({"path", "strict"}),
}
DEFAULT_NLLB = "facebook/nllb-200-distilled-600M"


class TranslatorSpec(Block):
    """The translator of queries and documents.

    ``backend``: ``lm`` (``model`` is a name under ``models`` in the config file), ``nllb`` (``model`` is a hub id or a
    folder, by default the distilled 600M one, ``revision`` its commit), ``google`` (Google Cloud Translation;
    ``model`` as its API has it), ``table`` (translations from the JSON Lines file ``path``, or, without one, the
    benchmark's parallel texts; ``strict`` makes a text that is not in it an error).

    ``save``: every translation that is used is added to this table, to be run from and passed on.
    ``max_tokens`` bounds a translation (``nllb``: that of a sentence, 256). ``check_language``: a translation that a
    language detector finds in another language is not used.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    backend: Literal["lm", "nllb", "google", "table"]
    model: str | None = None
    revision: str | None = None
    path: Path | None = None
    save: Path | None = None
    strict: bool = False
    prompt: str = "plain"
    max_tokens: int | None = Field(default=None, ge=1)
    num_beams: int = Field(default=1, ge=1)
    batch_size: int = Field(default=16, ge=1)
    device: Device = "cpu"
    check_language: bool = True

    @field_validator("path", "save")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().absolute()

    @model_validator(mode="after")
    def _keys_of_the_backend(self) -> TranslatorSpec:
        given = self.model_fields_set - {"backend", "check_language"}
        for key in sorted(given - _KEYS[self.backend]):
            allowed = ", ".join(sorted(_KEYS[self.backend]))
            raise ValueError(f"'{key}' does nothing with backend '{self.backend}', whose keys are {allowed}")
        if self.backend == "lm" and not self.model:
            raise ValueError("backend 'lm' needs 'model', a name under 'models' in the config file")
        return self

    def described(self) -> str:
        """Return a description for messages: the backend and its model or file."""
        what: Any = {"nllb": self.model or DEFAULT_NLLB, "table": self.path and self.path.name}.get(
            self.backend, self.model
        )
        return f"{self.backend} {what}" if what else self.backend
