"""The commands for judges, whether models or people."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._judge_labels import agree, correct, inspect, number, percent, says, says_what
from mrag_eval.cli._options import App, NewFile, command
from mrag_eval.core import YES_NO, columns
from mrag_eval.platform import Count, Natural, number_of

if TYPE_CHECKING:
    from mrag_eval.report import Rejudged
    from mrag_eval.scoring import PanelTable


# Each of these three takes the options that the commands share.
_PANEL = "mrag_eval.cli._judge:_judge"


@command("samples panel prompt scale reply tie language_check repeats output dry_run as_json", _PANEL)
def answers(
    samples: list[Path],
    *,
    prompt: str | None = None,
    scale: str | None = None,
    reply: str | None = None,
    language_check: str | None = None,
    **settings: Any,
) -> None:
    """Judge the answers of finished runs; no answer is generated again.

    The samples are written to a new file with votes and scores, and the panel's table is printed. Beside its results
    the verdicts are part of the run for reports, comparisons, the gate and exports. Settings that you omit come from
    the run, if its result file is in the same folder.

    Args:
        scale (LEVELS): The verdicts that the prompt asks for: grades, worst first (0,1,2), labels:NAME,NAME, or yes/no.
        reply (json|tag): The form of the verdict, by default the one that the prompt asks for.
        language_check: How to check the language of answers: none, fasttext or lingua.
    """
    from mrag_eval.report import judge_samples

    settings |= {"prompt": prompt, "scale": _scale(scale), "reply": reply, "language_check": language_check}
    _judge(judge_samples, samples, **settings)


@command("samples panel prompt tie repeats output dry_run as_json", _PANEL)
def claims(samples: list[Path], *, prompt: str | None = None, **settings: Any) -> None:
    """Judge whether the passages of finished runs support the claims of their answers; no answer is generated again.

    The samples are written to a new file with votes and the metric grounded, and the panel's table is printed. Beside
    its results the verdicts are part of the run for reports, comparisons, the gate and exports, as those on answers
    are. Settings that you omit come from the run, if its result file is in the same folder.
    """
    from mrag_eval.report import judge_claims

    own = {"by": "panel", **({} if prompt is None else {"prompt": prompt})}
    _judge(judge_claims, samples, grounded=own, **settings)


@command("samples panel country prompt tie repeats output dry_run as_json", _PANEL)
def passages(
    samples: list[Path],
    *,
    country: str | None = None,
    prompt: str | None = None,
    **settings: Any,
) -> None:
    """Judge whether the passages of finished runs suffice to answer the question; nothing is retrieved again.

    The samples are written to a new file with votes and the metric context_sufficiency, and the panel's table is
    printed. Beside its results the verdicts are part of the run, as those on answers are.

    Args:
        country: The country in which the questions are asked, if the samples do not say it.
    """
    from mrag_eval.report import judge_contexts

    given = {key: value for key, value in (("country", country), ("prompt", prompt)) if value is not None}
    _judge(judge_contexts, samples, sufficiency=given or None, **settings)


def _judge(
    judge: Callable[..., Rejudged],
    samples: Sequence[Path],
    *,
    panel: list[str] | None = None,
    output: NewFile | None = None,
    dry_run: bool = False,
    as_json: bool = False,
    tie: str | None = None,
    repeats: Count | None = None,
    **settings: Any,
) -> None:
    """Judge each file and print its metrics, and the panel's table.

    Exit with 1 if a judge gave no vote, or no row of a file has the metric that is judged.

    Args:
        output (-o): The file to write. The default adds `judged_` to the name of the samples.
        dry_run: Print how many requests the judges would be sent, and ask nobody.
        as_json (--json): Print one JSON object per file: its scores and the panel's table.
        tie: The verdict if the panel is split evenly: incorrect (the answer is no, a claim is not found) or abstain (no
            verdict).
        repeats: Number of times that each judge is asked.
    """
    from mrag_eval.report import sample_files
    from mrag_eval.scoring import lost_headline, panel_of

    files = sample_files(samples, judged=False)
    if output is not None and len(files) > 1:
        raise typer.BadParameter("can only be used with a single sample file", param_hint="--output")
    names = names_in(panel)
    silent: dict[str, None] = {}
    lost: list[str] = []
    for path in files:
        done = judge(path, output, dry_run=dry_run, panel=names, tie=tie, repeats=repeats, **settings)
        if dry_run:
            kept, sent = done.requests
            judges = panel_of(done.panel.judges)
            typer.echo(f"{path.name}: {kept + sent:,} requests to {judges}: {kept:,} from cache, {sent:,} to be sent")
            continue
        if as_json:
            told = {"output": str(done.path), **done.scores.to_dict(), "seats": done.seats}
            typer.echo(json.dumps(told, ensure_ascii=False))
        else:
            show(path, done)
        silent |= dict.fromkeys(done.silent)
        if (metric := lost_headline(done.scores, done.metrics, None)) is not None:
            lost.append(f"{path.name}: no row has its main metric, {metric}")
    if silent:
        lost.append(f"no vote was given by {', '.join(silent)}; judge again when they answer")
    if lost:
        typer.echo("\n".join(lost), err=True)
        raise typer.Exit(1)


def names_in(panel: Sequence[str] | None) -> list[str] | None:
    """Return the judges that the option names; None for those of the run."""
    return [name.strip() for given in panel or () for name in given.split(",") if name.strip()] or None


def _scale(levels: str | None) -> Any:
    """Return the setting ``judge.scale`` that the option means; None without it."""
    if levels in (None, YES_NO.kind):
        return levels
    kind, _, names = levels.rpartition(":")
    found = [int(name) if name.lstrip("-").isdecimal() else name for name in map(str.strip, names.split(","))]
    return {kind: found} if kind else found


def show(source: Path, done: Rejudged) -> None:
    """Print the scores of judged samples, and the table of their panel."""
    from mrag_eval.models import came_back_line
    from mrag_eval.scoring import panel_line

    scores, table = done.scores, done.panel
    column = "says sufficient" if done.about == "contexts" else says_what(table.scale)
    typer.echo(f"{source.name}: {panel_line(table, done.about)}")
    width = max(16, *map(len, done.metrics))
    for name in done.metrics:
        if name in scores.metrics:
            score = scores.metrics[name]
            typer.echo(f"{name:<{width}} {percent(score)}  n = {score.n}")
        elif name in scores.unscored:
            typer.echo(f"{name:<{width}} unscored: {', '.join(scores.unscored[name])}")
    typer.echo("\n".join(table_lines(table, column)))
    if done.seats:
        typer.echo(f"came back  {came_back_line(done.seats)}")
    typer.echo(f"samples    {done.path}")


def table_lines(table: PanelTable, column: str) -> list[str]:
    """Return the table of a panel: what each judge says, which of them abstained, and how far they agree."""
    lines = [("judge", column, "abstained", "model")]
    for seat, judge in table.judges.items():
        reasons = ", ".join(f"{count} {reason}" for reason, count in judge.abstained.items())
        lines.append((seat, says(judge.correct, judge.labels), reasons or "0", judge.model))
    out = columns(lines)
    if table.agreement is not None:
        kappas = {f"kappa {pair}": kappa for pair, kappa in table.agreement.pairwise.items()}
        kappas |= table.agreement.of_all
        out += columns([(name, number(value)) for name, value in kappas.items()])
    for seat, judge in table.judges.items():
        if judge.self_preference is not None:
            excess = percent(judge.self_preference)
            out.append(f"{seat} is of the evaluated model's family: {excess} points above the other judges")
    return out


@command()
def people(
    samples: list[Path],
    *,
    write: NewFile | None = None,
    n: Count = 200,
    seed: Natural = 0,
    answers: Path | None = None,
    panel: list[str] | None = None,
) -> None:
    """Measure people's accuracy: write the questions and their supporting passages to a sheet, and have a panel judge
    the answers that come back, as it judges a model's.

    The judged answers are written beside the samples. `mrag-eval judge inspect --triage` sorts the incorrect ones.

    Args:
        samples (SAMPLES): Sample files, or folders that contain them (--log_samples).
        write (CSV): Write a sheet of questions for people to answer.
        n: With --write: number of questions.
        seed: With --write: random seed of the draw.
        answers (CSV): The sheet with people's answers, to be judged.
    """
    if (write is None) == (answers is None):
        raise typer.BadParameter(
            "name a sheet to write, or one with answers (--answers), not both", param_hint="--write"
        )
    if write is not None:
        from mrag_eval.report import write_questions

        drawn = write_questions(samples, write, n=n, seed=seed)
        typer.echo(f"{write}: {number_of(len(drawn), 'question')}, seed {seed}")
        typer.echo("fill in the column 'answer' in the question's language, save as CSV")
        typer.echo(f"next       mrag-eval judge people {' '.join(map(str, samples))} --answers {write}")
        return
    from mrag_eval.report import judge_people

    assert answers is not None, "one of the two"
    for done in judge_people(samples, answers, panel=names_in(panel)):
        show(answers, done)
        typer.echo(f"next       mrag-eval judge inspect {done.path} --triage -o triage.csv")


@command()
def documents(
    samples: list[Path],
    *,
    model: str | None = None,
    output: Path | None = None,
    labels: Path | None = None,
    zero_shot: bool = False,
    human: Path | None = None,
    as_json: bool = False,
) -> None:
    """Label the documents that finished runs retrieved: relevant or not, and whose claim they support.

    The labelled samples are written to new files, and the share of relevant documents is printed by rank.

    Args:
        samples (SAMPLES): Sample files, or folders that contain them (--log_samples).
        model: The model of the config file that labels. The default counts the labels in the samples.
        output (-o): Folder for the labelled samples.
        labels (FILE): Count the published labels of the llm_annotations.tsv of BordIRlines, with its queries.tsv in the
            same folder, instead of those in the samples.
        zero_shot: Prompt the model without examples, or count its published labels so made.
        human (FILE): People's labels to compare with: a CSV with columns row, passage, relevant, viewpoint, or the
            human_annotations.tsv of BordIRlines with its queries.tsv in the same folder.
        as_json (--json): Print the counts as JSON.
    """
    from mrag_eval.platform import check_output
    from mrag_eval.report import annotate_files, shown_reports

    if output is not None:
        check_output(output, "--output")
    reports = annotate_files(samples, model, output, few_shot=not zero_shot, human=human, labels=labels)
    typer.echo(json.dumps(reports, indent=2, ensure_ascii=False) if as_json else shown_reports(reports))


@command("places model task questions seed human write as_json", "mrag_eval.report:rewrites_report")
def rewrites(
    places: list[Path],
    *,
    model: str | None = None,
    human: list[Path] | None = None,
    write: NewFile | None = None,
    as_json: bool = False,
    **draw: Any,
) -> None:
    """Count the planner's rewritten queries, and the shares that narrow, paraphrase or expand, by people or a model.

    Args:
        model: The model of the config file that labels. The default only counts the rewrites.
        human (CSV): A person's labels: columns previous, rewritten, label. Give one file per person. Those on which all
            agree are final, and their shares are printed; two or more people are also compared with each other.
        write (CSV): Write the pairs of queries to this file, for people to label.
        as_json (--json): Print the counts as JSON.
    """
    from mrag_eval.report import rewrites_report, shown_report

    report = rewrites_report(places, model, people=human or (), write=write, **draw)
    typer.echo(json.dumps(report, indent=2, ensure_ascii=False) if as_json else shown_report(report))


judge_app = App(
    help="Judge answers, claims, passages and queries of finished runs, by models or by people.", no_args_is_help=True
)
judge_app.command(short_help="Judge the answers of finished runs by a panel of models.")(answers)
judge_app.command(short_help="Judge whether the passages support the claims of answers.")(claims)
judge_app.command(short_help="Judge whether the retrieved passages suffice to answer.")(passages)
judge_app.command(short_help="Label the retrieved documents: relevant or not, whose claim.")(documents)
judge_app.command(short_help="Label the queries that the agents' planner rewrote.")(rewrites)
judge_app.command(short_help="Measure how far judges agree with people.")(agree)
judge_app.command(short_help="Correct a judge's rate by a sample of people's labels.")(correct)
judge_app.command(short_help="Write predictions to a sheet for people, and count it.")(inspect)
judge_app.command(short_help="Let people answer the questions, and judge their answers.")(people)
