"""The rules of a gate, the drops that a release must not show, and the checks that come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from mrag_eval.config import Block, Names, validated
from mrag_eval.core import Displayed, as_html
from mrag_eval.platform import ConfigError, read_yaml
from mrag_eval.report.files._scored_rows import PAIR
from mrag_eval.scoring import more_is_better, nearer_zero_is_better, scale_of

if TYPE_CHECKING:
    from pandas import DataFrame

Correction = Literal["holm", "bh", "none"]
RuleVerdict = Literal["fail", "cannot tell", "no drop shown", "no worse", "holds"]
# Verdicts with which a gate passes.
PASSING = ("no drop shown", "no worse", "holds")
Side = Literal["baseline", "pinned"]


class Guard(Block):
    """A guard on every cell of a breakdown of a rule's tasks, such as every language: the drop allowed in each.

    Without a bound of its own, no drop is allowed. ``min_score`` is a floor under the candidate's score in each cell,
    ``max_score`` a ceiling above it. A cell of fewer than ``min_n`` pairs of rows, or groups of them, cannot be told.
    ``only`` names the cells that are guarded (``de->en``, or a glob such as ``*->en``), by default all.
    """

    max_drop: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    max_score: float | None = Field(default=None, allow_inf_nan=False)
    min_n: int = Field(default=30, ge=2)
    only: Names | None = Field(default=None, min_length=1)

    @property
    def limits_drop(self) -> bool:
        """Return whether the guard compares the candidate with the baseline."""
        return self.max_drop is not None or (self.min_score is None and self.max_score is None)


class Rule(Block):
    """One rule: the candidate's ``metric`` on ``task`` must not be below the baseline's by more than is allowed.

    ``task`` is a task, a group or a glob; the rows of all tasks that it matches are tested together. ``pair`` keeps the
    rows whose question and relevant document are in these languages (``de->en``, ``*->en``). ``max_drop`` is in the
    metric's own unit (0.01 is one point of a share), ``max_drop_relative`` a share of the baseline's score; with
    neither, no drop is allowed. The rule fails if a larger drop is shown. With ``non_inferiority`` it passes only if
    the drop is shown to be smaller than that. ``max_drop_pinned`` is the drop allowed since the pinned baseline, if one
    is given; without it the same as since the last.

    A drop is a score that is worse: of a metric of which less is better, one that is higher, and of a delta of
    concurrence one farther from 0. ``lower_is_better`` says so of a metric that has no better side, as the share of
    refusals. ``min_score`` is a floor under the candidate's score, ``max_score`` a ceiling above it. A rule with these
    alone compares nothing with the baseline.

    If no drop is shown, the rule needs at least ``min_n`` pairs of rows (or groups of them). Rows that have a score in
    one run only count with the worst value in the candidate and the best in the baseline: the rule passes if no drop is
    shown with these either. ``max_unpaired`` passes over them up to that share of the rows. ``max_unscored`` is the
    rise allowed in the share of rows without a score. With ``must_detect`` the rule also needs enough pairs to show a
    drop of that size beyond the allowed one with 80% power. ``per_language`` and ``per_pair`` hold the drop allowed in
    each language and in each pair of languages, ``per`` that in each cell of other breakdowns, by their names in the
    results (``answer_evidence``).
    """

    metric: str
    task: str = "*"
    pair: str | None = Field(default=None, pattern=r"^\S+->\S+$")
    max_drop: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_drop_relative: float | None = Field(default=None, ge=0, lt=1)
    max_drop_pinned: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    max_score: float | None = Field(default=None, allow_inf_nan=False)
    non_inferiority: bool = False
    min_n: int | None = Field(default=None, ge=2)
    must_detect: float | None = Field(default=None, gt=0)
    max_unpaired: float | None = Field(default=None, ge=0, le=0.5)
    max_unscored: float | None = Field(default=None, ge=0, lt=1)
    lower_is_better: bool | None = None
    per_language: Guard | None = None
    per_pair: Guard | None = None
    per: dict[str, Guard] = Field(default_factory=dict)

    @property
    def guards(self) -> dict[str, Guard]:
        """Return the guards by breakdown."""
        own = {"query_lang": self.per_language, PAIR: self.per_pair}
        return {**{by: guard for by, guard in own.items() if guard is not None}, **self.per}

    @property
    def limits_drop(self) -> bool:
        """Return whether the rule compares the candidate with the baseline; a floor or a ceiling alone does not."""
        bounded = self.min_score is not None or self.max_score is not None
        return not bounded or self.max_drop is not None or self.max_drop_relative is not None

    @property
    def less_is_better(self) -> bool | None:
        """Return whether a rise, or a greater distance from 0, is the drop; None if neither metric nor rule says so."""
        more = False if nearer_zero_is_better(self.metric) else more_is_better(self.metric)
        return self.lower_is_better if more is None else not more

    @model_validator(mode="after")
    def _check(self) -> Rule:
        if self.max_drop is not None and self.max_drop_relative is not None:
            raise ValueError("'max_drop' and 'max_drop_relative' exclude each other")
        if self.non_inferiority and not (self.max_drop or self.max_drop_relative):
            raise ValueError("'non_inferiority' requires 'max_drop' or 'max_drop_relative', the margin")
        if self.lower_is_better not in (None, self.less_is_better):
            better = "less" if self.less_is_better else "more"
            raise ValueError(f"of {self.metric}, {better} is better: leave 'lower_is_better' out")
        parts: list[Rule | Guard] = [self, *self.guards.values()]
        for part in parts:
            if part.min_score is not None and self.less_is_better:
                raise ValueError(f"of {self.metric}, less is better: write 'max_score' for 'min_score'")
            if part.max_score is not None and self.less_is_better is False:
                raise ValueError(f"of {self.metric}, more is better: write 'min_score' for 'max_score'")
        of_drops = ("must_detect", "max_drop_pinned", "max_unscored")
        given = [name for name in of_drops if getattr(self, name) is not None]
        guards = {"per_language": self.per_language, "per_pair": self.per_pair}
        given += [name for name, one in guards.items() if one is not None and one.limits_drop]
        given += ["per"] if any(one.limits_drop for one in self.per.values()) else []
        if not self.limits_drop and given:
            raise ValueError(f"'{given[0]}' compares with the baseline: add 'max_drop'")
        return self


class GateRules(Block):
    """The rules file.

    ``correction`` is over all tests of the gate: ``holm`` bounds the chance of any false alarm by ``alpha``, which
    rules share; within a rule the whole has two fifths, the languages two, the pairs one. ``bh`` bounds the expected
    share of false alarms among the regressions (Benjamini & Hochberg 1995), ``none`` the chance in each test alone.
    ``min_n`` applies to every rule that does not set it. ``differs`` names settings that may differ between baseline
    and candidate (see ``mrag-eval compare``).
    """

    rules: tuple[Rule, ...] = Field(min_length=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    correction: Correction = "holm"
    min_n: int = Field(default=100, ge=2)
    differs: tuple[str, ...] = ()
    seed: int = Field(default=0, ge=0)

    def check_bounds(self) -> None:
        """Raise ConfigError for a bound that no difference or score of its metric can cross, naming the likely value.

        Metrics are known once the runs are read: a user's own come with them.
        """
        for number, rule in enumerate(self.rules, 1):
            parts = {"": rule} | {f"{by}: ": guard for by, guard in rule.guards.items()}
            low, high = scale_of(rule.metric).bounds
            for where, part in parts.items():
                named = f"rule {number}, {rule.metric}, {where}"
                for key in ("max_drop", "max_drop_pinned", "must_detect"):
                    if (value := getattr(part, key, None)) is not None and value >= high - low:
                        raise beyond(f"{named}{key}", value, rule.metric)
                for key, end in (("min_score", low), ("max_score", high)):
                    if (value := getattr(part, key)) is not None and (value == end or not low <= value <= high):
                        raise beyond(f"{named}{key}", value, rule.metric)


def beyond(key: str, value: float, metric: str) -> ConfigError:
    """Return the error of a bound that nothing crosses, with the value that was probably meant."""
    scale = scale_of(metric)
    low, high = scale.bounds
    meant = f"{key.rpartition(' ')[2]}: {value / 100:g} for {value:g} points"
    points = scale.percent and value > 1 and value / 100 <= high
    return ConfigError(
        f"{key}: {value:g} decides nothing: values of {metric} are {low:g} to {high:g}",
        f"write {meant}" if points else "name a value within that range, or leave it out",
    )


def read_rules(given: GateRules | Path | str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> GateRules:
    """Return the validated rules of a file, of its content, or of its list. Raise ConfigError naming file and key."""
    if isinstance(given, GateRules):
        return given
    where, content = "rules", given if isinstance(given, Mapping) else {"rules": given}
    if isinstance(given, Path | str):
        where, content = str(given), read_yaml(Path(given), "correct it; docs/gate.md shows a file of rules")
    return validated(GateRules, content, where, joint=", ")


@dataclass(frozen=True)
class Worst:
    """The language in which most rows got worse, with the numbers of rows that did, that got better, and of all."""

    language: str
    worse: int
    better: int
    n: int


@dataclass(frozen=True)
class Check:
    """The outcome of one rule on all its rows (``language`` None), on one language or on a pair (``de->en``), or on
    another cell of the breakdown ``by``.

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
    the rows failed. ``why`` says why the candidate's rows have no score, in a check of those. ``elsewhere`` says in
    which other cells the candidate has how many of the rows. ``worst`` is the language of most rows that got worse, and
    ``less_is_better`` says on which side that is.
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
    by: str | None = None
    elsewhere: str | None = None
    worst: Worst | None = None
    less_is_better: bool = False

    @property
    def improved(self) -> bool:
        """Return whether the candidate is shown to be better."""
        end = self.high if self.less_is_better or self.unscored else self.low
        if self.difference is None or end is None or not self.passes:
            return False
        return end < 0 if self.less_is_better or self.unscored else end > 0

    @property
    def place(self) -> str | None:
        """Return the language, pair or other cell that the check is of; None for all rows."""
        return self.language if self.by is None else f"{self.by} {self.language}"

    @property
    def passes(self) -> bool:
        """Return whether the check lets the candidate pass."""
        return self.verdict in PASSING


@dataclass(frozen=True, repr=False)
class GateResult(Displayed):
    """All checks; ``exit_code`` is 0 if all pass, 1 for a regression, 2 if one cannot be decided. It shows itself.

    ``tests`` is the number of p-values that the ``correction`` is over. ``runs`` names the run of each side, and the
    versions in which they differ. ``without_rule``: task -> metrics of both runs that no rule looks at. ``left_out``
    counts the pairs of languages of too few rows to fail. ``cause`` is what differs from the baseline, if both are runs
    of one system.
    """

    checks: tuple[Check, ...]
    correction: Correction = "holm"
    tests: int = 0
    alpha: float = 0.05
    runs: Mapping[str, str] = field(default_factory=dict)
    without_rule: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: int = 0
    cause: str | None = None

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command."""
        if any(check.verdict == "fail" for check in self.checks):
            return 1
        return 0 if all(check.passes for check in self.checks) else 2

    @property
    def verdict(self) -> Literal["pass", "fail", "not decided"]:
        """Return the exit code in words."""
        return "fail" if self.exit_code == 1 else "not decided" if self.exit_code else "pass"

    @property
    def text(self) -> str:
        """Return what the command prints: the finding, then the checks, but not the languages and pairs that pass."""
        from mrag_eval.report.comparison._gate_text import gate_lines

        return "\n".join(gate_lines(self))

    def _repr_html_(self) -> str:
        from mrag_eval.report.comparison._gate_text import gate_tables

        return as_html(gate_tables(self))

    @property
    def frame(self) -> DataFrame:
        """Return one row for each :class:`Check`, with its fields as columns."""
        from pandas import DataFrame

        return DataFrame([asdict(check) for check in self.checks])

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"exit_code": self.exit_code, **asdict(self)}
