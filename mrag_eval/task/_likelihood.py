"""Choosing an option by its likelihood (``output_type: multiple_choice``) in place of a generated reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.core import DataError


def option_texts(choices: Sequence[str]) -> list[str]:
    """The options as they stand in the prompt and are scored: ``A) name``."""
    return [f"{chr(65 + i)}) {choice}" for i, choice in enumerate(choices)]


def option_requests(doc: Mapping[str, Any], prompt: str, **kwargs: Any) -> list[Any]:
    """One likelihood request an option, in their order; DataError for a row without options."""
    from lm_eval.api.instance import Instance

    if not doc.get("choices"):
        raise DataError(
            f"row '{doc['id']}' has no choices, whose likelihoods output_type multiple_choice compares",
            "use output_type generate_until",
        )
    kwargs = {key: kwargs[key] for key in ("metadata",) if key in kwargs}
    return [
        Instance(request_type="loglikelihood", doc=dict(doc), arguments=(prompt, text), idx=i, **kwargs)
        for i, text in enumerate(option_texts(doc["choices"]))
    ]


def most_likely(doc: Mapping[str, Any], replies: Sequence[tuple[float, bool]]) -> tuple[str, list[float]]:
    """The option of the highest log-likelihood (summed over its tokens; the first of equal ones), and all of them."""
    values = [float(reply[0]) for reply in replies]
    return option_texts(doc["choices"])[values.index(max(values))], values
