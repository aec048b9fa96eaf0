"""The passages of a Milvus collection by row, like ``PassageStore`` for files."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.index._passages import PassageRows, Record, Rows
from mrag_eval.retrievers.milvus._milvus_client import Connection

FIELDS = ("row", "id", "doc_id", "title", "text")
# rows per call, and names per filter
_ROWS = 1_000
_NAMES = 500
# maximum number of results of Milvus
_MOST = 16_384
# records cached: hits of a search are looked up again to show their texts
_KEPT = 100_000


class MilvusPassages(PassageRows):
    """Passages of ``collection`` by row, ordered as in an index folder; ``counts`` holds passages per language."""

    def __init__(self, connection: Connection, collection: str, counts: dict[str, int]) -> None:
        self._connection, self._collection = connection, collection
        super().__init__(counts)
        self._known: OrderedDict[int, Record] = OrderedDict()

    @property
    def folder(self) -> str:
        """Return the location, for messages."""
        return f"'{self._collection}' in {self._connection.uri}"

    def ids(self, rows: Rows) -> list[str]:
        return [identifier for identifier, *_ in self._records(rows)]

    def records(self, rows: Rows) -> Iterator[tuple[str, Rows, list[Record]]]:
        found = self._records(rows)
        for lang, positions, _ in self.by_language(rows):
            yield lang, positions, [found[position] for position in positions.tolist()]

    def _records(self, rows: Rows) -> list[Record]:
        wanted: list[int] = rows.tolist()
        found: dict[int, Record] = {}
        for row in wanted:
            if row in self._known:
                self._known.move_to_end(row)
                found[row] = self._known[row]
        new = [row for row in dict.fromkeys(wanted) if row not in found]
        for start in range(0, len(new), _ROWS):
            part = new[start : start + _ROWS]
            for entry in self._connection.call("get", self._collection, ids=part, output_fields=list(FIELDS)):
                found[entry["row"]] = (entry["id"], entry["doc_id"], entry["title"], entry["text"])
        for row in new:
            if row not in found:
                raise CorpusError(f"collection {self.folder} lacks row {row}", _ANEW)
            self._known[row] = found[row]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return [found[row] for row in wanted]

    # --- from ids to rows -------------------------------------------------------------------------------------------

    def rows_named(self, names: Collection[str]) -> dict[str, Rows]:
        """Return, for every name, the rows with that passage id or document id."""
        unique = list(dict.fromkeys(names))
        places: dict[str, list[int]] = {name: [] for name in unique}
        for start in range(0, len(unique), _NAMES):
            part = unique[start : start + _NAMES]
            listed = json.dumps(part, ensure_ascii=False)
            for entry in self._found(f"id in {listed} or doc_id in {listed}"):
                for name in {entry["id"], entry["doc_id"]} & set(part):
                    places[name].append(entry["row"])
        return {name: np.asarray(sorted(rows), dtype=np.int64) for name, rows in places.items()}

    def rows_of_passages(self, ids: Sequence[str]) -> Rows:
        """Return the row of every passage id; raise CorpusError for an unknown one."""
        known = {record[0]: row for row, record in self._known.items()}
        new = [identifier for identifier in dict.fromkeys(ids) if identifier not in known]
        for start in range(0, len(new), _NAMES):
            listed = json.dumps(new[start : start + _NAMES], ensure_ascii=False)
            known |= {entry["id"]: entry["row"] for entry in self._found(f"id in {listed}")}
        unknown = next((identifier for identifier in ids if identifier not in known), None)
        if unknown is not None:
            raise CorpusError(
                f"collection {self.folder} holds no passage '{unknown}'",
                "use ids of this index: mrag-eval index info FOLDER",
            )
        return np.asarray([known[identifier] for identifier in ids], dtype=np.int64)

    def _found(self, expression: str, low: int = 0, high: int | None = None) -> list[Any]:
        """Return the rows that match ``expression``; a range of rows with too many results is halved."""
        high = len(self) if high is None else high
        found: list[Any] = self._connection.call(
            "query",
            self._collection,
            filter=f"({expression}) and row >= {low} and row < {high}",
            output_fields=["row", "id", "doc_id"],
            limit=_MOST,
        )
        if len(found) < _MOST or high - low <= 1:
            return list(found)
        middle = (low + high) // 2
        return self._found(expression, low, middle) + self._found(expression, middle, high)


_ANEW = "load the index again: mrag-eval index milvus --overwrite ..."
