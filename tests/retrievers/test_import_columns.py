"""Columns of a source as the fields of passages, compared with the rules applied row by row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.core import Passage
from mrag_eval.platform import DataError
from mrag_eval.retrievers import import_vectors
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.imports._columns import ColumnLayout
from mrag_eval.retrievers.imports._texts import passage_lines
from mrag_eval.retrievers.index._hashing import passage_id

PAGE = r"p(\d+)_\d+"
_words = st.one_of(st.none(), st.just(""), st.text("ab강 ", max_size=3))
_rows = st.fixed_dictionaries(
    {
        "id": st.one_of(_words, st.from_regex(r"p[0-9]{1,2}_[0-9]", fullmatch=True)),
        "doc_id": _words,
        "title": _words,
        "text": _words,
        "lang": st.sampled_from(["en", "ko", "zh-cn"]),
    }
)


def _page(lang: str, page: str) -> str:
    return page if lang == "en" else f"{lang}:{page}"


def _expected(row: dict[str, Any], number: int, *, page: str, by_language: bool, has_ids: bool) -> Passage:
    """Apply the rules to one row."""
    row = {name: value or "" for name, value in row.items()}
    lang = {"zh-cn": "zh-Hans"}.get(row["lang"], row["lang"])
    given = row["id"] if has_ids else ""
    found = re.fullmatch(page, given) if page else None
    if found:
        document = _page(lang, found[1])
    elif row["doc_id"]:
        document = row["doc_id"]
    else:
        document = _page(lang, row["title"]) if row["title"] else given
    if not has_ids:
        given = passage_id(document, lang, number, row["text"])
    elif by_language and given:
        given = _page(lang, given)
    return Passage(given, lang, row["text"], row["title"], document)


@given(
    rows=st.lists(_rows, max_size=6),
    page=st.sampled_from(["", PAGE]),
    by_language=st.booleans(),
    has_ids=st.booleans(),
    one_language=st.booleans(),
    coded=st.booleans(),
)
def test_columns_follow_the_rules_of_a_row(
    rows: list[dict[str, Any]], page: str, by_language: bool, has_ids: bool, one_language: bool, coded: bool
) -> None:
    if one_language:
        rows = [{**row, "lang": "ko"} for row in rows]
    fields = [name for name in ("id", "doc_id", "title", "text", "lang") if has_ids or name != "id"]
    values: dict[str, Any] = {name: pa.array([row[name] for row in rows], pa.string()) for name in fields}
    if coded:
        values = {name: column.dictionary_encode() for name, column in values.items()}
    numbers = range(7, 7 + len(rows))
    layout = ColumnLayout(page=page, ids_by_language=by_language)
    found = layout.passages(values, "ko" if one_language else None, numbers, "here")
    assert list(found) == [
        _expected(row, number, page=page, by_language=by_language, has_ids=has_ids)
        for number, row in zip(numbers, rows, strict=True)
    ]


def test_numbers_are_ids_and_titles_but_no_texts() -> None:
    values = {"id": pa.array([3, None]), "title": pa.array([1984, 7]), "text": pa.array(["a", None])}
    found = ColumnLayout().passages(values, "en", [1, 2], "here")
    assert list(found) == [Passage("3", "en", "a", "1984", "1984"), Passage("", "en", "", "7", "7")]
    with pytest.raises(DataError, match="here: the texts are int64") as failed:
        ColumnLayout().passages({"text": pa.array([3])}, "en", [1], "here")
    assert failed.value.next_step == "name the column of the texts: --key text=COLUMN"


def test_a_language_that_is_none_is_named() -> None:
    values = {"text": pa.array(["a", "b"]), "lang": pa.array(["en", "no such"])}
    with pytest.raises(DataError, match=r"here, line 7: .*no such"):
        ColumnLayout().passages(values, None, [4, 7], "here", "line")


def test_text_that_is_not_utf8_names_its_file(tmp_path: Path, token_hash: Any) -> None:
    text = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 5], np.int32)), pa.py_buffer(b"acaf\xe9"))
    (tmp_path / "en").mkdir()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(64, np.float32)), 32)
    pq.write_table(pa.table({"id": ["1", "2"], "text": text, "embedding": vectors}), tmp_path / "en" / "0.parquet")
    with pytest.raises(DataError, match=r"0\.parquet: cannot be read after row 0: .*UTF-?8"):
        import_vectors(str(tmp_path / "en"), tmp_path / "index", embedder=token_hash, progress=False)


def test_lines_with_other_fields_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "wiki.jsonl"
    path.write_text('{"text": "a"}\n\n{"id": 5, "text": "b", "title": "T"}\n{"text": "c"}\n', "utf-8")
    found = list(passage_lines(path, ColumnLayout(lang="en"), Reading()))
    assert found == [
        Passage(passage_id("", "en", 1, "a"), "en", "a"),
        Passage("5", "en", "b", "T", "T"),
        Passage(passage_id("", "en", 4, "c"), "en", "c"),
    ]
