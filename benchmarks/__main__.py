"""The command ``python -m benchmarks``: run the speed and memory benchmarks from the source tree.

Exit code 1 if a script fails or misses a bound, 2 for a wrong argument.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._table import known_benchmarks, run_benchmarks, shown_benchmarks
from mrag_eval.platform import MragError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the arguments name, print one table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="run small sizes to check that the scripts work")
    parser.add_argument(
        "--full", action="store_true", help="run the largest sizes too: 10 million vectors, an hour more"
    )
    parser.add_argument("-o", "--output", type=Path, help="write all figures to this JSON file")
    parser.add_argument("--list", action="store_true", help="print the names and run nothing")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(known_benchmarks()))
        return 0
    try:
        measured = run_benchmarks(
            options.names, quick=options.quick, full=options.full, say=lambda line: print(line, file=sys.stderr)
        )
    except MragError as error:
        print(f"benchmarks: {error.message}\n    {error.next_step}", file=sys.stderr)
        return 2
    print(shown_benchmarks(measured))
    if options.output is not None:
        figures = json.dumps(measured.as_dict(), indent=1, ensure_ascii=False)
        options.output.write_text(figures + "\n", encoding="utf-8")
    return 0 if measured.ok else 1


if __name__ == "__main__":
    sys.exit(main())
