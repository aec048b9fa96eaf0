"""The rules of a gate: the drops that a release must not show."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from mrag_eval.config import Block, validated
from mrag_eval.platform import read_yaml
from mrag_eval.scoring import more_is_better, nearer_zero_is_better


class Guard(Block):
    """A guard on every language (or pair of languages) of a rule's tasks: the drop allowed in each.

    A language of fewer than ``min_n`` pairs of rows, or groups of them, cannot be told.
    """

    max_drop: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    min_n: int = Field(default=30, ge=2)


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
    each language and in each pair of languages.
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
    max_unpaired: float | None = Field(default=None, ge=0, lt=1)
    max_unscored: float | None = Field(default=None, ge=0, lt=1)
    lower_is_better: bool | None = None
    per_language: Guard | None = None
    per_pair: Guard | None = None

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
        if self.min_score is not None and self.less_is_better:
            raise ValueError(f"of {self.metric}, less is better: write 'max_score' for 'min_score'")
        if self.max_score is not None and self.less_is_better is False:
            raise ValueError(f"of {self.metric}, more is better: write 'min_score' for 'max_score'")
        of_drops = ("must_detect", "per_language", "per_pair", "max_drop_pinned", "max_unscored")
        given = [name for name in of_drops if getattr(self, name) is not None]
        if not self.limits_drop and given:
            raise ValueError(f"'{given[0]}' compares with the baseline: add 'max_drop'")
        return self


Correction = Literal["holm", "bh", "none"]


class Rules(Block):
    """The rules file.

    ``correction`` is over all tests of the gate: ``holm`` bounds the chance of any false alarm by ``alpha``, ``bh`` the
    expected share of false alarms among the regressions (Benjamini & Hochberg 1995), ``none`` the chance in each test
    alone. ``min_n`` applies to every rule that does not set it. ``differs`` names settings that may differ
    between baseline and candidate (see ``mrag-eval compare``).
    """

    rules: tuple[Rule, ...] = Field(min_length=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    correction: Correction = "holm"
    min_n: int = Field(default=100, ge=2)
    differs: tuple[str, ...] = ()
    seed: int = Field(default=0, ge=0)


def read_rules(path: Path) -> Rules:
    """Return the validated rules file. Raise ConfigError naming the file and the key."""
    content = read_yaml(path, "correct it; docs/gate.md shows a file of rules")
    return validated(Rules, content, str(path), joint=", ")
