"""A task's configuration in a result file, by name. No other module looks up keys in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.config import Shown, mode_named, passages_shown


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """Hold ``configs.<task>`` of a result file without its scores; empty without a result file next to the samples.

    ``seed`` and ``scored_by`` fall back to the values of the whole run.
    """

    raw: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.raw)

    def block(self, name: str) -> Mapping[str, Any]:
        """Return a block of the configuration (``retrieval``, ``data``, ``index``, ...), empty without one."""
        found = self.raw.get(name)
        return found if isinstance(found, Mapping) else {}

    def setting(self, key: str) -> Any:
        """Return the value behind a dotted key; None without one."""
        value: Any = self.raw
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @property
    def retrieval(self) -> Mapping[str, Any]:
        """Return the ``retrieval`` block."""
        return self.block("retrieval")

    @property
    def mode(self) -> str | None:
        """Return the IR mode."""
        found = self.retrieval.get("mode")
        return None if found is None else str(found)

    @property
    def searches(self) -> bool:
        """Return whether the mode searches a corpus."""
        return mode_named(self.mode).searches

    @property
    def shows(self) -> Shown:
        """Return which passages the prompt holds."""
        return passages_shown(self.retrieval)

    @property
    def k(self) -> int | None:
        """Return the number of passages in the prompt."""
        found = self.retrieval.get("k")
        return found if isinstance(found, int) else None

    @property
    def depth(self) -> int:
        """Return the length of the ranking."""
        return int(self.retrieval.get("depth") or self.retrieval.get("k") or 0)

    @property
    def corpus(self) -> str | None:
        """Return the name of the corpus that is searched."""
        found = self.retrieval.get("corpus")
        return None if found is None else str(found)

    @property
    def rerank(self) -> Mapping[str, Any]:
        """Return the reranker; empty without one."""
        found = self.retrieval.get("rerank")
        return found if isinstance(found, Mapping) else {}

    @property
    def benchmark(self) -> str | None:
        """Return the benchmark's name."""
        found = self.block("data").get("benchmark")
        return None if found is None else str(found)

    @property
    def data(self) -> Mapping[str, Any]:
        """Return the ``data`` block."""
        return self.block("data")

    @property
    def source(self) -> Mapping[str, Any]:
        """Return the source of the rows: files, revision, hashes."""
        return self.block("source")

    @property
    def revision(self) -> str | None:
        """Return the revision of the dataset on the hub; None for local files."""
        found = self.source.get("revision") or self.data.get("revision")
        return None if found is None else str(found)

    @property
    def split(self) -> str:
        """Return the split that was run."""
        return str(self.data.get("split") or self.source.get("split") or "test")

    @property
    def index(self) -> Mapping[str, Any]:
        """Return the index's record of itself; empty if no index was searched."""
        return self.block("index")

    @property
    def agent(self) -> Mapping[str, Any]:
        """Return the agents' settings; empty without agents."""
        return self.block("agent")

    @property
    def judge(self) -> Mapping[str, Any]:
        """Return the ``judge`` block."""
        return self.block("judge")

    @property
    def prompt(self) -> str | None:
        """Return the prompt template."""
        found = self.block("prompt").get("template")
        return None if found is None else str(found)

    @property
    def generation(self) -> Mapping[str, Any]:
        """Return the settings of decoding."""
        return self.block("generation_kwargs")

    @property
    def version(self) -> Any:
        """Return the task's version."""
        return self.block("metadata").get("version")

    @property
    def evaluated(self) -> str | None:
        """Return the evaluated model's name, as the harness passes it to tasks."""
        metadata = self.block("metadata")
        found = metadata.get("pretrained") or metadata.get("model")
        return None if found is None else str(found)

    @property
    def metrics(self) -> list[str]:
        """Return the metrics that the task names, its main one first."""
        return [str(name) for name in self.raw.get("metrics") or ()]

    @property
    def seed(self) -> Any:
        """Return the seed of the run."""
        return self.raw.get("seed")

    @property
    def scored_by(self) -> str | None:
        """Return how options were scored: generation, likelihood or greedy path."""
        return self.raw.get("scored_by")

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Return the identity of the run: fingerprints, texts, models, versions; empty in older files."""
        return self.block("provenance")

    @property
    def fingerprints(self) -> Mapping[str, Any]:
        """Return the fingerprints of the run's parts."""
        return self.provenance.get("fingerprints") or {}

    @property
    def texts(self) -> Mapping[str, str]:
        """Return the hashes of the prompts, by purpose."""
        return self.provenance.get("texts") or {}
