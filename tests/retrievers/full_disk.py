"""Builds on a file system that is too small, then given room and resumed: ``python full_disk.py FOLDER SIZE``.

Run it in a separate mount namespace (``unshare --mount``), so that nothing stays mounted. Prints one JSON object; exits
with 77 if mounting is not allowed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from faulty_build import build

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers import load_index


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", type=int)
    parser.add_argument("--documents", type=int, required=True)
    options = parser.parse_args()
    options.kind, options.delay, options.batch_size, options.more = "hybrid", 0.0, 256, "{}"
    options.resume = options.overwrite = False
    mount = ["mount", "-t", "tmpfs", "-o", f"size={options.size}", "tmpfs", str(options.folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        sys.exit(77)
    path = options.folder / "index"
    said = {}
    try:
        build(path, options)
    except CorpusError as error:
        said = {"message": error.message, "next_step": error.next_step}
    try:
        load_index(path)
        opened = "an index"
    except CorpusError as error:
        opened = error.message
    subprocess.run(["mount", "-o", "remount,size=256m", str(options.folder)], check=True)
    options.resume = True
    fingerprint = build(path, options)
    load_index(path, verify=True, embedder=None)
    left = sorted(entry.name for entry in options.folder.iterdir())
    print(json.dumps({"said": said, "opened": opened, "fingerprint": fingerprint, "left": left}))


if __name__ == "__main__":
    main()
