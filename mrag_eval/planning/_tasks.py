"""The tasks of a plan: their blocks, and their rows, which are read if they lie on this machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mrag_eval.config import RAG, Listed, Prompt, RunTasks, TaskBlocks, split_config
from mrag_eval.core import Passage, RagDoc
from mrag_eval.datasets import (
    LOADERS,
    DataBlock,
    DataSource,
    Declaration,
    Expected,
    PackagedFiles,
    data_of_config,
    validate_data,
)
from mrag_eval.platform import ConfigError, MragError, limited, naming
from mrag_eval.prompts import LONGEST_REPLY, load_template, longest_reply
from mrag_eval.retrieval import Source, TaskRows, served
from mrag_eval.scoring import METRIC_NAMES

# Forms of answers that a prompt has to show options for.
_OF_OPTIONS = ("choice", "citation")
_WORKS = "name tasks that ask for answers as texts (xquad_rag, mkqa_norag_<language>, blend_saq_norag ...)"


@dataclass(frozen=True)
class PlannedTask:
    """One task: its validated blocks, its benchmark, and how many of its rows run.

    ``rows`` is None where the number is unknown. ``longest_reply`` bounds the reply of the evaluated model in tokens;
    it is 0 if likelihoods are compared. ``docs`` are the rows that run, ``corpus`` the passages that come with them and
    ``source`` what finds their passages; None where the rows do not lie on this machine. ``fault`` is what a run
    refuses the task for.
    """

    name: str
    blocks: TaskBlocks
    data: DataBlock
    declaration: Declaration
    expected: Expected
    rows: int | None
    longest_reply: int
    docs: Sequence[RagDoc] | None = field(default=None, repr=False)
    corpus: Sequence[Passage] = field(default=(), repr=False)
    source: Source | None = field(default=None, repr=False)
    fault: MragError | None = None

    def refusal(self) -> MragError | None:
        """Return what a run refuses this task for as it builds it: its rows, its prompt, or its retrieval."""
        if self.fault is not None or self.docs is None:
            return self.fault
        try:
            prompt = self.blocks.prompt
            template = load_template(prompt.template, prompt.system, name_language=prompt.name_language)
            rows = TaskRows(self.blocks, self.name)
            template.check_languages(dict.fromkeys(doc.query_lang for doc in rows.docs.values()))
            if rows.evaluated is None:
                rows.check()
            for row in rows.examples():
                template.render(row, row["passages"])
        except MragError as error:
            return error
        return None


def leaves_of(
    asked: Sequence[str | Mapping[str, Any]],
    known: Mapping[str, Listed],
    metadata: Mapping[str, Any],
    limit: float | None = None,
) -> list[PlannedTask]:
    """Return the tasks of our class that these names stand for, each once.

    ``asked`` and ``known`` are as in :class:`mrag_eval.config.RunTasks`. Raises ConfigError for an invalid block.
    """
    run = RunTasks(asked, known)
    return [_leaf(name, config, metadata, limit, run) for name, config in run.configs.items() if _is_ours(config)]


def _is_ours(config: Mapping[str, Any]) -> bool:
    named = config.get("class")
    return getattr(named, "__name__", str(named)).rpartition(".")[2] == "RagTask"


def _leaf(
    name: str, config: dict[str, Any], metadata: Mapping[str, Any], limit: float | None, run: RunTasks
) -> PlannedTask:
    config = {**config, "metadata": {**config["metadata"], **metadata}}
    _, blocks = split_config(config, METRIC_NAMES, data_of_config(), run=run)
    with naming(name):
        data = validate_data(blocks.data)
    loader = LOADERS[data.benchmark]
    expected = Expected() if loader.expected is None else loader.expected(data)
    whole = expected.rows
    rows = limited(None if whole is None else math.ceil(whole * (data.share or 1)), limit)
    leaf = PlannedTask(name, blocks, data, loader.declaration, expected, rows, _longest_reply(config))
    try:
        if blocks.retrieval.preset.asks_system:
            blocks = replace(blocks, prompt=prompt_for_system(blocks, config.get("output_type")))
            leaf = replace(leaf, blocks=blocks)
        # all data are files of the package, or local copies that exist
        copies = [getattr(leaf.data, key.removeprefix("data.")) for key in given_copies(leaf)]
        known = bool(leaf.declaration.sources or copies) and all(path.exists() for path in copies)
        if not known or next(fetched_sources(leaf), None) is not None:
            return leaf
        benchmark, source, selection = served(blocks)
    except MragError as error:
        return replace(leaf, fault=error)
    docs = selection.docs[: limited(len(selection.docs), limit)]
    return replace(leaf, rows=len(docs), docs=docs, corpus=benchmark.corpus or (), source=source)


def given_copies(leaf: PlannedTask) -> list[str]:
    """Return the settings that name local copies of the data that a task reads."""
    known = dict.fromkeys(("data.path", "data.corpus", *(source.setting for source in leaf.declaration.sources)))
    own = [key for key in known if isinstance(getattr(leaf.data, key.removeprefix("data."), None), Path)]
    return [key for key in own if key in ("data.path", "data.corpus") or key not in leaf.expected.unread]


def fetched_sources(leaf: PlannedTask) -> Iterator[DataSource]:
    """Yield the sources that a task reads and has no local copy of.

    The second source with one setting is only a way out if the first one fails.
    """
    done = {*given_copies(leaf), *leaf.expected.unread}
    for source in leaf.declaration.sources:
        if source.setting not in done and not isinstance(source, PackagedFiles):
            done.add(source.setting)
            yield source


def prompt_for_system(blocks: TaskBlocks, output_type: str | None) -> Prompt:
    """Return the prompt block of a task of which a system is asked the question alone.

    A template that the user named for the run stays. Raises ConfigError for a task that compares likelihoods, and for
    one whose prompt shows options.
    """
    prompt = blocks.prompt
    if output_type == "multiple_choice":
        raise ConfigError(f"--model {RAG}: it compares likelihoods of options, which a system does not tell", _WORKS)
    if "template" in (blocks.overrides.get("prompt") or {}):
        return prompt
    if (prompt.answer or load_template(prompt.template).answer_format) in _OF_OPTIONS:
        raise ConfigError(
            f"--model {RAG}: it asks for a choice, and a system is asked the question without the options",
            f"{_WORKS}, or put the options into the question: --metadata prompt.template=multiple_choice",
        )
    return Prompt(template="question", answer="plain")


def _longest_reply(config: Mapping[str, Any]) -> int:
    if config.get("output_type") == "multiple_choice":
        return 0
    given = config.get("generation_kwargs")
    return (longest_reply(given) if isinstance(given, Mapping) else None) or LONGEST_REPLY
