"""What this machine has of a task: its blocks, its rows and passages, its prompt template and its detectors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from mrag_eval.config import Agent, Block, CorrectLanguage, Judge, Prompt, Retrieval, validated
from mrag_eval.core import Marks, Passage, RagDoc, Retrieved, is_language
from mrag_eval.datasets import Benchmark, reload
from mrag_eval.languages import changed_languages
from mrag_eval.platform import ConfigError, MragError, to_json
from mrag_eval.prompts import PromptTemplate, load_template
from mrag_eval.report.files._results import LeafResult
from mrag_eval.retrieval import Repeated, indexed_passages, logged_row, repeated
from mrag_eval.scoring import LanguageRule

BlockT = TypeVar("BlockT", bound=Block)
# Why a log's rows are not here: it has none but its own.
LOG = "its rows are those of a log"


@dataclass(frozen=True)
class RowsHere:
    """The rows of a task as this machine loads them, for all runs with these blocks.

    Attributes:
        benchmark: the benchmark, rows that the mode skips among it.
        repeated: the rows that run, and what they are shown if that can be found again; None if a file is missing.
        copy: the copy that they were read from; None if that is where the run read them.
    """

    benchmark: Benchmark
    repeated: Repeated | None
    copy: Path | None = None
    _logged: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    # rendered prompts and hashes, which the runs of several models have in common
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def docs(self) -> Mapping[str, RagDoc]:
        """Return every row of the benchmark, by id."""
        return {doc.id: doc for doc in self.benchmark.docs}

    @cached_property
    def order(self) -> Mapping[str, int]:
        """Return the number of each row of the task, by id."""
        docs = self.benchmark.docs if self.repeated is None else self.repeated.selection.docs
        return {doc.id: number for number, doc in enumerate(docs)}

    @cached_property
    def source(self) -> Mapping[str, Any]:
        """Return the record of rows and documents as results hold it, hashed once for all runs."""
        made: dict[str, Any] = json.loads(json.dumps(self.benchmark.source, default=str))
        return made

    @property
    def found(self) -> Mapping[str, Retrieved] | None:
        """Return what each row is shown; None if that needs an index or a model."""
        return None if self.repeated is None else self.repeated.found

    def logged(self, row: str) -> dict[str, Any]:
        """Return a row as its sample must show it: with its passages if these are known, else without any."""
        if row not in self._logged:
            doc = self.docs[row]
            shown = doc.to_dict() if self.found is None else logged_row(doc, self.found[row])
            self._logged[row] = json.loads(json.dumps(shown, default=str))
        return self._logged[row]


@dataclass(frozen=True)
class TaskHere:
    """What this machine has of one task of a run. ``rows`` is None if its data are not here, for a ``reason``."""

    leaf: LeafResult
    rows: RowsHere | None
    reason: str = ""

    @classmethod
    def of(cls, leaf: LeafResult, copies: Sequence[Path] = ()) -> TaskHere:
        """Load what there is; ``copies`` are local copies of benchmarks."""
        if leaf.config.benchmark == "log":
            return cls(leaf, None, LOG)
        blocks = (leaf.config.data, leaf.config.retrieval, leaf.config.agent)
        found = _rows(*(json.dumps(to_json(block), sort_keys=True) for block in blocks), tuple(copies))
        if isinstance(found, str):
            return cls(leaf, None, found)
        here = cls(leaf, found)
        if here.retrieved_otherwise and found.repeated is not None:
            found = replace(found, repeated=replace(found.repeated, found=None, passages=None))
        return replace(here, rows=found)

    @cached_property
    def retrieved_otherwise(self) -> Mapping[str, Any]:
        """Return the settings that were allowed to differ when the rows were retrieved, and did: not those here."""
        record, block = self.leaf.measurement, self.retrieval
        if block is None or not block.run_may_differ:
            return {}
        return (record.data.get("retrieved") or {}).get("differs") or {}

    @cached_property
    def retrieval(self) -> Retrieval | None:
        """Return the block; None if this version does not know it."""
        return _valid(Retrieval, self.leaf.config.retrieval)

    @cached_property
    def judge(self) -> Judge:
        """Return the block, with defaults for one that this version does not know."""
        return _valid(Judge, self.leaf.config.judge) or Judge()

    @cached_property
    def template(self) -> PromptTemplate | None:
        """Return the prompt template; None if it is not on this machine."""
        prompt = _valid(Prompt, self.leaf.config.block("prompt"))
        if prompt is None:
            return None
        try:
            return load_template(prompt.template, prompt.system, name_language=prompt.name_language)
        except ConfigError:
            return None

    @property
    def hashed(self) -> bool:
        """Return whether the samples have hashes in place of texts (``mrag-eval score --hash-texts``)."""
        return self.leaf.config.setting("row_texts") == "hashed"

    @property
    def form(self) -> str | None:
        """Return where the answer is in a reply; None if that is not known here."""
        if self.hashed:
            return None
        given = self.leaf.config.setting("prompt.answer")
        if given is not None:
            return str(given)
        return None if self.template is None else self.template.answer_format

    @property
    def thinking(self) -> Marks | None:
        """Return what opens and closes the model's thinking, beside the marks that are known; None without such."""
        given = self.leaf.config.setting("prompt.thinking")
        return (str(given[0]), str(given[1])) if isinstance(given, list | tuple) and len(given) == 2 else None

    def languages(self, asked: Sequence[str]) -> set[str]:
        """Return the languages that detectors tell apart; ``asked`` are those of the samples' questions."""
        known = asked if self.rows is None else [self.rows.docs[row].query_lang for row in self.rows.order]
        return {*known, *(self.judge.languages or ()), "en"}

    def words_as_recorded(self, asked: Sequence[str]) -> bool:
        """Return whether the user's files of languages here say what those of the run said."""
        record = self.leaf.measurement
        codes = {code for code in asked if is_language(code)}
        recorded = dict(record.instrument.get("languages") or {})
        return recorded == changed_languages({"en", *codes, *recorded})

    def language_rule(self, asked: Sequence[str]) -> LanguageRule | None:
        """Return how the run told languages; None if its model is not here, or the languages are not known."""
        try:
            recorded = self.leaf.config.judge.get("correct_language") or {}
            setting = validated(CorrectLanguage, recorded, "correct_language")
            # lingua tells apart the languages of all the task's rows, and the samples may have some of them
            if "lingua" in setting.detectors.values() and self.rows is None:
                return None
            return LanguageRule.of(setting, self.languages(asked))
        except MragError:
            return None

    def passages(self, ids: Sequence[str]) -> Mapping[str, Passage] | None:
        """Return passages of the corpus by id; None if it is not on this machine, or need not be that of the rows."""
        if self.retrieved_otherwise:
            return None
        own = None if self.rows is None or self.rows.repeated is None else self.rows.repeated.passages
        if own is not None:
            return own
        if self.retrieval is None or not self.leaf.config.searches:
            return None
        return indexed_passages(self.retrieval, self.leaf.config.index_content, ids)


def _valid(kind: type[BlockT], block: Mapping[str, Any]) -> BlockT | None:
    try:
        return validated(kind, block, kind.__name__)
    except ConfigError:
        return None


def _benchmark(data: Mapping[str, Any], copies: Sequence[Path]) -> tuple[Benchmark | str, Path | None]:
    """Return the benchmark of a recorded block, or why there is none, and the copy that it is from.

    It is from the first copy that has it, else from where the run read it. A copy under the benchmark's name is read,
    or is the reason.
    """
    for copy in copies:
        for place in (copy, copy / str(data.get("benchmark"))):
            found = reload({**data, "path": str(place)}) if place.exists() else None
            if found is not None and (found.benchmark is not None or place != copy):
                return found.benchmark or found.reason, copy
    found = reload(data)
    return found.benchmark or found.reason, None


# the tasks of several models have their rows in common
@lru_cache(maxsize=16)
def _rows(data: str, retrieval: str, agent: str, copies: tuple[Path, ...]) -> RowsHere | str:
    benchmark, copy = _benchmark(json.loads(data), copies)
    if isinstance(benchmark, str):
        return benchmark
    searched = _valid(Retrieval, json.loads(retrieval))
    try:
        again = None
        if searched is not None:
            again = repeated(benchmark, searched, _valid(Agent, json.loads(agent)) or Agent())
    except MragError:
        again = None
    return RowsHere(benchmark, again, copy)
