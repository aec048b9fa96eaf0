"""Rows of any log in our own terms: question, reply, answers, passages, by where a reading finds them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mrag_eval.platform import DataError, JsonFault, Twice, check_keys, finite_number
from mrag_eval.systems._contexts import add_grade
from mrag_eval.systems._parts import _COLUMNS, _INSIDE, OWN_KEYS, PASSAGE, LogReading
from mrag_eval.systems._places import (
    ANSWERING,
    ASKING,
    SHOWING,
    decoded,
    flat,
    objects_in,
    path_in,
    text_of,
    turns_in,
    value_at,
)

_PASSAGE = 'e.g. {"id": "p1", "lang": "en", "text": "...", "doc_id": "d1"}, the best passage first'
# The address of a context is its name, not its text.
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*://\S+\s*", re.IGNORECASE)
_WHOLE = ("message.content", "text")


def completion_in(row: Mapping[str, Any], reading: LogReading) -> dict[str, Any] | None:
    """Return the chat completion, its first choice alone, whose text is a row's answer; None if it is no completion's.

    Of an answer that is a part of that text, this part is the text.
    """
    for path in reading.paths.get("answer", ()):
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


def in_own_terms(
    row: Mapping[str, Any],
    reading: LogReading,
    where: str,
    kept: Sequence[str] = (),
    *,
    also: Sequence[str] = (),
    lenient: bool = False,
) -> dict[str, Any]:
    """Return a row of a log under our own names; ``kept`` are the paths of what else is kept, ``also`` such keys.

    A part that is not there is left out, and so is a context without a text and an id. The last question of a
    conversation is the question, and its ``history`` the turns before. Raises DataError, naming the row, for a question
    or an answer that has no text, unless ``lenient``, and for a context that is none; the content of a chat completion
    need not have any.
    """
    if isinstance(row, Twice):
        beyond = {*also, *kept, *(path.partition(".")[0] for path in kept)}
        check_keys(row, (key for key in row if key in beyond or key not in reading.unread(row)), where)
    more = {path: value for path in kept if (value := value_at(row, path)) is not None}
    if reading.own and turns_in(row.get("query")) is None and not isinstance(row.get("reply"), list | Mapping):
        shown = row.get("passages")
        return {**row, **more} | (
            {} if shown is None else {"passages": _passages(shown, reading, f"{where}, passages")}
        )
    out: dict[str, Any] = {key: row[key] for key in also if row.get(key) is not None}
    said = completion_in(row, reading)
    talk = _conversation(row, reading)
    for name in ("question", "answer"):
        path, value = reading.found(row, name)
        if value is None or _is_plain(value):
            out |= {} if value is None else {OWN_KEYS[name]: value}
            continue
        text = value
        if turns_in(value) is None or name == "answer":
            text = text_of(value, _INSIDE[name], encoded=reading.spans or name in reading.named)
        elif "query" in talk:
            text = talk["query"]
        text = _said(text)
        if isinstance(value, str) and not isinstance(text, str) and not reading.spans:
            # the user named it as a text, whatever it looks like
            text = value
        if not (text is None or isinstance(text, str) or lenient) and (name == "question" or said is None):
            raise DataError(f"{where}: '{path}' holds no text, found {type(text).__name__}", _COLUMNS)
        if isinstance(text, str):
            out[OWN_KEYS[name]] = text
    out, replied = talk | out, value
    for name in ("id", "lang", "error"):
        if name in reading.paths and (value := reading.found(row, name)[1]) not in (None, "", {}):
            out[name] = value
    path, given = reading.found(row, "reference")
    listed = [given]
    if not (given is None or _is_plain(given)):
        listed = [_said(text_of(item, _INSIDE["reference"]), given) for item in _references(given)]
    wrong = next((item for item in listed if not isinstance(item, str | bool | None)), None)
    if wrong is not None:
        raise DataError(f"{where}: '{path}' holds no text, found {type(wrong).__name__}", _COLUMNS)
    if found := [str(item) for item in listed if item is not None and str(item).strip()]:
        out["answers"] = found
    if "relevant_ids" in reading.paths and (judged := grades_in(reading.found(row, "relevant_ids")[1], where)):
        out["relevant_ids"] = judged if any(grade != 1 for grade in judged.values()) else [*judged]
    path, contexts = reading.found(row, "contexts")
    beside = {
        part: flat(reading.found(row, name)[1])
        for part, name in (("id", "context_ids"), ("score", "context_scores"), ("lang", "context_langs"))
        if name in reading.paths
    }
    if contexts is None and "id" in beside and reading.found(row, "context_ids")[1] is not None:
        contexts = [{"id": name} for name in beside.pop("id")]
    if contexts is not None:
        out["passages"] = _passages(contexts, reading, f"{where}, {path}", beside)
    if not _is_plain(replied) and (cited := _citations(replied, beside.get("id"), out.get("passages", ()))):
        out["citations"] = cited
        if "passages" not in out:
            out["passages"] = [{"id": name} for name in dict.fromkeys(one for part in cited for one in part)]
    return out | more


def _said(value: Any, given: Any = None) -> Any:
    """Return a value, of a finite number its text; of what is no text and was ``given`` as one, that text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(JsonFault):
            finite_number(value)
            return str(value)
    return given if isinstance(given, str) and not isinstance(value, str | bool | None) else value


def _is_plain(value: Any) -> bool:
    """Return whether a value is a text that is not the JSON of anything."""
    return isinstance(value, str) and value[:1] not in ("[", "{")


def _conversation(row: Mapping[str, Any], reading: LogReading) -> dict[str, Any]:
    """Return what the turns of a row hold: the last question and what came before it, its answer and its contexts."""
    asked = reading.found(row, "question")[1]
    if _is_plain(asked) and "turns" not in reading.paths:
        return {}
    turns = turns_in(asked) or turns_in(reading.found(row, "turns")[1])
    if not turns:
        return {}
    last = next((place for place in range(len(turns) - 1, -1, -1) if turns[place][0] in ASKING), None)
    if last is None:
        return {}
    if asked is not None and turns_in(asked) is None:
        # the turns are those before the question, or have it as their last
        before = turns[:last] if str(text_of(turns[last][1])).strip() == str(asked).strip() else turns
        return {"history": [_turn(*turn) for turn in before]} if before else {}
    after = turns[last + 1 :]
    said = [text_of(words) for speaker, words in after if speaker in ANSWERING]
    shown = [text_of(words) for speaker, words in after if speaker in SHOWING]
    found: dict[str, Any] = {"query": text_of(turns[last][1])}
    if last:
        found["history"] = [_turn(*turn) for turn in turns[:last]]
    if (answer := next((text for text in reversed(said) if isinstance(text, str) and text), None)) is not None:
        found["reply"] = answer
    if texts := [text for text in shown if isinstance(text, str) and text.strip()]:
        found["passages"] = [{"text": text} for text in texts]
    return found


def _turn(speaker: str, words: Any) -> dict[str, str]:
    return {
        "role": "user" if speaker in ASKING else "assistant" if speaker in ANSWERING else speaker,
        "content": str(text_of(words) or ""),
    }


def _references(value: Any) -> list[Any]:
    value = objects_in(value)
    if isinstance(value, Mapping):
        inner = next(
            (value[key] for key in ("text", "texts", "answers", "aliases") if isinstance(value.get(key), list | tuple)),
            None,
        )
        return [value] if inner is None else flat(inner)
    return flat(value)


def grades_in(value: Any, where: str) -> dict[str, int]:
    """Return the ids of relevant documents with their grades: of an object by id, or of a list of ids or objects.

    Raises DataError for a grade that is no whole number, and for two of one id.
    """
    value = decoded(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        for item in flat(value):
            if isinstance(item, Mapping):
                name = next((one for path in PASSAGE["id"] if (one := value_at(item, path)) is not None), None)
                grade = next((item[key] for key in PASSAGE["grade"] if item.get(key) is not None), 1)
                pairs.append((name if name is not None else text_of(item), grade))
            elif item is not None and str(item).strip():
                pairs.append((item, None))
    found: dict[str, int] = {}
    for name, grade in pairs:
        if isinstance(name, Mapping | list | None):
            raise DataError(f"{where}: a relevant id is {name!r:.40}, no text", 'e.g. {"d1": 1, "d2": 0}')
        add_grade(found, str(name), 1 if grade is None else grade, where)
    return found


def _citations(value: Any, ids: Sequence[Any] | None, passages: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the ids that each sentence of an answer cites, by their places in a list of ids or by name."""
    value = decoded(value) if isinstance(value, str) else value
    if not isinstance(value, list) or not any(isinstance(one, Mapping) and "citations" in one for one in value):
        return []
    out, ids = [], ids or [one.get("id") for one in passages]
    for one in value:
        cited = one.get("citations") if isinstance(one, Mapping) else None
        names = list(cited) if isinstance(cited, list | tuple | Mapping) else []
        placed = [ids[name] if type(name) is int and 0 <= name < len(ids) else name for name in names]
        out.append([str(name) for name in placed if isinstance(name, str | int)])
    return out


def _items(value: Any, parted_by: str) -> list[Any]:
    if isinstance(value, str):
        value = decoded(value) if value[:1] in ("{", "[") else value
    if isinstance(value, str):
        return [part for part in (value.split(parted_by) if parted_by else [value]) if part.strip()]
    if isinstance(value, Mapping) and value and all(type(part) in (int, float) for part in value.values()):
        # a ranking: id -> score
        return [{"id": name, "score": value[name]} for name in sorted(value, key=lambda name: -value[name])]
    return list(value) if isinstance(value, list | tuple) else [value]


def _passages(
    value: Any, reading: LogReading, place: str, beside: Mapping[str, Sequence[Any]] | None = None
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, item in enumerate(_items(value, reading.parted_by)):
        if not beside and type(item) is str:
            found += [{"id" if _ADDRESS.fullmatch(item) else "text": item}] if item.strip() else []
            continue
        told = {part: listed[number] for part, listed in beside.items() if number < len(listed)} if beside else {}
        passage = _passage(item, reading, {part: one for part, one in told.items() if one not in (None, "")})
        if passage is None:
            raise DataError(f"{place}[{number}]: expected a text, or a dictionary with 'id' or 'text'", _PASSAGE)
        found += [passage] if passage else []
    if beside and 0 < len(beside.get("id", ())) < len(found):
        what = f"{place}: {len(found)} contexts, and ids of {len(beside['id'])}"
        raise DataError(what, "give each its id, or name others: --columns context_ids=COLUMN")
    return found


def _passage(item: Any, reading: LogReading, told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a context, with what a list beside tells of it; {} for one that is empty, None for what is none."""
    found: dict[str, Any] = {}
    if not (item is None or isinstance(item, str | Mapping)):
        return None
    if isinstance(item, str) and item.strip():
        found["id" if _ADDRESS.fullmatch(item) else "text"] = item
    elif isinstance(item, Mapping):
        if reading.own and str(item.get("text") or item.get("id") or "").strip():
            return {**item}
        for key, usual in PASSAGE.items():
            # an id may also be that of a class, and a text be empty
            for path in (key,) if reading.own else (*reading.passage.get(key, ()), *usual):
                value = value_at(item, path) if "." in path else item.get(path)
                said, is_number = _said(value), key == "score" and isinstance(value, int | float)
                if key != "grade" and (is_number or (isinstance(said, str) and said.strip())):
                    found[key] = value
                    break
        if "id" not in told and not {"text", "id"} & found.keys() and item.get("url"):
            found["id"] = item["url"]
    for part, value in told.items():
        found.setdefault(part, value)
    if {"text", "id"} & found.keys():
        return found
    if not isinstance(item, Mapping):
        return {}
    empty = [
        value_at(item, path) for path in (*reading.passage.get("text", ()), *PASSAGE["text"]) if path_in(item, path)
    ]
    return {} if empty and not any(str(value or "").strip() for value in empty) else None


def holds(row: Mapping[str, Any], reading: LogReading, part: str, path: str) -> bool:
    """Return whether a row has anything at the path that a user names for a part, None included."""
    items = _items(reading.found(row, "contexts")[1], reading.parted_by) if part.startswith("contexts.") else [row]
    return any(path_in(item, path) for item in items)
