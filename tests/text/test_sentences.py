"""Ends of sentences and phrases in every script."""

from __future__ import annotations

import sys
import time
import unicodedata

import pytest

from mrag_eval.languages import known_languages, language
from mrag_eval.text import sentence_spans, sentences_marked


def cut(text: str, lang: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentence_spans(text, lang)]


@pytest.mark.parametrize(
    ("lang", "sentences"),
    [
        ("en", ['He said "yes."', "Then 3.5 km.", "Really?!", "End"]),
        ("de", ["Er sagte: „Ja.“", "Dann ging er.", "»Gut.«", "Ende."]),
        ("fr", ["Il dit : « Oui.\u00a0»", "Puis il part.", "Vraiment\u00a0?", "Fin"]),
        ("es", ["¿Qué?", "¡Sí!", "Fin."]),
        ("el", ["Τι είναι;", "Γέφυρα.", "Ποιος\u037e", "Τέλος"]),
        ("hy", ["Կամուրջ է։", "Գետ է:", "Վերջ"]),
        ("ru", ["Это мост.", "Это река…", "Конец"]),
        ("ar", ["هل هذا جسر؟", "نعم.", "إنه قديم."]),
        ("fa", ["آیا این پل است؟", "بله.", "پایان"]),
        ("ur", ["پل ہے۔", "دریا ہے۔"]),
        ("he", ["זה גשר.", "זה נהר!"]),
        ("hi", ["पुल पुराना है।", "नदी चौड़ी है॥", "अंत"]),
        ("bn", ["সেতু পুরনো।", "নদী চওড়া?", "শেষ"]),
        ("ta", ["பாலம் பழையது.", "ஆறு அகலமானது."]),
        ("si", ["පාලම පැරණියි.", "ගඟ පළලයි."]),
        ("my", ["တံတားဟောင်း၊ မြစ်ကျယ်။", "အဆုံး။"]),
        ("km", ["ស្ពានចាស់។", "ទន្លេធំ៕", "ចប់"]),
        ("th", ["สะพานเก่า แม่น้ำกว้าง"]),
        ("lo", ["ຂົວເກົ່າ ແມ່ນ້ຳກວ້າງ"]),
        ("am", ["ድልድይ ነው።", "ወንዝ ነው፡፡", "ትልቅ ነው፧", "አበቃ"]),
        ("ko", ["다리다.", "강이다."]),
        ("jv", ["ꦱꦶꦗꦶ꧉", "ꦭꦺꦴꦫꦺꦴ꧉"]),
        ("nqo", ["ߌ ߣߌ߫߹", "ߒ ߓߊ߫߹"]),
        ("ff", ["𞤀𞤣𞤢𞤥.", "𞤖𞤢𞤱𞤢."]),
        ("en", ["First line", "Second line", "Third"]),
    ],
)
def test_sentences_between_spaces(lang: str, sentences: list[str]) -> None:
    joint = "\n" if "line" in sentences[0] else " "
    assert cut(joint.join(sentences), lang) == sentences


@pytest.mark.parametrize(
    ("lang", "sentences"),
    [
        ("zh", ["旧桥很长。", "河流很宽！", "“真的？”他问。", "真的?", "是。", "他说：“是桥。”", "河流很宽。"]),
        ("zh", ["1．旧桥很长。", "2．河流很宽。", "“是桥。”", "“是河。”他说。", "他写了“桥。”的故事。"]),
        ("ja", ["橋だ。", "彼は「川か？」と言った。", "円周率は３．１４だ．", "Ｕ．Ｓ．Ａは国だ．", "次は３だ。"]),
        ("hi", ["पुल।", "नदी।"]),
        ("am", ["ድልድይ።", "ወንዝ፡፡", "ዛፍ"]),
    ],
)
def test_sentences_without_spaces_between_them(lang: str, sentences: list[str]) -> None:
    assert cut("".join(sentences), lang) == sentences


@pytest.mark.parametrize(
    "text",
    ["3.14 km", "３．１４", "1.000.000", "www.a.org/a?b=c", "አዲስ፡አበባ", "e.g.this", "v1.2.3", "a!b", "a;b"],
)
def test_marks_inside_numbers_and_words_end_nothing(text: str) -> None:
    assert cut(text, "en") == [text]


# A word and a mark that ends no sentence before what follows, in scripts with and without upper case.
GOES_ON = [
    *(
        ("Dr", "Smith left"),
        ("Prof", "Dr. Meyer kam"),
        ("J", "Smith left"),
        ("А", "С. Пушкин писал"),
        ("Κ", "Π. Καβάφης"),
    ),
    *(
        ("no", "5 was lost"),
        ("Nr", "5 fehlt"),
        ("vol", "12 is lost"),
        ("стр", "5 цела"),
        ("U.S", "Army camps"),
        ("e.g", "Paris"),
    ),
    *(
        ("e.g", "it was"),
        ("ca", "dreißig"),
        ("т.е", "это мост"),
        ("п.χ", "η γέφυρα"),
        ("at", "“the mill” was"),
        ("at", "(it was)"),
    ),
]


@pytest.mark.parametrize(("word", "rest"), GOES_ON)
@pytest.mark.parametrize("lang", ["en", "de", "ru", "el", "zh"])
def test_a_dot_of_an_abbreviation_ends_nothing(word: str, rest: str, lang: str) -> None:
    for before in ("Oh, ", "The old mill, ", "Its end. (", "Oh, “"):
        found = cut(f"{before}{word}. {rest}.", lang)
        assert found[-1].endswith(f"{word}. {rest}."), found
        # a line break ends one, and so does another mark
        assert cut(f"{before}{word}.\n{rest}.", lang)[-1] != found[-1]
        assert cut(f"{before}{word}! {rest}.", lang)[-1] != found[-1]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It was the sea.", "The mill is old."],
        # without capitals
        ["it was the sea.", "the mill is old."],
        ["это море.", "мельница стара."],
        ["It was 5 km.", "The mill is old."],
        ["He came in 1841.", "12 men left."],
        ["It was read on the BBC.", "It was old."],
        ["It was lost.", "5 men left."],
        ["A plan b.", "The mill."],
        ["Es war 3.5.", "Dann kam er."],
        # no letter has an upper case
        ["ეს ხიდია.", "ის ძველია."],
        ["다리다.", "1841년이다."],
        ["זה גשר.", "זה נהר."],
        ["هذا جسر.", "هو قديم."],
        ["பாலம்.", "ஆறு."],
    ],
)
def test_a_full_stop_ends_a_sentence_whatever_the_word_before_it(sentences: list[str]) -> None:
    assert cut(" ".join(sentences), "en") == sentences


def test_titles_stand_before_names_alone() -> None:
    assert cut("He saw a St. He left.", "en") == ["He saw a St. He left."]
    assert cut("The prof. He left. Ask Prof. (X).", "en") == ["The prof.", "He left.", "Ask Prof.", "(X)."]
    assert cut("It was ca. Montag.", "de") == ["It was ca. Montag."]
    assert cut("Es dauerte 5 g. Montag.", "de") == ["Es dauerte 5 g.", "Montag."]


@pytest.mark.parametrize("code", known_languages())
def test_no_abbreviation_of_a_language_ends_a_sentence_and_no_ordinal_before_its_words(code: str) -> None:
    known = language(code)
    assert known is not None
    name = next(word for word in known.sentence.split() if word[0].isalpha())
    name = name[0].upper() + name[1:]
    for word in known.words.abbreviations:
        text = f"{name}, {word.lstrip('1')}. {name}"
        assert cut(text, code) == [text]
        assert len(cut(text.replace(". ", ".\n"), code)) == 2
    for word in known.words.ordinals:
        text = f"{name} 3. {word}"
        assert cut(text, code) == [text]
        assert cut(f"{name} 3. 10. 1990", code) == [f"{name} 3. 10. 1990"]
    for word in known.words.continues:
        assert cut(f"{word}「是。」{word}", code) == [f"{word}「是。」{word}"]


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("ru", "Его изобрёл проф. Н. Е. Жуковский, живший на ул. Ленина в г. Москве."),
        ("ru", "Роман А. С. Пушкина вышел в 1833 г. в Москве."),
        ("de", "Die 2. Auflage kam am 3. Oktober 44 v. Chr. heraus, z. B. bei Dr. Meyer."),
        ("de", "Es liegt in der Hauptstr. 5 am Markt."),
        ("fr", "Le pont date du 3 oct. 50 av. J.-C. environ."),
        ("hi", "डॉ. शर्मा ने इसे 3 अक्टू. 1990 को खोला।"),
        ("ar", "افتتح المعبد عام 300 ق.م. تقريباً."),
        ("it", "Il 3. Ottobre lo vide il prof. Rossi, cfr. Bianchi."),
        ("pl", "Szkoła im. Jana stoi od 3. maja przy ul. Długiej."),
        ("tr", "2. Mehmet ile Prof. Dr. Kaya geldi."),
        ("lt", "1990 m. Lietuva laisva."),
        ("hi", "डॉ. ए. पी. जे. अब्दुल कलाम आए।"),
        ("es", "En el s. XIX vivía la Sra. García."),
        ("en", "“Really?” he asked, i.e. John."),
    ],
)
def test_one_sentence(lang: str, text: str) -> None:
    assert cut(text, lang) == [text]


@pytest.mark.parametrize(
    ("lang", "marked", "text"),
    [
        ("th", False, "สะพานเก่า แม่น้ำกว้าง"),
        ("th", True, "สะพานเก่า\nแม่น้ำกว้าง"),
        ("th", True, "สะพานเก่า 3 แห่ง"),
        ("lo", False, "ຂົວເກົ່າ   ແມ່ນ້ຳກວ້າງ"),
        ("km", False, "ស្ពានចាស់ ទន្លេធំ"),
        ("km", True, "ស្ពានចាស់ ទន្លេធំ។ ចប់។"),
        ("my", True, "တံတားဟောင်း မြစ်ကျယ်။"),
        ("my", False, "တံတားဟောင်း။ မြစ်ကျယ် အဆုံး"),
        ("bo", False, "ཟམ་པ། གཙང་པོ།"),
        ("en", True, "An old bridge a river"),
        ("zh", True, "旧桥很长 河流很宽"),
    ],
)
def test_whether_sentences_are_marked(lang: str, marked: bool, text: str) -> None:
    assert sentences_marked(text, lang) is marked


def test_the_number_of_a_list_is_no_sentence() -> None:
    assert cut("1. The mill.\n2. The sea.\n**3.** The hill.", "en") == [
        "1. The mill.",
        "2. The sea.",
        "**3.** The hill.",
    ]
    assert cut("가. 다리다.\n나. 강이다.", "ko") == ["가. 다리다.", "나. 강이다."]
    assert cut("네. 다리다.", "ko") == ["네.", "다리다."]
    assert cut("He left in 1841. 12 men stayed.", "en") == ["He left in 1841.", "12 men stayed."]


def test_every_sentence_terminal_of_unicode_ends_a_sentence() -> None:
    regex = pytest.importorskip("regex")
    terminal, tested = regex.compile(r"\p{Sentence_Break=STerm}"), 0
    for code in range(0x80, sys.maxunicode + 1):
        # signs that this Python's database lacks are not compared: regex may be of a later Unicode
        char = chr(code)
        # the Burmese comma ends a phrase; the full-width dot is a full stop unless in a number
        if unicodedata.category(char).startswith("P") and char not in "\u104a\uff0e":
            expected = bool(terminal.match(char))
            assert (len(cut(f"ა{char}ა", "ka")) == 2) is expected, f"U+{code:04X}"
            tested += expected
    assert tested > 140


def test_phrases() -> None:
    def phrases(text: str, lang: str) -> list[str]:
        return [text[start:end].strip() for start, end in sentence_spans(text, lang, phrases=True)]

    assert phrases("สะพานเก่า แม่น้ำกว้าง", "th") == ["สะพานเก่า", "แม่น้ำกว้าง"]
    assert phrases("ຂົວເກົ່າ ແມ່ນ້ຳ", "lo") == ["ຂົວເກົ່າ", "ແມ່ນ້ຳ"]
    assert phrases("တံတားဟောင်း၊ မြစ်ကျယ်။", "my") == ["တံတားဟောင်း၊", "မြစ်ကျယ်။"]
    assert phrases("ཟམ་པ། གཙང་པོ།", "bo") == ["ཟམ་པ།", "གཙང་པོ།"]
    assert phrases("An old bridge. A river", "en") == ["An old bridge.", "A river"]


@pytest.mark.parametrize(
    "part", [" ", ".", ".'", "!?", "\u1361", "．", "? ", "\n ", "a.", "\u00a0»", "a. b ", "A. B ", "no. 5 ", '. ("(']
)
def test_time_grows_with_the_length_only(part: str) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        list(sentence_spans(part * times, "en"))
        return time.process_time() - began

    # eight times the text: 64 times as long where time grows with its square, as it did once
    assert min(seconds(32_000) for _ in range(3)) < 40 * min(seconds(4_000) for _ in range(5)) + 0.05
