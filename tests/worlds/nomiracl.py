"""Hand-written NoMIRACL files in the published layout: five questions in each of two languages."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

FOLDERS = {"de": "german", "sw": "swahili"}
# Subset -> question -> passage -> its judgement.
JUDGED = {
    "relevant": {
        "1#0": {"10#0": 0, "11#0": 1, "12#0": 0},
        "2#0": {"13#0": 1, "10#0": 0, "14#0": 0},
    },
    "non_relevant": {
        "3#0": {"10#0": 0, "14#0": 0, "12#0": 0},
        "4#0": {"11#0": 0, "13#0": 0, "15#0": 0},
        "5#0": {"12#0": 0, "10#0": 0, "13#0": 0},
    },
}
QUESTIONS = {
    "de": ('Wo steht "Lindes" Mühle?', "Wer baute die Brücke?", "Wann brannte es?", "Wie tief?", "Wer sang?"),
    "sw": ("Kinu kiko wapi?", "Nani alijenga daraja?", "Moto ulikuwa lini?", "Kina gani?", "Nani aliimba?"),
}
PASSAGE = {"de": "Abschnitt {n} über einen Ort am Fluss.", "sw": "Kifungu {n} kuhusu mahali kando ya mto."}


def write(folder: Path, split: str = "test") -> Path:
    """Write the files of both languages under ``folder/data``; return ``folder``."""
    for code, name in FOLDERS.items():
        home = folder / "data" / name
        for kind in ("topics", "qrels"):
            (home / kind).mkdir(parents=True, exist_ok=True)
        texts = iter(QUESTIONS[code])
        for subset, questions in JUDGED.items():
            topics = "".join(f"{question}\t{next(texts)}\n" for question in questions)
            grades = (
                f"{question}\tQ0\t{passage}\t{grade}\n"
                for question, found in questions.items()
                for passage, grade in found.items()
            )
            (home / "topics" / f"{split}.{subset}.tsv").write_text(topics, encoding="utf-8")
            (home / "qrels" / f"{split}.{subset}.tsv").write_text("".join(grades), encoding="utf-8")
        passages = sorted({passage for questions in JUDGED.values() for own in questions.values() for passage in own})
        lines = [
            {"docid": passage, "title": f"T{passage}", "text": PASSAGE[code].format(n=passage)} for passage in passages
        ]
        with gzip.open(home / "corpus.jsonl.gz", "wt", encoding="utf-8") as handle:
            handle.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return folder
