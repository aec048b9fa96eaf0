"""Pairing of articles, in one language and across two, and the distracting articles of a question (XRAG, 4.4, B.2)."""

from __future__ import annotations

import datetime as dt
import random
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappush, heapreplace
from typing import Any

from mrag_eval.building.steps._asking import failure
from mrag_eval.building.steps._records import Drop, Outcome, Settle, dropped
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._events import capped, meetings, read_events
from mrag_eval.building.xrag._linked_questions import holds_ask
from mrag_eval.building.xrag._xrag_records import Headline, LinkedQuestion
from mrag_eval.building.xrag._xrag_settings import XragSettings
from mrag_eval.models import AuxModel, generate_parsed
from mrag_eval.retrievers import Index

_SPARE = "pair beyond what an article may have"
_NOT_DRAWN = "pair not drawn"
_TOO_EARLY = "pair without older articles"


def pair_articles(
    settings: XragSettings,
    index: Callable[[], Index],
    note: Callable[[str], None],
    items: Sequence[Headline],
    settle: Settle,
) -> None:
    """Settle every article with the pairs that it is the first of; drop an article that is in no pair.

    Pairs with too few older articles for their distractors are dropped here, before any paid call is made for them.
    """
    spare = 0
    pairs: list[LinkedQuestion] = []
    if "mono" in settings.settings:
        english = [item for item in items if item.lang == "en"]
        block = settings.pairs
        found = related_pairs(
            english,
            shared=block.shared,
            max_days=block.max_days,
            max_titles=block.max_titles,
            per_article=block.per_article,
        )
        spare += found.spare
        if found.general:
            note(
                f"{found.general:,} entities occur in more than {block.max_titles:,} titles and are not used for pairs"
            )
        for pair in found.pairs:
            ends = english[pair.first].id, english[pair.second].id
            pairs.append(LinkedQuestion(f"p{len(pairs)}", "mono", "en", *ends, shared=pair.shared, days=pair.days))
    if "multi" in settings.settings:
        articles = {item.id: item for item in items}
        events = (
            read_events(settings.events.path)
            if settings.events.path is not None
            else list(dict.fromkeys(item.title for item in items if item.lang == "en"))
        )
        # without articles in both languages there is nothing to search, so no index is built
        if events and len({item.lang for item in items}) > 1:
            across = meetings(events, index(), articles, settings.languages, settings.events)
            met, more = capped(across, settings.pairs.per_article)
            spare += more
            for meeting in met:
                ends = meeting.english, meeting.foreign
                name, event, days = f"p{len(pairs)}", meeting.event, meeting.days
                pairs.append(LinkedQuestion(name, "multi", meeting.lang, *ends, event=event, days=days))
    early = _too_early(items, pairs, settings)
    drawn = _drawn([pair for pair in pairs if pair.id not in early], settings.pairs.limit, settings.seed)
    _settle(items, pairs, early, drawn, spare, settle)


def _too_early(items: Sequence[Headline], pairs: Sequence[LinkedQuestion], settings: XragSettings) -> set[str]:
    """Return the ids of pairs with fewer older articles than distractors, in one of their languages."""
    block = settings.distractors
    days: dict[str, list[str]] = defaultdict(list)
    for item in items:
        days[item.lang].append(item.date)
    for found in days.values():
        found.sort()
    dates = {item.id: item.date for item in items}
    out = set()
    for pair in pairs:
        latest = dt.date.fromisoformat(min(dates[end] for end in pair.ends))
        limit = (latest - dt.timedelta(days=block.older_days)).isoformat()
        if any(bisect_right(days[lang], limit) < count for lang, count in needed(pair, block.count).items()):
            out.add(pair.id)
    return out


def _drawn(pairs: Sequence[LinkedQuestion], limit: int | None, seed: int) -> set[tuple[str, str]]:
    """Return the selected pairs, by their articles: all, or ``limit`` of each setting and language."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for pair in pairs:
        groups[pair.setting, pair.lang].append(pair.ends)
    return {
        ends
        for group, found in groups.items()
        for ends in (found if limit is None else random.Random(f"{seed} {group}").sample(found, min(limit, len(found))))
    }


def _settle(
    items: Sequence[Headline],
    pairs: Sequence[LinkedQuestion],
    early: set[str],
    drawn: set[tuple[str, str]],
    spare: int,
    settle: Settle,
) -> None:
    made: dict[str, list[LinkedQuestion]] = defaultdict(list)
    left: dict[str, list[Drop]] = defaultdict(list)
    ends: set[str] = set()
    for pair in pairs:
        ends.update(pair.ends)
        if pair.id in early:
            left[pair.first].append(Drop(_TOO_EARLY))
        elif pair.ends in drawn:
            made[pair.first].append(pair)
        else:
            left[pair.first].append(Drop(_NOT_DRAWN))
    for number, item in enumerate(items):
        drops: list[Drop] = [] if item.id in ends else [Drop("no related article")]
        drops += left[item.id]
        # surplus pairs have no article left to be counted with
        drops += [Drop(_SPARE)] * (spare if number == 0 else 0)
        settle(item.id, Outcome(tuple(made[item.id]), tuple(drops)))


@dataclass(frozen=True)
class Related:
    """Positions of two articles, the earlier one first, and their shared entities."""

    first: int
    second: int
    shared: tuple[str, ...]
    days: int


@dataclass(frozen=True)
class Found:
    """Result of the search.

    ``general`` counts entities in too many titles to link them. ``spare`` counts pairs that were left out because an
    article had enough.
    """

    pairs: list[Related]
    general: int
    spare: int


def related_pairs(
    articles: Sequence[Headline], *, shared: int = 2, max_days: int = 14, max_titles: int = 1000, per_article: int = 3
) -> Found:
    """Return pairs of articles whose titles share entities.

    An entity in more than ``max_titles`` titles counts as shared, but only for titles that also share a rarer one.
    Identical titles are reprints and do not form a pair. An article's pairs are ranked by the number of shared
    entities, then by time between them, then by date. Memory grows only with the articles and ``per_article``.
    """
    days = [dt.date.fromisoformat(article.date).toordinal() for article in articles]
    order = sorted(range(len(articles)), key=lambda i: (days[i], articles[i].id))
    entities_of = [set(article.entities or ()) for article in articles]
    frequency: Counter[str] = Counter(name for own in entities_of for name in own)
    numbers = {name: number for number, name in enumerate(sorted(frequency, key=lambda n: (frequency[n], n)))}
    names = list(numbers)
    # rarest first; an article with fewer than ``shared`` entities is in no pair
    sets = [array("i", sorted(numbers[name] for name in own)) for own in entities_of]
    general = sum(count > max_titles for count in frequency.values())
    leading = len(names) - general
    postings: dict[int, array[int]] = {}
    dates: dict[int, array[int]] = {}
    titles = [hash(article.title) for article in articles]
    best: list[list[tuple[int, int, int, int]]] = [[] for _ in articles]
    spare = 0
    for rank, current in enumerate(order):
        entities = sets[current]
        if len(entities) < shared:
            continue
        prefix = [e for e in entities[: len(entities) - shared + 1] if e < leading]
        seen: set[int] = set()
        for entity in prefix:
            there, when = postings.get(entity), dates.get(entity)
            if there is None or when is None:
                continue
            start = bisect_right(when, days[current] - max_days - 1)
            seen.update(there[start:])
        own = set(entities)
        for other in seen:
            count = sum(entity in own for entity in sets[other])
            if count < shared or titles[other] == titles[current]:
                continue
            gap = days[current] - days[other]
            # the worst pair of the heap comes first: fewest shared, farthest apart, latest
            spare += _offer(best[current], (count, -gap, -rank, other), per_article)
        for entity in prefix:
            postings.setdefault(entity, array("i")).append(current)
            dates.setdefault(entity, array("i")).append(days[current])
    # most shared first, then nearest in time, then earliest
    offers = sorted(
        (-count, -gap, -rank, other, current) for current, heap in enumerate(best) for count, gap, rank, other in heap
    )
    degree: Counter[int] = Counter()
    pairs = []
    for _, gap, _, other, current in offers:
        if degree[other] >= per_article or degree[current] >= per_article:
            spare += 1
            continue
        degree[other] += 1
        degree[current] += 1
        common = tuple(names[e] for e in sorted(set(sets[other]) & set(sets[current])))
        pairs.append(Related(other, current, common, gap))
    return Found(sorted(pairs, key=lambda pair: (pair.first, pair.second)), general, spare)


def _offer(heap: list[tuple[int, int, int, int]], pair: tuple[int, int, int, int], most: int) -> int:
    """Keep a pair if it is among the best; return 1 if a pair is removed."""
    if len(heap) < most:
        heappush(heap, pair)
        return 0
    if pair > heap[0]:
        heapreplace(heap, pair)
    return 1


# Factor for one wider search, if too few of the hits are old enough.
_DEEPER = 10
# Number of questions searched at a time.
_BATCH = 512


@dataclass
class _Search:
    """State of one question: the remaining and the accepted candidates by language."""

    item: LinkedQuestion
    needed: dict[str, int]
    left: dict[str, list[str]] = field(default_factory=dict)
    taken: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    refused: int = 0
    outcome: Outcome | None = None

    def wanted(self) -> list[tuple[str, str]]:
        """Return the next candidates to check, as (language, id); settle the question if there are too few."""
        out = []
        for lang, count in self.needed.items():
            missing = count - len(self.taken[lang])
            if missing > len(self.left[lang]):
                self.outcome = dropped("too few distractors", f"{lang}: {len(self.taken[lang])} of {count}")
                return []
            out += [(lang, self.left[lang].pop(0)) for _ in range(missing)]
        return out


def find_distractors(
    model: AuxModel | None,
    prompts: Prompts,
    settings: XragSettings,
    library: Library,
    index: Index,
    articles: Mapping[str, Headline],
    items: Sequence[LinkedQuestion],
    settle: Settle,
) -> None:
    """Settle every question with its distractors: ids by language, best first; one record per target language.

    Candidates are the retriever's hits for the English question that are old enough. ``model`` checks each in the same
    way as the supporting articles, and replaces one that suffices for the answer by the next; with None there is no
    check.
    """
    block = settings.distractors
    searches = [_Search(item, needed(item, block.count)) for item in items]
    _find(searches, index, articles, block.candidates, block.older_days)
    going = searches
    while going:
        rounds = [(search, lang, name) for search in going for lang, name in search.wanted()]
        _check(model, prompts, library, rounds)
        for search in going:
            done = all(len(search.taken[lang]) == count for lang, count in search.needed.items())
            if search.outcome is None and done:
                search.outcome = _outcome_of(search, settings.languages)
            if search.outcome is not None:
                settle(search.item.id, search.outcome)
        going = [search for search in going if search.outcome is None]


def needed(item: LinkedQuestion, count: int) -> dict[str, int]:
    """Return the number of distractors per language; a pair of two languages has half of them in each."""
    return {"en": count} if item.setting == "mono" else {"en": count // 2, item.lang: count // 2}


def _outcome_of(search: _Search, languages: Sequence[str]) -> Outcome:
    item = search.item
    found = {lang: tuple(search.taken[lang]) for lang in search.needed}
    base = replace(item, distractors=found, distractors_refused=search.refused)
    targets = languages if item.setting == "mono" else (item.lang,)
    return Outcome(tuple(replace(base, id=f"{item.id}-{lang}", language=lang) for lang in targets))


def _find(searches: Sequence[_Search], index: Index, articles: Mapping[str, Headline], k: int, older_days: int) -> None:
    """Fill in the candidates of every search, best first."""
    languages = sorted({lang for search in searches for lang in search.needed})
    for lang in languages:
        here = [search for search in searches if lang in search.needed]
        if lang not in index.languages:
            for search in here:
                search.left[lang] = []
            continue
        total = index.counts[lang]
        _search(here, lang, index, articles, k, older_days)
        short = [search for search in here if len(search.left[lang]) < 2 * search.needed[lang]]
        if short and k < total:
            _search(short, lang, index, articles, _DEEPER * k, older_days)


def _search(
    searches: Sequence[_Search], lang: str, index: Index, articles: Mapping[str, Headline], k: int, older_days: int
) -> None:
    for start in range(0, len(searches), _BATCH):
        batch = searches[start : start + _BATCH]
        found = index.search([search.item.question for search in batch], k, languages=[lang])
        for search, hits in zip(batch, found, strict=True):
            support = [articles[end] for end in search.item.ends]
            latest = min(dt.date.fromisoformat(a.date) for a in support) - dt.timedelta(days=older_days)
            titles = {a.title for a in support}
            search.left[lang] = [
                hit.id
                for hit in hits
                if articles[hit.id].date <= latest.isoformat() and articles[hit.id].title not in titles
            ]


def _check(
    model: AuxModel | None, prompts: Prompts, library: Library, rounds: Sequence[tuple[_Search, str, str]]
) -> None:
    """Run one round: accept candidates that do not suffice for the answer, and reject the others."""
    if model is None:
        for search, lang, name in rounds:
            search.taken[lang].append(name)
        return
    asks = [holds_ask(prompts, search.item, library.article(name)) for search, _, name in rounds]
    answers: Sequence[Any] = generate_parsed(
        model.seat("build distractors"), [ask.conversation for ask in asks], [ask.read for ask in asks]
    )
    for (search, lang, name), answer in zip(rounds, answers, strict=True):
        lost = failure([answer])
        if lost is not None and lost.passing:
            search.outcome = Outcome(drops=(lost,))
        elif lost is not None or answer.value == "sufficient":
            search.refused += 1
        else:
            search.taken[lang].append(name)
