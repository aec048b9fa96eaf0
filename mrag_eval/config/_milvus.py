"""A corpus in Milvus, as the config file names it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mrag_eval.config._block import Block


class MilvusCorpus(Block):
    """An entry of ``corpora`` in the config file: an index loaded with ``mrag-eval index milvus``.

    ``uri`` is a server or a local file ending in ``.db``; ``collection`` is by default the name of the entry. The token
    is read from the environment variable ``token_env``. ``patience`` is how many seconds a call is tried for while the
    server does not answer; ``search`` are parameters of the vector index (``ef`` of HNSW, ``nprobe`` of IVF_FLAT), over
    those stored with the collection.
    """

    kind: Literal["milvus"]
    uri: str
    collection: str | None = None
    token_env: str = "MILVUS_TOKEN"
    patience: float = Field(default=120.0, gt=0)
    search: dict[str, int] = Field(default_factory=dict)
