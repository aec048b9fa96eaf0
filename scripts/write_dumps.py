"""Write dumps of invented Wikipedias, to try and to measure builds of corpora without a download.

    python scripts/write_dumps.py DUMPS --pages 1000
    python scripts/write_dumps.py DUMPS --langs en,ko --pages 100 --facts facts.jsonl
    python scripts/write_dumps.py COPY --langs en --pages 100000 --form parquet

The form is that of Wikimedia's XML dumps, or of the hub's dataset wikimedia/wikipedia (parquet). Texts are made of
invented words in the script of the language. Every tenth page is about a subject of a place that a starter corpus looks
for, and pages have categories and links. ``--facts`` adds pages of your own: JSON Lines with title, lang and text, and
categories (a list) if they have any. The same arguments write the same pages.
"""

from __future__ import annotations

import argparse
import bz2
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, cast
from xml.sax.saxutils import escape

import numpy as np

from mrag_eval.core import CORAL_POOL, NO_SPACES, normalize_language
from mrag_eval.platform import DataError
from mrag_eval.retrievers import EDITION_CODES, starters

# Letters of the invented words, the languages of each line, and the wikis' names of the two namespaces.
_LETTERS = {
    "abcdefghijklmnoprstuvyz": "en es id su ha az",
    "ابتثجحخدرزسشصطعفقكلمنهوي": "ar fa",
    "αβγδεζηθικλμνξοπρστυφχψω": "el",
    "ሀለመሠረሰሸቀበተነአከወዘየደገጠጸፈፐ": "am",
    "কখগঘচছজঝটঠডঢতথদধনপফবভমযৰলশষসহ": "as",
    "가나다라마바사아자차카타파하거너더러머버서어저처고노도로모보": "ko",
    "一二三四五六七八九十百千万山水火木金土日月人大小上下中左右东西南北春夏秋冬天地": "zh",
}
_SPACES = {
    "ar": ("ملف", "تصنيف"), "el": ("Αρχείο", "Κατηγορία"), "es": ("Archivo", "Categoría"), "fa": ("پرونده", "رده"),
    "id": ("Berkas", "Kategori"), "ko": ("파일", "분류"), "am": ("ስዕል", "መደብ"), "az": ("Fayl", "Kateqoriya"),
    "as": ("চিত্ৰ", "শ্ৰেণী"), "su": ("Gambar", "Kategori"),
}  # fmt: skip
_VOCABULARY, _ABOUT, _STREAM = 50_000, 10, 500


@dataclass(frozen=True)
class Page:
    number: int
    title: str
    text: str
    categories: tuple[str, ...]
    links: tuple[str, ...]


def words_of(lang: str, rng: np.random.Generator) -> list[str]:
    """Return a vocabulary; the first words are the most frequent ones."""
    letters = list(next((line for line, langs in _LETTERS.items() if lang in langs.split()), next(iter(_LETTERS))))
    longest = 4 if lang in NO_SPACES else 10
    ends = np.cumsum(rng.integers(1 if lang in NO_SPACES else 2, longest, _VOCABULARY))
    text = "".join(rng.choice(letters, int(ends[-1])))
    return [text[start:end] for start, end in pairwise((0, *ends.tolist()))]


def invented(lang: str, count: int, words: int, seed: int, first: int) -> Iterator[Page]:
    """Yield pages; their lengths spread like those of real ones, from a stub to ten times the mean."""
    rng = np.random.default_rng([seed, *lang.encode()])
    vocabulary = np.array(words_of(lang, rng))
    cumulated = np.cumsum(1 / np.arange(1, _VOCABULARY + 1))
    topics = starters()["coral-small"].topics(lang)
    between = "" if lang in NO_SPACES else " "

    def drawn(size: int) -> list[str]:
        return cast(list[str], vocabulary[np.searchsorted(cumulated, rng.random(size) * cumulated[-1])].tolist())

    for number in range(first, first + count):
        title = between.join(drawn(2)).capitalize() + f" {number}"
        categories: tuple[str, ...] = (between.join(drawn(2)),)
        if number % _ABOUT == 0:
            place = topics.places[number // _ABOUT % len(topics.places)][-1].strip()
            subject = topics.subjects[int(rng.integers(len(topics.subjects)))].strip() if topics.subjects else ""
            title, categories = f"{place.title()} {number}", (*categories, f"{subject} {place}".strip())
        length = max(30, int(rng.lognormal(np.log(words) - 0.5, 1.0)))
        if lang in NO_SPACES:
            length //= 2
        body = drawn(min(length, words * 20))
        lines = [between.join(body[at : at + 120]) + "." for at in range(0, len(body), 120)]
        yield Page(number, title, "\n\n".join(lines), categories, tuple(drawn(3)))


def facts_of(path: Path) -> Iterator[tuple[str, Page]]:
    """Yield the language and the page of every line of a file of facts."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        row = json.loads(line) if line.strip() else None
        if row is None:
            continue
        if not all(isinstance(row.get(key), str) for key in ("title", "lang", "text")):
            raise DataError(f"{path}, line {number}: title, lang and text must be text", "correct that line")
        lang = normalize_language(row["lang"])
        yield lang, Page(number, row["title"], row["text"], tuple(row.get("categories", ())), ())


def write_xml(folder: Path, lang: str, pages: Iterable[Page], date: str, compressed: bool) -> Path:
    """Write ``<lang>wiki-<date>-pages-articles.xml.bz2`` in several streams, like Wikimedia's multistream dumps."""
    wiki = f"{EDITION_CODES.get(lang, lang).replace('-', '_')}wiki"
    files, category = _SPACES.get(lang, ("File", "Category"))
    path = folder / f"{wiki}-{date}-pages-articles.xml{'.bz2' if compressed else ''}"
    with path.open("wb") as raw:
        _put(
            raw,
            f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="{lang}">\n'
            f"<siteinfo><sitename>Wikipedia</sitename><dbname>{wiki}</dbname><namespaces>"
            f'<namespace key="0" case="first-letter" /><namespace key="6" case="first-letter">{files}</namespace>'
            f'<namespace key="14" case="first-letter">{category}</namespace></namespaces></siteinfo>\n',
            compressed,
        )
        held = io.StringIO()
        for count, page in enumerate(pages, start=1):
            held.write(_as_xml(page, category))
            if count % _STREAM == 0:
                _put(raw, held.getvalue(), compressed)
                held = io.StringIO()
        _put(raw, held.getvalue() + "</mediawiki>\n", compressed)
    return path


def _put(raw: IO[bytes], text: str, compressed: bool) -> None:
    data = text.encode("utf-8")
    raw.write(bz2.compress(data) if compressed else data)


def _as_xml(page: Page, category: str) -> str:
    links = "".join(f"* [[{link}]]\n" for link in page.links)
    names = "".join(f"[[{category}:{name}]]\n" for name in page.categories)
    markup = f"{{{{Infobox | name = {page.title}}}}}\n{page.text}<ref>A note.</ref>\n\n== * ==\n{links}\n{names}"
    return (
        f"<page><title>{escape(page.title)}</title><ns>0</ns><id>{page.number}</id><revision><id>{page.number}0</id>"
        "<timestamp>2025-10-20T00:00:00Z</timestamp><model>wikitext</model><format>text/x-wiki</format>"
        f'<text bytes="{len(markup.encode())}" xml:space="preserve">{escape(markup)}</text></revision></page>\n'
    )


def write_parquet(folder: Path, lang: str, pages: Iterable[Page], date: str) -> Path:
    """Write ``<date>.<lang>/train-00000-of-00001.parquet``; texts end with their categories, as on the hub."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    edition = EDITION_CODES.get(lang, lang)
    home = folder / f"{date}.{edition}"
    home.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, pa.string()) for name in ("id", "url", "title", "text")])
    rows: list[dict[str, Any]] = []
    path = home / "train-00000-of-00001.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for page in pages:
            text = "\n".join([f"{page.text}\n", *page.categories])
            url = f"https://{edition}.wikipedia.org/?curid={page.number}"
            rows.append({"id": str(page.number), "url": url, "title": page.title, "text": text})
            if len(rows) == 1_000:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows.clear()
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--langs", default=",".join(CORAL_POOL), help="default: CORAL's 13 languages")
    parser.add_argument("--pages", type=int, default=1_000, help="pages of each language")
    parser.add_argument("--words", type=int, default=400, help="mean words of a page")
    parser.add_argument("--facts", type=Path, metavar="FILE.jsonl", help="pages of your own: title, lang, text")
    parser.add_argument("--form", choices=("xml", "parquet"), default="xml")
    parser.add_argument("--date", help="default: 20251020, and 20231101 for parquet")
    parser.add_argument("--plain", action="store_true", help="XML without compression")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facts = list(facts_of(options.facts)) if options.facts else []
    langs = list(dict.fromkeys(normalize_language(code) for code in options.langs.split(",")))
    if other := next((lang for lang, _ in facts if lang not in langs), None):
        parser.error(f"{options.facts} has a page in '{other}', which --langs leaves out")
    for lang in langs:
        own = [page for spoken, page in facts if spoken == lang]
        first = max((page.number for page in own), default=0) + 1
        pages = chain(own, invented(lang, options.pages, options.words, options.seed, first))
        if options.form == "xml":
            path = write_xml(options.out, lang, pages, options.date or "20251020", not options.plain)
        else:
            path = write_parquet(options.out, lang, pages, options.date or "20231101")
        print(f"{path}: {options.pages + len(own):,} pages, {path.stat().st_size / 1e6:,.1f} MB", flush=True)


if __name__ == "__main__":
    main()
