"""The sections of the report, in their order on the page."""

from __future__ import annotations

from importlib import import_module

from mrag_eval.report.page._section import Chart, Section

_ORDER = (
    "leaderboard",
    "overview",
    "losses",
    "leaderboard:CHANGED",
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
# Each is the ``SECTION`` of its module in the folder ``sections``, or what stands after the colon.
SECTIONS: tuple[Section, ...] = tuple(
    getattr(import_module(f"mrag_eval.report.page.sections._{name}"), attribute or "SECTION")
    for name, _, attribute in (one.partition(":") for one in _ORDER)
)
CHARTS: tuple[Chart, ...] = tuple(chart for section in SECTIONS for chart in section.charts)
