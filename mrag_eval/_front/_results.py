"""The scores and samples of a run, as DataFrames and as the table that a notebook shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval import report
from mrag_eval.core import score_text
from mrag_eval.report import ResultFile, load_results, read_results, read_samples
from mrag_eval.scoring import scale_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.report import Finding, Plot


@dataclass(frozen=True, repr=False)
class Results:
    """The scores and samples of one run, read from the result file at ``path``; a notebook shows a table."""

    path: Path

    @cached_property
    def frame(self) -> DataFrame:
        """Return all scores, as :func:`mrag_eval.load_results` returns them."""
        return load_results(self.path)

    @cached_property
    def samples(self) -> DataFrame:
        """Return one row a question: its task, the reply, the answer read off it, and a column for each metric."""
        from pandas import DataFrame

        (file,) = read_results([self.path])
        return DataFrame([row for task in file.leaves for row in _samples(file, task)])

    @cached_property
    def table(self) -> DataFrame:
        """Return the scores of whole tasks as texts, ``41.3 [35.9, 46.9] n=300``: a row a task, a column a metric."""
        from pandas import DataFrame

        whole = self.frame[self.frame["dimension"] == ""]
        cells: dict[str, dict[str, str]] = {}
        for score in whole.astype(object).where(whole.notna(), None).to_dict("records"):
            cells.setdefault(score["task"], {})[score["metric"]] = _shown(score)
        return DataFrame.from_dict(cells, orient="index").fillna("")

    @cached_property
    def findings(self) -> list[Finding]:
        """Return what the run shows, at most five records that each say a sentence."""
        return report.findings_of([self.path])

    def report(self, path: str | Path, *, samples: int | None = None, text: bool = True) -> Path:
        """Write the run as one HTML page that needs no network, as ``mrag-eval report -o`` does; return its path.

        Args:
            samples: number of samples of each task; by default as many as fit into 5 MB.
            text: whether the texts of passages are included.

        Raises:
            MissingExtraError: the library of the charts is not installed.
        """
        report.write_report([self.path], Path(path), samples=samples, text=text)
        return Path(path)

    def plot(self, chart: str = "scores", **chosen: str) -> Plot:
        """Return a chart of the report, which a notebook draws and ``save`` writes to a file.

        Args:
            chart: its name: ``scores``, ``languages``, ``pairs``, ``stages`` or another of the report's.
            chosen: what to draw where the page has a list to choose from, such as ``metric="hit@5"``.

        Raises:
            ConfigError: nothing has that name; the error lists what there is.
        """
        return report.plot([self.path], chart, chosen)

    def __repr__(self) -> str:
        return "\n".join([*(one.sentence for one in self.findings), self.table.to_string(), str(self.path)])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(one.sentence)}</li>" for one in self.findings)
        return f"<ul>{said}</ul>{self.table.to_html(escape=True, border=0)}"


def _shown(score: Mapping[str, Any]) -> str:
    if score["value"] is None:
        return str(score["unscored"] or score["reason"] or "not scored")
    scale = scale_of(score["metric"])
    text = score_text(score["value"], score["low"], score["high"], scale=scale.factor) + scale.note
    return text + (f" n={score['n']}" if score["n"] else "")


def _samples(file: ResultFile, task: str) -> list[dict[str, Any]]:
    path = file.samples(task)
    rows = []
    for sample in [] if path is None else read_samples(path):
        doc = sample.doc
        asked = {"id": doc.id, "query": doc.query, "query_lang": doc.query_lang, "answers": list(doc.answers)}
        # a frame takes no half of a surrogate pair, which a model may write
        texts = {"reply": sample.reply, "answer": sample.answer}
        read = {name: text.encode("utf-8", "backslashreplace").decode() for name, text in texts.items()}
        rows.append({"task": task, **asked, **read, **sample.record.values})
    return rows
