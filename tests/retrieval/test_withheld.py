"""Withheld passages: which rows are drawn, what they are shown instead, and where it is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mrag_eval.config import MODES, Retrieval, passages_shown, validated
from mrag_eval.core import GivenPassage, Hit, Passage, RagDoc, Ranked, Reranking, Retrieved, RowScores, is_relevant
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval._pipeline import with_withheld
from mrag_eval.retrieval._texts import PassageTable
from mrag_eval.retrieval.saved._records import as_record, from_record
from mrag_eval.scoring import row_record
from tests.task.test_hook import run
from tests.worlds.small import BASE, write_task


def given(n: int, *, gold: int = 1) -> RagDoc:
    passages = tuple(GivenPassage(f"{n}-{i}", "de", f"Absatz {i}.", is_gold=i == gold) for i in range(4))
    return RagDoc(f"row{n}", "Wo?", "de", given_passages=passages, relevant_ids=(f"{n}-{gold}",))


DOCS = [given(n) for n in range(200)]


def shown(docs: Sequence[RagDoc], **block: Any) -> dict[str, Retrieved]:
    found = retrieve(docs, Retrieval(**{"mode": "given", **block}))
    return {doc.id: row for doc, row in zip(docs, found, strict=True)}


def test_a_share_of_the_rows_is_shown_no_relevant_passage_and_the_others_all_of_theirs() -> None:
    found = shown(DOCS, unanswerable=0.3)
    drawn = [doc for doc in DOCS if found[doc.id].withheld]
    # the share is that of an independent draw: 60 of 200, with a standard deviation of 6.5
    assert 40 < len(drawn) < 80
    for doc in DOCS:
        relevant = [hit for hit in found[doc.id].passages if is_relevant(hit, doc)]
        assert (len(relevant), len(found[doc.id].passages)) == ((0, 3) if doc in drawn else (1, 4))
        assert [hit.rank for hit in found[doc.id].passages] == [*range(1, len(found[doc.id].passages) + 1)]


def test_seed_and_id_alone_decide_which_rows() -> None:
    whole = {name for name, row in shown(DOCS, unanswerable=0.3).items() if row.withheld}
    part = {name for name, row in shown(DOCS[150:90:-1], unanswerable=0.3).items() if row.withheld}
    assert part == whole & {doc.id for doc in DOCS[91:151]}
    # a smaller share is part of a larger one
    assert {name for name, row in shown(DOCS, unanswerable=0.1).items() if row.withheld} < whole
    assert {name for name, row in shown(DOCS, unanswerable=0.3, seed=1).items() if row.withheld} != whole
    assert all(row.withheld for row in shown(DOCS, unanswerable=1.0).values())
    assert {row.withheld for row in shown(DOCS).values()} == {None}


def test_a_row_without_a_relevant_passage_or_without_any_other_is_not_drawn() -> None:
    unknown = replace(DOCS[0], id="unknown", relevant_ids=())
    alone = replace(DOCS[1], id="alone", given_passages=DOCS[1].given_passages[1:2])
    found = shown([unknown, alone, DOCS[2]], unanswerable=1.0)
    assert {name: row.withheld for name, row in found.items()} == {"unknown": False, "alone": False, "row2": True}
    assert [len(row.passages) for row in found.values()] == [4, 1, 3]


TEXTS = PassageTable([Passage(f"p{i}", "de", f"Text {i}", doc_id=f"d{i // 2}") for i in range(8)], "texts")
RANKING = tuple(Ranked(f"p{i}", f"d{i // 2}", "de", 1.0 - i / 10) for i in range(8))
HITS = tuple(Hit(f"p{i}", "de", f"Text {i}", 1.0 - i / 10, i + 1, doc_id=f"d{i // 2}") for i in range(3))
SEARCHED = RagDoc("s", "Wo?", "de", relevant_ids=("d0",))


def test_the_next_passages_of_the_ranking_take_the_places() -> None:
    """Document d0 has p0 and p1, both shown: p3 and p4 follow p2."""
    row = Retrieved(HITS, RANKING)
    (found,) = with_withheld([row], [SEARCHED], Retrieval(mode="all", k=3, unanswerable=1.0), TEXTS)
    assert [(hit.id, hit.rank, hit.score) for hit in found.passages] == [("p2", 1, 0.8), ("p3", 2, 0.7), ("p4", 3, 0.6)]
    assert (found.ranking, found.withheld) == (RANKING, True)
    reranked = replace(row, reranked=Reranking(tuple(replace(p, score=p.score * 9) for p in reversed(RANKING))))
    (found,) = with_withheld([reranked], [SEARCHED], Retrieval(mode="all", k=3, unanswerable=1.0), TEXTS)
    assert [hit.id for hit in found.passages] == ["p2", "p7", "p6"]
    assert found.passages[1].score == pytest.approx(0.3)
    assert found.passages[1].rerank_score == pytest.approx(2.7)
    (short,) = with_withheld([Retrieved(HITS)], [SEARCHED], Retrieval(mode="all", k=3, unanswerable=1.0), TEXTS)
    assert [hit.id for hit in short.passages] == ["p2"]


@pytest.mark.parametrize("withheld", [None, True, False])
def test_the_record_of_a_row_says_so(withheld: bool | None) -> None:
    row = Retrieved(HITS, RANKING, {"de": 8}, withheld=withheld)
    assert from_record(as_record(SEARCHED, row)) == row
    record = row_record(SEARCHED, RowScores(), row)
    assert record.cell.get("withheld") == {None: None, True: "yes", False: "no"}[withheld]
    # search and selection are measured on the other rows alone
    assert (record.retrieved, record.kept) == ((None, None) if withheld else (1, 1))


@pytest.mark.parametrize("mode", MODES)
def test_it_is_refused_in_one_line_where_a_mode_shows_nothing_else(mode: str) -> None:
    blocks: list[dict[str, Any]] = [{"mode": mode}]
    if mode == "given":
        blocks += [{"mode": mode, "given": {"subset": subset}} for subset in ("gold", "none")]
    for block in blocks:
        refused = passages_shown(block) in ("nothing", "gold") or mode == "coral"
        if not refused:
            assert validated(Retrieval, {**block, "unanswerable": 0.5}, "retrieval").unanswerable == 0.5
            continue
        with pytest.raises(ConfigError, match=re.escape("'unanswerable'")) as caught:
            validated(Retrieval, {**block, "unanswerable": 0.5}, "retrieval")
        assert "\n" not in caught.value.message
        assert f"'{mode}'" in caught.value.message


@pytest.mark.parametrize("share", [0, -0.1, 1.5, "half", True])
def test_a_share_is_more_than_0_and_at_most_1(share: Any) -> None:
    with pytest.raises(ConfigError, match="unanswerable"):
        validated(Retrieval, {"mode": "given", "unanswerable": share}, "retrieval")


def test_it_is_refused_where_no_row_knows_what_is_relevant() -> None:
    with pytest.raises(ConfigError, match="no row says which passages are relevant"):
        shown([replace(doc, relevant_ids=()) for doc in DOCS[:3]], unanswerable=0.5)


@pytest.mark.parametrize("limit", [None, 3])
def test_a_run_withholds_the_same_rows_whatever_its_limit(limit: int | None, tasks: Any) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    retrieval = {"mode": "all", "kind": "bm25", "k": 2, "depth": 6, "unanswerable": 0.5, "seed": 3}
    metrics = ["abstention_error", "abstention_hallucination", "shown@k"]
    write_task(tasks, "withheld", **{**BASE, "metrics": metrics}, data=data, retrieval=retrieval)
    results = run(tasks, "withheld", limit=limit)
    samples = results["samples"]["withheld"]
    drawn = {sample["doc"]["id"] for sample in samples if sample["doc"]["withheld"]}
    assert 0 < len(drawn) < len(samples)
    every = run(tasks, "withheld")["samples"]["withheld"]
    assert drawn == {sample["doc"]["id"] for sample in every if sample["doc"]["withheld"]} & {
        sample["doc"]["id"] for sample in samples
    }
    for sample in samples:
        scored = sample["rows"]["values"]
        if sample["doc"]["withheld"]:
            assert scored["shown@k"] == 0.0
            assert "abstention_hallucination" in scored
        assert sample["rows"]["cell"]["withheld"] == ("yes" if sample["doc"]["withheld"] else "no")
    assert results["configs"]["withheld"]["measurement"]["setting"]["retrieval"]["unanswerable"] == 0.5
