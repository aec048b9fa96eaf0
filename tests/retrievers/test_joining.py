"""Joining indexes: the result equals one uninterrupted build, and the parts are unchanged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrievers import build_index, index_info, join_indexes, load_index, verify_index
from tests.retrievers.conftest import TEXTS, ConstantEmbedder, TokenHashEmbedder


def passages(*langs: str) -> list[Passage]:
    return [
        Passage(f"{lang}-{n}", lang, text, title="t", doc_id=f"{lang}-doc{n // 2}")
        for lang in langs
        for n, text in enumerate(TEXTS[lang])
    ]


def make(path: Path, *langs: str, kind: str = "dense", **keys: Any) -> Path:
    keys = {"embedder": TokenHashEmbedder(), **keys} if kind != "bm25" else keys
    build_index(passages(*langs), path, kind=kind, progress=False, **keys)
    return path


@pytest.mark.parametrize("kind", ["dense", "bm25", "hybrid"])
def test_a_joined_index_finds_what_one_built_at_once_finds(tmp_path: Path, kind: str) -> None:
    whole = make(tmp_path / "whole", "ar", "de", "en", "ko", kind=kind)
    parts = [make(tmp_path / "a", "ko", "de", kind=kind), make(tmp_path / "b", "en", kind=kind)]
    parts.append(make(tmp_path / "c", "ar", kind=kind))
    join_indexes(parts, tmp_path / "joined")
    embedder = None if kind == "bm25" else TokenHashEmbedder()
    one, other = (load_index(path, embedder=embedder) for path in (whole, tmp_path / "joined"))
    assert one.manifest.content_hash == other.manifest.content_hash
    assert one.counts == other.counts
    assert one.manifest.languages == other.manifest.languages
    queries = ["old bridge", "alte Brücke", "الجسر القديم", "오래된 다리"]
    for languages in (None, ["ko"], ["ar", "en"]):
        found, expected = (index.search(queries, 5, languages=languages) for index in (other, one))
        assert found == expected
    candidates = [["en-doc0", "ko-1"], None, ["ar-0"], ["de-doc0"]]
    assert other.search(queries, 3, candidates=candidates) == one.search(queries, 3, candidates=candidates)
    assert verify_index(tmp_path / "joined") == len(one.manifest.files)
    for part in parts:
        verify_index(part)


def test_unchanged_shards_are_shared_and_rewritten_ones_are_not(tmp_path: Path) -> None:
    part = make(tmp_path / "a", "ko", source="a dump")
    join_indexes([part, make(tmp_path / "b", "en")], tmp_path / "joined")
    for name, shared in (("dense/ko.faiss", True), ("passages/ko.text", True), ("passages/ko.parquet", False)):
        assert os.path.samefile(part / name, tmp_path / "joined" / name) is shared
    assert index_info(tmp_path / "joined")["sources"] == {"ko": "a dump"}


def test_a_language_is_added_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make(tmp_path / "index", "ko")
    part = make(tmp_path / "part", "en")
    with pytest.raises(CorpusError, match="exists already"):
        join_indexes([index, part], index)

    def refuse(*_: Any) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    assert join_indexes([index, part], index, overwrite=True).languages == ("en", "ko")
    assert verify_index(index)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "part"]


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    part = make(tmp_path / "a", "ko")
    target = tmp_path / "joined"
    with pytest.raises(ConfigError, match=r"both hold 'ko'"):
        join_indexes([part, make(tmp_path / "b", "en", "ko")], target)
    with pytest.raises(ConfigError, match=r"has embedder = .*'constant'.*, index .*/a has .*'token-hash'"):
        join_indexes([part, make(tmp_path / "c", "en", embedder=ConstantEmbedder())], target)
    with pytest.raises(ConfigError, match=r"has kind = 'bm25', index .*/a has 'dense'"):
        join_indexes([part, make(tmp_path / "d", "en", kind="bm25")], target)
    with pytest.raises(ConfigError, match="one lexical shard over all its languages"):
        join_indexes([make(tmp_path / "e", "en", kind="bm25", joint=True)], target)
    with pytest.raises(ConfigError, match="no index to merge"):
        join_indexes([], target)
    (part / "dense" / "ko.faiss").unlink()
    with pytest.raises(CorpusError, match=r"ko\.faiss is missing"):
        join_indexes([part], target)
    assert not target.exists()
