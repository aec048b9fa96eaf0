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

from mrag_eval.cli._app import app
from mrag_eval.cli._catalog import list_tags, list_tasks
from scripts.write_docs import pages
from tests.docs.blocks import PAGES, ROOT, blocks_of

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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        if path.removeprefix("../").startswith(("reference/", "benchmarks/")):
            assert path.removeprefix("../") in pages(), target
            continue
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), re.MULTILINE)
            slugs = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}
            assert anchor in slugs, target


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
    return {entry.name for entry in list_tasks()} | set(list_tags())


@pytest.mark.parametrize(("page", "task"), named_tasks())
def test_tasks_exist(page: Path, task: str, tasks: set[str]) -> None:
    assert any(fnmatchcase(name, task) for name in tasks), task


def test_reference_pages_have_every_block_metric_and_command() -> None:
    from mrag_eval.config import MODES
    from mrag_eval.datasets import LOADERS
    from mrag_eval.retrievers.recipes._embedders import EMBEDDERS
    from mrag_eval.retrievers.recipes._rerankers import RERANKERS
    from mrag_eval.scoring import METRICS

    made = pages()
    for name in LOADERS:
        assert f"benchmark: {name}" in made["reference/configuration.md"]
    for name in METRICS:
        assert f"| `{name}` |" in made["reference/metrics.md"]
    for name in MODES:
        assert f"| `{name}` |" in made["reference/modes.md"]
    for name in ("mrag-eval run", "mrag-eval judge agree", "mrag-eval index build", "mrag-eval gate"):
        assert f"## {name}\n" in made["reference/commands.md"]
    for recipe in (*EMBEDDERS, *RERANKERS):
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
    from mrag_eval.config import Retrieval, validated
    from mrag_eval.config._measures import check_metrics
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
    assert "| [`coral`](../reference/modes.md) |" in made["benchmarks/click.md"]
