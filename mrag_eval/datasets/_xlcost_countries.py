"""Countries of the Travel benchmark: each page is about one, and most questions name it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from mrag_eval.core import Passage, RagDoc, base_language
from mrag_eval.platform import read_yaml

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
    spaced = f" {_key(text)} "
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
            names[_key(name)] = code
    return names


def _key(text: str) -> str:
    """Return the words of a text without case, accents, hamza and the Arabic article."""
    letters = unicodedata.normalize("NFKD", text.casefold().replace("&", " and ").replace("st. ", "saint "))
    plain = "".join(c for c in letters if not unicodedata.combining(c)).translate(_LETTERS)
    words = re.findall(r"\w+", plain)
    return " ".join(word[2:] if word.startswith("ال") and len(word) > 4 else word for word in words)
