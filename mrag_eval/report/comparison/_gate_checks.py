"""Outcomes of a gate: one check for each test, floor and ceiling of its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mrag_eval.report.comparison._gate_rules import Correction

RuleVerdict = Literal["fail", "cannot tell", "no drop shown", "no worse", "holds"]
# Verdicts with which a gate passes.
PASSING = ("no drop shown", "no worse", "holds")
Side = Literal["baseline", "pinned"]


@dataclass(frozen=True)
class Check:
    """The outcome of one rule on all its rows (``language`` None), on one language or on a pair (``de->en``).

    ``against`` names the baseline compared with. With ``unscored``, the check is of the share of rows without the
    metric. ``verdict`` is ``fail`` for a drop that is shown, or a score beyond its ``floor`` or ``ceiling``; ``no
    worse`` if the drop is shown to be smaller than the ``limit``, the drop allowed; ``no drop shown`` otherwise;
    ``holds`` for a floor or a ceiling; and ``cannot tell``, with the ``reason``. Scores and drops are in the metric's
    unit.

    ``difference`` is candidate minus baseline, from ``low`` to ``high``: on the side of a drop the bound at the level
    of the decision, so that a drop is shown if and only if the limit is outside; on the other side at the level of the
    gate. Of a floor or a ceiling they are the 95% interval of the score. ``could_miss`` is the largest drop within.
    ``p_value`` is one-sided, for a drop larger than the limit, and ``p_adjusted`` corrected for all tests of the gate.
    ``detectable`` is the smallest drop beyond the limit that these pairs show with 80% power in this gate, ``needed``
    about the number of rows (or groups of them) that an undecided check would need.

    ``lost`` counts the rows that one run alone scored. ``better`` and ``worse`` are the ids of rows whose value
    rose and fell. ``part`` says how many of the rows were run, if not all. ``caution`` says from how many rows on
    the test of a verdict is exact, if there are fewer. ``limited`` names the languages in which a right
    answer scores less than it should (docs/statistics.md), ``marked`` those of which more than a tenth of
    the rows failed. ``why`` says why the candidate's rows have no score, in a check of those.
    """

    task: str
    metric: str
    language: str | None
    verdict: RuleVerdict = "cannot tell"
    against: Side = "baseline"
    unscored: bool = False
    n: int = 0
    lost: int = 0
    baseline: float | None = None
    candidate: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    floor: float | None = None
    ceiling: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    could_miss: float | None = None
    detectable: float | None = None
    needed: int | None = None
    method: str | None = None
    reason: str | None = None
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    part: str | None = None
    caution: str | None = None
    marked: str | None = None
    limited: str | None = None
    why: str | None = None

    @property
    def passes(self) -> bool:
        """Return whether the check lets the candidate pass."""
        return self.verdict in PASSING


@dataclass(frozen=True)
class GateResult:
    """All checks; ``exit_code`` is 0 if all pass, 1 for a regression, 2 if one cannot be decided.

    ``tests`` is the number of p-values that the ``correction`` is over. ``runs`` names the run of each side.
    ``without_rule``: task -> metrics of both runs that no rule looks at.
    """

    checks: tuple[Check, ...]
    correction: Correction = "holm"
    tests: int = 0
    alpha: float = 0.05
    runs: Mapping[str, str] = field(default_factory=dict)
    without_rule: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command."""
        if any(check.verdict == "fail" for check in self.checks):
            return 1
        return 0 if all(check.passes for check in self.checks) else 2

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"exit_code": self.exit_code, **asdict(self)}
