"""Related articles in two languages, by events and a multilingual retriever, and entities of titles (XRAG, B.2.2)."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from mrag_eval.building.steps._asking import Ask, all_tags, ask_each, failure
from mrag_eval.building.steps._records import Drop, Outcome, Settle, kept
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._xrag_records import Headline
from mrag_eval.building.xrag._xrag_settings import EntityBlock, EventBlock, RetrieverBlock
from mrag_eval.core import Passage, titled
from mrag_eval.datasets import iter_jsonl, require_text
from mrag_eval.models import Answered, AuxModel, Parsed
from mrag_eval.platform import ConfigError, DataError, decode, missing_extra
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
            day = {hit.id: dt.date.fromisoformat(articles[hit.id].date) for listed in hits.values() for hit in listed}
            for lang in there:
                pairs = [
                    (-(one.score + other.score), one.id, other.id, abs((day[one.id] - day[other.id]).days))
                    for one in hits.get("en", ())
                    for other in hits.get(lang, ())
                ]
                near = sorted(pair for pair in pairs if block.max_days is None or pair[3] <= block.max_days)
                for _, english, foreign, days in near[: block.per_event]:
                    yield Meeting(english, foreign, lang, event, days)


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


# Number of titles given to a recogniser at a time.
_TEXT_BATCH = 256
# Entity types without a specific referent: dates, amounts and the like, in the labels of OntoNotes.
_NO_ENTITIES = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})


class Recogniser(Protocol):
    """Recogniser of named entities in English titles."""

    def entities(self, titles: Sequence[str]) -> list[list[str]]:
        """Return one list of entities per title, spelled as in the title."""
        ...


def entity_key(name: str) -> str:
    """Return the key shared by mentions of one entity: without case, outer spaces and outer punctuation."""
    text = unicodedata.normalize("NFKC", name).casefold().replace("_", " ")
    text = " ".join(text.split()).strip(" .,:;!?'\"‘’“”()[]-–—")
    return text[:-2] if text.endswith(("'s", "’s")) else text


def by_recogniser(found: Recogniser, items: Sequence[Headline], settle: Settle) -> None:
    """Settle every article with the entities of its title."""
    for start in range(0, len(items), _TEXT_BATCH):
        batch = items[start : start + _TEXT_BATCH]
        for item, names in zip(batch, found.entities([item.title for item in batch]), strict=True):
            settle(item.id, _with(item, names))


def by_model(model: AuxModel, prompts: Prompts, items: Sequence[Headline], settle: Settle) -> None:
    """Settle every article with the entities that a model finds in its title.

    An article without a readable reply goes on without entities: it may still match an article in another language.
    """

    def asks(item: Headline) -> list[Ask[list[str]]]:
        return [Ask(prompts.conversation("entities", {"title": item.title}), _read)]

    def make(item: Headline, answers: list[Answered[list[str]]]) -> Outcome:
        lost = failure(answers)
        if lost is not None:
            drop = Drop(f"entities unknown: {lost.reason}", lost.detail, lost.passing)
            return Outcome((replace(item, entities=()),), (drop,))
        return _with(item, answers[0].value or [])

    ask_each(model, items, asks, make, settle, seat="build entities")


def _read(reply: str) -> Parsed[list[str]]:
    found = all_tags(reply, "entity")
    if not found:
        return Parsed(None, "there is no <entity> in the reply")
    return Parsed([name for name in found if entity_key(name) != "none"])


def _with(item: Headline, names: Sequence[str]) -> Outcome:
    keys = dict.fromkeys(key for name in names if len(key := entity_key(name)) > 1)
    return kept(replace(item, entities=tuple(keys)))


def recogniser(block: EntityBlock) -> Recogniser:
    """Return the recogniser of a block, other than a model. Raises MissingExtraError naming the missing extra."""
    if block.backend == "table" and block.path is not None:
        return _Table(block.path)
    if block.backend == "stanza":
        return _Stanza(block.kinds)
    return _Spacy(block.model or "xx_ent_wiki_sm", block.kinds)


class _Table:
    """Table of entities by title, from another system."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise DataError(f"entities.path: {path} does not exist", "JSON Lines with 'title' and 'entities'")
        self._names: dict[str, list[str]] = {}
        for number, row in iter_jsonl(path):
            where = f"{path}, line {number}"
            names = row.get("entities")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise DataError(f"{where}: 'entities' must be a list of texts", "correct that line, or leave it out")
            self._names[_title(require_text(row.get("title"), where, "title"))] = names

    def entities(self, titles: Sequence[str]) -> list[list[str]]:
        return [self._names.get(_title(title), []) for title in titles]


def _title(text: str) -> str:
    return " ".join(text.split())


class _Stanza:
    """stanza's English pipeline (XRAG's choice); its model must have been downloaded."""

    def __init__(self, kinds: Sequence[str]) -> None:
        try:
            import stanza
        except ImportError:
            raise missing_extra("stanza", "stanza") from None
        self._kinds = frozenset(kinds)
        try:
            self._pipeline: Any = stanza.Pipeline("en", processors="tokenize,ner", verbose=False, download_method=None)
        except Exception as error:
            raise ConfigError(
                f"stanza has no English model on this machine ({type(error).__name__})",
                "python -c \"import stanza; stanza.download('en', processors='tokenize,ner')\"",
            ) from error

    def entities(self, titles: Sequence[str]) -> list[list[str]]:
        done = self._pipeline.bulk_process(list(titles)) if titles else []
        return [[e.text for e in document.ents if _wanted(e.type, self._kinds)] for document in done]


class _Spacy:
    """A spaCy pipeline; its package must be installed."""

    def __init__(self, name: str, kinds: Sequence[str]) -> None:
        try:
            import spacy
        except ImportError:
            raise missing_extra("spacy", "spacy") from None
        self._kinds = frozenset(kinds)
        try:
            self._pipeline: Any = spacy.load(name)
        except OSError as error:
            raise ConfigError(f"spaCy has no pipeline '{name}'", f"python -m spacy download {name}") from error

    def entities(self, titles: Sequence[str]) -> list[list[str]]:
        documents = self._pipeline.pipe(titles)
        return [[e.text for e in document.ents if _wanted(e.label_, self._kinds)] for document in documents]


def _wanted(kind: str, kinds: frozenset[str]) -> bool:
    return kind in kinds if kinds else kind not in _NO_ENTITIES


def described(block: EntityBlock) -> Mapping[str, Any]:
    """Return a step's settings: the backend with the version of its package, or the hash of its table."""
    from importlib.metadata import PackageNotFoundError, version

    from mrag_eval.datasets import sha256_file

    found: dict[str, Any] = block.model_dump(mode="json")
    if block.backend in ("stanza", "spacy"):
        try:
            found["version"] = version(block.backend)
        except PackageNotFoundError:
            raise missing_extra(block.backend, block.backend) from None
    if block.path is not None and block.path.is_file():
        found["sha256"] = sha256_file(block.path)
    return found
