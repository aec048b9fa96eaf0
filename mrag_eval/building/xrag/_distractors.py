"""Distracting articles: on the topic of a question, older than its articles, and without its answer (XRAG, 4.4)."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mrag_eval.building.steps._asking import failure
from mrag_eval.building.steps._records import Outcome, Settle, dropped
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._checks import holds_ask
from mrag_eval.building.xrag._xrag_records import Headline, LinkedQuestion
from mrag_eval.building.xrag._xrag_settings import XragSettings
from mrag_eval.models import AuxModel, generate_parsed
from mrag_eval.retrievers import Index

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
    searches: Sequence[_Search],
    lang: str,
    index: Index,
    articles: Mapping[str, Headline],
    k: int,
    older_days: int,
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
