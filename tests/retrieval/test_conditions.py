"""The documents of a condition: whatever is kept of the hits of a row, its parts make them up."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from mrag_eval.config import MODES, Agent, Condition, Judge, Prompt, Retrieval, TaskBlocks
from mrag_eval.core import RagDoc
from mrag_eval.datasets import LOADERS, load_benchmark
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrieval import TaskRows
from tests.worlds.bordirlines import real_queries, write_bordirlines

KEPT = ("all", "relevant", "non_relevant")
MODES_SHOWN = ("qlang", "qlang+en", "en_only", "rel_langs", "swap_docs")


def test_each_hit_is_in_one_part_in_every_mode_of_every_benchmark() -> None:
    """Seven hits, labelled yes, no, not, yes, yes, no, not: the parts are disjoint and make up the first k."""
    hits, labels = "abcdefg", (True, False, None, True, True, False, None)
    counted = 0
    for benchmark, mode, k in product(LOADERS, MODES, (None, 0, 1, 3, 7, 20)):
        made = Condition.of({"retrieval": {"mode": mode, "k": k}, "data": {"benchmark": benchmark}})
        parts = made.parts(hits, labels)
        assert Counter(hit for part in parts.values() for hit in part) == Counter(hits[:k])
        for kept in KEPT[1:]:
            filtered = Condition(mode, k, kept)  # type: ignore[arg-type]
            assert filtered.chosen(hits, labels) == parts[kept]  # type: ignore[index]
            assert not filtered.shows_own_ranks
        counted += 1
    assert counted == len(LOADERS) * len(MODES) * 6


@pytest.fixture(scope="module")
def home(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a world of BordIRlines in which three times as many documents are stored as are shown."""
    return write_bordirlines(tmp_path_factory.mktemp("bordirlines"), real_queries(test_data), stored=30)


@pytest.mark.parametrize("k", [1, 3, 10, 20])
@pytest.mark.parametrize("mode", MODES_SHOWN)
def test_filters_divide_the_documents_that_are_shown(mode: str, k: int, home: Path, test_data: Path) -> None:
    """Relevant, not relevant and unlabelled make up all, row by row; rows that show nothing are counted."""
    shown: dict[str, dict[str, list[str]]] = {}
    for kept in KEPT:
        try:
            rows, data = task(home, test_data, mode, k, documents=kept)
        except DataError:
            # every row is left out: none shows a document
            shown[kept] = {}
            continue
        found = rows.retrieved(list(rows.docs.values()))
        shown[kept] = {doc: [hit.id for hit in one.passages] for doc, one in zip(rows.docs, found, strict=True)}
        assert all(shown[kept].values())
        assert len(rows.docs) + len(rows.skipped) + rows.without == len(data)
        if kept != "all":
            labels = {hit.labels["relevant"] for one in found for hit in one.passages if hit.labels}
            assert labels <= {"yes" if kept == "relevant" else "no"}
    for row, every in shown["all"].items():
        parts = [shown[kept].get(row, []) for kept in KEPT[1:]]
        assert len(every) <= k
        assert not {*parts[0]} & {*parts[1]}
        assert {*parts[0]} | {*parts[1]} <= {*every}
        assert [hit for hit in every if hit in parts[0]] == parts[0]
    # every document of this world is labelled
    assert sum(len(run) for run in shown["all"].values()) == sum(len(r) for p in KEPT[1:] for r in shown[p].values())


@pytest.mark.parametrize("k", [1, 3, 10])
def test_an_exchange_is_among_the_documents_that_are_shown(k: int, home: Path, test_data: Path) -> None:
    plain, _ = task(home, test_data, "qlang", k)
    flipped, _ = task(home, test_data, "qlang", k, flip=True)
    before = dict(zip(plain.docs, plain.retrieved(list(plain.docs.values())), strict=True))
    after = flipped.retrieved(list(flipped.docs.values()))
    assert after
    for row, one in zip(flipped.docs, after, strict=True):
        pairs = list(zip(before[row].passages, one.passages, strict=True))
        assert sum(a.id != b.id for a, b in pairs) == 1


@pytest.mark.parametrize("changes", [{"documents": "relevant"}, {"flip": True}])
def test_a_second_stage_cannot_follow_a_filter(changes: dict[str, object], home: Path, test_data: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.(documents=relevant|flip) changes the first 10 hits"):
        task(home, test_data, "qlang", 10, rerank="org/reranker", **changes)


def task(
    home: Path, test_data: Path, mode: str, k: int, *, rerank: str | None = None, **data: object
) -> tuple[TaskRows, list[RagDoc]]:
    block = {"benchmark": "bordirlines", "path": str(home), "borderlines": str(test_data / "borderlines"),
             "embedder": "openai", "territories": ["Ceuta", "Crimea"], **data}  # fmt: skip
    retrieval = Retrieval(mode=mode, k=k, corpus="published", query_text="question", rerank=rerank)
    blocks = TaskBlocks(retrieval, Agent(), Prompt(), Judge(), block, ())
    return TaskRows(blocks), load_benchmark(block).docs
