"""Hostile JSON from models, caches and files: an unreadable reply, a damaged entry, or an error of one line."""

from __future__ import annotations

import ast
import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.datasets._jsonl import JsonlBlock, load
from mrag_eval.judging import Case, verdict_rubric
from mrag_eval.models import AuxModel, parse_json
from mrag_eval.platform import CorpusError, DataError, JsonFault, MragError, Store, json_value
from mrag_eval.report import read_samples
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.files._results import read_result_file
from mrag_eval.report.labels._labelled import read_labelled
from mrag_eval.retrieval.agents._critic import read_critique, read_sufficiency
from mrag_eval.retrievers import read_corpus
from mrag_eval.retrievers.shards._manifest import parse_manifest
from tests.attacks.parsers import PARSERS
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer, said

DEEP = "[" * 600 + "]" * 600
DEEPEST = '{"a":' * 100_000 + "1" + "}" * 100_000
DIGITS = "1" * 6_000
# Texts that Python's reader accepts, or refuses with an error other than its own.
HOSTILE = [DEEP, DEEPEST, DIGITS, "NaN", "-Infinity", "1e999", '{"a": 1, "a": 2}', "[" * 100_000, ""]
CASE = Case("1", "Which?", "en", ("Paris",), "Paris")


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: f"{text[:12]!r}-{len(text)}")
def test_the_reader_has_one_error(text: str) -> None:
    with pytest.raises(JsonFault) as caught:
        json_value(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 100


def test_the_reader_takes_what_is_json() -> None:
    nested = "[" * 100 + "]" * 100
    for text in (nested, '{"a": 1, "a": 1}', "-1.5e300", '"\\ud83d"', "\ufeff".join(("", "[1]")).encode()):
        json_value(text)
    with pytest.raises(JsonFault, match="nested more than 100 levels"):
        json_value(f"[{nested}]")
    # results of the harness may hold NaN
    assert json_value("[NaN]", lax="all")[0] != json_value("[1]")[0]
    with pytest.raises(JsonFault, match="line 2, column 1"):
        json_value("[1,\n}")


@pytest.mark.parametrize("value", HOSTILE[:6], ids=lambda text: f"{text[:12]!r}-{len(text)}")
def test_a_reply_with_hostile_json_is_unreadable(value: str) -> None:
    verdict = f'{{"justification": {value}, "answer": "correct"}}'
    parsed = verdict_rubric().request(CASE)[1](verdict)
    assert parsed.value is None
    assert parsed.error
    for reader, key in ((read_critique, "scores"), (read_sufficiency, "enough_documents")):
        parsed_by_critic: Any = reader(f'{{"{key}": {value}}}')
        assert parsed_by_critic.value is None
        assert parsed_by_critic.error
    assert parse_json(f'{{"a": {value}}}').value is None


@pytest.mark.parametrize("parser", PARSERS)
def test_no_parser_raises(parser: str) -> None:
    keys = ("answer", "justification", "scores", "enough_documents", "language_names", "rewritten_query", "type")
    for value in (DEEP, '{"a":' * 600 + "1" + "}" * 600, "1" * 5_000, *HOSTILE[3:7], "[" * 3_000, '"\\ud83d"'):
        body = ", ".join(f'"{key}": {value}' for key in keys)
        for parse in PARSERS[parser]:
            for reply in (f"{{{body}}}", f"<verdict>{{{body}}}</verdict>", f"<answer>{value}</answer>"):
                parse(reply)


def test_a_nested_reply_is_an_answer_and_stays_one_in_the_cache(
    start: Callable[..., ModelServer], model_of: Callable[..., AuxModel], store: Store
) -> None:
    """The reply as a whole is text: reading it twice, once from the cache, ends no run."""
    server = start(lambda body, attempt: said(f'{{"justification": {DEEP}, "answer": "correct"}}'))
    for _ in range(2):
        (reply,) = model_of(server, store).seat().generate(ask("q"))
        assert reply.error is None
        assert verdict_rubric().request(CASE)[1](reply.text).error
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", HOSTILE[:3] + HOSTILE[7:8], ids=lambda text: f"{text[:12]!r}-{len(text)}")
def test_a_body_of_hostile_json_is_a_failed_call(
    start: Callable[..., ModelServer], model_of: Callable[..., AuxModel], text: str
) -> None:
    server = start(lambda body, attempt: Answer(body=f'{{"choices": {text}}}'))
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert reply.reason == "malformed"


def read_question(path: Path) -> None:
    load(JsonlBlock(benchmark="jsonl", path=path))


def read_document(path: Path) -> None:
    list(read_corpus(path))


def read_manifest(path: Path) -> None:
    parse_manifest(path, path.read_bytes())


def read_samples_of(path: Path) -> None:
    read_samples(path)


def read_results_of(path: Path) -> None:
    read_result_file(path)


def read_labels_of(path: Path) -> None:
    labels = path.with_name("labels_x.json")
    labels.write_bytes(path.read_bytes())
    read_labelled([path.parent])


def read_baseline_of(path: Path) -> None:
    read_runs_or_baseline([path])


@pytest.mark.parametrize(
    "read",
    [
        read_question,
        read_document,
        read_manifest,
        read_samples_of,
        read_results_of,
        read_labels_of,
        read_baseline_of,
    ],
)
@pytest.mark.parametrize("value", [DEEP, DEEPEST, DIGITS], ids=["600 lists", "100,000 objects", "6,000 digits"])
def test_a_file_of_hostile_json_is_an_error_of_one_line(
    read: Callable[[Path], None], value: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_text(f'{{"id": {value}, "query": "q", "lang": "en", "text": "t"}}\n', encoding="utf-8")
    with pytest.raises(MragError) as caught:
        read(path)
    assert isinstance(caught.value, DataError | CorpusError)
    assert "\n" not in caught.value.message
    assert tmp_path.name in caught.value.message
    assert len(caught.value.message) < 400


# ------------------------------------------------------------------------------------------------------ the caches


def test_damaged_entries_of_a_cache_are_found_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.sqlite"
    Store(path).put_many({"good": {"text": "a"}, "shape": ["b"]})
    with sqlite3.connect(path) as db:
        for key, text in (("cut", '{"text": "a'), ("deep", DEEP), ("blob", b"\xff\x00"), ("null", "null")):
            db.execute("INSERT INTO entries VALUES (?, ?)", (key, text))
    store = Store(path)
    keys = ["good", "shape", "cut", "deep", "blob", "null"]
    with caplog.at_level(logging.WARNING):
        assert store.get_many(keys, lambda value: isinstance(value, dict)) == {"good": {"text": "a"}}
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: damaged entries left out: 5; they are found again and replaced"
    ]
    store.put_many({key: {"text": "new"} for key in keys})
    assert len(store.get_many(keys, lambda value: isinstance(value, dict))) == len(keys)


@pytest.mark.parametrize(
    "entry", ["[]", "7", '"text"', "{}", '{"text": 1}', '{"text": "a", "other": 1}', '{"text": "a", "tokens_in": "x"}']
)
def test_a_reply_of_the_wrong_shape_in_the_cache_is_asked_for_again(
    start: Callable[..., ModelServer], model_of: Callable[..., AuxModel], store: Store, entry: str
) -> None:
    server = start()
    model_of(server, store).seat().generate(ask("q"))
    with sqlite3.connect(store.path) as db:
        assert db.execute("UPDATE entries SET value = ?", (entry,)).rowcount == 1
    (reply,) = model_of(server, store).seat().generate(ask("q"))
    assert (reply.text, reply.cached, len(server.requests)) == ("re: q", False, 2)
    (reply,) = model_of(server, store).seat().generate(ask("q"))
    assert (reply.text, reply.cached) == ("re: q", True)


# ------------------------------------------------------------------------------------------------------- one reader

# Modules that read text which this package wrote a moment ago, or that only it can write.
OWN_TEXT = {
    "cli/_score.py",
    "building/qa/_qa_build.py",
    "building/steps/_steps.py",
    "building/xrag/_articles.py",
    "platform/_json_text.py",
    "platform/_run_files.py",
    "datasets/_kilt.py",
    "datasets/_registry.py",
    "datasets/_xlcost_corpus.py",
    "_front/_logs.py",
    "models/_local.py",
    "report/_rerun.py",
    "report/findings/_record.py",
    "report/tables/_policies.py",
    "report/verification/_task_here.py",
    "retrieval/_corpora.py",
    "retrieval/ahead/_process.py",
    "retrievers/milvus/_milvus.py",
    "retrievers/shards/_bm25_shard.py",
}


def test_json_from_outside_has_one_reader() -> None:
    room = Path(mrag_eval.__file__).parent
    found = set()
    for folder in (room, room / "metrics", room / "retrievers"):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and ast.unparse(node) in ("json.loads", "json.load"):
                    found.add(str(path.relative_to(room)))
    assert found <= OWN_TEXT, "read text from outside with mrag_eval.platform.json_value or json_from"
    assert json.loads("1") == 1
