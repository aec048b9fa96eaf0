"""Files hashed by threads while others are written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Event

import pytest

from mrag_eval.retrievers.build import _index_writer
from mrag_eval.retrievers.build._index_writer import HashedFiles
from mrag_eval.retrievers.shards._manifest import FileRecord, file_record


def test_every_file_but_the_working_ones_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dense/b", "a", "work/state.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    read: list[str] = []

    def hashed(path: Path, stop: Event) -> FileRecord:
        read.append(path.name)
        return file_record(path, stop)

    monkeypatch.setattr(_index_writer, "file_record", hashed)
    with HashedFiles(tmp_path) as files:
        files.begin(["dense/b"])
        (tmp_path / "later").write_text("later")
        found = files.records()
    expected = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a", "dense/b", "later")}
    assert {name: record.sha256 for name, record in found.items()} == expected
    assert list(found) == ["a", "dense/b", "later"]
    assert sorted(read) == ["a", "b", "later"]


def test_a_failure_stops_the_hashing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        (tmp_path / f"{number}").write_text("x")
    asked: list[Path] = []

    def waiting(path: Path, stop: Event) -> FileRecord:
        asked.append(path)
        assert stop.wait(30)
        return FileRecord(bytes=0, sha256="")

    monkeypatch.setattr(_index_writer, "file_record", waiting)

    def failing() -> None:
        with HashedFiles(tmp_path) as files:
            files.begin(str(number) for number in range(9))
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        failing()
    assert len(asked) <= 2


def test_a_stopped_hash_reads_no_further(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(3 << 20))
    stop = Event()
    stop.set()
    assert file_record(tmp_path / "file", stop).bytes < 3 << 20
    assert file_record(tmp_path / "file").bytes == 3 << 20
