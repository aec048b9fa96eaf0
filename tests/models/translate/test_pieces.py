"""Pieces for translation: whole sentences, packed to what fits, joined as the target language is written."""

from __future__ import annotations

import re

import pytest

from mrag_eval.models.translate._pieces import halves, joined, packed, sentences
from mrag_eval.text._cutting import _continues
from tests.worlds.mixed_scripts import LANGUAGES, cutting_fault, mixed_texts


def test_pieces_cover_the_text_and_come_together_again() -> None:
    text = "One here. Two there!\nThree on a line."
    pieces = sentences(text, "en", lambda piece: True)
    assert pieces == ["One here. ", "Two there!\n", "Three on a line."]
    assert joined(pieces, ["Eins hier.", " Zwei dort! ", "Drei."], "de") == "Eins hier. Zwei dort!\nDrei."
    assert joined(["一。", "二。"], ["One.", "Two."], "en") == "One. Two."
    assert joined(["One. ", "Two."], ["一。", "二。"], "zh") == "一。二。"
    long = "word " * 30
    cut = sentences(long, "en", lambda piece: len(piece) <= 20)
    assert "".join(cut) == long
    assert max(map(len, cut)) <= 20
    assert all(piece.startswith("word ") for piece in cut)
    assert "".join(sentences("あ" * 50, "ja", lambda piece: len(piece) <= 20)) == "あ" * 50
    assert packed("Aa. Bb. Cc. Dd.", "en", 8) == ["Aa. Bb. ", "Cc. Dd."]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        *[(lang, "A。B。") for lang in ("zh", "zh-Hant", "yue", "ja")],
        # no space between words, but one between sentences
        *[(lang, "A。 B。") for lang in ("th", "lo", "km", "my", "bo", "dz", "ko", "en")],
    ],
)
def test_joints(target: str, expected: str) -> None:
    assert joined(["1. ", "2."], ["A。", "B。"], target) == expected


@pytest.mark.parametrize("line_break", ["\n", "\r\n", " \n ", "\n\n", "\u2028", "\x85"])
def test_line_breaks_are_kept(line_break: str) -> None:
    pieces = sentences(f"One{line_break}Two", "en", lambda piece: True)
    assert joined(pieces, ["一", "二"], "zh") == f"一{line_break}二"


def test_thai_and_lao_are_not_translated_phrase_by_phrase() -> None:
    thai = "สะพานเก่า แม่น้ำกว้าง คนเดินข้าม\nฝนตก"
    assert sentences(thai, "th", lambda piece: True) == ["สะพานเก่า แม่น้ำกว้าง คนเดินข้าม\n", "ฝนตก"]
    # what does not fit is cut at a space, as late as fits
    assert sentences(thai, "th", lambda piece: len(piece) <= 25) == ["สะพานเก่า แม่น้ำกว้าง ", "คนเดินข้าม\n", "ฝนตก"]
    lao = "ຂົວເກົ່າ ແມ່ນ້ຳກວ້າງ"
    assert sentences(lao, "lo", lambda piece: True) == [lao]


def test_a_sentence_over_the_limit_is_cut_between_clauses_then_words_then_letters() -> None:
    def cut(text: str, limit: int, lang: str = "en") -> list[str]:
        return sentences(text, lang, lambda piece: len(piece) <= limit)

    assert cut("the bridge is old, the river is wide", 28) == ["the bridge is old, ", "the river is wide"]
    # a comma in the first half would leave a fragment
    assert cut("well, the bridge is old and long", 28) == ["well, the bridge is old and ", "long"]
    assert cut("橋很老舊，河流很寬", 7, "zh") == ["橋很老舊，", "河流很寬"]
    assert cut("1,000,000 km of road", 11) == ["1,000,000 ", "km of road"]
    assert cut("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    # a letter keeps its marks
    assert cut("ก้ก้ก้", 3, "th") == ["ก้", "ก้", "ก้"]
    assert cut("e\u0301\u0302\u0303e", 2) == ["e\u0301\u0302\u0303", "e"]


@pytest.mark.parametrize("count", [400, pytest.param(100_000, marks=pytest.mark.slow)])
def test_nothing_is_lost_glued_or_moved(count: int) -> None:
    for draw, text in mixed_texts(count, seed=17):
        lang, limit = draw.choice(LANGUAGES), draw.choice((5, 20, 60))
        for pieces in (sentences(text, lang, lambda piece, most=limit: len(piece) <= most), packed(text, lang, limit)):
            # only white space at the end of the text belongs to no piece
            assert text.startswith("".join(pieces))
            assert not text[sum(map(len, pieces)) :].strip()
            assert all(len(piece.strip()) <= limit or _one_letter(piece.strip()) for piece in pieces)
            whole = joined(pieces, [piece.strip() for piece in pieces], "en")
            assert cutting_fault(whole, [piece.strip() for piece in pieces]) is None
            assert _lines(whole) == _lines(text)
        assert "".join(halves(text, lang)) == text
        assert all(part.strip() for part in halves(text, lang)) or not text.strip()


def _lines(text: str) -> list[str]:
    """Return the lines that are not blank, without white space."""
    return ["".join(line.split()) for line in re.split("[\n\r\x85\u2028\u2029]", text) if line.strip()]


def _one_letter(piece: str) -> bool:
    """Return whether each character belongs to the one before it."""
    return all(_continues(piece, position) for position in range(1, len(piece)))
