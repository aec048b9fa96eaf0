"""Declaration of a benchmark: its questions, its files, and the breakdowns of its scores.

    HUB = HubDataset(id="google/xquad", licence="CC-BY-SA-4.0")
    BENCHMARK = Declaration(name="xquad", title="XQuAD", asks="...", sources=(HUB,), ...)

The loader reads ids and revisions from these records; exports, the summary of a run, the documentation and ``mrag-eval
tasks`` read the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mrag_eval.config import CORRECT, HOLDS_ANSWER, MODES
from mrag_eval.core import base_language, is_language, normalize_language
from mrag_eval.platform import read_yaml

# Requirements for the user: a connection for the first run, own files, an index of a corpus, models that judge.
Need = Literal["download", "files", "index", "judge"]
# Keys of a user's own rows that scores are broken down by, unless ``data.breakdowns`` names others.
OWN_BREAKDOWNS = ("resource_group", "country", "category", "q_type", "a_type", "crossdoc_type", "subset")
_COMMIT = r"^[0-9a-f]{40}$"
_REPOSITORY = r"^[\w.-]+/[\w.-]+$"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _Source(_Record):
    """Files under one licence: an SPDX identifier, or None if none is stated.

    ``note`` qualifies the licence. ``setting`` is the key for a local copy. ``megabytes`` is the approximate size of
    what is read of it; None where that is unknown.
    """

    licence: str | None = Field(pattern=r"^[A-Za-z0-9.+-]+$")
    note: str = ""
    setting: str = "data.path"
    megabytes: float | None = None

    @property
    def terms(self) -> str:
        """Return the licence with its qualification."""
        return (self.licence or "no licence stated") + (f" ({self.note})" if self.note else "")


class HubDataset(_Source):
    """A dataset on the Hugging Face hub. ``revision`` is the commit to read; None reads the newest one."""

    id: str = Field(pattern=_REPOSITORY)
    revision: str | None = Field(default=None, pattern=_COMMIT)

    @property
    def url(self) -> str:
        """Return the page of the dataset, at the pinned revision if there is one."""
        return f"https://huggingface.co/datasets/{self.id}" + (f"/tree/{self.revision}" if self.revision else "")


class GitHubFiles(_Source):
    """Files of a GitHub repository at one commit."""

    id: str = Field(pattern=_REPOSITORY)
    revision: str = Field(pattern=_COMMIT)

    @property
    def url(self) -> str:
        """Return the address of the repository at that commit."""
        return f"https://github.com/{self.id}/tree/{self.revision}"


class WebFile(_Source):
    """One file on the web."""

    url: str = Field(pattern=r"^https://")


class PackagedFiles(_Source):
    """Files shipped with this package."""

    url: str = ""


DataSource = HubDataset | GitHubFiles | WebFile | PackagedFiles


class Citation(_Record):
    """A paper; ``key`` is its BibTeX key in the README of the task folder."""

    key: str
    authors: str
    title: str
    venue: str
    year: int = Field(ge=1990, le=2100)
    url: str = Field(pattern=r"^https://")


class LanguageGroups(_Record):
    """Groups of languages that scores are broken down by: what they are called, and the members of each, in order."""

    called: str = ""
    members: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)

    def of(self, code: str) -> str | None:
        """Return the group of a language, whatever its script; None for any other code."""
        key = base_language(code) if is_language(code) else code
        return next((name for name, members in self.members.items() if key in members), None)


class Declaration(_Record):
    """One benchmark.

    ``sources`` begin with that of the questions, whose licence is the benchmark's. ``shareable`` allows its texts to be
    redistributed. ``languages`` are those of the questions, BCP 47. ``breakdowns`` are keys of a row's ``extra`` that
    scores are broken down by. ``papers`` are BibTeX keys, that on the data first. ``published`` names files of
    published figures (``mrag_eval/report/published``), ``tasks`` the folder of its tasks.

    ``main_metric`` is the headline, ``metrics`` are those that follow it, ``modes`` the IR modes in the paper's order,
    ``groups`` those of its languages, ``names`` modes and metrics in words. Every view and export reads these alone.

    ``own`` holds values of the ``data:`` block for which the rows are the user's: their licence is unknown, and nothing
    is declared about them. With an empty mapping they always are; with None they never are.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = Field(min_length=1)
    asks: str = Field(min_length=1, max_length=80, pattern=r"^[^\n]*[^\n.]$")
    sources: tuple[DataSource, ...]
    shareable: bool
    languages: tuple[str, ...]
    breakdowns: tuple[str, ...] = ()
    main_metric: str | None = None
    metrics: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    groups: LanguageGroups = LanguageGroups()
    names: Mapping[str, str] = Field(default_factory=dict)
    papers: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    tasks: str | None = None
    own: Mapping[str, str] | None = None

    @model_validator(mode="after")
    def _check(self) -> Declaration:
        if self.shareable and self.licence is None:
            raise ValueError(f"{self.name}: texts without a licence may not be passed on: shareable=False")
        for code in self.languages:
            if normalize_language(code) != code:
                raise ValueError(f"{self.name}: language '{code}' is written '{normalize_language(code)}'")
        for key in ("languages", "breakdowns", "published", "needs", "metrics", "modes"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"{self.name}: '{key}' names something twice")
        if self.tasks is not None and not (self.sources and self.languages and self.main_metric):
            raise ValueError(f"{self.name}: a benchmark with tasks has sources, languages and a main metric")
        return self

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Return the papers, from ``papers.yaml``."""
        return tuple(Citation(key=key, **_papers()[key]) for key in self.papers)

    @property
    def summary(self) -> str:
        """Return title and question in one line."""
        return f"{self.title}: {self.asks}"

    @property
    def licence(self) -> str | None:
        """Return the SPDX identifier of the questions' licence; None if none is stated."""
        return self.sources[0].licence if self.sources else None

    @property
    def hub(self) -> str | None:
        """Return the hub dataset of the questions; None if they have another source."""
        first = self.sources[0] if self.sources else None
        return first.id if isinstance(first, HubDataset) else None

    def in_order(self, metrics: Iterable[str]) -> list[str]:
        """Return metrics, each once: the headline, those that follow it, and the others as they come."""
        place = {name: number for number, name in enumerate((self.main_metric, *self.metrics))}
        return sorted(dict.fromkeys(metrics), key=lambda name: place.get(name, len(place)))

    def place_of_mode(self, mode: str | None) -> tuple[int, str]:
        """Return the sort key of an IR mode: in the paper's order, and the others as the package lists them."""
        known, name = tuple(dict.fromkeys((*self.modes, *MODES))), mode or "no_ir"
        return known.index(name) if name in known else len(known), name

    def is_own(self, data: Mapping[str, Any]) -> bool:
        """Return whether the rows of this ``data:`` block are the user's own."""
        return self.own is not None and all(data.get(key) == value for key, value in self.own.items())

    def breakdowns_of(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keys that scores of this ``data:`` block are broken down by unless it names others."""
        return OWN_BREAKDOWNS if self.is_own(data) else self.breakdowns


# What is known of rows of a user's own, and of logs: metrics that say whether an answer is right go first.
OWN_ROWS = Declaration(
    name="own",
    title="Your own rows",
    asks="questions of yours",
    sources=(),
    shareable=False,
    languages=(),
    metrics=tuple(dict.fromkeys((*CORRECT, *HOLDS_ANSWER))),
    names={"given": "the passages of each row"},
    own={},
)


@cache
def _papers() -> Any:
    return read_yaml(Path(__file__).with_name("papers.yaml"), as_text=True)
