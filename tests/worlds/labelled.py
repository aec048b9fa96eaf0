"""Answers with people's labels, in the layouts of MEMERAG and of PsiloQA: every word is ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

YES, NO, OPEN = "Supported", "Not Supported", "Challenging to determine"
# The sentences of MEMERAG end with the white space that stands behind them.
SENTENCES = {
    "en": ("The mill of Tarn was built in 1764. ", "It grinds nothing but spelt.\n\n", "Two brothers own it today."),
    "de": ("Die Mühle von Tarn wurde 1764 gebaut. ", "Sie mahlt nur Dinkel.\n", "Heute gehört sie zwei Brüdern."),
}
QUESTIONS = {"en": "What is known of the mill of Tarn?", "de": "Was weiß man von der Mühle von Tarn?"}
CONTEXTS = {
    "en": ("The mill of Tarn was built in 1764.", "Since then it has ground nothing but spelt."),
    "de": ("Die Mühle von Tarn wurde 1764 gebaut.", "Seither wird dort nur Dinkel gemahlen."),
}


def memerag(
    name: int | str, lang: str, labels: Sequence[str | Sequence[str]], sentences: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an answer of MEMERAG with one label, or one of each annotator, for each of its sentences."""
    return {
        "query_id": name,
        "query": QUESTIONS[lang],
        "context": [{"text": text} for text in CONTEXTS[lang]],
        "answer": [
            {
                "sentence_id": place,
                "sentence": (sentences or SENTENCES[lang])[place],
                "fine_grained_factuality": "Direct paraphrase",
                "factuality": label if isinstance(label, str) else list(label),
                "relevance": "Directly answers the question",
                "comments": "",
            }
            for place, label in enumerate(labels)
        ],
    }


def psiloqa(name: str, lang: str, answer: str, spans: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return an answer of PsiloQA with its spans that nothing supports."""
    return {
        "id": name,
        "lang": lang,
        "wiki_title": "Tarn",
        "wiki_url": "https://example.org/Tarn",
        "llm_checkpoint": "org/small",
        "wiki_passage": " ".join(CONTEXTS[lang]),
        "question": QUESTIONS[lang],
        "golden_answer": SENTENCES[lang][0].strip(),
        "llm_answer": answer,
        "annotated_span": answer,
        "complexity": "easy",
        "labels": [list(span) for span in spans],
    }
