"""BM25 on XQuAD by language: words, stems, dictionaries, and bm25s with its own words and Snowball's stems.

    MRAG_TEST_DATA=... python benchmarks/lexical_languages.py [--languages zh ru]
    python benchmarks/lexical_languages.py --quick    two paragraphs of our own, to see that it runs

Each of the 1,190 questions is searched among the 240 paragraphs of its language, by the same BM25. The difference to
words has a 95% interval over the paragraphs, whose questions are not independent. ``STEMMED`` and ``SEGMENTED`` of
``mrag_eval.text`` name the languages in which an index takes stems and dictionaries by itself; the first table decides.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics import PairedCell, paired_tests
from mrag_eval.text import STEMMED, Analyzer, Tokenizer, stemmer

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
_DICTIONARIES = ("zh",)
_OWN = {
    "ru": (["В музее много картин.", "Река течёт на север."], [("Где картины музея?", 0), ("Куда течёт река?", 1)]),
    "zh": (["博物馆里有很多画。", "这条河向北流。"], [("画在哪里？", 0), ("河往哪里流？", 1)]),
}
Ranks = NDArray[np.int64]


def read(folder: Path, lang: str) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the paragraphs, and the questions with the position of their paragraph."""
    with gzip.open(folder / "xquad" / f"xquad.{lang}.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    entries = [entry for article in articles for entry in article["paragraphs"]]
    questions = [(qa["question"], at) for at, entry in enumerate(entries) for qa in entry["qas"]]
    return [entry["context"] for entry in entries], questions


def peer(lang: str) -> Tokenizer:
    """Return the words of bm25s: its own pattern, and the stems of Snowball where it has them; no stop words."""
    import bm25s

    stem = stemmer(lang)
    by_name = None if stem is None else (lambda words: [stem(word) for word in words])
    cut: Callable[..., list[list[str]]] = partial(
        bm25s.tokenize, stopwords=[], stemmer=by_name, return_ids=False, show_progress=False
    )
    return lambda text: cut([text])[0]


def ranks(words: Tokenizer, texts: Sequence[str], questions: Sequence[tuple[str, int]]) -> tuple[Ranks, float]:
    """Return the rank of each question's paragraph, and the speed in MB of UTF-8 a second."""
    import bm25s

    began = time.perf_counter()
    corpus = [words(text) for text in texts]
    seconds = time.perf_counter() - began
    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    model.index(corpus, show_progress=False)
    found = []
    for question, at in questions:
        known = [word for word in words(question) if word in model.vocab_dict]
        scores = model.get_scores(known) if known else np.zeros(len(texts))
        # ties count against the passage
        found.append(int((scores >= scores[at]).sum()) if scores[at] > 0 else len(texts) + 1)
    return np.asarray(found), sum(len(text.encode()) for text in texts) / seconds / 1e6


def gain(found: NDArray[np.float64], before: NDArray[np.float64], paragraphs: Sequence[int]) -> str:
    """Return the difference of two means over questions in points, with its interval."""
    test = paired_tests([PairedCell(found.tolist(), before.tolist(), paragraphs)])[0]
    if test.difference is None or test.low is None or test.high is None:
        return f"- ({test.reason})"
    return f"{100 * test.difference:+.1f} ({100 * test.low:+.1f} to {100 * test.high:+.1f})"


def values(found: Ranks) -> dict[str, NDArray[np.float64]]:
    """Return the measures of each question."""
    return {"hit@1": (found <= 1) * 1.0, "hit@20": (found <= 20) * 1.0, "MRR": 1 / found}


def main() -> None:
    from _rows import arguments

    parser = arguments(__doc__, quick="paragraphs of our own, without XQuAD")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    options = parser.parse_args()
    print("| | words | hit@1 | hit@20 | MRR | hit@1 against words | hit@20 against words | MRR against words | MB/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for lang in ("ru", "zh") if options.quick else options.languages:
        texts, questions = _OWN[lang] if options.quick else read(Path(os.environ["MRAG_TEST_DATA"]), lang)
        paragraphs = [at for _, at in questions]
        kinds = {"words": Analyzer().tokenizer(lang)}
        if stemmer(lang) is not None:
            kinds["stems, by default" if lang in STEMMED else "stems"] = Analyzer(stem=True).tokenizer(lang)
        if lang in _DICTIONARIES:
            kinds["dictionary"] = Analyzer(segment=True).tokenizer(lang)
        kinds["bm25s, Snowball" if stemmer(lang) is not None else "bm25s"] = peer(lang)
        before: dict[str, NDArray[np.float64]] = {}
        for kind, words in kinds.items():
            found, speed = ranks(words, texts, questions)
            measured = values(found)
            means = " | ".join(f"{100 * each.mean():.1f}" for each in measured.values())
            gains = " | ".join(gain(measured[m], before[m], paragraphs) if before else "" for m in measured)
            print(f"| {lang} | {kind} | {means} | {gains} | {speed:.1f} |", flush=True)
            before = before or measured


if __name__ == "__main__":
    main()
