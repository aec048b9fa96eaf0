"""From metric names to values, and from rows to scores with intervals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mrag_eval.config import check_metrics, split_config
from mrag_eval.core import Failure, Hit, ModelReply, RagDoc, Ranked, Retrieved, RowScores, Scored, is_relevant
from mrag_eval.platform import ConfigError
from mrag_eval.scoring import (
    METRIC_NAMES,
    METRICS,
    Answer,
    Given,
    RowRecord,
    Rules,
    parse_answer,
    published_name,
    read,
    row_record,
    score_rows,
    summarize,
    unscored_lines,
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
def test_a_reply_without_a_choice_is_wrong_and_counted_separately(reply: str, right: float, parsed: float) -> None:
    assert value(mc(reply), "acc") == right
    assert value(mc(reply), "choice_parsed") == parsed


def test_a_reply_is_read_in_the_words_of_its_row() -> None:
    korean = mc("정답: 나")
    assert value(replace(korean, doc=replace(korean.doc, query_lang="ko")), "acc") == 1.0
    assert value(korean, "choice_parsed") == 0.0


@pytest.mark.parametrize("reply", ["Answer: A", "Answer: C", "Berg", "Answer: Berg"])
@pytest.mark.parametrize("gold", [0, 2])
def test_options_that_read_the_same_are_one_option(reply: str, gold: int) -> None:
    row = mc(reply, gold=gold, choices=("Berg", "Fluss", "Berg"))
    assert (value(row, "acc"), value(row, "choice_parsed")) == (1.0, 1.0)
    assert value(mc("Answer: B", gold=gold, choices=("Berg", "Fluss", "Berg")), "acc") == 0.0


@pytest.mark.parametrize("reply", ["<think>Paris, or B", "<think>Answer: B would be", "<think>a</think><think>Fluss"])
def test_thinking_that_was_cut_off_holds_no_answer(reply: str) -> None:
    assert parse_answer(reply, "plain").text == ""
    assert value(mc(parse_answer(reply, "choice").text), "choice_parsed") == 0.0
    assert parse_answer("<think>Answer: A</think>Answer: B", "choice").text == "Answer: B"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The river is long.\nAnswer: the Nile", "the Nile"),
        ("Answer: no\nOn second thoughts\n**Answer:** the Nile  ", "the Nile"),
        ("answer： 나일강", "나일강"),
        ("Answer: [the Nile]", "the Nile"),
        ("- **Answer: the Nile**", "the Nile"),
        # a word within a line does not count as the line, and an empty line contains nothing
        ("My answer: the Nile", "My answer: the Nile"),
        ("the Nile\nAnswer:", "the Nile\nAnswer:"),
        ("<think>Answer: x</think>the Nile", "the Nile"),
    ],
)
def test_a_short_answer_is_on_its_own_line(reply: str, answer: str) -> None:
    assert parse_answer(reply, "line").text == answer


@pytest.mark.parametrize(
    ("reply", "may_decline", "answer"),
    [
        ("<answer>a</answer> rather <answer>b</answer>", False, Answer("b", tagged=True)),
        ("<answer>a</answer> rather <answer>b", False, Answer("b", tagged=True)),
        ("<answer>None</answer>", True, Answer("None", tagged=True, declined=True)),
        ("<answer>'none.'</answer>", True, Answer("'none.'", tagged=True, declined=True)),
        ("<answer>Nonesuch</answer>", True, Answer("Nonesuch", tagged=True, declined=False)),
        # what was not offered is an answer
        ("<answer>None</answer>", False, Answer("None", tagged=True)),
        ("None", True, Answer("None", tagged=False, declined=False)),
    ],
)
def test_the_last_tag_counts_and_declines_where_that_was_offered(reply: str, may_decline: bool, answer: Answer) -> None:
    assert parse_answer(reply, "tag", may_decline=may_decline) == answer


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("<think>so", "thinking cut"),
        ("<think>so</think>", "empty"),
        (" \n", "empty"),
        ("the Nile", None),
        ("<think>so</think>the Nile", None),
    ],
)
def test_how_a_reply_gave_no_answer(reply: str, outcome: str | None) -> None:
    doc = RagDoc("r", "Was?", "de")
    assert read(Given(doc, reply=ModelReply(reply)), Rules()).outcome == outcome
    # what the provider says comes first
    told = ModelReply(reply)
    told.outcome = "refusal"
    assert read(Given(doc, reply=told), Rules()).outcome == "refusal"


def test_unscored_rows_have_a_reason() -> None:
    bare = Scored(RagDoc("r", "Was?", "de"), "irgendetwas, das lang genug ist")
    for metric in METRICS:
        if not metric.startswith(("correct_language", "answered_in", "code_switch", "language_mix", "refused")):
            assert isinstance(value(bare, metric), str)
    assert value(bare, "correct_language") == 1.0
    assert "no relevant document" in str(value(bare, "hit@5"))


def test_an_empty_reply_is_scored_by_every_metric_of_the_answer() -> None:
    answered = [name for name, metric in METRICS.items() if metric.control.kind in ("reference", "choice")]
    scored = [name for name in answered if isinstance(value(mc("A) Nile"), name), float)]
    assert {"acc", "exact_match", "match", "f1", "char3gram_recall"} <= {*scored}
    for name in (*scored, "choice_parsed", "refused"):
        assert isinstance(value(mc(""), name), float), name
    assert isinstance(value(mc("kurz"), "correct_language"), str)


def ranked(*places: tuple[str, str]) -> tuple[Ranked, ...]:
    return tuple(Ranked(pid, doc, "de", 1.0 / i) for i, (pid, doc) in enumerate(places, 1))


def test_relevance_is_known_by_passage_or_by_document_and_a_document_counts_once() -> None:
    doc = RagDoc("r", "Was?", "de", relevant_ids=("D2",))
    ranking = ranked(("p1", "D1"), ("p2", "D1"), ("p3", "D2"), ("p4", "D2"))
    row = Scored(doc, "", ranking)
    # relevance is by document, so D1 counts once and D2 comes second
    assert value(row, "mrr@5") == pytest.approx(1 / 2)
    assert value(row, "hit@1") == 0.0
    assert value(row, "ndcg@5") == pytest.approx(1 / math.log2(3))
    by_passage = Scored(RagDoc("r", "Was?", "de", relevant_ids=("p2",)), "", ranking)
    assert value(by_passage, "mrr@5") == 0.5


def test_a_row_may_name_a_passage_and_a_document() -> None:
    ranking = ranked(("p1", "D1"), ("p2", "D1"), ("p3", "D2"), ("p4", "D2"))
    row = Scored(RagDoc("r", "Was?", "de", relevant_ids=("p2", "D2")), "", ranking)
    # p1 is neither; D2 is found second, through p2 itself, and third, through its passage p3
    assert value(row, "mrr@5") == 0.5
    assert value(row, "recall@3") == 1.0
    assert value(row, "recall@2") == 0.5


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
    scored = score_rows([row], ["hit@2", "hit@1", "mrr@2"], searched=True, quota_depth=2)[0]
    # a hit in the whole list does not depend on the order; a hit in first place does
    assert scored.values == {"hit@2": 1.0, "hit@1_score_merged": 0.0, "mrr@2_score_merged": 0.5}
    assert scored.unscored["mrr@2"] == "this mode has no ranking; see shown@k"
    assert published_name("hit@2", None) == "hit@2"
    assert published_name("acc", 5) == "acc"


def test_unknown_metrics_are_named() -> None:
    check_metrics(["acc", "hit@7", "ndcg@100"], METRIC_NAMES, "task t")
    for wrong in ("acuracy", "hit@0", "hit@", "mrr@5x", "hits@5"):
        with pytest.raises(ConfigError, match=f"task t: unknown metric '{wrong}'"):
            check_metrics([wrong], METRIC_NAMES, "task t")


@pytest.mark.parametrize(
    ("metrics", "deepest"), [(["acc", "hit@7", "ndcg@20"], 20), (["mrr@7", "hit@3"], 7), (["acc"], None)]
)
def test_the_search_is_as_deep_as_the_deepest_measure(metrics: list[str], deepest: int | None) -> None:
    config = {"task": "t", "data": {"benchmark": "demo"}, "metrics": metrics}

    def depth(**retrieval: int) -> int | None:
        return split_config({**config, "retrieval": {"mode": "all", **retrieval}}, METRIC_NAMES)[1].retrieval.depth

    assert depth(k=5) == deepest
    if deepest is not None:
        # as many are shown, or one too few is searched for
        assert depth(k=deepest) is None
        assert depth(k=1, depth=deepest) == deepest
        with pytest.raises(ConfigError, match=f"{deepest - 1} hits are too few for a metric at {deepest}"):
            depth(k=1, depth=deepest - 1)


# ------------------------------------------------------------------ from rows to scores


def record(row: str, values: dict[str, float], group: str | None = None, **cell: str) -> RowRecord:
    doc = RagDoc(row, "q", cell.get("query_lang", "de"), gold_doc_lang=cell.get("gold"), group_id=group)
    return row_record(doc, RowScores(values=values))


def test_the_estimate_is_the_plain_mean_and_a_row_counts_once() -> None:
    rows = [record(str(i), {"acc": float(i % 4 == 0)}) for i in range(40)]
    out = summarize([*rows, rows[0], rows[4]]).to_dict()
    acc = out["metrics"]["acc"]
    assert out["rows"] == 40
    assert (acc["value"], acc["n"], acc["method"]) == (0.25, 40, "Wilson")
    assert acc["low"] < 0.25 < acc["high"]


def test_groups_are_resampled_together() -> None:
    alone = [record(str(i), {"acc": float(i // 10 % 2)}) for i in range(200)]
    grouped = [record(str(i), {"acc": float(i // 10 % 2)}, group=str(i // 10)) for i in range(200)]
    narrow, wide = (summarize(rows).to_dict()["metrics"]["acc"] for rows in (alone, grouped))
    assert narrow["value"] == wide["value"] == 0.5
    # ten equal rows per group: the design effect is 10, so the interval is about sqrt(10) times as wide
    assert (wide["high"] - wide["low"]) / (narrow["high"] - narrow["low"]) == pytest.approx(math.sqrt(10), rel=0.2)
    assert wide["method"] == "jackknife over groups, Wilson"


def test_macro_means_are_plain_means_over_pairs() -> None:
    rows = [record(f"a{i}", {"hit@5": 1.0}, query_lang="en", gold="en") for i in range(30)]
    rows += [record(f"b{i}", {"hit@5": float(i < 5)}, query_lang="en", gold="ar") for i in range(10)]
    rows += [record(f"c{i}", {"hit@5": float(i < 3)}, query_lang="ar", gold="en") for i in range(30)]
    hit = summarize(rows).to_dict()["metrics"]["hit@5"]
    assert hit["value"] == pytest.approx(38 / 70)
    assert hit["by"]["pair"]["en->ar"]["value"] == 0.5
    assert hit["by"]["pair"]["en->ar"]["n"] == 10
    assert hit["macro"]["same_language"]["value"] == 1.0
    assert hit["macro"]["cross_language"]["value"] == pytest.approx((0.5 + 0.1) / 2)
    assert hit["macro"]["cross_language"]["low"] < 0.3 < hit["macro"]["cross_language"]["high"]


def test_unscored_rows_are_counted_by_reason() -> None:
    doc = RagDoc("x", "q", "de")
    rows = [record("a", {"acc": 1.0}), row_record(doc, RowScores(unscored={"acc": "no reply"}))]
    out = summarize(rows).to_dict()
    assert out["unscored"] == {"acc": {"no reply": 1}}
    assert (out["metrics"]["acc"]["n"], out["rows"]) == (1, 2)


def test_metrics_without_a_score_for_one_reason_share_a_line() -> None:
    unscored = {"ndcg@20": {"a set": 8}, "match": {"no answer": 2, "a set": 1}, "mrr@20": {"a set": 8}}
    assert unscored_lines(unscored) == [
        ("ndcg@20, mrr@20", 8, "a set"),
        ("match", 2, "no answer"),
        ("match", 1, "a set"),
    ]


def test_a_pair_without_a_scored_row_leaves_its_macro_mean_undefined_and_says_so() -> None:
    rows = [record(f"a{i}", {"hit@5": 1.0}, query_lang="en", gold="ar") for i in range(10)]
    bare = RowScores(unscored={"hit@5": "too short"})
    rows += [row_record(RagDoc(f"b{i}", "q", "zh", gold_doc_lang="ar"), bare) for i in range(10)]
    hit = summarize(rows).to_dict()["metrics"]["hit@5"]
    assert (hit["value"], hit["n"]) == (1.0, 10)
    assert hit["macro"]["cross_language"]["value"] is None
    assert "zh" in hit["macro"]["cross_language"]["reason"]
    assert hit["unscored_by_pair"] == {"zh->ar": 10}


def test_all_unscored_has_no_metric_but_a_reason() -> None:
    out = summarize([row_record(RagDoc("x", "q", "de"), RowScores(unscored={"acc": "no reply"}))]).to_dict()
    assert out["metrics"] == {}
    assert out["unscored"] == {"acc": {"no reply": 1}}


# ------------------------------------------------------------------ error sources, retrieval


def test_attribution_and_language_counts_from_the_rows_of_a_search() -> None:
    hits = {lang: Hit(f"d-{lang}", lang, "text", 1.0, 1, doc_id=f"d-{lang}") for lang in ("de", "en")}
    places = {lang: Ranked(f"d-{lang}", f"d-{lang}", lang, 1.0) for lang in hits}
    pool = {"de": 10, "en": 30}
    rows = []
    # 4 kept and right, 2 kept and wrong, 3 retrieved but not kept, 1 not retrieved but right
    for i, (kept, found, right) in enumerate([(1, 1, 1)] * 4 + [(1, 1, 0)] * 2 + [(0, 1, 0)] * 3 + [(0, 0, 1)]):
        doc = RagDoc(str(i), "q", "de", relevant_ids=("d-en",), gold_doc_lang="en")
        ranking = (places["de"], *([places["en"]] if found else []))
        passages = (hits["en"],) if kept else (hits["de"],)
        scores = RowScores(values={"acc": float(right)})
        rows.append(row_record(doc, scores, Retrieved(passages, ranking, pool)))
    out = summarize(rows).to_dict()
    overall = out["attribution"]["overall"]
    assert out["attribution"]["correct_by"] == "acc"
    assert overall["retrieved"]["value"] == 0.9
    assert overall["kept_if_retrieved"]["value"] == pytest.approx(6 / 9)
    assert overall["correct_if_kept"]["value"] == pytest.approx(4 / 6)
    assert overall["product"]["value"] == pytest.approx(0.4)
    assert overall["end_to_end"]["value"] == 0.5
    assert overall["correct_if_not_retrieved"]["value"] == 1.0
    assert out["languages"]["retrieved"] == {"de->de": 10, "de->en": 9}
    # 10 of 100 searchable German documents against 9 of 300 English ones
    assert out["languages"]["preference"]["de"]["ratio"]["value"] == pytest.approx((10 / 100) / (9 / 300))


def test_no_attribution_without_a_search_or_a_verdict() -> None:
    doc = RagDoc("1", "q", "de", relevant_ids=("x",))
    assert summarize([row_record(doc, RowScores(values={"acc": 1.0}), Retrieved())]).attribution is None
    found = Retrieved((), (Ranked("x", "x", "de", 1.0),), {"de": 1})
    assert summarize([row_record(doc, RowScores(values={"char3gram_recall": 1.0}), found)]).attribution is None


@pytest.mark.parametrize(
    ("metric", "reply", "expected"),
    [
        ("char3gram_precision", "Fluss", 1.0),
        ("char3gram_f1", "Fluss", 1.0),
        ("char3gram_recall_unicode", "«Fluss»", 1.0),
        ("exact_match_unicode", "«Fluss»", 1.0),
        ("match_unicode", "der große Flusslauf", 0.0),
        ("f1_unicode", "«Fluss»", 1.0),
        ("f1_words", "der «Fluss»", pytest.approx(2 / 3)),
        ("exact_match_mkqa", "der Fluss", 1.0),
        ("f1_mkqa", "der große Fluss", pytest.approx(2 / 3)),
        ("word_precision", "der Fluss", 0.5),
        ("word_recall", "der Fluss", 1.0),
        ("f1", "der Fluss", pytest.approx(2 / 3)),
        ("match", "der große Fluss", 1.0),
        ("exact_match", "fluss!", 1.0),
        ("answered_in_english", "This reply is plainly written in English.", 1.0),
        ("answered_in_english", "Diese Antwort ist eindeutig auf Deutsch geschrieben.", 0.0),
        ("correct_language", "Diese Antwort ist eindeutig auf Deutsch geschrieben.", 1.0),
        ("language_mix", "Diese Antwort ist eindeutig auf Deutsch geschrieben.", 0.0),
        ("code_switch", "Fluss", 0.0),
        ("code_switch", "река", 1.0),
    ],
)
def test_every_metric_by_its_name(metric: str, reply: str, expected: object) -> None:
    assert value(mc(reply), metric) == expected


def test_aliases_count_under_a_separate_name() -> None:
    doc = RagDoc("r", "?", "en", answers=("Mara Solis",), extra={"aliases": ["Dr Solis"]})
    bare = RagDoc("s", "?", "en", answers=("Mara Solis",))
    rows = [
        Scored(doc, "dr solis"),
        Scored(bare, "dr solis"),
        Scored(RagDoc("t", "?", "en", extra={"aliases": []}), "x"),
    ]
    found = score_rows(rows, ["char3gram_recall", "char3gram_recall_aliases"], searched=False)
    # 3-grams of the answer: mar ara, sol oli lis; of the alias: dr, sol oli lis (a short word is one gram)
    assert found[0].values == {"char3gram_recall": pytest.approx(3 / 5), "char3gram_recall_aliases": 1.0}
    assert found[1].unscored == {"char3gram_recall_aliases": "the benchmark knows no further spellings of its answers"}
    assert found[2].unscored["char3gram_recall_aliases"] == "the row has no reference answer"


def test_yes_and_no_are_read_in_the_language_of_the_question() -> None:
    yes = RagDoc("r", "?", "ko", answers=("yes", "예"))
    name = RagDoc("s", "?", "ko", answers=("서울",))
    rows = [Scored(yes, "네, 맞습니다."), Scored(yes, "예술입니다."), Scored(yes, "아니요."), Scored(name, "네.")]
    found = score_rows(rows, ["yes_no", "match"], searched=False)
    assert [row.values.get("yes_no") for row in found] == [1.0, 0.0, 0.0, None]
    assert found[1].values["match"] == 1.0  # the paper's measure finds the syllable
    assert found[3].unscored["yes_no"] == "the reference answer is neither yes nor no"


def test_a_passage_that_bears_a_pages_id_is_not_that_page() -> None:
    doc = RagDoc("q", "?", "en", relevant_ids=("12",), relevant_documents=True)
    ranking = (Ranked("12", "999", "en", 3.0), Ranked("7", "", "en", 2.0), Ranked("34", "12", "en", 1.0))
    (found,) = score_rows([Scored(doc, "", ranking)], ["hit@1", "hit@2", "hit@3"], searched=True)
    assert found.values == {"hit@1": 0.0, "hit@2": 0.0, "hit@3": 1.0}
    assert [is_relevant(place, doc) for place in ranking] == [False, False, True]
    lone = (Ranked("12", "", "en", 1.0),)
    assert score_rows([Scored(doc, "", lone)], ["hit@1"], searched=True)[0].values == {"hit@1": 0.0}


def test_rows_that_failed_leave_the_mean_between_its_bounds() -> None:
    """Three values of 1, 1 and 0, and one row without: (2 + 0) / 4 at least, (2 + 1) / 4 at most."""
    rows = [RowRecord(str(n), {"query_lang": "en"}, {"match": value}) for n, value in enumerate((1.0, 1.0, 0.0))]
    lost = Failure.of("answer", "m", "server: broken")
    rows.append(RowRecord("3", {"query_lang": "en"}, {}, unscored={"match": lost.why}, failures=(lost,)))
    found = summarize(rows).metrics["match"]
    assert (found.n, found.failed, found.bounds) == (3, 1, (0.5, 0.75))


@pytest.mark.parametrize(("step", "retrieved", "kept"), [("", 1, 0), ("rerank", 1, None), ("search", None, None)])
def test_what_is_shown_is_not_known_where_reranking_failed(step: str, retrieved: int | None, kept: int | None) -> None:
    """The search found the relevant passage, and the prompt does not have it."""
    doc = RagDoc("r", "Was?", "de", relevant_ids=("p1",))
    failures = (Failure(step, "m", "timeout"),) if step else ()  # type: ignore[arg-type]
    found = Retrieved(ranking=ranked(("p1", "d1")), searchable={"de": 1}, failures=failures)
    record = row_record(doc, RowScores({}, {}), found)
    assert (record.retrieved, record.kept) == (retrieved, kept)
