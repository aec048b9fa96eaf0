"""Documents of The Cross-Lingual Cost: fetched, told apart by country, and cut into its passages."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage, RagDoc, base_language
from mrag_eval.datasets._files import iter_jsonl, parquet
from mrag_eval.platform import DataError, read_yaml

# Fields used as title: the country of a travel document, the law of a legal one.
_ID_KEYS = ("doc_id", "law_id", "id")
_TITLE_KEYS = ("country", "title", "law", "law_name", "name")
_TEXT_KEYS = ("content", "text", "contents")
# Key of a Parquet file's metadata that says how its documents are cut, as JSON of the fields of Cut.
CUT_KEY = b"mrag_eval.cut"


@dataclass(frozen=True)
class Cut:
    """The size of passages: up to ``tokens`` tokens of ``tokenizer``; the default is the paper's."""

    tokens: int = 100
    tokenizer: str = "cl100k_base"


@dataclass(frozen=True)
class CorpusPassages:
    """The passages of a file.

    Attributes:
        passages: the passages, in the order of their documents.
        documents: what they were cut from.
        made: how they were cut, and counts, as JSON.
        file: the file.
        parallel: id of a document -> the id that its versions in several languages share (``parallel_id``).
    """

    passages: list[Passage]
    documents: Sequence[Any]
    made: dict[str, Any]
    file: Path
    parallel: Mapping[str, str] = field(default_factory=dict)


def read_xlcost_passages(path: Path, size: int | None = None, tokenizer: str | None = None) -> CorpusPassages:
    """Return passages of up to ``size`` tokens, whole sentences if they fit, each after its document's title.

    Where they are None, ``size`` and ``tokenizer`` are those that the file was written for, else the paper's. The title
    is not counted (the paper does not specify it). ``path`` is a ``.parquet`` or ``.jsonl`` file with one document per
    row: an id, ``language``, a title (for example ``country`` or ``title``) and ``content``. Raises DataError naming
    the file and the missing field, and for a corpus without text.
    """
    from mrag_eval.retrievers import ChunkConfig, chunk_documents, named_token_counter, read_corpus

    written = _written(path)
    size, tokenizer = size or written.tokens, tokenizer or written.tokenizer
    count = named_token_counter(tokenizer)
    names = _columns(path)
    keys = {"id": _key(names, _ID_KEYS), "title": _key(names, _TITLE_KEYS), "text": _key(names, _TEXT_KEYS)}
    found = {field: key for field, key in keys.items() if key is not None}
    documents = list(read_corpus(path, keys=found))
    chunking = ChunkConfig("llamaindex", size)
    passages = list(chunk_documents(documents, chunking, token_counter=count))
    if not passages:
        raise DataError(f"{path}: none of its {len(documents)} documents holds any text")
    made = {
        **counted(passages, [document.lang for document in documents]),
        "chunker": {"method": chunking.method, "size": size, "tokenizer": tokenizer, "version": chunking.version},
        "titles": found.get("title"),
    }
    parallel = _parallel(path, str(found.get("id"))) if "parallel_id" in names else {}
    return CorpusPassages(passages, documents, made, path, parallel)


def counted(passages: Sequence[Passage], document_languages: Sequence[str]) -> dict[str, Any]:
    """Return the counts of documents and passages, by language, for the provenance."""
    return {
        "documents": len(document_languages),
        "languages": dict(sorted(Counter(document_languages).items())),
        "passages": len(passages),
        "passage_languages": dict(sorted(Counter(passage.lang for passage in passages).items())),
    }


def _parallel(path: Path, id_key: str) -> dict[str, str]:
    """Return document id -> the id that its versions share."""
    if path.name.endswith(".parquet"):
        with parquet(path) as file:
            rows = file.read([id_key, "parallel_id"]).to_pylist()
    else:
        rows = [row for _, row in iter_jsonl(path)]
    return {str(row[id_key]): str(row["parallel_id"]) for row in rows if row.get("parallel_id") is not None}


def _written(path: Path) -> Cut:
    if not path.name.endswith(".parquet"):
        return Cut()
    with parquet(path) as file:
        found = (file.schema_arrow.metadata or {}).get(CUT_KEY)
    return Cut(**json.loads(found)) if found else Cut()


def _columns(path: Path) -> Sequence[str]:
    """Return the columns of a Parquet file, or the keys of a JSON Lines file's first record; empty for other files."""
    if path.name.endswith(".parquet"):
        with parquet(path) as file:
            return list(file.schema_arrow.names)
    if ".jsonl" in path.name or path.name.endswith(".ndjson"):
        return next((list(record) for _, record in iter_jsonl(path)), [])
    return []


def _key(names: Sequence[str], candidates: Sequence[str]) -> str | None:
    return next((name for name in candidates if name in names), None)


_LETTERS = str.maketrans({"ى": "ي", "ة": "ه"})
# Arabic particles written together with the next word, and its article.
_PARTICLES = ("", "ل", "ب", "و", "لل", "بال", "وال")


def country_pages(docs: Sequence[RagDoc], passages: Iterable[Passage]) -> dict[str, str]:
    """Return row id -> id of the document on the country that the row asks about.

    That is the one country, among those with a document in the row's ``gold_doc_lang``, that the question names; if it
    names none, the answer. Rows that name no such country or several are absent.
    """
    pages: dict[tuple[str, str], str] = {}
    for passage in passages:
        for code in _named(passage.title):
            pages.setdefault((code, base_language(passage.lang)), str(passage.doc_id))
    found = {}
    for doc in docs:
        lang = base_language(str(doc.gold_doc_lang))
        for text in (doc.query, *doc.answers):
            named = [pages[code, lang] for code in _named(text) if (code, lang) in pages]
            if len(named) == 1:
                found[doc.id] = named[0]
            if named:
                break
    return found


@cache
def _named(text: str) -> frozenset[str]:
    """Return the codes of the countries that a text names; a name within a longer one does not count."""
    spaced = f" {_spelling(text)} "
    spans = []
    for name, code in _names().items():
        at = max(spaced.find(f" {particle}{name} ") for particle in _PARTICLES)
        if at >= 0:
            spans.append((at, spaced.index(" ", at + 1 + len(name)), code))
    return frozenset(
        code
        for start, end, code in spans
        if not any(a <= start and end <= b and b - a > end - start for a, b, _ in spans)
    )


@cache
def _names() -> Mapping[str, str]:
    """Return name -> code."""
    from langcodes import Language

    names = {}
    known = read_yaml(Path(__file__).with_name("xlcost_countries.yaml"), as_text=True)
    for code in known["codes"].split():
        territory = Language.make(territory=code)
        for name in (*(territory.territory_name(lang) for lang in ("en", "ar")), *known["also"].get(code, ())):
            names[_spelling(name)] = code
    return names


def _spelling(text: str) -> str:
    """Return the words of a text without case, accents, hamza and the Arabic article."""
    letters = unicodedata.normalize("NFKD", text.casefold().replace("&", " and ").replace("st. ", "saint "))
    plain = "".join(c for c in letters if not unicodedata.combining(c)).translate(_LETTERS)
    words = re.findall(r"\w+", plain)
    return " ".join(word[2:] if word.startswith("ال") and len(word) > 4 else word for word in words)
