"""Every command of the page on papers about BordIRlines, over the whole suite on a copy in the hub's layout."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrag_eval.cli import _harness as harness
from mrag_eval.cli import main
from tests.docs.blocks import ROOT
from tests.worlds import bordirlines

PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
SECTION = PAGE.partition("\n## BordIRlines\n")[2].partition("\n### Parallel")[0]
# What the page leaves to the reader, and its model.
_FILLED = {
    "OUT": "out/territories",
    "RUNS": "out/territories",
    "NAME": "Ceuta",
    "out": "out/territories",
    "data/human_annotations.tsv": "bordirlines/data/human_annotations.tsv",
    "data/llm_annotations.tsv": "bordirlines/data/llm_annotations.tsv",
    "out.csv": "case.csv",
}
# A model's labels, dumps of Wikipedia and a corpus of one's own: the page's other test runs these.
_ELSEWHERE = re.compile(
    r"--model |--wikipedia|corpus bordirlines|\.\.\.|^mrag-eval (judge documents|compare)$|--languages"
)


def commands() -> list[list[str]]:
    """Return the words of every command in the section: those in its blocks, and those within its text."""
    code = re.sub(r"\\\n\s*", "", SECTION)
    blocks = re.findall(
        r"^(mrag-eval .*?)(?:\s+#.*)?$", "\n".join(re.findall(r"```bash\n(.*?)```", code, re.DOTALL)), re.M
    )
    text = re.sub(r"```.*?```", "", code, flags=re.DOTALL)
    found = [*blocks, *re.findall(r"`(mrag-eval [^`]+)`", text)]
    return [shlex.split(line)[1:] for line in found if not _ELSEWHERE.search(line)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Iterator[Path]:
    """Run all tasks of the suite on every question, as the page does with another model; return the reader's folder."""
    home = tmp_path_factory.mktemp("papers")
    bordirlines.write_bordirlines(home / "bordirlines", bordirlines.real_queries(test_data))
    # people labelled some of the documents that the model labelled, as the hub has them
    table = [line.split("\t") for line in (home / _FILLED["data/llm_annotations.tsv"]).read_text("utf-8").splitlines()]
    people = [["query_id", "doc_id", "relevant", "territory"], *([*row[:2], row[3], row[5]] for row in table[1::3])]
    text = "".join("\t".join(row) + "\n" for row in people)
    (home / _FILLED["data/human_annotations.tsv"]).write_text(text, "utf-8")
    (home / "borderlines").symlink_to(test_data / "borderlines")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("MRAG_CACHE", str(home / "cache"))
        where = "data.path=bordirlines,data.borderlines=borderlines"
        words = ["--model", "dummy", "--log_samples", "--output_path", "out/territories", "--seed", "4321"]
        harness.run(["--tasks", "bordirlines_suite", "--metadata", where, "--no-retrieve-first", *words])
        yield home


@pytest.mark.slow
@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_runs_over_the_whole_suite(words: list[str], runs: Path) -> None:
    filled = [_FILLED.get(word, word) for word in words]
    if "labelled" in filled and filled[0] == "report" and not (runs / "labelled").exists():
        run(
            [
                "judge",
                "documents",
                "out/territories",
                "--labels",
                _FILLED["data/llm_annotations.tsv"],
                "--output",
                "labelled",
            ]
        )
    run(filled)


def run(words: list[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(words)
    assert not done.value.code, words


def test_the_section_has_its_commands() -> None:
    said = {" ".join(words[:2]) for words in commands()}
    assert {"report out/territories", "compare out/territories", "judge documents"} <= said
