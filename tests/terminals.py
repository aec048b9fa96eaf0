"""Real terminals: what a process, or code of this process, writes to one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from unittest import mock

from mrag_eval.platform import _waits

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of 120 columns; ``chunks`` holds what was written to it, each with the seconds since its start."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        ioctl(self.slave, TIOCSWINSZ, pack("HHHH", 40, 120, 0, 0))
        self.chunks: list[tuple[float, str]] = []
        self._started = time.monotonic()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        # on Linux reading fails once nobody has the other end open
        with suppress(OSError):
            while found := os.read(self._master, 4096):
                self.chunks.append((time.monotonic() - self._started, found.decode("utf-8", "replace")))

    def close(self) -> None:
        """Wait for the rest of the output."""
        os.close(self.slave)
        self._reader.join(30)
        os.close(self._master)

    def wait_for(self, wanted: str | re.Pattern[str], seconds: float = 30) -> None:
        """Wait until the terminal has shown the text, or a match of the pattern; fail after the given time."""
        pattern = re.compile(re.escape(wanted)) if isinstance(wanted, str) else wanted
        end = time.monotonic() + seconds
        while pattern.search(self.text) is None:
            assert time.monotonic() < end, f"not shown: {wanted}\n{self.text}"
            time.sleep(0.01)

    @property
    def text(self) -> str:
        """Return everything that was written, without control sequences."""
        return _CONTROL.sub("", "".join(text for _, text in self.chunks))

    @property
    def lines(self) -> list[str]:
        """Return every state of every line that was ever shown, without empty ones."""
        return [line.strip() for line in re.split(r"[\r\n]+", self.text) if line.strip()]


@contextmanager
def showing_waits(delay: float = 0.0) -> Iterator[Terminal]:
    """Let ``sys.stderr`` be a terminal in the block, on which waits are shown and drawn again soon.

    The terminal's output is complete after the block.
    """
    terminal, before = Terminal(), sys.stderr
    sys.stderr = os.fdopen(os.dup(terminal.slave), "w", encoding="utf-8")
    try:
        with mock.patch.multiple(_waits, DELAY=delay, REDRAWN=0.02):
            yield terminal
    finally:
        sys.stderr.close()
        sys.stderr = before
        terminal.close()


def on_terminal(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, Terminal]:
    """Run a command with its output on a terminal; return its exit code and what the terminal showed."""
    terminal = Terminal()
    code = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=terminal.slave, stderr=terminal.slave, check=False
    ).returncode
    terminal.close()
    return code, terminal
