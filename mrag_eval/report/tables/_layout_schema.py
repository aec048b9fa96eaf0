"""The papers' tables as data: published figures, and the task of ours for each cell.

A layout is a file under ``published/``. Its tables have columns, rows of published figures, and, where the rows of the
paper are conditions of one model, ``conditions``. A column names the task whose score it shows (``{part}`` in it is the
condition's), several tasks, or the columns it averages. A run belongs into a cell if it is the task as shipped.
``expect`` names what a row states besides: settings in which it is not its task, and what it requires of what the task
leaves open, such as judges (:data:`~mrag_eval.report.tables._requirements.REQUIRED`); those of the layout, then of the
table, the condition and the column. A value of null allows any, ``{any: [...]}`` those of the list. Metrics are named
as by :meth:`~mrag_eval.report.LeafResult.score`; ``{at}`` in them is the condition's, too.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from mrag_eval.config import Block, validated
from mrag_eval.platform import ConfigError, did_you_mean

_FOLDER = Path(__file__).parents[1] / "published"


class Column(Block):
    """A column: a task, a mean over several tasks or other columns, or (published figures only) none of these.

    A column with published figures only may give a reason in ``blank``. Over ``tasks`` the mean is that of the tasks'
    scores (``weight: tasks``) or of all their questions. ``metrics`` is set if the column shows another metric than its
    table, ``digits`` if it has others, ``unit`` if it counts. ``ours``: the paper has no such column. ``modes``: the
    column shows any task that was run in one of these retrieval modes, and its table has a row of ours for each
    language of questions.
    """

    name: str
    task: str | None = None
    tasks: tuple[str, ...] = ()
    weight: Literal["tasks", "questions"] = "tasks"
    mean_of: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    digits: int | None = None
    unit: Literal["percent", "count"] = "percent"
    ours: bool = False
    modes: tuple[str, ...] = ()
    blank: str | None = None
    expect: dict[str, Any] = Field(default_factory=dict)


class Computed(Block):
    """A row that needs no model: in the names of the metrics, ``part`` precedes the last dot."""

    model: str
    part: str


class LayoutCondition(Block):
    """A row of the paper that is a way to run the task, or a part of its rows.

    ``part`` replaces ``{part}`` in the names of tasks, ``at`` replaces ``{at}`` in those of metrics. ``without`` names
    the columns that do not apply to the condition, and so have no task.
    """

    name: str
    part: str
    at: str = ""
    without: tuple[str, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)


class PublishedRow(Block):
    """A row of published figures. A cell without a figure is null, and ``blank`` says why.

    ``table`` is the number of the paper's table, if it is not that of the layout's table.
    ``margins`` are the half widths of the intervals that the paper prints.
    """

    model: str
    values: tuple[float | None, ...]
    margins: tuple[float | None, ...] | None = None
    condition: str | None = None
    table: str | None = None
    blank: str | None = None


class LayoutTable(Block):
    """One table of a paper.

    ``metrics`` are the metrics that it shows; the first one that a run has is used. ``stub`` heads the rows.
    ``optional``: left out if no run fills it. ``seeds``: runs that differ in their seed become one figure, the mean
    over runs with its t interval. ``margins``: half intervals are shown. ``same_questions``: scores over territories
    are those of the questions that every run of the table asks.
    """

    id: str
    title: str
    digits: int
    columns: tuple[Column, ...]
    metrics: tuple[str, ...] = ()
    rows: tuple[PublishedRow, ...] = ()
    conditions: tuple[LayoutCondition, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)
    stub: str = "model"
    errata: tuple[str, ...] = ()
    remark: str | None = None
    computed: tuple[Computed, ...] = ()
    optional: bool = False
    seeds: bool = False
    margins: bool = False
    same_questions: bool = False

    @model_validator(mode="after")
    def _fits(self) -> LayoutTable:
        names = [column.name for column in self.columns]
        conditions: list[str | None] = [condition.name for condition in self.conditions] or [None]
        for row in self.rows:
            published = sum(not column.ours for column in self.columns)
            if len(row.values) != published:
                raise ValueError(f"table {self.id}, {row.model}: {len(row.values)} values for {published} columns")
            if row.margins is not None and len(row.margins) != published:
                raise ValueError(f"table {self.id}, {row.model}: {len(row.margins)} margins for {published} columns")
            if row.condition not in conditions:
                raise ValueError(f"table {self.id}, {row.model}: unknown condition '{row.condition}'")
            if None in row.values and not row.blank:
                raise ValueError(f"table {self.id}, {row.model}: a blank cell, and 'blank' does not say why")
        if any(column.modes for column in self.columns) and (len(self.metrics) != 1 or self.conditions):
            raise ValueError(f"table {self.id}: modes side by side show one metric, without conditions")
        for column in self.columns:
            for name in column.mean_of:
                if name not in names:
                    raise ValueError(f"table {self.id}, {column.name}: no column '{name}' to average")
        for condition in self.conditions:
            for name in condition.without:
                if name not in names:
                    raise ValueError(f"table {self.id}, {condition.name}: no column '{name}' to be without")
        return self


class Layout(Block):
    """A paper's result tables.

    ``judged_by`` names its panel, for comparison with that of a run. ``expect`` holds what each row of the paper states
    and requires, unless its table, row or column states others. ``apart``: the paper compares retrievers, or planners
    and critics, so runs of one model with different ones have different rows.
    """

    name: str
    paper: str
    url: str | None = None
    judged_by: str | None = None
    apart: Literal["retriever", "agents"] | None = None
    expect: dict[str, Any] = Field(default_factory=dict)
    tables: tuple[LayoutTable, ...]


def layout_names() -> list[str]:
    """Return the names of the layouts in the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@lru_cache(maxsize=16)
def load_layout(name: str) -> Layout:
    """Return the layout with this name. Raise ConfigError if it does not exist."""
    if name not in layout_names():
        raise ConfigError(f"--layout: no layout '{name}'{did_you_mean(name, layout_names())}")
    import yaml

    path = _FOLDER / f"{name}.yaml"
    return validated(Layout, yaml.safe_load(path.read_text(encoding="utf-8")), path.name)
