"""Shapes of logs: where the programs that write them keep question, answer and contexts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, DataError, JsonFault, did_you_mean, json_value, read_yaml

# What a row may hold, as --columns names it; those of a context follow "contexts.".
FIELDS = ("id", "lang", "question", "answer", "reference", "contexts", "context_ids", "relevant_ids")
_TABLE: dict[str, Any] = read_yaml(Path(__file__).with_name("shapes.yaml"))
# The paths of a context's parts.
PASSAGE: Mapping[str, tuple[str, ...]] = {name: tuple(paths) for name, paths in _TABLE["passage"].items()}


@dataclass(frozen=True)
class Shape:
    """A form of rows.

    Attributes:
        name: the program that writes it.
        needs: paths of which all are in every row; ``a|b`` is either.
        paths: field -> the paths at which it may be, the first that is there counts. A path has dots for levels, and
            numbers for places in a list.
        joined_by: the path of what several rows share that are one, such as the spans of a trace.
        encoded: whether texts may be JSON, of which the text within is meant.
        passage: further paths of a context's parts, before those of :data:`PASSAGE`.
        parted_by: what stands between contexts that are one text; "" if one text is one context.
        answer_part: the key of the text in each part of an answer that is a list of parts; "" for one text.
    """

    name: str
    needs: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...]]
    joined_by: tuple[str, ...] = ()
    encoded: bool = False
    passage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parted_by: str = ""
    answer_part: str = ""

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row has all that the shape needs, whatever its values."""
        return all(any(path_in(row, path) for path in need.split("|")) for need in self.needs)

    def found(self, row: Mapping[str, Any], name: str) -> tuple[str, Any]:
        """Return the path and the value of a field in a row; None for both without one."""
        for path in self.paths.get(name, ()):
            value = value_at(row, path) if "." in path else row.get(path)
            if value is not None:
                return path, value
        return "", None

    def unread(self, row: Mapping[str, Any]) -> list[str]:
        """Return the keys of a row that the shape does not know."""
        known = {part for paths in self.paths.values() for path in paths for part in _heads(path)}
        return [key for key in row if key not in known and not any(key.startswith(f"{path}.") for path in known)]


def _heads(path: str) -> Iterator[str]:
    parts = path.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts) + 1))


def _shape(name: str, needs: Sequence[str], *, joined_by: Sequence[str] = (), **parts: Any) -> Shape:
    """Return the shape of an entry of the table."""
    paths = {key: tuple(parts.pop(key)) for key in [*parts] if key in (*FIELDS, "error")}
    return Shape(name, tuple(needs), {**_EVERYWHERE, **paths}, tuple(joined_by), **parts)


_EVERYWHERE = {name: tuple(paths) for name, paths in _TABLE["everywhere"].items()}
SHAPES: tuple[Shape, ...] = tuple(_shape(**entry) for entry in _TABLE["shapes"])
OWN = SHAPES[-1]
# Questions that nobody has answered yet.
ASKED = _shape(**_TABLE["asked"])


def recognised(row: Mapping[str, Any]) -> Shape | None:
    """Return the first shape that a row fits; None for a row of no shape."""
    return next((shape for shape in SHAPES if shape.fits(row)), None)


def shape_of_reply(columns: Mapping[str, str]) -> Shape:
    """Return the shape of a reply that a user describes, as :func:`shape_of_columns` does; it has no question."""
    made = shape_of_columns({"id": "id", **columns})
    return replace(made, needs=tuple(columns[key] for key in ("answer", "contexts") if key in columns))


def shape_of_columns(columns: Mapping[str, str]) -> Shape:
    """Return the shape that a user describes: field -> path, ``contexts.text`` -> the path within a context.

    Raises ConfigError for an unknown field, and without a question or an id.
    """
    fields = {key: value for key, value in columns.items() if "." not in key}
    parts = {key.removeprefix("contexts."): (value,) for key, value in columns.items() if key.startswith("contexts.")}
    known = (*FIELDS, *(f"contexts.{name}" for name in PASSAGE))
    wrong = next((key for key in columns if key not in known), None)
    if wrong is not None:
        raise ConfigError(f"--columns: there is no field '{wrong}'{did_you_mean(wrong, known)}", _COLUMNS)
    if "question" not in fields and "id" not in fields:
        raise ConfigError("--columns: neither the question nor an id is named", _COLUMNS)
    made = _shape("your columns", (), **{key: value.split("|") for key, value in fields.items()})
    needs = tuple(fields[key] for key in ("question", "answer") if key in fields)
    return replace(made, needs=needs, encoded=True, passage=parts)


_COLUMNS = "--columns question=COLUMN,answer=COLUMN,contexts=COLUMN   (docs/score.md has all fields)"


def holds(row: Mapping[str, Any], shape: Shape, name: str, path: str) -> bool:
    """Return whether a row has anything at the path that a user names for a field, None included."""
    items = _items(shape.found(row, "contexts")[1], shape.parted_by) if name.startswith("contexts.") else [row]
    return any(path_in(item, path) for item in items)


def path_in(row: Any, path: str) -> bool:
    """Return whether there is anything at a path, None included."""
    if isinstance(row, Mapping) and path in row:
        return True
    head, _, last = path.rpartition(".")
    above = value_at(row, head) if head else None
    return value_at(row, path) is not None or (isinstance(above, Mapping) and last in above)


def value_at(row: Any, path: str) -> Any:
    """Return the value at a path; None without one.

    Keys may themselves hold dots, as those of exported spans do; then their numbers are places in a list.
    """
    if isinstance(row, str) and row[:1] in ("{", "["):
        row = decoded(row)
    if isinstance(row, list | tuple):
        place, _, rest = path.partition(".")
        if not place.isdigit() or int(place) >= len(row):
            return None
        return value_at(row[int(place)], rest) if rest else row[int(place)]
    if not isinstance(row, dict):
        return None
    if path in row:
        return row[path]
    cut = path.find(".")
    while cut > 0:
        if path[:cut] in row and (found := value_at(row[path[:cut]], path[cut + 1 :])) is not None:
            return found
        cut = path.find(".", cut + 1)
    items: dict[int, dict[str, Any]] = {}
    for key in row:
        if key.startswith(path) and key[len(path) : len(path) + 1] == ".":
            place, _, rest = key[len(path) + 1 :].partition(".")
            if rest and place.isdigit():
                items.setdefault(int(place), {})[rest] = row[key]
    return [items[place] for place in sorted(items)] or None


def decoded(text: str) -> Any:
    """Return the value that a text is the JSON, or the Python literal, of; the text itself if it is neither.

    Arrays of numpy count as literals: they are printed without commas.
    """
    try:
        return json_value(text, lax=True)
    except JsonFault:
        pass
    from ast import literal_eval

    try:
        return literal_eval(_with_commas(text) if _APART.search(text) else text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


# What may be two values without a comma between them, or one of numpy's.
_APART = re.compile(r"""['"}\])\d]\s+['"{\[\d]|\bnan\b|\bnp\.""")


def _with_commas(text: str) -> str:
    """Return a literal with a comma between any two values, and without numpy's names of their types.

    Raises SyntaxError for what has no end.
    """
    from tokenize import NAME, NUMBER, STRING, TokenError, generate_tokens

    parts: list[str] = []
    ended, before = False, ""
    try:
        for token in generate_tokens(StringIO(text).readline):
            is_type, before = token.string in ("np", ".") or before == ".", token.string
            if is_type:
                continue
            is_value = token.type in (NAME, NUMBER, STRING)
            if ended and (is_value or token.string in ("[", "{")):
                parts.append(",")
            if token.string.strip():
                parts.append("None" if token.string == "nan" else token.string)
                ended = is_value or token.string in ("]", "}")
    except TokenError as error:
        raise SyntaxError(str(error)) from None
    return " ".join(parts)


def text_of(value: Any, name: str, *, encoded: bool = False) -> Any:
    """Return the text of a question or an answer; the value itself if none is there.

    An object's text is at one of the paths at which any shape keeps that field. Of a list of chat turns it is the
    last's, of a list of a text's parts all of theirs. An encoded list of anything else is a text that looks like one.
    """
    if isinstance(value, str) and encoded and value[:1] in ("{", "["):
        inner = decoded(value)
        turns = inner if isinstance(inner, list) else [inner]
        value = inner if turns and all(isinstance(turn, Mapping) for turn in turns) else value
    if isinstance(value, Mapping):
        paths = (*_INSIDE[name], "content", "text", "value", "messages", "kwargs")
        found = next((value[path] for path in paths if value.get(path) is not None), None)
        return value if found is None else text_of(found, name, encoded=encoded)
    if isinstance(value, list | tuple) and value:
        parts = [part for part in value if isinstance(part, str) or _is_part(part)]
        if len(parts) == len(value) and any(map(_is_part, parts)):
            texts = [part if isinstance(part, str) else text_of(part.get("text", ""), name) for part in parts]
            return "".join(text for text in texts if isinstance(text, str)) or value
        return text_of(value[-1], name, encoded=encoded)
    return value


def _is_part(value: Any) -> bool:
    """Return whether a value is one of the parts of a text, such as those of a model that thinks or cites."""
    return isinstance(value, Mapping) and "type" in value and not {"role", "content", "kwargs"} & value.keys()


_INSIDE = {
    name: tuple(dict.fromkeys(path for shape in SHAPES for path in shape.paths.get(name, ()) if "." not in path))
    for name in ("question", "answer", "contexts", "reference", "context_ids", "relevant_ids")
}
# What programs call the question.
QUESTIONS = _INSIDE["question"]
# Parts under the names of any shape, but "label", which may be anything.
_ANY = {name: [path for path in paths if path != "label"] for name, paths in _INSIDE.items()}
_NEEDED = {name: "|".join(paths) for name, paths in _ANY.items()}
REPLY = _shape("reply", (_NEEDED["answer"], _NEEDED["contexts"]), answer=_ANY["answer"], contexts=_ANY["contexts"])
PLAIN = _shape("a plain log", (_NEEDED["question"], _NEEDED["answer"]), **_ANY)


def completion_in(row: Mapping[str, Any], shape: Shape) -> dict[str, Any] | None:
    """Return the chat completion, its first choice alone, whose text is a row's answer; None if it is no completion's.

    Of an answer that is a part of that text, this part is the text.
    """
    for path in shape.paths.get("answer", ()):
        head, through, inner = path.partition("choices.0.")
        whole = (value_at(row, head[:-1]) if head else row) if through else None
        whole = decoded(whole) if isinstance(whole, str) else whole
        if not isinstance(whole, Mapping):
            continue
        if isinstance(whole.get("choices"), str):
            # a table holds all values as text
            whole = {key: decoded(value) if isinstance(value, str) else value for key, value in whole.items()}
        choices = whole.get("choices")
        if not (isinstance(choices, list) and choices and isinstance(choices[0], Mapping)):
            continue
        choice = {**choices[0], "index": 0}
        if inner not in _WHOLE and (said := value_at(choice, _WHOLE[0])) and isinstance(said, str):
            if not isinstance(found := value_at(choice, inner), str):
                return None
            choice["message"] = {**choice["message"], "content": found}
        return {**whole, "choices": [choice]}
    return None


_WHOLE = ("message.content", "text")


def in_own_terms(
    row: Mapping[str, Any], shape: Shape, where: str, kept: Sequence[str] = (), *, lenient: bool = False
) -> dict[str, Any]:
    """Return a row of any shape as one of :data:`OWN`; ``kept`` are the paths of what else is kept.

    A field that is not there is left out, and so is a context without a text and an id. Raises DataError, naming the
    row, for a question or an answer that has no text, unless ``lenient``, and for a context that is none; the content
    of a chat completion need not have any.
    """
    also = {path: value for path in kept if (value := value_at(row, path)) is not None}
    if shape is OWN:
        shown = row.get("passages")
        return {**row, **also} | ({} if shown is None else {"passages": _passages(shown, shape, f"{where}, passages")})
    out: dict[str, Any] = {}
    said = completion_in(row, shape)
    for name in ("question", "answer"):
        path, value = shape.found(row, name)
        if name == "answer" and shape.answer_part:
            text = _whole(value, shape.answer_part)
        else:
            text = text_of(value, name, encoded=shape.encoded)
        if isinstance(text, int | float) and not isinstance(text, bool):
            text = str(text)
        if isinstance(value, str) and not isinstance(text, str) and not shape.joined_by:
            # the user named it as a text, whatever it looks like
            text = value
        if not (text is None or isinstance(text, str) or lenient) and (name == "question" or said is None):
            raise DataError(f"{where}: '{path}' holds no text, found {type(text).__name__}", _COLUMNS)
        if isinstance(text, str):
            out[OWN.paths[name][0]] = text
    for name in ("id", "lang"):
        if (value := shape.found(row, name)[1]) not in (None, ""):
            out[name] = value
    for name in ("reference", "relevant_ids"):
        listed = _flat(shape.found(row, name)[1])
        if found := [str(item) for item in listed if item is not None and str(item).strip()]:
            out[OWN.paths[name][0]] = found
    path, contexts = shape.found(row, "contexts")
    if contexts is not None:
        ids = _flat(shape.found(row, "context_ids")[1])
        out["passages"] = _passages(contexts, shape, f"{where}, {path}", ids)
    return out | also


def _whole(value: Any, part: str) -> Any:
    """Return the texts of an answer's parts as one; the value itself if a part has none."""
    parts = decoded(value) if isinstance(value, str) else value
    found = [value_at(one, part) for one in parts] if isinstance(parts, list | tuple) else [None]
    texts = [text for text in found if isinstance(text, str)]
    return "".join(texts) if len(texts) == len(found) else value


def _flat(value: Any) -> list[Any]:
    if isinstance(value, str) and value[:1] == "[":
        value = decoded(value)
    if isinstance(value, list | tuple):
        return [one for item in value for one in (_flat(item) if isinstance(item, list | tuple) else [item])]
    return [] if value is None else [value]


def _items(value: Any, parted_by: str) -> list[Any]:
    if isinstance(value, str):
        value = decoded(value) if value[:1] in ("{", "[") else value
    if isinstance(value, str):
        return [part for part in (value.split(parted_by) if parted_by else [value]) if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]


def _passages(value: Any, shape: Shape, place: str, ids: Sequence[Any] = ()) -> list[dict[str, Any]]:
    found = []
    for number, item in enumerate(_items(value, shape.parted_by)):
        passage = _passage(item, shape, ids[number] if number < len(ids) else None)
        if passage is None:
            raise DataError(f"{place}[{number}]: expected a text, or a dictionary with 'id' or 'text'", _PASSAGE)
        found += [passage] if passage else []
    return found


_PASSAGE = 'e.g. {"id": "p1", "lang": "en", "text": "...", "doc_id": "d1"}, the best passage first'
# The address of a context is its name, not its text.
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*://\S+\s*", re.IGNORECASE)


def _passage(item: Any, shape: Shape, name: Any) -> dict[str, Any] | None:
    """Return a context; {} for one that is empty, None for what is none."""
    found: dict[str, Any] = {}
    if not (item is None or isinstance(item, str | Mapping)):
        return None
    if isinstance(item, str) and item.strip():
        found["id" if _ADDRESS.fullmatch(item) else "text"] = item
    elif isinstance(item, Mapping):
        if shape is OWN and str(item.get("text") or item.get("id") or "").strip():
            return {**item}
        for key, usual in PASSAGE.items():
            # an id may also be that of a class, and a text be empty
            for path in (key,) if shape is OWN else (*shape.passage.get(key, ()), *usual):
                value = value_at(item, path) if "." in path else item.get(path)
                if isinstance(value, str | int | float) and str(value).strip():
                    found[key] = value
                    break
        if name is None and not {"text", "id"} & found.keys() and item.get("url"):
            found["id"] = item["url"]
    if name not in (None, ""):
        found.setdefault("id", name)
    if {"text", "id"} & found.keys():
        return found
    if not isinstance(item, Mapping):
        return {}
    empty = [value_at(item, path) for path in (*shape.passage.get("text", ()), *PASSAGE["text"]) if path_in(item, path)]
    return {} if empty and not any(str(value or "").strip() for value in empty) else None
