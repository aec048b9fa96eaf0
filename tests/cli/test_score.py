"""``mrag-eval score`` as a user calls it: what is recognised, scored and left out, and one line for bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mrag_eval import score
from mrag_eval._front import Results
from mrag_eval.cli import main
from tests.tables import single_spaced
from tests.worlds import logs
from tests.worlds.logs import COLUMNS, rows_of, write_log

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "answers.jsonl", [{**row, "latency": 3} for row in rows_of(logs.ragas)])
    write_log(tmp_path / "mine.json", rows_of(logs.described))

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["score", *words])
        shown = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, shown.out, shown.err

    return run


def test_a_dry_run_says_what_is_recognised_and_writes_nothing(command: Run, tmp_path: Path) -> None:
    code, out, _ = command("answers.jsonl", "--dry-run")
    assert code == 0
    lines = {line.partition("  ")[0].strip(): line for line in out.splitlines()}
    assert "5 rows: user_input → question, response → answer" in lines["answers.jsonl"]
    assert lines["not read"].endswith(" latency")
    assert "en 1, de 1, es 1, zh 1, ru 1 (5 detected)" in lines["questions"]
    assert "correct_language, language_mix, refused" in lines["scored"]
    assert "acc: no choices" in lines["left out"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "mine.json"]


def test_scores_are_shown_with_their_n_and_what_they_leave_out(command: Run, tmp_path: Path) -> None:
    code, out, _ = command("answers.jsonl", "--output_path", "out")
    assert code == 0
    assert "### Scores of answers · rows" in out
    assert "| all | 5 | 80.0 [37.6, 96.4] |" in single_spaced(out)
    # few of the pairs are there
    assert "### match_unicode by pair of languages" in out
    assert "| question | contexts |" in single_spaced(out)
    assert f"mrag-eval report {Path('out')} -o report.html" in out
    assert len(list((tmp_path / "out").iterdir())) == 2


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_longer_than_the_terminal(width: int, command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = command("answers.jsonl", "-o", "out")
    assert [line for line in out.splitlines() if len(line) > width and not line.startswith("results")] == []


def test_a_ranking_without_answers_has_no_failed_rows(command: Run, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 r\nq1 Q0 d2 2 1.0 r\nq2 Q0 d2 1 1.0 r\n", "utf-8")
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n", "utf-8")
    code, out, _ = command("a.run", "--qrels", "a.qrels", "-o", "out")
    assert code == 0
    assert "by shown@k over 2 rows" in out
    assert "failed" not in out


def test_a_folder_of_questions_is_told_of_the_run_it_lacks(command: Run, tmp_path: Path) -> None:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    write_log(folder / "queries.jsonl", [{"_id": "q1", "text": "When was the mill built?"}])
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "utf-8")
    code, _, err = command("beir", "--dry-run")
    assert code == 2
    assert "--run FILE" in err


def test_a_log_of_which_no_row_has_its_main_metric_fails(command: Run, tmp_path: Path) -> None:
    """No row has a reference answer, so no row has the metric that was asked for."""
    rows = [{"question": "Who?", "answer": "Ada."}, {"question": "When?", "answer": "1843."}]
    write_log(tmp_path / "bare.jsonl", rows)
    code, _, err = command("bare.jsonl", "--metrics", "char3gram_recall", "--output_path", "out")
    assert code == 1
    assert "no row has its main metric, char3gram_recall" in err
    # too short to tell its language, and right
    write_log(tmp_path / "short.jsonl", [{"question": "Who?", "answer": "Ada.", "reference": "Ada"}])
    code, _, err = command("short.jsonl", "--lang", "en", "--output_path", "short")
    assert (code, err) == (0, "")


def test_the_defaults_score_what_python_scores(command: Run, tmp_path: Path) -> None:
    row = {"user_input": "When was it built?", "response": "In 1841.", "retrieved_contexts": ["one"]}
    row |= {"retrieved_context_ids": ["p1"], "reference_context_ids": ["p1"]}
    rows = [row, {**row, "retrieved_contexts": None, "retrieved_context_ids": None, "reference_context_ids": ["p9"]}]
    write_log(tmp_path / "log.jsonl", rows)
    for words in (["--dry-run"], ["-o", "out"]):
        code, _, err = command("log.jsonl", *words)
        assert code == 0, err
    table = score(rows).table
    assert str(table["shown@k"].iloc[0]).startswith("50.0")
    assert str(table["shown@k"].iloc[0]).endswith("n=2")
    assert Results(next((tmp_path / "out").glob("results_*.json"))).table.to_dict() == table.to_dict()
    # what is asked for must be there
    code, _, err = command("log.jsonl", "--metrics", "shown@k,refused", "--dry-run")
    assert code == 2
    assert "log.jsonl, line 2: 'retrieved_contexts' is missing" in err
    assert "metrics shown@k need it" in err


def test_a_metric_of_the_users_is_named_by_its_module(command: Run, tmp_path: Path) -> None:
    (tmp_path / "mine_words.py").write_text("def reply_words_named(row):\n    return len(row.answer) / 1000\n", "utf-8")
    code, out, err = command("answers.jsonl", "-o", "out", "--metrics", "mine_words:reply_words_named,refused")
    assert code == 0, err
    assert "reply_words_named" in out.partition("### Scores of")[2]
    code, _, err = command("answers.jsonl", "--dry-run", "--metrics", "nowhere_at_all:words")
    assert (code, "nowhere_at_all cannot be imported (ModuleNotFoundError" in err) == (2, True)


def test_columns_describe_a_shape_of_the_users(command: Run) -> None:
    columns = ",".join(f"{key}={path}" for key, path in COLUMNS.items())
    code, out, _ = command("mine.json", "--dry-run", "--columns", columns)
    assert code == 0
    assert "anfrage.text → question, antwort → answer" in out


def test_metrics_that_are_asked_for_leave_nothing_out(command: Run) -> None:
    code, out, _ = command("answers.jsonl", "--dry-run", "--metrics", "refused, copied")
    assert code == 0
    assert "scored          refused, copied" in out
    assert "left out" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["answers.jsonl"], "name the folder for results and samples, or --dry-run"),
        (["nowhere.jsonl", "--dry-run"], "nowhere.jsonl: no such file"),
        (["mine.json", "--dry-run"], "mine.json: no column is the question; its columns: nr, anfrage"),
        (["mine.json", "--dry-run", "--columns", "anfrage"], "'anfrage' is not of the form FIELD=PATH"),
        (
            ["mine.json", "--dry-run", "--columns", "question=anfrage", "--columns", "question=antwort"],
            "'question' is given twice",
        ),
        (["mine.json", "--dry-run", "--columns", "questoin=anfrage"], "no field 'questoin'; did you mean 'question'"),
        (["mine.json", "--dry-run", "--columns", "answer=antwort"], "mine.json: no column is the question"),
        (["mine.json", "--dry-run", "--columns", "question=anfragen"], "mine.json: no row has 'anfragen'"),
        (["answers.jsonl", "--dry-run", "--metrics", "refsed"], "unknown metric 'refsed'; did you mean 'refused'"),
        (["answers.jsonl", "--dry-run", "--metrics", "judge_correct"], "'judge_correct' needs a model"),
        (["answers.jsonl", "--dry-run", "--benchmark", "xrag"], "'setting' is missing; one of mono, multi"),
        (["answers.jsonl", "--dry-run", "--metadata", "data.language=de"], "it has the keys data.KEY of --benchmark"),
        (["answers.jsonl", "--dry-run", "--benchmark", "demo", "--metadata", "k=3"], "it has the keys data.KEY"),
        (["answers.jsonl", "--dry-run", "--benchmark", "dmo"], "unknown benchmark 'dmo'; did you mean 'demo'"),
        (["mine.json", "--dry-run", "--columns", "question=anfrage.text,contexts=zzz"], "mine.json: no row has 'zzz'"),
        (["answers.jsonl", "--dry-run", "--breakdown", "latenzy"], "no row has 'latenzy'; did you mean 'latency'"),
        (["answers.jsonl", "--dry-run", "--lang", "nonsense"], "unknown language 'nonsense'"),
        (["answers.jsonl", "--dry-run", "--qrels", "nowhere"], "nowhere: no such file"),
        ([".", "--dry-run"], ".: a folder, not a file"),
    ],
)
def test_what_is_wrong_is_one_line_with_a_next_step(words: list[str], said: str, command: Run) -> None:
    code, _, err = command(*words)
    assert code == 2
    first, *rest = err.strip().splitlines()
    assert said in first
    assert len(rest) == 1


def test_a_row_without_a_question_is_named(command: Run, tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", [*rows_of(logs.deepeval), {"input": None, "actual_output": "It was."}])
    code, _, err = command("log.jsonl", "--dry-run", "--max-unread", "0")
    assert (code, "log.jsonl, line 6: it has no question" in err) == (2, True)
