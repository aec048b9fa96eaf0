"""Agreement coefficients compared with other packages and by hand; votes; independence of a panel."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import (
    balanced_accuracy,
    cohen_kappa,
    effective_panel_size,
    fleiss_kappa,
    krippendorff_alpha,
    label_f1,
    majority_vote,
    pairwise_kappas,
    wilson,
)
from mrag_eval.platform import MetricError

T, F = True, False


def test_cohen_by_hand() -> None:
    # 20 both yes, 5 yes/no, 10 no/yes, 15 both no: p_o = .7, p_e = .5 * .6 + .5 * .4 = .5
    first = [T] * 25 + [F] * 25
    second = [T] * 20 + [F] * 5 + [T] * 10 + [F] * 15
    found = cohen_kappa(first, second)
    assert found.value == pytest.approx(0.4, abs=1e-12)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.4 < found.high
    assert found.n == 50


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=40))
def test_cohen_equals_scikit_learn_and_the_resampled_formula(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    from mrag_eval.metrics._agreement import _encode, _kappa

    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    if len({*first, *second}) == 1:
        assert cohen_kappa(first, second).reason == "both raters use one label throughout"
        return
    found = cohen_kappa(first, second, n_resamples=100).value
    assert found is not None
    assert -1 - 1e-12 <= found <= 1 + 1e-12
    assert found == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    codes, size = _encode([label for pair in pairs for label in pair])
    cells = np.eye(size * size)[codes[::2] * size + codes[1::2]]
    assert _kappa(np.eye(size), cells.sum(axis=0)[None])[0] == pytest.approx(found, abs=1e-12)


_GRADE = st.sampled_from([1, 2, 3, 4, 5])


@given(st.lists(st.tuples(_GRADE, _GRADE), min_size=2, max_size=40))
def test_weighted_kappa_equals_scikit_learn_and_the_resampled_formula(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    from mrag_eval.metrics._agreement import _distances, _kappa

    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    if len({*first, *second}) == 1:
        return
    order = (1, 2, 3, 4, 5)
    found = cohen_kappa(first, second, order=order, n_resamples=100).value
    expected = cohen_kappa_score(first, second, labels=order, weights="quadratic")
    assert found == pytest.approx(expected, abs=1e-12)
    cells = np.eye(25)[[(a - 1) * 5 + b - 1 for a, b in pairs]]
    agree = 1 - _distances(5) ** 2 / 16
    assert _kappa(agree, cells.sum(axis=0)[None])[0] == pytest.approx(expected, abs=1e-12)


def test_weighted_kappa_by_hand() -> None:
    first, second = [0, 0, 1, 2], [0, 1, 1, 0]
    # squared distances, observed: 0 1 0 4; of all 16 pairs: 0 1 1 0 twice, 1 0 0 1, and 4 1 1 4
    assert cohen_kappa(first, second, order=(0, 1, 2)).value == pytest.approx(1 - (5 / 4) / (16 / 16), abs=1e-12)
    # by names, and with places that nobody uses between them, the order alone counts
    words = ["bad", "fair", "good"]
    named = cohen_kappa([words[i] for i in first], [words[i] for i in second], order=words)
    assert named.value == pytest.approx(-0.25, abs=1e-12)


@pytest.mark.parametrize("order", [None, (0, 1, 2)], ids=["nominal", "ordinal"])
def test_people_who_all_agree_have_a_limit_by_wilson(order: tuple[int, ...] | None) -> None:
    labels = [0, 1, 2] * 6
    pairs = [[label, label] for label in labels]
    for found in (cohen_kappa(labels, labels, order=order), krippendorff_alpha(pairs, order=order)):
        assert found.value == pytest.approx(1.0)
        assert found.reason == "all rows agree"
        assert found.low is not None
        assert 0.4 < found.low < 1.0


def test_fleiss_by_hand() -> None:
    # counts of (x, y) by three raters in four rows: (3,0) (0,3) (2,1) (1,2)
    ratings = ["xxx", "yyy", "xxy", "xyy"]
    # P_i = 1, 1, 1/3, 1/3; P = 2/3; p_x = p_y = 1/2; P_e = 1/2
    assert fleiss_kappa(ratings).value == pytest.approx((2 / 3 - 1 / 2) / (1 / 2), abs=1e-12)


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=2, max_size=2), min_size=2, max_size=30))
def test_fleiss_of_two_raters_is_scotts_pi(ratings: list[list[str]]) -> None:
    share = sum(row.count("a") for row in ratings) / (2 * len(ratings))
    expected = share**2 + (1 - share) ** 2
    found = fleiss_kappa(ratings, n_resamples=100).value
    if expected == 1:
        assert found is None
    else:
        observed = sum(a == b for a, b in ratings) / len(ratings)
        assert found == pytest.approx((observed - expected) / (1 - expected), abs=1e-12)


def test_alpha_of_the_published_example() -> None:
    # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability: four observers, twelve units, alpha = 0.743
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = list(zip(*observers, strict=True))
    found = krippendorff_alpha(units)
    assert found.value == pytest.approx(0.743, abs=5e-4)
    assert found.n == 11  # the last unit has one rating
    # the same data as ordinal: 0.815
    assert krippendorff_alpha(units, order=(1, 2, 3, 4, 5)).value == pytest.approx(0.815, abs=5e-4)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=3, max_size=3), min_size=3, max_size=25))
def test_alpha_equals_the_resampled_formula(ratings: list[list[str | None]]) -> None:
    paired = [[label for label in row if label] for row in ratings if sum(map(bool, row)) > 1]
    found = krippendorff_alpha(ratings, n_resamples=100)
    labels = [label for row in paired for label in row]
    if len(set(labels)) < 2:
        assert found.value is None
        assert found.reason
        return
    n = len(labels)
    observed = sum(sum(row.count(c) * (row.count(c) - 1) for c in "abc") / (len(row) - 1) for row in paired) / n
    expected = sum(labels.count(c) * (labels.count(c) - 1) for c in "abc") / (n * (n - 1))
    assert found.value == pytest.approx(1 - (1 - observed) / (1 - expected), abs=1e-9)


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, 4, None]), min_size=3, max_size=3), min_size=3, max_size=25))
def test_alpha_equals_the_package_krippendorff(ratings: list[list[int | None]]) -> None:
    import krippendorff

    for level, order in (("nominal", None), ("ordinal", (1, 2, 3, 4))):
        found = krippendorff_alpha(ratings, order=order, n_resamples=100)
        if found.value is None:
            assert found.reason
            continue
        table = np.array([[np.nan if label is None else label for label in row] for row in ratings]).T
        expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level, value_domain=[1, 2, 3, 4])
        assert found.value == pytest.approx(expected, abs=1e-9)


def test_f1_by_hand() -> None:
    #            human yes: 3, predicted yes: 4, both: 2
    predicted, human = [T, T, T, T, F, None], [T, T, F, F, T, T]
    found = label_f1(predicted, human)
    assert found.n == 5
    assert found.precision[T] == pytest.approx(2 / 4)
    assert found.recall[T] == pytest.approx(2 / 3)
    assert found.f1[T].value == pytest.approx(2 * 2 / (4 + 3))
    assert found.f1[F].value == 0
    assert found.macro_f1.value == pytest.approx(2 / 7)
    only = label_f1(["x", "x"], ["x", "y"])
    assert only.precision["y"] is None
    assert only.recall["y"] == 0


def test_agreement_of_few_rows_has_no_interval_and_stays_in_its_range() -> None:
    # six rows: t limits of kappa would reach from -.30 to 1.63
    few = cohen_kappa([0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 0])
    assert (few.value, few.low) == (pytest.approx(2 / 3), None)
    assert few.reason == "no interval from 6 rows, ten are needed"
    assert fleiss_kappa([[0, 0], [1, 1], [0, 1]]).low is None
    assert krippendorff_alpha([[0, 0], [1, 1], [0, 1]]).low is None


def test_rows_of_one_group_are_resampled_together() -> None:
    first, second = [T, F, T, T, F, F] * 4, [T, F, F, T, F, T] * 4
    rows, alone = cohen_kappa(first, second), cohen_kappa(first, second, groups=range(24))
    assert (alone.value, alone.low, alone.high) == pytest.approx((rows.value, rows.low, rows.high))
    # every row three times adds nothing: the interval is that of the rows, not of three times as many
    thrice = cohen_kappa(first * 3, second * 3, groups=[*range(24)] * 3)
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert thrice.n == 72
    few = cohen_kappa(first, second, groups=[i % 5 for i in range(24)])
    assert few.reason == "no interval from 5 clusters, ten are needed"


def test_people_who_label_sentences_of_one_answer_are_resampled_by_answer() -> None:
    ratings = [[T, T, F], [F, F, F], [T, F, F], [T, T, T]] * 6
    rows, alone = fleiss_kappa(ratings), fleiss_kappa(ratings, groups=range(24))
    assert (alone.value, alone.low, alone.high) == pytest.approx((rows.value, rows.low, rows.high))
    thrice = fleiss_kappa(ratings * 3, groups=[*range(24)] * 3)
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert thrice.n == 72
    few = fleiss_kappa(ratings, groups=[i % 5 for i in range(24)])
    assert few.reason == "no interval from 5 clusters, ten are needed"


_SAID = st.sampled_from(["a", "b", "c", None])


@given(st.lists(st.tuples(_SAID, _SAID), max_size=40))
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_balanced_accuracy_equals_scikit_learn(pairs: list[tuple[str | None, str | None]]) -> None:
    from sklearn.metrics import balanced_accuracy_score

    found = balanced_accuracy([a for a, _ in pairs], [b for _, b in pairs])
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    assert found.n == len(both)
    if len({b for _, b in both}) < 2:
        assert found.value is None
        assert found.reason == ("people use one label throughout" if both else "no row with two labels")
        return
    assert found.value == pytest.approx(balanced_accuracy_score([b for _, b in both], [a for a, _ in both]))
    if found.low is not None and found.high is not None:
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_balanced_accuracy_counts_a_rare_label_as_much_as_a_common_one() -> None:
    # 36 of 40 supported ones found, 5 of 10 others
    human = [T] * 40 + [F] * 10
    predicted = [T] * 36 + [F] * 4 + [T] * 5 + [F] * 5
    found = balanced_accuracy(predicted, human)
    assert found.value == pytest.approx((0.9 + 0.5) / 2)
    # sentences of one answer that are all alike are worth one
    grouped = balanced_accuracy(predicted * 3, human * 3, groups=[*range(50)] * 3)
    repeated = balanced_accuracy(predicted * 3, human * 3)
    assert grouped.value == pytest.approx(found.value)
    widths = [(one.high or 0) - (one.low or 0) for one in (found, grouped, repeated)]
    assert widths[2] < 0.75 * widths[0]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    with pytest.raises(MetricError, match="1 predicted labels but 2 human ones"):
        balanced_accuracy([T], [T, F])


def test_raters_who_agree_throughout_are_not_certain_to() -> None:
    # all of 8 rows: Wilson's lower limit of 8 of 8 is 8 / (8 + z^2), by chance half of the rows agree
    labels = [T, F] * 4
    limit = (8 / (8 + 1.959964**2) - 0.5) / 0.5
    found = cohen_kappa(labels, labels)
    assert (found.value, found.high, found.reason) == (1.0, 1.0, "all rows agree")
    assert found.low == pytest.approx(limit, abs=1e-6)
    assert fleiss_kappa([[x, x] for x in labels]).low == pytest.approx(limit, abs=1e-6)
    # alpha's chance agreement is that of pairs without replacement: 2 * 8 * 7 of 16 * 15
    alpha = krippendorff_alpha([[x, x] for x in labels])
    assert alpha.low == pytest.approx((8 / (8 + 1.959964**2) - 7 / 15) / (8 / 15), abs=1e-6)


def test_f1_has_the_limits_of_the_share_that_it_is_a_function_of() -> None:
    # "yes": tp 3, fp 1, fn 0, so 3 of 4; F1 = 2 J / (1 + J)
    found = label_f1([T, T, T, T, F], [T, T, T, F, F])
    low, high = (2 * end / (1 + end) for end in (wilson(3, 4).low or 0.0, wilson(3, 4).high or 0.0))
    assert (found.f1[T].value, found.f1[T].low, found.f1[T].high) == pytest.approx((6 / 7, low, high))
    assert found.macro_f1.low is not None
    assert found.macro_f1.high is not None
    assert 0.0 <= found.macro_f1.low < 0.5 < found.macro_f1.high <= 1.0


def test_pairwise_kappas_name_the_raters() -> None:
    found = pairwise_kappas({"a": [T, F, T, F], "b": [T, F, T, F], "c": [F, T, F, None]})
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert found["a", "b"].value == 1
    assert found["a", "c"].n == 3


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([T, T, F], True),
        ([F, F, T], False),
        ([T, T, None], True),
        ([T, None, None], None),  # an abstention must not reduce the panel to the one remaining judge
        ([T, F, None], None),  # the third vote would decide
        ([T, F], "tie"),
        ([T, None], None),
        ([None, None, None], None),
        ([T, T, F, None], None),  # two of four are not a majority
        ([T, T, F, F], "tie"),
        ([T, F, None, None], None),
        ([T, T, F, F, None], None),
        ([T], True),
        ([None], None),
    ],
)
def test_votes(verdicts: list[bool | None], expected: Any) -> None:
    for tie in (True, False, None):
        assert majority_vote(verdicts, tie=tie) is (tie if expected == "tie" else expected)
        assert majority_vote(verdicts[::-1], tie=tie) is majority_vote(verdicts, tie=tie)


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=9), st.integers(0, 8))
def test_one_more_vote_for_never_turns_a_yes(verdicts: list[bool | None], seat: int) -> None:
    rank = {False: 0, None: 1, True: 2}
    before = majority_vote(verdicts)
    verdicts[seat % len(verdicts)] = True
    assert rank[majority_vote(verdicts)] >= rank[before]


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=7), st.booleans())
def test_no_vote_in_place_of_an_abstention_changes_a_verdict(verdicts: list[bool | None], vote: bool) -> None:
    for tie in (True, False, None):
        decided = majority_vote(verdicts, tie=tie)
        if decided is not None:
            assert majority_vote([vote if given is None else given for given in verdicts], tie=tie) is decided


def test_votes_that_are_no_verdicts() -> None:
    with pytest.raises(MetricError, match="without a panel"):
        majority_vote([])
    with pytest.raises(MetricError, match=r"verdicts\[1\] is 'yes'"):
        majority_vote([True, "yes"])  # type: ignore[list-item]
    with pytest.raises(MetricError, match="nan"):
        majority_vote([True, math.nan])  # type: ignore[list-item]
    assert majority_vote([np.True_, np.True_, np.False_]) is True  # type: ignore[list-item]


def test_a_panel_of_copies_is_one_judge() -> None:
    gold = [T, F, T, F, T, F]
    judge = [T, F, T, T, F, F]
    found = effective_panel_size([[v, v, v] for v in judge], gold)
    assert found.error_correlation == pytest.approx(1)
    assert found.effective_size == pytest.approx(1)
    assert found.error_rates == pytest.approx((1 / 3,) * 3)


def test_independent_judges_count_in_full() -> None:
    rng = random.Random(0)
    gold = [rng.random() < 0.5 for _ in range(20_000)]
    panel = [[label ^ (rng.random() < 0.2) for _ in range(4)] for label in gold]
    assert effective_panel_size(panel, gold).effective_size == pytest.approx(4, rel=0.05)


def test_panel_size_by_hand() -> None:
    # errors of two judges: (1,1) (1,0) (0,0) (0,0); variances 1/3 and 1/4, covariance 1/6
    found = effective_panel_size([[F, F], [F, T], [T, T], [T, T], [T, None]], [T, T, T, T, T])
    correlation = (1 / 6) / ((1 / 3 + 1 / 4) / 2)
    assert found.error_correlation == pytest.approx(correlation)
    assert found.effective_size == pytest.approx(2 / (1 + correlation))
    assert (found.size, found.n) == (2, 4)


def test_panels_without_a_defined_size() -> None:
    assert effective_panel_size([[T, T]] * 3, [T, T, T]).reason == "the judges' errors never vary"
    assert effective_panel_size([[T]] * 3, [T, F, T]).reason == "fewer than two judges"
    assert effective_panel_size([[T, None]], [T]).reason == "fewer than two complete rows"
    opposite = effective_panel_size([[T, F], [F, T]], [T, T])
    assert opposite.reason == "the judges' errors cancel out exactly"
    assert opposite.error_correlation == pytest.approx(-1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: cohen_kappa([T], [T, F]), "1 labels of one rater but 2"),
        (lambda: fleiss_kappa([["a", "b"], ["a"]]), r"ratings\[1\]"),
        (lambda: fleiss_kappa([["a", None]]), "krippendorff_alpha"),
        (lambda: krippendorff_alpha([["a", "b"], ["a"]]), "unequal length"),
        (lambda: label_f1([T], []), "1 predicted labels but 0"),
        (lambda: label_f1([None], [T]), "no row"),
        (lambda: effective_panel_size([[T, F]], []), "1 rows of verdicts but 0"),
        (lambda: effective_panel_size([[T, F], [T]], [T, T]), "unequal length"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        call()


def test_nothing_to_agree_on() -> None:
    assert cohen_kappa([], []).reason == "no row with two labels"
    assert fleiss_kappa([]).reason == "no rows"
    assert krippendorff_alpha([]).reason == "no row with two ratings"
    assert fleiss_kappa(["aa", "aa"]).value is None
