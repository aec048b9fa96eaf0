"""Every command of two sections of the page on papers, in worlds in the hub's layout, with every task of a suite.

Each section has a folder of its own with the files that the page leaves to the reader. Every task of the section's
suites runs into the folder of its runs; then its blocks run in order, also those that other readers skip for want of
people, and each table of the layout must have rows of these runs. Evaluated models are the harness's ``dummy``; judges,
planner, critic and translator are one server. Where the page gives no number of rows, two a task are asked.
:mod:`tests.docs.test_papers` does so for BordIRlines, and :mod:`tests.docs.test_commands` runs the page on two rows.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.core import CORAL_POOL, Passage
from mrag_eval.retrievers import build_index
from tests.docs.blocks import ROOT
from tests.docs.stages import SENTENCES
from tests.docs.stand_ins import write_programs
from tests.programs import Programs
from tests.worlds import xlcost
from tests.worlds.model_server import Answer, ModelServer, asked, said

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "papers.md"
MODELS = ("gpt", "claude", "mistral", "qwen")


@dataclass(frozen=True)
class Section:
    """A section of the page.

    ``prepare`` writes the reader's files and returns the ``data`` of the config file. All tasks of ``suites`` run into
    ``runs`` first. ``layout`` prints their tables, of which ``printed`` must have rows of these runs.
    """

    prepare: Callable[[Path, Path], Mapping[str, Any]]
    suites: tuple[str, ...]
    runs: str
    layout: str
    printed: tuple[str, ...]


def _xlcost(folder: Path, test_data: Path) -> Mapping[str, Any]:
    for domain in ("travel", "legal"):
        xlcost.write(folder / "xlcost", domain=domain)
    return {"xlcost": {"path": str(folder / "xlcost"), "tokenizer": "model_free"}}


def _coral(folder: Path, test_data: Path) -> Mapping[str, Any]:
    passages = [Passage(f"{lang}-bridge", lang, text, "", f"{lang}-bridge") for lang, text in SENTENCES.items()]
    assert {*CORAL_POOL} == SENTENCES.keys()
    build_index(passages, folder / "wikipedia", kind="bm25")
    blend = test_data / "blend"
    return {
        "click": {"path": str(test_data / "click")},
        "blend": {"path": str(blend)},
        "blend_saq": {"path": str(blend / "annotations")},
    }


SECTIONS: Mapping[str, Section] = {
    "The Cross-Lingual Cost": Section(
        _xlcost,
        ("xlcost_travel_suite,xlcost_legal_suite",),
        "out/xlcost",
        "xlcost",
        ("Table 1", "Table 2", "Table 3", "Table 5", "Table 6", "Figure 1", "Figure 2", "Figure 3"),
    ),
    "CORAL": Section(
        _coral,
        (
            "blend_coral_suite,click_coral_suite,blend_saq_coral_suite",
            "blend_coral_ablations,click_coral_ablations",
        ),
        "out/coral",
        "coral",
        ("Table 1", "Table 2", "Table 3", "Table 6", "Tables 7, 8, 9, 10, 11, 12"),
    ),
}


def replies(body: dict[str, Any], attempt: int) -> Answer:
    """Answer as a judge, a planner, a critic, a translator or a rater of rewrites, whichever a prompt asks for."""
    system, prompt = "".join(str(m["content"]) for m in body["messages"][:-1]), asked(body)
    if "<passage_1>" in prompt and "<golden_answer>" in prompt:
        return said("[1]")
    if "<translation>" in system:
        lang = "ar" if "into Arabic" in system else "en"
        return said(f"<translation>{SENTENCES[lang]} {SENTENCES[lang]}</translation>")
    if "<same_meaning>" in system:
        return said("<same_meaning>True</same_meaning>")
    scores = dict.fromkeys(("relevance", "usefulness", "clarity_specificity", "compatibility"), 2)
    plan = {"language_names": ["en", "ko"], "rewritten_query": f"{prompt[:60]} {attempt}"}
    verdict = {"justification": "so", "answer": "correct", "sufficient": "yes", "type": "narrow", "why": "so"}
    loop = {"scores": scores, "critique": "so", "enough_documents": False, "reason": "so"}
    return said(json.dumps({**plan, **verdict, **loop}, ensure_ascii=False))


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with closing(ModelServer(replies)) as there:
        yield there


@pytest.mark.parametrize("title", SECTIONS)
def test_the_commands_of_a_section_run_and_its_tables_come_out(
    title: str, tmp_path: Path, test_data: Path, programs: Programs, server: ModelServer
) -> None:
    section = SECTIONS[title]
    reader = Reader(section, tmp_path, test_data, programs, server)
    for suite in section.suites:
        reader.runs(f"mrag-eval run --model dummy --tasks {suite} --log_samples --output_path {section.runs}")
    for block in commands(title):
        reader.runs(block)
    printed = reader.runs(f"mrag-eval report {section.runs} --layout {section.layout}")
    found = dict(re.findall(r"^### (.+?)(?::.*)?\n((?:(?!### ).*\n)*)", printed, re.MULTILINE))
    assert {heading for heading, body in found.items() if "| dummy" in body} >= {*section.printed}


def commands(title: str) -> Iterator[str]:
    """Yield the blocks of commands of a section in order."""
    inside = re.split(rf"^## {re.escape(title)}\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1]
    yield from re.findall(r"```bash\n(.*?)```", re.split(r"^## ", inside, flags=re.MULTILINE)[0], re.DOTALL)


def _label(folder: Path) -> None:
    """Let two people label the pairs of ``pairs.csv``, and disagree on the first."""
    with (folder / "pairs.csv").open(encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file))
    assert len(pairs) > 1
    for person, first in (("ann", "narrow"), ("ben", "expand")):
        with (folder / f"{person}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(pairs[0]))
            writer.writeheader()
            writer.writerows({**pair, "label": "narrow" if number else first} for number, pair in enumerate(pairs))


class Reader:
    """Someone with a folder of files and a config file."""

    def __init__(self, section: Section, home: Path, test_data: Path, programs: Programs, server: ModelServer) -> None:
        self.home, self.folder = home, home / "here"
        self.folder.mkdir()
        data = section.prepare(self.folder, test_data)
        spec = {"model": "local-chat-completions"}
        models = {name: {**spec, "model_args": {"model": name, "base_url": server.url}} for name in MODELS}
        config = {
            "models": models,
            "judges": list(MODELS[:3]),
            "planner": "qwen",
            "critic": "qwen",
            "translator": {"backend": "lm", "model": "qwen"},
            "data": data,
        }
        if (self.folder / "wikipedia").is_dir():
            config["corpora"] = {"wikipedia": "wikipedia"}
        (self.folder / "mrag.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
        write_programs(home / "bin", programs / "python")

    def runs(self, block: str) -> str:
        """Run a block of commands and return what it prints; it must end well."""
        env = {
            **{name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"},
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "COLUMNS": "200",
            "DOCS_COPIES": str(self.folder),
            "DOCS_LIMIT": "2",
            "DOCS_STRICT": "1",
            "MRAG_CACHE": str(self.home / "cache"),
        }
        if "ann.csv" in block:
            _label(self.folder)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self.folder, env=env, capture_output=True, text=True, timeout=580, check=False,
        )  # fmt: skip
        shown = f"{block}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        assert done.returncode == 0, shown
        assert "Traceback" not in done.stderr, shown
        return done.stdout
