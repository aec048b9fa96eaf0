"""Words of the subjects that benchmarks ask about, by language, and names of places that CLDR lacks.

A word stands for every word that begins with it: ``econom`` for ``economy`` and ``economic``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mrag_eval.platform import read_yaml

Words = Mapping[str, tuple[str, ...]]


@cache
def words_of(subject: str) -> Words:
    """Return the words of a subject, by language."""
    return _split(_content()[subject])


@cache
def also_called(place: str) -> Words:
    """Return further names of a place, by language: a territory's code, or a region of BLEnD's."""
    return _split(_content()["also"].get(place, {}))


@cache
def _content() -> Any:
    return read_yaml(Path(__file__).with_name("starter_words.yaml"), as_text=True)


def _split(texts: Mapping[str, str]) -> Words:
    return {lang: tuple(word.strip() for word in text.split(",")) for lang, text in texts.items()}
