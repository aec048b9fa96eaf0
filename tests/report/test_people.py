"""People's answers: a sheet out, a table back, and the triage of those found incorrect (XRAG, 5.2 and B.4)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.judging import Panel
from mrag_eval.platform import DataError, read_sheet, write_sheet
from mrag_eval.report import judge_people, read_inspection, read_triage, write_questions, write_triage
from mrag_eval.report.labels import _rejudge as rejudge
from tests.worlds.judges import ScriptedJudge, failing, verdict

# Of 200 questions people answer 170 as the panel wants. Of the other 30 answers 4 are correct, 10 wrong, and 16 are to
# noisy questions: 85, 2, 5 and 8 %, and 92 % of the questions are not noisy.
ROWS, GOOD = 200, 170
TRIAGE = [1] * 4 + [2] * 10 + [3] * 16
SECRET = "the reference answer"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A run of 200 questions on two articles each among others, in English; the model's own replies are scored."""
    rows = []
    for n in range(ROWS):
        key = f"q{n}"
        shown = [
            {"id": f"{key}-{i}", "lang": "en", "title": f"title {i}", "text": f"article {i} of {key}", "is_gold": i > 0}
            for i in range(3)
        ]
        doc: dict[str, Any] = {"id": key, "query": f"Which town is {key} about?", "query_lang": "en"}
        doc |= {"answers": [SECRET], "passages": shown}
        record = {"row": key, "cell": {"query_lang": "en"}, "values": {"judge_correct": 0.0, "f1": 0.5}, "group": key}
        line = {"doc_id": n, "doc": doc, "filtered_resps": ["a model's reply"], "resps": [["a model's reply"]]}
        rows.append({**line, "f1": 0.5, "metrics": ["f1"], "rows": record})
    path = tmp_path / "samples_news_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[ScriptedJudge]]:
    def place(*scripts: Any) -> list[ScriptedJudge]:
        judges = [ScriptedJudge(script, f"acme/judge-{i}") for i, script in enumerate(scripts, 1)]
        named = {f"j{i}": judge for i, judge in enumerate(judges, 1)}
        monkeypatch.setattr(rejudge, "build_panel", lambda block: Panel(named, block.repeats))  # type: ignore[arg-type]
        return judges

    return place


def by_content(prompt: str) -> str:
    return verdict("correct" if "a good answer" in prompt else "incorrect")


def cli(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), obj=Session())


def filled(sheet: Path, column: str, values: list[str]) -> None:
    rows = [dict(row.cells) for row in read_sheet(sheet, (column,))]
    for row, value in zip(rows, values, strict=True):
        row[column] = value
    sheet.unlink()
    write_sheet(sheet, list(rows[0]), rows)


def answered(samples: Path, good: int = GOOD) -> Path:
    sheet = samples.parent / "answers.csv"
    write_questions([samples], sheet, n=ROWS)
    filled(sheet, "answer", ["a good answer"] * good + ["another answer"] * (ROWS - good))
    return sheet


def test_the_sheet_shows_the_supporting_articles_and_no_answer(samples: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "answers.csv"
    done = cli("judge", "people", str(samples), "--write", str(sheet), "--n", "20", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert "20 questions, seed 3" in done.output
    rows = [row.cells for row in read_sheet(sheet, ("id", "answer"))]
    assert len({row["id"] for row in rows}) == 20
    for row in rows:
        key = row["id"].removeprefix("news: ")
        assert row["answer"] == ""
        assert row["passages"] == f"[1] (en) title 1\narticle 1 of {key}\n\n[2] (en) title 2\narticle 2 of {key}"
    text = sheet.read_text("utf-8")
    assert SECRET not in text
    assert "a model's reply" not in text
    assert cli("judge", "people", str(samples), "--write", str(sheet)).exit_code != 0


def test_the_papers_upper_bounds(samples: Path, seat: Callable[..., list[ScriptedJudge]]) -> None:
    """170 of 200 by two judges of three; of the other 30, 4 misjudged, 10 wrong, 16 noisy."""
    judges = seat(by_content, by_content, lambda _: verdict("incorrect"))
    before = samples.read_bytes()
    done = cli("judge", "people", str(samples), "--answers", str(answered(samples)))
    assert done.exit_code == 0, done.output
    assert re.search(r"judge_correct +85\.0 \[79\.4, 89\.3\] +n = 200", done.output)
    people = samples.with_name(f"people_{samples.name}")
    assert f"samples    {people}" in done.output
    assert samples.read_bytes() == before
    # the panel saw people's answers, and none of the model's
    assert not any("a model's reply" in turn["content"] for one in judges[0].asked for turn in one)
    line = json.loads(people.read_text("utf-8").splitlines()[0])
    assert line["filtered_resps"] == ["a good answer"]
    assert {"f1", "resps"} & {*line, *line["rows"]["values"]} == set()
    triage = samples.parent / "triage.csv"
    wrote = cli("judge", "inspect", str(people), "--triage", "-o", str(triage))
    assert "30 incorrect answers" in wrote.output
    filled(triage, "categories", [str(number) for number in TRIAGE])
    shown = cli("judge", "inspect", str(people), "--triage", "--read", str(triage), "--format", "csv")
    assert shown.exit_code == 0, shown.output
    found = {(row["row"], row["column"]): row["value"] for row in csv.DictReader(io.StringIO(shown.output))}
    assert {name: (found[name, "count"], found[name, "%"]) for name, _ in found} == {
        "judged correct": ("170", "85.0"),
        "misjudged: the answer is correct": ("4", "2.0"),
        "wrong: the reference answer is right": ("10", "5.0"),
        "noisy question: ambiguous or of poor quality": ("16", "8.0"),
        "questions that are not noisy": ("184", "92.0"),
    }


def test_a_triage_that_is_not_complete_gives_nothing_but_the_panels_share(
    samples: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    seat(by_content)
    (done,) = judge_people([samples], answered(samples))
    triage = samples.parent / "triage.csv"
    assert len(write_triage([done.path], triage)) == 30
    filled(triage, "categories", ["misjudged", "noisy question", "1; 2", "4", "0", *["2"] * 24, ""])
    table, complete = read_triage(triage, [done.path])
    assert not complete
    by_name = {row.labels[0]: [cell.value for cell in row.cells] for row in table.rows}
    assert by_name.pop("judged correct") == [170.0, 85.0]
    assert all(values == [None, None] for values in by_name.values())
    told = " ".join(table.notes)
    assert "26 of 30 incorrect answers are sorted" in told
    for fault in ("'1; 2' names 2 categories", "no category '4' (1 to 3", "no category '0' (1 to 3"):
        assert fault in told
    assert cli("judge", "inspect", str(done.path), "--triage", "--read", str(triage)).exit_code == 1


def test_a_sheet_of_other_categories_is_not_counted(samples: Path, seat: Callable[..., list[ScriptedJudge]]) -> None:
    """Number 1 means something else in the mRAG paper's Table 8."""
    seat(by_content)
    (done,) = judge_people([samples], answered(samples))
    triage = samples.parent / "triage.csv"
    write_triage([done.path], triage)
    filled(triage, "categories", ["1"] * 30)
    assert len(read_inspection(triage).faults) == 31


def test_answers_left_out_are_no_answers_and_a_failed_panel_no_verdict(
    samples: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    sheet = samples.parent / "answers.csv"
    write_questions([samples], sheet, n=4)
    filled(sheet, "answer", ["a good answer", "", "إجابة a good answer", "another answer"])
    seat(lambda prompt: failing()(prompt) if "another" in prompt else by_content(prompt))
    (done,) = judge_people([samples], sheet)
    assert (done.scores.rows, done.scores.metrics["judge_correct"].n) == (3, 2)
    assert done.scores.metrics["judge_correct"].value == 1.0
    triage = samples.parent / "triage.csv"
    with pytest.raises(DataError, match="no wrong prediction to draw from"):
        write_triage([done.path], triage)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,answer\nnews: q1,\n", "holds no answers"),
        ("id,answer\nnews: q1,a\nnews: q1,b\n", "line 3: the id 'news: q1' comes a second time"),
        ("id,answer\nq1,a\n", "line 2: the id 'q1' is no row of these samples"),
        ("id\nnews: q1\n", "no column 'answer'"),
        ("", "no column 'id'"),
    ],
)
def test_a_faulty_sheet_is_named(text: str, message: str, samples: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "answers.csv"
    sheet.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        judge_people([samples], sheet)
