"""F1 of words that dictionaries cut: by hand in each script, and without a segmenter."""

from __future__ import annotations

import sys

import pytest

from mrag_eval.core import RagDoc, Scored
from mrag_eval.metrics import segmented_f1, word_f1
from mrag_eval.platform import MissingExtraError
from mrag_eval.scoring import score_rows, words_of
from mrag_eval.text import _segmenters as module
from mrag_eval.text import segmenters, words_apart

# text, its words; the answer is one of n
CUT = [
    ("zh", "中国的首都是北京", ["中国", "的", "首都", "是", "北京"], "北京"),
    ("ja", "首都は東京です", ["首都", "は", "東京", "です"], "東京"),
    ("th", "เมืองหลวงคือกรุงเทพ", ["เมือง", "หลวง", "คือ", "กรุงเทพ"], "กรุงเทพ"),
    ("lo", "ໂຮງຮຽນເປີດ", ["ໂຮງຮຽນ", "ເປີດ"], "ໂຮງຮຽນ"),
    ("km", "សាលារៀនបើក", ["សាលារៀន", "បើក"], "សាលារៀន"),
    ("my", "ကျောင်းဖွင့်သည်", ["ကျောင်း", "ဖွင့်သည်"], "ကျောင်း"),
    # particles and the copula are no words
    ("ko", "서울은 수도입니다", ["서울", "수도"], "서울"),
    ("en", "It is Paris, of course", ["It", "is", "Paris,", "of", "course"], "Paris"),
]


@pytest.mark.slow  # the dictionaries are installed for this stage
@pytest.mark.parametrize(("lang", "text", "words", "answer"), CUT)
def test_words_by_dictionary(lang: str, text: str, words: list[str], answer: str) -> None:
    pytest.importorskip("icu4py")
    pytest.importorskip("kiwipiepy")
    assert words_apart(text).split() == words
    # 1 of n words in common: precision 1 / n, recall 1, F1 2 / (n + 1)
    assert segmented_f1(text, [answer], lang=lang) == pytest.approx(2 / (len(words) + 1), abs=1e-12)
    assert segmented_f1(text, [text], lang=lang) == 1.0


@pytest.mark.slow
def test_letters_that_any_text_has_are_no_words() -> None:
    pytest.importorskip("icu4py")
    reply, answer = "กรุงเทพ", "กาแฟ"
    assert word_f1(reply, [answer], normalize="unicode", lang="th") > 0
    assert segmented_f1(reply, [answer], lang="th") == 0.0


def row(reply: str, answer: str, lang: str) -> Scored:
    return Scored(RagDoc("r", "?", lang, answers=(answer,)), reply)


@pytest.mark.parametrize(
    ("package", "needing", "free"),
    [
        ("icu4py", [("北京", "北京", "zh"), ("Beijing", "北京", "en"), ("ลาว", "ลาว", "th")], ("서울", "Seoul", "ko")),
        ("kiwipiepy", [("서울", "서울", "ko"), ("Seoul", "서울", "en")], ("Seoul", "Seoul", "ko")),
    ],
)
def test_without_its_segmenter_a_row_is_unscored(
    package: str, needing: list[tuple[str, str, str]], free: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in (module._icu_breaker, module._kiwi, module.korean_words):
        function.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    other = {"icu4py", "kiwipiepy"} - {package}
    if all(segmenters()[name] is None for name in other):
        free = ("Paris", "Paris", "ko")
    rows = score_rows([row(*one) for one in [*needing, free]], ["f1_words"], searched=False)
    reason = f"'{package}' is not installed, it comes with the extra 'segment'"
    assert [one.unscored for one in rows[:-1]] == [{"f1_words": reason}] * len(needing)
    assert "f1_words" in rows[-1].values
    with pytest.raises(MissingExtraError, match=package):
        segmented_f1(needing[0][0], ["x"], lang=needing[0][2])
    assert words_of(["f1_words"])["segmenter"][package] is None
    for function in (module._icu_breaker, module._kiwi, module.korean_words):
        function.cache_clear()


def test_what_decides_the_words_is_named() -> None:
    assert words_of(["match", "f1", "char3gram_recall"]) == {}
    assert words_of(["match_unicode"]) == {"normalizer": {"unicode": 2}}
    assert set(words_of(["f1_words"])) == {"normalizer", "segmenter"}
