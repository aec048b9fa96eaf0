"""SEM-B and SEM-W: order of the answers, votes, the substring rule in every script, the stemming rule."""

from __future__ import annotations

import pytest

from mrag_eval.metrics import VotedAnswer, has_lemma_rule, short_answer_scores
from mrag_eval.metrics._short_answers import STEMMED
from mrag_eval.platform import MetricError


def voted(*answers: tuple[str, str, int]) -> list[VotedAnswer]:
    return [VotedAnswer((local,), (english,), votes) for local, english, votes in answers]


KOREAN = voted(("과자", "cookie", 3), ("과일", "fruit", 2), ("빵", "bread", 1))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("과자", (1.0, 1.0)),
        ("유치원생은 과일을 먹어요.", (1.0, 2 / 3)),
        # both match; the answer with more votes counts
        ("빵이나 과일", (1.0, 2 / 3)),
        ("Fresh FRUIT, mostly", (1.0, 2 / 3)),
        # English by stem, Korean without: fruits -> fruit, cookies -> cooki
        ("cookies", (1.0, 1.0)),
        ("떡", (0.0, 0.0)),
        ("", (0.0, 0.0)),
    ],
)
def test_votes_and_order(reply: str, expected: tuple[float, float]) -> None:
    assert short_answer_scores(reply, KOREAN, "ko") == pytest.approx(expected)


def test_answers_are_sorted_by_votes_whatever_their_order() -> None:
    assert short_answer_scores("빵, 과자", KOREAN[::-1], "ko").weighted == 1.0


def test_hyphens_and_spaces_are_exchanged() -> None:
    answers = voted(("ice-cream", "ice-cream", 1), ("hot dog", "hot dog", 2))
    assert short_answer_scores("an ice cream", answers, "en") == (1.0, 0.5)
    assert short_answer_scores("hot-dogs", answers, "en") == (1.0, 1.0)


@pytest.mark.parametrize(
    ("lang", "answer", "reply"),
    [
        ("en", "School Lunch", "the SCHOOL LUNCH of today"),
        ("es", "tortilla", "Una TORTILLA."),
        ("el", "μουσακάς", "Ο ΜΟΥΣΑΚΆΣ βέβαια".replace("Σ ", "ς ")),
        ("ar", "خبز", "أكل الخبز"),
        ("fa", "نان", "نان تازه"),
        ("as", "ভাত", "মই ভাত খাওঁ"),
        ("am", "እንጀራ", "እንጀራ ነው።"),
        ("zh", "饺子", "大家吃饺子。"),
        ("ko", "김치", "김치입니다"),
        ("az", "İçərişəhər", "Bu, içərişəhər adlanır"),
        ("ha", "tuwon shinkafa", "Tuwon shinkafa ne"),
        ("su", "sangu", "Sangu haneut"),
        ("id", "nasi goreng", "Nasi-goreng"),
    ],
)
def test_the_substring_rule_in_every_language(lang: str, answer: str, reply: str) -> None:
    assert short_answer_scores(reply, [VotedAnswer((answer,), (), 1)], lang).binary == 1.0


@pytest.mark.parametrize(
    ("lang", "answer", "reply"),
    [
        # inflected words, in another order, with something in between
        ("en", "eating pancakes", "a pancake is what they like to eat"),
        ("es", "dulces típicos", "es un tipico y rico dulce"),
        ("id", "makanan ringan", "ringan sekali, makan"),
        ("el", "γλυκά", "ένα γλυκό"),
        ("ar", "كتاب", "كتابان كبير"),
        # no stemmer for Assamese: words are compared unchanged
        ("as", "ভাত মাছ", "মাছ আৰু ভাত"),
    ],
)
def test_the_rule_of_stems(lang: str, answer: str, reply: str) -> None:
    answers = [VotedAnswer((answer,), (), 1)]
    assert short_answer_scores(reply, answers, lang).binary == 1.0
    # every word is needed
    assert short_answer_scores(reply, [VotedAnswer((f"{answer} xyzzy",), (), 1)], lang).binary == 0.0


def test_without_stems_only_substrings_count() -> None:
    assert short_answer_scores("shinkafa da tuwon", [VotedAnswer(("tuwon shinkafa",), (), 1)], "ha").binary == 0.0
    assert not any(has_lemma_rule(code) for code in ("ko", "zh", "az", "am", "ha", "su"))
    assert all(has_lemma_rule(code) for code in (*STEMMED, "as"))


def test_an_empty_spelling_matches_nothing() -> None:
    assert short_answer_scores("anything", [VotedAnswer(("", " "), ("?",), 1)], "en").binary == 0.0
    # if a text has only marks, nothing is left to compare
    assert short_answer_scores("!", [VotedAnswer(("?!",), (), 1)], "en").binary == 0.0


def test_rows_that_cannot_be_scored() -> None:
    with pytest.raises(MetricError, match="no annotated answers"):
        short_answer_scores("x", [], "en")
    with pytest.raises(MetricError, match="without votes"):
        short_answer_scores("x", [VotedAnswer(("x",), (), 0)], "en")
