"""Indexes from vectors that exist: read, checked, written, and refused where they are not those of their passages."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.platform import ConfigError, CorpusError, DataError, MragError
from mrag_eval.retrievers import Index, build_index, import_vectors, index_info, merge_indexes
from mrag_eval.retrievers.build._building import Building
from mrag_eval.retrievers.imports import _sources, _tables
from tests.worlds.vectors import Rows, made, write_table, write_upstash

COUNT = 40


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_tables, _sources):
        monkeypatch.setattr(module, "BLOCK", 7)


@pytest.fixture
def rows(token_hash: Any) -> Rows:
    return made(token_hash.embed_passages, COUNT)


@pytest.fixture
def run(tmp_path: Path, token_hash: Any) -> Any:
    def call(source: Path | str | None, **options: Any) -> Index:
        settings = {"embedder": token_hash, "preset": "upstash-bge-m3", "progress": False, **options}
        return import_vectors(None if source is None else str(source), tmp_path / "index", **settings)

    return call


def test_passages_and_vectors_are_those_of_the_files(tmp_path: Path, rows: Rows, run: Any) -> None:
    index = run(write_upstash(tmp_path / "set", rows))
    assert index.counts == {"en": COUNT, "ko": COUNT}
    passages, vectors = rows.of("ko")
    (found,) = index.passages(["ko:2_1"])
    expected = passages[7]
    assert (found.text, found.title, found.lang) == (expected.text, expected.title, "ko")
    assert found.doc_id == "https://ko.wikipedia.org/wiki?curid=2"
    np.testing.assert_array_equal(index.shard("ko").vectors(np.arange(COUNT)), vectors)
    (record,) = index.manifest.imported
    assert record.status == "verified 80 of 80 (title in front)"
    assert (record.passages, record.languages, record.scaled) == (80, ("en", "ko"), False)
    assert index.manifest.chunker == {"method": "none", "size": 100, "title_in_front": True, "min_chars": 1}


@pytest.mark.parametrize(
    ("fed", "form"),
    [
        ("{text}", "text alone"),
        ("{title}. {text}", "title in front"),
        ("{title}\n\n{text}", "title in front"),  # token-hash reads both alike, and the first of equals is taken
    ],
)
def test_the_form_of_the_texts_is_found(tmp_path: Path, token_hash: Any, run: Any, fed: str, form: str) -> None:
    index = run(write_upstash(tmp_path / "set", made(token_hash.embed_passages, COUNT, fed=fed)))
    assert index.manifest.imported[0].form == form


def test_a_hundred_are_drawn_over_the_whole_set(tmp_path: Path, token_hash: Any, run: Any) -> None:
    index = run(write_upstash(tmp_path / "set", made(token_hash.embed_passages, 90)))
    assert index.manifest.imported[0].drawn == 100


def _shuffled(values: list[Any]) -> list[Any]:
    return [values[row] for row in np.random.default_rng(3).permutation(len(values))]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"embedding": _shuffled}, "of other passages"),
        ({"title": lambda titles: [f"another {n}" for n in range(len(titles))]}, "other titles"),
        ({"embedding": lambda v: list(np.random.default_rng(1).standard_normal((len(v), 32)))}, "another embedder"),
        ({"text": lambda texts: [*texts[:30], *(f"{text} cut" * 3 for text in texts[30:])]}, "some rows differ"),
    ],
)
def test_vectors_of_other_passages_are_refused(
    tmp_path: Path, rows: Rows, run: Any, changed: dict[str, Any], said: str
) -> None:
    source = write_upstash(tmp_path / "set", rows, **changed)
    with pytest.raises(DataError, match=said) as refused:
        run(source)
    assert "token-hash" in refused.value.message
    assert not (tmp_path / "index").exists()
    index = run(source, unverified=True, resume=True)
    assert "not verified" in index.manifest.imported[0].status
    assert len(index) == 80


def test_a_refused_import_is_finished_without_reading_the_vectors_again(
    tmp_path: Path, rows: Rows, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_upstash(tmp_path / "set", rows, text=lambda texts: [*texts[:30], *(f"{t} cut" for t in texts[30:])])
    with pytest.raises(DataError):
        run(source)
    read: list[int] = []
    append = Building.append
    monkeypatch.setattr(
        Building, "append", lambda self, passages, *rest: (read.append(1), append(self, passages, *rest))
    )
    assert run(source, unverified=True, resume=True).manifest.imported[0].agree is not None
    assert not read


class Closed:
    """An embedder without a key."""

    name, revision, dim = "closed", "1", 32

    def embed_passages(self, texts: Any) -> Any:
        raise ConfigError("no key", "export KEY=...")

    embed_queries = embed_passages


def test_an_embedder_that_cannot_be_run_verifies_nothing(tmp_path: Path, rows: Rows, run: Any) -> None:
    source = write_upstash(tmp_path / "set", rows)
    with pytest.raises(ConfigError, match="cannot be checked: no key"):
        run(source, embedder=Closed())
    index = run(source, embedder=Closed(), unverified=True)
    assert index.manifest.imported[0].status == "imported, not verified (no embedder)"


def test_vectors_of_another_length_are_scaled(tmp_path: Path, rows: Rows, run: Any) -> None:
    index = run(write_upstash(tmp_path / "set", rows, embedding=lambda vectors: [3 * vector for vector in vectors]))
    assert index.manifest.imported[0].scaled
    stored = index.shard("en").vectors(np.arange(COUNT))
    np.testing.assert_allclose(stored, rows.of("en")[1], rtol=0, atol=1e-6)


def test_int8_and_float16_columns_are_read(tmp_path: Path, rows: Rows, run: Any) -> None:
    coded = np.rint(rows.vectors * 254).clip(-127, 127).astype(np.int8)
    source = write_upstash(tmp_path / "set", Rows(rows.passages, coded), column="emb_int8")
    index = run(source, vectors="emb_int8", store="float16")
    assert index.manifest.imported[0].is_verified
    assert index.manifest.store == "float16"


def test_languages_and_limit(tmp_path: Path, rows: Rows, run: Any) -> None:
    source = write_upstash(tmp_path / "set", rows)
    (source / "data" / "en" / "0000.parquet").write_bytes(b"never read")
    assert run(source, langs=("ko",), limit=12).counts == {"ko": 12}
    with pytest.raises(DataError, match="holds no 'ja'"):
        run(source, langs=("ja",), overwrite=True)


def test_a_column_of_languages_is_surer_than_a_folder(tmp_path: Path, rows: Rows, run: Any) -> None:
    passages, vectors = rows.passages[:5], rows.vectors[:5]
    table = {"text": [p.text for p in passages], "title": [p.title for p in passages], "emb": list(vectors)}
    write_table(tmp_path / "set" / "emb" / "0.parquet", {**table, "lang": ["ko", "ko", "en", "en", "en"]})
    index = run(tmp_path / "set", preset=None)
    assert index.counts == {"en": 3, "ko": 2}
    # without a column of ids they are made, and stay the same
    again = run(tmp_path / "set", preset=None, overwrite=True)
    assert [hit.id for hit in again.search(["river"], 5)[0]] == [hit.id for hit in index.search(["river"], 5)[0]]


# ---------------------------------------------------------------- interruptions


def _fingerprint(index: Index) -> tuple[str, Any]:
    return index.manifest.fingerprint, index.manifest.imported


@pytest.mark.parametrize("call", [1, 2, 6, 13])
def test_an_interrupted_import_continues_to_the_same_index(
    tmp_path: Path, rows: Rows, run: Any, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    source = write_upstash(tmp_path / "set", rows)
    whole = _fingerprint(run(source))
    calls = iter(range(1, 1000))
    save = Building._save

    def dying(self: Building) -> None:
        if next(calls) == call:
            raise KeyboardInterrupt
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(Building, "_save", dying)
        with pytest.raises(KeyboardInterrupt):
            run(source, overwrite=True)
    assert _fingerprint(run(source, overwrite=True, resume=True)) == whole


def test_rows_written_before_are_read_without_their_vectors(
    tmp_path: Path, rows: Rows, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_upstash(tmp_path / "set", rows)
    last = source / "data" / "ko" / "0001.parquet"
    content = last.read_bytes()
    last.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"ko/0001.parquet: cannot be read after row 0.*"):
        run(source)
    last.write_bytes(content)
    read: list[str] = []
    real = _tables.vectors_of
    monkeypatch.setattr(_tables, "vectors_of", lambda column, where: (read.append(where), real(column, where))[1])
    index = run(source, resume=True)
    assert index.manifest.imported[0].status == "verified 80 of 80 (title in front)"
    # of the files that were written, only the first block, which is checked first, and the one read ahead
    first = f"{source}/data/en/0000.parquet, from row"
    assert {where for where in read if "ko/0001" not in where} <= {f"{first} 1", f"{first} 8"}


def test_a_resumed_import_compares_the_rows(tmp_path: Path, rows: Rows, run: Any) -> None:
    source = write_upstash(tmp_path / "set", rows)
    last = source / "data" / "ko" / "0001.parquet"
    content = last.read_bytes()
    last.write_bytes(content[:100])
    with pytest.raises(DataError):
        run(source)
    write_upstash(source, rows, id=lambda ids: [f"x{one}" for one in ids])
    with pytest.raises(CorpusError, match="does not begin with"):
        run(source, resume=True)


def test_a_full_disk_is_one_line_and_loses_nothing(
    tmp_path: Path, rows: Rows, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_upstash(tmp_path / "set", rows)
    writes = iter(range(100))
    real = Building._write

    def full(self: Building, name: str, content: bytes) -> None:
        if next(writes) == 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Building, "_write", full)
        with pytest.raises(CorpusError, match="the disk is full") as failed:
            run(source)
    assert "--resume" in str(failed.value.next_step)
    assert run(source, resume=True).manifest.imported[0].is_verified


# ---------------------------------------------------------------- bad input


def _twice(values: list[Any]) -> list[Any]:
    return [*values[:-1], values[0]]


def _at(row: int, value: Any) -> Any:
    return lambda values: [*values[:row], value, *values[row + 1 :]]


def _nan(vectors: list[Any]) -> list[Any]:
    out = np.array(vectors)
    out[5, 3] = np.nan
    return list(out)


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        ({}, {"vectors": "nope"}, "no column 'nope' (columns: embedding, id, text, title, url)"),
        ({}, {"keys": {"text": "body"}}, "no column 'body'"),
        ({}, {"vectors": "title"}, "the column holds string, no vectors"),
        ({"embedding": lambda v: list(np.array(v)[:, :16])}, {}, "the vector has 16 dimensions, expected 32"),
        ({"embedding": _nan}, {}, "en/0000.parquet, row 6: the vector holds a value that is not finite"),
        ({"embedding": _at(3, np.zeros(32, np.float32))}, {}, "row 4: the vector is zero"),
        ({"embedding": _at(8, None)}, {}, "en/0000.parquet, from row 8: 1 of 7 rows have no vector"),
        ({"embedding": _at(8, np.ones(31, np.float32))}, {}, "vectors have different lengths"),
        ({"id": _twice}, {}, "en/0001.parquet, row 14: passage id '0_0' appears a second time"),
        ({"id": _at(2, "")}, {"preset": None}, "row 3: the id is empty"),
        ({"id": _at(2, "a\tb")}, {}, "row 3: the id 'a\\tb' holds a tab"),
        ({"text": _at(30, "  ")}, {}, "en/0001.parquet, row 5: the text is empty"),
        ({}, {"preset": None, "embedder": None}, "--embedder is missing"),
        ({}, {"preset": "upstash"}, "unknown preset 'upstash'"),
        ({}, {"limit": 0}, "--limit is 0"),
        ({}, {"keys": {"body": "x"}}, "--key: unknown field 'body'"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, rows: Rows, run: Any, changed: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(MragError) as failed:
        run(write_upstash(tmp_path / "set", rows, **changed), **options)
    assert said in failed.value.message
    assert "\n" not in failed.value.message
    assert failed.value.next_step or any(word in failed.value.message for word in ("allowed", "did you mean"))
    assert not (tmp_path / "index").exists()


def test_rows_without_text_are_left_out_on_request(tmp_path: Path, rows: Rows, run: Any) -> None:
    source = write_upstash(tmp_path / "set", rows, text=_at(30, " "))
    index = run(source, skip_empty=True)
    assert (len(index), index.manifest.imported[0].left_out) == (78, 2)
    # rows are still numbered as in the file
    write_upstash(source, rows, text=_at(30, " "), id=_at(33, "0_0"))
    with pytest.raises(DataError, match=r"en/0001\.parquet, row 8: passage id '0_0'"):
        run(source, skip_empty=True, overwrite=True)
    assert index.manifest.imported[0].is_verified


# ---------------------------------------------------------------- what becomes of the record


def test_a_merged_index_keeps_the_record(tmp_path: Path, rows: Rows, run: Any, token_hash: Any) -> None:
    imported = run(write_upstash(tmp_path / "set", rows))
    passages = [replace(passage, id=f"other-{passage.id}", lang="de") for passage in rows.of("en")[0]]
    other = build_index(
        passages, tmp_path / "other", embedder=token_hash, chunker=imported.manifest.chunker, progress=False
    )
    merge_indexes([str(imported.path), str(other.path)], tmp_path / "merged")
    assert [one["passages"] for one in index_info(tmp_path / "merged")["imported"]] == [80]


def test_an_index_that_was_built_is_described_as_before(tmp_path: Path, token_hash: Any, rows: Rows) -> None:
    index = build_index(rows.of("en")[0], tmp_path / "built", embedder=token_hash, progress=False)
    assert index.manifest.imported == ()
    assert index.manifest.vector_hashes() == []
    manifest = json.loads((tmp_path / "built" / "manifest.json").read_text("utf-8"))
    del manifest["imported"]
    (tmp_path / "built" / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert index_info(tmp_path / "built")["fingerprint"] == index.manifest.fingerprint
