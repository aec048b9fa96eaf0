"""The report as one HTML file: it opens from disk, needs no network, and can be mailed."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mrag_eval.config import CORRECT
from mrag_eval.core import is_language, language_name, missing_extra, replaced
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, percent_cell
from mrag_eval.report.page._charts import charts
from mrag_eval.report.page._data import PageData, page_data
from mrag_eval.report.page._samples import directions
from mrag_eval.report.tables._leaderboard import Board, Entry

_FOLDER = Path(__file__).parent
# Small enough for mail servers and quick to open in a browser.
_MOST_BYTES = 4_900_000
# Maximum number of samples of each task.
_SAMPLES = 200
# Chart id, heading and note for the reader, in the order of the page.
_CHARTS = (
    ("board", "Models and modes", "Dots with 95% intervals; choose what the mean is over below the plot."),
    ("scores", "Scores, plotted", "Dots with 95% intervals."),
    (
        "languages",
        "By language and IR mode",
        "Languages of the culture that a question is about, else of the question. A click on a cell opens its samples; "
        "the table below has buttons for it. Cells of few rows are uncertain.",
    ),
    ("stages", "Where errors come from", "Shares of rows, in the order of the pipeline."),
    (
        "tiers",
        "By tier and IR mode",
        "Unweighted means over the languages of CORAL's tiers that every mode was run in.",
    ),
    ("pairs", "Question and document language", "Where the question and the document that answers it meet."),
    ("links", "From retrieval to the answer", "Each link given the one before, with 95% intervals."),
    ("retrieved", "Languages of what was retrieved", "Of all passages in the rankings, not only those shown."),
    (
        "answers",
        "Languages of the replies",
        "As a detector sees them; replies of 20 characters or fewer are too short.",
    ),
    (
        "cited",
        "Languages of what was cited",
        "Means over questions: of the documents in the prompt (upper bar) and of the citations (lower bar).",
    ),
    ("planned", "Languages the planner searched", "Bars from top to bottom are the rounds, the first at the top."),
    ("planner_shown", "Languages of the documents shown", "After the loop, in their own language."),
    ("selection", "What the critic kept", "New documents of each round."),
    ("relevance", "How the critic scored", "New documents of each round; means of 1 (poor) to 5."),
    ("sufficiency", "When there was enough", "What the planner said after each round, and how the others ended."),
)
_LEDGER = ("calls", "cached", "retries", "failures", "tokens_in", "tokens_out", "seconds")
_LOOP = ("task", "questions", "rounds", "valid", "calls", "tokens", "without", "stopped", "faults")
_CITING = ("task", "source", "queries", "citing", "unanswered", "without_documents", "out_of_range")


def write_report(
    results: Sequence[Path],
    out: Path,
    *,
    samples: int | None = None,
    text: bool = True,
    title: str = "Multilingual RAG evaluation",
    seed: int = 0,
) -> PageData:
    """Write the report on ``results`` (result files, or folders of them) to ``out`` and return what it shows.

    Args:
        samples: at most this many rows of each task go into the browser of samples, drawn with ``seed``; by default as
            many as fit into five megabytes, and no more than 200.
        text: whether the texts of passages are included (some benchmarks' licences forbid passing them on).

    Raises:
        MissingExtraError: the library of the charts is not installed.
        DataError: there is no result of our tasks.
    """
    vega = _vega()
    data = page_data(results, samples=_SAMPLES if samples is None else samples, text=text, seed=seed)
    if samples is None:
        gathered = data.samples, data.passages
        data.samples, data.passages = data.samples[:1], []
        frame = len(_encoded(_page(data, title, vega)))
        data.samples, data.passages = gathered
        data.samples, data.passages = data.browser.within(max(0, _MOST_BYTES - frame))
    with replaced(out) as part:
        part.write_bytes(_encoded(_page(data, title, vega)))
    return data


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="backslashreplace")


def _page(data: PageData, title: str, vega: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
    specs = charts(data)
    codes = sorted(_codes(data))
    payload = {
        "charts": specs,
        "samples": data.samples,
        "passages": data.passages,
        "tasks": _tasks(data),
        "names": {code: language_name(code) for code in codes if is_language(code)},
        "directions": directions(codes),
        "drawn": data.browser.available,
    }
    drawn = {id: (name, note) for id, name, note in _CHARTS if id in specs}
    return environment.get_template("page.html.jinja").render(
        title=title,
        version=version("mrag-eval"),
        data=data,
        sections=_sections(data, drawn),
        charts=drawn,
        metrics=_metrics(data),
        cells={(point["task"], point["metric"]): point for point in data.scores},
        boards=[_board(board) for board in sorted(data.boards, key=lambda board: _place(board.metric))],
        names=payload["names"],
        n_unscored=sum(point["rows"] for point in data.unscored),
        reasons=Counter({p["reason"]: 0 for p in data.unscored} | _sums(data.unscored)).most_common(3),
        runs=[
            [
                *(r["model"], r["benchmarks"], _date(r["date"]), r["tasks"], f"{r['rows']:,}", f"{r['shortened']:,}"),
                *(r["judges"], "/".join(Path(r["path"]).parts[-2:])),
            ]
            for r in data.runs
        ],
        judges=_rows(data.judges, ("task", "about", "judge", "model", "value", "low", "high", "n", "abstained")),
        agreement=_rows(data.agreement, ("task", "about", "judges", "kappa", "low", "high")),
        ledger_heads=["task", "what for", "model", *(name.replace("_", " ") for name in _LEDGER)],
        ledger=_rows([_rounded(row) for row in data.ledger], ("task", "about", "model", *_LEDGER)),
        loops=_rows(data.loops, _LOOP),
        citations=_rows(data.citations, _CITING),
        preference=_rows(data.preference, ("task", "language", "value", "low", "high", "n")),
        unscored=_rows(data.unscored, ("task", "metric", "reason", "rows")),
        payload=Markup(_in_script(json.dumps(payload, ensure_ascii=False, separators=(",", ":")))),
        css=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
        js=Markup((_FOLDER / "page.js").read_text(encoding="utf-8")),
        vega=Markup(vega.replace("</script", "<\\/script")),
    )


def _sections(data: PageData, drawn: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sections that the list at the top links to."""
    parts = [
        ("runs", "Runs", data.runs),
        ("leaderboard", "Leaderboard", data.boards),
        ("scores", "Scores", data.scores),
        ("chart-languages", "Languages", "languages" in drawn),
        ("chart-stages", "Errors", "stages" in drawn),
        ("retrieval", "Retrieval", {"retrieved", "pairs", "links"} & drawn.keys()),
        ("generation", "Replies", {"answers", "cited"} & drawn.keys()),
        ("agents", "Agents", data.loops or "planned" in drawn),
        ("judges", "Judges", data.judges),
        ("cost", "Cost", data.ledger),
        ("unscored", "Unscored", data.unscored),
        ("browser", "Samples", data.samples),
    ]
    return [(id, name) for id, name, there in parts if there]


def _codes(data: PageData) -> set[str]:
    """Return every language code on the page."""
    codes = {str(p[key]) for points in data.points.values() for p in points for key in _LANGUAGES if key in p}
    codes |= {str(sample.get(key)) for sample in data.samples for key in ("lang", "source", "doc_lang")}
    return codes | {str(p["lang"]) for p in data.passages} | {c for board in data.boards for c in board.languages}


_LANGUAGES = ("language", "question", "document", "answer")


def _tasks(data: PageData) -> dict[str, dict[str, str]]:
    """Return task label -> the fields by which samples are chosen."""
    modes = {leaf.label: system.mode for system in data.systems for leaf in system.leaves}
    return {
        leaf.label: {"model": leaf.run, "benchmark": leaf.benchmark, "mode": modes.get(leaf.label, leaf.mode)}
        for leaf in data.leaves
    }


def _metrics(data: PageData) -> list[str]:
    """Return the metrics of the table of scores, metrics of correctness first."""
    return sorted(dict.fromkeys(point["metric"] for point in data.scores), key=_place)


def _place(metric: str) -> int:
    return CORRECT.index(metric) if metric in CORRECT else len(CORRECT)


def _board(board: Board) -> dict[str, Any]:
    """Return a leaderboard as the page prints it."""
    said = [f"{board.rows:,} questions that every ranked system was asked"] if board.rows else []
    if 0 < board.groups < board.rows:
        said.append(f"{board.groups:,} groups of questions, each of which counts as one in tests and intervals")
    if board.higher is False:
        said.append("less is better")
    if board.left_out:
        said.append(f"without {', '.join(board.left_out)}, where one of them has no scored row")
    return {
        "benchmark": board.benchmark,
        "metric": board.metric,
        "note": "; ".join(said),
        "columns": [*board.tiers, *board.languages],
        "languages": board.languages,
        "entries": [_board_entry(entry, [*board.tiers, *board.languages]) for entry in board.entries],
    }


def _board_entry(entry: Entry, columns: Sequence[str]) -> dict[str, Any]:
    rank = "–"
    if entry.best is not None:
        rank = str(entry.best) if entry.best == entry.worst else f"{entry.best}–{entry.worst}"
    return {
        "rank": rank,
        "best": "" if entry.best is None else entry.best + (entry.worst or 0) / 1000,
        "run": entry.run,
        "mode": entry.mode,
        "score": _percent(entry.score),
        "behind": _percent(entry.behind),
        "unscored": entry.unscored,
        "remark": entry.remark,
        "parts": [_percent(entry.parts.get(name)) for name in columns],
    }


def _percent(score: Estimate | None) -> Cell | None:
    return None if score is None or score.value is None else percent_cell(score)


def _sums(points: Iterable[Mapping[str, Any]]) -> Counter[str]:
    out: Counter[str] = Counter()
    for point in points:
        out[point["reason"]] += point["rows"]
    return out


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()}


def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one module that puts them on ``window``."""
    try:
        from vl_convert import javascript_bundle
    except ImportError:
        raise missing_extra("report", "vl-convert-python") from None
    return javascript_bundle(None)  # type: ignore[arg-type]  # optional, though its types do not say so


def _in_script(text: str) -> str:
    """Return JSON in which no text can end the script element."""
    return text.replace("<", "\\u003c")


def _date(seconds: float) -> str:
    when = datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)
    return f"{when:%Y-%m-%d %H:%M} UTC" if seconds else ""


def _rows(points: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[list[Any]]:
    return [["" if point.get(key) is None else point[key] for key in keys] for point in points]
