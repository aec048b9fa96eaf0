"""Pages of BordIRlines' corpus by their titles in dumps of Wikipedia, in place of a list of pages (section 3.2)."""

from __future__ import annotations

import gzip
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_eval.core import RagDoc, base_language, is_language, normalize_language, suggestion
from mrag_eval.datasets import read_table
from mrag_eval.platform import DataError, did_you_mean, lines_of

if TYPE_CHECKING:
    from mrag_eval.retrievers import Document, Edition

log = logging.getLogger(__name__)

# (subject, language)
Wanted = tuple[str, str]

_LINK = re.compile(r"\((\d+),'([^']*)','((?:[^'\\]|\\.)*)'\)")


@dataclass(frozen=True, slots=True)
class TitledPage:
    """One page on one subject; if ``text`` is None, it is looked up by its title in a copy of Wikipedia."""

    subject: str
    lang: str
    id: str
    title: str
    text: str | None


def wanted_pages(docs: Sequence[RagDoc]) -> dict[Wanted, None]:
    """Return (subject, language) of every page that the questions' searches may need, in the questions' order.

    Wikipedia has one edition for all scripts of a language.
    """
    return {
        (subject, base_language(lang)): None
        for doc in docs
        for subject in doc.extra["candidates"]
        for lang in doc.relevant_langs
    }


def read_titles(path: Path, docs: Sequence[RagDoc]) -> dict[Wanted, str]:
    """Return titles from a CSV or TSV file with columns subject, lang, title.

    Raises DataError for a subject that no question is about, an unknown language, and a second title of one page.
    """
    subjects = {subject for doc in docs for subject in doc.extra["candidates"]}
    out: dict[Wanted, str] = {}
    for number, row in read_table(path, ("subject", "lang", "title")):
        where = f"{path}, row {number}"
        if row["subject"] not in subjects:
            raise DataError(f"{where}: no question is about '{row['subject']}'{did_you_mean(row['subject'], subjects)}")
        if not is_language(row["lang"]):
            raise DataError(f"{where}: unknown language '{row['lang']}'", suggestion(row["lang"]))
        key = row["subject"], base_language(normalize_language(row["lang"]))
        if not row["title"].strip() or out.setdefault(key, row["title"].strip()) != row["title"].strip():
            raise DataError(f"{where}: '{key[0]}' has no title, or a second one, in '{key[1]}'", "keep one line for it")
    return out


def language_links(path: Path, pages: Collection[str], langs: Collection[str]) -> dict[tuple[str, str], str]:
    """Return (English page id, language) -> title there, from Wikimedia's ``enwiki-<date>-langlinks.sql.gz``.

    Raises DataError for a file that is truncated, or holds no such table.
    """
    out: dict[tuple[str, str], str] = {}
    rows = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            for line in lines_of(file, path):
                for page, edition, title in _LINK.findall(line) if line.startswith("INSERT INTO `langlinks`") else ():
                    rows += 1
                    lang = normalize_language(edition) if is_language(edition) else edition
                    if page in pages and lang in langs:
                        out[page, lang] = re.sub(r"\\(.)", r"\1", title).replace("_", " ")
    except (OSError, EOFError) as err:
        raise DataError(f"{path}: cannot be read after {rows:,} links ({err})", "fetch the file again") from None
    if not rows:
        raise DataError(f"{path}: holds no language links", "name a file enwiki-DATE-langlinks.sql.gz of Wikimedia")
    return out


def pages_by_title(
    docs: Sequence[RagDoc], titles: Mapping[Wanted, str], links: Path | None, edition_of: Callable[[str], Edition]
) -> tuple[list[TitledPage], set[Wanted]]:
    """Return every wanted page that the dumps hold, and the pairs of subject and language that have one.

    An English page has the title given for its subject, else the subject's name. A page in another language has the
    title given for it, else the one to which the English page links (``links``). A language without a dump is left out
    with a warning. Raises DataError without an English dump, and if the dumps hold no page at all.
    """
    wanted = set(wanted_pages(docs))
    known = {(subject, "en"): subject for subject, lang in wanted if lang == "en"} | {**titles}
    found = {"en": _found(known, "en", edition_of)}
    langs = {lang for _, lang in wanted} - {"en"}
    if links is not None:
        by_number = {_number(document): subjects for document, subjects in found["en"]}
        for (number, lang), title in language_links(links, by_number, langs).items():
            for subject in by_number[number]:
                known.setdefault((subject, lang), title)
    for lang in sorted({lang for key in known if key in wanted for lang in key[1:]} - {"en"}):
        try:
            edition_of(lang)
        except DataError as err:
            log.warning("pages in '%s' are missing: %s", lang, err.message)
            continue
        found[lang] = _found({key: title for key, title in known.items() if key in wanted}, lang, edition_of)
    if not any(found.values()):
        raise DataError("these dumps hold no page on a territory or a claimant", "name their titles: --titles CSV")
    searches = [set(doc.extra["candidates"]) for doc in docs]
    pages = [
        TitledPage(subject, lang, f"{_number(document)}-{n}" if n else _number(document), document.title, document.text)
        for lang, listed in found.items()
        for document, subjects in listed
        for n, subject in enumerate(_once(subjects, searches))
    ]
    return pages, {(subject, lang) for lang, listed in found.items() for _, subjects in listed for subject in subjects}


def _found(
    known: Mapping[Wanted, str], lang: str, edition_of: Callable[[str], Edition]
) -> list[tuple[Document, list[str]]]:
    """Return the documents of one language with the subjects that they are about."""
    subjects: dict[str, list[str]] = defaultdict(list)
    for (subject, of), title in known.items():
        if of == lang:
            subjects[title].append(subject)
    return [(document, sorted(subjects[document.title])) for document in titled(edition_of(lang), subjects)]


def _once(subjects: Sequence[str], searches: Sequence[set[str]]) -> list[str]:
    """Return the subjects that a page is stored under, such that every search on one of them finds it.

    It is stored twice only for subjects that no search has in common (Dokdo and Takeshima share one).
    """
    kept: list[str] = []
    for subject in subjects:
        if any(subject in search and search.isdisjoint(kept) for search in searches):
            kept.append(subject)
    return kept


def _number(document: Document) -> str:
    return document.id.rpartition(":")[2]


def titled(edition: Edition, titles: Collection[str]) -> Iterator[Document]:
    """Yield the first document with each of the titles; stop reading once all were found."""
    left = set(titles)
    documents = iter(edition.documents()) if left else iter(())
    for document in documents:
        if document.title in left:
            left.remove(document.title)
            yield document
            if not left:
                return
