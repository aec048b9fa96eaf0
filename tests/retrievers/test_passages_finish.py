"""Files derived from the passages at the end of a build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.build import _passages_finish
from mrag_eval.retrievers.build._passages_finish import _Distinct, finish_passages
from mrag_eval.retrievers.index._passage_columns import PassageColumns, joined
from mrag_eval.retrievers.index._passages import PassageStore


def test_distinct_hashes_are_counted_whenever_they_come_again() -> None:
    draw = np.random.default_rng(3)
    batches = [draw.integers(0, 50_000, size, dtype=np.uint64) for size in (0, 1, 4_096, 4_096, 0, 70_000, 4_096)]
    distinct = _Distinct()
    distinct._limit = 5_000
    assert distinct.count() == 0
    for number, batch in enumerate(batches):
        distinct.add(batch)
        if number % 3 == 2:
            assert distinct.count() == len(np.unique(np.concatenate(batches[: number + 1])))
    assert distinct.count() == len(np.unique(np.concatenate(batches)))


@pytest.mark.parametrize("kinds", [100, 10**9], ids=["the same ones again", "all different"])
def test_sorting_them_grows_with_their_number_and_not_its_square(kinds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million hashes in batches of a thousand: in total only a few times as many values are sorted."""
    sorted_in_all = 0
    unique = np.unique

    def counted(values: np.ndarray) -> np.ndarray:
        nonlocal sorted_in_all
        sorted_in_all += len(values)
        return unique(values)

    monkeypatch.setattr(_passages_finish.np, "unique", counted)
    distinct = _Distinct()
    distinct._limit = 10_000
    draw = np.random.default_rng(3)
    for _ in range(1_000):
        distinct.add(draw.integers(0, kinds, 1_000, dtype=np.uint64))
    distinct.count()
    assert 10**6 <= sorted_in_all < 5 * 10**6


def test_a_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    import pyarrow as pa

    (tmp_path / "passages").mkdir()
    fields = [pa.array([field], pa.large_binary()) for field in (b"1", b"", b"", b"caf\xe9")]
    text, offsets = joined(fields, 0)
    (tmp_path / "passages" / "fr.text").write_bytes(text)
    (tmp_path / "passages" / "fr.offsets").write_bytes(offsets)
    with pytest.raises(CorpusError, match=r"passages/fr\.text is damaged \(it is not UTF-8\)"):
        finish_passages(tmp_path, ("fr",))


def test_the_copy_and_the_lookup_are_those_of_the_passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr(_passages_finish, "_BATCH", 3)
    (tmp_path / "passages").mkdir()
    named = [("1", "d1"), ("2", "d1"), ("3", ""), ("4", "4"), ("5", "d2"), ("6", "d1"), ("강", "d2")]
    passages = [Passage(one, "ko", f"본문 {one}", title="t" * n, doc_id=doc) for n, (one, doc) in enumerate(named)]
    text, offsets = joined(PassageColumns.of(passages).encoded(), 0)
    (tmp_path / "passages" / "ko.text").write_bytes(text)
    (tmp_path / "passages" / "ko.offsets").write_bytes(offsets)
    # d1, d2, and the two passages that are documents of their own
    assert finish_passages(tmp_path, ("ko",)) == {"ko": 4}
    rows = pq.read_table(tmp_path / "passages" / "ko.parquet").to_pylist()
    assert rows == [{"id": p.id, "doc_id": p.doc_id, "lang": "ko", "title": p.title, "text": p.text} for p in passages]
    found = PassageStore(tmp_path, {"ko": 7}).rows_named(["d1", "d2", "4", "강", "d9"])
    assert {name: sorted(rows.tolist()) for name, rows in found.items()} == {
        "d1": [0, 1, 5], "d2": [4, 6], "4": [3], "강": [6], "d9": []
    }  # fmt: skip
