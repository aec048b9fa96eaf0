"""Print how many pairs of tests/text/pairs.txt are folded as their readers would: one row a script.

    python scripts/spelling_pairs.py

Two spellings of one word should be equal, two words should not. For search as for answers; pairs that only answers keep
apart (``pêché`` and ``péché``) count as one word for search.
"""

from __future__ import annotations

import runpy
from collections import defaultdict
from pathlib import Path

from mrag_eval.metrics import normalize_answer
from mrag_eval.text import fold

PAIRS = Path(__file__).parents[1] / "tests" / "text" / "test_folding.py"


def main() -> None:
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
    for pair in runpy.run_path(str(PAIRS))["ALL"]:
        searched = fold(pair.one, search=True) == fold(pair.other, search=True)
        one, other = (normalize_answer(text, normalize="unicode", lang=pair.lang) for text in pair[3:])
        row = counts[f"{pair.script} ({pair.lang})" if pair.script == "Arabic" else pair.script]
        first = 0 if pair.sign == "=" else 3
        row[first] += 1
        row[first + 1] += searched == (pair.sign != "≠")
        row[first + 2] += (one == other) == (pair.sign == "=")
    print("| script | same word | search | answers | not the same | search | answers |\n|---|---|---|---|---|---|---|")
    for name, row in counts.items():
        print(f"| {name} | {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
