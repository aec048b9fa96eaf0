"""What loaders tell of rows before they are read: the published counts, and rows that are at hand."""

from __future__ import annotations

from typing import Any

import pytest

from mrag_eval.datasets import LOADERS, Expected, load_benchmark, validate_data


def expected(**data: Any) -> Expected:
    block = validate_data(data)
    tell = LOADERS[block.benchmark].expected
    assert tell is not None
    return tell(block)


def test_every_loader_of_published_rows_tells_what_it_expects() -> None:
    assert [name for name, loader in LOADERS.items() if loader.expected is None] == ["jsonl"]


@pytest.mark.parametrize(
    ("data", "rows", "languages", "culture"),
    [
        ({"benchmark": "afriqa", "language": "ha"}, 300, "ha", 0),
        ({"benchmark": "afriqa", "language": "yo"}, None, "yo", 0),
        ({"benchmark": "blend"}, 5081, "en", 13),
        ({"benchmark": "blend", "language": "ko"}, 366 + 290, "en", 1),
        ({"benchmark": "blend", "source": "annotations"}, None, "en", 13),
        ({"benchmark": "blend_saq", "country": "UK"}, 456, "en", 1),
        ({"benchmark": "blend_saq", "language": "ko", "question_language": "en"}, 475 + 444, "en", 1),
        ({"benchmark": "click", "category": "law"}, 219, "ko", 1),
        ({"benchmark": "mkqa", "language": "fi"}, 2827, "fi", 0),
        ({"benchmark": "xrag", "setting": "multi", "language": "de"}, 300, "de", 0),
        ({"benchmark": "xrag", "setting": "multi", "language": "de", "split": "dev"}, 164, "de", 0),
        ({"benchmark": "xquad", "question_language": "de"}, 119, "de", 0),
        ({"benchmark": "xquad", "question_language": "de", "parallel": True}, 1190, "de", 0),
        ({"benchmark": "xlcost", "domain": "legal", "sample": 100}, 100, "ar en", 0),
        ({"benchmark": "bordirlines"}, 720, "", 0),
        ({"benchmark": "bordirlines", "languages": ["ko"]}, None, "ko", 0),
    ],
    ids=str,
)
def test_the_published_counts(data: dict[str, Any], rows: int | None, languages: str, culture: int) -> None:
    found = expected(**data)
    assert (found.rows, set(found.languages), len(found.culture)) == (rows, set(languages.split()), culture)


@pytest.mark.parametrize("data", [{"benchmark": "demo"}, {"benchmark": "demo", "language": "de"}], ids=str)
def test_rows_in_the_package_are_counted(data: dict[str, Any]) -> None:
    docs = load_benchmark(data).docs
    assert expected(**data).rows == len(docs)
    assert set(expected(**data).languages) == {doc.query_lang for doc in docs}
