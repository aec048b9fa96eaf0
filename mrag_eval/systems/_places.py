"""Places in nested values, and the texts that lie there: one language of paths for every row that is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from mrag_eval.platform import JsonFault, json_value

_PLACE = re.compile(r"-?\d+")
# Who speaks in a turn, what is said, and whose the question and the answer are.
_SPEAKER, _SAID = ("role", "speaker", "from", "author", "type"), ("content", "text", "value", "message", "utterance")
ASKING = ("user", "human", "customer", "usr", "client", "seeker", "student")
ANSWERING = ("assistant", "agent", "ai", "bot", "gpt", "model", "system_response", "chatbot", "wizard")
SHOWING = ("tool", "function", "retriever", "context", "document")
# Keys of an object that is, or has, one text.
_TEXTS = ("content", "text", "value", "messages", "kwargs", "sentence")


def path_in(row: Any, path: str) -> bool:
    """Return whether there is anything at a path, None included."""
    if isinstance(row, Mapping) and path in row:
        return True
    head, _, last = path.rpartition(".")
    above = value_at(row, head) if head else None
    return value_at(row, path) is not None or (isinstance(above, Mapping) and last in above)


def value_at(row: Any, path: str) -> Any:
    """Return the value at a path; None without one.

    A path has dots for levels, numbers for places in a list, from the end if negative, and ``*`` for all of a list or
    an object, of which a list is returned. Keys may themselves hold dots, as those of exported spans do; then their
    numbers are places in a list.
    """
    if isinstance(row, str) and row[:1] in ("{", "["):
        row = decoded(row)
    if isinstance(row, Mapping) and path in row:
        return row[path]
    head, _, rest = path.partition(".")
    if head == "*" and isinstance(row, Mapping | list | tuple):
        items = list(row.values()) if isinstance(row, Mapping) else list(row)
        found = [value_at(item, rest) if rest else item for item in items]
        return [item for item in found if item is not None] or None
    if isinstance(row, list | tuple):
        if not _PLACE.fullmatch(head) or not -len(row) <= int(head) < len(row):
            return None
        return value_at(row[int(head)], rest) if rest else row[int(head)]
    if not isinstance(row, dict):
        return None
    cut = path.find(".")
    while cut > 0:
        if path[:cut] in row and (found := value_at(row[path[:cut]], path[cut + 1 :])) is not None:
            return found
        cut = path.find(".", cut + 1)
    items_at: dict[int, dict[str, Any]] = {}
    for key in row:
        if key.startswith(path) and key[len(path) : len(path) + 1] == ".":
            place, _, inner = key[len(path) + 1 :].partition(".")
            if inner and place.isdigit():
                items_at.setdefault(int(place), {})[inner] = row[key]
    return [items_at[place] for place in sorted(items_at)] or None


def lists_in(value: Any, path: str = "", depth: int = 4) -> dict[str, list[Any]]:
    """Return the lists of objects in a value, by their paths; those that lie in the objects of a list are one."""
    found: dict[str, list[Any]] = {}
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        found[path] = value
        for item in value if depth else ():
            for inner, listed in lists_in(item, f"{path}.*" if path else "*", depth).items():
                found.setdefault(inner, []).extend(listed)
    if isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            found |= lists_in(inner, f"{path}.{key}" if path else str(key), depth - 1)
    return found


def decoded(text: str) -> Any:
    """Return the value that a text is the JSON, or the Python literal, of; the text itself if it is neither.

    Arrays of numpy count as literals: they are printed without commas.
    """
    try:
        return json_value(text, lax="all")
    except JsonFault:
        pass
    try:
        return ast.literal_eval(_with_commas(text) if _APART.search(text) else text)
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


def objects_in(value: Any) -> Any:
    """Return a value; of a text that is the JSON of an object, or of a list of objects, what it says."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        inner = decoded(value)
        listed = inner if isinstance(inner, list) else [inner]
        return inner if listed and all(isinstance(item, Mapping) for item in listed) else value
    return value


def turns_in(value: Any) -> list[tuple[str, Any]] | None:
    """Return the speaker and the words of each turn of a conversation; None for what is none."""
    value = objects_in(value)
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if not isinstance(value, list | tuple) or not value:
        return None
    turns = []
    for turn in value:
        if not isinstance(turn, Mapping):
            return None
        turn = turn.get("kwargs", turn)
        speaker = next((turn[key] for key in _SPEAKER if isinstance(turn.get(key), str)), None)
        if speaker is None or not any(key in turn for key in _SAID):
            return None
        turns.append((str(speaker).lower(), next((turn[key] for key in _SAID if turn.get(key) is not None), None)))
    return turns if any(speaker in (*ASKING, *ANSWERING) for speaker, _ in turns) else None


def text_of(value: Any, inner: Sequence[str] = (), *, encoded: bool = False) -> Any:
    """Return the text of a question or an answer; the value itself if none is there.

    An object's text is at one of the keys ``inner``, or at one that texts have everywhere. Of a list of chat turns it
    is the last's, of a list of a text's parts all of theirs, of a list of sentences all, with a space between. An
    encoded list of anything else is a text that looks like one.
    """
    value = objects_in(value) if encoded or sentences_in(value) is not None else value
    if isinstance(value, Mapping):
        found = next((value[path] for path in (*inner, *_TEXTS) if value.get(path) is not None), None)
        return value if found is None else text_of(found, inner, encoded=encoded)
    if isinstance(value, list | tuple) and value:
        if (said := sentences_in(value)) is not None:
            return said
        if any(isinstance(part, Mapping) and "sentence" in part for part in value):
            return value
        parts = [part for part in value if isinstance(part, str) or _is_part(part)]
        if len(parts) == len(value) and any(map(_is_part, parts)):
            texts = [part if isinstance(part, str) else text_of(part.get("text", ""), inner) for part in parts]
            return "".join(text for text in texts if isinstance(text, str)) or value
        return text_of(value[-1], inner, encoded=encoded)
    return value


def sentences_in(value: Any) -> str | None:
    """Return the text of a list of sentences, objects with ``sentence`` or with ``text`` and ``citations``."""
    value = objects_in(value)
    if not isinstance(value, list | tuple) or not value:
        return None
    key = "sentence" if isinstance(value[0], Mapping) and "sentence" in value[0] else "text"
    if not all(
        isinstance(one, Mapping) and (key == "sentence" or "citations" in one) and "type" not in one for one in value
    ):
        return None
    texts = [one.get(key) for one in value]
    if not all(isinstance(text, str) for text in texts):
        return None
    # sentences that have the white space behind them have it where there is any
    apart = "" if key == "sentence" or any(text[-1:].isspace() for text in texts[:-1]) else " "
    return apart.join(texts)


def _is_part(value: Any) -> bool:
    """Return whether a value is one of the parts of a text, such as those of a model that thinks or cites."""
    return isinstance(value, Mapping) and "type" in value and not {"role", "content", "kwargs"} & value.keys()


def flat(value: Any) -> list[Any]:
    """Return the values of lists in lists, and of their text; [] for None."""
    if isinstance(value, str) and value[:1] == "[":
        value = decoded(value)
    if isinstance(value, list | tuple):
        return [one for item in value for one in (flat(item) if isinstance(item, list | tuple) else [item])]
    return [] if value is None else [value]
