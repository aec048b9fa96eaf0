"""Choice of an option by its likelihood (``output_type: multiple_choice``), instead of a generated reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.platform import DataError


def option_texts(row: Mapping[str, Any]) -> list[str]:
    """Return the options as shown and scored: ``A) name``. Raise DataError without options."""
    if not row.get("choices"):
        raise DataError(
            f"row '{row['id']}' has no choices, whose likelihoods output_type multiple_choice compares",
            "use output_type generate_until",
        )
    return [f"{chr(65 + i)}) {choice}" for i, choice in enumerate(row["choices"])]


def most_likely(doc: Mapping[str, Any], replies: Sequence[tuple[float, bool]]) -> tuple[str, list[float]]:
    """Return the option of the highest log-likelihood (over its tokens; first of equal ones), and all of them."""
    values = [float(reply[0]) for reply in replies]
    return option_texts(doc)[values.index(max(values))], values
