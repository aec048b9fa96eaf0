"""Input tables of ``mrag-eval build territories``, checked: territories, claimants, names, questions, passages.

A folder with one file each, ``.csv``, ``.tsv`` or ``.jsonl``:

=========== ============================================ ==========================================================
file        columns                                      what
=========== ============================================ ==========================================================
territories territory, claimants [, controller, region]  claimants by name, with ``;`` between them (or a JSON list)
claimants   claimant, language [, religion, population]  the language that questions are asked in for a claimant
names       name, language, native                       name of a territory or claimant in a language
questions   language, template, or                       optional: a question with {territory} and {options}
passages    subject, lang, title, text [, id]            subject: a territory or a claimant
=========== ============================================ ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mrag_eval.core import is_language, normalize_language, suggestion
from mrag_eval.datasets import read_lines, read_table
from mrag_eval.languages import language
from mrag_eval.platform import ConfigError, DataError, did_you_mean, suggesting

_SUFFIXES = (".csv", ".tsv", ".jsonl")
_UNKNOWN = ("", "unknown")


@dataclass(frozen=True, slots=True)
class Entity:
    """A disputed territory of the table; ``controller`` is empty if unknown."""

    name: str
    claimants: tuple[str, ...]
    controller: str
    region: str


@dataclass(frozen=True, slots=True)
class Claimant:
    """A claimant; ``language`` is BCP 47."""

    name: str
    language: str
    religion: str
    population: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page on a territory or a claimant."""

    subject: str
    lang: str
    id: str
    title: str
    text: str

    def as_dict(self) -> dict[str, str]:
        return {"subject": self.subject, "lang": self.lang, "id": self.id, "title": self.title, "text": self.text}


@dataclass(frozen=True)
class Tables:
    """All tables. ``names`` maps (name, language) to the native name, ``wordings`` a language to its question."""

    entities: tuple[Entity, ...]
    claimants: Mapping[str, Claimant]
    names: Mapping[tuple[str, str], str]
    wordings: Mapping[str, Wording]
    pages: tuple[Page, ...]
    files: tuple[Path, ...]

    @cached_property
    def searched(self) -> frozenset[str]:
        """Return the languages that have passages."""
        return frozenset(page.lang for page in self.pages)

    def languages_of(self, entity: Entity) -> list[str]:
        """Return the languages of the claimants, in order, without duplicates."""
        return list(dict.fromkeys(self.claimants[name].language for name in entity.claimants))


@suggesting("correct the table, and run the same command again (mrag-eval build territories --help)")
def read_tables(folder: Path) -> Tables:
    """Read and check the folder's tables. Raises DataError naming file and row for any inconsistency."""
    if not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder", "name a folder with territories.csv, claimants.csv, passages.jsonl"
        )
    files = {name: _file(folder, name) for name in ("territories", "claimants", "names", "questions", "passages")}
    for name in ("territories", "claimants", "passages"):
        if files[name] is None:
            raise DataError(f"{folder}: no file {name}.csv, {name}.tsv or {name}.jsonl")
    claimants = _claimants(files["claimants"])
    entities = _entities(files["territories"], claimants)
    # a double name such as Dokdo/Takeshima matches both parts
    subjects = {subject for e in entities for subject in (*map(str.strip, e.name.split("/")), *e.claimants)}
    return Tables(
        entities,
        claimants,
        _names(files["names"], {*subjects, *(e.name for e in entities)}),
        _wordings(files["questions"]),
        _pages(files["passages"], subjects),
        tuple(path for path in files.values() if path is not None),
    )


def _file(folder: Path, name: str) -> Path | None:
    there = [folder / f"{name}{suffix}" for suffix in _SUFFIXES if (folder / f"{name}{suffix}").is_file()]
    if len(there) > 1:
        raise DataError(f"{folder}: {there[0].name} and {there[1].name} are both there", "keep one of them")
    return there[0] if there else None


def _rows(path: Path | None, columns: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (where, row): every value is text or a list, and the columns are present and not empty."""
    if path is None:
        return
    rows = read_lines(path) if path.suffix == ".jsonl" else read_table(path, columns)
    for number, row in rows:
        where = f"{path}, {'line' if path.suffix == '.jsonl' else 'row'} {number}"
        for name in columns:
            if not row.get(name):
                raise DataError(f"{where}: '{name}' is missing or empty")
        yield where, row


def _text(row: Mapping[str, Any], column: str, where: str) -> str:
    value = row.get(column)
    text = "" if value is None else " ".join(str(value).split())
    if not isinstance(value, str | int | float | None):
        raise DataError(f"{where}: '{column}' must be text, found {type(value).__name__}")
    return text


def _language(row: Mapping[str, Any], column: str, where: str) -> str:
    code = _text(row, column, where)
    if not is_language(code):
        raise DataError(f"{where}: unknown language '{code:.40}'", suggestion(code))
    return normalize_language(code)


def _claimants(path: Path | None) -> dict[str, Claimant]:
    out: dict[str, Claimant] = {}
    for where, row in _rows(path, ("claimant",)):
        name = _text(row, "claimant", where)
        if not _text(row, "language", where):
            raise DataError(f"{where}: claimant '{name}' has no language", "name the language of its questions")
        if name in out:
            raise DataError(f"{where}: claimant '{name}' is listed twice")
        if ";" in name:
            raise DataError(f"{where}: '{name}' contains ';', which separates the names of claimants")
        more = (_text(row, "religion", where), _text(row, "population", where))
        out[name] = Claimant(name, _language(row, "language", where), *more)
    return out


def _entities(path: Path | None, claimants: Mapping[str, Claimant]) -> tuple[Entity, ...]:
    out: dict[str, Entity] = {}
    for where, row in _rows(path, ("territory", "claimants")):
        name, listed = _text(row, "territory", where), row["claimants"]
        names = [" ".join(str(part).split()) for part in (listed if isinstance(listed, list) else listed.split(";"))]
        if name in out:
            raise DataError(f"{where}: territory '{name}' is listed twice")
        if len(names) < 2 or len(set(names)) < len(names):
            raise DataError(f"{where}: '{name}' needs two different claimants or more, found {listed!r:.60}")
        for claimant in names:
            if claimant not in claimants:
                hint = did_you_mean(claimant, claimants)
                raise DataError(f"{where}: claimant '{claimant}' is not in the table of claimants{hint}")
        controller = _text(row, "controller", where)
        out[name] = Entity(
            name, tuple(names), "" if controller.casefold() in _UNKNOWN else controller, _text(row, "region", where)
        )
    if not out:
        raise DataError(f"{path}: holds no territory")
    return tuple(out.values())


def _names(path: Path | None, known: set[str]) -> dict[tuple[str, str], str]:
    out: dict[tuple[str, str], str] = {}
    for where, row in _rows(path, ("name", "language", "native")):
        key = (_text(row, "name", where), _language(row, "language", where))
        if key[0] not in known:
            raise DataError(f"{where}: '{key[0]}' is not a territory or claimant{did_you_mean(key[0], known)}")
        if key in out:
            raise DataError(f"{where}: '{key[0]}' has two names in '{key[1]}'")
        out[key] = _text(row, "native", where)
    return out


def _wordings(path: Path | None) -> dict[str, Wording]:
    out: dict[str, Wording] = {}
    for where, row in _rows(path, ("language", "template", "or")):
        lang, template = _language(row, "language", where), _text(row, "template", where)
        fault = fault_of(template)
        if fault is not None:
            raise DataError(f"{where}: the template {fault}: {template!r:.80}")
        if lang in out:
            raise DataError(f"{where}: the table has two questions in '{lang}'")
        out[lang] = Wording(template, _text(row, "or", where))
    return out


def _pages(path: Path | None, subjects: set[str]) -> tuple[Page, ...]:
    out: dict[tuple[str, str], Page] = {}
    for where, row in _rows(path, ("subject", "lang", "title", "text")):
        subject, lang = _text(row, "subject", where), _language(row, "lang", where)
        if subject not in subjects:
            raise DataError(f"{where}: '{subject}' is not a territory or claimant{did_you_mean(subject, subjects)}")
        if not isinstance(row["text"], str):
            raise DataError(f"{where}: 'text' must be text, found {type(row['text']).__name__}")
        page = Page(subject, lang, _text(row, "id", where) or _text(row, "title", where), row["title"], row["text"])
        if (lang, page.id) in out:
            raise DataError(f"{where}: page '{page.id}' in '{lang}' is listed twice", "give every page a unique id")
        out[lang, page.id] = page
    if not out:
        raise DataError(f"{path}: holds no passage")
    return tuple(out.values())


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question on a territory in one language; ``options`` are the names of its claimants there."""

    id: str
    territory: str
    lang: str
    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """A question with the placeholders ``{territory}`` and ``{options}``, and the word between two options."""

    template: str
    between: str

    def question(self, territory: str, options: Sequence[str]) -> str:
        """Return the question with lettered options, ``A) x or B) y or C) z``, as BorderLines lists them."""
        lettered = [f"{chr(65 + i)}) {option}" for i, option in enumerate(options)]
        # sequential replacement would mistake a territory called {options} for the placeholder
        before, after = self.template.split("{options}")
        listed = f" {self.between} ".join(lettered)
        return before.replace("{territory}", territory) + listed + after.replace("{territory}", territory)


def fault_of(template: str) -> str | None:
    """Return the fault of a template; None for a valid one."""
    for place in ("{territory}", "{options}"):
        if template.count(place) != 1:
            return f"must hold {place} once"
    return None


def builtin_wording(lang: str) -> Wording | None:
    """Return the question in a language (BCP 47) from its file; None if it has none.

    Raises:
        ConfigError: the file gives one of its two parts, or a faulty question.
    """
    known = language(lang)
    if known is None or not known.territory:
        return None
    question, between = known.territory.get("question", ""), known.territory.get("between")
    fault = fault_of(question) or (None if between else "needs the key 'between' beside it")
    if fault is not None:
        raise ConfigError(f"{known.code}.yaml: territory: the question {fault}", "see docs/languages.md")
    return Wording(question, str(between))
