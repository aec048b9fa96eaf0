"""Starter corpora: outlines of pages, topics in many languages, and the choice of pages, worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from time import process_time

import pytest

from mrag_eval.core import CORAL_POOL, is_language
from mrag_eval.platform import DataError
from mrag_eval.retrievers import choose, starters
from mrag_eval.retrievers.corpora._outlines import Outline, outline_of_markup, outline_of_text
from mrag_eval.retrievers.corpora._topics import NEAR, NO_PLACE, OTHER, PLACE, SUBJECT, Topics
from tests.retrievers.wiki_files import VARN

CORAL = starters()["coral-small"]
CODES = [code for code, _ in CORAL.places]


# ------------------------------------------------------------------ outlines


def test_a_text_ends_with_its_categories() -> None:
    text = "Varn is a port.\nIt has a quay.\n\nHistory\n\nFounded in 1841.\n\nPorts of Olmland\nTowns"
    outline = outline_of_text("7", "Varn", text, "en")
    assert (outline.categories, list(outline.links())) == ("Ports of Olmland\nTowns", [])
    # 15 breaks between 16 words, and one more for each empty line
    assert outline.length == 18
    assert outline_of_text("7", "首尔", "首尔 是\n首都", "zh").length == 5


def test_the_markup_of_a_page_has_categories_links_and_less_text() -> None:
    outline = outline_of_markup("12", "Varn", VARN, "en", {"category"})
    # a link to a category that is shown is no category of the page
    assert outline.categories == "Towns"
    assert {"Harbour", "Olm"} <= set(outline.links())
    assert not any("File" in title or "Category" in title for title in outline.links())
    whole = VARN.count(" ") + VARN.count("\n")
    assert 60 < outline.length < whole * 0.9


@pytest.mark.parametrize(
    ("markup", "length"),
    [
        ("one two {{three four}} five", 3),
        ("one {{a {{b c}} d|}} two", 2),
        ("one {| a\n| {{b}} c\n|} two", 2),
        ("one<ref name='x'>a b c</ref> two <ref name='x' /> three", 5),
        ("one <!-- a b --> two", 2),
        # what is never closed hides the rest, and what was never opened nothing
        ("one {{two three four", 1),
        ("one }} two |} three --> four", 6),
    ],
)
def test_the_length_of_markup_leaves_out_what_is_not_shown(markup: str, length: int) -> None:
    assert outline_of_markup("1", "t", markup, "en", ()).length == length


def test_hostile_markup_is_read_in_one_pass() -> None:
    for mark in ("{|", "{{", "<ref ", "<ref>", "<!--", "[[", "[[a:", "|}"):
        start = process_time()
        outline_of_markup("1", "t", mark * 200_000, "en", {"category"})
        assert process_time() - start < 5, mark


# ------------------------------------------------------------------ topics


@pytest.mark.parametrize(
    ("lang", "title", "categories", "near", "place"),
    [
        ("en", "Algerian cuisine", "", SUBJECT, "DZ"),
        ("en", "Couscous", "Dishes\nNational symbols of Algeria", SUBJECT, "DZ"),
        ("en", "Flag of Algeria", "National symbols", PLACE, "DZ"),
        ("en", "Oran", "Cities in Algeria", NEAR, "DZ"),
        ("en", "Harbour", "Ports", OTHER, None),
        ("en", "Football in North Korea", "", SUBJECT, "KR"),
        ("en", "Chinaware", "Pottery", PLACE, "CN"),
        ("es", "Cocina griega", "", SUBJECT, "GR"),
        ("es", "Educación en Corea del Norte", "", SUBJECT, "KR"),
        ("ko", "대한민국의 명절", "", SUBJECT, "KR"),
        ("ko", "설날", "한국의 명절", SUBJECT, "KR"),
        ("zh", "韓國飲食", "", SUBJECT, "KR"),
        ("zh", "中國飲食", "", SUBJECT, "CN"),
        ("zh", "西班牙节日", "", SUBJECT, "ES"),
        ("ar", "المطبخ الجزائري", "", SUBJECT, "DZ"),
        ("ar", "التعليم في إثيوبيا", "", SUBJECT, "ET"),
        ("fa", "نوروز", "جشن‌ها در ایران", SUBJECT, "IR"),
        ("id", "Masakan Sunda", "Jawa Barat", SUBJECT, "West Java"),
        ("el", "Ελληνική κουζίνα", "", SUBJECT, "GR"),
        ("az", "Azərbaycan mətbəxi", "", SUBJECT, "AZ"),
        ("am", "የኢትዮጵያ ምግብ", "", PLACE, "ET"),
        ("as", "অসমৰ উৎসৱ", "", OTHER, None),
    ],
)
def test_a_page_is_near_to_the_topics(lang: str, title: str, categories: str, near: int, place: str | None) -> None:
    found = CORAL.topics(lang).near(Outline("1", title, categories, 100))
    assert found == (near, NO_PLACE if place is None else CODES.index(place))


def test_a_short_name_is_a_whole_word() -> None:
    borders = starters()["bordirlines-small"].topics("en")
    assert borders.near(Outline("1", "Islands of Oman", "", 1))[0] == SUBJECT
    assert borders.near(Outline("1", "Omanyte", "", 1)) == (OTHER, NO_PLACE)


def test_a_preset_without_places_asks_for_subjects_alone() -> None:
    general = starters()["mkqa-small"].topics("de")
    assert general.near(Outline("1", "Stummfilm", "Filmgenre", 1)) == (SUBJECT, NO_PLACE)
    assert general.near(Outline("1", "Stein", "Gestein", 1)) == (OTHER, NO_PLACE)


def test_the_presets_hold_their_benchmarks_languages() -> None:
    from mrag_eval.datasets._blend import COUNTRIES
    from mrag_eval.datasets._mkqa import LANGUAGES

    assert set(CORAL.passages) == set(CORAL_POOL)
    assert len(CORAL.places) == len(COUNTRIES) == 16
    assert set(starters()["mkqa-small"].passages) == set(LANGUAGES)
    assert len(starters()["bordirlines-small"].passages) == 48
    for preset in starters().values():
        for lang in preset.passages:
            assert is_language(lang)
            groups = preset.topics(lang).places
            # CLDR names every place in every language, in some by its English name
            assert len(groups) == len(preset.places)
            assert [place for place, names in zip(preset.places, groups, strict=True) if not names] in (
                [],
                [("West Java", "")],
                [("Assam", "")],
            )


# ------------------------------------------------------------------ the choice

TOPICS = Topics(((" abra",), (" birk",)), (" food",))
OUTLINES = [
    Outline("1", "Abra food", "", 250),  # subject, 3 passages of 100 words
    Outline("2", "Abra", "", 1_000, lambda: ["Olm", "Nowhere"]),  # place, 10
    Outline("3", "Birk", "", 100),  # place, 1
    Outline("4", "Abra town", "", 900),  # place, 9
    Outline("5", "Olm", "", 150),  # linked from 2: near, 2
    Outline("6", "Dale", "In Birk", 400),  # near by category, 4
    Outline("7", "Long", "", 5_000),  # neither, 50
    Outline("8", "Longer", "", 5_100),  # neither, 51
    Outline("9", "Empty", "", 0),  # neither, 1
]


@pytest.mark.parametrize(
    ("passages", "kept"),
    [
        # at least one page
        (2, "1"),
        (3, "1"),
        # places in turn, the longest page of each first: 2 of Abra, 3 of Birk, then 4 of Abra
        (13, "12"),
        (14, "123"),
        (22, "123"),
        (23, "1234"),
        # linked pages have no place and come before Birk's
        (25, "12345"),
        (29, "123456"),
        (79, "123456"),
        (80, "1234568"),
        (130, "12345678"),
        (131, "123456789"),
    ],
)
def test_pages_are_chosen_by_nearness_then_in_turn_then_by_length(passages: int, kept: str) -> None:
    found = choose(OUTLINES, TOPICS, passages, 100)
    assert (found.pages, found.read) == (frozenset(kept), 9)
    assert sum(found.nearness.values()) == len(kept)


def test_the_order_of_the_pages_does_not_matter() -> None:
    rng = random.Random(0)
    outlines = [
        Outline(
            str(number),
            f"{rng.choice(('Abra', 'Birk', 'Olm'))} {rng.choice(('food', 'stone'))}",
            "",
            100 * (number % 3),
        )
        for number in range(1, 200)
    ]

    def kept(order: Sequence[Outline]) -> frozenset[str]:
        return choose(order, TOPICS, 90, 100).pages

    first = kept(outlines)
    assert 0 < len(first) < 199
    for _ in range(5):
        assert kept(rng.sample(outlines, len(outlines))) == first


def test_pages_without_a_number_and_empty_editions_are_refused() -> None:
    for page in ("x1", "", "1" * 19, "²"):
        with pytest.raises(DataError, match=f"page 'Varn': its id '{page}' is no number"):
            choose([Outline(page, "Varn", "", 1)], TOPICS, 10, 100)
    with pytest.raises(DataError, match="holds no pages"):
        choose([], TOPICS, 10, 100)
