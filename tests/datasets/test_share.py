"""A fixed share of the questions: the same whatever else is read, whole questions, and named wherever it matters."""

from __future__ import annotations

import hashlib
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from mrag_eval.core import RagDoc
from mrag_eval.datasets import load_benchmark, shared, validate_data
from mrag_eval.platform import ConfigError
from mrag_eval.report import read_results
from tests.report.test_export import write_run


def docs(questions: int, languages: tuple[str, ...] = ("de", "ar")) -> list[RagDoc]:
    return [RagDoc(f"{i}-{lang}", f"q{i}", lang, group_id=f"g{i}") for i in range(questions) for lang in languages]


def ids(rows: list[RagDoc]) -> list[str]:
    return [doc.id for doc in rows]


def test_the_questions_with_the_lowest_hashes_stay() -> None:
    """Computed apart: of ten questions a quarter, rounded up, are three."""
    order = sorted(range(10), key=lambda i: hashlib.sha256(f"7 g{i}".encode()).hexdigest())
    kept = set(order[:3])
    assert ids(shared(docs(10), 0.25, 7)) == [f"{i}-{lang}" for i in range(10) if i in kept for lang in ("de", "ar")]


def test_versions_stay_together_and_neither_order_nor_other_rows_decide() -> None:
    whole, shuffled = docs(40), docs(40)
    random.Random(1).shuffle(shuffled)
    half = shared(whole, 0.5, 0)
    assert len(half) == 40
    assert {doc.group_id for doc in half if doc.query_lang == "de"} == {doc.group_id for doc in half}
    assert set(ids(shared(shuffled, 0.5, 0))) == set(ids(half))
    assert ids(shared(docs(40, ("ar",)), 0.5, 0)) == [doc.id for doc in half if doc.query_lang == "ar"]


@pytest.mark.parametrize("seed", range(5))
def test_a_smaller_share_is_a_part_of_a_larger_one(seed: int) -> None:
    found = [set(ids(shared(docs(33), share, seed))) for share in (0.01, 0.1, 0.34, 0.9, 1)]
    assert all(small < large for small, large in pairwise(found))
    assert [len(part) // 2 for part in found] == [1, 4, 12, 30, 33]
    assert found[2] != set(ids(shared(docs(33), 0.34, seed + 1)))


def test_every_question_comes_as_often_as_any_other() -> None:
    """Over 2,000 seeds, each of ten questions is among three with probability .3 (a standard deviation of 20.5)."""
    times = dict.fromkeys((f"g{i}" for i in range(10)), 0)
    for seed in range(2000):
        for doc in shared(docs(10, ("de",)), 0.3, seed):
            times[str(doc.group_id)] += 1
    assert all(abs(n - 600) < 5 * 20.5 for n in times.values())


def test_questions_of_one_paragraph_are_drawn_apart() -> None:
    rows = [RagDoc(str(i), "q", "de", group_id="p", extra={"question_id": str(i)}) for i in range(10)]
    assert len(shared(rows, 0.3, 0)) == 3


def test_without_rows_there_are_none() -> None:
    assert shared([], 0.5, 0) == []


@pytest.mark.parametrize("share", [0, -0.5, 1.01, "half"])
def test_a_wrong_share_is_named(share: object) -> None:
    with pytest.raises(ConfigError, match="share"):
        validate_data({"benchmark": "demo", "share": share})


def test_passages_and_the_record_of_what_was_read_are_those_of_the_whole() -> None:
    whole, half = load_benchmark({"benchmark": "demo"}), load_benchmark({"benchmark": "demo", "share": 0.5})
    assert 0 < len(half.docs) < len(whole.docs)
    assert half.corpus == whole.corpus
    for key in ("content", "rows", "published", "corpus"):
        assert half.source.get(key) == whole.source.get(key), key
    assert half.source["questions"] == len(half.docs)
    assert load_benchmark({"benchmark": "demo", "share": 1}).docs == whole.docs


def test_a_share_is_a_part_of_the_rows(tmp_path: Path) -> None:
    """No leaderboard takes it for the whole, although the harness knows of no other rows."""
    run = write_run(tmp_path / "run", data={"share": 0.5})
    (path,) = run.rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    content["n-samples"] = {"rag_de": {"original": 4, "effective": 4}}
    path.write_text(json.dumps(content), "utf-8")
    (file,) = read_results([run])
    assert file.part("rag_de") == "4 rows (data.share 0.5)"
