"""The sections of the report, in their order on the page."""

from __future__ import annotations

from importlib import import_module

from mrag_eval.report.page._section import Chart, Section

_ORDER = (
    "leaderboard",
    "overview",
    "losses",
    "replies",
    "citations",
    "agents",
    "samples",
    "scores",
    "unscored",
    "controls",
    "judges",
    "cost",
    "runs",
)
# Each is the ``SECTION`` of its module in the folder ``sections``.
SECTIONS: tuple[Section, ...] = tuple(
    import_module(f"mrag_eval.report.page.sections._{name}").SECTION for name in _ORDER
)
CHARTS: tuple[Chart, ...] = tuple(chart for section in SECTIONS for chart in section.charts)
