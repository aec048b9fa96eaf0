"""The notebook of the examples: its cells run in order, in this process and in a kernel, and show outputs as stored.

What stands in the outputs is compared where these are made. To write it again: ``jupyter execute --inplace``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT
from tests.report.test_consumers import foreign

NOTEBOOK = ROOT / "examples" / "before_and_after.ipynb"
FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
KERNEL = """
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
notebook.cells += [nbformat.v4.new_code_cell(source) for source in json.loads(sys.argv[2])]
NotebookClient(notebook, timeout=240, kernel_name="python3", allow_errors=True).execute()
print(json.dumps([cell.outputs for cell in notebook.cells if cell.cell_type == "code"]))
"""
STRATEGIES = """
mrag_eval.strategies(questions, "documents.jsonl", vary={"mode": ["all"], "kind": ["bm25"], "k": [1, 3]}, output="own")
"""
WAIT = """
import time
from mrag_eval.platform import Wait, _waits
_waits.DELAY = 0.01
with Wait("searching", 3, "questions"):
    time.sleep(0.3)
"""


def code() -> list[dict[str, Any]]:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def forms(outputs: list[dict[str, Any]]) -> list[str]:
    """Return what a cell shows: the stream of printed lines, or the form in which a notebook draws a value."""
    shown = []
    for output in outputs:
        assert output["output_type"] in ("stream", "execute_result"), output
        shown += [output["name"]] if output["output_type"] == "stream" else {*output["data"]} - {"text/plain"}
    return shown


def run(source: str, number: int, names: dict[str, Any]) -> list[str]:
    """Run a cell as a notebook does: the value of a last expression is shown."""
    file = f"cell {number}"
    # where Python looks for the source of a function, as it finds that of a notebook's
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    *body, last = ast.parse(source).body
    is_value = isinstance(last, ast.Expr) and not ast.unparse(last).startswith("print(")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(ast.Module([*body, *([] if is_value else [last])], []), file, "exec"), names)
        value = eval(compile(ast.Expression(last.value), file, "eval"), names) if is_value else None  # type: ignore[attr-defined]
    drawn = [form for form, method in FORMS.items() if hasattr(value, method) and getattr(value, method)()]
    return [*(["stdout"] if out.getvalue() else []), *drawn]


def test_the_cells_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code()):
        assert run("".join(cell["source"]), number, names) == forms(cell["outputs"]), f"cell {number}"
    assert names["found"].verdict == "better"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_kernel_shows_the_same_and_nothing_on_standard_error(tmp_path: Path) -> None:
    python = foreign("FRAMEWORKS", "ipykernel, nbclient and the packages of this project")
    failing = 'mrag_eval.gate(first, second, [{"metric": "match", "max_dorp": 1}])'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MRAG_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [python, "-c", KERNEL, str(NOTEBOOK), json.dumps([STRATEGIES, failing, WAIT])],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *cells, own, failed, waited = json.loads(done.stdout)
    assert [forms(outputs) for outputs in cells] == [forms(cell["outputs"]) for cell in code()]
    assert "stderr" not in {form for outputs in cells for form in forms(outputs)}
    assert forms(own)[-1] == "text/html"
    # a warning of the log may stand there, no bar
    assert not [output for output in own if "%|" in output.get("text", "")]
    (error,) = failed
    assert error["traceback"][0].startswith("ConfigError: rules, rules[0]: unknown key 'max_dorp'")
    assert len(error["traceback"]) == 1
    assert [output["data"] for output in waited] == [{"text/plain": ""}]
