"""The scores and samples of a run, as DataFrames and as the table that a notebook shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval import report
from mrag_eval.core import Displayed, pipe_table, score_text
from mrag_eval.report import ResultFile, load_results, open_samples, read_results
from mrag_eval.scoring import scale_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.report import Finding, Plot


@dataclass(frozen=True, repr=False)
class Results(Displayed):
    """The scores and samples of one run, read from the result file at ``path``; a notebook shows a table."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

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
        """Return a chart of the report on this run, as :func:`mrag_eval.plot` does."""
        return report.plot(self, chart, **chosen)

    @property
    def text(self) -> str:
        """Return the findings, the table and the path."""
        table = pipe_table(["", *self.table.columns], [[task, *row] for task, *row in self.table.itertuples()])
        return "\n".join([*(f"- {one.sentence}" for one in self.findings), "", table, "", str(self.path)])


def _shown(score: Mapping[str, Any]) -> str:
    if score["value"] is None:
        return str(score["unscored"] or score["reason"] or "not scored")
    scale = scale_of(score["metric"])
    text = score_text(score["value"], score["low"], score["high"], scale=scale.factor) + scale.note
    return text + (f" n={score['n']}" if score["n"] else "")


def _samples(file: ResultFile, task: str) -> list[dict[str, Any]]:
    path = file.samples(task)
    rows = []
    for sample in [] if path is None else open_samples(path):
        doc = sample.doc
        asked = {"id": doc.id, "query": doc.query, "query_lang": doc.query_lang, "answers": list(doc.answers)}
        # a frame takes no half of a surrogate pair, which a model may write
        texts = {"reply": sample.reply, "answer": sample.answer}
        read = {name: text.encode("utf-8", "backslashreplace").decode() for name, text in texts.items()}
        rows.append({"task": task, **asked, **read, **sample.record.values})
    return rows
