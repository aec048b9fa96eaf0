"""Tokens: one golden case per script, and pairs that must match."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mrag_eval.platform import CorpusError, MissingExtraError
from mrag_eval.text import FOLDING_VERSION, SEGMENTED, STEMMED, Analyzer, _segmenters, fold, stemmer

tokenize = Analyzer().tokenizer(None)

GOLDEN = {
    "Latin": ("Der Straßenname: ÉCOLE, 3.5 km!", ["der", "strassenname", "ecole", "3", "5", "km"]),
    "Cyrillic": ("Ёлка и МЁД", ["елка", "и", "мед"]),
    "Greek": ("Ο ΔΡΟΜΟΣ, ο δρόμος", ["ο", "δρομοσ", "ο", "δρομοσ"]),
    "Arabic": ("كِتَابٌ جـــديد، ١٩٤٥", ["كتاب", "جديد", "1945"]),
    "Hebrew": ("שָׁלוֹם, עולם", ["שלום", "עולם"]),
    "Devanagari": ("नदी के किनारे।", ["नदी", "के", "किनारे"]),
    "Han": ("大学生活。书", ["大学", "学生", "生活", "大", "学", "生", "活", "书"]),
    "Kana": ("食べる、テスト", ["食べ", "べる", "食", "テス", "スト"]),
    "Hangul": ("서울의 강", ["서울의", "서울", "울의", "서", "울", "의", "강"]),
    "Thai": ("ที่นี่ ๑๐", ["ที่นี่", "10"]),
    "Ethiopic": ("አዲስ አበባ።", ["አዲስ", "አበባ"]),
    "Khmer": ("ខ្មែរ", ["ខ្មែ", "មែរ"]),
    "Tibetan": ("བོད་ཡིག", ["བོད", "ཡིག"]),
}


@pytest.mark.parametrize("script", GOLDEN)
def test_golden(script: str) -> None:
    text, expected = GOLDEN[script]
    assert tokenize(text) == expected


def test_letters_keep_their_marks() -> None:
    # letters with their marks: ก้ า น้ มั; pairs never split a letter from its mark
    assert tokenize("ก้าน้มั") == ["ก้า", "าน้", "น้มั"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ﾃｽﾄ", "テスト"),  # halfwidth
        ("Ｔｏｋｙｏ", "tokyo"),  # fullwidth
        ("İstanbul", "istanbul"),  # the dot that case folding leaves
        ("e\u0301cole", "école"),  # decomposed
        ("مَدْرَسَة", "مدرسة"),  # vowel points
        ("क्\u200dष", "क्ष"),  # joiner within a word
        ("co\u00adoperate", "cooperate"),  # soft hyphen
        ("\ufeffword", "word"),
        ("२०२४", "2024"),
    ],
)
def test_same_tokens(one: str, other: str) -> None:
    assert tokenize(one) == tokenize(other)


@pytest.mark.parametrize("text", ["", "   ", "… —「」", "\u200b", "🙂"])
def test_nothing_to_find(text: str) -> None:
    assert tokenize(text) == []


def test_mixed_scripts_are_separated() -> None:
    assert tokenize("iPhone手机2024년") == ["iphone", "手机", "手", "机", "2024", "년"]


def test_a_non_joiner_separates_and_joins() -> None:
    # found by the spelling without it, and by its parts
    assert tokenize("می\u200cخواهم") == ["ميخواهم", "مي", "خواهم"]


def test_repetitions_stay() -> None:
    assert tokenize("to be or not to be").count("be") == 2


@pytest.mark.parametrize(
    "record", [{"version": 1}, {"version": 99}, {"version": 2}, {"version": 2, "folding": 99}, {"name": "words"}]
)
def test_another_version_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match="rebuild the index"):
        Analyzer.of({"name": "unicode-scripts", **record})


def test_the_record_of_an_analyzer_gives_it_back() -> None:
    for analyzer in (Analyzer(), Analyzer(stem=True), Analyzer(stem=("de",))):
        assert Analyzer.of(analyzer.record()) == analyzer
    assert Analyzer().record() == {"name": "unicode-scripts", "version": 2, "folding": FOLDING_VERSION}


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("ru", "Москвы́", "москва"),
        ("de", "Häusern", "Haus"),
        ("ar", "المدارس", "مدارس"),
        ("tr", "evlerimizde", "evler"),
        ("hi", "लड़कों", "लड़का"),
        ("fi", "taloissa", "talo"),
        ("es", "canciones", "canción"),
    ],
)
def test_words_are_reduced_to_stems(lang: str, one: str, other: str) -> None:
    stems = Analyzer(stem=True).tokenizer(lang)
    assert stems(one) == stems(other)
    assert Analyzer().tokenizer(lang)(one) != Analyzer().tokenizer(lang)(other)


def test_stems_only_where_there_is_a_stemmer() -> None:
    for lang, text in (("vi", "những ngôi nhà"), ("zh", "大学生活"), ("ko", "서울의 강"), ("sw", "watoto wanacheza")):
        assert Analyzer(stem=True).tokenizer(lang)(text) == Analyzer().tokenizer(lang)(text), lang
    # the words of other scripts in the same text are cut as ever
    assert Analyzer(stem=True).tokenizer("de")("Häuser in 大学") == ["haus", "in", "大学", "大", "学"]


def test_by_default_stems_are_of_the_languages_that_they_help() -> None:
    chosen = Analyzer.choose(None, None)
    assert chosen.stem == STEMMED
    for lang, text in (("ru", "Москвы"), ("de", "Häusern"), ("en", "houses")):
        assert (
            chosen.tokenizer(lang)(text)
            == Analyzer(stem=True).tokenizer(lang)(text)
            != Analyzer().tokenizer(lang)(text)
        )
    # Finnish has stems that were not measured; a joint index has texts of any language
    assert chosen.tokenizer("fi")("taloissa") == ["taloissa"] != Analyzer(stem=True).tokenizer("fi")("taloissa")
    assert Analyzer.choose(None, None, joint=True) == Analyzer.choose(False, False) == Analyzer()
    assert Analyzer.choose(True, True) == Analyzer(segment=True, stem=True)
    assert all(stemmer(lang) is not None for lang in STEMMED)
    assert _segmenters._algorithms().items() >= _segmenters._MEASURED.items()
    assert not {"zh"} & {*SEGMENTED}
    assert Analyzer.of(chosen.record()) == chosen


@pytest.mark.slow  # the dictionaries are installed for this stage
@pytest.mark.parametrize(
    ("lang", "text", "words"),
    [
        ("th", "โรงเรียนเปิดวันนี้", {"โรงเรียน", "เปิด"}),
        ("lo", "ໂຮງຮຽນເປີດ", {"ໂຮງຮຽນ"}),
        ("km", "សាលារៀនបើក", {"សាលារៀន"}),
        ("my", "ကျောင်းဖွင့်သည်", {"ကျောင်း", "ဖွင့်သည်"}),
        ("zh", "我们在大学生活", {"我们", "在", "生活"}),
        ("ja", "図書館は朝に開く", {"図書館", "朝"}),
        ("ko", "대한민국에서는 고양이를", {"대한민국", "고양이"}),
    ],
)
def test_dictionaries_cut_words(lang: str, text: str, words: set[str]) -> None:
    pytest.importorskip("icu4py")
    pytest.importorskip("kiwipiepy")
    found = Analyzer(segment=True).tokenizer(lang)(text)
    assert {fold(word, search=True) for word in words} <= set(found)
    assert len(found) < len(Analyzer().tokenizer(lang)(text))
    assert Analyzer(segment=True).tokenizer(lang)("Straße 12") == ["strasse", "12"]


def test_traditional_characters_are_simplified_on_request() -> None:
    pytest.importorskip("opencc")
    analyzer = Analyzer(simplified=True)
    assert analyzer.tokenizer("zh")("歷史") == Analyzer().tokenizer("zh")("历史")
    assert Analyzer.of(analyzer.record()) == analyzer
    assert not set(Analyzer().tokenizer("zh")("歷史")) & set(Analyzer().tokenizer("zh")("历史")) - {"史"}


@pytest.mark.slow
def test_a_segmented_index_names_its_dictionaries(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("icu4py")
    pytest.importorskip("kiwipiepy")
    record = Analyzer(segment=True).record()
    assert set(record["segment"]) == {"icu4py", "kiwipiepy"}
    assert Analyzer.of(record) == Analyzer(segment=True)
    assert not caplog.records
    Analyzer.of({**record, "segment": {"icu4py": "0.1", "kiwipiepy": "0.1"}})
    assert "some words may not meet" in caplog.text


@pytest.mark.parametrize("package", ["icu4py", "kiwipiepy"])
def test_a_missing_library_is_named_with_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match="segment"):
        Analyzer(segment=True).record()
