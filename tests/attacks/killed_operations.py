"""Commands that are killed before an operation on a file: ``python killed_operations.py FOLDER SCENARIO EVERY SEED``.

A scenario prepares a folder and then writes an index there. Everything is imported once; each call is a fork. The
operations of an undisturbed call are counted (a file opened to write, moved, linked or removed; a folder made or
removed). Then one call in a copy of the prepared folder is killed before an operation, for one of ``EVERY`` of them,
and repeated. Prints the numbers of operations and kills, what was wrong after a repeat, and the folders that were left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage
from mrag_eval.platform import MragError
from mrag_eval.retrieval import CorpusSettings, build_corpus
from mrag_eval.retrievers import (
    Document,
    Edition,
    add_documents,
    build_index,
    cached_index,
    import_vectors,
    index_info,
    merge_indexes,
)
from tests.retrievers.conftest import TokenHashEmbedder
from tests.retrievers.faulty_build import Lengths, documents
from tests.worlds.vectors import made, write_upstash

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link"}


@dataclass(frozen=True)
class Scenario:
    """``prepare`` fills a folder; ``act`` writes the index ``target`` (a pattern) in it, and once more after a kill."""

    prepare: Callable[[Path], Any]
    act: Callable[[Path], Any]
    target: str = "index"


def build(path: Path, count: int, **settings: Any) -> None:
    keys = {"chunker": {"method": "words", "size": 20}, "batch_size": 8, "window": 16, "embedder": Lengths()}
    build_index(documents(count), path, progress=False, **{**keys, "kind": "hybrid", **settings})


def passages(lang: str, count: int) -> Iterator[Passage]:
    return (Passage(id=f"{lang}{n}", lang=lang, text=f"bridge {n} of {lang}") for n in range(count))


def lexical(path: Path, *langs: str, count: int = 5, **settings: Any) -> None:
    found = [passage for lang in langs for passage in passages(lang, count)]
    build_index(found, path, kind="bm25", progress=False, **settings)


def parts(folder: Path) -> None:
    """Two indexes that share a language, so that it is written again, and have one each that is linked."""
    lexical(folder / "one", "en", "ko")
    found = [*passages("zh", 4), *(Passage(id=f"x{n}", lang="en", text=f"tower {n}") for n in range(4))]
    build_index(found, folder / "two", kind="bm25", progress=False)


def corpus(folder: Path, *langs: str, **keys: bool) -> None:
    os.environ["MRAG_CACHE"] = str(folder)
    editions = [
        Edition(
            lang,
            f"pages in {lang}",
            lambda lang=lang: (Document(id=f"{lang}{n}", lang=lang, text=f"page {n} " * 9) for n in range(6)),
        )
        for lang in langs
    ]
    build_corpus("wiki", editions, CorpusSettings(kind="bm25", size=20), **keys)


def stopped(folder: Path) -> None:
    """An unfinished build with other settings, which a new one does not go on with."""
    child = os.fork()
    if not child:
        kill_before(60)
        build(folder / "index", 30, batch_size=4)
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert (folder / "index.building" / "work" / "state.json").exists()


def cached(folder: Path) -> None:
    cached_index(documents(30), kind="bm25", cache_dir=folder, progress=False)


def damaged(folder: Path) -> None:
    cached(folder)
    (next((folder / "indexes").glob("*")) / "passages" / "en.text").write_bytes(b"")


def vectors(folder: Path) -> None:
    write_upstash(folder / "set", made(TokenHashEmbedder().embed_passages, 12))


def imported(folder: Path, **keys: bool) -> None:
    settings = {"embedder": TokenHashEmbedder(), "preset": "upstash-bge-m3", "progress": False, **keys}
    import_vectors(str(folder / "set"), folder / "index", **settings)


SCENARIOS = {
    "build": Scenario(lambda folder: None, lambda folder: build(folder / "index", 30, resume=True)),
    "build anew": Scenario(stopped, lambda folder: build(folder / "index", 30)),
    "replace": Scenario(
        lambda folder: build(folder / "index", 9),
        lambda folder: build(folder / "index", 30, resume=True, overwrite=True),
    ),
    "import": Scenario(vectors, lambda folder: imported(folder, resume=True)),
    "cache": Scenario(lambda folder: None, cached, target="indexes/*[0-9a-f]"),
    "cache, damaged": Scenario(damaged, cached, target="indexes/*[0-9a-f]"),
    "merge": Scenario(parts, lambda folder: merge_indexes([folder / "one", folder / "two"], folder / "index")),
    "merge into a part": Scenario(
        parts,
        lambda folder: merge_indexes([folder / "one", folder / "two"], folder / "one", overwrite=True),
        target="one",
    ),
    "add": Scenario(
        lambda folder: lexical(folder / "index", "en", "ko"),
        lambda folder: add_documents(
            folder / "index", [Document(id="new", lang="ko", text="a new bridge")], resume=True, progress=False
        ),
    ),
    "corpus": Scenario(lambda folder: None, lambda folder: corpus(folder, "en", "ko"), target="corpora/wiki"),
    "corpus, another language": Scenario(
        lambda folder: corpus(folder, "en"), lambda folder: corpus(folder, "ko", add=True), target="corpora/wiki"
    ),
    "corpus, anew": Scenario(
        lambda folder: corpus(folder, "en", "ko"),
        lambda folder: corpus(folder, "en", overwrite=True),
        target="corpora/wiki",
    ),
}


def kill_before(operation: int) -> list[int]:
    """Kill this process before its ``operation``-th change of a file; return the number of changes, counted so far."""
    changes = [0]

    def seen(event: str, details: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and details[2] & _WRITING):
            changes[0] += 1
            if changes[0] == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(seen)
    return changes


def called(scenario: Scenario, folder: Path, operation: int = 0) -> tuple[int | None, str]:
    """Call ``act`` in a fork; return the number of changes, and an error of ours. A killed call has neither."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        error = ""
        changes = kill_before(operation)
        try:
            scenario.act(folder)
        except MragError as raised:
            error = str(raised)
        except BaseException as raised:
            error = f"traceback: {raised!r}"
        os.write(writing, json.dumps([changes[0], error]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None, ""
    count, error = json.loads(said)
    return count, error


def held(folder: Path, target: str) -> str:
    """Return the fingerprint of an index, or what is said of a folder without one."""
    try:
        return str(index_info(next(folder.glob(target), folder / target))["fingerprint"])
    except MragError as error:
        return f"none: {error}"


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file, and nothing for every folder."""
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    return {name: file.read_bytes() if file.is_file() else b"" for name, file in files.items()}


def top(file: str) -> str:
    """Return the folder beside the index that holds ``file``."""
    return file.removeprefix("corpora/").partition("/")[0]


def main(folder: Path, name: str, every: int, seed: int) -> None:
    sys.dont_write_bytecode = True
    scenario, base, whole = SCENARIOS[name], folder / "base", folder / "whole"
    base.mkdir(parents=True)
    scenario.prepare(base)
    before = held(base, scenario.target)
    warm = shutil.copytree(base, folder / "warm")
    scenario.act(warm)  # whatever is imported late
    shutil.copytree(base, whole)
    operations, error = called(scenario, whole)
    assert operations, error
    assert not error
    expected, files = held(whole, scenario.target), contents(whole)
    faults, left, killed = [], Counter[str](), 0
    for operation in range(1 + seed % every, operations + 1, every):
        place = shutil.copytree(base, folder / "place")
        killed += called(scenario, place, operation)[0] is None
        found = held(place, scenario.target)
        if found not in (before, expected) and not found.startswith("none: "):
            faults.append([operation, f"holds {found}"])
        _, error = called(scenario, place)
        if error and found != expected:
            faults.append([operation, error])
        elif held(place, scenario.target) != expected:
            faults.append([operation, "another index"])
        now = contents(place)
        faults += [[operation, f"{file} differs"] for file in files if now.get(file) != files[file]]
        # a lock that nobody holds is in nobody's way
        left.update({top(file) for file in now.keys() - files if not file.endswith(".lock")})
        shutil.rmtree(place)
    print(json.dumps({"operations": operations, "killed": killed, "faults": faults, "left": left}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
