"""The plain sentence of every language file: it holds the answer once, as it stands, in letters of the language."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval.languages import in_sentence, known_languages, language
from mrag_eval.platform import ConfigError
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


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's file of Igbo, which the package has none of, without a sentence."""
    (tmp_path / "mrag.yaml").write_text(f"languages: {tmp_path / 'own'}\n", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    file = tmp_path / "own" / "ig.yaml"
    file.parent.mkdir()
    file.write_text("name: Igbo\nwritten_by: us\n", "utf-8")
    return file


def test_a_language_without_a_sentence_gets_none_and_never_english(own_file: Path) -> None:
    assert in_sentence("42", "ml") is None
    assert in_sentence("42", "ig") is None


@pytest.mark.parametrize("sentence", ["The answer.", "{answer} is {answer}.", "The answer is {Answer}."])
def test_a_sentence_without_one_place_for_the_answer_is_refused(own_file: Path, sentence: str) -> None:
    own_file.write_text(f'name: Igbo\nwritten_by: us\nsentence: "{sentence}"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"ig\.yaml: sentence: .* does not hold \{answer\} once"):
        language("ig")


def test_every_file_bears_the_code_under_which_it_is_found() -> None:
    assert {known.code for code in known_languages() if (known := language(code))} == {*known_languages()}
