"""A runner for the benchmark scripts of this folder, and one table of their results.

A script takes ``--json FILE`` and writes rows there in the form of ``_rows.py``. Each script runs in its own process,
so that scripts do not share memory or threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.core import pipe_table
from mrag_eval.platform import ConfigError, did_you_mean

_WRITES_ROWS = "from _rows import"
_HAS_MORE = '"--full"'
_LAST_LINES = 12
FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Measured:
    """The results of the scripts: ``rows`` (ratios) and ``growth`` (exponents).

    ``failed`` maps a script that failed to its last lines of output, ``left_out`` one that lacks something and measured
    nothing to what it said; ``seconds`` is the time of each script.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    growth: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return whether every script ran and every bound holds."""
        return not self.failed and all(row["ok"] for row in (*self.rows, *self.growth))

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


def known_benchmarks(folder: Path = FOLDER) -> dict[str, Path]:
    """Return the scripts that write rows, by name."""
    scripts = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    return {path.stem: path for path in scripts if _WRITES_ROWS in path.read_text(encoding="utf-8")}


def run_benchmarks(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    full: bool = False,
    folder: Path = FOLDER,
    say: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Run the named benchmarks (default: all) and gather their rows.

    Args:
        names: scripts without ``.py``.
        quick: small sizes; their bounds are not applied.
        full: the largest sizes too, in scripts that have them (``--full``); they take gigabytes of disk and an hour.
        folder: where the scripts are (default: this one).
        say: receives one line when a script starts and one when it ends.

    Raises ConfigError for an unknown name, and for ``quick`` with ``full``. A script that fails is recorded in
    ``failed``; the next one runs.
    """
    if quick and full:
        raise ConfigError("--quick asks for small numbers and --full for the largest", "give one of them")
    size = ["--quick"] if quick else ["--full"] if full else []
    known = known_benchmarks(folder)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"no benchmark is named '{name}'{did_you_mean(name, known)}", "python -m benchmarks --list"
            )
    measured = Measured()
    for name in names or known:
        say(f"{name} ...")
        started = time.monotonic()
        found, ended_well, last_words = _run(known[name], size)
        measured.seconds[name] = round(time.monotonic() - started, 1)
        if not (ended_well and found):
            (measured.left_out if ended_well else measured.failed)[name] = last_words
        for row in found:
            (measured.growth if "points" in row else measured.rows).append({"benchmark": name, **row})
        ending = "failed" if name in measured.failed else "left out" if name in measured.left_out else "done"
        say(f"{name}: {ending} after {measured.seconds[name]:.0f} s")
    return measured


def _run(script: Path, size: list[str]) -> tuple[list[dict[str, Any]], bool, str]:
    """Run one script; return its rows, whether it ended well and wrote them, and its last lines of output."""
    environment = {**os.environ, "TQDM_DISABLE": "1"}
    # measure the package next to this script, whether another one is installed or not
    paths = [str(script.parents[1]), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    with tempfile.TemporaryDirectory() as scratch:
        rows = Path(scratch) / "rows.json"
        asked = size if size != ["--full"] or _HAS_MORE in script.read_text(encoding="utf-8") else []
        command = [sys.executable, str(script), "--json", str(rows), *asked]
        ended = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True
        )
        # a script may exit with an error because a bound was missed: its rows say so
        wrote = rows.is_file()
        found = json.loads(rows.read_text(encoding="utf-8")) if wrote else []
    said = "\n".join(ended.stdout.strip().splitlines()[-_LAST_LINES:])
    return found, ended.returncode == 0 and wrote, said or f"exit code {ended.returncode}, and nothing said"


def shown_benchmarks(measured: Measured) -> str:
    """Return a table of ratios, a table of growth, and the failures."""
    parts = []
    if measured.rows:
        ratios = ("work", "measured against", "asked", "found", "machine's noise", "ok")
        parts.append(pipe_table(ratios, [_ratio_line(row) for row in measured.rows]))
    if measured.growth:
        head = ("growth of", "n", "seconds", "peak MB", "exponent", "asked", "ok")
        parts.append(pipe_table(head, [line for row in measured.growth for line in _growth_lines(row)]))
    for ending, those in (("failed", measured.failed), ("was left out", measured.left_out)):
        parts += [f"{name} {ending}:\n    " + text.replace("\n", "\n    ") for name, text in those.items()]
    if any(not row["judged"] for row in (*measured.rows, *measured.growth)):
        parts.append("(small) sizes: the bounds are shown and were not applied")
    return "\n\n".join(parts) or "nothing was measured"


def _ratio_line(row: Mapping[str, Any]) -> tuple[str, ...]:
    unit = f" {row['unit']}" if row["unit"] else ""
    spread = row["spread"]
    noise = "" if spread is None else f"{_figure(spread[0])} to {_figure(spread[1])}"
    return row["work"], row["against"], row["asked"], f"{_figure(row['ratio'])}{unit}", noise, _verdict(row)


def _growth_lines(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for number, point in enumerate(row["points"]):
        first = number == 0
        seconds, peak = point.get("seconds"), point.get("peak_mb")
        lines.append(
            (
                f"{row['work']} ({row['of']})" if first else "",
                f"{point['n']:,.0f}",
                "" if seconds is None else _figure(seconds),
                "" if peak is None else f"{peak:,.0f}",
                f"{row['exponent']:.2f}" if first else "",
                row["asked"] if first else "",
                _verdict(row) if first else "",
            )
        )
    return lines


def _verdict(row: Mapping[str, Any]) -> str:
    if not row["ok"]:
        return "NO"
    return "yes" if row["judged"] else "(small)"


def _figure(value: float) -> str:
    """Format a number with three significant digits and no exponent."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
