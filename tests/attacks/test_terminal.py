"""Control characters in texts from elsewhere: no command sends one to the terminal.

Every command is walked over, so that a new one is attacked by itself: with hostile values of all its arguments and
options, and with files whose texts are hostile.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mrag_eval.cli import app, main
from mrag_eval.platform import DataError, Wait, close_stores, guarded_screen, install_redaction, visible
from tests.report.runs import write_full_run
from tests.terminals import on_terminal, showing_waits

# sets the title, clears the screen, hides what follows, goes back, moves up, and turns the direction
EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[8mx\rpassed\x08\x9b31m\x1b[A\u202eend"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def commands() -> Iterator[tuple[tuple[str, ...], typer.main.TyperCommand]]:
    """Yield every command with its name."""

    def below(command: object, name: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], typer.main.TyperCommand]]:
        if isinstance(command, typer.core.TyperGroup):
            for part, inner in command.commands.items():
                yield from below(inner, (*name, part))
        elif isinstance(command, typer.core.TyperCommand):
            yield name, command

    yield from below(typer.main.get_command(app), ())


COMMANDS = dict(commands())
# begins its work whatever the value of the option is
_WORKS = {("demo", "--output")}


def screen(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command; return all that it printed."""
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(list(arguments))
    close_stores()
    return "".join(capsys.readouterr())


@pytest.fixture(autouse=True)
def _quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def calls(name: tuple[str, ...], command: typer.main.TyperCommand) -> Iterator[list[str]]:
    """Yield the command with hostile positional arguments, and with each of its options."""
    given = [EVIL for each in command.params if each.param_type_name == "argument"]
    for each in command.params:
        if each.param_type_name == "option" and not getattr(each, "is_flag", False) and "--help" not in each.opts:
            option = max(each.opts, key=len)
            if (*name, option) not in _WORKS:
                yield [*name, *given, option, EVIL]
    if given:
        yield [*name, *given]


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_no_command_prints_a_hostile_argument(name: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in calls(name, COMMANDS[name]):
        said = screen(capsys, *arguments)
        assert not OBEYED.search(said), (arguments, said)


def plant(folder: Path) -> None:
    """Write a run with hostile texts for questions, answers, passages, settings and reasons."""
    write_full_run(folder, mode="coral", loop=True, citations=True)
    for path in folder.rglob("samples_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for row in rows[:6]:
            row["doc"] |= {"query": EVIL, "answers": [EVIL], "group_id": EVIL}
            for passage in row["doc"].get("passages", []):
                passage |= {"title": EVIL, "text": EVIL, "id": EVIL}
            for each in row["doc"].get("trace", {}).get("rounds", []):
                each |= {"query": EVIL, "reason": EVIL}
            row["rows"]["group"] = EVIL
            row["rows"]["values"][EVIL] = 0.5
            row["rows"]["unscored"] = {EVIL: EVIL}
            row["filtered_resps"] = [EVIL]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for path in folder.rglob("results_*.json"):
        results = json.loads(path.read_text("utf-8"))
        results |= {"config": {"model": "hf", "model_args": EVIL}, "model_name": EVIL}
        for config in results["configs"].values():
            config["task_alias"] = EVIL
        path.write_text(json.dumps(results), "utf-8")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two runs with hostile texts."""
    folder = tmp_path_factory.mktemp("from elsewhere")
    plant(folder / "one")
    plant(folder / "two")
    (folder / "rules.yaml").write_text("rules: [{metric: match, max_drop: 1}]\n", "utf-8")
    return folder


READERS = [
    ["report", "one"],
    ["report", "one", "--format", "csv"],
    ["report", "one", "--layout", "coral"],
    ["compare", "one", "two"],
    ["gate", "--baseline", "one", "--candidate", "two", "--rules", "rules.yaml"],
    ["gate", "--baseline", "one", "--candidate", "two", "--rules", "rules.yaml", "--json"],
    ["rerun", "one"],
    ["verify", "one"],
    ["trace", "qa_one-0", "one", "--task", "qa_one"],
    ["export", "one", "--format", "latex"],
    ["judge", "inspect", "one"],
]


@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_no_reader_of_runs_prints_a_hostile_text(
    arguments: list[str], planted: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(planted)
    said = screen(capsys, *arguments)
    assert said.strip()
    assert not OBEYED.search(said), said


# a line of its own, and what the log of a workflow obeys, then a name that is one line and is obeyed all the same
NAMES_OF_LINES = ("a\n::stop-commands::x", "::stop-commands::x", "a\u2028::stop-commands::x\r\n##[group]", "x" * 10_000)
_OURS = re.compile(r"::(error|warning) title=[^:\n]*::[^\n]*")


def renamed(value: Any, known: str, name: str) -> Any:
    """Return JSON with one name replaced, among keys and among values."""
    if isinstance(value, dict):
        return {name if key == known else key: renamed(inner, known, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, known, name) for inner in value]
    return name if value == known else value


@pytest.mark.parametrize("name", NAMES_OF_LINES, ids=range(len(NAMES_OF_LINES)))
def test_a_name_in_results_is_one_line_wherever_it_is_shown(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Walk over the names of model, task, language, metric and group; the log of a workflow takes no command of it."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    written = ["--junit", "junit.xml", "--markdown", "found.md"]
    gate = ["gate", "--baseline", "one", "--candidate", "two", "--rules", "rules.yaml"]
    readers = [*READERS, ["report", "one", "-o", "page.html"], [*gate, *written]]
    readers += [["gate", "--save", "kept.json", "one"], ["gate", "--baseline", "kept.json", *gate[3:]]]
    for run in ("one", "two"):
        write_full_run(Path(run), mode="coral", loop=True, citations=True)
    Path("rules.yaml").write_text("rules: [{metric: match, max_drop: -1}]\n", "utf-8")
    files = [*Path().rglob("results_*.json"), *Path().rglob("samples_*.jsonl")]
    texts = {path: path.read_text("utf-8") for path in files}
    some = json.loads(next(text for path, text in texts.items() if path.suffix == ".json"))
    task = next(iter(some["configs"]))
    shown = 0
    for known in (some["model_name"], task, "en", "de", "match", "mode"):
        for path, text in texts.items():
            changed = [json.dumps(renamed(json.loads(line), known, name)) for line in text.splitlines()] \
                if path.suffix == ".jsonl" else [json.dumps(renamed(json.loads(text), known, name))]  # fmt: skip
            path.write_text("\n".join(changed) + "\n", "utf-8")
        for arguments in readers:
            lines = screen(capsys, *arguments).splitlines()
            lines += [line for path in Path().glob("*.md") for line in path.read_text("utf-8").splitlines()]
            lines += Path("junit.xml").read_text("utf-8").splitlines() if Path("junit.xml").exists() else []
            for line in lines:
                assert not line.lstrip().startswith("::") or _OURS.fullmatch(line), (known, arguments, line)
                assert "##[" not in line, (known, arguments, line)
                assert "x" * 1_000 not in line, (known, arguments)
                shown += "stop-commands" in line
    assert shown or "stop" not in name


def test_search_shows_the_hostile_passage_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "a", "title": EVIL, "text": f"Oslo lies by the fjord. {EVIL}", "lang": "en"}
    (tmp_path / "texts.jsonl").write_text(json.dumps(row))
    screen(capsys, "index", "build", "texts.jsonl", "wiki", "--kind", "bm25")
    said = screen(capsys, "index", "search", "wiki", "Oslo")
    assert "Oslo lies by the fjord." in said
    assert "\\u001b]0;owned\\u0007" in said
    assert not OBEYED.search(said), said


def test_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded_screen():
        print(json.dumps({"text": "a\x7fb\x9bc"}, ensure_ascii=False))
    said = capsys.readouterr().out
    assert not OBEYED.search(said)
    assert json.loads(said) == {"text": "a\x7fb\x9bc"}


def test_texts_of_every_script_are_printed_as_they_are() -> None:
    for text in (
        "שלום\u200f עולם",
        "مرحبا\u200e بالعالم",
        "क\u094d\u200dष",
        "zero\u200cwidth",
        "a\tb\nc",
        "👩\u200d🔬",
    ):
        assert visible(text) == text


def test_errors_and_log_records_are_escaped_without_our_command(caplog: pytest.LogCaptureFixture) -> None:
    assert str(DataError(EVIL, EVIL)).count("\\u001b") == 8
    assert not OBEYED.search(str(DataError(EVIL, EVIL)))
    before = logging.getLogRecordFactory()
    try:
        install_redaction()
        logging.getLogger("lm_eval").propagate = True
        logging.getLogger("lm_eval.test").warning("a judge said %s", EVIL)
    finally:
        logging.setLogRecordFactory(before)
    assert not OBEYED.search(caplog.records[0].getMessage())


def test_waits_are_still_drawn_and_their_names_escaped() -> None:
    with showing_waits() as terminal, guarded_screen(), Wait(f"reading {EVIL}", 3) as wait:
        wait.add()
        terminal.wait_for("1/3")
    drawn = "".join(text for _, text in terminal.chunks)
    assert "\r" in drawn
    assert "\x07" not in drawn
    assert not re.search(r"\x1b(?!\[A)", drawn)


def test_help_keeps_its_colours_on_a_terminal() -> None:
    _, terminal = on_terminal([sys.executable, "-m", "mrag_eval.cli", "--help"], env={**os.environ, "TERM": "xterm"})
    assert "\x1b[" in "".join(text for _, text in terminal.chunks)
    assert "\\u001b" not in terminal.text
