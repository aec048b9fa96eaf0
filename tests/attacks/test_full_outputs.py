"""Disks without space for what a command writes: the message names the file, and an older one is kept."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrag_eval.cli import main
from mrag_eval.platform import to_json
from mrag_eval.scoring import RowRecord, summarize
from tests.attacks.bad_inputs.case import Case, complaints
from tests.attacks.test_full_disk import DISKS, SMALL_DISK
from tests.programs import Programs
from tests.report.runs import row, write_full_run, write_run

COMMANDS = {
    "report full -o disk/new.html": "disk/new.html",
    "report full -o disk/new.csv": "disk/new.csv",
    "export full --format csv -o disk/new.csv": "disk/new.csv",
    "export sound --format eee -o disk/new": "disk/new",
    "judge inspect full -o disk/new.csv": "disk/new.csv",
    "compare full full --html disk/new.html": "disk/new.html",
    "gate --save disk/new.json --answers full": "disk/new.json",
    "gate --save disk/new.json full": "disk/new.json",
    "gate --init disk/new.yaml full": "disk/new.yaml",
}
# These write more than the first page, which is tried before the work.
LONG = [command for command in COMMANDS if command.endswith(("-o disk/new.html", "new"))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_full_run(folder / "full", rows=4)
    # a leaderboard takes what follows from the samples
    rows = [row(i, match=float(i % 2)) for i in range(40)]
    scores = to_json(summarize([RowRecord(one["row"], one["cell"], one["values"]) for one in rows]))
    write_run(folder / "sound", {"qa": rows}, config={"scores": scores})
    return folder


@pytest.fixture
def place(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the run, as the working directory, with an older file for the commands that replace one."""
    monkeypatch.chdir(runs)
    (runs / "disk").mkdir()
    for name in ("new.html", "new.csv"):
        (runs / "disk" / name).write_text("older", "utf-8")
    yield runs
    shutil.rmtree(runs / "disk")


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # a module that is first imported under the limit would leave a part of its bytecode behind
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = compiled


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "size"),
    [
        *((command, 1000) for command in COMMANDS),
        (LONG[1], 4096),
        pytest.param(LONG[0], 4096, marks=pytest.mark.slow),
    ],
)
def test_a_limit_on_files_is_said_and_nothing_is_lost(
    command: str, size: int, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_in(place / "disk")
    with files_up_to(size), pytest.raises(SystemExit) as done:
        main(command.split())
    said = capsys.readouterr().err
    assert not complaints(Case(command, [COMMANDS[command], "File too large"]), int(done.value.code or 0), "", said)
    assert files_in(place / "disk") == before


@pytest.mark.slow
@DISKS
@pytest.mark.parametrize(
    ("command", "size", "filled"),
    [*((command, "4k", True) for command in list(COMMANDS)[1:-1]), (LONG[0], "8k", False)],
)
def test_a_full_disk_is_said(command: str, size: str, filled: bool, place: Path) -> None:
    shutil.rmtree(place / "disk-kept", ignore_errors=True)
    fill = "cat /dev/zero > disk/filled 2> /dev/null; " if filled else ""
    shell = ["sh", "-c", f"{fill}exec {sys.executable} -m mrag_eval.cli {command}"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = ["unshare", "--mount", sys.executable, SMALL_DISK, str(place / "disk"), size, *shell]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=500)
    wrong = complaints(Case(command, [COMMANDS[command], "No space left"]), done.returncode, done.stdout, done.stderr)
    assert not wrong, f"{wrong}\n{done.stderr}"
    assert {path.name for path in (place / "disk-kept").rglob("*") if path.is_file()} == (
        {"filled"} if filled else set()
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report full", "tasks"])
def test_a_full_standard_output_is_said(command: str, place: Path, programs: Programs) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [programs / "mrag-eval", *command.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert not complaints(Case(command, ["the output", "No space left"]), done.returncode, "", done.stderr), done.stderr
