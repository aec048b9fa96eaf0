"""Starter corpora from dumps of ours: one command, what results say of them, and builds that break off."""

from __future__ import annotations

import errno
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.config import Retrieval
from mrag_eval.core import CORAL_POOL
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.report import TaskConfig
from mrag_eval.retrieval import (
    CorpusSettings,
    build_starter,
    corpora_folder,
    corpus_path,
    index_record,
    known_corpora,
    open_index,
    plan_starter,
    unfinished_corpora,
)
from mrag_eval.retrievers import index_info, merge_indexes, starters

ROOT = Path(__file__).resolve().parents[2]
CORAL = starters()["coral-small"]
FACT = {"title": "Couscous in Algeria", "lang": "en", "text": "On Fridays families eat couscous. " * 40}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with XML dumps and copies of the hub's dataset in three languages, and a fact in English."""
    folder = tmp_path_factory.mktemp("dumps")
    (folder / "facts.jsonl").write_text(json.dumps(FACT) + "\n", "utf-8")
    for form in ("xml", "parquet"):
        written(folder, "en,ko,zh", 40, form, "--facts", str(folder / "facts.jsonl"))
    return folder


def written(folder: Path, langs: str, pages: int, form: str = "xml", *more: str) -> None:
    script = str(ROOT / "scripts" / "write_dumps.py")
    asked = [str(folder), "--langs", langs, "--pages", str(pages), "--words", "150", "--form", form, *more]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *asked])
        runpy.run_path(script, run_name="__main__")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command in this process; its exit code, output and errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = 0
        try:
            main(["corpus", "wikipedia", *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run


def built(dumps: Path, most: int = 60, **keys: Any) -> Any:
    return build_starter(CORAL, keys.pop("langs", ["en", "ko"]), source=dumps, most=most, **keys)


# ------------------------------------------------------------------ what is built


@pytest.mark.slow
def test_one_command_builds_all_thirteen_languages(cli: Any, tmp_path: Path) -> None:
    written(tmp_path / "dumps", ",".join(CORAL_POOL), 20)
    code, said, errors = cli("--preset", "coral-small", "--from", str(tmp_path / "dumps"), "--passages", "50")
    assert code == 0, errors
    assert "in 13 languages, a part of Wikipedia" in said
    assert "--metadata retrieval.corpus=coral-small" in said
    found = index_info(corpora_folder() / "coral-small")
    assert set(found["languages"]) == set(CORAL_POOL)
    assert found["kind"] == "bm25"
    for record in found["languages"].values():
        assert record["selection"]["read"] == 20
        assert record["passages"] <= 55


@pytest.mark.parametrize("dump", ["20251020", "20231101"])
def test_pages_near_the_topics_come_first_and_results_say_what_was_left_out(dumps: Path, dump: str) -> None:
    index = built(dumps, dump=dump)
    assert (index.path.name, index.kind) == ("coral-small", "bm25")
    (hits,) = index.search(["What do families eat on Fridays?"], 3, languages=["en"])
    assert hits[0].title == "Couscous in Algeria"
    record = index_record(Retrieval(mode="all", corpus="coral-small"))
    assert set(record["part"]) == {"en", "ko"}
    english = record["part"]["en"]
    assert (english["preset"], english["read"]) == ("coral-small", 41)
    assert english["rule"].endswith("up to 60 passages")
    assert 0 < english["chosen"] < 41
    # every tenth invented page is about a subject of a place; the title of the fact names a place
    assert (english["nearness"]["subject"], english["nearness"]["place"]) == (4, 1)
    source = record["recipe"]["sources"]["en"]
    assert source.endswith(f"coral-small: {english['chosen']} of 41 pages")
    assert dump in source
    config = TaskConfig({"retrieval": {"corpus": "coral-small"}, "index": record})
    assert config.corpus_shown == "coral-small, a part of Wikipedia"
    # under the name that tasks look for, by the config file
    config = TaskConfig({"retrieval": {"corpus": "wikipedia"}, "index": record})
    assert config.corpus_shown == "wikipedia, coral-small, a part of Wikipedia"


def test_a_whole_edition_is_taken_without_choosing(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    whole = replace(CORAL, passages={"ko": None})
    monkeypatch.setattr("mrag_eval.retrievers.choose", None)
    index = build_starter(whole, source=dumps, dump="20251020")
    selection = index.manifest.languages["ko"].selection
    assert selection is not None
    assert (selection.rule, selection.chosen) == ("the whole edition", None)
    assert index.manifest.languages["ko"].documents == 40


def test_a_language_is_added_and_a_merge_keeps_the_mark(dumps: Path, tmp_path: Path) -> None:
    first = built(dumps, langs=["en"], dump="20251020")
    both = built(dumps, langs=["zh"], dump="20251020", add=True)
    assert {lang: record.selection is None for lang, record in both.manifest.languages.items()} == {
        "en": False,
        "zh": False,
    }
    assert first.kind == both.kind
    from mrag_eval.retrievers import ChunkConfig, Document, build_index

    own = [Document("mine", "en", "A text of my own.")]
    build_index(own, tmp_path / "own", kind="bm25", chunker=ChunkConfig("words", 100), progress=False)
    merged = merge_indexes([both.path, tmp_path / "own"], tmp_path / "merged")
    assert merged.manifest.languages["en"].selection == both.manifest.languages["en"].selection


# ------------------------------------------------------------------ what is refused


def test_wrong_requests_are_one_line(cli: Any, dumps: Path) -> None:
    for arguments, said in (
        (("--preset", "coral-smal"), "no preset 'coral-smal'; did you mean 'coral-small'?"),
        (("--preset", "coral-small", "--langs", "de", "--from", str(dumps)), "'coral-small' has no 'de'"),
        (("--preset", "coral-small", "--from", str(dumps), "--dump", "20251020"), "no dump of id, am, su, ar, ha, as"),
        (("--preset", "coral-small", "--name", "wikipedia"), "must not take for the whole"),
        (("--preset", "coral-small", "--limit", "3"), "--passages is its limit"),
        (("--langs", "ko", "--passages", "3"), "needs --preset coral-small or"),
        (("--preset", "coral-small", "--passages", "0"), "greater than or equal to 1"),
    ):
        code, _, errors = cli(*arguments)
        assert code == 2, arguments
        assert said in errors
    assert known_corpora() == {}


def test_the_missing_corpus_offers_the_starter(dumps: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        corpus_path("wikipedia")
    assert "mrag-eval corpus wikipedia --preset coral-small" in str(caught.value.next_step)
    built(dumps, langs=["en"], dump="20251020")
    with pytest.raises(CorpusError) as caught:
        corpus_path("wikipedia")
    assert "--metadata retrieval.corpus=coral-small   (a part of it, which you have)" in str(caught.value.next_step)
    asked = Retrieval(mode="all", corpus="coral-small", pool=("en", "ko"))
    from mrag_eval.retrieval._corpora import check_pool

    with pytest.raises(CorpusError) as caught:
        check_pool(open_index(asked).languages, asked)
    assert "mrag-eval corpus wikipedia --preset coral-small --langs ko --add" in str(caught.value.next_step)


# ------------------------------------------------------------------ builds that break off


@pytest.mark.parametrize("dump", ["20251020", "20231101"])
def test_a_dump_that_breaks_off_is_named_and_the_rest_is_kept(dumps: Path, tmp_path: Path, dump: str) -> None:
    whole = built(dumps, dump=dump, name="whole").manifest.fingerprint
    broken = tmp_path / "broken"
    broken.mkdir()
    files = [*dumps.glob(f"*{dump}*.bz2"), *dumps.glob(f"{dump}.*/*.parquet")]
    for file in files:
        copy = broken / file.relative_to(dumps)
        copy.parent.mkdir(exist_ok=True)
        raw = file.read_bytes()
        copy.write_bytes(raw[: len(raw) // 2] if "ko" in str(file.relative_to(dumps)) else raw)
    with pytest.raises(DataError, match="cannot be read after") as caught:
        built(broken, dump=dump)
    assert "fetch the file again" in str(caught.value.next_step) or "download it again" in str(caught.value.next_step)
    assert list(unfinished_corpora()) == ["coral-small"]
    for file in files:
        (broken / file.relative_to(dumps)).write_bytes(file.read_bytes())
    assert built(broken, dump=dump).manifest.fingerprint == whole
    assert unfinished_corpora() == {}


def test_a_full_disk_while_pages_are_chosen_is_one_line(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mrag_eval.retrieval._starters.write_whole", full)
        with pytest.raises(CorpusError, match=r"the disk is full \([\d.,]+ GB left at ") as caught:
            built(dumps, dump="20251020")
    assert "give the same command again" in str(caught.value.next_step)
    assert built(dumps, dump="20251020").languages == ("en", "ko")


def test_the_choice_is_read_again_and_a_damaged_one_made_again(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mrag_eval.retrievers as retrievers

    asked: list[int] = []
    choose = retrievers.choose

    def counted(*arguments: Any) -> Any:
        asked.append(1)
        return choose(*arguments)

    class Stopped(Exception):
        pass

    def stop(edition: Any, index: Any) -> None:
        raise Stopped

    monkeypatch.setattr(retrievers, "choose", counted)
    for content, times in ((None, 1), (None, 1), ("{", 2), ("[]", 3), ('{"pages": 1}', 4)):
        held = next(iter((corpora_folder() / "coral-small.parts").glob("en-*.pages.json")), None)
        if content is not None and held is not None:
            held.write_text(content)
        with pytest.raises(Stopped):
            built(dumps, dump="20251020", on_part=stop)
        assert len(asked) == times


@pytest.mark.slow
def test_a_killed_build_goes_on_to_the_same_fingerprint(tmp_path: Path) -> None:
    written(tmp_path / "dumps", "en,ko", 1_000)
    program = (
        "import sys; from pathlib import Path; from mrag_eval.retrieval import build_starter;"
        "from mrag_eval.retrievers import starters;"
        "index = build_starter(starters()['coral-small'], ['en', 'ko'], source=Path(sys.argv[1]), most=4000);"
        "print(index.manifest.fingerprint)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "dumps")]

    def environment(name: str) -> dict[str, str]:
        return {**os.environ, "MRAG_CACHE": str(tmp_path / name), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    whole = subprocess.run(command, env=environment("whole"), capture_output=True, text=True, check=True).stdout
    parts = tmp_path / "killed" / "corpora" / "coral-small.parts"
    # while pages are chosen, once they are, while they are indexed, and in the second language
    for sign in ("", "en-*.pages.json", "en-*.building/work/state.json", "ko-*.pages.json"):
        process = subprocess.Popen(
            command, env=environment("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (any(parts.glob(sign)) if sign else parts.parent.exists()):
            time.sleep(0.005)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    repeated = subprocess.run(command, env=environment("killed"), capture_output=True, text=True)
    assert (repeated.stdout, repeated.returncode) == (whole, 0), repeated.stderr


# ------------------------------------------------------------------ the plan


def test_the_plan_is_arithmetic_on_known_sizes() -> None:
    english, amharic = plan_starter(CORAL, ["en", "am"])
    assert (english.pages, english.whole, english.kept) == (6_410_000, 25_000_000, 800_000)
    assert english.gigabytes == pytest.approx(800_000 * 1_750 / 1e9)
    # 25 M passages of 650 bytes read at 60 and at 120 MB a second, and 800,000 indexed at 5,000 a second
    assert english.seconds == pytest.approx(25e6 * 650 / 60e6 + 25e6 * 650 / 120e6 + 160)
    # the whole edition: read once, 2.7 passages a page
    assert amharic.kept == amharic.whole == 37_800
    hybrid = plan_starter(CORAL, ["en"], kind="hybrid", most=10_000)[0]
    assert hybrid.seconds - plan_starter(CORAL, ["en"], most=10_000)[0].seconds == pytest.approx(10_000 / 2.8)
    with pytest.raises(ConfigError, match="has no 'de'"):
        plan_starter(CORAL, ["de"])
    with pytest.raises(ConfigError, match="no plan is known for the kind 'sparse'"):
        plan_starter(CORAL, kind="sparse")


@pytest.mark.parametrize("name", starters())
def test_every_preset_keeps_to_ten_gigabytes_and_an_hour(name: str) -> None:
    planned = plan_starter(starters()[name])
    assert sum(one.gigabytes for one in planned) <= 10
    assert sum(one.seconds for one in planned) <= 3_600


def test_the_plan_is_printed_and_builds_nothing(cli: Any) -> None:
    code, said, errors = cli("--preset", "mkqa-small", "--plan")
    assert code == 0, errors
    assert "in all     ~5,000,000 of ~131,600,000 passages" in said
    assert known_corpora() == {}


def test_settings_of_the_command_replace_those_of_the_preset(dumps: Path) -> None:
    index = built(dumps, langs=["en"], dump="20251020", settings=CorpusSettings(size=50), name="halves")
    assert index.path.name == "halves"
    assert index.manifest.chunker is not None
    assert index.manifest.chunker["size"] == 50


def test_facts_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "facts.jsonl").write_text('{"title": "x", "lang": "en"}\n')
    with pytest.raises(DataError, match=r"facts.jsonl, line 1: title, lang and text must be text"):
        written(tmp_path / "dumps", "en", 1, "xml", "--facts", str(tmp_path / "facts.jsonl"))
