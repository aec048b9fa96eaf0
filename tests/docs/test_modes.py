"""The page on IR modes describes every mode and every merge correctly."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

from mrag_eval.config import MODES
from mrag_eval.config._retrieval import Merge

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ir_modes.md").read_text("utf-8")
ADDING = (ROOT / "docs" / "architecture.md").read_text("utf-8")
# The page's words for the facts in the code.
_QUERY = {"none": "as it is", "en": "English", "each": "each language"}
_DOCUMENTS = {"none": "as they are", "en": "English"}


def rows() -> dict[str, list[str]]:
    out = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`([^`]+)`", cells[0]) if line.startswith("| `") else ():
            out[name] = cells
    return out


def test_every_mode_is_on_the_page_with_its_choices() -> None:
    found = rows()
    for name, mode in MODES.items():
        assert name in found, f"mode {name} is missing on docs/ir_modes.md"
        if mode.searches and not mode.swaps and mode.source != "agents":
            _, _, merge, query, documents, _ = found[name]
            assert merge == mode.merge
            assert query == _QUERY[mode.query_translation]
            assert documents == _DOCUMENTS[mode.document_translation]


def test_every_merge_is_on_the_page() -> None:
    assert set(get_args(Merge)) <= set(rows())


def test_the_example_of_a_new_mode_is_the_code() -> None:
    """Presets and sources are compared as written; the line of ``MODES`` states the same facts, with fewer refusals."""
    preset, line, source = re.findall(r"^```python\n(.*?)^```$", ADDING, re.MULTILINE | re.DOTALL)
    assert preset.splitlines()[1].strip() in (ROOT / "mrag_eval" / "config" / "_modes.py").read_text("utf-8")
    assert source in (ROOT / "mrag_eval" / "retrieval" / "sources" / "_given.py").read_text("utf-8")
    (call,) = (node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Call))
    positional = ("languages", "merge", "summary", "papers")
    said = dict(zip(positional, map(ast.literal_eval, call.args), strict=True))
    said |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert said.pop("refuses").items() <= MODES["given"].refuses.items()
    assert said == {key: getattr(MODES["given"], key) for key in said}
