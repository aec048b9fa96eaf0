"""The scores and samples of a run, as DataFrames and as the table that a notebook shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Results:
    """The scores and samples of one run, read from its result file at ``path``. A notebook shows them as a table."""

    path: Path

    @cached_property
    def frame(self) -> DataFrame:
        """All scores, as :func:`load_results` returns them."""
        return load_results(self.path)

    @cached_property
    def samples(self) -> DataFrame:
        """One row a question: its task, the reply, the answer read off it, and a column for each metric."""
        from pandas import DataFrame

        return DataFrame([row for task in self.frame["name"].unique() for row in _samples(self.path, str(task))])

    @cached_property
    def table(self) -> DataFrame:
        """The scores of whole tasks as texts, a row a task and a column a metric: ``41.3 [35.9, 46.9] n=300``."""
        from pandas import DataFrame

        whole = self.frame[self.frame["dimension"] == ""]
        cells: dict[str, dict[str, str]] = {}
        for score in whole.astype(object).where(whole.notna(), None).to_dict("records"):
            cells.setdefault(score["task"], {})[score["metric"]] = _shown(score)
        return DataFrame.from_dict(cells, orient="index").fillna("")

    def __repr__(self) -> str:
        return f"{self.table.to_string()}\n{self.path}"

    def _repr_html_(self) -> str:
        return str(self.table.to_html(escape=True, border=0))


def _shown(score: Mapping[str, Any]) -> str:
    value, low, high = score["value"], score["low"], score["high"]
    if value is None:
        return str(score["reason"] or score["unscored"] or "not scored")
    scale = 100 if score["unit"] == "share" else 1
    interval = "" if low is None or high is None else f" [{low * scale:.1f}, {high * scale:.1f}]"
    return f"{value * scale:.1f}{interval}" + ("" if score["n"] is None else f" n={score['n']}")


def load_results(path: str | Path | Sequence[str | Path]) -> DataFrame:
    """Return all scores of result files, or of folders searched for them, as a tidy DataFrame."""
    from pandas import DataFrame

    from mrag_eval.report import read_results

    paths = [path] if isinstance(path, str | Path) else list(path)
    rows = []
    for file in read_results([Path(one) for one in paths]):
        for name, leaf in file.leaves.items():
            for metric, found in leaf.metrics.items():
                cells = {("", ""): found}
                for dimension, parts in (found.get("by") or {}).items():
                    cells |= {(dimension, cell): part for cell, part in parts.items()}
                for (dimension, cell), part in cells.items():
                    part = {key: part.get(key) for key in ("value", "low", "high", "n", "method", "reason")}
                    where = {"model": file.model, "task": name, "name": name, "path": str(file.path)}
                    rows.append({**where, "metric": metric, "dimension": dimension, "cell": cell, **part})
    return DataFrame(rows).assign(unit="share", unscored=None)


def _samples(results: Path, task: str) -> list[dict[str, Any]]:
    from mrag_eval.report import read_samples

    rows = []
    for line in read_samples(results.with_name(f"samples_{task}_{results.stem.removeprefix('results_')}.jsonl")):
        doc, record = line["doc"], line["rows"]
        reply = line["filtered_resps"][0]
        kept = {key: doc.get(key) for key in ("id", "query", "query_lang", "answers")}
        read = {"reply": reply, "answer": (record.get("answer") or {}).get("text", reply)}
        rows.append({"task": task, **kept, **read, **record["values"]})
    return rows
