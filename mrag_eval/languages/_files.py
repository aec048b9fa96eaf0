"""The files of languages, read when they are needed."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from mrag_eval.core import base_language, is_language, language_name, language_scripts, normalize_language, suggestion
from mrag_eval.platform import ConfigError, config_path, content_key, did_you_mean, read_yaml, user_path

# Stands for the answer in a plain sentence.
ANSWER: Final = "{answer}"
# What a file says of itself: no number depends on it.
_OF_THE_FILE: Final = ("code", "written_by", "checked_by")
# Raised with a change of words or rules after which a reply is read as another option, refusal, yes or no.
READING_VERSION: Final = 12


@dataclass(frozen=True, slots=True)
class Words:
    """Words and phrases, told apart in ``files/en.yaml``; a trailing ``~`` lets a word take endings."""

    answer: tuple[str, ...] = ()
    concludes: tuple[str, ...] = ()
    tentative: tuple[str, ...] = ()
    hedges: tuple[str, ...] = ()
    option: tuple[str, ...] = ()
    option_after: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    corrects: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    refuses_if_own: tuple[str, ...] = ()
    refuses_if_alone: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    although: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    passage: tuple[str, ...] = ()
    abbreviations: tuple[str, ...] = ()
    ordinals: tuple[str, ...] = ()
    continues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """What the package knows of one language, by the keys of its file (docs/languages.md), which bears its code."""

    code: str
    name: str
    written_by: str
    checked_by: str = ""
    sentence: str = ""
    words: Words = Words()
    labels: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    territory: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.code, self.name))


# The keys of the mappings.
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "words": frozenset(each.name for each in fields(Words)),
    "prompts": frozenset(
        {"with_documents", "without_documents", "same_language", "in_language", "in_language_and_names", "joint"}
    ),
    "territory": frozenset({"question", "between"}),
}


def in_sentence(answer: str, code: str) -> str | None:
    """Return an answer in the plain sentence of a language; None if no file of that language has one."""
    found = language(code)
    return None if found is None or not found.sentence else found.sentence.replace(ANSWER, answer)


def known_languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a file, the package's or the user's, sorted."""
    return tuple(files_of_languages())


def language(code: str) -> Language | None:
    """Return what is known of a language; None if nothing is.

    A script of a language has the file of the language, if it is one of its usual scripts, and replaces keys in one of
    its own (``zh-Hant``).

    Raises:
        ConfigError: a file is faulty; one line that names the file and the key.
    """
    return _language(code, files_of_languages())


@lru_cache(maxsize=512)
def _language(code: str, files: Files) -> Language | None:
    known = normalize_language(code)
    own = _files_of(known)
    return _read(known if known in files else base_language(known), own) if own else None


def _files_of(code: str) -> tuple[Path, ...]:
    """Return the files that tell of a language, the last one first in rank."""
    files, base = files_of_languages(), base_language(code)
    if base == code:
        return files.get(code, ())
    usual = {*language_scripts(code)} <= {*language_scripts(base)}
    return (*(files.get(base, ()) if usual else ()), *files.get(code, ()))


def name_in_prompts(code: str) -> str:
    """Return a language's name as models are told it: that of its own file, else the English name."""
    known = normalize_language(code)
    files = files_of_languages()
    return _read(known, _files_of(known)).name if known in files else language_name(known)


def changed_languages(codes: Collection[str]) -> dict[str, str]:
    """Return a hash of the content of each of these languages that a file of the user's changes, by code."""
    found = {known.code for code in codes if (known := language(code)) is not None}
    hashes = {code: _hash(code, _files_of(code)) for code in sorted(found)}
    return {code: own for code, own in hashes.items() if own != _shipped_hash(code)}


def _shipped_hash(code: str) -> str | None:
    """Return the hash of what the package's own files say of a language; None if it has none."""
    files = tuple(path for path in _files_of(code) if path.parent == PACKAGE)
    return _hash(code, files) if files else None


@lru_cache(maxsize=512)
def _hash(code: str, files: tuple[Path, ...]) -> str:
    known = asdict(_read(code, files))
    return content_key({key: value for key, value in known.items() if key not in _OF_THE_FILE})


@lru_cache(maxsize=512)
def _read(code: str, files: tuple[Path, ...]) -> Language:
    """Return a language from its files: what a later one gives replaces what an earlier one gave, key by key."""
    found: dict[str, Any] = {}
    for path in files:
        for key, value in _content(path).items():
            found[key] = {**found.get(key, {}), **value} if isinstance(value, Mapping) else value
    required = (each.name for each in fields(Language) if each.default is each.default_factory is MISSING)
    for key in required:
        if key != "code" and not found.get(key):
            raise ConfigError(f"{files[-1]}: the key '{key}' is missing", f"add {key}: …")
    return Language(code, **{**found, "words": Words(**found.get("words", {}))})


def _content(path: Path) -> dict[str, Any]:
    content = read_yaml(path, as_text=True)
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: not a mapping of keys", "see docs/languages.md")
    _check_keys(path, "", content, {each.name for each in fields(Language)} - {"code"})
    found: dict[str, Any] = {}
    for key, value in content.items():
        if key in _PARTS:
            found[key] = _mapping(path, key, value)
        elif key == "labels":
            found[key] = _labels(path, value)
        else:
            found[key] = _text(path, key, value)
    sentence = found.get("sentence", "")
    if sentence and sentence.count(ANSWER) != 1:
        raise ConfigError(f"{path}: sentence: '{sentence}' does not hold {ANSWER} once", f"write {ANSWER} once in it")
    return found


def _mapping(path: Path, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path}: {key}: not a mapping of keys", "see docs/languages.md")
    _check_keys(path, f"{key}: ", value, _PARTS[key])
    if key == "words":
        return {part: _words(path, part, words) for part, words in value.items()}
    return {part: _text(path, f"{key}: {part}", text) for part, text in value.items()}


def _check_keys(path: Path, where: str, content: Mapping[str, Any], known: Collection[str]) -> None:
    for key in content:
        if key not in known:
            raise ConfigError(f"{path}: {where}unknown key '{key}'{did_you_mean(key, known)}", "correct or delete it")


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {key}: not a text", "write one line")
    return value


def _words(path: Path, part: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise ConfigError(f"{path}: words: {part}: not a text", f"write {part}: first, second, without brackets")
    words = tuple(map(str.strip, value.split(","))) if value.strip() else ()
    for word in words:
        if word in ("", "~") or "~" in word[:-1]:
            raise ConfigError(
                f"{path}: words: {part}: '{word}' cannot be searched for",
                "write words with commas between them; ~ goes at a word's end, once",
            )
    return words


def _labels(path: Path, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{path}: labels: not a list", "write labels: [first, second]")
    rows = tuple(_text(path, "labels", row) for row in value)
    places: dict[str, int] = {}
    for row in rows:
        for place, label in enumerate(row.split()):
            # two orders may share a label, in one place
            if label != "-" and (places.setdefault(label, place) != place or row.split().count(label) > 1):
                raise ConfigError(f"{path}: labels: '{label}' is used for two options", "name each label once")
    return rows


PACKAGE: Final = Path(__file__).parent / "files"


class Files(dict[str, tuple[Path, ...]]):
    """The files of each language by its code, which nobody changes: what is read from them can be kept for them."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def files_of_languages() -> Files:
    """Return the files of each language, the package's before the user's, by BCP 47 code, sorted.

    The user's folder is the value of ``languages`` in the config file; a relative one starts at the working folder.

    Raises:
        ConfigError: the folder does not exist, or a file's name is not a language code.
    """
    # the config file depends on these two; neither changes in a run
    return _files(os.environ.get("MRAG_CONFIG"), os.getcwd())


@lru_cache(maxsize=8)
def _files(_config: str | None, _working_folder: str) -> Files:
    found = {path.stem: (path,) for path in PACKAGE.glob("*.yaml")}
    folder = _user_folder()
    for path in () if folder is None else sorted(folder.glob("*.y*ml")):
        code = _code_of(path)
        found[code] = (*found.get(code, ()), path)
    return Files(sorted(found.items()))


def _user_folder() -> Path | None:
    path = config_path()
    named = None if path is None else read_yaml(path).get("languages")
    if named is None:
        return None
    folder = user_path(str(named), f"{path}, languages").absolute()
    if not folder.is_dir():
        raise ConfigError(f"{path}, languages: {folder} is not a folder", "create it, or leave the key out")
    return folder


def _code_of(path: Path) -> str:
    if not is_language(path.stem):
        raise ConfigError(f"{path}: '{path.stem}' is not a language code", suggestion(path.stem))
    code = normalize_language(path.stem)
    if path.name != f"{code}.yaml":
        raise ConfigError(f"{path}: the file of this language is {code}.yaml", "rename it")
    return code
