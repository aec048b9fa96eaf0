"""The declaration of an export, and what every export is given and returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.report.exports._runs import Run


@dataclass(frozen=True)
class Options:
    """The options of an export.

    Attributes:
        output: The folder or file to write to. The default is the folder export/, or a file in it.
        metrics: those to export, the main one first; by default all.
        card: With model-index: the README.md to add it to.
        dataset: With eval-results: the dataset on the hub that the scores belong to, as ORG/NAME.
        source_url: A web address at which the results are published.
        organization: With eee: the organization that publishes the record.
        relationship: With eee: the evaluator's relationship to the model developer (first_party, third_party, ...).
        deployment: With eee: how the model was served, self_deployed or externally_managed.
        availability: With eee: whether the model is open_weights or closed_weights.
        include_text: Include texts even if their licence does not clearly allow redistribution.
        bold: With latex: set the best model of each task in bold.
        push: Open a pull request in this repository on the hub.
        command_of: returns the command that repeats the run of a result file.
    """

    output: Path | None = None
    metrics: tuple[str, ...] = ()
    card: Path | None = None
    dataset: str | None = None
    source_url: str | None = None
    organization: str = "unspecified"
    relationship: str = "other"
    deployment: str | None = None
    availability: str | None = None
    include_text: bool = False
    bold: bool = False
    push: str | None = None
    command_of: Callable[[Path], str] = str


@dataclass(frozen=True)
class Written:
    """The files of an export, notes on them, and the address of the pull request, if one was opened."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    sent: str | None = None

    @classmethod
    def together(cls, parts: Iterable[Written]) -> Written:
        """Return the files and notes of several exports, each once."""
        found = list(parts)
        files = dict.fromkeys(file for part in found for file in part.files)
        return cls(tuple(files), tuple(dict.fromkeys(note for part in found for note in part.notes)))


@dataclass(frozen=True)
class Export:
    """Declare an export: its name for ``--format``, one line of help, and the function that writes it.

    ``write`` gets the runs, the place to write to, and the options. The place is a folder, or a file if ``file`` gives
    its default name. ``repo_type`` is the kind of repository on the hub that takes the files; None: they are not sent.
    Files that are sent become entries of leaderboards, which a run of a part of the rows is not.
    ``one_model``: all runs must be of one model. ``ranked``:
    others rank the figures, so that none is written that its samples contradict, or that is no headline of a system.
    """

    name: str
    help: str
    write: Callable[[Sequence[Run], Path, Options], Written]
    file: str | None = None
    repo_type: str | None = None
    one_model: bool = False
    ranked: bool = True
