"""The length of a translation in tokens, before there is one."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from mrag_eval.core import base_language
from mrag_eval.text import estimated_tokens, expected_scripts

# Tokens of a reply besides the translation, for tags and a few words: a number, or a share of a short translation.
_AROUND, _PART_AROUND = 24, 4
# What other tokenizers need more than Qwen's, and one translator's words more than another's.
_MARGIN = 1.5
# Tokens that Qwen writes for one of XLM-R's in the text. XLM-R has about as many for a text in any language, Qwen has
# few for English and Chinese, and many for scripts of few speakers.
_RATES: Mapping[str, float] = {
    **dict.fromkeys(("Hani", "Bopo", "Hira", "Kana"), 1.1),
    **dict.fromkeys(("Latn", "Cyrl", "Arab", "Hebr", "Hang", "Thai"), 1.5),
}
_ENGLISH, _OTHER = 1.1, 4.5


def expected_tokens(text: str, target: str) -> int:
    """Return an estimate of the tokens of a text's translation into ``target``."""
    rate = max((_RATES.get(script, _OTHER) for script in expected_scripts(target)), default=_OTHER)
    return ceil(estimated_tokens(text, "xlm-r") * (_ENGLISH if base_language(target) == "en" else rate))


def longest_sentence(max_tokens: int) -> int:
    """Return the expected tokens that a reply of ``max_tokens`` may hold."""
    return max(1, max_tokens - min(_AROUND, max_tokens // _PART_AROUND))


def longest_piece(max_tokens: int) -> int:
    """Return the expected tokens that fit a reply of ``max_tokens`` almost surely."""
    return max(1, int(longest_sentence(max_tokens) / _MARGIN))
