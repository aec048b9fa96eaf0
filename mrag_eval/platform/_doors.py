"""The doors of rooms: each name is imported when it is first asked for, so that a command loads what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from mrag_eval.platform._collection import uncollected


def lazy_door(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a room's door, which imports a name when it is first asked for.

    The door states its imports once, under ``if TYPE_CHECKING:``, for type checkers and for this function, which reads
    them from the source, as ``lazy_loader.attach_stub`` does (Scientific Python, SPEC 1). They are its ``__all__``,
    unless the door has its own: what users are promised of a room, for their type checkers.

    Args:
        room: the door's ``__name__``
    """
    door = sys.modules[room]

    @cache
    def places() -> dict[str, tuple[str, str]]:
        import ast

        loader: Any = door.__spec__ and door.__spec__.loader
        (block,) = (node for node in ast.parse(loader.get_source(room)).body if isinstance(node, ast.If))
        imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
        return {one.asname or one.name: (str(node.module), one.name) for node in imports for one in node.names}

    def imported(name: str) -> Any:
        if name == "__all__":
            return sorted(places())
        if name not in places():
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, own_name = places()[name]
        # a collection would walk all that is loaded, and free nothing of it
        with uncollected():
            found = getattr(import_module(module), own_name)
        setattr(door, name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(door), *places()})

    return imported, names
