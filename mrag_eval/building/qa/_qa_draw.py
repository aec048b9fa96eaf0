"""The draws behind ``mrag-eval build qa``: a document's language, the categories of a question, which ones are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from mrag_eval.building.qa._qa_config import Balance, Choice

T = TypeVar("T", bound=Hashable)


def drawn_languages(versions: Mapping[str, Sequence[str]], rng: np.random.Generator) -> dict[str, str]:
    """One language of every document, uniformly among those that it is there in (The Cross-Lingual Cost, 3.2)."""
    return {name: sorted(langs)[int(rng.integers(len(langs)))] for name, langs in versions.items()}


def drawn_categories(
    categories: Mapping[str, Mapping[str, Choice]], n: int, rng: np.random.Generator
) -> list[dict[str, str]]:
    """``n`` combinations of categories, each category drawn by its shares and independently of all others."""
    columns = {}
    for name, choices in categories.items():
        shares = np.array([choice.share for choice in choices.values()], dtype=np.float64)
        labels = list(choices)
        columns[name] = [labels[i] for i in rng.choice(len(labels), size=n, p=shares / shares.sum())]
    return [{name: column[i] for name, column in columns.items()} for i in range(n)]


def balanced(cells: Mapping[str, T], rng: np.random.Generator) -> tuple[set[str], int]:
    """Ids that are kept so that every cell has as many as the smallest one, drawn at random; and that number.

    ``cells`` maps an id to its cell; a cell that holds nothing at all is not one of them.
    """
    members: dict[T, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        members[cell].append(name)
    if not members:
        return set(), 0
    smallest = min(map(len, members.values()))
    kept = {listed[i] for listed in members.values() for i in rng.permutation(len(listed))[:smallest].tolist()}
    return kept, smallest


def cell_of(balance: Balance, user_lang: str, doc_lang: str) -> tuple[str, ...]:
    """What is balanced over: the pair of languages, the document's, or nothing."""
    return {"pairs": (user_lang, doc_lang), "documents": (doc_lang,), "none": ()}[balance]


def shares_of(labels: Iterable[str]) -> dict[str, float]:
    """Share of every label among those that occur; empty for none."""
    counts: dict[str, int] = defaultdict(int)
    for label in labels:
        counts[label] += 1
    total = sum(counts.values())
    return {label: count / total for label, count in counts.items()}
