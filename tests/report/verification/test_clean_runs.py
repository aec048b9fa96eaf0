"""Runs that nobody tampered with: whatever their settings, verification finds no fault and compares all of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from lm_eval.models.api_models import JsonChatStr

from mrag_eval.core import Failure, ModelReply
from mrag_eval.datasets._registry import _load
from mrag_eval.platform import DataError, tasks_folder
from mrag_eval.report import compare, score_table, verify
from mrag_eval.retrieval import open_folder, retrieve_into
from mrag_eval.scoring import read_by_words
from tests.task.test_hook import build
from tests.worlds.finished_runs import RUNS, run
from tests.worlds.forged_runs import Run
from tests.worlds.small import BASE, TOPICS, Hub, ScriptedLM, write_task, write_world

ANSWERS = {question: answer for versions in TOPICS.values() for _, question, answer in versions.values()}


def knows(prompt: Any) -> str:
    return next((answer for question, answer in ANSWERS.items() if question in str(prompt)), "?")


class Chat(ScriptedLM):
    """A local model with a chat template and a context of ``max_length`` words."""

    tokenizer_name = ""
    max_length = 4000

    def tok_encode(self, text: str) -> list[str]:
        return text.split()

    def chat_template(self, chat_template: Any = False) -> str:
        return "{{ turns }}"

    def apply_chat_template(self, turns: Sequence[dict[str, str]], add_generation_prompt: bool = True) -> Any:
        return "".join(f"[{turn['role']}]\n{turn['content']}\n" for turn in turns) + "[assistant]\n"


class Cramped(Chat):
    max_length = 100


class WithoutSystem(Chat):
    def apply_chat_template(self, turns: Sequence[dict[str, str]], add_generation_prompt: bool = True) -> Any:
        if any(turn["role"] == "system" for turn in turns):
            raise ValueError("this template has no system role")
        return super().apply_chat_template(turns)


class BehindApi(ScriptedLM):
    tokenizer_name = ""

    def chat_template(self, chat_template: Any = False) -> str:
        return ""

    def apply_chat_template(self, turns: Sequence[dict[str, str]], add_generation_prompt: bool = True) -> Any:
        return JsonChatStr(json.dumps(turns, ensure_ascii=False))


ALL = {"mode": "all", "k": 2, "kind": "bm25"}
# name: (keys of the task, flags of the harness, class of the model)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], type[ScriptedLM]]] = {
    **{
        mode: ({"retrieval": {**ALL, "mode": mode, "k": 5}}, {}, ScriptedLM)
        for mode in ("qlang", "qlang+en", "rel_langs", "oracle", "own", "gold_lang", "balanced", "balanced_weighted")
    },
    "no search": ({"retrieval": {"mode": "no_ir"}, "metrics": ["match"]}, {}, ScriptedLM),
    "shuffled": ({"retrieval": {**ALL, "k": 4, "depth": 8, "shuffle": 3}}, {}, ScriptedLM),
    "withheld": (
        {
            "retrieval": {**ALL, "depth": 8, "unanswerable": 0.5},
            "metrics": ["abstention_error", "abstention_hallucination", "shown@k"],
        },
        {},
        ScriptedLM,
    ),
    "merged by rank": ({"retrieval": {**ALL, "merge": "rrf"}}, {}, ScriptedLM),
    "--samples": ({}, {"samples": {"task": [11, 3, 7]}}, ScriptedLM),
    "--limit as a share": ({}, {"limit": 0.4}, ScriptedLM),
    "a system instruction": ({}, {"system_instruction": "Be brief."}, ScriptedLM),
    "a system prompt": ({"prompt": {"system": "You are\nkind."}}, {}, ScriptedLM),
    "answers in a tag": (
        {"prompt": {"template": "articles"}, "metrics": ["match", "answer_tag", "declined"]}, {}, ScriptedLM
    ),
    "labels by n-grams": ({"judge": {"relevance": {"labels": "proxy"}}}, {}, ScriptedLM),
    "shortened": ({"prompt": {"max_tokens": 125}}, {}, ScriptedLM),
    "without errors": ({}, {"bootstrap_iters": 0}, ScriptedLM),
    "a filter": ({"filter_list": [{"name": "own", "filter": [{"function": "take_first"}]}]}, {}, ScriptedLM),
    "a prefix": ({"gen_prefix": "Answer:"}, {}, ScriptedLM),
    "an alias": ({"task_alias": "Other"}, {}, ScriptedLM),
    "a chat template": ({}, {"apply_chat_template": True}, Chat),
    "a short context": ({}, {"apply_chat_template": True}, Cramped),
    "no system role": ({}, {"apply_chat_template": True}, WithoutSystem),
    "an API": ({}, {"apply_chat_template": True}, BehindApi),
}  # fmt: skip


def world_with(folder: Path, keys: dict[str, Any]) -> Path:
    world = write_world(folder)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "task", **{**BASE, "retrieval": ALL, **keys}, data=data)
    return world


@pytest.mark.parametrize("name", CASES)
def test_a_run_has_no_fault(name: str, tmp_path: Path) -> None:
    keys, flags, kind = CASES[name]
    world = run(world_with(tmp_path, keys), ["task"], str, {}, include=tmp_path, lm=kind(knows), **flags)
    (found,) = verify([world / "out"], world)
    assert not found.of("fault")
    # what came of a run, and stands in its label, is told of a sound one as well
    assert all(one.text.endswith("its label says so in place of 'this run'") for one in found.of("note"))


@pytest.mark.parametrize(
    ("permitted", "others"),
    [
        ("corpus.content_hash", ("red", "blue")),
        ("retrieval.k", (1, 3)),
        ("retrieval.depth", (4, 6)),
        ("retrieval.shuffle", (3, 4)),
    ],
)
def test_rows_retrieved_under_other_settings_are_no_fault_and_another_measurement(
    permitted: str, others: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of two runs agree, and their rows come from two folders that were retrieved under neither."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    world, runs = world_with(tmp_path, {"retrieval": {**ALL, "depth": 5}}), []
    corpus = (world / "corpus.jsonl").read_text("utf-8")

    def written(text: str) -> None:
        (world / "corpus.jsonl").write_text(text, "utf-8")
        _load.cache_clear()

    for value in others:
        found = str(tmp_path / f"rows {value}")
        metadata = {permitted: value} if permitted.startswith("retrieval") else {}
        if not metadata:
            written(corpus.replace('"text": "', f'"text": "A {value} note. '))
        task = build(world, "task", metadata)
        retrieve_into(open_folder(Path(found)), "task", task.supply, task.rows_to_run())
        written(corpus)
        taken = {"retrieval": {"run_folder": found, "run_may_differ": [permitted]}}
        runs.append(run(tmp_path / str(value), ["task"], knows, taken, include=world) / "out")
        (one,) = verify([runs[-1]], world)
        assert not one.of("fault")
        assert [note.text.split(";")[0] for note in one.of("note")] == [
            f"rows retrieved under other settings, as permitted: {permitted}"
        ]
    with pytest.raises(DataError, match=rf"the runs differ in retrieved\.differs\.{permitted}"):
        compare([runs[0]], [runs[1]])
    assert len({line.labels for line in score_table(runs).rows}) == 2
    assert compare([runs[0]], [runs[0]]).differs == {}


def test_words_that_are_not_here_are_open_and_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's file changed the words of the run, and the sentence of its controls, and is gone."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "en.yaml").write_text('words: {refuses: "?, 1841"}\nsentence: "Lo: {answer}!"\n', "utf-8")
    (tmp_path / "mrag.yaml").write_text(f"languages: {tmp_path / 'own'}\n", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    words = ["abstention_error", "abstention_hallucination", "refused", "yes_no"]
    assert all(map(read_by_words, words))
    world = run(world_with(tmp_path, {"metrics": ["match", *words]}), ["task"], knows, {}, include=tmp_path)
    (there,) = verify([world / "out"], world)
    assert there.of("fault") == there.of("note") == []
    monkeypatch.delenv("MRAG_CONFIG")
    (gone,) = verify([world / "out"], world)
    assert not gone.of("fault")
    assert [note.text.partition(":")[0] for note in gone.of("open")] == [", ".join(sorted(words))]


def test_a_run_of_two_ranks_has_no_fault(tmp_path: Path) -> None:
    """Thirteen rows over two ranks: one of them is asked twice."""
    world, hub = world_with(tmp_path, {}), Hub(2)

    def work(rank: int) -> None:
        run(world, ["task"], str, {}, include=world, lm=ScriptedLM(knows, rank, hub), limit=13)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (found,) = verify([world / "out"], world)
    assert not found.of("fault")
    # what came of a run, and stands in its label, is told of a sound one as well
    assert all(one.text.endswith("its label says so in place of 'this run'") for one in found.of("note"))
    assert found.rows == 13


def test_failed_calls_and_empty_replies_are_no_faults(tmp_path: Path) -> None:
    def reply(prompt: str) -> str:
        if "Olm" in prompt:
            return ModelReply.failed(Failure("answer", "some-model", "timeout", "nothing came"))
        return "" if "Sund" in prompt else knows(prompt)

    world = run(world_with(tmp_path, {}), ["task"], reply, {}, include=tmp_path)
    run_ = Run(world / "out", world)
    assert run_.blamed() == []
    rows = run_.samples["task"]
    assert {failure["reason"] for row in rows for failure in row["rows"].get("failures", ())} == {"timeout"}
    assert "empty" in {row["rows"].get("outcome") for row in rows}
    for row in rows:
        row["rows"].pop("outcome", None)
    assert run_.agree("task")
    assert any(line.startswith("task: outcome of ") for line in run_.blamed())


def test_a_group_of_which_a_task_has_no_value_has_no_mean(tmp_path: Path) -> None:
    """Replies in Chinese are too short for a detector, so that only one of two tasks has a value."""
    world = world_with(tmp_path, {"metrics": ["match", "correct_language"]})
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    keys = {**BASE, "metrics": ["match", "correct_language"], "retrieval": ALL}
    write_task(world, "chinese", **keys, data={**data, "language": "zh"})
    listed = [{"metric": "match"}, {"metric": "correct_language"}]
    group = {"group": "both", "task": ["task", "chinese"], "aggregate_metric_list": listed}
    (world / "both.yaml").write_text(json.dumps(group), "utf-8")
    run(world, ["both"], lambda prompt: "It was built a long time ago, in 1841." if "Varn" in prompt else "?", {},
        include=world)  # fmt: skip
    run_ = Run(world / "out", world)
    assert run_.content["results"]["both"]["correct_language,none"] == "N/A"
    assert run_.blamed() == []
    run_.content["results"]["both"]["correct_language,none"] = 1.0
    assert "both: correct_language is 1, N/A by its tasks" in run_.blamed()


@pytest.mark.parametrize("translated", ["documents", "replies", "queries"])
def test_a_run_with_translations_has_no_fault(translated: str, tmp_path: Path, test_data: Path) -> None:
    """XQuAD's parallel texts are the translator."""
    retrieval: dict[str, Any] = {"kind": "bm25", "translator": {"backend": "table"}}
    retrieval |= {"documents": {"document_translation": "en"}, "queries": {"mode": "translation"}}.get(translated, {})
    metrics = ["match", *(["match_translated"] if translated == "replies" else [])]
    data = {"path": str(test_data / "xquad"), "languages": ["de", "en"]}
    metadata = {"data": data, "retrieval": retrieval, "metrics": metrics}
    run(tmp_path, ["xquad_rag_de"], lambda prompt: "in the year 1066", metadata, limit=5)
    (found,) = verify([tmp_path / "out"], tasks_folder())
    assert not found.of("fault")
    # what came of a run, and stands in its label, is told of a sound one as well
    assert all(one.text.endswith("its label says so in place of 'this run'") for one in found.of("note"))
    assert "translations, and what they cost" in found.unchecked


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_runs_of_this_folder_have_no_fault(name: str, forged: Callable[[str], Any]) -> None:
    found = forged(name).verified()
    assert not found.of("fault")
    # what came of a run, and stands in its label, is told of a sound one as well
    assert all(one.text.endswith("its label says so in place of 'this run'") for one in found.of("note"))
