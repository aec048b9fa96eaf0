"""Retrievers of the user's, as they are written down: a function, or a service behind an address."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, field_validator, model_validator

from mrag_eval.config._block import Block
from mrag_eval.config._model import Variable, without_secret
from mrag_eval.config._rerank import plain_address
from mrag_eval.core import normalize_language
from mrag_eval.platform import ConfigError, Template

_PLACES = ("query", "lang", "k", "languages", "language")
_BODY: Mapping[str, Any] = {"query": "{query}", "k": "{k}"}


def _function_name(function: Any) -> str | None:
    if function is None or isinstance(function, str):
        return None if function is None else Path(function).name
    code = function if hasattr(function, "__qualname__") else type(function)
    return f"{Path(code.__module__).name}.{code.__qualname__}"


class Retriever(Block):
    """A retriever of the user's: a ``function``, or a service at ``url``.

    ``function`` is ``module:name``, the name of an entry point of the group ``mrag_eval.retrievers``, or, in YAML,
    ``!function module.name``. It is called with the text of a query, its language and a number of passages, and returns
    them, best first: objects with ``text``, ``id``, ``lang`` and ``score``, and optionally ``title`` and ``doc_id``.

    A function with a parameter ``languages`` (a list of codes; None: all) or ``language`` (one code) is told which
    languages to search, as most modes ask.

    A service is sent ``body`` as JSON, in which ``{query}`` (or ``{question}``), ``{lang}`` and ``{k}`` stand for the
    same three, and ``{languages}`` or ``{language}`` for the languages to search; by default the query and ``k`` under
    these names. ``{{name}}`` is the text ``{name}``. ``passages`` is the path of the list in its answer
    (``hits.hits``), by default the answer itself. ``fields`` are the paths of the keys in a passage where they differ
    (``{text: _source.body}``). ``name`` says which service it is, with its version, by which runs are compared; by
    default it is the address.

    ``language`` is that of passages that name none. ``max_in_flight`` queries are under way at once: by default 8 of a
    service, 1 of a function; more of these run in threads, or, of a coroutine function, on one event loop, each for
    ``timeout`` seconds at most.
    """

    function: Annotated[Any, PlainSerializer(_function_name)] = None
    url: str | None = None
    name: str | None = Field(default=None, min_length=1)
    body: dict[str, Any] | None = None
    passages: str | None = None
    fields: dict[str, str] = Field(default_factory=dict)
    language: str | None = None
    api_key_env: Variable | None = None
    max_in_flight: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _function_alone(cls, value: Any) -> Any:
        return value if isinstance(value, Mapping | cls) else {"function": value}

    @field_validator("function")
    @classmethod
    def _is_a_function(cls, value: Any) -> Any:
        if not (value is None or callable(value) or (isinstance(value, str) and value)):
            raise ValueError("expected !function module.name, module:name, or the name of an entry point")
        return value

    @field_validator("url")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        return value if value is None else plain_address(value)

    @field_validator("body")
    @classmethod
    def _holds_no_secret(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return value if value is None else without_secret(value)

    @field_validator("body")
    @classmethod
    def _asks_the_query(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            Template.of(value, _PLACES, "query")
        return value

    @field_validator("language")
    @classmethod
    def _known_language(cls, value: str | None) -> str | None:
        try:
            return value if value is None else normalize_language(value)
        except ConfigError as err:
            raise ValueError(f"{err.message}; {err.next_step}") from None

    @property
    def label(self) -> str:
        """Return the name of the function or of the service."""
        return self.name or _function_name(self.function) or str(self.url)

    @property
    def request(self) -> Template:
        """Return the body of a request."""
        return Template.of(_BODY if self.body is None else self.body, _PLACES)

    @property
    def told(self) -> str | None:
        """Return how a service is told the languages to search: one by one, all at once (plural), or not at all."""
        return next((name for name in ("language", "languages") if name in self.request.places), None)

    @model_validator(mode="after")
    def _one_of_them(self) -> Retriever:
        if (self.function is None) == (self.url is None):
            raise ValueError("name either 'function' or 'url'")
        return self
