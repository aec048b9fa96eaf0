"""Ctrl-C and SIGTERM, which end a process within a second even while it waits or computes in C code."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from mrag_eval.platform._waits import stop_drawing

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ending_within(seconds: float, last_words: str = "") -> Iterator[None]:
    """Let SIGINT and SIGTERM end the process within ``seconds``, with exit code 130 or 143.

    The signal raises KeyboardInterrupt in the main thread, once, and the process ends when that leaves the block. A
    thread prints ``last_words`` to standard error, and ends the process if the main thread does not do so in time: it
    may be in C code, or wait for threads that wait for a server. Nothing is lost by that, as everything worth keeping
    is on disk when it is made. A signal that is ignored (``nohup``) stays ignored. Outside the main thread the block
    is run as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = [number for number in _SIGNALS if handlers[number] is not signal.SIG_IGN]
    came: list[int] = []
    said = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not came:
            came.append(number)
            raise KeyboardInterrupt

    watch = threading.Thread(target=_end_after, args=(read_end, seconds, last_words, said), daemon=True)
    watch.start()
    _LIVE.append(handlers)
    try:
        for number in ours:
            signal.signal(number, interrupt)
        yield
    except (KeyboardInterrupt, SystemExit):
        if came:
            said.wait(seconds)
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            # not sys.exit: Python would wait for threads, and after Ctrl-C in an import it may end by SIGINT
            _end(came[0])
        raise
    finally:
        if not came:
            _LIVE.pop()
            for number in ours:
                signal.signal(number, handlers[number])
            signal.set_wakeup_fd(before)
            os.write(write_end, b"\0")
            watch.join()
            os.close(write_end)
            os.close(read_end)


# A forked process undoes these: its signals would end this one.
_LIVE: list[Mapping[signal.Signals, Any]] = []


def _undo_in_child() -> None:
    if _LIVE:
        signal.set_wakeup_fd(-1)
        for number, handler in _LIVE[0].items():
            signal.signal(number, handler)
        _LIVE.clear()


os.register_at_fork(after_in_child=_undo_in_child)


def _end_after(read_end: int, seconds: float, last_words: str, said: threading.Event) -> None:
    while (byte := os.read(read_end, 1)) not in (b"\0", b""):
        if byte[0] in _SIGNALS:
            stop_drawing()
            # not through sys.stderr, whose lock the main thread may hold
            os.write(2, last_words.encode())
            said.set()
            time.sleep(seconds)
            _end(byte[0])


def _end(number: int) -> NoReturn:
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(128 + number)
