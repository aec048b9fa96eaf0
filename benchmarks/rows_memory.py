"""Measure how much memory ``report`` and ``verify`` need for a log's samples, beside the JSON of the same file.

    python benchmarks/rows_memory.py [--quick] [--full] [--json FILE]

The log is that of ``score_log.py``: a question, an answer, a reference and three contexts a row, about five kilobytes
as a sample. It is scored once for each number of rows: 20,000 and 150,000, with ``--full`` 150,000 and 600,000. Every
measurement is a process of its own. The growth is what a further row adds to the peak of resident memory. The peers
parse the same file with ``json.loads``, one line at a time, and into a list.

- ``report -o page.html`` and ``verify`` of 150,000 rows: the peak is compared with 0.65 GB.
- Growth a row: compared with that of the list.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from _builds import in_a_process, peak_bytes
from _rows import arguments, row, write_rows
from score_log import rows

_MOST = 650_000_000
# The commands that are measured, each in a process of its own.
_WORK = ("report", "verify", "lines", "list")


def scored(folder: Path, count: int) -> None:
    """Write a log of ``rows`` rows into the folder, and score it there."""
    import mrag_eval

    folder.mkdir()
    log = folder / "log.jsonl"
    with log.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(one, ensure_ascii=False)}\n" for one in rows(count))
    mrag_eval.score(log, output=folder / "out")
    log.unlink()


def work(name: str, folder: Path) -> None:
    """Do one piece of work in this process; print its peak resident memory in bytes."""
    if name == "report":
        from mrag_eval.report import read_once, unsupported, write_report

        with read_once():
            write_report([folder / "out"], folder / "page.html")
            assert not unsupported([folder / "out"]), "scores that do not follow from their samples"
    elif name == "verify":
        from mrag_eval.platform import tasks_folder
        from mrag_eval.report import verify

        faults = [fault for file in verify([folder / "out"], tasks_folder()) for fault in file.of("fault")]
        assert not faults, faults[0]
    else:
        samples = next((folder / "out").glob("samples_*.jsonl"))
        with samples.open(encoding="utf-8", newline="\n") as file:
            parsed = map(json.loads, file)
            assert len(list(parsed)) if name == "list" else sum(1 for _ in parsed)
    print(json.dumps({"peak": peak_bytes()}))


def measured(counts: Sequence[int], folder: Path) -> Mapping[int, dict[str, dict[str, float]]]:
    """Return peak (bytes) and seconds of every piece of work, by number of rows."""
    found: dict[int, dict[str, dict[str, float]]] = {}
    for count in counts:
        place = folder / str(count)
        in_a_process([__file__, "--score", str(place), "--rows", str(count)])
        done = {name: in_a_process([__file__, "--work", name, "--score", str(place)]) for name in _WORK}
        found[count] = {name: {key: float(value) for key, value in one.items()} for name, one in done.items()}
        told = ", ".join(
            f"{name} {one['peak'] / 1e6:,.0f} MB {one['seconds']:.0f} s" for name, one in found[count].items()
        )
        print(f"{count:,} rows: {told}")
    return found


def table(counts: Sequence[int], found: Mapping[int, Mapping[str, Mapping[str, float]]], judged: bool) -> list[Any]:
    """Return the rows of the table: peaks at 150,000 rows, or at the most, and what a further row adds."""
    least, most = min(counts), max(counts)
    shown = 150_000 if 150_000 in counts else most

    def growth(name: str) -> float:
        return (found[most][name]["peak"] - found[least][name]["peak"]) / (most - least)

    out = []
    for name in ("report", "verify"):
        figures = {f"peak_mb_{count}": found[count][name]["peak"] / 1e6 for count in counts}
        figures |= {"kb_a_row": growth(name) / 1e3, "kb_a_row_of_the_list": growth("list") / 1e3}
        figures |= {"peak_mb_of_the_lines": found[most]["lines"]["peak"] / 1e6}
        peak = found[shown][name]["peak"] / _MOST
        bound: dict[str, Any] = {"judged": judged, "figures": figures}
        out.append(row(f"{name} {shown:,} rows: peak memory", "0.65 GB", peak, at_most=1.0, **bound))
        ratio = growth(name) / growth("list")
        out.append(row(f"{name}: memory a further row", "json.loads into a list", ratio, at_most=0.3, **bound))
        print(f"{name}: {growth(name) / 1e3:.2f} KB a further row, a list of json.loads {growth('list') / 1e3:.2f} KB")
    return out


def main() -> None:
    """Score logs of two sizes, measure all work on them, and print the peaks and what a row adds."""
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="150,000 and 600,000 rows")
    parser.add_argument("--score", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work", choices=_WORK, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.score)
    elif options.score is not None:
        scored(options.score, options.rows)
        print(json.dumps({"peak": peak_bytes()}))
    else:
        counts = (200, 1_000) if options.quick else (150_000, 600_000) if options.full else (20_000, 150_000)
        with tempfile.TemporaryDirectory() as place:
            found = measured(counts, Path(place))
        write_rows(options.json, table(counts, found, judged=not options.quick))


if __name__ == "__main__":
    main()
