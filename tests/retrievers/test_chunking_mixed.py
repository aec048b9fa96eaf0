"""Every chunking method on random texts of mixed scripts: nothing is lost, glued or moved."""

from __future__ import annotations

import pytest

from mrag_eval.retrievers import Document, chunk_documents
from tests.worlds.mixed_scripts import LANGUAGES, cutting_fault, mixed_texts

METHODS = ("words", "sentences", "sentences", "llamaindex", "paragraphs", "none")


@pytest.mark.parametrize("count", [600, pytest.param(40_000, marks=pytest.mark.slow)])
def test_nothing_is_lost_glued_or_moved(count: int) -> None:
    faults = []
    for draw, text in mixed_texts(count, seed=13):
        lang, method, size = draw.choice(LANGUAGES), draw.choice(METHODS), draw.choice((1, 2, 3, 5, 8, 13, 40))
        pieces = [p.text for p in chunk_documents([Document("d", lang, text)], {"method": method, "size": size})]
        assert all(piece.strip() for piece in pieces)
        # these two methods change white space only
        whole = {"words": " ".join(text.split()), "paragraphs": text.replace("\r\n", "\n")}.get(method, text)
        if fault := cutting_fault(whole, pieces):
            faults.append((method, lang, size, fault, text, pieces))
    assert not faults, f"{len(faults)} of {count}, the first: {faults[0]}"


def test_the_check_finds_each_fault() -> None:
    assert cutting_fault("ab cd ef", ["ab", "cd ef"]) is None
    assert cutting_fault("ab cd ef", ["ab ", "c", "d", "ef"]) is None
    assert cutting_fault("ab cd ef", ["ab", "ef"]) == "lost ' cd '"
    assert cutting_fault("ab cd ef", ["ab", "cd"]) == "lost ' ef'"
    assert cutting_fault("ab cd ef", ["ab", "cdef"]) == "'cdef' is not in the rest of the text"
    assert cutting_fault("ab cd ef", ["cd", "ab", "ef"]) == "lost 'ab '"


def test_what_is_left_of_a_word_over_the_limit_keeps_its_space() -> None:
    def count(text: str) -> int:
        """Count the characters of a word with dots, and any other word as one."""
        return sum(len(word) if "." in word else 1 for word in text.split())

    document = Document("d", "en", "a.b.c.d.e.f next word")
    pieces = chunk_documents([document], {"method": "sentences", "size": 5}, token_counter=count)
    assert [piece.text for piece in pieces] == ["a.b.c", ".d.e.", "f next word"]
