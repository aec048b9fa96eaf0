"""``mrag-eval judge agree``: the agreement of judges, and of checkers of support, with people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mrag_eval.cli._judge_columns import number, percent, says, says_what
from mrag_eval.cli._options import NewFile, command
from mrag_eval.core import YES_NO, columns, decimal
from mrag_eval.platform import number_of, to_json

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate
    from mrag_eval.scoring import HumanAgreement, SupportAgreement

# Ids of labels without an answer that are named.
_MOST = 3


@command()
def agree(
    samples: list[Path], *, human: list[Path] | None = None, write: NewFile | None = None, as_json: bool = False
) -> None:
    """Compare a panel and each of its judges, or a checker of support, with people.

    Print Cohen's kappa with its 95 % interval, the share of equal verdicts, and the share called correct. With several
    annotators, their labels of an answer count as votes do, and their own agreement is printed (Fleiss' kappa). The
    panel's agreement is also printed by language, and without the answers that a person marked as debatable. Of grades,
    kappa has quadratic weights, and people's agreement is Krippendorff's alpha, as of labels.

    Labels of sentences are compared with the claims of the same answers: balanced accuracy, kappa, and the share called
    supported. Labels of spans are compared by character, in each answer: F1 and IoU. Both are printed by language.

    Args:
        samples (SAMPLES): Sample files that were judged or checked; several runs are pooled.
        human (FILE): An annotator's labels: a CSV file with the columns `id`, `label` (correct or incorrect, else a
            level of the judges' scale) and, if any, `debatable` (yes or no). Repeat it for each person. Or labels of
            sentences or spans: a file of MEMERAG or PsiloQA, as published.
        write (CSV): Write a sheet of all judged answers, to be labelled.
        as_json (--json): Print the agreement as JSON.
    """
    from mrag_eval.report import agreement, of_whole_answers, support_agreement, write_pooled_sheet

    if not human and write is None:
        raise typer.BadParameter("name people's labels, or --write CSV for a sheet to label", param_hint="--human")
    if write is not None:
        count, scale = write_pooled_sheet(samples, write)
        typer.echo(f"{write}: {number_of(count, 'answer')} to label", err=True)
        typer.echo(
            f"fill in the column 'label' ({scale.words}), and 'debatable' with yes where one could argue, a copy "
            "for each annotator; save as CSV",
            err=True,
        )
    if not human:
        return
    found: HumanAgreement | SupportAgreement
    if of_whole_answers(human):
        found = support_agreement(samples, human)
        lines = _of_checker(found)
    else:
        found = agreement(samples, human)
        lines = _of_panel(found)
    typer.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False) if as_json else "\n".join(lines))


def _of_panel(found: HumanAgreement) -> Iterator[str]:
    counts = {"unjudged": found.unjudged, "unlabelled": found.unlabelled, "unmatched": found.unmatched}
    yield _rows(f"{found.rows} judged and labelled", {**counts, "without a majority": found.split})
    what = {"yes/no": " correct", "ordered": " mean grade", "labels": ""}[found.scale.kind]
    yield f"humans     {says(found.human_correct, found.human_labels)}{what}"
    kind = ("Fleiss' kappa", "row", "all") if found.scale == YES_NO else ("Krippendorff's alpha", "row", "two")
    yield from _between(found.annotators, found.between_people, *kind)
    raters = {"panel": found.panel, **found.judges}
    lines = [("", "kappa", "agreement", says_what(found.scale), "n")]
    lines += [
        (name, number(r.kappa), percent(r.agreement), says(r.correct, r.labels), str(r.kappa.n))
        for name, r in raters.items()
    ]
    yield from columns(lines)
    yield from _without_interval("kappa", {name: rater.kappa for name, rater in raters.items()})
    if len(found.by_language) > 1 or any(one.share.value for one in found.by_language.values()):
        rows = [("panel", "agreement", "n", "without debatable", "n", "debatable")]
        for cell, one in found.by_language.items():
            every, clear = one.agreement, one.clear
            rows.append((cell, percent(every), str(every.n), percent(clear), str(clear.n), percent(one.share)))
        yield from columns(rows)
    together = found.independence
    if together is not None:
        worth, reason = together.effective_size, together.reason or ""
        said = f"{together.size} judges are {decimal(worth)} independent judges' worth" if worth is not None else reason
        yield f"together   {said}"


def _of_checker(found: SupportAgreement) -> Iterator[str]:
    named = ", ".join([*found.unmatched[:_MOST], *["..."][: len(found.unmatched) - _MOST]])
    sentences = f", {number_of(found.sentences, 'sentence')}" if found.human_supported is not None else ""
    counts = {**found.left_out, f"unmatched ({named})": len(found.unmatched)}
    yield _rows(f"{found.rows} checked and labelled{sentences}", counts)
    if found.human_supported is not None:
        yield f"humans     {percent(found.human_supported)} supported"
    yield from _between(found.annotators, found.between_people, "Fleiss' kappa", "sentence", "all")
    (first, *_) = found.by_language.values()
    lines = [("", *(name.replace("_", " ") for name in first), "n")]
    for cell, of in found.by_language.items():
        values = (number(one) if name == "kappa" else percent(one) for name, one in of.items())
        lines.append((cell, *values, str(next(iter(of.values())).n)))
    yield from columns(lines)
    for name in first:
        yield from _without_interval(name.replace("_", " "), {cell: of[name] for cell, of in found.by_language.items()})


def _rows(compared: str, counts: Mapping[str, int]) -> str:
    left_out = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    return f"rows       {compared}" + (f" · {left_out}" if left_out else "")


def _between(annotators: int, people: Estimate | None, name: str, noun: str, who: str) -> Iterator[str]:
    """Yield the agreement of several annotators."""
    if people is not None:
        yield f"annotators {annotators}, {name} {number(people)} ({number_of(people.n, noun)} that {who} labelled)"


def _without_interval(measure: str, found: Mapping[str, Estimate]) -> Iterator[str]:
    """Yield why estimates have no interval, and of whom."""
    whys: dict[str, list[str]] = {}
    for name, one in found.items():
        if one.value is not None and one.low is None and one.reason:
            whys.setdefault(one.reason, []).append(name)
    for why, names in whys.items():
        yield f"{measure} of {', '.join(names)}: {why}"
