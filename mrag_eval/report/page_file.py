"""The report as one HTML file: it opens from disk, needs no network, and can be mailed."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mrag_eval.errors import missing_extra
from mrag_eval.report.page_charts import charts
from mrag_eval.report.page_data import PageData, page_data

_FOLDER = Path(__file__).parent / "page"
# Chart id, heading, and what the reader should know; in the order of the page.
_CHARTS = (
    ("scores", "Scores, plotted", "Dots with 95% intervals; choose the metric below the plot."),
    (
        "languages",
        "By language and IR mode",
        "Means over the questions in a language; cells of few rows are uncertain.",
    ),
    ("pairs", "Question and document language", "Where the question and the document that answers it meet."),
    ("stages", "Where errors come from", "Shares of rows, in the order of the pipeline."),
    ("retrieved", "Languages of what was retrieved", "Of all passages in the rankings, not only those shown."),
)
_LEDGER = ("calls", "cached", "retries", "failures", "tokens_in", "tokens_out", "seconds")


def write_report(
    results: Sequence[Path],
    out: Path,
    *,
    samples: int = 200,
    text: bool = True,
    title: str = "Multilingual RAG evaluation",
    seed: int = 0,
) -> PageData:
    """Write the report on ``results`` (result files, or folders of them) to ``out`` and return what it shows.

    Args:
        samples: at most so many rows of each task go into the browser of samples, drawn with ``seed``.
        text: whether the texts of passages are included (some benchmarks' licences forbid passing them on).

    Raises:
        MissingExtraError: the library of the charts is not installed.
        DataError: there is no result of our tasks.
    """
    vega = _vega()
    data = page_data(results, samples=samples, text=text, seed=seed)
    part = out.with_name(f"{out.name}.part")
    out.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(_page(data, title, vega), encoding="utf-8", errors="backslashreplace")
    part.replace(out)
    return data


def _page(data: PageData, title: str, vega: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
    specs = charts(data)
    payload = {"charts": specs, "samples": data.samples, "passages": data.passages}
    drawn = [("plot" if id == "scores" else id, name, note) for id, name, note in _CHARTS if id in specs]
    sections = [("runs", "Runs"), ("scores", "Scores"), *((id, name) for id, name, _ in drawn)]
    for id, name, there in (
        ("judges", "Judges", data.judges),
        ("unscored", "Unscored", data.unscored),
        ("browser", "Samples", data.samples),
    ):
        sections += [(id, name)] if there else []
    return environment.get_template("page.html.jinja").render(
        title=title,
        version=version("mrag-eval"),
        data=data,
        sections=sections,
        charts=drawn,
        metrics=list(dict.fromkeys(point["metric"] for point in data.scores)),
        cells={(point["task"], point["metric"]): point for point in data.scores},
        n_unscored=sum(point["rows"] for point in data.unscored),
        runs=[
            [r["model"], _date(r["date"]), r["tasks"], f"{r['rows']:,}", f"{r['shortened']:,}", r["path"]]
            for r in data.runs
        ],
        judges=_rows(data.judges, ("task", "judge", "model", "value", "n", "abstained")),
        agreement=_rows(data.agreement, ("task", "judges", "kappa")),
        ledger_heads=["task", "model", *_LEDGER],
        ledger=_rows(data.ledger, ("task", "model", *_LEDGER)),
        unscored=_rows(data.unscored, ("task", "metric", "reason", "rows")),
        payload=Markup(_in_script(json.dumps(payload, ensure_ascii=False, separators=(",", ":")))),
        css=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
        js=Markup((_FOLDER / "page.js").read_text(encoding="utf-8")),
        vega=Markup(vega.replace("</script", "<\\/script")),
    )


def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one module that puts them on ``window``."""
    try:
        from vl_convert import javascript_bundle
    except ImportError:
        raise missing_extra("report", "vl-convert-python") from None
    return javascript_bundle(None)  # type: ignore[arg-type]  # optional, though its types do not say so


def _in_script(text: str) -> str:
    """JSON that no text inside it can end the script element of."""
    return text.replace("<", "\\u003c")


def _date(seconds: float) -> str:
    when = datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)
    return f"{when:%Y-%m-%d %H:%M} UTC" if seconds else ""


def _rows(points: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[list[Any]]:
    return [["" if point.get(key) is None else point[key] for key in keys] for point in points]
