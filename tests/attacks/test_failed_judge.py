"""A judge that fails: sixty rows, three judges behind HTTP, and one of them answers 500 to every call."""

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
from tests.worlds.forged_runs import Run as Forged
from tests.worlds.judges import verdict
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, ScriptedLM, write_task

ROWS = 60
WHY = "no majority: 1 of 3 judges gave no verdict"

Run = Callable[[str, bool], Path]


def votes(row: int) -> tuple[bool, bool, bool]:
    """Return the judges' verdicts on a row: 26 unanimous yes, 6 unanimous no, 28 split between the first two."""
    if row < 32:
        return (row < 26,) * 3
    return row % 2 == 0, row % 2 == 1, row < 58


def cli(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], obj=Session())


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Return a function that runs the task, with all judges or with the third failing, and returns its folder."""
    failing = [False]

    def script(body: dict[str, Any], attempt: int) -> Answer:
        seat = ("one", "two", "three").index(body["model"])
        if seat == 2 and failing[0]:
            return Answer(status=500, body={"error": {"message": "out of memory"}})
        row = int(re.findall(r"lighthouse number (\d+)", asked(body))[0])
        return said(verdict("correct" if votes(row)[seat] else "incorrect"))

    server = ModelServer(script)
    entries = [
        {
            "model": "local-chat-completions",
            "model_args": {"model": name, "base_url": server.url},
            "retries": 0,
        }
        for name in ("one", "two", "three")
    ]
    (tmp_path / "mrag.yaml").write_text(yaml.safe_dump({"judges": entries}), "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    questions = [
        {"id": f"q{i}", "query": f"When was lighthouse number {i} built?", "lang": "en", "answers": ["1841"]}
        for i in range(ROWS)
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions), "utf-8")
    data = {"benchmark": "jsonl", "path": str(tmp_path / "questions.jsonl")}
    write_task(tmp_path, "judged", **{**BASE, "metrics": ["judged_accuracy", "judge_correct"]}, data=data)

    def run(name: str, sick: bool) -> Path:
        failing[0] = sick
        monkeypatch.setenv("MRAG_CACHE", str(tmp_path / f"cache-{name}"))
        manager = harness.task_manager([str(tmp_path)], {"pretrained": "org/small"})
        settings = {"model": ScriptedLM(lambda _: "In 1841."), "tasks": ["judged"], "bootstrap_iters": 100}
        harness.evaluate({**settings, "log_samples": True}, manager, str(tmp_path / name))
        return tmp_path / name

    yield run
    server.close()


def scores_of(folder: Path) -> dict[str, Any]:
    (path,) = folder.rglob("results_*.json")
    scores: dict[str, Any] = json.loads(path.read_text("utf-8"))["configs"]["judged"]["scores"]
    return scores


def test_rows_that_a_failed_judge_would_have_decided_are_unscored_and_counted_everywhere(
    evaluated: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    whole, sick = evaluated("whole", False), evaluated("sick", True)
    before, after = scores_of(whole), scores_of(sick)
    for metric in ("judge_correct", "judged_accuracy"):
        assert before["metrics"][metric]["value"] == pytest.approx(52 / 60)
        assert (after["metrics"][metric]["value"], after["metrics"][metric]["n"]) == (pytest.approx(26 / 32), 32)
        assert after["unscored"][metric] == {WHY: 28}
    assert after["judge"]["outcomes"] == {"majority": 32, "unjudged": 28}
    assert sum(after["judge"]["abstained"].values()) == 60
    said_then = [r.getMessage() for r in caplog.records if "judged by a panel" in r.getMessage()]
    assert "60 unanimous or majority, 0 ties, 0 unjudged" in said_then[0]
    assert "32 unanimous or majority, 0 ties, 28 unjudged (server, stopped)" in said_then[1]

    (samples,) = sick.rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    assert sum(line["rows"].get("unscored", {}).get("judge_correct") == WHY for line in lines) == 28
    assert sum("judge_correct" in line for line in lines) == 32

    page = tmp_path / "page.html"
    assert cli("report", sick, "-o", page).exit_code == 0
    assert WHY in re.sub(r"<[^>]+>", "", page.read_text("utf-8"))
    shown = cli("report", sick, "-o", tmp_path / "table.md")
    assert shown.exit_code == 0, shown.output
    assert f"28 rows unscored ({WHY})" in (tmp_path / "table.md").read_text("utf-8")

    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"min_n": 20, "rules": [{"metric": "judge_correct"}]}), "utf-8")
    held = cli("gate", "--baseline", whole, "--candidate", sick, "--rules", rules)
    assert held.exit_code == 2
    assert "28 of 60 rows are scored in one run only" in " ".join(held.output.split())


def test_judging_old_samples_again_gives_the_new_scores(evaluated: Run) -> None:
    """The samples are those of a release that counted such a row as a tie, and so as incorrect."""
    sick = evaluated("sick", True)
    (samples,) = sick.rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    for line in lines:
        if line["rows"]["judge"]["outcome"] == "unjudged":
            line |= {"judge_correct": 0.0, "judged_accuracy": 0.0}
            line["rows"]["values"] |= {"judge_correct": 0.0, "judged_accuracy": 0.0}
            line["rows"]["judge"] |= {"verdict": False, "outcome": "tie"}
            del line["rows"]["unscored"]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    found = cli("verify", sick)
    assert found.exit_code == 1
    assert "28 verdicts against the votes" in found.output

    done = cli("judge", "answers", samples, "--json")
    # as of a run, one judge of which is silent
    assert done.exit_code == 1, done.output
    assert "no vote was given by three" in done.stderr
    scores = json.loads(done.stdout)
    assert scores["metrics"]["judge_correct"]["value"] == pytest.approx(26 / 32)
    assert scores["unscored"]["judge_correct"] == {WHY: 28}
    assert "28 unjudged (server, stopped)" in cli("judge", "answers", samples).output


def test_votes_forged_with_all_that_follows_are_found_by_their_replies_on_any_machine(
    evaluated: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluated("whole", False)
    run = Forged(whole, tmp_path)
    assert run.blamed() == []
    found = run.verified()
    assert found is not None
    assert "that the replies of judges are theirs" in found.unchecked
    # the second judge on row 33, which the first and the second judge differ on
    line = run.samples["judged"][33]
    assert [vote["verdict"] for vote in line["votes"].values()] == [False, True, True]
    line["votes"]["two"]["verdict"] = line["rows"]["judge"]["votes"]["two"] = False
    line["rows"]["judge"] |= {"verdict": False, "disagreement": 1 / 3}
    line["rows"]["values"] |= {"judged_accuracy": 0.0, "judge_correct": 0.0}
    assert run.agree("judged")
    fault = "judged: votes.two.verdict of 1 of 60 rows, first 'q33': False, True by its reply"
    assert run.blamed() == [fault]
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MRAG_CACHE", str(tmp_path / "elsewhere"))
        assert run.blamed() == [fault]
        # whose reply it is nothing says, but the machine that has kept it
        vote = line["votes"]["two"]
        vote["reply"] = vote["reply"].replace('"correct"', '"incorrect"')
        assert run.blamed() == []
    (first, second) = run.blamed()
    assert first == fault
    assert second.startswith("judged: votes.two.reply of 1 of 60 rows, first 'q33'")
    del vote["reply"]
    assert "votes.two.reply of 1 of 60 rows, first 'q33': nothing, " in run.blamed()[-1]
