"""BM25 on XQuAD by language: the words of version 1 and 2, stems, and dictionaries.

    MRAG_TEST_DATA=... python benchmarks/lexical_languages.py [--languages zh ru]
    python benchmarks/lexical_languages.py --quick    two paragraphs of our own, to see that it runs

Each of the 1,190 questions is searched among the 240 paragraphs of its language.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mrag_eval.text import Analyzer, Tokenizer, stemmer

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
_DICTIONARIES = ("zh",)
_OWN = {
    "ru": (["В музее много картин.", "Река течёт на север."], [("Где картины музея?", 0), ("Куда течёт река?", 1)]),
    "zh": (["博物馆里有很多画。", "这条河向北流。"], [("画在哪里？", 0), ("河往哪里流？", 1)]),
}


def read(folder: Path, lang: str) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the paragraphs, and the questions with the position of their paragraph."""
    with gzip.open(folder / "xquad" / f"xquad.{lang}.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    entries = [entry for article in articles for entry in article["paragraphs"]]
    questions = [(qa["question"], at) for at, entry in enumerate(entries) for qa in entry["qas"]]
    return [entry["context"] for entry in entries], questions


def measured(words: Tokenizer, texts: Sequence[str], questions: Sequence[tuple[str, int]]) -> str:
    """Return hit@1, hit@5 and hit@20 in percent, MRR, and the speed in MB of UTF-8 a second."""
    import bm25s

    began = time.perf_counter()
    corpus = [words(text) for text in texts]
    seconds = time.perf_counter() - began
    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    model.index(corpus, show_progress=False)
    ranks = []
    for question, at in questions:
        known = [word for word in words(question) if word in model.vocab_dict]
        scores = model.get_scores(known) if known else np.zeros(len(texts))
        # ties count against the passage
        ranks.append(int((scores >= scores[at]).sum()) if scores[at] > 0 else len(texts) + 1)
    found = np.asarray(ranks)
    hits = " | ".join(f"{100 * (found <= k).mean():.1f}" for k in (1, 5, 20))
    return f"{hits} | {(1 / found).mean():.3f} | {sum(len(t.encode()) for t in texts) / seconds / 1e6:.1f}"


def main() -> None:
    from _rows import arguments

    parser = arguments(__doc__, quick="paragraphs of our own, without XQuAD")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    options = parser.parse_args()
    print("| | words | hit@1 | hit@5 | hit@20 | MRR | MB/s |\n|---|---|---|---|---|---|---|")
    for lang in ("ru", "zh") if options.quick else options.languages:
        texts, questions = _OWN[lang] if options.quick else read(Path(os.environ["MRAG_TEST_DATA"]), lang)
        kinds = {"version 1": Analyzer(version=1), "version 2": Analyzer()}
        if stemmer(lang) is not None:
            kinds["stems"] = Analyzer(stem=True)
        if lang in _DICTIONARIES:
            kinds["dictionary"] = Analyzer(segment=True)
        for kind, analyzer in kinds.items():
            print(f"| {lang} | {kind} | {measured(analyzer.tokenizer(lang), texts, questions)} |", flush=True)


if __name__ == "__main__":
    main()
