"""Keys where they are read: from the environment, from headers, and from the arguments of a model."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from typing import Any

from mrag_eval.platform._address import check_distinct, keep_address
from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._secrets import is_plain, is_stand_in, keep_secret

_NAMED = re.compile(
    r"api[-_]?key|^((hf|auth|access|bearer)_)?token$|secret|passw|authorization|credential", re.IGNORECASE
)
_NAMED_HEADER = re.compile(r"(key|token|cookie)$", re.IGNORECASE)
# Values of these headers are public, and may be ordinary words, dates or addresses.
_PUBLIC_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "anthropic-beta", "anthropic-version",
                             "connection", "content-length", "content-type", "host", "http-referer", "origin",
                             "referer", "user-agent", "x-title"})  # fmt: skip
_HEADERS = frozenset({"header", "headers", "default_headers", "extra_headers"})
# The variable in which the harness's class of a model type looks for its key, by the beginning of the type; those of
# the second list may do without.
_VARIABLES = {"openai": "OPENAI_API_KEY", "local-": "OPENAI_API_KEY", "azure": "AZURE_OPENAI_API_KEY",
              "anthropic": "ANTHROPIC_API_KEY", "textsynth": "TEXTSYNTH_API_SECRET_KEY",
              "watsonx": "WATSONX_API_KEY"}  # fmt: skip
_MAY_DO_WITHOUT = ("local-", "watsonx")


def key_variable_of(model_type: str, *, needed: bool = False) -> str | None:
    """Return the environment variable in which a model type looks for its key, None for a type without one.

    With ``needed``, None also for a type that may do without a key, as those of local servers do.
    """
    if needed and model_type.startswith(_MAY_DO_WITHOUT):
        return None
    return next((variable for start, variable in _VARIABLES.items() if model_type.startswith(start)), None)


def names_secret(key: str) -> bool:
    """Return whether a setting of this name holds a secret, as opposed to the name of a variable with one."""
    return _NAMED.search(key) is not None and not key.lower().endswith("_env")


def key_in(variable: str, owner: str) -> str:
    """Return the key in an environment variable, which is hidden from now on.

    Raises ConfigError, naming the ``owner`` of the key, if the variable is not set, cannot be sent or cannot be hidden.
    """
    key = os.environ.get(variable, "")
    if not key.strip():
        raise ConfigError(f"{owner}: the environment variable {variable} is not set", f"export {variable}=...")
    where = f"{owner}: the environment variable {variable}"
    return keep_key(_carried(key, where), where).strip()


def keep_key(value: str, where: str) -> str:
    """Hide a key from now on, and return it; a stand-in for no key is not hidden.

    Raises ConfigError, naming ``where`` it was read, for one that texts may contain by chance: to hide it would damage
    them.
    """
    check_distinct(value.strip(), where)
    keep_secret(value.strip())
    return value


def keep_pair(value: str, where: str) -> str:
    """Hide a token, or a ``USER:PASSWORD``, from now on, and return it; raises ConfigError as :func:`keep_key` does."""
    password = value.partition(":")[2]
    keep_key(password or value, where)
    if not is_stand_in(password):
        keep_secret(value.strip())
    return value


def header_has_key(name: str) -> bool:
    """Return whether a header of this name carries a key; any other may choose what answers."""
    return names_secret(name) or _NAMED_HEADER.search(name) is not None


def keep_header(name: str, value: str, where: str) -> None:
    """Hide the value of a header, and the key after its scheme (``Bearer``), unless the header is a public one.

    Raises ConfigError, naming ``where`` it was read, for a value that no request can carry, and for a key that texts
    may contain by chance.
    """
    _carried(value, where)
    scheme, _, key = value.strip().rpartition(" ")
    if name.lower() in _PUBLIC_HEADERS or not key or (not scheme and key.lower() in ("bearer", "basic")):
        return
    if header_has_key(name):
        keep_pair(_decoded(key), where) if scheme.lower() == "basic" else keep_key(key, where)
    if not is_plain(value.strip()) and not is_stand_in(key):
        keep_secret(value.strip())


def keep_secrets_of(settings: Any, where: str | None = None, key: str = "") -> None:
    """Hide every secret in nested settings from now on: by the name of its key, in headers, and in addresses.

    With ``where`` the settings are the arguments of a model that will use them: raises ConfigError, naming the key, for
    a secret that no request can carry, or that texts may contain by chance. Without it such a secret is left alone.
    """
    if isinstance(settings, Mapping):
        for name, inner in settings.items():
            keep_secrets_of(inner, where, f"{key}.{name}" if key else str(name))
    elif isinstance(settings, list | tuple):
        for inner in settings:
            keep_secrets_of(inner, where, key)
    elif isinstance(settings, str):
        keep_address(settings)
        above, _, name = key.rpartition(".")
        try:
            if above.rpartition(".")[2].lower() in _HEADERS:
                keep_header(name, settings, f"{where} {above} {name}")
            elif names_secret(name):
                keep_key(settings, f"{where} {key}")
        except ConfigError:
            if where is not None:
                raise


def _carried(value: str, where: str) -> str:
    """Return the value of a header or a key; raise ConfigError, naming ``where``, if a request cannot carry it."""
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        ends = "ends in a newline" if value.rstrip("\r\n") != value else "holds a control character"
        raise ConfigError(f"{where} {ends}", "set it to the key alone, without a line end")
    try:
        value.encode("latin-1")
    except UnicodeError:
        raise ConfigError(f"{where} holds a character that no key has", "copy the key again") from None
    return value


def _decoded(key: str) -> str:
    """Return the ``USER:PASSWORD`` of a Basic header, or the text itself if it is none."""
    try:
        return base64.b64decode(key, validate=True).decode()
    except ValueError:
        return key
