"""Replies without a readable option, and the scores of random answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mrag_eval.metrics import SHARES, random_concurrence, reply_outcome
from mrag_eval.platform import MetricError

Row = Mapping[str, Any]
OPTIONS = ("South Sudan", "Sudan")


@pytest.mark.parametrize(
    ("reply", "index", "expected"),
    [
        ("B) Sudan", 1, "chosen"),
        ("A) South Sudan", 0, "chosen"),  # Sudan occurs inside the longer name, but is not named
        ("A) or B)", 0, "chosen_of_several"),
        ("B", 1, "chosen"),
        ("It belongs to Sudan.", -1, "unread"),
        ("South Sudan or Sudan", -1, "several"),
        ("C) Neither", -1, "beyond"),
        ("I cannot say whether it is South Sudan or Sudan.", -1, "refused"),
        ("I would rather not say.", -1, "refused"),
        ("Neither", -1, "refused"),
        ("Unknown", -1, "refused"),
        ("", -1, "empty"),
        (" \n", -1, "empty"),
        ("Answer: A", -1, "unread"),
        ("The correct answer is B.", -1, "unread"),
        ("Option A", -1, "unread"),
        ("b) sudan", -1, "unread"),
        ("sudan", -1, "unread"),
        ("It is disputed, but Sudan rules there.", -1, "unread"),
        ("Answer: C", -1, "beyond"),
        ("(see 3a)", -1, "unclear"),
        ("Sudanese", -1, "unread"),
        ("Egypt", -1, "unclear"),
    ],
)
def test_outcomes(reply: str, index: int, expected: str) -> None:
    assert reply_outcome(reply, OPTIONS, index) == expected
    assert SHARES[expected] == ("read" if index >= 0 else "refused" if expected == "refused" else "unread")


def test_a_refusal_is_read_in_the_words_of_its_language_and_of_english() -> None:
    assert reply_outcome("Не могу ответить на этот вопрос.", OPTIONS, -1, "ru") == "refused"
    assert reply_outcome("I cannot answer this.", OPTIONS, -1, "zh") == "refused"
    assert reply_outcome("抱歉，我无法回答。", OPTIONS, -1, "zh") == "refused"
    assert reply_outcome("抱歉，我无法回答。", OPTIONS, -1) == "unclear"


def test_an_index_outside_the_options_is_refused() -> None:
    with pytest.raises(MetricError, match=r"option 2 is outside -1\.\.1"):
        reply_outcome("C)", OPTIONS, 2)


def row(
    name: str, lang: str, claimants: list[str], langs: list[str], controller: str, spoken: str
) -> dict[str, object]:
    return {
        "query_id": f"{name}_{lang}",
        "territory": name,
        "query_lang": lang,
        "control_query": lang == "en",
        "claimants": claimants,
        "claimant_langs": langs,
        "controller": controller,
        "controller_lang": spoken,
    }


def test_random_answers_by_hand() -> None:
    """Ceuta: two claimants, asked in es and ar (and en). Islet: three claimants, asked only in es, no controller."""
    ceuta = (["Spain", "Morocco"], ["es", "ar"], "Spain", "es")
    islet = (["Spain", "Peru", "Chile"], ["es", "es", "es"], "Unknown", "")
    rows = [row("Ceuta", lang, *ceuta) for lang in ("en", "es", "ar")]
    rows += [row("Islet", lang, *islet) for lang in ("en", "es")]
    found = random_concurrence(rows)
    assert found == {
        "KB_CS": pytest.approx(1 / 2),
        "controller_share": pytest.approx(1 / 2),
        "Con_CS": pytest.approx(1 / 2),
        "Non_CS": pytest.approx(1 / 2),
        "delta_CS_ratio": pytest.approx(0),
        "delta_CS_difference": pytest.approx(0),
        "Cst_CS_unk": None,
        "Cst_CS_all": pytest.approx(1 / 2),
        # two draws from two: 2 (1 - 1/4) = 1.5; one draw from three: 1
        "countries_mean": pytest.approx((1.5 + 1) / 2),
    }
