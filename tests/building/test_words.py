"""Word limits in every script, copied shares, tags in replies."""

from __future__ import annotations

import pytest

from mrag_eval.building.steps._asking import all_tags, one_of_words, tagged_pairs
from mrag_eval.building.steps._words import copied_share, count_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("Who won the final, Spain or England?", 7),
        ("Anna-Lena came at 12:30 – alone .", 5),
        ("Кто выиграл финал?", 3),
        ("Ποιος νίκησε;", 2),
        ("من فاز بالمباراة؟", 3),
        ("מי ניצח?", 2),
        ("कौन जीता?", 2),
        ("누가 이겼습니까?", 2),
        ("ማን አሸነፈ?", 2),
        # 5 Han characters at 1.5 per word
        ("谁赢得比赛？", 4),
        # 3 Han characters and 3 Latin ones: two words and one
        ("微软的 API", 3),
        # 8 kana at 2 per word
        ("ひらがなだけです", 4),
        # 7 letters at 4 per word; the last vowel is a mark
        ("ใครชนะปี", 2),
    ],
)
def test_words_are_counted_in_every_script(text: str, words: int) -> None:
    assert count_words(text) == words


def test_copied_share_counts_word_fourgrams() -> None:
    source = "the council of Varga said on Monday that trees will be planted"
    assert copied_share(source, source) == 1.0
    # "The council of Varga plants" has 2 fourgrams; the first occurs in the source
    assert copied_share("The council of Varga plants", source) == 0.5
    assert copied_share("new trees line the canal", source) == 0.0
    assert copied_share("on Monday", source) == 1.0
    assert copied_share("", source) == 0.0
    # Chinese by characters: 种植新树 and 植新树木, one of which occurs
    assert copied_share("种植新树木", "他们种植新树。") == 0.5


def test_tags_are_read_in_order_and_broken_ones_passed_over() -> None:
    reply = "<q>one\nline</q> <q>two <q>three</q> <Q> </Q> </q>"
    assert all_tags(reply, "q") == ["one line", "three"]
    reply = "<question>a</question> <answer>b</answer><question>c</question><question>d</question>\n<answer>e</answer>"
    assert tagged_pairs(reply, "question", "answer") == [("a", "b"), ("d", "e")]
    assert tagged_pairs("<question>a</question>", "question", "answer") == []


def test_one_of_words() -> None:
    assert one_of_words("I think <holds> Some. </holds>", "holds", ("sufficient", "some", "none")).value == "some"
    wrong = one_of_words("<holds>all</holds>", "holds", ("sufficient", "some", "none"))
    assert wrong.value is None
    assert "none of sufficient, some, none" in (wrong.error or "")
