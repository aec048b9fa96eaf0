"""Hand-written AfriQA files in the published layout: three questions each in Hausa and Fon, about invented towns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CODES = {"ha": ("hau", "en"), "fon": ("fon", "fr")}
_TEXTS = {
    "ha": ("Ina garin {}?", "Where is the town of {}?", "{} is a town on the river Osk.", "kogin Osk", "river Osk"),
    "fon": ("Fítɛ {} ɖe?", "Où est la ville de {} ?", "{} est une ville au bord de l'Osk.", "Osk tɔ", "Osk"),
}
TOWNS = ("Varn", "Tarvel", "Varn")


def rows(language: str) -> list[dict[str, Any]]:
    """Return three questions, of which two share a passage."""
    asked, translated, text, answer, pivot = _TEXTS[language]
    return [
        {
            "id": str(number),
            "question_lang": asked.format(town) + " " * number,
            "question_translated": translated.format(town),
            "title": "" if number == 1 else town,
            "context": text.format(town),
            "answer_pivot": {"answer_start": [text.index("Osk")], "text": [pivot]},
            "answer_lang": answer,
        }
        for number, town in enumerate(TOWNS)
    ]


def write(folder: Path, changed: dict[str, list[dict[str, Any]]] | None = None, split: str = "test") -> Path:
    """Write both files; return ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, (code, pivot) in CODES.items():
        lines = (changed or {}).get(language, rows(language))
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"gold_span_passages.afriqa.{code}.{pivot}.{split}.json").write_text(text, encoding="utf-8")
    return folder
