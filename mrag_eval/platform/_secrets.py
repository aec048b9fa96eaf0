"""Secrets known by value: keys and passwords that were read here, hidden in what is written for others."""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "(hidden)"

# A shorter secret may be part of any word. One of the second length is in no text by chance, whatever it is made of.
SHORTEST, _LONG = 8, 20
# Of fewer different characters than this, a secret is a pattern.
_VARIED = 5
# What may be a word, as in passages, char3gram_recall or TestPassword: a capital begins one. Other scripts than Latin
# show no vowels.
_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+")
_VOWEL = re.compile(r"[aeiouy]|[^\x00-\x7f]", re.IGNORECASE)


class _Known:
    """The secrets of this process: every form in which a text may contain one, the longest first, and what is shown.

    ``common`` are those that texts may contain by chance, with what they stand behind where they are secrets.
    """

    def __init__(self) -> None:
        self.forms: tuple[tuple[str, str], ...] = ()
        self.common: dict[tuple[str, str], re.Pattern[str]] = {}
        self._secrets: set[str] = set()
        self._turn = threading.Lock()

    def add(self, secret: str, shown: str) -> None:
        if secret in self._secrets:
            return
        with self._turn:
            self._secrets.add(secret)
            forms = dict.fromkeys(_forms(secret), shown) | dict(self.forms)
            self.forms = tuple(sorted(forms.items(), key=lambda form: (-len(form[0]), form)))


_KNOWN = _Known()


def is_plain(secret: str) -> bool:
    """Return whether texts may contain a secret by chance, as they do short ones, words, names, numbers and dates."""
    if len(secret) < SHORTEST or len(set(secret)) < _VARIED:
        return True
    if len(secret) >= _LONG:
        return False
    words = _WORD.findall(secret)
    letters, digits = sum(map(len, words)), sum(map(str.isdigit, secret))
    if all(len(word) > 2 and _VOWEL.search(word) for word in words) and (not letters or 2 * digits <= letters):
        return True
    return not digits and secret in (secret.lower(), secret.upper())


def keep_secret(secret: str, shown: str = HIDDEN) -> None:
    """Show ``shown`` instead of ``secret`` from now on, in all its written forms.

    The caller has made sure that no text has it by chance.
    """
    if secret:
        _KNOWN.add(secret, shown)


def keep_common(secret: str, name: str) -> bool:
    """Hide a secret that texts may contain by chance, behind ``Bearer`` and behind the ``name`` of what it is given as.

    Return whether it was not known before.
    """
    if (name, secret) in _KNOWN.common:
        return False
    before = rf"(?i:\bbearer\s+|\b{re.escape(name)}[\\\"']*\s*[:=]\s*[\\\"']*(?:(?:bearer|basic)\s+)?)"
    _KNOWN.common[name, secret] = re.compile(rf"({before}){re.escape(secret)}(?![\w-])")
    return True


def hide(text: str) -> str:
    """Return a message or a single value without the secrets that are known by value, in any of their written forms."""
    for form, shown in _KNOWN.forms:
        if form in text:
            text = text.replace(form, shown)
    for (_, secret), place in tuple(_KNOWN.common.items()):
        if secret in text:
            text = place.sub(rf"\1{HIDDEN}", text)
    return text


def hidden(value: Any, plain: Callable[[Any], Any] | None = None) -> Any:
    """Return a JSON value with known secrets hidden in its strings; keys and numbers stay as they are.

    ``plain`` gives a value that JSON does not know its form in the file, as ``default`` of ``json.dumps`` does.
    """
    if not (_KNOWN.forms or _KNOWN.common):
        return value
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {
            key: HIDDEN if isinstance(inner, str) and (key, inner) in _KNOWN.common else hidden(inner, plain)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [hidden(inner, plain) for inner in value]
    if plain is None or value is None or isinstance(value, int | float):
        return value
    return hidden(plain(value), plain)


def _forms(secret: str) -> set[str]:
    """Return every form in which a file or a message may contain a secret."""
    raw = secret.encode("utf-8", "surrogatepass")
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    coded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    found = {secret, html.escape(secret), repr(secret)[1:-1]}
    found |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    found |= quoted | {re.sub("%..", lambda match: match[0].lower(), form) for form in quoted}
    return found | coded | {form.rstrip("=") for form in coded}
