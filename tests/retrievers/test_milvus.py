"""An index in Milvus finds what the index in a folder finds; loading resumes, is counted, and replaces only on
request.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Hit, Passage
from mrag_eval.platform import ConfigError, CorpusError, MissingExtraError
from mrag_eval.retrievers import (
    Index,
    MilvusIndex,
    MilvusPlace,
    SparseEncoder,
    build_index,
    load_into_milvus,
    milvus_info,
    open_milvus,
    verify_milvus,
)
from mrag_eval.retrievers.milvus._milvus_client import Connection, checked_uri
from mrag_eval.retrievers.milvus._milvus_load import passage_vectors
from tests.retrievers.test_sparse import CORPUS, Counting

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ("pymilvus", "milvus_lite"))), reason="the extra 'milvus' is not installed"
    ),
]

MakeIndex = Callable[..., Index]
KINDS = [("dense", False), ("bm25", False), ("bm25", True), ("hybrid", False), ("hybrid", True)]
QUERIES = ["old bridge river", "旧桥", "박물관 아홉", "museum nine", "الجسر القديم", "xyzzy"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("milvus") / "passages.db")


@pytest.fixture
def place(database: str, request: pytest.FixtureRequest) -> MilvusPlace:
    """A collection that belongs to the test."""
    name = "".join(char if char.isascii() and char.isalnum() else "_" for char in request.node.name)
    return MilvusPlace(database, f"t_{name}")


def compared(hits: list[Hit]) -> list[tuple[Any, ...]]:
    return [(hit.rank, hit.id, hit.lang, hit.title, hit.doc_id, hit.text) for hit in hits]


@pytest.mark.parametrize(("kind", "joint"), KINDS)
def test_the_same_is_found_as_in_the_folder(
    kind: str, joint: bool, make_index: MakeIndex, passages: list[Passage], place: MilvusPlace
) -> None:
    here = make_index(passages, kind=kind, joint=joint)
    there = load_into_milvus(here, place)
    assert (there.kind, there.languages, there.counts, len(there)) == (kind, here.languages, here.counts, len(here))
    assert there.manifest.content_hash == here.manifest.content_hash
    assert there.merges_by_score == here.merges_by_score
    scopes: list[dict[str, Any]] = [
        {},
        {"languages": ["en", "zh", "ko"]},
        {"languages": [["en"], ["zh"], None, ["en", "de"], ["ar"], ["th"]]},
        {"candidates": [["doc-0"], None, ["ko-1", "doc-0"], ["unknown"], ["ar-0", "ar-1"], []]},
        {"candidates": [["doc-0"], None, None, None, None, None], "languages": ["en", "hi"]},
    ]
    for scope in scopes:
        for k in (1, 4, 50):
            ours, theirs = there.search(QUERIES, k, **scope), here.search(QUERIES, k, **scope)
            assert [compared(hits) for hits in ours] == [compared(hits) for hits in theirs]
            for mine, other in zip(ours, theirs, strict=True):
                assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in other], rel=1e-5, abs=2e-6)
        ours, theirs = there.search_by_language(QUERIES, 3, **scope), here.search_by_language(QUERIES, 3, **scope)
        assert [{lang: compared(hits) for lang, hits in row.items()} for row in ours] == [
            {lang: compared(hits) for lang, hits in row.items()} for row in theirs
        ]


@pytest.mark.parametrize("store", ["float16", "int8"])
def test_coded_vectors_are_loaded_as_they_are_decoded(
    store: str, make_index: MakeIndex, passages: list[Passage], place: MilvusPlace
) -> None:
    here = make_index(passages, kind="dense", store=store)
    there = load_into_milvus(here, place)
    assert there.manifest.store == store
    for ours, theirs in zip(there.search(QUERIES, 9), here.search(QUERIES, 9), strict=True):
        assert compared(ours) == compared(theirs)
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], rel=1e-5, abs=2e-6)


def test_learned_sparse_vectors_are_loaded_too(tmp_path: Path, place: MilvusPlace) -> None:
    encoder: SparseEncoder = Counting()
    here = build_index(CORPUS, tmp_path / "sparse", kind="sparse", embedder=encoder, progress=False)
    there = load_into_milvus(here, place)
    for query in ("old river", "tea", "nothing"):
        (ours,), (theirs,) = there.search([query], 5), here.search([query], 5)
        assert [(hit.id, hit.score) for hit in ours] == [(hit.id, pytest.approx(hit.score, rel=2e-6)) for hit in theirs]


def test_ties_are_broken_by_language_and_id_however_many_there_are(
    make_index: MakeIndex, constant: Any, place: MilvusPlace
) -> None:
    order = np.random.default_rng(0).permutation(60).tolist()
    tied = [Passage(f"p{number:02}", "en" if number % 2 else "de", f"text {number}") for number in order]
    there = load_into_milvus(make_index(tied, embedder=constant), place)
    (hits,) = there.search(["any"], 5)
    # the question decides which language is first
    first = 0 if hits[0].lang == "de" else 1
    assert [hit.id for hit in hits] == [f"p{number:02}" for number in range(first, 10, 2)]
    (hits,) = there.search(["any"], 5, languages=["en"])
    assert [hit.id for hit in hits] == ["p01", "p03", "p05", "p07", "p09"]


def test_names_are_values_and_never_part_of_a_filter(make_index: MakeIndex, place: MilvusPlace) -> None:
    awkward = ['say "hi"', "back\\slash", "back\\nline", "{brace}", "quote'", 'x" or id != "', "ไทย", "%s", " "]
    there = load_into_milvus(make_index([Passage(name, "en", f"text {name} a") for name in awkward]), place)
    for name in awkward:
        assert [passage.id for passage in there.passages([name])] == [name]
        assert [passage.id for passage in there.passages_named([name])[name]] == [name]
        assert [hit.id for hit in there.search(["text"], 5, candidates=[[name]])[0]] == [name]
    assert there.counts_named([awkward, ["none"]]) == [{"en": len(awkward)}, {}]
    with pytest.raises(CorpusError, match="holds no passage 'gone'"):
        there.passages([awkward[0], "gone"])


def test_passages_by_name_come_in_the_corpus_order(
    make_index: MakeIndex, passages: list[Passage], place: MilvusPlace
) -> None:
    here = make_index(passages)
    there = load_into_milvus(here, place)
    names = ["doc-1", "en-2", "nobody"]
    assert there.passages_named(names) == here.passages_named(names)
    assert there.passages(["th-1", "en-0", "th-1"]) == here.passages(["th-1", "en-0", "th-1"])


def test_the_language_is_the_partition_key(make_index: MakeIndex, passages: list[Passage], place: MilvusPlace) -> None:
    load_into_milvus(make_index(passages), place)
    described = place.connect().call("describe_collection", place.collection)
    assert [field["name"] for field in described["fields"] if field.get("is_partition_key")] == ["lang"]


@pytest.mark.parametrize("vector_index", ["HNSW", "IVF_FLAT"])
def test_other_vector_indexes_and_their_settings(
    vector_index: str, make_index: MakeIndex, passages: list[Passage], place: MilvusPlace
) -> None:
    name = {"HNSW": "ef", "IVF_FLAT": "nprobe"}[vector_index]
    build = {"nlist": 2} if vector_index == "IVF_FLAT" else {"M": 8}
    here = make_index(passages)
    there = load_into_milvus(here, place, vector_index=vector_index, build=build, search={name: 40})
    assert there.settings["index"] == {"type": vector_index, **build} | (
        {"efConstruction": 360} if vector_index == "HNSW" else {}
    )
    assert there.settings["search"] == {name: 40}
    assert open_milvus(MilvusPlace(place.uri, place.collection, search={name: 80}), embedder=there.embedder).settings[
        "search"
    ] == {name: 80}
    # with so few passages, all are compared
    assert [compared(hits) for hits in there.search(QUERIES, 3)] == [compared(hits) for hits in here.search(QUERIES, 3)]


def test_a_vector_index_that_compresses_is_refused(make_index: MakeIndex, passages: list[Passage]) -> None:
    with pytest.raises(ConfigError, match="unknown vector index 'IVF_PQ'"):
        load_into_milvus(make_index(passages), MilvusPlace("x.db", "c"), vector_index="IVF_PQ")


# --- loading --------------------------------------------------------------------------------------------------------


def sent(monkeypatch: pytest.MonkeyPatch, collection: str) -> list[int]:
    """Return the number of rows of every batch sent to a collection from now on."""
    sizes: list[int] = []
    call = Connection.call

    def counted(self: Connection, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if name == "upsert" and args[0] == collection:
            sizes.append(len(args[1]))
        return call(self, name, *args, **kwargs)

    monkeypatch.setattr(Connection, "call", counted)
    return sizes


def test_loading_twice_does_nothing(
    make_index: MakeIndex, passages: list[Passage], place: MilvusPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = make_index(passages)
    sizes = sent(monkeypatch, place.collection)
    load_into_milvus(here, place)
    assert sum(sizes) == len(passages)
    load_into_milvus(here, place)
    assert sum(sizes) == len(passages)


def test_another_index_is_refused_and_replaced_when_asked(
    make_index: MakeIndex, passages: list[Passage], place: MilvusPlace
) -> None:
    load_into_milvus(make_index(passages), place)
    fewer = make_index(passages[:4])
    with pytest.raises(CorpusError, match="holds another index"):
        load_into_milvus(fewer, place)
    with pytest.raises(CorpusError, match="holds another index"):
        load_into_milvus(make_index(passages), place, vector_index="HNSW")
    assert len(load_into_milvus(fewer, place, overwrite=True)) == 4
    assert len(open_milvus(place)) == 4


def test_passages_are_counted_again_when_asked(
    make_index: MakeIndex, passages: list[Passage], place: MilvusPlace
) -> None:
    load_into_milvus(make_index(passages), place)
    assert verify_milvus(place) == len(passages)
    place.connect().call("delete", place.collection, ids=[0])
    with pytest.raises(CorpusError, match="holds 1 passages in 'ar', the index 2"):
        verify_milvus(place)


def test_a_foreign_collection_is_left_alone(make_index: MakeIndex, passages: list[Passage], place: MilvusPlace) -> None:
    connection = place.connect()
    connection.call("create_collection", place.collection, dimension=4)
    for overwrite in (False, True):
        with pytest.raises(CorpusError, match="mrag-eval did not create"):
            load_into_milvus(make_index(passages), place, overwrite=overwrite)
    assert connection.call("has_collection", place.collection)
    with pytest.raises(CorpusError, match="there is no index"):
        open_milvus(place)


def test_a_text_that_does_not_fit_is_found_before_anything_is_sent(make_index: MakeIndex, place: MilvusPlace) -> None:
    here = make_index([Passage("short", "de", "a"), Passage("long", "en", "é" * 32_768)])
    with pytest.raises(CorpusError, match="passage 'long' has 65,536 bytes, Milvus allows 65,535"):
        load_into_milvus(here, place)
    assert not place.connect().call("has_collection", place.collection)
    assert len(load_into_milvus(make_index([Passage("fits", "en", "é" * 32_767)]), place)) == 1


def test_counts_are_compared(
    make_index: MakeIndex, passages: list[Passage], place: MilvusPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Connection.call

    def lossy(self: Connection, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if name == "upsert" and args[0] == place.collection and args[1][0]["lang"] == "ko":
            args = (args[0], args[1][:1])
        return call(self, name, *args, **kwargs)

    monkeypatch.setattr(Connection, "call", lossy)
    with pytest.raises(CorpusError, match="holds 1 passages in 'ko', the index 2"):
        load_into_milvus(make_index(passages), place)
    with pytest.raises(CorpusError, match="never finished"):
        open_milvus(place)


KILLED = """
import os, signal, sys
from mrag_eval.retrievers import MilvusPlace, load_index, load_into_milvus
from mrag_eval.retrievers.milvus import _milvus_load as milvus_load
milvus_load._BATCH = 100
note, times = milvus_load._Load._note_progress, []
def killing(self):
    times.append(self.done)
    if len(times) == 4:  # the third batch is there, and not noted
        os.kill(os.getpid(), signal.SIGKILL)
    note(self)
milvus_load._Load._note_progress = killing
load_into_milvus(load_index(sys.argv[1]), MilvusPlace(sys.argv[2], "killed"))
"""


def test_a_killed_load_resumes_after_its_last_batch(
    tmp_path: Path, token_hash: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = [Passage(f"p{n}", "en" if n < 350 else "ko", f"text {n} of {n % 7}") for n in range(700)]
    for kind in ("dense", "hybrid"):
        folder, database = tmp_path / kind, tmp_path / f"{kind}.db"
        here = build_index(corpus, folder, kind=kind, embedder=token_hash, progress=False)
        ended = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(database)], capture_output=True)
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        place = MilvusPlace(str(database), "killed")
        with pytest.raises(CorpusError, match="never finished"):
            open_milvus(place)
        sizes = sent(monkeypatch, "killed")
        there = load_into_milvus(here, place)
        assert sum(sizes) == 500
        assert there.counts == {"en": 350, "ko": 350}
        queries = ["text 3 of 3", "text 400 of 1"]
        assert [compared(hits) for hits in there.search(queries, 9)] == [
            compared(hits) for hits in here.search(queries, 9)
        ]


def test_sparse_vectors_of_passages_are_those_of_the_terms_postings(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    matrix = np.where(rng.random((23, 11)) < 0.3, rng.random((23, 11)), 0).astype(np.float32)
    matrix[5] = 0
    matrix[:, 4] = 0
    passages, weights, starts = [], [], [0]
    for term in range(11):
        at = np.flatnonzero(matrix[:, term])
        passages += at.tolist()
        weights += matrix[at, term].tolist()
        starts.append(len(passages))
    names = ("starts.npy", "rows.npy", "weights.npy")
    arrays = (np.asarray(starts), np.asarray(passages, np.int32), np.asarray(weights, np.float32))
    for name, array in zip(names, arrays, strict=True):
        np.save(tmp_path / name, array)
    for room in (1, 7, 10_000):
        found = list(passage_vectors(tmp_path, names, 2, 20, room=room))
        assert found == [{int(term): float(row[term]) for term in np.flatnonzero(row)} for row in matrix[2:20]]


# --- connections ----------------------------------------------------------------------------------------------------


def test_uris() -> None:
    assert checked_uri("http://milvus:19530") == "http://milvus:19530"
    assert checked_uri("x/y.db") == str(Path("x/y.db").resolve())
    for wrong in ("x.txt", "milvus:19530", "ftp://host/x.db"):
        with pytest.raises(ConfigError, match="is not a Milvus uri"):
            checked_uri(wrong)


def test_a_password_in_the_uri_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as raised:
        checked_uri("http://root:hunter2@milvus:19530")
    assert "hunter2" not in str(raised.value)
    assert "export MILVUS_TOKEN" in str(raised.value)


def test_the_token_comes_from_the_environment_and_is_kept_nowhere(
    make_index: MakeIndex,
    passages: list[Passage],
    place: MilvusPlace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import pymilvus

    given: list[str] = []
    client = pymilvus.MilvusClient

    class Watched(client):  # type: ignore[misc, valid-type]
        def __init__(self, uri: str, *, token: str, **options: Any) -> None:
            given.append(token)
            super().__init__(uri, token=token, **options)

    monkeypatch.setattr(pymilvus, "MilvusClient", Watched)
    monkeypatch.setenv("OUR_TOKEN", "s3cret-token")
    caplog.set_level(logging.DEBUG)
    named = MilvusPlace(place.uri, place.collection, token_env="OUR_TOKEN")
    there = load_into_milvus(make_index(passages), named)
    assert given
    assert set(given) == {"s3cret-token"}
    told = [json.dumps(milvus_info(named), default=str), repr(there), repr(named), caplog.text]
    beside = place.connect().call("query", f"{place.collection}__about", filter='key != ""', limit=100)
    told += [json.dumps(row, default=str) for row in beside]
    assert not [text for text in told if "s3cret-token" in text]


def test_nobody_there_is_one_line() -> None:
    with pytest.raises(CorpusError, match=r"Milvus at http://127\.0\.0\.1:1 does not answer") as raised:
        open_milvus(MilvusPlace("http://127.0.0.1:1", "c"))
    assert len(raised.value.message.splitlines()) == 1


@contextmanager
def another(code: str, *arguments: str) -> Iterator[None]:
    """Start a process that has run ``code``, printed "open" and waits for a line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"open\n"
        try:
            yield
        finally:
            running.communicate(b"\n")


def test_a_file_held_by_another_program_says_how_to_share_it(tmp_path: Path) -> None:
    database = tmp_path / "held.db"
    code = "import sys, pymilvus; c = pymilvus.MilvusClient(sys.argv[1]); print('open', flush=True); input()"
    with another(code, str(database)):
        with pytest.raises(CorpusError, match="another program has it open") as raised:
            open_milvus(MilvusPlace(str(database), "c"))
        assert "milvus-lite server --data-dir" in str(raised.value)


HOLDING = """
import sys
from mrag_eval.retrievers import MilvusPlace, load_index, load_into_milvus
load_into_milvus(load_index(sys.argv[1]), MilvusPlace(sys.argv[2], "shared"), progress=False)
print("open", flush=True)
input()
"""


def test_a_file_is_shared_with_other_processes_and_taken_over_when_they_end(
    tmp_path: Path, passages: list[Passage]
) -> None:
    here = build_index(passages, tmp_path / "index", kind="bm25", progress=False)
    place = MilvusPlace(str(tmp_path / "shared.db"), "shared", patience=30)
    expected = [compared(hits) for hits in here.search(QUERIES, 3)]
    with another(HOLDING, str(here.path), place.uri):
        there = open_milvus(place)
        assert [compared(hits) for hits in there.search(QUERIES, 3)] == expected
    there.search(QUERIES[:1], 9)
    assert [compared(hits) for hits in there.search(QUERIES, 3)] == expected


@pytest.mark.parametrize("package", ["pymilvus", "milvus_lite.server_manager"])
def test_a_missing_package_names_the_extra(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r'pip install "mrag-eval\[milvus\]"'):
        open_milvus(MilvusPlace(str(tmp_path / "x.db"), "c"))


def test_names_that_milvus_does_not_take() -> None:
    for name in ("", "1st", "with-dash", "a b", "é"):
        with pytest.raises(ConfigError, match="cannot name a Milvus collection"):
            open_milvus(MilvusPlace("x.db", name))


def test_it_has_no_faiss_shards(make_index: MakeIndex, passages: list[Passage], place: MilvusPlace) -> None:
    there = load_into_milvus(make_index(passages), place)
    assert isinstance(there, MilvusIndex)
    with pytest.raises(CorpusError, match="no FAISS shards"):
        there.shard("en")
    with pytest.raises(ConfigError, match="is in Milvus already"):
        load_into_milvus(there, place)
    assert os.fspath(place.uri) in str(there.path)
