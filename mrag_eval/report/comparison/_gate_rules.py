"""The rules of a gate: the drops that a release must not show."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from mrag_eval.config import Block, read_yaml, validated


class PerLanguage(Block):
    """A guard on every language of a rule's tasks: the drop allowed in each, and the control of false alarms.

    The languages are tested together; ``fdr`` bounds the expected share of false alarms among those that fail
    (Benjamini & Hochberg 1995). A language of fewer than ``min_n`` pairs is not comparable.
    """

    max_drop: float = Field(default=0.0, ge=0)
    fdr: float = Field(default=0.05, gt=0, lt=1)
    min_n: int = Field(default=30, ge=2)


class Rule(Block):
    """One rule: the candidate's ``metric`` on ``task`` must not be below the baseline's by more than is allowed.

    ``task`` is a task, a group or a glob; the rows of all tasks that it matches are tested together. ``max_drop`` is in
    the metric's own unit (0.01 is one point of a share), ``max_drop_relative`` a share of the baseline's score; with
    neither, no drop is allowed. The rule fails if a larger drop is shown at level ``alpha``.

    To be comparable, the rule needs at least ``min_n`` pairs, and at most a share ``max_unpaired`` of rows that have a
    score in one run only. With ``must_detect``, it also needs enough pairs to show a drop of that size beyond the
    allowed one with 80% power. ``per_language`` holds the drop allowed in each language.
    """

    metric: str
    task: str = "*"
    max_drop: float | None = Field(default=None, ge=0)
    max_drop_relative: float | None = Field(default=None, ge=0, lt=1)
    alpha: float | None = Field(default=None, gt=0, lt=1)
    min_n: int | None = Field(default=None, ge=2)
    must_detect: float | None = Field(default=None, gt=0)
    max_unpaired: float = Field(default=0.0, ge=0, lt=1)
    lower_is_better: bool = False
    per_language: PerLanguage | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Rule:
        if self.max_drop is not None and self.max_drop_relative is not None:
            raise ValueError("'max_drop' and 'max_drop_relative' exclude each other")
        return self


class Rules(Block):
    """The rules file.

    ``alpha`` and ``min_n`` apply to every rule that does not set them. ``differs`` names settings that may differ
    between baseline and candidate (see ``mrag-eval compare``).
    """

    rules: tuple[Rule, ...] = Field(min_length=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    min_n: int = Field(default=100, ge=2)
    differs: tuple[str, ...] = ()
    seed: int = Field(default=0, ge=0)


def read_rules(path: Path) -> Rules:
    """Return the validated rules file. Raise ConfigError naming the file and the key."""
    content = read_yaml(path, "correct it; docs/gate.md shows a file of rules")
    return validated(Rules, content, str(path), joint=", ")
