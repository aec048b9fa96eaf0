"""Yes and no: whole words, announcements, replies that say both; the phrasings are in test_answer_reading.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.languages import known_languages, language
from mrag_eval.metrics import read_yes_no
from mrag_eval.metrics._choice_options import lexicon
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
        ("Yes. Actually, no.", "en", None),
        ("Yes\nCorrection: No", "en", None),
        ("No. It's not true.", "en", False),
        ("No. Not true.", "en", False),
        ("Yes, it is. No doubt.", "en", True),
        ("Sí, es la capital. ¿No?", "es", True),
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


@pytest.mark.parametrize("lang", [code for code in known_languages() if language(code).words])
def test_a_reply_that_ends_on_the_other_word_says_both(lang: str) -> None:
    words = lexicon(lang).words
    yes, no = (words[field][0].rstrip("~") for field in ("yes", "no"))
    for first, last, says in ((yes, no, True), (no, yes, False)):
        assert read_yes_no(f"{first}.", lang) is says
        for end in (f"{last}.", f"Hm, {last}!", f"**Zzz: {last}**"):
            assert read_yes_no(f"{first}. Xyz.\n{end}", lang) is None
        # a question, and a sentence that goes on
        for end in (f"{last}?", f"{last} xyz zyx", "Xyz."):
            assert read_yes_no(f"{first}. Xyz.\n{end}", lang) is says


@given(st.text(max_size=60), st.sampled_from(["en", "ko", "ar", "th", "cy"]))
def test_any_text_gives_an_answer_or_none(reply: str, lang: str) -> None:
    assert read_yes_no(reply, lang) in (True, False, None)


def test_a_reply_is_a_text() -> None:
    nothing: Any = None
    with pytest.raises(MetricError, match="must be a string"):
        read_yes_no(nothing)
