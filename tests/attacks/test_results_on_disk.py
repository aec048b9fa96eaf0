"""Results of a run: on disk and complete, or an error with exit code 1 and the scores on the screen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrag_eval import evaluate
from mrag_eval.cli import main
from mrag_eval.harness._command import exit_with_1_at_the_end
from mrag_eval.platform import ConfigError, RunFiles, UnwrittenError, replaced
from tests.worlds.small import BASE, ScriptedLM, write_task

LONE = "1841 \ud83d"


@pytest.fixture
def bare(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the task ``bare``, which retrieves nothing; return its folder."""
    monkeypatch.setenv("MRAG_CACHE", str(world / "cache"))
    return bare_task(world, "bare")


def bare_task(folder: Path, name: str) -> Path:
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
    file = write_task(folder, "bare", **{**BASE, "metrics": ["char3gram_recall"]}, data=data)
    file.write_text(file.read_text("utf-8").replace("task: bare", f"task: {json.dumps(name)}"), "utf-8")
    return folder


def flags(folder: Path, output: Path | str, task: str = "bare") -> list[str]:
    flags = ["--model", "dummy", "--tasks", task, "--include_path", str(folder), "--log_samples"]
    return [*flags, "--limit", "10", "--output_path", str(output)]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=300)


def rows_of(folder: Path) -> list[dict[str, object]]:
    (samples,) = folder.rglob("samples_*.jsonl")
    return [json.loads(line) for line in samples.read_text("utf-8").splitlines()]


# --------------------------------------------------------- before anything is generated


@pytest.fixture
def _nothing_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model answers")

    monkeypatch.setattr("lm_eval.models.dummy.DummyLM.generate_until", refuse)


@pytest.mark.usefixtures("_nothing_is_generated")
@pytest.mark.parametrize("place", ["file/out", "/proc/out", "file/out.json"])
def test_an_output_path_that_takes_no_files_ends_the_run_before_it_begins(
    bare: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (bare / "file").write_text("", "utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["run", *flags(bare, bare / place)])
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert f"mrag-eval: --output_path {bare / place}: nothing can be written there" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("place", ["file/out", "/proc/out"])
def test_the_python_interface_refuses_such_a_path_too(bare: Path, place: str) -> None:
    (bare / "file").write_text("", "utf-8")
    with pytest.raises(ConfigError, match="nothing can be written there"):
        evaluate(ScriptedLM(pytest.fail), "bare", include=bare, output=bare / place)


@pytest.mark.parametrize("name", ["my/task", "../../evil", "a\nb", "x" * 300])
def test_a_task_whose_name_cannot_be_a_file_name_is_refused(world: Path, name: str) -> None:
    bare_task(world, name)
    model = ScriptedLM(pytest.fail)
    with pytest.raises(ConfigError, match="cannot be part of a file's name"):
        evaluate(model, str(world / "bare.yaml"), include=world, output=world / "out", apply_chat_template=False)
    assert model.prompts == []


def stock(folder: Path, model: ScriptedLM, output: Path) -> None:
    """Do as the harness's own command does."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker

    from mrag_eval.harness import task_manager

    tracker = EvaluationTracker(output_path=str(output))
    results = simple_evaluate(
        model,
        tasks=[str(folder / "bare.yaml")],
        task_manager=task_manager([str(folder)]),
        evaluation_tracker=tracker,
        log_samples=True,
        bootstrap_iters=0,
    )
    assert results is not None
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])


def test_the_stock_command_refuses_the_same(world: Path) -> None:
    model = ScriptedLM(pytest.fail)
    bare_task(world, "my/task")
    with pytest.raises(ConfigError, match="cannot be part of a file's name"):
        stock(world, model, world / "out")
    bare_task(world, "bare")
    (world / "file").write_text("", "utf-8")
    with pytest.raises(ConfigError, match="nothing can be written there"):
        stock(world, model, world / "file" / "out")
    assert model.prompts == []


# -------------------------------------------------------------------- after generation


def test_half_a_surrogate_pair_in_a_reply_keeps_every_row(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluate(
        ScriptedLM(lambda prompt: LONE), "bare", include=bare, output=bare / "out", apply_chat_template=False
    )
    assert [row["filtered_resps"] for row in rows_of(bare / "out")] == [[LONE]] * 15
    assert list(found.samples.reply) == ["1841 \\ud83d"] * 15
    for command in (["report", str(bare / "out")], ["report", str(bare / "out"), "-o", str(bare / "page.html")]):
        with pytest.raises(SystemExit) as caught:
            main(command)
        assert caught.value.code == 0, capsys.readouterr().err


def test_a_disk_that_fills_up_is_an_error_and_the_rows_are_kept_elsewhere(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file takes the place of the folder while the model answers."""
    monkeypatch.setenv("TMPDIR", str(bare))
    monkeypatch.setattr("tempfile.tempdir", None)

    def answer(prompt: str) -> str:
        if not (bare / "out").is_file():
            shutil.rmtree(bare / "out", ignore_errors=True)
            (bare / "out").write_text("", "utf-8")
        return "1841"

    with pytest.raises(UnwrittenError, match=r"could not be written to .*: they are in") as caught:
        evaluate(ScriptedLM(answer), "bare", include=bare, output=bare / "out", apply_chat_template=False)
    assert caught.value.exit_code == 1
    assert "char3gram_recall" in capsys.readouterr().out
    (rescue,) = bare.glob("mrag_eval_results_*")
    assert len(rows_of(rescue)) == 15
    assert len(list(rescue.glob("results_*.json"))) == 1


def test_files_are_whole_or_missing(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)

    def rows() -> Iterator[dict[str, int]]:
        yield {"row": 1}
        raise OSError(28, "No space left on device")

    class Rows(list):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[dict[str, int]]:
            return rows()

    with pytest.raises(UnwrittenError, match="No space left on device"):
        files.write({"configs": {}}, {"task": Rows()})
    assert list(tmp_path.iterdir()) == []
    assert files.missing({"task": 0}) == ["task"]


_FULL = """
set -e
mount -t tmpfs -o size=24k tmpfs "$1"
shift
"$@"
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounts a small disk")
@pytest.mark.parametrize("program", ["mrag-eval", "lm_eval"])
def test_a_full_disk_is_no_success(bare: Path, program: str) -> None:
    out = bare / "out"
    out.mkdir()
    module = ["mrag_eval.cli"] if program == "mrag-eval" else ["lm_eval"]
    done = run(
        "unshare", "--mount", "sh", "-c", _FULL, "sh", str(out),
        sys.executable, "-m", *module, "run", *flags(bare, out),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
    assert "they are in /" in done.stderr
    assert "char3gram_recall" in done.stdout
    rescued = Path(done.stderr.split("they are in ")[1].split()[0])
    assert list(rescued.iterdir())
    shutil.rmtree(rescued)


def test_the_stock_command_gets_the_rows_that_its_tracker_drops(bare: Path) -> None:
    """One reply holds half a surrogate pair, at which the harness stops writing."""
    replies = iter(["1841", LONE])
    stock(bare, ScriptedLM(lambda prompt: next(replies, "1841")), bare / "out")
    assert len(rows_of(bare / "out")) == 15
    files = sorted(path.name.split("_")[0] for path in (bare / "out").rglob("*") if path.is_file())
    assert files == ["results", "samples"]


def test_the_stock_command_exits_with_1_if_nothing_can_be_written(
    bare: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ends: list[object] = []
    monkeypatch.setattr("atexit.register", ends.append)
    exit_with_1_at_the_end.cache_clear()

    def answer(prompt: str) -> str:
        if not (bare / "out").is_file():
            shutil.rmtree(bare / "out", ignore_errors=True)
            (bare / "out").write_text("", "utf-8")
        return "1841"

    stock(bare, ScriptedLM(answer), bare / "out")
    assert "results could not be written to" in caplog.text
    assert [getattr(end, "__name__", "") for end in ends] == ["_exit_with_1"]
    exit_with_1_at_the_end.cache_clear()


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Of the same task and of the results, whatever the time in their names; what another process writes stays."""
    stamp = "2026-01-01T00-00-00.000001"
    left = [tmp_path / f"{name}_{stamp}.json{end}.x1y2.part" for name, end in (("results", ""), ("samples_mine", "l"))]
    other = tmp_path / f"samples_other_{stamp}.jsonl.x1y2.part"
    for path in (*left, other):
        path.write_text("{", "utf-8")
    with replaced(tmp_path / f"results_{stamp}8.json") as living:
        living.write_text("{}", "utf-8")
        RunFiles(tmp_path).write({"a": 1}, {"mine": [{"doc_id": 0}]})
        assert living.exists()
    assert not [path for path in left if path.exists()]
    assert other.exists()
    RunFiles(tmp_path).write({"a": 1}, {"other": [{"doc_id": 0}]})
    assert not [*tmp_path.glob("*.part")]
