"""The model that knows the answers: right in every form that a prompt requests, and a realistic ceiling."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.models.harness._oracle_answer import OracleAnswerLM, oracle_reply
from mrag_eval.platform import ConfigError
from tests.programs import Programs
from tests.task.test_hook import run
from tests.worlds.xrag import rows, write

TASKS = Path(__file__).resolve().parents[2] / "tasks"


def test_every_answer_is_right(tasks: Path) -> None:
    metrics = ["char3gram_recall", "match", "exact_match", "f1", "correct_language"]
    results = run(tasks, lm=OracleAnswerLM(), metadata={"metrics": metrics, "retrieval.mode": "no_ir"})
    scores = results["configs"]["small"]["scores"]
    for name in metrics[:4]:
        assert scores["metrics"][name]["value"] == 1.0
        assert scores["metrics"][name]["n"] == 15
    # every answer of this set is too short to identify its language: a ceiling for every model
    assert sum(scores["unscored"]["correct_language"].values()) == 15


def test_answers_are_read_from_the_tag_that_the_prompt_requests(tmp_path: Path) -> None:
    folder = write(tmp_path, rows())
    metadata = {"data": {"path": str(folder)}}
    manager = TaskManager(include_path=str(TASKS / "xrag"), include_defaults=False, metadata=metadata)
    results = lm_eval.simple_evaluate(
        model=OracleAnswerLM(),
        tasks=["xrag_mono_es"],
        task_manager=manager,
        apply_chat_template=True,
        bootstrap_iters=100,
    )
    leaf = results["results"]["xrag_mono_es"]
    assert (leaf["answer_tag,none"], leaf["f1,none"]) == (1.0, 1.0)


def test_choices_are_letters_and_rows_without_a_reference_are_empty() -> None:
    assert oracle_reply({"gold_choice": 2, "choices": ["a", "b", "c"], "answers": ["c"]}, "") == "Answer: C"
    assert oracle_reply({"gold_choice": 0, "answers": []}, "") == "Answer: A"
    assert oracle_reply({"answers": []}, "") == ""


def test_arguments_and_likelihoods_are_refused() -> None:
    OracleAnswerLM(batch_size=1, device="cpu")
    with pytest.raises(ConfigError, match="no argument 'pretrained'"):
        OracleAnswerLM(pretrained="x")
    with pytest.raises(ConfigError, match="no likelihoods"):
        OracleAnswerLM().loglikelihood([])
    with pytest.raises(ConfigError, match="no likelihoods"):
        OracleAnswerLM().loglikelihood_rolling([])


@pytest.mark.slow
def test_the_command_knows_it_by_name(tasks: Path, programs: Programs) -> None:
    command = [programs / "mrag-eval", "run", "--model", "oracle_answer", "--include_path", str(tasks)]
    command += ["--tasks", "small", "--metadata", "retrieval.mode=no_ir", "--output_path", str(tasks / "out")]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (path,) = (tasks / "out").rglob("results_*.json")
    assert json.loads(path.read_text("utf-8"))["results"]["small"]["char3gram_recall,none"] == 1.0


@pytest.mark.slow
def test_the_models_of_the_harness_stay_known() -> None:
    """The harness registers its own models only while its registry is empty."""
    code = (
        "import mrag_eval.models.harness._oracle_answer; from lm_eval.api.registry import get_model; "
        "print(get_model('dummy').__name__, get_model('oracle_answer').__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["DummyLM", "OracleAnswerLM"]
