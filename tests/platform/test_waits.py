"""Waits on a terminal: name, counts and time left; nothing where nobody looks."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from types import ModuleType

import pytest

from mrag_eval.platform import Wait, quiet_notebook
from mrag_eval.platform._waits import clock_text
from tests.terminals import on_terminal, showing_waits


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_name_counts_and_time_left() -> None:
    clock = Clock()
    with showing_waits() as terminal, Wait("embedding queries", 1_190, "queries", clock=clock) as wait:
        clock.now += 3
        terminal.wait_for("embedding queries:   0%|                    | 0/1,190 queries · 0:03\r")
        wait.add(119)
        clock.now += 2
        # 119 in 3 s are 27 s for the other 1,071, of which 2 s have passed since
        terminal.wait_for("embedding queries:  10%|██                  | 119/1,190 queries · 0:05 · 0:25 left")
    # the last thing on the line is nothing
    assert terminal.text.split("\r")[-2:] == [" " * len(terminal.text.split("\r")[-2]), ""]


def test_a_wait_of_unknown_length() -> None:
    clock = Clock()
    with showing_waits() as terminal, Wait("loading {the} model", unit="parts", clock=clock) as wait:
        clock.now += 3_723
        terminal.wait_for("loading {the} model · 1:02:03")
        wait.add(2)
        terminal.wait_for("loading {the} model: 2 parts · 1:02:03")
    assert "%" not in terminal.text


def test_what_was_done_before_does_not_hurry_the_estimate() -> None:
    clock = Clock()
    wait = Wait("judge", 100, done=40, clock=clock)
    with wait:
        wait.add(40, before=True)
        clock.now += 10
        assert wait.seconds_left() is None
        wait.add(10)
        # 10 in 10 s, 10 to go
        assert wait.seconds_left() == pytest.approx(10)
        clock.now += 4
        assert wait.seconds_left() == pytest.approx(6)


def test_threads_count_together() -> None:
    with Wait("judges") as wait:
        threads = [threading.Thread(target=lambda: [wait.add() for _ in range(2_000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wait.done == 8_000


def test_a_short_wait_is_not_shown() -> None:
    with showing_waits(delay=30) as terminal:
        started = time.monotonic()
        with Wait("quick", 2) as wait:
            list(wait.over("ab"))
        assert time.monotonic() - started < 5
    assert terminal.text == ""
    assert not [thread for thread in threading.enumerate() if thread.name == "mrag-eval-wait"]


def test_several_waits_have_a_line_each() -> None:
    with showing_waits() as terminal, Wait("judge a", 2), Wait("judge b", 2):
        terminal.wait_for("judge a:   0%")
        terminal.wait_for("judge b:   0%")


@pytest.mark.parametrize("moment", ["before the first state", "between filter and write"])
def test_a_line_of_the_log_has_its_own_line(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("lm_eval")

    class SlowHandler(logging.StreamHandler):  # type: ignore[type-arg]
        def emit(self, record: logging.LogRecord) -> None:
            if moment == "between filter and write":
                time.sleep(0.1)  # five states of the wait
            super().emit(record)

    with showing_waits() as terminal:
        handler = SlowHandler()
        logger.addHandler(handler)
        drawn = Wait._bar

        def logged_at_once(wait: Wait) -> object:
            bar = drawn(wait)
            logger.error("something else")
            return bar

        if moment == "before the first state":
            monkeypatch.setattr(Wait, "_bar", logged_at_once)
        try:
            with Wait("slow", 9):
                terminal.wait_for("slow:   0%")
                if moment == "between filter and write":
                    logger.error("something else")
                terminal.wait_for("something else")
        finally:
            logger.removeHandler(handler)
        assert not handler.filters
    assert "something else" in terminal.lines
    assert terminal.text.count("something else") == 1


@pytest.mark.parametrize(
    ("variable", "value", "level", "shown"),
    [
        ("RANK", "", "NOTSET", True),
        ("RANK", "0", "INFO", True),
        ("RANK", "1", "INFO", False),
        ("LOCAL_RANK", "1", "INFO", False),
        ("RANK", "0", "WARNING", False),
    ],
)
def test_where_waits_are_shown(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, level: str, shown: bool
) -> None:
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(logging.getLogger("lm_eval"), "level", getattr(logging, level))
    with showing_waits() as terminal, Wait("slow", 3):
        terminal.wait_for("slow:   0%") if shown else time.sleep(0.1)
    assert shown or terminal.text == ""


def test_nothing_is_shown_in_a_pipe() -> None:
    code = """
import time
from mrag_eval.platform import Wait, _waits
_waits.DELAY = _waits.REDRAWN = 0.01
with Wait("slow", 3) as wait:
    for _ in wait.over("abc"):
        time.sleep(0.05)
print(wait.done)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_nothing_is_drawn_below_the_last_words_of_an_interrupted_process() -> None:
    code = """
import os, signal, threading, time
from mrag_eval.platform import Wait, _waits, ending_within
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
_waits.DELAY = _waits.REDRAWN = 0.01
drawn, draw = threading.Event(), Wait._draw
Wait._draw = lambda self, bar: (draw(self, bar), drawn.set())
with ending_within(0.3, "\\ninterrupted\\n"):
    with Wait("slow", 3):
        drawn.wait(60)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            time.sleep(5)  # busy, until the process is ended
"""
    done, terminal = on_terminal([sys.executable, "-c", code])
    assert done == 130
    assert terminal.lines[0].startswith("slow:   0%")
    assert terminal.lines[-1] == "interrupted"


def test_a_wait_that_is_not_to_be_shown() -> None:
    with showing_waits() as terminal, Wait("hidden", 2, shown=False) as wait:
        wait.add()
        time.sleep(0.1)
    assert terminal.text == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (7_384, "2:03:04")])
def test_clocks(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


class Place:
    """An output of a notebook, and what it held."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.drawn = threading.Event()

    def display(self, data: dict[str, str], **_options: bool) -> Place:
        self.texts.append(data["text/plain"])
        return self

    def update(self, data: dict[str, str], **_options: bool) -> None:
        self.texts.append(data["text/plain"])
        self.drawn.set()


def in_notebook(monkeypatch: pytest.MonkeyPatch) -> Place:
    """Let standard error be that of a notebook, on which nothing may be written."""

    class Stream:
        __module__ = "ipykernel.iostream"

        def isatty(self) -> bool:
            return False

        def write(self, text: str) -> None:
            raise AssertionError(f"on standard error: {text!r}")

    place, module = Place(), ModuleType("IPython.display")
    vars(module)["display"] = place.display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("sys.stderr", Stream())
    return place


def test_a_notebook_draws_a_wait_in_an_output_that_is_empty_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = in_notebook(monkeypatch)
    monkeypatch.setattr("mrag_eval.platform._waits.DELAY", 0.01)
    with Wait("embedding", 3, "queries") as wait:
        wait.add(2)
        assert notebook.drawn.wait(30)
    assert any(text.startswith("embedding:") and "/3 queries" in text for text in notebook.texts)
    assert notebook.texts[-1] == ""


def test_bars_of_other_packages_are_drawn_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from tqdm import tqdm

    notebook = in_notebook(monkeypatch)
    plain = vars(tqdm)["__init__"]
    with quiet_notebook():
        list(tqdm(range(3), desc="short"))
        assert not notebook.texts
        monkeypatch.setattr("mrag_eval.platform._waits.DELAY", 0)
        list(tqdm(range(3), desc="long"))
        with tqdm(range(2), desc="outer") as outer, tqdm(range(2), desc="inner") as inner:
            list(inner)
            list(outer)
    assert vars(tqdm)["__init__"] is plain
    assert notebook.texts[1].startswith("long:")
    assert {text.partition(":")[0] for text in notebook.texts} == {"", "long", "outer", "inner"}
    assert notebook.texts[-1] == ""


def test_elsewhere_bars_are_left_as_they_are() -> None:
    from tqdm import tqdm

    plain = vars(tqdm)["__init__"]
    with quiet_notebook():
        assert vars(tqdm)["__init__"] is plain
