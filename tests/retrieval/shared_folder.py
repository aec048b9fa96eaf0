"""A small run folder of one task, written without a task: for tests of folders that are shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrag_eval.core import Hit, RagDoc, Ranked, Retrieved
from mrag_eval.retrieval import RunFolder
from mrag_eval.retrieval.saved._manifest import ManifestEntry, marked, seats_in
from mrag_eval.retrieval.saved._settings import fingerprint_of

DOCS = [
    RagDoc("q1", "When was the bridge built?", "en", ("1890",)),
    RagDoc("q2", "Wo ist der See?", "de", ("Im Norden",)),
]
FOUND = [
    Retrieved((Hit("p1", "en", "It opened in 1890.", 0.5, 1),), (Ranked("p1", "d1", "en", 0.5),)),
    Retrieved((Hit("p2", "de", "Der See ist im Norden.", 0.25, 1),), (Ranked("p2", "d2", "de", 0.25),)),
]
SETTINGS: dict[str, Any] = {
    "retrieval": {"mode": "all", "k": 1, "kind": "bm25"},
    "data": {"benchmark": "demo"},
    "rows": {"n": 2, "sha256": "x"},
}
FREE = {"name": "the bridge archive", "licence": "CC-BY-SA-4.0", "shareable": True}
TERMS = {"passages": FREE, "questions": FREE}


def write_folder(path: Path, task: str = "t", *, found: list[Retrieved] | None = None, **changes: Any) -> RunFolder:
    """Write a finished run folder of a task; ``changes`` are fields of its entry."""
    settings = changes.pop("settings", SETTINGS)
    changes = {"models": marked(seats_in(settings)), **changes}
    entry = {"corpus": None, "dataset": "x", "seeds": {}, "terms": TERMS, "version": "0.1.0", **changes}
    folder = RunFolder(path)
    folder.begin(task, ManifestEntry(f"{task}.jsonl", fingerprint_of(settings), settings, **entry))
    folder.append(task, DOCS, found or FOUND)
    folder.finish(task, single_ranking=True)
    return folder
