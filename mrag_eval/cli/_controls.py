"""``mrag-eval controls``: what the metrics of tasks give in each language without a model."""

from __future__ import annotations

import json

import typer

from mrag_eval.cli._options import Limit, command


@command()
def controls(
    tasks: str,
    *,
    language: list[str] | None = None,
    metadata: list[str] | None = None,
    limit: Limit | None = None,
    include_path: str | None = None,
    as_json: bool = False,
    judge: bool = False,
) -> None:
    """Show what the metrics of tasks give in each language without a model: ceilings and floors of a score.

    A right answer, in a plain sentence or bare, should score near 100, another row's answer near 0. What is missing
    there is the metric's loss, and no model's. Searches use the index of the task; no model is evaluated.

    Args:
        tasks (TASK): Names of tasks, groups or tags, separated by commas.
        language (-l): Only rows whose question is in this language. May be repeated.
        as_json (--json): Print the controls as JSON, with unrounded values.
        judge: Ask the judges about the replies of the controls, too, which costs calls.
    """
    from mrag_eval.cli._harness import built_tasks
    from mrag_eval.cli._retrieve import flags_of
    from mrag_eval.models import forget_asked
    from mrag_eval.platform import DataError, to_json
    from mrag_eval.report import TaskControls, control_tables, render
    from mrag_eval.scoring import control_table, marked_by_controls

    found, _ = built_tasks(flags_of(tasks=tasks, metadata=metadata, limit=limit, include_path=include_path))
    shown = []
    for name, task in found.items():
        docs = task.supply.docs
        asked = {docs[row].query_lang for row in docs}
        unknown = next((code for code in language or () if code not in asked), None)
        if unknown is not None and len(found) == 1:
            raise DataError(f"task {name}: no question in '{unknown}'", f"its languages: {', '.join(sorted(asked))}")
        rows = [row for row in task.rows_to_run(limit) if not language or docs[row].query_lang in language]
        if rows:
            records = task.control_records(rows, judged=judge)
            shown.append(TaskControls(name, "no model", control_table(records, task.supply.blocks.retrieval.seed)))
    forget_asked()
    if not shown:
        raise DataError(f"{tasks}: no row in {', '.join(language or ())}", "name languages of the tasks' questions")
    if not as_json:
        typer.echo(render(control_tables(shown)))
        return
    parts = {
        one.name: {
            "controls": to_json(one.controls),
            "marked": {metric: why for metric in one.controls if (why := marked_by_controls(one.controls, metric))},
        }
        for one in shown
    }
    typer.echo(json.dumps(parts, ensure_ascii=False, indent=2))
