"""The declaration of an export, and what every export is given and returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mrag_eval.report.exports._runs import Run


@dataclass(frozen=True)
class Sender:
    """The sender of a record: an organisation, its relation to the model's makers, and the model's availability.

    If ``deployment`` or ``availability`` is None, it is derived from the harness's model type, as far as possible.
    """

    organization: str = "unspecified"
    relationship: str = "other"
    deployment: str | None = None
    availability: str | None = None


@dataclass(frozen=True)
class Options:
    """The options of an export.

    ``output`` is a folder, or a file for a format of one file; the default is in ``export/``. ``card``: an existing
    model card to put figures into. ``dataset``: the dataset on the hub that ``.eval_results`` refer to. ``push``: the
    repository on the hub to open a pull request in. ``command_of`` returns the command that repeats the run of a result
    file.
    """

    output: Path | None = None
    metrics: tuple[str, ...] = ()
    card: Path | None = None
    dataset: str | None = None
    source_url: str | None = None
    sender: Sender = field(default_factory=Sender)
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
    ``one_model``: all runs must be of one model. ``texts``: the texts of the samples are written, too.
    """

    name: str
    help: str
    write: Callable[[Sequence[Run], Path, Options], Written]
    file: str | None = None
    repo_type: str | None = None
    one_model: bool = False
    texts: bool = False

    @property
    def for_leaderboards(self) -> bool:
        """Return whether the files are for a leaderboard, and so take whole runs only."""
        return self.repo_type is not None
