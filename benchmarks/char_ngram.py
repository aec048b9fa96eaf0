"""Compare batch character n-gram recall with a straightforward loop over counters, in one process.

    python benchmarks/char_ngram.py            100,000 pairs
    python benchmarks/char_ngram.py --quick    2,000 pairs, for a smoke test

Prints one line: the two times, their ratio, and whether the scores are equal.
"""

from __future__ import annotations

import random
import re
import string
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from mrag_eval.metrics import char_ngram_recall_batch

# script -> (first code point, number of code points, shortest and longest word)
ALPHABETS = {
    "Latin": (0x61, 26, 2, 10),
    "Cyrillic": (0x430, 32, 2, 11),
    "Hangul": (0xAC00, 2000, 1, 5),
    "Han": (0x4E00, 3000, 2, 9),
}
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = set(string.punctuation)


def normalize(text: str) -> str:
    """Normalise as SQuAD does, one step after the other."""
    text = "".join(char for char in text.lower() if char not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def grams(text: str, n: int) -> list[str]:
    """Return the n-grams within tokens; shorter tokens are kept whole."""
    return [token[start : start + n] for token in text.split() for start in range(max(len(token) - n + 1, 1))]


def reference_recall(prediction: str, answers: Sequence[str], n: int = 3) -> float:
    """Return character n-gram recall with a Counter; the best answer counts."""
    predicted = Counter(grams(normalize(prediction), n))
    best = 0.0
    for answer in answers:
        gold = Counter(grams(normalize(answer), n))
        common = sum((gold & predicted).values())
        if common:
            best = max(best, common / sum(gold.values()))
    return best


def make_pairs(count: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Return responses of 5-60 words and one to three answers of 1-5 words; half of the responses hold theirs."""
    rng = random.Random(seed)
    vocabularies = {
        script: ["".join(chr(first + rng.randrange(size)) for _ in range(rng.randint(low, high))) for _ in range(5000)]
        for script, (first, size, low, high) in ALPHABETS.items()
    }
    vocabularies["Latin"] += ["the", "a", "an", "of", "in", "is"] * 150
    predictions, answers = [], []
    for row in range(count):
        words = vocabularies[list(ALPHABETS)[row % len(ALPHABETS)]]
        response = [rng.choice(words) for _ in range(rng.randint(5, 60))]
        golds = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            length = rng.randint(1, 5)
            start = rng.randrange(len(response))
            own = response[start : start + length] if rng.random() < 0.5 else rng.choices(words, k=length)
            golds.append(" ".join(own).capitalize())
        marked = [word + rng.choice(",.;") if rng.random() < 0.1 else word for word in response]
        predictions.append(" ".join(marked).capitalize() + ".")
        answers.append(golds)
    return predictions, answers


def main() -> None:
    """Time both, slice by slice in turn so that a busy machine slows both alike, and print the line."""
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="2,000 pairs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count, step = (2_000, 2_000) if options.quick else (100_000, 10_000)
    predictions, answers = make_pairs(count, options.seed)
    char_ngram_recall_batch(predictions[:8], answers[:8])  # warm up: imports and tables
    slow = fast = 0.0
    equal = True
    for first in range(0, count, step):
        part, golds = predictions[first : first + step], answers[first : first + step]
        start = time.process_time()
        expected = [reference_recall(p, a) for p, a in zip(part, golds, strict=True)]
        middle = time.process_time()
        got = char_ngram_recall_batch(part, golds)
        end = time.process_time()
        slow, fast = slow + middle - start, fast + end - middle
        equal = equal and np.array_equal(np.asarray(expected), got)
    print(
        f"char_ngram_recall_batch: {count:,} pairs, Counter loop {slow:.2f} s, batch {fast:.3f} s (CPU), "
        f"ratio {slow / fast:.1f}x, equal {equal}"
    )
    write_rows(
        options.json,
        [
            row(
                f"character 3-gram recall, {count:,} pairs",
                "a loop with counters",
                fast / slow,
                holds=equal,
                figures={"loop_s": slow, "batch_s": fast},
            )
        ],
    )


if __name__ == "__main__":
    main()
