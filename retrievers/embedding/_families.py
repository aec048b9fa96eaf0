"""Prefixes, pooling and normalisation of families of embedding models.

A wrong prefix or pooling does not fail but retrieves worse, so the families are data here, from the model cards. The
first pattern that matches a model's name decides. Other models keep the settings of their own repository.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WEB_SEARCH = "Given a web search query, retrieve relevant passages that answer the query"
_REPRESENT = "Represent this sentence for searching relevant passages: "


class Family(NamedTuple):
    """One family's settings; ``pooling`` None keeps the model's own."""

    pattern: str
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: str | None = None
    normalize: bool = True


# More special names come before more general ones.
FAMILIES: tuple[Family, ...] = (
    Family(r"multilingual-e5-large-instruct", f"Instruct: {_WEB_SEARCH}\nQuery: ", "", "mean"),
    Family(r"e5-mistral-7b-instruct", f"Instruct: {_WEB_SEARCH}\nQuery: ", "", "lasttoken"),
    Family(r"(^|/)(multilingual-)?e5-(small|base|large)", "query: ", "passage: ", "mean"),
    Family(r"bge-m3", "", "", "cls"),
    Family(r"bge-(small|base|large)-en", _REPRESENT, "", "cls"),
    Family(r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", "", "cls"),
    Family(r"bge-multilingual-gemma2", f"<instruct>{_WEB_SEARCH}.\n<query>", "", "lasttoken"),
    Family(r"qwen3-embedding", f"Instruct: {_WEB_SEARCH}\nQuery:", "", "lasttoken"),
    Family(r"gte-qwen2", f"Instruct: {_WEB_SEARCH}\nQuery: ", "", "lasttoken"),
    Family(r"gte-(multilingual-base|modernbert-base|(base|large)-en-v1\.5)", "", "", "cls"),
    Family(r"(^|/)gte-(small|base|large)$", "", "", "mean"),
    Family(r"jina-embeddings-v2", "", "", "mean"),
    Family(r"snowflake-arctic-embed-.*v2", "query: ", "", "cls"),
    Family(r"snowflake-arctic-embed", _REPRESENT, "", "cls"),
    Family(r"mxbai-embed-large", _REPRESENT, "", "cls"),
    Family(r"nomic-embed-text", "search_query: ", "search_document: ", "mean"),
    Family(r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
    Family(r"granite-embedding", "", "", "cls"),
    Family(r"m?contriever", "", "", "mean", normalize=False),
    Family(r"(all|paraphrase-multilingual|multi-qa)-(minilm|mpnet)", "", "", "mean"),
    Family(r"text-embedding-(3-(small|large)|ada-002)"),
)


def family(model: str) -> Family | None:
    """Return the family of a model by its name, ignoring case and organisation, or None."""
    name = model.lower()
    return next((entry for entry in FAMILIES if re.search(entry.pattern, name)), None)
