"""What a search depends on: places by quota, cached results and vectors, the languages an index holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mrag_eval.datasets import Benchmark, load_benchmark
from tests.tasks.test_ir_modes import search
from tests.tasks.world import LANGS, TOPICS


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


def test_with_fewer_places_than_languages_every_language_gets_its_turn(benchmark_: Benchmark) -> None:
    words = " ".join(TOPICS["ferry"][lang][1] for lang in LANGS)
    docs = [replace(benchmark_.docs[0], id=str(i), query=f"{words} {i}") for i in range(60)]

    def shown(seed: int) -> list[tuple[str, ...]]:
        found = search(benchmark_, docs, mode="balanced", k=2, seed=seed)
        return [tuple(sorted(hit.lang for hit in got.passages)) for got in found]

    first = shown(0)
    assert all(len(set(langs)) == 2 for langs in first)
    assert {lang for langs in first for lang in langs} == set(LANGS)
    assert shown(0) == first
    assert shown(1) != first  # the cache tells the seeds apart
