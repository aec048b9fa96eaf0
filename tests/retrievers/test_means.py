"""The means of languages: one pass over stored vectors, which may be killed, and which changes no index."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrievers import (
    Index,
    LanguageMeans,
    add_documents,
    build_index,
    cached_index,
    center_index,
    index_info,
    join_indexes,
    load_index,
    merge_indexes,
)

DIM = 8


class Numbered:
    """The vector of a passage or question is drawn from its text."""

    name, revision, dim = "numbered", "1", DIM

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        found = [np.random.default_rng([*text.encode()]).standard_normal(DIM) for text in texts]
        return np.stack([one / np.linalg.norm(one) for one in found]).astype(np.float32)

    embed_passages = embed_queries


def passages(**counts: int) -> list[Passage]:
    return [Passage(f"{lang}-{n}", lang, f"{lang} {n}") for lang, count in counts.items() for n in range(count)]


def vectors(texts: Sequence[Passage]) -> np.ndarray:
    return Numbered().embed_passages([passage.text for passage in texts]).astype(np.float64)


def built(folder: Path, corpus: Sequence[Passage], **more: object) -> Index:
    return build_index(corpus, folder, embedder=Numbered(), progress=False, **more)  # type: ignore[arg-type]


def forget(folder: Path) -> Path:
    (folder / "means.json").unlink()
    return folder


def test_a_mean_is_shrunk_towards_that_of_all_passages(tmp_path: Path) -> None:
    corpus = passages(en=9, ko=1)
    index = built(tmp_path / "index", corpus)
    every = vectors(corpus)
    common, english, korean = every.mean(0), every[:9].mean(0), every[9]
    assert index.means.common == pytest.approx(common, abs=1e-7)
    # n / (n + 3) of the language's own: 9 / 12 and 1 / 4
    assert index.means.mean("en") == pytest.approx(0.75 * english + 0.25 * common, abs=1e-7)
    assert index.means.mean("ko") == pytest.approx(0.25 * korean + 0.75 * common, abs=1e-7)
    # of a language that the index does not know, nothing is its own
    assert index.means.mean("fi") == pytest.approx(common, abs=1e-7)


def test_a_query_has_the_same_offset_alone_and_in_a_batch(tmp_path: Path) -> None:
    means = built(tmp_path / "index", passages(en=40, ko=7)).means
    queries = np.random.default_rng(0).standard_normal((300, DIM)).astype(np.float32)
    for lang in ("en", "ko", "fi"):
        whole = means.offsets(queries, lang)
        assert [float(means.offsets(query[None], lang)[0]) for query in queries] == whole.tolist()
        assert whole == pytest.approx(queries @ means.mean(lang), abs=1e-6)


@pytest.mark.parametrize("store", ["float32", "float16", "int8"])
@pytest.mark.parametrize("factory", ["flat", "HNSW8"])
def test_the_command_finds_the_means_of_the_build_and_changes_nothing_else(
    store: str, factory: str, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    first = built(folder, passages(en=50, ko=20), store=store, factory=factory)
    fingerprint, means = first.manifest.fingerprint, first.means
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "means.json"}
    again = center_index(forget(folder))
    assert (again.fingerprint, again.counts) == (means.fingerprint, means.counts)
    assert {path: path.read_bytes() for path in before} == before
    assert index_info(folder)["fingerprint"] == fingerprint
    assert {path.name for path in tmp_path.iterdir()} == {"index"}
    # how many vectors are read at a time changes nothing
    for rows in (1, 7, 32):
        assert center_index(forget(folder), memory=4 * DIM * rows).fingerprint == means.fingerprint


def test_whatever_writes_an_index_writes_its_means(tmp_path: Path) -> None:
    corpus = passages(en=30, ko=20, de=10)
    whole = built(tmp_path / "whole", corpus).means
    parts = [built(tmp_path / lang, [p for p in corpus if p.lang == lang]).path for lang in ("en", "ko", "de")]
    split = [built(tmp_path / name, part).path for name, part in (("a", corpus[::2]), ("b", corpus[1::2]))]
    made = {
        "join": join_indexes(parts, tmp_path / "joined"),
        "merge": merge_indexes(split, tmp_path / "merged"),
        "factory": merge_indexes([parts[0], parts[1], parts[2]], tmp_path / "fast", factory="flat"),
        "add": add_documents(built(tmp_path / "grown", corpus[:25]).path, corpus[25:], embedder=Numbered()),
        "cached": cached_index(corpus, embedder=Numbered(), cache_dir=tmp_path / "cache"),
    }
    for name, index in made.items():
        means = load_index(index.path).means
        assert means.counts == {"de": 10, "en": 30, "ko": 20}, name
        for lang in ("de", "en", "ko"):
            assert means.mean(lang) == pytest.approx(whole.mean(lang), abs=1e-7), name
    # the grown index was replaced as a whole, means included
    assert made["add"].means.of != built(tmp_path / "begun", corpus[:25]).means.of


def test_an_index_of_the_cache_without_means_gets_them(tmp_path: Path) -> None:
    index = cached_index(passages(en=5, ko=5), embedder=Numbered(), cache_dir=tmp_path)
    forget(Path(index.path))
    again = cached_index(passages(en=5, ko=5), embedder=Numbered(), cache_dir=tmp_path)
    assert (again.path, again.means.fingerprint) == (index.path, index.means.fingerprint)


def test_means_of_other_vectors_are_not_used(tmp_path: Path) -> None:
    index = built(tmp_path / "index", passages(en=9, ko=9))
    other = built(tmp_path / "other", passages(en=10, ko=8))
    file = Path(index.path) / "means.json"
    for wrong in (
        (Path(other.path) / "means.json").read_text(),
        "{}",
        "[",
        '{"format": 1, "of": "", "sums": {"en": 3}}',
    ):
        file.write_text(wrong)
        with pytest.raises(CorpusError, match="has no means of its languages' vectors") as caught:
            _ = Index(Path(index.path), index.manifest).means
        assert "mrag-eval index center" in str(caught.value.next_step)
    assert center_index(Path(index.path)).fingerprint == index.means.fingerprint


def test_an_index_with_means_can_be_replaced(tmp_path: Path) -> None:
    folder = Path(built(tmp_path / "index", passages(en=9, ko=9)).path)
    assert (folder / "means.json").is_file()
    assert len(built(folder, passages(en=3, ko=4), overwrite=True)) == 7
    assert LanguageMeans.from_json(json.loads((folder / "means.json").read_text())).counts == {"en": 3, "ko": 4}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["bm25", "hybrid"])
def test_only_a_dense_index_has_means(kind: str, tmp_path: Path) -> None:
    embedder = {} if kind == "bm25" else {"embedder": Numbered()}
    build_index(passages(en=4, ko=4), tmp_path / "index", kind=kind, progress=False, **embedder)  # type: ignore[arg-type]
    assert not (tmp_path / "index" / "means.json").exists()
    with pytest.raises(CorpusError, match=f"is of kind '{kind}'"):
        center_index(tmp_path / "index")


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from mrag_eval.retrievers import center_index

def kill(begun: Path) -> None:
    while not begun.exists():
        time.sleep(0.0005)
    os.kill(os.getpid(), signal.SIGKILL)

folder = Path(sys.argv[1])
threading.Thread(target=kill, args=(folder.with_name(folder.name + ".centering"),), daemon=True).start()
center_index(folder, memory=1)
"""


def test_a_killed_pass_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = built(folder, passages(en=3_000, ko=9_000))
    whole = index.means.fingerprint
    forget(folder)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    unfinished = tmp_path / "index.centering"
    read = sum(json.loads(unfinished.read_text())["counts"].values())
    assert 0 < read < 12_000
    # the index can be searched and replaced meanwhile
    assert not (folder / "means.json").exists()
    assert len(load_index(folder, embedder=Numbered()).search(["en 7"], 1)[0]) == 1
    # from there on, in other steps: the sums are the same to the last bit
    again = center_index(folder)
    assert (again.fingerprint, unfinished.exists()) == (whole, False)
