"""Tables 1, 7 and 9 of RAG in multilingual settings from planted replies, through the stock command.

Ten questions in English, French, Korean and Russian about ten bridges. Every reply is planted: right for the first n
questions, and a text without any 3-gram of the answers for the others, so that a recall is n of ten. Long replies are
in a language that fastText's model knows well.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mrag_eval.metrics import char_ngram_recall
from mrag_eval.retrievers import build_index, read_jsonl
from tests.programs import Programs
from tests.worlds.mkqa import answer, question, write_all
from tests.worlds.model_server import Answer, ModelServer, asked, said

pytestmark = pytest.mark.slow

LANGUAGES = ("en", "fr", "ko", "ru")
# Setting of Table 1 -> number of right replies in English, French, Korean and Russian.
TABLE_1: Mapping[str, tuple[int, ...]] = {
    "norag": (1, 2, 3, 4),
    "en_only": (5, 6, 7, 8),
    "qlang": (0, 9, 8, 7),
    "qlang_plus_en": (0, 4, 5, 6),
    "": (9, 1, 10, 0),
}
# The prompt of Tables 6 and 7, named entities in the user language.
TABLE_7: Mapping[str, tuple[int, ...]] = {"norag": (0, 2, 1, 3), "en_only": (0, 7, 6, 5), "oracle": (0, 10, 9, 8)}
# Table 9, no retrieval, reply short in the same language: replies of more than twenty characters in the question's
# language; three of the others are in English and long, the rest too short to be counted.
IN_LANGUAGE = {"fr": 6, "ko": 3, "ru": 0}
SENTENCES = {
    "fr": "Je ne connais malheureusement pas la réponse à cette question.",
    "ko": "안타깝게도 저는 이 질문에 대한 정확한 답을 알지 못합니다.",
    "ru": "К сожалению, я не знаю точного ответа на этот вопрос.",
    "en": "Unfortunately we do not know the exact answer to this question.",
}
WRONG = "0"


class Planted:
    """The script of the server: the reply to each question in the run at hand."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}

    def right(self, counts: Mapping[str, int]) -> None:
        self.replies = {
            question(n, code): answer(n, code) if n < counts[code] else WRONG for code in counts for n in range(10)
        }

    def __call__(self, body: dict[str, Any], _: int) -> Answer:
        return said(self.replies[asked(body).rpartition("Question: ")[2].strip()])


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory, programs: Programs) -> Iterator[list[dict[str, str]]]:
    folder = write_all(tmp_path_factory.mktemp("mrag"))
    build_index(read_jsonl(folder / "pages.jsonl"), folder / "index", kind="bm25", chunker="paragraphs")
    planted = Planted()
    server = ModelServer(planted)
    env = {**os.environ, "MRAG_CACHE": str(folder / "cache"), "OPENAI_API_KEY": "none"}

    def command(*words: str) -> str:
        done = subprocess.run([programs / "mrag-eval", *words], capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def evaluate(setting: str, languages: tuple[str, ...], system: str) -> None:
        tasks = ["_".join(part for part in ("mkqa", setting, code) if part) for code in languages]
        data = {"path": str(folder / "mkqa.jsonl"), "kilt": str(folder)}
        if setting == "oracle":
            data["paragraphs"] = str(folder)
        retrieval = {"corpus": str(folder / "index"), "rerank": None}
        blocks = {"data": data, "retrieval": retrieval, "prompt": {"system": system, "max_tokens": 100_000}}
        command(
            *("run", "--model", "local-chat-completions", "--model_args", f"model=planted,base_url={server.url}"),
            *("--apply_chat_template", "--tasks", ",".join(tasks), "--metadata", json.dumps(blocks)),
            *("--log_samples", "--output_path", str(folder / "out")),
        )

    try:
        for setting, counts in TABLE_1.items():
            own = LANGUAGES[1:] if setting.startswith("qlang") else LANGUAGES
            planted.right(dict(zip(LANGUAGES, counts, strict=True)))
            evaluate(setting, own, "short_in_ul_ul")
        for setting, counts in TABLE_7.items():
            planted.right(dict(zip(LANGUAGES, counts, strict=True)))
            evaluate(setting, LANGUAGES[1:], "short_in_ul_ne_ul")
        planted.replies = {
            question(n, code): SENTENCES[code] if n < own else SENTENCES["en"] if n < own + 3 else WRONG
            for code, own in IN_LANGUAGE.items()
            for n in range(10)
        }
        evaluate("norag", LANGUAGES[1:], "short_same_language_en")
        printed = command("report", str(folder / "out"), "--layout", "mrag", "--format", "csv")
        yield list(csv.DictReader(io.StringIO(printed)))
    finally:
        server.close()


def ours(lines: list[dict[str, str]], table: str, condition: str) -> dict[str, str]:
    """Return our figures of a condition: column -> the figure as printed."""
    return {
        line["column"]: line["value"]
        for line in lines
        if line["table"] == table and line["row"].startswith(f"{condition} / ") and line["from"].startswith("this run")
        # the retriever is not the paper's, which the row says; runs with another prompt are shown beneath
        if line["value"] and "prompt.system" not in line["from"]
    }


@pytest.mark.parametrize(("name", "place"), [("English", 0), ("French", 1), ("Korean", 2), ("Russian", 3)])
def test_table_1(lines: list[dict[str, str]], name: str, place: int) -> None:
    """n right replies of ten have all 3-grams of their answers, the others none: n x 10."""
    counts = {
        column: numbers[place]
        for column, numbers in zip(
            ("No retrieval", "English", "UL", "English + UL", "All"), TABLE_1.values(), strict=True
        )
        if not (name == "English" and "UL" in column)
    }
    found = {column: float(value) for column, value in ours(lines, "1 (MKQA)", name).items()}
    assert found == {column: 10.0 * n for column, n in counts.items()}


def test_table_3() -> None:
    """Of sof ofy fya kov ova val ale lev evs vsk ska kay aya, the reply holds all but ofy fya kay aya: 9 of 13."""
    assert char_ngram_recall("sofia kovalevskaia", ["sofya kovalevskaya"]) == pytest.approx(9 / 13)


def test_table_7(lines: list[dict[str, str]]) -> None:
    """Recall of pages: the Latin name of a bridge, in English and French questions, finds its English page; a name in
    another script finds none. The oracle's paragraphs are on the pages: 100. English has Table 1's prompt and replies.
    """
    expected: dict[str, dict[str, float]] = {
        "No retrieval": {"recall ko": 10, "recall fr": 20, "recall ru": 30, "recall en": 10},
        "Dense (BGE-m3)": {"R@5 ko": 0, "R@5 fr": 100, "R@5 ru": 0, "R@5 en": 100}
        | {"recall ko": 60, "recall fr": 70, "recall ru": 50, "recall en": 50},
        "Oracle": {"R@5 ko": 100, "R@5 fr": 100, "R@5 ru": 100, "recall ko": 90, "recall fr": 100, "recall ru": 80},
    }
    for condition, cells in expected.items():
        assert {column: float(value) for column, value in ours(lines, "7", condition).items()} == cells, condition


def test_table_9(lines: list[dict[str, str]]) -> None:
    """Replies of one character are not counted. French 6 of 9, Korean 3 of 6, Russian 0 of 3."""
    found = ours(lines, "9", "No retrieval, Reply short in same lang (EN)")
    assert [float(found[f"CLR {code}"]) for code in ("fr", "ko", "ru")] == [66.7, 50.0, 0.0]
