"""The commands around judges: judge a finished run, hold a panel against human labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrag_eval.core import to_json

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate
    from mrag_eval.report import Rejudged

judge_app = typer.Typer(help="Judge finished runs, and hold judges against people.", no_args_is_help=True)

_Samples = Annotated[list[Path], typer.Argument(metavar="SAMPLES", help="Sample files (samples_*.jsonl) of runs.")]
_Panel = Annotated[
    list[str] | None,
    typer.Option("--panel", metavar="NAME", help="A model of the config file (repeat, or separate by commas)."),
]
_Repeats = Annotated[int | None, typer.Option(help="How often each judge is asked.")]
_Json = Annotated[bool, typer.Option("--json", help="The scores with the panel's table, one object a file.")]


@judge_app.command(short_help="Judge the sample files of finished runs; nothing is generated again.")
def run(
    samples: _Samples,
    panel: _Panel = None,
    prompt: Annotated[str | None, typer.Option(help="correctness, equivalence, or a template of your own.")] = None,
    tie: Annotated[str | None, typer.Option(help="What an even split means: incorrect or abstain.")] = None,
    language_check: Annotated[str | None, typer.Option(help="none, fasttext or lingua.")] = None,
    repeats: _Repeats = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write (default: judged_ before the name).")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Write the samples with votes and scores to a new file and print the panel's table.

    Settings not given here are those of the run, where its result file lies beside the samples.
    """
    from mrag_eval.report import judge_samples

    settings = {"prompt": prompt, "tie": tie, "language_check": language_check, "repeats": repeats}
    metrics = ("judged_accuracy", "judge_correct", "language_check")
    _judge(judge_samples, samples, output, panel, as_json, settings, metrics)


@judge_app.command(short_help="Whether what finished runs retrieved suffices; nothing is generated or searched again.")
def contexts(
    samples: _Samples,
    panel: _Panel = None,
    country: Annotated[
        str | None, typer.Option(help="Where the questions are asked, if the rows do not say it.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="sufficiency, or a template of your own.")] = None,
    tie: Annotated[str | None, typer.Option(help="What an even split means: incorrect (no) or abstain.")] = None,
    repeats: _Repeats = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write (default: contexts_ before the name).")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Write the samples with context_sufficiency and its votes to a new file and print the panel's table."""
    from mrag_eval.report import judge_contexts

    given = {key: value for key, value in (("country", country), ("prompt", prompt)) if value is not None}
    settings = {"tie": tie, "repeats": repeats, "sufficiency": given or None}
    _judge(judge_contexts, samples, output, panel, as_json, settings, ("context_sufficiency",), on_contexts=True)


def _judge(
    judge: Callable[..., Rejudged],
    samples: Sequence[Path],
    output: Path | None,
    panel: Sequence[str] | None,
    as_json: bool,
    settings: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    on_contexts: bool = False,
) -> None:
    """Judge each file and print its ``metrics``, and the panel's table on its answers or its contexts."""
    if output is not None and len(samples) > 1:
        raise typer.BadParameter("can only be used with a single sample file", param_hint="--output")
    names = [name.strip() for given in panel or () for name in given.split(",") if name.strip()]
    for path in samples:
        done = judge(path, output, panel=names or None, **settings)
        if as_json:
            typer.echo(json.dumps({"output": str(done.path), **done.scores.to_dict()}, ensure_ascii=False))
        else:
            _show(path, done, metrics, on_contexts=on_contexts)


@judge_app.command(short_help="How far a panel, and each of its judges, agrees with human labels.")
def agree(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="A judged sample file.")],
    human: Annotated[
        Path, typer.Option("--human", metavar="CSV", help="Labels: columns id and label (correct/incorrect).")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Print Cohen's kappa against the labels with its 95 % interval, the share of equal verdicts, and leniency."""
    from mrag_eval.report import agreement

    found = agreement(samples, human)
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False))
        return
    counts = (("unjudged", found.unjudged), ("unlabelled", found.unlabelled), ("unmatched", found.unmatched))
    left_out = [f"{n} {what}" for what, n in counts if n]
    typer.echo(f"rows       {found.rows} judged and labelled" + (f" · {', '.join(left_out)}" if left_out else ""))
    typer.echo(f"humans     {_percent(found.human_correct)} correct")
    raters = {"panel": found.panel, **found.judges}
    lines = [("", "kappa", "agreement", "says correct", "n")]
    lines += [
        (name, _number(r.kappa), _percent(r.agreement), _percent(r.correct), str(r.kappa.n))
        for name, r in raters.items()
    ]
    _print_columns(lines)
    together = found.independence
    if together is not None and together.effective_size is None:
        typer.echo(f"together   {together.reason or ''}")
    elif together is not None:
        worth = f"{together.effective_size:.1f} independent judges' worth"
        typer.echo(f"together   {together.size} judges are {worth}")


def _show(source: Path, done: Rejudged, metrics: Sequence[str], *, on_contexts: bool = False) -> None:
    from mrag_eval.scoring import panel_line

    scores = done.scores
    table = scores.sufficiency if on_contexts else scores.judge
    assert table is not None, "a panel is required"
    what, says = ("contexts", "says sufficient") if on_contexts else ("answers", "says correct")
    typer.echo(f"{source.name}: {panel_line(table, what)}")
    for name in metrics:
        if name in scores.metrics:
            score = scores.metrics[name]
            typer.echo(f"{name:<16} {_percent(score)}  n = {score.n}")
        elif name in scores.unscored:
            typer.echo(f"{name:<16} unscored: {', '.join(scores.unscored[name])}")
    lines = [("judge", says, "abstained", "model")]
    for seat, judge in table.judges.items():
        reasons = ", ".join(f"{count} {reason}" for reason, count in judge.abstained.items())
        lines.append((seat, _percent(judge.correct), reasons or "0", judge.model))
    _print_columns(lines)
    if table.agreement is not None:
        kappas = {f"kappa {pair}": kappa for pair, kappa in table.agreement.pairwise.items()}
        kappas["Fleiss' kappa"] = table.agreement.fleiss
        _print_columns([(name, _number(value)) for name, value in kappas.items()])
    for seat, judge in table.judges.items():
        if judge.self_preference is not None:
            excess = _percent(judge.self_preference)
            typer.echo(f"{seat} is of the evaluated model's family: {excess} points above the other judges")
    typer.echo(f"samples    {done.path}")


def _percent(estimate: Estimate) -> str:
    return _shown(estimate, 100, 1)


def _number(estimate: Estimate) -> str:
    return _shown(estimate, 1, 2)


def _shown(estimate: Estimate, scale: float, digits: int) -> str:
    if estimate.value is None:
        return f"- ({estimate.reason or 'undefined'})"
    text = f"{scale * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"


def _print_columns(lines: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
