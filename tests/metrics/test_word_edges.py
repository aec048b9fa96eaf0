"""Answers as words: where a match begins and ends under ``unicode``, and that ``paper`` takes any substring."""

from __future__ import annotations

import pytest

from mrag_eval.metrics import match

# reply, answer, language: the answer is part of another word
WITHIN = [
    ("الاسم أحمد", "لا", "ar"), ("Eiffel-torni", "ei", "fi"), ("예술", "예", "ko"), ("네덜란드", "네", "ko"),
    ("Romania", "Oman", "en"), ("Nigeria", "Niger", "en"), ("Somalia", "Mali", "es"), ("Indiana", "India", None),
    ("2012", "12", "en"), ("في ٢٠١٢", "12", "ar"), ("19450", "1945", "ja"), ("переданный", "дан", "ru"),
    ("Ромашка", "Ром", "ru"), ("ירושלמי", "רוש", "he"), ("กรุง", "กร", "th"), ("कमल", "मल", "hi"),
    ("Kenyan", "yan", "tr"), ("የአዲስአበባ", "ዲስ", "am"), ("서울특별시청사앞", "서울", "ko"), ("किताब", "कित", "hi"),
    # false friends: the rest of the word is no ending or particle of the language
    ("Кубань", "Куба", "ru"), ("Кубань", "Куба", "uk"), ("Кубањ", "Куба", "sr"), ("Kubáň", "Kuba", "cs"),
    ("Иранец", "Иран", "ru"), ("Малина", "Мали", "ru"), ("Індіана", "Індія", "uk"), ("Romániai", "Roma", "hu"),
    ("이라크", "이라", "ko"), ("이란성", "이란", "ko"), ("가나안", "가나", "ko"), ("서울대", "서울", "ko"),
    ("수단과", "수", "ko"), ("C++", "C", "en"), ("-5", "5", "en"), ("1.500", "500", "de"),
]  # fmt: skip
# the answer is a word, or a word with what its language attaches
WORDS = [
    ("لا أعرف", "لا", "ar"), ("Ei, ei koskaan", "ei", "fi"), ("네, 맞습니다", "네", "ko"),
    ("Oman, not Iran", "Oman", "en"), ("It is France's capital", "France", "en"), ("بالقاهرة", "القاهرة", "ar"),
    ("والقاهرة", "القاهرة", "ar"), ("ولبنان", "لبنان", "ar"), ("للقاهرة", "قاهرة", "ar"),
    ("בירושלים", "ירושלים", "he"), ("ומתל אביב", "תל אביב", "he"), ("서울은 수도", "서울", "ko"),
    ("Helsingissä", "Helsingi", "fi"), ("Londonissa", "London", "fi"), ("İstanbul'da", "İstanbul", "tr"),
    ("в Лондоне", "Лондон", "ru"), ("በአዲስ አበባ", "አዲስ አበባ", "am"), ("ঢাকায়", "ঢাকা", "bn"),
    ("काठमाडौंमा", "काठमाडौं", "ne"), ("首都は東京です", "東京", "ja"), ("中国的首都是北京。", "北京", "zh"),
    ("เมืองหลวงคือกรุงเทพ", "กรุงเทพ", "th"), ("2020年", "2020", "zh"), ("5km", "5", "en"), ("AI는", "AI", "ko"),
    ("iPhone手机", "iPhone", "zh"), ("٢٠٢٠م", "2020", "ar"), ("Москва́", "Москва", "ru"),
    ("l'Afrique", "Afrique", "fr"), ("New York City", "York", "en"), ("x", "...", "en"),
    ("서울에서는", "서울", "ko"), ("서울이었습니다", "서울", "ko"), ("학생들에게", "학생", "ko"),
    ("파리로부터의", "파리", "ko"), ("대한 민국은", "대한민국", "ko"),
    ("제2차세계대전", "제 2차 세계 대전", "ko"), ("Budapestről", "Budapest", "hu"),
    ("з Лондона", "Лондон", "uk"), ("Софията", "София", "bg"), ("Londýně", "Londýn", "cs"),
    ("Krakowem", "Krakow", "pl"),
    ("Tallinnas", "Tallinn", "et"), ("București", "București", "ro"), ("Berlinului", "Berlin", "ro"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "answer", "lang"), WITHIN)
def test_no_answer_within_a_word(reply: str, answer: str, lang: str | None) -> None:
    assert match(reply, [answer], normalize="unicode", lang=lang) == 0.0


@pytest.mark.parametrize(("reply", "answer", "lang"), WORDS)
def test_answers_as_words(reply: str, answer: str, lang: str | None) -> None:
    assert match(reply, [answer], normalize="unicode", lang=lang) == 1.0


def test_a_later_place_counts() -> None:
    assert match("Eiffel? ei!", ["ei"], normalize="unicode", lang="fi") == 1.0


def test_the_papers_match_takes_any_substring() -> None:
    assert all(match(reply, [answer]) == 1.0 for reply, answer in (("الاسم", "لا"), ("Eiffel", "ei"), ("예술", "예")))
