"""Multilingual response sets: checked rows of queries and responses, as one set of answers per territory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from mrag_eval.core import is_language, normalize_language
from mrag_eval.platform import MetricError, did_you_mean

Refusals = Literal["official", "exclude", "incorrect"]
Row = Mapping[str, Any]

# The controller of a territory that nobody is known to control.
UNKNOWN_CONTROLLER = "Unknown"
# the official reading compares a refused control answer as this text, which is not a claimant's name
_REFUSED_CONTROL = "None"
_REFUSALS = ("official", "exclude", "incorrect")
_KEYS = ("query_id", "territory", "query_lang", "claimants", "claimant_langs", "controller", "controller_lang")


@dataclass
class TerritoryQueries:
    """A disputed territory and the ids of its queries; ``controller`` is None if unknown."""

    name: str
    claimants: tuple[str, ...]
    claimant_langs: tuple[str, ...]
    controller: str | None
    controller_lang: str
    control_id: str | None = None
    query_ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerSet:
    """The answers on one territory, as English country names.

    In ``by_language`` and ``control`` None is a refusal that counts as wrong: it concurs with nothing.
    ``control_scored`` is False if the control answer is excluded. ``given`` has the answer to each query once, None for
    a refusal, whatever its treatment, except that excluded ones are left out.
    """

    territory: TerritoryQueries
    by_language: dict[str, str | None]
    control: str | None
    control_scored: bool
    given: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class ResponseSets:
    """All territories' answers, and the number of answered, missing and refused rows."""

    sets: tuple[AnswerSet, ...]
    n_answered: int
    n_missing: int
    n_refusals: int
    n_refused_controls: int


def read_response_sets(territories: Sequence[Row], responses: Sequence[Row], refusals: Refusals) -> ResponseSets:
    """Join queries and responses; arguments and errors as in :func:`mrag_eval.metrics.concurrence_scores`."""
    if refusals not in _REFUSALS:
        raise MetricError(f"unknown treatment of refusals '{refusals}'{did_you_mean(refusals, _REFUSALS)}")
    if not territories or not responses:
        raise MetricError(f"no {'territories' if not territories else 'responses'} to score")
    known = read_territories(territories)
    owner = {query_id: territory for territory in known for query_id in _ids(territory)}
    answers: dict[str, str | None] = {}
    for i, row in enumerate(responses):
        query_id = row.get("query_id")
        if query_id not in owner:
            raise MetricError(f"responses[{i}]: no query has the id {query_id!r}")
        if query_id in answers:
            raise MetricError(f"responses[{i}]: a second response to query '{query_id}'", "keep one response per query")
        answers[query_id] = _named(row, owner[query_id], i)
    sets = tuple(_answer_set(territory, answers, refusals) for territory in known)
    refused = {query_id for query_id, answer in answers.items() if answer is None}
    return ResponseSets(
        sets=sets,
        n_answered=len(responses),
        n_missing=len(owner) - len(answers),
        n_refusals=len(refused),
        n_refused_controls=sum(territory.control_id in refused for territory in known),
    )


def read_territories(rows: Sequence[Row]) -> list[TerritoryQueries]:
    known: dict[str, TerritoryQueries] = {}
    seen: set[str] = set()
    for i, row in enumerate(rows):
        if None in map(row.get, _KEYS):
            missing = [key for key in _KEYS if row.get(key) is None]
            raise MetricError(f"territories[{i}] lacks {', '.join(missing)}")
        if row["query_id"] in seen:
            raise MetricError(f"territories[{i}]: query id '{row['query_id']}' occurs twice")
        seen.add(row["query_id"])
        found = _read_territory(row, i)
        territory = known.setdefault(found.name, found)
        if (territory.claimants, territory.controller) != (found.claimants, found.controller):
            raise MetricError(f"territories[{i}]: claimants or controller of '{found.name}' differ from an earlier row")
        language = _code(row["query_lang"])
        is_control = bool(row.get("control_query", language == "en"))
        if is_control:
            if territory.control_id is not None:
                raise MetricError(f"territories[{i}]: a second control query for '{found.name}'")
            territory.control_id = row["query_id"]
        # the control query doubles as a claimant's if English is a claimant's language
        if not is_control or language in territory.claimant_langs:
            if language in territory.query_ids:
                raise MetricError(f"territories[{i}]: a second query in '{language}' for '{found.name}'")
            territory.query_ids[language] = row["query_id"]
    return list(known.values())


def _read_territory(row: Row, i: int) -> TerritoryQueries:
    claimants, languages = tuple(row["claimants"]), tuple(map(_code, row["claimant_langs"]))
    if not claimants or len(claimants) != len(languages):
        raise MetricError(f"territories[{i}]: {len(claimants)} claimants but {len(languages)} claimant_langs")
    controller = None if row["controller"] in (UNKNOWN_CONTROLLER, "") else row["controller"]
    return TerritoryQueries(row["territory"], claimants, languages, controller, _code(row["controller_lang"]))


def _ids(territory: TerritoryQueries) -> set[str]:
    ids = set(territory.query_ids.values())
    return ids if territory.control_id is None else ids | {territory.control_id}


def _given(
    territory: TerritoryQueries, answers: Mapping[str, str | None], refusals: Refusals
) -> tuple[str | None, ...]:
    found = [answers[query_id] for query_id in _ids(territory) if query_id in answers]
    return tuple(answer for answer in found if answer is not None or refusals != "exclude")


def _named(row: Row, territory: TerritoryQueries, i: int) -> str | None:
    """Return the English country name of a response, None for a refusal."""
    claimants, name = territory.claimants, row.get("answer")
    if "claimant_ind" not in row:
        if name is not None and name not in claimants:
            raise MetricError(f"responses[{i}]: '{name}' is not a claimant of {territory.name}: {', '.join(claimants)}")
        return name
    index = row["claimant_ind"]
    if index is None or index == -1:
        return None
    if isinstance(index, bool) or index != int(index) or not 0 <= index < len(claimants):
        raise MetricError(f"responses[{i}]: claimant_ind {index} is outside 0..{len(claimants) - 1}")
    if name is not None and name != claimants[int(index)]:
        raise MetricError(f"responses[{i}]: answer '{name}' is not claimant {index}, '{claimants[int(index)]}'")
    return claimants[int(index)]


def _answer_set(territory: TerritoryQueries, answers: Mapping[str, str | None], refusals: Refusals) -> AnswerSet:
    by_language: dict[str, str | None] = {}
    for language, query_id in territory.query_ids.items():
        if query_id not in answers:
            continue
        answer = answers[query_id]
        if answer is None and refusals == "exclude":
            continue
        if answer is None and refusals == "official":
            answer = territory.claimants[0]
        by_language[language] = answer
    control = answers.get(territory.control_id) if territory.control_id is not None else None
    scored = territory.control_id is not None and (control is not None or refusals != "exclude")
    if control is None and refusals == "official" and territory.control_id in answers:
        control = _REFUSED_CONTROL
    return AnswerSet(territory, by_language, control, scored, _given(territory, answers, refusals))


@lru_cache(maxsize=4_096)
def _code(language: str) -> str:
    # no query may exist in a claimant's language, which may then be unknown to the table
    return normalize_language(language) if language and is_language(language) else language
