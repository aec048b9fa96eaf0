"""A RAG system that is asked as it is (``--model rag``), as users write it down."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from mrag_eval.config._block import Block, KeyRule
from mrag_eval.config._model import Variable, without_secret
from mrag_eval.config._validation import validated
from mrag_eval.platform import (
    HEADER,
    ConfigError,
    Template,
    address_fault,
    check_text,
    path_fault,
    read_yaml,
    reading_back,
    with_variables,
)

# The model type of a system that is asked as it is.
RAG = "rag"
_PLACES = ("question", "language")
_BODY: Mapping[str, Any] = {"question": "{question}", "language": "{language}"}


class SystemSpec(Block):
    """The arguments of ``--model rag``: where the system is, and what a request and a reply look like.

    ``system`` is a function or an object in a module (``MODULE:NAME``, ``FILE.py:NAME``), or a YAML file with these
    keys. ``url`` is an HTTP endpoint instead: ``request`` is the body that is sent, in whose texts ``{question}`` (or
    ``{query}``) and ``{language}`` are filled in, or ``openai`` for chat completions; ``{{name}}`` is the text
    ``{name}``. ``api_key_env`` names the environment variable with its key. ``answer`` and ``contexts`` are paths in
    the reply, ``context_keys`` those of a context's parts; by default the reply has one of the shapes that ``mrag-eval
    score`` reads. ``input`` is the key under which a LangChain Runnable takes the question.

    ``model`` names the system in results. ``timeout`` is seconds per attempt, ``max_retries`` attempts follow the
    first, and ``max_calls`` bounds the questions that one run asks.
    """

    model: str | None = None
    system: str | None = None
    url: Annotated[str | None, KeyRule(refuses={"system": "it is asked in this process"})] = None
    request: Annotated[dict[str, Any] | Literal["openai"] | None, KeyRule(needs={"url": "the endpoint"})] = None
    header: Annotated[dict[str, str] | None, KeyRule(needs={"url": "the endpoint"})] = None
    api_key_env: Annotated[Variable | None, KeyRule(needs={"url": "the endpoint"})] = None
    answer: str | None = None
    contexts: Annotated[str | None, KeyRule(needs={"answer": "the path of the answer"})] = None
    context_keys: Annotated[dict[str, str] | None, KeyRule(needs={"contexts": "the path of the contexts"})] = None
    input: str | None = None
    num_concurrent: int = Field(default=1, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    max_retries: int = Field(default=3, ge=0)
    max_calls: int | None = Field(default=None, ge=0)

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    @field_validator("url")
    @classmethod
    def _can_be_reached(cls, value: str | None) -> str | None:
        fault = None if value is None else address_fault(value)
        if fault is not None:
            raise PydanticCustomError("secret", "its address {fault}", {"fault": fault})
        return value

    @field_validator("request")
    @classmethod
    def _asks_the_question(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            Template.of(without_secret(dict(value)), _PLACES, "question")
        return value

    @field_validator("header")
    @classmethod
    def _has_no_places(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, text in (value or {}).items():
            if HEADER.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of a header; write letters, digits and hyphens")
            check_text(text, "the question goes into 'request'")
        return value

    @property
    def body(self) -> Template:
        """Return the body of a request."""
        if self.request == "openai":
            turn = {"role": "user", "content": "{question}"}
            return Template.of({"model": "{model}", "messages": [turn]}, ("model", "question"))
        return Template.of(self.request or _BODY, _PLACES)

    @property
    def paths(self) -> dict[str, str]:
        """Return where a reply has its parts, as ``--columns`` of ``mrag-eval score`` says it; empty if it is told."""
        named = {"answer": self.answer, "contexts": self.contexts}
        inner = {f"contexts.{key}": path for key, path in (self.context_keys or {}).items()}
        return {key: path for key, path in named.items() if path is not None} | inner


def system_spec(arguments: Mapping[str, Any], where: str = "--model_args") -> SystemSpec:
    """Return the validated arguments of a system, laid over those of the YAML file that ``system`` may name.

    Raises ConfigError naming the key.
    """
    given = dict(arguments)
    file = str(given.get("system") or "")
    if file.endswith((".yaml", ".yml")):
        content = read_yaml(Path(file).expanduser())
        if not isinstance(content, Mapping):
            raise ConfigError(f"{file}: expected keys and values", "url: http://localhost:8000/ask")
        del given["system"]
        if content.get("system") is not None:
            content = {**content, "system": _beside(Path(file).expanduser(), str(content["system"]))}
        with reading_back(Path(file)):
            with_variables(content, file)
        given, where = {**content, **given}, file
    dotted = {key.partition(".")[2]: given.pop(key) for key in list(given) if str(key).startswith("contexts.")}
    if dotted:
        given["context_keys"] = {**(given.get("context_keys") or {}), **dotted}
    return validated(SystemSpec, given, where)


def _beside(service: Path, system: str) -> str:
    """Return the function that a service file names, by the path of its module.

    Raises ConfigError for code that is no file beside the service file: that file may be from elsewhere.
    """
    module, _, name = system.rpartition(":")
    file = module if module.endswith(".py") else f"{module}.py"
    if path_fault(service.parent, file) or not (service.parent / file).is_file():
        raise ConfigError(
            f"{service}, system: '{system}' is no function in a file beside it, and other code is yours to name",
            "system: FILE.py:NAME, with FILE.py beside it, or --model_args system=MODULE:NAME",
        )
    return f"{service.parent / file}:{name}"
