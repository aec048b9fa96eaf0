"""A task's configuration in a result file: what was run, by name. The one place that looks keys up in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.config import Shown, mode_named, passages_shown


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """``configs.<task>`` of a result file without its scores; empty where no result file lies beside the samples.

    ``seed`` and ``scored_by`` are completed by what the run as a whole says.
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
        """The ``retrieval`` block."""
        return self.block("retrieval")

    @property
    def mode(self) -> str | None:
        """The IR mode."""
        found = self.retrieval.get("mode")
        return None if found is None else str(found)

    @property
    def searches(self) -> bool:
        """Whether the mode searches a corpus."""
        return mode_named(self.mode).searches

    @property
    def shows(self) -> Shown:
        """Which passages the prompt holds."""
        return passages_shown(self.retrieval)

    @property
    def k(self) -> int | None:
        """Passages in the prompt."""
        found = self.retrieval.get("k")
        return found if isinstance(found, int) else None

    @property
    def depth(self) -> int:
        """Places in the ranking."""
        return int(self.retrieval.get("depth") or self.retrieval.get("k") or 0)

    @property
    def corpus(self) -> str | None:
        """The corpus that is searched, by its name."""
        found = self.retrieval.get("corpus")
        return None if found is None else str(found)

    @property
    def rerank(self) -> Mapping[str, Any]:
        """The reranker; empty without one."""
        found = self.retrieval.get("rerank")
        return found if isinstance(found, Mapping) else {}

    @property
    def benchmark(self) -> str | None:
        """The benchmark's name."""
        found = self.block("data").get("benchmark")
        return None if found is None else str(found)

    @property
    def data(self) -> Mapping[str, Any]:
        """The ``data`` block."""
        return self.block("data")

    @property
    def source(self) -> Mapping[str, Any]:
        """Where the rows came from: files, revision, hashes."""
        return self.block("source")

    @property
    def revision(self) -> str | None:
        """The revision of the dataset on the hub; None for local files."""
        found = self.source.get("revision") or self.data.get("revision")
        return None if found is None else str(found)

    @property
    def split(self) -> str:
        """The split that was run."""
        return str(self.data.get("split") or self.source.get("split") or "test")

    @property
    def index(self) -> Mapping[str, Any]:
        """What the index records of itself; empty where none was searched."""
        return self.block("index")

    @property
    def agent(self) -> Mapping[str, Any]:
        """The agents' settings; empty without agents."""
        return self.block("agent")

    @property
    def judge(self) -> Mapping[str, Any]:
        """The ``judge`` block."""
        return self.block("judge")

    @property
    def prompt(self) -> str | None:
        """The prompt template."""
        found = self.block("prompt").get("template")
        return None if found is None else str(found)

    @property
    def generation(self) -> Mapping[str, Any]:
        """The settings of decoding."""
        return self.block("generation_kwargs")

    @property
    def version(self) -> Any:
        """The task's version."""
        return self.block("metadata").get("version")

    @property
    def evaluated(self) -> str | None:
        """The evaluated model's name, as the harness hands it to tasks."""
        metadata = self.block("metadata")
        found = metadata.get("pretrained") or metadata.get("model")
        return None if found is None else str(found)

    @property
    def metrics(self) -> list[str]:
        """The metrics that the task names, its main one first."""
        return [str(name) for name in self.raw.get("metrics") or ()]

    @property
    def seed(self) -> Any:
        """The seed of the run."""
        return self.raw.get("seed")

    @property
    def scored_by(self) -> str | None:
        """How options were scored: generation, likelihood or greedy path."""
        return self.raw.get("scored_by")

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What identifies the run: fingerprints, texts, models, versions; empty in older files."""
        return self.block("provenance")

    @property
    def fingerprints(self) -> Mapping[str, Any]:
        """The fingerprints of the run's parts."""
        return self.provenance.get("fingerprints") or {}

    @property
    def texts(self) -> Mapping[str, str]:
        """The hashes of the prompts, by what they are for."""
        return self.provenance.get("texts") or {}
