"""Consistency over languages from real runs of the tasks: XQuAD's parallel questions, MKQA's leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import tasks_folder
from mrag_eval.report import consistency
from tests.task.test_hook import run
from tests.worlds.small import ScriptedLM


def answers(folder: Path, task: str, reply: Any, data: dict[str, Any]) -> None:
    """Run a task without documents and write its samples as the harness does."""
    out = run(
        tasks_folder(),
        task,
        lm=ScriptedLM(reply),
        metadata={"data": data, "retrieval": {"mode": "no_ir"}, "metrics": ["match"]},
        limit=30,
    )
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(sample, ensure_ascii=False, default=str) for sample in out["samples"][task]]
    (folder / f"samples_{task}_2026-01-01.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    file = folder / "results_2026-01-01.json"
    content = json.loads(file.read_text("utf-8")) if file.is_file() else {"model_name": "scripted", "configs": {}}
    content["configs"][task] = {"measurement": out["configs"][task]["measurement"]}
    file.write_text(json.dumps(content, default=str), encoding="utf-8")


def test_xquad_in_every_language(test_data: Path, tmp_path: Path) -> None:
    """Of English, German and Chinese the first two agree: one pair of three, on every question."""
    data = {"path": str(test_data / "xquad"), "languages": ["de", "en", "zh"], "parallel": True}
    docs = load_benchmark({"benchmark": "xquad", **data}).docs
    assert len(docs) == len({doc.id for doc in docs}) == 3 * 1190
    assert [doc.query_lang for doc in docs[:3]] == ["de", "en", "zh"]
    assert len({doc.extra["question_id"] for doc in docs[:3]}) == 1
    assert len({doc.group_id for doc in docs}) == 240  # paragraphs are resampled, as usual
    german = load_benchmark({"benchmark": "xquad", **data, "question_language": "de"}).docs
    assert [doc.id for doc in german] == [doc.id for doc in docs[::3]]

    def reply(prompt: str) -> str:
        return "四十二" if re.search(r"[\u4e00-\u9fff]", prompt) else "forty-two"

    answers(tmp_path / "out", "xquad_rag_pooled", reply, data)
    (found,) = consistency([tmp_path / "out"])
    assert (found.languages, found.questions, found.ambiguous, found.single) == (("de", "en", "zh"), 10, 0, 0)
    assert found.answers.value == pytest.approx(1 / 3)
    assert found.correctness.value == 1.0  # all of them wrong


def test_drawn_xquad_of_several_seeds_is_tied_by_question(test_data: Path, tmp_path: Path) -> None:
    """Each seed asks a question in one language; if two seeds draw two languages, they form a pair."""
    data = {"path": str(test_data / "xquad"), "languages": ["de", "en"]}
    asked = []
    for seed in (0, 1):
        docs = load_benchmark({"benchmark": "xquad", **data, "seed": seed}).docs
        asked.append([doc.query_lang for doc in docs[:30]])
        answers(tmp_path / str(seed), "xquad_rag_pooled", lambda _: "1", {**data, "seed": seed})
    pairs = sum(one != other for one, other in zip(*asked, strict=True))
    (found,) = consistency([tmp_path])
    assert (found.questions, found.ambiguous) == (pairs, 30 - pairs)
    assert found.answers.value == 1.0


def test_mkqa_leaves_are_tied_by_example(test_data: Path, tmp_path: Path) -> None:
    data = {"path": str(test_data / "mkqa_sample" / "test_mkqa.jsonl.gz"), "subset": "all"}
    for code in ("en", "de", "ko"):
        answers(tmp_path, f"mkqa_norag_{code}", lambda _, code=code: "?" if code == "ko" else "11.0", data)
    (found,) = consistency([tmp_path])
    # three of the six examples have an answer
    assert (found.languages, found.questions, found.ambiguous) == (("de", "en", "ko"), 3, 0)
    assert found.answers.value == pytest.approx(1 / 3)
    assert found.correctness.value is not None
