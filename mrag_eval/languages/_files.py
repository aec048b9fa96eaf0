"""The files of languages, read when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from mrag_eval.core import ConfigError, base_language, did_you_mean, normalize_language, read_yaml

_FOLDER: Final = Path(__file__).parent / "files"
# Stands for the answer in a plain sentence.
ANSWER: Final = "{answer}"


@dataclass(frozen=True, slots=True)
class Words:
    """Words and phrases around an answer; a trailing ``~`` lets a word take endings.

    Attributes:
        answer: announce an answer: "the answer", "I choose".
        filler: may stand between an announcement or a negation and a label: "is", "the", "correct".
        option: name the label that follows: "option B".
        option_after: name the label that precedes: "B variantı", "2번".
        particle: are attached to a label: "B가", "Bは".
        right: say that the label before them is right.
        wrong: rule out the label before them.
        rejects: rule out the label behind them.
        corrects: take back the label before them, in favour of the one behind.
        joins: propose two labels at once: "A or B".
        refuses: decline to answer.
        yes: agree.
        no: disagree.
        unsettled: begin like agreement or disagreement, and are neither.
    """

    answer: tuple[str, ...] = ()
    filler: tuple[str, ...] = ()
    option: tuple[str, ...] = ()
    option_after: tuple[str, ...] = ()
    particle: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()
    corrects: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """What the package knows of one language.

    Attributes:
        code: its BCP 47 code, the name of its file.
        name: its English name.
        written_by: who wrote the file.
        checked_by: which speakers checked it; empty if none did.
        sentence: a plain sentence that gives an answer, which stands for ``{answer}``; empty if the file has none.
        words: words around an answer.
        labels: labels of options other than Latin letters, one row an order, separated by spaces; ``-`` leaves one out.
        prompts: parts of the system prompts, by name.
    """

    code: str
    name: str
    written_by: str
    checked_by: str = ""
    sentence: str = ""
    words: Words = Words()
    labels: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)


def in_sentence(answer: str, code: str) -> str | None:
    """Return an answer in the plain sentence of a language; None if no file of that language has one."""
    found = language(code)
    return None if found is None or not found.sentence else found.sentence.replace(ANSWER, answer)


@cache
def known_languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a file, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def language(code: str) -> Language | None:
    """Return what is known of a language: its own file, else that of the language without its script; else None."""
    for each in dict.fromkeys((normalize_language(code), base_language(code))):
        if each in known_languages():
            return _read(each)
    return None


@cache
def _read(code: str) -> Language:
    path = _FOLDER / f"{code}.yaml"
    content = read_yaml(path, as_text=True)
    _check_keys(path, content, Language, "")
    words = content.get("words", {})
    _check_keys(path, words, Words, "words: ")
    sentence = content.get("sentence", "")
    if sentence and sentence.count(ANSWER) != 1:
        raise ConfigError(f"{path}: sentence: '{sentence}' does not hold {ANSWER} once", f"write {ANSWER} once in it")
    return Language(
        code,
        content["name"],
        content["written_by"],
        content["checked_by"],
        sentence,
        Words(**{key: tuple(value) for key, value in words.items()}),
        tuple(content.get("labels", ())),
        content.get("prompts", {}),
    )


def _check_keys(path: Path, content: Mapping[str, Any], model: type[Any], where: str) -> None:
    known = {each.name for each in fields(model)} - {"code"}
    for key in content:
        if key not in known:
            raise ConfigError(f"{path}: {where}unknown key '{key}'{did_you_mean(key, known)}", "correct or delete it")
