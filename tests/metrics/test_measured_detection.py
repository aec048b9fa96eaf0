"""What ``correct_language`` leaves out by what was measured of a detector, and the scripts of replies."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from mrag_eval.core import language_name
from mrag_eval.languages import BANDS, MEASURED_FROM, Reliability, band_of, reliabilities, reliability
from mrag_eval.metrics import FastTextDetector, correct_language_rate, language_mix, wilson
from mrag_eval.metrics._language_detection import _fasttext, canonical
from mrag_eval.metrics._language_rate import is_romanised, other_script
from mrag_eval.text import han_variant
from mrag_eval.text._han_variants import SIMPLIFIED, TRADITIONAL
from tests.metrics.test_language_rate import SENTENCES, Fixed

# Sentences of ours in Latin letters, 20 code points and more.
ROMANISED = {
    "hi": ["Taj Mahal Agra mein sthit hai", "Main kal bazaar jaunga aur sabzi kharidunga"],
    "ar": ["3asimat misr hiya al qahira", "kataba najib mahfouz hathihi al riwaya"],
    "el": ["To vivlio grafike apo ton Kazantzaki", "O polemos ksekinise to 1940 kai teliose to 1949"],
    "ru": ["Ya ne znayu otvet na etot vopros", "V etoy strane zhivut raznye narody"],
    "ja": ["Nihon no shuto wa Tokyo desu", "Fujisan wa nihon de ichiban takai yama desu"],
}


class Measured(Fixed):
    """A detector whose texts were counted under a name."""

    measured_as = "lid.176"


def planted(monkeypatch: pytest.MonkeyPatch, *counts: tuple[int, int, int]) -> None:
    """Plant what was measured of lid.176 and Yoruba: (length from, texts, recognised)."""
    rows = tuple(Reliability("lid.176", "yo", start, n, hits, 500, 5, ("ours",)) for start, n, hits in counts)
    known = {("lid.176", "yo"): tuple(row for row in rows if row.texts >= MEASURED_FROM)}
    monkeypatch.setattr("mrag_eval.languages._reliability._measured", lambda: known)


def test_a_reply_of_a_length_that_the_detector_misses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 to 49 characters: 12 of 40, .3 < .8; 50 to 99: 32 of 40, .8 is enough."""
    planted(monkeypatch, (20, 40, 12), (50, 40, 32))
    replies = ["a" * 21, "a" * 49, "a" * 50, "a" * 99, "a" * 21, None]
    found = correct_language_rate(replies, "yo", detector=Measured("yo", "en"), min_recognised=0.8)
    why = "lid.176 recognises 30% of Yoruba texts of 20 to 49 characters"
    assert found.reasons == (why, why, None, None, why, "no response")
    assert found.correct == (None, None, True, False, None, None)
    assert (found.rate, found.scored, found.skipped) == (0.5, 2, 4)
    # a right label of such a length is left out as well: to keep those alone would give 100 %
    assert found.detected[0] is None
    # without a bound, and by a detector of which nothing is known, all is scored
    assert correct_language_rate(replies, "yo", detector=Measured("yo")).scored == 5
    assert correct_language_rate(replies, "yo", detector=Fixed("yo"), min_recognised=0.8).scored == 5
    assert correct_language_rate(replies, "en", detector=Measured("yo"), min_recognised=0.8).scored == 5


def test_a_length_without_texts_goes_by_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    # 29 texts are too few to count
    planted(monkeypatch, (1, 29, 0), (20, 30, 12), (50, 29, 29))
    assert [reliability("lid.176", "yo", n).length_from for n in (0, 5, 25, 60, 500)] == [20] * 5  # type: ignore[union-attr]
    planted(monkeypatch, (1, 30, 3), (50, 30, 30))
    assert [reliability("lid.176", "yo", n).length_from for n in (3, 19, 20, 49, 50, 900)] == [  # type: ignore[union-attr]
        *(1, 1, 1, 1, 50, 50)
    ]
    planted(monkeypatch)
    assert reliability("lid.176", "yo", 5) is None


def test_bands_cover_every_length() -> None:
    assert [band_of(n) for n in (0, 1, 19, 20, 49, 50, 99, 100, 10_000)] == [1, 1, 1, 20, 20, 50, 50, 100, 100]


def test_the_counts_of_the_package_are_whole() -> None:
    rows = reliabilities()
    assert len({(row.detector, row.language, row.length_from) for row in rows}) == len(rows) > 100
    for row in rows:
        assert row.length_from in BANDS
        assert 0 <= row.recognised <= row.texts
        assert 0 <= row.taken <= row.others
        assert row.texts
        assert row.sources
        assert language_name(row.language) != row.language
    # every language was measured among the same texts: of a length, own and others are all of them, but for the
    # languages that count together
    for detector in ("lid.176", "lingua"):
        for band in BANDS:
            own = [row for row in rows if (row.detector, row.length_from) == (detector, band)]
            assert len({row.texts + row.others for row in own}) == 1


@pytest.mark.skipif("MRAG_TEST_DATA" not in os.environ, reason="needs $MRAG_TEST_DATA")
def test_what_is_said_of_sundanese_swahili_and_xquad_is_counted_again() -> None:
    """Count two languages and a benchmark without the script that wrote the package's figures."""
    data = Path(os.environ["MRAG_TEST_DATA"])
    with (data / "blend" / "questions" / "West_Java_questions.csv").open(encoding="utf-8-sig", newline="") as rows:
        texts = {" ".join(row["Question"].split()) for row in csv.DictReader(rows)}
    detector = FastTextDetector()
    for start, end in ((20, 49), (50, 99), (100, 10_000)):
        own = sorted(text for text in texts if start <= len(text) <= end)
        counted = next(
            row for row in reliabilities() if (row.detector, row.language, row.length_from) == ("lid.176", "su", start)
        )
        assert (counted.texts, counted.recognised) == (len(own), detector.detect(own).count("su"))
    # what was printed as a third of right answers is left out, with the reason
    sundanese = sorted(texts)
    before = correct_language_rate(sundanese, "su")
    after = correct_language_rate(sundanese, "su", min_recognised=0.8)
    assert before.rate is not None
    assert 0.3 < before.rate < 0.4
    assert (after.rate, after.scored) == (None, 0)
    assert all("lid.176 recognises" in str(reason) for reason in after.reasons)


def test_detectors_by_language(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, (20, 40, 0))
    yoruba, others = Fixed("yo"), Measured("en")
    found = correct_language_rate(
        ["a" * 30, "b" * 30, "c" * 30],
        ["yo", "en", "de"],
        detector={"yo": yoruba, "default": others},
        min_recognised=0.8,
    )
    assert (yoruba.seen, others.seen) == (["a" * 30], ["b" * 30, "c" * 30])
    assert found.correct == (True, True, False)
    # without a default the bundled one
    assert correct_language_rate([SENTENCES["ru"]], "ru", detector={"yo": yoruba}).rate == 1.0


# ------------------------------------------------------------------------------------------------------- scripts

HANT = "博物館在春天開放，第一年就有許多來自國外的遊客前來參觀。"
LATIN = "Muzej je otvoren u proleće i imao je mnogo posetilaca iz inostranstva."
CYRILLIC = "Музеј је отворен у пролеће и имао је много посетилаца из иностранства."


@pytest.mark.parametrize(
    ("reply", "asked", "right", "label"),
    [
        (SENTENCES["zh"], "zh", True, "zh"),
        (HANT, "zh", True, "zh"),
        (SENTENCES["zh"], "zh-Hans", True, "zh"),
        (SENTENCES["zh"], "zh_tw", False, "zh-Hans"),
        (HANT, "zh-Hant", True, "zh"),
        (HANT, "zhs", False, "zh-Hant"),
        (LATIN, "sr-Latn", True, None),
        (CYRILLIC, "sr-Latn", False, "sr"),
        (CYRILLIC, "sr", True, "sr"),
        (LATIN, "sr", True, None),
        (SENTENCES["en"], "sr-Latn", False, "en"),
        (SENTENCES["hi"], "hi", True, "hi"),
        (SENTENCES["en"], "hi", False, "en"),
        (SENTENCES["es"], "ar", False, "es"),
    ],
)
def test_a_demanded_script_is_checked_by_letters(reply: str, asked: str, right: bool, label: str | None) -> None:
    found = correct_language_rate([reply], asked, check_script=True)
    assert found.correct == (right,)
    assert label is None or found.detected == (label,)
    # the papers' rules tell no scripts apart
    assert correct_language_rate([reply], asked.partition("-")[0]).rate is not None


@pytest.mark.parametrize("asked", ["hi-Latn", "ar-Latn", "uz-Cyrl", "kk-Latn", "zu", "ks"])
def test_where_no_right_reply_can_be_told_no_wrong_one_counts(asked: str) -> None:
    """A rate over the replies in other scripts alone could only be 0."""
    texts = [*SENTENCES.values(), *(text for texts in ROMANISED.values() for text in texts)]
    found = correct_language_rate(texts, asked, check_script=True)
    assert found.scored == 0
    assert {*found.reasons} == {f"the detector fasttext does not know {language_name(asked)}"}
    assert {language_mix(text, asked).reason for text in texts} == {*found.reasons}


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in ROMANISED.items() for text in texts])
def test_text_in_latin_letters_is_its_own_outcome(code: str, text: str) -> None:
    found = correct_language_rate([text], code, check_script=True, min_recognised=0.8)
    assert (found.correct, found.detected) == ((False,), (f"{code}-Latn",))
    # whether the demand for it is met is for a detector that has a label for it
    asked = correct_language_rate([text], f"{code}-Latn", check_script=True)
    assert asked.reasons == (f"the detector fasttext does not know {language_name(f'{code}-Latn')}",)
    glotlid = Fixed(f"{code}-Latn")
    assert correct_language_rate([text], f"{code}-Latn", check_script=True, detector=glotlid).rate == 1.0
    assert correct_language_rate([text], f"{code}-Latn", check_script=True, detector=Fixed("it")).rate == 0.0


@pytest.mark.parametrize("code", ["en", "es"])
def test_a_language_that_is_recognised_is_not_taken_for_a_romanised_one(code: str) -> None:
    assert not is_romanised(SENTENCES[code], "hi")


def test_what_is_never_romanised() -> None:
    # a name, a language of Latin letters, one whose script is unknown, another script
    assert not is_romanised("Taj Mahal", "hi")
    assert not is_romanised(ROMANISED["hi"][0], "de")
    assert not is_romanised(ROMANISED["hi"][0], "quy")
    assert not is_romanised(SENTENCES["ru"], "hi")
    assert not is_romanised("", "hi")


def test_a_text_without_signs_of_a_script_is_in_the_demanded_one() -> None:
    assert [other_script(text, "zh-Hant") for text in ("", "2021", "人山人海", "国國")] == [None] * 4
    assert other_script("Привет, Latin", "sr-Latn") == "Cyrl"
    assert other_script("Привет Latin", "sr") is None
    assert other_script("नमस्ते Hello", "hi-Latn") is None


def test_variants_of_chinese_are_those_of_opencc() -> None:
    opencc = pytest.importorskip("opencc")
    to_simplified, to_traditional = opencc.OpenCC("t2s").convert, opencc.OpenCC("s2t").convert
    assert not SIMPLIFIED & TRADITIONAL
    assert all(to_simplified(char) == char and to_traditional(char) != char for char in SIMPLIFIED)
    assert all(to_simplified(char) in SIMPLIFIED for char in TRADITIONAL)
    assert [han_variant(text) for text in (SENTENCES["zh"], HANT, to_traditional(SENTENCES["zh"]), "人", "")] == [
        *("Hans", "Hant", "Hant", None, None)
    ]


def test_the_table_of_the_docs_is_that_of_the_counts() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence" / "languages.md").read_text(encoding="utf-8")
    for row in reliabilities():
        share = wilson(row.recognised, row.texts)
        assert share.low is not None
        assert share.high is not None
        cell = f"{100 * row.share:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}] of {row.texts:,}"
        lines = [
            line for line in page.splitlines() if line.startswith(f"| {language_name(row.language)} | {row.detector} |")
        ]
        assert len(lines) == 1
        assert cell in lines[0]


@pytest.mark.parametrize("least", [0.0, 0.3, 0.6, 0.9])
def test_a_label_is_told_as_fasttext_itself_tells_it(least: float) -> None:
    texts = [text for some in (*SENTENCES.values(), *ROMANISED.values()) for text in some]
    texts += ["", " ", "NASA", "2010", "half \ud800 a pair", f"{' '.join(texts)} " * 5]
    lines = [f"{text}\n".encode("utf-8", "replace").decode() for text in texts]
    itself = _fasttext(None).f.multilinePredict(lines, 1, least, "strict")
    itself = itself[0] if isinstance(itself, tuple) else itself
    # the second time, short texts are known
    for _ in range(2):
        assert FastTextDetector(None, least).detect(texts) == [canonical(top[0]) if top else "und" for top in itself]
