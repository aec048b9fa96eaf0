"""A build on a Ray of two nodes, the second of which is killed while documents are read: ``killed_node FOLDER FILE``.

FILE gets the fingerprint of the index, or the error of ours that the build ended with; Ray prints as it likes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from mrag_eval.platform import MragError
from mrag_eval.retrievers import Document, RayEngine, build_index
from tests.retrievers.faulty_build import Lengths, documents

COUNT, KILLED_AT = 400, 200
ENGINE = RayEngine(actors=2, block_bytes=1 << 14)
SETTINGS: dict[str, Any] = {"chunker": {"method": "words", "size": 20}, "batch_size": 16, "progress": False}


def main(folder: Path, outcome: Path) -> None:
    """Build the index in ``folder``."""
    quiet = {"include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **quiet}, shutdown_at_exit=False)
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)

    def read() -> Iterator[Document]:
        for number, document in enumerate(documents(COUNT)):
            if number == KILLED_AT:
                cluster.remove_node(second, allow_graceful=False)
            yield document

    try:
        built = build_index(read(), folder, embedder=Lengths(), engine=ENGINE, **SETTINGS)
        outcome.write_text(json.dumps({"fingerprint": built.manifest.fingerprint}), "utf-8")
    except MragError as error:
        outcome.write_text(json.dumps({"error": error.message, "next": error.next_step}), "utf-8")
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
