"""Calls of one batch, shared with other processes that make the same calls at the same time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

from mrag_eval.core import Claims
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._reply import Call, Reply

# Calls claimed at once: few, so that processes that start together share the work.
_CLAIMED = 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Shares:
    """The calls of one batch that no other process has made or is making.

    A call is claimed shortly before it is sent, and released when its reply is stored. A claim ends with its process.
    Calls that others have claimed come last: their replies are read from the cache as they appear there. After
    ``patience`` seconds in which none appears, this process makes them itself.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        keeper: Keeper,
        claims: Claims | None,
        settle: Callable[[str, Reply], None],
        patience: float,
    ) -> None:
        self._left = list(calls)
        self._keeper, self._claims, self._settle = keeper, claims, settle
        self._patience = patience
        self._held: set[str] = set()

    def rounds(self) -> Iterator[Iterator[Call]]:
        """Yield the calls to make, until every call is settled; use up each iterator before the next."""
        pause, progress = _FIRST_PAUSE, time.monotonic()
        while self._left:
            before = len(self._left)
            yield self._own()
            if len(self._left) < before:
                pause, progress = _FIRST_PAUSE, time.monotonic()
            elif time.monotonic() - progress > self._patience:
                self._claims = None
            if self._left:
                time.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE)

    def _own(self) -> Iterator[Call]:
        waiting, self._left = iter(self._left), []
        while chunk := list(itertools.islice(waiting, _CLAIMED)):
            own = chunk
            if self._claims is not None:
                own = [call for call in chunk if self._claims.take(call.key)]
                self._held.update(call.key for call in own)
                # after claiming: others store a reply before they release its claim
                found = self._keeper.find(call.key for call in chunk)
                for key, value in found.items():
                    self.release(key)
                    self._settle(key, Reply.from_store(value))
                own = [call for call in own if call.key not in found]
                self._left += [call for call in chunk if call.key not in found and call.key not in self._held]
            yield from own

    def release(self, key: str) -> None:
        """Let other processes make this call."""
        if key in self._held:
            self._held.remove(key)
            if self._claims is not None:
                self._claims.release(key)

    def close(self) -> None:
        """Release what was claimed and not made."""
        for key in list(self._held):
            self.release(key)
