"""The ``prompt`` block: a template and its length limit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from mrag_eval.config._block import Block


class Prompt(Block):
    """The ``prompt`` block: a template (built-in name, or a path to a file) and its length limit.

    ``system`` replaces the template's system text: a name of :func:`mrag_eval.prompts.system_prompts`, literal text, or
    a path to a file. ``name_language`` adds the name of the answer's language ("German") to a prompt whose paper asks
    for the language of the question. ``max_tokens`` bounds the whole prompt; without it the limit is the evaluated
    model's context less the tokens to generate. ``answer`` says where the answer is in the reply: all of it
    (``plain``), inside ``<answer>`` (``tag``), on the last line that reads ``Answer: ...`` (``line``), anywhere as a
    choice (``choice``), or behind ``Chosen Option:`` (``citation``); by default as the built-in template asks.
    ``thinking`` is what opens and closes the thinking of a model whose marks are not known.
    """

    template: str = "short_answer"
    system: str | None = None
    name_language: bool = False
    max_tokens: int | None = Field(default=None, ge=1)
    answer: Literal["plain", "tag", "line", "choice", "citation"] | None = None
    thinking: tuple[str, str] | None = None

    @field_validator("thinking")
    @classmethod
    def _has_marks(cls, value: tuple[str, str] | None) -> tuple[str, str] | None:
        if value is not None and not all(mark.strip() for mark in value):
            raise PydanticCustomError("marks", "a mark is empty; write what opens thinking and what closes it")
        return value
