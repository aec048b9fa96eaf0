"""Addresses of endpoints, checked before anything is sent, and the secrets in them."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from tempfile import mkstemp
from typing import Any
from urllib.parse import unquote, urlsplit

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._paths import cache_dir
from mrag_eval.platform._secrets import HIDDEN, is_plain, keep_secret
from mrag_eval.platform._template import VARIABLE, check_text, in_texts

# Limits of a host name (RFC 1035, 2.3.4).
_LONGEST_LABEL, _LONGEST_HOST = 63, 253
_USERINFO = re.compile(r"(?<=://)([^/?#\s'\"<>]+)@")
_ADDRESS = re.compile(r"(?<=://)[^\s'\"<>]+")
# What of an address is judged by its form: a parameter, also behind '#', and a part of the path.
_PART = re.compile(r"(?<=[?&#])(?:[^&#=]*=)?(?P<value>[^&#]+)|(?<=/)(?P<segment>[^/?&#]+)")
# A number, a version, a date and a yes or no are no secrets; neither is what names a variable, or was hidden before.
_PUBLIC = re.compile(
    rf"v?\d{{1,4}}(?:[.-]\d{{1,2}}){{0,3}}(?:-?(?:alpha|beta|preview|rc)\d*)?|true|false|.*{VARIABLE.pattern}.*|\(hidden.*\)",
    re.IGNORECASE,
)
# The shortest part of a path that may be a token: letters, digits and capitals take turns in it.
_TOKEN = 16
_TURN = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")


def mark_of(secret: str) -> str:
    """Return what stands for a secret where two of them must stay two: ``(hidden:MACHINE.DIGEST)``.

    The digest is keyed on this machine: it tells nobody what the secret is, and compares with none from elsewhere.
    """
    key = _machine_key()
    return f"(hidden:{sha256(key).hexdigest()[:4]}.{hmac.digest(key, secret.encode(), 'sha256').hex()[:8]})"


@cache
def _machine_key() -> bytes:
    """Return the key of this machine's marks; where none can be kept, one of this process."""
    new, file = secrets.token_bytes(32), cache_dir() / "marks.key"
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            descriptor, name = mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
            with os.fdopen(descriptor, "wb") as part:
                part.write(new)
            with suppress(FileExistsError):
                # whole, and the first one of two processes that make it
                os.link(name, file)
            os.unlink(name)
        return file.read_bytes()
    return new


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
        alone = written.partition(":")[2] or written
        for secret in {alone, unquote(alone)}:
            if not is_plain(secret):
                keep_secret(secret)
    for address in _ADDRESS.findall(text):
        for start, end in _secrets_in(address):
            secret = address[start:end]
            if is_plain(unquote(secret)):
                name = re.split("[?&#]", address[:start])[-1]
                for before in "?&#":
                    keep_secret(f"{before}{name}{secret}", f"{before}{name}{mark_of(secret)}")
            else:
                keep_secret(secret, mark_of(secret))
                keep_secret(unquote(secret), mark_of(secret))
    return text


def bare_address(text: str) -> str:
    """Return a text without users and passwords in its addresses, and with marks for their keys; any other as it is.

    Two addresses that are the same then lead to the same place.
    """
    return _ADDRESS.sub(lambda found: _marked(found[0]), _USERINFO.sub("", text))


def machines_of(text: Any) -> list[str]:
    """Return the machines whose marks a value holds: those of two machines do not compare."""
    return re.findall(r"\(hidden:(\w+)\.", str(text))


def marked(value: Any) -> Any:
    """Return a JSON value with a mark of its value for each variable that its texts name, by which it is compared."""
    return in_texts(value, lambda name, _: mark_of(os.environ.get(name, "").strip()))


def _marked(address: str) -> str:
    for start, end in reversed([*_secrets_in(address)]):
        address = address[:start] + mark_of(address[start:end]) + address[end:]
    return address


def _secrets_in(address: str) -> Iterator[tuple[int, int]]:
    """Yield where an address, from its host on, holds a secret by its form: each parameter's value but public ones, and
    parts of the path in which letters and digits take turns.
    """
    for part in _PART.finditer(address):
        if part["value"] is not None and _PUBLIC.fullmatch(unquote(part["value"])) is None:
            yield part.span("value")
        elif part["segment"] is not None and len(part["segment"]) >= _TOKEN and not _PUBLIC.fullmatch(part["segment"]):
            segment = unquote(part["segment"])
            if len(_TURN.findall(segment)) * 6 >= len(segment):
                yield part.span("segment")


def address_fault(url: str) -> str | None:
    """Return why a request cannot be sent to ``url``, in words that do not repeat it; None if it can."""
    keep_address(url)
    # a variable is read when the address is asked
    url = VARIABLE.sub("1", url)
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
