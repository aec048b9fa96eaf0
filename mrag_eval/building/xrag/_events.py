"""Related articles in two languages, found by events and a multilingual retriever (XRAG, Appendix B.2.2)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._xrag_records import Headline
from mrag_eval.building.xrag._xrag_settings import EventBlock, RetrieverBlock
from mrag_eval.core import Passage, titled
from mrag_eval.datasets import iter_jsonl, require_text
from mrag_eval.platform import DataError, decode
from mrag_eval.retrievers import Embedder, Index, cached_index

# Number of events searched at a time.
_BATCH = 512


@dataclass(frozen=True)
class Meeting:
    """An English article and one in another language on the same event."""

    english: str
    foreign: str
    lang: str
    event: str
    days: int


def article_index(
    items: Sequence[Headline], library: Library, block: RetrieverBlock, folder: Path, embedder: Embedder | None = None
) -> Index:
    """Return the index of all articles: one passage each (title and beginning of the text), one shard per language.

    It is stored in ``folder``, reused if articles and embedder are unchanged, and resumed after an interruption.
    ``embedder`` replaces the block's.
    """

    def passages() -> Iterator[Passage]:
        for item in items:
            text = titled(item.title, library.article(item.id).text[: block.lead])
            yield Passage(id=item.id, lang=item.lang, text=text, title=item.title)

    return cached_index(
        passages(),
        embedder=block.embedder if embedder is None else embedder,
        cache_dir=folder,
        progress=False,
        device=block.device,
    )


def read_events(path: Path) -> list[str]:
    """Read the distinct events of a file: JSON Lines with ``event``, or one per line. Raises DataError if there are
    none.
    """
    if not path.is_file():
        raise DataError(f"events.path: {path} does not exist", "one event per line, or JSON Lines with 'event'")
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        found = [
            require_text(row.get("event"), f"{path}, line {number}", "event").strip()
            for number, row in iter_jsonl(path)
        ]
    else:
        found = [line.strip() for line in decode(path.read_bytes(), str(path)).splitlines() if line.strip()]
    if not found:
        raise DataError(f"events.path: {path} holds no event", "one JSON object per line; or leave events.path out")
    return list(dict.fromkeys(found))


def meetings(
    events: Sequence[str], index: Index, articles: Mapping[str, Headline], languages: Sequence[str], block: EventBlock
) -> Iterator[Meeting]:
    """Yield, for every event and language, the best pairs of an English and a foreign article, best first.

    A pair's score is the sum of both articles' scores for the event. Articles more than ``max_days`` apart do not form
    a pair.
    """
    there = [lang for lang in languages if lang in index.languages]
    if "en" not in index.languages:
        return
    for start in range(0, len(events), _BATCH):
        batch = events[start : start + _BATCH]
        found = index.search_by_language(batch, block.k, languages=["en", *there])
        for event, hits in zip(batch, found, strict=True):
            for lang in there:
                pairs = [
                    (-(one.score + other.score), one.id, other.id, _days_between(articles[one.id], articles[other.id]))
                    for one in hits.get("en", ())
                    for other in hits.get(lang, ())
                ]
                near = sorted(pair for pair in pairs if block.max_days is None or pair[3] <= block.max_days)
                for _, english, foreign, days in near[: block.per_event]:
                    yield Meeting(english, foreign, lang, event, days)


def _days_between(a: Headline, b: Headline) -> int:
    return abs((dt.date.fromisoformat(a.date) - dt.date.fromisoformat(b.date)).days)


def capped(found: Iterator[Meeting], per_article: int) -> tuple[list[Meeting], int]:
    """Return the meetings without duplicates, each article in at most ``per_article`` per language, and the number left
    out.
    """
    degree: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, str]] = set()
    out, spare = [], 0
    for meeting in found:
        pair = (meeting.english, meeting.foreign)
        if pair in seen:
            continue
        seen.add(pair)
        ends = [(name, meeting.lang) for name in pair]
        if any(degree[end] >= per_article for end in ends):
            spare += 1
            continue
        degree.update(ends)
        out.append(meeting)
    return out, spare
