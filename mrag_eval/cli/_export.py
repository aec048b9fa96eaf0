"""``mrag-eval export``: results in the formats of leaderboards and papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._options import DeclaredCommand, command, warned_of_unsupported


class ExportCommand(DeclaredCommand):
    """List the formats at the end of the help; only there, since reading them takes time."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from mrag_eval.report import EXPORTS

        lines = [f"- `{one.name}`: {one.help} ({one.file or 'a folder'})" for one in EXPORTS.values()]
        self.epilog = "\n\n".join(["Formats, and what is written by default:", *lines])
        super().format_help(ctx, formatter)


@command(
    "results form output(-o) metric card dataset source_url organization relationship deployment availability bold "
    "include_text push(REPO)",
    "mrag_eval.report:Options",
)
def export(results: list[Path], *, form: str, metric: list[str] | None = None, **settings: Any) -> None:
    """Write results in the formats of leaderboards and papers: a model card, files of the hub, LaTeX and others.

    A note names what the format needs and the results lack. Nothing is uploaded without --push and a token.

    Args:
        results (RESULTS): Result files of runs, or folders that contain them (--output_path of a run).
        form (--format): The format, one of those listed below.
        metric: Export only this metric. May be repeated; the first is the main one.
    """
    from mrag_eval.platform import one_of, tasks_folder
    from mrag_eval.report import EXPORTS, Options, rerun
    from mrag_eval.report import export as write

    one_of("--relationship", settings["relationship"], ("first_party", "third_party", "collaborative", "other"))
    one_of("--deployment", settings["deployment"], ("self_deployed", "externally_managed"))
    one_of("--availability", settings["availability"], ("open_weights", "closed_weights"))
    options = Options(
        metrics=tuple(metric or ()),
        command_of=lambda path: rerun(path, Path("out"), tasks_folder()).command,
        **settings,
    )
    with warned_of_unsupported(results, texts=form in EXPORTS and EXPORTS[form].texts):
        written = write(results, form, options)
    for file in written.files:
        typer.echo(str(file))
    for note in written.notes:
        typer.echo(f"# {note}", err=True)
    if written.sent is not None:
        typer.echo(written.sent)
