"""Models that judge, plan or translate: any model of the harness, called in batches, with every answer kept."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mrag_eval.config import ModelSpec
from mrag_eval.models._api import ApiModel, build_api, is_api, model_class
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._ledger import Ledger
from mrag_eval.models._reply import Call, Reply
from mrag_eval.models._sending import Batch
from mrag_eval.models._spec import identity, name_of, settings_for
from mrag_eval.models._spending import Spending
from mrag_eval.platform import (
    Attempts,
    MragError,
    Response,
    Store,
    Transport,
    Wait,
    content_key,
    install_redaction,
    redact,
    run_in_thread,
)
from mrag_eval.prompts import Conversation

log = logging.getLogger(__name__)

_FORMAT = "models/1"
# Batch size of a local model with a token budget, which is checked between batches.
_WATCHED = 32

# Receives every answer as it arrives: position in the batch, answer.
OnReply = Callable[[int, Reply], None]
# Receives the reply of a call, by the call's key.
Settle = Callable[[str, Reply], None]


class AuxModel:
    """One model. ``generate`` may be called from anywhere, even inside a running event loop. Concurrent batches of a
    model behind an API share its requests in flight; those of a local model take turns.

    ``name`` identifies it in messages. With a ``cache``, an answer is stored on arrival and never paid for twice, not
    even by processes that ask at the same time; failures are not stored. ``ledger`` counts the calls through this
    object; ``spending``, which other objects may share, counts the spent budget. The model is built (weights loaded,
    key looked up) at the first answer that is not in the cache, or by :meth:`check`. Programs get a model by name from
    :func:`mrag_eval.models.get`.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        name: str = "",
        cache: Store | None = None,
        spending: Spending | None = None,
        first_backoff: float = 0.5,
    ) -> None:
        self.spec = spec
        self.name = name or name_of(spec)
        self.ledger = Ledger()
        self._cache = cache
        self._first_backoff = first_backoff
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._building = threading.Lock()
        self._spending = spending or Spending(spec.budget)
        self._backend: Any = None
        install_redaction()

    @property
    def behind_api(self) -> bool:
        """Return whether the model is called over HTTP; raise ConfigError for an unknown type."""
        return is_api(model_class(self.spec, self.name))

    def check_ahead(self) -> None:
        """Raise the ConfigError that would leave every call unanswered, without loading any weights.

        A local model's weights are only looked for. They are loaded at its first call, not while another model is still
        generating.
        """
        from mrag_eval.harness import check_local_weights

        if self.behind_api:
            self.check()
        else:
            check_local_weights(self.spec.model, self.spec.model_args, f"model '{self.name}'")

    def check(self) -> None:
        """Load local weights without a call, and raise the ConfigError that would leave every call unanswered."""
        self._built()

    def generate(
        self,
        conversations: Sequence[Conversation],
        *,
        seat: str = "",
        on_reply: OnReply | None = None,
        waiting: str | None = "",
        **settings: Any,
    ) -> list[Reply]:
        """Return one reply per conversation, in order. Failures are replies with an ``error``; they do not raise.

        Args:
            conversations: messages ``{"role", "content"}`` each; equal ones are sent once.
            seat: the caller's role (a judge's place in the panel, ...); equal prompts of two seats are sent separately.
            on_reply: called with ``(position, reply)`` as answers arrive, in any order, from the sending thread; it
                must be quick and call no model.
            waiting: the name of the wait for the answers, by default the model and the seat; None shows nothing.
            settings: generation settings that differ from the model's own (``temperature=0.7, max_tokens=64``).

        Raises ConfigError for unknown settings.
        """
        start = time.perf_counter()
        wanted = settings_for(self.spec, settings, f"model {self.name}, generation")
        who, how = self._identity(), wanted.model_dump()
        positions: dict[str, list[int]] = {}
        for position, conversation in enumerate(conversations):
            turns = [{"role": m["role"], "content": m["content"]} for m in conversation]
            key = content_key(_FORMAT, who, turns, how, seat)
            positions.setdefault(key, []).append(position)
        replies: list[Reply | None] = [None] * len(conversations)

        def settle(key: str, reply: Reply) -> None:
            for nth, position in enumerate(positions[key]):
                same = reply if nth == 0 else _repeated(reply)
                replies[position] = same
                with self._counting:
                    self.ledger.add(same)
                if on_reply is not None:
                    on_reply(position, same)

        keeper = Keeper(self._cache)
        self._cached(positions)
        found = keeper.find(positions)
        for key, value in found.items():
            settle(key, Reply.from_store(value))
        calls = [Call(k, conversations[where[0]], wanted) for k, where in positions.items() if k not in found]
        if calls:
            name = waiting or f"asking {self.name}" + (f" ({seat})" if seat else "")
            with Wait(name, len(calls), shown=waiting is not None) as wait:

                def counted(key: str, reply: Reply) -> None:
                    settle(key, reply)
                    wait.add()

                self._ask(calls, keeper, counted)
        with self._counting:
            self.ledger.seconds += time.perf_counter() - start
        lost = Reply("", attempts=0, error="model: no answer was recorded")
        return [lost if reply is None else reply for reply in replies]

    def _cached(self, keys: Iterable[str]) -> None:
        """Receive the cache's keys of a batch."""

    def _ask(self, calls: Sequence[Call], keeper: Keeper, settle: Settle) -> None:
        try:
            backend = self._built()
        except MragError as err:
            error = redact(f"model: {err.message}")
            log.error("no call to %s is possible: %s", self.name, redact(str(err)))
            for call in calls:
                settle(call.key, Reply("", attempts=0, error=error))
            return

        def recall(key: str, value: Any) -> None:
            settle(key, Reply.from_store(value))

        with Batch(calls, keeper, self._cache, self.spec.timeout, recall) as batch:
            for own in batch.rounds():
                if isinstance(backend, Attempts):
                    self._send(backend, own, batch, settle)
                else:
                    with self._turn:
                        self._ask_local(backend, own, batch, settle)

    def _send(self, backend: Attempts[Call, Reply], calls: Iterator[Call], batch: Batch[Call], settle: Settle) -> None:
        def answer(response: Response[Reply]) -> Reply:
            found = response.answer or Reply("", error=response.error)
            return replace(found, attempts=response.attempts, seconds=response.seconds)

        def take(call: Call, response: Response[Reply]) -> dict[str, Any] | None:
            self._spending.add(call, answer(response))
            return None if response.answer is None else response.answer.stored()

        batch.send(backend, calls, take, lambda call, r: settle(call.key, answer(r)), self._spending.refuse)

    def _ask_local(self, backend: Any, calls: Iterator[Call], batch: Batch[Call], settle: Settle) -> None:
        chunk = None if self.spec.budget.max_tokens is None else _WATCHED
        while asked := list(itertools.islice(calls, chunk)):
            go: list[Call] = []
            for call in asked:
                refusal = self._spending.refuse()
                if refusal is None:
                    go.append(call)
                else:
                    settle(call.key, Reply("", attempts=0, error=refusal))

            def take(position: int, reply: Reply, go: list[Call] = go) -> None:
                self._spending.add(go[position], reply)
                batch.answered(go[position], reply.stored() if reply.error is None else None)
                settle(go[position].key, reply)

            if go:
                conversations = [call.conversation for call in go]
                run_in_thread(partial(backend.generate, conversations, go[0].settings, take))

    def _identity(self) -> dict[str, Any]:
        """Return everything that affects an answer besides prompt and settings."""
        return identity(self.spec)

    def _built(self) -> Any:
        """Return the transport of an API model, or the local model."""
        with self._building:
            if self._backend is None:
                cls = model_class(self.spec, self.name)
                if is_api(cls):
                    self._backend = self._transport(build_api(cls, self.spec, self.name))
                else:
                    from mrag_eval.models._local import local_model

                    with Wait(f"loading {self.name}"):
                        self._backend = local_model(self.spec, self.name)
            return self._backend

    def _transport(self, api: ApiModel) -> Transport[Call, Reply]:
        return Transport(
            api.endpoint,
            api.payload,
            api.read,
            **self._limits,
        )

    @property
    def _limits(self) -> dict[str, Any]:
        """Return how requests are sent, as :class:`mrag_eval.platform.Attempts` takes it."""
        return {
            "max_in_flight": self.spec.max_in_flight,
            "timeout": self.spec.timeout,
            "retries": self.spec.retries,
            "first_backoff": self._first_backoff,
        }


def _repeated(reply: Reply) -> Reply:
    """Return the reply for an equal conversation of the same batch, for which nothing was sent."""
    return replace(reply, cached=reply.error is None, attempts=0, seconds=0.0)
