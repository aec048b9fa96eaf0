"""Yes and no: whole words, announcements, replies that say both; the phrasings are in test_answer_reading.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import read_yes_no
from mrag_eval.platform import MetricError


@pytest.mark.parametrize(
    ("reply", "lang", "expected"),
    [
        ("네", "ko", True),
        ("예술", "ko", None),  # "art" begins like "yes"
        ("Eiffel", "fi", None),
        ("الاسم", "ar", None),
        ("**Ja**, das stimmt.", "de", True),
        ("Ja", "ko", None),  # another language than the question's and English
        ("Yes", "ko", True),
        ("<think>No.</think> Yes.", "en", True),
        ("Yes. No.", "en", None),
        ("yes/no", "en", None),
        ("", "en", None),
        ("Yes", None, True),
        ("I", "en", None),
        ("I", "ha", True),  # yes in Hausa
        ("Yes", "cy", True),  # no words of Welsh are known
    ],
)
def test_words_are_whole_and_of_the_language(reply: str, lang: str | None, expected: bool | None) -> None:
    assert read_yes_no(reply, lang) is expected


@given(st.text(max_size=60), st.sampled_from(["en", "ko", "ar", "th", "cy"]))
def test_any_text_gives_an_answer_or_none(reply: str, lang: str) -> None:
    assert read_yes_no(reply, lang) in (True, False, None)


def test_a_reply_is_a_text() -> None:
    nothing: Any = None
    with pytest.raises(MetricError, match="must be a string"):
        read_yes_no(nothing)
