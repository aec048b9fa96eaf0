"""News articles with date, language and title, read from crawlers' files.

Supported layouts are those of news-please (``maintext``, ``date_publish``; one JSON file per article, or JSON Lines)
and of the CC-News sets on the hub (``text``, ``date``; ``plain_text``, ``published_date``). ``keys`` names other
fields.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from typing import Any

from mrag_eval.building.steps._records import Outcome, Settle, attempted, dropped, kept
from mrag_eval.building.steps._words import count_words
from mrag_eval.building.xrag._xrag_records import Article, Headline
from mrag_eval.building.xrag._xrag_settings import ArticleBlock
from mrag_eval.core import base_language, is_language
from mrag_eval.datasets import iter_jsonl, parquet, sha256_file
from mrag_eval.platform import DataError, decode, json_from

# Fields that are tried, in this order.
KEYS: dict[str, tuple[str, ...]] = {
    "id": ("id", "doc_id"),
    "text": ("maintext", "plain_text", "text", "content", "body"),
    "title": ("title", "headline"),
    "date": ("date_publish", "published_date", "date", "publish_date", "published", "published_at"),
    "lang": ("language", "lang"),
    "url": ("url", "requested_url", "link"),
}
_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".parquet", ".json")
# Placeholders of crawlers for a missing value.
_NOTHING = frozenset({"", "none", "null", "nan", "nat"})
_BATCH = 512
_CORRECT = "correct the file, and run the same command again"
# Enough of an article to detect its language.
_DETECT_CHARS = 1000
# Category Cc, except line feed and tab.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Later than any plausible date of a news article; in seconds and in milliseconds.
_LATEST = 4_102_444_800


def article_files(source: Path) -> list[Path]:
    """Return the files of a corpus: the file itself, or all of the known kinds below a folder, ordered by path."""
    if source.is_file():
        if not source.name.lower().endswith(_SUFFIXES):
            raise DataError(f"{source} is not one of {', '.join(_SUFFIXES)}", "name a file or folder of articles")
        return [source]
    if not source.is_dir():
        raise DataError(f"corpus {source} does not exist", "name a file or folder of articles")
    found = sorted(path for path in source.rglob("*") if path.is_file() and path.name.lower().endswith(_SUFFIXES))
    if not found:
        raise DataError(
            f"{source} holds no file of articles ({', '.join(_SUFFIXES)})",
            "name a folder of articles, or a file of one of these kinds",
        )
    return found


def corpus_identity(files: Sequence[Path]) -> dict[str, str]:
    """Return the SHA-256 of every file by name, or, for more than a hundred files, one over all of them."""
    hashes = {path.name: sha256_file(path) for path in files}
    if len(files) <= 100 and len(hashes) == len(files):
        return hashes
    joint = hashlib.sha256("".join(sha256_file(path) for path in files).encode()).hexdigest()
    return {f"{len(files):,} files": joint}


def raw_articles(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (place, record) of one file. Raises DataError naming file and line of unreadable content."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        with parquet(path) as file:
            rows = (record for batch in file.iter_batches(_BATCH) for record in batch.to_pylist())
            yield from ((f"{path}, row {row}", record) for row, record in enumerate(rows, 1))
    elif name.endswith(".json"):
        try:
            record = json_from(decode(path.read_bytes(), str(path)), str(path), _CORRECT)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error})", _CORRECT) from None
        records = record if isinstance(record, list) else [record]
        for number, entry in enumerate(records, 1):
            if not isinstance(entry, Mapping):
                raise DataError(
                    f"{path}, record {number}: expected an object, found {type(entry).__name__}",
                    "one object per article; mrag-eval build xrag --help",
                )
            yield (f"{path}, record {number}" if isinstance(record, list) else str(path)), entry
    else:
        for number, record in iter_jsonl(path):
            yield f"{path}, line {number}", record


def day_of(value: Any) -> dt.date | None:
    """Return the day of a crawler's date, or None.

    Accepts ISO 8601 with or without a time, RFC 2822 (mails and feeds), seconds or milliseconds since 1970, and Parquet
    dates. A time zone is not applied: the written day counts.
    """
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        seconds = value / 1000 if value > _LATEST else value
        return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).date() if 0 < seconds < _LATEST else None
    text = str(value).strip()
    if text.casefold() in _NOTHING:
        return None
    try:
        return dt.date.fromisoformat(text[:10])
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text).date()
    except (ValueError, TypeError, IndexError):
        return None


def read_articles(files: Sequence[Path], block: ArticleBlock, languages: Sequence[str], settle: Settle) -> None:
    """Settle every record of the files: an :class:`Article` is kept, or a record dropped with a reason.

    ``languages`` are the wanted ones; a missing language is detected. Of two articles with the same text or id, the
    first is kept.
    """
    keys = KEYS | {field: (key,) for field, key in block.keys.items()}
    texts: set[bytes] = set()
    ids: set[str] = set()
    records = (found for path in files for found in raw_articles(path))
    while batch := list(islice(records, _BATCH)):
        fields = [{name: _field(record, keys[name]) for name in KEYS} for _, record in batch]
        detected = iter(_detected([given for given in fields if given["lang"] is None and block.lang is None]))
        for (where, _), given in zip(batch, fields, strict=True):
            if given["lang"] is None:
                given["lang"] = block.lang or next(detected)
            settle(where, attempted(_article, given, block, languages, texts, ids))


def _field(record: Mapping[str, Any], keys: Sequence[str]) -> Any:
    for key in keys:
        value = record.get(key)
        if value is not None and not (isinstance(value, str) and value.strip().casefold() in _NOTHING):
            return value
    return None


def _detected(fields: Sequence[Mapping[str, Any]]) -> list[str]:
    if not fields:
        return []
    from mrag_eval.metrics import default_detector

    return default_detector().detect([str(given["text"] or "")[:_DETECT_CHARS].replace("\n", " ") for given in fields])


def _article(
    given: Mapping[str, Any], block: ArticleBlock, languages: Sequence[str], texts: set[bytes], ids: set[str]
) -> Outcome:
    text = _clean(given["text"])
    if not text:
        return dropped("no text")
    title = " ".join(_clean(given["title"]).split())
    if not title:
        return dropped("no title")
    day = day_of(given["date"])
    if day is None:
        return dropped("no date" if given["date"] is None else "unreadable date", str(given["date"] or ""))
    if (block.since and day < block.since) or (block.until and day > block.until):
        return dropped("outside the dates", day.isoformat())
    code = str(given["lang"])
    if not is_language(code):
        return dropped("unknown language", code)
    lang = base_language(code)
    if lang not in languages:
        return dropped("other language", lang)
    # every word has at least one letter, so most short texts need no count
    words = count_words(text) if len(text) >= block.min_words else 0
    if words < block.min_words:
        return dropped("too short")
    if block.max_words is not None and words > block.max_words:
        return dropped("too long")
    digest = hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8", "surrogatepass")).digest()[:16]
    name = str(given["id"] or given["url"] or digest.hex())
    if digest in texts or name in ids:
        return dropped("duplicate")
    texts.add(digest)
    ids.add(name)
    return kept(Article(name, lang, title, text, day.isoformat(), words, str(given["url"] or "")))


def _clean(value: Any) -> str:
    """Remove control characters and lone surrogates, which no file and no prompt should contain."""
    if not isinstance(value, str):
        return ""
    return _CONTROL.sub("", value.encode("utf-8", "replace").decode("utf-8")).strip()


def sampled(items: Sequence[Headline], per_language: int | None, seed: int, settle: Settle) -> None:
    """Settle the articles: keep ``per_language`` of each language, drawn by hash of seed and id, without texts."""
    chosen: set[str] | None = None
    if per_language is not None:
        chosen = set()
        drawn = sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{item.id}".encode()).digest())
        taken: dict[str, int] = {}
        for item in drawn:
            taken[item.lang] = taken.get(item.lang, 0) + 1
            if taken[item.lang] <= per_language:
                chosen.add(item.id)
    for item in items:
        settle(item.id, kept(item) if chosen is None or item.id in chosen else dropped("not drawn"))


class Library:
    """The articles of a build by id: texts are read from the file, the rest is in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place: dict[str, int] = {}
        position = 0
        with path.open("rb") as handle:
            for line in handle:
                self._place[json.loads(line)["id"]] = position
                position += len(line)

    def article(self, name: str) -> Article:
        """Return the article with this id."""
        with self._path.open("rb") as handle:
            handle.seek(self._place[name])
            return Article(**json.loads(handle.readline()))
