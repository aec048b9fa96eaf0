"""Folding: one form for the spellings of a word, script by script."""

from mrag_eval.text.folding._fold import FOLDING_VERSION, fold

__all__ = ["FOLDING_VERSION", "fold"]
