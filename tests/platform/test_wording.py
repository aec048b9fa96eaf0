"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from mrag_eval.platform import number_of


@pytest.mark.parametrize(
    ("n", "noun", "plural", "said"),
    [
        (0, "row", "", "0 rows"),
        (1, "row", "", "1 row"),
        (2, "retry", "retries", "2 retries"),
        (1, "retry", "retries", "1 retry"),
        (1200, "loss", "losses", "1,200 losses"),
    ],
)
def test_a_number_agrees_with_its_noun(n: int, noun: str, plural: str, said: str) -> None:
    assert number_of(n, noun, plural) == said
