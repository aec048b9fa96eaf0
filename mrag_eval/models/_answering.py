"""The evaluated model's answers: behind an API over our own transport, elsewhere as the harness gets them."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mrag_eval.core import Failure, ModelReply, Stage
from mrag_eval.models._api import endpoint_of
from mrag_eval.models._bodies import Body, bodies_of, replaced
from mrag_eval.models._evaluated import ASKED, are_own_replies
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._ledger import Ledger
from mrag_eval.models._outputs import read_likelihoods, read_replies
from mrag_eval.models._remedies import may_pass, remedy
from mrag_eval.models._reply import Reply
from mrag_eval.models._sending import Batch
from mrag_eval.models._systems import RagSystem
from mrag_eval.platform import ConfigError, Response, Transport, Wait, cache_dir, remove_ended, run_ended, shared_store

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Who answered if the harness's cache did: its keys name no model.
UNKNOWN_MODEL = "unknown (--use_cache)"
OURS, LOCAL = "mrag_eval", "local"
# Methods of a model of the harness.
_ASKED_BY = ("generate_until", "loglikelihood")


@dataclass
class Answering:
    """How the evaluated model's requests are answered.

    Attributes:
        model: its name.
        transport: ``mrag_eval``; ``local`` for weights that run here; ``not ours (TYPE)`` for a type with a client of
            its own. All else is empty unless it is ours.
        host: where it is asked.
        ledger: calls, cached ones, further attempts, tokens, and failures by reason.
        answered_by: the models that responses named, with the number of replies; :data:`UNKNOWN_MODEL` for those of a
            cache whose file does not say whose replies it holds.
        finish_reasons: the provider's words for the end of replies, with the number of replies.
        outcomes: replies that are no answer, by what the model did instead.
        keys: the cache's keys of what was asked.
    """

    model: str
    transport: str
    host: str | None = None
    ledger: Ledger = field(default_factory=Ledger)
    answered_by: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    keys: set[str] = field(default_factory=set)

    def end(self, *, well: bool) -> None:
        """End the run: after one of which nothing is left to repeat, the next asks the model anew."""
        if well and not any(map(may_pass, self.ledger.failures)):
            run_ended(_cache(), self.keys | ASKED)
        ASKED.clear()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form for results files."""
        return {
            "model": self.model,
            "transport": self.transport,
            "host": self.host,
            "ledger": self.ledger.as_dict(),
            "answered_by": dict(self.answered_by),
            "finish_reasons": dict(self.finish_reasons),
            "outcomes": dict(self.outcomes),
        }


def answered_by_others(asked: str, counts: Mapping[str, int]) -> str | None:
    """Return the models that replies named, with the number of replies; None if the one that was asked is alone."""
    said = ", ".join(f"{name} ({n:,} of {sum(counts.values()):,} replies)" for name, n in counts.items())
    return said if {*counts} - {asked} else None


@contextmanager
def answering(
    asked: Any,
    tasks: Collection[str],
    *,
    in_vain: Callable[[Any], bool] = lambda _: False,
    first_backoff: float = 0.5,
) -> Iterator[Answering]:
    """Answer the requests of ``tasks`` within the block; those of other tasks are answered as ever.

    Those to a model behind an API go over our transport, in bodies that equal the harness's, and each answer is kept
    when it arrives. A reply is a ModelReply. A failed call is one with a ``failure``, also
    where a likelihood was asked for. A model of another kind is asked as ever.

    Args:
        asked: the object that the harness asks: the model, or its cache of replies (``--use_cache``) around it, which
            then keeps answers alone.
        tasks: names of tasks.
        in_vain: whether the answer to a request of theirs would not be scored. It is not sent, and its reply is empty:
            ranks that take turns on one model excepted, of which each needs its share of requests.
        first_backoff: the longest first pause between two attempts, in seconds.
    """
    from mrag_eval.harness import CachingLM, model_type_of, runs_here, sends_by_http

    remove_ended()
    cached = isinstance(asked, CachingLM)
    lm = asked.lm if cached else asked
    kind = type(lm)
    name = str(getattr(lm, "model", None) or "") if sends_by_http(kind) else ""
    other = LOCAL if runs_here(kind) else f"not ours ({model_type_of(kind)})"
    state = Answering(name or model_type_of(kind), OURS if sends_by_http(kind) else other)
    # what the class itself does, by the name of the method
    answers: dict[str, Callable[..., list[Any]]] = dict.fromkeys(_ASKED_BY, _as_ever)
    if isinstance(system := getattr(lm, "system", None), RagSystem):
        state = Answering(system.name, OURS, system.host, system.ledger)
        answers["generate_until"] = _OfSystem(system, state).replies
    elif state.transport == OURS:
        service = _OfApi(lm, state, first_backoff)
        answers = {"generate_until": service.replies, "loglikelihood": service.likelihoods}
    with ExitStack() as stack:
        if state.transport == OURS or getattr(lm, "world_size", 1) == 1:
            methods = {
                name: _for_ours(getattr(lm, name), tasks, _sparing(answer, in_vain)) for name, answer in answers.items()
            }
            stack.enter_context(replaced(lm, **methods))
        if cached:
            unnamed = None if are_own_replies(asked.cache_db) else state.answered_by
            stack.enter_context(replaced(asked, dbdict=_AnswersOnly(asked.dbdict, unnamed)))
        yield state


def _for_ours(
    method: Callable[..., list[Any]], tasks: Collection[str], answer: Callable[..., list[Any]]
) -> Callable[..., list[Any]]:
    """Return the method with the requests of ``tasks`` answered by ``answer``, which gets the method as well."""

    @wraps(method)
    def answered(requests: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        replies: list[Any] = [None] * len(requests)
        for mine in (True, False):
            places = [nth for nth, request in enumerate(requests) if (request.task_name in tasks) is mine]
            share = [requests[nth] for nth in places]
            if share:
                found = answer(method, share) if mine else method(share, *args, **kwargs)
                for nth, reply in zip(places, found, strict=True):
                    replies[nth] = reply
        return replies

    return answered


def _as_ever(method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Any]:
    return method(requests)


def _sparing(answer: Callable[..., list[Any]], in_vain: Callable[[Any], bool]) -> Callable[..., list[Any]]:
    """Return ``answer`` for the requests that are not in vain; the others get an empty reply."""

    def answered(method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Any]:
        asked = [request for request in requests if not in_vain(request)]
        found = iter(answer(method, asked) if asked else ())
        if len(asked) < len(requests):
            log.info(
                "%d of %d requests are not sent, as a step before them failed",
                len(requests) - len(asked),
                len(requests),
            )
        return [ModelReply.not_asked() if in_vain(request) else next(found) for request in requests]

    return answered


class _AnswersOnly:
    """The harness's file of replies, which keeps no failure, and an answer as plain text.

    ``unnamed`` counts the replies that are taken from a file that other models may have filled.
    """

    def __init__(self, store: Any, unnamed: Counter[str] | None) -> None:
        self._store, self._unnamed = store, unnamed

    def __contains__(self, key: str) -> bool:
        return key in self._store

    def __getitem__(self, key: str) -> Any:
        if self._unnamed is not None:
            self._unnamed[UNKNOWN_MODEL] += 1
        return self._store[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(value, ModelReply):
            self._store[key] = value
        elif value.asked and value.failure is None and value.outcome is None:
            self._store[key] = str(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Service(ABC):
    """A model that is asked here, whatever asks it."""

    _kind: str = "model"
    _stage: Stage = "answer"

    def __init__(self, state: Answering) -> None:
        self._state = state

    def replies(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Any]:
        """Return a reply to each request, in order."""
        return [self._reply(one) for one in self._told(method, requests)]

    @abstractmethod
    def _answers(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Reply]:
        """Return the answer to each request, from the cache or from the model."""

    def _reply(self, one: Reply) -> ModelReply:
        if one.error is not None:
            failure = Failure.of(self._stage, self._state.model, one.error)
            where = f"{self._state.host}: " if self._state.host else ""
            return ModelReply.failed(replace(failure, detail=f"{where}{failure.detail}"))
        reply = ModelReply(one.text)
        reply.outcome, reply.contexts = one.outcome, one.contexts
        if one.outcome is not None:
            self._state.outcomes[one.outcome] += 1
        return reply

    def _told(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Reply]:
        """Return the answer to each request, with a line on those that failed."""
        found = self._answers(method, requests)
        named = Counter(one.answered_by for one in found if one.answered_by is not None)
        self._state.answered_by.update(named)
        if others := answered_by_others(self._state.model, named):
            level = logging.WARNING if len(named) > 1 else logging.INFO
            log.log(level, "model '%s': answered by %s", self._state.model, others)
        self._state.finish_reasons.update(one.finish_reason for one in found if one.finish_reason is not None)
        if cut := sum(one.cut_off and bool(one.text) for one in found):
            name = self._state.model
            log.warning("model '%s': %d of %d replies were cut at their limit of tokens", name, cut, len(found))
        failed = [nth for nth, one in enumerate(found) if one.error is not None]
        if failed:
            log.error("%s", self._what_failed(requests, found, failed))
            reasons = [found[nth].reason for nth in failed]
            log.error("    %s", remedy(next(filter(may_pass, reasons), reasons[0])))
        return found

    def _what_failed(self, requests: Sequence[Any], found: Sequence[Reply], failed: Sequence[int]) -> str:
        """Return one line: the model, its host, how many calls failed and why, and the first row."""
        first = requests[failed[0]]
        row = first.doc.get("id", first.doc_id) if isinstance(first.doc, dict) else first.doc_id
        reasons = ", ".join(f"{n} {reason}" for reason, n in Counter(found[nth].reason for nth in failed).items())
        where = f" at {self._state.host}" if self._state.host else ""
        return (
            f"{self._kind} '{self._state.model}'{where}: {len(failed)} of {len(found)} requests without an "
            f"answer ({reasons}), the first for row '{row}' of {first.task_name}: {found[failed[0]].error}"
        )

    def _say_kept(self, kept: int, of: int) -> None:
        if kept:
            log.info(
                "%s: %d of %d answers are those of a run that was interrupted, or that failed for some rows; to ask "
                "for all of them again: export MRAG_CACHE=$(mktemp -d)",
                f"{self._kind} '{self._state.model}'", kept, of,
            )  # fmt: skip


class _OfSystem(_Service):
    """A RAG system, asked with the text that a row's prompt is, and the language of its question."""

    _kind, _stage = "system", "system"

    def __init__(self, system: RagSystem, state: Answering) -> None:
        super().__init__(state)
        self._system = system

    def _answers(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Reply]:
        found = self._system.ask([(str(one.args[0]).strip(), str(one.doc["query_lang"])) for one in requests])
        self._say_kept(sum(one.cached for one in found), len(found))
        return found


class _OfApi(_Service):
    """An API model of the harness whose requests are sent here."""

    def __init__(self, lm: Any, state: Answering, first_backoff: float) -> None:
        super().__init__(state)
        self._lm = lm
        self._first_backoff = first_backoff
        self._transport: Transport[Body, list[Reply]] | None = None
        parts = urlsplit(lm.base_url or "")
        state.host = parts.netloc.rpartition("@")[2] or None

    def likelihoods(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Any]:
        """Return the log-likelihood of each request, in order; a reply with a failure where it cannot be had."""
        found = self._told(method, requests)
        return [self._reply(one) if one.likelihood is None else tuple(one.likelihood) for one in found]

    def _answers(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Reply]:
        """Return the answer to each request, from the cache or over HTTP."""
        start = time.perf_counter()
        transport = self._connected()
        try:
            bodies, places = bodies_of(self._lm, method, requests)
        except (AssertionError, TypeError, ValueError) as err:
            said = " ".join(str(err).split()) or type(err).__name__
            raise ConfigError(
                f"model '{self._state.model}': no request can be made ({said})",
                "correct --model_args; a model type that takes messages needs --apply_chat_template",
            ) from err
        found: dict[str, list[Reply]] = {}
        store = shared_store(_cache())
        keeper = Keeper(store, _is_stored)
        self._state.keys.update(body.key for body in bodies)
        with Wait(f"asking {self._state.model}", len(bodies)) as wait:

            def settle(key: str, replies: list[Reply]) -> None:
                found[key] = replies
                for reply in replies:
                    self._state.ledger.add(reply)
                wait.add()

            def recall(key: str, value: Any) -> None:
                settle(key, [replace(Reply.from_store(one), cached=not nth) for nth, one in enumerate(value)])

            kept = keeper.find(body.key for body in bodies)
            for key, value in kept.items():
                recall(key, value)
            self._say_kept(sum(bodies[place.body].key in kept for place in places), len(places))
            left = [body for body in bodies if body.key not in found]
            with Batch(left, keeper, store, self._lm.timeout, recall) as batch:
                for own in batch.rounds():
                    batch.send(transport, own, _take, lambda body, got: settle(body.key, _settled(body, got)))
        self._state.ledger.seconds += time.perf_counter() - start
        return [found[bodies[place.body].key][place.prompt] for place in places]

    def _connected(self) -> Transport[Body, list[Reply]]:
        if self._transport is None:
            self._transport = Transport(
                endpoint_of(self._lm, self._state.model),
                lambda body: body.content(),
                self._read,
                max_in_flight=max(1, self._lm._concurrent),
                timeout=self._lm.timeout,
                retries=self._lm.max_retries,
                first_backoff=self._first_backoff,
            )
        return self._transport

    def _read(self, body: Body, text: str) -> list[Reply]:
        if body.context_lengths is not None:
            return read_likelihoods(self._lm, text, body.prompts, body.context_lengths)
        return read_replies(self._lm, text, body.count)


def _cache() -> Path:
    return cache_dir() / "models.sqlite"


def _take(_: Body, response: Response[list[Reply]]) -> list[dict[str, Any]] | None:
    """Return the value to store: all answers of a body, None if one of them failed."""
    answers = response.answer
    return None if answers is None or any(one.error for one in answers) else [one.stored() for one in answers]


def _settled(body: Body, response: Response[list[Reply]]) -> list[Reply]:
    """Return the answers of a body; its attempts are counted with the first."""
    answers = response.answer or [Reply("", error=response.error)] * body.count
    spent = [(response.attempts, response.seconds), *[(0, 0.0)] * (body.count - 1)]
    return [replace(one, attempts=n, seconds=time) for one, (n, time) in zip(answers, spent, strict=True)]


def _is_stored(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(Reply.is_stored(one) for one in value)
