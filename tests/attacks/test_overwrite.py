"""``--overwrite`` removes an index and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mrag_eval.core import CorpusError, Passage
from mrag_eval.retrieval import build_corpus
from mrag_eval.retrievers import build_index, join_indexes, load_index, merge_indexes
from mrag_eval.retrievers.build._replacing import move_into_place

PASSAGES = [Passage(id=str(n), lang="en", text=f"word{n} bridge") for n in range(5)]


def build(path: Path, **settings: object) -> Path:
    build_index(PASSAGES, path, kind="bm25", progress=False, **settings)  # type: ignore[arg-type]
    return path


def put_photos(folder: Path) -> Path:
    folder.mkdir()
    (folder / "photo.jpg").write_bytes(b"mine")
    return folder


def put_file(path: Path) -> Path:
    path.write_bytes(b"mine")
    return path


def put_foreign_manifest(folder: Path) -> Path:
    put_photos(folder)
    (folder / "manifest.json").write_text('{"format": 1, "kind": "extension"}', "utf-8")
    return folder


def put_note(folder: Path) -> Path:
    (build(folder) / "bm25" / "photo.jpg").write_bytes(b"mine")
    return folder


def put_link(path: Path) -> Path:
    path.symlink_to(build(path.with_name("elsewhere")))
    return path


def mine(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else next(path.rglob("photo.jpg")).read_bytes()


@pytest.mark.parametrize("put", [put_photos, put_file, put_foreign_manifest, put_note])
def test_only_an_index_is_replaced(tmp_path: Path, put: object) -> None:
    target, part, other = tmp_path / "target", build(tmp_path / "part"), tmp_path / "other"
    put(target)  # type: ignore[operator]
    build_index([Passage(id="x", lang="de", text="y")], other, kind="bm25", progress=False)
    with pytest.raises(CorpusError, match="target is not"):
        build(target, overwrite=True)
    with pytest.raises(CorpusError, match="target is not"):
        merge_indexes([part, other], target, overwrite=True)
    with pytest.raises(CorpusError, match="target is not"):
        join_indexes([part, other], target, overwrite=True)
    with pytest.raises(CorpusError, match="target is not"):
        move_into_place(build(tmp_path / "new"), target)
    assert mine(target) == b"mine"
    assert not list(tmp_path.glob("target.*"))


def test_a_corpus_replaces_only_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    (tmp_path / "corpora").mkdir()
    folder = put_photos(tmp_path / "corpora" / "wiki")
    with pytest.raises(CorpusError, match="wiki is not replaced"):
        build_corpus("wiki", [], overwrite=True)
    assert mine(folder) == b"mine"


@pytest.mark.parametrize("suffix", [".building", ".replaced"])
def test_folders_with_our_suffixes_are_kept(tmp_path: Path, suffix: str) -> None:
    """A user's folder may be named like one of an interrupted build."""
    target = build(tmp_path / "target")
    folder = put_photos(tmp_path / f"target{suffix}")
    with pytest.raises(CorpusError, match=f"target{suffix} is not"):
        build(target, overwrite=True)
    assert mine(folder) == b"mine"
    assert len(load_index(target)) == 5


def test_an_index_is_replaced(tmp_path: Path) -> None:
    target = build(tmp_path / "target")
    build_index(PASSAGES[:2], target, kind="bm25", progress=False, overwrite=True)
    assert len(load_index(target)) == 2
    shutil.copytree(target, tmp_path / "target.replaced")  # as an interrupted replacement leaves it
    build(target, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
