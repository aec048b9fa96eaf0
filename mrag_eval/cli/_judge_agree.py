"""``mrag-eval judge agree``: the agreement of judges with people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._judge_columns import number, percent
from mrag_eval.core import columns, decimal, to_json


def agree(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="A sample file that was judged.")],
    human: Annotated[
        Path,
        typer.Option(
            "--human", metavar="CSV", help="People's labels: columns `id` and `label` (correct or incorrect)."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the agreement as JSON.")] = False,
) -> None:
    """Compare a panel, and each of its judges, with people.

    Print Cohen's kappa with its 95 % interval, the share of equal verdicts, and the share called correct.
    """
    from mrag_eval.report import agreement

    found = agreement(samples, human)
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False))
        return
    counts = (("unjudged", found.unjudged), ("unlabelled", found.unlabelled), ("unmatched", found.unmatched))
    left_out = [f"{n} {what}" for what, n in counts if n]
    typer.echo(f"rows       {found.rows} judged and labelled" + (f" · {', '.join(left_out)}" if left_out else ""))
    typer.echo(f"humans     {percent(found.human_correct)} correct")
    raters = {"panel": found.panel, **found.judges}
    lines = [("", "kappa", "agreement", "says correct", "n")]
    lines += [
        (name, number(r.kappa), percent(r.agreement), percent(r.correct), str(r.kappa.n)) for name, r in raters.items()
    ]
    typer.echo("\n".join(columns(lines)))
    together = found.independence
    if together is not None:
        worth, reason = together.effective_size, together.reason or ""
        said = f"{together.size} judges are {decimal(worth)} independent judges' worth" if worth is not None else reason
        typer.echo(f"together   {said}")
