"""Concurrence by territory: values whose means are the scores."""

from __future__ import annotations

from statistics import fmean

import pytest

from mrag_eval.metrics import concurrence_by_territory, concurrence_scores
from tests.metrics.test_concurrence import P, Q, answer, territory


def test_values_by_hand() -> None:
    # P: English says Ara (right), Arabic says Ara, Hindi says Hin. Q has no controller: Eng in English, Ara in Arabic.
    assert concurrence_by_territory(P + Q, answer(P, 0, 0, 1) + answer(Q, 1, 0)) == {
        "P": {
            "KB_CS": 1.0,
            "controller_share": 2 / 3,
            "Con_CS": 1.0,
            "Non_CS": 0.0,
            "Cst_CS_all": 0.0,
            "countries_mean": 2.0,
            "countries_with_en_mean": 2.0,
            "delta_CS_difference_per_territory": 1.0,
            # 1 territory with either, 1 with each: 1 (1 / 1 - 0 / 1)
            "delta_CS_difference": 1.0,
        },
        "Q": {"Cst_CS_all": 0.0, "Cst_CS_unk": 0.0, "countries_mean": 2.0, "countries_with_en_mean": 2.0},
    }


def test_the_mean_of_the_values_is_the_score_even_of_a_difference_over_different_territories() -> None:
    """R has both, S no answer in the controller's language, U only that one: Con is over R and U, Non over R and S."""
    three = territory("R", {"Ara": "ar", "Hin": "hi", "Tha": "th"}, "Ara", ["ar", "hi", "th"])
    four = territory("S", {"Ara": "ar", "Hin": "hi"}, "Ara", ["ar", "hi"])
    alone = territory("U", {"Ara": "ar", "Hin": "hi"}, "Ara", ["ar", "hi"])
    given = [*answer(three, 0, 0, 0, 1), *answer([four[0], four[2]], 0, 0), *answer(alone[:2], 0, 1)]
    # Con: R 1, U 0. Non: R 1/2, S 1. Their difference is 1/2 - 3/4
    scores = concurrence_scores(three + four + alone, given)
    assert scores["delta_CS_difference"] == pytest.approx(-0.25)
    found = concurrence_by_territory(three + four + alone, given)
    values = {name: entry["delta_CS_difference"] for name, entry in found.items()}
    assert values == pytest.approx({"R": 3 * (1 / 2 - 1 / 4), "S": 3 * (0 - 1 / 2), "U": 0.0})
    for name in {name for entry in found.values() for name in entry}:
        assert fmean(entry[name] for entry in found.values() if name in entry) == pytest.approx(scores[name]), name
    assert not any("delta_CS_ratio" in entry for entry in found.values())
