"""Two benchmarks in one command, each on its own files, by ``mrag-eval``, by ``lm_eval``, and by the config file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import tasks_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_TASKS = "xquad_rag_de,click_norag"
_MREVAL = "from mrag_eval.cli import main; main()"
# the harness's own command knows neither our folder of tasks here nor our types of models
_STOCK = f"""import sys
from lm_eval.__main__ import cli_evaluate
sys.argv += ["--include_path", {str(tasks_folder())!r}]
cli_evaluate()"""


def _run(program: str, here: Path, *metadata: str) -> Mapping[str, Any]:
    """Return ``configs`` of the results of three rows a task."""
    model = "dummy" if program == _STOCK else "oracle_answer"
    flags = ["run", "--model", model, "--tasks", _TASKS, "--limit", "3", "--output_path", "out"]
    given = [word for settings in metadata for word in ("--metadata", settings)]
    done = subprocess.run(
        [sys.executable, "-c", program, *flags, *given], cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = here.rglob("results_*.json")
    found: Mapping[str, Any] = json.loads(path.read_text("utf-8"))["configs"]
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MRAG_CONFIG", raising=False)
    return tmp_path


@pytest.mark.parametrize("program", [_MREVAL, _STOCK], ids=["mrag-eval", "lm_eval"])
def test_prefixes_give_each_benchmark_its_files(program: str, here: Path, test_data: Path) -> None:
    paths = f"xquad.data.path={test_data / 'xquad'},click.data.path={test_data / 'click' / 'Culture'}"
    found = _run(program, here, f"{paths},xquad_rag_de.retrieval.k=2", '{"xquad": {"retrieval": {"kind": "bm25"}}}')
    german, korean = found["xquad_rag_de"], found["click_norag"]
    assert german["measurement"]["setting"]["data"]["path"] == str(test_data / "xquad")
    assert korean["measurement"]["setting"]["data"]["path"] == str(test_data / "click" / "Culture")
    assert (
        german["measurement"]["setting"]["retrieval"]["k"],
        german["measurement"]["setting"]["retrieval"]["kind"],
    ) == (2, "bm25")
    assert sorted(german["provenance"]["overrides"]) == ["data.path", "retrieval.k", "retrieval.kind"]
    assert korean["provenance"]["overrides"] == ["data.path"]


def test_the_config_file_gives_each_benchmark_its_files(here: Path, test_data: Path) -> None:
    blocks = {"xquad": {"path": str(test_data / "xquad")}, "click": {"path": str(test_data / "click" / "Culture")}}
    (here / "mrag.yaml").write_text(json.dumps({"data": blocks}), "utf-8")
    found = _run(_MREVAL, here, "xquad.retrieval.kind=bm25")
    for task, name in (("xquad_rag_de", "xquad"), ("click_norag", "click")):
        assert found[task]["measurement"]["data"]["source"]["place"]["path"] == blocks[name]["path"]
        assert found[task]["provenance"]["config_file"] == ["data.path"]
    assert found["xquad_rag_de"]["provenance"]["overrides"] == ["retrieval.kind"]
