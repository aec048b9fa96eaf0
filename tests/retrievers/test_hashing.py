"""Ids and content hashes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.retrievers import ContentHash, Index
from mrag_eval.retrievers.build import _passages_finish
from mrag_eval.retrievers.index import _passages
from mrag_eval.retrievers.index._hashing import SeenIds, hash64, passage_id
from mrag_eval.retrievers.index._passage_columns import PassageColumns


def test_passage_ids_depend_on_each_part_and_not_on_how_parts_join() -> None:
    parts = [("d", "en", 0, "t"), ("e", "en", 0, "t"), ("d", "de", 0, "t"), ("d", "en", 1, "t"), ("d", "en", 0, "u")]
    assert len({passage_id(*part) for part in parts}) == len(parts)
    assert passage_id("ab", "en", 0, "c") != passage_id("a", "ben", 0, "c")
    assert passage_id("d", "en", 1, "1t") != passage_id("d", "en", 11, "t")


def test_hash64_is_the_same_in_every_process() -> None:
    assert hash64("강") == 0x90BD077B704ECA99


def test_seen_ids_over_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeenIds, "_RECENT", 10)
    seen = SeenIds()
    order = list(range(1_000))
    random.Random(0).shuffle(order)
    assert all(seen.add(f"id-{number}") for number in order)
    assert not any(seen.add(f"id-{number}") for number in range(1_000))
    assert seen.add("another")
    # runs are merged as they grow, so their number stays small
    assert len(seen._runs) < 10


@pytest.mark.parametrize("recent", [4, 1_000])
def test_many_seen_ids_are_those_seen_one_by_one(monkeypatch: pytest.MonkeyPatch, recent: int) -> None:
    monkeypatch.setattr(SeenIds, "_RECENT", recent)
    seen = SeenIds()
    for first in range(0, 60, 6):
        assert seen.add_many([f"강{number}" for number in range(first, first + 6)]) is None
    assert seen.add_many([]) is None
    # known from an earlier batch, and twice in the same one: the first of them is named
    assert seen.add_many(["a", "강7", "강3"]) == "강7"
    assert seen.add_many(["b", "c", "b", "강3"]) == "b"
    assert not seen.add("강59")
    assert seen.add("강60")
    assert seen.add_many(["강61", "강60"]) == "강60"


def test_the_hash_of_encoded_fields_is_that_of_their_passages() -> None:
    passages = [Passage(f"{n}", "zh-Hans", "字" * n, title="t" * (n % 2), doc_id=f"d{n // 3}") for n in range(1, 9)]
    one, other = ContentHash("ff"), ContentHash("ff")
    for passage in passages:
        one.add(passage)
    other.add_encoded("zh-Hans", PassageColumns.of(passages).encoded())
    assert one.hexdigest == other.hexdigest


def test_content_hash_is_resumable_and_blind_to_order() -> None:
    passages = [Passage(id=str(n), lang="en", text="t" * n, title="", doc_id="d") for n in range(1, 6)]
    whole = ContentHash()
    for passage in passages:
        whole.add(passage)
    first = ContentHash()
    for passage in passages[3:]:
        first.add(passage)
    rest = ContentHash(first.hexdigest)
    for passage in passages[:3]:
        rest.add(passage)
    assert rest.hexdigest == whole.hexdigest
    assert len(whole.hexdigest) == 64
    # a passage twice is not a missing passage, and fields do not run together
    rest.add(passages[0])
    assert rest.hexdigest != whole.hexdigest
    one, other = ContentHash(), ContentHash()
    one.add(Passage(id="1", lang="en", text="ab", title="c"))
    other.add(Passage(id="1", lang="en", text="a", title="bc"))
    assert one.hexdigest != other.hexdigest


def test_ids_that_share_a_hash_stay_distinct(
    make_index: Callable[..., Index], passages: list[Passage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_passages, "hash64", lambda text: 5)
    monkeypatch.setattr(_passages_finish, "hashes64", lambda names: np.full(len(names), 5, dtype=np.uint64))
    index = make_index(passages, kind="bm25")
    assert index.passages(["ko-1", "en-0"]) == [p for i in ("ko-1", "en-0") for p in passages if p.id == i]
    (hits,) = index.search(["bridge museum river opens"], 9, languages=["en"], candidates=[["doc-2", "en-0"]])
    assert sorted(hit.id for hit in hits) == ["en-0", "en-2"]
