"""Demo benchmark: a small corpus and questions of our own, shipped with the package (``mrag-eval demo``).

It has 64 passages in eight languages and 40 questions, 16 of them answerable only from a passage in another language. A
passage is named ``<language>-<topic>``, a question ``<passage>--<language of the question>``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mrag_eval.datasets import _jsonl as jsonl
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._declaration import Declaration, PackagedFiles

FOLDER = Path(__file__).resolve().parent / "demo_data"
BENCHMARK = Declaration(
    name="demo",
    title="mrag-eval demo",
    asks="a few facts in eight languages, on passages that come with the package",
    sources=(PackagedFiles(licence="Apache-2.0"),),
    shareable=True,
    languages=("ar", "de", "en", "es", "hi", "ko", "ru", "zh"),
    breakdowns=(),
    main_metric="char3gram_recall",
    citations=(),
    published=(),
    needs=(),
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
    return replace(loaded, name="demo")


def expected(block: DemoBlock) -> Expected:
    """Return the number and languages of the rows, which are part of the package."""
    docs = load(block).docs
    return Expected(len(docs), tuple(dict.fromkeys(doc.query_lang for doc in docs)))


LOADER = LoaderSpec(BENCHMARK, DemoBlock, load, expected=expected)
