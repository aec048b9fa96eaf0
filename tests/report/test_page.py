"""The HTML report: what is on it, and that nothing in a text becomes part of the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrag_eval.cli.app import Session, app
from mrag_eval.errors import DataError
from mrag_eval.report.page_charts import charts
from mrag_eval.report.page_data import page_data
from mrag_eval.report.page_file import write_report
from mrag_eval.report.scores import score_table
from tests.report.runs import row, write_full_run, write_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_full_run(tmp_path / "out")


def test_scores_are_in_percent_and_keep_their_interval(runs: Path) -> None:
    data = page_data([runs])
    point = next(p for p in data.scores if (p["task"], p["metric"]) == ("qa_one", "match"))
    assert (point["value"], point["low"], point["high"], point["n"]) == (30.0, 20.0, 50.0, 23)
    assert [(p["question"], p["document"]) for p in data.pairs if p["task"] == "qa_one"] == [
        ("ar", "en"),
        ("zh", "en"),
        ("en", "en"),
    ]
    assert {p["stage"]: p["rows"] for p in data.stages if p["task"] == "qa_one"} == {
        "correct": 8,
        "not retrieved": 8,
        "not used": 6,
        "wrong language": 2,
    }
    assert data.unscored[0] == {
        "task": "qa_one",
        "metric": "match",
        "reason": "the row has no reference answer",
        "rows": 1,
    }
    assert data.ledger[0]["failures"] == 2


def test_languages_are_means_over_the_samples(runs: Path) -> None:
    found = {
        p["language"]: (p["value"], p["n"])
        for p in page_data([runs]).languages
        if (p["task"], p["metric"]) == ("qa_one", "match")
    }
    # rows i = 1, 5, 9, ... are Chinese; match is i % 6 > 3: of 1, 5, 9, 13, 17, 21 these are 5 and 17
    assert found["zh"] == (33.33, 6)
    # row 7 is English and unscored: of 3, 11, 15, 19, 23 these are 11 and 23
    assert found["en"] == (40.0, 5)


def test_a_passage_that_many_samples_show_is_kept_once(runs: Path) -> None:
    data = page_data([runs])
    assert len(data.samples) == 48
    assert len({json.dumps(p, sort_keys=True) for p in data.passages}) == len(data.passages) < 48
    assert all(data.passages[i]["lang"] for sample in data.samples for i, _, _ in sample["passages"])


def test_samples_are_drawn_with_the_seed(runs: Path) -> None:
    first, again, other = (page_data([runs], samples=5, seed=s).samples for s in (1, 1, 2))
    assert len(first) == 10
    assert first == again != other


def test_without_texts_passages_are_named_only(runs: Path, tmp_path: Path) -> None:
    write_report([runs], tmp_path / "r.html", text=False)
    assert "is in Varga" not in (tmp_path / "r.html").read_text("utf-8")


def test_the_same_task_of_two_models_and_two_modes_stays_apart(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_full_run(out / "a", "model-a")
    write_full_run(out / "b", "model-b", mode="qlang")
    write_full_run(out / "c", "model-a", mode="qlang")
    labels = [leaf.label for leaf in page_data([out]).leaves]
    assert len(labels) == len(set(labels)) == 6
    assert "qa_one (all) · model-a" in labels
    assert "qa_one · model-b" in labels


def test_every_chart_compiles(runs: Path) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    specs = charts(page_data([runs]))
    assert set(specs) == {"scores", "languages", "pairs", "stages", "retrieved"}
    for spec in specs.values():
        svg = vl_convert.vegalite_to_svg({**spec, "width": 500})
        assert svg.startswith("<svg")
        assert svg.count("<path") + svg.count("<text") > 5


def test_charts_without_data_are_left_out(tmp_path: Path) -> None:
    out = write_run(tmp_path, {"qa": [row(0, match=1.0)]})
    with pytest.raises(DataError, match="no task of ours"):
        page_data([out])


def test_no_text_ends_the_script_or_becomes_markup(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    write_report([runs], page, title="<i>mine</i>")
    text = page.read_text("utf-8")
    assert text.count("</script") == 3
    assert "<i>mine" not in text
    assert "<b>lighthouse" not in text
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    samples = json.loads(found[1])["samples"]
    assert any("<b>lighthouse</b>" in sample["question"] for sample in samples)
    # nothing is fetched
    assert not re.findall(r'(?:src|href)="https?:', text)


def test_the_page_says_what_is_missing(runs: Path, tmp_path: Path) -> None:
    write_report([runs], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "2 scores are missing" in text
    assert "the row has no reference answer" in text


def test_a_table_of_scores(runs: Path) -> None:
    table = score_table([runs])
    assert table.columns == ("match", "char3gram_recall")
    assert [cell.value for cell in table.rows[0].cells] == [30.0, 45.0]


def test_the_command(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = CliRunner().invoke(app, ["report", str(runs), "-o", str(page)], obj=Session())
    assert done.exit_code == 0, done.output
    assert re.fullmatch(rf"{re.escape(str(page))}: 2 tasks, 48 samples, \d\.\d MB", done.output.strip())
    assert page.stat().st_size < 5e6
    done = CliRunner().invoke(app, ["report", str(runs)], obj=Session())
    assert "| qa_one | some-model | 30.0 (n=23) | 45.0 (n=24) |" in done.output
    done = CliRunner().invoke(app, ["report", str(runs), "-o", str(page), "--layout", "xrag"], obj=Session())
    assert done.exit_code == 2
