"""Citation preference against shares counted by hand."""

from __future__ import annotations

import pytest

from mrag_eval.errors import MetricError
from mrag_eval.metrics import citation_preference

DOCUMENTS = [["ko", "en", "en", "ko"], ["ko", "en"], ["en", "en"], []]
REPLIES = [
    "Explanation: <doc0> <doc0> <doc1> <doc9>",  # ko ko en: own 2/3 of the citations, 1/2 of the documents
    "Explanation: <doc1>",  # own 0 of 1, 1/2 of the documents
    "Explanation: nothing cited",  # an English query: own all documents, no citation
    "Explanation: <doc0>",  # no documents: takes no part
]
QUERIES = ["ko", "ko", "en", "ko"]


def test_shares_by_hand() -> None:
    found = citation_preference(REPLIES, DOCUMENTS, QUERIES, cells=QUERIES, n_resamples=200)
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
    # English documents are another language's: the complement here
    assert found["english"]["ko"].figures["preference"].value == pytest.approx(1 / 6)
    assert found["other"]["ko"].figures["citation"].value == 0
    # of an English question English is its own language, and nothing was cited
    assert found["own"]["en"].figures["citation"].reason is not None
    assert found["english"]["en"].n_queries == 0
    # all: inclusion (1/2 + 1/2 + 1) / 3
    assert found["own"]["all"].figures["inclusion"].value == pytest.approx(2 / 3)


def test_lengths_are_checked() -> None:
    with pytest.raises(MetricError, match="4 responses but 1 cells"):
        citation_preference(REPLIES, DOCUMENTS, QUERIES, cells=["a"])
    with pytest.raises(MetricError, match="4 responses but 1 query languages"):
        citation_preference(REPLIES, DOCUMENTS, ["ko"])
