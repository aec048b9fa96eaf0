"""Addresses of endpoints, checked before anything is sent, and the secrets in them."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._secrets import HIDDEN, is_plain, keep_secret
from mrag_eval.platform._template import check_text

# Limits of a host name (RFC 1035, 2.3.4).
_LONGEST_LABEL, _LONGEST_HOST = 63, 253
_USERINFO = re.compile(r"(?<=://)([^/?#\s'\"<>]+)@")
# A parameter that holds a key: key, api_key, X-Amz-Signature, accessToken, but neither tokenizer nor max_tokens.
_PARAMETER = re.compile(
    r"(?i)(?<=[?&#])((?:[\w.-]*[-_.])?(?:api|access|auth|subscription|private)?"
    r"(?:key|token|secret|sig|signature|passw(?:or)?d|pwd)|pass|pat|code|auth|jwt|session|sid|ticket)"
    r"=([^&#\s'\"<>]*)&?"
)
_LEFT = re.compile(r"[?&#]+(?=[#\s'\"<>]|$)")


def keep_address(text: str) -> str:
    """Hide the passwords, tokens and keys in the addresses of a text from now on, and return the text.

    A secret that texts may contain by chance is hidden only together with its address.
    """
    for written in _USERINFO.findall(text):
        password = unquote(written).partition(":")[2]
        if password and is_plain(password):
            keep_secret(f"//{written}@", f"//{HIDDEN}@")
        elif password:
            keep_secret(unquote(written))
        # a user alone may be a token, and is one if it looks like one
        _keep(written.partition(":")[2] or written)
    for name, written in _PARAMETER.findall(text):
        if is_plain(unquote(written)):
            keep_secret(f"{name}={written}", f"{name}={HIDDEN}")
        else:
            _keep(written)
    return text


def bare_address(text: str) -> str:
    """Return a text without users, passwords, tokens and keys in its addresses; any other text as it is.

    Two addresses that are the same then lead to the same place, whatever the key.
    """
    bare = _PARAMETER.sub("", _USERINFO.sub("", text))
    return bare if bare == text else _LEFT.sub("", bare)


def _keep(written: str) -> None:
    for secret in (written, unquote(written)):
        if not is_plain(secret):
            keep_secret(secret)


def address_fault(url: str) -> str | None:
    """Return why a request cannot be sent to ``url``, in words that do not repeat it; None if it can."""
    keep_address(url)
    try:
        check_text(url, "what is asked goes into the body")
    except ValueError as error:
        return f"has a place: {error}"
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
    """Return an address that is asked, with a password or key in it if there is one.

    Raises ConfigError, naming the setting ``where``, if no request can be sent to it.
    """
    fault = address_fault(url)
    if fault is not None:
        raise ConfigError(f"{where}: the address {fault}", "e.g. http://localhost:8000/v1")
    return url
