"""Findings of a verification: how values are compared, gathered by key over all rows, and shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from mrag_eval.config import is_named
from mrag_eval.platform import number_of, to_json

Kind = Literal["fault", "open", "deviation", "note"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
# Two computations of one number may differ in the order of its sums.
_TOLERANCE = 1e-9
# Findings of one part, and tasks of one finding, that are named; the others are counted.
MOST_NAMED = 5
# Characters of a value in a finding.
_SHOWN = 60
# The exit codes of a command that verifies.
FAULTY, NOT_COMPARED, DEVIATING = 1, 3, 4


@dataclass(frozen=True)
class Remark:
    """One difference.

    A ``fault`` is a number or a fingerprint that does not follow from the samples. What is ``open`` could not be
    compared with this version, or without data, prompts or models that are not here. A ``deviation`` is a setting or a
    number of rows that is not that of the task as shipped, under its ``key``. A ``note`` changes no verdict.
    """

    task: str
    kind: Kind
    text: str
    key: str = ""

    @property
    def line(self) -> str:
        """Return the finding as one line."""
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class Verified:
    """A result file after its verification.

    Attributes:
        path: the result file.
        tasks, rows, numbers: how many were checked.
        findings: what differs, and what could not be compared on this machine.
        unchecked: what nothing in the files could contradict -> the tasks that have it.
    """

    path: Path
    tasks: int
    rows: int
    numbers: int
    findings: tuple[Remark, ...]
    unchecked: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Remark]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    def code(self, allowed: Sequence[str] | None = (), *, strict: bool = False) -> int:
        """Return the exit code: of faults, of what is open, of deviations but for the ``allowed`` keys, else 0.

        None allows every deviation. ``strict``: notes count as faults.
        """
        if self.of("fault"):
            return FAULTY
        if self.of("open"):
            return NOT_COMPARED
        if allowed is not None and any(not is_named(one.key, allowed) for one in self.of("deviation")):
            return DEVIATING
        return FAULTY if strict and self.of("note") else 0

    @property
    def lines(self) -> list[str]:
        """Return the verification as text: the verdict, each finding once with its tasks, and what was not checked."""
        counts = {"task": self.tasks, "row": self.rows, "number": self.numbers}
        checked = ", ".join(number_of(n, noun) for noun, n in counts.items())
        faults, deviations = len(self.of("fault")), len(self.of("deviation"))
        verdict = number_of(faults, "fault") if faults else "all scores follow from the samples"
        if self.of("open"):
            parts = number_of(len(self.of("open")), "part")
            verdict = f"{verdict}, {parts} not compared" if faults else f"{parts} not compared"
        official = f"{number_of(deviations, 'deviation')} from" if deviations else "in"
        tasks: dict[str, list[str]] = {}
        for finding in sorted(self.findings, key=lambda finding: _KINDS.index(finding.kind)):
            tasks.setdefault(finding.line, []).append(finding.task)
        lines = [f"    {line}   [{_named(named)}]" for line, named in tasks.items()]
        for what, named in self.unchecked.items():
            lines.append(f"    not checked: {what}" + (f"   [{_named(named)}]" if len(named) < self.tasks else ""))
        return [f"{self.path}: {verdict}, {official} the tasks' settings ({checked})", *lines]

    def as_dict(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        record: dict[str, Any] = to_json(self)
        return record | {"path": str(self.path)}


def _named(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - MOST_NAMED} more" if len(tasks) > MOST_NAMED else ""
    return ", ".join(tasks[:MOST_NAMED]) + more


def value_text(value: Any) -> str:
    """Return a value as a finding shows it; of a block, its texts."""
    if isinstance(value, Mapping):
        value = ", ".join(str(part) for part in value.values() if isinstance(part, str))
    if isinstance(value, str) and " " in value:
        return f"'{value}'"
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


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
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return abs(found - wanted) <= _TOLERANCE * max(1.0, abs(found), abs(wanted))
    return bool(found == wanted)


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
        rows = self._found.setdefault(key, {})
        if row not in rows:
            # the first alone is shown
            rows[row] = "" if rows else f"'{row}': {_shown(found, wanted)}, {_shown(wanted, found)} {self.by}"

    def compare(self, row: str, found: Any, wanted: Any, key: str = "") -> None:
        """Note where two values of one row differ."""
        if found == wanted and type(found) is type(wanted):
            return
        for name, one, other in differing(found, wanted, key):
            self.add(row, name, one, other)

    def findings(self) -> Iterator[Remark]:
        """Return a fault for each key."""
        for key, rows in self._found.items():
            yield Remark(
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
