"""The page that lists every element of the papers: its counts, and the tests that it names."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evidence" / "papers.md").read_text("utf-8").partition("\n## Prompts\n")[0]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|", 2)) for line in PAGE.splitlines() if line.startswith("| ")
]
# The tables and figures of each paper.
NUMBERED = {
    "BordIRlines": (15, 18),
    "CORAL": (12, 9),
    "mRAG": (9, 0),
    "The Cross-Lingual Cost": (6, 3),
    "XRAG": (11, 24),
}
ELEMENTS = [row for row in ROWS if row[0] in NUMBERED and not row[1].isdigit()]


def numbers(element: str) -> list[tuple[str, int]]:
    """Return the tables and figures that a cell names: ``Tables 3 and 4, Figures 3 and 7``."""
    found = []
    kind = ""
    for word, first, last in re.findall(r"(Table|Figure|section|Appendix)|(\d+)(?: to (\d+))?", element):
        kind = word or kind
        if first and kind in ("Table", "Figure"):
            found += [(kind, n) for n in range(int(first), int(last or first) + 1)]
    return found


def state(test: str) -> str:
    return "none" if test.startswith("no numbers") else "part" if re.search(r"; not |cannot be", test) else "whole"


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_table_and_figure_of_a_paper_is_listed_once(paper: str) -> None:
    named = Counter(one for name, element, _ in ELEMENTS if name == paper for one in numbers(element))
    tables, figures = NUMBERED[paper]
    assert sorted(named) == [
        *(("Figure", n) for n in range(1, figures + 1)), *(("Table", n) for n in range(1, tables + 1))
    ]  # fmt: skip
    assert set(named.values()) == {1}


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_counts_are_those_of_the_list(paper: str) -> None:
    counts = Counter[str]()
    for name, element, test in ELEMENTS:
        if name == paper:
            counts[state(test)] += len(numbers(element)) or 1
    (shown,) = (
        re.findall(r"\d+", f"{second}|{rest}") for name, second, rest in ROWS if name == paper and second.isdigit()
    )
    assert [int(n) for n in shown] == [sum(counts.values()), counts["whole"], counts["part"], counts["none"]]


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_an_element_names_a_test_that_is_there_or_why_there_is_none(element: tuple[str, ...]) -> None:
    _, _, test = element
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`", test)
    assert named or test.startswith(("no numbers", "draws"))
    for path, function in named:
        assert f"def {function}(" in (ROOT / path).read_text("utf-8") if function else (ROOT / path).is_file()
