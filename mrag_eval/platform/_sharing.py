"""Work of one batch, shared with other processes that do the same work at the same time."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from mrag_eval.platform._claims import Claims
from mrag_eval.platform._store import Store

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

Item = TypeVar("Item")

# Items claimed at once: few, so that processes that start together share the work.
_CLAIMED = 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
# Seconds until a wait for another process is logged.
_SILENT = 2.0
# Seconds without a new value after which this process does by itself what a living one has claimed.
_PATIENCE = 3600.0


class Shares(Generic[Item]):
    """The items of one batch, by key, that no other process has worked on or is working on.

    An item is claimed shortly before it is yielded, and to be released when its value is stored. A claim ends with its
    process. Items that others have claimed come last: ``found`` takes the values of keys from the store as they appear
    there, and returns the keys that it found. After ``patience`` seconds in which none appears, this process works on
    them itself.
    """

    def __init__(
        self,
        items: Mapping[str, Item],
        claims: Claims | None,
        found: Callable[[Collection[str]], Collection[str]],
        *,
        patience: float = _PATIENCE,
        claimed: int = _CLAIMED,
    ) -> None:
        self._left = dict(items)
        self._claims, self._found = claims, found
        self._patience, self._claimed = patience, claimed
        self._held: set[str] = set()

    def rounds(self) -> Iterator[Iterator[Item]]:
        """Yield the items to work on, until every item has a value; use up each iterator before the next."""
        pause, progress, waiting = _FIRST_PAUSE, time.monotonic(), False
        while self._left:
            before = len(self._left)
            yield self._own()
            silent = time.monotonic() - progress
            if len(self._left) < before:
                pause, progress = _FIRST_PAUSE, time.monotonic()
            elif silent > self._patience:
                self._claims = None
            elif silent > _SILENT and not waiting:
                waiting = True
                log.info("waiting for the same work, which has begun elsewhere: %d left", len(self._left))
            if self._left:
                time.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE)

    def _own(self) -> Iterator[Item]:
        waiting, self._left = iter(self._left.items()), {}
        while chunk := dict(itertools.islice(waiting, self._claimed)):
            if self._claims is not None:
                self._held.update(key for key in chunk if self._claims.take(key))
                # after claiming: others store a value before they release its claim
                for key in self._found(chunk.keys()):
                    self.release(key)
                    del chunk[key]
                self._left |= {key: item for key, item in chunk.items() if key not in self._held}
            yield from [item for key, item in chunk.items() if key not in self._left]

    def release(self, key: str) -> None:
        """Let other processes work on this item."""
        if key in self._held:
            self._held.remove(key)
            if self._claims is not None:
                self._claims.release(key)

    def close(self) -> None:
        """Release the items that were claimed and not worked on."""
        for key in list(self._held):
            self.release(key)


def made_once(
    keys: Iterable[str],
    make: Callable[[list[str]], Iterable[Mapping[str, Any]]],
    store: Store | None,
    valid: Callable[[Any], bool],
    *,
    at_once: int,
) -> dict[str, Any]:
    """Return the values of keys that the store does not hold, made here or by another process at the same time.

    ``make`` receives at most ``at_once`` keys and yields their values as they are made; each part is stored before the
    next is made. Without a store, everything is made here.
    """
    out: dict[str, Any] = {}

    def found(asked: Collection[str]) -> Collection[str]:
        there = store.get_many(asked, valid) if store is not None else {}
        out.update(there)
        return there.keys()

    claims = None if store is None else Claims(store.path.with_suffix(".claims"))
    shares = Shares({key: key for key in keys}, claims, found, claimed=at_once)
    try:
        for own in shares.rounds():
            while chunk := list(itertools.islice(own, at_once)):
                for made in make(chunk):
                    if store is not None:
                        store.put_many(made)
                    out.update(made)
                    for key in made:
                        shares.release(key)
    finally:
        shares.close()
    return out
