"""``mrag-eval strategies``: which retrieval strategy to use for questions and documents of the user's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._options import command


@command(
    "questions documents output vary metadata model(-M) model_args(--model_args -a) metric max_calls(--max_calls) "
    "pilot columns lang chunker size apply_chat_template(--apply_chat_template/--no-chat) device "
    "batch_size(--batch_size -b) seed as_json",
    "mrag_eval._front:strategies",
)
def strategies(
    questions: Path,
    documents: Path,
    *,
    output: Path,
    vary: list[str] | None = None,
    metadata: list[str] | None = None,
    columns: list[str] | None = None,
    as_json: bool = False,
    **settings: Any,
) -> None:
    """Say which retrieval strategy to use for your languages: every one that can run, on your own questions.

    A table shows for each what it finds, how long it takes and what it costs. Any two are compared by paired tests.
    What cannot run here is named with its reason. After an interruption, give the same command again.

    Args:
        questions (QUESTIONS): A JSON Lines, JSON, CSV or Parquet file of questions.
        documents (DOCUMENTS): A folder of texts, or JSON Lines with id, lang and text.
        output (-o): The folder to write to. A folder from an earlier call is continued.
        vary (KEY=VALUE,...): Values of a key of the retrieval block to try, the default's first: mode=all,balanced or
            k=3,5. May be repeated. By default every mode, with the kinds dense, bm25 and hybrid.
        columns (FIELD=COLUMN,...): Columns of the questions, as in `mrag-eval score`.
        as_json (--json): Print table and sentences as JSON.
    """
    from mrag_eval import _front
    from mrag_eval.cli._plan import pairs_given
    from mrag_eval.cli._score import columns_given

    settings |= {"settings": pairs_given("--metadata", metadata), "columns": columns_given(columns)}
    found = _front.strategies(questions, documents, vary=_values(vary or []), output=output, **settings)
    if as_json:
        rows = json.loads(found.frame.to_json(orient="records", double_precision=15))
        whole = {"metric": found.metric, "strategies": rows, "did_not_run": found.refused}
        whole |= {"notes": found.notes, "said": found.sentences, "merges": [gain.to_dict() for gain in found.merges]}
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    typer.echo(found)
    typer.echo(f"\nby pair of languages   mrag-eval report {found.path.parent.parent} --layout policies")
    typer.echo(f"go on with one         mrag-eval run --tasks {found.tasks / found.good_enough[0].name}.yaml ...")


def _values(given: list[str]) -> Mapping[str, list[Any]]:
    """Return key -> values. Raises BadParameter for anything but KEY=VALUE, and for a key that is given twice."""
    import yaml

    found: dict[str, list[Any]] = {}
    for text in given:
        key, sign, values = text.partition("=")
        try:
            listed = yaml.safe_load(values if values.startswith("[") else f"[{values}]")
        except yaml.YAMLError:
            listed = []
        if not (key and sign and listed) or key in found:
            raise typer.BadParameter(f"'{text}' is not KEY=VALUE,VALUE, each key once", param_hint="--vary")
        found[key] = listed
    return found
