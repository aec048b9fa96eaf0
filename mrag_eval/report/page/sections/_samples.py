"""The section of samples: a browser of questions, replies, passages and traces, which the page's script fills."""

from __future__ import annotations

from mrag_eval.report.page._section import Markup, Section

SECTION = Section(
    "browser", "Samples", blocks=(Markup("samples.html.jinja", lambda data: {} if data.samples else None),)
)
