"""Progress of a build: rate and time left, with and without a known total, on a terminal and in a log."""

from __future__ import annotations

import bz2
import gzip
import json
import logging
import random
from pathlib import Path

import pytest

from mrag_eval.core import Passage
from mrag_eval.retrievers import ChunkConfig, build_index, read_corpus
from mrag_eval.retrievers.build._chunk_workers import cut_by_workers
from mrag_eval.retrievers.build._progress import Progress, spoken
from mrag_eval.retrievers.corpora._reading import Reading, Share, counted
from tests.retrievers.faulty_build import documents
from tests.terminals import showing_waits


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log_at_info(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    # the harness's logger may be set not to propagate its lines
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    caplog.set_level(logging.INFO, logger="lm_eval")
    return caplog


def test_rate_and_time_left_from_a_total() -> None:
    clock = Clock()
    progress = Progress("wiki", 1_000, clock=clock)
    progress.start(200)
    clock.now += 20
    progress.add(100)
    # 100 in 20 s, 700 to go
    assert progress.seconds_left() == pytest.approx(140)
    assert progress.line() == "300 passages, 5.0 a second, about 2 min 20 s left"


def test_time_left_from_the_share_of_the_source_that_is_read() -> None:
    clock, share = Clock(), 0.0
    progress = Progress("wiki", None, lambda: share, clock=clock)
    taken = progress.taking(range(1_000))
    for _ in range(100):
        next(taken)
    progress.start(100)
    for _ in range(300):
        next(taken)
    # 400 passages are read and make up half of the source; 150 of them are new and done
    share = 0.5
    clock.now += 60
    progress.add(150)
    assert progress.expected() == 800
    # 2.5 a second, 800 - 250 to go
    assert progress.line() == "250 passages, 2.5 a second, about 3 min 40 s left"


def test_workers_that_read_ahead_do_not_hurry_the_estimate() -> None:
    corpus = counted(list(documents(3_000)), 3_000)
    share = Share(lambda: corpus.share_read)
    passages = cut_by_workers(corpus, ChunkConfig("words", 1_000), 2, share=share)
    for number in range(1, 3_001):
        next(passages)
        if number % 256 == 0:
            # one passage per document, 256 documents per worker batch
            assert share() == pytest.approx(number / 3_000)
            assert (corpus.share_read or 0) > number / 3_000 or number > 3_000 - 5 * 256
    passages.close()  # type: ignore[attr-defined]


def test_nothing_is_made_up() -> None:
    clock = Clock()
    progress = Progress("wiki", clock=clock)
    progress.start(0)
    clock.now += 10
    progress.add(5)
    assert progress.line() == "5 passages, 0.5 a second, time left unknown"


def test_lines_of_the_log_twice_a_minute(log_at_info: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with Progress("wiki", 100, clock=clock) as progress:
        progress.start(10)
        for _ in range(8):
            clock.now += 10
            progress.add(10)
        progress.phase("writing")
    assert [record.message for record in log_at_info.records] == [
        "wiki: continues after 10 passages",
        "wiki: 40 passages, 1.0 a second, about 1 min 00 s left",
        "wiki: 70 passages, 1.0 a second, about 30 s left",
        "wiki: 90 passages, 1.0 a second, writing",
    ]


def test_a_line_on_a_terminal_whose_total_is_estimated(log_at_info: pytest.LogCaptureFixture) -> None:
    share, clock = 0.0, Clock()
    with showing_waits() as terminal, Progress("index wiki", None, lambda: share, clock=clock) as progress:
        progress.start(0)
        share = 0.5
        list(progress.taking("x" * 21))
        clock.now += 7
        progress.add(21)
        terminal.wait_for("index wiki:  50%|██████████          | 21/42 passages · 0:07 · 0:07 left")
        progress.phase("writing")
        terminal.wait_for("index wiki: writing: 21 passages · 0:07")
    assert not log_at_info.records


def test_quiet_means_quiet(log_at_info: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    build_index([Passage("1", "en", "text")], tmp_path / "i", kind="bm25", progress=False)
    assert not log_at_info.records


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (3_725, "1 h 02 min"), (200_000, "2 d 7 h")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert spoken(seconds) == expected


# ---------------------------------------------------------------- the share of a source


def lines(count: int) -> str:
    rows = ({"id": str(n), "lang": "en", "text": "x" * 10_000} for n in range(100, 100 + count))
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_the_share_of_json_lines_is_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(30), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(lines(60).replace('"id": "', '"id": "b'), encoding="utf-8")
    stream = read_corpus(tmp_path)
    shares = []
    for _ in stream:
        shares.append(stream.share_read)
    # a file's reader is up to a buffer ahead: 8 KiB of 10 KB lines
    assert shares == pytest.approx([n / 90 for n in range(1, 91)], abs=0.02)
    assert stream.share_read == 1.0


def test_the_share_of_compressed_files_is_in_bytes_on_disk(tmp_path: Path) -> None:
    letters = random.Random(1)
    rows = [{"id": str(n), "lang": "en", "text": "".join(letters.choices("abcdefgh", k=9_000))} for n in range(200)]
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    stream = read_corpus(tmp_path / "a.jsonl.gz")
    shares = [stream.share_read or 0.0 for _ in stream]
    assert shares == sorted(shares)
    assert shares[100] == pytest.approx(0.5, abs=0.15)


def test_the_share_of_parquet_is_in_rows(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": [str(n) for n in range(50)], "text": ["t"] * 50})
    pq.write_table(table, tmp_path / "a.parquet")
    stream = read_corpus(tmp_path / "a.parquet", lang="en")
    shares = [stream.share_read for _ in stream]
    assert shares == pytest.approx([n / 50 for n in range(1, 51)])


def test_the_share_of_text_files(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    for n in range(4):
        (tmp_path / "en" / f"{n}.txt").write_text("x" * 100, encoding="utf-8")
    stream = read_corpus(tmp_path)
    assert [stream.share_read for _ in stream] == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_compressed_dumps_and_lists_are_counted_too(tmp_path: Path) -> None:
    (tmp_path / "a.bz2").write_bytes(bz2.compress(b"0\n" + random.Random(2).randbytes(3_000_000)))
    reading = Reading()
    reading.expect([tmp_path / "a.bz2"])
    with reading.binary(tmp_path / "a.bz2", bz2.BZ2File) as file:
        assert file.readline() == b"0\n"
        assert 0 < (reading.share or 0) < 1
        file.read()
        assert reading.share == 1.0
    assert reading.share == 1.0
    stream = counted("abcd", 4)
    next(stream)
    assert stream.share_read == 0.25
