"""Printed tables without the spaces that align them."""

from __future__ import annotations

import re
from typing import Any


def single_spaced(text: str) -> str:
    """Return ``text`` with one space for each run of spaces."""
    return re.sub(" +", " ", text)


def told(row: Any) -> str:
    """Return what a row of a table is from, and the settings in which it differs from the table's."""
    source = str(row.source).replace("run otherwise", "this run", 1)
    return f"{source}, other settings: {'; '.join(row.differs)}" if row.differs else source
