"""Scores of a finished run, read back from every place that shows them: the report's forms and each export.

A new export fails here until :data:`READERS` reads it.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from huggingface_hub.repocard import metadata_load

from mrag_eval.report import EXPORTS
from tests.programs import Programs
from tests.validity.planted import printed

# (task, metric) -> the score as it is stored, as it is printed, and over how many rows (or territories) it is.
Expected = Mapping[tuple[str, str], tuple[float, str, int]]


@dataclass(frozen=True)
class Figure:
    """A score as a place shows it; None: the place does not show it so."""

    task: str
    metric: str
    value: float | None = None
    text: str | None = None
    n: int | None = None


def plain_name(exported: str) -> str:
    """Return the task of a name as it is shown, which says behind it that planted rows are other data, or a bound."""
    return re.sub(r" \((upper bound|other settings|translated by).*\)(?=\[|$)| \[upper bound\]", "", exported)


def from_csv(folder: Path) -> Iterator[Figure]:
    with (folder / EXPORTS["csv"].name).open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            if not line["dimension"] and line["value"]:
                yield Figure(
                    line["task"], line["metric"], float(line["value"]), n=int(line["n"]) if line["n"] else None
                )


def from_latex(folder: Path) -> Iterator[Figure]:
    text = (folder / "latex").read_text("utf-8").replace(r"\_", "_").replace(r"\%", "%")
    head, *rows = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r" \\")]
    for task, *cells in rows:
        for name, cell in zip(head[1:], cells, strict=True):
            if cell != "--":
                yield Figure(re.sub(r"( \[\d+\])+$", "", task), name.partition(" (")[0], text=cell.split()[0])


def from_model_index(folder: Path) -> Iterator[Figure]:
    (card,) = folder.joinpath("model-index").glob("*.md")
    metadata = metadata_load(card)
    assert metadata is not None
    (model,) = metadata["model-index"]
    for result in model["results"]:
        for metric in result["metrics"]:
            n = metric.get("args", {}).get("n")
            yield Figure(result["dataset"]["config"], metric["type"], metric["value"], n=n)


def from_eval_results(folder: Path) -> Iterator[Figure]:
    """Read the metric and n from the notes; the id of a headline is the task alone."""
    for file in folder.joinpath("eval-results").rglob("*.yaml"):
        for entry in yaml.safe_load(file.read_text("utf-8")):
            metric, said = entry["notes"].split(maxsplit=1)
            task = entry["dataset"]["task_id"].removesuffix(f".{metric}")
            n = re.search(r"n = (\d+)", said)
            yield Figure(task, metric, entry["value"], n=None if n is None else int(n[1]))


def from_mteb(folder: Path) -> Iterator[Figure]:
    for file in folder.joinpath("mteb", "results").rglob("*.json"):
        content = json.loads(file.read_text("utf-8"))
        # the model's own file has none
        whole = content.get("overall", {})
        for key in whole:
            if f"{key}_n" in whole and whole[key] is not None:
                yield Figure(content["task_name"], key, whole[key], n=whole[f"{key}_n"])


def from_every_eval_ever(folder: Path) -> Iterator[Figure]:
    """Read the record's scores, and the means of its rows."""
    for file in folder.joinpath("eee").rglob("*.json"):
        for result in json.loads(file.read_text("utf-8"))["evaluation_results"]:
            task, _, metric = result["evaluation_result_id"].rpartition(":")
            details = result["score_details"]
            yield Figure(task, metric, details["score"], n=details.get("uncertainty", {}).get("num_samples"))
    scored: dict[tuple[str, str], list[float]] = defaultdict(list)
    for file in folder.joinpath("eee").rglob("*_samples.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            task, _, metric = row["evaluation_result_id"].rpartition(":")
            scored[task, metric].append(row["evaluation"]["score"])
    for (task, metric), values in scored.items():
        yield Figure(task, metric, sum(values) / len(values), n=len(values))


# Export -> what it shows.
READERS: Mapping[str, Callable[[Path], Iterable[Figure]]] = {
    "csv": from_csv,
    "eee": from_every_eval_ever,
    "eval-results": from_eval_results,
    "latex": from_latex,
    "model-index": from_model_index,
    "mteb": from_mteb,
}
# Exports with a file for each task, and none for groups.
WITHOUT_GROUPS = {"mteb"}


def from_text(text: str) -> Iterator[Figure]:
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.partition("### Scores\n")[2].partition("\n### ")[0].splitlines()
        if line.startswith("|")
    ]
    for task, _, *cells in rows:
        for name, cell in zip(head[2:], cells, strict=True):
            shown = re.fullmatch(r"(\S+)(?: \[.*\]| ± \S+)?(?: \(n=([\d,]+)\))?", cell)
            if shown is not None:
                n = None if shown[2] is None else int(shown[2].replace(",", ""))
                yield Figure(task, name.partition(" (")[0], text=shown[1], n=n)


def from_json(text: str) -> Iterator[Figure]:
    """Read the values, which are in percent or a unit of their own, as printed with one decimal."""
    (table,) = [table for table in json.loads(text) if table["id"] == "scores"]
    for row in table["rows"]:
        for cell in row["cells"]:
            if cell["value"] is not None:
                yield Figure(row["labels"][0], cell["metric"], text=f"{cell['value']:.1f}", n=cell["n"])


def from_page(text: str) -> Iterator[Figure]:
    """Read the page's table of all scores, and its chart, which has those in percent."""
    table = re.search(r"<caption>Every task and metric.*?</table>", text, re.DOTALL)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert table is not None
    assert data is not None
    head, *rows = [
        re.findall(r"<t[hd]([^>]*)>(.*?)</t[hd]>", row) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table[0])
    ]
    for (_, task), _, *cells in rows:
        for (_, name), (kind, cell) in zip(head[2:], cells, strict=True):
            n = re.search(r"n=(\d+)", cell)
            if "number" in kind:
                yield Figure(
                    task, name.partition(" (")[0], text=cell.partition("<")[0], n=None if n is None else int(n[1])
                )
    for point in json.loads(data[1])["charts"]["scores"]["data"]["values"]:
        yield Figure(point["task"], point["metric"], text=f"{point['value']:.1f}", n=point["n"])


# Extension of the report's file -> what it shows.
FORMS: Mapping[str, Callable[[str], Iterable[Figure]]] = {"md": from_text, "json": from_json, "html": from_page}


def check_everywhere(
    programs: Programs, out: Path, folder: Path, tasks: Expected, groups: Expected | None = None
) -> None:
    """Assert that every form of the report and every export show the scores of tasks, and exports those of groups."""
    for name in EXPORTS:
        target = folder / name
        # a dataset of ours, as some benchmarks are not on the hub
        more = ("--dataset", "org/set") if name == "eval-results" else ()
        printed(programs, "export", out, "--format", name, "--output", target, *more)
        _check(name, READERS[name](folder), {**tasks, **({} if name in WITHOUT_GROUPS else groups or {})})
    for form, read in FORMS.items():
        file = folder / f"report.{form}"
        # a page of text has the headline and a few more, if not asked for all
        printed(programs, "report", out, "--output", file, *(("--metrics", "all") if form == "md" else ()))
        _check(form, read(file.read_text("utf-8")), tasks)


def every_place(folder: Path) -> Iterator[tuple[str, list[Figure]]]:
    """Yield what each export and form of the report shows, after :func:`check_everywhere` has written them."""
    yield from ((name, [*READERS[name](folder)]) for name in EXPORTS)
    yield from ((form, [*read((folder / f"report.{form}").read_text("utf-8"))]) for form, read in FORMS.items())


def _check(place: str, figures: Iterable[Figure], expected: Expected) -> None:
    found: dict[tuple[str, str], list[Figure]] = defaultdict(list)
    for figure in figures:
        found[plain_name(figure.task), figure.metric].append(figure)
    for key, (value, text, n) in expected.items():
        assert found[key], (place, key, sorted(found))
        for figure in found[key]:
            assert figure.value is None or figure.value == pytest.approx(value, abs=1e-6), (place, figure)
            assert figure.text is None or figure.text == text, (place, figure)
            assert figure.n is None or figure.n == n, (place, figure)
