"""RAG systems that are asked as they are: over HTTP or in this process, as any model is, with every reply kept."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mrag_eval.config import RAG, Generation, ModelBudget, ModelSpec, SystemSpec, system_spec
from mrag_eval.models._lenient_json import storable
from mrag_eval.models._model import AuxModel
from mrag_eval.models._outputs import completion_reply, token_counts
from mrag_eval.models._reply import Call, Reply
from mrag_eval.models._run_model import ASKED, evaluated, replies_file
from mrag_eval.platform import (
    Calls,
    ConfigError,
    DataError,
    Endpoint,
    HttpFault,
    Transport,
    bearer,
    code_beside,
    json_body,
    marked,
    own_object,
    plain,
    refuse_error,
    shared_store,
)
from mrag_eval.systems import Ask, LogReading, ask_with, reading_of, reading_of_reply, reply_of

_HERE = "e.g. --model_args system=MODULE:NAME   or   url=http://localhost:8000/ask"


class RagSystem(AuxModel):
    """A system, asked with a question and its language; a reply has its contexts.

    Raises ConfigError for a system that cannot be asked, before any question is.
    """

    def __init__(self, spec: SystemSpec, system: Any = None) -> None:
        name, file = name_of_system(spec, system), None
        if system is None and spec.system is not None:
            system, file = own_object(spec.system, "--model_args system")
        elif inspect.isfunction(system):
            file = Path(inspect.unwrap(system).__code__.co_filename)
        elif system is not None:
            place = getattr(sys.modules.get(type(system).__module__), "__file__", None)
            file = None if place is None else Path(place)
        # answers of other code must not be taken for those of this one; of a service's, nothing is known
        self.code, self._file = code_beside(file), file
        self._system_spec = spec
        self._template = spec.body.with_variables(f"system '{name}'")
        self._asked: set[str] = set()
        self._reading: LogReading | None = reading_of_reply(spec.paths) if spec.paths else None
        self._ask_it: Ask | None = None if system is None else ask_with(system, spec.input)
        made = ModelSpec(
            model=RAG,
            budget=ModelBudget(max_calls=spec.max_calls),
            max_in_flight=spec.num_concurrent,
            timeout=spec.timeout,
            retries=spec.max_retries,
        )
        super().__init__(made, name=name, cache=shared_store(replies_file()))

    @property
    def host(self) -> str | None:
        """Return the server that is asked; None for a system in this process."""
        return None if self._system_spec.url is None else urlsplit(self._system_spec.url).netloc.rpartition("@")[2]

    def ask(self, questions: Sequence[tuple[str, str]]) -> list[Reply]:
        """Return the reply to each question, given with its language; failures are replies with an ``error``."""
        self._asked |= {question.strip() for question, _ in questions}
        return self.seat().generate([_conversation(*question) for question in questions])

    def _cached(self, keys: Iterable[str]) -> None:
        ASKED.update(keys)

    def identity(self, decoding: Generation | None = None) -> dict[str, Any]:
        """Return what decides a reply: where it is asked, how it is read, and its code."""
        ways = {"num_concurrent", "timeout", "max_retries", "max_calls", "api_key_env"}
        return {"name": self.name, "code": self.code, **marked(self._system_spec.model_dump(mode="json", exclude=ways))}

    def _older_identity(self) -> dict[str, Any]:
        # a key of the former format knew one file
        there = self._file is not None and self._file.is_file()
        return self.identity() | {"code": sha256(self._file.read_bytes()).hexdigest() if self._file and there else None}

    def _built(self) -> Any:
        with self._building:
            if self._backend is None:
                if self._ask_it is None:
                    self._backend = Transport(
                        self._endpoint(),
                        self._body,
                        lambda call, text: self._read(json_body(text), call),
                        **self._limits,
                    )
                else:
                    ask = self._ask_it
                    self._backend = Calls(self.name, lambda call: ask(*_question_of(call)), self._read, **self._limits)
            return self._backend

    def _endpoint(self) -> Endpoint:
        spec, name = self._system_spec, f"system '{self.name}'"
        return Endpoint(name, spec.url or "", {**(spec.header or {}), **bearer(spec.api_key_env, name)})

    def _body(self, call: Call) -> dict[str, Any]:
        question, language = _question_of(call)
        model = self._system_spec.model or "default"
        body: dict[str, Any] = self._template.filled({"question": question, "language": language, "model": model})
        return body

    def _read(self, value: Any, call: Call | None = None) -> Reply:
        """Return a reply; raise HttpFault for none, and for one to a call that repeats another question of the run."""
        said: Any = None
        with suppress(DataError):
            said = reading_of([value]).found(value, "question")[1] if call and isinstance(value, Mapping) else None
        if call and str(said).strip() in self._asked - {_question_of(call)[0].strip()}:
            raise HttpFault("shape", f"the reply is to another question: {said:.80}")
        try:
            found = reply_of(value, self._reading)
        except DataError as fault:
            with suppress(DataError):  # one without an end tells no error
                refuse_error(plain(value))
            raise HttpFault("shape", fault.message, again=0) from None
        refuse_error(plain(value), read=True)
        text, contexts = storable(found.answer), storable(found.contexts)
        if found.completion is not None:
            return replace(completion_reply(found.completion), contexts=contexts)
        tokens_in, tokens_out = token_counts(found.usage)
        outcome = None if text.strip() else "empty"
        return Reply(text, tokens_in=tokens_in, tokens_out=tokens_out, outcome=outcome, contexts=contexts)


def rag_system(arguments: Mapping[str, Any]) -> RagSystem:
    """Return the system of ``--model rag``: what its arguments name, or the object of the run under way.

    Raises ConfigError for arguments that name none.
    """
    run = evaluated()
    return RagSystem(system_spec(arguments), None if run is None or isinstance(run.model, str) else run.model)


def name_of_system(spec: SystemSpec, system: Any = None) -> str:
    """Return the name of a system in results: the one it is given, else that of its function or its address.

    Raises ConfigError where no system is named, and for an object without a name: what is kept of its replies must not
    be taken for another's.
    """
    if system is None and spec.system is None and spec.url is None:
        raise ConfigError(f"--model {RAG}: no system is named", _HERE)
    if spec.model is not None:
        return spec.model
    if system is None:
        parts = urlsplit(spec.url or "")
        return Path(spec.system).name if spec.system else f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    name = system.__qualname__ if inspect.isfunction(system) else "<"
    if "<" in name:
        # a function within another may be made several times
        kind = "function within another" if inspect.isfunction(system) else type(system).__name__
        raise ConfigError(f"a {kind} has no name for the results", 'name it: model_args={"model": "my system, v2"}')
    return name if system.__module__ == "__main__" else f"{system.__module__}:{name}"


def system_arguments(arguments: Mapping[str, Any], system: Any = None) -> dict[str, Any]:
    """Return the arguments of a system as a run records them: validated, those of its file among them, and its name."""
    spec = system_spec(arguments)
    made = spec.model_dump(mode="json", exclude_defaults=True)
    return {"model": name_of_system(spec, system), **made}


def task_settings(model: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the tasks of a run are told of its model's arguments; of a system, that it retrieves itself."""
    if model != RAG:
        return dict(arguments)
    return {"model": arguments.get("model"), "retrieval.mode": "system"}


def _conversation(question: str, language: str) -> list[dict[str, str]]:
    """Return a question as a call holds it: the language is part of what identifies a call."""
    return [{"role": "language", "content": language}, {"role": "user", "content": question}]


def _question_of(call: Call) -> tuple[str, str]:
    language, question = (turn["content"] for turn in call.conversation)
    return question, language
