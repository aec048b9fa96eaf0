"""Citations: parsing, rates by hand, exclusions, bad input."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import Citations, LanguageCitations, citation_rates, parse_citations
from mrag_eval.platform import MetricError


def explained(text: str, listed: str = "0") -> str:
    return f"Cited Documents: {listed}\nChosen Option: A) x\nExplanation: because {text}"


def test_parsing() -> None:
    response = explained("<doc0,2> and <doc2>, not <doc 1>, <Doc1>, [doc1] or <doc1, 3>", "0, 2")
    assert parse_citations(response) == Citations((0, 2, 2), (0, 2), "0, 2")
    assert parse_citations(explained("nothing", "None")) == Citations((), (), "None")
    assert parse_citations("As <doc4> says") == Citations((), (), None)
    assert parse_citations("As <doc4> says", whole_response=True).inline == (4,)


def test_a_number_of_thousands_of_digits_is_a_citation_of_no_document() -> None:
    # Python refuses to read a number of more than 4,300 digits
    found = parse_citations("Cited Documents: 0, " + "1" * 4301)
    assert found.listed == (0, sys.maxsize)
    rates = citation_rates([explained(f"<doc{'9' * 5000},0>")], [["en"]])
    assert (rates.out_of_range, rates.by_language["en"].citations) == (1, 1)


LANGS = [["en", "en", "ko", "ko"], ["ko", "en"]]
RESPONSES = [explained("<doc0> <doc0> <doc2> <doc9>", "0, 2"), explained("<doc0>", "0, 1")]


def test_rates_by_hand() -> None:
    found = citation_rates(RESPONSES, LANGS, query_languages=["ko", "ko"])
    english, korean = found.by_language["en"], found.by_language["ko"]
    # inclusion: en 2/4 and 1/2; pooled 3 of 6
    assert (english.inclusion_mean, english.inclusion_pooled, english.documents) == (0.5, 0.5, 3)
    # citations with repeats: first query en 2 of 3, second ko 1 of 1
    assert english.citation_mean == pytest.approx((2 / 3 + 0) / 2)
    assert korean.citation_mean == pytest.approx((1 / 3 + 1) / 2)
    assert (english.citation_pooled, korean.citation_pooled) == (2 / 4, 2 / 4)
    assert (found.queries, found.citing, found.out_of_range) == (2, 2, 1)
    assert found.by_query_language["ko"]["ko"].citation_mean == korean.citation_mean


def test_without_repeats_and_from_the_list() -> None:
    once = citation_rates(RESPONSES, LANGS, repeats=False).by_language["en"]
    assert once.citation_mean == pytest.approx((1 / 2 + 0) / 2)
    assert once.citations == 1
    listed = citation_rates(RESPONSES, LANGS, source="listed").by_language["en"]
    assert listed.citation_mean == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_exclusions_are_counted() -> None:
    responses = [None, explained("nothing"), explained("<doc0>"), explained("<doc0>")]
    found = citation_rates(responses, [["en"], ["en"], [], ["ko"]])
    assert (found.unanswered, found.without_documents, found.queries, found.citing) == (1, 1, 2, 1)
    # the query without citations has an inclusion but no citation share
    assert found.by_language["en"].inclusion_mean == 0.5
    assert found.by_language["en"].citation_mean == 0.0
    nobody = citation_rates([explained("nothing")], [["en"]]).by_language["en"]
    assert (nobody.citation_mean, nobody.citation_pooled) == (None, None)
    assert citation_rates([], []).by_language == {}


def test_codes_of_the_benchmark() -> None:
    found = citation_rates([explained("<doc0>")], [["zhs", "zht", "iw"]])
    assert set(found.by_language) == {"zh-Hans", "zh-Hant", "he"}


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 6), max_size=6), st.lists(st.sampled_from(["en", "ko", "ar"]), max_size=5)),
        max_size=6,
    ),
    st.booleans(),
)
def test_shares_sum_to_one(rows: list[tuple[list[int], list[str]]], repeats: bool) -> None:
    responses = [Citations(tuple(numbers), tuple(numbers), None) for numbers, _ in rows]
    found = citation_rates(responses, [langs for _, langs in rows], repeats=repeats)
    table = found.by_language.values()
    if found.queries:
        assert sum(entry.inclusion_mean or 0 for entry in table) == pytest.approx(1)
        assert sum(entry.inclusion_pooled or 0 for entry in table) == pytest.approx(1)
    if found.citing:
        assert sum(entry.citation_mean or 0 for entry in table) == pytest.approx(1)
        assert sum(entry.citation_pooled or 0 for entry in table) == pytest.approx(1)
    backwards = citation_rates(responses[::-1], [langs for _, langs in rows][::-1], repeats=repeats)
    assert {k: v.citations for k, v in backwards.by_language.items()} == {
        k: v.citations for k, v in found.by_language.items()
    }


def counted(pairs: list[tuple[Counter[str], Counter[str]]]) -> dict[str, LanguageCitations]:
    """Return the rates of (languages of the documents, languages of the citations) by their definition."""
    table = {}
    for language in sorted({code for included, _ in pairs for code in included}):
        shares = [[side[language] / side.total() for side in sides if side] for sides in zip(*pairs, strict=True)]
        totals = [sum(side[language] for side in sides) for sides in zip(*pairs, strict=True)]
        sizes = [sum(side.total() for side in sides) for sides in zip(*pairs, strict=True)]
        means = [sum(values) / len(values) if values else None for values in shares]
        pooled = [total / size if size else None for total, size in zip(totals, sizes, strict=True)]
        table[language] = LanguageCitations(language, *means, *pooled, *totals)
    return table


def assert_same(found: Mapping[str, LanguageCitations], expected: Mapping[str, LanguageCitations]) -> None:
    """Compare but for the last digit: the sums of Python 3.12 are compensated."""
    assert found.keys() == expected.keys()
    for language, row in found.items():
        assert astuple(row)[1:] == pytest.approx(astuple(expected[language])[1:], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rates_of_random_rows_are_those_of_a_loop(seed: int) -> None:
    rng = random.Random(seed)
    codes = ["en", "ko", "ar", "zhs", "sw"]
    rows: list[tuple[str, Counter[str], Counter[str]]] = []
    responses: list[Citations | None] = []
    documents, queries = [], []
    for _ in range(120):
        found = rng.choices(codes, k=rng.choice([0, 1, 5, 10]))
        numbers = tuple(rng.choices(range(12), k=rng.choice([0, 0, 2, 6])))
        responses.append(None if rng.random() < 0.1 else Citations(numbers, (), None))
        documents.append(found)
        queries.append(rng.choice(codes[:4]))
        named = ["zh-Hans" if code == "zhs" else code for code in [*found, queries[-1]]]
        if found and responses[-1] is not None:
            rows.append((named[-1], Counter(named[:-1]), Counter(named[n] for n in numbers if n < len(found))))
    rates = citation_rates(responses, documents, query_languages=queries)
    assert_same(rates.by_language, counted([row[1:] for row in rows]))
    assert list(rates.by_query_language) == sorted({row[0] for row in rows})
    for asked, table in rates.by_query_language.items():
        assert_same(table, counted([row[1:] for row in rows if row[0] == asked]))
    assert (rates.queries, rates.citing) == (len(rows), sum(bool(row[2]) for row in rows))
    assert rates.unanswered == responses.count(None)
    assert rates.queries + rates.unanswered + rates.without_documents == 120


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: citation_rates(["x"], []), "1 responses but 0 lists"),
        (lambda: citation_rates(["x"], [["en"]], query_languages=[]), "1 responses but 0 query languages"),
        (lambda: citation_rates(["x"], [["qq"]]), r"document_languages\[0\]: unknown language 'qq'"),
        (lambda: citation_rates(["x"], [["en"]], source="inlin"), "did you mean 'inline'"),
        (lambda: parse_citations(None), "must be a string"),
    ],
)
def test_bad_input(call: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        call()
