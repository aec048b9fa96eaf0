"""Scripts, words and sentences of every language."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.text._analyzer import OPTIONS, Analyzer, analyzer_text
    from mrag_eval.text._cutting import BETWEEN_CLAUSES, BETWEEN_WORDS, fitting_spans
    from mrag_eval.text._han_variants import han_variant
    from mrag_eval.text._letters import HAN_KANA, HANGUL, marks, unspaced_letters
    from mrag_eval.text._scripts import NO_SPACE_SCRIPTS, expected_scripts, letter_scripts, script
    from mrag_eval.text._segmenters import (
        SEGMENTED,
        STEMMED,
        in_lemmas,
        inflected,
        segmenters,
        stemmer,
        warn_without_segmenters,
        words_apart,
    )
    from mrag_eval.text._sentences import sentence_spans, sentences_marked
    from mrag_eval.text._token_estimate import estimated_tokens
    from mrag_eval.text._tokenize import Tokenizer
    from mrag_eval.text.folding import FOLDING_VERSION, fold, half_spaces_apart, one_spelling
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["fold"]
