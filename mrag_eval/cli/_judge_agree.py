"""``mrag-eval judge agree``: the agreement of judges with people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._judge_columns import number, percent, says, says_what
from mrag_eval.cli._options import output_file
from mrag_eval.core import YES_NO, columns, decimal
from mrag_eval.platform import to_json


def agree(
    samples: Annotated[
        list[Path], typer.Argument(metavar="SAMPLES", help="Sample files that were judged; several runs are pooled.")
    ],
    human: Annotated[
        list[Path] | None,
        typer.Option(
            "--human",
            metavar="CSV",
            help="An annotator's labels: columns `id`, `label` (correct or incorrect, else a level of the judges' "
            "scale) and, if any, `debatable` (yes or no). Repeat it for each person.",
        ),
    ] = None,
    write: Annotated[
        Path | None, output_file(metavar="CSV", help="Write a sheet of all judged answers, to be labelled.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the agreement as JSON.")] = False,
) -> None:
    """Compare a panel, and each of its judges, with people.

    Print Cohen's kappa with its 95 % interval, the share of equal verdicts, and the share called correct. With several
    annotators, their labels of an answer count as votes do, and their own agreement is printed (Fleiss' kappa). The
    panel's agreement is also printed by language, and without the answers that a person marked as debatable. Of grades,
    kappa has quadratic weights, and people's agreement is Krippendorff's alpha, as of labels.
    """
    from mrag_eval.report import agreement, write_pooled_sheet

    if not human and write is None:
        raise typer.BadParameter("name people's labels, or --write CSV for a sheet to label", param_hint="--human")
    if write is not None:
        count, scale = write_pooled_sheet(samples, write)
        typer.echo(f"{write}: {count} answers to label", err=True)
        typer.echo(
            f"fill in the column 'label' ({scale.words}), and 'debatable' with yes where one could argue, a copy "
            "for each annotator; save as CSV",
            err=True,
        )
    if not human:
        return
    found = agreement(samples, human)
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False))
        return
    counts = (
        ("unjudged", found.unjudged),
        ("unlabelled", found.unlabelled),
        ("unmatched", found.unmatched),
        ("without a majority", found.split),
    )
    left_out = [f"{n} {what}" for what, n in counts if n]
    typer.echo(f"rows       {found.rows} judged and labelled" + (f" · {', '.join(left_out)}" if left_out else ""))
    what = {"yes/no": " correct", "ordered": " mean grade", "labels": ""}[found.scale.kind]
    typer.echo(f"humans     {says(found.human_correct, found.human_labels)}{what}")
    if found.between_people is not None:
        people = found.between_people
        name, who = ("Fleiss' kappa", "all") if found.scale == YES_NO else ("Krippendorff's alpha", "two")
        typer.echo(f"annotators {found.annotators}, {name} {number(people)} ({people.n} rows that {who} labelled)")
    raters = {"panel": found.panel, **found.judges}
    lines = [("", "kappa", "agreement", says_what(found.scale), "n")]
    lines += [
        (name, number(r.kappa), percent(r.agreement), says(r.correct, r.labels), str(r.kappa.n))
        for name, r in raters.items()
    ]
    typer.echo("\n".join(columns(lines)))
    whys: dict[str, list[str]] = {}
    for name, rater in raters.items():
        if rater.kappa.value is not None and rater.kappa.low is None and rater.kappa.reason:
            whys.setdefault(rater.kappa.reason, []).append(name)
    for why, names in whys.items():
        typer.echo(f"kappa of {', '.join(names)}: {why}")
    if len(found.by_language) > 1 or any(one.share.value for one in found.by_language.values()):
        rows = [("panel", "agreement", "n", "without debatable", "n", "debatable")]
        for cell, one in found.by_language.items():
            every, clear = one.agreement, one.clear
            rows.append((cell, percent(every), str(every.n), percent(clear), str(clear.n), percent(one.share)))
        typer.echo("\n".join(columns(rows)))
    together = found.independence
    if together is not None:
        worth, reason = together.effective_size, together.reason or ""
        said = f"{together.size} judges are {decimal(worth)} independent judges' worth" if worth is not None else reason
        typer.echo(f"together   {said}")
