"""Interface of the benchmark loaders: the record they return, and the check of their ``data:`` block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, get_args

from pydantic import Field, field_validator

from mrag_eval.config import AbsolutePath, Block, Names, validated
from mrag_eval.core import Passage, RagDoc
from mrag_eval.datasets._declaration import Declaration
from mrag_eval.datasets._imbalance import Imbalance
from mrag_eval.datasets._origin import Declared, Origin, source_record
from mrag_eval.datasets._published import Published
from mrag_eval.platform import ConfigError, did_you_mean


@dataclass(frozen=True)
class Benchmark:
    """A loaded benchmark.

    ``corpus`` holds the passages supplied with the questions (None if there are none), ``published`` the search results
    supplied with them (``retrieval.corpus: published``). ``notes`` are one-line facts for the log (counts, rows left
    out). ``origin`` says what was read, and where; ``declared`` what is known of the rows beforehand. ``parallel``
    holds texts with equal meaning in several languages (language -> text, one mapping per question or document).
    ``breakdowns`` are the keys of ``extra`` that scores are broken down by. ``english``: row id -> the first answer in
    English, where the file has it beside the row.
    """

    name: str
    docs: list[RagDoc]
    corpus: list[Passage] | None = None
    notes: tuple[str, ...] = ()
    origin: Origin = field(default_factory=Origin, repr=False)
    published: Published | None = None
    parallel: Sequence[Mapping[str, str]] = field(default=(), repr=False)
    breakdowns: tuple[str, ...] = ()
    english: Mapping[str, str] = field(default_factory=dict, repr=False)
    declared: Declared | None = field(default=None, repr=False)

    @cached_property
    def source(self) -> dict[str, Any]:
        """Return the record of rows and documents, for the results; hashed when it is first asked for."""
        return source_record(self.origin, self.declared or Declared(self.name), self.docs, self.corpus)


@dataclass(frozen=True)
class Expected:
    """What is known of the rows of a ``data:`` block before they are read, from the published counts: approximate.

    ``rows`` is None where the number is unknown. ``languages`` are those of the questions, ``culture`` those of the
    cultures they are about. ``given_tokens`` is the mean length of the passages that come with a row. ``unread`` are
    declared sources, by their settings, that this block does not read.
    """

    rows: int | None = None
    languages: tuple[str, ...] = ()
    culture: tuple[str, ...] = ()
    given_tokens: int = 0
    unread: tuple[str, ...] = ()


# Dimensions of every summary, if the rows know them.
_ALWAYS = ("query_lang", "doc_lang", "pair", "gold_first", "gold_last", "withheld")


class DataBlock(Block):
    """Keys of every benchmark's ``data:`` block.

    ``imbalance`` keeps one language version of each document (:class:`~mrag_eval.datasets._imbalance.Imbalance`); only
    benchmarks that have several accept it. ``share`` keeps this share of the questions, drawn by ``seed``
    (:func:`~mrag_eval.datasets._share.shared`), and all passages. ``breakdowns`` are the keys of the rows that scores
    are broken down by, if they differ from those that the benchmark declares.
    """

    benchmark: str
    path: AbsolutePath | None = None
    split: str | None = None
    revision: str | None = None
    seed: int = Field(default=0, ge=0)
    imbalance: Imbalance | None = None
    share: float | None = Field(default=None, gt=0, le=1)
    # the rows, and the passages retrieved for them, do not depend on it
    breakdowns: Names | None = Field(default=None, exclude=True)

    @field_validator("breakdowns")
    @classmethod
    def _free_names(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        taken = next((key for key in value or () if key in _ALWAYS), None)
        if taken is not None:
            raise ValueError(f"scores are always broken down by '{taken}': leave it out")
        return value


BlockT = TypeVar("BlockT", bound=DataBlock)


@dataclass(frozen=True)
class LoaderSpec:
    """A benchmark's declaration, the model of its ``data:`` block, and the function that reads it.

    ``versions`` marks a benchmark whose documents may exist in several languages, for ``imbalance`` to draw from.
    ``expected`` tells what is known of a block's rows before any file is read. ``published`` gives the numbers of the
    published rows that a block reads, by part, before anything is drawn from them; ``documents`` those of the
    documents. They are None, or give None, where no rows were published, or their number is unknown.
    """

    declaration: Declaration
    block: type[DataBlock]
    load: Callable[[Any], Benchmark]
    versions: bool = False
    expected: Callable[[Any], Expected] | None = None
    published: Callable[[Any], Mapping[str, int] | None] | None = None
    documents: Callable[[Any], Mapping[str, int] | None] | None = None


def validate_block(model: type[BlockT], data: Mapping[str, Any]) -> BlockT:
    """Check a ``data:`` block against its loader's model.

    Raises ConfigError that names the key and the allowed keys or values.
    """
    for key, known in model.model_fields.items():
        if known.is_required() and key not in data and not data.keys() - model.model_fields.keys():
            values = [str(value) for value in get_args(known.annotation) if isinstance(value, str)]
            raise ConfigError(
                f"data (benchmark '{data.get('benchmark')}'): '{key}' is missing"
                + (f"; one of {', '.join(values)}" if values else ""),
                f"name it: --metadata data.{key}={next(iter(values), 'VALUE')}",
            )
    return validated(model, data, f"data (benchmark '{data.get('benchmark')}')", joint=": ")


def one_of(key: str, value: str | None, allowed: Iterable[str]) -> str | None:
    """Return ``value`` if it is None or among ``allowed``; else raise ConfigError with the nearest allowed value."""
    names = tuple(allowed)
    if value is not None and value not in names:
        hint = did_you_mean(value, names)
        raise ConfigError(
            f"data: {key} = '{value}' is not one of its values{hint}",
            f"allowed: {', '.join(names)}" if "did you mean" in hint else None,
        )
    return value


def option_facts(choices: Sequence[str]) -> dict[str, bool]:
    """Return ``extra`` for options that share a text (scoring counts them as one); empty if all differ."""
    return {} if len(set(choices)) == len(choices) else {"equal_choices": True}
