"""Outcome of a review: the majority's verdict on every question, and the annotators' agreement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from mrag_eval.building.review._review import (
    PASSING,
    Annotation,
    Annotations,
    Holds,
    ReviewItem,
    read_reviews,
    write_review,
)
from mrag_eval.core import majority_of, score_text
from mrag_eval.platform import DataError, number_of

NOT_REVIEWED = "not reviewed"
SPLIT = "annotators split"
CORRECTIONS_DIFFER = "corrections differ"


@dataclass(frozen=True, slots=True)
class Decision:
    """The annotators' decision on one item.

    ``answer`` is the final answer, or None if the item does not pass; ``reason`` then gives the cause. ``holds`` is the
    majority's label for each document, None without a majority of more than half.
    """

    answer: str | None
    corrected: bool
    reason: str | None
    holds: tuple[Holds | None, ...]

    @property
    def passed(self) -> bool:
        return self.answer is not None


@dataclass(frozen=True)
class Review:
    """Result of a review: a decision on every item, the counts, and the agreement (JSON objects)."""

    decisions: Mapping[str, Decision]
    counts: Mapping[str, Any]
    agreement: Mapping[str, Mapping[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "agreement": {k: dict(v) for k, v in self.agreement.items()}}

    def lines(self) -> list[str]:
        """Return lines for the screen: items that passed, reasons for the others, and agreement, each with its n."""
        counts = self.counts
        passed, corrected = counts["accepted"] + counts["corrected"], counts["corrected"]
        out = [
            f"reviewed   {counts['reviewed']:,} of {counts['items']:,} questions by {', '.join(counts['annotators'])}",
            f"passed     {passed:,} ({corrected:,} with a corrected answer)",
        ]
        if counts["dropped"]:
            out.append("dropped    " + ", ".join(f"{n:,} {reason}" for reason, n in counts["dropped"].items()))
        for name, n in counts["missing"].items():
            empty = n - counts["incomplete"].get(name, 0)
            if empty:
                out.append(f"missing    {number_of(empty, 'question')} without a row of {name}, or with an empty one")
        for name, n in counts["incomplete"].items():
            out.append(f"incomplete {number_of(n, 'row')} of {name}, counted as not reviewed")
        out += [f"agreement  {name}: {_shown(figures)}" for name, figures in self.agreement.items()]
        return out


def review(paths: Sequence[Path], items: Sequence[ReviewItem]) -> Review | None:
    """Write the sheet if it does not exist and return None, else read it and return the review.

    If several sheets are given, all must exist. Raises DataError as
    :func:`~mrag_eval.building.review._review.read_reviews`.
    """
    new = sheet_to_write(paths)
    if new is None:
        return outcome(read_reviews(paths, items))
    write_review(new, items)
    return None


def sheet_to_write(paths: Sequence[Path]) -> Path | None:
    """Return the sheet that does not exist yet, None if all do; raise DataError if one of several does not."""
    absent = next((path for path in paths if not path.exists()), None)
    if absent is not None and len(paths) > 1:
        raise DataError(f"{absent}: no such sheet", "name one new sheet to write, or the filled-in sheets")
    return absent


def reviewed(paths: Sequence[Path], items: Sequence[ReviewItem]) -> Review:
    """Return the review of sheets that exist already."""
    found = review(paths, items)
    if found is None:
        raise DataError(f"{paths[0]} was removed during the build", "run the command again")
    return found


def outcome(annotations: Annotations) -> Review:
    """Return the majority's decision on every item, and the annotators' agreement on every question they answered."""
    by_item: dict[str, list[Annotation]] = defaultdict(list)
    for annotation in annotations.given:
        by_item[annotation.item].append(annotation)
    decisions = {item.id: _decision(item, by_item[item.id]) for item in annotations.items}
    passed = [decision for decision in decisions.values() if decision.passed]
    counts: dict[str, Any] = {
        "items": len(decisions),
        "reviewed": sum(bool(by_item[name]) for name in decisions),
        "accepted": sum(not decision.corrected for decision in passed),
        "corrected": sum(decision.corrected for decision in passed),
        "dropped": dict(Counter(decision.reason for decision in decisions.values() if decision.reason)),
        "annotators": list(annotations.annotators),
        "missing": dict(annotations.missing),
        "incomplete": dict(annotations.incomplete),
        "notes": sum(bool(annotation.note) for annotation in annotations.given),
    }
    return Review(decisions, counts, agreement(annotations) if len(annotations.annotators) > 1 else {})


def _decision(item: ReviewItem, given: Sequence[Annotation]) -> Decision:
    """Decide on one item: more than half must pass it, and a majority of these keeps or corrects the answer."""
    holds = tuple(
        majority_of([found for a in given if (found := a.holds[i]) is not None]) for i in range(len(item.documents))
    )
    if not given:
        return Decision(None, False, NOT_REVIEWED, holds)
    verdicts = Counter(annotation.verdict for annotation in given)
    passing = sum(verdicts[verdict] for verdict in PASSING)
    if 2 * passing <= len(given):
        rejected = majority_of([annotation.verdict for annotation in given])
        return Decision(None, False, rejected or ("rejected" if passing * 2 < len(given) else SPLIT), holds)
    if verdicts["accepted"] > verdicts["corrected"]:
        return Decision(item.answer, False, None, holds)
    if verdicts["accepted"] == verdicts["corrected"]:
        return Decision(None, False, SPLIT, holds)
    corrections = Counter(" ".join(a.correction.split()) for a in given if a.verdict == "corrected").most_common(2)
    if len(corrections) > 1 and corrections[0][1] == corrections[1][1]:
        return Decision(None, False, CORRECTIONS_DIFFER, holds)
    return Decision(corrections[0][0], True, None, holds)


def crossdoc_type(holds: Sequence[Holds | None]) -> int | None:
    """Return XRAG's label of two documents.

    0: one of them suffices; 1: one does and the other supports it; 2: each contains part of the answer. None if an
    answerable question cannot have these labels (nothing in either), or if a label is missing.
    """
    said = Counter(holds)
    if len(holds) != 2 or None in said:
        return None
    if said["sufficient"]:
        return 0 if said["none"] else 1
    return 2 if said["some"] == 2 else None


# ------------------------------------------------------------------------------------------------------- agreement


def agreement(annotations: Annotations, *, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return agreement by question of the sheet: share of agreeing pairs, Krippendorff's alpha, and Cohen's kappa for
    two annotators.

    Only items for which two annotators answered that question count. Every figure has its n and an interval that
    resamples items, or the reason why it is undefined. ``passes`` is the agreement on whether the item passes, with or
    without a correction.
    """
    documents = max(len(item.documents) for item in annotations.items)
    asked: dict[str, Callable[[Annotation], Any]] = {
        "natural": lambda a: a.natural,
        "answerable": lambda a: a.answerable,
        "correct": lambda a: a.correct,
        **{f"document_{i + 1}_holds": _document_holds(i) for i in range(documents)},
        "passes": lambda a: a.verdict in PASSING,
    }
    places = {name: i for i, name in enumerate(annotations.annotators)}
    out = {}
    for name, of in asked.items():
        ratings: dict[str, list[Any]] = {item.id: [None] * len(places) for item in annotations.items}
        for annotation in annotations.given:
            ratings[annotation.item][places[annotation.annotator]] = of(annotation)
        out[name] = _figures(list(ratings.values()), annotations.annotators, seed)
    return out


def _document_holds(i: int) -> Callable[[Annotation], Holds | None]:
    return lambda annotation: annotation.holds[i] if i < len(annotation.holds) else None


def _figures(ratings: Sequence[Sequence[Any]], annotators: Sequence[str], seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import cohen_kappa, interval_for, krippendorff_alpha

    pairs = [
        (row, a == b)
        for row, labels in enumerate(ratings)
        for a, b in combinations(labels, 2)
        if a is not None and b is not None
    ]
    figures: dict[str, Any] = {
        "items": len({row for row, _ in pairs}),
        "pairs": len(pairs),
        "agreeing": interval_for(
            [float(same) for _, same in pairs],
            groups=[str(row) for row, _ in pairs] if len(annotators) > 2 else None,
            seed=seed,
            bounds=(0.0, 1.0),
        ).as_dict(),
    }
    figures["alpha"] = krippendorff_alpha(ratings, seed=seed).as_dict()
    if len(annotators) == 2:
        first, second = zip(*ratings, strict=True)
        figures["kappa"] = cohen_kappa(first, second, seed=seed).as_dict()
    return figures


def _shown(figures: Mapping[str, Any]) -> str:
    share = figures["agreeing"]
    agreeing = score_text(share["value"], share["low"], share["high"])
    parts = ["no item with two labels" if share["value"] is None else f"agreeing {agreeing}"]
    for name in ("alpha", "kappa"):
        found = figures.get(name)
        if found is not None:
            why = f"undefined ({found.get('reason')})"
            parts.append(f"{name} {score_text(found['value'], scale=1, digits=2, undefined=why)}")
    return f"{', '.join(parts)} (n={figures['items']:,})"
