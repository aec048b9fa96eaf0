"""Journal of a step in progress: every settled item is appended and flushed, so that a killed run can resume."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrag_eval.building.steps._records import Drop, Outcome
from mrag_eval.platform import json_value, to_json

_FORMAT = 1


class Journal:
    """``settled`` items of one step under one ``key``. A journal with another key is discarded (``stale`` is then set).

    Memory holds only the file position of every item. An incomplete last line, left by a killed process, is cut off.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.stale = False
        self._where: dict[str, int] = {}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            end = self._read_back(key)
            self.stale = end == 0
            with path.open("r+b") as handle:
                handle.truncate(end)
        self._handle = path.open("ab")
        if self._handle.tell() == 0:
            self._append({"format": _FORMAT, "key": key})

    def _read_back(self, key: str) -> int:
        """Find the settled items; return the position after the last whole line, or 0 for another key."""
        end = 0
        with self.path.open("rb") as handle:
            for line in handle:
                try:
                    entry = json_value(line)
                except ValueError:
                    break
                if not line.endswith(b"\n"):
                    break
                if end == 0 and (entry.get("format"), entry.get("key")) != (_FORMAT, key):
                    return 0
                # an item is tried again if it was dropped for a temporary cause
                if "item" in entry and not any(drop.get("passing") for drop in entry["drops"]):
                    self._where[entry["item"]] = end
                end += len(line)
        return end

    @property
    def settled(self) -> set[str]:
        """Return the ids of the items that need no more work."""
        return set(self._where)

    def settle(self, item: str, outcome: Outcome) -> None:
        """Record the outcome of an item; the last one recorded counts."""
        with self._lock:
            self._where[item] = self._append({"item": item, **to_json(outcome)})

    def _append(self, entry: dict[str, Any]) -> int:
        position = self._handle.tell()
        self._handle.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._handle.flush()
        return position

    def outcomes(self, order: list[str] | None = None) -> Iterator[tuple[str, list[dict[str, Any]], list[Drop]]]:
        """Yield item, records as JSON and drops, in the given order or that of settling; skip items not settled."""
        with self.path.open("rb") as handle:
            for item in self._where if order is None else order:
                position = self._where.get(item)
                if position is None:
                    continue
                handle.seek(position)
                entry = json.loads(handle.readline())
                yield item, entry["made"], [Drop(**drop) for drop in entry["drops"]]

    def close(self) -> None:
        """Close the file."""
        self._handle.close()
