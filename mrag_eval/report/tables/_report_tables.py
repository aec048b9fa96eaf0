"""The layouts of tables by name: those of the papers, with the user's figures, and our own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.platform import ConfigError, did_you_mean
from mrag_eval.report._table import Table
from mrag_eval.report.tables._layout_schema import layout_names
from mrag_eval.report.tables._layouts import layout_tables
from mrag_eval.report.tables._loop_tables import loop_tables
from mrag_eval.report.tables._policies import policy_tables

# Tables below those of a paper.
_BELOW = {"coral": loop_tables}
# Layouts that do not belong to a paper.
_OWN = {"policies": policy_tables}


def report_tables(layout: str, results: Sequence[Path | str]) -> list[Table]:
    """Return the tables of a layout: ``policies``, or the name of a paper's (:func:`layout_names`)."""
    if layout in _OWN:
        return _OWN[layout](results)
    known = [*layout_names(), *_OWN]
    if layout not in known:
        raise ConfigError(f"--layout: no layout '{layout}'{did_you_mean(layout, known)}")
    tables = layout_tables(layout, results)
    return [*tables, *(_BELOW[layout]([Path(path) for path in results]) if layout in _BELOW else ())]
