"""Notes to a Milvus collection: the manifest, vocabularies and the progress of loading.

They are stored in a second collection, ``<name>__about``, as texts cut to the size of a field, so everything needed for
search is in Milvus and no feature beyond rows is used.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from mrag_eval.platform import LONGEST_FILE, CorpusError, json_value
from mrag_eval.retrievers.milvus._milvus_client import Connection

# A VARCHAR field of Milvus holds 65,535 bytes.
VARCHAR = 65_535
_PIECE = 60_000
_AT_ONCE = 100
# a collection must have a vector; this one is unused
_NOTHING = [0.0, 0.0]


class Notes:
    """JSON values by name for ``collection``. A value exists once it is completely written."""

    def __init__(self, connection: Connection, collection: str) -> None:
        self._connection, self._name = connection, f"{collection}__about"

    def exist(self) -> bool:
        return bool(self._connection.call("has_collection", self._name))

    def create(self) -> None:
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", DataType.VARCHAR, max_length=512, is_primary=True)
        schema.add_field("value", DataType.VARCHAR, max_length=VARCHAR)
        schema.add_field("nothing", DataType.FLOAT_VECTOR, dim=len(_NOTHING))
        indexes = MilvusClient.prepare_index_params()
        indexes.add_index("nothing", index_type="FLAT", metric_type="IP")
        self._connection.create(self._name, schema, indexes)

    def drop(self) -> None:
        self._connection.call("drop_collection", self._name)

    def load(self) -> None:
        self._connection.call("load_collection", self._name)

    def write(self, key: str, value: Any) -> None:
        text = base64.b85encode(zlib.compress(json.dumps(value).encode())).decode("ascii")
        pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
        for start in range(0, len(pieces), _AT_ONCE):
            part = enumerate(pieces[start : start + _AT_ONCE], start)
            self._put({f"{key}/{number}": piece for number, piece in part})
        self._put({key: str(len(pieces))})

    def read(self, key: str) -> Any:
        """Return a value, or None if it does not exist."""
        head = self._get([key]).get(key)
        if head is None:
            return None
        keys = [f"{key}/{number}" for number in range(int(head))]
        found: dict[str, str] = {}
        for start in range(0, len(keys), _AT_ONCE):
            found |= self._get(keys[start : start + _AT_ONCE])
        try:
            packed = base64.b85decode("".join(found[key] for key in keys))
            return json_value(zlib.decompressobj().decompress(packed, LONGEST_FILE))
        except (KeyError, ValueError, zlib.error):
            raise CorpusError(
                f"Milvus at {self._connection.uri}: '{key}' in collection '{self._name}' is damaged",
                "load the index again: mrag-eval index milvus --overwrite ...",
            ) from None

    def _put(self, rows: dict[str, str]) -> None:
        data = [{"key": key, "value": value, "nothing": _NOTHING} for key, value in rows.items()]
        self._connection.call("upsert", self._name, data)

    def _get(self, keys: list[str]) -> dict[str, str]:
        rows = self._connection.call("get", self._name, ids=keys, output_fields=["key", "value"])
        return {row["key"]: row["value"] for row in rows}
