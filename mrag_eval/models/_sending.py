"""Calls of one batch that the cache does not hold, each made by one of the processes that ask for it, and kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from mrag_eval.models._keeper import Keeper
from mrag_eval.platform import Attempts, Claims, Response, Shares, Store, run_on_loop


class Keyed(Protocol):
    """A call, identified by its key in the cache."""

    @property
    def key(self) -> str: ...


C = TypeVar("C", bound=Keyed)
A = TypeVar("A")


class Batch(Generic[C]):
    """Calls that are made once among all processes with the same cache; to be used as a context manager.

    ``recall`` receives the key and the stored value of a call that another process made. Without a cache every call is
    made here. After ``patience`` seconds without a new value, this process makes the calls that another has claimed.
    """

    def __init__(
        self,
        calls: Sequence[C],
        keeper: Keeper,
        cache: Store | None,
        patience: float,
        recall: Callable[[str, Any], None],
    ) -> None:
        def found(keys: Collection[str]) -> Collection[str]:
            there = keeper.find(keys)
            for key, value in there.items():
                recall(key, value)
            return there.keys()

        claims = None if cache is None else Claims(cache.path.with_suffix(".claims"))
        self._keeper, self._most = keeper, len(calls)
        self._shares = Shares({call.key: call for call in calls}, claims, found, patience=patience)

    def __enter__(self) -> Batch[C]:
        return self

    def __exit__(self, *_: object) -> None:
        self._shares.close()

    def rounds(self) -> Iterator[Iterator[C]]:
        """Yield the calls to make here, until every call is answered; use up each iterator before the next."""
        return self._shares.rounds()

    def send(
        self,
        transport: Attempts[C, A],
        calls: Iterator[C],
        take: Callable[[C, Response[A]], Any | None],
        settle: Callable[[C, Response[A]], None],
        refuse: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Send the calls of a round. As each is answered, ``take`` returns the value to store, None for a failure;
        ``settle`` is called when it is on disk.
        """
        sent: list[C] = []

        def sending() -> Iterator[C]:
            for call in calls:
                sent.append(call)
                yield call

        async def accept(position: int, response: Response[A]) -> None:
            call = sent[position]
            value = take(call, response)
            if value is not None:
                await self._keeper.keep(call.key, value)
            self._shares.release(call.key)
            settle(call, response)

        run_on_loop(transport.send(sending(), self._most, accept, refuse))

    def answered(self, call: C, value: Any | None) -> None:
        """Store the value of a call that was made in another way, None for a failure."""
        if value is not None:
            self._keeper.put({call.key: value})
        self._shares.release(call.key)
