"""Compare the time of an XRAG build with that of its calls alone, and measure how pair finding grows with the titles.

    python benchmarks/build_xrag.py [--articles 1000] [--titles 100000] [--quick] [--json FILE]

A server in its own process plays every model after a fixed latency. The ideal is calls × latency / requests in flight.
The measured time also includes reading, pairing, searching, writing and the end of each step, where fewer calls are
left than slots. Vectors cost nothing. The same build is then repeated from the cache. Finally pair finding is measured
alone, each size in its own process: entities by Zipf's law, two to five per title, over half a year of days.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import re
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from _rows import arguments, growth, row, write_rows
from latency_server import LatencyServer

os.environ["HF_HUB_OFFLINE"] = "1"

BODY = {
    "en": "The council of {town} said on Monday that {n} trees will be planted along the old canal this autumn.",
    "de": "Der Stadtrat von {town} teilte am Montag mit, dass am alten Kanal {n} neue Bäume gepflanzt werden.",
}
SECONDS = 60.0


def reply(user: str) -> str:
    """Return the reply of the model that the prompt addresses."""
    figures = re.findall(r"\d+", user)
    if "<title>" in user:
        town = user.split("<title>")[1].split()[0]
        return f"<entity>{town}</entity><entity>Halden</entity>"
    if "<gold>" in user:
        return "<holds>some</holds>"
    if "<qa_pairs>" in user:
        return f"<answer>{figures[0]} trees</answer>"
    if "<first_pairs>" in user:
        asked = f"How do the plans {' and '.join(figures[:2])} of town {hash(user) % 10**9} differ?"
        return f"<question>{asked}</question><pairs>A1, B1</pairs>"
    if "<first_text>" in user:
        return "<related>yes</related>"
    if "<source_text>" in user:
        return f"<question>How many trees, {figures[0]}?</question><answer>{figures[0]} trees</answer>"
    if "Answer the question below from what you know" in user:
        return "<answer>None</answer>"
    if "<article>" in user:
        return f"<summary>{figures[0]} saplings and {hash(user) % 10**9} neighbours.</summary>"
    question = f"Wie unterscheiden sich die Pläne der beiden Städte, wenn man {' / '.join(figures[:3])} zusammenzählt?"
    return f"<question>{question}</question><answer>{figures[-1]} Bäume</answer>"


def articles(count: int) -> list[dict[str, Any]]:
    """Return articles, half in English and half in German: twenty per town, eight from one week and twelve older."""
    out = []
    for n in range(count):
        lang = ("en", "de")[n % 2]
        town, turn = f"Town{n // 20}", (n // 2) % 10
        day = np.datetime64("2024-06-01") + (turn if turn < 6 else 90 + turn)
        text = " ".join(BODY[lang].format(town=town, n=n * 10 + k) for k in range(12))
        out.append(
            {"title": f"{town} and Halden plant {n}", "maintext": text, "date_publish": str(day), "language": lang}
        )
    return out


class Towns:
    """Hash the town's name into a vector, at no cost."""

    name, revision, dim = "towns", "1", 64

    def embed_queries(self, texts: Any) -> Any:
        rng = np.zeros((len(texts), self.dim), dtype=np.float32)
        for vector, text in zip(rng, texts, strict=True):
            for word in re.findall(r"[Tt]own\d+", text)[:1] or ["none"]:
                vector[sum(map(ord, word)) * 7 % self.dim] = 1.0
        return rng

    embed_passages = embed_queries


def build(count: int, url: str, folder: Path, in_flight: int, cache: Path) -> tuple[float, int]:
    """Return the seconds of a build and its rows."""
    from mrag_eval.building import build_xrag
    from mrag_eval.building.xrag._xrag_settings import XragSettings
    from mrag_eval.config import ModelSpec
    from mrag_eval.models import AuxModel
    from mrag_eval.platform import Store

    folder.mkdir()
    source = folder / "articles.jsonl"
    source.write_text("".join(json.dumps(entry) + "\n" for entry in articles(count)), encoding="utf-8")
    spec = ModelSpec(
        model="local-chat-completions", model_args={"model": "m", "base_url": url}, max_in_flight=in_flight
    )
    model = AuxModel(spec, name="m", cache=Store(cache))
    # the server sees only the last message, so it must contain the type of question
    asking = folder / "questions.jinja"
    asking.write_text(
        "{% block user %}<first_pairs>{{ kind }} {{ first_answers[0] }} {{ second_answers[0] }}</first_pairs>"
        "{% endblock %}"
    )
    settings = XragSettings.model_validate(
        {
            "prompts": {"questions": str(asking)},
            "languages": ["de"],
            "articles": {"min_words": 10},
            "models": {"default": "m", "closed_book": "m"},
            "limits": {"alike": 1.0},
        }
    )
    start = time.perf_counter()
    built = build_xrag(source, folder / "out", settings, model_named=lambda name: model, embedder=Towns())
    return time.perf_counter() - start, built.rows


def pair_finding(count: int) -> dict[str, float]:
    """Return the seconds and megabytes that pair finding takes for ``count`` titles, without the titles themselves."""
    from mrag_eval.building.xrag._pairing import related_pairs
    from mrag_eval.building.xrag._xrag_records import Headline

    rng = np.random.default_rng(0)
    # as many names as titles: most occur in one or two titles, the most frequent in several per cent
    ranks = rng.zipf(1.3, size=count * 8) % count
    sizes = rng.integers(2, 6, size=count)
    days = rng.integers(0, 180, size=count)
    first, ends = np.datetime64("2024-06-01"), np.cumsum(sizes)
    items = [
        Headline(
            str(n),
            "en",
            f"title {n}",
            str(first + int(days[n])),
            tuple(f"entity {e}" for e in ranks[ends[n] - sizes[n] : ends[n]]),
        )
        for n in range(count)
    ]
    start = time.perf_counter()
    found = related_pairs(items)
    seconds = time.perf_counter() - start
    # a second run, since measuring memory takes time
    tracemalloc.start()
    related_pairs(items)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return {"n": count, "seconds": seconds, "peak_mb": peak, "pairs": len(found.pairs), "general": found.general}


def main() -> None:
    parser = arguments(__doc__, quick="100 articles, 20 ms, 10,000 titles: does it still run?")
    parser.add_argument("--articles", type=int, default=1000)
    parser.add_argument("--titles", type=int, default=100_000)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2)
    args = parser.parse_args()
    count, titles, latency = (100, 10_000, 0.02) if args.quick else (args.articles, args.titles, args.latency)
    logging.disable(logging.WARNING)

    server = LatencyServer(latency, reply)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(40, server.url, folder / "warm", args.in_flight, folder / "warm.sqlite")
        before = server.calls()
        seconds, rows = build(count, server.url, folder / "one", args.in_flight, folder / "models.sqlite")
        calls = server.calls() - before
        before = server.calls()
        cached, rows_again = build(count, server.url, folder / "two", args.in_flight, folder / "models.sqlite")
        again = server.calls() - before
    server.close()
    ideal = calls * latency / args.in_flight
    print(
        f"{count:,} articles · {rows:,} rows · {calls:,} calls of {latency * 1000:.0f} ms · {args.in_flight} in flight"
    )
    print(f"build          {seconds:7.2f} s   {seconds / ideal:5.2f} × the ideal of {ideal:.2f} s")
    print(f"from the cache {cached:7.2f} s   {again} calls")

    context = multiprocessing.get_context("spawn")
    points = []
    for size in (titles // 4, titles // 2, titles):
        with context.Pool(1) as pool:
            points.append(pool.apply(pair_finding, (size,)))
        point = points[-1]
        print(
            f"pairs of {size:>7,} titles {point['seconds']:6.2f} s   {point['peak_mb']:6.0f} MB   "
            f"{point['pairs']:,.0f} pairs, {point['general']:,.0f} entities too general"
        )
    largest = points[-1]
    memory = growth(
        f"memory of pair finding, to {titles:,} titles", points, of="peak_mb", below=1.2, judged=not args.quick
    )
    print(f"memory grows with titles to the power of {memory['exponent']:.2f}")
    write_rows(
        args.json,
        [
            row(
                f"build xrag, {count:,} articles, {calls:,} calls of {latency * 1000:.0f} ms",
                "calls × latency / in flight",
                seconds / ideal,
                at_most=1.2,
                judged=not args.quick,
                holds=again == 0 and rows == rows_again > 0,
                figures={"seconds": seconds, "ideal": ideal, "calls": calls, "cached_seconds": cached, "rows": rows},
            ),
            row(
                f"related pairs among {titles:,} titles",
                f"{SECONDS:.0f} s",
                largest["seconds"] / SECONDS,
                at_most=1.0,
                judged=not args.quick,
                holds=largest["pairs"] > 0,
                figures=largest,
            ),
            memory,
        ],
    )


if __name__ == "__main__":
    main()
