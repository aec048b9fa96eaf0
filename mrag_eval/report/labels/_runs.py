"""Annotation of finished runs: labelled copies of their sample files, and the share of relevant documents."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import Measurement
from mrag_eval.core import score_text
from mrag_eval.models import AuxModel, get
from mrag_eval.platform import ConfigError, DataError
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
from mrag_eval.report.labels._agreement import HumanLabels, agreement, read_human
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

    Raises DataError if no file shows documents, ConfigError for a model that is not configured, for one together with
    ``labels``, and for an ``output`` that is the samples' folder.
    """
    files = [file for file in sample_files(paths) if _shows_documents(file)]
    if not files:
        raise DataError("the samples show no documents", "annotate a run that retrieves (--log_samples)")
    if model is not None and labels is not None:
        raise ConfigError(f"--labels {labels} and --model {model}: both label the documents", "name one of them")
    if model is not None and output is None:
        raise ConfigError("labelled samples need a folder to go to", "--output FOLDER")
    if output is not None and any(file.parent.resolve() == output.resolve() for file in files):
        raise ConfigError(f"--output {output} holds the samples themselves", "name another folder")
    asked = get(model) if isinstance(model, str) else model
    if isinstance(asked, AuxModel):
        asked.check()
    return [_annotate_file(file, asked or labels, output, few_shot, human) for file in files]


def _record_beside(file: Path) -> Measurement | None:
    results = result_beside(file)
    return None if results is None else results.measurement(task_of(file))


def _shows_documents(file: Path) -> bool:
    return any(sample.passages for sample in read_samples(file))


def _annotate_file(
    file: Path, by: AuxModel | Annotator | Path | None, output: Path | None, few_shot: bool, human: Path | None
) -> dict[str, Any]:
    samples = read_samples(file)
    shown = documents_of(samples)
    config = config_beside(file)
    shots = "few-shot" if few_shot else "zero-shot"
    if by is None:
        found, there = labels_in(samples), str(config.data.get("annotations") or "llm_fewshot")
        name, prompts = "labels of the samples", _PUBLISHED.get(there, there)
    elif isinstance(by, Path):
        found, name, prompts = labels_of_a_model(by, shown, few_shot=few_shot), "published labels", shots
    else:
        found, name, prompts = annotate(shown, by, few_shot=few_shot), getattr(by, "name", type(by).__name__), shots
    people = None if human is None else read_human(human, shown)
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
                measurement=_record_beside(file),
            ),
        )
    report: dict[str, Any] = {
        "samples": str(file),
        "output": None if output is None else str(_write(file, samples, found, output)),
        "mode": config.mode,
        "embedder": config.data.get("embedder"),
        "prompts": "labels as they were" if by is None else prompts,
        "pairs": len({document.pair for document in shown}),
        "labelled": len(found.labels),
        "asked": found.asked,
        "failed": dict(Counter(found.failed.values())),
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
    out += [f"no label   {n:,} ({reason})" for reason, n in report["failed"].items()]
    overall, by_rank = report["relevant"]["overall"], report["relevant"]["by_rank"]
    relevant = score_text(overall["value"], overall["low"], overall["high"])
    out.append(f"relevant   {relevant}" + (f", n = {overall['n']:,}" if overall["n"] else ""))
    out.append("by rank    " + " ".join(f"{rank}: {score_text(share['value'])}" for rank, share in by_rank.items()))
    views = report["relevant"]["viewpoints"]
    if views:
        out.append(f"support    {', '.join(f'{view} {n:,}' for view, n in views.items())}")
    for cell, found in report.get("agreement", {}).items():
        f1 = (found.get("relevance") or {}).get("f1") or {}
        alpha, with_people = (score_text(e.get("value"), scale=1, digits=2) for e in (found["alpha_relevance"], f1))
        out.append(
            f"{cell:<10} {found['before']} labels, {found['after']} without contradictions · "
            f"alpha {alpha} · F1 with people {with_people} (n={found['pairs']})"
        )
    return out
