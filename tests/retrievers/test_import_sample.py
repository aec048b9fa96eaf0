"""The sample that an import draws while passages pass by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.imports._drawn import PassageSample

PASSAGES = [Passage(f"p{n}", "en", f"text {n}\n", f"title {n}", f"d{n}") for n in range(200)]
VECTORS = np.random.default_rng(0).standard_normal((200, 4)).astype(np.float32)


def _passing(sample: PassageSample, start: int, end: int, block: int) -> PassageSample:
    for first in range(start, end, block):
        last = min(first + block, end)
        sample.add(PASSAGES[first:last], VECTORS[first:last])
    return sample


def _numbers(sample: PassageSample) -> list[int]:
    assert all(one.passage == PASSAGES[one.number] for one in sample.drawn)
    assert all((one.vector == VECTORS[one.number]).all() for one in sample.drawn)
    return [one.number for one in sample.drawn]


def test_it_holds_the_smallest_numbers_of_one_generator(tmp_path: Path) -> None:
    keys = np.random.Generator(np.random.PCG64(5)).random(200)
    sample = _passing(PassageSample(tmp_path / "drawn", 0, 12, 5), 0, 200, 17)
    assert _numbers(sample) == sorted(np.argsort(keys)[:12].tolist())


@pytest.mark.parametrize("done", [7, 63, 140, 196])
@pytest.mark.parametrize("lost", ["nothing", "the state of a block", "half a line"])
def test_it_continues_after_an_interruption(tmp_path: Path, done: int, lost: str) -> None:
    whole = _numbers(_passing(PassageSample(tmp_path / "whole", 0, 12, 5), 0, 200, 7))
    path = tmp_path / "drawn"
    _passing(PassageSample(path, 0, 12, 5), 0, done, 7)
    if lost == "the state of a block":
        # the block was noted, and killed before it was written
        _passing(PassageSample(path, done, 12, 5), done, min(done + 7, 200), 7)
    elif lost == "half a line":
        path.write_bytes(path.read_bytes() + b'{"key": 0.0, "num')
    assert _numbers(_passing(PassageSample(path, done, 12, 5), done, 200, 7)) == whole


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "drawn").write_text("[]\n")
    for name in ("drawn", "gone"):
        with pytest.raises(CorpusError, match=f"{name} is missing or damaged"):
            PassageSample(tmp_path / name, 3)
