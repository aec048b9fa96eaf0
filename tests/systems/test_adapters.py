"""Systems by their methods: called with the question, and with its language where they take it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrag_eval.platform import ConfigError, own_object
from mrag_eval.systems import ask_with, reply_of


class Protocol:
    def ask(self, question: str, language: str) -> str:
        return f"{question} {language}"


class Runnable:
    """What LangChain's have: a schema of what they take, and ``invoke``."""

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def get_input_jsonschema(self) -> dict[str, Any]:
        return {"properties": {key: {} for key in self.keys}} if self.keys else {"type": "string"}

    def invoke(self, given: Any) -> Any:
        return str(given)


def swapped(one: str, other: str) -> str:
    return f"{one} {other}"


def with_settings(question: str, k: int = 3) -> str:
    return f"{question} {k}"


def by_keyword(question: str, *, lang: str = "?") -> str:
    return f"{question} {lang}"


@pytest.mark.parametrize(
    ("system", "said"),
    [
        (Protocol(), "q de"),
        (swapped, "q de"),
        (with_settings, "q 3"),
        (by_keyword, "q de"),
        (lambda question: question, "q"),
        (partial(swapped, "x"), "x q"),
        (str.upper, "Q"),
        (Runnable(), "q"),
        (Runnable("question", "k"), "{'question': 'q'}"),
        (Runnable("input", "language"), "{'input': 'q', 'language': 'de'}"),
    ],
)
def test_each_kind_gets_the_question_and_the_language_if_it_takes_one(system: Any, said: str) -> None:
    assert ask_with(system)("q", "de") == said


def test_the_key_of_a_chain_without_a_schema_can_be_named() -> None:
    assert ask_with(Runnable(), "frage")("q", "de") == "{'frage': 'q'}"


def test_a_message_of_a_chain_is_its_content() -> None:
    chain = SimpleNamespace(invoke=lambda given: SimpleNamespace(content=f"re: {given}"))
    assert ask_with(chain)("q", "de") == "re: q"


def test_a_message_that_tells_of_its_end_is_a_chat_completion() -> None:
    told = {"response_metadata": {"finish_reason": "content_filter"}, "usage_metadata": {"input_tokens": 3}}
    said = SimpleNamespace(content="", additional_kwargs={"refusal": "No."}, **told)
    found = reply_of(ask_with(SimpleNamespace(invoke=lambda given: said))("q", "de"))
    assert found.usage == {"input_tokens": 3}
    assert found.completion is not None
    assert found.completion["choices"] == [
        {"index": 0, "message": {"content": "", "refusal": "No."}, "finish_reason": "content_filter"}
    ]


class Pipeline:
    """What Haystack's have: the open inputs of its components, and ``run``, which returns what it is asked for."""

    graph = SimpleNamespace(nodes=["embedder", "retriever", "llm"])

    def inputs(self) -> dict[str, Any]:
        return {
            "embedder": {"text": {"type": str, "is_mandatory": True}},
            "retriever": {
                "top_k": {"type": int, "is_mandatory": False},
                "filters": {"type": dict, "is_mandatory": True},
            },
            "llm": {"question": {"type": Any, "is_mandatory": False}, "language": {"type": str, "is_mandatory": False}},
        }

    def run(self, data: dict[str, Any], include_outputs_from: set[str]) -> dict[str, Any]:
        assert include_outputs_from == {"embedder", "retriever", "llm"}
        self.data = data
        return {"retriever": {"documents": [{"content": "one", "meta": {"lang": "en"}}]}, "llm": {"replies": ["a"]}}


def test_a_pipeline_gets_the_question_at_its_open_inputs_and_shows_its_documents() -> None:
    pipeline = Pipeline()
    found = reply_of(ask_with(pipeline)("q", "de"))
    assert pipeline.data == {"embedder": {"text": "q"}, "llm": {"question": "q", "language": "de"}}
    assert (found.answer, found.contexts) == ("a", [{"text": "one", "lang": "en"}])


@pytest.mark.parametrize("system", [5, object(), {"answer": "a"}])
def test_what_cannot_be_asked_is_refused(system: Any) -> None:
    with pytest.raises(ConfigError, match="is no system that can be asked"):
        ask_with(system)


def test_a_system_is_found_in_a_module_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_system_of_test.py").write_text("def ask(question):\n    return 'a'\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for place in ("own_system_of_test:ask", f"{tmp_path}/own_system_of_test.py:ask"):
        system, file = own_object(place, "here")
        assert system("q") == "a"
        assert file == tmp_path / "own_system_of_test.py"
    (tmp_path / "broken_system_of_test.py").write_text("raise OSError('no\\nindex')\n", "utf-8")
    for place, said in {
        "own_system_of_test": "names no function in a module",
        "own_system_of_test:asks": "has no 'asks'; did you mean 'ask'",
        "no_such_system_of_test:ask": "cannot be imported .ModuleNotFoundError",
        "nowhere.py:ask": "cannot be imported .FileNotFoundError: .*nowhere.py",
        "broken_system_of_test:ask": "cannot be imported .OSError: no index",
    }.items():
        with pytest.raises(ConfigError, match=f"here: .*{said}") as caught:
            own_object(place, "here")
        assert "\n" not in caught.value.message


def test_a_chain_that_wants_a_dictionary_is_told_of_the_option() -> None:
    chain = SimpleNamespace(invoke=lambda given: given["question"])
    with pytest.raises(TypeError, match="if the chain takes a dictionary, name the question's key: input=KEY"):
        ask_with(chain)("Who?", "en")
    assert ask_with(chain, "question")("Who?", "en") == "Who?"
