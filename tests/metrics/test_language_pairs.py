"""Language-pair tables and the preference for the question's language."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import in_language_preference, language_pair_matrix
from mrag_eval.platform import MetricError


def test_macro_means_are_plain_means_over_pairs() -> None:
    # en->en 3 of 4, ar->ar 1 of 2, en->ar 1 of 3, ar->en 0 of 1
    rows = [("en", "en", v) for v in (1, 1, 1, 0)] + [("ar", "ar", v) for v in (1, 0)]
    rows += [("en", "ar", v) for v in (1, 0, 0)] + [("ar", "en", 0)]
    queries, documents, values = zip(*rows, strict=True)
    found = language_pair_matrix(list(values), queries, documents)
    assert {pair: cell.value for pair, cell in found.cells.items()} == {
        ("ar", "ar"): 0.5,
        ("ar", "en"): 0.0,
        ("en", "ar"): pytest.approx(1 / 3),
        ("en", "en"): 0.75,
    }
    assert {pair: cell.n for pair, cell in found.cells.items()} == {
        ("ar", "ar"): 2,
        ("ar", "en"): 1,
        ("en", "ar"): 3,
        ("en", "en"): 4,
    }
    assert found.same_language.value == pytest.approx((0.75 + 0.5) / 2)
    assert found.cross_language.value == pytest.approx(1 / 6)
    assert found.overall.value == pytest.approx(5 / 10)
    assert (found.same_language.n, found.cross_language.n, found.overall.n) == (6, 4, 10)
    assert found.overall.method == "Wilson"
    assert found.cells["en", "ar"].n == 3


def test_published_macro_means() -> None:
    # Cross-Lingual Cost, Table 5, Legal, BGE-M3: 92.4 and 86.5 give 89.4 (89.45), 89.8 and 55.8 give 72.8
    cells = {("ar", "ar"): 0.924, ("en", "en"): 0.865, ("ar", "en"): 0.898, ("en", "ar"): 0.558}
    rows = [(q, d, v) for (q, d), v in cells.items() for _ in range(2)]
    queries, documents, values = zip(*rows, strict=True)
    found = language_pair_matrix(list(values), queries, documents)
    assert found.same_language.value == pytest.approx(0.8945)
    assert found.cross_language.value == pytest.approx(0.728)


def test_spellings_and_scripts_of_one_language() -> None:
    found = language_pair_matrix([1, 0, 1], ["arabic", "iw", "zh_cn"], ["ar", "he", "zht"])
    assert set(found.cells) == {("ar", "ar"), ("he", "he"), ("zh-Hans", "zh-Hant")}
    assert found.same_language.value == pytest.approx(2 / 3)
    assert found.cross_language.value is None
    assert found.cross_language.reason == "no cross-language pair"


def test_unscored_rows_are_counted_by_cell() -> None:
    found = language_pair_matrix([1, None, None], ["en", "en", "ar"], ["en", "en", "ar"])
    assert found.unscored == {("ar", "ar"): 1, ("en", "en"): 1}
    assert found.cells["ar", "ar"].value is None
    assert found.cells["ar", "ar"].reason == "no scored rows"
    assert found.same_language.value is None  # an average over fewer cells would be a different number
    assert found.overall.value == 1


def test_groups_reach_every_interval() -> None:
    values = [1, 0, 1, 1, 0, 0, 1, 1] * 6
    queries = ["en", "ar"] * 24
    groups = [i // 2 for i in range(48)]
    found = language_pair_matrix(values, queries, ["en"] * 48, groups=groups, n_resamples=500)
    assert found.overall.method == "jackknife over groups, Wilson"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([], [], []), "no rows"),
        (([1.0], ["en"], []), "1 values, 1 query_langs and 0 doc_langs"),
        (([math.nan], ["en"], ["en"]), "nan"),
        (([1.0], ["en"], ["dothraki"]), r"doc_langs\[0\]: unknown language 'dothraki'"),
        (([1.0], [None], ["en"]), r"query_langs\[0\]: unknown language None"),
    ],
)
def test_bad_tables_are_named(arguments: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        language_pair_matrix(*arguments)


PAIRS = st.lists(
    st.tuples(st.sampled_from(["en", "ar", "ko"]), st.sampled_from(["en", "ar"]), st.sampled_from([0, 1])),
    min_size=1,
    max_size=20,
)


@given(PAIRS, st.randoms(use_true_random=False))
def test_table_bounds_and_permutation_invariance(rows: list[tuple[str, str, int]], rng: Any) -> None:
    def table(entries: list[tuple[str, str, int]]) -> dict[str, Any]:
        queries, documents, values = zip(*entries, strict=True)
        found = language_pair_matrix(list(values), queries, documents, n_resamples=100)
        estimates = [*found.cells.values(), found.same_language, found.cross_language, found.overall]
        assert all(e.value is None or 0 <= e.value <= 1 for e in estimates)
        assert sum(e.n for e in found.cells.values()) == found.overall.n == len(entries)
        return {str(i): e.value for i, e in enumerate(estimates)}

    before = table(rows)
    rng.shuffle(rows)
    assert table(rows) == {k: v if v is None else pytest.approx(v) for k, v in before.items()}


def test_preference_by_hand() -> None:
    # two Korean questions: of 10 Korean documents each, 3 and 1 retrieved; of 20 others each, 1 and 3
    found = in_language_preference(
        ["ko", "ko", "en"],
        [["ko", "ko", "ko", "en"], ["ko", "en", "ar", "ar"], ["en", "en"]],
        [{"ko": 10, "en": 20}, {"ko": 10, "en": 10, "ar": 10}, {"en": 4, "ko": 4}],
    )
    korean = found.by_language["ko"]
    assert korean.native == pytest.approx(4 / 20)
    assert korean.foreign == pytest.approx(4 / 40)
    assert korean.ratio == pytest.approx(2.0)
    assert korean.normalised == pytest.approx(2 / 3)
    assert korean.n_queries == 2
    english = found.by_language["en"]
    assert (english.native, english.foreign, english.ratio, english.normalised) == (0.5, 0.0, None, 1.0)
    assert "infinite" in (english.reason or "")
    assert found.overall.native == pytest.approx(6 / 24)
    assert found.overall.foreign == pytest.approx(4 / 44)
    assert found.counts == {("en", "en"): 2, ("ko", "ar"): 2, ("ko", "en"): 2, ("ko", "ko"): 4}
    assert found.shares()["ko", "ko"] == 0.5
    assert found.shares()["en", "en"] == 1.0


def test_an_indifferent_retriever_has_a_ratio_of_one() -> None:
    found = in_language_preference(["en"] * 30, [["en", "ar", "ar"]] * 30, [{"en": 10, "ar": 20}] * 30)
    assert found.overall.ratio == pytest.approx(1)
    assert found.overall.normalised == pytest.approx(0.5)
    assert found.overall.ratio_interval.value == pytest.approx(1)


def test_one_language_to_search_has_no_preference() -> None:
    found = in_language_preference(["en"], [["en"]], [{"en": 10}]).overall
    assert (found.foreign, found.ratio, found.normalised) == (None, None, None)
    assert found.reason == "nothing to search in another language"
    nothing = in_language_preference(["en"], [[]], [{"en": 10, "ar": 10}]).overall
    assert (nothing.ratio, nothing.normalised, nothing.reason) == (None, None, "nothing was retrieved")


def test_scripts_of_chinese_are_separate_unless_one_is_missing() -> None:
    apart = in_language_preference(["zhs"], [["zht"]], [{"zhs": 2, "zht": 2}]).overall
    assert (apart.native, apart.foreign) == (0.0, 0.5)
    together = in_language_preference(["zhs"], [["zh"]], [{"zh": 2, "en": 2}]).overall
    assert (together.native, together.foreign) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([], [], []), "no questions"),
        ((["en"], [], [{"en": 1}]), "1 query_langs, 0 retrieved_langs"),
        ((["en"], [["en", "en"]], [{"en": 1}]), "2 documents in 'en' were retrieved out of 1"),
        ((["en"], [["xx"]], [{"en": 1}]), r"retrieved_langs\[0\]\[0\]: unknown language 'xx'"),
    ],
)
def test_bad_preferences_are_named(arguments: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        in_language_preference(*arguments)
