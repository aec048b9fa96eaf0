"""Running a model on tasks, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval._front._arguments import Block, blocks_of, folder_for, known_names, manager_over, named_blocks
from mrag_eval._front._results import Results
from mrag_eval.platform import ConfigError, quiet_notebook

if TYPE_CHECKING:
    from mrag_eval.harness import LM


def evaluate(
    model: str | LM | Any,
    tasks: str | Sequence[str],
    *,
    model_args: str | Mapping[str, Any] | None = None,
    retrieval: Block | None = None,
    data: Block | None = None,
    prompt: Block | None = None,
    judge: Block | None = None,
    agent: Block | None = None,
    settings: Mapping[str, Block] | None = None,
    limit: float | None = None,
    samples: Mapping[str, Sequence[int]] | None = None,
    output: str | Path | None = None,
    apply_chat_template: bool | str = True,
    include: str | Path | None = None,
    device: str | None = None,
    batch_size: int | str = 1,
    gen_kwargs: str | Mapping[str, Any] | None = None,
    seed: int | None = None,
    use_cache: str | Path | None = None,
) -> Results:
    """Run a model on tasks and return the scores; the same as ``mrag-eval run`` with the same settings.

    Args:
        model: a model type of the harness (``hf``, ``vllm``, ``local-chat-completions`` ...), or a model of its class;
            or a RAG system, which is asked the rows' questions and shows its own contexts: a function, sync or async,
            or an object of LangChain, LlamaIndex or Haystack (docs/score.md).
        tasks: names of tasks, groups or tags (``mrag-eval tasks`` lists them), or task files.
        model_args: what the model type takes, such as ``{"pretrained": "Qwen/Qwen3-1.7B"}``; of a system its name in
            the results (``model``), paths in its replies, and limits of the asking.
        retrieval, data, prompt, judge, agent: settings that replace the task's own, block by block and key by key.
        settings: the same for some of the tasks: the name of a benchmark, group, tag or task -> its blocks, such as
            ``{"xquad": {"data": {"path": "xquad"}}}``. The narrower name wins.
        limit: run that many rows of each task, or below 1 that share of them.
        samples: task -> numbers of the rows to run, from 0.
        output: the folder for results and samples; a temporary one by default.
        include: a folder of your own task files.
        device: where the model runs: ``cpu``, ``cuda``, ``cuda:N`` or ``mps``; by default the first GPU, else the CPU.
        seed: for sampling; by default the harness's own seeds.
        use_cache: the file of the model's replies: those that are kept there are not asked for again.

    Raises:
        ConfigError, DataError, CorpusError: before the model is loaded, with the next step.
    """
    from mrag_eval import harness
    from mrag_eval.config import RAG
    from mrag_eval.models import evaluating, own_replies, register_model_types, system_arguments, task_settings

    if limit is not None and samples is not None:
        raise ConfigError("evaluate: limit cannot be combined with samples", "leave one of the two out")
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise ConfigError("evaluate runs in one process, this is one of several", "use mrag-eval run for several")
    register_model_types()
    blocks = blocks_of(retrieval=retrieval, data=data, prompt=prompt, judge=judge, agent=agent)
    arguments = harness.parse_arguments(model_args) if isinstance(model_args, str) else dict(model_args or {})
    asked_as: Any = model
    if not isinstance(model, str | harness.LM):
        arguments, model = system_arguments(arguments, asked_as), RAG
    elif model == RAG:
        arguments = system_arguments(arguments)
    if isinstance(model, str):
        hint = 'e.g. evaluate("hf", ..., model_args={"pretrained": "Qwen/Qwen3-1.7B"})'
        harness.check_model(model, arguments, hint, device)
        for fault in harness.model_faults(model, arguments):
            raise fault
    named = named_blocks(settings or {})
    manager = manager_over(include, task_settings(model, arguments) | blocks | named)
    with evaluating(asked_as, arguments):
        requested, built = harness.load_tasks(manager, known_names(tasks, manager))
    harness.check_tasks(built.values(), judged=True)
    asked: dict[str, Any] = {
        "model": model,
        "model_args": arguments,
        "tasks": requested,
        "limit": limit,
        "samples": None if samples is None else {task: list(rows) for task, rows in samples.items()},
        "device": device,
        "batch_size": batch_size,
        "gen_kwargs": gen_kwargs if isinstance(gen_kwargs, str) else dict(gen_kwargs or {}) or None,
        "apply_chat_template": apply_chat_template,
        "metadata": blocks | named,
        "log_samples": True,
    }
    if seed is not None:
        asked |= {f"{name}_seed": seed for name in ("random", "numpy_random", "torch_random", "fewshot_random")}
    folder = folder_for(output)
    before = set(folder.rglob("results_*.json"))
    try:
        with evaluating(asked_as, arguments), quiet_notebook():
            asked["use_cache"] = None if use_cache is None else own_replies(str(use_cache))
            harness.evaluate(asked, manager, str(folder))
    except NotImplementedError as error:
        if not apply_chat_template:
            raise
        raise ConfigError(f"model {model} has no chat template", "pass apply_chat_template=False") from error
    except OSError as error:
        # of a model's files that the hub does not give, such as the tokenizer with the chat template
        if error.strerror is not None:
            raise
        raise ConfigError(
            f"model {model}: {next(iter(str(error).splitlines()), 'its files cannot be read')}",
            "fetch its files beforehand; without its chat template: apply_chat_template=False, or --no-chat",
        ) from error
    (path,) = set(folder.rglob("results_*.json")) - before
    return Results(path)
