"""What every translation backend takes and gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be translated; ``source`` and ``target`` are BCP 47 codes of different languages."""

    text: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backend made of a text: its translation, or None and the ``reason``.

    The reason begins with ``missing`` (not in the table), ``unsupported`` (a language that the backend does not have)
    or ``failed``.
    """

    text: str | None
    reason: str | None = None


class Backend(Protocol):
    """Someone who translates."""

    def fingerprint(self, text: Text) -> Any:
        """Everything besides the text and its languages that decides the translation, as JSON; None: not cached."""
        ...

    def identity(self) -> dict[str, Any]:
        """What decides the translations, as a JSON object for results files: by it two runs are compared.

        No place, clock or secret is in it: a file is told by its hash.
        """
        ...

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Outcome]]:
        """``(position, outcome)`` of every text, as they come: what is handed on is on disk before the next comes."""
        ...

    def cost(self) -> dict[str, Any] | None:
        """What was spent on it so far, for results files; None where that is nothing."""
        ...
