"""A checker of support against people: which claim says what of a sentence, and what is left out, and counted."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from mrag_eval.config import GROUNDED, Judge
from mrag_eval.core import SUPPORT, Claim, Grounding, Hit, RagDoc, Retrieved, Scored, Span, Vote
from mrag_eval.judging import Decided, Recount
from mrag_eval.report import write_report
from mrag_eval.scoring import (
    EVIDENCE,
    LabelledAnswer,
    LabelledSentence,
    RowRecord,
    SupportAgreement,
    against_labels,
    row_record,
    score_rows,
)
from tests.report.runs import write_run

# words of five letters, so that places are easy to tell
TEXT = "aaaaa bbbbb. ccccc ddddd. (eeeee)"
A, B, C, BRACKET = (0, 13), (13, 26), (26, 33), (26, 27)
T, F = True, False


def record(name: str, *claims: tuple[int, int, bool], lang: str = "de") -> RowRecord:
    """Return a row with claims, each with its ends and whether it is supported."""
    found = [Claim(start, end, "supported" if says else "not_found", float(says)) for start, end, says in claims]
    return RowRecord(name, {"query_lang": lang}, {}, grounding=Grounding(lang, tuple(found)))


def sentences(*labelled: tuple[tuple[int, int], Sequence[bool | None]]) -> LabelledAnswer:
    return LabelledAnswer(TEXT, tuple(LabelledSentence(*ends, tuple(labels)) for ends, labels in labelled))


def one(row: RowRecord, answer: LabelledAnswer) -> SupportAgreement:
    return against_labels([row], {row.row: answer})


def agreement(found: SupportAgreement) -> float | None:
    return found.by_language["de"]["agreement"].value


@pytest.mark.parametrize(
    ("claims", "sentence", "says"),
    [
        ([(0, 12, T)], A, T),
        ([(0, 12, F)], A, F),
        # every claim of it has to be supported
        ([(0, 5, T), (6, 12, F)], A, F),
        ([(0, 5, T), (6, 12, T)], A, T),
        # one that reaches over two sentences counts for both
        ([(0, 25, F)], A, F),
        ([(0, 25, F)], B, F),
        # one that shares a stop, a space or a bracket with it does not
        ([(0, 11, T), (11, 25, F)], A, T),
        ([(0, 12, F), (12, 25, T)], B, T),
        ([(0, 12, F)], B, None),
        ([(0, 33, F)], BRACKET, None),
        ([], A, None),
    ],
)
def test_the_claims_that_share_a_letter_with_a_sentence_speak_for_it(
    claims: list[tuple[int, int, bool]], sentence: tuple[int, int], says: bool | None
) -> None:
    for human in (T, F):
        found = one(record("r", *claims), sentences((sentence, [human])))
        assert (found.sentences, found.left_out) == ((0, {"in no claim": 1}) if says is None else (1, {}))
        if says is not None:
            assert agreement(found) == float(says == human)


@pytest.mark.parametrize(
    ("labels", "human"),
    [
        ([T], T),
        ([F], F),
        ([None], "challenging to determine"),
        ([T, T, F], T),
        ([T, F, F, F, T], F),
        ([T, F], "without a majority"),
        ([T, T, F, F, None], "without a majority"),
        # as any label of most
        ([None, None, None, T, T], "challenging to determine"),
        ([None, T, T, T, F], T),
        ([None, None, T, T], "without a majority"),
    ],
)
def test_the_label_of_more_than_half_counts(labels: list[bool | None], human: bool | str) -> None:
    found = one(record("r", (0, 12, T)), sentences((A, labels)))
    assert found.left_out == ({} if isinstance(human, bool) else {human: 1})
    assert found.sentences == int(isinstance(human, bool))
    if isinstance(human, bool):
        assert agreement(found) == float(human)
    assert found.annotators == len(labels)
    assert (found.between_people is None) == (len(labels) == 1)


def test_what_is_not_compared_is_counted() -> None:
    without = RowRecord("no claims", {"query_lang": "de"}, {})
    rows = [record("a", (0, 12, T)), record("unlabelled", (0, 12, T)), without, RowRecord("neither", {}, {})]
    labels = {name: sentences((A, [T])) for name in ("a", "no claims", "nowhere", "elsewhere")}
    found = against_labels(rows, labels)
    assert (found.rows, found.left_out) == (1, {"unjudged": 1, "unlabelled": 1})
    assert found.unmatched == ("nowhere", "elsewhere")


def test_sentences_of_one_answer_are_resampled_together() -> None:
    claims = [(0, 12, T), (13, 25, F)]
    labels = sentences((A, [T]), (B, [F]))
    rows = [record(f"r{i}", *(claims if i % 3 else [(0, 12, T), (13, 25, T)])) for i in range(12)]
    found = against_labels(rows, dict.fromkeys((row.row for row in rows), labels)).by_language["de"]["agreement"]
    assert (found.value, found.n, found.groups) == (pytest.approx(20 / 24), 24, 12)
    kappa = against_labels(rows[:9], dict.fromkeys((row.row for row in rows[:9]), labels)).by_language["de"]["kappa"]
    assert (kappa.n, kappa.reason) == (18, "no interval from 9 clusters, ten are needed")


def test_parts_that_nothing_supports_are_compared_with_peoples_spans() -> None:
    parts = Claim(0, 12, "not_found", 0.1, unsupported=(Span(0, 5), Span(6, 8)))
    # one of which no part is named counts as a whole, a supported one not at all
    claims = (parts, Claim(13, 25, "contradicted", 0.2), Claim(26, 33, "supported", 0.9))
    row = RowRecord("r", {"query_lang": "de"}, {}, grounding=Grounding("de", claims))
    found = against_labels([row, record("clean", (0, 12, T))], {
        "r": LabelledAnswer(TEXT, spans=(Span(0, 12), Span(26, 33))), "clean": LabelledAnswer(TEXT),
    })  # fmt: skip
    # 5 + 2 + 12 characters of ours, 12 + 7 of theirs, 7 of both
    assert (found.sentences, found.rows) == (0, 2)
    measures = found.by_language["de"]
    assert measures["span_f1"].value == pytest.approx((2 * 7 / (19 + 19) + 1) / 2)
    assert measures["iou"].value == pytest.approx((7 / 31 + 1) / 2)
    assert measures["iou"].n == 2


def test_languages_are_told_apart_and_taken_together() -> None:
    rows = [record("a", (0, 12, T), lang="de"), record("b", (0, 12, F), lang="hi"), record("c", (0, 12, F), lang="hi")]
    found = against_labels(rows, {row.row: sentences((A, [T])) for row in rows}).by_language
    assert {cell: (of["agreement"].value, of["agreement"].n) for cell, of in found.items()} == {
        "all": (pytest.approx(1 / 3), 3), "de": (1.0, 1), "hi": (0.0, 2),
    }  # fmt: skip
    assert [*found] == ["all", "de", "hi"]


VOTES = {None: ("supported", "contradicted"), **{verdict: (verdict, verdict) for verdict in SUPPORT.levels}}


def votes(verdict: str | None) -> dict[str, Vote]:
    return {f"j{n}": Vote(said, passage=None if said == "not_found" else 1) for n, said in enumerate(VOTES[verdict])}


def counted(first: str | None, second: str | None) -> Scored:
    """Return a row of three claims, the last of them supported, as the votes of two judges have them."""
    ends = (((0, 5), first), ((6, 12), second), ((13, 25), "supported"))
    # passages are named by the votes for one of them
    asked = Grounding("de", tuple(Claim(*span, None, 0.0, votes=votes(verdict)) for span, verdict in ends))
    doc = RagDoc("r", "Was?", "de", answers=("aaaaa",))
    read = Scored(doc, TEXT, passages=(Hit("p", "de", TEXT, 1.0, 1),))
    (scored,) = Recount(Judge(tie="abstain")).of([read], [Decided(claims=asked)])
    return scored


@pytest.mark.parametrize("first", VOTES)
@pytest.mark.parametrize("second", VOTES)
def test_a_claim_without_a_verdict_is_no_claim_that_is_not_supported(first: str | None, second: str | None) -> None:
    scored = counted(first, second)
    grounding, told = scored.grounding, None not in (first, second)
    assert grounding is not None
    right = first == second == "supported"
    assert [claim.verdict for claim in grounding.claims] == [first, second, "supported"]
    assert grounding.supported == ((1 + [first, second].count("supported")) / 3 if told else None)

    # in the metrics
    (score,) = score_rows([scored], ["match", *GROUNDED], searched=False)
    assert {*GROUNDED} & {*(score.values if told else score.unscored)} == {*GROUNDED}
    if told:
        assert (score.values["right_supported"], score.values["right_unsupported"]) == (right, not right)

    # in the languages of the row
    assert row_record(scored.doc, score, Retrieved(scored.passages), grounding=grounding).cell[EVIDENCE] == "de->de"

    # beside people's labels of sentences: the sentence alone is left out, and of spans: the answer
    row = RowRecord("r", {"query_lang": "de"}, {}, grounding=grounding)
    found = one(row, sentences((A, [T]), (B, [T])))
    assert (found.sentences, found.left_out) == ((2, {}) if told else (1, {"without a verdict": 1}))
    assert agreement(found) == ((right + 1) / 2 if told else 1.0)
    labels = {"r": LabelledAnswer(TEXT, spans=(Span(0, 12),)), "clean": LabelledAnswer(TEXT)}
    spans = against_labels([row, record("clean", (0, 12, T))], labels)
    assert (spans.rows, spans.left_out) == ((2, {}) if told else (1, {"without a verdict": 1}))
    assert spans.by_language["de"]["iou"].n == spans.rows
    if not told:
        assert spans.by_language["de"]["iou"].value == 1.0


def test_the_page_tells_a_claim_without_a_verdict_from_one_that_is_not_supported(tmp_path: Path) -> None:
    pairs = {f"{first} {second}": (first, second) for first, second in itertools.product(VOTES, repeat=2)}
    grounded = {name: counted(*pair).grounding for name, pair in pairs.items()}
    rows = [RowRecord(name, {"query_lang": "de"}, {}, grounding=found).to_dict() for name, found in grounded.items()]
    scores = {"rows": len(rows), "metrics": {"grounded": {"value": 1.0, "n": len(rows)}}}
    run = write_run(tmp_path / "out", {"qa": rows}, config={"scores": scores})
    (file,) = run.rglob("samples_*.jsonl")
    lines = [{**json.loads(line), "filtered_resps": [TEXT]} for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    write_report([run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    samples = {sample["id"]: sample for sample in json.loads(found[1])["samples"]}
    assert samples.keys() == pairs.keys()
    for name, (first, second) in pairs.items():
        claims, unsupported = samples[name]["claims"], samples[name].get("unsupported", [])
        assert [verdict for verdict, *_ in claims] == [first or "undecided", second or "undecided", "supported"]
        places = (((0, 5), first), ((6, 12), second))
        assert unsupported == [[*ends] for ends, said in places if said not in (None, "supported")]
