"""Rubrics with a scale in a whole run: three endpoints judge, and every file and command shows their verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import split_config
from mrag_eval.core import YES_NO, VerdictScale
from mrag_eval.judging import verdict_rubric
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import EXPORTS, read_results, read_samples
from mrag_eval.report.files._results import LaterVerdicts
from mrag_eval.scoring import METRIC_NAMES
from tests.worlds.judged_runs import cli, run_task, serving_judges
from tests.worlds.model_server import ModelServer, said
from tests.worlds.small import BASE, write_task

GRADES = [1, 2, 5]
LABELS = {"labels": ["upheld", "refuted", "not_found"]}
# What each judge says of the topics; the third gives no verdict on ferries.
GIVEN: dict[str, dict[str, dict[str, Any]]] = {
    "grade": {
        "strict": {"lighthouse": 1, "bakery": 2, "ferry": 5},
        "kind": {"lighthouse": 5, "bakery": 5, "ferry": "5"},
        "moody": {"lighthouse": 2, "bakery": 5, "ferry": "4 of 5"},
    },
    "label": {
        "strict": {"lighthouse": "upheld", "bakery": "refuted", "ferry": "Not_Found"},
        "kind": {"lighthouse": "upheld", "bakery": "upheld", "ferry": "not_found"},
        "moody": {"lighthouse": "refuted", "bakery": "not_found", "ferry": "unsure"},
    },
}
TEMPLATE = """{{% block user %}}
<question>{{{{ query }}}}</question><reply>{{{{ answer }}}}</reply>
Reply with JSON: {{"justification": "...", "{key}": ...}}
{{% endblock %}}
"""


def topic(prompt: str) -> str:
    words = {"Varn": "lighthouse", "Варна": "lighthouse", "瓦恩": "lighthouse", "Sund": "ferry", "Сунд": "ferry"}
    return next((name for word, name in {**words, "松德": "ferry"}.items() if word in prompt), "bakery")


@pytest.fixture
def judges(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Three judges behind one server, in the config file of the folder."""

    def script(body: dict[str, Any], attempt: int) -> Any:
        prompt = next(turn["content"] for turn in body["messages"] if turn["role"] == "user")
        key = "grade" if '"grade"' in prompt else "label"
        return said(json.dumps({"justification": "seen", key: GIVEN[key][body["model"]][topic(prompt)]}))

    with serving_judges(tasks, script, monkeypatch) as server:
        yield server


@pytest.fixture
def finished(tasks: Path, judges: ModelServer) -> Callable[..., Path]:
    """Run the task ``graded`` with a scale; return the folder of its output."""

    def make(scale: Any, name: str = "out") -> Path:
        key = "label" if isinstance(scale, dict) else "grade"
        (tasks / f"{key}.jinja").write_text(TEMPLATE.format(key=key), "utf-8")
        metric = "match" if scale is None else "judge_label" if key == "label" else "judge_grade"
        keys = {**BASE, "metrics": [metric]}
        data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
        write_task(
            tasks,
            "graded",
            **keys,
            data=data,
            judge={} if scale is None else {"prompt": f"./{key}.jinja", "scale": scale},
        )
        run_task(tasks, "graded", name)
        return tasks / name

    return make


def scores_of(out: Path) -> dict[str, Any]:
    (path,) = out.rglob("results_*.json")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))["configs"]["graded"]
    return found


def test_grades_are_medians_means_and_weighted_agreement(finished: Callable[..., Path]) -> None:
    out = finished(GRADES)
    config = scores_of(out)
    scores, table = config["scores"], config["scores"]["judge"]
    assert config["measurement"]["setting"]["judge"]["scale"] == GRADES
    # lighthouse 1, 2, 5: the median 2; bakery 2, 5, 5; ferry 5, 5 and a reply that cannot be read
    assert scores["metrics"]["judge_grade"]["n"] == 15
    assert scores["metrics"]["judge_grade"]["value"] == pytest.approx((0.25 + 1 + 1) / 3)
    assert table["outcomes"] == {"median": 5, "majority": 10}
    assert table["scale"] == {"kind": "ordered", "levels": GRADES}
    assert table["judges"]["strict"]["correct"]["value"] == pytest.approx((0 + 0.25 + 1) / 3)
    assert table["judges"]["moody"]["abstained"] == {"unreadable": 5}
    assert {*table["agreement"]} == {"pairwise", "alpha"}
    (path,) = out.rglob("samples_graded_*.jsonl")
    assert {sample.record.judge.verdict for sample in read_samples(path) if sample.record.judge} == {2, 5}


def test_labels_are_shares_and_a_tie_is_no_verdict(finished: Callable[..., Path]) -> None:
    scores = scores_of(finished(LABELS))["scores"]
    # lighthouse: upheld by two; ferry: not found by two; bakery: each says something else
    shares = {name: (found["value"], found["n"]) for name, found in scores["metrics"].items()}
    assert shares == {
        "judge_label.upheld": (0.5, 10),
        "judge_label.refuted": (0.0, 10),
        "judge_label.not_found": (0.5, 10),
    }
    assert scores["unscored"]["judge_label.refuted"] == {"unjudged (tie)": 5}
    labels = scores["judge"]["judges"]["strict"]["labels"]
    assert {label: share["value"] for label, share in labels.items()} == dict.fromkeys(labels, pytest.approx(1 / 3))


@pytest.mark.parametrize("scale", [GRADES, LABELS], ids=["grades", "labels"])
def test_every_command_and_file_shows_the_verdicts(
    scale: Any, finished: Callable[..., Path], judges: ModelServer, tasks: Path
) -> None:
    out = finished(scale)
    graded = scale is GRADES
    key, word = ("grade", "2") if graded else ("label", "refuted")
    metric = "judge_grade" if graded else "judge_label.refuted"
    checked = cli("verify", out, "--own-settings")
    assert checked.exit_code == 0, checked.output
    assert "all scores follow from the samples" in checked.output

    # judged once more, from the cache
    (path,) = out.rglob("samples_graded_*.jsonl")
    asked = len(judges.requests)
    again = cli("judge", "answers", path, "--prompt", f"{key}.jinja")
    assert again.exit_code == 0, again.output
    assert len(judges.requests) == asked
    assert metric in again.output
    assert "Krippendorff's alpha" in again.output
    (judged,) = out.rglob("judged_samples_graded_*.jsonl")
    assert [sample.votes for sample in read_samples(judged)] == [sample.votes for sample in read_samples(path)]
    assert cli("judge", "answers", path, "--prompt", f"{key}.jinja", "--scale", "0,5", "-o", "x.jsonl").exit_code == (
        0 if graded else 1  # the prompt of labels asks for no grade
    )

    # people label on the same scale
    sheet = cli("judge", "agree", judged, "--write", "sheet.csv")
    levels = scale if graded else scale["labels"]
    assert f"fill in the column 'label' ({', '.join(map(str, levels))})" in sheet.output
    verdicts = {sample.record.row: sample.record.judge for sample in read_samples(judged)}
    people = {row: record.verdict for row, record in verdicts.items() if record and record.verdict is not None}
    Path("people.csv").write_text("".join(["id,label\n", *(f"{row},{v}\n" for row, v in people.items())]), "utf-8")
    agreed = cli("judge", "agree", judged, "--human", "people.csv", "--json")
    found = json.loads(agreed.output)
    assert found["scale"]["levels"] == levels
    assert found["panel"]["agreement"]["value"] == found["panel"]["kappa"]["value"] == 1.0
    assert cli("judge", "agree", judged, "--human", "people.csv").exit_code == 0
    Path("people.csv").write_text("id,label\nq-ferry-de,correct\n", "utf-8")
    refused = cli("judge", "agree", judged, "--human", "people.csv").exception
    assert "people.csv, line 2: label 'correct' is not on the judges' scale" in str(refused)

    # a baseline, the rules of a gate, a comparison
    assert cli("gate", "--save", "base.json", "--answers", out).exit_code == 0
    assert f'"strict": "{word}"' in Path("base.json").read_text("utf-8")
    rule = f"rules: [{{task: '*', metric: {metric}, max_drop: 0.1, lower_is_better: {str(not graded).lower()}}}]"
    Path("rules.yaml").write_text(rule, "utf-8")
    gated = cli("gate", "--baseline", "base.json", "--candidate", out, "--rules", "rules.yaml")
    assert re.search(rf"cannot tell +{metric} · all", gated.output), gated.output
    assert f"### {metric}" in cli("compare", out, judged.parent).output

    # reports and exports
    assert metric in cli("report", out).output
    assert cli("report", out, "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text("utf-8")
    assert metric in page
    assert "Mean grade that each judge gives" in page
    assert "Krippendorff, all judges" in page
    for name in ("csv", "eee", "latex", "model-index"):
        made = cli("export", out, "--format", name, "-o", f"export-{name}")
        assert made.exit_code == 0, made.output
    assert metric in Path("export-csv").read_text("utf-8")
    (record,) = (file for file in Path("export-eee").rglob("*.json"))
    results = json.loads(record.read_text("utf-8"))["evaluation_results"]
    told = [one["metric_config"]["llm_scoring"] for one in results if one["metric_config"]["metric_name"] == metric]
    assert {one["aggregation_method"] for one in told} == {"median" if graded else "majority_vote"}


def test_a_metric_of_another_scale_is_refused_before_anything_runs(tasks: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    for scale, name, fix in (
        (GRADES, "judge_correct", "name judge_grade"),
        (GRADES, "judge_label", "name judge_grade"),
        (LABELS, "judge_grade", "name judge_label"),
        (LABELS, "judge_label.other", "name judge_label"),
        (None, "judge_grade", "name judged_accuracy or judge_correct"),
    ):
        config = {"task": "t", "data": data, "metrics": [name], "judge": {"scale": scale}}
        with pytest.raises(ConfigError, match=f"'{name}' is no metric of judge.scale") as caught:
            split_config(config, METRIC_NAMES)
        assert fix in str(caught.value.next_step)


def test_a_prompt_that_asks_for_no_verdict_of_the_scale_is_refused() -> None:
    with pytest.raises(ConfigError, match="the prompt 'correctness' does not ask for \"grade\", in which"):
        verdict_rubric("correctness", None, VerdictScale.of(GRADES))
    with pytest.raises(ConfigError, match="does not ask for <label>"):
        verdict_rubric("equivalence", "tag", VerdictScale.of(LABELS))


def test_a_prompt_goes_with_the_scale_that_it_asks_for_and_with_no_other(tmp_path: Path) -> None:
    scales = [YES_NO, VerdictScale.of(GRADES), VerdictScale.of(LABELS)]
    for number, asked in enumerate(scales):
        path = tmp_path / f"{number}.jinja"
        path.write_text(TEMPLATE.format(key=asked.key), "utf-8")
        for scale in scales:
            if scale == asked:
                assert verdict_rubric(str(path), None, scale)
            else:
                with pytest.raises(ConfigError, match=f'does not ask for "{scale.key}"'):
                    verdict_rubric(str(path), None, scale)


def test_verdicts_given_afterwards_are_part_of_the_run(
    finished: Callable[..., Path], judges: ModelServer, tasks: Path
) -> None:
    """Report, comparison, gate and every export read them; the results stay as the run wrote them."""
    out = finished(None)
    (results,) = out.rglob("results_*.json")
    before = results.read_bytes()
    (tasks / "grade.jinja").write_text(TEMPLATE.format(key="grade"), "utf-8")
    assert "judge_grade" not in cli("report", out).output
    done = cli("judge", "answers", out, "--prompt", "grade.jinja", "--scale", "1,2,5")
    assert done.exit_code == 0, done.output
    # a second panel takes the place of the first, and is asked about the run's own samples
    again = cli("judge", "answers", out, "--prompt", "grade.jinja", "--scale", "1,2,5", "--panel", "strict,kind")
    assert again.exit_code == 0, again.output
    assert results.read_bytes() == before
    assert len([*out.rglob("judged_*")]) == 2
    (file,) = read_results([out])
    leaf = file.leaves["graded"]
    assert leaf.scores.metrics["judge_grade"].value == pytest.approx((0 + 0.25 + 1) / 3)
    assert {*leaf.scores.metrics} == {"judge_grade", "match"}
    assert leaf.scores.judge is not None
    assert [*leaf.scores.judge.judges] == ["strict", "kind"]
    assert leaf.config.judge["scale"] == GRADES
    assert leaf.measurement is not None
    assert [*leaf.measurement.instrument["judges"]] == ["strict", "kind"]

    assert "judge_grade" in cli("report", out).output
    cli("report", out, "-o", "page.html")
    assert "Mean grade that each judge gives" in Path("page.html").read_text("utf-8")
    assert cli("gate", "--save", "base.json", out).exit_code == 0
    assert '"judge_grade": 0.25' in Path("base.json").read_text("utf-8")
    assert "### judge_grade" in cli("compare", out, out, "--differs", "all").output
    for form in EXPORTS:
        made = cli("export", out, "--format", form, "-o", f"export-{form}", "--dataset", "a/b")
        assert made.exit_code == 0, made.output
        written = [Path(f"export-{form}"), *Path(f"export-{form}").rglob("*")]
        texts = [file.read_text("utf-8").replace("\\_", "_") for file in written if file.is_file()]
        assert any("judge_grade" in text for text in texts), form
    # what the run itself measured is checked as before
    checked = cli("verify", out, "--own-settings")
    assert checked.exit_code == 0, checked.output


def test_runs_judged_by_others_are_told_apart(finished: Callable[..., Path], judges: ModelServer, tasks: Path) -> None:
    (tasks / "grade.jinja").write_text(TEMPLATE.format(key="grade"), "utf-8")
    for name, panel in (("one", "strict"), ("two", "kind")):
        done = cli(
            "judge", "answers", finished(None, name), "--prompt", "grade.jinja", "--scale", "1,2,5", "--panel", panel
        )
        assert done.exit_code == 0, done.output
    refused = cli("compare", "one", "two")
    assert "judges" in f"{refused.output} {refused.exception}"


def test_a_faulty_file_of_verdicts_is_named(finished: Callable[..., Path], judges: ModelServer, tasks: Path) -> None:
    out = finished(None)
    (results,) = out.rglob("results_*.json")
    path = LaterVerdicts.path(results, "graded")
    for text in ("{", "[]", '{"scores": 3, "judge": {}}', '{"schema_version": 9}'):
        path.write_text(text, "utf-8")
        with pytest.raises(DataError, match=re.escape(path.name)):
            read_results([out])


def test_a_scored_log_is_judged_as_a_run_is(judges: ModelServer, tasks: Path) -> None:
    (tasks / "grade.jinja").write_text(TEMPLATE.format(key="grade"), "utf-8")
    rows = [
        {"id": f"r{i}", "query": f"{word}?", "reply": "1841", "passages": [], "answers": ["1841"], "lang": "en"}
        for i, word in enumerate(("Varn", "Olm", "Sund"))
    ]
    Path("log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    scored = cli("score", "log.jsonl", "-o", "scored")
    assert scored.exit_code == 0, scored.output
    done = cli("judge", "answers", "scored", "--prompt", "grade.jinja", "--scale", "1,2,5")
    assert done.exit_code == 0, done.output
    (file,) = read_results([Path("scored")])
    (leaf,) = file.leaves.values()
    # the medians 2, 5 and 5 of the three judges
    assert leaf.scores.metrics["judge_grade"].value == pytest.approx((0.25 + 1 + 1) / 3)
    assert len(leaf.scores.metrics) > 1
    assert "judge_grade" in cli("report", "scored").output
