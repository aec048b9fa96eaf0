"""Folding: one form for the spellings of a word, script by script."""

from mrag_eval.text.folding._fold import FOLDING_VERSION, fold
from mrag_eval.text.folding._spellings import half_spaces_apart, one_spelling

__all__ = ["FOLDING_VERSION", "fold", "half_spaces_apart", "one_spelling"]
