"""Retrievers of the user's (``retrieval.retriever``), a function or a service, in the place of an index."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mrag_eval.config import Retrieval, Retriever
from mrag_eval.core import Failure, Hit, Kept, Passage, Ranked, Searched, matching_languages
from mrag_eval.models import ASKED, replies_file, storable
from mrag_eval.platform import (
    BROKEN_AGAIN,
    Calls,
    ConfigError,
    CorpusError,
    DataError,
    Endpoint,
    HttpFault,
    OwnFunction,
    Response,
    Transport,
    Wait,
    bare_address,
    bearer,
    content_key,
    json_answer,
    made_once,
    marked,
    own_function,
    said_by,
    shared_store,
    staying_here,
)
from mrag_eval.retrieval._merging import depth_of_lists, merged, of_versions
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._texts import PassageTable
from mrag_eval.retrieval.sources._ctxs_file import PassageReader

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_FORMAT = "own retriever/1"
_PARTS = ("id", "text", "lang", "score", "title", "doc_id")
# Parameters by which a function is told the languages to search: all of them at once, or one by one.
_LANGUAGES = ("languages", "language")
# Queries that one of several processes takes on.
_CLAIMED = 512


class _Asked(NamedTuple):
    """What a retriever is asked: a query, its language, the number of passages, and their languages (None: any)."""

    query: str
    lang: str
    k: int
    languages: tuple[str, ...] | None = None

    @property
    def language(self) -> str | None:
        """Return the one language of the passages."""
        return None if self.languages is None else self.languages[0]

    @property
    def places(self) -> Mapping[str, Any]:
        """Return what is filled into the body of a request."""
        languages = None if self.languages is None else list(self.languages)
        told = {"languages": languages, "language": self.language}
        return {"question": self.query, "lang": self.lang, "k": self.k, **told}


class _Function:
    """A function.

    ``name`` and ``identity`` say which it is, ``key`` what its answers are kept by (None: not at all), and ``takes``
    which of ``languages`` and ``language`` it has, if any.
    """

    step = "give it a parameter 'languages' (a list of codes; None: all) or 'language' (one code): docs/extend.md"

    def __init__(self, own: OwnFunction, block: Retriever) -> None:
        self.name, self.identity, call = own.identity["function"], own.identity, own.call
        self.takes = takes = _taken_by(call)
        # the hash of a file says nothing of an object that a program made
        named = not callable(block.function) or (inspect.isfunction(call) and "<" not in call.__qualname__)
        self.key = {**own.identity, "place": own.place} if named and own.place != "__main__" else None

        def value(asked: _Asked) -> Any:
            found = None if takes is None else getattr(asked, takes)
            more = {} if takes is None else {takes: list(found) if isinstance(found, tuple) else found}
            return call(asked.query, asked.lang, asked.k, **more)

        def now(asked: _Asked) -> list[Any]:
            return _listed(value(asked))

        async def later(asked: _Asked) -> list[Any]:
            return _listed(await value(asked))

        self._call = now
        self._calls: Calls[_Asked, list[Any]] | None = None
        at_once = block.max_in_flight or 1
        waits = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)
        if waits or at_once > 1:
            limits = {"max_in_flight": at_once, "timeout": block.timeout, "retries": 0}
            self._calls = Calls(self.name, later if waits else now, list, **limits)

    def answers(self, asked: Sequence[_Asked]) -> Iterator[tuple[int, list[Any] | str]]:
        """Yield the place of each query and its passages as the retriever gave them, or why there are none."""
        if self._calls is not None:
            for place, response in self._calls.arriving(asked):
                yield place, _answer(response)
            return
        for place, one in enumerate(asked):
            yield place, self._alone(one)

    def _alone(self, asked: _Asked) -> list[Any] | str:
        """Call the function in this thread, the only one that some can be called in."""
        try:
            with staying_here():
                return self._call(asked)
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # a function of the user's may raise anything
            return said_by(error)


def _taken_by(call: Any) -> str | None:
    """Return which of ``languages`` and ``language`` a function takes beside query, language and ``k``; None: none."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return None
    for name in _LANGUAGES:
        try:
            signature.bind("", "", 1, **{name: None})
        except TypeError:
            continue
        if name in signature.parameters:
            return name
    return None


def _listed(found: Any) -> list[Any]:
    return [storable(_fields(passage)) for passage in found]


def _fields(passage: Any) -> Any:
    """Return a passage as a mapping: a mapping itself, or the attributes of an object."""
    if isinstance(passage, Mapping):
        return dict(passage)
    if not hasattr(passage, "text"):
        return passage
    return {part: getattr(passage, part) for part in _PARTS if getattr(passage, part, None) not in (None, "")}


def _answer(response: Response[list[Any]]) -> list[Any] | str:
    return str(response.error).removeprefix("raised: ") if response.answer is None else response.answer


class _Service:
    """A service, asked as :class:`_Function` is."""

    step = 'write "{languages}" or "{language}" into retriever.body: docs/extend.md'

    def __init__(self, block: Retriever) -> None:
        self._block = block
        self.name = block.name or bare_address(str(block.url))
        self.identity = {"service": self.name}
        body = block.request.with_variables(where := f"retriever {self.name}")
        asked = marked({"url": block.url, "body": block.request.value})
        self.key = {**self.identity, **asked, "paths": [block.passages, block.fields]}
        self.takes = block.told
        self._transport: Transport[_Asked, list[Any]] = Transport(
            Endpoint(self.name, str(block.url), bearer(block.api_key_env, where)),
            lambda asked: dict(body.filled(asked.places)),
            lambda _, body: self._read(json_answer(body, {(block.passages or "").partition(".")[0]})),
            max_in_flight=block.max_in_flight or 8,
            timeout=block.timeout,
            retries=block.retries,
        )

    def answers(self, asked: Sequence[_Asked]) -> Iterator[tuple[int, list[Any] | str]]:
        for place, response in self._transport.arriving(asked):
            yield place, _answer(response)

    def _read(self, answer: Any) -> list[Any]:
        path = self._block.passages or ""
        listed = _at(answer, path)
        if not isinstance(listed, list):
            raise HttpFault("malformed", f"no list of passages in the answer, at '{path}'", again=BROKEN_AGAIN)
        paths = {part: self._block.fields.get(part, part) for part in _PARTS}
        given = ({part: _at(passage, path) for part, path in paths.items()} for passage in listed)
        return _listed({part: value for part, value in passage.items() if value is not None} for passage in given)


def _at(value: Any, path: str) -> Any:
    """Return the value at a dotted path; None if there is none."""
    for key in filter(None, path.split(".")):
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


class OwnIndex:
    """A retriever of the user's, searched as an index is; ``languages`` are those that it is asked for.

    Its answers are kept until the run has ended well, as those of an evaluated system are: nothing else says what its
    function or service has read. Raises ConfigError for a function that cannot be loaded, and a service without its
    key.
    """

    counts: Mapping[str, int] = {}
    documents: Mapping[str, int] = {}

    def __init__(self, block: Retriever) -> None:
        own = None
        if block.function is not None:
            own = own_function(block.function, "mrag_eval.retrievers", "retrieval.retriever")
        self._asker = _Service(block) if own is None else _Function(own, block)
        self.name, self.record = self._asker.name, {"kind": "own", **self._asker.identity}
        self.languages: Sequence[str] = ()
        self._language = block.language
        self._reader = self._new_reader()
        self._passages: dict[str, Passage] = {}

    def _new_reader(self) -> PassageReader:
        return PassageReader(self._language, "retriever.language", asked=True)

    def check_languages(self, plans: Sequence[RowPlan], retrieval: Retrieval) -> None:
        """Raise ConfigError if plans name languages, and the retriever cannot be told any."""
        named = next((plan.languages for plan in plans if plan.languages is not None), None)
        if named is not None and self._asker.takes is None:
            raise ConfigError(
                f"retrieval.retriever: mode '{retrieval.mode}' searches the languages {', '.join(named)} here, and "
                f"{self.name} cannot be told which to search",
                self._asker.step,
            )

    def resolve(self, languages: Sequence[str] | None) -> tuple[str, ...]:
        """Return the languages of a scope whose sizes are known: none."""
        return ()

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the texts that were found in this process; raise CorpusError for one that another process saved."""
        try:
            return PassageTable(self._passages.values(), f"of {self.name}").passages(ids)
        except CorpusError as error:
            raise CorpusError(error.message, "set retrieval.depth to k, or leave retrieval.run_folder out") from None

    def found(self, plans: Sequence[RowPlan], retrieval: Retrieval, *, use_cache: bool) -> list[Searched]:
        """Search for every plan in one batch; aligned with ``plans``. What is asked twice is asked once.

        Lists of several languages or versions of a query are merged by rank, unless the block says that scores compare.
        """
        merge, depth = retrieval.merged_by, retrieval.search_depth
        deep = depth_of_lists(merge, depth)
        by_language = merge != "score" or self._asker.takes == "language"

        def asked(plan: RowPlan) -> list[list[_Asked]]:
            """Return what is asked for each version of a query, in each part of the scope."""
            parts: list[tuple[str, ...] | None] = [plan.languages]
            if by_language and plan.languages:
                parts = [(code,) for code in plan.languages]
            return [
                [_Asked(text, lang, deep, part) for part in parts]
                for text, lang in zip(plan.texts, plan.langs, strict=True)
            ]

        every = [asked(plan) for plan in plans]
        answers = self._answers([one for rows in every for row in rows for one in row], use_cache)
        return [
            self._merged([[answers[one] for one in row] for row in rows], plan, retrieval)
            for rows, plan in zip(every, plans, strict=True)
        ]

    def _merged(
        self, answers: Sequence[Sequence[list[Hit] | Failure]], plan: RowPlan, retrieval: Retrieval
    ) -> Searched:
        """Return the answers to a plan, by version and part of the scope, as one ranking; a failed one fails it."""
        failures = dict.fromkeys(one for row in answers for one in row if isinstance(one, Failure))
        if failures:
            return Searched(failures=tuple(failures))
        lists = [[one for one in row if isinstance(one, list)] for row in answers]
        merge, depth, k = retrieval.merged_by, retrieval.search_depth, retrieval.k
        by_score = retrieval.merge == "score"

        def over_languages(parts: Sequence[list[Hit]], n: int, how: str, text: str) -> list[Hit]:
            named = dict(zip(plan.languages or ("",), parts, strict=True))
            return merged(how, named, n, self, retrieval.seed, text)

        if merge == "score":
            how = "score" if by_score else "rrf"
            whole = [
                row[0] if len(row) == 1 else over_languages(row, depth, how, text)
                for row, text in zip(lists, plan.texts, strict=True)
            ]
            ranking = of_versions(whole, depth, by_score=by_score, text=plan.text)
            return _searched(ranking, ranking[:k])
        deep = depth_of_lists(merge, depth)
        parts = [of_versions(part, deep, by_score=by_score, text=plan.text) for part in zip(*lists, strict=True)]
        return _searched(*(over_languages(parts, n, merge, plan.text) for n in (depth, k)))

    def _answers(self, asked: Sequence[_Asked], use_cache: bool) -> dict[_Asked, list[Hit] | Failure]:
        """Return what the retriever finds for each query, or how it failed; only what it found is kept."""
        keep = use_cache and self._asker.key is not None
        store = shared_store(replies_file()) if keep else None
        keys = {content_key(_FORMAT, self._asker.key, self._language, *one): one for one in asked}
        known = store.get_many(keys, _is_answer) if store else {}
        missing = [key for key in keys if key not in known]
        failed: dict[str, Failure] = {}
        if earlier := known.keys() - ASKED:
            log.info(
                "%s: %d of %d answers are those of a run that was interrupted, or that failed for some rows; to ask "
                "for all of them again: export MRAG_CACHE=$(mktemp -d)", self.name, len(earlier), len(keys),
            )  # fmt: skip
        if store:
            ASKED.update(keys)
        with Wait(f"searching with {self.name}", len(missing), "queries") as wait:

            def ask(part: list[str]) -> Iterator[dict[str, Any]]:
                for place, answer in self._asker.answers([keys[key] for key in part]):
                    wait.add()
                    read = self._read(answer, keys[part[place]])
                    if isinstance(read, Failure):
                        failed[part[place]] = read
                    else:
                        yield {part[place]: read}

            known |= made_once(missing, ask, store, _is_answer, at_once=_CLAIMED)
        read = {one: self._hits(known[key], one) for key, one in keys.items() if key in known}
        if store and any(isinstance(found, Failure) for found in read.values()):
            # of two texts under one id, nobody knows which is out of date
            store.remove(keys)
        return read | {keys[key]: failure for key, failure in failed.items()}

    def _read(self, answer: list[Any] | str, asked: _Asked) -> list[dict[str, Any]] | Failure:
        """Return an answer as it is kept, or how it failed."""
        if isinstance(answer, str):
            return Failure.of("search", self.name, answer)
        where = f"query '{asked.query:.60}'"
        try:
            hits = self._new_reader().hits(answer[: asked.k], where)
            for passage, _ in hits:
                _check_language(passage, asked, where)
        except (ConfigError, DataError) as error:
            return self._malformed(error)
        return [
            {"id": p.id, "lang": p.lang, "text": p.text, "title": p.title, "doc_id": p.doc_id, "score": score}
            for p, score in hits
        ]

    def _hits(self, kept: list[dict[str, Any]], asked: _Asked) -> list[Hit] | Failure:
        try:
            found = self._reader.hits(kept, f"query '{asked.query:.60}'")
        except DataError as error:
            return self._malformed(error)
        self._passages |= {passage.id: passage for passage, _ in found}
        return [Hit(p.id, p.lang, p.text, score, n, p.title, p.doc_id) for n, (p, score) in enumerate(found, 1)]

    def _malformed(self, error: ConfigError | DataError) -> Failure:
        return Failure("search", self.name, "malformed", error.message)


def _check_language(passage: Passage, asked: _Asked, where: str) -> None:
    wanted = asked.languages
    if wanted is not None and not any(matching_languages(code, {passage.lang}) for code in wanted):
        raise DataError(
            f"{where}: passage '{passage.id}' is in {passage.lang}, and {', '.join(wanted)} was asked for",
            "return passages in these languages, or correct their 'lang'",
        )


def _is_answer(value: Any) -> bool:
    """Return whether a value from the cache is an answer as :class:`OwnIndex` keeps it."""
    keys = {"id", "lang", "text", "title", "doc_id", "score"}
    return isinstance(value, list) and all(isinstance(one, dict) and one.keys() == keys for one in value)


def _searched(ranking: Sequence[Hit], passages: Sequence[Hit]) -> Searched:
    places = tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in ranking)
    return Searched(places, tuple(Kept(hit.id, hit.score) for hit in passages))
