"""The folder in which wrong inputs are tried: a benchmark, tasks, an index, retrieved rows, and runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrag_eval.cli import main
from tests.attacks.bad_inputs.case import PIPE, UNREADABLE, Case
from tests.report.runs import row, write_full_run, write_run
from tests.worlds.small import BASE, write_task, write_world

DATE = "2026-01-01T00-00-00.000000"
_MODELS = """\
models:
  writer: {model: local-chat-completions, model_args: {model: none, base_url: "http://127.0.0.1:9/v1/chat/completions"}}
"""


def write_place(folder: Path) -> Path:
    """Write everything that the cases name; commands make the index, the retrieved rows and the baseline."""
    write_world(folder)
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
    (folder / "tasks").mkdir()
    search = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(folder / "tasks", "mine", **{**BASE, "metrics": ["match"]}, data=data, retrieval=search)
    for name in ("a", "b"):
        write_run(folder / name, {"qa": [row(i, acc=1.0) for i in range(3)]})
    write_full_run(folder / "full", rows=4)
    write_full_run(folder / "loop", rows=4, loop=True)
    (folder / "rules.yaml").write_text("rules:\n  - {metric: acc, max_drop: 0.1}\n", "utf-8")
    (folder / "models.yaml").write_text(_MODELS, "utf-8")
    (folder / "own").mkdir()
    for command in (
        f"index build {folder}/corpus.jsonl {folder}/idx --kind bm25",
        f"index build {folder}/corpus.jsonl {folder}/dense --kind dense",
        f"retrieve --tasks mine --include_path {folder}/tasks -o {folder}/found",
        f"gate --save {folder}/base.json {folder}/a",
    ):
        with pytest.MonkeyPatch.context() as patch:
            own_tasks_in(folder, patch)
            with pytest.raises(SystemExit) as done:
                main(command.split())
        assert done.value.code == 0, command
    return folder


def own_tasks_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Put an empty folder in the place of our task files, which the harness would read for every run."""
    for module in ("_harness", "_catalog"):
        patch.setattr(f"mrag_eval.cli.{module}.tasks_folder", lambda: folder / "own")


@contextmanager
def planted(case: Case, folder: Path) -> Iterator[None]:
    """Write the case's files to ``folder`` while the block runs; files that they replace come back."""
    saved: dict[Path, bytes] = {}
    made: list[Path] = []
    try:
        for name, content in case.planted.items():
            path = folder / name
            made += [parent for parent in reversed(path.parents) if not parent.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                saved[path] = path.read_bytes()
                path.unlink()
            elif not path.exists():
                made.append(path)
            _write(path, content(saved[path].decode()) if callable(content) else content)
        yield
    finally:
        for path in reversed(made):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for path, content in saved.items():
            path.unlink(missing_ok=True)
            path.write_bytes(content)


def _write(path: Path, content: object) -> None:
    if content is None:
        path.mkdir(parents=True, exist_ok=True)
    elif content is UNREADABLE:
        if os.geteuid():
            path.touch()
            path.chmod(0)
        else:  # root may read every file, but not this one
            path.symlink_to("/proc/self/mem")
    elif content is PIPE:
        os.mkfifo(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        assert isinstance(content, str)
        path.write_text(content, "utf-8", errors="surrogatepass")


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of change of every file below ``folder``, and its folders.

    Unfinished builds are left out: they stay for ``--resume``.
    """
    found = {}
    for home, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.endswith((".building", ".adding"))]
        for name in (*folders, *files):
            path = os.path.join(home, name)
            status = os.lstat(path)
            found[path] = (0, 0) if os.path.isdir(path) else (status.st_size, status.st_mtime_ns)
    return found
