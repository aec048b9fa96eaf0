"""Templates of requests: every place is known, and a body that does not hold the question is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mrag_eval.config import Grounded, Retriever, system_spec, validated
from mrag_eval.platform import ConfigError, Template, address_fault

UNKNOWN = ("frage", "questions", "Question", "QUERY", "passages", "context", "prompt", "вопрос", "input", "code")
HTTP = {"url": "http://localhost:8000/ask"}


def _system(text: str) -> Template:
    return system_spec({**HTTP, "request": {"a": [{"b": text}]}}).body


def _retriever(text: str) -> Template:
    return validated(Retriever, {**HTTP, "body": {"a": [{"b": text}]}}, "retriever").request


def _grounded(text: str) -> Template:
    block = validated(Grounded, {"model": "m", "template": text}, "grounded")
    return Template.of(block.template, ("question", "passage"))


# What users write a template into: how it is read, and places that it knows.
TEMPLATES: Mapping[str, tuple[Callable[[str], Template], str, tuple[str, ...]]] = {
    "system": (_system, "{question}", ("query", "question", "language")),
    "retriever": (_retriever, "{query}", ("query", "question", "lang", "k", "languages", "language")),
    "grounded": (_grounded, "{question} {passage}", ("question", "query")),
}


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("place", UNKNOWN)
def test_an_unknown_place_is_refused_with_those_that_are_known(kind: str, place: str) -> None:
    read, whole, known = TEMPLATES[kind]
    for text in (f"{{{place}}}", f"{whole} {{{place}}}", f"{whole}{{{{x}}}}{{{place}}}"):
        with pytest.raises(ConfigError) as refused:
            read(text)
        assert f"{{{place}}}" in refused.value.message
        assert any(f"{{{name}}}" in refused.value.message for name in known), refused.value.message
        assert "\n" not in refused.value.message
    # the same name is text in doubled braces, and nothing else than letters is a place
    for text in (f"{{{{{place}}}}}", f"{{ {place} }}", f"{{{place}:1}}", f"{{{place}_1}}", "{}", '{"a": {"b": 1}}'):
        assert read(f"{whole} {text}").places == read(whole).places


@pytest.mark.parametrize("kind", TEMPLATES)
def test_every_known_place_is_taken(kind: str) -> None:
    read, whole, known = TEMPLATES[kind]
    for name in known:
        read(f"{whole} {{{name}}}")


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_body_without_what_is_asked_is_refused(kind: str) -> None:
    read, _, known = TEMPLATES[kind]
    for text in ("", "a fixed text", "{{question}} {{query}} {{passage}}", *(f"{{{name}}}" for name in known[2:])):
        with pytest.raises(ConfigError):
            read(text)


def test_places_are_filled_once() -> None:
    """A question that contains the name of a place is a text."""
    body = {
        "q": "{query}",
        "text": "<{question}|{k}|{lang}>",
        "n": "{k}",
        "in": "{languages}",
        "raw": "{{k}} { k } {a1}",
    }
    made = Template.of(body, ("query", "k", "lang", "languages"), "query")
    asked = {"question": "{k} {lang}? {{k}}", "k": 3, "lang": "de", "languages": ["de", "en"]}
    assert made.filled(asked) == {
        "q": "{k} {lang}? {{k}}",
        "text": "<{k} {lang}? {{k}}|3|de>",
        "n": 3,
        "in": ["de", "en"],
        "raw": "{k} { k } {a1}",
    }


def test_a_place_in_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="write the place into a value"):
        Template.of({"{question}": "{question}"}, ("question",))


@pytest.mark.parametrize("place", ["question", "query", "lang", *UNKNOWN])
def test_nothing_is_filled_into_addresses_and_headers(place: str) -> None:
    for url in (f"http://h/{{{place}}}", f"http://h/ask?q={{{place}}}"):
        fault = address_fault(url)
        assert f"{{{place}}}" in str(fault)
        with pytest.raises(ConfigError, match="goes into"):
            system_spec({"url": url})
    with pytest.raises(ConfigError, match="'request'") as refused:
        system_spec({**HTTP, "header": {"X-Question": f"a {{{place}}}"}})
    assert f"{{{place}}}" in refused.value.message


def test_settings_are_recorded_as_they_were_written() -> None:
    request: dict[str, Any] = {"q": "{query}", "k": 5}
    assert system_spec({**HTTP, "request": request}).model_dump(mode="json")["request"] == request
