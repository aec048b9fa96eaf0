"""Files that are written whole, and what killed writers leave."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mrag_eval.platform import RunFiles, check_output, replaced, write_whole

KILLED = """
import os, signal, sys
from pathlib import Path
from mrag_eval.platform import replaced
with replaced(Path(sys.argv[1])) as part:
    part.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _fail_half_way(path: Path) -> None:
    with replaced(path) as part:
        part.write_text("half", "utf-8")
        raise LookupError


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    path = write_whole(tmp_path / "deep" / "file", "ä")
    with pytest.raises(LookupError):
        _fail_half_way(path)
    assert path.read_text("utf-8") == "ä"
    assert list(path.parent.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path, other = tmp_path / "a[1].csv", tmp_path / "a1.csv.keep.part"
    other.touch()
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert [left.suffix for left in tmp_path.glob("a[[]1].csv.*")] == [".part"]
    write_whole(path, "whole")
    assert sorted(left.name for left in tmp_path.iterdir()) == ["a1.csv.keep.part", "a[1].csv"]


def test_two_writers_do_not_remove_each_other(tmp_path: Path) -> None:
    with replaced(tmp_path / "file") as first, replaced(tmp_path / "file") as second:
        first.write_text("first", "utf-8")
        second.write_text("second", "utf-8")
    assert (tmp_path / "file").read_text("utf-8") == "first"
    assert len(list(tmp_path.iterdir())) == 1


def test_every_file_of_the_user_is_written_whole() -> None:
    """A file that is written in place is cut short by a full disk or a kill, after the old one is gone."""
    # the order to the retrieving process, in a folder of its own
    private = {"_process.py"}
    found = [
        f"{file.name}: {match[0]}"
        for file in sorted((Path(__file__).parents[2] / "mrag_eval").rglob("*.py"))
        if file.name not in private
        for match in re.finditer(r"(\S+)\.(write_text|write_bytes|to_csv)\((\S+)", file.read_text("utf-8"))
        if "part" not in (match[1], match[3].rstrip(","))
    ]
    assert found == []


def test_a_file_is_on_disk_before_it_has_its_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def synced(file: int) -> None:
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{file}") else f"{os.fstat(file).st_size} bytes")
        fsync(file)

    def renamed(self: Path, target: Path) -> Path:
        done.append("name")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_whole(tmp_path / "results.json", "{}\n")
    assert done == ["3 bytes", "name", "folder"]


def test_a_folder_of_results_may_have_a_dot_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "out.v1.0"
    check_output(folder, "--output_path")
    assert not folder.exists()
    assert RunFiles.below(folder, "m").folder == folder / "m"
