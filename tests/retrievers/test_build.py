"""Building: streamed, killed and resumed, locked; the path holds a whole index or nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError, build_lock
from mrag_eval.retrievers import Document, Index, build_index, index_info, load_index
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters

MakeIndex = Callable[..., Index]


def many(count: int) -> Iterator[Passage]:
    for number in range(count):
        lang = ("en", "ko", "zh")[number % 3]
        text = f"passage {number} 강 河流 word{number % 7} {'x' * (number % 5)}"
        yield Passage(id=f"{number:05d}", lang=lang, text=text, title=f"t{number}", doc_id=f"d{number // 4}")


def test_resuming_embeds_only_what_is_missing(tmp_path: Path) -> None:
    class Counting:
        name, revision, dim = "counting", "1", 2

        def __init__(self, limit: int) -> None:
            self.limit, self.texts = limit, 0

        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            self.texts += len(texts)
            if self.texts > self.limit:
                raise KeyboardInterrupt
            return np.ones((len(texts), 2), dtype=np.float32)

        embed_queries = embed_passages

    with pytest.raises(KeyboardInterrupt):
        build_index(many(50), tmp_path / "i", embedder=Counting(25), batch_size=10, progress=False)
    rest = Counting(1_000)
    index = build_index(many(50), tmp_path / "i", embedder=rest, batch_size=10, progress=False, resume=True)
    assert rest.texts == 30
    assert len(index) == 50


class _Stops(Exception):
    pass


def interrupted(path: Path, **options: Any) -> None:
    def broken() -> Iterator[Passage]:
        yield from many(20)
        raise _Stops

    with pytest.raises(_Stops):
        build_index(broken(), path, kind="bm25", batch_size=5, progress=False, **options)


def resumed(path: Path, corpus: Any, **options: Any) -> Index:
    settings: dict[str, Any] = {"kind": "bm25", **options}
    return build_index(corpus, path, batch_size=5, progress=False, resume=True, **settings)


def test_resuming_another_corpus_or_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "i"
    interrupted(path)
    changed = [*many(3), Passage(id="new", lang="en", text="new"), *list(many(30))[4:]]
    with pytest.raises(CorpusError, match="does not begin with the 20 passages"):
        resumed(path, changed)
    with pytest.raises(CorpusError, match="ends after 7 of the 20 passages"):
        resumed(path, many(7))
    with pytest.raises(CorpusError, match="has joint = False, this one True"):
        resumed(path, many(30), joint=True)
    assert len(resumed(path, many(30))) == 30


def test_a_damaged_partial_build_is_refused_and_a_new_one_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "i"
    interrupted(path)
    (tmp_path / "i.building" / "passages" / "en.text").write_bytes(b"")
    with pytest.raises(CorpusError, match="shorter than the interrupted build recorded"):
        resumed(path, many(30))
    (tmp_path / "i.building" / "work" / "state.json").write_text("{")
    with pytest.raises(CorpusError, match="damaged"):
        resumed(path, many(30))
    assert len(build_index(many(6), path, kind="bm25", progress=False)) == 6


def test_resume_without_anything_to_resume_builds(tmp_path: Path) -> None:
    assert len(resumed(tmp_path / "i", many(12))) == 12


def test_only_one_process_builds(tmp_path: Path) -> None:
    path = tmp_path / "i"
    with build_lock(path):
        script = (
            "import sys; from test_build import many; from mrag_eval.retrievers import build_index\n"
            "build_index(many(5), sys.argv[1], kind='bm25', progress=False)"
        )
        other = subprocess.run(
            [sys.executable, "-c", script, str(path)],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert other.returncode == 1
    assert f"CorpusError: another process is building {path}" in other.stderr
    assert len(build_index(many(5), path, kind="bm25", progress=False)) == 5
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["i"]


def test_an_index_is_only_replaced_when_asked_and_when_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "i"
    build_index(many(5), path, kind="bm25", progress=False)
    with pytest.raises(CorpusError, match="exists already"):
        build_index(many(6), path, kind="bm25", progress=False)
    interrupted(path, overwrite=True)
    assert len(load_index(path)) == 5
    assert len(build_index(many(9), path, kind="bm25", progress=False, overwrite=True, resume=False)) == 9
    assert len(load_index(path)) == 9
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["i"]


def test_same_passages_same_hash_in_any_order_and_batch(tmp_path: Path, make_index: MakeIndex) -> None:
    corpus = list(many(30))
    first = make_index(corpus, kind="bm25")
    second = make_index(corpus[::-1], kind="dense", batch_size=7)
    assert first.manifest.content_hash == second.manifest.content_hash
    assert make_index(corpus[:-1], kind="bm25").manifest.content_hash != first.manifest.content_hash


@pytest.mark.parametrize("joint", [False, True])
def test_the_fingerprint_is_that_of_content_and_settings_not_of_how_they_were_built(
    make_index: MakeIndex, joint: bool
) -> None:
    corpus = list(many(40))
    one = make_index(corpus, kind="hybrid", joint=joint).manifest
    for size in (1, 7, 1_000):
        other = make_index(corpus, kind="hybrid", joint=joint, batch_size=size, source="elsewhere").manifest
        assert other.fingerprint == one.fingerprint
    later = one.model_copy(update={"versions": {"mrag-eval": "99"}})
    assert later.fingerprint == one.fingerprint
    reordered = make_index(corpus[::-1], kind="hybrid", joint=joint).manifest
    assert reordered.content_hash == one.content_hash
    assert reordered.fingerprint != one.fingerprint
    changed = [*corpus[:-1], Passage("last", "en", "other", doc_id="d")]
    others = [make_index(changed, kind="hybrid", joint=joint), make_index(corpus, kind="dense")]
    others += [make_index(corpus, kind="hybrid", joint=joint, bm25=Bm25Parameters(k1=1.0))]
    assert len({one.fingerprint, *(index.manifest.fingerprint for index in others)}) == 4
    assert index_info(others[0].path)["fingerprint"] == others[0].manifest.fingerprint


def test_the_order_of_the_corpus_does_not_change_the_hits(make_index: MakeIndex) -> None:
    corpus = list(many(60))
    queries = ["word3 강", "passage 7", "河流 x"]
    for kind in ("dense", "bm25", "hybrid"):
        one, other = make_index(corpus, kind=kind), make_index(corpus[::-1], kind=kind)
        assert one.search(queries, 9) == other.search(queries, 9)


def test_documents_are_chunked(make_index: MakeIndex) -> None:
    documents = [Document("a", "en", "one two three four", "T"), Document("b", "zh_cn", "旧桥横跨河流")]
    index = make_index(documents, kind="bm25", chunker={"method": "words", "size": 3})
    assert index.counts == {"en": 2, "zh-Hans": 2}
    assert index.manifest.languages["en"].documents == 1
    assert index.manifest.chunker == {"method": "words", "size": 3, "title_in_front": True, "min_chars": 1}
    (hits,) = index.search(["four"], 5, candidates=[["a"]])
    assert [(hit.text, hit.doc_id) for hit in hits] == [("T. four", "a")]


def test_documents_are_counted_by_id(make_index: MakeIndex) -> None:
    corpus = [
        Passage(id="1", lang="en", text="t", doc_id="d"),
        Passage(id="2", lang="en", text="t"),
        Passage(id="3", lang="en", text="t", doc_id="d"),
        Passage(id="4", lang="en", text="t", doc_id="4"),
        Passage(id="5", lang="ko", text="t", doc_id="d"),
    ]
    records = make_index(corpus).manifest.languages
    assert {lang: record.documents for lang, record in records.items()} == {"en": 3, "ko": 1}


def test_parquet_holds_the_passages(make_index: MakeIndex, passages: list[Passage]) -> None:
    import pyarrow.parquet as pq

    index = make_index(passages, kind="bm25")
    rows = [
        row
        for lang in index.languages
        for row in pq.read_table(index.path / "passages" / f"{lang}.parquet").to_pylist()
    ]
    assert sorted(map(json.dumps, rows)) == sorted(
        json.dumps({"id": p.id, "doc_id": p.doc_id, "lang": p.lang, "title": p.title, "text": p.text}) for p in passages
    )


@pytest.mark.parametrize(
    ("corpus", "error", "expected"),
    [
        ([], DataError, "the corpus holds no passages"),
        ([Document("d", "en", "  ")], DataError, "the corpus holds no passages"),
        ([Passage("1", "en", "a"), Passage("1", "ko", "b")], DataError, "passage id '1' appears a second time"),
        ([Passage("1", "en", " ")], DataError, "passage '1' has no text"),
        ([Passage("", "en", "a", doc_id="d")], DataError, "a passage of document 'd' has no id"),
        ([Passage("1", "xx", "a")], DataError, "passage '1': unknown language 'xx'"),
        ([Passage("1", "en", "\udc80")], DataError, "passage '1' holds half a surrogate pair"),
    ],
)
def test_bad_corpora(tmp_path: Path, corpus: list[Any], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        build_index(corpus, tmp_path / "i", kind="bm25", progress=False)
    assert not (tmp_path / "i").exists()


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kind: unknown value 'bm52'; did you mean 'bm25'"):
        build_index(many(1), tmp_path / "i", kind="bm52")
    with pytest.raises(ConfigError, match="joint cannot be combined with kind"):
        build_index(many(1), tmp_path / "i", joint=True)
    with pytest.raises(ConfigError, match="batch_size is 0"):
        build_index(many(1), tmp_path / "i", batch_size=0)


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        (lambda n: np.ones((n, 3), dtype=np.float32), "no usable vector for passage '00000': 3 numbers instead of 4"),
        (lambda n: np.ones((n - 1, 4), dtype=np.float32), r"shape \(1, 4\) for 2 texts"),
        (lambda n: np.full((n, 4), np.inf, dtype=np.float32), "passage '00000': numbers that are not finite"),
        (lambda n: np.eye(n, 4, -1, dtype=np.float32), "passage '00000': only zeros"),
    ],
)
def test_an_embedder_that_misbehaves(tmp_path: Path, vectors: Callable[[int], np.ndarray], expected: str) -> None:
    class Wrong:
        name, revision, dim = "wrong", "1", 4

        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            return vectors(len(texts))

        embed_queries = embed_passages

    with pytest.raises(CorpusError, match=expected):
        build_index(many(2), tmp_path / "i", embedder=Wrong(), progress=False)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, passages: list[Passage]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for path in (tmp_path / "file" / "index", Path("/proc/index"), Path("/proc/nowhere/index")):
        with pytest.raises(CorpusError) as caught:
            build_index(passages, path, kind="bm25", progress=False)
        assert str(path) in caught.value.message
        assert "MRAG_CACHE" in str(caught.value.next_step)
