"""The commands that judge a finished run's samples and measure agreement with human labels."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mrag_eval import harness
from mrag_eval.cli import Session, app
from mrag_eval.judging import Panel
from mrag_eval.platform import ConfigError, DataError, read_sheet, to_json
from mrag_eval.report import agreement, judge_samples
from mrag_eval.report.labels import _rejudge as rejudge
from mrag_eval.report.labels._panel_agreement import read_labels
from tests.judging.test_judge_task import judged_tasks, tagged  # noqa: F401
from tests.worlds.judges import ScriptedJudge, always, exact, failing, verdict
from tests.worlds.model_server import ModelServer, said
from tests.worlds.small import ScriptedLM

YES, NO, OUT = always("correct"), always("incorrect"), failing()


@pytest.fixture
def samples(judged_tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    """The sample file of a run without a judge: wrong on bakeries, with no answer to the first question."""
    (judged_tasks / "empty.yaml").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(judged_tasks / "empty.yaml"))

    def answer(prompt: str) -> str:
        if "lighthouse of Varn built?" in prompt:
            return "<answer>None</answer>"
        return "<answer>1900</answer>" if "Olm" in prompt else tagged(prompt)

    manager = harness.task_manager([str(judged_tasks)], {"pretrained": "org/small"})
    settings = {"model": ScriptedLM(answer), "tasks": ["judged"], "bootstrap_iters": 100, "log_samples": True}
    harness.evaluate(settings, manager, str(judged_tasks / "out"))
    (path,) = (judged_tasks / "out").rglob("samples_judged_*.jsonl")
    return path


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[ScriptedJudge]]:
    def place(*scripts: Any) -> list[ScriptedJudge]:
        judges = [ScriptedJudge(script, f"acme/judge-{i}") for i, script in enumerate(scripts, 1)]
        named = {f"j{i}": judge for i, judge in enumerate(judges, 1)}
        monkeypatch.setattr(rejudge, "build_panel", lambda block: Panel(named, block.repeats))  # type: ignore[arg-type]
        return judges

    return place


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def cli(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), obj=Session())


# ------------------------------------------------------------------ run


def test_a_run_is_judged_without_generating_again(samples: Path, seat: Callable[..., list[ScriptedJudge]]) -> None:
    before = samples.read_bytes()
    judges = seat(exact, exact, NO)
    done = judge_samples(samples)
    assert done.path == samples.with_name(f"judged_{samples.name}")
    assert samples.read_bytes() == before
    # the settings of the run: its own language check
    assert done.block.language_check == "fasttext"
    # one of the 15 is a refusal; three name a wrong year, on which all three judges agree
    assert [len(judge.asked) for judge in judges] == [14, 14, 14]
    assert done.scores.to_dict()["judge"]["outcomes"] == {"declined": 1, "majority": 11, "unanimous": 3}
    assert done.scores.to_dict()["metrics"]["judge_correct"]["value"] == pytest.approx(11 / 15)
    rows = lines(done.path)
    assert len(rows) == 15
    assert rows[0]["votes"] == {}
    assert rows[0]["judge_correct"] == 0.0
    assert rows[0]["rows"]["judge"] == {"verdict": False, "outcome": "declined"}
    assert rows[1]["votes"]["j3"]["verdict"] is False
    assert {"votes", "judge_correct", "judged_accuracy"} <= set(rows[1]["metrics"])
    assert sum("panel" in row["rows"] for row in rows) == 1


def test_another_panel_takes_the_place_of_the_first(
    samples: Path, tmp_path: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    seat(YES, YES, YES)
    first = judge_samples(samples)
    seat(NO, OUT, OUT)
    second = judge_samples(first.path, tmp_path / "second.jsonl", language_check="none")
    assert second.scores.to_dict()["unscored"]["judge_correct"] == {"no majority: 2 of 3 judges gave no verdict": 14}
    assert set(second.scores.to_dict()["judge"]["judges"]) == {"j1", "j2", "j3"}
    row = lines(second.path)[1]
    assert "judge_correct" not in row
    assert "judge_correct" not in row["rows"]["values"]
    assert "language_check" not in row
    assert row["metrics"].count("votes") == 1
    # the run's own scores are unchanged
    assert row["declined"] == 0.0


def test_the_file_to_be_judged_is_not_overwritten(samples: Path, seat: Callable[..., list[ScriptedJudge]]) -> None:
    seat(YES)
    with pytest.raises(DataError, match="is the file to be judged"):
        judge_samples(samples, samples)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no samples"),
        ("{\n", "line 1: not JSON"),
        ('{"doc": {"id": "a"}}\n', "line 1: not a scored sample"),
        ("[1]\n", "line 1: not a scored sample"),
    ],
)
def test_files_that_are_not_samples_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "samples_x.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        judge_samples(path)


def test_without_a_judge_there_is_nothing_to_judge_with(samples: Path) -> None:
    with pytest.raises(ConfigError, match="no judge is configured"):
        judge_samples(samples)
    with pytest.raises(ConfigError, match=r"judge\.tie: input should be"):
        judge_samples(samples, tie="maybe")


@pytest.fixture
def server(judged_tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:  # noqa: F811
    """Three judges behind one server, which plays each by the model's name; the third fails on some rows."""

    def script(body: dict[str, Any], attempt: int) -> Any:
        prompt = next(turn["content"] for turn in body["messages"] if turn["role"] == "user")
        word = verdict("correct") if body["model"] == "lenient" else exact(prompt)
        return said(word if body["model"] != "moody" or "ferry" not in prompt else "I cannot tell.")

    server = ModelServer(script)
    entry = {"model": "local-chat-completions"}
    spec = [{**entry, "model_args": {"model": name, "base_url": server.url}} for name in ("strict", "lenient", "moody")]
    config = judged_tasks / "judges.yaml"
    config.write_text(
        yaml.safe_dump({"models": {"lenient": spec[1]}, "judges": [spec[0], "lenient", spec[2]]}), "utf-8"
    )
    monkeypatch.setenv("MRAG_CACHE", str(judged_tasks / "cache"))
    yield server
    server.close()


def test_over_http_the_table_is_printed_and_a_second_time_costs_nothing(
    samples: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRAG_CONFIG", str(samples.parents[2] / "judges.yaml"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    done = cli("judge", "answers", str(samples))
    assert done.exit_code == 0, done.output
    assert "judged by a panel of 3 · 14 answers" in done.output
    assert "not asked: 1 declined" in done.output
    assert "kappa strict | lenient" in done.output
    asked = len(server.requests)
    # one call per row and judge; two rows mention the ferry, a word that silences the third, which is asked once more
    assert asked == 3 * 14 + 2
    assert "2 unreadable" in done.output
    out = samples.parent / "again.jsonl"
    again = cli("judge", "answers", str(samples), "-o", str(out), "--json")
    assert len(server.requests) == asked
    table = json.loads(again.output)["judge"]
    assert {name: ledger["calls"] for name, ledger in table["ledger"].items()} == dict.fromkeys(
        ("strict", "lenient", "moody"), 0
    )
    first = lines(samples.with_name(f"judged_{samples.name}"))
    assert [row["votes"] for row in lines(out)] == [row["votes"] for row in first]
    assert b"sk-planted" not in out.read_bytes()
    alone = cli("judge", "answers", str(samples), "--panel", "lenient", "-o", str(out), "--json")
    assert list(json.loads(alone.output)["judge"]["judges"]) == ["lenient"]


# ------------------------------------------------------------------ agree


def write_labels(path: Path, labels: dict[str, str], header: str = "id,label") -> Path:
    path.write_text("".join([f"{header}\n", *(f"{row},{label}\n" for row, label in labels.items())]), "utf-8")
    return path


def test_agreement_with_people(samples: Path, tmp_path: Path, seat: Callable[..., list[ScriptedJudge]]) -> None:
    seat(exact, YES, exact)
    judged = judge_samples(samples).path
    rows = lines(judged)
    asked = {row["rows"]["row"]: row["rows"]["judge"]["verdict"] for row in rows if row["votes"]}
    # people agree with the panel except on one row that they find wrong; one row has no label, one label has no row
    names = list(asked)
    labels = {name: "correct" if asked[name] else "incorrect" for name in names[:-1]}
    flipped = next(name for name in names[:-1] if asked[name])
    labels |= {flipped: "0", "elsewhere": "yes"}
    human = write_labels(tmp_path / "labels.csv", labels)
    found = to_json(agreement([judged], [human]))
    assert (found["rows"], found["unlabelled"], found["unmatched"], found["unjudged"]) == (13, 1, 1, 0)
    n = 13
    right = sum(asked[name] for name in names[:-1])
    people = right - 1
    # p_e from the frequencies of "correct" on both sides
    expected = (right * people + (n - right) * (n - people)) / n**2
    kappa = ((n - 1) / n - expected) / (1 - expected)
    assert found["panel"]["kappa"]["value"] == pytest.approx(kappa)
    # one question in three languages is resampled together, as for the share of equal verdicts
    assert found["panel"]["kappa"]["reason"] == "no interval from 3 clusters, ten are needed"
    assert found["panel"]["agreement"]["value"] == pytest.approx((n - 1) / n)
    assert found["judges"]["j2"]["correct"]["value"] == 1.0
    assert found["judges"]["j1"]["kappa"]["value"] == pytest.approx(kappa)
    # two of the three are the same judge twice
    assert found["independence"]["effective_size"] < 3
    shown = cli("judge", "agree", str(judged), "--human", str(human))
    assert shown.exit_code == 0, shown.output
    assert f"{kappa:.2f}" in shown.output
    assert "kappa of panel, j1, j3: no interval from 3 clusters, ten are needed" in shown.output
    assert "1 unlabelled, 1 unmatched" in shown.output
    assert json.loads(cli("judge", "agree", str(judged), "--human", str(human), "--json").output)["rows"] == 13


def test_agreement_needs_votes_and_labels_of_their_rows(
    samples: Path, tmp_path: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    human = write_labels(tmp_path / "labels.csv", {"x": "correct"})
    with pytest.raises(DataError, match="no panel judged these answers") as caught:
        agreement([samples], [human])
    assert "mrag-eval judge answers" in str(caught.value.next_step)
    seat(YES)
    with pytest.raises(DataError, match="none of its 1 ids is a judged row"):
        agreement([judge_samples(samples).path], [human])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,label\na,correct\n", "no column 'id'"),
        ("id\na\n", "no column 'label'"),
        ("id,label\na\n", "holds no labels"),
        ("id,label\na,correct\nb,maybe\n", "line 3: label 'maybe'"),
        ("id,label\na,correct\na,incorrect\n", "line 3: the id 'a' comes a second time"),
        ("id,label\n", "holds no labels"),
        ("", "no column 'id'"),
    ],
)
def test_wrong_labels_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labels([path])


def test_labels_may_be_written_in_several_ways(tmp_path: Path) -> None:
    words = {"a": "Correct", "b": "0", "c": "TRUE", "d": "no", "e": "1", "f": "incorrect"}
    path = write_labels(tmp_path / "labels.csv", words, header="\ufeffid,label")
    right = {"a": True, "b": False, "c": True, "d": False, "e": True, "f": False}
    assert read_labels([path]) == {name: {str(path): (label, False)} for name, label in right.items()}


def _pool(samples: Path, models: tuple[str, ...]) -> list[Path]:
    """Judge the run, and copy it below a folder for each model, as if it were that model's."""
    judged = judge_samples(samples).path
    (results,) = samples.parent.glob("results_*.json")
    out = []
    for model in models:
        folder = samples.parent / f"of-{model}"
        folder.mkdir()
        found = json.loads(results.read_text(encoding="utf-8"))
        found["config"]["model"] = model
        (folder / results.name).write_text(json.dumps(found), encoding="utf-8")
        (folder / judged.name).write_bytes(judged.read_bytes())
        out.append(folder / judged.name)
    return out


def test_several_models_answers_are_pooled_against_the_majority_of_three_people(
    samples: Path, tmp_path: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    """XRAG, Appendix C.2: answers of several models, three annotators, Cohen's kappa of the panel with the majority."""
    seat(exact)
    runs = _pool(samples, ("alpha", "beta"))
    sheet = tmp_path / "sheet.csv"
    wrote = cli("judge", "agree", *map(str, runs), "--write", str(sheet))
    assert "28 answers to label" in wrote.output  # 14 of 15 were judged, in two runs
    rows = [dict(row.cells) for row in read_sheet(sheet, ("id", "label", "reply"))]
    assert {row["id"].partition(": ")[0] for row in rows} == {"alpha", "beta"}
    verdicts = {row["rows"]["row"]: row["rows"]["judge"]["verdict"] for row in lines(runs[0]) if row["votes"]}
    right = {row["id"]: verdicts[row["id"].partition(": ")[2]] for row in rows}
    # everyone agrees with the panel but on two answers: one annotator errs on the first, two on the second
    first, second = (name for name in list(right)[:2])
    sheets = []
    for n, wrong in enumerate([{first, second}, {second}, set()], 1):
        labels = {name: "correct" if label != (name in wrong) else "incorrect" for name, label in right.items()}
        sheets.append(write_labels(tmp_path / f"person{n}.csv", labels))
    found = agreement(runs, sheets)
    assert (found.rows, found.unlabelled, found.unmatched, found.split, found.annotators) == (28, 0, 0, 0, 3)
    assert found.panel.agreement.value == pytest.approx(27 / 28)
    correct = sum(right.values())
    people = correct + (-1 if right[second] else 1)
    expected = (correct * people + (28 - correct) * (28 - people)) / 28**2
    assert found.panel.kappa.value == pytest.approx((27 / 28 - expected) / (1 - expected))
    # both models' answers to one question are resampled together
    assert found.panel.kappa.reason == "no interval from 3 clusters, ten are needed"
    # Fleiss: 26 rows agree throughout, two rows in one pair of three
    assert found.between_people is not None
    assert found.between_people.n == 28
    labelled = sum(label == "correct" for one in sheets for label in _labels_of(one)) / 84
    chance = labelled**2 + (1 - labelled) ** 2
    assert found.between_people.value == pytest.approx(((26 + 2 / 3) / 28 - chance) / (1 - chance))
    shown = cli("judge", "agree", *map(str, runs), *(part for one in sheets for part in ("--human", str(one))))
    assert "annotators 3, Fleiss' kappa" in shown.output


def _labels_of(path: Path) -> list[str]:
    return [row.cells["label"] for row in read_sheet(path, ("id", "label"))]


def test_two_people_who_differ_have_no_majority(
    samples: Path, tmp_path: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    seat(exact)
    judged = judge_samples(samples).path
    names = [row["rows"]["row"] for row in lines(judged) if row["votes"]]
    sheets = [
        write_labels(tmp_path / "ida.csv", dict.fromkeys(names, "correct")),
        write_labels(tmp_path / "ulf.csv", {**dict.fromkeys(names, "correct"), names[0]: "incorrect"}),
    ]
    found = agreement([judged], sheets)
    assert (found.rows, found.split, found.unlabelled) == (13, 1, 0)
    shown = cli("judge", "agree", str(judged), "--human", str(sheets[0]), "--human", str(sheets[1]))
    assert "13 judged and labelled · 1 without a majority" in shown.output


def test_an_id_that_several_runs_have_needs_the_run(
    samples: Path, tmp_path: Path, seat: Callable[..., list[ScriptedJudge]]
) -> None:
    seat(exact)
    runs = _pool(samples, ("alpha", "beta"))
    row = lines(runs[0])[1]["rows"]["row"]
    human = write_labels(tmp_path / "labels.csv", {row: "correct"})
    with pytest.raises(DataError, match="is a row of 2 runs") as caught:
        agreement(runs, [human])
    assert f"'alpha: {row}'" in str(caught.value.next_step)
    with pytest.raises(DataError, match="this run is named twice"):
        agreement([runs[0], runs[0]], [human])


def test_annotators_may_share_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,annotator,label\na,ida,correct\na,ulf,incorrect\nb,ida,\n", encoding="utf-8")
    assert read_labels([path]) == {"a": {"ida": (True, False), "ulf": (False, False)}}


# ------------------------------------------------------------------ debatable answers


# The Cross-Lingual Cost, A.1.1: of 100 answers in a language, 20 are debatable. Equal verdicts on the others, and on
# these: 76 of 80 and 6 of 20 in English, 82 of 100; 78 of 80 and 7 of 20 in Arabic, 85 of 100.
EQUAL = {"en": (76, 6), "ar": (78, 7)}


def check_by_people(folder: Path) -> tuple[Path, Path]:
    """Write a judged run of 200 answers that the judge calls correct, and a person's sheet."""
    samples, sheet = [], ["id,label,debatable"]
    for lang, (clear, debatable) in EQUAL.items():
        for n in range(100):
            key = f"{lang}{n}"
            doc = {"id": key, "query": f"question {key}", "query_lang": lang, "answers": ["x"]}
            record = {"row": key, "cell": {"query_lang": lang}, "values": {"judge_correct": 1.0}}
            record["judge"] = {"verdict": True, "outcome": "unanimous", "votes": {"claude": True}}
            samples.append({"doc_id": len(samples), "doc": doc, "filtered_resps": ["x"], "rows": record})
            equal = n < clear if n < 80 else n - 80 < debatable
            sheet.append(f"{key},{'correct' if equal else 'incorrect'},{'yes' if n >= 80 else ''}")
    path = folder / "judged_samples_check_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in samples), encoding="utf-8")
    (folder / "human.csv").write_text("\n".join(sheet) + "\n", encoding="utf-8")
    return path, folder / "human.csv"


def test_agreement_without_the_debatable_answers_of_each_language(tmp_path: Path) -> None:
    samples, human = check_by_people(tmp_path)
    found = agreement([samples], [human]).by_language
    for lang, every, clear in (("en", 82 / 100, 76 / 80), ("ar", 85 / 100, 78 / 80), ("all", 167 / 200, 154 / 160)):
        one = found[lang]
        assert (one.agreement.value, one.clear.value, one.share.value) == pytest.approx((every, clear, 0.2))
        assert (one.agreement.n, one.clear.n) == ((200, 160) if lang == "all" else (100, 80))
    done = cli("judge", "agree", str(samples), "--human", str(human))
    rows = [re.sub(r" \[.*?\]", "", line).split() for line in done.output.splitlines()]
    assert [row for row in rows if row and row[0] in ("all", "ar", "en")] == [
        ["all", "83.5", "200", "96.2", "160", "20.0"],
        ["ar", "85.0", "100", "97.5", "80", "20.0"],
        ["en", "82.0", "100", "95.0", "80", "20.0"],
    ]


def test_one_persons_mark_makes_an_answer_debatable_and_an_unjudged_one_is_no_disagreement(tmp_path: Path) -> None:
    samples, human = check_by_people(tmp_path)
    second = tmp_path / "second.csv"
    # the second person agrees with the first, and marks en0 alone
    text = human.read_text("utf-8").replace(",yes", ",no")
    second.write_text(text.replace("en0,correct,\n", "en0,correct,TRUE\n"), "utf-8")
    rows = lines(samples)
    rows[1]["rows"]["judge"] = {"verdict": None, "outcome": "unjudged", "votes": {"claude": "timeout"}}
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    english = agreement([samples], [human, second]).by_language["en"]
    assert english.share.value == 0.21
    # 79 are clear, of which one is unjudged
    assert (english.clear.value, english.clear.n) == (pytest.approx(74 / 78), 78)
    assert english.agreement.n == 99


def test_all_debatable_leaves_nothing_to_agree_on(tmp_path: Path) -> None:
    samples, human = check_by_people(tmp_path)
    human.write_text(re.sub(r"(correct),(yes)?", r"\1,yes", human.read_text("utf-8")), "utf-8")
    (found,) = {(one.clear.value, one.clear.n) for one in agreement([samples], [human]).by_language.values()}
    assert found == (None, 0)
    human.write_text("id,label,debatable\nen0,correct,perhaps\n", "utf-8")
    with pytest.raises(DataError, match="line 2: debatable is 'perhaps', neither yes nor no"):
        agreement([samples], [human])
