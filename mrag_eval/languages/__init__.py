"""What the package knows of a language: one file each, in ``files/``.

A file holds words that models use around an answer, the labels of options, a plain sentence for an answer, and system
prompts. Speakers can read and correct it without Python (docs/languages.md). What follows from a script alone, such as
folding or the search for word boundaries, is code, in :mod:`mrag_eval.text`.
"""

from mrag_eval.languages._files import Language, in_sentence, known_languages, language

__all__ = ["Language", "in_sentence", "known_languages", "language"]
