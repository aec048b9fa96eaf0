"""The YAML of a task, read as the harness reads it, without importing the harness."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.platform import FunctionName

if TYPE_CHECKING:
    from yaml import Loader


def read_task_yaml(path: Path, *, with_includes: bool = True) -> dict[str, Any]:
    """Return the keys of a task's file, with those of the files it includes, or without; functions stay names.

    A file's own keys come before those it includes, and of two included files those of the later one. Raises OSError,
    ValueError and ``yaml.YAMLError`` for a file that cannot be read.
    """
    return _read(Path(path).expanduser().resolve(), with_includes, ())


def _read(path: Path, with_includes: bool, above: tuple[Path, ...]) -> dict[str, Any]:
    import yaml

    if path in above:
        raise ValueError(f"{path} includes itself")
    content = yaml.load(path.read_bytes(), Loader=_loader(path.parent))
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected keys and values, got {type(content).__name__}")
    if not with_includes or "include" not in content:
        return content
    named = content.pop("include")
    merged: dict[str, Any] = {}
    for include in named if isinstance(named, list) else [named]:
        merged |= _read((path.parent / str(include)).resolve(), True, (*above, path))
    return merged | content


@cache
def _loader(folder: Path) -> type[Loader]:
    """Return a safe loader that reads the tag ``!function`` as the name of a function."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: type[Loader] = type("TaskLoader", (base,), {})
    loader.add_constructor("!function", lambda reading, node: FunctionName.beside(node.value, folder))
    return loader
