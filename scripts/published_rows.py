"""Write the hashes of published rows: ``python scripts/published_rows.py`` (``--check`` only compares).

Hashes are declared where a copy at hand is complete, as its README says: the number of rows in the repository is that
of the copy. They are computed from the folder that ``MRAG_TEST_DATA`` names (``scripts/fetch_test_data.py``), and
written to ``mrag_eval/datasets/published_rows.yaml``. A part of a benchmark must not be declared.

Exit codes: 0 written, or nothing differs; 1 the copy or the file differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import DataError, MragError

FILE = Path(__file__).resolve().parents[1] / "mrag_eval" / "datasets" / "published_rows.yaml"
_HEAD = """\
# SHA-256 of published rows and documents, by benchmark and part (docs/provenance.md). Only of those that were at hand
# as a whole, never of a part of them. Written by scripts/published_rows.py; a test computes them again.
"""


def complete(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the ``data:`` blocks that read complete copies."""
    cost = str(folder / "cross_lingual_cost")
    yield {"benchmark": "demo"}
    yield {"benchmark": "xquad", "path": str(folder / "xquad")}
    for as_published in (False, True):
        legal = {"benchmark": "xlcost", "domain": "legal", "corpus": "none", "path": cost}
        yield {**legal, "as_published": as_published}
    yield {"benchmark": "bordirlines", "borderlines": str(folder / "borderlines")}


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the ``data:`` blocks that read complete documents, with questions that may be a part."""
    yield {
        "benchmark": "xlcost",
        "domain": "travel",
        "path": str(folder / "cross_lingual_cost"),
        "tokenizer": "model_free",
    }


def computed(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the hashes of the copies in ``folder``: ``rows`` or ``documents`` -> benchmark -> part -> SHA-256.

    Raises DataError for a copy that has another number of rows than published.
    """
    found: dict[str, dict[str, dict[str, str]]] = {"rows": {}, "documents": {}}
    for kind, blocks in (("rows", complete(folder)), ("documents", documents(folder))):
        for block in blocks:
            loaded = load_benchmark(block)
            known = getattr(loaded.declared, kind)
            for name, part in (loaded.origin.parts if kind == "rows" else loaded.origin.documents or {}).items():
                if part.rows != known.parts[name].rows:
                    raise DataError(f"{block}: {name} has {part.rows} {kind}, published are {known.parts[name].rows}")
                found[kind].setdefault(loaded.name, {})[name] = part.content
    return found


def text_of(found: Mapping[str, Any]) -> str:
    """Return the content of the file."""
    return _HEAD + yaml.safe_dump(dict(found), sort_keys=True, width=120)


def main(arguments: list[str]) -> int:
    """Write the file, or compare it; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the hashes of published rows.")
    parser.add_argument("--check", action="store_true", help="compare the file with the copies, and write nothing")
    options = parser.parse_args(arguments)
    named = os.environ.get("MRAG_TEST_DATA")
    if not named:
        print("set MRAG_TEST_DATA to the folder of scripts/fetch_test_data.py", file=sys.stderr)
        return 1
    try:
        text = text_of(computed(Path(named)))
    except MragError as error:
        print(error, file=sys.stderr)
        return 1
    if options.check:
        same = text == FILE.read_text(encoding="utf-8")
        print(f"{FILE.name}: {'as computed' if same else 'differs from what the copies hold'}")
        return 0 if same else 1
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
