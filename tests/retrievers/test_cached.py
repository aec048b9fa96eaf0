"""Indexes found again by their content."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import cache_dir
from mrag_eval.retrievers import Document, cached_index


def cached(tmp_path: Path, corpus: Any, **options: Any) -> Any:
    return cached_index(corpus, cache_dir=tmp_path, progress=False, **{"kind": "bm25", **options})


def test_the_second_call_builds_nothing(tmp_path: Path, passages: list[Passage], token_hash: Any) -> None:
    first = cached(tmp_path, passages, kind="dense", embedder=token_hash)
    token_hash.embedded.clear()
    second = cached(tmp_path, iter(passages), kind="dense", embedder=token_hash)
    assert second.path == first.path
    assert token_hash.embedded == []
    assert second.search(["bridge"], 3) == first.search(["bridge"], 3)
    # the order of the corpus is not part of its content
    assert cached(tmp_path, passages[::-1], kind="dense", embedder=token_hash).path == first.path


def test_settings_that_change_the_hits_change_the_index_path(
    tmp_path: Path, passages: list[Passage], token_hash: Any, constant: Any
) -> None:
    class Later(type(token_hash)):  # type: ignore[misc]
        revision = "2"

    variants: list[tuple[Any, dict[str, Any]]] = [
        (passages, {}),
        (passages[:-1], {}),
        ([replace(passages[0], text="other"), *passages[1:]], {}),
        ([replace(passages[0], id="other"), *passages[1:]], {}),
        ([replace(passages[0], doc_id="other"), *passages[1:]], {}),
        ([replace(passages[0], lang="de"), *passages[1:]], {}),
        (passages, {"joint": True}),
        (passages, {"kind": "dense", "embedder": token_hash}),
        (passages, {"kind": "dense", "embedder": Later()}),
        (passages, {"kind": "dense", "embedder": constant}),
        (passages, {"kind": "hybrid", "embedder": token_hash}),
        ([Document("1", "en", "a b c")], {}),
        ([Document("1", "en", "a b c")], {"chunker": "words"}),
    ]
    paths = [cached(tmp_path, corpus, **options).path for corpus, options in variants]
    assert len(set(paths)) == len(variants)


def test_a_damaged_index_is_built_again(tmp_path: Path, passages: list[Passage]) -> None:
    path = cached(tmp_path, passages).path
    (path / "manifest.json").write_text("{")
    assert len(cached(tmp_path, passages)) == len(passages)
    shutil.rmtree(path / "passages")
    manifest = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(manifest + "\n")
    assert len(cached(tmp_path, passages)) == len(passages)
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name]


@pytest.mark.slow
def test_processes_that_meet_build_once(tmp_path: Path) -> None:
    script = (
        "import sys; from mrag_eval.retrievers import cached_index; from mrag_eval.core._passages import Passage\n"
        "corpus = [Passage(str(n), 'en', f'text {n} ' + 'word ' * (n % 9)) for n in range(3000)]\n"
        "index = cached_index(corpus, kind='bm25', cache_dir=sys.argv[1], progress=False, batch_size=100)\n"
        "print(index.path, len(index))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert len([entry for entry in (tmp_path / "indexes").iterdir() if not entry.name.startswith(".")]) == 1


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"
    monkeypatch.delenv("MRAG_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "mrag_eval"
