"""Results in other people's formats: model cards, the hub's evaluation files, Every Eval Ever, MTEB's shape, tables.

Nothing is uploaded unless a repository is named. Texts whose licence is not known to allow redistribution are written
only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.core import ConfigError, did_you_mean
from mrag_eval.report.exports import _push as hub
from mrag_eval.report.exports._eval_results import write_eval_results
from mrag_eval.report.exports._every_eval_ever import Sender, write_every_eval_ever
from mrag_eval.report.exports._licences import Source, source_of
from mrag_eval.report.exports._model_card import write_model_card
from mrag_eval.report.exports._per_language import write_per_language
from mrag_eval.report.exports._runs import Run, runs_of
from mrag_eval.report.exports._tables import latex_table, write_csv
from mrag_eval.report.files._scores import Score, ScoredTask

__all__ = [
    "FORMATS",
    "Options",
    "Run",
    "Score",
    "ScoredTask",
    "Sender",
    "Source",
    "Written",
    "export",
    "runs_of",
    "source_of",
]


@dataclass(frozen=True)
class Options:
    """Hold the options of an export; ``output`` is a file for tables and a folder for the other formats.

    ``card``: an existing model card to put figures into. ``dataset``: the dataset on the hub that ``.eval_results``
    refer to. ``push``: the repository on the hub to open a pull request in. ``command_of`` returns the command that
    repeats the run of a result file.
    """

    output: Path
    metrics: tuple[str, ...] = ()
    card: Path | None = None
    dataset: str | None = None
    source_url: str | None = None
    sender: Sender = field(default_factory=Sender)
    include_text: bool = False
    bold: bool = False
    push: str | None = None
    command_of: Callable[[Path], str] = str


@dataclass(frozen=True)
class Written:
    """Hold the files of an export, notes on them, and the address of the pull request, if one was opened."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    sent: str | None = None


def export(results: Sequence[Path], form: str, options: Options) -> Written:
    """Write the runs at ``results`` in one of :data:`FORMATS`.

    Raises ConfigError for an unknown format, for options that cannot be combined, and if the hub refuses; DataError for
    results or existing files that cannot be read.
    """
    if form not in FORMATS:
        raise ConfigError(f"--format: no format '{form}'{did_you_mean(form, FORMATS)}", f"one of {', '.join(FORMATS)}")
    write, repo_type = FORMATS[form]
    runs = runs_of(results, options.metrics)
    api = _api(form, repo_type, runs, options)
    written = write(runs, options, api)
    if api is None:
        return written
    models = ", ".join(dict.fromkeys(run.model_id for run in runs))
    folder = options.output if options.card is None else options.card.parent
    files = [file for file in written.files if file.is_file()]
    sent = hub.push(files, folder, str(options.push), str(repo_type), f"Results of {models} by mrag-eval", api)
    return Written(written.files, written.notes, sent)


def _api(form: str, repo_type: str | None, runs: Sequence[Run], options: Options) -> Any:
    """Return the hub's client if something is to be sent, after every check that could prevent it."""
    if options.push is None:
        return None
    if repo_type is None:
        raise ConfigError(f"--push: {form} is a file for you, no format of the hub", "leave --push out")
    if options.include_text:
        bound = sorted({source_of(task.config).name for run in runs for task in run.tasks
                        if task.leaf is not None and not source_of(task.config).shareable})  # fmt: skip
        if bound:
            raise ConfigError(
                f"--push with --include-text: the texts of {', '.join(bound)} may not be passed on, as far as is known",
                "leave --include-text out",
            )
    return hub.api_with_token()


def _one_model(runs: Sequence[Run], form: str) -> None:
    models = list(dict.fromkeys(run.model_id for run in runs))
    if len(models) > 1:
        raise ConfigError(
            f"--format {form}: a card belongs to one model, these results are of {len(models)}: {', '.join(models)}",
            "name the results of one model",
        )


def _model_card(runs: Sequence[Run], options: Options, api: Any) -> Written:
    _one_model(runs, "model-index")
    card = options.card or options.output / hub.CARD
    if api is not None and options.card is None:
        card = hub.fetch_card(str(options.push), options.output, api)
    figures = sum(write_model_card(run, card, options.source_url) for run in runs)
    blank = [
        f"{t.label}, {s.metric}: no figure ({s.reason})"
        for r in runs
        for t in r.tasks
        for s in t.overall()
        if s.value is None
    ]
    return Written((card,), (f"{figures} figures", *blank))


def _eval_results(runs: Sequence[Run], options: Options, _: Any) -> Written:
    _one_model(runs, "eval-results")
    found = [write_eval_results(run, options.output, options.dataset, options.source_url) for run in runs]
    return _together(found)


def _every_eval_ever(runs: Sequence[Run], options: Options, _: Any) -> Written:
    return _together(
        [
            write_every_eval_ever(
                run, options.output, options.sender, options.command_of(run.path), include_text=options.include_text
            )
            for run in runs
        ]
    )


def _per_language(runs: Sequence[Run], options: Options, _: Any) -> Written:
    return Written(tuple(file for run in runs for file in write_per_language(run, options.output)))


def _latex(runs: Sequence[Run], options: Options, _: Any) -> Written:
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(latex_table(runs, bold=options.bold), encoding="utf-8")
    return Written((options.output,))


def _csv(runs: Sequence[Run], options: Options, _: Any) -> Written:
    options.output.parent.mkdir(parents=True, exist_ok=True)
    return Written((options.output,), (f"{write_csv(runs, options.output):,} figures",))


def _together(parts: Sequence[tuple[list[Path], list[str]]]) -> Written:
    files = dict.fromkeys(file for found, _ in parts for file in found)
    return Written(tuple(files), tuple(dict.fromkeys(note for _, notes in parts for note in notes)))


Write = Callable[[Sequence[Run], Options, Any], Written]
# Format -> its writer, and the kind of repository on the hub that takes it (None: no kind).
FORMATS: Mapping[str, tuple[Write, str | None]] = {
    "model-index": (_model_card, "model"),
    "eval-results": (_eval_results, "model"),
    "eee": (_every_eval_ever, "dataset"),
    "mteb": (_per_language, None),
    "latex": (_latex, None),
    "csv": (_csv, None),
}
