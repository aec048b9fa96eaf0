"""Pairing of articles, in one language and across two."""

from __future__ import annotations

import datetime as dt
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence

from mrag_eval.building.steps._records import Drop, Outcome, Settle
from mrag_eval.building.xrag._distractors import needed
from mrag_eval.building.xrag._events import capped, meetings, read_events
from mrag_eval.building.xrag._pairs import related_pairs
from mrag_eval.building.xrag._xrag_records import Headline, LinkedQuestion
from mrag_eval.building.xrag._xrag_settings import XragSettings
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
