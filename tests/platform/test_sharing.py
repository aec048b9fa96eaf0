"""Work that several processes do at once: each value is made by one of them, and all get it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mrag_eval.platform import Claims, Store, content_key, made_once

KEYS = [content_key(number) for number in range(12)]


def is_text(value: object) -> bool:
    return isinstance(value, str)


class Maker:
    """Makes values, two at a time and slowly; its file has a line for each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, folder / "made.txt"

    def make(self, keys: Sequence[str]) -> Iterator[dict[str, str]]:
        for start in range(0, len(keys), 2):
            time.sleep(0.02)
            part = keys[start : start + 2]
            with self.made.open("a") as out:
                out.write("".join(f"{key}\n" for key in part))
            yield {key: f"value of {key}" for key in part}

    def run(self, at_once: int) -> dict[str, str]:
        store = Store(self.folder / "store.sqlite")
        try:
            return made_once(KEYS, self.make, store, is_text, at_once=at_once)
        finally:
            store.close()


@pytest.mark.parametrize("at_once", [3, 100])
def test_processes_that_start_together_make_each_value_once(tmp_path: Path, at_once: int) -> None:
    maker, expected = Maker(tmp_path), {key: f"value of {key}" for key in KEYS}
    children = []
    for _ in range(2):
        if (child := os.fork()) == 0:
            code = 1
            try:
                code = 0 if maker.run(at_once) == expected else 2
            finally:
                os._exit(code)
        children.append(child)
    assert maker.run(at_once) == expected
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert sorted(maker.made.read_text().split()) == sorted(KEYS)


def test_parts_are_stored_as_they_are_made(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite")

    def fails(keys: Sequence[str]) -> Iterator[dict[str, str]]:
        yield {keys[0]: "paid for"}
        raise RuntimeError("the server is down")

    with pytest.raises(RuntimeError, match="the server is down"):
        made_once(KEYS, fails, store, is_text, at_once=100)
    assert store.get_many(KEYS) == {KEYS[0]: "paid for"}
    assert made_once(KEYS[1:], lambda keys: [dict.fromkeys(keys, "x")], store, is_text, at_once=5) == dict.fromkeys(
        KEYS[1:], "x"
    )


def test_without_a_store_everything_is_made_here() -> None:
    assert made_once(KEYS, lambda keys: [dict.fromkeys(keys, "x")], None, is_text, at_once=5) == dict.fromkeys(
        KEYS, "x"
    )


def test_a_value_that_another_process_stores_meanwhile_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store.sqlite")

    def take(self: Claims, key: str) -> bool:
        store.put_many({key: "theirs"})
        return True

    def refuse(keys: Sequence[str]) -> list[dict[str, str]]:
        raise AssertionError("made again")

    monkeypatch.setattr(Claims, "take", take)
    assert made_once(KEYS, refuse, store, is_text, at_once=5) == dict.fromkeys(KEYS, "theirs")
