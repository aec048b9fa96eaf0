"""A build in its own process that dies at the requested point: ``python faulty_build.py POINT PATH ...``.

Prints the fingerprint and exits with 0 if it finishes; exits with 2 and the message if one of our errors is raised.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import MragError
from mrag_eval.retrievers import Document, build_index

FOLDER = Path(__file__).parent


class Lengths:
    """Vectors that depend only on the text; each batch takes ``delay`` seconds."""

    name, revision, dim = "lengths", "1", 4

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        time.sleep(self.delay)
        return np.asarray([[len(t), t.count("w"), t.count("1"), 0.5] for t in texts], dtype=np.float32)

    embed_queries = embed_passages


def documents(count: int) -> Iterator[Document]:
    for number in range(count):
        lang = ("en", "ko", "zh")[number % 3]
        words = [f"w{(number * 37 + place * 11) % 997}" for place in range(10 + number % 60)]
        text = "".join(words) if lang == "zh" else " ".join(words)
        yield Document(id=f"d{number}", lang=lang, text=text, title=f"title {number}")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def failing(
    real: Callable[..., Any], call: int, *, after: bool = False, fault: Callable[[], None] = die
) -> Callable[..., Any]:
    """Wrap ``real`` so that ``fault``, which kills the process, comes before (or after) its ``call``-th call."""
    calls = 0

    @wraps(real)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            fault()
        result = real(*args, **kwargs)
        if calls == call:
            fault()
        return result

    return wrapped


def arm(point: str, fault: Callable[[], None] = die, put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Have ``fault``, which kills the process, come at one of :data:`POINTS`."""
    if point == "none":
        return
    place, name, call, after = POINTS[point]
    import importlib

    module_name, _, class_name = place.partition(":")
    owner: Any = importlib.import_module(module_name)
    if class_name:
        owner = getattr(owner, class_name)
    put(owner, name, failing(getattr(owner, name), call, after=after, fault=fault))


_ROOM = "mrag_eval.retrievers"
# the point where the process dies: module (and class), function, which call, and whether that call finishes first
POINTS: dict[str, tuple[str, str, int, bool]] = {
    "embedding": (f"{__name__}:Lengths", "embed_passages", 2, False),
    "first append": (f"{_ROOM}.build._building:Building", "append", 1, False),
    "between the files of a batch": (f"{_ROOM}.build._building:Building", "_write", 40, False),
    "before a state is saved": (f"{_ROOM}.build._building:Building", "_save", 4, False),
    "after a state is saved": (f"{_ROOM}.build._building:Building", "_save", 5, True),
    "reading up to the last batch": (f"{_ROOM}.index._hashing:ContentHash", "add", 50, True),
    "Parquet half written": ("pyarrow.parquet:ParquetWriter", "write_table", 2, True),
    "lookup half written": (f"{_ROOM}.build._passages_finish", "save_array", 1, True),
    "some vectors finished": (f"{_ROOM}.build._index_writer", "finish_dense", 2, True),
    "some postings finished": (f"{_ROOM}.shards._bm25_shard", "finish", 2, True),
    "before the manifest": (f"{_ROOM}.build._index_writer", "write_manifest", 1, False),
    "manifest written": (f"{_ROOM}.build._index_writer", "write_manifest", 1, True),
    "state removed": (f"{_ROOM}.build._building", "move_into_place", 1, False),
}


def build(path: Path, options: argparse.Namespace) -> str:
    index = build_index(
        documents(options.documents),
        path,
        kind=options.kind,
        embedder=Lengths(options.delay),
        chunker={"method": "words", "size": 20},
        batch_size=options.batch_size,
        progress=False,
        resume=options.resume,
        overwrite=options.overwrite,
        **json.loads(options.more),
    )
    return index.manifest.fingerprint


def arguments() -> argparse.ArgumentParser:
    """Return the parser of a build's arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("point")
    parser.add_argument("path", type=Path)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--kind", default="hybrid")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--more", default='{"window": 32}', help="further arguments of build_index, as JSON")
    return parser


def main() -> None:
    options = arguments().parse_args()
    arm(options.point)
    try:
        print(build(options.path, options))
    except MragError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
