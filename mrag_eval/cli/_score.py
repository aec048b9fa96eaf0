"""The user's own rows: ``mrag-eval score`` of a log, ``mrag-eval strategies`` for questions and documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._judge import table_lines
from mrag_eval.cli._judge_labels import says_what
from mrag_eval.cli._options import command, pairs_of, screen_width

# Options that say what the file holds.
_OF_THE_LOG = ("benchmark", "lang", "qrels", "run", "join", "max_unread", "relevant_from")


@command(
    "log output dry_run metrics columns rows join(COLUMN) max_unread benchmark(NAME) metadata lang qrels(FILE) "
    "relevant_from "
    "run(FILE) corpus(FILE) answer thinking(OPEN CLOSE) breakdown grounded(MODEL) model task seed hash_texts",
    "mrag_eval._front:score",
)
def score(
    log: Path,
    *,
    output: Path | None = None,
    dry_run: bool = False,
    metrics: str | None = None,
    columns: list[str] | None = None,
    rows: str = "",
    metadata: list[str] | None = None,
    breakdown: list[str] | None = None,
    model: str | None = None,
    **settings: Any,
) -> None:
    """Score the log of a RAG system: answers, contexts and rankings that are there already. No model is run, except
    what --grounded names.

    Question, answer, contexts, references and ids are found by the names that programs give them, such as ragas,
    deepeval, LangChain, LlamaIndex, Haystack, OpenInference spans (Phoenix, Langfuse) and BERGEN. report, compare,
    gate, verify, judge and export read the results as those of a run.

    Args:
        log (LOG): A JSON Lines, JSON, CSV or Parquet file of rows, a run, or a folder of BEIR or MTEB.
        output (--output_path --output-path --output -o): Folder for results and samples.
        dry_run: Print what is recognised and what can be scored, and score nothing.
        metrics: Metrics, separated by commas, yours as MODULE:NAME. The default is all that the rows have what it takes
            for.
        columns (PART=PATH,...): Where the rows keep a part that is not found by its name: question, answer, contexts,
            reference, id, lang, turns, relevant_ids, context_ids, context_scores, context_langs, error, and
            contexts.text, .id, .lang, .title, .score, .doc_id. May be repeated.
        rows (PATH): Where the rows are in the file, such as results.*.output.
        metadata (KEY=VALUE,...): What --benchmark needs to be read, such as data.language=de,data.path=FOLDER.
        breakdown (COLUMN): Break scores down by a column, or a path. May be repeated.
        model: The system's name in reports. The default is the file's.
    """
    from mrag_eval import _front
    from mrag_eval.cli._plan import pairs_given
    from mrag_eval.config import undotted
    from mrag_eval.platform import check_output
    from mrag_eval.report import opening, read_results
    from mrag_eval.scoring import panel_line

    # a log that is not there is what to say first
    if output is None and not dry_run and log.exists():
        raise typer.BadParameter("name the folder for results and samples, or --dry-run", param_hint="--output_path")
    if output is not None:
        check_output(output, "--output_path")
    given = undotted(pairs_given("--metadata", metadata))
    if given.keys() - {"data"} or (given and settings["benchmark"] is None):
        raise typer.BadParameter("it has the keys data.KEY of --benchmark NAME", param_hint="--metadata")
    if given:
        settings["benchmark"] = {"benchmark": settings["benchmark"], **given["data"]}
    found = _front.read_log(
        log,
        columns=columns_given(columns),
        breakdowns=breakdown or (),
        at=rows,
        corpus=settings["corpus"],
        **{name: settings.pop(name) for name in _OF_THE_LOG},
    )
    asked = None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
    names = _front.measured_names(found, asked, _front.grounded_judge(settings["grounded"]))
    typer.echo("\n".join(_front.log_lines(found, names, asked=asked is not None, width=screen_width())))
    if dry_run or output is None:
        return
    results = _front.score(found, asked and names, model=model or log.stem, output=output, **settings)
    cut = _front.all_cut(results)
    if cut:
        typer.echo("every reply ends within its thinking: there is no answer to score; allow more tokens")
    typer.echo(opening([results.path], screen_width(), every=asked is not None))
    leaves = read_results([results.path])[0].leaves.values()
    for leaf in leaves:
        for what, table in leaf.scores.panels.items():
            typer.echo("\n".join([panel_line(table, what), *table_lines(table, says_what(table.scale))]))
    typer.echo(f"\nresults         {results.path}")
    lost = [f"{leaf.task}: no row has its main metric, {leaf.lost_headline}" for leaf in leaves if leaf.lost_headline]
    if lost:
        typer.echo("\n".join(lost), err=True)
    if lost or cut:
        raise typer.Exit(1)
    typer.echo(f"next            mrag-eval report {output} -o report.html    the answers in a browser")
    typer.echo(f"                mrag-eval report {output} --metrics all    every figure")


def columns_given(given: list[str] | None) -> dict[str, str]:
    """Return the fields that ``--columns`` names. Raises BadParameter for anything but FIELD=PATH."""
    parts = (part.strip() for text in given or () for part in text.split(",") if part.strip())
    named = pairs_of(parts, "FIELD=PATH, such as question=frage", "--columns")
    return {field.strip(): path.strip() for field, path in named.items()}


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
        questions (QUESTIONS): A JSON Lines, JSON, CSV or Parquet file of questions, or a folder of BEIR or MTEB.
        documents (DOCUMENTS): A folder of texts, of BEIR or MTEB; JSON Lines with id, lang and text, or SQuAD's JSON.
        output (-o): The folder to write to. A folder from an earlier call is continued.
        vary (KEY=VALUE,...): Values of a key of the retrieval block to try, the default's first: mode=all,balanced or
            k=3,5. May be repeated. By default every mode, with the kinds dense, bm25 and hybrid.
        columns (FIELD=COLUMN,...): Columns of the questions, as in `mrag-eval score`.
        as_json (--json): Print table and sentences as JSON.
    """
    from mrag_eval import _front
    from mrag_eval.cli._plan import pairs_given

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
