"""The ``translator`` of a retrieval block or of the config file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mrag_eval.config._block import AbsolutePath, Device, Kind
from mrag_eval.platform import name_of_model

DEFAULT_NLLB = "facebook/nllb-200-distilled-600M"
# Backends whose weights are loaded here, with their default models.
DEFAULT_TRANSLATORS = {"nllb": DEFAULT_NLLB}


class _Translator(Kind):
    tag = "backend"
    recorded = "backend model revision path save strict prompt max_tokens num_beams batch_size device check_language"

    backend: str
    check_language: bool = True

    def described(self) -> str:
        """Return a description for messages: the backend and its model or file."""
        keys = self.model_dump()
        model = keys["model"] or DEFAULT_TRANSLATORS.get(self.backend)
        what = keys["path"].name if keys["path"] else model and name_of_model(model)
        return f"{self.backend} {what}" if what else self.backend


class _ByModel(_Translator):
    model: str | None = None
    save: AbsolutePath | None = None


class LmSpec(_ByModel):
    """A model of the config file, ``model``, asked by ``prompt``: a built-in template or a path.

    ``max_tokens`` bounds a reply; longer texts are translated in pieces. ``save``: every translation that is used is
    added to this table, to be run from and passed on. ``check_language``: a translation that a language detector finds
    in another language is not used.
    """

    backend: Literal["lm"]
    model: str = Field(min_length=1, description="a name under 'models' in the config file")
    prompt: str = "plain"
    max_tokens: int | None = Field(default=None, ge=1)


class NllbSpec(_ByModel):
    """An NLLB model: a hub id or a folder, by default the distilled 600M one; ``revision`` is its commit.

    ``max_tokens`` bounds the translation of a sentence (256). ``save`` and ``check_language`` are those of ``lm``.
    """

    backend: Literal["nllb"]
    revision: str | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    num_beams: int = Field(default=1, ge=1)
    batch_size: int = Field(default=16, ge=1)
    device: Device = "cpu"


class GoogleSpec(_ByModel):
    """Google Cloud Translation, by its ``model``; ``save`` and ``check_language`` are those of ``lm``."""

    backend: Literal["google"]


class TableSpec(_Translator):
    """Translations from the JSON Lines file ``path``, or, without one, the benchmark's parallel texts.

    ``strict`` makes a text that is not in it an error.
    """

    backend: Literal["table"]
    path: AbsolutePath | None = None
    strict: bool = False


TranslatorSpec = Annotated[LmSpec | NllbSpec | GoogleSpec | TableSpec, Field(discriminator="backend")]
