"""The doors of rooms: every name is there, and importing a door loads nothing of its room."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mrag_eval

ROOMS = sorted(
    f"mrag_eval.{place.parent.name}"
    for place in Path(mrag_eval.__file__).parent.glob("*/__init__.py")
    if place.parent.name != "cli"
)
DOORS = ["mrag_eval", *ROOMS]


def imported_by(name: str) -> set[str]:
    """Return the names that a door states, in its imports for type checkers."""
    tree = ast.parse(Path(str(import_module(name).__file__)).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {one.asname or one.name for node in block.body if isinstance(node, ast.ImportFrom) for one in node.names}


@pytest.mark.parametrize("name", DOORS)
def test_a_door_has_each_of_its_names_and_no_other(name: str) -> None:
    door, names = import_module(name), imported_by(name)
    assert {*door.__all__} - {"__version__"} <= names <= {*dir(door)}
    for public in names | {*door.__all__}:
        assert getattr(door, public) is getattr(door, public)
        # the second time it is an ordinary attribute
        assert public in vars(door)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = door.nothing


@pytest.mark.parametrize("name", [name for name in DOORS if "__all__" not in vars(import_module(name))])
def test_a_door_without_a_list_of_its_own_lists_what_it_imports(name: str) -> None:
    assert {*import_module(name).__all__} == imported_by(name)


@pytest.mark.parametrize("name", ["mrag_eval", "mrag_eval.metrics"])
def test_a_door_of_which_users_are_promised_all_lists_all(name: str) -> None:
    assert {*import_module(name).__all__} - {"__version__"} == imported_by(name)


def test_the_doors_that_users_import_from_list_for_their_type_checkers_what_the_pages_import() -> None:
    root = Path(mrag_eval.__file__).resolve().parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    used = {*re.findall(r"^(?:from|import) (mrag_eval[\w.]*)", text, re.MULTILINE)}
    assert used > {"mrag_eval"}
    assert {name for name in used if "__all__" not in vars(import_module(name))} == set()
    named = re.findall(r"^\s*from (mrag_eval[\w.]*) import ([\w, ]+)$", text, re.MULTILINE)
    asked = {(door, name.strip()) for door, names in named for name in names.split(",")}
    assert len(asked) > 5
    assert {(door, name) for door, name in asked if name not in import_module(door).__all__} == set()


def test_importing_a_door_loads_no_module_of_its_room() -> None:
    doors = [name for name in DOORS if name != "mrag_eval.harness"]
    own = {*doors, "mrag_eval.platform._collection", "mrag_eval.platform._doors"}
    code = f"import sys, {', '.join(doors)}; print(*sorted(m for m in sys.modules if m.startswith('mrag_eval')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} == own
