"""The plain sentence of every language file: it holds the answer once, as it stands, in letters of the language."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval.core import ConfigError
from mrag_eval.languages import _files, in_sentence, known_languages, language
from mrag_eval.text import expected_scripts, script


@pytest.mark.parametrize("code", known_languages())
def test_every_file_has_a_sentence_in_its_own_script(code: str) -> None:
    found = language(code)
    assert found is not None
    assert found.sentence
    around = found.sentence.replace("{answer}", "")
    scripts = {script(letter) for letter in around if letter.isalpha()}
    # and so no file has another language's
    assert scripts
    assert scripts <= {*expected_scripts(code)}
    assert in_sentence("§7", code) == found.sentence.replace("{answer}", "§7")


def test_sentences_differ_between_languages() -> None:
    others = [found.sentence for code in known_languages() if code != "zh-Hant" and (found := language(code))]
    assert len(set(others)) == len(others)


def test_an_answer_is_put_in_as_it_stands() -> None:
    assert in_sentence("{answer} $1 %s", "en") == "The answer is {answer} $1 %s."
    assert in_sentence("Paris", "de-AT") == "Die Antwort lautet Paris."


def test_a_language_without_a_sentence_gets_none_and_never_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_sentence("42", "yo") is None
    (tmp_path / "qq.yaml").write_text("name: Q\nwritten_by: us\nchecked_by:\nwords: {}\n", "utf-8")
    monkeypatch.setattr(_files, "_FOLDER", tmp_path)
    _files._read.cache_clear()
    try:
        assert _files._read("qq").sentence == ""
    finally:
        _files._read.cache_clear()


@pytest.mark.parametrize("sentence", ["The answer.", "{answer} is {answer}.", "The answer is {Answer}."])
def test_a_sentence_without_one_place_for_the_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentence: str
) -> None:
    text = f'name: Q\nwritten_by: us\nchecked_by:\nsentence: "{sentence}"\nwords: {{}}\n'
    (tmp_path / "qq.yaml").write_text(text, "utf-8")
    monkeypatch.setattr(_files, "_FOLDER", tmp_path)
    with pytest.raises(ConfigError, match=r"qq\.yaml: sentence: .* does not hold \{answer\} once"):
        _files._read.__wrapped__("qq")


def test_every_file_bears_the_code_under_which_it_is_found() -> None:
    assert {known.code for code in known_languages() if (known := language(code))} == {*known_languages()}
