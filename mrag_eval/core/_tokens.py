"""Token counts without a tokenizer."""

from __future__ import annotations

import math


def estimated_tokens(text: str) -> int:
    """Return a conservative token estimate without a tokenizer: 3 ASCII characters, or 1 other character, per token."""
    ascii_chars = sum(1 for c in text if c < "\x80")
    return math.ceil(ascii_chars / 3) + len(text) - ascii_chars
