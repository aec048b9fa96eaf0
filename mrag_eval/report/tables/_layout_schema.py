"""The papers' tables as data: published figures, and which task of ours stands for which cell.

A layout is a file under ``published/``. Its tables have columns, rows of published figures, and, where the rows of the
paper are conditions of one model, ``conditions``. A column names the task whose score it shows (``{part}`` in it is the
condition's), several tasks, or the columns it averages; ``expect`` names settings that a run must have to belong into a
cell. Metrics are named as by :meth:`~mrag_eval.report.LeafResult.score`; ``{at}`` in them is the condition's,
too.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from mrag_eval.config import Block, validated
from mrag_eval.core import ConfigError, did_you_mean

_FOLDER = Path(__file__).parents[1] / "published"


class Column(Block):
    """A column: a task, a mean over several tasks or of other columns, or (published figures alone) none of these; then
    ``blank`` may say why.

    Over ``tasks`` the mean is that of the tasks' scores (``weight: tasks``) or of all their questions.
    ``metrics`` where the column shows another metric than its table, ``digits`` where it has others, ``unit`` where it
    counts. ``ours``: the paper has no such column. ``modes``: it shows whatever task was run in one of these retrieval
    modes, and its table has a row of ours for each language of questions.
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
    """A row that needs no model: in the names of the metrics ``part`` stands before the last dot."""

    model: str
    part: str


class Condition(Block):
    """A row of the paper that is a way to run the task, or a part of its rows.

    ``part`` stands for it in the names of tasks, ``at`` in those of metrics.
    ``without`` names the columns that make no sense in it, and so have no task.
    """

    name: str
    part: str
    at: str = ""
    without: tuple[str, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)


class PublishedRow(Block):
    """A row of published figures; null is a cell without one, ``blank`` says why. ``table``: where, if not as above.

    ``margins`` are the half widths of the intervals that the paper prints.
    """

    model: str
    values: tuple[float | None, ...]
    margins: tuple[float | None, ...] | None = None
    condition: str | None = None
    table: str | None = None
    blank: str | None = None


class LayoutTable(Block):
    """One table of a paper. ``metrics`` are the metrics it shows, the first one a run has; ``stub`` heads the rows.

    ``optional``: left out where no run fills it. ``seeds``: runs that differ in their seed become one figure, the mean
    over runs with its t interval. ``margins``: half intervals are shown.
    """

    id: str
    title: str
    digits: int
    columns: tuple[Column, ...]
    metrics: tuple[str, ...] = ()
    rows: tuple[PublishedRow, ...] = ()
    conditions: tuple[Condition, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)
    stub: str = "model"
    errata: tuple[str, ...] = ()
    remark: str | None = None
    computed: tuple[Computed, ...] = ()
    optional: bool = False
    seeds: bool = False
    margins: bool = False

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
    """A paper's result tables; ``judged_by`` names its panel, to be held against that of a run, ``retrieved_by`` its
    retriever.

    ``retrievers``: the paper compares retrievers, so runs of one model with different ones stand apart.
    """

    name: str
    paper: str
    url: str | None = None
    judged_by: str | None = None
    retrieved_by: str | None = None
    retrievers: bool = False
    tables: tuple[LayoutTable, ...]


def layout_names() -> list[str]:
    """The layouts that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@lru_cache(maxsize=16)
def load_layout(name: str) -> Layout:
    """The layout of that name; ConfigError for one that does not exist."""
    if name not in layout_names():
        raise ConfigError(f"--layout: no layout '{name}'{did_you_mean(name, layout_names())}")
    import yaml

    path = _FOLDER / f"{name}.yaml"
    return validated(Layout, yaml.safe_load(path.read_text(encoding="utf-8")), path.name)
