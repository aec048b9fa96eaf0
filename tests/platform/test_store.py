"""The key-value store: shared by processes, private, intact after a kill."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mrag_eval.platform import ConfigError, Store, close_stores, content_key, shared_store

WRITER = """
import sys
from pathlib import Path
from mrag_eval.platform._store import Store
store = Store(Path(sys.argv[1]))
for i in range(200):
    store.put_many({f"{sys.argv[2]}-{i}-{j}": {"text": "wert 值", "i": i} for j in range(5)})
    print(i, flush=True)
"""


def test_values_come_back_and_missing_keys_are_absent(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "s.sqlite")
    store.put_many({"k": {"x": [1, "二", None]}, "l": 2})
    store.put_many({"k": {"x": 3}})
    assert store.get_many(["k", "k", "nothing"]) == {"k": {"x": 3}}
    assert store.get_many([f"m{i}" for i in range(2000)]) == {}
    assert stat.S_IMODE((tmp_path / "a" / "s.sqlite").stat().st_mode) == 0o600


def test_two_processes_write_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), n], stdout=subprocess.PIPE) for n in "ab"]
    for writer in writers:
        writer.communicate(timeout=120)
    assert [w.returncode for w in writers] == [0, 0]
    assert len(Store(path).get_many([f"{n}-{i}-{j}" for n in "ab" for i in range(200) for j in range(5)])) == 2000


def test_entries_written_before_a_kill_survive(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "a"], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) == 20:
            writer.kill()
            break
    writer.wait()
    found = Store(path).get_many([f"a-{i}-{j}" for i in range(21) for j in range(5)])
    assert len(found) == 105


def test_a_store_that_another_process_is_creating_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    other.execute("BEGIN IMMEDIATE")  # a change to WAL mode is refused at once while this is open
    done = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    done.start()
    store = Store(path)
    done.join()
    store.put_many({"k": 1})
    assert store.get_many(["k"]) == {"k": 1}
    other.close()


def test_what_cannot_be_written_at_once_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    store = Store(path)
    assert store.put_many({"k": 1}, wait=False)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    assert not store.put_many({"k": 2}, wait=False)
    assert time.monotonic() - start < 10
    other.execute("ROLLBACK")
    assert store.get_many(["k"]) == {"k": 1}
    # the next one waits again
    assert store._db.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    with store._lock:
        assert not store.put_many({"k": 2}, wait=False)
    assert store.put_many({"k": 3}, wait=False)
    assert Store(path).get_many(["k"]) == {"k": 3}


def test_keys_cover_every_part() -> None:
    assert content_key("a", {"x": 1, "y": 2}) == content_key("a", {"y": 2, "x": 1})
    assert len({content_key("a", 1), content_key("a", "1"), content_key("a1"), content_key(["a", 1])}) == 4


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE entries (a, b, c)")
    db.close()


@pytest.mark.parametrize("fault", [lambda path: path.write_bytes(b"no database at all " * 300), _foreign])
def test_a_file_that_is_not_a_store_is_moved_aside(
    tmp_path: Path, fault: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.sqlite"
    for number in (1, 2):
        fault(path)
        damaged = path.read_bytes()
        store = Store(path)
        assert store.get_many(["k"]) == {}
        store.put_many({"k": number})
        assert store.get_many(["k"]) == {"k": number}
        assert (tmp_path / f"s.sqlite.damaged-{number}").read_bytes() == damaged
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        store.close()
        path.unlink()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("write_first", [False, True])
def test_damage_found_while_reading_or_writing_empties_the_store(
    tmp_path: Path, write_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.sqlite"
    store = Store(path)
    entries = {f"k{i:04}": "x" * 200 for i in range(500)}
    store.put_many(entries)
    store.close()
    with path.open("r+b") as file:  # the header, with the list of tables, stays intact
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    store = Store(path)
    if write_first:
        store.put_many({"new": 1})
    assert store.get_many(entries) == {}
    store.put_many({"new": 1})
    assert store.get_many(["new"]) == {"new": 1}
    assert (tmp_path / "s.sqlite.damaged-1").exists()
    assert len(caplog.records) == 1


def test_a_folder_that_cannot_be_written_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for path in (tmp_path / "file" / "cache" / "s.sqlite", Path("/proc/nowhere/s.sqlite")):
        with pytest.raises(ConfigError) as caught:
            Store(path)
        assert str(path) in caught.value.message
        assert "MRAG_CACHE" in str(caught.value.next_step)


def test_answers_that_were_paid_for_outlive_a_power_failure(tmp_path: Path) -> None:
    # SQLite's numbers: 1 is NORMAL, 2 FULL
    for store, level in ((Store(tmp_path / "a.sqlite"), 1), (shared_store(tmp_path / "b.sqlite"), 2)):
        assert store._db.execute("PRAGMA synchronous").fetchone() == (level,)
        store.close()
    close_stores()
