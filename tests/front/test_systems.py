"""RAG systems in runs, by Python and by command: their contexts are what rows were shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import Results, evaluate, score
from mrag_eval.cli import main
from mrag_eval.core import Failure
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import compare, read_results, read_samples, verify
from mrag_eval.systems import SystemReply
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.small import BASE, LANGS, TOPICS, write_task

METRICS = ["char3gram_recall", "match", "shown@k", "hit@2", "verbatim_quote", "passages_in_language"]
ROOT = Path(__file__).parents[2]
# question -> topic, language
KNOWN = {TOPICS[topic][lang][1]: (topic, lang) for topic in TOPICS for lang in LANGS}


@pytest.fixture
def small(world: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A task whose own retrieval has every kind of setting that a system's contexts replace."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    retrieval = {"mode": "all", "k": 2, "kind": "bm25", "merge": "rrf", "candidates": "all", "shuffle": 3}
    write_task(world, "small", **{**BASE, "metrics": METRICS}, data=data, retrieval=retrieval)
    choices = {**BASE, "metrics": ["acc"], "prompt": {"template": "multiple_choice"}}
    write_task(world, "choices", **choices, data=data, retrieval={"mode": "no_ir"})
    write_task(world, "likely", **{**choices, "output_type": "multiple_choice"}, data=data)
    return world


def topical(question: str, language: str) -> dict[str, Any]:
    """Answer in the question's language from the relevant document, which is in another, and one in this language."""
    topic, lang = KNOWN[question]
    assert lang == language
    other = LANGS[(LANGS.index(lang) + 1) % len(LANGS)]
    texts = {one: TOPICS[topic][one][0] for one in (lang, other)}
    contexts = [{"id": f"{topic}-{one}", "lang": one, "text": text} for one, text in texts.items()]
    return {"answer": f"“{TOPICS[topic][lang][0]}”", "contexts": contexts}


def failing(question: str, language: str) -> SystemReply:
    """Raise for a third of the questions."""
    if language in ("es",) or (KNOWN[question][0] == "ferry" and language in ("ru", "zh")):
        raise LookupError(f"no shard for {language}")
    found = topical(question, language)
    return SystemReply(found["answer"], [one["text"] for one in found["contexts"]])


def run(small: Path, system: Any, folder: Path, **more: Any) -> tuple[Results, Any, list[Any]]:
    """Return the results of a run, the configuration of its task, and its samples."""
    results = evaluate(system, "small", include=small, output=folder, **more)
    (file,) = read_results([results.path])
    path = file.samples("small")
    assert path is not None
    return results, file.leaves["small"], list(read_samples(path))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command prints."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the error of a command that a wrong setting ends."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def values(samples: list[Any], metric: str) -> list[float | None]:
    return [sample.record.values.get(metric) for sample in samples]


# ---------------------------------------------------------------- what is scored


def test_the_contexts_of_the_system_are_what_every_metric_reads(small: Path, tmp_path: Path) -> None:
    _, leaf, samples = run(small, topical, tmp_path / "out")
    assert len(samples) == len(KNOWN)
    for sample in samples:
        _, lang = KNOWN[sample.doc.query]
        contexts = topical(sample.doc.query, lang)["contexts"]
        assert [(hit.id, hit.lang, hit.text) for hit in sample.passages] == [tuple(one.values()) for one in contexts]
        # asked with the question, not with a prompt for a model
        assert sample.line["arguments"]["gen_args_0"]["arg_0"].strip() == sample.doc.query
    assert set(values(samples, "verbatim_quote")) == {1.0}
    assert set(values(samples, "shown@k")) == set(values(samples, "hit@2")) == {1.0}
    assert set(values(samples, "passages_in_language")) == {0.5}
    assert (leaf.config.mode, leaf.config.setting("prompt.template")) == ("system", "question")
    assert leaf.config.outcome["ledger"]["calls"] == len(KNOWN)
    assert leaf.measurement.setting["retrieval"]["mode"] == "system"
    assert leaf.measurement.setting["contexts"] == "the system's; languages detected where not given"
    # nothing of the task's own search is left in what is compared
    compared = leaf.measurement.flat(["setting"])
    assert not {f"retrieval.{key}" for key in ("k", "kind", "merge")} & compared.keys()
    assert leaf.measurement.setting["retrieval"]["shuffle"] is None


def test_plain_texts_are_named_by_content_and_no_relevance_is_made_up(small: Path, tmp_path: Path) -> None:
    texts = lambda question, language: (  # noqa: E731
        topical(question, language)["answer"],
        [one["text"] for one in topical(question, language)["contexts"]],
    )
    _, _, samples = run(small, texts, tmp_path / "out", model_args={"model": "texts"})
    assert {hit.id.partition("-")[0] for sample in samples for hit in sample.passages} == {"text"}
    # languages are those that the detector tells, of texts this short not always the right one
    assert all(hit.lang for sample in samples for hit in sample.passages)
    for metric in ("shown@k", "hit@2"):
        assert set(values(samples, metric)) == {None}
        assert {sample.record.unscored[metric] for sample in samples} == {"the corpus holds no relevant document"}
    assert set(values(samples, "verbatim_quote")) == {1.0}


@pytest.mark.parametrize(
    ("shown", "value", "why"),
    [
        ([], 0.0, None),
        (None, None, "no passage was shown"),
        ([{"id": "not of the corpus", "text": "a"}], None, "the corpus holds no relevant document"),
        (LookupError("no shard"), None, "system failed (raised)"),
    ],
)
def test_a_system_that_shows_nothing_finds_nothing_and_one_that_fails_or_does_not_tell_has_no_score(
    small: Path, tmp_path: Path, shown: Any, value: float | None, why: str | None
) -> None:
    def system(question: str, language: str) -> Any:
        # one row fails whatever the others do
        if isinstance(shown, Exception) or KNOWN[question] == ("ferry", "es"):
            raise LookupError("no shard")
        return {"answer": "no", "contexts": shown}

    _, leaf, samples = run(small, system, tmp_path / "out", model_args={"model": "empty", "max_retries": 0})
    for metric in ("shown@k", "hit@2"):
        for one in samples:
            failed = bool(one.record.failures)
            assert one.record.values.get(metric) == (None if failed else value)
            assert one.record.unscored.get(metric) == ("system failed (raised)" if failed else why)
        assert leaf.scores.metrics[metric].n == (0 if value is None else len(KNOWN) - 1)


def test_a_third_of_the_rows_fails_at_the_stage_of_the_system(small: Path, tmp_path: Path) -> None:
    args = {"max_retries": 0}
    _, leaf, samples = run(small, failing, tmp_path / "out", model_args=args)
    failed = [sample for sample in samples if sample.record.failures]
    assert len(failed) == 5
    assert {one.doc.query_lang for one in failed} == {"es", "ru", "zh"}
    (first,) = failed[0].record.failures
    name = f"{__name__}:failing"
    assert first == Failure("system", name, "raised", "LookupError: no shard for es")
    for metric in METRICS:
        assert all(metric in one.record.unscored and metric not in one.record.values for one in failed)
    assert {one.record.unscored["match"] for one in failed} == {"system failed (raised)"}
    assert leaf.scores.failures == {"system": {"raised": 5}}
    assert leaf.scores.metrics["char3gram_recall"].n == 10
    # the same system again is asked for the five alone
    asked = []

    def mended(question: str, language: str) -> Any:
        asked.append(question)
        return topical(question, language)

    _, again, _ = run(small, mended, tmp_path / "again", model_args={"model": name, **args})
    assert sorted(asked) == sorted(sample.doc.query for sample in failed)
    assert (again.scores.failures, again.config.outcome["ledger"]["cached"]) == ({}, 10)
    # nothing is left to repeat, so that the next run asks for all
    run(small, mended, tmp_path / "anew", model_args={"model": name, **args})
    assert len(asked) == 5 + len(KNOWN)


def test_scores_are_broken_down_by_the_languages_of_question_and_contexts_as_those_of_its_log_are(
    small: Path, tmp_path: Path
) -> None:
    def system(question: str, language: str) -> dict[str, Any]:
        if KNOWN[question] == ("ferry", "es"):
            return {"answer": "no", "contexts": []}
        found = topical(question, language)
        # of one topic both contexts, of the others the one in another language, unless it is Chinese
        kept = slice(0, 2) if KNOWN[question][0] == "ferry" else slice(0, 1) if language == "zh" else slice(1, 2)
        return {**found, "contexts": found["contexts"][kept]}

    _, leaf, samples = run(small, system, tmp_path / "out", model_args={"model": "pairs"})
    log = [
        {**one.doc.to_dict(), "lang": one.doc.query_lang, "reply": one.reply, "passages": one.line["doc"]["passages"]}
        for one in samples
    ]
    (scored,) = read_results([score(log, ["passages_in_language"], output=tmp_path / "log").path])
    path = scored.samples("rows")
    assert path is not None
    wanted = {one.record.row: one.record.cell.get("context_pair") for one in read_samples(path)}
    assert {one.record.row: one.record.cell.get("context_pair") for one in samples} == wanted
    assert list(wanted.values()).count(None) == 1
    assert {"en->several", "en->de", "zh->zh"} <= {*wanted.values()}
    for metric in ("passages_in_language", "char3gram_recall"):
        by = leaf.scores.metrics[metric].by["context_pair"]
        assert {pair: cell.n for pair, cell in by.items()} == Counter(pair for pair in wanted.values() if pair)
    (checked,) = verify([tmp_path / "out"], small)
    assert checked.of("fault") == []


# ---------------------------------------------------------------- what reads it


def test_verify_compare_and_marks(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(small, topical, tmp_path / "a")
    run(small, failing, tmp_path / "b", model_args={"max_retries": 0})
    evaluate("oracle_answer", "small", include=small, output=tmp_path / "model", retrieval={"shuffle": None})
    for checked in verify([tmp_path / "a", tmp_path / "b"], small):
        assert checked.of("fault") == []
    # two systems over the same questions compare, a system and a retrieval mode of ours do not
    assert compare([tmp_path / "a"], [tmp_path / "b"])
    with pytest.raises(DataError, match="the runs differ in contexts: the system's; languages detected"):
        compare([tmp_path / "a"], [tmp_path / "model"])
    said = printed(capsys, "report", str(tmp_path / "a"), str(tmp_path / "model"))
    assert "[own contexts]" in said
    assert said.count("[upper bound]") >= 1


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("task", "more", "said"),
    [
        ("choices", {}, "asks for a choice.*the question without the options"),
        ("likely", {}, "compares likelihoods"),
        ("likely", {"prompt": {"template": "multiple_choice"}}, "compares likelihoods"),
        ("small", {"retrieval": {"k": 3}}, "'k' cannot be combined with mode 'system': the system retrieves"),
        ("small", {"retrieval": {"mode": "all"}}, "retrieval.mode=all: the contexts are the system's own"),
    ],
)
def test_what_a_system_cannot_be_asked_is_refused_in_one_line(
    small: Path, task: str, more: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        evaluate(topical, task, include=small, **more)
    assert "\n" not in caught.value.message
    assert caught.value.next_step


def test_options_may_be_put_into_the_question(small: Path, tmp_path: Path) -> None:
    asked = []

    def system(question: str) -> str:
        asked.append(question)
        return "B"

    template, args = {"template": "multiple_choice"}, {"model": "letters"}
    evaluate(system, "choices", include=small, limit=1, prompt=template, output=tmp_path, model_args=args)
    assert "<question>" in asked[0]


def test_a_model_has_no_contexts_of_a_system(small: Path) -> None:
    with pytest.raises(ConfigError, match=r"retrieval\.mode=system: its contexts come with --model rag alone"):
        evaluate("oracle_answer", "small", include=small, retrieval={"mode": "system"})


def test_a_model_that_is_nowhere_is_refused_before_anything_is_loaded(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    asked = []

    def away(url: str, **_: Any) -> None:
        asked.append(url)
        raise ConnectionError("no route")

    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", away)
    with pytest.raises(ConfigError, match=r"no-such-model is neither .* cannot be reached \(Conn") as caught:
        evaluate("hf", "small", include=small, model_args={"pretrained": "nobody/no-such-model"})
    assert "\n" not in caught.value.message
    assert len(asked) == 1


# ---------------------------------------------------------------- the command

MODULE = """
import json, pathlib, time
import os
QUESTIONS = [json.loads(line) for line in pathlib.Path(os.environ["QUESTIONS"]).read_text("utf-8").splitlines()]
ANSWERS = {row["query"]: row["answers"][0] for row in QUESTIONS}

def ask(question, language):
    with open("asked.txt", "a", encoding="utf-8") as file:
        file.write(question + "\\n")
    time.sleep(float(os.environ.get("SLOWLY", "0")))
    return ANSWERS[question], ["The records of " + language + " say so."]
"""


def write_module(folder: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write a system as a file; return the flags of a run of it."""
    (folder / "own.py").write_text(MODULE, "utf-8")
    monkeypatch.setenv("QUESTIONS", str(small / "questions.jsonl"))
    monkeypatch.chdir(folder)
    flags = ["--model", "rag", "--model_args", "system=own.py:ask", "--tasks", "small", "--include_path", str(small)]
    return [*flags, "--log_samples", "--output_path", "out"]


def test_the_command_takes_a_file_a_limit_and_a_plan(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = write_module(tmp_path, small, monkeypatch)
    printed(capsys, "run", *flags, "--limit", "4")
    assert len((tmp_path / "asked.txt").read_text("utf-8").splitlines()) == 4
    (file,) = read_results([tmp_path / "out"])
    assert (file.model, file.run["model"]) == ("own.py:ask", "rag")
    assert file.run["model_args"] == {"model": "own.py:ask", "system": "own.py:ask"}
    record = file.measurement("small")
    assert record is not None
    assert record.subject["code"] == {"own.py": sha256((tmp_path / "own.py").read_bytes()).hexdigest()}
    said = printed(capsys, "plan", *flags[:8])
    assert "evaluated model: rag own.py:ask" in said
    assert "15 calls" in said
    assert "--use_cache: it keeps the answers of --model rag" in refused(capsys, "run", *flags, "--use_cache", "kept")


def test_several_processes_are_refused_before_anything_is_asked(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = write_module(tmp_path, small, monkeypatch)
    monkeypatch.setenv("WORLD_SIZE", "2")
    why = refused(capsys, "run", *flags)
    assert "runs in one process, and WORLD_SIZE=2 says that this is one of" in why
    assert "num_concurrent" in why
    assert not (tmp_path / "asked.txt").exists()
    # as launchers of a single process set it
    monkeypatch.setenv("WORLD_SIZE", "1")
    printed(capsys, "run", *flags, "--limit", "1")


def test_predictions_alone_have_their_contexts(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, "run", *write_module(tmp_path, small, monkeypatch), "--limit", "2", "--predict_only")
    (path,) = (tmp_path / "out").rglob("samples_*.jsonl")
    docs = [json.loads(line)["doc"] for line in path.read_text("utf-8").splitlines()]
    assert [len(doc["passages"]) for doc in docs] == [1, 1]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_where_it_was(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, asked = write_module(tmp_path, small, monkeypatch), tmp_path / "asked.txt"
    slow = {**os.environ, "SLOWLY": "0.2", "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        [sys.executable, "-m", "mrag_eval.cli", "run", *flags],
        env=slow, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while time.monotonic() < end and (not asked.exists() or len(asked.read_text("utf-8").splitlines()) < 5):
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    before = asked.read_text("utf-8").splitlines()
    assert 5 <= len(before) < len(KNOWN)
    printed(capsys, "run", *flags)
    after = asked.read_text("utf-8").splitlines()[len(before) :]
    # only the one that was under way is asked a second time
    assert {*after} & {*before} <= {before[-1]}
    assert {*before, *after} == {*KNOWN}
    (file,) = read_results([tmp_path / "out"])
    assert file.leaves["small"].scores.failures == {}


def test_an_endpoint_by_its_address_and_paths(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def reply(body: dict[str, Any], attempt: int) -> Answer:
        found = topical(body["question"], body["language"])
        return Answer(body={"output": {"text": found["answer"]}, "docs": found["contexts"]})

    server = ModelServer(reply)
    key = "planted-key-77aa88bb99cc"
    (tmp_path / "service.yaml").write_text(f"model: service\nheader: {{Authorization: Bearer {key}}}\n", "utf-8")
    where = f"system={tmp_path / 'service.yaml'},url={server.url},answer=output.text,contexts=docs,num_concurrent=4"
    flags = ["--model", "rag", "--model_args", where, "--tasks", "small", "--include_path", str(small)]
    with closing(server):
        printed(capsys, "run", *flags, "--log_samples", "--output_path", str(tmp_path / "out"))
    (file,) = read_results([tmp_path / "out"])
    assert file.model == "service"
    assert {headers["Authorization"] for _, headers, _ in server.requests} == {f"Bearer {key}"}
    assert not any(key in path.read_text("utf-8") for path in (tmp_path / "out").rglob("*.json*"))
    assert file.leaves["small"].metrics["shown@k"].value == 1.0
    record = file.measurement("small")
    assert record is not None
    assert record.subject["code"] == "unknown"
    (checked,) = verify([tmp_path / "out"], small)
    assert checked.of("fault") == []
