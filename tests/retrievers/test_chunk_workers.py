"""Cutting documents in worker processes: same order and index as one process, and a clear error if a worker dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrievers import ChunkConfig, Document, build_index
from mrag_eval.retrievers.build._chunk_workers import cut, cut_by_workers, item_batches
from mrag_eval.retrievers.chunking._chunking import count_tokens
from tests.retrievers.faulty_build import documents

WORDS = ChunkConfig("words", 10)


def die_at_the_last(text: str) -> int:
    """A token counter that kills its process."""
    if "title 299" in text or "w999" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return count_tokens(text)


def refuse(text: str) -> int:
    raise ConfigError("this counter counts nothing", "take another one")


def test_passages_come_in_the_order_of_the_corpus() -> None:
    corpus = [*documents(700), Passage(id="whole", lang="en", text="a passage as it is"), *list(documents(710))[700:]]
    found = list(cut_by_workers(iter(corpus), WORDS, 2))
    assert found == cut(corpus, WORDS)
    assert len(found) > 1_000


@pytest.mark.parametrize("workers", [1, 2])
def test_the_index_is_the_same(tmp_path: Path, workers: int) -> None:
    settings = {"kind": "bm25", "chunker": {"method": "sentences", "size": 12}, "progress": False}
    one = build_index(documents(300), tmp_path / "one", **settings)  # type: ignore[arg-type]
    many = build_index(documents(300), tmp_path / "many", workers=workers, **settings)  # type: ignore[arg-type]
    assert many.manifest.fingerprint == one.manifest.fingerprint


def test_batches_are_bounded_by_items_and_characters() -> None:
    items = [Document(str(n), "en", "x" * size) for n, size in enumerate([1, 1, 1, 9, 1, 20, 1])]
    assert [[item.id for item in batch] for batch in item_batches(items, 3, 10)] == [
        ["0", "1", "2"],
        ["3", "4"],
        ["5"],
        ["6"],
    ]


def test_the_corpus_is_read_a_few_batches_ahead_only() -> None:
    read = 0

    def endless() -> Iterator[Document]:
        nonlocal read
        while True:
            read += 1
            yield Document(str(read), "en", f"document {read}")

    passages = cut_by_workers(endless(), WORDS, 1)
    next(passages)
    # a batch of 256 for the worker, and two waiting
    assert read <= 4 * 256
    passages.close()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_dead_worker_is_reported_and_the_build_can_be_resumed(tmp_path: Path) -> None:
    corpus = [*documents(299), Document("last", "en", "w999 is where it ends")]
    settings = {"kind": "bm25", "chunker": {"method": "sentences", "size": 12}, "progress": False, "batch_size": 16}
    with pytest.raises(CorpusError, match="a worker process that cuts documents died") as caught:
        build_index(corpus, tmp_path / "i", workers=2, token_counter=die_at_the_last, **settings)  # type: ignore[arg-type]
    assert "--resume" in str(caught.value.next_step)
    assert not (tmp_path / "i").exists()
    index = build_index(corpus, tmp_path / "i", workers=2, resume=True, **settings)  # type: ignore[arg-type]
    whole = build_index(corpus, tmp_path / "whole", **settings)  # type: ignore[arg-type]
    assert index.manifest.fingerprint == whole.manifest.fingerprint


def test_errors_of_the_reader_and_of_a_worker_arrive_whole(tmp_path: Path) -> None:
    def broken() -> Iterator[Document]:
        yield from documents(5)
        raise DataError("x.jsonl, line 6: invalid JSON", "mend it")

    with pytest.raises(DataError, match="line 6") as caught:
        list(cut_by_workers(broken(), WORDS, 1))
    assert caught.value.next_step == "mend it"
    with pytest.raises(ConfigError) as refused:
        list(cut_by_workers(documents(5), ChunkConfig("sentences"), 1, refuse))
    assert (refused.value.message, refused.value.next_step) == ("this counter counts nothing", "take another one")


def test_a_negative_number_of_workers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="workers is -1"):
        build_index(documents(1), tmp_path / "i", kind="bm25", workers=-1)


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "print('begins', flush=True)\n"
        "from mrag_eval.retrievers import Document, build_index\n"
        "documents = (Document(f'd{number}', 'en', f'text {number}') for number in range(30))\n"
        "settings = dict(kind='bm25', chunker='paragraphs', progress=False)\n"
        f"print(len(build_index(documents, {str(tmp_path / 'i')!r}, workers=2, **settings)))\n",
        encoding="utf-8",
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "begins\n30\n"
