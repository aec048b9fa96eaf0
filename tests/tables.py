"""Printed tables without the spaces that align them."""

from __future__ import annotations

import re


def single_spaced(text: str) -> str:
    """Return ``text`` with one space for each run of spaces."""
    return re.sub(" +", " ", text)
