"""Annotation of finished runs: labelled copies of their sample files, and the share of relevant documents."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import Measurement
from mrag_eval.core import score_text
from mrag_eval.models import AuxModel, came_back_line, get, summed
from mrag_eval.platform import ConfigError, DataError, number_of
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import (
    config_beside,
    read_samples,
    result_beside,
    results_beside,
    sample_files,
    task_of,
    write_samples,
)
from mrag_eval.report.labels._agreement import HumanLabels, agreement, human_labels, read_human
from mrag_eval.report.labels._documents import (
    Annotator,
    PairLabels,
    Shown,
    annotate,
    documents_of,
    labels_in,
    relevance_shares,
)
from mrag_eval.report.labels._labelled import LabelledPair, LabelledRun, write_labelled
from mrag_eval.report.labels._published import labels_of_a_model

# Prompts behind the labels that come with BordIRlines, by data.annotations.
_PUBLISHED = {"llm_fewshot": "few-shot", "llm_zeroshot": "zero-shot"}


def annotate_files(
    paths: Sequence[Path],
    model: str | AuxModel | Annotator | None,
    output: Path | None,
    *,
    few_shot: bool = True,
    human: Path | None = None,
    labels: Path | None = None,
) -> list[dict[str, Any]]:
    """Label the documents in every sample file at ``paths`` that has some; return one report per file.

    ``model`` is a name in the config file, or the model itself; None counts the labels of ``labels``, BordIRlines'
    ``llm_annotations.tsv``, or else those that the samples already have. ``few_shot``: the model is prompted with
    examples, or its published labels are those with examples.
    The copies go to ``output`` with the run's result file, so that every command that reads samples reads the labelled
    ones, and with a file of the labels, from which ``report --layout bordirlines`` fills its tables. Without a model,
    ``output`` may be left out. ``human`` is a file of people's labels, see
    :func:`mrag_eval.report.labels._agreement.read_human`.

    A task of whose documents the file of people's labels has none is named, and has no agreement.

    Raises DataError if no file shows documents, ConfigError for a model that is not configured, for one together with
    ``labels``, and for an ``output`` that is the samples' folder.
    """
    read = {file: read_samples(file) for file in sample_files(paths)}
    shown = {file: found for file, samples in read.items() if (found := documents_of(samples))}
    if not shown:
        raise DataError("the samples show no documents", "annotate a run that retrieves (--log_samples)")
    if model is not None and labels is not None:
        raise ConfigError(f"--labels {labels} and --model {model}: both label the documents", "name one of them")
    if model is not None and output is None:
        raise ConfigError("labelled samples need a folder to go to", "--output FOLDER")
    if output is not None and any(file.parent.resolve() == output.resolve() for file in shown):
        raise ConfigError(f"--output {output} holds the samples themselves", "name another folder")
    asked = get(model) if isinstance(model, str) else model
    if isinstance(asked, AuxModel):
        asked.check()
    together = [document for found in shown.values() for document in found]
    people = None if human is None else read_human(human, together)
    published = None if labels is None else labels_of_a_model(labels, together, few_shot=few_shot)
    return [
        _annotate_file(file, read[file], shown[file], asked or published, output, few_shot, people) for file in shown
    ]


def _record_beside(file: Path, came_back: Mapping[str, Any]) -> Measurement | None:
    """Return the record of a run, with what came back from the model that labels among its outcome."""
    results = result_beside(file)
    record = None if results is None else results.measurement(task_of(file))
    if record is None or not came_back:
        return record
    return record.adding("outcome", {"seats": summed([record.outcome.get("seats") or {}, came_back])})


def _annotate_file(
    file: Path,
    samples: Sequence[Sample],
    shown: Sequence[Shown],
    by: AuxModel | Annotator | PairLabels | None,
    output: Path | None,
    few_shot: bool,
    human: HumanLabels | None,
) -> dict[str, Any]:
    config, pairs = config_beside(file), {document.pair for document in shown}
    shots = "few-shot" if few_shot else "zero-shot"
    if by is None:
        found, there = labels_in(samples), str(config.data.get("annotations") or "llm_fewshot")
        name, prompts = "labels of the samples", _PUBLISHED.get(there, there)
    elif isinstance(by, PairLabels):
        found = PairLabels({pair: label for pair, label in by.labels.items() if pair in pairs}, {}, 0)
        name, prompts = "published labels", shots
    else:
        found, name, prompts = annotate(shown, by, few_shot=few_shot), getattr(by, "name", type(by).__name__), shots
    people = None if human is None else human_labels({pair: one for pair, one in human.given.items() if pair in pairs})
    if output is not None:
        write_labelled(
            output,
            file,
            LabelledRun(
                task=task_of(file),
                mode=config.mode or "",
                embedder=str(config.data.get("embedder") or ""),
                by=name,
                prompts=prompts,
                pairs=_pairs(shown, found, people),
                measurement=_record_beside(file, found.seats),
            ),
        )
    report: dict[str, Any] = {
        "samples": str(file),
        "output": None if output is None else str(_write(file, samples, found, output)),
        "mode": config.mode,
        "embedder": config.data.get("embedder"),
        "prompts": "labels as they were" if by is None else prompts,
        "rows": len(samples),
        "rows_without": sum(not sample.passages for sample in samples),
        "pairs": len(pairs),
        "labelled": len(found.labels),
        "asked": found.asked,
        "failed": dict(Counter(found.failed.values())),
        "seats": found.seats,
        "relevant": relevance_shares(shown, found.labels),
    }
    if people is not None:
        report["agreement"] = agreement(shown, found.labels, people)
    return report


def _pairs(shown: Sequence[Shown], found: PairLabels, people: HumanLabels | None) -> tuple[LabelledPair, ...]:
    given = {} if people is None else people.given
    return tuple(
        LabelledPair(d.row, d.passage, d.query_lang, d.rank, found.labels.get(d.pair), given.get(d.pair, ()))
        for d in shown
    )


def _write(file: Path, samples: Sequence[Sample], found: PairLabels, output: Path) -> Path:
    """Write a copy of the samples with the labels of the passages, and of the result file to the same folder."""
    labels: dict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
    for (row, passage), label in found.labels.items():
        labels[row][passage] = label.as_labels()
    target = output / file.name
    write_samples(target, [sample.with_labels(labels.get(sample.doc.id, {})) for sample in samples])
    results = results_beside(file)
    if results.is_file():
        shutil.copyfile(results, output / results.name)
    return target


def shown_reports(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return the reports as text, one paragraph per file."""
    return "\n\n".join("\n".join(_lines(report)) for report in reports)


def _lines(report: Mapping[str, Any]) -> list[str]:
    where = " · ".join(str(report[key]) for key in ("mode", "embedder", "prompts") if report[key])
    out = [
        f"{report['output'] or report['samples']}: {where}",
        f"labelled   {report['labelled']:,} of {report['pairs']:,} pairs of question and document",
    ]
    if report["rows_without"]:
        out.append(f"documents  none in {report['rows_without']:,} of {number_of(report['rows'], 'row')}")
    out += [f"failed     {n:,} ({reason})" for reason, n in report["failed"].items()]
    out += [f"came back  {came_back_line(report['seats'])}"] if report["seats"] else []
    overall, by_rank = report["relevant"]["overall"], report["relevant"]["by_rank"]
    relevant = score_text(overall["value"], overall["low"], overall["high"])
    out.append(f"relevant   {relevant}" + (f", n = {overall['n']:,}" if overall["n"] else ""))
    out.append("by rank    " + " ".join(f"{rank}: {score_text(share['value'])}" for rank, share in by_rank.items()))
    views = report["relevant"]["viewpoints"]
    if views:
        out.append(f"support    {', '.join(f'{view} {n:,}' for view, n in views.items())}")
    if report.get("agreement") == {}:
        out.append("people     no label is of a document that this task shows: left out")
    for cell, found in report.get("agreement", {}).items():
        f1 = (found.get("relevance") or {}).get("f1") or {}
        alpha, with_people = (score_text(e.get("value"), scale=1, digits=2) for e in (found["alpha_relevance"], f1))
        out.append(
            f"{cell:<10} {found['before']} labels, {found['after']} without contradictions · "
            f"alpha {alpha} · F1 with people {with_people} (n={found['pairs']})"
        )
    return out
