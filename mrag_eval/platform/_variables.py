"""Variables of the environment in what the user wrote: ``{env:NAME}`` in an address, a header or a body."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._functions import refuse_named_by_a_file
from mrag_eval.platform._secrets import is_plain, keep_common, keep_secret

_OF_A_KEY = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
VARIABLE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]{0,63})\}")


def keep_named_variables() -> None:
    """Hide from now on what the variables hold whose names say that it is a key, but for words that any text may have.

    What leaves this machine is refused with any of them, whether it was read here or not.
    """
    for name, value in os.environ.items():
        if _OF_A_KEY.search(name) and not is_plain(value.strip()):
            keep_secret(value.strip())


def with_variables(value: Any, where: str) -> Any:
    """Return a JSON value with the variables that its texts name in their places; they are hidden from now on.

    What is written shows ``{env:NAME}`` in place of the variable, alone where texts may contain its value by chance
    only where it stands.

    Raises ConfigError, starting with ``where``, for a variable that is not set, and for every one inside
    :func:`reading_back`: a file from elsewhere reads none.
    """

    def read(name: str, key: str) -> str:
        refuse_named_by_a_file(f"{{env:{name}}}", where)
        found = os.environ.get(name, "").strip()
        if not found:
            raise ConfigError(f"{where}: the environment variable {name} is not set", f"export {name}=...")
        if not is_plain(found):
            keep_secret(found, f"{{env:{name}}}")
        elif key:
            keep_common(found, key)
        return found

    return in_texts(value, read)


def in_texts(value: Any, read: Callable[[str, str], str], key: str = "") -> Any:
    """Return a JSON value with what ``read`` gives for each variable that its texts name, and the key of the text."""
    if isinstance(value, Mapping):
        return {name: in_texts(inner, read, str(name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [in_texts(inner, read, key) for inner in value]
    return VARIABLE.sub(lambda found: read(found[1], key), value) if isinstance(value, str) else value
