"""Merging and adding: the result equals a single build, and existing indexes are unchanged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrievers import (
    Document,
    Index,
    add_documents,
    build_index,
    index_info,
    load_index,
    merge_indexes,
    verify_index,
)
from mrag_eval.retrievers.build import _merging as merging
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector
from tests.retrievers.conftest import ConstantEmbedder, TokenHashEmbedder
from tests.retrievers.test_approximate import Clustered
from tests.retrievers.test_approximate import corpus as clustered

LANGS = ("en", "ko", "de")
QUERIES = ["word3 bridge", "word1 강 7", "word5", "Brücke word2 11"]


def some(first: int, last: int, langs: Sequence[str] = LANGS) -> list[Passage]:
    out = []
    for number in range(first, last):
        lang = langs[number % len(langs)]
        text = f"passage {number} word{number % 7} {('bridge', '강', 'Brücke')[number % 3]} {'x' * (number % 5)}"
        out.append(Passage(f"{number:04d}", lang, text, title=f"t{number}", doc_id=f"d{number // 4}"))
    return out


class Counts:
    """A sparse encoder: one term per letter, weighted by its frequency."""

    name, revision, dim = "letters", "1", 128

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        out = []
        for text in texts:
            found, times = np.unique([ord(c) for c in text if ord(c) < 128], return_counts=True)
            out.append(SparseVector(found.astype(np.int32), times.astype(np.float32)))
        return out

    encode_queries = encode_passages


def model(kind: str) -> Any:
    return {"bm25": None, "sparse": Counts()}.get(kind, TokenHashEmbedder())


def make(path: Path, corpus: Any, kind: str = "dense", **keys: Any) -> Path:
    embedder = model(kind)
    options = {"kind": kind, "progress": False, **({"embedder": embedder} if embedder else {}), **keys}
    build_index(corpus, path, **options)
    return path


def opened(path: Path, kind: str) -> Index:
    return load_index(path, embedder=model(kind))


KINDS = [("dense", False), ("bm25", False), ("hybrid", False), ("sparse", False), ("bm25", True), ("hybrid", True)]


@pytest.mark.parametrize(("kind", "joint"), KINDS)
def test_merging_equals_building_at_once(tmp_path: Path, kind: str, joint: bool) -> None:
    corpora = [some(0, 40), some(40, 70, ("en", "th")), some(70, 75, ("ar",))]
    whole = opened(make(tmp_path / "whole", [*corpora[0], *corpora[1], *corpora[2]], kind, joint=joint), kind)
    parts = [make(tmp_path / f"p{number}", part, kind, joint=joint) for number, part in enumerate(corpora)]
    merge_indexes(parts, tmp_path / "merged")
    merged = opened(tmp_path / "merged", kind)
    assert merged.counts == whole.counts
    assert merged.manifest.content_hash == whole.manifest.content_hash
    assert merged.manifest.languages == whole.manifest.languages
    for languages in (None, ["en"], ["ko", "th"]):
        assert merged.search(QUERIES, 12, languages=languages) == whole.search(QUERIES, 12, languages=languages)
    if not joint:
        assert merged.manifest.fingerprint == whole.manifest.fingerprint
    assert verify_index(tmp_path / "merged") == len(whole.manifest.files)
    for part in parts:
        verify_index(part)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["merged", "p0", "p1", "p2", "whole"]


def test_nothing_is_embedded(tmp_path: Path) -> None:
    embedder = TokenHashEmbedder()
    one = make(tmp_path / "a", some(0, 20), embedder=embedder)
    other = make(tmp_path / "b", some(20, 40), embedder=embedder)
    embedder.embedded.clear()
    merge_indexes([one, other], tmp_path / "merged")
    assert embedder.embedded == []


def test_a_language_of_only_one_part_is_linked(tmp_path: Path) -> None:
    one, other = make(tmp_path / "a", some(0, 20)), make(tmp_path / "b", some(20, 40, ("en", "th")))
    merge_indexes([one, other], tmp_path / "merged")
    assert os.path.samefile(one / "dense/ko.faiss", tmp_path / "merged/dense/ko.faiss")
    assert not os.path.samefile(one / "dense/en.faiss", tmp_path / "merged/dense/en.faiss")


def test_ids_in_two_parts_are_named(tmp_path: Path) -> None:
    one = make(tmp_path / "a", some(0, 20))
    # a different language, so that linking would be possible
    other = make(
        tmp_path / "b", [Passage("0007", "th", "x"), Passage("0003", "th", "y"), Passage("n", "th", "z", doc_id="d1")]
    )
    with pytest.raises(DataError, match=r"/a and .*/b both hold the passages '0003', '0007'\n"):
        merge_indexes([one, other], tmp_path / "merged")
    many = make(tmp_path / "c", some(0, 9))
    with pytest.raises(DataError, match=r"'0000', '0001', '0002', '0003', '0004' and 4 more"):
        merge_indexes([one, many], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_documents_may_be_in_several_parts(tmp_path: Path) -> None:
    one = make(tmp_path / "a", [Passage("1", "en", "one", doc_id="d")])
    other = make(tmp_path / "b", [Passage("2", "en", "two", doc_id="d"), Passage("d", "en", "three")])
    index = merge_indexes([one, other], tmp_path / "merged")
    assert index.manifest.languages["en"].documents == 1
    assert [p.id for p in index.passages_named(["d"])["d"]] == ["1", "2", "d"]


def test_parts_that_differ_are_refused(tmp_path: Path) -> None:
    one = make(tmp_path / "a", some(0, 9))
    other = make(tmp_path / "b", some(9, 18), embedder=ConstantEmbedder())
    with pytest.raises(ConfigError, match="has embedder = "):
        merge_indexes([one, other], tmp_path / "merged")
    with pytest.raises(ConfigError, match="named twice"):
        merge_indexes([one, one], tmp_path / "merged")
    with pytest.raises(CorpusError, match="exists already"):
        merge_indexes([one], one)
    with pytest.raises(ConfigError, match="no index to merge"):
        merge_indexes([], tmp_path / "merged")
    with pytest.raises(ConfigError, match="requires a factory"):
        merge_indexes([one], tmp_path / "merged", memory_budget="1GB")


def test_sources_are_kept(tmp_path: Path) -> None:
    one = make(tmp_path / "a", some(0, 9, ("en", "ko")), source="a dump")
    other = make(tmp_path / "b", some(9, 18, ("en",)), source="another")
    merge_indexes([one, other], tmp_path / "merged")
    assert index_info(tmp_path / "merged")["sources"] == {"en": "a dump; another", "ko": "a dump"}


# --- approximate shards -----------------------------------------------------------------------------------------------


def near(path: Path, corpus: Any, factory: str = "flat") -> Path:
    build_index(corpus, path, embedder=Clustered(), factory=factory, progress=False, batch_size=512)
    return path


@pytest.mark.slow
def test_a_factory_makes_an_exact_index_approximate_and_back(tmp_path: Path) -> None:
    flat = near(tmp_path / "flat", clustered())
    index = merge_indexes([flat], tmp_path / "approximate", factory="IVF32,SQ8")
    record = index.manifest.languages["en"].approximate
    assert record is not None
    assert record.recall >= 0.95
    assert index.manifest.approximation == {"factory": "IVF32,SQ8", "recall": 0.95, "seed": 0}
    built = near(tmp_path / "built", clustered(), "IVF32,SQ8")
    assert index.manifest.fingerprint == load_index(built).manifest.fingerprint
    back = merge_indexes([tmp_path / "approximate"], tmp_path / "back", factory="flat")
    assert back.manifest.fingerprint == load_index(flat).manifest.fingerprint
    assert not list((tmp_path / "back" / "dense").glob("*.approximate.faiss"))


@pytest.mark.slow
def test_merged_parts_are_approximated_as_they_were(tmp_path: Path) -> None:
    everything = list(clustered())
    one = near(tmp_path / "a", everything[:1500], "IVF32,SQ8")
    other = near(tmp_path / "b", everything[1500:], "IVF32,SQ8")
    merged = merge_indexes([one, other], tmp_path / "merged")
    whole = load_index(near(tmp_path / "whole", everything, "IVF32,SQ8"))
    assert merged.manifest.fingerprint == whole.manifest.fingerprint
    flat = near(tmp_path / "c", [Passage("new", "en", "1 1")])
    with pytest.raises(ConfigError, match=r"has approximation = None, index .*/a has ") as caught:
        merge_indexes([one, flat], tmp_path / "other")
    assert "--factory" in str(caught.value.next_step)
    assert merge_indexes([one, flat], tmp_path / "other", factory="flat").manifest.approximate() == {}


# --- adding -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "joint"), KINDS)
def test_adding_equals_building_at_once(tmp_path: Path, kind: str, joint: bool) -> None:
    whole = opened(make(tmp_path / "whole", some(0, 60), kind, joint=joint), kind)
    path = make(tmp_path / "i", some(0, 40), kind, joint=joint)
    added = add_documents(path, some(40, 60), embedder=model(kind), progress=False)
    assert added.manifest.content_hash == whole.manifest.content_hash
    assert added.search(QUERIES, 9) == whole.search(QUERIES, 9)
    if not joint:
        assert added.manifest.fingerprint == whole.manifest.fingerprint
    assert sorted(p.name for p in tmp_path.iterdir()) == ["i", "whole"]


def test_only_new_documents_are_embedded_and_they_are_cut_as_the_old_ones(tmp_path: Path) -> None:
    embedder = TokenHashEmbedder()
    chunker = {"method": "words", "size": 3}
    path = make(tmp_path / "i", [Document("a", "en", "one two three four")], embedder=embedder, chunker=chunker)
    embedder.embedded.clear()
    index = add_documents(path, [Document("b", "de", "five six seven eight")], embedder=embedder, progress=False)
    assert sorted(embedder.embedded) == ["eight", "five six seven"]
    assert index.counts == {"en": 2, "de": 2}
    assert index.manifest.chunker is not None
    assert index.manifest.chunker["size"] == 3


def test_existing_passages_are_refused_and_the_index_stays(tmp_path: Path) -> None:
    path = make(tmp_path / "i", some(0, 10))
    before = load_index(path).manifest
    with pytest.raises(DataError, match=r"index .*/i and the documents to add both hold the passages '0009'"):
        add_documents(path, some(9, 12), embedder=TokenHashEmbedder(), progress=False)
    assert load_index(path).manifest == before
    verify_index(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["i"]


def test_an_interrupted_addition_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "i", some(0, 10))
    whole = load_index(make(tmp_path / "whole", some(0, 30)))

    def broken(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(merging, "link_parts", broken)
        with pytest.raises(KeyboardInterrupt):
            add_documents(path, some(10, 30), embedder=TokenHashEmbedder(), progress=False)
    # the old index stays in use; the embedded new documents wait next to it
    assert len(load_index(path, embedder=TokenHashEmbedder()).search(["word3"], 5)[0]) == 5
    embedder = TokenHashEmbedder()
    with pytest.raises(CorpusError, match="ends after 5 of the 20 passages"):
        add_documents(path, some(10, 15), embedder=embedder, progress=False, resume=True)
    index = add_documents(path, some(10, 30), embedder=embedder, progress=False, resume=True)
    assert embedder.embedded == []
    assert index.manifest.fingerprint == whole.manifest.fingerprint
    assert sorted(p.name for p in tmp_path.iterdir()) == ["i", "whole"]


def test_an_embedder_without_a_name_has_to_be_passed(tmp_path: Path) -> None:
    path = make(tmp_path / "i", some(0, 10))
    with pytest.raises(CorpusError, match="'token-hash' that cannot be loaded by name"):
        add_documents(path, some(10, 12), progress=False)


@pytest.mark.slow
def test_an_approximate_index_stays_one(tmp_path: Path) -> None:
    everything = list(clustered())
    path = near(tmp_path / "i", everything[:2000], "IVF32,SQ8")
    index = add_documents(path, everything[2000:], embedder=Clustered(), progress=False)
    whole = load_index(near(tmp_path / "whole", everything, "IVF32,SQ8"))
    assert index.manifest.approximate()["en"]["factory"] == "IVF32,SQ8"
    assert index.manifest.fingerprint == whole.manifest.fingerprint


def test_the_commands(tmp_path: Path) -> None:
    import json

    def lines(name: str, passages: Sequence[Passage]) -> str:
        (tmp_path / name).write_text(
            "\n".join(json.dumps({"id": p.id, "lang": p.lang, "text": p.text}) for p in passages), encoding="utf-8"
        )
        return str(tmp_path / name)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["index", *words], obj=Session(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    one, other, both = (str(tmp_path / name) for name in ("one", "other", "both"))
    run("build", lines("a.jsonl", some(0, 9)), one, "--kind", "bm25")
    run("build", lines("b.jsonl", some(9, 12, ("th",))), other, "--kind", "bm25")
    assert f"{both}: 12 passages (de 3, en 3, ko 3, th 3)" in run("merge", both, one, other)
    added = run("build", lines("c.jsonl", some(12, 15, ("en",))), both, "--add")
    assert f"{both}: 15 passages (de 3, en 6, ko 3, th 3)" in added
    assert "all as they were built" in run("info", both, "--verify")
    refused = CliRunner().invoke(app, ["index", "build", "c.jsonl", both, "--add", "--kind", "dense"], obj=Session())
    assert refused.exit_code == 2
    assert "cannot be combined with --add" in " ".join(refused.output.split())
