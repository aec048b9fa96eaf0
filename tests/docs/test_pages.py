"""The pages are correct: links resolve, commands, options and tasks exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import typer

from mrag_eval.cli import app
from mrag_eval.cli._catalog import list_tasks
from scripts.write_docs import pages
from tests.docs.blocks import DOCS, PAGES, ROOT, blocks_of

# Placeholders for the reader's own files.
OWN_TASKS = re.compile(r".*\.yaml$|mine.*|<.*")


def lines_of(page: Path, program: str) -> Iterator[str]:
    """Yield every call of ``program`` in the fenced blocks of a page, with continued lines joined."""
    for found in blocks_of(page):
        # the lines after a console's command are output; a command that must fail may name things that do not exist
        block = "" if found.language == "console" else found.text
        for line in re.sub(r"\\\n\s*", " ", block).split("\n"):
            for part in re.split(r"&&|\|\|?|;", line.partition("   # ")[0]):
                words = part.strip().removeprefix("$ ").removeprefix("- run: ")
                if re.match(rf"(\S*/)?{program}( [a-z-]|$)", words):
                    yield words


def calls(program: str) -> list[Any]:
    return [
        pytest.param(page, line, id=f"{page.relative_to(ROOT)}: {line[:60]}")
        for page in PAGES
        for line in dict.fromkeys(lines_of(page, program))
    ]


def without_blocks(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> tuple[set[str], set[str]]:
    """Return the anchors of a page's headings: on GitHub, and on the site that MkDocs builds."""
    heads = re.findall(r"^#+ (.+)$", without_blocks(page), re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", head)).lower() for head in heads]
    return {re.sub(r"\s", "-", word) for word in words}, {re.sub(r"[-\s]+", "-", word.strip()) for word in words}


@pytest.mark.parametrize("page", sorted({*PAGES, *DOCS.rglob("*.md")}), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere_in_a_clone_and_on_the_site(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        # a page of the site reaches other pages alone
        assert DOCS not in page.parents or DOCS in found.parents, target
        if anchor:
            on_github, on_the_site = anchors(found)
            assert anchor in on_github, target
            assert anchor in on_the_site, target


def test_pages_that_the_code_names_exist() -> None:
    files = [ROOT / "pyproject.toml", ROOT / "action.yml", *PAGES]
    for folder in ("mrag_eval", "metrics", "retrievers", "scripts", "benchmarks", "tests"):
        files += [path for end in ("py", "yaml", "jinja") for path in (ROOT / folder).rglob(f"*.{end}")]
    named = {
        (path, page)
        for path in files
        for page in re.findall(r"(?<![\w/])docs/(?!docs/)[\w/]+\.md", path.read_text("utf-8"))
    }
    assert not [f"{path}: {page}" for path, page in sorted(named) if not (ROOT / page).is_file()]
    assert len(named) > 50


def test_pages_written_from_the_code_are_current() -> None:
    made = pages()
    there = {
        path.relative_to(DOCS).as_posix() for name in ("reference", "benchmarks") for path in (DOCS / name).iterdir()
    }
    assert there | {"index.md"} == made.keys()
    for name, text in made.items():
        assert (DOCS / name).read_text("utf-8") == text, f"{name}: run python scripts/write_docs.py"


def test_every_page_is_in_the_readme() -> None:
    """The table of README, from which the home page is written, leads to every page that is written by hand."""
    linked = re.findall(r"\]\((docs/[\w/]+\.md)", (ROOT / "README.md").read_text("utf-8"))
    written = {str(page.relative_to(ROOT)) for page in PAGES if DOCS in page.parents}
    assert written <= {*linked}


def test_the_architecture_page_has_every_room_with_its_lines() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", (DOCS / "architecture.md").read_text("utf-8"), re.MULTILINE)
    shown = {room: int(lines.replace(",", "")) for room, lines in rows}
    counted = {}
    for room in (ROOT / "mrag_eval").iterdir():
        files = [*room.resolve().rglob("*.py")] if room.is_dir() else []
        if files:
            counted[room.name] = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    assert shown.keys() == counted.keys()
    off = {room: (shown[room], n) for room, n in counted.items() if abs(shown[room] - n) > max(200, n / 5)}
    assert not off, f"shown and counted: {off}"


@pytest.mark.parametrize(("page", "line"), calls("mrag-eval"))
def test_commands_and_their_options_exist(page: Path, line: str) -> None:
    command: Any = typer.main.get_command(app)
    words = shlex.split(line.replace("<", "").replace(">", ""), comments=True)[1:]
    while words and hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        assert words[0] in command.commands, f"no command '{words[0]}'"
        command, words = command.commands[words[0]], words[1:]
    if command.name == "run" and command.short_help and "lm_eval" in command.short_help:
        return  # the harness's flags
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word.startswith("--"):
            assert word.partition("=")[0] in {*known, "--help", "--debug", "--version"}, word


def named_tasks() -> list[Any]:
    found = []
    for program in ("mrag-eval", "lm_eval"):
        for page in PAGES:
            for line in lines_of(page, program):
                match = re.search(r"--tasks[ =](\S+)", line)
                if match:
                    found += [(page, task) for task in match[1].split(",") if not OWN_TASKS.match(task)]
    return [pytest.param(page, task, id=f"{page.relative_to(ROOT)}: {task}") for page, task in dict.fromkeys(found)]


@pytest.fixture(scope="module")
def tasks() -> set[str]:
    return {name for entry in list_tasks() for name in (entry.name, *entry.tags)}


@pytest.mark.parametrize(("page", "task"), named_tasks())
def test_tasks_exist(page: Path, task: str, tasks: set[str]) -> None:
    assert any(fnmatchcase(name, task) for name in tasks), task


def test_reference_pages_have_every_block_metric_and_command() -> None:
    from mrag_eval.datasets import LOADERS
    from mrag_eval.retrievers.recipes._recipe import recipes
    from mrag_eval.scoring import METRICS

    made = pages()
    for name in LOADERS:
        assert f"benchmark: {name}" in made["reference/configuration.md"]
    for name in METRICS:
        assert f"| `{name}` |" in made["reference/metrics.md"]
    for name in ("mrag-eval run", "mrag-eval judge agree", "mrag-eval index build", "mrag-eval gate"):
        assert f"## {name}\n" in made["reference/commands.md"]
    for recipe in (*recipes("embedders"), *recipes("rerankers")):
        assert f"| [{recipe.family}]({recipe.source})" in made["reference/models.md"]
    # every key has its row: the page of a block describes all its keys
    assert "| `k` | whole number (≥ 1) | `5` |" in made["reference/configuration.md"]
    assert "``" not in re.sub(r"```", "", made["reference/configuration.md"])


def retrieval_snippets() -> list[Any]:
    import yaml

    text = (ROOT / "docs" / "retrieval.md").read_text("utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


@pytest.mark.parametrize("snippet", retrieval_snippets(), ids=lambda s: str(s)[:70])
def test_snippets_of_the_retrieval_page_are_valid(snippet: dict[str, Any]) -> None:
    from mrag_eval.config import Retrieval, check_metrics, validated
    from mrag_eval.scoring import METRIC_NAMES

    (block,) = snippet
    if block == "metrics":
        check_metrics(snippet[block], METRIC_NAMES, "docs/retrieval.md")
    else:
        assert validated(Retrieval, snippet[block], "docs/retrieval.md").k == 5


@pytest.mark.parametrize("readme", sorted(ROOT.glob("tasks/*/README.md")), ids=lambda p: p.parent.name)
def test_a_task_folder_says_what_it_measures_on_whose_data_and_what_differs(readme: Path) -> None:
    text = readme.read_text("utf-8")
    heads = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert text.startswith(f"# {readme.parent.name}\n")
    assert "Tasks" in heads
    assert re.search(r"[Ll]icen[cs]e", text)
    if readme.parent.name == "demo":
        return
    assert {"Paper", "Citation"} <= set(heads)
    assert "```bibtex" in text
    assert any(head.startswith(("Differences", "What the data leaves open")) for head in heads)
    assert re.search(r"[Mm]etric|Scores", text)


def test_every_task_folder_has_a_readme_and_a_page() -> None:
    folders = {path.name for path in (ROOT / "tasks").iterdir() if path.is_dir() and any(path.rglob("*.yaml"))}
    made = pages()
    assert folders == {path.parent.name for path in ROOT.glob("tasks/*/README.md")}
    assert {*folders, "index"} == {Path(name).stem for name in made if name.startswith("benchmarks/")}
    for folder in folders:
        assert f"]({folder}.md), `" in made["benchmarks/index.md"]
    assert "| [`coral`](../ir_modes.md) |" in made["benchmarks/click.md"]
