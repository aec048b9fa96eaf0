"""The ``model-index`` of a model card: every overall figure of every task, added to existing entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.platform import DataError, replaced
from mrag_eval.report.exports import _push as hub
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import Run
from mrag_eval.report.files._scores import Score

# Decimals of figures in cards: more would be noise at any n.
_DIGITS = 6


def write_model_cards(runs: Sequence[Run], folder: Path, options: Options) -> Written:
    """Put the figures of the runs of one model into its card; with ``options.push``, into that on the hub."""
    card = options.card or folder / hub.CARD
    if options.push is not None and options.card is None:
        card = hub.fetch_card(options.push, folder, hub.api_with_token())
    figures = sum(write_model_card(run, card, options.source_url) for run in runs)
    blank = [f"{what}: no figure ({why})" for run in runs for what, why in run.blank.items()]
    return Written((card,), (f"{figures} figures", *blank))


EXPORT = Export(
    "model-index", "figures in the front matter of a model card", write_model_cards, repo_type="model", one_model=True
)


def write_model_card(run: Run, card: Path, source_url: str | None = None) -> int:
    """Put a run's figures into the front matter of ``card`` (created if it is missing) and return their number.

    Entries of other tasks, datasets and metrics are kept, as is the text; an entry of the same task and metric is
    replaced. Raises DataError for front matter that cannot be read.
    """
    from huggingface_hub.repocard import metadata_load, metadata_save

    metadata: dict[str, Any] = {}
    if card.is_file():
        try:
            metadata = metadata_load(card) or {}
        except Exception as error:  # any fault in the user's YAML front matter
            raise DataError(
                f"{card}: its front matter cannot be read ({str(error).splitlines()[0]})",
                "correct the YAML between the ---",
            ) from None
    new = model_index(run, source_url)
    metadata["model-index"] = merged(metadata.get("model-index"), new, str(card))
    text = card.read_text(encoding="utf-8") if card.is_file() else f"\n# {run.file.model}\n"
    with replaced(card) as part:
        part.write_text(text, encoding="utf-8")
        metadata_save(part, metadata)
    return sum(len(result["metrics"]) for result in new[0]["results"])


def model_index(run: Run, source_url: str | None = None) -> list[dict[str, Any]]:
    """Return the figures of a run as a ``model-index`` of one model; a task's name is its dataset's ``config``."""
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    results = []
    for task in run.tasks:
        source = task.source
        for score in task.overall:
            if score.value is None:
                continue
            results.append(
                EvalResult(
                    task_type="question-answering",
                    task_name="Multilingual retrieval-augmented generation",
                    dataset_type=source.hub or source.name.lower().replace(" ", "_"),
                    dataset_name=f"{source.name}: {score.task}",
                    dataset_config=score.task,
                    dataset_split=task.split,
                    dataset_revision=task.config.revision,
                    dataset_args=score.settings,
                    metric_type=score.metric,
                    metric_name=score.metric,
                    metric_value=round(score.value, _DIGITS),
                    metric_args=_uncertainty(score),
                    source_name=None if source_url is None else "mrag-eval",
                    source_url=source_url,
                )
            )
    index: list[dict[str, Any]] = eval_results_to_model_index(run.file.model, results)
    return index or [{"name": run.file.model, "results": []}]


def _uncertainty(score: Score) -> dict[str, Any]:
    found: dict[str, Any] = {"n": score.n, "low": score.low, "high": score.high, "interval": score.method}
    if score.low is None:
        found["stderr"] = score.stderr
    found |= {"unit": score.unit, "better": score.better, "judges": score.judges, **score.averaged}
    if score.unscored_reasons:
        found["unscored"] = dict(score.unscored_reasons)
    found |= score.withheld
    return {k: round(v, _DIGITS) if isinstance(v, float) else v for k, v in found.items() if v is not None}


def merged(before: Any, new: Sequence[Mapping[str, Any]], where: str) -> list[dict[str, Any]]:
    """Return an existing ``model-index`` with the new results in it; the model keeps its existing name."""
    if not before:
        return [dict(entry) for entry in new]
    if not isinstance(before, list) or not all(isinstance(entry, dict) for entry in before):
        raise DataError(f"{where}: its model-index is no list of models", "correct it")
    first, *others = before
    results = list(first.get("results") or [])
    for result in new[0]["results"]:
        same = next((i for i, old in enumerate(results) if _place(old) == _place(result)), None)
        if same is None:
            results.append(result)
            continue
        names = {(m.get("type"), m.get("name")) for m in result["metrics"]}
        kept = [m for m in results[same].get("metrics") or [] if (m.get("type"), m.get("name")) not in names]
        results[same] = {**results[same], **result, "metrics": [*kept, *result["metrics"]]}
    return [{**first, "results": results}, *others]


def _place(result: Mapping[str, Any]) -> tuple[Any, ...]:
    task, dataset = result.get("task") or {}, result.get("dataset") or {}
    return task.get("type"), dataset.get("type"), dataset.get("config"), dataset.get("split")
