"""Findings of a verification, and how values are compared and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from mrag_eval.platform import number_of, to_json

Kind = Literal["fault", "deviation", "note"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
# Two computations of one number may differ in the order of its sums.
_TOLERANCE = 1e-9
# Findings of one part, and tasks of one finding, that are named; the others are counted.
MOST_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """One difference.

    A ``fault`` is a number or a fingerprint that does not follow from the samples. A ``deviation`` is a setting or a
    number of rows that is not the benchmark's. A ``note`` says what could not be checked.
    """

    task: str
    kind: Kind
    text: str

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
    findings: tuple[Finding, ...]
    unchecked: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Finding]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def lines(self) -> list[str]:
        """Return the verification as text: the verdict, each finding once with its tasks, and what was not checked."""
        counts = {"task": self.tasks, "row": self.rows, "number": self.numbers}
        checked = ", ".join(number_of(n, noun) for noun, n in counts.items())
        faults, deviations = len(self.of("fault")), len(self.of("deviation"))
        verdict = number_of(faults, "fault") if faults else "all scores follow from the samples"
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


def alike(first: Any, second: Any) -> bool:
    """Return whether two values are the same, numbers up to the last digits."""
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) <= _TOLERANCE * max(1.0, abs(first), abs(second))
    return bool(first == second)


def value_text(value: Any) -> str:
    """Return a value as a finding shows it; of a block, its texts."""
    if isinstance(value, Mapping):
        value = ", ".join(str(part) for part in value.values() if isinstance(part, str))
    if isinstance(value, str) and " " in value:
        return f"'{value}'"
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
