"""Failures in a run: every metric against every step that can fail, counts, bounds, ranks, and the end of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest
from lm_eval.utils import handle_non_serializable

from mrag_eval.config import verdict_metrics
from mrag_eval.core import (
    BEFORE,
    OUTCOMES,
    STAGES,
    YES_NO,
    Claim,
    Failure,
    ModelReply,
    RagDoc,
    Retrieved,
    TextKind,
    way_to,
)
from mrag_eval.harness import _command
from mrag_eval.judging import Panel
from mrag_eval.models import Asked, Reply, Translation, Translator
from mrag_eval.retrieval import TaskRows
from mrag_eval.scoring import METRICS, RowRecord, TaskScores, needs_of
from tests.programs import Programs
from tests.retrieval.test_rerank import ByLength, by_length  # noqa: F401 - a fixture
from tests.task.test_hook import knows_everything, run, run_ranks
from tests.worlds.classifiers import Holds
from tests.worlds.judges import ScriptedJudge, verdict
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, TOPICS, ScriptedLM, write_task

RANKING = ("hit@2", "mrr@2", "rerank_hit@2")
# metrics of verdicts on another scale than yes and no need a judge of their own, lemmas a table that may be missing
OWN = {*verdict_metrics(METRICS)} - {*YES_NO.metrics} | ({"match_lemmas"} if find_spec("simplemma") is None else set())
NAMES = [*(name for name in METRICS if name not in OWN), *RANKING]
ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "query": "Wann wurde der Leuchtturm von Varn gebaut?",
        "lang": "de",
        "answers": ["1841", "im Jahr 1841"],
        "aliases": ["1841 n. Chr."],
        "choices": ["1841", "1950"],
        "gold_choice": 0,
        "votes": [{"answers": ["1841"], "en_answers": ["1841"], "count": 3}],
        "gold_doc_lang": "de",
    },
    {"id": "b", "query": "Wurde der Leuchtturm von Varn 1841 gebaut?", "lang": "de", "answers": ["ja"]},
    {"id": "healthy", "query": "Was verkauft die Bäckerei in Olm?", "lang": "de", "answers": ["Roggenbrot"]},
]
FAILING = {"a", "b"}
REPLIES = {
    "Wann": "<answer>“The lighthouse of Varn was built” in 1841, as they say [1].</answer>",
    "Wurde": "<answer>ja</answer>",
    "Was": "<answer>Roggenbrot</answer>",
}

PROMPT = """{% block user %}
{{ query }}
{% for p in passages %}{{ p.text }}
{% endfor %}
<answer>your answer</answer>, or <answer>None</answer>
{% endblock %}
"""


def asked_about(prompt: str) -> str:
    return next(start for start in REPLIES if prompt.lstrip().startswith(start))


@pytest.fixture
def everything(tasks: Path, by_length: ByLength, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    """The folder with the task ``everything``: it searches, reranks, translates, labels, judges, by every metric."""
    questions = tasks / "every.jsonl"
    questions.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), "utf-8")
    (tasks / "table.jsonl").write_text("", "utf-8")
    template = tasks / "asking.jinja"
    template.write_text(PROMPT, "utf-8")
    write_task(
        tasks,
        "everything",
        **{**BASE, "metrics": NAMES},
        data={"benchmark": "jsonl", "path": str(questions), "corpus": str(tasks / "corpus.jsonl")},
        retrieval={
            "mode": "qlang",
            "k": 2,
            "kind": "bm25",
            "rerank": {"model": "some/reranker"},
            "translator": {"backend": "table", "path": str(tasks / "table.jsonl")},
        },
        judge={
            "language_check": "fasttext",
            "relevance": {"labels": "judge"},
            "grounded": {"model": "some/classifier"},
        },
        prompt={"template": str(template), "answer": "tag"},
    )

    def translate(self: Any, texts: Any, sources: Any, targets: Any, *, kind: str) -> list[Translation]:
        return [Translation("Der Leuchtturm wurde 1841 gebaut.", "de", "translated") for _ in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    seat(monkeypatch, lambda prompt: None)
    monkeypatch.setattr("mrag_eval.models.load_checker", lambda block: Holds())
    return tasks


class _FailingChecker(Holds):
    def findings(self, asked: Sequence[Asked]) -> list[tuple[Claim, ...] | str]:
        self.faults = {one.answer: "server: HTTP 500" for one in asked if one.answer != "Roggenbrot"}
        return super().findings(asked)


def about(topic: str, prompt: str) -> bool:
    """Return whether a prompt of the small world asks about a topic, in whatever language."""
    return any(question in prompt for _, question, _ in TOPICS[topic].values())


def seat(monkeypatch: pytest.MonkeyPatch, failing: Callable[[str], str | None]) -> None:
    """Let one judge do all the judging; ``failing`` says which step of a prompt it fails at."""

    def script(prompt: str) -> str | Reply:
        step = "judge" if "<generated_answer>" in prompt or "Asked in" in prompt else "label"
        if failing(prompt) == step:
            return Reply("", error="server: HTTP 500")
        if step == "label":
            return "[]" if "Wurde" in prompt else "[1]"
        return verdict("correct") if "<generated_answer>" in prompt else '{"justification": "so", "sufficient": "yes"}'

    judge: Any = ScriptedJudge(script)
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: Panel({"j": judge}))


def replying(prompt: str) -> str:
    return REPLIES[asked_about(prompt)]


def failed(stage: Any, texts: TextKind | None = None) -> Failure:
    return Failure(stage, "m", "server", "HTTP 500", texts)


def let_fail(step: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Make a step of the rows in :data:`FAILING` fail; return the evaluated model's answers."""
    stage, _, kind = step.partition(" of ")
    if step == "answer":
        return lambda prompt: replying(prompt) if asked_about(prompt) == "Was" else ModelReply.failed(failed("answer"))
    if step in ("judge", "label"):
        seat(monkeypatch, lambda prompt: None if "Was " in prompt else step)
        return replying
    if step == "grounding":
        monkeypatch.setattr("mrag_eval.models.load_checker", lambda block: _FailingChecker("failing"))
        return replying
    if step == "translation of answers":

        def translate(self: Any, texts: Any, sources: Any, targets: Any, *, kind: str) -> list[Translation]:
            return [
                Translation(t, s, "failed", "server: HTTP 500", texts=kind) for t, s in zip(texts, sources, strict=True)
            ]

        monkeypatch.setattr(Translator, "translate", translate)
        return replying
    real = TaskRows.retrieved
    failure = failed(stage, kind or None)  # type: ignore[arg-type]

    def retrieved(self: TaskRows, docs: Sequence[RagDoc]) -> list[Retrieved]:
        found = zip(docs, real(self, docs), strict=True)
        return [replace(row, failures=(failure,)) if doc.id in FAILING else row for doc, row in found]

    monkeypatch.setattr(TaskRows, "retrieved", retrieved)
    return replying


def records_of(results: Any, task: str = "everything") -> dict[str, RowRecord]:
    return {s["doc"]["id"]: RowRecord.from_dict(s["rows"]) for s in results["samples"][task]}


def scores_of(results: Any, task: str = "everything") -> TaskScores:
    return TaskScores.from_dict(results["configs"][task]["scores"])


# ------------------------------------------------------------------ every metric, every step


def test_the_tables_of_steps_are_complete() -> None:
    assert {step.partition(" of ")[0] for step in BEFORE} == {*STAGES}
    assert {step.partition(" of ")[2] for step in BEFORE} == {"", *get_args(TextKind)}
    assert {Failure(stage, "m", "r").step for stage in STAGES} <= {*BEFORE}
    for name in NAMES:
        # whatever comes before a step that is needed is needed
        assert needs_of(name) == way_to(*needs_of(name)), name
    # every step leaves something without a score
    assert {step for name in NAMES for step in needs_of(name)} == {*BEFORE}


@pytest.mark.parametrize("step", BEFORE)
def test_a_failed_step_leaves_without_score_what_comes_after_it_and_nothing_else(
    step: str, everything: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = records_of(run(everything, "everything", ScriptedLM(replying)))
    assert {name for record in clean.values() for name in record.values} == {*NAMES}
    assert not any(record.failures for record in clean.values())
    results = run(everything, "everything", ScriptedLM(let_fail(step, monkeypatch)))
    found, scores = records_of(results), scores_of(results)
    hit: set[str] = set()
    for row in FAILING:
        for name in NAMES:
            if name not in clean[row].values:
                continue
            if step not in needs_of(name):
                assert found[row].values[name] == clean[row].values[name], name
            elif step == "translation of answers" and row == "b":
                # a reply in the right language needs no translation
                assert found[row].values[name] == clean[row].values[name], name
            else:
                assert name not in found[row].values, name
                hit.add(name)
                why = {"judge": "no majority: 1 of 1 judge gave no verdict"}.get(step, f"{step} failed (server)")
                assert found[row].unscored[name] == (why if step != "label" else f"relevance: {_NO_LABEL}")
    assert hit == {name for name in NAMES if step in needs_of(name)}
    assert found["healthy"].values == clean["healthy"].values
    failing = ["a"] if step == "translation of answers" else ["a", "b"]
    assert [row for row, record in found.items() if record.failures] == failing
    assert scores.failures == {step: {"server": len(failing)}}
    share = scores.by_language["de"].failed
    assert (share.value, share.n, share.method) == (pytest.approx(len(failing) / 3), 3, "Wilson")
    assert scores.marked_languages.keys() == {"de"}
    for name in hit:
        score = scores.metrics[name]
        # a row that has no value whatever happens keeps its reason
        unknown = [row for row in failing if found[row].unscored.get(name) not in (None, clean[row].unscored.get(name))]
        assert score.failed == len(unknown) >= sum(name in clean[row].values for row in failing)
        assert score.bounds is not None
        assert score.no_headline
        # the harness's own table has the mean of what is scored, and the largest share that is not
        assert results["results"]["everything"].get(f"{name},none") == score.value
    assert results["results"]["everything"]["unscored,none"] >= len(failing) / 3
    json.dumps(results, default=handle_non_serializable, allow_nan=False)


_NO_LABEL = "no majority: 1 of 1 judge gave no verdict"


def test_bounds_are_the_score_with_all_failed_rows_wrong_and_all_right(
    everything: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = scores_of(run(everything, "everything", ScriptedLM(let_fail("answer", monkeypatch))))
    # Roggenbrot alone is scored: (1 + 0 + 0) / 3 and (1 + 1 + 1) / 3
    assert (scores.metrics["match"].value, scores.metrics["match"].n) == (1.0, 1)
    assert scores.metrics["match"].bounds == pytest.approx((1 / 3, 1.0))
    assert scores.metrics["match"].no_headline == "2 of 3 rows failed, more than 5%"
    # nobody is asked about an answer that is not there
    assert scores.judge is not None
    assert scores.judge.outcomes == {"unanimous": 1}


# ------------------------------------------------------------------ the evaluated model


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_answer_that_the_model_does_not_give_is_wrong_and_counted(tasks: Path, outcome: str) -> None:
    def refusing(prompt: str) -> str:
        if not about("lighthouse", prompt):
            return knows_everything(prompt)
        reply = ModelReply("")
        reply.outcome = outcome
        return reply

    results = run(tasks, lm=ScriptedLM(refusing))
    scores = scores_of(results, "small")
    assert scores.outcomes == {outcome: 5}
    assert [part.outcomes for part in scores.by_language.values()] == [{outcome: 1}] * 5
    assert (scores.failures, scores.marked_languages) == ({}, {})
    assert scores.metrics["char3gram_recall"].n == 15
    assert scores.metrics["char3gram_recall"].value == pytest.approx(10 / 15)
    assert scores.metrics["char3gram_recall"].no_headline is None


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>so</think>", "empty"),
        ("<think>so", "thinking cut"),
        ("<think>so</think>1841", None),
        ("1841", None),
    ],
)
def test_a_reply_without_a_provider_s_word_shows_itself_that_it_is_no_answer(
    tasks: Path, text: str, outcome: str | None
) -> None:
    scores = scores_of(run(tasks, lm=ScriptedLM(lambda _: text), limit=2), "small")
    assert scores.outcomes == ({} if outcome is None else {outcome: 2})


def test_a_content_filter_is_no_score_of_the_model(tasks: Path) -> None:
    def filtered(prompt: str) -> str:
        return ModelReply.failed(Failure("answer", "gpt", "content_filter")) if "faro de Varn?" in prompt else "1841"

    results = run(tasks, lm=ScriptedLM(filtered))
    (row,) = (s for s in results["samples"]["small"] if "char3gram_recall" not in s)
    assert row["rows"]["unscored"]["char3gram_recall"] == "answer failed (content_filter)"
    assert scores_of(results, "small").outcomes == {}


def test_failures_survive_filters_and_ranks(tasks: Path) -> None:
    (tasks / "filtered.yaml").write_text(
        "include: small.yaml\ntask: filtered\nfilter_list:\n- name: digits\n  filter:\n"
        "  - {function: regex, regex_pattern: '([0-9]+)'}\n  - {function: take_first}\n",
        "utf-8",
    )

    def answer(prompt: str) -> str:
        failure = Failure("answer", "gpt", "server")
        return ModelReply.failed(failure) if about("bakery", prompt) else knows_everything(prompt)

    one = run(tasks, "filtered", ScriptedLM(answer))
    assert scores_of(one, "filtered").failures == {"answer": {"server": 5}}
    ranks, _ = run_ranks(tasks, answer)
    alone = scores_of(run(tasks, lm=ScriptedLM(answer)), "small")
    assert scores_of(ranks, "small").failures == alone.failures == {"answer": {"server": 5}}
    assert scores_of(ranks, "small").metrics["char3gram_recall"] == alone.metrics["char3gram_recall"]


# ------------------------------------------------------------------ the end of a run


def broken(prompt: str) -> str:
    return ModelReply.failed(Failure("answer", "gpt", "server"))


@pytest.mark.parametrize(("program", "name"), [("mrag-eval", "mrag-eval"), ("lm_eval", "lm_eval"), ("mine.py", None)])
def test_a_command_fails_if_a_step_failed_for_every_row(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, program: str, name: str | None
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(_command, "exit_with_1_at_the_end", lambda: ended.append("1"))
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", "run", "--tasks", "small"])
    run(tasks, lm=ScriptedLM(lambda p: knows_everything(p) if about("lighthouse", p) else broken(p)))
    (line,) = (r for r in caplog.records if "failed" in r.getMessage() and "this repeats" in r.getMessage())
    assert line.levelname == "WARNING"
    shown = "the same call" if name is None else f"{name} run --tasks small"
    assert line.getMessage().startswith("[small] failed: answer of 10 (10 server)")
    assert line.getMessage().endswith(f"this repeats the rest: {shown}")
    assert ended == []
    caplog.clear()
    results = run(tasks, lm=ScriptedLM(broken))
    (line,) = (r for r in caplog.records if "failed in every row" in r.getMessage())
    assert line.levelname == "ERROR"
    assert ended == ([] if name is None else ["1"])
    score = scores_of(results, "small").metrics["char3gram_recall"]
    assert (score.value, score.bounds) == (None, (0.0, 1.0))
    assert score.no_headline
    # what the search found has a score all the same
    assert scores_of(results, "small").metrics["hit@2"].n == 15


@pytest.mark.slow
@pytest.mark.parametrize("program", ["mrag-eval", "lm_eval"])
def test_the_command_repeats_only_what_failed_and_exits_with_1_if_all_did(
    program: str, tasks: Path, start: Callable[..., ModelServer], programs: Programs, tmp_path: Path
) -> None:
    down: set[str] = {*TOPICS}
    server = start(
        lambda body, attempt: (
            Answer(500) if any(about(topic, asked(body)) for topic in down) else said(verdict("correct"))
        )
    )
    config = tmp_path / "mrag.yaml"
    judge = {"model": "local-chat-completions", "model_args": {"model": "m", "base_url": server.url}, "retries": 0}
    config.write_text(json.dumps({"judges": [judge]}), "utf-8")
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    write_task(tasks, "judged", **{**BASE, "metrics": ["match", "judge_correct"]}, data=data)
    arguments = ["run", "--model", "dummy", "--tasks", "judged", "--include_path", str(tasks), "--log_samples"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MRAG_CONFIG": str(config)}

    def ran(name: str) -> tuple[int, str, TaskScores]:
        server.requests.clear()
        command = [programs / program, *arguments, "--output_path", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        (path,) = (tmp_path / name).rglob("results_*.json")
        assert len(list(path.parent.glob("samples_judged_*.jsonl"))) == 1
        scores = json.loads(path.read_text("utf-8"))["configs"]["judged"]["scores"]
        lines = [line for line in done.stderr.splitlines() if "this repeats the rest" in line]
        return done.returncode, " ".join(lines), TaskScores.from_dict(scores)

    code, line, scores = ran("first")
    assert (code, sum(scores.failures["judge"].values())) == (1, 15)
    assert "[judged] failed in every row: judge of 15" in line
    assert line.endswith(f"{program} {' '.join(arguments)} --output_path {tmp_path / 'first'}")
    down -= {"bakery", "ferry"}
    code, line, scores = ran("second")
    assert (code, scores.failures) == (0, {"judge": {"server": 5}})
    assert "[judged] failed: judge of 5 (5 server)" in line
    assert scores.metrics["judge_correct"].n == 10
    # the repetition asks about the others alone
    down.clear()
    code, line, scores = ran("third")
    assert (code, line, scores.failures, len(server.requests)) == (0, "", {}, 5)
    assert scores.metrics["judge_correct"].n == 15
