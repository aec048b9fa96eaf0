"""Shared parts of the build benchmarks: a corpus, deterministic embedders, and functions that run processes."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage


class NumberedVectors:
    """An embedder whose vectors cost almost nothing to compute."""

    name, revision = "numbered", "1"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), self.dim), 0.5, dtype=np.float32)
        vectors[:, 0] = [len(text) for text in texts]
        return vectors

    embed_queries = embed_passages


class LabouredVectors(NumberedVectors):
    """An embedder that keeps one core busy: it computes ``rounds`` SHA-256 values for every text."""

    name = "laboured"

    def __init__(self, dim: int, rounds: int) -> None:
        super().__init__(dim)
        self.rounds = rounds

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        vectors = super().embed_passages(texts)
        for row, text in enumerate(texts):
            raw = text.encode()
            digest = b""
            for _ in range(self.rounds):
                digest = hashlib.sha256(digest + raw).digest()
            vectors[row, 1:9] = np.frombuffer(digest, np.uint32) / 2**32
        return vectors

    embed_queries = embed_passages


def passages(count: int) -> Iterator[Passage]:
    """Yield passages of forty words each. The vocabulary does not grow with the corpus; a language's hardly does."""
    for number in range(count):
        words = " ".join(f"word{(number * 31 + place * place) % 5_000}" for place in range(40))
        yield Passage(id=f"{number:08x}", lang="en", text=words, doc_id=f"d{number // 3}")


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def in_a_process(command: Sequence[str]) -> dict[str, float | str]:
    """Run a script; return the JSON object that it prints last, and the seconds it took."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "seconds": time.perf_counter() - start}


def killed_half_way(command: Sequence[str], building: Path, count: int) -> tuple[int, float]:
    """Start a build and kill -9 it once half of its passages are written; return their number and the seconds."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = 0
    while process.poll() is None and done < count // 2:
        time.sleep(0.01)
        try:
            done = json.loads((building / "work" / "state.json").read_text(encoding="utf-8"))["done"]
        except (OSError, ValueError):
            continue
    process.kill()
    if process.wait() != -signal.SIGKILL:
        raise SystemExit("the build ended before it could be killed: more vectors, please")
    return done, time.perf_counter() - start
