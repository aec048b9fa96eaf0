"""Folding: one form for the spellings of a word, script by script."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.text.folding._fold import fold
    from mrag_eval.text.folding._spellings import half_spaces_apart, one_spelling
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["FOLDING_VERSION", "fold", "half_spaces_apart", "one_spelling"]

# Part of every tokenizer's version and of the settings of every score that folds: raise it with any change of a rule.
FOLDING_VERSION = 1
