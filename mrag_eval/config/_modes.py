"""IR modes: named presets over which languages are searched and how their lists are merged, in the papers' words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Words that stand for languages which only the row knows; the rest of a language scope are BCP 47 codes.
LANGUAGE_ROLES = ("all", "query", "relevant", "culture", "gold", "sibling")


@dataclass(frozen=True, slots=True)
class Mode:
    """A preset. ``languages`` are roles (see :data:`LANGUAGE_ROLES`) or codes; empty: no search.

    ``query_translation`` and ``document_translation`` as in :class:`~mrag_eval.config.Retrieval`.
    """

    languages: tuple[str, ...]
    merge: str
    summary: str
    source: str
    query_translation: str = "none"
    document_translation: str = "none"


MODES: Mapping[str, Mode] = {
    "no_ir": Mode((), "score", "no retrieval (Non-RAG)", "all five papers"),
    "given": Mode((), "score", "the passages that come with the row", "XRAG"),
    "qlang": Mode(("query",), "score", "the query's language (monoRAG)", "BordIRlines, CORAL, mRAG"),
    "en_only": Mode(("en",), "score", "English", "BordIRlines, mRAG"),
    "trag": Mode(
        ("en",), "score", "English, with the question in English (tRAG, +QT)", "CORAL, mRAG", query_translation="en"
    ),
    "qlang+en": Mode(("query", "en"), "score", "the query's language and English", "BordIRlines, mRAG"),
    "rel_langs": Mode(("relevant", "en"), "score", "the row's relevant languages and English", "BordIRlines"),
    "swap_docs": Mode(
        ("sibling",), "score", "a sibling query's documents in another claimant's language", "BordIRlines"
    ),
    "all": Mode(
        ("all",), "score", "every language of the corpus (multiRAG, direct)", "CORAL, Cross-Lingual Cost, mRAG"
    ),
    "oracle": Mode(
        ("gold",), "score", "passages of the documents known to answer (upper bound)", "XRAG, mRAG, Cross-Lingual Cost"
    ),
    "crossrag": Mode(
        ("all",),
        "score",
        "every language, the passages shown in English (crossRAG)",
        "CORAL",
        document_translation="en",
    ),
    "own": Mode(("culture",), "score", "the language of the row's culture", "CORAL ablation"),
    "own+en": Mode(("culture", "en"), "score", "the language of the row's culture and English", "CORAL ablation"),
    "coral": Mode(("all",), "score", "languages and query chosen by agents, round by round (CORAL)", "CORAL"),
    "gold_lang": Mode(("gold",), "score", "the gold document's language (language oracle)", "Cross-Lingual Cost"),
    "balanced": Mode(("all",), "quota", "every language, the same number from each", "Cross-Lingual Cost"),
    "balanced_weighted": Mode(("all",), "quota_share", "every language, split by corpus share", "Cross-Lingual Cost"),
    "translation": Mode(
        ("all",),
        "score",
        "every language, searched with the question in each of them",
        "Cross-Lingual Cost",
        query_translation="each",
    ),
}
