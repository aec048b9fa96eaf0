"""Printed tables hold every character of their cells, on lines of one width, with or without a terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from mrag_eval.core import Displayed, columns, pipe_table

# Latin, Han, Kana, Hangul, Arabic, Hebrew, Devanagari with combining marks, Thai, Ethiopic
NAMES = ["Crimea", "克里米亚", "クリミア", "크림반도", "القرم", "קרים", "क्रीमिया", "ไครเมีย", "ክራይሚያ"]


def test_columns_are_aligned_in_every_script() -> None:
    lines = pipe_table(["name", "n"], [[name, str(10**i)] for i, name in enumerate(NAMES)], "lr").splitlines()
    assert len({cell_len(line) for line in lines}) == 1
    assert all(line.startswith(f"| {name} ") for line, name in zip(lines[2:], NAMES, strict=True))
    assert lines[1].endswith("-:|")
    rows = columns([[name, "x"] for name in NAMES])
    assert len({cell_len(line) for line in rows}) == 1
    assert [line.split()[0] for line in rows] == NAMES


@pytest.mark.parametrize("width", ["20", "80"])
def test_nothing_is_wrapped_cut_coloured_or_read_as_markup(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("FORCE_COLOR", "1")
    cells = ["x" * 500, "45.6 [40.1, 50.2]", "[red]no[/red] :smile:", "a\tb", "  indented"]
    (_, _, row) = pipe_table(cells, [cells]).splitlines()
    assert row == f"| {' | '.join(cells)} |".replace("\t", " ")
    assert columns([cells]) == ["  ".join(cells).replace("\t", " ")]


def test_a_cell_is_one_line_and_has_no_border_of_its_own() -> None:
    assert pipe_table(["a"], [["x|y\nz\u2028w"]]).splitlines() == ["| a        |", "|----------|", "| x\\|y z w |"]
    assert columns([["x|y", "two\nlines"]]) == ["x|y  two lines"]


def test_a_table_without_rows() -> None:
    assert pipe_table(["a", "n"], [], "lr").splitlines() == ["| a | n |", "|---|--:|"]
    assert columns([]) == []


def test_tables_are_the_same_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [pipe_table(["a"], [["x"]]), *columns([["x", "y"]])]
    # there rich displays what it prints, whatever file it is given
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert [pipe_table(["a"], [["x"]]), *columns([["x", "y"]])] == made


class Result(Displayed):
    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def text(self) -> str:
        return self._text


def test_a_result_is_its_text_on_a_terminal_and_html_in_a_notebook() -> None:
    table = pipe_table(["name", "n"], [["x|y", "1"], ["<b>", "-3.3 [-4, -2]"]], "lr")
    shown = Result(f"### match\n\n{table}\n* a note\n\n- 克里米亚 & <i>\n- two\n\nOne line.\n-3.3, another")
    assert repr(shown) == str(shown) == shown.text
    left, right = ' style="text-align:left">', ' style="text-align:right">'
    assert shown._repr_html_() == (
        f"<h4>match</h4><table><tr><th{left}name<th{right}n</tr>"
        f"<tr><td{left}x|y<td{right}1</tr><tr><td{left}&lt;b&gt;<td{right}-3.3 [-4, -2]</tr></table>"
        "<p>* a note</p><ul><li>克里米亚 &amp; &lt;i&gt;</li><li>two</li></ul><p>One line.<br>-3.3, another</p>"
    )
