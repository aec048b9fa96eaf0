"""Contexts that a system shows: checked, named by their content where they have no id, their languages told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from mrag_eval.core import Hit, is_language, normalize_language
from mrag_eval.platform import ConfigError, DataError

_PASSAGE = 'e.g. {"id": "p1", "lang": "en", "text": "...", "doc_id": "d1"}, the best passage first'
# A text's language is told by its beginning: more of it changes no label, and contexts may have megabytes.
_TOLD_BY = 1000
_LEAST_RECOGNISED = 0.8


def told_languages(texts: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the language of each text, and why it is not to be relied on; None if it is.

    The bundled detector tells it. It is not relied on for texts of a length at which the detector was measured to
    recognise too few of the language (:func:`mrag_eval.languages.reliability`), and for those without letters.
    """
    from mrag_eval.metrics import default_detector, unreliable

    detector = default_detector()
    out: list[tuple[str, str | None]] = []
    for text, label in zip(texts, detector.detect([text[:_TOLD_BY] for text in texts]), strict=True):
        if not any(map(str.isalpha, text)):
            out.append(("en", "the question has no letters, and its language is not given"))
        elif not is_language(label):
            out.append(("en", "the detector names no language of the question"))
        else:
            why = unreliable(detector, label, len(text), _LEAST_RECOGNISED)
            out.append((label, why and f"the question's language was detected, and {why}"))
    return out


def checked_passages(passages: Any, where: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the contexts of a row; None if it has none. Raises DataError naming the one at fault."""
    if passages is None:
        return None
    if isinstance(passages, str) or not isinstance(passages, Iterable):
        raise DataError(f"{where}: 'passages' must be a list, found {type(passages).__name__}", _PASSAGE)
    listed = list(passages)
    for number, item in enumerate(listed):
        if not isinstance(item, Mapping) or not (item.get("id") not in (None, "") or item.get("text")):
            raise DataError(f"{where}, passages[{number}]: expected a dictionary with 'id' or 'text'", _PASSAGE)
        if item.get("score") is not None or item.get("lang"):
            _hit(item, number + 1, f"{where}, passages[{number}]", {})
    return listed


def text_hash(text: str) -> str:
    """Return 16 digits that tell a text from every other."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def hits_of(rows: Sequence[tuple[str, Sequence[Mapping[str, Any]] | None]]) -> list[tuple[Hit, ...] | None]:
    """Return the contexts of rows as hits, best first; None for a row that shows none.

    A row is its place, for messages, and its contexts as :func:`checked_passages` returns them. The language of a text
    that does not say it is detected.
    """
    unnamed = (str(item["text"]) for _, listed in rows for item in listed or () if _untold(item))
    texts = list(dict.fromkeys(unnamed))
    told = {text: code for text, (code, _) in zip(texts, told_languages(texts), strict=True)}
    return [
        None
        if listed is None
        else tuple(_hit(item, rank, f"{where}, passages[{rank - 1}]", told) for rank, item in enumerate(listed, 1))
        for where, listed in rows
    ]


def _untold(item: Mapping[str, Any]) -> bool:
    """Return whether a context has a text and does not say its language."""
    return bool(item.get("text")) and not item.get("lang")


def _hit(item: Mapping[str, Any], rank: int, place: str, told: Mapping[str, str]) -> Hit:
    text, title = str(item.get("text") or ""), str(item.get("title") or "")
    # a text without an id is its own name
    name = f"text-{text_hash(f'{title}{chr(0)}{text}')}" if item.get("id") in (None, "") else str(item["id"])
    given = item.get("score")
    try:
        score = 1 / rank if given is None else float(given)
    except (TypeError, ValueError):
        raise DataError(f"{place}: 'score' is {given!r:.40}", "give a number, or leave it out") from None
    try:
        lang = normalize_language(str(item["lang"])) if item.get("lang") else told.get(text, "")
    except ConfigError as error:
        raise DataError(f"{place}: 'lang': {error.message}", error.next_step) from None
    return Hit(name, lang, text, score, rank, title, str(item.get("doc_id") or name))
