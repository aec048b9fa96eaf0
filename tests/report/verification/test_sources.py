"""What rows are said to be: computed again from the rows themselves, wherever they lie."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.config import dotted, is_named
from mrag_eval.report import Verified, verify
from tests.worlds.finished_runs import run
from tests.worlds.forged_runs import Run, change, keys_of
from tests.worlds.forged_runs import dotted as named

Forged = Callable[[str], Run]
COPY = "that the local copy of the data holds the published rows"
# The task whose source is tampered with, by run: published rows, a part of them, a copy, a user's own, likelihoods.
TASKS = {
    "xquad": "xquad_rag_de",
    "choices": "blend_norag_am",
    "bordirlines": "bordirlines_swap_docs_citation_openai",
    "judged": "xrag_multi_de",
    "labelled": "xlcost_travel",
    "small": "wide",
}


def sources(forged: Run, task: str) -> list[dict[str, Any]]:
    """Return the record of a task's source."""
    return [forged.content["configs"][task]["measurement"]["data"]["source"]]


def faults(found: Verified | None, task: str) -> set[str]:
    """Return the keys of the source that faults of a task name."""
    assert found is not None
    texts = [one.text for one in found.of("fault") if one.task == task]
    return {text.partition(" is ")[0] for text in texts if text.startswith("source.")}


def doctored(folder: Path, data: Path) -> Path:
    """Write XQuAD in German and English with other German questions."""
    copy = folder / "doctored"
    copy.mkdir()
    for language in ("de", "en"):
        content = json.loads(gzip.decompress((data / "xquad" / f"xquad.{language}.json.gz").read_bytes()))
        for article in content["data"] if language == "de" else ():
            for paragraph in article["paragraphs"]:
                for row in paragraph["qas"]:
                    row["question"] += " Bitte kurz."
        (copy / f"xquad.{language}.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    return copy


def test_a_doctored_copy_under_the_record_of_the_published_rows(
    forged: Forged, tmp_path: Path, test_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"path": str(doctored(tmp_path, test_data)), "languages": ["de", "en"]}
    metadata = {"data": data, "retrieval": {"kind": "bm25", "mode": "all"}}
    run(tmp_path, ["xquad_rag_de"], lambda prompt: "1066", metadata, limit=6)
    own = Run(tmp_path / "out", tmp_path)
    clean = own.verified()
    assert clean is not None
    assert clean.of("fault") == []
    assert any("a copy whose rows differ from the published: de" in one.text for one in clean.of("deviation"))
    official = sources(forged("xquad"), "xquad_rag_de")[0]
    for source in sources(own, "xquad_rag_de"):
        source |= deepcopy({key: value for key, value in official.items() if key != "place"})
    assert {"source.content", "source.published.status"} <= faults(own.verified(), "xquad_rag_de")
    with pytest.raises(SystemExit) as done:
        main(["verify", str(own.path), "--own-settings"])
    assert done.value.code == 1
    shown = capsys.readouterr().out
    assert f"by the rows here ({tmp_path / 'doctored'})" in shown
    assert COPY not in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_every_key_of_a_source_is_computed_again(name: str, forged: Forged) -> None:
    """Both records of a key are changed; where the rows were read is no part of what they are."""
    own, task = forged(name), TASKS[name]
    assert faults(own.verified(), task) == set()
    paths = [path for path in keys_of(sources(own, task)[0]) if path[0] != "place" and path[:2] != ("corpus", "place")]
    assert len(paths) >= 4
    missed = []
    for path in paths:
        own.restore()
        for source in sources(own, task):
            change(source, path)
        key = f"source.{named(path)}"
        if not any(is_named(key, [fault]) for fault in faults(own.verified(), task)):
            missed.append(key)
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_key_that_is_removed_or_added_is_a_fault(name: str, forged: Forged) -> None:
    own, task = forged(name), TASKS[name]
    for key in [key for key in sources(own, task)[0] if key != "place"]:
        own.restore()
        for source in sources(own, task):
            del source[key]
        assert f"source.{key}" in faults(own.verified(), task)
    own.restore()
    for source in sources(own, task):
        source["reviewed"] = True
    assert faults(own.verified(), task) == {"source.reviewed"}


def test_published_rows_in_another_folder_have_no_fault(forged: Forged, tmp_path: Path, test_data: Path) -> None:
    own = forged("xquad")
    copy = Path(shutil.copytree(test_data / "xquad", tmp_path / "elsewhere"))
    own.content["configs"]["xquad_rag_de"]["measurement"]["setting"]["data"]["path"] = "/gone/xquad"
    own.write()
    (absent,) = verify([own.path], own.tasks)
    assert any("the published ones, which was not computed again" in one.text for one in absent.of("open"))
    assert "questions, reference answers, and which rows there are" in absent.unchecked
    (found,) = verify([own.path], own.tasks, [copy])
    assert found.of("fault") == found.of("note") == []
    assert COPY not in found.unchecked


@pytest.mark.parametrize(("name", "printed"), [("xquad", False), ("small", False), ("choices", True), ("judged", True)])
def test_a_copy_is_unchecked_only_where_nothing_is_declared(name: str, printed: bool, forged: Forged) -> None:
    found = forged(name).verified()
    assert found is not None
    assert (COPY in found.unchecked) is printed


def test_rows_read_by_revision_are_compared_with_a_copy_by_content(forged: Forged) -> None:
    """A copy of rows without a declared hash cannot say that they are of a revision, and is no contradiction to it."""
    own = forged("choices")
    task, config = TASKS["choices"], own.content["configs"][TASKS["choices"]]
    copy = Path(config["measurement"]["setting"]["data"]["path"])
    claim = {"status": "revision", "reason": "by revision 0123, content not verified", "revision": "0123", "rows": 335}
    for source in sources(own, task):
        source |= {"published": claim, "place": {"hub": "nayeon212/BLEnD", "revision": "0123"}}
    own.write()
    (found,) = verify([own.path], own.tasks)
    told = [one.text for one in found.of("fault") if one.task == task]
    assert told == ["source.place names no local copy, and data.path does"]
    del config["measurement"]["setting"]["data"]["path"]
    own.record(task)
    own.write()
    (found,) = verify([own.path], own.tasks, [copy])
    assert faults(found, task) == set()
    for source in sources(own, task):
        source["content"] = "0" * 64
    own.write()
    (found,) = verify([own.path], own.tasks, [copy])
    assert faults(found, task) == {"source.content"}


def test_another_version_may_say_more_of_rows_but_not_less_than_is_claimed(forged: Forged) -> None:
    own, task = forged("judged"), TASKS["judged"]
    own.content["configs"][task]["measurement"]["environment"]["versions"]["mrag-eval"] = "0.0.1"
    for source in sources(own, task):
        source["published"]["reason"] = "in other words"
    found = own.verified()
    assert faults(found, task) == set()
    assert found is not None
    assert any(one.text.startswith("source.published.reason is in other words") for one in found.of("open"))
    for source in sources(own, task):
        source["published"]["status"] = "official"
    assert faults(own.verified(), task) == {"source.published.reason", "source.published.status"}


def test_sources_of_these_runs_hold_what_is_tested(forged: Forged) -> None:
    """There are rows of every standing that a copy may have, and documents with a record of their own."""
    held = [sources(forged(name), task)[0] for name, task in TASKS.items()]
    assert {one["published"]["status"] for one in held} == {"official", "local", "own"}
    assert sum("corpus" in one for one in held) >= 3
    assert all("source.content" in dotted({"source": one}) for one in held)
