"""The page on language detection says what each detector knows, and what it does not."""

from __future__ import annotations

import pytest

from mrag_eval.core import language_name
from mrag_eval.metrics import FastTextDetector, correct_language_rate
from scripts.write_docs import pages

HAUSA = "Nigeria tana daya daga cikin kasashen Afirka mafi yawan jama'a."


def section(name: str) -> tuple[str, str]:
    """Return what the page says a detector knows, and what it says the detector does not know."""
    text = pages()["reference/languages.md"].partition(f"## {name}\n")[2].partition("\n## ")[0]
    known, _, unknown = text.partition("It does not know")
    return known, unknown


def test_languages_that_the_default_detector_does_not_know_are_listed_and_unscored() -> None:
    known, unknown = section("fasttext")
    for code in ("ha", "ti"):
        assert f"- {language_name(code)} (`{code}`): " in unknown
        assert f"(`{code}`)" not in known
    assert "Swahili (`sw`)" in known
    found = correct_language_rate([HAUSA], ["ha"], detector=FastTextDetector())
    assert (found.rate, found.reasons) == (None, ("the detector fasttext does not know Hausa",))


def test_languages_that_lingua_knows_are_listed() -> None:
    pytest.importorskip("lingua")
    known, unknown = section("lingua")
    assert "Yoruba (`yo`)" in known
    # known to lingua alone
    assert "Xhosa (`xh`)" in known
    assert "- Hausa (`ha`): " in unknown
