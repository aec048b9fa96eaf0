"""``mrag-eval run``: an evaluation by lm-evaluation-harness; ``mrag-eval rerun``: the command that repeats one."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from mrag_eval.cli._options import command


@command()
def run(context: typer.Context, *, not_first: bool = False, thinking: tuple[str, str] | None = None) -> None:
    """Evaluate a model on tasks. All options of `lm_eval run` are accepted; our tasks need no --include_path.

    The ones you need most are --model and --model_args (the model), --tasks (names from `mrag-eval tasks`,
    separated by commas), --limit (number of rows), --output_path (folder for the results) and --log_samples (keep
    each answer, which most other commands read). `lm_eval run --help` explains all of them.

    --metadata changes settings of our tasks, as KEY=VALUE separated by commas. Retrieval has these, among others:

    - `retrieval.mode`: the passages that the model is shown (no_ir, qlang, all, given, ...).
    - `retrieval.k`: the number of passages shown.
    - `retrieval.corpus`: the name of a corpus (`mrag-eval corpus list`) or the folder of an index.
    - `retrieval.kind`: dense, bm25, hybrid, sparse or milvus.
    - `retrieval.rerank`: a model that reorders the passages.
    - `retrieval.run_folder`: the folder of `mrag-eval retrieve`, whose passages are used again.

    A prefix sets the tasks of a benchmark, group, tag or name alone: `xquad.data.path=FOLDER,click.data.path=OTHER`.
    docs/first_number.md says which wins, docs/reference/configuration.md lists every setting, docs/ir_modes.md explains
    the modes.

    `--model rag` asks a RAG system as it is, with its own retrieval: --model_args system=MODULE:NAME, or url=ADDRESS
    (docs/score.md).

    For example: `mrag-eval run --model hf --model_args pretrained=Qwen/Qwen3-1.7B --tasks xquad_rag_de --metadata
    retrieval.mode=all,retrieval.k=3 --log_samples --output_path out`

    Args:
        not_first (--no-retrieve-first --no_retrieve_first): Retrieve in the process of the model, instead of in a
            separate process before the model is loaded.
        thinking (OPEN CLOSE): What opens and closes the model's thinking, if that is not known.
    """
    from mrag_eval.cli._harness import run as run_harness

    arguments = [*context.args, "--no-retrieve-first"] if not_first else [*context.args]
    if thinking is not None:
        arguments += ["--metadata", json.dumps({"prompt.thinking": thinking})]
    run_harness(arguments, debug=context.obj.debug)


@command()
def rerun(results: Path, *, output: Path = Path("out/rerun"), execute: bool = False, trust: bool = False) -> None:
    """Print the exact command that repeats a run.

    Notes on what the command leaves out, and on what the results do not contain (keys, config file, versions), go to
    standard error.

    Args:
        results: The results_*.json of a run, or its output folder, whose newest file is read.
        output (-o): The output folder of the repetition.
        execute (--run): Run the command and compare the scores. The exit code is 1 if they differ.
        trust: Also repeat code, hosts, files and folders that the results name.
    """
    from contextlib import nullcontext

    from mrag_eval.platform import DataError, reading_back, tasks_folder
    from mrag_eval.report import repeated
    from mrag_eval.report import rerun as command_for

    found = command_for(results, output, tasks_folder(), trust=trust)
    typer.echo(found.command)
    for note in found.notes:
        typer.echo(f"# {note}", err=True)
    if not execute:
        return
    if found.withheld:
        raise DataError(
            f"{found.source}: {', '.join(found.withheld)}: only you can allow what these results name",
            "if they are yours, add --trust",
        )
    from mrag_eval.cli._harness import run

    with nullcontext() if trust else reading_back(found.source):
        run(found.arguments)
    outcome = repeated(found.source, output)
    for task in outcome:
        typer.echo(task.line)
    raise typer.Exit(1 if any(task.other for task in outcome) else 0)
