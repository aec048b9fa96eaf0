"""A relevant passage in the prompt (``shown@k``): by ids and by labels, in every mode, by pair of languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval import score
from mrag_eval.config import MODES, Retrieval, unmeasured, validated
from mrag_eval.core import Failure, Hit, Labels, RagDoc, Ranked, RowScores, Scored
from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval import retrieve
from mrag_eval.scoring import measured_on, needs_of, row_record, score_rows, summarize, value_names


def hits(*names: str, lang: str = "de") -> tuple[Hit, ...]:
    """Return passages ``document-number`` of these names."""
    return tuple(
        Hit(name, lang, "text", 1 / rank, rank, doc_id=name.partition("-")[0]) for rank, name in enumerate(names, 1)
    )


def places(*names: str) -> tuple[Ranked, ...]:
    return tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in hits(*names))


def scores(row: Scored, **settings: object) -> RowScores:
    (found,) = score_rows([row], ["shown@k"], **{"searched": True, **settings})  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("relevant", "shown", "expected"),
    [
        (("d1",), ("d2-1", "d1-3"), 1.0),  # a passage of the document, at any place
        (("d1-3",), ("d2-1", "d1-3"), 1.0),  # the passage itself
        (("d1-4",), ("d2-1", "d1-3"), 0.0),  # another passage of the same document
        (("d1", "d9"), ("d9-1",), 1.0),  # one of two
        (("d1",), (), 0.0),  # nothing was found
        ((), ("d1-1",), "no relevant document is known"),
    ],
)
def test_the_passages_of_the_prompt_count_not_the_ranking(
    relevant: tuple[str, ...], shown: tuple[str, ...], expected: float | str
) -> None:
    doc = RagDoc("r", "?", "de", relevant_ids=relevant)
    # the ranking has every relevant document first, which must not matter
    found = scores(Scored(doc, "", places("d1-1", "d9-1"), passages=hits(*shown)))
    assert found.values.get("shown@k", found.unscored.get("shown@k")) == expected


def test_a_document_in_another_language_is_another_document() -> None:
    doc = RagDoc("r", "?", "ar", relevant_ids=("12",), gold_doc_lang="ar")
    for lang, expected in (("ar", 1.0), ("he", 0.0)):
        assert scores(Scored(doc, "", passages=hits("12-1", lang=lang))).values == {"shown@k": expected}


def test_labels_decide_where_there_are_any_and_name_the_measure() -> None:
    doc = RagDoc("r", "?", "de", relevant_ids=("d1",))

    def found(labels: Labels) -> RowScores:
        return scores(Scored(doc, "", places("d1-1", "d2-1"), labels=labels, passages=hits("d1-1", "d2-1")))

    judged = ("d1-1", "d2-1")
    assert found(Labels("judge", judged, frozenset({"d2-1"}))).values == {"shown@k": 1.0}
    assert found(Labels("judge", judged)).values == {"shown@k": 0.0}
    assert found(Labels("proxy", judged, frozenset({"d1-1"}))).values == {"shown@k_proxy": 1.0}
    assert found(Labels("proxy", judged, fault="no answer")).unscored == {"shown@k_proxy": "no answer"}
    # a passage that nobody labelled may be relevant
    assert found(Labels("judge", ("d1-1",))).unscored == {"shown@k": "the passages shown were not labelled"}
    assert found(Labels("judge", ("d1-1",), frozenset({"d1-1"}))).values == {"shown@k": 1.0}
    assert needs_of("shown@k_proxy_page") == needs_of("shown@k") > needs_of("hit@5")


def test_what_failed_before_the_passages_were_chosen_leaves_no_value() -> None:
    doc = RagDoc("r", "?", "de", relevant_ids=("d1",))
    for stage, unscored in (("search", True), ("rerank", True), ("answer", False)):
        failure = Failure(stage, "m", "timeout")  # type: ignore[arg-type]
        found = scores(Scored(doc, "", passages=hits("d1-1"), failures=(failure,)))
        assert found.unscored == ({"shown@k": f"{stage} failed (timeout)"} if unscored else {})
    unknown = Scored(RagDoc("r", "?", "de"), "", failures=(Failure("search", "m", "timeout"),))
    assert scores(unknown).unscored == {"shown@k": "no relevant document is known"}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_that_shows_passages_has_it(mode: str) -> None:
    block = Retrieval(mode=mode)
    shows = mode != "no_ir"
    assert value_names(["shown@k"], **measured_on(block)) == ({"shown@k": True} if shows else {})
    row = Scored(RagDoc("r", "?", "de", relevant_ids=("d1",)), "", passages=hits("d1-1"))
    (found,) = score_rows([row], ["shown@k"], **measured_on(block))
    assert found.values == ({"shown@k": 1.0} if shows else {})
    said = unmeasured(["shown@k"], mode, searched=block.searches, reranked=False, shows=block.shows_passages)
    assert [*said] == ([] if shows else ["mode no_ir shows no passages"])


def test_given_passages_that_are_not_shown_have_none() -> None:
    block = validated(Retrieval, {"mode": "given", "given": {"subset": "none"}}, "test")
    assert value_names(["shown@k"], **measured_on(block)) == {}


def test_the_number_of_passages_is_the_block_s() -> None:
    with pytest.raises(ConfigError, match="unknown metric 'shown@5'") as error:
        score([{"query": "?", "lang": "de", "passages": []}], "shown@5")
    assert error.value.next_step == "write shown@k: retrieval.k is the number of passages shown"


@pytest.mark.parametrize("mode", ["qlang", "en_only", "qlang+en", "all", "oracle", "gold_lang", "balanced", "own"])
@pytest.mark.parametrize("k", [1, 3])
def test_modes_compare_by_what_they_show(world: Path, mode: str, k: int) -> None:
    bench = load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )
    block = validated(Retrieval, {"kind": "bm25", "mode": mode, "k": k, "depth": 6}, "test")
    found = retrieve(bench.docs, block, corpus=bench.corpus, siblings=bench.docs)
    rows = [Scored(doc, "", row.ranking, passages=row.passages) for doc, row in zip(bench.docs, found, strict=True)]
    got = score_rows(rows, ["shown@k", f"hit@{k}"], **measured_on(block))
    by_hand = [
        float(any(hit.doc_id in doc.relevant_ids and hit.lang == doc.gold_doc_lang for hit in row.passages))
        for doc, row in zip(bench.docs, found, strict=True)
    ]
    assert [one.values["shown@k"] for one in got] == by_hand
    # with one ranking and no second stage, the prompt holds its first k; a set by quotas has no first k
    ranked = [one.values.get(f"hit@{k}") for one in got]
    assert ranked == (by_hand if mode != "balanced" else [None] * len(ranked))
    if mode == "oracle":
        assert min(by_hand) == 1.0
    records = [row_record(d, s, r) for d, s, r in zip(bench.docs, got, found, strict=True)]
    table = summarize(records)
    if table.selection is not None:
        assert table.selection.overall.in_prompt.value == pytest.approx(sum(by_hand) / len(by_hand))
    # by pair of languages, each pair's mean by hand
    pairs: dict[str, list[float]] = {}
    for doc, value in zip(bench.docs, by_hand, strict=True):
        pairs.setdefault(f"{doc.query_lang}->{doc.gold_doc_lang}", []).append(value)
    assert {pair: cell.value for pair, cell in table.metrics["shown@k"].by["pair"].items()} == {
        pair: pytest.approx(sum(values) / len(values)) for pair, values in sorted(pairs.items())
    }


def test_rows_that_are_there_already_are_scored(tmp_path: Path) -> None:
    rows = [
        {"query": "?", "lang": "he", "relevant_ids": ["d1"], "passages": [{"id": "d2", "lang": "he"}]},
        {"query": "?", "lang": "he", "relevant_ids": ["d2"], "passages": [{"id": "d2", "lang": "he"}]},
        {"query": "?", "lang": "he", "passages": [{"id": "d2", "lang": "he"}]},
    ]
    found = score(rows, ["shown@k"], output=tmp_path).frame.set_index(["metric", "dimension"]).loc[("shown@k", "")]
    # of the two rows whose document is known, one
    assert (found["value"], found["n"], found["unscored_rows"]) == (0.5, 2, 1)
    assert found["unscored_reasons"] == {"no relevant document is known": 1}
