"""The record of a family of models: how its publisher feeds queries and passages, and reads the output.

A wrong prompt, pooling or template does not fail but retrieves worse. A recipe holds all that a family needs, with its
source; the code that loads models reads nothing else about them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from mrag_eval.platform import from_json, read_yaml

# The tables, each a file of this folder.
Table = Literal["embedders", "rerankers"]

_SLOT = re.compile(r"\{(instruct|instruction|query|passage)\}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One family of embedders or rerankers.

    ``pattern`` is searched in a model's name in lower case. ``longest`` is the publisher's limit in tokens.
    ``custom_code`` marks models that run only with the code of their repository (``trust_remote_code``).

    Embedders: ``query`` and ``passage`` are put before the texts; ``{instruction}`` in ``query`` is ``instruction``.
    ``prompt_names`` are the names of both in the model's own configuration. ``pooling`` None keeps the model's own.
    ``tasks`` are the values for queries and passages of the argument ``task`` (an adapter) or of an API's field.

    Rerankers: an input is the tokens of ``pieces`` one after another, each tokenized alone. ``{instruct}`` is the text
    of that field if there is an instruction, else nothing. A pair's score is the logit of the first answer at the last
    token, minus that of the second, if there is one. With ``lists`` the model reads all passages of a query at once.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    family: str
    pattern: str
    source: str
    licence: str
    longest: int | None = None
    custom_code: bool = False
    instruction: str | None = None
    query: str = ""
    passage: str = ""
    prompt_names: tuple[str, str] = ("query", "document")
    pooling: Literal["cls", "mean", "lasttoken"] | None = None
    similarity: Literal["cosine", "dot"] = "cosine"
    tasks: tuple[str, str] | None = None
    pieces: tuple[str, ...] = ()
    instruct: str = ""
    answers: tuple[str, ...] = ()
    lists: bool = False

    @property
    def instructable(self) -> bool:
        """Return whether the family takes an instruction."""
        return "{instruction}" in self.query + self.instruct

    def query_prefix(self, instruction: str | None = None) -> str:
        """Return the text before a query, with ``instruction`` or the family's own."""
        return filled(self.query, instruction=instruction or self.instruction or "")

    def texts(self, query: str, passage: str, instruction: str | None = None) -> list[str]:
        """Return the pieces of a reranker's input, filled in."""
        asked = instruction or self.instruction
        instruct = filled(self.instruct, instruction=asked) if asked else ""
        return [filled(piece, instruct=instruct, query=query, passage=passage) for piece in self.pieces]


def filled(template: str, **values: str) -> str:
    """Return ``template`` with its slots filled; braces in the values stay as they are."""
    return _SLOT.sub(lambda slot: values[slot[1]], template)


@cache
def recipes(table: Table) -> tuple[Recipe, ...]:
    """Return the recipes of a table, in the order in which their patterns are tried."""
    path = Path(__file__).with_name(f"{table}.yaml")
    rows = enumerate(read_yaml(path, as_text=True), start=1)
    return tuple(from_json(Recipe, row, f"{path}, recipe {n}", "correct the file") for n, row in rows)


def recipe_of(table: Table, model: str) -> Recipe | None:
    """Return the first recipe whose pattern is in a model's name, ignoring case and organisation, or None."""
    name = model.lower()
    return next((recipe for recipe in recipes(table) if re.search(recipe.pattern, name)), None)
