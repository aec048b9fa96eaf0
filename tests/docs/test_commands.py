"""Every command of every page is run, or says why not; every YAML and JSON block is valid."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import PAGES, ROOT, Block, blocks_of
from tests.docs.stages import STAGES, Stage, write_copies, write_everywhere
from tests.docs.stand_ins import write_programs
from tests.programs import Programs

LANGUAGES = ("bash", "console", "text", "yaml", "json", "jsonl", "csv", "python", "bibtex")
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
COMMANDS = [page for page in PAGES if any(b.executed for b in blocks_of(page))]
# Pages whose commands run in the first stage; the others run in the second.
FIRST = ("README.md",)
# Pages whose commands are also started as a reader starts them, as programs that import everything themselves.
AS_PROGRAMS = ("docs/corpora.md", "docs/own_benchmark.md")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_is_readable_and_names_itself(block: Block) -> None:
    assert block.language in (
        "bash",
        "console",
        "text",
        "yaml",
        "json",
        "jsonl",
        "csv",
        "python",
        "bibtex",
        "mermaid",
    ), "no language"
    assert block.mark in ("", "file", "not run", "command", "fails")
    if block.language == "console" and not block.mark:
        commands = {line for b in blocks_of(block.page) if b.language == "bash" for line in _lines(b.text)}
        assert {line[2:] for line in block.text.splitlines() if line.startswith("$ ")} <= commands, "shown, never run"
    if block.language == "yaml":
        yaml.load(block.text, _Loader)
    if block.language == "python":
        ast.parse(block.text)
    if block.language in ("json", "jsonl"):
        for line in filter(str.strip, [block.text] if block.language == "json" else block.text.splitlines()):
            json.loads(line)


def _lines(text: str) -> list[str]:
    return [line.partition("   # ")[0].strip() for line in text.splitlines()]


class _Loader(yaml.SafeLoader):
    """Reads ``!function`` like the harness, without importing anything."""


_Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_command_hides_outside_a_block(page: Path) -> None:
    outside = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    assert not [line for line in outside.splitlines() if line.startswith(("    mrag-eval ", "    lm_eval "))]


@pytest.fixture(scope="module")
def copies(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return local copies of the benchmarks."""
    return write_copies(tmp_path_factory.mktemp("copies"), test_data)


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=name(p), marks=() if name(p) in FIRST else pytest.mark.slow) for p in COMMANDS]
)
def test_commands_run(page: Path, tmp_path: Path, copies: Path, programs: Programs) -> None:
    _run_page(page, tmp_path, copies, programs / "python")


@pytest.mark.slow
@pytest.mark.parametrize("page", AS_PROGRAMS)
def test_commands_run_as_programs(page: str, tmp_path: Path, copies: Path) -> None:
    _run_page(ROOT / page, tmp_path, copies, sys.executable)


def _run_page(page: Path, tmp_path: Path, copies: Path, python: str) -> None:
    """Run every command of a page in order, in its own folder."""
    stage = STAGES.get(name(page), Stage())
    folder = tmp_path / "here"
    folder.mkdir()
    programs = tmp_path / "bin"
    write_programs(programs, python)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "COLUMNS": "200",
        "DOCS_COPIES": str(copies),
        # a corpus that one page builds does not exist on another
        "MRAG_CACHE": str(tmp_path / "cache"),
    }
    environment.pop("GITHUB_ACTIONS", None)
    write_everywhere(folder, copies)
    stage.prepare(folder, copies)
    with ExitStack() as stack:
        filled: Callable[[str], str] = str
        if stage.votes:
            stack.enter_context(closing(stage.let_judges_vote(folder / "mrag.yaml")))
        if stage.serve is not None:
            server = stack.enter_context(closing(stage.serve()))
            environment["DOCS_PLAIN"] = "1"
            filled = partial(_filled, address=server.url.partition("/v1")[0])
        _run_blocks(page, stage, folder, environment, filled)
    stage.check(folder)


def _filled(text: str, address: str) -> str:
    """Return a text of a page with the address of a server that is there, and fewer rows."""
    return text.replace("http://localhost:8000", address).replace("--limit 20", "--limit 2")


def _run_blocks(
    page: Path, stage: Stage, folder: Path, environment: Mapping[str, str], filled: Callable[[str], str]
) -> None:
    before = [Block(page, 0, "bash", stage.first)] if stage.first else []
    for block in [*before, *blocks_of(page)]:
        if block.mark == "file" and not (folder / block.said).exists():
            (folder / block.said).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.said).write_text(filled(block.text), "utf-8")
        elif block.mark == "fails":
            _fails(block, folder, environment)
        elif block.executed:
            done = _executed(filled(block.text), folder, environment)
            said = f"{block}\n{block.text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            assert done.returncode == 0, said
            assert "Traceback" not in done.stderr, said
        elif block.language == "python" and not block.mark:
            subprocess.run(["python", "-c", block.text], cwd=folder, env=environment, check=True, timeout=580)


def _executed(commands: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=580, check=False,
    )  # fmt: skip


def _fails(block: Block, folder: Path, environment: Mapping[str, str]) -> None:
    """Check that the block's command ends with the stated code and prints the stated lines; ``…`` matches anything."""
    command, *lines = block.text.strip().split("\n")
    done = _executed(command.removeprefix("$ "), folder, {**environment, "DOCS_PLAIN": "1"})
    said = done.stdout + done.stderr
    assert done.returncode == int(block.said), f"{block}\n{said}"
    for line in lines:
        pattern = ".*".join(map(re.escape, line.split("…")))
        assert re.search(f"^{pattern}$", said, re.MULTILINE), f"{block}: {line}\n{said}"
    assert "Traceback" not in said
