"""Ranking measures: by hand, compared with pytrec_eval, and in the cases that other tools get wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import rank_documents, ranking_metrics
from mrag_eval.platform import MetricError

ALL = (
    *(f"{family}@{k}" for family in ("hit", "recall", "precision", "mrr", "ndcg", "map") for k in (1, 3, 20)),
    "mrr",
    "ndcg",
    "map",
)
# Our measures that pytrec_eval has as well, and their names there; its reciprocal rank has no cut-off.
FAMILIES = {"hit": "success", "recall": "recall", "precision": "P", "ndcg": "ndcg_cut", "map": "map_cut"}
THEIRS = {f"{ours}@{k}": f"{theirs}.{k}" for ours, theirs in FAMILIES.items() for k in (1, 3, 20)}
THEIRS |= {"mrr": "recip_rank", "ndcg": "ndcg", "map": "map"}
DOCUMENTS = st.sampled_from([f"d{i}" for i in range(12)])
SCORES = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-10, 10))
RUNS = st.dictionaries(DOCUMENTS, SCORES, max_size=12)
QRELS = st.dictionaries(DOCUMENTS, st.integers(-1, 3), min_size=1, max_size=8)


def test_values_by_hand() -> None:
    run = {"q": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}}
    scores = ranking_metrics({"q": {"b": 1, "d": 2, "missed": 1}}, run, ALL)["q"]
    # relevant at ranks 2 (grade 1) and 4 (grade 2); one was not found
    assert scores["hit@1"] == 0
    assert scores["hit@3"] == 1
    assert scores["recall@3"] == pytest.approx(1 / 3, abs=1e-15)
    assert scores["recall@20"] == pytest.approx(2 / 3, abs=1e-15)
    assert scores["precision@3"] == pytest.approx(1 / 3, abs=1e-15)
    assert scores["mrr@1"] == 0
    assert scores["mrr@3"] == scores["mrr"] == 0.5
    assert scores["map"] == pytest.approx((1 / 2 + 2 / 4) / 3, abs=1e-15)
    dcg = 1 / math.log2(3) + 2 / math.log2(5)
    ideal = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    assert scores["ndcg"] == scores["ndcg@20"] == pytest.approx(dcg / ideal, abs=1e-15)


def test_the_order_of_a_list_is_its_rank() -> None:
    assert ranking_metrics({"q": ["c"]}, {"q": ["a", "b", "c"]}, ["mrr"]) == {"q": {"mrr": 1 / 3}}


@pytest.mark.parametrize("order", [("d1", "d2", "d3"), ("d3", "d1", "d2")])
def test_a_constant_scorer_gains_nothing_from_the_order_of_the_input(order: tuple[str, ...]) -> None:
    # as trec_eval orders ties: by id descending
    constant = {"q": dict.fromkeys(order, 1.0)}
    scores = ranking_metrics({"q": {"d1": 1}}, constant, ("mrr@20", "hit@1"))
    assert scores == {"q": {"mrr@20": pytest.approx(1 / 3, abs=1e-15), "hit@1": 0.0}}
    assert pytrec_eval.RelevanceEvaluator({"q": {"d1": 1}}, {"recip_rank"}).evaluate(constant)["q"] == {
        "recip_rank": pytest.approx(1 / 3, abs=1e-7)
    }


def test_scores_that_differ_beyond_single_precision_do_not_tie() -> None:
    run = {"q": {"a": 1.0, "b": 1.0 + 1e-12}}
    assert ranking_metrics({"q": ["b"]}, run, ["mrr"])["q"]["mrr"] == 1.0


def test_queries_without_hits_score_zero_and_keep_their_place() -> None:
    # a retriever that finds nothing for q1 must not shift the lists of the queries after it
    qrels = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    scores = ranking_metrics(qrels, {"q2": ["b"], "q3": {}}, ["hit@20", "mrr@20", "ndcg@20"])
    assert list(scores) == ["q1", "q2", "q3"]
    assert [s["hit@20"] for s in scores.values()] == [0.0, 1.0, 0.0]
    assert set(scores["q1"].values()) == {0.0}


def test_unjudged_queries_are_unscored_but_judged_irrelevant_ones_score_zero() -> None:
    run = {"judged": ["a"], "empty": ["a"], "unknown": ["a"]}
    assert ranking_metrics({"judged": {"a": 0}, "empty": []}, run, ["ndcg@20"]) == {"judged": {"ndcg@20": 0.0}}
    assert ranking_metrics({}, run) == {}


def test_pooled_ideal_makes_runs_comparable() -> None:
    # each run's list was judged separately: a found one relevant passage, b found two
    judged_a, judged_b = {"q": {"x": 1, "y": 0}}, {"q": {"x": 1, "z": 1}}
    run_a, run_b = {"q": ["x", "y"]}, {"q": ["x", "z"]}
    assert ranking_metrics(judged_a, run_a, ["ndcg@2"])["q"]["ndcg@2"] == 1.0
    pool = {"q": judged_a["q"] | judged_b["q"]}
    pooled = ranking_metrics(judged_a, run_a, ["ndcg@2"], ndcg_pool=pool)["q"]["ndcg@2"]
    assert pooled == pytest.approx(1 / (1 + 1 / math.log2(3)), abs=1e-15)
    assert ranking_metrics(judged_b, run_b, ["ndcg@2"], ndcg_pool=pool)["q"]["ndcg@2"] == 1.0


@given(st.dictionaries(st.sampled_from("abc"), QRELS, min_size=1), st.dictionaries(st.sampled_from("abcd"), RUNS))
def test_equals_pytrec_eval(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    ours = ranking_metrics(qrels, run, ALL)
    assert ours.keys() == qrels.keys()
    theirs = by_pytrec_eval(qrels, run)
    for query, scores in ours.items():
        assert {name: scores[name] for name in THEIRS} == pytest.approx(theirs[query], abs=1e-12)
        for k in (1, 3, 20):
            assert scores[f"mrr@{k}"] == (scores["mrr"] if scores["mrr"] >= 1 / k else 0.0)


def by_pytrec_eval(
    qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return what pytrec_eval makes of the run with ties broken as ours: each document's score is its place."""
    ranked = {query: rank_documents(run[query]) for query in qrels.keys() & run.keys()}
    places = {query: {d: float(len(found) - i) for i, d in enumerate(found)} for query, found in ranked.items()}
    grades = {query: {d: max(grade, 0) for d, grade in entry.items()} for query, entry in qrels.items()}
    found = pytrec_eval.RelevanceEvaluator(grades, {*THEIRS.values()}).evaluate(places)
    nothing = {theirs.replace(".", "_"): 0.0 for theirs in THEIRS.values()}
    return {
        query: {ours: found.get(query, nothing)[theirs.replace(".", "_")] for ours, theirs in THEIRS.items()}
        for query in qrels
    }


def test_equals_the_bare_pytrec_eval_call_where_nothing_ties() -> None:
    rng = random.Random(3)
    run = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(rng.sample(range(1000), 50))} for i in range(50)}
    qrels = {f"q{i}": {f"d{j}": rng.randrange(3) for j in rng.sample(range(60), 10)} for i in range(50)}
    bare = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "recall.10"}).evaluate(run)
    for query, scores in ranking_metrics(qrels, run, ("ndcg@10", "map", "recall@10")).items():
        expected = {"ndcg@10": "ndcg_cut_10", "map": "map", "recall@10": "recall_10"}
        assert scores == pytest.approx({name: bare[query][theirs] for name, theirs in expected.items()}, abs=1e-12)


@given(QRELS, RUNS, st.randoms())
def test_bounds_and_permutation_invariance(qrels: dict[str, int], run: dict[str, float], rng: random.Random) -> None:
    scores = ranking_metrics({"q": qrels}, {"q": run}, ALL)["q"]
    assert all(0 <= value <= 1 + 1e-12 for value in scores.values())
    shuffled = list(run.items())
    rng.shuffle(shuffled)
    relabelled = list(qrels.items())
    rng.shuffle(relabelled)
    again = ranking_metrics({"q": dict(relabelled)}, {"q": dict(shuffled)}, ALL)["q"]
    assert again == pytest.approx(scores, abs=1e-12)


@given(QRELS, RUNS)
def test_moving_a_relevant_document_to_the_top_never_lowers_a_score(
    qrels: dict[str, int], run: dict[str, float]
) -> None:
    best = max(qrels, key=lambda document: qrels[document])
    before = ranking_metrics({"q": qrels}, {"q": run}, ALL)["q"]
    ranking = [best, *(document for document in rank_documents(run) if document != best)]
    after = ranking_metrics({"q": qrels}, {"q": ranking}, ALL)["q"]
    assert all(after[name] >= before[name] - 1e-12 for name in ALL)


@pytest.mark.parametrize(
    ("qrels", "run", "measures", "says"),
    [
        ({"q": {"a": 1}}, {"q": {"a": math.nan}}, ["hit@1"], "'a' is NaN"),
        ({"q": {"a": 1}}, {"q": {"b": None}}, ["hit@1"], "not a number"),
        ({"q": {"a": 0.5}}, {"q": ["a"]}, ["hit@1"], "not an integer"),
        ({"q": {"a": math.nan}}, {"q": ["a"]}, ["hit@1"], "not an integer"),
        ({"q": ["a"]}, {"q": ["a", "b", "a"]}, ["hit@1"], "twice"),
        ({"q": "abc"}, {"q": ["a"]}, ["hit@1"], "string"),
        ({"q": ["a"]}, {"q": "abc"}, ["hit@1"], "string"),
        ({"q": ["a"]}, {"q": ["a"]}, ["hit"], "cut-off"),
        ({"q": ["a"]}, {"q": ["a"]}, ["mrr@0"], "cut-off"),
        ({"q": ["a"]}, {"q": ["a"]}, ["hits@5"], "did you mean 'hit'"),
    ],
)
def test_bad_input_is_named(qrels: dict, run: dict, measures: list[str], says: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(MetricError, match=says):
        ranking_metrics(qrels, run, measures)


def test_infinite_scores_are_scores() -> None:
    run = {"q": {"a": -math.inf, "b": math.inf, "c": 0.0}}
    assert ranking_metrics({"q": ["c"]}, run, ["mrr"])["q"]["mrr"] == 0.5
