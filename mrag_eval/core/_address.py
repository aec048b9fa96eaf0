"""Addresses and keys of endpoints, checked before anything is sent."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from mrag_eval.core._errors import ConfigError
from mrag_eval.core._secrets import keep_address, keep_secret

# Limits of a host name (RFC 1035, 2.3.4).
_LONGEST_LABEL, _LONGEST_HOST = 63, 253


def address_fault(url: str) -> str | None:
    """Return why a request cannot be sent to ``url``, in words that do not repeat it; None if it can."""
    keep_address(url)
    if any(ord(character) <= 32 or ord(character) == 127 for character in url):
        return "holds a space or a control character"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f"is not an address ({error})" if "port" in str(error).lower() else "has a host that cannot be read"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not host:
        return "names no host"
    if port == 0:
        return "names port 0"
    if ":" in host:
        return None
    try:
        labels = host.rstrip(".").encode("idna").split(b".") if host.isascii() is False else host.rstrip(".").split(".")
    except UnicodeError:
        return "names a host that is no host name"
    if any(not 0 < len(label) <= _LONGEST_LABEL for label in labels) or len(host) > _LONGEST_HOST:
        return f"names a host with an empty part, or one of more than {_LONGEST_LABEL} characters"
    return None


def check_address(url: str, where: str) -> str:
    """Return ``url``; raise ConfigError, naming the setting ``where``, if no request can be sent to it."""
    fault = address_fault(url)
    if fault is not None:
        raise ConfigError(f"{where}: the address {fault}", "e.g. http://localhost:8000/v1")
    return url


def check_header(value: str, where: str) -> str:
    """Return the value of a header or a key; raise ConfigError, naming ``where``, if a request cannot carry it."""
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        ends = "ends in a newline" if value.rstrip("\r\n") != value else "holds a control character"
        raise ConfigError(f"{where} {ends}", "set it to the key alone, without a line end")
    try:
        value.encode("latin-1")
    except UnicodeError:
        raise ConfigError(f"{where} holds a character that no key has", "copy the key again") from None
    return value


def key_in(variable: str, owner: str) -> str:
    """Return the key in an environment variable, which is hidden from now on.

    Raises ConfigError, naming the ``owner`` of the key, if the variable is not set or cannot be sent.
    """
    key = keep_secret(os.environ.get(variable, ""), before="Bearer ")
    if not key.strip():
        raise ConfigError(f"{owner}: the environment variable {variable} is not set", f"export {variable}=...")
    return check_header(key, f"{owner}: the environment variable {variable}").strip()
