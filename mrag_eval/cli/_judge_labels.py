"""The commands on labels of people: ``mrag-eval judge agree``, ``judge correct`` and ``judge inspect``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._options import NewFile, command
from mrag_eval.core import YES_NO, VerdictScale, columns, decimal, score_text
from mrag_eval.platform import Count, Natural, number_of, to_json

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate
    from mrag_eval.scoring import HumanAgreement, SupportAgreement


def percent(estimate: Estimate, scale: float = 100.0, digits: int = 1) -> str:
    """Return an estimate with its interval in percent, or the reason why it is undefined."""
    reason = f"- ({estimate.reason or 'undefined'})"
    return score_text(estimate.value, estimate.low, estimate.high, scale=scale, digits=digits, undefined=reason)


def says(correct: Estimate, labels: Mapping[str, Estimate]) -> str:
    """Return the share of "correct" or the mean grade of a judge, or the share of each label."""
    return " · ".join(f"{label} {percent(share)}" for label, share in labels.items()) or percent(correct)


def says_what(scale: VerdictScale) -> str:
    """Return the title of a column of :func:`says`."""
    return {"yes/no": "says correct", "ordered": "mean grade", "labels": "says"}[scale.kind]


def number(estimate: Estimate) -> str:
    """Return an estimate with its interval, with two digits, or the reason why it is undefined."""
    return percent(estimate, 1.0, 2)


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


@command()
def correct(
    run: list[Path],
    *,
    labels: Path | None = None,
    write: NewFile | None = None,
    n: Count = 200,
    seed: Natural = 0,
    metric: str = "judge_correct",
    form: str = "md",
) -> None:
    """Correct a judge's rate by a small sample that people labelled, for every task (IR mode) and language.

    The errors of the judge and of the sample are in the 95 % interval: prediction-powered inference with power tuning
    (PPI++), and the estimator of Rogan and Gladen. --write draws the rows to label at random: a few of every language,
    then in proportion to its rows.

    Args:
        run (RUN): Judged sample files of a run, or folders that contain them.
        labels (CSV): People's labels: columns `id` and `label` (correct or incorrect).
        write (CSV): Write the next rows to label to this file.
        n: With --write: number of rows to label.
        seed: With --write: random seed of the order of rows.
        metric: The judge's metric to correct: judge_correct, judged_accuracy or another of 0 and 1.
        form (--format): Print the rates as md, csv or json.
    """
    from mrag_eval.report import corrected_table, read_labels_of, read_verdicts, render, write_label_sheet

    if labels is None and write is None:
        raise typer.BadParameter("name people's labels, or --write CSV for a sheet to label", param_hint="--labels")
    runs = read_verdicts(run, metric)
    people = None if labels is None else read_labels_of(labels, runs)
    if people is not None:
        typer.echo(render([corrected_table(runs, people)], form))
    if write is not None:
        drawn = write_label_sheet(runs, write, n=n, seed=seed, people=people)
        by_language = ", ".join(f"{task} {language or 'no language'} {k}" for (task, language), k in drawn.items())
        typer.echo(f"{write}: {sum(drawn.values())} rows to label ({by_language}), seed {seed}", err=True)
        typer.echo("fill in the column 'label' (correct or incorrect), save as CSV", err=True)


@command("samples n seed per_language wrong task output read triage form", "mrag_eval.report:write_inspection")
def inspect(
    samples: list[Path] | None = None,
    *,
    output: NewFile = Path("inspection.csv"),
    read: Path | None = None,
    triage: bool = False,
    form: str = "md",
    **draw: Any,
) -> None:
    """Write a sheet on which people note what is wrong with predictions, in the categories of the mRAG paper's Table 8.

    With --read SHEET, the counts by language and category are printed with intervals. The exit code is 1 if rows of the
    sheet are lost, altered or not filled in. With --triage, the categories are those of XRAG's section 5.2, and the
    counts are shares of all judged answers, so that --read also takes the samples.

    Args:
        samples (SAMPLES): Sample files, or folders that contain them (--log_samples).
        output (-o): The sheet to write, as CSV.
        read (SHEET): Count a sheet that people have filled in.
        triage: Sort every answer of people (judge people) that is incorrect: misjudged, wrong or noisy.
        form (--format): With --read: print the counts as md, csv or json.
    """
    if triage:
        _triage(samples, read, output, form)
        return
    if (read is None) == (not samples):
        raise typer.BadParameter("name the samples to draw from, or --read SHEET, and not both", param_hint="SAMPLES")
    if read is not None:
        from mrag_eval.report import inspection_table, read_inspection, render

        found = read_inspection(read)
        typer.echo(render([inspection_table(found)], form))
        raise typer.Exit(0 if found.complete else 1)
    from mrag_eval.report import write_inspection

    drawn = write_inspection(samples or [], output, **draw)
    counts = Counter(one.language or "no language" for one in drawn)
    by_language = ", ".join(f"{language} {count}" for language, count in sorted(counts.items()))
    typer.echo(f"{output}: {len(drawn)} predictions ({by_language}), seed {draw['seed']}")
    typer.echo("fill in the column 'categories' (numbers as in the column 'legend', 0: nothing to note), save as CSV")
    typer.echo(f"next       mrag-eval judge inspect --read {output}")


def _triage(samples: list[Path] | None, read: Path | None, output: Path, form: str) -> None:
    from mrag_eval.report import read_triage, render, write_triage

    if not samples:
        raise typer.BadParameter("name the judged answers: people_samples_*.jsonl", param_hint="SAMPLES")
    if read is None:
        drawn = write_triage(samples, output)
        typer.echo(f"{output}: {len(drawn)} incorrect answers")
        typer.echo("fill in the column 'categories' (one number of the column 'legend'), save as CSV")
        typer.echo(f"next       mrag-eval judge inspect {' '.join(map(str, samples))} --triage --read {output}")
        return
    table, complete = read_triage(read, samples)
    typer.echo(render([table], form))
    raise typer.Exit(0 if complete else 1)
