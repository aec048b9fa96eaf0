"""Files of languages: those of the package, a user's own, and their faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from mrag_eval.building.territories._territory_tables import builtin_wording, fault_of
from mrag_eval.core import language_name, normalize_language
from mrag_eval.languages import (
    PACKAGE,
    Language,
    Words,
    changed_languages,
    files_of_languages,
    known_languages,
    language,
    name_in_prompts,
)
from mrag_eval.languages._files import _files, _read
from mrag_eval.platform import ConfigError
from mrag_eval.prompts import system_prompts

Write = Callable[..., Path]
YORUBA = """\
name: Yoruba
written_by: a test
words:
  yes: bẹ́ẹ̀ ni
  no: rárá, bẹ́ẹ̀ kọ́
prompts:
  with_documents: Dáhùn láti inú ìwé.
  without_documents: Dáhùn ní ṣókí.
  in_language: Dáhùn ní {language}.
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes files into a folder that the config file names."""
    config = tmp_path / "own.yaml"
    config.write_text(f"languages: {tmp_path / 'own'}\n", encoding="utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    own = tmp_path / "own"
    own.mkdir()

    def write(**files: str) -> Path:
        for name, text in files.items():
            (own / f"{name.replace('_', '-')}.yaml").write_text(text, encoding="utf-8")
        return own

    return write


# ------------------------------------------------------------------------------------------------- the package's


def test_every_file_is_read_and_says_who_wrote_it() -> None:
    assert len(known_languages()) >= 40
    for code in known_languages():
        known = language(code)
        assert known is not None
        assert known.code == code == normalize_language(code)
        # one name: people, tables and prompts see the same
        assert known.name == language_name(code) == name_in_prompts(code)
        assert known.written_by


def test_a_script_goes_by_its_language_where_it_is_a_usual_one() -> None:
    assert [known.code if (known := language(code)) else None for code in ("zh-Hans", "zht", "sr-Latn", "hi")] == [
        *("zh", "zh-Hant", "sr", "hi")
    ]
    assert language("hi-Latn") is None
    assert language("ig") is None
    assert name_in_prompts("hi-Latn") == "Hindi in Latin script"
    with pytest.raises(ConfigError, match="no text in Hindi in Latin script"):
        system_prompts()["short_in_ul_ul"].text("hi-Latn", True)


def test_names_in_prompts_tell_apart_what_detectors_count_together() -> None:
    asked = ("nb", "nn", "no", "fa", "prs", "sr-Latn", "zh-Hant", "zh")
    assert [name_in_prompts(code) for code in asked] == [
        *("Norwegian Bokmål", "Norwegian Nynorsk", "Norwegian Bokmål", "Persian", "Dari", "Serbian in Latin script"),
        *("Chinese (traditional)", "Chinese"),
    ]


def test_every_question_of_a_territory_has_its_places() -> None:
    own = [code for code in known_languages() if (known := language(code)) is not None and known.territory]
    assert len(own) >= 23
    for code in own:
        wording = builtin_wording(code)
        assert wording is not None
        assert fault_of(wording.template) is None


# ---------------------------------------------------------------------------------------------------- the user's


def test_a_user_adds_a_language(folder: Write) -> None:
    folder(ig=YORUBA.replace("Yoruba", "Igbo"))
    known = language("ig")
    assert known is not None
    assert known.words.no == ("rárá", "bẹ́ẹ̀ kọ́")
    assert known.labels == ()
    assert "ig" in known_languages()
    assert len(files_of_languages()["ig"]) == 1
    said = system_prompts()["short_in_ul_ul"].text("ig", with_documents=True)
    assert said == "Dáhùn láti inú ìwé. Dáhùn ní Igbo."
    with pytest.raises(ConfigError, match=r"the file of Igbo has no text prompts\.in_language_and_names"):
        system_prompts()["short_in_ul_ne_ul"].text("ig", with_documents=True)


def test_a_user_replaces_the_keys_that_a_file_gives_and_no_others(folder: Write) -> None:
    before = _read("de", (PACKAGE / "de.yaml",))
    folder(de="name: Deutsch\nwords: {yes: jo}\nlabels: [α β]\nchecked_by: a speaker\n")
    after = language("de")
    assert after is not None
    assert (after.name, after.words.yes, after.labels, after.checked_by) == ("Deutsch", ("jo",), ("α β",), "a speaker")
    assert name_in_prompts("de") == "Deutsch"
    changed = {"name", "words", "labels", "checked_by"}
    assert {
        each.name for each in fields(Language) if getattr(before, each.name) != getattr(after, each.name)
    } == changed
    own, ours = after.words, before.words
    assert [each.name for each in fields(Words) if getattr(own, each.name) != getattr(ours, each.name)] == ["yes"]


def test_a_script_replaces_keys_of_its_language(folder: Write) -> None:
    folder(zh="words: {yes: 対}\nterritory: {between: 或}\n")
    known = language("zh_tw")
    assert known is not None
    assert (known.code, known.words.yes, known.territory["between"]) == ("zh-Hant", ("対",), "還是")
    assert set(changed_languages(["zh-Hant", "zh"])) == {"zh-Hant", "zh"}


def test_what_a_file_says_is_hashed_and_who_wrote_it_is_not(folder: Write) -> None:
    folder(yo=YORUBA, de="words: {yes: jo}\n")
    first = changed_languages(["yo", "de", "en", "quy"])
    assert set(first) == {"yo", "de"}
    assert changed_languages(["en", "fr"]) == {}
    changes = [
        ("written_by: a test", "written_by: another test", True),
        ("written_by: a test", "written_by: a test\nchecked_by: a speaker", True),
        ("bẹ́ẹ̀ ni", "bẹ́ẹ̀", False),
        ("name: Yoruba", "name: Yorùbá", False),
        ("Dáhùn ní ṣókí.", "Dáhùn.", False),
    ]
    for old, new, same in changes:
        assert old in YORUBA
        code = "import json, mrag_eval.languages as l; print(json.dumps(l.changed_languages(['yo', 'de'])))"
        folder(yo=YORUBA.replace(old, new))
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        assert (json.loads(out)["yo"] == first["yo"]) is same, new
        assert json.loads(out)["de"] == first["de"]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("ig", "name: Igbo\n", "ig.yaml: the key 'written_by' is missing"),
        ("ig", "written_by: me\n", "ig.yaml: the key 'name' is missing"),
        ("ig", "", "ig.yaml: the key 'name' is missing"),
        ("yo", f"{YORUBA}lables: [a b]\n", "yo.yaml: unknown key 'lables'; did you mean 'labels'?"),
        ("de", "words: {jes: [ja]}\n", "de.yaml: words: unknown key 'jes'; did you mean 'yes'?"),
        ("de", "prompts: {with_docs: x}\n", "de.yaml: prompts: unknown key 'with_docs'"),
        ("de", "words: [ja]\n", "de.yaml: words: not a mapping of keys"),
        ("de", "- ja\n", "de.yaml: not a mapping of keys"),
        ("de", "labels: α β\n", "de.yaml: labels: not a list"),
        ("de", "words: {yes: [ja]}\n", "de.yaml: words: yes: not a text"),
        ("de", "words: {yes: {ja: nein}}\n", "de.yaml: words: yes: not a text"),
        ("de", "words: {yes: ~}\n", "de.yaml: words: yes: '~' cannot be searched for"),
        ("de", 'words: {yes: "ja, ,jo"}\n', "de.yaml: words: yes: '' cannot be searched for"),
        ("de", 'words: {yes: "ja,"}\n', "de.yaml: words: yes: '' cannot be searched for"),
        ("de", "words: {yes: j~a}\n", "de.yaml: words: yes: 'j~a' cannot be searched for"),
        ("de", "labels: [α β α]\n", "de.yaml: labels: 'α' is used for two options"),
        ("de", "labels: [α β γ, β α]\n", "de.yaml: labels: 'β' is used for two options"),
        ("de", "name: a\nname: b\n", "de.yaml: not readable as YAML: "),
        ("klingonn", YORUBA, "klingonn.yaml: 'klingonn' is not a language code"),
        ("yor", YORUBA, "yor.yaml: the file of this language is yo.yaml"),
        ("pt_BR", "name: x\n", "pt-BR.yaml: the file of this language is pt.yaml"),
        ("zh_Hans_CN", "name: x\n", "zh-Hans-CN.yaml: the file of this language is zh-Hans.yaml"),
    ],
)
def test_a_fault_is_one_line_that_names_the_file(folder: Write, name: str, text: str, fault: str) -> None:
    own = folder(**{name: text})
    with pytest.raises(ConfigError) as caught:
        language(name.partition("_")[0] if name in files_of_languages() else name)
    assert caught.value.message.startswith(f"{own}{os.sep}{fault}")
    assert "\n" not in caught.value.message
    assert caught.value.next_step


def test_one_order_of_labels_may_share_a_place_with_another(folder: Write) -> None:
    folder(de="labels: [α β γ, α - δ]\n")
    known = language("de")
    assert known is not None
    assert known.labels == ("α β γ", "α - δ")


def test_a_folder_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mrag.yaml"
    config.write_text("languages: nowhere\n", encoding="utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    with pytest.raises(ConfigError, match=r"mrag\.yaml, languages: .*nowhere is not a folder"):
        known_languages()


def test_a_relative_folder_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mrag.yaml").write_text("languages: own\n", encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "yo.yaml").write_text(YORUBA, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert language("yo") is not None


def test_replies_are_read_in_the_words_of_the_users_file(folder: Write) -> None:
    from mrag_eval.metrics import declines, extract_choice, read_yes_no

    reply, sorry = "A അല്ല. ശരിയായ ഉത്തരം B ആണ്.", "എനിക്ക് അറിയില്ല."
    assert (extract_choice(reply, 4, None, "ml"), declines(sorry, "ml"), read_yes_no("അതെ.", "ml")) == (
        None,
        False,
        None,
    )
    folder(ml=(
        "name: Malayalam\nwritten_by: a test\nwords:\n  answer: ശരിയായ ഉത്തരം\n  wrong: അല്ല\n"
        "  refuses: അറിയില്ല\n  yes: അതെ\n"
    ))  # fmt: skip
    _files.cache_clear()
    assert (extract_choice(reply, 4, None, "ml"), declines(sorry, "ml"), read_yes_no("അതെ.", "ml")) == (1, True, True)
    assert extract_choice("The answer is B.", 4, None, "ml") == 1


def test_a_language_without_words_is_read_by_position(folder: Write) -> None:
    from mrag_eval.metrics import declines, extract_choice

    nothing = ", ".join(f'{each.name}: ""' for each in fields(Words))
    folder(en=f"words: {{{nothing}}}\n")
    _files.cache_clear()
    assert extract_choice("(B)", 4, None, "en") == 1
    assert extract_choice("The answer is B, and not A.", 4, None, "en") is None
    assert not declines("I do not know.", "en")
