"""Phrasings of 32 languages, read as the page on reading answers says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mrag_eval.core import CORAL_POOL

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import answer_reading as measured  # noqa: E402

LANGUAGES = measured.languages()
# The phrasing that the reader does not know, of those written before it: an ordinal in words.
MISSED = {"选第二个。"}


def test_the_page_has_the_tables_of_the_script() -> None:
    assert measured.page() == measured.PAGE.read_text("utf-8"), "run python scripts/answer_reading.py"


@pytest.mark.parametrize("code", LANGUAGES)
def test_phrasings_are_read_as_they_are_meant(code: str) -> None:
    for what, reply, expected, found in measured.readings("first", code):
        if reply not in MISSED:
            assert found == expected, f"{what}: {reply}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_phrasing_held_out_is_read_wrongly(code: str) -> None:
    wrong = [
        reply
        for _, reply, expected, found in measured.readings("held_out", code)
        if found is not None and found != expected
    ]
    # the reader does not know the language, and takes an A before a word for an article
    assert wrong == (["Ofwel A ofwel D."] if code == "nl" else [])


def test_every_language_of_coral_and_blend_has_twenty_phrasings_or_more() -> None:
    assert set(CORAL_POOL) <= set(LANGUAGES)
    for code in CORAL_POOL:
        entry = measured.phrasings("first", code)
        assert sum(map(len, entry["choices"].values())) + len(entry["refusals"]) >= 20
        held = measured.phrasings("held_out", code)
        assert sum(map(len, held["choices"].values())) >= 7


@pytest.mark.parametrize("which", measured.SETS)
def test_no_phrasing_is_in_both_sets(which: str) -> None:
    other = {"first": "held_out", "held_out": "first"}[which]
    for code in LANGUAGES:
        mine, theirs = (
            {reply for replies in measured.phrasings(each, code)["choices"].values() for reply in replies}
            for each in (which, other)
        )
        assert not mine & theirs, code
