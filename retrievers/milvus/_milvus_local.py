"""A local Milvus file, served by the process that opens it first to all processes on the machine.

``milvus-lite`` lets only one process open a file. That process serves it on a port of 127.0.0.1 and writes the address
to a file next to it, where other processes find it. After it ends, the next call of another process opens the file.
"""

from __future__ import annotations

from pathlib import Path

from mrag_eval.platform import CorpusError, missing_extra, write_whole


def serving_address(path: str) -> str:
    """Return the address at which the Milvus file ``path`` is served, by this process or the one that has it open.

    Raises CorpusError for a file that another program has open or that is not a Milvus database, and MissingExtraError
    if milvus-lite is not installed.
    """
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError:
        raise missing_extra("milvus", "milvus-lite") from None
    said = Path(f"{path}.serving")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        address: str | None = server_manager_instance.start_and_get_uri(path)
        if address is None:
            return said.read_text(encoding="utf-8").strip()
        write_whole(said, f"{address}\n")
    except OSError:
        raise unopened(path) from None
    return address


def unopened(path: str) -> CorpusError:
    """Return the error for a file that this process cannot open and no other one serves."""
    return CorpusError(
        f"{path} cannot be opened: another program has it open, or it is not a Milvus database",
        f"end that program, or serve the file to both: milvus-lite server --data-dir {path} --port 19530",
    )
