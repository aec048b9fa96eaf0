"""The blocks of the page on the Python interface run in order, in this process, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "python.md"


@pytest.mark.slow
def test_the_blocks_run_and_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed = ""
    for block in blocks_of(PAGE):
        if block.language == "python" and not block.mark:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, str(block), "exec"), names)
            printed = out.getvalue()
        elif block.language == "text":
            pattern = "\n".join(".*".join(map(re.escape, line.split("…"))) for line in block.text.splitlines())
            assert re.search(f"^{pattern}$", printed, re.MULTILINE), f"{block}\n{printed}"
        elif block.mark:
            assert block.mark == "not run"
    assert names["values"]


def test_the_page_names_everything_that_the_package_exports() -> None:
    import mrag_eval

    text = PAGE.read_text("utf-8")
    for name in mrag_eval.__all__:
        assert f"`{name}" in text or name == "__version__"
