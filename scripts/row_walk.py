"""Draw the walk of a row from the code: who makes, reads, scores and records one, and in which room.

    python scripts/row_walk.py [COMMIT]

The stations are the objects and functions that a row passes on its way from the reply to the scores of its task. Each
module of the package is parsed, in the working tree or in a commit; nothing is imported. An arrow of the drawing
(Mermaid) leads from a function that calls a station to that station, both named ``room.function``; the table counts
the functions and the files that call each.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "mrag_eval"
# Objects and functions by room, in the order of the walk; a commit need not have all of them.
STATIONS = (
    *("core.Scored", "scoring.Given", "scoring.parse_answer", "scoring.read", "judging.Decided", "judging.Recount"),
    *("scoring.score_rows", "scoring.records", "scoring.row_record", "scoring.RowRecord", "scoring.summarize"),
)
_NAMES = {name.partition(".")[2]: name for name in STATIONS}


def modules(commit: str | None) -> Iterator[tuple[str, str]]:
    """Yield path and text of every module of the package."""
    if commit is None:
        for path in sorted((ROOT / PACKAGE).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        return

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    for name in git("ls-tree", "-r", "--name-only", commit, PACKAGE).splitlines():
        if name.endswith(".py"):
            yield name, git("show", f"{commit}:{name}")


def known(tree: ast.Module, room: str) -> Mapping[str, str]:
    """Return local name -> ``room.name`` of what a module defines, or imports from a room."""
    found = {node.name: f"{room}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            there = (node.module or "").split(".")
            for alias in node.names:
                own = there[1] if len(there) > 1 else alias.name
                found[alias.asname or alias.name] = own if len(there) == 1 else f"{own}.{alias.name}"
    return found


def called(function: ast.AST, names: Mapping[str, str]) -> Iterator[str]:
    """Yield ``room.name`` of everything that a function calls and whose room is known."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            yield names.get(node.func.id, "")
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            # a name of a room, or a method that makes one of its class
            room = names.get(node.func.value.id, "")
            yield f"{room}.{node.func.attr}" if room and "." not in room else room


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield name and body of every function of a module and of every method of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, ast.FunctionDef))


def walk(commit: str | None) -> dict[str, set[tuple[str, str]]]:
    """Return, for each station, the functions that call it, with their files."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path, text in modules(commit):
        tree, parts = ast.parse(text), path.split("/")
        room = parts[1] if len(parts) > 2 else PACKAGE
        names = known(tree, room)
        for name, body in functions(tree):
            for station in {*called(body, names)} & {*STATIONS}:
                found[station].add((f"{room}.{name}", path))
    return found


def main() -> None:
    """Print the drawing and the table of a commit, by default of the working tree."""
    found = walk(sys.argv[1] if len(sys.argv) > 1 else None)
    print("flowchart LR")
    for station in STATIONS:
        for caller in sorted({caller for caller, _ in found.get(station, ())}):
            print(f"    {caller} --> {station}")
    print()
    for station in STATIONS:
        callers = found.get(station, set())
        rooms = sorted({caller.partition(".")[0] for caller, _ in callers})
        files = {path for _, path in callers}
        print(f"{station:<22}{len(callers):>3} functions {len(files):>3} files  {', '.join(rooms)}")


if __name__ == "__main__":
    main()
