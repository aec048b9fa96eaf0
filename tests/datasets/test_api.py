"""The interface of the loaders: validation of the ``data:`` block, caching, import cost, the hub's failures."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from mrag_eval.datasets import LOADERS, load_benchmark, validate_data
from mrag_eval.platform import ConfigError, DataError
from tests.worlds.data_blocks import NEEDED


def test_importing_loads_no_heavy_library() -> None:
    code = (
        "import sys; from mrag_eval.datasets import *; "
        "print(sorted({'lm_eval', 'datasets', 'pyarrow', 'torch', 'huggingface_hub', 'faiss'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_benchmark_is_loaded_without_the_others() -> None:
    code = (
        "import sys; from mrag_eval.datasets import LOADERS; LOADERS['demo']; loaded = {*sys.modules}; "
        "print(*(name for name in LOADERS if f'mrag_eval.datasets._{name}' in loaded))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # whose rows are read as those of jsonl
    assert out.stdout.split() == ["demo", "jsonl"]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({}, "'benchmark' is missing"),
        ({"benchmark": "xqad"}, "did you mean 'xquad'"),
        ({"benchmark": "click", "categroy": "law"}, "unknown key 'categroy'; did you mean 'category'"),
        ({"benchmark": "click", "category": "laws"}, "(got 'laws'); did you mean 'law'"),
        ({"benchmark": "click", "category": "food"}, "category: input should be 'society', 'tradition'"),
        ({"benchmark": "click", "seed": -1}, "seed: input should be greater than or equal to 0 (got -1)"),
        ({"benchmark": "xquad", "languages": ["de", "fr"]}, "XQuAD has no language 'fr'"),
        ({"benchmark": "xquad", "languages": ["de", "de"]}, "a language is named twice"),
        ({"benchmark": "xquad", "languages": []}, "at least one language"),
        ({"benchmark": "xrag", "setting": "multi", "language": "en"}, "language 'en' requires setting 'mono'"),
        (
            {"benchmark": "xrag", "setting": "both", "language": "de"},
            "setting: input should be 'mono' or 'multi' (got 'both')",
        ),
        ({"benchmark": "blend", "source": "hub"}, "source: input should be 'mcq' or 'annotations' (got 'hub')"),
    ],
)
def test_a_wrong_block_names_the_key_and_its_allowed_values(block: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_data(block)
    assert expected in str(caught.value)
    assert "\n" not in caught.value.message


def test_equal_blocks_are_loaded_once(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "1", "query": "Wo?", "lang": "de"}\n', encoding="utf-8")
    block = {"benchmark": "jsonl", "path": str(path)}
    assert load_benchmark(block) is load_benchmark(dict(reversed(list(block.items()))))
    assert load_benchmark({**block, "language": "de"}) is not load_benchmark(block)


def test_a_relative_path_is_another_file_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "q.jsonl").write_text(f'{{"id": "{name}", "query": "?!", "lang": "en"}}\n', encoding="utf-8")
    found = []
    for name in ("a", "b"):
        monkeypatch.chdir(tmp_path / name)
        found.append(load_benchmark({"benchmark": "jsonl", "path": "q.jsonl"}).docs[0].id)
    assert found == ["a", "b"]


@pytest.mark.parametrize(
    "block",
    [
        {"benchmark": "xquad"},
        {"benchmark": "click"},
        {"benchmark": "blend"},
        {"benchmark": "xrag", "setting": "mono", "language": "de"},
        {"benchmark": "mkqa", "language": "de"},
        {"benchmark": "tydiqa"},
    ],
)
def test_a_hub_that_does_not_answer_gives_the_next_step(block: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets
    import huggingface_hub

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host\nsecond line")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    with pytest.raises(DataError) as caught:
        load_benchmark({**block, "seed": 987})
    assert "ConnectionError: no route to host" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.next_step is not None
    assert "--metadata data.path=" in caught.value.next_step


@pytest.mark.parametrize("name", sorted(LOADERS))
def test_a_missing_path_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        load_benchmark({"benchmark": name, "path": str(tmp_path / "nowhere"), **NEEDED.get(name, {})})


@pytest.mark.parametrize("name", ["xquad", "click", "blend"])
def test_rows_and_provenance_can_be_written_as_json(name: str, test_data: Path) -> None:
    loaded = load_benchmark({"benchmark": name, "path": str(test_data / name)})
    assert len({doc.id for doc in loaded.docs}) == len(loaded.docs)
    assert json.loads(json.dumps([asdict(doc) for doc in loaded.docs[:20]]))
    assert json.loads(json.dumps(loaded.source))["place"]["sha256"]
    assert loaded.notes
