"""The declaration of a section of the report: its heading, and its charts, tables and markup in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._spec import Points, Spec

Gather = Callable[[PageData], list[Point]]


@dataclass(frozen=True)
class Chart:
    """Declare a chart. It is drawn if it has values; ``draw`` returns its specification.

    Its values come from ``points``, or from ``of_samples``, which gets the samples of one task at a time. ``opens``
    says which samples a click on a value shows: filter -> field of the value.
    """

    template: ClassVar = "chart.html.jinja"

    id: str
    title: str
    note: str
    draw: Callable[[Points], Spec]
    points: Gather | None = None
    of_samples: Callable[[Leaf, Samples], list[Point]] | None = None
    opens: Mapping[str, str] = field(default_factory=dict)

    def values(self, data: PageData) -> dict[str, Any] | None:
        """Return the values of the template; None if there is nothing to draw."""
        return {"chart": self} if data.points.get(self.id) else None


@dataclass(frozen=True)
class Listing:
    """Declare a table. ``columns``: field of a point -> head; ``numbers``: the columns of figures, counted from 0.

    With ``folded`` as its summary, the table is closed if it has more than ``unfolded`` rows. ``id`` is its address.
    """

    template: ClassVar = "listing.html.jinja"

    caption: str
    columns: Mapping[str, str]
    points: Gather
    numbers: Collection[int]
    folded: str = ""
    unfolded: int = 0
    id: str = ""

    def values(self, data: PageData) -> dict[str, Any] | None:
        """Return the values of the template; None for a table without rows."""
        points = self.points(data)
        rows = [["" if point.get(key) is None else point[key] for key in self.columns] for point in points]
        return {"table": self, "heads": list(self.columns.values()), "rows": rows} if rows else None


@dataclass(frozen=True)
class Markup:
    """Declare a template that only this section has, and its values: None if there is nothing to show."""

    template: str
    values: Callable[[PageData], dict[str, Any] | None]


@dataclass(frozen=True)
class Section:
    """Declare a section: anchor, heading, and ``blocks`` in their order. It appears if one of its blocks does.

    ``link`` is its name in the list at the top of the page; by default its heading. ``folded`` sections are together at
    the end, closed until they are asked for; they have no charts, which need a width.
    """

    id: str
    title: str
    link: str = ""
    blocks: tuple[Chart | Listing | Markup, ...] = ()
    folded: bool = False

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Return every chart of the section, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Chart))


def each_task(gather: Callable[[Leaf], Sequence[Point]]) -> Gather:
    """Return the points that ``gather`` finds in the results of each task, for a whole page."""
    return lambda data: [point for leaf in data.leaves for point in gather(leaf)]
