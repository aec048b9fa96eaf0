"""Choice of the device a model runs on: by name, or ``auto`` for a GPU with enough free memory, else the CPU.

With the harness's own command the evaluated model is loaded before retrieval and may have filled the GPU, so an
embedder that always took the first GPU would end the run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

from mrag_eval.platform._errors import ConfigError

# A child of the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

AUTO = "auto"
DEVICES = "cpu, cuda, cuda:N, mps or auto (a GPU with enough free memory, else the CPU)"
# Weights, about as much again for a batch's activations, and CUDA's own memory per process.
_MARGIN = 2.0
_FIXED = 1 << 30
_GB = 1e9


def known_device(name: str) -> str:
    """Return ``name``; raise ConfigError if it is not a known device."""
    if not re.fullmatch(r"cpu|cuda(:[0-9]+)?|mps|auto", name):
        raise ConfigError(f"device '{name}': expected {DEVICES}", "choose one of them, or leave it out")
    return name


def present_device(name: str) -> str:
    """Return ``name``; raise ConfigError if it is not a known device, or this machine has no such GPU."""
    if not known_device(name).startswith(("cuda", "mps")):
        return name
    import torch

    if name == "mps":
        there = torch.backends.mps.is_available()
    else:
        there = torch.cuda.is_available() and int(name.partition(":")[2] or 0) < torch.cuda.device_count()
    if not there:
        raise ConfigError(f"device '{name}': this machine has no such GPU", "set device to cpu or auto")
    return name


def loading_device(device: str) -> str:
    """Return the device to load a model onto: for ``auto`` the CPU, where its size can be measured."""
    return "cpu" if known_device(device) == AUTO else device


def placed(model: Any, device: str, what: str) -> str:
    """Move a torch ``model`` to its device and return the device's name.

    For ``auto`` the choice and its reason are logged; ``what`` names the model in that line.
    """
    if device == AUTO:
        device = device_with_room(weights_bytes(model.parameters()), what)
    model.to(device)
    return device


def weights_bytes(parameters: Iterable[Any]) -> int:
    """Return the bytes of a torch module's parameters, each tensor counted once."""
    return sum({id(p): p.numel() * p.element_size() for p in parameters}.values())


def device_with_room(weights: int, what: str) -> str:
    """Return ``cuda:N`` with the most free memory if the model fits there, else ``cpu``.

    A model with ``weights`` bytes is assumed to need twice that and one GiB.
    """
    import torch

    needed = int(weights * _MARGIN) + _FIXED
    free: dict[int, int] = {}
    reason = "there is no CUDA device"
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            try:
                free[number] = int(torch.cuda.mem_get_info(number)[0])
            except RuntimeError as error:  # the query itself fails on a GPU that is full or reserved by another process
                reason = f"cuda:{number} cannot be used ({(str(error).splitlines() or ['no reason given'])[0]})"
    if free:
        best = max(free, key=lambda number: (free[number], -number))
        if free[best] >= needed:
            log.info(
                "%s: device auto takes cuda:%d, where %.1f GB are free and about %.1f GB needed",
                what, best, free[best] / _GB, needed / _GB,
            )  # fmt: skip
            return f"cuda:{best}"
        reason = f"about {needed / _GB:.1f} GB are needed and cuda:{best}, the emptiest GPU, has {free[best] / _GB:.1f}"
    log.info("%s: device auto takes the CPU: %s", what, reason)
    return "cpu"
