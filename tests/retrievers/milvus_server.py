"""A Milvus server in its own process, which a test may kill."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


def free_port() -> int:
    """Return a free port below the range that systems use for outgoing connections, so that it stays free."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Server:
    """``milvus-lite server`` over a folder; :meth:`kill` stops it at once, :meth:`start` starts it again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        flags = ["server", "--data-dir", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "milvus_lite", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        raise TimeoutError(f"no Milvus at {self.uri}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
