"""Bodies of requests as the harness's class of an API model makes them, kept instead of sent."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from mrag_eval.models._spec import KEY_HEADERS
from mrag_eval.platform import content_key, headers_in, run_in_thread

_FORMAT = "answers/1"
# Bytes of bodies that are kept until they are sent. Further ones are made again, as a long run's would fill the memory.
_KEPT = 64 << 20


@dataclass(frozen=True)
class Body:
    """One request to an API.

    Attributes:
        key: its key in the cache.
        content: returns the bytes to send.
        prompts: its prompts, as the harness's class put them in: chat turns, texts or tokens.
        context_lengths: of each prompt, the tokens before the continuation whose likelihood is asked; None for replies.
    """

    key: str
    content: Callable[[], bytes]
    prompts: Sequence[Any]
    context_lengths: Sequence[int] | None = None

    @property
    def count(self) -> int:
        """Return the number of answers that it asks for."""
        return len(self.prompts)


class InBody(NamedTuple):
    """The place of a request: its body, and its prompt within it."""

    body: int
    prompt: int


@contextmanager
def replaced(owner: Any, **attributes: Any) -> Iterator[None]:
    """Give an object other attributes within the block."""
    before = {name: vars(owner)[name] for name in attributes if name in vars(owner)}
    vars(owner).update(attributes)
    try:
        yield
    finally:
        for name in attributes:
            del vars(owner)[name]
        vars(owner).update(before)


def bodies_of(
    lm: Any, who: Mapping[str, Any], ask: Callable[[Sequence[Any]], list[Any]], requests: Sequence[Any]
) -> tuple[list[Body], list[InBody]]:
    """Return the bodies that ``ask``, a method of the harness's own, would send, and the place of each request.

    The harness's class tokenises, truncates, groups and batches as ever; only the sending is left out. So each body is
    its own, whatever the model type. Equal ones are told apart by their number, as repeats of one request are. ``who``
    is the identity of the model (:func:`api_identity`).
    """
    bodies: list[Body] = []
    seen: Counter[str] = Counter()
    room = [_KEPT]
    end = _end_of(lm)

    async def keep(
        prompts: Sequence[Any],
        cache_keys: Any = None,
        *,
        generate: bool = True,
        ctxlens: Sequence[int] | None = None,
        gen_kwargs: Any = None,
        **more: Any,
    ) -> list[list[InBody]]:
        places = []
        for start in range(0, len(prompts), lm._batch_size):
            batch = slice(start, start + lm._batch_size)

            def content(batch: slice = batch) -> bytes:
                message, wanted = lm.create_message(prompts[batch]), copy.deepcopy(gen_kwargs)
                payload = lm._create_payload(
                    message, generate=generate, gen_kwargs=wanted, seed=lm._seed, **end, **more
                )
                return json.dumps(payload).encode()

            made = content()
            room[0] -= len(made)
            told = sha256(made).hexdigest()
            key = content_key(_FORMAT, who, generate, told, seen[told])
            seen[told] += 1
            lengths = None if generate or ctxlens is None else ctxlens[batch]
            places.append([InBody(len(bodies), nth) for nth in range(len(prompts[batch]))])
            bodies.append(Body(key, partial(bytes, made) if room[0] > 0 else content, prompts[batch], lengths))
        return places

    with replaced(lm, get_batched_requests=keep, _concurrent=2):
        # in a thread, since the harness's class starts an event loop, which a notebook already runs here
        return bodies, run_in_thread(lambda: ask(requests))


def _end_of(lm: Any) -> dict[str, Any]:
    """Return the end of a text, which the harness's class names only where it sends one request at a time."""
    return {"eos": lm.eos_string} if lm._concurrent <= 1 else {}


def sent_settings(lm: Any, wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all that the bodies of a task's requests hold besides model and conversation.

    ``wanted`` are the task's settings of generation; None if likelihoods are asked for.
    """
    from mrag_eval.models._api import ApiModel, without_conversation

    probe: Any = [{"role": "user", "content": ""}] if ApiModel(lm, "").chat else ""
    more = {"generate": wanted is not None, "gen_kwargs": copy.deepcopy(dict(wanted or {}))}
    return without_conversation(lm, lm._create_payload(probe, seed=lm._seed, **_end_of(lm), **more))


def api_identity(lm: Any) -> dict[str, Any]:
    """Return what decides an answer besides the body: where it is asked, and how it is read."""
    told = headers_in(lm.header)
    headers = {name.lower(): str(value) for name, value in told.items() if name.lower() not in KEY_HEADERS}
    ends = getattr(lm, "think_end_token", None)
    return {"class": type(lm).__qualname__, "url": lm.base_url, "headers": headers, "ends_thinking": ends}
