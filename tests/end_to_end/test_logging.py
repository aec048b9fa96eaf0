"""W&B, trackio and the hub: lm-eval's own flags log our tasks to them; and sample files stay small.

trackio is replaced: the calls of the harness (``init``, ``config.update``, ``log``, ``Trace``, ``finish``) are
recorded. The releases that fit these requirements have no ``Trace``, or need a different gradio.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from lm_eval.loggers import EvaluationTracker

from mrag_eval.cli import main
from tests.worlds.small import BASE, TOPICS, write_task, write_world

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [document for versions in TOPICS.values() for document, _, _ in versions.values()]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Two tasks in a group: one that searches, and one with a metric that some rows have no value for."""
    folder = write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
    retrieval = {"mode": "all", "k": 2, "depth": 5, "kind": "bm25"}
    write_task(folder, "mine_rag", **{**BASE, "metrics": ["char3gram_recall", "hit@5"]}, data=data, retrieval=retrieval)
    write_task(folder, "mine_plain", **{**BASE, "metrics": ["char3gram_recall", "correct_language"]}, data=data)
    (folder / "mine.yaml").write_text(
        "group: mine\ntask: [mine_rag, mine_plain]\nmetadata: {version: 1.0}\n"
        "aggregate_metric_list:\n  - {metric: char3gram_recall, aggregation: mean, weight_by_size: false}\n",
        "utf-8",
    )
    return folder


def command(world: Path, *more: str) -> list[str]:
    return [
        *("run", "--model", "oracle_answer", "--tasks", "mine", "--include_path", str(world), "--log_samples"),
        *("--output_path", str(world / "out"), *more),
    ]


class Trackio(ModuleType):
    """The functions of trackio that the harness calls, with a record of their calls."""

    def __init__(self) -> None:
        super().__init__("trackio")
        self.started: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.logged: list[dict[str, Any]] = []
        self.finished = False
        self.config = SimpleNamespace(update=self.settings.update)

    def init(self, **settings: Any) -> None:
        self.started = settings

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        json.dumps(values)
        self.logged.append(values)

    def Trace(self, messages: list[dict[str, str]], metadata: dict[str, Any]) -> dict[str, Any]:
        return {"messages": messages, "metadata": metadata}

    def finish(self) -> None:
        self.finished = True


class Hub:
    """Record the calls of the hub's client."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        CALLS.append(("client", {"token": token}))

    def __getattr__(self, name: str) -> Any:
        def call(**what: Any) -> None:
            CALLS.append((name, what))

        return call


CALLS: list[tuple[str, dict[str, Any]]] = []


@pytest.mark.slow
def test_trackio_and_the_hub_take_a_run_of_ours(
    world: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trackio = Trackio()
    CALLS.clear()
    monkeypatch.setitem(sys.modules, "trackio", trackio)
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    # the dataset card is up to the harness, which reads back the content of the hub
    monkeypatch.setattr(EvaluationTracker, "recreate_metadata_card", lambda self: CALLS.append(("card", {})))
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_real_token")
    hub = "hub_results_org=me,details_repo_name=rows,results_repo_name=scores"
    with pytest.raises(SystemExit) as done:
        main(
            command(
                world,
                *("--trackio_args", "project=rag,name=first"),
                *("--hf_hub_log_args", f"{hub},push_results_to_hub=True,push_samples_to_hub=True"),
            )
        )
    assert done.value.code == 0
    assert not [r.getMessage() for r in caplog.records if "failed" in r.getMessage().lower()]

    assert trackio.started == {"project": "rag", "name": "first"}
    assert trackio.finished
    blocks = trackio.settings["task_configs"]["mine_rag"]
    assert blocks["measurement"]["setting"]["retrieval"]["depth"] == 5
    assert blocks["measurement"]["task"] == blocks["task"]
    scores = trackio.logged[0]
    assert scores["mine/char3gram_recall"] == scores["mine_rag/char3gram_recall"] == 1.0
    assert scores["mine_rag/unscored"] == 0
    traces = [values["mine_rag/sample"] for values in trackio.logged if "mine_rag/sample" in values]
    assert len(traces) == 15
    assert "lighthouse" in traces[0]["messages"][0]["content"]
    assert traces[0]["messages"][1]["content"] == "1841"
    assert traces[0]["metadata"]["hit@5"] in (0.0, 1.0)

    made = {what["repo_id"] for name, what in CALLS if name == "create_repo"}
    assert made == {"me/rows-private", "me/scores-private"}
    (sent,) = (what for name, what in CALLS if name == "upload_file")
    assert (sent["repo_id"], sent["repo_type"]) == ("me/scores-private", "dataset")
    assert json.loads(Path(sent["path_or_fileobj"]).read_text("utf-8"))["configs"]["mine_rag"]["scores"]["rows"] == 15
    folders = [what for name, what in CALLS if name == "upload_folder"]
    assert {what["repo_id"] for what in folders} == {"me/rows-private"}
    assert len(folders) == 2


@pytest.mark.slow
def test_wandb_takes_a_run_of_ours(world: Path) -> None:
    pytest.importorskip("wandb", reason="wandb (60 MB with its dependencies) is not in any extra: pip install wandb")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mrag_eval.cli",
            *command(world, "--wandb_args", f"mode=offline,project=rag,dir={world}"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Logging to W&B failed" not in done.stderr
    (home,) = world.glob("wandb/offline-run-*")
    assert list(home.glob("*.wandb"))
    tables = {path.name.rpartition("_results_")[0]: path for path in home.rglob("*.table.json")}
    assert {"eval", "group_eval", "mine_rag_eval", "mine_plain_eval"} <= set(tables)
    scores = json.loads(tables["eval"].read_text("utf-8"))
    found = {(row[0], row[4]) for row in scores["data"]}
    assert {("mine_rag", "hit@5"), ("mine_rag", "char3gram_recall"), ("mine_plain", "char3gram_recall")} <= found
    rows = json.loads(tables["mine_rag_eval"].read_text("utf-8"))
    assert len(rows["data"]) == 15


def test_a_sample_file_contains_every_document_once_besides_the_prompt(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Up to five documents are ranked and two shown: of the others a sample holds ids and scores, but no text."""
    with pytest.raises(SystemExit) as done:
        main(command(world))
    assert done.value.code == 0
    (path,) = (world / "out").rglob("samples_mine_rag_*.jsonl")
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) == 15
    not_shown = 0
    for line in lines:
        sample = json.loads(line)
        shown = [passage["text"] for passage in sample["doc"]["passages"]]
        assert 1 <= len(shown) <= 2
        not_shown += len(sample["doc"]["ranking"]["ids"]) - len(shown)
        for text in DOCUMENTS:
            assert line.count(text) == (2 if text in shown else 0)
        prompt = sample["arguments"]["gen_args_0"]["arg_0"]
        rest = json.dumps({k: v for k, v in sample.items() if k not in ("arguments", "doc")}, ensure_ascii=False)
        assert all(text in prompt and text not in rest for text in shown)
    assert not_shown > 0
