"""Models that judge, plan or translate: any model of the harness, called in batches, with every answer kept."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mrag_eval.config import Generation, ModelSpec, validated
from mrag_eval.models._api import ApiModel, build_api, is_api, model_class
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._ledger import Ledger, Spending
from mrag_eval.models._local import handed_over
from mrag_eval.models._reply import Call, Reply
from mrag_eval.models._seat import CameBack, OnReply, Seat
from mrag_eval.models._sending import Batch
from mrag_eval.models._spec import identity, name_of, older_identity
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

_FORMAT = "models/2"
# Where a key has no reply, that of the former format is looked up: what was paid for is not paid for again.
_OLDER = "models/1"
# Batch size of a local model with a token budget, which is checked between batches.
_WATCHED = 32

# Receives the reply of a call, by the call's key.
Settle = Callable[[str, Reply], None]


class AuxModel:
    """One model. It is asked in a :meth:`seat`. Concurrent batches of a model behind an API share its requests in
    flight; those of a local model take turns.

    ``name`` identifies it in messages. With a ``cache``, an answer is stored on arrival and never paid for twice, not
    even by processes that ask at the same time; failures are not stored. ``ledger`` counts the calls through this
    object, ``came_back`` the replies; ``spending``, which other objects may share, counts the spent budget. The model
    is built (weights loaded, key looked up) at the first answer that is not in the cache, or by :meth:`check`. Programs
    get a model by name from :func:`mrag_eval.models.get`.
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
        self.count_anew()
        self._cache = cache
        self._first_backoff = first_backoff
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._building = threading.Lock()
        self._spending = spending or Spending(spec.budget)
        self._backend: Any = None
        self._requests: ApiModel | None = None
        install_redaction()

    def count_anew(self) -> None:
        """Forget what was counted so far."""
        self.ledger, self.came_back = Ledger(), CameBack()

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

    @property
    def generation(self) -> Generation:
        """Return the decoding that the config file gives this model."""
        return self.spec.generation

    def seat(
        self,
        role: str = "",
        *,
        asked: Mapping[str, Any] | None = None,
        otherwise: Mapping[str, Any] | None = None,
        prompts: Mapping[str, str] | None = None,
        rounds: bool = False,
    ) -> Seat:
        """Return the model in a role. This alone decides with which settings it is asked.

        Args:
            role: what it is asked as (a judge's place in the panel, ...).
            asked: settings that the task demands (``{"temperature": 0.7}``). They come before the model's own.
            otherwise: settings that apply where neither the task nor the config file has one.
            prompts: the SHA-256 of each template that it is asked with, by name.
            rounds: whether it is asked in rounds; see :meth:`mrag_eval.models.Seat.generate`.

        Raises ConfigError for unknown settings.
        """
        own = {name: getattr(self.generation, name) for name in self.generation.model_fields_set}
        wanted = {**(otherwise or {}), **own, **(asked or {})}
        decoding = validated(Generation, wanted, f"model {self.name}, generation")
        return Seat(role, self, decoding, prompts or {}, rounds)

    def identity(self, decoding: Generation) -> dict[str, Any]:
        """Return everything that decides a reply besides the conversation, the same on any machine.

        ``generation`` are the settings as the model's class sends them, or hands them to its weights.
        """
        kind = self._kind()
        sent = self._api().settings(decoding) if is_api(kind) else handed_over(kind, decoding)
        return {**identity(self.spec), "generation": sent}

    def answer(
        self,
        seat: Seat,
        conversations: Sequence[Conversation],
        decoding: Generation,
        purpose: str,
        on_reply: OnReply | None,
        waiting: str | None,
    ) -> list[Reply]:
        """Return one reply per conversation of a seat; see :meth:`mrag_eval.models.Seat.generate`."""
        start = time.perf_counter()
        turns = [[{"role": m["role"], "content": m["content"]} for m in one] for one in conversations]
        try:
            who: Any = (self.identity(decoding), self._place()) if turns else ()
        except MragError:
            # it cannot be built, as each of its calls will say
            who = None
        positions: dict[str, list[int]] = {}
        for position, one in enumerate(turns):
            positions.setdefault(content_key(_FORMAT, who, one, purpose), []).append(position)
        replies: list[Reply | None] = [None] * len(conversations)

        def settle(key: str, reply: Reply) -> None:
            for nth, position in enumerate(positions[key]):
                same = reply if nth == 0 else _repeated(reply)
                replies[position] = same
                with self._counting:
                    self.ledger.add(same)
                    self.came_back.add(same)
                    seat.came_back.add(same)
                    if not same.cached:
                        seat.sent.add(same)
                if on_reply is not None:
                    on_reply(position, same)

        keeper = Keeper(self._cache)
        found = dict(keeper.find(positions))
        left = {key: turns[where[0]] for key, where in positions.items() if key not in found}
        known, how = self._older_identity() if left else {}, decoding.model_dump()
        older = {content_key(_OLDER, known, one, how, purpose): key for key, one in left.items()}
        self._cached([*positions, *older])
        found |= {older[key]: value for key, value in keeper.find(older).items()}
        for key, value in found.items():
            settle(key, Reply.from_store(value))
        calls = [Call(k, conversations[where[0]], decoding) for k, where in positions.items() if k not in found]
        if calls:
            name = waiting or f"asking {self.name}" + (f" ({purpose})" if purpose else "")
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

    def _kind(self) -> type[Any]:
        return model_class(self.spec, self.name)

    def _api(self) -> ApiModel:
        """Return the harness's object of a model behind an API, which sends nothing and needs no key yet."""
        if self._requests is None:
            self._requests = build_api(self._kind(), self.spec, self.name)
        return self._requests

    def _place(self) -> Any:
        """Return where the model is asked: two servers with a model of one name may hold different ones."""
        return self.spec.model_args.get("base_url")

    def _older_identity(self) -> dict[str, Any]:
        """Return the model as keys of the format :data:`_OLDER` hold it."""
        return older_identity(self.spec)

    def _built(self) -> Any:
        """Return the transport of an API model, or the local model."""
        with self._building:
            if self._backend is None:
                if is_api(self._kind()):
                    api = self._api()
                    self._backend = Transport(api.endpoint, api.payload, api.read, **self._limits)
                else:
                    from mrag_eval.models._local import local_model

                    with Wait(f"loading {self.name}"):
                        self._backend = local_model(self.spec, self.name)
            return self._backend

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
