"""RAG systems over our transport: over HTTP and in this process, kept, limited, and failing row by row."""

from __future__ import annotations

import asyncio
import json
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import system_spec
from mrag_eval.models import ASKED, RagSystem, system_arguments, task_settings
from mrag_eval.platform import ConfigError, remove_ended, run_ended
from tests.worlds.model_server import Answer, ModelServer, said

Start = Callable[..., ModelServer]
QUESTIONS = [("When was Varn built?", "en"), ("Wann?", "de"), ("¿Cuándo?", "es")]


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def echo(question: str, language: str) -> tuple[str, list[str]]:
    return f"{language}: {question}", [f"context of {question}"]


def system_of(system: Any = None, /, **arguments: Any) -> RagSystem:
    made = RagSystem(system_spec({"max_retries": 0, **arguments}), system)
    made._first_backoff = 0.01
    return made


@pytest.mark.parametrize("part", ["question", "query", "input"])
def test_a_reply_that_names_another_question_of_the_run_is_no_reply(start: Start, part: str) -> None:
    """As that of another request is, where a connection is shared; one that was rewritten names none."""
    other = {question: QUESTIONS[n - 1][0] for n, (question, _) in enumerate(QUESTIONS)}
    lost, rewritten, *_ = other

    def script(body: dict[str, Any], attempt: int) -> Answer:
        said = body["question"]
        named = other[said] if said == lost else "when it was built" if said == rewritten else f" {said} "
        return Answer(body={part: named, "answer": f"to {said}", "contexts": ["It was built in 1841."]})

    first, *others = system_of(url=start(script).url).ask(QUESTIONS)
    assert (first.text, first.reason) == ("", "shape")
    assert f"the reply is to another question: {other[lost]}" in str(first.error)
    assert [reply.text for reply in others] == [f"to {question}" for question, _ in QUESTIONS[1:]]


def test_a_function_is_asked_once_a_question_and_language_and_kept() -> None:
    asked = []

    def system(question: str, language: str) -> tuple[str, list[str]]:
        asked.append(question)
        return echo(question, language)

    replies = system_of(system, model="s").ask([*QUESTIONS, ("Wann?", "nl")])
    assert [one.text for one in replies][1::2] == ["de: Wann?", "nl: Wann?"]
    assert replies[0].contexts == [{"text": "context of When was Varn built?"}]
    again = system_of(system, model="s")
    assert [(one.text, one.contexts) for one in again.ask(QUESTIONS)] == [(r.text, r.contexts) for r in replies[:3]]
    assert (len(asked), again.ledger.cached) == (4, 3)
    # once the run has ended, the next one asks anew
    run_ended(Path(again._cache.path), ASKED)
    remove_ended()
    system_of(system, model="s").ask(QUESTIONS)
    assert len(asked) == 7


@pytest.mark.parametrize("change", [{"model": "t"}, {"answer": "0"}, {"input": "q"}])
def test_what_decides_a_reply_decides_what_is_kept(change: dict[str, Any]) -> None:
    system_of(echo, model="s").ask(QUESTIONS)
    other = system_of(lambda question, language: ["x"], **{"model": "s", "answer": "0", **change})
    assert other.ask(QUESTIONS)[0].cached is False


def test_other_code_is_another_system(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    for number, text in enumerate(("def ask(q):\n    return 'a'\n", "def ask(q):\n    return 'b'\n")):
        file.write_text(text, "utf-8")
        (reply, *_) = system_of(system=f"{file}:ask").ask(QUESTIONS)
        assert (reply.text, reply.cached) == ("ab"[number], False)
        assert system_of(system=f"{file}:ask").ask(QUESTIONS)[0].cached


def test_other_code_beside_it_is_another_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that it loads from its folder, and below, are part of it; those that are installed are not."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "parts_of_it").mkdir()
    (tmp_path / "own.py").write_text(
        "import yaml, words_of_it, parts_of_it.inner\ndef ask(q):\n    return 'a'\n", "utf-8"
    )
    (tmp_path / "beside.py").write_text("", "utf-8")
    for name in ("words_of_it.py", "parts_of_it/inner.py"):
        (tmp_path / name).write_text("", "utf-8")
    place = f"{tmp_path}/own.py:ask"
    system = system_of(system=place)
    assert system.code is not None
    assert {*system.code} == {"own.py", "words_of_it.py", "parts_of_it/inner.py"}
    system.ask(QUESTIONS)
    for name in system.code:
        assert system_of(system=place).ask(QUESTIONS)[0].cached
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write("\n# changed\n")
        other = system_of(system=place)
        assert other.code != system.code
        assert not other.ask(QUESTIONS)[0].cached
    (tmp_path / "beside.py").write_text("x = 1\n", "utf-8")
    assert system_of(system=place).ask(QUESTIONS)[0].cached


def test_packages_installed_below_its_folder_are_no_part_of_a_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment often lies beside the code that uses it: what is loaded from there has a version of its own."""
    there = tmp_path / "venv" / "site-packages"
    there.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(there), *sys.path])
    usual = sysconfig.get_path
    installed = {"purelib": str(there), "platlib": str(there)}
    monkeypatch.setattr(sysconfig, "get_path", lambda name: installed.get(name) or usual(name))
    (there / "bought_words.py").write_text("import more_words\n", "utf-8")
    (there / "more_words.py").write_text("", "utf-8")
    (tmp_path / "near_words.py").write_text("", "utf-8")
    text = "import bought_words, near_words\ndef ask(q):\n    import more_words\n    return 'a'\n"
    (tmp_path / "with_venv.py").write_text(text, "utf-8")
    system = system_of(system=f"{tmp_path}/with_venv.py:ask")
    assert system.code is not None
    assert {*system.code} == {"with_venv.py", "near_words.py"}


def test_what_a_system_imports_while_it_is_asked_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its functions, and in those of what it imports, by name or from beside; nothing is loaded for that."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "late_parts").mkdir()
    texts = {
        "late.py": "def ask(q):\n    import late_words, json, late_parts.inner as own\n    return own.said(q)\n",
        "late_words.py": "import mrag_eval, yaml\n",
        "late_parts/__init__.py": "",
        "late_parts/inner.py": "def said(q):\n    from .deep import A\n    from .. import late_alone\n    return A\n",
        "late_parts/deep.py": "A = 'a'\n",
        "late_alone.py": "not Python\n",
        "late_unused.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    system = system_of(system=f"{tmp_path}/late.py:ask")
    assert system.code is not None
    assert {*system.code} == {*texts} - {"late_unused.py"}
    assert not any(name.startswith("late_parts") for name in sys.modules)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("importlib.import_module('by_name.inner')", ["by_name/__init__.py", "by_name/inner.py"]),
        ("import_module('.named_alone', __package__)", ["named_alone.py"]),
        ("__import__('named_alone')", ["named_alone.py"]),
        ("importlib.import_module('json')", []),
        ("importlib.import_module(name)", None),
        ("importlib.import_module(f'{q}.inner')", None),
        ("__import__(name=q)", None),
        ("runpy.run_path('named_alone.py')", None),
        ("importlib.util.spec_from_file_location('n', 'named_alone.py')", None),
        ("exec(open('named_alone.py').read())", None),
    ],
)
def test_what_a_system_imports_by_a_call_is_part_of_it_or_said_to_be_unknown(
    call: str, found: list[str] | None, tmp_path: Path
) -> None:
    for name in ("by_name/__init__.py", "by_name/inner.py", "named_alone.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "calls.py").write_text(f"def ask(q):\n    return {call}\n", "utf-8")
    code = system_of(system=f"{tmp_path}/calls.py:ask").code or {}
    assert {*code} == {"calls.py", *(found or [])}
    assert code["calls.py"].startswith("not fully known: ") is (found is None)
    digest = sha256((tmp_path / "calls.py").read_bytes()).hexdigest()
    assert code["calls.py"].endswith(digest)


def test_what_was_loaded_by_a_computed_name_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "computed_part.py").write_text("A = 'a'\n", "utf-8")
    text = "import importlib\nPART = importlib.import_module('_'.join(('computed', 'part')))\n"
    (tmp_path / "computes.py").write_text(f"{text}def ask(q):\n    return PART.A\n", "utf-8")
    assert {*(system_of(system=f"{tmp_path}/computes.py:ask").code or {})} == {"computes.py", "computed_part.py"}


def test_a_file_that_cannot_be_imported_says_so_each_time(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def ask(q):\n    return q\nraise ValueError('broken here')\n", "utf-8")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"cannot be imported.*broken here"):
            system_of(system=f"{tmp_path}/broken.py:ask")


def test_a_reply_that_was_kept_by_the_one_file_is_still_found(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def ask(q):\n    return 'a'\n", "utf-8")
    system = system_of(system=f"{tmp_path}/own.py:ask")
    assert system._older_identity() == {
        **system.identity(), "code": sha256((tmp_path / "own.py").read_bytes()).hexdigest()
    }  # fmt: skip
    assert system_of(url="http://localhost:1/ask")._older_identity()["code"] is None


def test_a_coroutine_function_is_awaited_and_questions_run_together() -> None:
    together = 0

    async def system(question: str) -> str:
        nonlocal together
        together += question != "first"
        while together < 3 and question != "first":
            await asyncio.sleep(0.001)
        return question

    asked = [("first", "en"), *QUESTIONS]
    replies = system_of(system, model="s", num_concurrent=3, timeout=10).ask(asked)
    assert [one.text for one in replies] == [question for question, _ in asked]


def test_functions_run_together_in_threads_and_one_at_a_time_by_default() -> None:
    barrier = threading.Barrier(3, timeout=10)

    def together(question: str) -> str:
        if question != "first":
            barrier.wait()
        return question

    asked = [("first", "en"), *QUESTIONS]
    assert not any(one.error for one in system_of(together, model="s", num_concurrent=3).ask(asked))
    now = []

    def alone(question: str) -> str:
        now.append(question)
        time.sleep(0.005)
        together = len(now)
        now.pop()
        return str(together)

    assert [one.text for one in system_of(alone, model="t").ask(QUESTIONS)] == ["1", "1", "1"]


def raises(question: str) -> str:
    raise ValueError(f"no index\nfor {question}")


def exits(question: str) -> str:
    raise SystemExit(3)


def no_more(question: str) -> str:
    return next(iter(()))


async def exits_later(question: str) -> str:
    raise SystemExit(4)


@pytest.mark.parametrize(
    ("system", "error"),
    [
        (no_more, "raised: StopIteration:"),
        (exits_later, "raised: SystemExit: 4"),
        (raises, "raised: ValueError: no index for When was Varn built?"),
        (exits, "raised: SystemExit: 3"),
        (lambda question: time.sleep(5), "timeout: no answer within 0.5 s"),
        (lambda question: None, "shape: the reply is neither a text nor has keys, found NoneType"),
        (lambda question: {"said": 1}, "shape: the reply has no part that is known; its keys: said"),
    ],
)
def test_what_a_system_does_instead_of_replying_is_a_failure_of_its_row(system: Any, error: str) -> None:
    found = system_of(system, model="s", timeout=0.5).ask(QUESTIONS[:1])
    assert [one.error for one in found] == [error]


def test_what_is_raised_is_tried_again_and_failures_are_not_kept() -> None:
    asked = []

    def system(question: str, language: str) -> tuple[str, list[str]]:
        asked.append(question)
        if len(asked) < 2 or language == "es":
            raise OSError(f"away {language}")
        return echo(question, language)

    made = system_of(system, model="s", max_retries=1)
    assert [one.error for one in made.ask(QUESTIONS)] == [None, None, "raised: OSError: away es"]
    assert (made.ledger.retries, made.ledger.failures) == (2, {"raised": 1})
    before = len(asked)
    system_of(system, model="s").ask(QUESTIONS)
    assert asked[before:] == ["¿Cuándo?"]


def test_an_empty_answer_is_an_outcome_and_an_answer_without_contexts_an_answer() -> None:
    (empty, _, _) = system_of(lambda question: (" ", ["one"]), model="s").ask(QUESTIONS)
    assert (empty.error, empty.outcome, empty.contexts) == (None, "empty", [{"text": "one"}])
    (bare, *_) = system_of(lambda question: "a", model="t").ask(QUESTIONS)
    assert (bare.outcome, bare.contexts) == (None, None)


def test_no_more_questions_are_asked_than_the_budget_allows() -> None:
    replies = system_of(echo, model="s", max_calls=2).ask(QUESTIONS)
    assert [one.reason for one in replies] == [None, None, "budget"]


# ------------------------------------------------------------------ over HTTP


def test_an_endpoint_gets_the_template_and_replies_at_the_paths(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "planted-key-0123456789")
    reply = {"out": {"text": "1841"}, "docs": [{"body": "one", "nr": 1}], "usage": {"prompt_tokens": 9}}
    server = start(lambda body, n: Answer(body=reply))
    request = {"inputs": [{"q": "{question} ({language})"}], "k": 3}
    paths = {"answer": "out.text", "contexts": "docs", "contexts.text": "body", "contexts.id": "nr"}
    made = system_of(url=server.url, request=request, api_key_env="MY_KEY", header={"X-Route": "b"}, **paths)
    (first, *_) = made.ask([("Was ist {language}?", "de")])
    assert (first.text, first.contexts, first.tokens_in) == ("1841", [{"text": "one", "id": "1"}], 9)
    ((_, headers, body),) = server.requests
    assert body == {"inputs": [{"q": "Was ist {language}? (de)"}], "k": 3}
    sent = {name.lower(): value for name, value in headers.items()}
    assert (sent["authorization"], sent["x-route"]) == ("Bearer planted-key-0123456789", "b")
    assert made.host == server.url.split("/")[2]


def test_chat_completions_with_contexts_need_no_paths(start: Start) -> None:
    citations = [{"content": "The lighthouse was built in 1841.", "title": "Varn"}]
    server = start(lambda body, n: said("1841", context={"citations": citations}))
    (first, *_) = system_of(url=server.url, request="openai", model="varn").ask(QUESTIONS)
    assert (first.text, first.tokens_in, first.tokens_out) == ("1841", 11, 7)
    assert first.contexts == [{"text": citations[0]["content"], "title": "Varn"}]
    assert server.requests[0][2] == {"model": "varn", "messages": [{"role": "user", "content": QUESTIONS[0][0]}]}


def completion(text: Any, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    told = {} if finish is None else {"finish_reason": finish}
    return {"choices": [{"index": 0, **told, "message": {"role": "assistant", "content": text, **message}}]}


CITED = {"context": {"citations": [{"content": "one"}]}}
# chat completions: text, outcome, reason of a failure
COMPLETIONS: dict[str, tuple[dict[str, Any], str, str | None, str | None]] = {
    "an answer": (completion("1841"), "1841", None, None),
    "parts": (completion([{"type": "text", "text": "18"}, {"type": "text", "text": "41"}]), "1841", None, None),
    "a refusal": (completion(None, refusal="I will not", **CITED), "I will not", "refusal", None),
    "a refusing part": (completion([{"type": "refusal", "refusal": "No"}]), "No", "refusal", None),
    "a refusing end": (completion("No", "refusal"), "No", "refusal", None),
    "thinking that was cut": (completion("", "length", reasoning="hm"), "", "thinking cut", None),
    "no words": (completion(""), "", "empty", None),
    "cut at the limit": (completion("18", "length"), "18", None, None),
    "a filter": (completion(None, "content_filter"), "", None, "content_filter"),
    "another filter": (completion("18", "SAFETY"), "", None, "content_filter"),
    "broken off": (completion("18", "abort"), "", None, "broken_off"),
    "neither text nor end": (completion(None, None), "", None, "malformed"),
    "an error": ({**completion("18"), "error": {"message": "down"}}, "", None, "server"),
    "an error in its choice": ({"choices": [{"error": {"code": 429}, "message": {}}]}, "", None, "rate_limit"),
}


@pytest.mark.parametrize("place", ["endpoint", "function", "path", "inner path"])
@pytest.mark.parametrize("name", COMPLETIONS)
def test_a_chat_completion_is_read_as_that_of_a_model_is(start: Start, place: str, name: str) -> None:
    body, text, outcome, reason = COMPLETIONS[name]
    if place == "endpoint":
        server = start(lambda asked, n: Answer(body=body))
        made = system_of(url=server.url, request="openai", model="varn")
    elif place == "function":
        made = system_of(lambda question: body, model="s")
    elif place == "path":
        made = system_of(lambda question: {"raw": body}, model="s", answer="raw.choices.0.message.content")
    else:
        message = body["choices"][0]["message"]
        if isinstance(words := message.get("content"), str) and words:
            message = {**message, "content": json.dumps({"said": words, "sure": 1})}
        body = {**body, "choices": [{**body["choices"][0], "message": message}]}
        if outcome == "refusal" and isinstance(words, str):
            text = words
        made = system_of(lambda question: body, model="s", answer="choices.0.message.content.said")
    (found,) = made.ask(QUESTIONS[:1])
    assert (found.text, found.outcome, found.reason) == (text, outcome, reason)
    if CITED["context"] in body["choices"][0]["message"].values() and place in ("endpoint", "function"):
        assert found.contexts == [{"text": "one"}]


@pytest.mark.parametrize("place", ["endpoint", "function"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"answer": "", "contexts": [], "error": "TimeoutError: no answer in 30 s"}, "server"),
        ({"answer": "Varn", "contexts": [], "error": {"code": "content_filter"}}, "content_filter"),
        ({"detail": "no index"}, "server"),
        ({"answer": "Varn", "contexts": [], "error": None, "message": "found in 3 ms"}, None),
    ],
)
def test_an_error_is_a_failure_wherever_the_system_runs(
    start: Start, place: str, body: dict[str, Any], reason: str | None
) -> None:
    server = start(lambda asked, n: Answer(body=body))
    paths = {"answer": "answer", "contexts": "contexts"}
    made = system_of(url=server.url, **paths) if place == "endpoint" else system_of(lambda q: body, model="s", **paths)
    (found,) = made.ask(QUESTIONS[:1])
    assert (found.reason, found.text) == (reason, "" if reason else "Varn")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(body={"text": "a"}), "shape: the reply has nothing at 'answer'; its keys: text"),
        (Answer(500, "down"), "server: HTTP 500, down"),
        (Answer(401, "who"), "auth: HTTP 401, who"),
        (Answer(body="<html>"), "malformed: "),
    ],
)
def test_a_bad_response_is_a_failure_of_its_row(start: Start, answer: Answer, error: str) -> None:
    server = start(lambda body, n: answer)
    (found,) = system_of(url=server.url, answer="answer").ask(QUESTIONS[:1])
    assert found.error is not None
    assert found.error.startswith(error)


# ------------------------------------------------------------------ arguments


def test_arguments_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("url: http://localhost:8000/ask\nanswer: out\ncontexts: docs\ncontexts.text: body\n", "utf-8")
    found = system_arguments({"system": str(file), "timeout": 5})
    keys = {"answer": "out", "contexts": "docs", "context_keys": {"text": "body"}, "timeout": 5.0}
    assert found == {"model": "localhost:8000/ask", "url": "http://localhost:8000/ask", **keys}
    # what is recorded is valid again, and is what a program writes into JSON
    assert system_arguments(json.loads(json.dumps(found))) == found


@pytest.mark.parametrize("system", ["beside.py:ask", "beside:ask"])
def test_a_file_may_name_a_function_beside_it(tmp_path: Path, system: str) -> None:
    (tmp_path / "beside.py").write_text("def ask(question):\n    return 'from beside'\n", "utf-8")
    (tmp_path / "mine.yaml").write_text(f"system: {system}\n", "utf-8")
    (found,) = system_of(system=str(tmp_path / "mine.yaml")).ask(QUESTIONS[:1])
    assert found.text == "from beside"


@pytest.mark.parametrize(
    "line",
    [
        "system: os:system", "system: subprocess:getoutput", "system: builtins:eval", "system: os.path:join",
        "system: ../above.py:ask", "system: /above.py:ask", "system: not_there:ask", "system: [os:system]",
        "system: ask", "url: 'http://h/{env:PATH}'", "{url: 'http://h', request: {q: '{question}', k: '{env:PATH}'}}",
        "{url: 'http://h', header: {X: '{env:PATH}'}}",
    ],
)  # fmt: skip
def test_a_file_names_no_other_code_and_no_variable(tmp_path: Path, line: str) -> None:
    (tmp_path / "above.py").write_text("raise SystemExit('it ran')\n", "utf-8")
    file = tmp_path / "below" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(f"{line}\n", "utf-8")
    with pytest.raises(ConfigError) as refused:
        system_of(system=str(file))
    assert str(file) in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("arguments", "system", "said"),
    [
        ({}, None, "no system is named"),
        ({"url": "http://h/ask", "system": "m:f"}, None, "'system' cannot be combined with 'url'"),
        ({"url": "nowhere"}, None, "url: its address"),
        ({"url": "http://h/ask", "anwser": "a"}, None, "unknown key 'anwser'; did you mean 'answer'"),
        ({"system": "m:f", "request": "openai"}, None, "'request' requires 'url'"),
        ({"url": "http://h/ask", "contexts": "docs"}, None, "'contexts' requires 'answer'"),
        ({"url": "http://h/ask", "num_concurrent": 0}, None, "num_concurrent"),
        ({"url": "http://h/ask", "timeout": float("inf")}, None, "timeout: input should be a finite number"),
        ({"url": "http://h/ask", "header": {"X-A\r\nB": "c"}}, None, r"'X-A\\r\\nB' is no name of a header"),
        ({}, lambda question: "a", "a function within another has no name for the results"),
        ({}, object(), "a object has no name for the results"),
    ],
)
def test_arguments_that_name_no_system_are_refused_in_one_line(
    arguments: dict[str, Any], system: Any, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        system_arguments(arguments, system)
    assert "\n" not in caught.value.message


def test_tasks_are_told_that_the_system_retrieves() -> None:
    assert task_settings("hf", {"pretrained": "x"}) == {"pretrained": "x"}
    told = task_settings("rag", system_arguments({"url": "http://h/ask", "request": {"data": {"q": "{question}"}}}))
    assert told == {"model": "h/ask", "retrieval.mode": "system"}
