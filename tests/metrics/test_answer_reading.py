"""Replies in many languages, read as well as the page on reading answers says: bounds for sets, not single replies."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from mrag_eval.core import CORAL_POOL

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import answer_reading as measured  # noqa: E402

# Set -> what is read -> the least precision and recall over all languages: what was measured, rounded down.
BOUNDS = {
    "first": {"choices": (0.99, 0.935), "refusals": (0.99, 0.99), "yes_no": (0.99, 0.97)},
    "held_out": {"choices": (0.99, 0.96), "refusals": (0.99, 0.99), "yes_no": (0.99, 0.95)},
    "dev": {"choices": (0.99, 0.96), "refusals": (0.99, 0.96), "yes_no": (0.99, 0.99)},
    "unseen": {"choices": (0.976, 0.918), "refusals": (0.98, 0.90), "yes_no": (0.99, 0.95)},
    "fresh": {"choices": (0.987, 0.939), "refusals": (0.99, 0.875), "yes_no": (0.98, 0.955)},
}
# The same for the choices of each language in the two large sets.
EACH_LANGUAGE = {"unseen": (0.86, 0.82), "fresh": (0.94, 0.87)}


def test_the_page_has_the_tables_of_the_script() -> None:
    assert measured.page() == measured.PAGE.read_text("utf-8"), "run python scripts/answer_reading.py"


@pytest.mark.parametrize("which", BOUNDS)
def test_a_set_is_read_as_well_as_it_was(which: str) -> None:
    for what, (precision, recall) in BOUNDS[which].items():
        counts = measured.figures(which)[what, "all"]
        assert counts.right >= precision * counts.read, (what, counts)
        assert counts.right >= recall * counts.says, (what, counts)


@pytest.mark.parametrize("which", EACH_LANGUAGE)
def test_no_language_falls_behind(which: str) -> None:
    precision, recall = EACH_LANGUAGE[which]
    for code in measured.languages(which):
        counts = measured.figures(which)["choices", code]
        assert counts.right >= precision * counts.read, (code, counts)
        assert counts.right >= recall * counts.says, (code, counts)


def test_text_that_neither_chooses_nor_declines_is_seldom_read_as_if_it_did(test_data: Path) -> None:
    found = list(measured.prose(test_data / "xquad"))
    assert [sum(counts) for counts in list(zip(*found, strict=True))[1:]] == [57, 4, 7]
    assert [max(counts) for counts in list(zip(*found, strict=True))[1:]] == [10, 1, 2]


@pytest.mark.parametrize(("which", "least"), [("dev", 20), ("unseen", 40), ("fresh", 40)])
def test_each_of_thirty_languages_has_enough_replies_and_half_do_not_end_with_the_choice(
    which: str, least: int
) -> None:
    assert len(measured.languages(which)) == 30
    kinds = []
    for code in measured.languages(which):
        own = [kind for what, kind, *_ in measured.readings(which, code) if what != "refusals"]
        assert len(own) >= least, code
        kinds += own
    assert kinds.count("end") <= len(kinds) / 2


def test_every_language_of_coral_and_blend_has_twenty_phrasings_or_more() -> None:
    assert set(CORAL_POOL) <= set(measured.languages("first"))
    for code in CORAL_POOL:
        assert sum(map(len, measured.phrasings("first", code)["choices"].values())) >= 20
        assert sum(map(len, measured.phrasings("held_out", code)["choices"].values())) >= 10


# others wrote "fresh": a short reply of theirs may be one that was written before
@pytest.mark.parametrize("sets", [measured.SENTENCES, ("dev", "unseen"), ("fresh",)])
def test_no_reply_is_there_twice(sets: tuple[str, ...]) -> None:
    for code in measured.languages(sets[0]):
        seen: set[tuple[str, str]] = set()
        for which in sets:
            for what, _, reply, *_ in measured.readings(which, code):
                bare = "".join(char for char in reply.casefold() if unicodedata.category(char)[0] not in "PZ")
                assert (what, bare) not in seen, (which, code)
                seen.add((what, bare))
