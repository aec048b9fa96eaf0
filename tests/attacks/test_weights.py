"""Folders of models whose weights are missing, too many, of another size or no weights: every loader refuses each.

A model with random numbers in the place of weights gives scores that look like scores.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Grounded
from mrag_eval.metrics import FastTextDetector
from mrag_eval.metrics._language_detection import bundled_model
from mrag_eval.models import load_checker
from mrag_eval.models.translate._backend import Text
from mrag_eval.models.translate._nllb import NllbBackend
from mrag_eval.platform import ConfigError
from mrag_eval.retrievers import load_bge_m3, load_cross_encoder, load_embedder, load_sparse_encoder
from tests.worlds.classifiers import ENTAILMENT, classifier_folder
from tests.worlds.tiny_families import reranker_folder
from tests.worlds.tiny_models import bert_folder

pytest.importorskip("sentence_transformers")

TEXTS = ["the old bridge of olm", "rice and tea"]
LAYER = "encoder.layer.1.output.dense.weight"


def _bge_m3(folder: Path) -> Path:
    import torch

    bert_folder(folder, "BertModel")
    for file, size in (("sparse_linear.pt", 1), ("colbert_linear.pt", 16)):
        torch.save(torch.nn.Linear(16, size).state_dict(), folder / file)
    return folder


def _translator(folder: Path) -> Path:
    import transformers

    tokenizer = transformers.NllbTokenizer(vocab={letter: i for i, letter in enumerate("<>abc ▁.")}, merges=[])
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _translate(folder: Path) -> None:
    list(NllbBackend(str(folder)).translate([Text("abc", "de", "en")]))


# How a folder is written, how it is loaded, and a key of its second layer.
LOADERS: Mapping[str, tuple[Callable[[Path], Path], Callable[[Path], Any], str]] = {
    "tokens": (
        lambda folder: classifier_folder(folder, TEXTS),
        lambda folder: load_checker(Grounded(model=str(folder))),
        f"bert.{LAYER}",
    ),
    "entailment": (
        lambda folder: classifier_folder(folder, TEXTS, "BertForSequenceClassification", labels=ENTAILMENT),
        lambda folder: load_checker(Grounded(model=str(folder))),
        f"bert.{LAYER}",
    ),
    "cross-encoder": (bert_folder, lambda folder: load_cross_encoder(str(folder)), f"bert.{LAYER}"),
    "prompted": (
        lambda folder: reranker_folder(folder, "qwen3"),
        lambda folder: load_cross_encoder(str(folder)),
        "model.layers.1.mlp.up_proj.weight",
    ),
    "bge-m3": (_bge_m3, lambda folder: load_bge_m3(str(folder)), LAYER),
    "embedder": (lambda folder: bert_folder(folder, "BertModel"), lambda folder: load_embedder(str(folder)), LAYER),
    "sparse": (
        lambda folder: bert_folder(folder, "BertForMaskedLM"),
        lambda folder: load_sparse_encoder(str(folder)),
        f"bert.{LAYER}",
    ),
    "translator": (_translator, _translate, "model.encoder.layers.1.fc1.weight"),
}


def _weights(folder: Path, key: str, change: Callable[[dict[str, Any], str], None]) -> None:
    from safetensors.torch import load_file, save_file

    held = load_file(folder / "model.safetensors")
    change(held, key)
    save_file(held, folder / "model.safetensors", {"format": "pt"})


def _another_size(held: dict[str, Any], key: str) -> None:
    held[key] = held[key][:-1].clone()


def _one_layer_less(folder: Path, _: str) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    names = {"num_hidden_layers", "encoder_layers"} & config.keys()
    path.write_text(json.dumps({**config, **dict.fromkeys(names, 1), "layer_types": None}))


def _pickled(content: bytes) -> Callable[[Path, str], None]:
    def write(folder: Path, _: str) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(content)

    return write


def _written(file: str, content: bytes) -> Callable[[Path, str], Any]:
    return lambda folder, _: (folder / file).write_bytes(content)


# A pickle that would write a file.
_HOSTILE = b'cbuiltins\nexec\n(S\'open("ran", "w")\'\ntR.'
# What is wrong with a folder, and whether the message names the weight.
FAULTS: Mapping[str, tuple[Callable[[Path, str], Any], bool]] = {
    "a missing weight": (lambda folder, key: _weights(folder, key, lambda held, key: held.pop(key)), True),
    "another size": (lambda folder, key: _weights(folder, key, _another_size), False),
    "one layer too many": (_one_layer_less, True),
    "no header": (_written("model.safetensors", b"{}"), False),
    "text": (_written("model.safetensors", b"this is no tensor" * 100), False),
    "a huge header": (_written("model.safetensors", b"\xff" * 64), False),
    "empty": (_written("model.safetensors", b""), False),
    "a program": (_pickled(_HOSTILE), False),
    "no pickle": (_pickled(b"\x80\x05garbage"), False),
    "an empty pickle": (_pickled(b""), False),
    "settings that are a list": (_written("config.json", b"[]"), False),
    "settings that end": (_written("config.json", b'{"model_type": '), False),
    "settings of no model": (_written("config.json", b'{"model_type": "varn"}'), False),
    "a tokenizer that is none": (_written("tokenizer.json", b'{"version": 3}'), False),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("models")
    return {name: write(home / name) for name, (write, _, _) in LOADERS.items()}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("loader", LOADERS)
def test_no_loader_takes_a_folder_without_its_weights(
    loader: str, fault: str, folders: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "model"
    shutil.copytree(folders[loader], folder)
    _, load, key = LOADERS[loader]
    spoil, named = FAULTS[fault]
    spoil(folder, key)
    with pytest.raises(ConfigError) as refused:
        load(folder)
    assert str(folder) in refused.value.message
    assert "\n" not in refused.value.message
    assert not (tmp_path / "ran").exists()
    if named:
        assert "layer" in refused.value.message, refused.value.message


@pytest.mark.parametrize("loader", LOADERS)
def test_every_loader_takes_its_whole_folder(loader: str, folders: Mapping[str, Path]) -> None:
    _, load, _ = LOADERS[loader]
    load(folders[loader])


@pytest.mark.parametrize(
    ("loader", "body"),
    [
        ("tokens", "BertForMaskedLM"),
        ("entailment", "BertModel"),
        ("cross-encoder", "BertModel"),
        ("sparse", "BertModel"),
    ],
)
def test_an_encoder_without_the_head_is_refused(
    loader: str, body: str, folders: Mapping[str, Path], tmp_path: Path
) -> None:
    """Its configuration says that it has the head."""
    folder = bert_folder(tmp_path / "model", body)
    config = json.loads((folders[loader] / "config.json").read_text())
    own = json.loads((folder / "config.json").read_text())
    labels = {name: config[name] for name in ("architectures", "id2label", "label2id") if name in config}
    (folder / "config.json").write_text(json.dumps({**own, **labels}))
    with pytest.raises(ConfigError) as refused:
        LOADERS[loader][1](folder)
    assert "weight" in refused.value.message
    assert "classifier" in refused.value.message or "cls." in refused.value.message, refused.value.message


def test_an_encoder_of_masked_words_is_an_embedder(tmp_path: Path) -> None:
    """Its head is not read, and its pooler, which it lacks, is not either."""
    assert load_embedder(str(bert_folder(tmp_path / "model", "BertForMaskedLM"))).dim == 16


@pytest.mark.parametrize("size", [0, 8, 64, 100, 20_000, 400_000])
def test_a_cut_model_of_languages_is_refused(size: int, tmp_path: Path) -> None:
    """The library reads on in a file that ends within its dictionary, without an end."""
    file = tmp_path / "lid.ftz"
    file.write_bytes(bundled_model().read_bytes()[:size])
    with pytest.raises(ConfigError, match=r"lid\.ftz' is not a fastText model"):
        FastTextDetector(file).detect(["the old bridge"])
