"""Demo benchmark: a small corpus and questions of our own, shipped with the package (``mrag-eval demo``).

It has 64 passages in eight languages and 40 questions, 16 of them answerable only from a passage in another language. A
passage is named ``<language>-<topic>``, a question ``<passage>--<language of the question>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mrag_eval.core import normalize_language, same_language
from mrag_eval.datasets import _jsonl as jsonl
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._declaration import Declaration, PackagedFiles

# Questions in each language.
QUESTIONS = 5
FOLDER = Path(__file__).resolve().parent / "demo_data"
BENCHMARK = Declaration(
    name="demo",
    title="mrag-eval demo",
    asks="a few facts in eight languages, on passages that come with the package",
    sources=(PackagedFiles(licence="Apache-2.0"),),
    shareable=True,
    languages=("ar", "de", "en", "es", "hi", "ko", "ru", "zh"),
    main_metric="char3gram_recall",
    tasks="demo",
)


class DemoBlock(DataBlock):
    """``language`` filters the questions; ``path`` may name a changed copy of the demo's folder."""

    language: str | None = None


def load(block: DemoBlock) -> Benchmark:
    """Load the questions and passages shipped with the package."""
    folder = block.path or FOLDER
    loaded = jsonl.load(
        jsonl.JsonlBlock(
            benchmark="jsonl",
            path=folder / "questions.jsonl",
            corpus=folder / "passages.jsonl",
            language=block.language,
        )
    )
    place = {"package": "mrag-eval"} if block.path is None else loaded.origin.place
    return replace(loaded, name="demo", origin=replace(loaded.origin, place=place, beside={}))


def published(block: DemoBlock) -> Mapping[str, int]:
    """Return the number of questions in each language."""
    asked = None if block.language is None else normalize_language(block.language)
    return {code: QUESTIONS for code in BENCHMARK.languages if asked is None or same_language(code, asked)}


def expected(block: DemoBlock) -> Expected:
    """Return the number and languages of the rows, which are part of the package."""
    counts = published(block)
    return Expected(sum(counts.values()), tuple(counts))


LOADER = LoaderSpec(BENCHMARK, DemoBlock, load, expected=expected, published=published)
