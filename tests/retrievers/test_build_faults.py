"""Builds that are killed, meet another builder or run out of space: the path holds a whole index or nothing."""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mrag_eval.platform import CorpusError, is_full, room_on_disk
from mrag_eval.retrievers import index_info, load_index
from tests.retrievers.faulty_build import FOLDER, POINTS, arguments, arm, build


def start(point: str, path: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "faulty_build.py", point, str(path), *options],
        cwd=FOLDER,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out.strip(), err.strip()


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of an uninterrupted build."""
    path = tmp_path_factory.mktemp("whole") / "index"
    code, fingerprint, error = finished(start("none", path))
    assert (code, error) == (0, "")
    assert fingerprint == index_info(path)["fingerprint"]
    return path


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_and_resumed_to_the_same_index(tmp_path: Path, whole: Path, point: str) -> None:
    path = tmp_path / "index"
    if point == "reading up to the last batch":
        # a resumed build that is killed while it skips the existing passages
        assert finished(start("before the manifest", path))[0] == -signal.SIGKILL
    code, _, error = finished(start(point, path, "--resume"))
    assert code == -signal.SIGKILL, error
    assert not path.exists()
    with pytest.raises(CorpusError, match="was never finished"):
        load_index(path)
    code, fingerprint, error = finished(start("none", path, "--resume"))
    assert code == 0, error
    assert fingerprint == index_info(whole)["fingerprint"]
    assert contents(path) == contents(whole)
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_out_of_memory_anywhere_and_resumed_to_the_same_index(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    path = tmp_path / "index"

    def exhausted() -> None:
        raise MemoryError("no memory is left")

    # a resumed build reads up to the last batch
    first = ["before the manifest"] if point == "reading up to the last batch" else []
    for failing in [*first, point]:
        with monkeypatch.context() as patch:
            arm(failing, exhausted, patch.setattr)
            with pytest.raises(MemoryError, match="no memory is left"):
                build(path, arguments().parse_args([failing, str(path), "--resume"]))
    assert not path.exists()
    with pytest.raises(CorpusError, match="was never finished"):
        load_index(path)
    build(path, arguments().parse_args(["none", str(path), "--resume"]))
    assert contents(path) == contents(whole)
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["between the files of a batch", "some vectors finished", "before the manifest"])
def test_int8_vectors_killed_and_resumed_to_the_same_index(tmp_path: Path, point: str) -> None:
    more = ("--more", json.dumps({"store": "int8"}))
    code, fingerprint, error = finished(start("none", tmp_path / "whole", *more))
    assert code == 0, error
    assert finished(start(point, tmp_path / "index", *more))[0] == -signal.SIGKILL
    assert finished(start("none", tmp_path / "index", "--resume", *more))[:2] == (0, fingerprint)
    assert contents(tmp_path / "index") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_killed_at_any_moment_again_and_again(tmp_path: Path, whole: Path) -> None:
    path, moments, killed = tmp_path / "index", random.Random(7), 0
    for _ in range(6):
        process = start("none", path, "--resume", "--delay", "0.1")
        deadline = time.monotonic() + 60
        while process.poll() is None and not (tmp_path / "index.building" / "work").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.6))
        process.kill()
        killed += finished(process)[0] == -signal.SIGKILL
        if path.exists():
            break
    assert killed
    code, fingerprint, error = finished(start("none", path, "--resume", "--overwrite"))
    assert code == 0, error
    assert fingerprint == index_info(whole)["fingerprint"]
    assert contents(path) == contents(whole)


@pytest.mark.slow
def test_killed_while_replacing_an_index(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "index"
    assert finished(start("none", path, "--documents", "9"))[0] == 0
    old = index_info(path)["fingerprint"]
    assert finished(start("state removed", path, "--overwrite"))[0] == -signal.SIGKILL
    assert index_info(path)["fingerprint"] == old
    code, fingerprint, error = finished(start("none", path, "--overwrite", "--resume"))
    assert code == 0, error
    assert fingerprint == index_info(whole)["fingerprint"] != old
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.slow
def test_of_two_builders_one_wins_and_the_other_reports_it(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "index"
    first = start("none", path, "--delay", "1")
    deadline = time.monotonic() + 60
    while not (tmp_path / "index.building" / "work").exists():
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # whatever its settings, it neither waits nor touches the files of the other build
    others = [start("none", path, *options) for options in ((), ("--resume",), ("--overwrite",))]
    for other in others:
        code, out, error = finished(other)
        assert (code, out) == (2, "")
        assert error.startswith(f"CorpusError: another process is building {path}\n")
    code, fingerprint, error = finished(first)
    assert code == 0, error
    assert fingerprint == index_info(whole)["fingerprint"]


@pytest.mark.slow
def test_a_killed_builder_holds_no_lock(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "index"
    assert finished(start("after a state is saved", path))[0] == -signal.SIGKILL
    assert finished(start("none", path, "--resume"))[1] == index_info(whole)["fingerprint"]


# ---------------------------------------------------------------- no space


def in_own_namespace() -> list[str] | None:
    """Return the command that runs another one with its own mounts, or None if that is not allowed."""
    tool = shutil.which("unshare")
    for flags in (["--mount"], ["--mount", "--map-root-user"]):
        if tool and subprocess.run([tool, *flags, "true"], capture_output=True, check=False).returncode == 0:
            return [tool, *flags]
    return None


MANY = ("--documents", "3000")


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("larger") / "index"
    code, _, error = finished(start("none", path, *MANY))
    assert code == 0, error
    return path


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
def test_a_full_disk_is_one_clean_error_and_the_build_can_be_resumed(
    tmp_path: Path, larger: Path, share: float
) -> None:
    namespace = in_own_namespace()
    if namespace is None:
        pytest.skip("private mounts are not allowed here")
    small = tmp_path / "small"
    small.mkdir()
    size = int(share * sum(map(len, contents(larger).values())))
    done = subprocess.run(
        [*namespace, sys.executable, "full_disk.py", str(small), str(size), *MANY],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("mounting is not allowed here")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["said"]["message"] == f"the disk is full (0.0 GB left at {small})"
    assert "index build: with --resume" in found["said"]["next_step"]
    assert "was never finished" in found["opened"]
    assert found["fingerprint"] == index_info(larger)["fingerprint"]
    assert found["left"] == ["index"]
    assert not list(small.iterdir())


@pytest.mark.parametrize("store", ["float32", "int8"])
@pytest.mark.slow
def test_a_limit_on_file_sizes_is_handled_the_same_way(tmp_path: Path, larger: Path, store: str) -> None:
    path, more = tmp_path / "index", ("--more", json.dumps({"store": store}))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    # -B: a module that is first imported under the limit would leave a part of its bytecode behind
    command = [sys.executable, "-B", "faulty_build.py", "none", str(path), *MANY, *more]
    done = subprocess.run(
        command, cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False, preexec_fn=limited
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("NoRoomError: the limit on the size of files is reached (")
    assert len(done.stderr.splitlines()) == 2
    assert not path.exists()
    fingerprint = finished(start("none", path, "--resume", *MANY, *more))[1]
    assert (fingerprint == index_info(larger)["fingerprint"]) == (store == "float32")
    assert fingerprint == index_info(path)["fingerprint"]


def test_no_end_of_a_faiss_file_is_lost_in_silence(tmp_path: Path) -> None:
    import faiss
    import numpy as np

    from mrag_eval.platform import save_faiss

    index = faiss.index_factory(8, "IVF4,SQ8", faiss.METRIC_INNER_PRODUCT)
    vectors = np.random.default_rng(0).standard_normal((500, 8), dtype=np.float32)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "faiss"))
    save_faiss(tmp_path / "ours", index)
    expected = (tmp_path / "faiss").read_bytes()
    assert (tmp_path / "ours").read_bytes() == expected
    # no space for the last byte: faiss.write_index itself reports no error
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(expected) - 1, limit[1]))
    try:
        with pytest.raises(CorpusError, match="limit on the size of files"), room_on_disk(tmp_path, "make room"):
            save_faiss(tmp_path / "short", index)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(122, "Disk quota exceeded"), True),
        (RuntimeError("write error in x.faiss: 3 != 9 (No space left on device)"), True),
        (OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"), True),
        (OSError(13, "Permission denied"), False),
        (RuntimeError("out of memory"), False),
        (ValueError("No space left on device"), False),
    ],
)
def test_a_full_disk_is_recognised(tmp_path: Path, error: Exception, expected: bool) -> None:
    assert is_full(error) is expected
    with pytest.raises(CorpusError if expected else type(error)), room_on_disk(tmp_path, "make room"):
        raise error
