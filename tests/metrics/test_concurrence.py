"""Concurrence scores: reference sets, territories worked out by hand, refusals, bad input, intervals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.core import SHARE
from mrag_eval.metrics import CONCURRENCE_SCALES, concurrence_intervals, concurrence_scores, wilson
from mrag_eval.platform import MetricError
from mrag_eval.scoring import scale_of

Rows = list[dict[str, Any]]
SETS = (
    "always_controller",
    "always_first",
    "always_last",
    "language_partisan",
    "low_resource_gaps",
    "noisy_controller",
    "partisan_noisy",
    "uniform_random",
    "with_refusals",
)


def read(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def territory(name: str, claims: dict[str, str], controller: str, languages: list[str]) -> Rows:
    """Return query rows: the English control query, then one row per language. ``claims``: claimant -> language."""
    return [
        {
            "query_id": f"{name}_{language}",
            "territory": name,
            "query_lang": language,
            "control_query": language == "en",
            "claimants": list(claims),
            "claimant_langs": list(claims.values()),
            "controller": controller,
            "controller_lang": claims.get(controller, ""),
        }
        for language in ["en", *languages]
    ]


def answer(rows: Rows, *indices: int) -> Rows:
    return [{"query_id": row["query_id"], "claimant_ind": i} for row, i in zip(rows, indices, strict=True)]


# P: held by Ara (ar), also claimed by Hin (hi). Q: controlled by nobody, claimed by Ara and by Eng, who speaks English.
P = territory("P", {"Ara": "ar", "Hin": "hi"}, "Ara", ["ar", "hi"])
Q = territory("Q", {"Ara": "ar", "Eng": "en"}, "Unknown", ["ar"])


@pytest.mark.parametrize("name", SETS)
def test_reference_sets(name: str, test_data: Path, reference: Path) -> None:
    expected = json.loads((reference / "concurrence_scores.json").read_text(encoding="utf-8"))["synthetic_sets"]
    queries = read(test_data / "borderlines" / "queries_720.jsonl")
    found = concurrence_scores(queries, read(test_data / "borderlines" / "responses_synthetic" / f"{name}.jsonl"))
    values = {key: value for key, value in expected[name].items() if key != "what"}
    if "upstream_result" in values:
        # the original script divides by zero here; ours reports which score is undefined, and why
        assert found["delta_CS_ratio"] is None
        assert "Non_CS is 0" in found.reasons["delta_CS_ratio"]
        assert found["Non_CS"] == 0
        assert found["KB_CS"] is not None
        assert found.as_dict().keys() == {key for key in expected["always_first"] if key != "what"}
        return
    assert list(found.as_dict()) == list(values)
    for key, value in found.as_dict().items():
        assert value == (values[key] if isinstance(value, str) else pytest.approx(values[key], abs=1e-12)), key


@pytest.mark.parametrize("name", SETS)
def test_the_share_of_answers_that_name_the_controller(name: str, test_data: Path) -> None:
    """Over territories with a controller: of the answers given in any language, those whose country is the controller.

    A refusal names nobody, and counts in the denominator.
    """
    queries = read(test_data / "borderlines" / "queries_720.jsonl")
    given = {r["query_id"]: r for r in read(test_data / "borderlines" / "responses_synthetic" / f"{name}.jsonl")}
    shares = []
    for place in {q["territory"] for q in queries if q["controller"] != "Unknown"}:
        answered = [q for q in queries if q["territory"] == place and q["query_id"] in given]
        named = [q["claimants"][i] if (i := given[q["query_id"]]["claimant_ind"]) >= 0 else None for q in answered]
        if named:
            shares.append(named.count(answered[0]["controller"]) / len(named))
    found = concurrence_scores(queries, [*given.values()])
    assert found["controller_share"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)
    assert found.denominators["controller_share"] == len(shares)


def test_silence_and_a_constant_option_do_not_win(test_data: Path) -> None:
    """Both agree perfectly in the papers' consistency. Silence names no controller, the first option one by chance."""
    queries = read(test_data / "borderlines" / "queries_720.jsonl")
    silent, first, right = (
        concurrence_scores(queries, [{"query_id": q["query_id"], "claimant_ind": index(q)} for q in queries])
        for index in (
            lambda q: -1,
            lambda q: 0,
            lambda q: q["claimants"].index(q["controller"]) if q["controller"] in q["claimants"] else 0,
        )
    )
    assert (silent["Cst_CS_all"], first["Cst_CS_all"]) == (1.0, 1.0)
    assert silent["controller_share"] == 0
    # 62 of 161 territories are held by their first claimant
    assert first["controller_share"] == pytest.approx(62 / 161)
    # one controller is no claimant
    assert right["controller_share"] == pytest.approx(160 / 161)
    assert (silent.denominators["controller_share"], first.denominators["controller_share"]) == (161, 161)


def test_controller_share_by_hand() -> None:
    """P has a controller, Ara; Q has none. Refused: the control question, and the one in Hindi."""
    given = [*answer(P, -1, 0, -1), *answer(Q, 1, 0)]
    for refusals, share in (("official", 1 / 3), ("incorrect", 1 / 3), ("exclude", 1.0)):
        found = concurrence_scores(P + Q, given, refusals=refusals)  # type: ignore[arg-type]
        assert found["controller_share"] == pytest.approx(share), refusals
    # the control question of a territory where English is a claimant's language counts once
    english = territory("E", {"Eng": "en", "Ara": "ar"}, "Eng", ["ar"])
    assert concurrence_scores(english, answer(english, 0, 1))["controller_share"] == 0.5
    # a question that was not asked is no answer
    assert concurrence_scores(english, answer(english[1:], 0))["controller_share"] == 1.0
    none = concurrence_scores(Q, answer(Q, 1, 0))
    assert none["controller_share"] is None
    assert none.reasons["controller_share"] == "no answer on a territory with a known controller"


def test_scores_by_hand() -> None:
    # P: English says Ara (right), Arabic says Ara, Hindi says Hin. Q: English says Eng, Arabic says Ara.
    found = concurrence_scores(P + Q, answer(P, 0, 0, 1) + answer(Q, 1, 0))
    assert found["KB_CS"] == 1  # Q has no controller
    assert found["Con_CS"] == 1
    assert found["Non_CS"] == 0
    assert found["delta_CS_ratio"] is None
    assert found["delta_CS_difference"] == 1
    assert found["Cst_CS_all"] == 0  # ar/hi differ in P; ar/en, since English is a claimant's language, differ in Q
    assert found["Cst_CS_unk"] == 0
    assert found["countries_mean"] == 2
    assert found["countries_std"] == 0
    assert found["countries_with_en_mean"] == 2


def test_delta_once_from_the_means_and_once_per_territory() -> None:
    three = territory("R", {"Ara": "ar", "Hin": "hi", "Tha": "th"}, "Ara", ["ar", "hi", "th"])
    four = territory("S", {"Ara": "ar", "Hin": "hi"}, "Ara", ["ar", "hi"])
    # R: Con 1, Non 1/2. S: Con 0, Non 1.
    found = concurrence_scores(three + four, answer(three, 0, 0, 0, 1) + answer(four, 0, 1, 0))
    assert found["delta_CS_ratio"] == pytest.approx((0.5 - 0.75) / 0.75, abs=1e-15)
    # per territory: R (1 - 0.5) / 0.5 = 1, S (0 - 1) / 1 = -1; differences 0.5 and -1
    assert found["delta_CS_ratio_per_territory"] == 0.0
    assert found.denominators["delta_CS_ratio_per_territory"] == 2
    assert found["delta_CS_difference_per_territory"] == -0.25
    assert found.denominators["delta_CS_difference_per_territory"] == 2


def test_refusals_in_three_readings() -> None:
    # P refused in English and in Arabic, Hin in Hindi
    responses = answer(P, -1, -1, 1)
    official = concurrence_scores(P, responses)
    assert (official["KB_CS"], official["Con_CS"], official["Cst_CS_all"]) == (0, 1, 0)  # -1 became the first claimant
    assert (official["countries_mean"], official["countries_with_en_mean"]) == (2, 3)
    excluded = concurrence_scores(P, responses, refusals="exclude")
    assert (excluded["KB_CS"], excluded["Con_CS"], excluded["Non_CS"], excluded["Cst_CS_all"]) == (None, None, 0, None)
    assert set(excluded.reasons) >= {"KB_CS", "Con_CS", "Cst_CS_all"}
    wrong = concurrence_scores(P, responses, refusals="incorrect")
    assert (wrong["KB_CS"], wrong["Con_CS"], wrong["Cst_CS_all"], wrong["countries_mean"]) == (0, 0, 0, 1)
    for found in (official, excluded, wrong):
        assert (found.n_refusals, found.n_refused_controls) == (2, 1)


def test_two_refusals_do_not_agree_when_they_count_as_incorrect() -> None:
    assert concurrence_scores(P, answer(P, 0, -1, -1), refusals="incorrect")["Cst_CS_all"] == 0


def test_territories_with_one_language_or_none() -> None:
    lone = territory("L", {"Ara": "ar", "Fra": "ar"}, "Ara", ["ar"])
    bare = territory("B", {"Ara": "ar", "Hin": "hi"}, "Ara", [])
    found = concurrence_scores(lone + bare, answer(lone, 0, 0) + answer(bare, 0))
    assert found["Cst_CS_all"] is None
    assert "two languages" in found.reasons["Cst_CS_all"]
    assert found["Non_CS"] is None  # the other claimant shares the controller's language
    assert found["countries_mean"] == 0.5
    assert concurrence_scores(bare, answer(bare, 0))["countries_std"] is None


def test_missing_answers_are_counted() -> None:
    found = concurrence_scores(P + Q, answer(P[1:], 0, 0))
    assert (found.n_answered, found.n_missing) == (2, 3)
    assert found["KB_CS"] == 0
    assert concurrence_scores(P + Q, answer(P[1:], 0, 0), refusals="exclude")["KB_CS"] is None


def test_codes_of_one_language_are_one_language() -> None:
    rows = territory("W", {"Isr": "iw", "Hin": "hi"}, "Isr", ["he", "hi"])
    assert concurrence_scores(rows, answer(rows, 0, 0, 1))["Con_CS"] == 1


def test_answers_by_name() -> None:
    named = [{"query_id": row["query_id"], "answer": name} for row, name in zip(P, ("Ara", None, "Hin"), strict=True)]
    assert concurrence_scores(P, named).as_dict() == concurrence_scores(P, answer(P, 0, -1, 1)).as_dict()


@pytest.mark.parametrize(
    ("queries", "responses", "says"),
    [
        (P, answer(P, 0, 0, 1) + answer(P[1:2], 1), "second response to query 'P_ar'"),
        (P, [{"query_id": "X_en", "claimant_ind": 0}], "no query has the id 'X_en'"),
        (P, answer(P, 0, 0, 2), r"claimant_ind 2 is outside 0\.\.1"),
        (P, answer(P, 0, 0, -2), "claimant_ind -2 is outside"),
        (P, [{"query_id": "P_en", "claimant_ind": 0, "answer": "Hin"}], "'Hin' is not claimant 0"),
        (P, [{"query_id": "P_en", "answer": "Atlantis"}], "'Atlantis' is not a claimant of P"),
        (P, [], "no responses"),
        ([], answer(P, 0, 0, 1), "no territories"),
        ([*P, P[1]], answer(P, 0, 0, 1), "'P_ar' occurs twice"),
        ([*P, P[1] | {"query_id": "P_ar2"}], answer(P, 0, 0, 1), "second query in 'ar'"),
        ([*P, P[0] | {"query_id": "P_en2"}], answer(P, 0, 0, 1), "second control query"),
        ([*P[:2], P[2] | {"controller": "Hin"}], answer(P, 0, 0, 1), "differ from an earlier row"),
        ([P[0] | {"claimants": None}], answer(P[:1], 0), "lacks claimants"),
        ([P[0] | {"claimant_langs": ["ar"]}], answer(P[:1], 0), "2 claimants but 1"),
    ],
)
def test_bad_input_is_named(queries: Rows, responses: Rows, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        concurrence_scores(queries, responses)


def test_unknown_treatment_of_refusals() -> None:
    with pytest.raises(MetricError, match="did you mean 'exclude'"):
        concurrence_scores(P, answer(P, 0, 0, 1), refusals="excluded")  # type: ignore[arg-type]


WORLD = [
    row
    for i in range(6)
    for row in territory(
        f"T{i}", {"Ara": "ar", "Hin": "hi", "Eng": "en"}, ["Ara", "Eng", "Unknown"][i % 3], ["ar", "hi"]
    )
]
CHOICES = st.lists(st.integers(-1, 2), min_size=len(WORLD), max_size=len(WORLD))


@given(CHOICES, st.randoms(), st.sampled_from(["official", "exclude", "incorrect"]))
def test_bounds_and_permutation_invariance(choices: list[int], rng: random.Random, refusals: Any) -> None:
    responses = answer(WORLD, *choices)
    found = concurrence_scores(WORLD, responses, refusals=refusals)
    for name, value in found.scores.items():
        if name.startswith(("KB", "Con", "Non", "Cst")) and value is not None:
            assert 0 <= value <= 1
        assert (value is None) == (name in found.reasons)
    queries = list(WORLD)
    rng.shuffle(queries)
    rng.shuffle(responses)
    again = concurrence_scores(queries, responses, refusals=refusals).scores
    assert again == {name: v if v is None else pytest.approx(v, abs=1e-12) for name, v in found.scores.items()}


@given(CHOICES, st.integers(0, len(WORLD) - 1))
def test_one_more_correct_control_answer_never_lowers_factuality(choices: list[int], at: int) -> None:
    row = WORLD[at]
    if not row["control_query"] or row["controller"] == "Unknown":
        return
    right = list(choices)
    right[at] = row["claimants"].index(row["controller"])
    before = concurrence_scores(WORLD, answer(WORLD, *choices))["KB_CS"]
    after = concurrence_scores(WORLD, answer(WORLD, *right))["KB_CS"]
    assert before is not None
    assert after is not None
    assert after >= before


def test_a_resample_of_sums_scores_as_the_resampled_rows() -> None:
    from mrag_eval.metrics._concurrence import _REASONS, _statistics, _territory_sums
    from mrag_eval.metrics._response_sets import read_response_sets

    rng = np.random.default_rng(5)
    choices = [int(i) for i in rng.integers(-1, 3, len(WORLD))]
    sums = _territory_sums(read_response_sets(WORLD, answer(WORLD, *choices), "official"))
    for drawn in rng.integers(0, 6, size=(20, 6)):
        queries: Rows = []
        responses: Rows = []
        for copy, t in enumerate(drawn):
            for row, choice in list(zip(WORLD, choices, strict=True))[3 * t : 3 * t + 3]:
                queries.append(
                    row | {"query_id": f"{copy}:{row['query_id']}", "territory": f"{copy}:{row['territory']}"}
                )
                responses.append({"query_id": queries[-1]["query_id"], "claimant_ind": choice})
        expected = concurrence_scores(queries, responses).scores
        values = _statistics(sums[drawn].sum(axis=0)[None])[0]
        for name, value in zip(_REASONS, values, strict=True):
            want = expected[name]
            assert np.isnan(value) if want is None else value == pytest.approx(want, abs=1e-12), name


def test_intervals_hold_the_plain_scores(test_data: Path) -> None:
    queries = read(test_data / "borderlines" / "queries_720.jsonl")
    responses = read(test_data / "borderlines" / "responses_synthetic" / "with_refusals.jsonl")
    scores = concurrence_scores(queries, responses).scores
    found = concurrence_intervals(queries, responses, n_resamples=2000, seed=1)
    assert {name: entry.value for name, entry in found.items()} == scores
    for entry in found.values():
        assert entry.value is not None
        assert entry.low is not None
        assert entry.high is not None
        assert entry.low < entry.value < entry.high
    assert found["KB_CS"].n == 161
    # a share over 161 independent territories: the cluster bootstrap must be close to Wilson's interval
    closed = wilson(106, 161)
    assert found["KB_CS"].low == pytest.approx(closed.low, abs=0.01)
    assert found["KB_CS"].high == pytest.approx(closed.high, abs=0.01)
    assert concurrence_intervals(queries, responses, n_resamples=2000, seed=1) == found


def test_undefined_scores_have_no_interval() -> None:
    found = concurrence_intervals(P + Q, answer(P, 0, 0, 1) + answer(Q, 1, 0), n_resamples=200)
    assert found["delta_CS_ratio"].value is None
    assert "Non_CS is 0" in (found["delta_CS_ratio"].reason or "")


def test_intervals_keep_their_range_and_count_the_territories_that_matter() -> None:
    """Five territories, four controls right: t limits were .245 to 1.355. Two without a controller do not count."""
    known = [territory(f"t{i}", {"A": "de", "B": "fr"}, "A", ["de", "fr"]) for i in range(5)]
    unknown = [territory(f"u{i}", {"A": "de", "B": "fr"}, "Unknown", ["de", "fr"]) for i in range(2)]
    rows = [row for part in (*known, *unknown) for row in part]
    right = [answer(part, int(i == 0), 0, 0) for i, part in enumerate((*known, *unknown))]
    found = concurrence_intervals(rows, [row for part in right for row in part], n_resamples=200)
    closed = wilson(4, 5)
    assert found["KB_CS"] == closed
    # all right in the controller's language: as wide as five of five, not a point
    assert (found["Con_CS"].low, found["Con_CS"].high) == pytest.approx((wilson(5, 5).low, 1.0))
    assert found["delta_CS_difference"].low is None
    assert found["delta_CS_difference"].reason in (
        "no interval from 5 territories, ten are needed",
        "no interval: the clusters show no variation",
    )


def test_a_score_is_printed_in_the_unit_and_range_that_its_interval_keeps() -> None:
    names = concurrence_scores(P, answer(P, 0, 0, 0)).scores.keys()
    assert CONCURRENCE_SCALES.keys() < names
    for name in names:
        assert scale_of(f"concurrence.{name}") is CONCURRENCE_SCALES.get(name, SHARE)
