"""A judge's rate corrected by labels: worked by hand, and its variance compared with a jackknife over groups."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mrag_eval.metrics import CorrectedRate, Estimate, corrected_rate
from mrag_eval.platform import MetricError

# 20 labelled rows: 12 correct, of which the judge finds 10; 8 incorrect, of which it finds 5
LABELS = [1.0] * 12 + [0.0] * 8
VERDICTS = [1.0] * 10 + [0.0] * 2 + [1.0] * 3 + [0.0] * 5
# 40 others: the judge calls 28 correct
OTHERS = [1.0] * 28 + [0.0] * 12
T_19 = 2.093024


def planted(**settings: float) -> CorrectedRate:
    return corrected_rate([*VERDICTS, *OTHERS], [*LABELS, *[None] * 40], **settings)  # type: ignore[arg-type]


def limits(found: Estimate) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_without_tuning_by_hand() -> None:
    found = planted(tuning=1.0).prediction_powered
    # mean(y) = 12/20, mean(f) = 13/20, mean(F) = 28/40
    assert found.value == pytest.approx(0.6 - (0.65 - 0.7))
    # y - f is 1 twice and -1 three times: squares 5 - 20 * 0.05^2; F: 40 * 0.7 * 0.3
    variance = 4.95 / (20 * 19) + 8.4 / (40 * 39)
    assert limits(found) == pytest.approx((0.65 - T_19 * variance**0.5, 0.65 + T_19 * variance**0.5))
    assert found.n == 20


def test_the_power_tuning_by_hand() -> None:
    found = planted()
    # sum(y f) - 20 * 0.6 * 0.65 = 2.2; squares of f: 20 * 0.65 * 0.35
    tuning = (2.2 / 380) / (4.55 / 380 + 8.4 / 1560)
    assert found.tuning == pytest.approx(tuning)
    assert found.prediction_powered.value == pytest.approx(0.6 + tuning * 0.05)
    low, high = limits(found.prediction_powered)
    for other in (0.0, 1.0, tuning + 0.05, tuning - 0.05):
        below, above = limits(planted(tuning=other).prediction_powered)
        assert high - low < above - below


def test_no_tuning_is_the_mean_of_the_labels() -> None:
    found = planted(tuning=0.0).prediction_powered
    margin = T_19 * (0.6 * 0.4 * 20 / (20 * 19)) ** 0.5
    assert limits(found) == pytest.approx((0.6 - margin, 0.6 + margin))


def test_rogan_and_gladen_by_hand() -> None:
    found = planted()
    assert found.sensitivity.value == pytest.approx(10 / 12)
    assert found.specificity.value == pytest.approx(5 / 8)
    rate = (13 + 28) / 60
    assert found.rogan_gladen.value == pytest.approx((rate + 5 / 8 - 1) / (10 / 12 + 5 / 8 - 1))


def sample(rng: np.random.Generator) -> tuple[list[float], list[float | None], list[str], list[int]]:
    """Return 900 rows of 300 groups in two languages, labelled at different rates."""
    groups = np.repeat(np.arange(300), 3)
    languages = np.where(np.arange(900) % 3 == 0, "sw", "de")
    people = rng.random(900) < rng.beta(2, 1, size=300)[groups]
    verdicts = np.where(people, rng.random(900) < 0.9, rng.random(900) < 0.3).astype(float)
    drawn = rng.random(900) < np.where(languages == "sw", 0.5, 0.2)
    labels = [float(people[i]) if drawn[i] else None for i in range(900)]
    return verdicts.tolist(), labels, languages.tolist(), groups.tolist()


@pytest.mark.parametrize("name", ["prediction_powered", "rogan_gladen"])
def test_the_variance_is_the_jackknifes_over_groups(name: str) -> None:
    verdicts, labels, languages, groups = sample(np.random.default_rng(0))

    def estimate(rows: Sequence[int]) -> Estimate:
        found = corrected_rate(
            [verdicts[i] for i in rows],
            [labels[i] for i in rows],
            strata=[languages[i] for i in rows],
            groups=[groups[i] for i in rows],
            tuning=0.6,
        )
        return getattr(found, name)  # type: ignore[no-any-return]

    left_out = np.array([estimate([i for i in range(900) if groups[i] != group]).value for group in range(300)])
    deviation = np.sqrt(299 / 300 * ((left_out - left_out.mean()) ** 2).sum())
    low, high = limits(estimate(range(900)))
    assert (high - low) / 2 == pytest.approx(1.97 * deviation, rel=0.05)


def test_groups_make_the_interval_wider() -> None:
    verdicts = [*VERDICTS, *OTHERS] * 3
    labels = [*LABELS, *[None] * 40] * 3
    single = limits(corrected_rate(verdicts, labels).prediction_powered)
    copies = limits(corrected_rate(verdicts, labels, groups=[i % 60 for i in range(180)]).prediction_powered)
    # three copies of every row are worth no more than one
    assert copies == pytest.approx(limits(planted().prediction_powered))
    assert single[1] - single[0] < (copies[1] - copies[0]) / 1.6


def test_every_stratum_counts_by_its_share_of_all_rows() -> None:
    # sw: 10 of 100 rows, all labelled, 2 correct; de: 90 rows, 10 labelled, 8 correct; the judge calls all correct
    verdicts = [1.0] * 100
    labels = [*[1.0] * 2, *[0.0] * 8, *[1.0] * 8, *[0.0] * 2, *[None] * 80]
    found = corrected_rate(verdicts, labels, strata=["sw"] * 10 + ["de"] * 90)
    assert found.prediction_powered.value == pytest.approx(0.1 * 0.2 + 0.9 * 0.8)
    assert found.tuning == 0.0
    assert found.rogan_gladen.value is None
    assert found.rogan_gladen.reason == "the judge is no better than chance on the labelled rows"


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([1.0] * 10 + [0.0] * 9, "no interval: 19 labelled rows, 20 are needed"),
        ([1.0] * 36 + [0.0] * 4, "no interval: 4 labelled incorrect, 5 are needed"),
        ([], "no label"),
    ],
)
def test_too_few_labels_give_a_reason_and_no_interval(labels: list[float], reason: str) -> None:
    rows: list[float | None] = [*labels, *[None] * (100 - len(labels))]
    found = corrected_rate([1.0, 0.0] * 50, rows).prediction_powered
    assert found.reason == reason
    assert (found.low, found.high) == (None, None)
    assert (found.value is None) == (not labels)


def test_a_stratum_without_labels_gives_no_rate() -> None:
    found = corrected_rate([1.0] * 60, [*LABELS, *[None] * 40], strata=["de"] * 40 + ["sw"] * 20)
    assert found.prediction_powered.reason == "no label in 1 of 2 languages"


def test_groups_are_what_must_be_enough() -> None:
    found = corrected_rate([*VERDICTS, *OTHERS], [*LABELS, *[None] * 40], groups=[i // 2 for i in range(60)])
    assert found.prediction_powered.reason == "no interval: 10 groups of labelled rows, 20 are needed"


@pytest.mark.parametrize(
    ("verdicts", "labels", "message"),
    [([0.5], [None], "must be 0 or 1"), ([1.0], [0.5], "must be 0 or 1"), ([1.0], [], "1 verdicts but 0 labels")],
)
def test_other_values_are_refused(verdicts: list[float], labels: list[float | None], message: str) -> None:
    with pytest.raises(MetricError, match=message):
        corrected_rate(verdicts, labels)


def load() -> ModuleType:
    """Return the benchmark that simulates coverage, so that both use the same populations."""
    path = Path(__file__).parents[2] / "benchmarks" / "judge_coverage.py"
    spec = importlib.util.spec_from_file_location("judge_coverage_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


COVERAGE = load()
LARGE = [case for case in COVERAGE.cases() if case.labels >= 100]
UNEVEN = [case for case in COVERAGE.cases() if len(case.languages) > 2]


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_intervals_from_100_labels_contain_the_true_rate(case: object) -> None:
    _, (powered, _, _), (gladen, _, _) = COVERAGE.simulate(case, 1000, np.random.default_rng(1))
    assert 0.93 <= powered <= 0.97
    assert gladen >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("case", UNEVEN, ids=lambda case: case.name)
def test_languages_of_very_different_size_are_covered_however_labels_are_spread(case: object) -> None:
    """Equal labels in 2,000 and nine times 100 rows covered .68 with three labels each, .79 and .90 with more."""
    _, (powered, _, none), _ = COVERAGE.simulate(case, 600, np.random.default_rng(1))
    # 2,000 of 2,900 rows are in the first language
    if case.languages[0][2] < 10:  # type: ignore[attr-defined]
        assert none == 1
    else:
        assert powered + 1.96 * (0.93 * 0.07 / 600) ** 0.5 >= 0.93
        # some draws of 50 lack five incorrect ones
        assert none < 0.2


def test_labels_by_size_give_a_narrower_interval() -> None:
    rng = np.random.default_rng(1)
    equal, by_size = (
        COVERAGE.simulate(COVERAGE.uneven((0.7, large), (0.7, small)), 60, rng)[1]
        for large, small in ((10, 10), (55, 5))
    )
    assert by_size[0] >= 0.9
    assert by_size[1] < 0.6 * equal[1]


def spread_of(labels: dict[str, list[float]], rows: dict[str, int]) -> Estimate:
    """Return the estimate of labels alone (lambda 0), by language."""
    verdicts, people, strata = [], [], []
    for language, known in labels.items():
        verdicts += [1.0] * rows[language]
        people += [*known, *[None] * (rows[language] - len(known))]
        strata += [language] * rows[language]
    return corrected_rate(verdicts, people, strata=strata, tuning=0.0).prediction_powered


def test_the_variance_of_a_language_borrows_from_the_others_by_hand() -> None:
    """en: 5 labels that agree, of 500 rows; sw: 17 labels, 8 correct, of 500 rows.

    The variances by n - 1 are 0 and 8 x 9 / (17 x 16) = .26471; with a disagreement each, over the labels, .2 and
    .32353; pooled over 4 + 16 degrees of freedom .29882. With three of these each: en (3 x .29882 + 4 x .2) / 7 =
    .24235, sw (3 x .29882 + 16 x .32353) / 19 = .31963. The variance of it is .5^2 x .24235 / 5 + .5^2 x
    .31963 / 17 = .0121176 + .0047004. Satterthwaite, with 7 and 19 degrees of freedom:
    .0168181^2 / (.0121176^2 / 7 + .0047004^2 / 19) = 12.776, and t is 2.1642.
    """
    found = spread_of({"en": [1.0] * 5, "sw": [1.0] * 8 + [0.0] * 9}, {"en": 500, "sw": 500})
    value = 0.5 + 0.5 * 8 / 17
    assert found.value == pytest.approx(value)
    assert found.low == pytest.approx(value - 2.1642 * 0.0168181**0.5, abs=2e-5)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"en": 9, "sw": 30}, "no interval: 9 labelled rows in en (70% of the rows), 10 are needed"),
        ({"en": 12, "sw": 30}, None),
        ({"en": 24, "sw": 1}, None),
        (
            {"en": 5} | {f"l{i}": 1 + (i < 4) for i in range(11)},
            "no interval: 20 labels in 12 languages, 22 are needed",
        ),
    ],
)
def test_an_interval_is_refused_where_the_largest_language_lacks_labels(
    labels: dict[str, int], reason: str | None
) -> None:
    known = {language: [float(i % 2) for i in range(count)] for language, count in labels.items()}
    found = spread_of(known, {language: 700 if language == "en" else 300 for language in labels})
    assert (found.reason, found.low is None) == (reason, reason is not None)


def test_the_interval_of_a_lenient_judge_misses_the_true_rate() -> None:
    (case,) = (case for case in LARGE if case.specificity == 0.75)
    (own, _, _), (powered, _, _), _ = COVERAGE.simulate(case, 50, np.random.default_rng(1))
    assert own < 0.1
    assert powered > 0.85


def test_verdicts_add_nothing_in_a_language_in_which_every_row_has_a_label() -> None:
    """b has labels throughout, three of four correct. a: labels 1 0, verdicts 1 1 on them, 1 0 0 0 elsewhere.

    With lambda 1, a is 1/2 - (1 - 1/4) = -1/4, and six of ten rows: .6 x -1/4 + .4 x 3/4 = .15.
    """
    verdicts = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    labels = [1.0, 0.0, None, None, None, None, 1.0, 1.0, 1.0, 0.0]
    found = corrected_rate(verdicts, labels, strata=["a"] * 6 + ["b"] * 4, tuning=1.0)
    assert found.prediction_powered.value == pytest.approx(0.15)


def test_no_design_of_few_labels_divides_by_nothing() -> None:
    """Every labelling of up to four rows, in one stratum or two, of single rows or pairs."""
    for n in range(1, 5):
        verdicts = [float(i % 2) for i in range(n)]
        for labels in itertools.product((None, 0.0, 1.0), repeat=n):
            for strata, groups in itertools.product((None, "aabb"[:n], "abab"[:n]), (None, "xxyy"[:n])):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = corrected_rate(verdicts, labels, strata=strata, groups=groups)
                assert found.prediction_powered.low is None
                assert found.labelled == n - labels.count(None)
