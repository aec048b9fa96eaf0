"""Answers are on disk when their slot goes on, and the loop waits for no one."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.models._keeper import Keeper
from mrag_eval.platform import Store


class Counting(Store):
    """A store that remembers the size of every commit."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits: list[int] = []

    def put_many(self, entries: Mapping[str, Any], *, wait: bool = True) -> bool:
        done = super().put_many(entries, wait=wait)
        if done:
            self.commits.append(len(entries))
        return done


@pytest.fixture
def counting(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "models.sqlite")


def test_an_answer_is_on_disk_when_its_slot_goes_on(counting: Counting) -> None:
    async def slot(keeper: Keeper, number: int) -> None:
        await keeper.keep(f"{number}", {"text": f"{number}"})
        reader = Store(counting.path)
        assert reader.get_many([f"{number}"]) == {f"{number}": {"text": f"{number}"}}
        reader.close()

    async def batch() -> None:
        keeper = Keeper(counting)
        await asyncio.gather(*(slot(keeper, number) for number in range(40)))

    asyncio.run(batch())
    # a slot that waited for the answers of others would send its next call later
    assert counting.commits == [1] * 40


def test_while_another_process_writes_the_loop_goes_on(counting: Counting) -> None:
    other = sqlite3.connect(counting.path, isolation_level=None, check_same_thread=False)

    async def batch() -> int:
        keeper, turns = Keeper(counting), 0
        other.execute("BEGIN IMMEDIATE")
        slots = []
        for number in range(20):
            slots.append(asyncio.create_task(keeper.keep(f"{number}", {"text": ""})))
            await asyncio.sleep(0.005)
            turns += 1
        assert not any(slot.done() for slot in slots)
        assert counting.commits == []
        other.execute("ROLLBACK")
        await asyncio.gather(*slots)
        return turns

    assert asyncio.run(batch()) == 20
    # the first, for which a thread waited, and all that arrived meanwhile
    assert counting.commits == [1, 19]
    assert len(Store(counting.path).get_many(map(str, range(20)))) == 20


def test_the_answer_of_a_cancelled_slot_is_kept(counting: Counting) -> None:
    other = sqlite3.connect(counting.path, isolation_level=None, check_same_thread=False)

    async def batch() -> None:
        keeper = Keeper(counting)
        other.execute("BEGIN IMMEDIATE")
        slots = [asyncio.create_task(keeper.keep(f"{number}", {"text": ""})) for number in range(3)]
        await asyncio.sleep(0)
        for slot in slots:
            slot.cancel()
        await asyncio.gather(*slots, return_exceptions=True)
        assert all(slot.cancelled() for slot in slots)
        other.execute("ROLLBACK")
        await asyncio.sleep(0.2)

    asyncio.run(batch())
    assert len(Store(counting.path).get_many(["0", "1", "2"])) == 3
