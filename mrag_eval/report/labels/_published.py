"""The labels in BordIRlines' own files, as those of the documents that a run shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from mrag_eval.datasets import (
    AnnotatedBy,
    AskedRow,
    Label,
    names_of_document,
    read_published_labels,
    read_relevance,
    read_viewpoint,
)
from mrag_eval.platform import DataError
from mrag_eval.report.labels._documents import Pair, PairLabels, Shown


def published_labels(path: Path, who: AnnotatedBy, shown: Sequence[Shown]) -> Mapping[Pair, list[Label]]:
    """Return the labels in ``human_annotations.tsv`` or ``llm_annotations.tsv`` of the documents that a run shows.

    The file has labels of every question's documents: those that the run does not show are left out. Raises DataError
    if none is left, for a file without the columns of ``who``, and for an invalid label.
    """
    by_name: dict[tuple[str, str], dict[Pair, Shown]] = defaultdict(dict)
    for document in shown:
        for name in names_of_document(document.passage.partition(":")[2]):
            by_name[document.row, name][document.pair] = document
    rows = {d.row: AskedRow(d.row, d.territory, d.query_lang, d.query) for d in shown if d.claimants}
    given: dict[Pair, list[Label]] = defaultdict(list)
    for line in read_published_labels(path, who, list(rows.values())):
        for pair, document in by_name.get((line.row, line.document), {}).items():
            relevant = read_relevance(line.relevant, line.where)
            view = read_viewpoint(line.viewpoint, document.claimants, line.where, document.options)
            given[pair].append(Label(relevant, view))
    if not given:
        raise DataError(
            f"{path}: no label is of a document that the run shows",
            "name a run of BordIRlines on its published documents (bordirlines_qlang_direct_openai, ...)",
        )
    return given


def labels_of_a_model(path: Path, shown: Sequence[Shown], *, few_shot: bool) -> PairLabels:
    """Return the published labels of a model, one for each document: the last, as when the data are read."""
    given = published_labels(path, "llm_fewshot" if few_shot else "llm_zeroshot", shown)
    return PairLabels({pair: labels[-1] for pair, labels in given.items()}, {}, 0)
