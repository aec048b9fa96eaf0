"""Lengths of passages in characters, counted from bytes and offsets alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrievers import build_index, median_lengths
from mrag_eval.retrievers.index import _lengths as lengths

# Texts of one, two, three and four bytes a character, with their length in code points.
TEXTS = {
    "en": [("Varn", 4), ("A ferry.", 8)],
    "fr": [("déjà", 4), ("e\u0301té", 4)],
    "ar": [("ميناء", 5)],
    "he": [("שָׁלוֹם", 7)],
    "hi": [("नदी", 3), ("नदी का पुल", 10)],
    "ko": [("다리", 2), ("등대와 다리", 6)],
    "th": [("สะพาน", 5), ("ท่าเรือ", 7)],
    "zh": [("灯塔", 2), ("𠮷野家", 3), ("灯塔🗼", 3)],
    "am": [("ድልድይ", 4)],
}
# The middle one, or the mean of the two in the middle.
MEDIANS = {"en": 6, "fr": 4, "ar": 5, "he": 7, "hi": 6.5, "ko": 4, "th": 6, "zh": 3, "am": 4}


def shelf() -> list[Passage]:
    return [
        Passage(f"{lang}{number}", lang, text, title="a title of another length", doc_id="d")
        for lang, texts in TEXTS.items()
        for number, (text, _) in enumerate(texts)
    ]


@pytest.mark.parametrize("block", [1, 2, 1 << 13])
def test_the_median_by_language(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id, document id and title lie between the texts; a block ends within a language."""
    monkeypatch.setattr(lengths, "_BLOCK", block)
    build_index(shelf(), tmp_path / "index", kind="bm25")
    assert median_lengths(tmp_path / "index") == dict(sorted(MEDIANS.items()))


def test_the_texts_have_the_lengths_that_are_written_beside_them() -> None:
    assert all(len(text) == length for texts in TEXTS.values() for text, length in texts)


def test_a_folder_without_an_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=str(tmp_path)):
        median_lengths(tmp_path)
