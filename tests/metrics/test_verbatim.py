"""Quotes and copies in hand-made replies of several scripts, and what must hold of any reply."""

from __future__ import annotations

import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import copied_share, held_elsewhere, verbatim_quotes
from mrag_eval.metrics._verbatim import plain_words

LIGHTHOUSE = "The lighthouse of Varn was built in 1841 by the harbour council, and it burned for nine nights in 1902."
BRIDGE = "这座桥于1890年三月开通,当时是全国最长的桥梁之一。"
TEXTS = {
    "en": "The lighthouse of Varn was built by the harbour council",
    "ru": "Старый маяк города Варна построил портовый совет в гавани",
    "el": "Ο παλιός φάρος χτίστηκε από το συμβούλιο του λιμανιού",
    "ar": "بنى مجلس الميناء منارة المدينة القديمة قبل سنوات كثيرة",
    "he": "מועצת הנמל בנתה את המגדלור הישן של העיר לפני שנים",
    "hi": "बंदरगाह परिषद ने शहर का पुराना प्रकाशस्तंभ बनाया था",
    "ko": "항구 위원회가 오래된 등대를 바른 시에 세웠다 그리고",
    "am": "የወደብ ምክር ቤት የቆየውን የከተማ መብራት ቤት ሠራ",
    "zh": "港口委员会在很多年以前建造了这座古老的灯塔并且开放",
    "ja": "港の評議会は何年も前にこの古い灯台を建てて公開しました",
    "th": "สภาท่าเรือสร้างประภาคารเก่าแก่ของเมืองเมื่อหลายปีก่อน",
}
MARKS = (
    *("“{}”", "„{}“", "„{}”", '„{}"', "”{}”", "‟{}”", "⹂{}”", "‘{}’", "‚{}‘", "‚{}’", "‛{}’", "«{}»", "»{}«", "»{}»"),
    *("‹{}›", "›{}‹", "›{}›", "「{}」", "『{}』", "﹁{}﹂", "﹃{}﹄", "｢{}｣", "〝{}〞", "〝{}〟", "❝{}❞", "❛{}❜"),
    *('"{}"', "＂{}＂", "״{}״", "``{}''", "> {}"),
)
CITED = ("[1]", "[1, 3]", "[١]", "［１］", "【1】", "[^1]", "[1-3]", "[Passage 1]", "<doc0>", "【4:0†source】")


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("It says “The lighthouse of Varn was built in 1841” there.", ["shown"]),
        # case, punctuation and the form of letters do not count
        ("It says “the LIGHTHOUSE of Varn, was built in １８４１!” there.", ["shown"]),
        ("It says “built in 1841 by the harbour council … burned for nine nights”.", ["shown", "shown"]),
        # two places of one passage, with what stands between them left out
        ("“The lighthouse of Varn burned for nine nights in 1902”", ["stitched"]),
        ("“The lighthouse of Varn was painted in a fine blue”", ["nowhere"]),
        # one word was changed, and the parts are long enough: put together, though not from two places
        ("“The lighthouse of Varn was built in 1842 by the harbour council”", ["nowhere"]),
        ("資料「这座桥于1890年三月开通」", ["shown"]),
        ("He calls it a “big bridge”, which is “irony”.", []),
        ('A 5" pipe and no other mark\nand "the next line', []),
        ("It was built in 1841.", []),
        ("", []),
    ],
)
def test_where_a_quote_stands(reply: str, found: list[str]) -> None:
    quotes = verbatim_quotes(reply, [LIGHTHOUSE, BRIDGE])
    assert [place for _, place in quotes.found] == found
    for place in ("shown", "elsewhere", "stitched", "nowhere"):
        expected = found.count(place) / len(found) if found else None
        assert quotes.share(place) == expected  # type: ignore[arg-type]


def test_a_quote_of_another_passage_is_elsewhere() -> None:
    reply = "“burned for nine nights in 1902”"
    (quote,) = (text for text, _ in verbatim_quotes(reply, [BRIDGE]).found)
    elsewhere = held_elsewhere([quote], [BRIDGE, LIGHTHOUSE])
    assert elsewhere == {quote}
    assert verbatim_quotes(reply, [BRIDGE], elsewhere).found == ((quote, "elsewhere"),)
    assert held_elsewhere([quote], [BRIDGE]) == frozenset()
    # what was shown is never elsewhere
    assert verbatim_quotes(reply, [LIGHTHOUSE], elsewhere).found == ((quote, "shown"),)


@pytest.mark.parametrize("lang", TEXTS)
@pytest.mark.parametrize("mark", MARKS)
def test_every_script_and_every_mark(lang: str, mark: str) -> None:
    reply = mark.format(TEXTS[lang])
    others = [text for code, text in TEXTS.items() if code != lang]
    assert verbatim_quotes(reply, [f"{LIGHTHOUSE} {TEXTS[lang]}"]).share("shown") == 1.0
    assert verbatim_quotes(reply, others).share("shown") == 0.0
    (quote,) = (text for text, _ in verbatim_quotes(reply, []).found)
    assert held_elsewhere([quote], list(TEXTS.values())) == {quote}
    assert held_elsewhere([quote], others) == frozenset()


def test_every_quotation_mark_of_unicode_is_known() -> None:
    regex = pytest.importorskip("regex")
    marks = {chr(code) for code in range(0x10000) if regex.match(r"\p{Quotation_Mark}", chr(code))}
    # the apostrophe, of both widths
    assert marks - {"'", "\uff07"} <= {*"".join(MARKS)}


@pytest.mark.parametrize("lang", TEXTS)
def test_citations_in_a_quote_or_a_copy_or_a_passage_are_no_words(lang: str) -> None:
    words = TEXTS[lang].split(" ") if " " in TEXTS[lang] else [*TEXTS[lang]]
    joint = " " if " " in TEXTS[lang] else ""
    for cited, mark in product(CITED, ("“{}”", "「{}」", '"{}"', "> {}")):
        inside = f"{words[0]} {cited}{joint}{joint.join(words[1:])}"
        for text in (inside, f"{TEXTS[lang]} {cited}", f"{TEXTS[lang]}{cited}."):
            for reply, passage in ((text, TEXTS[lang]), (TEXTS[lang], text), (text, text)):
                assert verbatim_quotes(mark.format(reply), [passage]).share("shown") == 1.0
                assert copied_share(reply, [passage]) in (1.0, None)


QUOTE = "The lighthouse of Varn was built in 1841"


AROUND = (
    *(
        "{}.",
        "({})",
        "It says: {}, I think.",
        "—{}—",
        "“It says” {}",
        "«{}»",
        "It is {}\n",
        "他说{}很长",
        "그는 {}라고 했다",
    ),
    *(
        'A 5" pipe. {}',
        "It’s the boys’: {}",
        "Rock ’n’ roll, {}.",
        "In 'the {}",
        "He don't say {}.",
        "צה״ל: {}",
        'צה"ל: {}',
    ),
)


@pytest.mark.parametrize("mark", [one for one in MARKS if not one.startswith(">")])
def test_a_quote_is_found_whatever_stands_around_it(mark: str) -> None:
    for reply in AROUND:
        found = verbatim_quotes(reply.format(mark.format(QUOTE)), [LIGHTHOUSE]).found
        assert found == ((QUOTE.lower(), "shown"),), reply


@pytest.mark.parametrize(
    "reply",
    [
        "The boys’ lighthouse of Varn was the girls’ own.",
        "It’s the keeper’s; he’s of Varn, isn’t he? That’s so.",
        "l’ami qu’il a dit d’un phare n’est plus l’ami.",
        "The boys' lighthouse of Varn was 'their' own, the girls' own.",
        "צה״ל ועד הנמל של רמטכ״ל בנו את המגדלור של צה״ל",
        'צה"ל ועד הנמל של רמטכ"ל בנו את המגדלור של צה"ל',
        'A 5" pipe and a 6" pipe of the harbour and a 7" pipe',
        "o‘zbek tilida so‘z va bo‘lim hamda o‘quv",
    ],
)
def test_apostrophes_inches_and_abbreviations_quote_nothing(reply: str) -> None:
    assert verbatim_quotes(reply, []).found == ()


@pytest.mark.parametrize("mark", '"״＂')
def test_a_sign_of_abbreviation_in_a_quote_does_not_end_it(mark: str) -> None:
    text = f"צה{mark}ל בנה את המגדלור של העיר"
    assert verbatim_quotes(f"אמר {mark}{text}{mark}.", [text]).share("shown") == 1.0
    # with a prefix
    assert verbatim_quotes(f"אמר ש{mark}{TEXTS['he']}{mark}.", [TEXTS["he"]]).share("shown") == 1.0


def test_case_does_not_count_in_any_letter() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if char.upper() != char.lower():
            assert plain_words(f"a{char.upper()}") == plain_words(f"a{char.lower()}") == plain_words(f"a{char}"), hex(
                code
            )
    assert plain_words("İSTANBUL IŞIK") == plain_words("istanbul ışık")


@pytest.mark.parametrize("lang", TEXTS)
def test_a_copy_needs_no_mark(lang: str) -> None:
    assert copied_share(TEXTS[lang], [TEXTS[lang]]) in (1.0, None)
    twice = f"{TEXTS[lang]} {TEXTS[lang]}"
    assert copied_share(twice, [f"{BRIDGE} {twice} {LIGHTHOUSE}"]) == 1.0
    assert copied_share(twice, [LIGHTHOUSE if lang != "en" else BRIDGE]) == 0.0


def test_the_share_of_a_copy_by_hand() -> None:
    # ten words of the passage (the lighthouse ... by the), among twenty
    copied = "the lighthouse of varn was built in 1841 by the"
    reply = f"one two three four five {copied} six seven eight nine ten"
    assert copied_share(reply, [LIGHTHOUSE]) == pytest.approx(10 / 20)
    # seven words are no copy
    assert copied_share("one two three of varn was built in 1841 by four five", [BRIDGE]) == 0.0
    assert copied_share("of varn was built in 1841 by", [LIGHTHOUSE]) is None


@given(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "灯", "塔", "ไทย"]), min_size=1, max_size=60),
    st.data(),
)
def test_any_run_of_a_passage_is_a_quote_that_was_shown(words: list[str], data: st.DataObject) -> None:
    passage = " ".join(words)
    start = data.draw(st.integers(0, len(words) - 1))
    run = " ".join(words[start : data.draw(st.integers(start + 1, len(words)))])
    assert verbatim_quotes(f"so “{run}” it is", [passage]).share("shown") in (1.0, None)
    assert copied_share(run, [passage]) in (1.0, None)


@given(st.text(max_size=200), st.lists(st.text(max_size=80), max_size=3))
def test_shares_are_shares_of_any_text(reply: str, passages: list[str]) -> None:
    quotes = verbatim_quotes(reply, passages)
    shares = [quotes.share(place) for place in ("shown", "elsewhere", "stitched", "nowhere")]
    assert shares == [None] * 4 or sum(share or 0 for share in shares) == pytest.approx(1.0)
    copied = copied_share(reply, passages)
    assert copied is None or 0.0 <= copied <= 1.0
