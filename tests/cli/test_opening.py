"""The first line of a slow command comes before anything that takes time is imported."""

from __future__ import annotations

import io
import sys

import pytest

from mrag_eval.cli._opening import opening_line, say_what_begins
from tests.terminals import on_terminal

# Reports the first import of anything heavy, and stops there.
CODE = """
import os, sys

class Heavy:
    def find_spec(self, name, path=None, target=None):
        if name in ("datasets", "lm_eval", "numpy", "pydantic", "torch", "typer"):
            os.write(2, b"imports " + name.encode() + b"\\n")
            if name == "lm_eval":
                os._exit(0)

sys.meta_path.insert(0, Heavy())
from mrag_eval.cli import main
main(sys.argv[1:])
"""
RUN = ["run", "--model", "hf", "--model_args", "pretrained=Qwen/Qwen3-1.7B", "--tasks", "xquad_rag_de", "--limit", "5"]
LINE = "mrag-eval run: xquad_rag_de with hf Qwen/Qwen3-1.7B; loading lm-evaluation-harness"


def test_a_run_says_what_it_does_before_the_harness_is_imported() -> None:
    _, terminal = on_terminal([sys.executable, "-c", CODE, *RUN])
    assert terminal.lines[0] == LINE
    assert terminal.lines[1].startswith("imports ")
    assert terminal.lines[-1] == "imports lm_eval"


@pytest.mark.parametrize(
    ("variable", "value", "terminal", "printed"),
    [
        ("RANK", "0", True, True),
        ("RANK", "0", False, False),
        ("RANK", "3", True, False),
        ("LMEVAL_LOG_LEVEL", "info", True, True),
        ("LMEVAL_LOG_LEVEL", "error", True, False),
    ],
)
def test_where_the_line_is_printed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, terminal: bool, printed: bool
) -> None:
    for name in ("RANK", "LOCAL_RANK", "LMEVAL_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    say_what_begins(RUN)
    assert stream.getvalue() == (f"{LINE}\n" if printed else "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (" ".join(RUN), LINE),
        ("--debug run -M hf -t a,b,c,d,e", "mrag-eval run: a, b, c and 2 more with hf; loading lm-evaluation-harness"),
        ("run --tasks a b --model=dummy", "mrag-eval run: a, b with dummy; loading lm-evaluation-harness"),
        (
            "run -t a -M hf -a dtype=float32 pretrained=x/y",
            "mrag-eval run: a with hf x/y; loading lm-evaluation-harness",
        ),
        ("run --config run.yaml", "mrag-eval run: as in run.yaml; loading lm-evaluation-harness"),
        ("retrieve --tasks a -o rows", "mrag-eval retrieve: a; loading lm-evaluation-harness"),
        ("index build docs.jsonl out/index --kind bm25", "mrag-eval index build: docs.jsonl, out/index"),
        ("corpus wikipedia --langs en,ko", "mrag-eval corpus wikipedia: en,ko"),
        ("judge answers out/samples_a.jsonl --panel gpt", "mrag-eval judge answers: out/samples_a.jsonl"),
        ("run --help", None),
        ("run", None),
        ("index info out/index", None),
        ("report out", None),
        ("tasks", None),
        ("", None),
    ],
)
def test_the_line_names_what_the_command_works_on(words: str, line: str | None) -> None:
    assert opening_line(words.split()) == line


def test_no_key_is_in_the_line() -> None:
    words = "run --tasks a --model openai --model_args model=gpt-4o,api_key=planted-key,base_url=http://u:pw@host/v1"
    assert opening_line(words.split()) == "mrag-eval run: a with openai gpt-4o; loading lm-evaluation-harness"
