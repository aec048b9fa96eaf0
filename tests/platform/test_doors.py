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


@pytest.mark.parametrize("name", DOORS)
def test_a_door_has_each_of_its_names_and_no_other(name: str) -> None:
    door = import_module(name)
    assert {*door.__all__} <= {*dir(door)}
    for public in door.__all__:
        assert getattr(door, public) is getattr(door, public)
        # the second time it is an ordinary attribute
        assert public in vars(door)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = door.nothing


@pytest.mark.parametrize("name", DOORS)
def test_a_door_lists_what_it_imports(name: str) -> None:
    door = import_module(name)
    tree = ast.parse(Path(str(door.__file__)).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = [one for node in block.body if isinstance(node, ast.ImportFrom) for one in node.names]
    assert sorted(one.asname or one.name for one in imported) == sorted({*door.__all__} - {"__version__"})


def test_the_doors_that_users_import_from_have_a_list_for_their_type_checkers() -> None:
    root = Path(mrag_eval.__file__).resolve().parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    used = {*re.findall(r"^(?:from|import) (mrag_eval[\w.]*)", text, re.MULTILINE)}
    assert used > {"mrag_eval"}
    assert {name for name in used if "__all__" not in vars(import_module(name))} == set()


def test_importing_a_door_loads_no_module_of_its_room() -> None:
    doors = [name for name in DOORS if name != "mrag_eval.harness"]
    own = {*doors, "mrag_eval.platform._collection", "mrag_eval.platform._doors"}
    code = f"import sys, {', '.join(doors)}; print(*sorted(m for m in sys.modules if m.startswith('mrag_eval')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} == own
