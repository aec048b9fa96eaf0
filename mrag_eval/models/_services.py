"""Answer the requests of a run in place of the harness: from an API over our own transport, or from a RAG system."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mrag_eval.core import Failure, ModelReply, Stage
from mrag_eval.models._answering import answered_by_others
from mrag_eval.models._api import endpoint_of, with_key
from mrag_eval.models._bodies import Body, api_identity, bodies_of
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._outputs import read_likelihoods, read_replies
from mrag_eval.models._remedies import may_pass, remedy
from mrag_eval.models._reply import Reply
from mrag_eval.models._run_model import replies_file
from mrag_eval.models._sending import Batch
from mrag_eval.platform import ConfigError, Response, Transport, Wait, content_key, shared_store

if TYPE_CHECKING:
    from mrag_eval.models._answering import Answering
    from mrag_eval.models._systems import RagSystem

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


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
        reply.outcome, reply.cut_off, reply.contexts = one.outcome, one.cut_off, one.contexts
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


class OfSystem(_Service):
    """A RAG system, asked with the text that a row's prompt is, and the language of its question."""

    _kind, _stage = "system", "system"

    def __init__(self, system: RagSystem, state: Answering) -> None:
        super().__init__(state)
        self._system = system

    def _answers(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Reply]:
        found = self._system.ask([(str(one.args[0]).strip(), str(one.doc["query_lang"])) for one in requests])
        self._say_kept(sum(one.cached for one in found), len(found))
        return found


class OfApi(_Service):
    """An API model of the harness whose requests are sent here."""

    def __init__(self, lm: Any, state: Answering, first_backoff: float) -> None:
        super().__init__(state)
        self._lm = lm
        self._keyed = with_key(lm, state.model)
        self._first_backoff = first_backoff
        self._transport: Transport[Body, list[Reply]] | None = None
        parts = urlsplit(lm.base_url or "")
        state.host = parts.netloc.rpartition("@")[2] or None

    def likelihoods(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Any]:
        """Return the log-likelihood of each request, in order; a reply with a failure where it cannot be had."""
        found = self._told(method, requests)
        return [self._reply(one) if one.likelihood is None else tuple(one.likelihood) for one in found]

    def _answers(self, method: Callable[..., list[Any]], requests: Sequence[Any]) -> list[Reply]:
        """Return the answer to each request, from the cache or over HTTP.

        What several tasks ask alike is asked once, but where replies are sampled: there, as of repeats, each counts.
        """
        start = time.perf_counter()
        transport = self._connected()
        repeats: Counter[int] = Counter()
        alone: dict[Any, Any] = {}
        keys: list[Any] = []
        for nth, request in enumerate(requests):
            repeats[id(request)] += 1
            sampled = isinstance(how := request.args[-1], dict) and (how.get("do_sample") or how.get("temperature"))
            keys.append(nth if sampled else (content_key(repr(request.args)), repeats[id(request)]))
            alone.setdefault(keys[-1], request)
        try:
            bodies, places = bodies_of(self._lm, api_identity(self._keyed), method, [*alone.values()])
        except (AssertionError, TypeError, ValueError) as err:
            said = " ".join(str(err).split()) or type(err).__name__
            raise ConfigError(
                f"model '{self._state.model}': no request can be made ({said})",
                "correct --model_args; a model type that takes messages needs --apply_chat_template",
            ) from err
        found: dict[str, list[Reply]] = {}
        store = shared_store(replies_file())
        keeper = Keeper(
            store, lambda value: isinstance(value, list) and bool(value) and all(map(Reply.is_stored, value))
        )
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
        answers = {key: found[bodies[at.body].key][at.prompt] for key, at in zip(alone, places, strict=True)}
        for again in (Counter(keys) - Counter(alone.keys())).elements():
            self._state.ledger.add(replace(answers[again], cached=True, attempts=0))
        return [answers[key] for key in keys]

    def _connected(self) -> Transport[Body, list[Reply]]:
        if self._transport is None:
            self._transport = Transport(
                endpoint_of(self._keyed, self._state.model),
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


def _take(_: Body, response: Response[list[Reply]]) -> list[dict[str, Any]] | None:
    """Return the value to store: all answers of a body, None if one of them failed."""
    answers = response.answer
    return None if answers is None or any(one.error for one in answers) else [one.stored() for one in answers]


def _settled(body: Body, response: Response[list[Reply]]) -> list[Reply]:
    """Return the answers of a body; its attempts are counted with the first."""
    answers = response.answer or [Reply("", error=response.error)] * body.count
    spent = [(response.attempts, response.seconds), *[(0, 0.0)] * (body.count - 1)]
    return [replace(one, attempts=n, seconds=time) for one, (n, time) in zip(answers, spent, strict=True)]
