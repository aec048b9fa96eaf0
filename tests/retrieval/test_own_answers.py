"""The answers of a retriever of the user's: kept until a run has ended well, asked for several at once, checked."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrag_eval
from mrag_eval.config import Retrieval, Retriever, validated
from mrag_eval.core import Searched
from mrag_eval.models import write_table
from mrag_eval.platform import remove_ended
from mrag_eval.retrieval._own_index import OwnIndex, _Asked, _taken_by
from mrag_eval.retrieval._plan import RowPlan
from tests.retrieval.test_own_retriever import SEARCH, task_with
from tests.task.test_hook import build, knows_everything, run
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.small import LANGS, TOPICS, ScriptedLM

LOGGED = (
    SEARCH.replace(
        "def search(query, lang, k):\n",
        "def search(query, lang, k, languages=None):\n"
        "    with open(pathlib.Path(__file__).parent / 'asked.jsonl', 'a', encoding='utf-8') as log:\n"
        "        log.write(json.dumps([query, lang, k, languages], ensure_ascii=False) + '\\n')\n"
        "    fault(query)\n",
    ).replace("for p in CORPUS]", "for p in CORPUS if not languages or p['lang'] in languages]")
    + "def fault(query):\n    pass\n"
)


def asked(folder: Path) -> list[Any]:
    """Return what the function was asked since the last time."""
    log = folder / "asked.jsonl"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def evaluated(path: Path, out: Path) -> Any:
    return mrag_eval.evaluate(ScriptedLM(knows_everything), str(path), output=out, apply_chat_template=False)


def searched(block: dict[str, Any], *texts: str, use_cache: bool = True, **more: Any) -> list[Searched]:
    """Return what a retriever finds for the texts."""
    languages = more.pop("languages", None)
    retrieval = validated(Retrieval, {"mode": "all", "k": 2, "retriever": block, **more}, "retrieval")
    plans = [RowPlan(text, languages, langs=("en",)) for text in texts]
    return OwnIndex(validated(Retriever, block, "retriever")).found(plans, retrieval, use_cache=use_cache)


# ------------------------------------------------------------------ what is kept


def test_each_query_is_asked_once_over_all_tasks_of_a_run_and_anew_by_the_next(
    tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = task_with(tasks, "!function mine.search", LOGGED)
    text = path.read_text("utf-8")
    (tasks / "qlang.yaml").write_text(text.replace("task: own", "task: qlang").replace('"all"', '"qlang"'), "utf-8")
    (tasks / "again.yaml").write_text(text.replace("task: own", "task: again"), "utf-8")
    with caplog.at_level(logging.INFO, "lm_eval"):
        run(tasks, ["own", "again", "qlang"])
    assert "a run that was interrupted" not in caplog.text
    found = asked(tasks)
    assert Counter(len(one[3] or ()) for one in found) == {0: 15, 1: 15}
    assert len({json.dumps(one) for one in found}) == 30
    remove_ended()
    run(tasks, "own")
    assert len(asked(tasks)) == 15


def test_what_failed_is_asked_again_alone_and_a_changed_function_for_all(
    tasks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = "def fault(query):\n    if (pathlib.Path(__file__).parent / 'away').exists() and 'Varn' in query:\n"
    source = LOGGED.replace("def fault(query):\n    pass\n", f"{away}        raise OSError('away')\n")
    path = task_with(tasks, "!function mine.search", source)
    (tasks / "away").touch()
    evaluated(path, tmp_path / "1")
    assert len(asked(tasks)) == 15
    (tasks / "away").unlink()
    with caplog.at_level(logging.INFO, "lm_eval"):
        evaluated(path, tmp_path / "2")
    assert "mine.search: 12 of 15 answers are those of a run that was interrupted" in caplog.text
    assert ["Varn" in one[0] for one in asked(tasks)] == [True] * 3
    # nothing is left to repeat: all of it is asked anew
    evaluated(path, tmp_path / "3")
    assert len(asked(tasks)) == 15
    (tasks / "away").touch()
    evaluated(path, tmp_path / "4")
    asked(tasks)
    (tasks / "mine.py").write_text(f"{source}\n", "utf-8")
    evaluated(path, tmp_path / "5")
    assert len(asked(tasks)) == 15


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tasks: Path, tmp_path: Path) -> None:
    here = "pathlib.Path(__file__).parent"
    hangs = (
        "def fault(query):\n"
        "    import time\n"
        f"    if len(list(open({here} / 'asked.jsonl'))) > 7:\n"
        f"        while ({here} / 'hang').exists():\n            time.sleep(0.01)\n"
    )
    task_with(tasks, "!function mine.search", LOGGED.replace("def fault(query):\n    pass\n", hangs))
    (tasks / "hang").touch()
    command = [sys.executable, "-m", "mrag_eval.cli", "retrieve", "--tasks", "own", "--include_path", str(tasks)]
    command += ["-o", str(tmp_path / "rows")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = tasks / "asked.jsonl"
    while not log.exists() or len(log.read_text("utf-8").splitlines()) < 8:
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    (tasks / "hang").unlink()
    before = asked(tasks)
    subprocess.run(command, check=True, capture_output=True)
    after = asked(tasks)
    # the eighth was under way
    assert (len(before), len(after)) == (8, 8)
    assert len({json.dumps(one) for one in before + after}) == 15
    # a finished retrieval leaves nothing behind
    subprocess.run([*command[:-1], str(tmp_path / "again")], check=True, capture_output=True)
    assert len(asked(tasks)) == 15


def test_answers_of_a_service_are_kept_by_name_address_body_and_what_is_asked(
    start: Callable[..., ModelServer],
) -> None:
    server = start(lambda body, attempt: Answer(body=[{"id": "a", "text": "x", "lang": "en", "score": 1}]))
    block = {"url": server.url, "body": {"q": "{query}", "in": "{languages}"}}
    changes = [{}, {"name": "other"}, {"body": {"q": "{query}", "in": "{languages}", "v": 2}}, {"language": "de"}]
    for change in changes:
        for _ in range(2):
            searched({**block, **change}, "one", "two", "one")
    assert len(server.requests) == 2 * len(changes)
    searched(block, "one", k=3)
    searched(block, "one", languages=("en",))
    searched(block, "one", use_cache=False)
    assert len(server.requests) == 2 * len(changes) + 3


def test_the_same_code_in_another_folder_is_another_retriever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("data.txt").write_text(name, "utf-8")
        Path("mine.py").write_text(
            "TEXT = open('data.txt').read()\n"
            "def search(query, lang, k):\n    return [{'id': TEXT, 'text': TEXT, 'lang': 'en'}]\n",
            "utf-8",
        )
        (found,) = searched({"function": "mine:search"}, "q")
        assert [place.id for place in found.ranking] == [name]


def test_answers_of_a_function_that_may_be_made_several_times_are_not_kept() -> None:
    def made(text: str) -> Callable[..., Any]:
        def search(query: str, lang: str, k: int) -> list[Any]:
            return [{"id": text, "text": text, "lang": "en"}]

        return search

    for text in ("one", "two"):
        (found,) = searched({"function": made(text)}, "q")
        assert [place.id for place in found.ranking] == [text]


def test_a_text_that_changes_under_its_id_fails_its_row_and_nothing_is_kept(start: Callable[..., ModelServer]) -> None:
    text = "before"
    server = start(lambda body, attempt: Answer(body=[{"id": "a", "text": text, "lang": "en"}]))
    block = {"url": server.url, "max_in_flight": 1}
    searched(block, "one")
    text = "after"
    first, second = searched(block, "one", "two")
    assert (first.failures, [failure.reason for failure in second.failures]) == ((), ["malformed"])
    assert [found.failures for found in searched(block, "one", "two")] == [(), ()]
    assert len(server.requests) == 4


def test_scores_and_texts_are_the_same_from_the_cache(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fields(found: list[Searched]) -> list[Any]:
        return [[(place.id, place.doc_id, place.lang, place.score) for place in one.ranking] for one in found]

    module = tasks / "numbers.py"
    module.write_text(
        "import numpy as np\n"
        "def search(query, lang, k):\n"
        "    return [{'id': 7, 'text': 'lone \\ud800', 'lang': 'zh-cn', 'score': np.float32(0.1), 'other': object()},\n"
        "            {'text': 'no id', 'lang': 'en', 'score': '0.05', 'title': None, 'doc_id': 3}]\n",
        "utf-8",
    )
    monkeypatch.chdir(tasks)
    first, again = (searched({"function": "numbers:search"}, "q") for _ in range(2))
    assert fields(first) == fields(again)
    assert [place.score for place in first[0].ranking] == [float(np.float32(0.1)), 0.05]


# ------------------------------------------------------------------ how it is asked


@pytest.mark.parametrize("form", ["async", "threads"])
def test_queries_are_under_way_together(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "    barrier.wait()\n" if form == "threads" else "    await together()\n"
    (tmp_path / "slow.py").write_text(
        "import asyncio, threading\n"
        # the first question is asked alone
        "alone, seen = [1], []\n"
        "barrier = threading.Barrier(3, timeout=30)\n"
        "async def together():\n"
        "    seen.append(1)\n"
        "    wave = -(-len(seen) // 3) * 3\n"
        "    while len(seen) < wave:\n        await asyncio.sleep(0.001)\n"
        f"{'async ' if form == 'async' else ''}def search(query, lang, k):\n"
        "    if alone:\n        alone.pop()\n"
        f"    else:\n    {body}"
        "    return [{'id': query, 'text': query, 'lang': 'en'}]\n",
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    texts = [str(n) for n in range(7)]
    found = searched({"function": "slow:search", "max_in_flight": 3, "timeout": 30}, *texts)
    assert [one.ranking[0].id for one in found] == texts


@pytest.mark.parametrize("threads", [1, 2])
def test_a_function_is_called_in_the_thread_of_the_run_unless_several_may_be(threads: int) -> None:
    called = []

    def search(query: str, lang: str, k: int) -> list[Any]:
        called.append(threading.current_thread() is threading.main_thread())
        return []

    searched({"function": search, "max_in_flight": threads}, "a", "b")
    assert called == [threads == 1] * 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", ["", "async "])
def test_faults_have_the_same_reason_however_it_is_called(
    form: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text(
        f"{form}def search(query, lang, k):\n"
        "    if query == 'exit':\n        raise SystemExit(3)\n"
        "    if query == 'none':\n        return None\n"
        "    if query == 'raise':\n        raise ValueError('no\\nindex')\n"
        "    return []\n",
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    found = searched({"function": "bad:search", "max_in_flight": threads}, "exit", "none", "raise", "well")
    reasons = [[failure.reason for failure in one.failures] for one in found]
    assert reasons == [["SystemExit"], ["TypeError"], ["ValueError"], []]
    assert found[2].failures[0].detail == "no index"


def test_a_call_that_takes_too_long_is_a_fault() -> None:
    async def search(query: str, lang: str, k: int) -> list[Any]:
        await asyncio.sleep(60)
        return []

    (found,) = searched({"function": search, "timeout": 0.05}, "q")
    assert [failure.reason for failure in found.failures] == ["timeout"]


# ------------------------------------------------------------------ languages


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("query, lang, k", None),
        ("query, language, k", None),
        ("query, lang, k, **more", None),
        ("query, lang, k, languages", "languages"),
        ("query, lang, k, languages=None", "languages"),
        ("query, lang, k, *, language", "language"),
        ("query, language, k, languages=()", "languages"),
        ("*asked, languages=None", "languages"),
    ],
)
def test_a_function_says_by_its_parameters_whether_it_takes_languages(parameters: str, told: str | None) -> None:
    made: dict[str, Any] = {}
    exec(f"def search({parameters}): pass", made)
    assert _taken_by(made["search"]) == told


@pytest.mark.parametrize(
    ("languages", "body"),
    [
        (None, {"in": None, "one": None, "text": ":", "lang": "en"}),
        (("de",), {"in": ["de"], "one": "de", "text": "de:de", "lang": "en"}),
        (("de", "zh"), {"in": ["de", "zh"], "one": "de", "text": "de,zh:de", "lang": "en"}),
    ],
)
def test_a_body_is_filled_with_languages(languages: tuple[str, ...] | None, body: dict[str, Any]) -> None:
    template = {"in": "{languages}", "one": "{language}", "text": "{languages}:{language}", "lang": "{lang}"}
    block = Retriever(url="http://localhost:9", body={"q": "{query}", **template})
    assert block.request.filled(_Asked("q", "en", 5, languages).places) == {"q": "q", **body}


def test_a_passage_in_a_language_not_asked_for_is_a_fault() -> None:
    def search(query: str, lang: str, k: int, languages: Any = None) -> list[Any]:
        return [{"id": query, "text": "x", "lang": query}]

    found = searched({"function": search}, "zh-Hans", "fr", "de", languages=("de", "zh"))
    assert [one.failures for one in (found[0], found[2])] == [(), ()]
    (failure,) = found[1].failures
    assert (failure.reason, failure.detail) == (
        "malformed",
        "query 'fr': passage 'fr' is in fr, and de, zh was asked for",
    )


def test_scores_are_compared_across_languages_only_where_the_block_says_so() -> None:
    scores = {"de": (0.3, 0.2), "en": (0.9, 0.8)}

    def search(query: str, lang: str, k: int, language: Any = None) -> list[Any]:
        named = ((f"{language}{n}", score) for n, score in enumerate(scores[language]))
        return [{"id": name, "text": name, "lang": language, "score": score} for name, score in named]

    def first(**block: Any) -> list[str]:
        (found,) = searched({"function": search}, "q", languages=("de", "en"), **block)
        return [place.id for place in found.ranking]

    assert first(merge="score") == ["en0", "en1"]
    assert set(first()) == {"de0", "en0"}


def test_a_fault_in_one_language_fails_the_row(tasks: Path) -> None:
    source = LOGGED.replace("    fault(query)\n", "    assert languages != ['ru'], 'no index'\n")
    task_with(tasks, "!function mine.search", source, mode="balanced", pool=list(LANGS))
    row = build(tasks, "own").retrieved_rows(["q-ferry-en"])
    assert len(asked(tasks)) == len(LANGS)
    assert row[0]["passages"] == []
    results = run(tasks, "own")
    assert results["configs"]["own"]["scores"]["failures"] == {"search": {"AssertionError": 15}}


def test_the_language_of_a_translated_query_is_that_of_the_text(tasks: Path) -> None:
    table = tasks / "table.jsonl"
    parallel = [{lang: versions[lang][1] for lang in LANGS} for versions in TOPICS.values()]
    write_table(parallel, table)
    translator = {"backend": "table", "path": str(table), "strict": True}
    for mode, more in (("trag", {}), ("translation", {"pool": list(LANGS)})):
        task_with(tasks, "!function mine.search", LOGGED, mode=mode, translator=translator, **more)
        build(tasks, "own").retrieved_rows(["q-ferry-de", "q-bakery-zh"])
        spoken = {question: lang for versions in TOPICS.values() for lang, (_, question, _) in versions.items()}
        found = asked(tasks)
        assert {one[1] for one in found} == ({"en"} if mode == "trag" else set(LANGS))
        assert all(spoken[query] == lang for query, lang, _, _ in found)
