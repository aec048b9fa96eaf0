"""The key-value store: shared by processes, private, complete after a kill."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from mrag_eval.store import Store, content_key

WRITER = """
import sys
from pathlib import Path
from mrag_eval.store import Store
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


def test_what_was_written_before_a_kill_is_there(tmp_path: Path) -> None:
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


def test_keys_cover_every_part() -> None:
    assert content_key("a", {"x": 1, "y": 2}) == content_key("a", {"y": 2, "x": 1})
    assert len({content_key("a", 1), content_key("a", "1"), content_key("a1"), content_key(["a", 1])}) == 4
