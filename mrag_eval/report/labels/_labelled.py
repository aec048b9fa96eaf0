"""Labelled documents of a run as a file, from which a paper's tables on labels are filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mrag_eval.config import Condition, Measurement
from mrag_eval.datasets import Label
from mrag_eval.platform import OPTIONAL, content_key
from mrag_eval.report.files._records import records_in, write_record

_FIX = "write it again: mrag-eval judge documents SAMPLES --output FOLDER"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A question and a document that was shown for it.

    ``label`` is the model's (None without one), ``people`` are the annotators', as given.
    """

    row: str
    passage: str
    query_lang: str
    rank: int
    label: Label | None = None
    people: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """The labelled pairs of one task of one run.

    ``by`` names the model that labelled, or says where the labels were read. ``prompts`` is ``zero-shot`` or
    ``few-shot`` (``human`` for people's labels in the samples). ``measurement`` is the record of the run whose
    documents they are, None if it has none.
    """

    task: str
    mode: str
    embedder: str
    by: str
    prompts: str
    pairs: tuple[LabelledPair, ...]
    measurement: Measurement | None = field(default=None, metadata=OPTIONAL)

    @property
    def condition(self) -> Condition:
        """Return what the run's prompts show; without a record, what its mode shows."""
        return Condition.of({} if self.measurement is None else self.measurement.setting, self.mode)


def write_labelled(folder: Path, samples: Path, run: LabelledRun) -> None:
    """Write the labels next to the labelled copy of ``samples``; each labeller with each prompt has its own file."""
    labeller = content_key([run.by, run.prompts])[:8]
    write_record(folder / f"labels_{samples.stem.removeprefix('samples_')}_{labeller}.json", run)


def read_labelled(paths: Sequence[Path]) -> list[LabelledRun]:
    """Return the labelled runs in the folders among ``paths``, in the order of their names.

    Raises DataError for a file that is not one of labels, and for a faulty key.
    """
    return records_in(paths, "labels_*.json", LabelledRun, _FIX)
