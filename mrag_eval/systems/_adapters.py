"""Systems by what they can do: each kind is called with a question and its language. No framework is imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mrag_eval.platform import ConfigError
from mrag_eval.systems._parts import QUESTIONS

# Takes a question and its language (BCP 47); returns what the system does, or an awaitable of it.
Ask = Callable[[str, str], Any]
_LANGUAGES = ("language", "lang")
_KINDS = "a function, or an object with ask(question, language), invoke (LangChain), query (LlamaIndex), run (Haystack)"


def ask_with(system: Any, key: str | None = None) -> Ask:
    """Return how a system is asked.

    Args:
        system: a function, or an object of one of the kinds that are known by their methods.
        key: where a LangChain Runnable takes the question; by default as its schema says, else the question itself.

    Raises:
        ConfigError: for an object of no known kind.
    """
    for method, adapter in _ADAPTERS.items():
        if callable(getattr(system, method, None)) and not isinstance(system, type):
            return adapter(system, key)
    if callable(system):
        return _function(system)
    raise ConfigError(f"a {type(system).__name__} is no system that can be asked", f"pass {_KINDS}")


def _function(function: Callable[..., Any]) -> Ask:
    """Call a function with the question, and with the language if it has a parameter for it or takes two."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return lambda question, language: function(question)
    named = next((name for name in _LANGUAGES if name in parameters), None)
    if named is not None:
        return lambda question, language: function(question, **{named: language})
    needed = [p for p in parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, _PLACED)]
    return (lambda question, language: function(question, language)) if len(needed) > 1 else lambda q, _: function(q)


_PLACED = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _runnable(chain: Any, key: str | None) -> Ask:
    """Call a Runnable of LangChain; a message that it returns is the chat completion that it was made from."""
    known = chain.get_input_jsonschema().get("properties") or {} if hasattr(chain, "get_input_jsonschema") else {}
    place = key or next((name for name in ("input", *QUESTIONS) if name in known), None)

    def ask(question: str, language: str) -> Any:
        told = {name: language for name in _LANGUAGES if name in known}
        try:
            return _message(chain.invoke(question if place is None else {place: question, **told}))
        except (TypeError, KeyError, AttributeError) as error:
            if place is not None:
                raise
            hint = "if the chain takes a dictionary, name the question's key: input=KEY"
            raise TypeError(f"{type(error).__name__}: {error}; {hint}") from error

    return ask


def _message(reply: Any) -> Any:
    """Return a message as the chat completion it was made from, its content if nothing is told; else the reply."""
    content, told = getattr(reply, "content", reply), getattr(reply, "response_metadata", None)
    if not told:
        return content
    refusal = (getattr(reply, "additional_kwargs", None) or {}).get("refusal")
    finish = next((told[key] for key in ("finish_reason", "stop_reason") if told.get(key)), "stop")
    usage = getattr(reply, "usage_metadata", None)
    return {"choices": [{"message": {"content": content, "refusal": refusal}, "finish_reason": finish}], "usage": usage}


def _engine(engine: Any, _: str | None) -> Ask:
    """Call a query engine of LlamaIndex."""

    def ask(question: str, language: str) -> Any:
        reply = engine.query(question)
        return {"response": str(reply), "source_nodes": list(reply.source_nodes)}

    return ask


def _pipeline(pipeline: Any, _: str | None) -> Ask:
    """Run a pipeline of Haystack: the question goes to every open input that is named for it, or is a required text."""

    def ask(question: str, language: str) -> Any:
        told = {component: _inputs(sockets, question, language) for component, sockets in pipeline.inputs().items()}
        # what a component passes on is not returned otherwise, and the documents are passed on
        return pipeline.run({name: values for name, values in told.items() if values}, set(pipeline.graph.nodes))

    return ask


def _inputs(sockets: dict[str, Any], question: str, language: str) -> dict[str, str]:
    asked = {
        name: question
        for name, socket in sockets.items()
        if name in QUESTIONS or (socket["is_mandatory"] and socket["type"] is str)
    }
    return asked | {name: language for name in _LANGUAGES if name in sockets}


_ADAPTERS: dict[str, Callable[[Any, str | None], Ask]] = {
    "ask": lambda system, _: _function(system.ask),
    "invoke": _runnable,
    "query": _engine,
    "run": _pipeline,
}
