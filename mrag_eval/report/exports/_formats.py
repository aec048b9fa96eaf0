"""Results in other people's formats. Every module of this folder that defines an ``EXPORT`` is one.

Nothing is uploaded unless a repository is named. Texts whose licence is not known to allow redistribution are written
only on request.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from mrag_eval.platform import (
    ConfigError,
    DataError,
    check_output,
    check_output_file,
    did_you_mean,
    hide,
    keep_named_variables,
)
from mrag_eval.report.exports import _push as hub
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import Run, runs_of
from mrag_eval.report.verification._verify import unsupported


def _discovered() -> dict[str, Export]:
    names = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name != "_formats")
    found = (getattr(import_module(f"{__package__}.{name}"), "EXPORT", None) for name in names)
    return {export.name: export for export in found if isinstance(export, Export)}


EXPORTS: Mapping[str, Export] = _discovered()


def export(results: Sequence[Path], form: str, options: Options) -> Written:
    """Write the runs at ``results`` in one of :data:`EXPORTS`.

    Raises ConfigError for an unknown format, for options that cannot be combined, for a place that cannot be written
    to, and if the hub refuses; DataError for results or existing files that cannot be read, for scores that a format
    whose figures are ranked does not take, and for a key in a text.
    """
    if form not in EXPORTS:
        raise ConfigError(f"--format: no format '{form}'{did_you_mean(form, EXPORTS)}", f"one of {', '.join(EXPORTS)}")
    chosen = EXPORTS[form]
    output = options.output or Path("export", chosen.file or "")
    if options.card is None:
        (check_output if chosen.file is None else check_output_file)(output, "--output")
    if chosen.ranked and (false := unsupported(results, votes=True)):
        raise DataError(
            f"--format {form} takes no score that its samples contradict: {false[0]}",
            "export the results as the run wrote them; csv and latex write such a score, with a warning",
        )
    runs, left_out = runs_of(results, options.metrics, whole=chosen.repo_type is not None, ranked=chosen.ranked)
    api = _api(chosen, runs, options)
    models = list(dict.fromkeys(run.file.model for run in runs))
    if chosen.one_model and len(models) > 1:
        raise ConfigError(
            f"--format {form}: a card belongs to one model, these results are of {len(models)}: {', '.join(models)}",
            "name the results of one model",
        )
    if chosen.file is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
    written = chosen.write(runs, output, options)
    written = replace(written, notes=(*written.notes, *left_out))
    _refuse_keys(written.files, keep=options.card is not None)
    if api is None:
        return written
    folder = output if options.card is None else options.card.parent
    files = [file for file in written.files if file.is_file()]
    message = f"Results of {', '.join(models)} by mrag-eval"
    return replace(written, sent=hub.push(files, folder, str(options.push), str(chosen.repo_type), message, api))


def _refuse_keys(files: Sequence[Path], *, keep: bool) -> None:
    """Raise DataError for a key of this machine in what is written for others; such a file is removed, unless it is
    to be kept.
    """
    keep_named_variables()
    for file in filter(Path.is_file, files):
        with file.open(encoding="utf-8", errors="surrogateescape") as lines:
            held = next((number for number, line in enumerate(lines, 1) if hide(line) != line), None)
        if held is not None:
            if not keep:
                file.unlink()
            raise DataError(f"{file}, line {held}: would hold a key of yours", "remove its cause, and export again")


def _api(chosen: Export, runs: Sequence[Run], options: Options) -> Any:
    """Return the hub's client if something is to be sent, after every check that could prevent it."""
    if options.push is None:
        return None
    if chosen.repo_type is None:
        raise ConfigError(f"--push: {chosen.name} is a file for you, no format of the hub", "leave --push out")
    if options.include_text:
        bound = sorted({task.source.name for run in runs for task in run.tasks
                        if task.leaf is not None and not task.source.shareable})  # fmt: skip
        if bound:
            raise ConfigError(
                f"--push with --include-text: the texts of {', '.join(bound)} may not be passed on, as far as is known",
                "leave --include-text out",
            )
    return hub.api_with_token()
