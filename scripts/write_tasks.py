"""Write the task YAML of every benchmark from its matrix: ``python scripts/write_tasks.py [--check]``.

``tasks/<benchmark>/_matrix.yaml`` holds the content of all files of a benchmark; tasks/README.md explains its keys. The
files are committed. ``--check`` writes nothing and exits with 1 if a file differs from its matrix.
"""

from __future__ import annotations

import argparse
import itertools
import re
import string
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TASKS = Path(__file__).resolve().parent.parent / "tasks"
HEADER = "# Written by scripts/write_tasks.py from _matrix.yaml.\n"
# Keys that steer the expansion; all others go into the file.
_STEERING = ("called", "folder", "only")
# Keys of a group.
_GROUP_KEYS = ("folder", "only", "tasks", "plain_mean", "weighted_mean")

Block = dict[str, Any]
# Axis -> key -> what that value adds to a file.
Axes = Mapping[str, Mapping[str, Block]]
# Axis -> the chosen key.
Cell = Mapping[str, str]


class _Function(str):
    """A dotted path that the harness imports (``!function``)."""


class _File(dict[str, Any]):
    """Return the content of a file: one key per line, with short blocks and lists inline."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Function, lambda dumper, path: dumper.represent_scalar("!function", str(path)))
_Dumper.add_representer(_File, lambda dumper, file: dumper.represent_mapping("tag:yaml.org,2002:map", file, False))


def all_files(root: Path = TASKS) -> Iterator[tuple[Path, str]]:
    """Yield every file, relative to ``root``, with its content; ValueError names the matrix and the entry at fault."""
    for matrix in sorted(root.glob("*/_matrix.yaml")):
        written = set()
        for path, config in _expanded(yaml.safe_load(matrix.read_text(encoding="utf-8")), matrix):
            if path in written:
                raise ValueError(f"{matrix}: two entries write {path}; rename one, or restrict it with 'only'")
            written.add(path)
            text = yaml.dump(_File(config), Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120)
            yield matrix.parent.relative_to(root) / path, HEADER + text


def _expanded(matrix: Block, where: Path) -> Iterator[tuple[Path, Block]]:
    write = {"bases": _base, "tasks": _task, "groups": _group}
    if unknown := set(matrix) - {"version", "axes", *write}:
        raise ValueError(f"{where}: unknown key '{min(unknown)}'; expected version, axes, bases, tasks, groups")
    found = {axis: keys if isinstance(keys, dict) else dict.fromkeys(keys) for axis, keys in matrix["axes"].items()}
    if not all(isinstance(key, str) for keys in found.values() for key in keys):
        raise ValueError(f"{where}: an axis has a value that YAML does not read as text; put it in quotes")
    for section, file_of in write.items():
        for name, entry in matrix.get(section, {}).items():
            extra = set(entry) - {*_GROUP_KEYS} if section == "groups" else ()
            if extra:
                raise ValueError(f"{where}, groups, {name}: unknown key '{min(extra)}'; use {', '.join(_GROUP_KEYS)}")
            try:
                only = found | (entry.get("only") or {})
                axes = {axis: {key: found[axis][key] or {} for key in keys} for axis, keys in only.items()}
                for cell in _cells(name, axes):
                    yield file_of(name, entry, cell, axes, {"version": matrix["version"]})
            except KeyError as error:
                raise ValueError(f"{where}, {section}, {name}: {error} is missing, or is no axis or value") from None


def _base(name: str, entry: Block, cell: Cell, axes: Axes, metadata: Block) -> tuple[Path, Block]:
    content = _content(entry, cell, axes)
    if "include" not in entry:
        content = {"class": _Function("mrag_eval.task.RagTask"), **content, "metadata": metadata}
    return Path(f"_{name.format_map(cell)}_yaml"), content


def _task(name: str, entry: Block, cell: Cell, axes: Axes, metadata: Block) -> tuple[Path, Block]:
    task, folder = _named(name, cell, axes), entry.get("folder", "")
    content = _content({"task": task, **entry, "include": entry["include"]}, cell, axes)
    return Path(folder.format_map(cell), f"{task}.yaml"), content


def _group(name: str, entry: Block, cell: Cell, axes: Axes, metadata: Block) -> tuple[Path, Block]:
    """A group includes no base: with ``class`` in it the harness would take the group for a task."""
    group, listed = _named(name, cell, axes), entry["tasks"]
    chosen = {**axes, **{axis: {key: axes[axis][key]} for axis, key in cell.items()}}
    templates = listed if isinstance(listed, list) else [listed]
    members = [_named(template, inner, chosen) for template in templates for inner in _cells(template, chosen)]
    means = [
        {"metric": metric, "aggregation": "mean", "weight_by_size": weighted}
        for key, weighted in (("plain_mean", False), ("weighted_mean", True))
        for metric in entry.get(key, ())
    ]
    content = {"group": group, "task": members, **({"aggregate_metric_list": means} if means else {})}
    return Path(entry.get("folder", "").format_map(cell), f"_{group}.yaml"), content | {"metadata": metadata}


def _content(entry: Block, cell: Cell, axes: Axes) -> Block:
    """Merge the blocks of every axis that the included base does not depend on, then the entry's own keys over them."""
    include = entry.get("include")
    blocks = [axes[axis][key] for axis, key in cell.items() if axis not in _axes_of(include or "")]
    base = include and f"{'../' if 'folder' in entry else ''}_{include}_yaml"
    head = {"include": base, "task": entry.get("task")}
    merged = head | _merged(*blocks, {key: value for key, value in entry.items() if key != "include"})
    # null takes back what an axis adds
    return {key: _filled(value, cell) for key, value in merged.items() if key not in _STEERING and value is not None}


def _merged(*blocks: Mapping[str, Any]) -> Block:
    out: Block = {}
    for block in blocks:
        for key, value in block.items():
            both = isinstance(value, dict) and isinstance(out.get(key), dict)
            out[key] = _merged(out[key], value) if both else value
    return out


def _filled(value: Any, cell: Cell) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, cell) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, cell) for inner in value]
    return value.format_map(cell) if isinstance(value, str) else value


def _axes_of(template: str) -> list[str]:
    return [axis for _, axis, _, _ in string.Formatter().parse(template) if axis]


def _cells(template: str, axes: Axes) -> Iterator[Cell]:
    """Yield each combination of the axes that a template names; the last one varies fastest."""
    names = _axes_of(template)
    for keys in itertools.product(*(axes[axis] for axis in names)):
        yield dict(zip(names, keys, strict=True))


def _named(template: str, cell: Cell, axes: Axes) -> str:
    """Return the name of a task or group; an empty value leaves no underscore behind."""
    called = {axis: axes[axis][key].get("called", key) for axis, key in cell.items()}
    return re.sub("_+", "_", template.format_map(called)).strip("_")


def stale(root: Path = TASKS) -> list[str]:
    """Return the files that differ from their matrix, and those that no matrix writes any more."""
    expected = {root / path: content for path, content in all_files(root)}
    wrong = [path for path, content in expected.items() if not path.is_file() or path.read_text("utf-8") != content]
    return [str(path.relative_to(root)) for path in wrong] + [
        f"{path.relative_to(root)} (no longer written)"
        for path in sorted(root.glob("*/**/*yaml"))
        if path not in expected and path.read_text("utf-8").startswith(HEADER)
    ]


def write(root: Path = TASKS) -> int:
    """Write the files of every matrix under ``root``; return their number."""
    files = dict(all_files(root))
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    return len(files)


def main() -> int:
    """Write the files, or with ``--check`` name those that are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    if not parser.parse_args().check:
        print(f"{write()} files written to {TASKS}")
        return 0
    wrong = stale()
    print("\n".join(wrong) or "tasks are up to date")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
