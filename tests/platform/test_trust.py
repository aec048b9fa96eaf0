"""Settings that only the user's own configuration may say."""

from __future__ import annotations

from typing import Any

import pytest

from mrag_eval.platform import users_alone


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"retrieval": {"rerank": {"url": "http://h"}}}, ["retrieval.rerank.url"]),
        ({"retrieval.rerank.url": "http://h"}, ["retrieval.rerank.url"]),
        ({"mine": {"retrieval.rerank": {"url": "http://h"}}}, ["mine.retrieval.rerank.url"]),
        ({"retrieval": {"k": 3, "uri": None}, "urls": "x"}, []),
    ],
)
def test_they_are_found_in_blocks_and_in_dotted_keys(settings: dict[str, Any], found: list[str]) -> None:
    assert [key for key, _ in users_alone(settings)] == found
