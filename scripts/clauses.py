"""Count how many inserted clauses ``language_mix`` finds, and in how many unmixed texts it finds something.

python scripts/clauses.py FOLDER     FOLDER holds xquad.*.json.gz

A text is 30 words (60 characters of Chinese) of a paragraph of XQuAD; a clause is six or eight words (12 or 16
characters) of a paragraph of another article in another language, put into its middle.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

WORDS = (6, 8)


def _cut(text: str, code: str) -> list[str]:
    return list(text) if code == "zh" else text.split()


def found(folder: Path, pairs: int, seed: int = 0) -> Iterator[tuple[str, str, int, bool, bool]]:
    """Yield the language of a text, that of its clause, the clause's words, and what is found with and without it."""
    from mrag_eval.metrics import language_mix

    rng = random.Random(seed)
    texts: dict[str, list[tuple[int, str]]] = {}
    for path in sorted(folder.glob("xquad.*.json.gz")):
        articles = json.loads(gzip.decompress(path.read_bytes()))["data"]
        texts[path.name.split(".")[1]] = [
            (number, part["context"]) for number, article in enumerate(articles) for part in article["paragraphs"]
        ]
    for code in texts:
        for other in texts:
            for length in WORDS if code != other else ():
                for _ in range(pairs):
                    article, text = rng.choice(texts[code])
                    words, joiner = _cut(text, code), "" if code == "zh" else " "
                    size = 60 if code == "zh" else 30
                    first = rng.randrange(max(1, len(words) - size))
                    words = words[first : first + size]
                    at = rng.randrange(5, max(6, len(words) - 5))
                    elsewhere = [said for number, said in texts[other] if number != article]
                    clause = _cut(rng.choice(elsewhere), other)
                    long = length * (2 if other == "zh" else 1)
                    start = rng.randrange(max(1, len(clause) - long))
                    inserted = ("" if other == "zh" else " ").join(clause[start : start + long])
                    mixed = f"{joiner.join(words[:at])} {inserted} {joiner.join(words[at:])}"
                    shares = [language_mix(each, code).share or 0 for each in (mixed, joiner.join(words))]
                    yield code, other, length, shares[0] > 0, shares[1] > 0


def main() -> None:
    """Print the shares by language of the text."""
    from mrag_eval.core import language_name
    from mrag_eval.metrics import wilson

    def share(of: list[bool]) -> str:
        told = wilson(sum(of), len(of))
        return f"{100 * sum(of) / len(of):.1f} [{100 * (told.low or 0):.1f}, {100 * (told.high or 0):.1f}]"

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=10, help="clauses of a length in each pair of languages")
    chosen = parser.parse_args()
    rows = list(found(chosen.folder, chosen.pairs))
    print("| text | of six words found | of eight | something in unmixed texts |\n|---|---:|---:|---:|")
    for code in [*dict.fromkeys(row[0] for row in rows), "all"]:
        own = [row for row in rows if code in (row[0], "all")]
        cells = [share([row[3] for row in own if row[2] == length]) for length in WORDS]
        cells += [share([row[4] for row in own])]
        print(f"| {'all' if code == 'all' else language_name(code)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
