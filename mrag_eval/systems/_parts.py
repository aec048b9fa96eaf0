"""Parts of the rows of a log: which column is the question, the answer, the contexts, by names that are data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, DataError, check_unique, did_you_mean, read_yaml
from mrag_eval.systems._places import decoded, flat, lists_in, path_in, sentences_in, text_of, turns_in, value_at

_TABLE: dict[str, Any] = read_yaml(Path(__file__).with_name("parts.yaml"))
# The parts of a row, as --columns names them; those of a context follow "contexts.".
FIELDS = tuple(name for name in _TABLE["parts"] if name != "usage")
# The paths of a context's parts.
PASSAGE: Mapping[str, tuple[str, ...]] = {name: tuple(paths) for name, paths in _TABLE["passage"].items()}
# Our own names of parts.
OWN_KEYS = {"question": "query", "answer": "reply", "reference": "answers", "contexts": "passages"}
# Parts of which a row has at most one value, whatever else may be named so: the first column counts.
_FIRST = ("id", "lang", "error", "usage", "turns")
# How sure it is that a column is a part: a program's own place, a name of this part alone, one within an object, a name
# that may be another's.
_PLACE, _ONLY, _INNER, _MAYBE = range(4)
_VERDICTS = {str(word).lower() for word in _TABLE["verdicts"]}


@lru_cache(maxsize=4096)
def plain_name(key: str) -> str:
    """Return a name without case, spaces, "_" and "-", and the "*" of numbered columns."""
    return "".join(part for part in str(key).lower() if part not in " _-*")


def _names() -> dict[str, dict[str, int]]:
    """Return name -> the parts that it may be, each with how sure that is."""
    out: dict[str, dict[str, int]] = defaultdict(dict)
    for part, names in _TABLE["parts"].items():
        for name in names["only"]:
            out[plain_name(name)][part] = _ONLY
    for part, names in _TABLE["parts"].items():
        made = [f"{one}{of}" for one in names.get("before", ()) for of in names.get("of", ())]
        made += [f"{of}{one}" for one in names.get("behind", ()) for of in names.get("of", ())]
        for name in map(plain_name, made):
            out.setdefault(name, {part: _ONLY})
        for name in names.get("maybe", ()):
            out[plain_name(name)].setdefault(part, _MAYBE)
    return out


_NAMES = _names()
_WORDY = {*map(plain_name, _TABLE["wordy"])}
_HOLDERS = {plain_name(name): part for part, names in _TABLE["holders"].items() for name in names}
_PLACES = [(path, part) for part, paths in _TABLE["places"].items() for path in paths]
_SPANS: Mapping[str, Any] = _TABLE["spans"]
_SPAN_HEADS = {path.partition(".")[0] for path in _SPANS["needs"].split("|")}
_INSIDE = {
    part: tuple(dict.fromkeys([*_TABLE["parts"][part]["only"], *_TABLE["parts"][part].get("maybe", ())]))
    for part in _TABLE["parts"]
}
# What programs call the question.
QUESTIONS = _INSIDE["question"]


def names_of(part: str) -> dict[str, bool]:
    """Return the names that a part has in the table, and whether each can only be its own."""
    return {name: found[part] == _ONLY for name, found in _NAMES.items() if part in found}


@dataclass(frozen=True)
class LogReading:
    """Where the rows of a log keep their parts.

    Attributes:
        paths: part -> the paths at which it is, the first that is there counts.
        passage: further paths of a context's parts, before those of :data:`PASSAGE`.
        named: the parts that the user named, by their paths: texts may be JSON, of which the text within is meant.
        joined_by: the paths of what several rows share that are one.
        spans: whether the rows are spans of traces.
        parted_by: what stands between contexts that are one text; "" if one text is one context.
        own: whether all parts have our own names; then a row keeps all its keys.
    """

    paths: Mapping[str, tuple[str, ...]]
    passage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    joined_by: tuple[str, ...] = ()
    spans: bool = False
    parted_by: str = ""
    own: bool = False

    def found(self, row: Mapping[str, Any], part: str) -> tuple[str, Any]:
        """Return the path and the value of a part in a row; "" and None without one."""
        for path in self.paths.get(part, ()):
            value = row[path] if path in row else value_at(row, path) if "." in path else None
            if value is not None:
                return path, value
        return "", None

    def unread(self, keys: Iterable[str]) -> list[str]:
        """Return those of the columns that are no part."""
        known = {path for paths in (*self.paths.values(), self.joined_by) for path in paths}
        known |= {path[: dot.start()] for path in known for dot in re.finditer(r"\.", path)}
        return [key for key in keys if key not in known and not any(key.startswith(f"{path}.") for path in known)]


# Parts of several values, whose columns may be numbered, and such a column.
_SEVERAL = {"contexts", "reference", "context_ids", "context_scores", "context_langs", "relevant_ids"}
_NUMBERED = re.compile(r"(.*?[ _-]?)\d{1,3}")


@lru_cache(maxsize=1024)
def _numbered(keys: tuple[str, ...]) -> dict[str, str]:
    told = ((key, _NUMBERED.fullmatch(str(key))) for key in keys)
    stems = {key: found[1] for key, found in told if found}
    return {
        key: f"{stem}*"
        for key, stem in sorted(stems.items(), key=lambda item: (len(item[0]), item[0]))
        if (parts := _NAMES.get(plain_name(stem), {}).keys()) and parts <= _SEVERAL
    }


def gathered(row: Mapping[str, Any], named: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return a row with its columns context_1, context_2 ... as a list under ``context_*``; not those ``named``."""
    if not (numbered := _numbered(tuple(row))):
        return row
    out = {key: value for key, value in row.items() if key in named or key not in numbered}
    for key, name in numbered.items():
        if key not in named and row[key] is not None:
            out.setdefault(name, []).append(row[key])
    return out


_COLUMNS = "--columns question=COLUMN,answer=COLUMN,contexts=COLUMN   (docs/score.md has all parts)"


class Columns:
    """What the columns of a log hold, row by row, of which is made where its parts are."""

    def __init__(self, named: Mapping[str, str] | None = None, *, asked: bool = False) -> None:
        """Take the columns that the user names, part -> path; ``asked``: the rows are questions without replies.

        Raises ConfigError for an unknown part.
        """
        self._named = dict(named or {})
        known = (*FIELDS, *(f"contexts.{name}" for name in PASSAGE))
        wrong = next((key for key in self._named if key not in known), None)
        if wrong is not None:
            raise ConfigError(f"--columns: there is no field '{wrong}'{did_you_mean(wrong, known)}", _COLUMNS)
        self._asked = asked
        self._plans: dict[tuple[str, ...], list[tuple[str, str, int]]] = {}
        # keys and kinds of values -> the paths of ids, of rows that tell nothing else
        self._alike: dict[tuple[tuple[str, ...], tuple[str | None, ...]], list[str]] = {}
        # path -> part -> how sure
        self._seen: dict[str, dict[str, int]] = defaultdict(dict)
        self._differ: dict[tuple[str, str, str], str] = {}
        self._ids: dict[str, set[str]] = defaultdict(set)
        # columns of ids that have one twice
        self._twice: set[str] = set()
        self._spans = self._cites = False
        self._lists: set[str] = set()
        # columns with a value that is no list of ids
        self._worded: set[str] = set()
        # columns of questions and replies that are empty in a row
        self._empty: dict[str, str] = {}
        self.keys: dict[str, None] = {}
        self.rows = 0

    def add(self, where: str, row: Mapping[str, Any]) -> None:
        """Take a row into account; of rows with the same keys and kinds of values only the ids differ."""
        self.rows += 1
        keys, kinds = tuple(row), tuple(map(_kind, row.values()))
        ids = self._alike.get((keys, kinds))
        if ids is not None:
            self._count_ids([(path, row[path]) for path in ids])
            return
        plan = self._plans.get(keys)
        if plan is None:
            self.keys |= dict.fromkeys(keys)
            heads = {str(key).partition(".")[0] for key in keys}
            needed = heads & _SPAN_HEADS and any(path_in(row, path) for path in _SPANS["needs"].split("|"))
            self._spans = self._spans or bool(needed)
            plan = self._plans[keys] = _plan(keys)
        found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
        below: set[str] = set()
        for path, part, sure in plan:
            value = row[path] if path in row else value_at(row, path)
            if (
                path.endswith(".message.content")
                and value in (None, "")
                and path_in(row, path.removesuffix(".content"))
            ):
                # a completion may have a refusal, or an error, in the place of its text
                self._note(path, part, sure)
            if part in ("question", "answer") and value == "":
                self._empty[path] = part
            if value is None or value == "" or path in below:
                continue
            if part == "":
                for inner, own, own_sure in _inner(path, value):
                    below.add(path)
                    self._note(f"{path}.{inner}", own, own_sure)
                    found[own].append((f"{path}.{inner}", value_at(value, inner)))
                    self._worded.add(f"{path}.{inner}")
                continue
            if sure == _PLACE:
                below.add(path.partition(".")[0])
            fitting = _fit(path, part, value)
            if fitting is None:
                continue
            self._cites = self._cites or (fitting == "answer" and _cites(value))
            self._note(path, fitting, _ONLY if fitting == "answer" and sentences_in(value) is not None else sure)
            found[fitting].append((path, value))
            if isinstance(value, list):
                self._lists.add(path)
            if fitting == "contexts" and value and path not in self._worded and not _are_ids(value):
                self._worded.add(path)
        ids = [path for path, _ in found.get("id", ())]
        alone = all(part == "id" or len(listed) == 1 for part, listed in found.items())
        alone = alone and None not in kinds and all(path in row for path in ids)
        if alone and len(self._alike) < 4096 and not any(plain_name(key) in _WORDY for key in keys):
            self._alike[keys, kinds] = ids
        self._count_ids(found.pop("id", ()))
        for part, listed in found.items():
            if len(listed) > 1 and part not in _FIRST:
                for (one, a), (other, b) in combinations(listed, 2):
                    if (part, one, other) not in self._differ and _essence(a) != _essence(b):
                        self._differ[part, one, other] = where

    def _count_ids(self, ids: Iterable[tuple[str, Any]]) -> None:
        for path, value in ids:
            if isinstance(value, str | int):
                self._twice |= {path} if str(value) in self._ids[path] else set()
                self._ids[path].add(str(value))

    def _note(self, path: str, part: str, sure: int) -> None:
        own = self._seen[path]
        own[part] = min(sure, own.get(part, sure))

    def reading(self, name: str) -> LogReading:
        """Return where the parts are.

        Raises DataError, naming the log ``name``, if two columns may be one part and neither their values nor their
        names decide; its next step has both readings.
        """
        fields = {part: tuple(path.split("|")) for part, path in self._named.items() if "." not in part}
        passage = {
            part.removeprefix("contexts."): (path,)
            for part, path in self._named.items()
            if part.startswith("contexts.")
        }
        if self._spans and "question" not in fields:
            parts = {part: tuple(_SPANS[part]) for part in FIELDS if part in _SPANS}
            return LogReading(parts | fields, passage, self._named, tuple(_SPANS["joined_by"]), spans=True)
        paths = dict(fields)
        for part in (part for part in _TABLE["order"] if part not in fields and not (part == "answer" and self._asked)):
            if chosen := self._chosen(name, part, paths):
                # where no column has their ids, words such as "d17" are ids
                told = "context_ids" in fields or any("context_ids" in own for own in self._seen.values())
                named = part == "contexts" and not told and not self._worded & {*chosen}
                paths["context_ids" if named else part] = chosen
        paths = {part: paths[part] for part in (*FIELDS, "usage") if part in paths}
        check_unique(self.keys, (path for listed in paths.values() for path in listed), name)
        parted = {plain_name(path): mark for path, mark in _TABLE["parted_by"].items()}
        by = next((parted[plain_name(path)] for path in paths.get("contexts", ()) if plain_name(path) in parted), "")
        named = ((part, path) for part, listed in paths.items() for path in listed)
        own = not self._named and all(path == OWN_KEYS.get(part, part) for part, path in named)
        return LogReading(paths, passage, self._named, parted_by=by, own=own)

    def _chosen(self, name: str, part: str, paths: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        taken = [path for other, listed in paths.items() if other != part for path in listed]
        if self._cites and part in ("reference", "context_ids"):
            cited = [path for path in self._seen if plain_name(path) == "references"]
            if part == "context_ids" and cited:
                return (*cited,)
            taken += cited
        free = {
            path: parts[part]
            for path, parts in self._seen.items()
            if part in parts and not any(path == other if part == "turns" else _overlap(path, other) for other in taken)
        }
        if part in ("context_scores", "context_langs"):
            # one value is that of one context
            of = {path for other in ("contexts", "context_ids") for path in paths.get(other, ())}
            free = {path: sure for path, sure in free.items() if of and (path in self._lists or not of & self._lists)}
        if not free:
            return tuple(path for path, own in self._empty.items() if own == part and path not in taken)[:1]
        if part in _FIRST:
            place = {name: n for n, name in reversed([*enumerate(map(plain_name, _INSIDE[part]))])}
            rank = {path: (free[path], path in self._twice, place.get(plain_name(path), len(place))) for path in free}
            return tuple(sorted(free, key=rank.__getitem__))[: None if part != "id" else 1]
        surest = min(free.values())
        own = [path for path, sure in free.items() if sure == surest]
        differ = {(one, other) for mine, *pair in self._differ if mine == part for one, other in (pair, pair[::-1])}
        clash = [pair for pair in combinations(own, 2) if pair in differ]
        if clash:
            one, other = clash[0]
            names = {plain_name(path) for pair in clash for path in pair}
            together = next((tie for tie in _TABLE["ties"] if names <= {*tie}), ())
            meant = next((path for name in together for path in own if plain_name(path) == name), None)
            if meant is None:
                raise DataError(
                    f"{self._differ.get((part, one, other)) or self._differ[part, other, one]}: "
                    f"{one} or {other} may be the {part}, and they differ",
                    f"say which: --columns {part}={one}   or   --columns {part}={other}",
                )
            against = {path for pair in clash for path in pair if meant in pair} - {meant}
            own = [meant, *(path for path in own if path != meant and path not in against)]
        return (*own,)


# A word of ASCII with a digit, which is no text of a context.
_ID = re.compile(r"(?=\S*\d)[!-~]{1,200}")


def _kind(value: Any) -> str | None:
    """Return the kind of a value in which no part can lie; None for any other."""
    if type(value) is str:
        return "empty" if not value else None if value[0] in "{[" else "text"
    if type(value) is list:
        is_plain = value and all(type(one) is str and one and one[0] not in "{[" for one in value)
        return None if not is_plain else "ids" if _are_ids(value) else "texts"
    return "number" if type(value) in (int, float, bool) else "none" if value is None else None


def _are_ids(value: Any) -> bool:
    listed = flat(value)
    return bool(listed) and all(isinstance(one, str) and _ID.fullmatch(one) for one in listed)


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _plan(keys: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return the path, the part ("" for an object of parts) and how sure it is of all that may be in such a row."""
    heads = {str(key).partition(".")[0] for key in keys}
    plan = [(path, part, _PLACE) for path, part in _PLACES if path.partition(".")[0] in heads]
    plan += [(key, "", _INNER) for key in keys if plain_name(key) in _HOLDERS]
    for key in keys:
        own = _NAMES.get(plain_name(key))
        head, _, last = str(key).replace("/", ".").rpartition(".")
        if own is None and plain_name(head) in _HOLDERS:
            # an object whose keys a table has as columns
            plan += [(key, part, sure) for part, sure in _within(_HOLDERS[plain_name(head)], last)]
        plan += [(key, part, sure) for part, sure in (own or {}).items()]
    return plan


@lru_cache(maxsize=4096)
def _within(holder: str, key: str) -> tuple[tuple[str, int], ...]:
    """Return the parts that a key of an object may be, by what that object holds."""
    own = _NAMES.get(plain_name(key), {})
    if holder in ("answer", "reference") and (
        own.keys() & {"answer", "reference"} or key in ("content", "text", "value")
    ):
        return ((holder, _ONLY),)
    if holder == "question":
        return tuple((part, _INNER) for part, sure in own.items() if sure == _ONLY or part == "question")
    named = own.keys() - {"id", "lang", "error", "turns"}
    return tuple((part, _INNER) for part, sure in own.items() if sure == _ONLY and part in named)


def _inner(path: str, value: Any) -> Iterator[tuple[str, str, int]]:
    if isinstance(value, str) and value[:1] == "{":
        value = decoded(value)
    if isinstance(value, Mapping) and turns_in(value) is None:
        for key, inner in value.items():
            if inner is not None:
                yield from ((key, part, sure) for part, sure in _within(_HOLDERS[plain_name(path)], str(key)))
                if "contexts" in _NAMES.get(plain_name(key), {}) and lists_in(inner):
                    yield key, "contexts", _INNER


def _fit(path: str, part: str, value: Any) -> str | None:
    """Return the part that a value under a name can be; None if it is none."""
    if part == "turns" or (part == "question" and isinstance(value, list)):
        return part if turns_in(value) else None
    if part == "answer" and plain_name(path) in _TABLE["cited"] and sentences_in(value) is None:
        return None
    if plain_name(path) in _WORDY:
        words = [text_of(item) for item in (value if isinstance(value, list) else [value])]
        if not any(isinstance(word, str) and word.strip() and word.strip().lower() not in _VERDICTS for word in words):
            return None
    return part


def _cites(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, Mapping) and "citations" in one for one in value)


def _essence(value: Any) -> Any:
    """Return what two columns share that say the same: texts without the objects and the lists around one."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        value = decoded(value)
    if isinstance(value, Mapping):
        said = next((found for path in PASSAGE["text"] if isinstance(found := value_at(value, path), str)), None)
        value = text_of(value) if said is None else said
    if isinstance(value, list | tuple):
        inner = [_essence(item) for item in value]
        return inner[0] if len(inner) == 1 else inner
    return value.strip() if isinstance(value, str) else value


def reading_of(
    rows: Sequence[Mapping[str, Any]], named: Mapping[str, str] | None = None, *, asked: bool = False
) -> LogReading:
    """Return where rows in memory keep their parts; see :class:`Columns`."""
    columns = Columns(named, asked=asked)
    for number, row in enumerate(rows):
        columns.add(f"rows[{number}]", row)
    return columns.reading("rows")


def is_row(value: Any) -> bool:
    """Return whether a value has a question, and something else that is scored."""
    try:
        found = reading_of([value]).paths.keys()
    except DataError:
        return True
    return bool(found & {"question", "turns"}) and bool(
        found & {"answer", "reference", "contexts", "context_ids", "relevant_ids"}
    )


def rows_in(value: Any) -> dict[str, list[Any]]:
    """Return the lists of rows in a value, by their paths, without those that lie in others' rows."""
    found = {path: listed for path, listed in lists_in(value).items() if is_row(listed[0])}
    return {path: found[path] for path in found if not any(path.startswith(f"{other}.") for other in found)}


def reading_of_reply(named: Mapping[str, str]) -> LogReading:
    """Return the reading of a reply that a user describes; what is not named is not read."""
    return replace(
        Columns(named).reading("the reply"),
        paths={"id": ("id",), **{key: tuple(path.split("|")) for key, path in named.items() if "." not in key}},
    )
