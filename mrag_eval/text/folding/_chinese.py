"""Simplified Chinese from traditional, by OpenCC."""

from __future__ import annotations

from functools import cache
from typing import Any

from mrag_eval.platform import missing_extra


def simplified(text: str) -> str:
    """Return the text in simplified characters.

    Raises:
        MissingExtraError: the extra ``chinese`` is not installed.
    """
    converted: str = _converter().convert(text)
    return converted


@cache
def _converter() -> Any:
    try:
        import opencc
    except ImportError as error:
        raise missing_extra("chinese", "opencc") from error
    return opencc.OpenCC("t2s")
