"""Measure whether ``citation_support`` tells right citations from wrong ones: ``python scripts/citation_support.py
FOLDER``, with the files of XQuAD.

A statement is a question of XQuAD with its answer, cited for its own paragraph, or for another paragraph of the same
article (shifted), or one of another article (far). ``other answer`` is a false statement with the right citation: the
question with the answer to another question on its paragraph. A language has the area under the ROC curve of the share
of character sequences, and the share of statements that are supported. The bound was chosen on the even articles;
these figures are of the odd ones.

Prints a Markdown table.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mrag_eval.metrics._citation_support import LEAST_SHARED, shared_content

KINDS = ("shifted", "far", "other answer")


class Cases(NamedTuple):
    """Shares of a language's statements: with the right citation, and of each kind of wrong ones."""

    right: list[float]
    wrong: dict[str, list[float]]


def measure(file: Path, articles: int = 1) -> Cases:
    """Return the shares in one language's file, of the odd articles (``articles`` 1) or the even ones (0)."""
    with gzip.open(file, "rt", encoding="utf-8") as handle:
        data = json.load(handle)["data"]
    cases = Cases([], {kind: [] for kind in KINDS})
    for number in range(articles, len(data), 2):
        own = data[number]["paragraphs"]
        far = data[(number + 2) % len(data)]["paragraphs"]
        for at, paragraph in enumerate(own):
            for question, answer, other in _statements(paragraph["qas"]):
                cases.right.append(shared_content(f"{question} {answer}", paragraph["context"]))
                wrong = {"shifted": own[(at + 1) % len(own)], "far": far[at % len(far)]}
                for kind, cited in wrong.items():
                    cases.wrong[kind].append(shared_content(f"{question} {answer}", cited["context"]))
                cases.wrong["other answer"].append(shared_content(f"{question} {other}", paragraph["context"]))
    return cases


def _statements(questions: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield question, answer, and the answer of the next question on the same paragraph."""
    for at, one in enumerate(questions):
        other = questions[(at + 1) % len(questions)]
        yield one["question"], one["answers"][0]["text"], other["answers"][0]["text"]


def area(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return the area under the ROC curve: the probability that a right one is higher, ties counted half."""
    high, low = np.asarray(right)[:, None], np.asarray(wrong)[None, :]
    return float(((high > low) + 0.5 * (high == low)).mean())


def main(folder: Path) -> None:
    """Print the table."""
    print("| language | n | AUC: shifted | far | other answer | supported: right | shifted | far | other answer |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for file in sorted(folder.glob("xquad.*.json.gz")):
        cases = measure(file)
        areas = [f"{area(cases.right, cases.wrong[kind]):.3f}" for kind in KINDS]
        shares = [np.mean(np.asarray(one) >= LEAST_SHARED) for one in (cases.right, *cases.wrong.values())]
        cells = [file.name.split(".")[1], str(len(cases.right)), *areas, *(f"{100 * share:.1f}" for share in shares)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
