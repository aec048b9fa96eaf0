"""Devices for models: ``auto`` takes the emptiest GPU if the model fits, and logs its choice."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import NllbSpec, Retrieval, validated
from mrag_eval.platform import ConfigError, loading_device
from mrag_eval.platform import _devices as devices
from mrag_eval.platform._devices import device_with_room, weights_bytes
from tests.worlds.tiny_models import bert_folder

GIB = 1 << 30


class Gpus:
    """``torch.cuda`` of a machine whose GPUs have these numbers of free bytes; None raises."""

    def __init__(self, *free: int | None) -> None:
        self.free = free

    def is_available(self) -> bool:
        return bool(self.free)

    def device_count(self) -> int:
        return len(self.free)

    def mem_get_info(self, number: int) -> tuple[int, int]:
        free = self.free[number]
        if free is None:
            raise RuntimeError("CUDA error: out of memory")
        return free, 80 * GIB


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Any:
    import torch

    caplog.set_level(logging.INFO, "lm_eval")

    def fake(*free: int | None) -> None:
        found = Gpus(*free)
        for name in ("is_available", "device_count", "mem_get_info"):
            monkeypatch.setattr(torch.cuda, name, getattr(found, name))

    return fake


@pytest.mark.parametrize(
    ("free", "device", "why"),
    [
        ((), "cpu", "there is no CUDA device"),
        # 2 GiB of weights need 2 x 2 + 1 = 5 GiB, or 5.4 GB
        ((5 * GIB,), "cuda:0", "takes cuda:0, where 5.4 GB are free and about 5.4 GB needed"),
        ((5 * GIB - 1,), "cpu", "about 5.4 GB are needed and cuda:0, the emptiest GPU, has 5.4"),
        ((2 * GIB, 40 * GIB, 20 * GIB), "cuda:1", "takes cuda:1"),
        ((8 * GIB, 8 * GIB), "cuda:0", "takes cuda:0"),
        ((None, 6 * GIB), "cuda:1", "takes cuda:1"),
        ((None,), "cpu", "cuda:0 cannot be used (CUDA error: out of memory)"),
    ],
)
def test_auto_takes_the_emptiest_gpu_with_room(
    gpus: Any, caplog: pytest.LogCaptureFixture, free: tuple[int | None, ...], device: str, why: str
) -> None:
    gpus(*free)
    assert device_with_room(2 * GIB, "embedder E") == device
    (record,) = caplog.records
    assert record.getMessage().startswith("embedder E: device auto takes ")
    assert why in record.getMessage()


def test_shared_weights_count_once() -> None:
    import torch

    one = torch.nn.Linear(10, 5, bias=False)  # 50 numbers of 4 bytes
    other = torch.nn.Linear(10, 5, bias=False).half()  # 50 of 2
    assert weights_bytes([one.weight, other.weight, one.weight]) == 50 * 4 + 50 * 2


def test_models_are_weighed_on_the_cpu() -> None:
    assert [loading_device(name) for name in ("auto", "cpu", "cuda:1")] == ["cpu", "cpu", "cuda:1"]


@pytest.mark.parametrize("room", [True, False])
def test_every_kind_of_model_follows(
    gpus: Any, room: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    from mrag_eval.retrievers import load_cross_encoder, load_embedder

    gpus(4 * GIB if room else GIB // 2)
    moved: list[Any] = []
    real = torch.nn.Module.to

    def to(module: Any, *args: Any, **kwargs: Any) -> Any:
        if args and str(args[0]).startswith("cuda"):
            moved.append(args[0])
            return module
        return real(module, *args, **kwargs)

    monkeypatch.setattr(torch.nn.Module, "to", to)
    embedder = load_embedder(str(bert_folder(tmp_path / "e", "BertModel")), device="auto")
    assert embedder.embed_queries(["old bridge"]).shape == (1, 16)
    load_cross_encoder(str(bert_folder(tmp_path / "r")), device="auto")
    assert moved == (["cuda:0", "cuda:0"] if room else [])
    said = [r.getMessage() for r in caplog.records if "device auto" in r.getMessage()]
    assert [line.split(" ")[0] for line in said] == ["embedder", "reranker"]
    assert all(("takes cuda:0" in line) == room for line in said)


def test_a_device_that_is_named_is_taken_without_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrag_eval.retrievers import load_embedder

    monkeypatch.setattr(devices, "device_with_room", lambda *_: pytest.fail("nobody asked for auto"))
    load_embedder(str(bert_folder(tmp_path / "e", "BertModel")), device="cpu")


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:3", "mps", "auto"])
def test_devices_of_a_block(name: str) -> None:
    asked = {"mode": "all", "device": name, "rerank": {"device": name}}
    block = validated(Retrieval, asked, "retrieval")
    assert (block.device, block.rerank and block.rerank.device) == (name, name)
    assert NllbSpec(backend="nllb", device=name).device == name
    assert Retrieval().device == "cpu"


def test_a_command_with_another_device_says_which_there_are(tmp_path: Path) -> None:
    from mrag_eval.retrievers import load_embedder

    with pytest.raises(ConfigError, match="device 'gpu': expected cpu, cuda, cuda:N, mps or auto"):
        load_embedder(str(bert_folder(tmp_path / "e", "BertModel")), device="gpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", ""])
def test_other_names_are_refused(name: str) -> None:
    for block, where in (({"device": name}, "retrieval.device"), ({"rerank": {"device": name}}, "rerank.device")):
        with pytest.raises(ConfigError, match=rf"{where}: expected cpu, cuda, cuda:N, mps or auto"):
            validated(Retrieval, {"mode": "all", **block}, "retrieval")
