"""Interface of the translation backends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Text:
    """A text to translate; ``source`` and ``target`` are BCP 47 codes of different languages."""

    text: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Translated:
    """A backend's result for a text: its translation, or None and the ``reason``.

    The reason begins with ``missing`` (not in the table), ``unsupported`` (a language that the backend lacks) or
    ``failed``. One that is ``kept`` was replied in an earlier run.
    """

    text: str | None
    reason: str | None = None
    kept: bool = False


class Backend(Protocol):
    """A translation backend."""

    def fingerprint(self, text: Text) -> Any:
        """Return everything besides the text and its languages that affects the translation, as JSON; None: not
        cached.
        """
        ...

    def identity(self) -> dict[str, Any]:
        """Return everything that affects the translations, as a JSON object for results files, by which runs are
        compared.

        It contains no path, time or secret: a file is identified by its hash.
        """
        ...

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
        """Yield ``(position, outcome)`` of every text as it arrives; each is on disk before the next is requested."""
        ...

    def cost(self) -> dict[str, Any] | None:
        """Return the cost so far, for results files; None if there is none."""
        ...
