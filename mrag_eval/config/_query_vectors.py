"""Published vectors of a benchmark's questions, for indexes whose embedder cannot be run."""

from __future__ import annotations

from pydantic import Field

from mrag_eval.config._block import Block


class GivenVectors(Block):
    """Where the vectors of the questions are read instead of being computed.

    ``source`` is a Parquet or JSON Lines file, a folder of Parquet files, or ``hub:ORG/NAME@REVISION``. ``vectors``,
    ``id`` and ``text`` name its columns, if they are not called ``emb``, ``id`` and ``query``. A row's vector is found
    by the row's id and language; if the file has texts, they must be the row's question.
    """

    source: str = Field(min_length=1)
    vectors: str | None = None
    id: str | None = None
    text: str | None = None
