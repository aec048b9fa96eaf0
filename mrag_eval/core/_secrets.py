"""Secrets known by value: keys, passwords and headers, from the moment they are read."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "(hidden)"

# A shorter secret is hidden only together with its surroundings ("Bearer x", "user:x@"): it may be part of any word.
SHORTEST = 6
# Stand-ins that local servers are given for a key; hiding these words would garble texts.
_NO_KEY = frozenset({"dummy", "dummy-key", "empty", "fake", "lm-studio", "local", "no-key", "none", "not-needed",
                     "not-used", "null", "ollama", "placeholder", "test", "unused"})  # fmt: skip
# Values of these headers are public, and may be ordinary words or dates.
_PUBLIC_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "anthropic-beta", "anthropic-version",
                             "connection", "content-length", "content-type", "host", "user-agent"})  # fmt: skip
_NAMED = re.compile(
    r"api[-_]?key|^((hf|auth|access|bearer)_)?token$|secret|passw|authorization|credential", re.IGNORECASE
)
# Variables of the environment that hold a key whoever reads it, and the shortest that is taken for one.
_VARIABLE = re.compile(r"(?i)_?(key|token|secret|password)$")
_SHORTEST_UNREAD = 8
_USERINFO = re.compile(r"://([^/?#\s'\"<>]+)@")
_PARAMETER = re.compile(r"(?i)[?&][^=&#\s]*(?:key|token|secret|sig|passw)[^=&#\s]*=([^&#\s'\"]+)")
_HEADERS = frozenset({"header", "headers", "default_headers", "extra_headers"})

_known: set[str] = set()
# Short secrets with their surroundings.
_surrounded: set[str] = set()


def names_secret(key: str) -> bool:
    """Return whether a setting of this name holds a secret, as opposed to the name of a variable with one."""
    return _NAMED.search(key) is not None and not key.lower().endswith("_env")


def keep_secret(value: str, *, before: str = "", after: str = "") -> str:
    """Hide ``value`` from now on wherever something is written, and return it.

    A value shorter than :data:`SHORTEST` is hidden where it is between ``before`` and ``after``, if one of them is
    given.
    """
    for secret in (value, value.strip()):
        if len(secret) >= SHORTEST and secret.lower() not in _NO_KEY:
            _known.add(secret)
    if (before or after) and 0 < len(value.strip()) < SHORTEST:
        _surrounded.add(f"{before}{value.strip()}{after}")
    return value


def keep_header(name: str, value: str) -> None:
    """Hide the value of a header, and the key after its scheme (``Bearer``), unless the header is a public one."""
    if name.lower() in _PUBLIC_HEADERS or not value.strip():
        return
    keep_secret(value)
    scheme, _, key = value.strip().rpartition(" ")
    if scheme:
        keep_secret(key, before=f"{scheme} ")
        if scheme.lower() == "basic":
            _keep_basic(key)


def keep_address(url: str) -> str:
    """Hide the password, or the token, in an address, and return the address."""
    for found in _USERINFO.findall(url):
        user, _, password = found.partition(":")
        for secret, pair in ((password or user, found), (unquote(password or user), unquote(found))):
            keep_secret(secret)
            keep_secret(pair, before="//", after="@")
    for value in _PARAMETER.findall(url):
        keep_secret(value)
        keep_secret(unquote(value))
    return url


def keep_secrets_of(settings: Any, key: str = "") -> None:
    """Hide every secret in nested settings: by the name of its key, in headers, and in addresses."""
    if isinstance(settings, Mapping):
        for name, inner in settings.items():
            if key.lower() in _HEADERS:
                keep_header(str(name), str(inner))
            else:
                keep_secrets_of(inner, str(name))
    elif isinstance(settings, list | tuple):
        for inner in settings:
            keep_secrets_of(inner, key)
    elif isinstance(settings, str):
        keep_address(settings)
        if names_secret(key):
            keep_secret(settings)


def hide(text: str) -> str:
    """Return ``text`` without the secrets that are known by value, in any of their written forms."""
    if not text:
        return text
    for form in _forms(frozenset(_known) | _ENVIRONMENT.keys()):
        if form in text:
            text = text.replace(form, HIDDEN)
    for form in sorted(_surrounded, key=len, reverse=True):
        if form in text:
            # not the beginning of a longer word
            text = re.sub(re.escape(form) + (r"(?!\w)" if form[-1].isalnum() else ""), HIDDEN, text)
    return text


def _keep_basic(key: str) -> None:
    try:
        pair = base64.b64decode(key, validate=True).decode()
    except ValueError:
        return
    keep_secret(pair.partition(":")[2])
    keep_secret(pair)


class _Environment:
    """The keys in the environment, looked for again whenever a variable has changed."""

    def __init__(self) -> None:
        # what os.environ wraps: one comparison of dictionaries takes a microsecond, and to go through the items of
        # os.environ, for each reply, takes longer than to read the reply
        self._now: dict[Any, Any] = vars(os.environ)["_data"]
        self._read: dict[Any, Any] | None = None
        self._keys: frozenset[str] = frozenset()

    def keys(self) -> frozenset[str]:
        """Return the values of the variables that hold a key."""
        if self._now != self._read:
            read = dict(self._now)
            found = {v for name, v in os.environ.items() if _VARIABLE.search(name) and len(v) >= _SHORTEST_UNREAD}
            self._keys = frozenset(value for value in found if value.lower() not in _NO_KEY)
            self._read = read
        return self._keys


_ENVIRONMENT = _Environment()


@lru_cache(maxsize=8)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """Return every form in which a file or a message may contain a secret, the longest first."""
    found: set[str] = set()
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogatepass")
        quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
        coded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
        found |= {secret, html.escape(secret), repr(secret)[1:-1]}
        found |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        found |= quoted | {re.sub("%..", lambda match: match[0].lower(), form) for form in quoted}
        found |= coded | {form.rstrip("=") for form in coded}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))
