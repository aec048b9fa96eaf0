"""Punctuation of any script, as a table for ``str.translate``."""

from __future__ import annotations

import unicodedata


class Punctuation(dict[int, int | str]):
    """Translation table filled as characters occur: punctuation, symbols and format characters are removed.

    Dashes, slashes and marks between words become spaces; the rest is deleted, as the SQuAD normaliser does with ASCII
    punctuation (``O'Connor`` stays one word). ``spaced`` become spaces as well: characters, or categories of them.
    ``apart`` are kept as words of their own.
    """

    def __init__(self, spaced: frozenset[str] = frozenset(), apart: str = "") -> None:
        super().__init__({ord(char): f" {char} " for char in apart})
        self._spaced = {"Pd", *"/\\_་།፡", *spaced}

    def __missing__(self, code: int) -> int | str:
        char = chr(code)
        category = unicodedata.category(char)
        value: int | str = code
        if category in self._spaced or char in self._spaced:
            value = " "
        elif category[0] in "PS" or category == "Cf":
            value = ""
        self[code] = value
        return value
