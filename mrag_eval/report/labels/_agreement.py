"""Agreement of a model's labels with people's (BordIRlines, Tables 6, 7 and 9)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.datasets import NOT_RELEVANT, Label, majority, read_relevance, read_table, read_viewpoint
from mrag_eval.platform import DataError
from mrag_eval.report.labels._documents import Pair, Shown
from mrag_eval.report.labels._published import published_labels


@dataclass(frozen=True)
class HumanLabels:
    """People's labels.

    ``given``: pair -> labels as given, in the file's order. ``labels``: the majority of those without contradictions,
    for each question by itself.
    """

    given: Mapping[Pair, tuple[Label, ...]]
    labels: Mapping[Pair, Label]


def read_human(path: Path, shown: Sequence[Shown]) -> HumanLabels:
    """Return people's labels from a CSV or TSV file with columns row, passage, relevant and (for territories)
    viewpoint, or from BordIRlines' ``human_annotations.tsv`` (by its columns).

    One line per annotator. ``shown`` are the documents of all runs. Raises DataError for a pair that none of them
    shows, and for an invalid label. The published file has labels of every question's documents: those that are not
    shown are left out, and it is an error if none is left.
    """
    if _published(path):
        return human_labels(published_labels(path, "human", shown))
    claimants = {document.pair: document.claimants for document in shown}
    given: dict[Pair, list[Label]] = defaultdict(list)
    for number, row in read_table(path, ("row", "passage", "relevant")):
        where, pair = f"{path}, row {number}", (row["row"], row["passage"])
        if pair not in claimants:
            raise DataError(
                f"{where}: no run shows passage '{pair[1]}' for row '{pair[0]}'",
                "label passages that the runs show: mrag-eval judge documents SAMPLES writes them",
            )
        relevant = read_relevance(row["relevant"], where)
        view = read_viewpoint(row.get("viewpoint", ""), claimants[pair], where) if claimants[pair] else ""
        given[pair].append(Label(relevant, view))
    return human_labels(given)


def _published(path: Path) -> bool:
    if path.suffix != ".tsv" or not path.is_file():
        return False
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        return {"query_id", "doc_id"} <= set(lines.readline().rstrip("\r\n").split("\t"))


def human_labels(given: Mapping[Pair, Sequence[Label]]) -> HumanLabels:
    """Return people's labels with their majorities."""
    found = {pair: label for pair, labels in given.items() if (label := majority(labels)) is not None}
    return HumanLabels({pair: tuple(labels) for pair, labels in given.items()}, found)


def agreement(shown: Sequence[Shown], model: Mapping[Pair, Label], human: HumanLabels) -> dict[str, Any]:
    """Return agreement by language of the question, and over all (cell ``all``).

    Each cell counts the pairs with labels, and those that keep one after contradictory labels were dropped (Table 6),
    the same of single labels, and holds people's agreement (Krippendorff's alpha, Table 7) and the model's with their
    majority (F1, Table 9). ``relevance`` is the F1 of the label relevant; ``viewpoint`` the plain mean of F1 over the
    labels, ``viewpoint_confusion`` the counts of :func:`viewpoint_confusion`.
    """
    language = {document.pair: document.query_lang for document in shown}
    cells: dict[str, list[Pair]] = defaultdict(list)
    for pair in human.given:
        cells["all"].append(pair)
        cells[language[pair]].append(pair)
    return {
        cell: agreement_on(pairs, model, human)
        for cell, pairs in sorted(cells.items(), key=lambda c: (c[0] != "all", c))
    }


def agreement_on(pairs: Sequence[Pair], model: Mapping[Pair, Label], human: HumanLabels) -> dict[str, Any]:
    """Return the agreement on some pairs, one cell of :func:`agreement`."""
    sound = {pair: [label for label in human.given[pair] if not label.contradictory] for pair in pairs}
    both = [pair for pair in pairs if pair in model and pair in human.labels]
    viewed = [pair for pair in both if model[pair].viewpoint and human.labels[pair].viewpoint]
    relevance = [(model[pair].relevant, human.labels[pair].relevant) for pair in both]
    counts = Counter(relevance)
    out: dict[str, Any] = {
        "pairs_before": len(pairs),
        "pairs_after": sum(map(bool, sound.values())),
        "before": sum(len(human.given[pair]) for pair in pairs),
        "after": sum(map(len, sound.values())),
        "pairs": len(both),
        "confusion": {
            "true_positive": counts[True, True],
            "true_negative": counts[False, False],
            "false_positive": counts[True, False],
            "false_negative": counts[False, True],
        },
        "viewpoint_confusion": viewpoint_confusion([(model[pair], human.labels[pair]) for pair in viewed]),
        "alpha_relevance": _alpha([[label.relevant for label in labels] for labels in sound.values()]),
    }
    if relevance:
        out["relevance"] = _f1(relevance, True)
    views = [[label.viewpoint for label in sound[pair]] for pair in pairs]
    if any(view for row in views for view in row):
        out["alpha_viewpoint"] = _alpha(views)
    if viewed:
        out["viewpoint"] = _f1([(model[pair].viewpoint, human.labels[pair].viewpoint) for pair in viewed], None)
    return out


def viewpoint_confusion(pairs: Sequence[tuple[Label, Label]]) -> dict[str, int]:
    """Return the counts behind the F1 of viewpoints for pairs of a model's and people's label.

    A viewpoint is a claimant or Neutral. True positive: both name the same. False positive: the model names one, and
    people name another or none. False negative: people name one, and the model none. Pairs without any viewpoint are
    not counted: BordIRlines' Table 9 sets the true negatives to 0. The rest of the scheme is ours: the paper does not
    say how it counts, and its counts are not those of a viewpoint for each document found relevant (section H.2).
    """
    counts = dict.fromkeys(("true_positive", "true_negative", "false_positive", "false_negative"), 0)
    for model, people in pairs:
        if model.viewpoint != NOT_RELEVANT:
            counts["true_positive" if model.viewpoint == people.viewpoint else "false_positive"] += 1
        elif people.viewpoint != NOT_RELEVANT:
            counts["false_negative"] += 1
    return counts


def _alpha(ratings: Sequence[Sequence[Any]]) -> dict[str, Any]:
    from mrag_eval.metrics import krippendorff_alpha

    width = max(map(len, ratings), default=0)
    return krippendorff_alpha([[*row, *[None] * (width - len(row))] for row in ratings]).as_dict()


def _f1(pairs: Sequence[tuple[Any, Any]], label: Any) -> dict[str, Any]:
    """Return the F1 of one label if it is named, else the mean over labels."""
    from mrag_eval.metrics import label_f1

    found = label_f1([a for a, _ in pairs], [b for _, b in pairs])
    if label is None:
        return {"macro_f1": found.macro_f1.as_dict(), "f1": {str(k): v.as_dict() for k, v in found.f1.items()}}
    if label not in found.f1:
        return {"f1": None, "reason": "the label is used by neither"}
    return {"precision": found.precision[label], "recall": found.recall[label], "f1": found.f1[label].as_dict()}
