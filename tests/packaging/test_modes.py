"""Other code checks the properties of IR modes, never their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mrag_eval.config import MODES

PACKAGE = Path(__file__).resolve().parents[2] / "mrag_eval"
# These may know modes by name: the room that declares them, and the one that finds their passages.
AT_HOME = ("config", "retrieval")


def comparisons(tree: ast.AST) -> Iterator[ast.Compare]:
    """Yield comparisons of something called ``mode`` with the name of a mode, or with a collection of such names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = {n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant)} & {*MODES}
            asked = any(ast.unparse(n).endswith(("mode", "'mode')", "'mode']")) for n in sides)
            if named and asked:
                yield node


def test_the_check_finds_comparisons() -> None:
    source = (
        "a.mode == 'no_ir'; b.get('mode') in ('no_ir', 'given'); c['mode'] != 'coral'; mode = 'all'; d.kind == 'all'"
    )
    assert len(list(comparisons(ast.parse(source)))) == 3


def test_no_other_room_compares_names_of_modes() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in AT_HOME
        for node in comparisons(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
