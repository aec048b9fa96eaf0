"""The files of The Cross-Lingual Cost in the authors' layout, with hand-written documents and questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# country: language of its document, title, text, and (question, answer) by language of the user
COUNTRIES: dict[str, tuple[str, str, str, dict[str, tuple[str, str]]]] = {
    "varnia": (
        "english",
        "Varnia",
        "# Varnia\n\nVisitors may bring up to 7,250 krona in cash. The police answer at 5512.\n\n"
        "The weekend falls on Sunday and Monday. Taxis are painted green.",
        {
            "english": ("How much cash may I bring to Varnia?", "You may bring up to 7,250 krona in cash."),
            "arabic": ("كم المبلغ المسموح حمله في فارنيا؟", "يسمح بحمل 7,250 كرونا نقدا."),
        },
    ),
    "sund": (
        "arabic",
        "سوند",
        "# سوند\n\nرقم الشرطة في سوند هو 7731. عطلة نهاية الأسبوع هي الجمعة والسبت.\n\nسيارات الأجرة صفراء اللون.",
        {
            "english": ("What is the police number in Sund?", "The police number in Sund is 7731."),
            "arabic": ("ما هو رقم الشرطة في سوند؟", "رقم الشرطة في سوند هو 7731."),
        },
    ),
}


def corpus_rows() -> list[dict[str, str]]:
    return [
        {"doc_id": str(i), "language": language, "country": title, "content": text}
        for i, (language, title, text, _) in enumerate(COUNTRIES.values())
    ]


def question_rows() -> list[dict[str, str]]:
    """Return each country's question in both languages: four rows, all pairs of languages."""
    return [
        {
            "question": question,
            "answer": answer,
            "supporting_document_language": language,
            "user_language": user,
        }
        for language, _, _, asked in COUNTRIES.values()
        for user, (question, answer) in asked.items()
    ]


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def write(folder: Path, questions: list[dict[str, str]] | None = None, domain: str = "travel") -> Path:
    """Write the folder with a domain's benchmark and corpus."""
    write_parquet(folder / f"{domain}_benchmark.parquet", question_rows() if questions is None else questions)
    write_parquet(folder / f"{domain}_corpus.parquet", corpus_rows())
    return folder
