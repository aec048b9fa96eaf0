"""``--overwrite`` removes an index and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, build_lock
from mrag_eval.retrieval import CorpusSettings, build_corpus
from mrag_eval.retrievers import (
    Document,
    Edition,
    add_documents,
    build_index,
    discard,
    join_indexes,
    load_index,
    merge_indexes,
)
from mrag_eval.retrievers.build._replacing import UNFINISHED, move_into_place, remove_unfinished

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


# ---------------------------------------------------------------- what a killed process left


def put_half_removed(folder: Path) -> Path:
    """An index whose manifest is gone already."""
    (build(folder) / "manifest.json").unlink()
    (folder / UNFINISHED).touch()
    return folder


def put_empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("put", [put_half_removed, put_empty])
@pytest.mark.parametrize("suffix", [".building", ".replaced"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_that_holds_nothing_whole_is_cleared(tmp_path: Path, put: object, suffix: str, resume: bool) -> None:
    target = build(tmp_path / "target")
    put(tmp_path / f"target{suffix}")  # type: ignore[operator]
    build_index(PASSAGES[:2], target, kind="bm25", progress=False, overwrite=True, resume=resume)
    assert len(load_index(target)) == 2
    assert names(tmp_path) == ["target"]


@pytest.mark.parametrize("put", [put_half_removed, put_empty])
def test_documents_are_added_after_a_killed_addition(tmp_path: Path, put: object) -> None:
    target = build(tmp_path / "target")
    put(tmp_path / "target.adding")  # type: ignore[operator]
    add_documents(target, [Document(id="new", lang="en", text="a new bridge")], progress=False)
    assert len(load_index(target)) == 6
    assert names(tmp_path) == ["target"]


def test_a_corpus_is_built_after_its_parts_were_half_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    parts = tmp_path / "corpora" / "wiki.parts"
    parts.mkdir(parents=True)
    (parts / UNFINISHED).touch()
    put_photos(parts / "en-0123")
    edition = Edition("en", "a page", lambda: iter([Document(id="1", lang="en", text="a bridge")]))
    build_corpus("wiki", [edition], CorpusSettings(kind="bm25"))
    assert names(tmp_path / "corpora") == ["wiki"]


@pytest.mark.parametrize("has_new", [True, False])
def test_an_index_that_was_moved_away_is_put_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_new: bool
) -> None:
    target, other = build(tmp_path / "target"), tmp_path / "other"
    target.rename(tmp_path / "target.replaced")
    if has_new:
        build_index(PASSAGES[:2], other, kind="bm25", progress=False)
        other.rename(tmp_path / "target.building")
    with pytest.raises(CorpusError, match="target was moved away to be replaced") as refused:
        load_index(target)
    assert "give its command once more (index build: with --resume)" in str(refused.value)
    with pytest.raises(CorpusError, match="target exists already"):
        build(target)
    assert f"put back {target}" in caplog.text
    assert len(load_index(target)) == 5
    build_index(PASSAGES[:2], target, kind="bm25", progress=False, overwrite=True, resume=True)
    assert len(load_index(target)) == 2
    assert names(tmp_path) == ["target"]


def test_a_linked_corpus_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of its replacement are beside the folder that the link names."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    (tmp_path / "corpora").mkdir()
    target = build(tmp_path / "disk")
    (tmp_path / "corpora" / "wiki").symlink_to(target)
    target.rename(tmp_path / "disk.replaced")
    edition = Edition("ko", "a page", lambda: iter([Document(id="k", lang="ko", text="다리")]))
    build_corpus("wiki", [edition], CorpusSettings(kind="bm25"), add=True)
    assert load_index(target).counts == {"en": 5, "ko": 1}
    assert names(tmp_path) == ["corpora", "disk"]


def test_a_foreign_folder_is_not_put_back(tmp_path: Path) -> None:
    put_photos(tmp_path / "target.replaced")
    build(tmp_path / "target.building")
    with pytest.raises(CorpusError, match=r"target\.replaced is not"):
        build(tmp_path / "target", resume=True)
    assert mine(tmp_path / "target.replaced") == b"mine"


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    """Removing an unfinished folder removes the link in it, not what it points to."""
    photos, folder = put_photos(tmp_path / "photos"), put_half_removed(tmp_path / "folder")
    (folder / "link").symlink_to(photos)
    discard(folder)
    assert mine(photos) == b"mine"
    assert names(tmp_path) == ["photos"]


def test_linked_parts_keep_what_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of a corpus may be a link to a larger disk."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    disk = put_photos(tmp_path / "disk")
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "wiki.parts").symlink_to(disk)
    edition = Edition("en", "a page", lambda: iter([Document(id="1", lang="en", text="a bridge")]))
    build_corpus("wiki", [edition], CorpusSettings(kind="bm25"))
    assert mine(disk) == b"mine"


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put_half_removed(tmp_path / "target.building")
    kept = folder / "kept.jsonl"
    kept.touch()
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path == kept:
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(CorpusError, match=r"target\.building cannot be removed \(kept\.jsonl\)"):
        remove_unfinished(folder)
    # the rest is gone, and the mark is there for the next command
    assert names(folder) == [UNFINISHED, "kept.jsonl"]


def test_only_one_process_adds(tmp_path: Path) -> None:
    target = build(tmp_path / "target")
    with build_lock(tmp_path / "target.adding"), pytest.raises(CorpusError, match="another process is building"):
        add_documents(target, [Document(id="new", lang="en", text="a new bridge")], progress=False)
