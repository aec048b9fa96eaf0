"""Retrieval policies on XQuAD in four languages with a lexical index: how far words reach across languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.metrics import language_pair_matrix, ranking_metrics
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval._pipeline import translator_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmark_(test_data: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "xquad", "path": str(test_data / "xquad"), "languages": ["ar", "en", "ru", "zh"]}
    )


def hits(bench: Benchmark, **policy: Any) -> tuple[float, float]:
    """Return hit@20 over same-language pairs and over cross-language pairs."""
    translator = {"backend": "table", "strict": True}
    settings = {"k": 5, "depth": 20, "kind": "bm25", "query_text": "question", "translator": translator}
    block = validated(Retrieval, {**settings, **policy}, "test")
    found = retrieve(
        bench.docs, block, corpus=bench.corpus, translator=translator_for(block, bench.docs, bench.parallel)
    )
    qrels = {doc.id: dict.fromkeys(doc.relevant_ids, 1) for doc in bench.docs}
    run = {doc.id: [place.doc_id for place in row.ranking] for doc, row in zip(bench.docs, found, strict=True)}
    values = ranking_metrics(qrels, run, measures=("hit@20",))
    matrix = language_pair_matrix(
        [values[doc.id]["hit@20"] for doc in bench.docs],
        [doc.query_lang for doc in bench.docs],
        [str(doc.gold_doc_lang) for doc in bench.docs],
        n_resamples=100,
    )
    same, cross = matrix.same_language.value, matrix.cross_language.value
    assert same is not None
    assert cross is not None
    return same, cross


def test_only_translation_helps_lexical_search_across_languages(benchmark_: Benchmark) -> None:
    found = {mode: hits(benchmark_, mode=mode) for mode in ("all", "gold_lang", "balanced", "translation")}
    assert min(same for same, _ in found.values()) > 0.95
    # two languages share names and numbers; searching the right language, or reserving places for each, does not help
    assert max(cross for mode, (_, cross) in found.items() if mode != "translation") < 0.3
    assert found["translation"][1] > 0.95
