"""The distribution: built, installed into an empty environment, and found by the stock harness."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.wheel, pytest.mark.slow, pytest.mark.timeout(1800)]


def call(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command away from the source tree; show its output on failure."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd, env={**clean, **env}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the source distribution and the wheel built from it."""
    out = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--outdir", out, ROOT, cwd=out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def environment(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with only the wheel and its core dependencies: no torch, no model library."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", folder, cwd=folder)
    pip = folder / "bin" / "pip"
    call(pip, "install", "-q", "-c", ROOT / "constraints.txt", distributions[1], cwd=folder)
    return folder / "bin"


def test_the_wheel_of_the_source_distribution_is_that_of_the_tree(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    call(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert _contents(wheel) == _contents(distributions[1])


def _contents(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def test_an_editable_install_reads_the_task_files_of_the_tree(tmp_path: Path) -> None:
    tree, folder = tmp_path / "tree", tmp_path / "environment"
    for name in filter(None, call("git", "ls-files", "-z", cwd=ROOT).split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    call(sys.executable, "-m", "venv", folder, cwd=tmp_path)
    call(folder / "bin" / "pip", "install", "-q", "-c", ROOT / "constraints.txt", "-e", tree, cwd=tmp_path)
    program = folder / "bin" / "mrag-eval"
    assert call(program, "tasks", "--path", cwd=tmp_path).strip() == str(tree / "tasks")
    task = tree / "tasks" / "demo" / "mrag_demo_norag.yaml"
    task.write_text(task.read_text("utf-8").replace("task: mrag_demo_norag", "task: mrag_demo_edited"), "utf-8")
    flags = ("--model", "dummy", "--tasks", "mrag_demo_edited", "--limit", "1")
    env = {"HF_HUB_OFFLINE": "1", "MRAG_CACHE": str(tmp_path / "cache")}
    assert "mrag_demo_edited" in call(program, "run", *flags, cwd=tmp_path, **env)
    stock = call(folder / "bin" / "lm_eval", *flags, "--include_path", tree / "tasks", cwd=tmp_path, **env)
    assert "mrag_demo_edited" in stock


def test_source_distribution_holds_what_a_build_and_the_tests_need(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "tasks/demo/_demo_yaml",
        "metrics/__init__.py",
        "retrievers/__init__.py",
        "mrag_eval/datasets/demo_data/passages.jsonl",
        "tests/conftest.py",
        "constraints.txt",
        "action.yml",
        "CHANGELOG.md",
    ):
        assert name in names


def test_wheel_holds_every_module_template_and_task_file(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        names = set(archive.namelist())
    tracked = call("git", "ls-files", "mrag_eval", "metrics", "retrievers", "tasks", cwd=ROOT).split()
    places = {"metrics/": "mrag_eval/metrics/", "retrievers/": "mrag_eval/retrievers/"}
    places["tasks/"] = "lm_eval/tasks/mrag_eval/"
    wanted = set()
    for name in tracked:
        if (ROOT / name).is_symlink() or not name.endswith((".py", ".jinja", ".jsonl", ".yaml", "_yaml", "py.typed")):
            continue
        place = next((new for old, new in places.items() if name.startswith(old)), None)
        wanted.add(name if place is None else place + name.split("/", 1)[1])
    assert wanted - names == set()
    assert len(wanted) > 100


def test_stock_harness_runs_our_task_without_a_flag(environment: Path, tmp_path: Path) -> None:
    said = call(
        environment / "lm_eval", "--model", "dummy", "--tasks", "mrag_demo_norag", "--limit", "2", "--log_samples",
        "--output_path", "out", cwd=tmp_path, HF_HUB_OFFLINE="1", MRAG_CACHE=str(tmp_path / "cache"),
    )  # fmt: skip
    assert "mrag_demo_norag" in said
    assert "char3gram_recall" in said
    assert list((tmp_path / "out").rglob("samples_mrag_demo_norag_*.jsonl"))


def test_our_command_does_not_add_tasks_that_the_harness_holds(environment: Path, tmp_path: Path) -> None:
    folder = call(environment / "mrag-eval", "tasks", "--path", cwd=tmp_path).strip()
    assert Path(folder).parts[-3:] == ("lm_eval", "tasks", "mrag_eval")
    assert "0 faults" in call(environment / "mrag-eval", "tasks", "--check", cwd=tmp_path)
    command = environment / "mrag-eval"
    done = subprocess.run(
        [command, "run", "--model", "dummy", "--tasks", "mrag_demo_nor*", "--limit", "1"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "MRAG_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Duplicate task name" not in done.stderr
    assert "already registered" not in done.stderr.lower()


def test_without_a_model_library_the_commands_say_what_to_install(environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment / "mrag-eval", "demo"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].strip().startswith("pip install")
    assert "torch: not installed" in call(environment / "mrag-eval", "doctor", cwd=tmp_path)
