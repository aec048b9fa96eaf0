"""Screen output of the commands: short lines, one table, the next step."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.box import SQUARE
from rich.console import Console
from rich.table import Table

from mrag_eval.cli._demo import DEPTH, GENERATED, DemoResult, Listener
from mrag_eval.core import decimal, points
from mrag_eval.platform import number_of, visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from mrag_eval.metrics import Estimate
    from mrag_eval.planning import Need

_COLUMNS = (
    ("char3gram_recall", "char-3-gram\nrecall"),
    ("correct_language", "right\nlanguage"),
    (f"hit@{DEPTH}", f"hit@{DEPTH}"),
    (f"mrr@{DEPTH}", f"mrr@{DEPTH}"),
    ("cross", f"hit@{DEPTH} across\nlanguages"),
)


class _StandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def lines_of_progress() -> None:
    """Write the log's lines about the progress of a build to standard error."""
    from mrag_eval.retrievers import log

    if not log.handlers:
        log.addHandler(_StandardError())
        log.setLevel(logging.INFO)


def _console() -> Console:
    # rich takes 80 columns where there is no terminal, and would cut a table that is wider
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1000)


class DemoScreen:
    """Print the demo's lines while it runs: one per step, with the time it took."""

    def __init__(self) -> None:
        self._console = _console()
        self._current: tuple[str, str, float] | None = None
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        self.listener = Listener(self._step, self._advance)

    def __enter__(self) -> DemoScreen:
        self._console.print(f"mrag-eval {version('mrag-eval')} · lm-eval {version('lm-eval')} · offline demo")
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _err: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._close()

    def _step(self, name: str, what: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        self._close()
        self._current = (name, what, time.monotonic())
        self._progress = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=12),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._bar = self._progress.add_task(f"{name:<10} {what}", total=None)
        if self._console.is_terminal:
            self._progress.start()

    def _advance(self, done: int, total: int) -> None:
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, completed=done, total=total)

    def _close(self) -> None:
        if self._progress is not None and self._console.is_terminal:
            self._progress.stop()
        self._progress = None
        if self._current is not None:
            name, what, started = self._current
            self._current = None
            seconds = round(time.monotonic() - started)
            took = f"{seconds // 60}:{seconds % 60:02d}" if seconds >= 60 else f"{seconds} s"
            self._console.print(f"{name:<10} {what:<60} {took:>6}")

    def show(self, result: DemoResult, output: Path) -> None:
        """Print the table, the files, and the next steps."""
        table = Table(box=SQUARE)
        table.add_column("mode")
        for _, title in _COLUMNS:
            table.add_column(title, justify="right")
        for row in result.rows:
            table.add_row(row.mode, *(_cell(key, row.scores.get(key)) for key, _ in _COLUMNS))
        self._console.print(table)
        for line in (
            f"× 100, with 95% intervals · answers to {GENERATED} questions, n of them long enough to tell the",
            "language · retrieval of all questions · across languages: the passage is in another language",
        ):
            self._console.print(line, style="dim")
        results = [path for path in result.files if path.suffix == ".json"]
        samples = [path for path in result.files if path.suffix == ".jsonl"]
        for path in results:
            self._console.print(visible(f"results    {path}"), soft_wrap=True, markup=False)
        if samples:
            self._console.print(
                f"samples    {output}/samples_*.jsonl ({number_of(len(samples), 'file')}: prompts, passages, answers)",
                soft_wrap=True,
            )
        report = f"mrag-eval report {output} -o report.html"
        width = len(report) + 4
        for i, (what, why) in enumerate(
            (
                (report, "see the answers in a browser"),
                ("mrag-eval tasks", "list benchmarks and tasks"),
                ("mrag-eval doctor", "check the setup for a real run"),
                ("README.md", "your model, your corpus, your own benchmark"),
            )
        ):
            self._console.print(f"{'next' if i == 0 else '':<11}{what:<{width}}{why}", soft_wrap=True)


def _cell(name: str, score: Estimate | None) -> str:
    if score is None or score.value is None:
        return ""
    value = points(score.value)
    if score.n < GENERATED and name == "correct_language":
        value = f"n={score.n}  {value}"
    if score.low is not None and score.high is not None:
        value += f"\n[{decimal(score.low, 0, scale=100)}, {decimal(score.high, 0, scale=100)}]"
    return value


def print_findings(findings: Sequence[Need]) -> None:
    """Print one line per finding; a fault is followed by the command that fixes it."""
    console = _console()
    topic = ""
    for finding in findings:
        head = finding.topic if finding.topic != topic else ""
        topic = finding.topic
        line = f"{head:<10} {'ok ' if finding.ok else '-  '}{finding.what}"
        fix, *below = finding.fix.split("\n")
        console.print(visible(f"{line:<72}  {fix}".rstrip()), markup=False)
        for further in below:
            console.print(visible(f"{'':<14}{further}"), markup=False)
