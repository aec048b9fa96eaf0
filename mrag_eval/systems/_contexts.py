"""Contexts that a system shows: checked, named by their content where they have no id, their languages told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from mrag_eval.core import Hit, base_language, is_language, normalize_language, same_language
from mrag_eval.platform import ConfigError, DataError, JsonFault, finite_number

# A text's language is told by its beginning: more of it changes no label, and contexts may have megabytes.
_TOLD_BY = 1000
_LEAST_RECOGNISED = 0.8
# Texts whose labels the detector still remembers when it is asked how sure it is of them.
_TOGETHER = 1000


def told_languages(texts: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the language of each question, and why it is not to be relied on; None if it is.

    The bundled detector tells it. It is not relied on for texts of a length at which the detector was measured to
    recognise too few of the language (:func:`mrag_eval.languages.reliability`), for those of whose language it is not
    sure, and for those without letters, which count as English.
    """
    return [(code or "en", why and f"the question's language is not given, and {why}") for code, why in _told(texts)]


def _told(texts: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the detected language of each text, "" for none, and why it is not to be relied on."""
    from mrag_eval.metrics import default_detector

    shown = [text[:_TOLD_BY] for text in texts]
    return [
        _relied_on(text, label) if any(map(str.isalpha, text)) else ("", "it has no letters")
        for text, label in zip(shown, default_detector().detect(shown), strict=True)
    ]


def _relied_on(text: str, label: str) -> tuple[str, str | None]:
    """Return the language that a label names, "" for none, and why it is not to be relied on."""
    from mrag_eval.metrics import default_detector, is_unsure, unreliable

    if not is_language(label):
        return "", "the detector names none"
    why = unreliable(default_detector(), label, len(text), _LEAST_RECOGNISED)
    return label, why or ("the detector is not sure of any" if is_unsure(text) else None)


def _told_beside(texts: Sequence[tuple[str, str]]) -> list[str]:
    """Return the language of each text beside a question in a known one; "" where it is not to be relied on.

    What counts as the question's language does as in ``correct_language``. Where that cannot be told, no language is:
    only others would be.
    """
    from mrag_eval.metrics import correct_language_rate

    if not texts:
        return []
    shown, asked = zip(*((text[:_TOLD_BY], lang) for text, lang in texts), strict=True)
    rate = correct_language_rate(shown, asked, min_chars=None, min_recognised=_LEAST_RECOGNISED, check_script=True)
    out = []
    for text, lang, label, right in zip(shown, asked, rate.detected, rate.correct, strict=True):
        if right is None or label is None or not is_language(label):
            out.append("")
        elif same_language(label, lang):
            # in another script as well
            out.append(label)
        elif right:
            out.append(base_language(lang))
        else:
            found, why = _relied_on(text, label)
            out.append("" if why else found)
    return out


def check_passages(passages: Sequence[Mapping[str, Any]], place: str) -> None:
    """Raise DataError for a context whose score or language is none; ``place`` is where the row keeps them."""
    for rank, item in enumerate(passages, 1):
        if item.get("score") is not None or item.get("lang"):
            _hit(item, rank, f"{place}[{rank - 1}]")


def text_hash(text: str) -> str:
    """Return 16 digits that tell a text from every other."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def hits_of(rows: Sequence[tuple[str, str, Sequence[Mapping[str, Any]] | None]]) -> list[tuple[Hit, ...] | None]:
    """Return the contexts of rows as hits, best first; None for a row that shows none.

    A row is its place, for messages, the language of its question, and its contexts in our own terms. The language of a
    text that does not say it is detected; it is "" where that is not to be relied on.
    """
    unnamed = (
        (str(item["text"]), asked)
        for _, asked, listed in rows
        for item in listed or ()
        if item.get("text") and not item.get("lang")
    )
    texts = list(dict.fromkeys(unnamed))
    told: dict[tuple[str, str], str] = {}
    for start in range(0, len(texts), _TOGETHER):
        part = texts[start : start + _TOGETHER]
        told |= zip(part, _told_beside(part), strict=True)
    return [
        None
        if listed is None
        else tuple(
            _hit(item, rank, f"{where}, passages[{rank - 1}]", told.get((str(item.get("text")), asked), ""))
            for rank, item in enumerate(listed, 1)
        )
        for where, asked, listed in rows
    ]


def _hit(item: Mapping[str, Any], rank: int, place: str, told: str = "") -> Hit:
    text, title = str(item.get("text") or ""), str(item.get("title") or "")
    # a text without an id is its own name
    name = f"text-{text_hash(f'{title}{chr(0)}{text}')}" if item.get("id") in (None, "") else str(item["id"])
    given = item.get("score")
    try:
        score = 1 / rank if given is None else finite_number(given)
    except JsonFault as fault:
        raise DataError(f"{place}: 'score': {fault}", "give a finite number, or leave it out") from None
    try:
        lang = normalize_language(str(item["lang"])) if item.get("lang") else told
    except ConfigError as error:
        raise DataError(f"{place}: 'lang': {error.message}", error.next_step) from None
    return Hit(name, lang, text, score, rank, title, str(item.get("doc_id") or name))


def add_grade(grades: dict[str, int], name: str, grade: Any, where: str) -> None:
    """Add a document's grade to those of a question; raise DataError for one that is no whole number, or differs."""
    try:
        whole = finite_number(grade)
        if whole != int(whole) or abs(whole) >= 1e9:
            raise JsonFault(f"{grade!r:.40} is no whole number")
    except JsonFault as fault:
        raise DataError(f"{where}: the grade of '{name}': {fault}", 'e.g. {"d1": 1, "d2": 0}') from None
    if grades.setdefault(name, int(whole)) != int(whole):
        raise DataError(
            f"{where}: '{name}' has the grades {grades[name]} and {int(whole)}", "keep one grade for a document"
        )
