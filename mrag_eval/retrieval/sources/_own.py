"""Retrievers of the user's (``retrieval.retriever``): a function, or a service, in place of a search of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mrag_eval.config import Retriever
from mrag_eval.core import Failure, Passage, RagDoc, Searched
from mrag_eval.platform import (
    BROKEN_AGAIN,
    ConfigError,
    CorpusError,
    DataError,
    Endpoint,
    HttpFault,
    OwnFunction,
    Transport,
    Wait,
    bare_address,
    bearer,
    json_answer,
    own_function,
)
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._texts import PassageTable
from mrag_eval.retrieval.sources._ctxs_file import PassageReader
from mrag_eval.retrieval.sources._lists import Lists
from mrag_eval.retrieval.sources._source import Missing, Setup

_BODY = {"query": "{query}", "k": "{k}"}
_PARTS = ("id", "text", "lang", "score", "title", "doc_id")


class _Asked(NamedTuple):
    """What a retriever is asked: the text of a query, its language, and the number of passages."""

    query: str
    lang: str
    k: int


class _Function:
    """A function. ``name`` and ``identity`` say which it is."""

    def __init__(self, own: OwnFunction) -> None:
        self.name, self.identity, self._call = own.identity["function"], own.identity, own.call

    def answers(self, asked: Sequence[_Asked]) -> list[Sequence[Any] | str]:
        """Return the passages of each query as the retriever gave them, or why there are none."""
        with Wait(f"searching with {self.name}", len(asked), "queries") as wait:
            return [self._answer(query) for query in wait.over(asked)]

    def _answer(self, asked: _Asked) -> Sequence[Any] | str:
        try:
            return [_fields(passage) for passage in self._call(*asked)]
        except MemoryError:
            raise
        except Exception as error:  # a function of the user's may raise anything
            return " ".join(f"{type(error).__name__}: {error}".split())


def _fields(passage: Any) -> Any:
    """Return a passage as a mapping: a mapping itself, or the attributes of an object."""
    if isinstance(passage, Mapping) or not hasattr(passage, "text"):
        return passage
    return {part: getattr(passage, part) for part in _PARTS if getattr(passage, part, None) not in (None, "")}


class _Service:
    """A service, asked as :class:`_Function` is."""

    def __init__(self, block: Retriever) -> None:
        self._block = block
        self.name = block.name or bare_address(str(block.url))
        self.identity = {"service": self.name}
        self._transport: Transport[_Asked, list[Any]] = Transport(
            Endpoint(self.name, str(block.url), bearer(block.api_key_env, f"retriever {self.name}")),
            lambda asked: dict(_filled(_BODY if block.body is None else block.body, asked)),
            lambda _, body: self._read(json_answer(body)),
            max_in_flight=block.max_in_flight,
            timeout=block.timeout,
            retries=block.retries,
        )

    def answers(self, asked: Sequence[_Asked]) -> list[Sequence[Any] | str]:
        found: list[Sequence[Any] | str] = ["cancelled: not asked"] * len(asked)
        with Wait(f"searching with {self.name}", len(asked), "queries") as wait:
            for place, response in wait.over(self._transport.arriving(asked)):
                found[place] = str(response.error) if response.answer is None else response.answer
        return found

    def _read(self, answer: Any) -> list[Any]:
        path = self._block.passages or ""
        listed = _at(answer, path)
        if not isinstance(listed, list):
            raise HttpFault("malformed", f"no list of passages in the answer, at '{path}'", again=BROKEN_AGAIN)
        paths = {part: self._block.fields.get(part, part) for part in _PARTS}
        given = ({part: _at(passage, path) for part, path in paths.items()} for passage in listed)
        return [{part: value for part, value in passage.items() if value is not None} for passage in given]


def _filled(value: Any, asked: _Asked) -> Any:
    """Return a value with what is asked in the places of ``{query}``, ``{lang}`` and ``{k}``."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, asked) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, asked) for inner in value]
    if value == "{k}":
        return asked.k
    if not isinstance(value, str):
        return value
    # a query may contain the other names
    parts = value.split("{query}")
    return asked.query.join(part.replace("{lang}", asked.lang).replace("{k}", str(asked.k)) for part in parts)


def _at(value: Any, path: str) -> Any:
    """Return the value at a dotted path; None if there is none."""
    for key in filter(None, path.split(".")):
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


class OwnRetriever(Lists):
    """Return what a retriever of the user's finds; a query that it fails is a failure of its row."""

    def __init__(self, setup: Setup) -> None:
        block = setup.retrieval.retriever
        assert block is not None, "a rule of the block"
        super().__init__(setup)
        self._block = block
        self._opened: _Function | _Service | None = None
        self._reader = PassageReader(block.language, "retriever.language", blank=False)
        self._read: dict[str, Passage] = {}

    def check(self, docs: Sequence[RagDoc], missing: Missing) -> None:
        """Raise for a function that cannot be loaded, and a service without its key."""
        with missing.allowed("corpus"):
            self._search()

    def _found(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> tuple[list[Searched], PassageTable]:
        depth = self._retrieval.search_depth
        answers = self._search().answers([_Asked(plan.text, plan.row_lang, depth) for plan in plans])
        found = [self._list(doc, answer) for doc, answer in zip(docs, answers, strict=True)]
        return found, self._texts()

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the texts that were found in this process; raise CorpusError for one that another process saved."""
        try:
            return super().passages(ids)
        except CorpusError as error:
            raise CorpusError(error.message, "set retrieval.depth to k, or leave retrieval.run_folder out") from None

    def _search(self) -> _Function | _Service:
        if self._opened is None:
            named, where = self._block.function, "retrieval.retriever"
            own = None if named is None else own_function(named, "mrag_eval.retrievers", where)
            self._opened = _Service(self._block) if own is None else _Function(own)
            self._index = {"kind": "own", **self._opened.identity}
        return self._opened

    def _list(self, doc: RagDoc, answer: Sequence[Any] | str) -> Searched:
        name = self._search().name
        if isinstance(answer, str):
            return Searched(failures=(Failure.of("search", name, answer),))
        try:
            hits = self._reader.hits(answer[: self._retrieval.search_depth], f"row '{doc.id}'")
        except (ConfigError, DataError) as error:
            return Searched(failures=(Failure("search", name, "malformed", error.message),))
        self._read |= {passage.id: passage for passage, _ in hits}
        return self._searched(hits)

    def _texts(self) -> PassageTable:
        return PassageTable(self._read.values(), f"of {self._search().name}")


def open_source(setup: Setup) -> OwnRetriever:
    """Return the source of ``retrieval.retriever``."""
    return OwnRetriever(setup)
