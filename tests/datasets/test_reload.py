"""Rows of finished runs, read again: where they lie, and why not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import identity_of, load_benchmark, reload
from tests.worlds import mkqa


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "mrag.yaml"
    file.write_text("{}", encoding="utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(file))
    return file


def test_rows_are_read_at_their_recorded_path(test_data: Path) -> None:
    data = {"benchmark": "xquad", "path": str(test_data / "xquad"), "question_language": "de"}
    found = reload(data)
    assert found.reason == ""
    assert found.benchmark is not None
    assert found.benchmark.docs == load_benchmark(data).docs
    assert identity_of(found.benchmark.source).status == "official"


def test_rows_of_another_machine_are_read_where_the_config_file_has_them(test_data: Path, config: Path) -> None:
    data = {"benchmark": "click", "path": "/of/another/machine", "category": "law"}
    assert reload(data).benchmark is None
    config.write_text(f"data:\n  click:\n    path: {test_data / 'click'}\n", encoding="utf-8")
    found = reload({**data, "seed": 1}).benchmark
    assert found is not None
    assert {doc.extra["category"] for doc in found.docs} == {"law"}


def test_rows_that_are_nowhere_are_not_downloaded(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets.config
    import huggingface_hub.constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for module in (datasets.config, huggingface_hub.constants):
        monkeypatch.setattr(module, "HF_HUB_OFFLINE", False)
    asked = []

    def load_dataset(*_: Any, **__: Any) -> None:
        asked.append((datasets.config.HF_HUB_OFFLINE, huggingface_hub.constants.is_offline_mode()))
        raise ConnectionError("offline")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    found = reload({"benchmark": "xquad", "path": "/of/another/machine"})
    assert found.benchmark is None
    assert "the Hugging Face hub did not give google/xquad" in found.reason
    assert asked == [(True, True)]
    # as it was before
    assert (os.environ["HF_HUB_OFFLINE"], datasets.config.HF_HUB_OFFLINE) == ("0", False)
    travel = reload({"benchmark": "xlcost", "corpus": "none", "seed": 9})
    assert "not in the cache, and HF_HUB_OFFLINE is set" in travel.reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"benchmark": "nowhere"}, "unknown benchmark 'nowhere'"),
        ({"benchmark": "click", "catgory": "law"}, "catgory"),
        (
            {"benchmark": "xquad", "assignment": "/gone/draw.json"},
            "data.assignment=/gone/draw.json is not on this machine",
        ),
        ({"benchmark": "jsonl", "path": "/gone/rows.jsonl"}, "data.path=/gone/rows.jsonl is not on this machine"),
        ({"benchmark": "xlcost", "corpus": "/gone/laws.jsonl"}, "data.corpus=/gone/laws.jsonl is not on this machine"),
    ],
    ids=str,
)
def test_the_reason_is_given_in_a_line(data: dict[str, Any], reason: str, config: Path) -> None:
    found = reload(data)
    assert found.benchmark is None
    assert reason in found.reason
    assert "\n" not in found.reason


def test_no_text_of_a_file_that_results_name_is_shown(tmp_path: Path, config: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"password": "correct horse battery"}\n', encoding="utf-8")
    found = reload({"benchmark": "jsonl", "path": str(secret)})
    assert found.reason == f"{secret}: no rows of this block"


def test_one_source_may_lie_elsewhere_than_the_other(tmp_path: Path, config: Path) -> None:
    folder = mkqa.write_all(tmp_path / "here")
    data = {"benchmark": "mkqa", "language": "fr", "path": str(folder / "mkqa.jsonl")}
    config.write_text(f"data:\n  mkqa:\n    kilt: {folder / 'nq-train-kilt.jsonl'}\n", encoding="utf-8")
    found = reload({**data, "kilt": "/gone/kilt.jsonl"}).benchmark
    assert found is not None
    assert len(found.docs) == 10
    shutil.rmtree(folder)
