"""Passages as columns: the same passages, one by one, by language, and in the files."""

from __future__ import annotations

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.retrievers.index._passage_columns import PassageColumns, joined

PASSAGES = [
    Passage("1", "ko", "다리는 1841년에 세워졌다.", "다리", "ko:다리"),
    Passage("2", "en", "", "", "2"),
    Passage("3", "ko", "강 \N{GRINNING FACE}", "", "d"),
    Passage("4", "zh-Hans", "桥", "桥", ""),
]


def test_rows_are_the_passages() -> None:
    columns = PassageColumns.of(PASSAGES)
    assert len(columns) == 4
    assert list(columns) == PASSAGES
    assert [columns[row] for row in range(4)] == PASSAGES
    assert columns[-1] == PASSAGES[-1]
    assert list(columns[1:3]) == PASSAGES[1:3]
    assert list(columns.take([3, 0])) == [PASSAGES[3], PASSAGES[0]]
    assert PassageColumns.of(columns) is columns
    with pytest.raises(IndexError):
        columns[4]


def test_rows_by_language() -> None:
    columns = PassageColumns.of(PASSAGES)
    found = {lang: (list(rows), list(own)) for lang, rows, own in columns.by_language()}
    assert list(found) == ["ko", "en", "zh-Hans"]
    assert found["ko"] == ([0, 2], [PASSAGES[0], PASSAGES[2]])
    only = columns.take([0, 2])
    assert [own for _, _, own in only.by_language()] == [only]


def test_files_hold_the_four_fields_one_after_the_other() -> None:
    text, offsets = joined(PassageColumns.of(PASSAGES).encoded(), 100)
    fields = [field.encode() for p in PASSAGES for field in (p.id, p.doc_id, p.title, p.text)]
    assert bytes(text) == b"".join(fields)
    assert np.frombuffer(offsets, "<i8").tolist() == (100 + np.cumsum([len(field) for field in fields])).tolist()


def test_no_passages() -> None:
    columns = PassageColumns.of([])
    assert list(columns) == []
    assert list(columns.by_language()) == []
