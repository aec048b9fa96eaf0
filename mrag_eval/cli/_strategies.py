"""``mrag-eval strategies``: which retrieval strategy to use for questions and documents of the user's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._options import Count, Natural, command


@command()
def strategies(
    questions: Path,
    documents: Path,
    *,
    output: Path,
    vary: list[str] | None = None,
    metadata: list[str] | None = None,
    model: str | None = None,
    model_args: str | None = None,
    metric: str | None = None,
    max_calls: Natural | None = None,
    pilot: Count = 20,
    columns: list[str] | None = None,
    lang: str | None = None,
    chunker: str = "words",
    size: Count = 100,
    chat: bool = True,
    device: str | None = None,
    batch_size: str = "1",
    seed: Natural = 0,
    as_json: bool = False,
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
        model (-M): The type of a model that answers. Without it, none is asked.
        model_args (--model_args -a): Its arguments, as in `mrag-eval run`.
        metric: The metric that decides. The default is shown@k, with a model char3gram_recall.
        max_calls (--max_calls): The most calls to models, as `mrag-eval plan` counts them.
        pilot: With --max_calls: how many questions every strategy is tried on first.
        columns (FIELD=COLUMN,...): Columns of the questions, as in `mrag-eval score`.
        lang: The language of questions that name none. By default it is detected.
        chunker: How documents are cut, as in `mrag-eval index build`.
        size: Words or tokens of a passage.
        chat (--apply_chat_template/--no-chat): Whether the model has a chat template.
        device: Where the model runs.
        batch_size (--batch_size -b): The model's batch size.
        seed: Random seed of the pilot's questions, and of resampling.
        as_json (--json): Print table and sentences as JSON.
    """
    from mrag_eval import _front
    from mrag_eval.cli._plan import pairs_given
    from mrag_eval.cli._score import columns_given

    found = _front.strategies(
        questions,
        documents,
        vary=_values(vary or []),
        settings=pairs_given("--metadata", metadata),
        model=model,
        model_args=model_args,
        metric=metric,
        pilot=pilot,
        max_calls=max_calls,
        columns=columns_given(columns),
        lang=lang,
        chunker=chunker,
        size=size,
        output=output,
        apply_chat_template=chat,
        device=device,
        batch_size=batch_size,
        seed=seed,
    )
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
