"""The evaluated model's answers: behind an API over our own transport, elsewhere as the harness gets them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from mrag_eval.core import ModelReply
from mrag_eval.models._ledger import Ledger
from mrag_eval.models._remedies import may_pass
from mrag_eval.models._run_model import ASKED, are_own_replies, replies_file
from mrag_eval.platform import remove_ended, run_ended

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
            run_ended(replies_file(), self.keys | ASKED)
        ASKED.clear()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form for results files; model and host are arguments of the run."""
        return {
            "transport": self.transport,
            "ledger": self.ledger.as_dict(),
            "answered_by": dict(self.answered_by),
            "finish_reasons": dict(self.finish_reasons),
            "outcomes": dict(self.outcomes),
        }


def answered_by_others(asked: str, counts: Mapping[str, int]) -> str | None:
    """Return the models that replies named, with the number of replies; None if the one that was asked is alone."""
    said = ", ".join(f"{name} ({n:,} of {sum(counts.values()):,} replies)" for name, n in counts.items())
    return said if {*counts} - {asked} else None


def asked_with(lm: Any, wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings with which a task's requests to the evaluated model are sent, or handed to its weights.

    Empty for a model of another kind, of which they are not known.

    Args:
        lm: the object of the harness.
        wanted: the task's settings of generation; None if likelihoods are asked for.
    """
    from mrag_eval.harness import sends_by_http, settings_of_weights

    if sends_by_http(type(lm)):
        from mrag_eval.models._bodies import sent_settings

        return sent_settings(lm, wanted)
    from mrag_eval.models._local import runs_weights

    if wanted is None or not runs_weights(type(lm)):
        return {}
    found = settings_of_weights(wanted, lm.max_gen_toks)
    end = lm.tokenizer.decode(lm.eot_token_id)
    return {**found, "until": [*found["until"], *({end} - {*found["until"]})]}


@contextmanager
def answering(
    asked: Any, tasks: Collection[str], *, in_vain: Callable[[Any], bool] = lambda _: False, first_backoff: float = 0.5
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
    from mrag_eval.models._bodies import replaced

    remove_ended()
    cached = isinstance(asked, CachingLM)
    lm = asked.lm if cached else asked
    kind = type(lm)
    name = str(getattr(lm, "model", None) or "") if sends_by_http(kind) else ""
    other = LOCAL if runs_here(kind) else f"not ours ({model_type_of(kind)})"
    state = Answering(name or model_type_of(kind), OURS if sends_by_http(kind) else other)
    # what the class itself does, by the name of the method
    answers: dict[str, Callable[..., list[Any]]] = dict.fromkeys(_ASKED_BY, lambda method, requests: method(requests))
    system = getattr(lm, "system", None)
    if system is not None or state.transport == OURS:
        from mrag_eval.models._services import OfApi, OfSystem
        from mrag_eval.models._systems import RagSystem

        if isinstance(system, RagSystem):
            state = Answering(system.name, OURS, system.host, system.ledger)
            answers["generate_until"] = OfSystem(system, state).replies
        elif state.transport == OURS:
            service = OfApi(lm, state, first_backoff)
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
