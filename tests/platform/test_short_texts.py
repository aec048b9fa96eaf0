"""What is remembered of short texts."""

from __future__ import annotations

from mrag_eval.platform import kept_for_short_texts
from mrag_eval.platform._short_texts import LATEST, LONGEST


def test_short_texts_are_asked_for_once_and_long_ones_each_time() -> None:
    asked = []

    @kept_for_short_texts
    def length(text: str, setting: str) -> int:
        asked.append((len(text), setting))
        return len(text)

    short, long = "a" * LONGEST, "a" * (LONGEST + 1)
    for _ in range(2):
        assert (length(short, "x"), length(short, "y"), length(long, "x")) == (LONGEST, LONGEST, LONGEST + 1)
    assert asked == [(LONGEST, "x"), (LONGEST, "y"), (LONGEST + 1, "x"), (LONGEST + 1, "x")]


def test_only_the_latest_are_remembered() -> None:
    asked = []

    @kept_for_short_texts
    def same(text: str, _: None) -> str:
        asked.append(text)
        return text

    for number in range(LATEST + 1):
        same(str(number), None)
    same(str(LATEST), None)
    assert len(asked) == LATEST + 1
    same("0", None)
    assert asked[-1] == "0"
