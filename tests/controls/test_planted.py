"""Controls of a world planted by hand: each number is worked out in a comment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mrag_eval.controls import ControlPool, ControlRule, reply_controls
from mrag_eval.core import Judgement, RagDoc, RowScores, Scored
from mrag_eval.datasets import Benchmark, english_answers
from mrag_eval.scoring import ControlRecord, LanguageRule, control_table, row_record


def doc(row: str, lang: str, *answers: str, **more) -> RagDoc:
    question = int(row[1:])
    return RagDoc(row, more.pop("query", f"query {row}"), lang, answers, extra={"question_id": question, **more})


DOCS = [
    # a Korean verb is attached to the answer: of two letters no 3-gram is left, of three one
    doc("k1", "ko", "서울"),
    doc("k2", "ko", "이순신"),
    doc("k3", "ko", "2010"),
    doc("e1", "en", "Paris"),
    doc("e2", "en", "Parma"),
    doc("e3", "en", "2010"),
    doc("a1", "ar", "القاهرة"),
    # no file of Igbo has a sentence
    doc("y1", "ig", "Ibadan"),
    doc("y2", "ig", "Ibadan", "Ìbàdàn"),
    # no reference
    doc("d1", "de"),
]


def table(metrics: Sequence[str], docs: Sequence[RagDoc] = DOCS, **rule):
    pool = ControlPool(docs, english_answers(Benchmark("planted", list(docs))))
    found = reply_controls(docs, pool, ControlRule(metrics, **rule))
    rows = [replace(row_record(one, RowScores()), controls=found[one.id]) for one in docs]
    return control_table(rows)


def test_answers() -> None:
    found = table(["char3gram_recall", "match", "exact_match"])
    recall, match, exact = (found[name] for name in ("char3gram_recall", "match", "exact_match"))
    for by_language in (recall, match, exact):
        assert {code: own.means["bare"] for code, own in by_language.items()} == {
            "ar": 1.0, "de": None, "en": 1.0, "ko": 1.0, "ig": 1.0
        }  # fmt: skip
    assert {code: own.means["sentence"] for code, own in match.items()} == {
        "ar": 1.0, "de": None, "en": 1.0, "ko": 1.0, "ig": None
    }  # fmt: skip
    # 서울 0, 이순신 1, 2010 1
    assert recall["ko"].means["sentence"] == pytest.approx(2 / 3)
    assert recall["ar"].means["sentence"] == 1.0
    assert exact["en"].means["sentence"] == 0.0
    # in Korean 2010 is 2010, the others are not; Arabic has no English row with its question
    assert match["ko"].means["english"] == pytest.approx(1 / 3)
    # question 1 is asked in English, too: its answer Paris is no answer in Arabic or Igbo
    assert match["ar"].means["english"] == 0.0
    assert match["en"].found["english"].reason == "the question is in English"
    assert match["ig"].found["sentence"].reason == "no file of Igbo has a sentence"
    assert match["de"].found["bare"].reason == "the row has no reference answer"


def test_the_answers_of_other_rows() -> None:
    pair = [doc("e1", "en", "Paris"), doc("e2", "en", "Parma")]
    # of par, ari, ris the answer Parma has one, and of par, arm, rma Paris
    assert table(["char3gram_recall"], pair)["char3gram_recall"]["en"].means["other"] == pytest.approx(1 / 3)
    assert table(["match"], pair)["match"]["en"].means["other"] == 0.0
    # alone, or with rows that share a reference, there is no other answer
    found = table(["match"])["match"]
    for code in ("ar", "ig"):
        assert found[code].found["other"].reason == "no other row in its language has another answer"


def test_another_row_never_shares_a_reference() -> None:
    docs = [doc(f"e{i}", "en", f"a{i % 7}", f"A{i % 3} ") for i in range(60)]

    def others(docs: Sequence[RagDoc], seed: int) -> dict[str, str]:
        """Return the answer of another row, which is what a panel is asked about beside the row's own."""
        asked: dict[str, list[str]] = {}

        def panel(rows: Sequence[Scored]) -> list[Scored]:
            for row in rows:
                asked.setdefault(row.doc.id, []).append(row.answer)
            return list(rows)

        reply_controls(docs, ControlPool(docs, seed=seed), ControlRule(["judge_correct"], panel=panel))
        for one in docs:
            own = one.answers[0]
            asked[one.id].remove(own)
            asked[one.id].remove(f"The answer is {own}.")
        return {row: text for row, (text,) in asked.items()}

    for seed in range(5):
        found = others(docs, seed)
        assert found.keys() == {one.id for one in docs}
        for one in docs:
            theirs = found[one.id]
            other = next(other for other in docs if other.answers[0] == theirs)
            assert not {text.casefold().strip() for text in one.answers} & {theirs}
            assert other.query_lang == one.query_lang
    assert others(docs, 0) == others(list(docs), 0)
    assert others(docs, 0) != others(docs, 1)


def test_rows_score_alike_however_many_are_scored_together() -> None:
    """More rows than are scored together, and each ten of them by themselves."""
    docs = [replace(one, id=f"{one.id}{n}") for n in range(52) for one in DOCS]
    pool, rule = ControlPool(docs), ControlRule(["match_unicode", "f1", "correct_language", "refused"])
    whole = reply_controls(docs, pool, rule)
    for start in (0, 490, 500):
        part = docs[start : start + 20]
        assert reply_controls(part, pool, rule) == {one.id: whole[one.id] for one in part}


def test_a_part_of_the_rows_gets_the_replies_of_all() -> None:
    pool, rule = ControlPool(DOCS), ControlRule(["char3gram_recall"])
    assert reply_controls(DOCS[:2], pool, rule) == {
        k: v for k, v in reply_controls(DOCS, pool, rule).items() if k < "k3" and k > "k"
    }


@pytest.mark.parametrize("form", ["plain", "tag", "line", "choice", "citation"])
def test_the_demanded_form_is_right(form: str) -> None:
    docs = [
        RagDoc("c1", "q", "sw", choices=("Chad", "Mali", "Chad ", "Niger"), gold_choice=0),
        RagDoc("c2", "q", "sw", choices=("Chad", "Mali"), gold_choice=1),
        RagDoc("c3", "q", "sw", ("x",)),
    ]
    found = table(["acc", "choice_parsed", "option_read", "option_unread", "answer_tag"], docs, form=form)
    for name in ("acc", "choice_parsed"):
        assert found[name]["sw"].means["form"] == 1.0
        assert found[name]["sw"].found["form"].n == 2
    # two of four options are the same, one of two is right: (1/2 + 1/2) / 2
    assert found["acc"]["sw"].means["chance"] == 0.5
    assert found["acc"]["sw"].found["chance"].low is None
    assert found["answer_tag"]["sw"].means["form"] == (1.0 if form == "tag" else None)


class Detector:
    """Tells languages by the first word."""

    name = "first word"
    supported = frozenset({"sw", "de", "id"})

    def detect(self, texts: Sequence[str]) -> list[str]:
        return [text.split()[0] for text in texts]


def test_detectors() -> None:
    docs = [
        doc("s1", "sw", "sw short", query="sw " + "x" * 30),
        doc("s2", "sw", "id short", query="de " + "x" * 60),
        doc("s3", "sw", "1990", query="sw " + "x" * 30),
        doc("g1", "de", "de " + "x" * 120, query="de q"),
        doc("y1", "yo", "yo q", query="yo q"),
    ]
    found = table(["correct_language"], docs, language=LanguageRule(Detector(), min_chars=20))["correct_language"]
    swahili = found["sw"].means
    assert swahili["question"] == pytest.approx(2 / 3)
    # 1990 is in every language, and counts for none; a least length leaves out no control
    assert swahili["bare"] == 0.5
    assert found["sw"].found["bare"].n == 2
    assert {name: one.n for name, one in found["sw"].found.items() if ", " in name} == {
        "question, 21 to 50 characters": 2,
        "question, 51 to 100 characters": 1,
        "bare, up to 20 characters": 2,
    }
    assert found["de"].means["bare, over 100 characters"] == 1.0
    # Swahili rows get German or Yoruba questions, of which none is taken for Swahili
    assert swahili["foreign"] == 0.0
    assert found["yo"].found["question"].reason == "the detector first word does not know Yoruba"
    alone = table(["correct_language"], docs[:3], language=LanguageRule(Detector()))["correct_language"]["sw"]
    assert alone.found["foreign"].reason == "all questions of the task are in one language"


def test_a_panel_is_asked_about_its_own_controls_alone() -> None:
    asked: list[str] = []

    def panel(rows: Sequence[Scored]) -> list[Scored]:
        asked.extend(row.answer for row in rows)
        return [replace(row, judgement=Judgement(row.answer in row.doc.answers, "unanimous")) for row in rows]

    docs = [doc("e1", "en", "Paris", query="p"), doc("e2", "en", "Rome", query="r")]
    assert "judge_correct" not in table(["judge_correct", "match"], docs)
    found = table(["judge_correct", "match", "correct_language"], docs, panel=panel)["judge_correct"]["en"].means
    assert found == {"bare": 1.0, "sentence": 0.0, "other": 0.0}
    assert sorted(asked) == ["Paris", "Paris", "Rome", "Rome", "The answer is Paris.", "The answer is Rome."]


def test_an_empty_task_has_none() -> None:
    assert table(["match"], []) == {}
    assert reply_controls([], ControlPool([]), ControlRule(["match"])) == {}
    assert control_table([replace(row_record(DOCS[0], RowScores()), controls=ControlRecord())]) == {}


def test_the_share_of_a_score() -> None:
    docs = [doc(f"e{i}", "en", f"answer{i}xyz") for i in range(30)]
    found = reply_controls(docs, ControlPool(docs), ControlRule(["match"]))
    # ceiling 1, floor 0: the share is the score
    rows = [
        replace(row_record(one, RowScores({"match": float(i % 3 == 0)})), controls=found[one.id])
        for i, one in enumerate(docs)
    ]
    share = control_table(rows)["match"]["en"].share
    assert share is not None
    assert share.value == pytest.approx(1 / 3)
    assert share.n == 30
