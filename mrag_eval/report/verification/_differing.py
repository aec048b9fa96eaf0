"""Differences between what files hold and what they must hold, gathered by key over all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.report.verification._findings import Finding, alike, value_text

# Characters of a value in a finding.
_SHOWN = 60


def differing(found: Any, wanted: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield dotted key, value and expected value wherever two JSON values differ, numbers up to the last digits.

    A mapping that one side lacks is one difference, and so is a list of another length.
    """
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for name in [*wanted, *(name for name in found if name not in wanted)]:
            yield from differing(found.get(name), wanted.get(name), f"{key}.{name}" if key else str(name))
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for one, other in zip(found, wanted, strict=True):
            yield from differing(one, other, key)
    elif not same(found, wanted):
        yield key, found, wanted


def same(found: Any, wanted: Any) -> bool:
    """Return whether two values are the same; numbers up to the last digits, and truth values as such."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, float) and isinstance(wanted, float) and math.isnan(found) and math.isnan(wanted):
        return True
    return alike(found, wanted)


@dataclass
class Differing:
    """Gather differences of one task's rows by key; each key becomes one finding, with the first row that differs.

    Attributes:
        task: the name of the task.
        rows: the number of its rows.
        by: what the expected values follow from, such as ``by its reply``.
    """

    task: str
    rows: int
    by: str
    _found: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, row: str, key: str, found: Any, wanted: Any) -> None:
        """Note a difference of one row."""
        text = f"'{row}': {_shown(found, wanted)}, {_shown(wanted, found)} {self.by}"
        self._found.setdefault(key, {}).setdefault(row, text)

    def compare(self, row: str, found: Any, wanted: Any, key: str = "") -> None:
        """Note where two values of one row differ."""
        if found == wanted and type(found) is type(wanted):
            return
        for name, one, other in differing(found, wanted, key):
            self.add(row, name, one, other)

    def findings(self) -> Iterator[Finding]:
        """Return a fault for each key."""
        for key, rows in self._found.items():
            yield Finding(
                self.task, "fault", f"{key} of {len(rows)} of {self.rows} rows, first {next(iter(rows.values()))}"
            )


def _shown(value: Any, other: Any) -> str:
    """Return a value in short; of a long text, the part from which on the other differs."""
    text, beside = value_text(value), value_text(other)
    if len(text) <= _SHOWN:
        return " ".join(text.split())
    start = next((i for i, (a, b) in enumerate(zip(text, beside, strict=False)) if a != b), 0)
    start = max(0, min(start - _SHOWN // 3, len(text) - _SHOWN))
    return " ".join(f"{'…' if start else ''}{text[start : start + _SHOWN]}…".split())
