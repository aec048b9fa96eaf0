"""Check of a user's breakdowns against the rows."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.core import RagDoc
from mrag_eval.platform import ConfigError, DataError, did_you_mean


def check_breakdowns(names: Sequence[str], docs: Sequence[RagDoc]) -> None:
    """Raise ConfigError for a key that no row has, and DataError for a row whose value is a list or an object."""
    known = {key: None for doc in docs for key, value in doc.extra.items() if value is not None}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"data: breakdowns: no row has the key '{name}'{did_you_mean(name, known)}",
                f"keys of these rows: {', '.join(known) or 'none beyond those that every benchmark has'}",
            )
        for doc in docs:
            value = doc.extra.get(name)
            if isinstance(value, list | tuple | dict):
                raise DataError(
                    f"data: breakdowns: '{name}' of row '{doc.id}' is a list or an object: {value!s:.60}",
                    "a breakdown takes one text, number or true/false a row",
                )
