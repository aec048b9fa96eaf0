"""``mrag-eval controls`` as a user calls it: numbers by hand, languages, the cache, and one line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.datasets import _registry
from mrag_eval.retrieval import TaskRows
from tests.worlds.small import BASE, write_task

QUESTIONS: list[dict[str, Any]] = [
    {"id": "k1", "query": "한국의 수도는 어디입니까?", "lang": "ko", "answers": ["서울"], "relevant_ids": ["p1"]},
    {
        "id": "k2",
        "query": "거북선을 만든 사람은 누구입니까?",
        "lang": "ko",
        "answers": ["이순신"],
        "relevant_ids": ["p5"],
    },
    {"id": "e1", "query": "What is the capital of France?", "lang": "en", "answers": ["Paris"], "relevant_ids": ["p2"]},
    {"id": "e2", "query": "Where does ham come from here?", "lang": "en", "answers": ["Parma"], "relevant_ids": ["p3"]},
]
DOCUMENTS = [
    {"id": "p1", "lang": "ko", "text": "서울은 대한민국의 수도이며 가장 큰 도시이다."},
    {"id": "p2", "lang": "en", "text": "Yes. Paris, on the river Seine, is the capital of France."},
    {"id": "p3", "lang": "en", "text": "Ham from Parma ripens for more than a year in the hills."},
    {"id": "p4", "lang": "en", "text": "Nothing of interest stands here."},
    {"id": "p5", "lang": "ko", "text": "거북선은 조선의 장군 이순신이 만든 배이다."},
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the tasks ``planted`` (searched by BM25) and ``bare`` (no references), and return their folder."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "questions.jsonl", QUESTIONS)
    write(tmp_path / "corpus.jsonl", DOCUMENTS)
    write(tmp_path / "bare.jsonl", ({key: row[key] for key in ("id", "query", "lang")} for row in QUESTIONS))
    data = {"benchmark": "jsonl", "path": str(tmp_path / "questions.jsonl"), "corpus": str(tmp_path / "corpus.jsonl")}
    metrics = ["char3gram_recall", "match", "correct_language", "hit@1", "mrr@2", "shown@k"]
    retrieval = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(tmp_path, "planted", **{**BASE, "metrics": metrics}, data=data, retrieval=retrieval)
    bare = {"benchmark": "jsonl", "path": str(tmp_path / "bare.jsonl")}
    write_task(tmp_path, "bare", **{**BASE, "metrics": ["match"]}, data=bare, retrieval={"mode": "no_ir"})
    return tmp_path


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")


@pytest.fixture
def controls(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["controls", *arguments, "--include_path", str(folder)])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def values(shown: str, metric: str, language: str) -> dict[str, float | None]:
    found = json.loads(shown)["planted"]["controls"][metric][language]["found"]
    return {name: one["value"] for name, one in found.items()}


def test_numbers_by_hand(controls: Run) -> None:
    code, shown, _ = controls("planted", "--json")
    assert code == 0
    # 서울입니다 holds no 3-gram of 서울, 이순신입니다 the one of 이순신; the two answers share none
    assert values(shown, "char3gram_recall", "ko") == {"sentence": 0.5, "bare": 1.0, "other": 0.0, "english": None}
    # of par, ari, ris Parma has one
    english = values(shown, "char3gram_recall", "en")
    assert english["other"] == pytest.approx(1 / 3)
    assert json.loads(shown)["planted"]["marked"]["char3gram_recall"] == {
        "ko": "first reference in a sentence scores 50.0",
        "en": "another row's answer scores 33.3",
    }
    assert values(shown, "correct_language", "ko")["question"] == 1.0
    # a sentence finds the passage that it is from; of five passages one is relevant
    assert values(shown, "hit@1", "ko") == {"passage": 1.0, "held": 1.0, "random": pytest.approx(1 / 5)}
    # at the first place it counts 1, at the second a half
    assert values(shown, "mrr@2", "en") == {"passage": 1.0, "held": 1.0, "random": pytest.approx((1 + 1 / 2) / 5)}
    # two of five are shown
    assert values(shown, "shown@k", "en")["random"] == pytest.approx(2 / 5)


def test_the_table_says_what_is_marked_and_who_wrote_the_sentences(controls: Run) -> None:
    code, shown, _ = controls("planted", "--language", "ko")
    assert code == 0
    assert "### Controls of answers" in shown
    assert "### Controls of the search" in shown
    assert "| en " not in shown
    # lines end where the terminal does
    shown = " ".join(shown.split())
    assert "- no model, planted, char3gram_recall, marked: ko: first reference in a sentence scores 50.0" in shown
    assert "- sentences of ko: written by a language model, checked by no speaker" in shown


def test_a_second_call_searches_nothing(controls: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = controls("planted", "--json")
    assert first[0] == 0

    def refuse(*_: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr(TaskRows, "retrieved", refuse)
    assert controls("planted", "--json")[:2] == first[:2]


def test_another_reference_is_another_key(controls: Run, folder: Path) -> None:
    controls("planted", "--json")
    write(
        folder / "questions.jsonl",
        [{**row, "answers": ["세종대왕"]} if row["id"] == "k1" else row for row in QUESTIONS],
    )
    _registry._load.cache_clear()  # a process reads a file once
    assert values(controls("planted", "--json")[1], "char3gram_recall", "ko")["sentence"] == 1.0


@pytest.mark.parametrize(("arguments", "line"), [
    (["bare"], "mrag-eval: task bare: no row has what a control needs: a reference, choices or relevant ids"),
    (["planted", "--language", "de"], "mrag-eval: task planted: no question in 'de'"),
    (["plantd"], "mrag-eval: no task 'plantd'; did you mean 'planted'?"),
    (["planted", "--judge"], "mrag-eval: task planted: no metric is judged, so that no judge would be asked"),
])  # fmt: skip
def test_bad_input_is_one_line_with_the_next_step(controls: Run, arguments: list[str], line: str) -> None:
    code, shown, said = controls(*arguments)
    assert (code, shown) == (2, "")
    assert line in said
    assert "Traceback" not in said
