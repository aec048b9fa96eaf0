"""BorderLines: 251 disputed territories, asked about in their claimants' languages (Li et al., NAACL 2024).

There are 720 multiple-choice questions: an English control question on every territory, and one in the language of each
claimant (for an English-speaking claimant, that is the control question). They are read from the original repository's
files, or from its copy on the hub; both use special language codes (``iw``, ``tl``, ``zhs``, ``zht``).

A folder with a file ``languages.json`` holds a user's own territories in the same files (``mrag-eval build
territories``): that list names the languages, and the published counts do not apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.core import is_language, normalize_language
from mrag_eval.datasets._declaration import HubDataset
from mrag_eval.datasets._files import (
    hub_dataset,
    hub_place,
    iter_csv,
    read_bytes,
    read_json,
    require_path,
    require_text,
    sha256_file,
)
from mrag_eval.platform import DataError, JsonFault, decode, json_value

BORDERLINES = HubDataset(id="manestay/borderlines", licence=None, setting="data.borderlines")
UNKNOWN = "Unknown"
# Languages that have questions, in the codes of the files. Other claimants' languages (dz, mfe, to) have none.
CODES = (
    *("ar", "az", "bn", "bs", "da", "el", "en", "es", "fa", "fr", "hi", "hr", "ht", "hy", "id", "is", "it", "iw"),
    *("ja", "ka", "km", "ko", "ky", "lo", "mg", "mn", "ms", "my", "ne", "nl", "pt", "ru", "sl", "sn", "so", "sq"),
    *("sr", "sw", "tg", "th", "ti", "tl", "tr", "uk", "ur", "uz", "vi", "zhs", "zht"),
)
# Countries missing from the table of countries, taken from its older version.
_MISSING_COUNTRIES: Mapping[str, Mapping[str, Any]] = {
    "Suriname": {"Lang_Code": "nl", "Lang_Name": "Dutch", "Religion": "Christianity", "Population": 534189}
}
# In a folder of a user's own territories: a JSON list of the languages that have questions.
OWN_LANGUAGES = "languages.json"
_TERRITORY_COLUMNS = ("Territory", "Claimants", "Controller", "Region", "QueryID")


@dataclass(frozen=True, slots=True)
class Territory:
    """A disputed territory; ``claimant_langs`` is aligned with ``claimants``, with "" for an unknown language.

    ``controller`` is None if unknown; it need not be a claimant.
    """

    name: str
    claimants: tuple[str, ...]
    claimant_langs: tuple[str, ...]
    controller: str | None
    controller_lang: str
    region: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question: ``id`` is the territory with underscores and the file's language code, ``lang`` is BCP 47.

    ``options`` name the claimants in the question's language, in their order.
    """

    id: str
    territory: Territory
    lang: str
    text: str
    options: tuple[str, ...]
    control: bool


@dataclass(frozen=True)
class BorderLines:
    """The questions, control questions first; ``countries`` maps a country to its row. ``own``: a user's."""

    questions: tuple[Question, ...]
    countries: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]
    place: Mapping[str, Any]
    own: bool = False


def query_id(territory: str, code: str) -> str:
    """Return the id of a question; splitting it at the last underscore recovers both parts, even if a name contains
    ``/``.
    """
    return f"{territory.replace(' ', '_')}_{code}"


def read_borderlines(path: Path | None) -> BorderLines:
    """Read all questions and check that every claimant has a language and an option.

    Raises DataError naming file and line.
    """
    tables = _from_hub() if path is None else _from_folder(require_path(path, "bordirlines"))
    countries = {**({} if tables.own else _MISSING_COUNTRIES), **tables.countries}
    territories = [_territory(row, where, countries) for where, row in tables.territories]
    questions, repeated = [], [t.name for i, t in enumerate(territories) if t in territories[:i]]
    if repeated:
        raise DataError(f"borderlines: territory '{repeated[0]}' is listed twice")
    for territory, (where, row) in zip(territories, tables.territories, strict=True):
        text = require_text(row["Query"], where, "Query").strip()
        questions.append(Question(query_id(territory.name, "en"), territory, "en", text, territory.claimants, True))
    for where, code, index, text, options in tables.translated:
        if not 0 <= index < len(territories):
            raise DataError(f"{where}: territory {index}, there are {len(territories)}")
        territory = territories[index]
        if len(options) != len(territory.claimants):
            raise DataError(
                f"{where}: {len(options)} options for the {len(territory.claimants)} claimants of {territory.name}"
            )
        if code != "en":  # the English ones are among the control questions
            name = query_id(territory.name, code)
            questions.append(Question(name, territory, normalize_language(code), text, tuple(options), False))
    ids = [question.id for question in questions]
    twice = next((name for i, name in enumerate(ids) if name in ids[:i]), None)
    if twice is not None:
        raise DataError(f"borderlines: two questions with the id '{twice}'")
    return BorderLines(tuple(questions), countries, _notes(territories, tables), tables.place, tables.own)


def _notes(territories: Sequence[Territory], tables: _Tables) -> tuple[str, ...]:
    notes = []
    outside = [t.name for t in territories if t.controller and t.controller not in t.claimants]
    if outside:
        notes.append(f"the controller is not a claimant, so no answer can name it: {', '.join(outside)}")
    added = [name for name in _MISSING_COUNTRIES if name not in tables.countries]
    if added and not tables.own:
        notes.append(f"added to the table of countries: {', '.join(added)}")
    return tuple(notes)


# -------------------------------------------------------------------------------------------------------- the files


@dataclass(frozen=True)
class _Tables:
    """Tables as read. ``translated``: (where, language code, territory's position, question, options). ``own``: a
    user's tables.
    """

    territories: Sequence[tuple[str, Mapping[str, Any]]]
    countries: Mapping[str, Mapping[str, Any]]
    translated: Sequence[tuple[str, str, int, str, Sequence[str]]]
    place: Mapping[str, Any]
    own: bool = False


def territories_file(path: Path) -> Path | None:
    """Return BorderLines' table of territories in a copy of the repository; None if the folder is not a copy."""
    files = (folder / "disputed_territories.csv" for folder in (path, path / "original"))
    return next((file for file in files if file.is_file()), None)


def _from_folder(path: Path) -> _Tables:
    file = territories_file(path)
    if file is None:
        raise DataError(
            f"borderlines: no disputed_territories.csv in {path}",
            "data.borderlines is a copy of the repository manestay/borderlines",
        )
    root = file.parent
    hashes: dict[str, str] = {}
    rows = [(f"{file}, row {n}", row) for n, row in iter_csv(file, (*_TERRITORY_COLUMNS, "Query"))]
    hashes[file.name] = sha256_file(file)
    countries, hashes["countries_info.json"] = read_json(root / "countries_info.json")
    codes: Sequence[str] = CODES
    own = (root / OWN_LANGUAGES).is_file()
    if own:
        codes, hashes[OWN_LANGUAGES] = read_json(root / OWN_LANGUAGES)
        if not isinstance(codes, list) or not all(isinstance(code, str) and is_language(code) for code in codes):
            raise DataError(f"{root / OWN_LANGUAGES}: expected a list of language codes, found {codes!r:.60}")
    translated: list[tuple[str, str, int, str, Sequence[str]]] = []
    for code in codes:
        translated += _translated(root / "translate", code, hashes)
    return _Tables(rows, countries, translated, {"path": str(root), "sha256": hashes}, own)


def _translated(folder: Path, code: str, hashes: dict[str, str]) -> Iterator[tuple[str, str, int, str, Sequence[str]]]:
    prompts, choices = (folder / "prompts_mc_q" / f"{kind}.{code}" for kind in ("prompts", "choices"))
    texts, options = (_lines(file, hashes) for file in (prompts, choices))
    indices, hashes[f"line_inds.{code}.txt"] = read_json(folder / "terms" / f"line_inds.{code}.txt")
    if not len(texts) == len(options) == len(indices):
        raise DataError(
            f"{prompts}: {len(texts)} questions, {len(options)} lists of options and {len(indices)} territories"
        )
    for n, (text, listed, index) in enumerate(zip(texts, options, indices, strict=True), 1):
        where = f"{choices}, line {n}"
        yield (
            where,
            code,
            index,
            require_text(text, f"{prompts}, line {n}", "question").strip(),
            _options(listed, where),
        )


def _lines(file: Path, hashes: dict[str, str]) -> list[str]:
    if not file.is_file():
        raise DataError(f"{file}: no such file", "the copy of manestay/borderlines is not complete")
    hashes[file.name] = sha256_file(file)
    text = decode(read_bytes(file), str(file)).rstrip("\n")
    return text.split("\n") if text else []


def _from_hub() -> _Tables:
    def table(config: str, split: str, columns: Sequence[str]) -> Any:
        return hub_dataset(
            "bordirlines", BORDERLINES.id, config, split, BORDERLINES.revision, columns, BORDERLINES.setting
        )

    territories = table("territories", "train", (*_TERRITORY_COLUMNS, "Query"))
    rows = [(f"{BORDERLINES.id}, territories, row {n}", row) for n, row in enumerate(territories)]
    countries = {row["Country"]: row for row in table("countries", "train", ("Country", "Lang_Code"))}
    translated = []
    for code in CODES:
        for n, row in enumerate(table("queries", code, ("Query_Native", "Claimants_Native", "Index_Territory"))):
            where = f"{BORDERLINES.id}, queries {code}, row {n}"
            options = _options(row["Claimants_Native"], where)
            translated.append((where, code, int(row["Index_Territory"]), row["Query_Native"].strip(), options))
    return _Tables(rows, countries, translated, hub_place(BORDERLINES.id, BORDERLINES.revision, territories))


def _options(value: Any, where: str) -> Sequence[str]:
    """Return a list of names, which some copies store as JSON text."""
    try:
        names = json_value(value) if isinstance(value, str) else value
    except JsonFault:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise DataError(f"{where}: the options must be a list of names, found {value!r:.60}")
    return [name.strip() for name in names]


def _territory(row: Mapping[str, Any], where: str, countries: Mapping[str, Mapping[str, Any]]) -> Territory:
    name, listed = require_text(row["Territory"], where, "Territory"), row["Claimants"]
    claimants = tuple(listed.split(";") if isinstance(listed, str) else listed)
    if len(claimants) < 2 or len(set(claimants)) < len(claimants) or not all(claimants):
        raise DataError(f"{where}: a disputed territory has two claimants or more, found {listed!r}")
    for claimant in claimants:
        if claimant not in countries:
            raise DataError(f"{where}: claimant '{claimant}' is not in the table of countries")
    controller = row["Controller"] if row["Controller"] not in (UNKNOWN, "", None) else None
    return Territory(
        name,
        claimants,
        tuple(_code(countries[claimant]) for claimant in claimants),
        controller,
        _code(countries[controller]) if controller is not None and controller in countries else "",
        str(row["Region"] or ""),
    )


def _code(country: Mapping[str, Any]) -> str:
    code = str(country.get("Lang_Code") or "")
    return normalize_language(code) if is_language(code) else code
