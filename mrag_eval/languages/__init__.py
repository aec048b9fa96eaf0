"""What the package knows of a language: one file each, in ``files/``.

A file holds words that models use around an answer, the labels of options, a plain sentence for an answer, and system
prompts. Speakers can read and correct it without Python (docs/languages.md). What follows from a script alone, such as
folding or the search for word boundaries, is code, in :mod:`mrag_eval.text`.
"""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.languages._files import (
        PACKAGE,
        READING_VERSION,
        Files,
        Language,
        Words,
        changed_languages,
        files_of_languages,
        in_sentence,
        known_languages,
        language,
        name_in_prompts,
    )
    from mrag_eval.languages._reliability import (
        BANDS,
        MEASURED_FROM,
        RELIABILITY_FILE,
        Reliability,
        band_of,
        reliabilities,
        reliability,
    )
else:
    __getattr__, __dir__ = lazy_door(__name__)
