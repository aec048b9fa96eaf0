"""Keys where they are read: from the environment, from headers, and from the arguments of a model."""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from mrag_eval.platform._address import keep_address
from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._json_text import json_value
from mrag_eval.platform._redaction import redact
from mrag_eval.platform._secrets import is_plain, keep_common, keep_secret
from mrag_eval.platform._template import VARIABLE, with_variables

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_NAMED = re.compile(
    r"api[-_]?key|^((hf|auth|access|bearer)_)?token$|secret|passw|authorization|credential"
    r"|(^|[-_.])(key|auth|pat|pwd|jwt|ticket)$",
    re.IGNORECASE,
)
_NAMED_HEADER = re.compile(r"(key|token|cookie|auth|jwt|session|session[-_]?id|signature)s?$", re.IGNORECASE)
_SCHEMES = frozenset({"basic", "bearer", "token"})
_HEADERS = frozenset({"header", "headers", "default_headers", "extra_headers"})
# The variable in which the harness's class of a model type looks for its key, by the beginning of the type; those of
# the second list may do without.
_VARIABLES = {"openai": "OPENAI_API_KEY", "local-": "OPENAI_API_KEY", "azure": "AZURE_OPENAI_API_KEY",
              "anthropic": "ANTHROPIC_API_KEY", "textsynth": "TEXTSYNTH_API_SECRET_KEY",
              "watsonx": "WATSONX_API_KEY"}  # fmt: skip
_HOSTS = {"OPENAI_API_KEY": "api.openai.com", "ANTHROPIC_API_KEY": "api.anthropic.com"}
_MAY_DO_WITHOUT = ("local-", "watsonx")


def key_variable_of(model_type: str, args: Mapping[str, Any], *, needed: bool = False) -> str | None:
    """Return the environment variable with the key of a model: the one that its arguments name, else its provider's.

    A provider's key goes to the provider's host alone: None for an address elsewhere, as for a model that has a key or
    headers of its own. With ``needed``, None also for a type that may do without a key, as local servers do.
    """
    if args.get("api_key_env"):
        return str(args["api_key_env"])
    if args.get("header") or args.get("api_key") or (needed and model_type.startswith(_MAY_DO_WITHOUT)):
        return None
    variable = next((variable for start, variable in _VARIABLES.items() if model_type.startswith(start)), None)
    host, url = _HOSTS.get(variable or ""), args.get("base_url")
    return None if host is not None and url and urlsplit(str(url)).hostname != host else variable


def key_of(model_type: str, args: Mapping[str, Any], owner: str) -> str | None:
    """Return the key that is sent with the requests of a model: the one typed, else that in its variable, else None.

    Raises ConfigError, naming the ``owner``, if the variable that its arguments name is not set, and for a key that no
    request can carry.
    """
    if args.get("api_key"):
        where = f"{owner}: api_key"
        return keep_key(_carried(with_variables(str(args["api_key"]), where), where), where).strip()
    variable = key_variable_of(model_type, args)
    if variable is None:
        host = urlsplit(str(args.get("base_url") or "")).hostname
        _say_unsent(key_variable_of(model_type, {}), host, bool(args.get("header")))
        return None
    return key_in(variable, owner) if args.get("api_key_env") or os.environ.get(variable, "").strip() else None


@lru_cache
def _say_unsent(variable: str | None, host: str | None, own: bool) -> None:
    """Say once that a provider's key, which is set, does not go to an address of somebody else."""
    if variable is not None and host is not None and not own and os.environ.get(variable, "").strip():
        log.info("%s is not sent to %s, which is not its provider's: api_key_env=%s sends it", variable, host, variable)


def names_secret(key: str) -> bool:
    """Return whether a setting of this name holds a secret, as opposed to the name of a variable with one."""
    return _NAMED.search(key) is not None and not key.lower().endswith("_env")


def key_in(variable: str, owner: str) -> str:
    """Return the key in an environment variable, which is hidden from now on.

    Raises ConfigError, naming the ``owner`` of the key, if the variable is not set or cannot be sent.
    """
    key = os.environ.get(variable, "")
    if not key.strip():
        raise ConfigError(f"{owner}: the environment variable {variable} is not set", f"export {variable}=...")
    where = f"{owner}: the environment variable {variable}"
    return keep_key(_carried(key, where), where).strip()


def keep_key(value: str, where: str | None, name: str = "api_key") -> str:
    """Hide a key from now on, and return it.

    One that texts may contain by chance (it is short, a word, a number) is hidden only behind ``Bearer`` and behind the
    ``name`` of its header or setting: elsewhere it would damage them. A line says so, if ``where`` it was read is told.
    """
    key = value.strip()
    if VARIABLE.search(key):
        return value  # read, and hidden, when it is sent
    if not is_plain(key):
        keep_secret(key)
    elif key and keep_common(key, name) and where is not None:
        log.info("%s is short or a common word: in texts it is not hidden, only behind 'Bearer' and '%s'", where, name)
    return value


def keep_pair(value: str, where: str, name: str = "token") -> str:
    """Hide a token, or a ``USER:PASSWORD``, from now on, and return it, as :func:`keep_key` does."""
    user, _, password = value.strip().partition(":")
    keep_key(password or user, where, name)
    if not is_plain(value.strip()):
        keep_secret(value.strip())
    return value


def header_has_key(name: str) -> bool:
    """Return whether a header of this name carries a key; any other may choose what answers."""
    return names_secret(name) or _NAMED_HEADER.search(name) is not None


def headers_in(given: Any) -> Any:
    """Return the headers that an argument states: a mapping as it is, or as JSON in a text."""
    if isinstance(given, str):
        with suppress(ValueError):
            return json_value(given)
    return given


def keep_header(name: str, value: str, where: str) -> None:
    """Hide the value of a header that is a key, by its name or by its value; any other may choose what answers.

    Raises ConfigError, naming ``where`` it was read, for a value that no request can carry.
    """
    _carried(value, where)
    scheme, _, key = value.strip().rpartition(" ")
    if not key or (not scheme and key.lower() in ("bearer", "basic")) or VARIABLE.search(value):
        return
    # a key, whatever the header's name: by its shape, or as that of a variable
    held = {text.strip() for variable, text in os.environ.items() if header_has_key(variable)}
    is_key = value.strip() in held or redact(value.strip()) != value.strip()
    if header_has_key(name) or scheme.lower() in _SCHEMES or is_key:
        keep_pair(_decoded(key), where, name) if scheme.lower() == "basic" else keep_key(key, where, name)
        if not is_plain(value.strip()) and not (is_plain(key) and scheme.lower() in ("bearer", "token")):
            keep_secret(value.strip())


def keep_secrets_of(settings: Any, where: str | None = None, key: str = "") -> None:
    """Hide every secret in nested settings from now on: by the name of its key, in headers, and in addresses.

    With ``where`` the settings are the arguments of a model that will use them: raises ConfigError, naming the key, for
    a secret that no request can carry.
    """
    if key.rpartition(".")[2].lower() in _HEADERS:
        settings = headers_in(settings)
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
                keep_key(_carried(settings, f"{where} {key}"), where and f"{where} {key}", name)
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
