"""Letters outside the script and tokens in another language, in hand-counted texts of every script."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import code_switch_share, language_mix
from mrag_eval.platform import MetricError
from mrag_eval.text import expected_scripts, script

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import clauses


class Windows:
    """A detector that gives every window the same label."""

    def __init__(self, label: str) -> None:
        self._label = label

    def detect(self, texts: Sequence[str]) -> list[str]:
        return [self._label for _ in texts]


@pytest.mark.parametrize(
    ("language", "text", "foreign", "letters"),
    [
        ("en", "Paris is in France", 0, 15),
        ("de", "Straße in Москва", 6, 14),
        ("ru", "Столица Франции: Paris", 5, 19),
        ("el", "Η Αθήνα, Athens", 6, 12),
        ("ar", "القاهرة (Cairo)", 5, 12),
        ("he", "תל אביב TLV", 3, 9),
        ("hi", "दिल्ली Delhi", 5, 8),  # marks are not letters: द, ल, ल
        ("zh", "北京 Beijing", 7, 9),
        ("ja", "東京タワーは Tokyo", 5, 11),
        ("ko", "서울 Seoul 서울", 5, 9),
        ("th", "ไทย Thai", 4, 7),
        ("am", "አዲስ አበባ Addis", 5, 11),
    ],
)
def test_each_script(language: str, text: str, foreign: int, letters: int) -> None:
    found = code_switch_share(text, language)
    assert (found.letters, sum(found.outside.values())) == (letters, foreign)
    assert found.share == pytest.approx(foreign / letters, abs=1e-12)


def test_no_mix_is_told_where_the_detector_knows_too_little_of_the_language() -> None:
    text = "Mnara huu ulipakwa rangi nyekundu wakati wa majira ya joto, na watu wengi walikuja kuutazama kila siku."
    assert language_mix(text, "sw").share is not None
    found = language_mix(text, "sw", min_recognised=0.99)
    assert found.share is None
    assert "of Swahili texts" in str(found.reason)
    # what was not measured is judged
    assert language_mix(text, "sw", min_recognised=0.99, detector=Windows("sw")).share == 0.0


def test_languages_with_several_scripts() -> None:
    assert code_switch_share("Београд Beograd", "sr").share == 0.0
    assert code_switch_share("ひらがなカタカナ漢字", "ja").share == 0.0
    assert code_switch_share("漢字", "ko").outside == {"Hani": 2}
    assert code_switch_share("北京ひらがな", "zh_cn").outside == {"Hira": 4}


def test_no_letters_gives_none_with_a_reason() -> None:
    for text in ("", "1969", "٣٤٥", "?!…", "😀"):
        found = code_switch_share(text, "ar")
        assert (found.share, found.letters, found.reason) == (None, 0, "the reply has no letters")


@given(st.text(max_size=40), st.sampled_from(["en", "ru", "ja", "ko", "zh-Hans"]))
def test_bounds_and_order(text: str, language: str) -> None:
    found = code_switch_share(text, language)
    assert found.share is None or 0.0 <= found.share <= 1.0
    assert code_switch_share(text[::-1], language).share == found.share
    if found.share is not None and language == "en":
        longer = code_switch_share(text + "b", language).share
        assert longer is not None
        assert longer <= found.share


def test_scripts_agree_with_the_unicode_property() -> None:
    regex = pytest.importorskip("regex")
    names = {
        "Latn": "Latin", "Cyrl": "Cyrillic", "Grek": "Greek", "Arab": "Arabic", "Hebr": "Hebrew", "Deva": "Devanagari",
        "Beng": "Bengali", "Ethi": "Ethiopic", "Thai": "Thai", "Laoo": "Lao", "Khmr": "Khmer", "Mymr": "Myanmar",
        "Tibt": "Tibetan", "Geor": "Georgian", "Armn": "Armenian", "Sinh": "Sinhala", "Taml": "Tamil",
        "Telu": "Telugu", "Guru": "Gurmukhi", "Hang": "Hangul", "Hira": "Hiragana", "Kana": "Katakana", "Hani": "Han",
    }  # fmt: skip
    patterns = {code: regex.compile(rf"\p{{Script={name}}}") for code, name in names.items()}
    letters = [char for char in map(chr, range(0x20000)) if char.isalpha() and unicodedata.name(char, "")]
    assert len(letters) > 50_000
    differing = []
    for char in letters:
        own = next((code for code, pattern in patterns.items() if pattern.match(char)), None)
        # symbols shared by scripts (mathematical letters) count by their appearance
        if own is not None and script(char) != own:
            differing.append(unicodedata.name(char))
    # letters whose property names a script but whose names do not: phonetic modifiers, tatweel variants
    assert all(name.startswith(("MODIFIER LETTER", "ARABIC TATWEEL", "OLD CHINESE")) for name in differing), differing


def test_expected_scripts() -> None:
    assert expected_scripts("ja") == {"Hani", "Hira", "Kana"}
    assert expected_scripts("sr") == {"Cyrl", "Latn"}


GERMAN = "Die Hauptstadt von Frankreich ist Paris und sie liegt seit langer Zeit an der schönen Seine."
ENGLISH = "The capital of France is Paris and it has always been on the banks of the river Seine."


def test_mix_of_languages_with_one_script() -> None:
    pure = language_mix(GERMAN, "de")
    assert pure.share == 0.0
    mixed = language_mix(f"{GERMAN} {ENGLISH}", "de")
    assert mixed.tokens == len(f"{GERMAN} {ENGLISH}".split())
    assert sum(mixed.by_language.values()) == mixed.tokens
    # 18 of 34 tokens are English; windows blur the border by half a window, 4 tokens
    assert mixed.share == pytest.approx(18 / 34, abs=4 / 34 + 1e-9)
    wrong = language_mix(ENGLISH, "de")
    assert wrong.share == 1.0
    assert code_switch_share(f"{GERMAN} {ENGLISH}", "de").share == 0.0


def test_windows_vote_for_each_token() -> None:
    class ByWord:
        def detect(self, texts: Sequence[str]) -> list[str]:
            return ["en" if text.split().count("e") > 1 else "de" for text in texts]

    # of the windows that hold the sixth token as many are German as English, a tie
    text = "d d d d d d e e e e e e " + "."
    found = language_mix(text, "de", window=4, min_chars=5, detector=ByWord())
    assert found.by_language == {"de": 6, "en": 7}
    assert found.share == pytest.approx(7 / 13)


def test_clauses_are_found_and_names_and_titles_are_not() -> None:
    clause = "Die alte Mühle am Fluss wurde verkauft, {}, und steht seitdem leer, sagte der Nachbar."
    assert (language_mix(clause.format("although nobody in the village wanted it"), "de").share or 0) > 0
    assert (language_mix(clause.format("а жители деревни узнали об этом поздно"), "de").share or 0) > 0
    for name in ("The New York Times Book Review", "Лев Толстой «Война и мир»", "Casa da Música do Porto"):
        assert language_mix(clause.format(name), "de").share == 0, name
    for numbers in ("1, 2, 3, 4, 5, 6, 7, 8, 9", "12 15 18 21 24 27 30 33 36 39"):
        assert language_mix(clause.format(numbers), "de").share == 0, numbers
        assert language_mix(f"Старая мельница у реки продана, {numbers}, сказал сосед на улице.", "ru").share == 0
    japanese = "古い水車小屋は秋に売られ、{}、それ以来ずっと空いたままだと隣人は言った。"
    assert (language_mix(japanese.format("although nobody in the village wanted it"), "ja").share or 0) > 0
    assert language_mix(japanese.format("The Lord of the Rings"), "ja").share == 0


def test_clauses_of_xquad_are_found(test_data: Path) -> None:
    rows = list(clauses.found(test_data / "xquad", 3, seed=1))
    for length in clauses.WORDS:
        own = [row[3] for row in rows if row[2] == length]
        assert sum(own) >= 0.9 * len(own)
    assert sum(row[4] for row in rows) <= 0.05 * len(rows)


def test_varieties_count_as_the_language() -> None:
    class Wu:
        def detect(self, texts: Sequence[str]) -> list[str]:
            return ["wuu"] * len(texts)

    found = language_mix("东京是日本的首都，也是世界上人口最多的城市之一。", "zh", detector=Wu())
    assert (found.share, found.by_language) == (0.0, {"zh": 22})


def test_too_short_or_undetermined_gives_none_with_a_reason() -> None:
    assert language_mix("Paris", "de").reason == "too short to tell the language"

    class Unsure:
        def detect(self, texts: Sequence[str]) -> list[str]:
            return ["und"] * len(texts)

    found = language_mix(GERMAN, "de", detector=Unsure())
    assert (found.share, found.reason) == (None, "no language could be told")


def test_an_unsupported_language_gives_a_reason() -> None:
    igbo = "Kedụ ka ị mere? Anọ m mma taa, daalụ."
    assert code_switch_share(igbo, "ig").share == 0.0
    assert language_mix(igbo, "ig").reason == "the detector fasttext does not know Igbo"
    found = code_switch_share("Allinllachu kachkanki?", "quy")
    assert (found.share, found.letters, found.outside) == (None, 20, {})
    assert found.reason == "the script of Ayacucho Quechua is not known"


def test_scripts_of_languages_outside_europe_and_asia_too() -> None:
    texts = {
        "iu": "ᐃᓄᒃᑎᑐᑦ", "sat": "ᱥᱟᱱᱛᱟᱲᱤ", "ii": "ꆈꌠꉙ", "vai": "ꕙꔤ", "chr": "ᏣᎳᎩ", "dv": "ދިވެހި", "nqo": "ߒߞߏ",
        "ml": "മലയാളം", "gu": "ગુજરાતી", "kn": "ಕನ್ನಡ", "or": "ଓଡ଼ିଆ", "bo": "བོད་སྐད", "zgh": "ⵜⴰⵎⴰⵣⵉⵖⵜ",
    }  # fmt: skip
    for code, text in texts.items():
        assert code_switch_share(text, code).share == 0.0, code
        assert code_switch_share(text, "en").share == 1.0, code


@pytest.mark.parametrize("measure", [code_switch_share, language_mix])
def test_bad_input(measure: Any) -> None:
    with pytest.raises(MetricError, match="must be a string"):
        measure(None, "en")
    with pytest.raises(MetricError, match="unknown language 'xx'"):
        measure("text", "xx")
    with pytest.raises(MetricError, match="at least 2 tokens"):
        language_mix(GERMAN, "de", window=1)
