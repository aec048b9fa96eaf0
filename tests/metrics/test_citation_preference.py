"""Citation preference compared with shares counted by hand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from mrag_eval.metrics import CitationPreference, citation_preferences, citation_rates, parse_citations
from mrag_eval.platform import MetricError

DOCUMENTS = [["ko", "en", "en", "ko"], ["ko", "en"], ["en", "en"], []]
REPLIES = [
    "Explanation: <doc0> <doc0> <doc1> <doc9>",  # ko ko en: own 2/3 of the citations, 1/2 of the documents
    "Explanation: <doc1>",  # own 0 of 1, 1/2 of the documents
    "Explanation: nothing cited",  # an English query: all documents are in its language, no citation
    "Explanation: <doc0>",  # no documents: excluded
]
QUERIES = ["ko", "ko", "en", "ko"]


def of_one(
    replies: list[str], documents: list[list[str]], queries: list[str], cells: list[str] | None = None, **settings: Any
) -> dict[str, dict[str, CitationPreference]]:
    """Return the preferences of inline citations by one column of cells."""
    column = {"cells": cells or ["all"] * len(replies)}
    return citation_preferences(replies, documents, queries, cells=column, **settings)["inline"]["cells"]


def test_shares_by_hand() -> None:
    found = of_one(REPLIES, DOCUMENTS, QUERIES, QUERIES, n_resamples=200)
    own = found["own"]["ko"].figures
    assert own["inclusion"].value == pytest.approx(1 / 2)
    assert own["citation"].value == pytest.approx((2 / 3 + 0) / 2)
    assert own["preference"].value == pytest.approx(1 / 3 - 1 / 2)
    assert own["inclusion_pooled"].value == pytest.approx(3 / 6)
    assert own["citation_pooled"].value == pytest.approx(2 / 4)
    assert own["preference_pooled"].value == pytest.approx(0)
    assert (found["own"]["ko"].n_queries, found["own"]["ko"].n_citing) == (2, 2)
    low, high = own["preference"].low, own["preference"].high
    assert low is not None
    assert high is not None
    assert low <= -1 / 6 <= high
    # English documents are in another language: the complement here
    assert found["english"]["ko"].figures["preference"].value == pytest.approx(1 / 6)
    assert found["other"]["ko"].figures["citation"].value == 0
    # for an English question English is its own language, and nothing was cited
    assert found["own"]["en"].figures["citation"].reason is not None
    assert found["english"]["en"].n_queries == 0
    # all: inclusion (1/2 + 1/2 + 1) / 3
    assert found["own"]["all"].figures["inclusion"].value == pytest.approx(2 / 3)


def test_columns_and_sources_together_equal_each_alone() -> None:
    replies = [f"Cited Documents: {k % 2}\nExplanation: <doc{k % 2}> <doc{(k // 2) % 2}>" for k in range(40)]
    documents, queries = [["ko", "en"]] * 40, ["ko", "fr"] * 20
    columns = {"query_lang": queries, "resource_group": ["mid"] * 20 + ["high"] * 20}
    together = citation_preferences(replies, documents, queries, cells=columns, n_resamples=200, seed=3)
    assert list(together) == ["inline", "listed"]
    for source, by_column in together.items():
        for name, found in by_column.items():
            alone = citation_preferences(
                replies, documents, queries, cells={name: columns[name]}, sources=(source,), n_resamples=200, seed=3
            )[source][name]
            assert list(found["own"]) == ["all", *sorted(set(columns[name]))]
            for target, cells in alone.items():
                for cell, entry in cells.items():
                    assert found[target][cell].n_citing == entry.n_citing
                    for figure, estimate in entry.figures.items():
                        assert found[target][cell].figures[figure].value == estimate.value


def test_rates_of_the_same_replies() -> None:
    found = citation_rates(REPLIES, DOCUMENTS, query_languages=QUERIES)
    assert (found.queries, found.citing, found.without_documents, found.out_of_range) == (3, 2, 1, 1)
    assert found.by_query_language["ko"]["ko"].citation_mean == pytest.approx((2 / 3 + 0) / 2)
    assert found.by_language["ko"].documents == 3


def test_lengths_are_checked() -> None:
    with pytest.raises(MetricError, match="4 responses but 1 cells"):
        of_one(REPLIES, DOCUMENTS, QUERIES, ["a"])
    with pytest.raises(MetricError, match="4 responses but 1 query languages"):
        of_one(REPLIES, DOCUMENTS, ["ko"])


def test_limits_of_few_questions_keep_their_range() -> None:
    # shares of one half, 1 and 1: t limits would end at 1.2
    responses = ["Explanation: <doc0>", "Explanation: <doc0>", "Explanation: <doc0><doc1>"]
    found = of_one(responses, [["ko", "en"]] * 3, ["ko"] * 3)
    for cells in found.values():
        for figures in cells.values():
            for name, figure in figures.figures.items():
                if figure.low is not None and figure.high is not None:
                    assert (-1.0 if name.startswith("preference") else 0.0) <= figure.low <= figure.high <= 1.0
    share = found["own"]["all"].figures["citation"]
    assert (share.value, share.high) == (pytest.approx(5 / 6), 1.0)


@pytest.mark.parametrize("repeats_of_a_row", [1, 8])
def test_intervals_are_those_of_resampled_questions(repeats_of_a_row: int) -> None:
    rng = random.Random(repeats_of_a_row)
    documents, replies, queries = [], [], []
    for _ in range(60 // repeats_of_a_row):
        documents += [rng.choices(["en", "ko", "ar"], k=5)] * repeats_of_a_row
        replies += ["Explanation: " + " ".join(f"<doc{rng.randrange(5)}>" for _ in range(3))] * repeats_of_a_row
        queries += [rng.choice(["en", "ko"])] * repeats_of_a_row
    found = of_one(replies, documents, queries, n_resamples=4_000, seed=1)
    draws = np.random.default_rng(2)
    for target, wanted in (("own", lambda code, asked: code == asked), ("english", lambda code, _: code == "en")):
        rows = [(d, parse_citations(r).inline, q) for d, r, q in zip(documents, replies, queries, strict=True)]
        rows = [row for row in rows if target == "own" or row[2] != "en"]
        inclusion = np.array([np.mean([wanted(code, q) for code in d]) for d, _, q in rows])
        citation = np.array([np.mean([wanted(d[n], q) for n in cited]) for d, cited, q in rows])
        figure = found[target]["all"].figures["preference"]
        assert figure.value == pytest.approx((citation - inclusion).mean(), abs=1e-12)
        picks = draws.integers(0, len(rows), size=(4_000, len(rows)))
        low, high = np.quantile((citation - inclusion)[picks].mean(axis=1), (0.025, 0.975))
        # BCa and its widened quantiles differ from the plain percentiles by little
        assert (figure.low, figure.high) == (pytest.approx(low, abs=0.03), pytest.approx(high, abs=0.03))
