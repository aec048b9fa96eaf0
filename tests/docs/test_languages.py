"""The page on language detection says what each detector knows, and what it does not."""

from __future__ import annotations

import pytest

from mrag_eval.metrics import FastTextDetector, correct_language_rate
from scripts.write_docs import pages

HAUSA = "Nigeria tana daya daga cikin kasashen Afirka mafi yawan jama'a."


def section(name: str) -> str:
    """Return what the page says a detector knows."""
    return pages()["reference/languages.md"].partition(f"## {name}\n")[2].partition("\n## ")[0]


def row(code: str) -> list[str]:
    """Return the page's row on a language of the benchmarks: fasttext, lingua, counts as one with, asked by."""
    lines = section("Languages of the benchmarks").splitlines()
    return [cell.strip() for cell in next(line for line in lines if f"(`{code}`)" in line).split("|")[2:-1]]


def test_languages_that_the_default_detector_does_not_know_are_listed_and_unscored() -> None:
    known = section("fasttext")
    for code in ("ha", "ti"):
        assert row(code)[0] == "no"
        assert f"(`{code}`)" not in known
    assert "Swahili (`sw`)" in known
    assert row("sw")[0] == "yes"
    found = correct_language_rate([HAUSA], ["ha"], detector=FastTextDetector())
    assert (found.rate, found.reasons) == (None, ("the detector fasttext does not know Hausa",))


def test_languages_that_lingua_knows_are_listed() -> None:
    pytest.importorskip("lingua")
    known = section("lingua")
    assert "Yoruba (`yo`)" in known
    # known to lingua alone
    assert "Xhosa (`xh`)" in known
    assert row("ha")[1] == "no"


def test_languages_that_count_as_one_are_said_to() -> None:
    assert row("id")[2] == "Malay (`ms`)"
    assert row("sr")[2] == "Bosnian (`bs`), Croatian (`hr`), Serbo-Croatian (`sh`)"
    assert row("de")[2] == ""
