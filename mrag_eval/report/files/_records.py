"""Records that commands write as JSON files into folders of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from mrag_eval.platform import (
    DataError,
    check_version,
    from_json,
    json_value,
    regular,
    with_names_of_one_line,
    with_version,
    write_whole,
)

T = TypeVar("T")


def write_record(path: Path, record: Any) -> None:
    """Write a dataclass with the version of its schema."""
    write_whole(path, json.dumps(with_version(record), ensure_ascii=False))


def records_in(paths: Sequence[Path], pattern: str, record: type[T], fix: str) -> list[T]:
    """Return the records of one type in the folders among ``paths``, in the order of their files' names.

    Raises DataError for a file that holds none, and for a faulty key; ``fix`` is the next step.
    """
    out = []
    for file in (f for path in paths if path.is_dir() for f in sorted(path.rglob(pattern))):
        try:
            value = with_names_of_one_line(json_value(regular(file).read_bytes()))
        except (OSError, ValueError) as err:
            raise DataError(f"{file}: cannot be read ({err})", fix) from None
        if not isinstance(value, dict):
            raise DataError(f"{file}: is no object", fix)
        check_version(value, str(file))
        out.append(from_json(record, value, str(file), fix))
    return out
