"""Random draws of ``mrag-eval build qa``: document languages, question categories and the questions to keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from mrag_eval.building.qa._qa_config import Balance, Choice

T = TypeVar("T", bound=Hashable)


def drawn_languages(versions: Mapping[str, Sequence[str]], rng: np.random.Generator) -> dict[str, str]:
    """Draw a language for every document, uniformly among its versions (The Cross-Lingual Cost, 3.2)."""
    return {name: sorted(langs)[int(rng.integers(len(langs)))] for name, langs in versions.items()}


def drawn_categories(
    categories: Mapping[str, Mapping[str, Choice]], n: int, rng: np.random.Generator
) -> list[dict[str, str]]:
    """Draw ``n`` combinations of categories, each category by its shares and independently of the others."""
    columns = {}
    for name, choices in categories.items():
        shares = np.array([choice.share for choice in choices.values()], dtype=np.float64)
        labels = list(choices)
        columns[name] = [labels[i] for i in rng.choice(len(labels), size=n, p=shares / shares.sum())]
    return [{name: column[i] for name, column in columns.items()} for i in range(n)]


def balanced(cells: Mapping[str, T], rng: np.random.Generator) -> tuple[set[str], int]:
    """Draw ids so that every cell has as many as the smallest; return them and that number.

    ``cells`` maps an id to its cell, so a cell without ids does not count.
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
    """Return the cell to balance over: the language pair, the document's language, or nothing."""
    return {"pairs": (user_lang, doc_lang), "documents": (doc_lang,), "none": ()}[balance]


def shares_of(labels: Iterable[str]) -> dict[str, float]:
    """Return the share of every label that occurs; empty for no labels."""
    counts: dict[str, int] = defaultdict(int)
    for label in labels:
        counts[label] += 1
    total = sum(counts.values())
    return {label: count / total for label, count in counts.items()}
