"""Reading the chosen option: the references as a minimum, 13 languages and more, ambiguity, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.core import _languages as languages
from mrag_eval.metrics import extract_choice
from mrag_eval.platform import ConfigError, MetricError

OPTIONS = ["bread", "eggs", "porridge", "rice"]

# The originals' answers are not sensible here, and ours differ on purpose.
BLEND_DIFFERENCES = {
    '{"answer_choice":"Eggs"}': 1,  # capital letter, still the option
    "b": 1,  # a lone letter counts
    "eggs": 1,  # the option's text without JSON
    "The answer is B": 1,  # the original reads the T of "The"
    "Answer: B": 1,  # the original reads the A of "Answer"
    "I think the answer is D.": 3,  # the original reads the I
    '{"answer":"B"}': 1,  # the key is clear enough
    '{"answer_choice":2}': 1,  # announced numbers count from 1
    '{"answer_choice":"A"} or {"answer_choice":"B"}': None,  # two answers are no answer; the original takes the first
}
DIRECT_DIFFERENCES = {
    "a) Spain": 0,
    "Morocco.": 1,
    "A) Spain or B) Morocco": None,  # two answers are no answer; the original takes the first
    "Option B: Morocco": 1,
    "It belongs to Sudan": 1,
    "일본입니다": 1,  # particle on the noun
    "ب) المغرب": 1,  # the second letter of the Arabic alphabet
}
# responses for which the free-text rule, which never refuses, guesses
FREETEXT_DIFFERENCES = {
    "B": 1,
    "A) Spain or B) Morocco": None,
    "C) Neither": None,
    "C": None,
    "": None,
    "D) United Kingdom": None,
    "France; some say Madagascar": None,
    "I cannot determine the owner.": None,
    "Unknown": None,
}
CITATION_DIFFERENCES = {
    "Chosen Option: Morocco\n": 1,
    "Chosen Option: B) Morocco": 1,  # no explanation needed
    "Chosen Option: A) Spain or B) Morocco\n": None,
    "Chosen Option: B) Morocco and A) Spain\n": None,
    "Chosen Option: b) morocco\n": 1,
}


def load(reference: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((reference / name).read_text(encoding="utf-8"))
    return found


def test_blend_is_the_floor(reference: Path) -> None:
    data = load(reference, "blend_mcq_answer_extraction.json")
    options, seen = list(data["choices"].values()), set()
    for case in data["cases"]:
        response, official = case["response"], case["final_ans"]
        expected = "ABCD".index(official) if len(official) == 1 and official in "ABCD" else None
        if response in BLEND_DIFFERENCES:
            seen.add(response)
            assert BLEND_DIFFERENCES[response] != expected, response
            expected = BLEND_DIFFERENCES[response]
        assert extract_choice(response, 4, options) == expected, response
    assert seen == set(BLEND_DIFFERENCES)


@pytest.mark.parametrize(
    ("field", "differences"),
    [("index_bordirlines_direct", DIRECT_DIFFERENCES), ("index_borderlines_freetext", FREETEXT_DIFFERENCES)],
)
def test_borderlines_is_the_floor(reference: Path, field: str, differences: dict[str, int | None]) -> None:
    for case in load(reference, "borderlines_answer_parsing.json")["direct"]:
        response, options, official = case["response"], case["options"], case[field]
        expected = None if official in (-1, "IndexError") else official
        if response in differences:
            expected = differences[response]
        assert extract_choice(response, len(options), options) == expected, response


def test_the_citation_format_is_the_floor(reference: Path) -> None:
    for case in load(reference, "borderlines_answer_parsing.json")["citation"]:
        expected = None if case["index"] == -1 else case["index"]
        for part, ours in CITATION_DIFFERENCES.items():
            if f"{part}" in case["response"] and (part.endswith("\n") or case["response"] == part):
                expected = ours
        assert extract_choice(case["response"], len(case["options"]), case["options"]) == expected, case["response"]


ANNOUNCED = {
    "id": ["Jawaban: B", "Jawabannya adalah B.", "Jawaban yang benar adalah B. eggs"],
    "am": ["መልስ: B", "መልስ፦ ለ", "መልሱ B ነው", "ትክክለኛው መልስ: B"],
    "su": ["Waleran: B", "Waleranana nyaéta B"],
    "ar": ["الإجابة: B", "الإجابة الصحيحة هي: ب", "الجواب: ب) البيض", "الإجابة هي (B)"],
    "ha": ["Amsa: B", "Amsar ita ce B", "Amsar daidai ita ce: B"],
    "en": ["Answer: B", "**Answer:** B", "The correct answer is (B).", "Final answer: **B**", "Chosen Option: B) eggs"],
    "zh": ["答案：B", "答案是B。", "正确答案是：B", "因此选B", "故选：Ｂ。", "答：B"],
    "ko": ["정답: B", "정답은 B입니다.", "정답: ②", "정답은 2번입니다", "답: 나", "답은 B"],
    "as": ["উত্তৰ: B", "উত্তৰ: খ", "শুদ্ধ উত্তৰ হ'ল B"],
    "el": ["Απάντηση: Β", "Η σωστή απάντηση είναι η Β", "Απάντηση: B) eggs"],
    "fa": ["پاسخ: B", "پاسخ صحیح: گزینه ب", "پاسخ صحیح گزینه B است", "پاسخ: گزینه ۲"],
    "es": ["Respuesta: B", "La respuesta correcta es la B.", "La respuesta es B) eggs"],
    "az": ["Cavab: B", "Düzgün cavab B variantıdır", "Cavabı: B)"],
    "de": ["Antwort: B"], "fr": ["Réponse : B"], "it": ["Risposta: B"], "pt": ["Resposta: B"], "tr": ["Cevap: B"],
    "ru": ["Ответ: B", "Ответ: Б"], "vi": ["Đáp án: B"], "th": ["คำตอบ: B", "คำตอบคือ ข"], "hi": ["उत्तर: B"],
    "he": ["תשובה: ב"], "ja": ["回答: B", "答えはBです", "答え：イ"],
}  # fmt: skip


def test_the_languages_of_coral_are_there() -> None:
    assert set(languages.CORAL_POOL) <= set(ANNOUNCED)


@pytest.mark.parametrize(("lang", "response"), [(lang, line) for lang, lines in ANNOUNCED.items() for line in lines])
def test_announced_in_many_languages(lang: str, response: str) -> None:
    for options in (OPTIONS, None):
        assert extract_choice(response, 4, options, lang) == 1
        assert extract_choice(f"A) bread is common, C) too.\n\n{response}", 4, options, lang) == 1
        assert extract_choice(response, 1, options and ["bread"], lang) is None  # beyond the options


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Answer: A\nWait, no.\nAnswer: B", 1),
        ("<think>Answer: A</think>\nB", 1),
        ("Answer:\n\n**B**", 1),
        ("Answer: b", 1),
        ("answer: b) eggs", 1),
        ("Answer: EGGS", 1),
        ("Final Answer: \\boxed{B}", 1),
        ("The final answer is $\\boxed{\\text{B}}$.", 1),
        ("Answer: 2", 1),
        ("The correct answer is B because A is wrong.", 1),
        ("I think the answer is eggs, not bread.", 1),
        ("Bread is common. Rice too.\n\nAnswer: eggs", 1),
        ('{"reason": "Answer: A", "answer_choice": "B"}', 1),
        ('Answer: {"answer_choice": "B"}', 1),
        ('{"answer": "A"}\nOn reflection:\nAnswer: B', 1),
        ("Ｂ", 1),
        ("(b)", 1),
        ("Ⓑ", 1),
        ("②", 1),
        ("B\n\nEggs are common.", 1),
        ("B eggs", 1),
        ("I would pick B.", 1),
        ("Option (C) is right", 2),
        ("The best option is **C**.", 2),
        ("**C) porridge** is the one", 2),
        ("D) rice is eaten in China", 3),
        ("B. eggs\n\nExplanation: A. bread is not typical.", 1),
        ("A) bread\nB) eggs\nC) porridge\nD) rice\n\nAnswer: C", 2),
        ("A good question. Probably eggs.", 1),
        ("It is eggs, not bread.", 1),
        ("EGGS!", 1),
        ("The answer depends. I'd say D.", 3),
        ("Answer: A typical breakfast is porridge", None),  # the label, or an article
        # nothing chosen, several chosen, or no such option
        ("", None),
        ("Answer:", None),
        ("Answer: E", None),
        ("E", None),
        ("Answer: 7", None),
        ("Answer: A/B/C/D", None),
        ("Answer: A or B", None),
        ("Answer: B, C", None),
        ("Answer: A und C", None),
        ("Answer: I don't know", None),
        ("Spain held it. Answer: none of the above", None),
        ("It's between A) bread and B) eggs.", None),
        ("eggs and bread", None),
        ("A) bread\nB) eggs\nC) porridge\nD) rice", None),
        ("The answer is not A.", None),
        ("Not B.", None),
        ("2", None),
        ('{"answer_choice": ["A", "B"]}', None),
    ],
)
def test_forms(response: str, expected: int | None) -> None:
    assert extract_choice(response, 4, OPTIONS) == expected


@pytest.mark.parametrize(
    ("response", "options", "expected"),
    [
        ("Vitamin C", ["Vitamin A", "Vitamin C", "Vitamin D"], 1),
        ("It is Vitamin C.", ["Vitamin A", "Vitamin C", "Vitamin D"], 1),
        ("O", ["A", "B", "O", "AB"], 2),  # blood types: no third label O
        ("Answer: 3", ["10", "3", "5", "2"], 1),  # the text 3, not the third option
        ("Answer: A dog", ["cat", "dog"], 1),
        ("Romania", ["Oman", "Mali"], None),
        ("Sudan's territory", ["South Sudan", "Sudan"], 1),
        ("같다", ["같다", "같다", "다르다"], None),  # two equal options
        ("B", ["같다", "같다", "다르다"], 1),
        ("정답: ⑤", ["a1", "b1", "c1", "d1", "e1"], 4),
        ("E", ["a1", "b1", "c1", "d1", "e1"], 4),
        ("E", ["a1", "b1", "c1", "d1"], None),
        # option text inside a sentence, one line a script
        ("It belongs to Spain.", ["Spain", "Morocco"], 0),
        ("Это Россия.", ["Япония", "Россия"], 1),
        ("Στην Ελλάδα", ["Ελλάδα", "Τουρκία"], 0),
        ("والمغرب", ["إسبانيا", "المغرب"], 1),
        ("בישראל", ["ירדן", "ישראל"], 1),
        ("यह भारत है", ["भारत", "चीन"], 0),
        ("东京是首都", ["东京", "京都"], 0),
        ("これはカナダです", ["カナダ", "インド"], 0),
        ("일본입니다", ["러시아", "일본"], 1),
        ("ในประเทศไทย", ["ไทย", "ลาว"], 0),
        ("በኢትዮጵያ ነው", ["ኬንያ", "ኢትዮጵያ"], 1),
    ],
)
def test_option_texts(response: str, options: list[str], expected: int | None) -> None:
    assert extract_choice(response, len(options), options) == expected


REASONED = [
    # the end of a reply before its beginning, a first thought aside
    ("Bread looks plausible at first sight, but the text says that people prefer eggs. That makes it B.", 1),
    ("Option A looks plausible at first sight, but the text says that people prefer eggs. That makes it B.", 1),
    ("Bread is eaten in the evening. Rice is for lunch. So the answer has to be eggs.", 1),
    # what opens the reply, explained behind
    ("C\nExplanation: (A) is eaten at night ✗ (B) is not typical ✗", 2),
    ("B. Bread is for the evening, porridge for children, and rice for lunch.", 1),
    ("I think it's B, because of the hens. A has no protein. C is for children and D for lunch.", 1),
    # lists with marks
    ("- A: bread ❌\n- B: eggs ❌\n- C: porridge ✅\n- D: rice ❌", 2),
    ("❌ A: too dry\n❌ B: too rich\n❌ D: too late", 2),
    # elimination, one by one and together
    ("- A is wrong, since it is eaten at night.\n- B is wrong.\n- D cannot be it.", 2),
    ("That rules out A, C and D.", 1),
    ("Not A, since it is dry. Not B either. D can't be it.", 2),
    # neither
    ("Both B and C are eaten there. I can't prefer one of them.", None),
    ("The text does not say. B would be a guess, so I cannot answer.", None),
    ("Bread is dry. Eggs are rich.", None),
]


@pytest.mark.parametrize(("response", "expected"), REASONED)
def test_reasoned_replies_go_by_where_the_answer_stands(response: str, expected: int | None) -> None:
    assert extract_choice(response, 4, OPTIONS, "en") == expected


def test_words_and_labels_are_those_of_the_language_and_of_english() -> None:
    assert extract_choice("정답: 나", 4, None, "ko") == 1
    assert extract_choice("정답: 나", 4, None, "de") is None
    assert extract_choice("The answer is B.", 4, None, "ko") == 1
    # no file for Tamil: bare labels, and English
    assert extract_choice("விடை: B", 4, None, "ta") == 1
    with pytest.raises(ConfigError, match="unknown language 'xx'"):
        extract_choice("It is B.", 4, None, "xx")


@given(st.text(max_size=60), st.integers(1, 8), st.booleans())
def test_any_text_gives_an_index_or_none(response: str, n: int, with_options: bool) -> None:
    options = [f"choice number {index}" for index in range(n)] if with_options else None
    found = extract_choice(response, n, options)
    assert found is None or 0 <= found < n


@given(st.text(max_size=60), st.integers(0, 7))
def test_a_final_answer_line_decides(before: str, index: int) -> None:
    if "{" in before or "\\" in before:
        before = ""
    assert extract_choice(f"{before}\nAnswer: {chr(65 + index)}", 8) == index


@given(st.integers(2, 6), st.data())
def test_naming_an_option_by_letter_text_or_json(n: int, data: st.DataObject) -> None:
    options = [f"item{chr(0x430 + index)}{index}" for index in range(n)]
    index = data.draw(st.integers(0, n - 1))
    letter, text = chr(65 + index), options[index]
    for response in (letter, text, f"{letter}) {text}", f"Answer: {text}", json.dumps({"answer_choice": letter})):
        assert extract_choice(response, n, options) == index


@pytest.mark.parametrize(
    ("response", "n", "options", "says"),
    [
        (None, 4, None, "must be a string"),
        ("A", 0, None, "1 to 26"),
        ("A", 27, None, "1 to 26"),
        ("A", 2, ["x"], "1 option texts for 2 choices"),
    ],
)
def test_bad_input(response: Any, n: int, options: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        extract_choice(response, n, options)


def test_a_reading_does_not_depend_on_the_process() -> None:
    """Options of one length are looked for in their order: that of a set differs between processes."""
    code = (
        "from mrag_eval.metrics import extract_choice\n"
        "print(extract_choice('rather than [1, 2]', 4, ['1', '2', '3', '4']))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "0123"
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("A ❌ B ❌ C ✅ D ❌", 2),
        ("❌ A ❌ B ✅ C ❌ D", 2),
        ("A) tea ❌, B) coffee ✅, C) milk ❌, D) juice ❌", 1),
        ("tea ✗ coffee ✗ milk ✓ juice ✗", 2),
        ("A ✅ B ✅ C ❌ D ❌", None),
        ("A: ❌\nB: ✅ coffee, not tea ❌\nC: ❌", 1),
    ],
)
def test_marks_in_one_line_are_each_of_their_option(reply: str, expected: int | None) -> None:
    assert extract_choice(reply, 4, ["tea", "coffee", "milk", "juice"], "en") == expected


# A language, and what follows a statement of A: with a word that takes it back, and without.
TAKEN_BACK = [
    ("en", "The answer is A. Wait, actually it's B."),
    ("en", "Answer: A\n\nCorrection: B"),
    ("en", "(A) bread. Actually, (B) eggs."),
    ("de", "Die Antwort ist A. Moment, es ist doch B."),
    ("es", "La respuesta es A. Perdón, es B."),
    ("fr", "La réponse est A. Non, en fait c'est B."),
    ("ja", "答えはAです。いや、Bです。"),
    ("ar", "الإجابة هي A. عفواً، بل هي B."),
]
CORRECTIONS = [
    ("en", "Answer: A\nWait, I misread the text.\nB"),
    ("en", '{"answer_choice": "A"}\nNo, it is B.'),
    ("en", "\\boxed{A}\n\n**B**"),
    ("en", "Answer: A. Hmm, (B) eggs."),
    ("en", "A) bread\nB"),
    ("ru", "Ответ: A. Нет, всё-таки B."),
    ("ko", "정답은 A입니다. 아니, B입니다."),
    ("hi", "उत्तर A है। नहीं, B है।"),
]


@pytest.mark.parametrize(("lang", "reply"), CORRECTIONS)
def test_a_reply_that_ends_on_another_label_than_it_stated_is_unread(lang: str, reply: str) -> None:
    assert extract_choice(reply, 4, OPTIONS, lang) is None
    assert extract_choice(reply.replace("B", "A"), 4, ["eggs", "bread", "porridge", "rice"], lang) == 0


@pytest.mark.parametrize(("lang", "reply"), TAKEN_BACK)
def test_a_reply_that_takes_back_what_it_stated_chooses_the_label_on_which_it_ends(lang: str, reply: str) -> None:
    assert extract_choice(reply, 4, OPTIONS, lang) == 1
    assert extract_choice(reply.replace("B", "A"), 4, ["eggs", "bread", "porridge", "rice"], lang) == 0


@pytest.mark.parametrize(
    "behind",
    [
        "B and C are out.",
        "So not B.",
        "A) bread\nB) eggs\nC) porridge\nD) rice",
        "A. bread\nB. no",
        "Options: A, B, C, D",
        "A",
    ],
)
def test_what_only_lists_or_rules_out_leaves_the_statement(behind: str) -> None:
    for stated in ("Answer: A", '{"answer_choice": "A"}', "\\boxed{A}"):
        assert extract_choice(f"{stated}\n{behind}", 4, OPTIONS, "en") == 0
