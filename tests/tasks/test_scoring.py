"""From metric names to values, and from rows to scores with intervals."""

from __future__ import annotations

import math

import pytest

from mrag_eval.errors import ConfigError
from mrag_eval.retrieve import Ranked
from mrag_eval.schema import RagDoc
from mrag_eval.scoring import (
    METRICS,
    RowScores,
    Scored,
    check_metrics,
    deepest_cutoff,
    published_name,
    row_record,
    score_rows,
    summarize,
)


def mc(answer: str, gold: int = 1, choices: tuple[str, ...] = ("Berg", "Fluss", "See")) -> Scored:
    return Scored(RagDoc("r", "Was?", "de", answers=(choices[gold],), choices=choices, gold_choice=gold), answer)


def value(row: Scored, metric: str, **kwargs: object) -> float | str:
    scored = score_rows([row], [metric], searched=True, **kwargs)[0]  # type: ignore[arg-type]
    return scored.values.get(metric, scored.unscored.get(metric, "absent"))


@pytest.mark.parametrize(
    ("reply", "right", "parsed"),
    [("Answer: B", 1.0, 1.0), ("Answer: A", 0.0, 1.0), ("Answer: Z", 0.0, 0.0), ("Fluss", 1.0, 1.0), ("", 0.0, 0.0)],
)
def test_a_reply_without_a_choice_is_wrong_and_counted_apart(reply: str, right: float, parsed: float) -> None:
    assert value(mc(reply), "acc") == right
    assert value(mc(reply), "choice_parsed") == parsed


def test_options_that_read_the_same_are_one_option() -> None:
    assert value(mc("Answer: C", gold=0, choices=("Berg", "Fluss", "Berg")), "acc") == 1.0


def test_what_cannot_be_scored_says_why() -> None:
    bare = Scored(RagDoc("r", "Was?", "de"), "irgendetwas, das lang genug ist")
    for metric in METRICS:
        if metric != "correct_language":
            assert isinstance(value(bare, metric), str)
    assert value(bare, "correct_language") == 1.0
    assert "no relevant document" in str(value(bare, "hit@5"))


def test_total_metrics_score_every_row_that_has_what_they_need() -> None:
    for metric in (m for m in METRICS.values() if m.total):
        assert isinstance(value(mc(""), metric.name), float)
    assert isinstance(value(mc("kurz"), "correct_language"), str)


def ranked(*places: tuple[str, str]) -> tuple[Ranked, ...]:
    return tuple(Ranked(pid, doc, "de", 1.0 / i) for i, (pid, doc) in enumerate(places, 1))


def test_relevance_is_known_by_passage_or_by_document_and_a_document_counts_once() -> None:
    doc = RagDoc("r", "Was?", "de", relevant_ids=("D2",))
    ranking = ranked(("p1", "D1"), ("p2", "D1"), ("p3", "D2"), ("p4", "D2"))
    row = Scored(doc, "", ranking)
    # D1's two passages stand as p1 and p2 (not relevant), so D2 comes third
    assert value(row, "mrr@5") == pytest.approx(1 / 3)
    assert value(row, "hit@2") == 0.0
    assert value(row, "ndcg@5") == pytest.approx(1 / math.log2(4))
    by_passage = Scored(RagDoc("r", "Was?", "de", relevant_ids=("p2",)), "", ranking)
    assert value(by_passage, "mrr@5") == 0.5


def test_rows_without_hits_keep_their_place() -> None:
    rows = [
        Scored(RagDoc("a", "q", "de", relevant_ids=("x",)), "", ranked(("x", "x"))),
        Scored(RagDoc("b", "q", "de", relevant_ids=("x",)), "", ()),
        Scored(RagDoc("c", "q", "de", relevant_ids=("z",)), "", ranked(("y", "y"), ("z", "z"))),
    ]
    assert [s.values["mrr@2"] for s in score_rows(rows, ["mrr@2"], searched=True)] == [1.0, 0.0, 0.5]


def test_ranking_measures_are_left_out_where_nothing_was_searched() -> None:
    scored = score_rows([mc("Answer: B")], ["acc", "hit@5"], searched=False)[0]
    assert set(scored.values) | set(scored.unscored) == {"acc"}


def test_quota_modes_measure_order_under_another_name() -> None:
    row = Scored(RagDoc("r", "q", "de", relevant_ids=("x",)), "", ranked(("y", "y"), ("x", "x")))
    scored = score_rows([row], ["hit@2", "mrr@2"], searched=True, single_ranking=False)[0]
    assert scored.values == {"hit@2": 1.0, "mrr@2_score_merged": 0.5}
    assert "quota" in scored.unscored["mrr@2"]
    assert published_name("hit@2", False) == "hit@2"


def test_unknown_metrics_are_named() -> None:
    check_metrics(["acc", "hit@7", "ndcg@100"], "task t")
    for wrong in ("acuracy", "hit@0", "hit@", "mrr@5x", "hits@5"):
        with pytest.raises(ConfigError, match=f"task t: unknown metric '{wrong}'"):
            check_metrics([wrong], "task t")
    assert deepest_cutoff(["acc", "hit@7", "ndcg@20"]) == 20
    assert deepest_cutoff(["acc"]) == 0


# ------------------------------------------------------------------ from rows to scores


def record(row: str, values: dict[str, float], group: str | None = None, **cell: str) -> dict[str, object]:
    doc = RagDoc(row, "q", cell.get("query_lang", "de"), gold_doc_lang=cell.get("gold"), group_id=group)
    return row_record(doc, RowScores(values=values))


def test_the_estimate_is_the_plain_mean_and_a_row_counts_once() -> None:
    rows = [record(str(i), {"acc": float(i % 4 == 0)}) for i in range(40)]
    out = summarize([*rows, rows[0], rows[4]])
    acc = out["metrics"]["acc"]
    assert out["rows"] == 40
    assert (acc["value"], acc["n"], acc["method"]) == (0.25, 40, "Wilson")
    assert acc["low"] < 0.25 < acc["high"]


def test_groups_are_resampled_together() -> None:
    alone = [record(str(i), {"acc": float(i // 10 % 2)}) for i in range(200)]
    grouped = [record(str(i), {"acc": float(i // 10 % 2)}, group=str(i // 10)) for i in range(200)]
    narrow, wide = (summarize(rows)["metrics"]["acc"] for rows in (alone, grouped))
    assert narrow["value"] == wide["value"] == 0.5
    # ten equal rows a group: the design effect is 10, so the interval is about sqrt(10) times as wide
    assert (wide["high"] - wide["low"]) / (narrow["high"] - narrow["low"]) == pytest.approx(math.sqrt(10), rel=0.2)
    assert "cluster" in wide["method"]


def test_macro_means_are_plain_means_over_pairs() -> None:
    rows = [record(f"a{i}", {"hit@5": 1.0}, query_lang="en", gold="en") for i in range(30)]
    rows += [record(f"b{i}", {"hit@5": float(i < 5)}, query_lang="en", gold="ar") for i in range(10)]
    rows += [record(f"c{i}", {"hit@5": float(i < 3)}, query_lang="ar", gold="en") for i in range(30)]
    hit = summarize(rows)["metrics"]["hit@5"]
    assert hit["value"] == pytest.approx(38 / 70)
    assert hit["by"]["pair"]["en->ar"]["value"] == 0.5
    assert hit["by"]["pair"]["en->ar"]["n"] == 10
    assert hit["macro"]["same_language"]["value"] == 1.0
    assert hit["macro"]["cross_language"]["value"] == pytest.approx((0.5 + 0.1) / 2)
    assert hit["macro"]["cross_language"]["pairs"] == 2
    assert hit["macro"]["cross_language"]["low"] < 0.3 < hit["macro"]["cross_language"]["high"]


def test_unscored_rows_are_counted_by_reason() -> None:
    doc = RagDoc("x", "q", "de")
    rows = [record("a", {"acc": 1.0}), row_record(doc, RowScores(unscored={"acc": "no reply"}))]
    out = summarize(rows)
    assert out["unscored"] == {"acc": {"no reply": 1}}
    assert (out["metrics"]["acc"]["n"], out["rows"]) == (1, 2)


def test_all_unscored_has_no_metric_but_a_reason() -> None:
    out = summarize([row_record(RagDoc("x", "q", "de"), RowScores(unscored={"acc": "no reply"}))])
    assert out["metrics"] == {}
    assert out["unscored"] == {"acc": {"no reply": 1}}
