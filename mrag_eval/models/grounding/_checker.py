"""The protocol of what tells whether the passages shown support the claims of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mrag_eval.core import Claim, Span
from mrag_eval.platform import OPTIONAL


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer to check: its ``claims`` are spans in it, ``passages`` the texts shown, in prompt order.

    ``lang`` is the language of the question, ``langs`` are those of the passages, where they are asked for.
    """

    question: str
    answer: str
    claims: tuple[Span, ...]
    passages: tuple[str, ...]
    lang: str = field(default="", metadata=OPTIONAL)
    langs: tuple[str, ...] = field(default=(), metadata=OPTIONAL)


class Checker(Protocol):
    """One way to tell what the passages say of each claim of an answer.

    ``identity`` is everything that decides its findings. Findings of an answer depend on nothing but the answer, its
    question and its passages.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def findings(self, asked: Sequence[Asked]) -> list[tuple[Claim, ...] | str]:
        """Return the claims of each answer with their verdicts, or the fault (``reason: detail``) that left it without.

        A passage is given by its place from 1; its id and language are not known here.
        """
        ...
