"""Every command of the page on papers, section by section, in a world in the hub's layout, with every task of a suite.

Each section has a folder of its own with the files that the page leaves to the reader. Every task of the section's
suites runs into the folder of its runs, where need be after the block that builds their corpus. Its commands run in
order, also those that other readers skip for want of the hub, of dumps or of people, and each table of the layout must
have rows of these runs. Evaluated models are the harness's ``dummy``; judges, planner, critic and translator are one
server. Where the page gives no number of rows, two a task are asked, of BordIRlines sixteen.
:mod:`tests.docs.test_papers` asks BordIRlines all questions, and :mod:`tests.docs.test_commands` runs the page on two.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.core import CORAL_POOL, Passage, normalize_language
from mrag_eval.retrievers import build_index
from tests.docs.blocks import ROOT
from tests.docs.stages import SENTENCES
from tests.docs.stand_ins import write_programs
from tests.programs import Programs
from tests.retrieval.test_bordirlines_corpus import write_dumps
from tests.retrievers.wiki_files import article, write_copy
from tests.worlds import bordirlines, mkqa, xlcost
from tests.worlds.hub_server import Hub
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.tiny_models import bert_folder

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "papers.md"
MODELS = ("gpt", "claude", "mistral", "qwen")
# The languages of mRAG's questions; those that the world lacks get its French.
MRAG_LANGS = ("ar", "de", "en", "es", "fi", "fr", "it", "ja", "ko", "pt", "ru", "th", "zh")
MODES = ("", "_norag", "_en_only", "_qlang", "_qlang_plus_en")
MKQA_MODES = (*MODES, "_trag", "_sparse_trag", "_oracle", "_oracle_pages")
XOR_LANGS = ("ar", "fi", "ja", "ko", "ru")


@dataclass(frozen=True)
class Section:
    """A section of the page.

    ``prepare`` writes the reader's files and returns the ``data`` of the config file. All tasks of ``suites`` run into
    ``runs``, before the section's first block, or after the one that has ``after``. ``layout`` prints their tables, of
    which ``printed`` must have rows of these runs. ``filled`` are words that the page leaves open.
    """

    prepare: Callable[[Path, Path], Mapping[str, Any]]
    suites: tuple[str, ...]
    runs: str
    layout: str
    printed: tuple[str, ...]
    filled: Mapping[str, str] = field(default_factory=dict)
    after: str = ""
    limit: int = 2


def _mrag(folder: Path, test_data: Path) -> Mapping[str, Any]:
    """Write MKQA, KILT and both TyDi sets in 13 languages, and SPLADE's weights."""
    data = folder / "data"
    mkqa.write_all(data)
    rows = [json.loads(line) for line in (data / "mkqa.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        for part in ("queries", "answers"):
            row[part] = {lang: row[part].get(lang, row[part]["fr"]) for lang in (*MRAG_LANGS[:-1], "zh_cn")}
    content = mkqa.write_jsonl(data / "mkqa.jsonl", rows).read_bytes()
    (data / "mkqa.jsonl.gz").write_bytes(gzip.compress(content))
    questions = [row for row in mkqa.xor_rows() if row["lang"] == "ru"]
    rows = [{**row, "id": f"{row['id']}-{lang}", "lang": lang} for lang in XOR_LANGS for row in questions]
    mkqa.write_jsonl(data / "xor_dev_full_v1_1.jsonl", rows)
    (folder / "kilt_knowledgesource.json").symlink_to(data / "kilt_knowledgesource.json")
    bert_folder(folder / "naver" / "splade-v3", "BertForMaskedLM", longest=128)
    kilt = str(data / "nq-train-kilt.jsonl")
    paragraphs = str(folder / "kilt_knowledgesource.json")
    return {
        "mkqa": {"path": str(data / "mkqa.jsonl.gz"), "kilt": kilt, "paragraphs": paragraphs},
        "xor_tydi": {"path": str(data)},
        "tydiqa": {"path": str(data)},
    }


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


def _bordirlines(folder: Path, test_data: Path) -> Mapping[str, Any]:
    """Write the hub's folder with labels by people as well, pages on two territories, and dumps of two languages."""
    queries = bordirlines.real_queries(test_data)
    copy = bordirlines.write_bordirlines(folder / "bordirlines", queries)
    table = [line.split("\t") for line in (copy / "data" / "llm_annotations.tsv").read_text("utf-8").splitlines()]
    # people labelled some of the documents that the model labelled
    people = [["query_id", "doc_id", "relevant", "territory"], *([*row[:2], row[3], row[5]] for row in table[1::3])]
    text = "".join("\t".join(row) + "\n" for row in people)
    (copy / "data" / "human_annotations.tsv").write_text(text, "utf-8")
    (folder / "borderlines").symlink_to(test_data / "borderlines")
    pages = [
        {"subject": subject, "lang": lang, "title": subject, "text": f"{subject}: {SENTENCES['en']}"}
        for subject in ("Ceuta", "Spain", "Morocco", "Spratly Islands", "Vietnam")
        for lang in sorted({normalize_language(row["query_lang"]).partition("-")[0] for row in queries})
    ]
    mkqa.write_jsonl(folder / "pages.jsonl", pages)
    write_dumps(folder / "DUMPS")
    (folder / "titles.csv").write_text("subject,lang,title\nDokdo,en,Liancourt Rocks\n", "utf-8")
    (folder / "xquad").symlink_to(test_data / "xquad")
    return {
        "xquad": {"path": str(folder / "xquad")},
        "bordirlines": {"path": str(folder / "bordirlines"), "borderlines": str(folder / "borderlines")},
    }


SECTIONS: Mapping[str, Section] = {
    "RAG in multilingual settings": Section(
        _mrag,
        (",".join([*(f"mkqa{mode}" for mode in MKQA_MODES), *(f"xor_tydi{mode}" for mode in MODES), "tydi_*"]),),
        "out",
        "mrag",
        (*(f"Table 1 ({name})" for name in ("MKQA", "XOR-TyDi QA", "TyDi QA")), *(f"Table {n}" for n in (5, 6, 7, 9))),
        {"INDEX": "../cache/corpora/wikipedia"},
        after="corpus kilt",
    ),
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
    "BordIRlines": Section(
        _bordirlines,
        # its first block runs bordirlines_suite
        ("bordirlines_*_likelihood*,bordirlines_*_citation_*,bordirlines_*_direct_m3",),
        "out/territories",
        "bordirlines",
        ("Table 4", "Table 4 (likelihood)", "Table 4 (documents of M3)", "Figure 6"),
        {
            "OUT": "out/territories",
            "RUNS": "out/territories",
            "NAME": "Ceuta",
            "report out labelled": "report out/territories labelled",
            "data/human_annotations.tsv": "bordirlines/data/human_annotations.tsv",
            "data/llm_annotations.tsv": "bordirlines/data/llm_annotations.tsv",
        },
        limit=16,
    ),
}


def replies(body: dict[str, Any], attempt: int) -> Answer:
    """Answer as a judge, a planner, a critic, a translator or an annotator, whichever a prompt asks for."""
    system, prompt = "".join(str(m["content"]) for m in body["messages"][:-1]), asked(body)
    if "Yes or No" in system:
        return said("Yes")
    if "X) Neutral" in prompt:
        return said(re.findall(r"^[A-Z]\) .*$", prompt, re.MULTILINE)[0])
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


def test_every_section_is_here_and_names_its_layout() -> None:
    text = PAGE.read_text("utf-8")
    assert list(SECTIONS) == re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert all(f"--layout {section.layout}" in text for section in SECTIONS.values())


@pytest.mark.parametrize("title", SECTIONS)
def test_the_commands_of_a_section_run_and_its_tables_come_out(
    title: str, tmp_path: Path, test_data: Path, programs: Programs, server: ModelServer
) -> None:
    section = SECTIONS[title]
    reader = Reader(section, tmp_path, test_data, programs, server)
    for block in ("", *commands(title)):
        reader.runs(block)
        if section.after in block and (section.after or not block):
            for suite in section.suites:
                tasks = f"--tasks {suite} --log_samples --output_path {section.runs}"
                reader.runs(f"mrag-eval run --model dummy {tasks}")
    printed = reader.runs(f"mrag-eval report {section.runs} --layout {section.layout}")
    found = dict(re.findall(r"^### (.+?)(?::.*)?\n((?:(?!### ).*\n)*)", printed, re.MULTILINE))
    assert {heading for heading, body in found.items() if "| dummy" in body} >= {*section.printed}


def commands(title: str) -> Iterator[str]:
    """Yield the commands of a section in order: its blocks, and what stands within its text.

    The first section has those above it as well.
    """
    above, *parts = re.split(r"^## (.+)\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    at = parts.index(title)
    inside = f"{'' if at else above}\n{parts[at + 1]}"
    for fenced, worded in re.findall(r"```bash\n(.*?)```|`(mrag-eval [^`]* [^`]*)`", inside, re.DOTALL):
        if fenced or not re.match(r"mrag-eval (judge documents|compare --languages)$", worded):
            yield fenced or worded


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


def _wikipedia(folder: Path) -> Path:
    """Write the hub's dataset with two articles in each language of the paper."""
    for lang in MRAG_LANGS:
        text = SENTENCES.get(lang, SENTENCES["es"])
        write_copy(folder, f"20231101.{lang}", [article(n, f"Bridge {n}", text) for n in (1, 2)])
    configs = [
        {"config_name": path.name, "data_files": [{"split": "train", "path": f"{path.name}/*"}]}
        for path in sorted(folder.iterdir())
    ]
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n", "utf-8")
    return folder


class Reader:
    """Someone with a folder, who fills in what the page leaves open, and with a hub that has Wikipedia."""

    def __init__(self, section: Section, home: Path, test_data: Path, programs: Programs, server: ModelServer) -> None:
        self.section, self.home, self.folder = section, home, home / "here"
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
            # in this folder, the name is that of a folder
            "embedders": ["naver/splade-v3"],
        }
        if (self.folder / "wikipedia").is_dir():
            config["corpora"] = {"wikipedia": "wikipedia"}
        (self.folder / "mrag.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
        write_programs(home / "bin", programs / "python")
        write_programs(home / "own", sys.executable)

    def runs(self, block: str) -> str:
        """Run a block of commands and return what it prints; it must end well."""
        for word, filled in self.section.filled.items():
            block = re.sub(rf"(?<![\w/.]){re.escape(word)}(?![\w/.])", filled, block)
        env = {
            **{name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"},
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "COLUMNS": "200",
            "DOCS_COPIES": str(self.folder),
            "DOCS_LIMIT": str(self.section.limit),
            "DOCS_STRICT": "1",
            # the page builds the same corpus from dumps and from pages
            "MRAG_CACHE": str(self.home / ("from_dumps" if "DUMPS" in block else "cache")),
        }
        with ExitStack() as stack:
            if "ann.csv" in block:
                _label(self.folder)
            if "corpus wikipedia" in block:
                hub = stack.enter_context(Hub(self.home / "hub"))
                hub.add("wikimedia/wikipedia", _wikipedia(self.home / "wikipedia"))
                # the programs that start at once have read the address of the hub
                env["PATH"] = f"{self.home / 'own'}{os.pathsep}{env['PATH']}"
                env = {name: value for name, value in env.items() if "OFFLINE" not in name}
                env |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(self.home / "hf")}
            return self._executed(block, env)

    def _executed(self, block: str, env: Mapping[str, str]) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self.folder, env=env, capture_output=True, text=True, timeout=580, check=False,
        )  # fmt: skip
        said = f"{block}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        assert done.returncode == 0, said
        assert "Traceback" not in done.stderr, said
        return done.stdout
