"""``mrag-eval build report``: the description of a set that was built."""

from __future__ import annotations

from pathlib import Path

from mrag_eval.cli._options import NewFile, command, form_of, write_or_print


@command()
def report(
    folder: Path,
    results: list[Path] | None = None,
    *,
    metric: str | None = None,
    form: str | None = None,
    output: NewFile | None = None,
) -> None:
    """Describe a set that was built: its types, languages and lengths, and the overlap with its sources.

    With results, the report adds accuracy with and without documents.

    Args:
        folder: The folder of the set (--output of the build).
        results: Result files of runs on the set, or folders that contain them (--output_path).
        metric: The metric that decides whether an answer is right. The default is the judges' if there are any.
        form (--format): The format of the tables: md, csv or json. The default is md.
        output (-o): Write to this file. Its extension sets the format: .md, .csv or .json.
    """
    from mrag_eval.building import quality_tables
    from mrag_eval.report import render

    form = form_of(form, output)
    write_or_print(render(quality_tables(folder, results or (), metric), form), output)
