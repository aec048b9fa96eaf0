"""The planner: its prompts, the reading of its plans, and the faults of a plan that are repaired by rule.

A plan names corpora (``language_names``) and, from the second round on, a query (``rewritten_query``). Repaired by
rule: codes outside the pool are dropped; if there are more than the allowed number, the first ones are kept; the
query's language is added to the plan of round 1 if it is missing (later on a planner may leave it out). A plan that
names no corpus at all, one that changes nothing and a reply that is not JSON have no obvious repair: the planner is
asked once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.core import is_language, normalize_language, same_language
from mrag_eval.models import Parsed, Parser, parse_json
from mrag_eval.prompts import PromptTemplate
from mrag_eval.retrieval.agents._records import Conditions


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The context of a plan.

    ``previous`` is None in round 1. ``own`` is the pool's code of the query's language, if any. ``choose`` and
    ``rewrite`` are the planner's decisions.
    """

    own: str | None
    pool: tuple[str, ...]
    max_corpora: int
    query: str
    previous: Conditions | None = None
    choose: bool = True
    rewrite: bool = True


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that can be carried out, and the kinds of fault that were repaired in it."""

    conditions: Conditions
    repaired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The fault of a plan that cannot be carried out: its kind, and a message for the planner."""

    kind: str
    error: str


def conversation(
    template: PromptTemplate, doc: Mapping[str, Any], task: PlanContext, reason: str = ""
) -> list[dict[str, str]]:
    """Return the messages to the planner about one question (``doc`` as templates take it)."""
    texts: dict[str, str | Sequence[str]] = {"pool": task.pool, "max_corpora": str(task.max_corpora)}
    if task.previous is not None:
        texts |= {
            "previous_query": task.previous.query,
            "previous_languages": task.previous.languages,
            "reason": reason,
            # a template takes texts; an empty one is false
            "choose": "yes" if task.choose else "",
            "rewrite": "yes" if task.rewrite else "",
        }
    system, user = template.render(doc, (), texts)
    turns = [{"role": "system", "content": system}] if system else []
    return [*turns, {"role": "user", "content": user}]


def parser(task: PlanContext) -> Parser[Planned]:
    """Return the reader of replies to :func:`conversation`."""

    def parse(reply: str) -> Parsed[Planned]:
        plan = read_plan(reply, task)
        return Parsed(None, plan.error) if isinstance(plan, Refused) else Parsed(plan)

    return parse


def read_plan(reply: str, task: PlanContext) -> Planned | Refused:
    """Return the plan in a reply, repaired if the rule is obvious; never raise."""
    key = "language_names" if task.choose else "rewritten_query"
    parsed = parse_json(reply, (key,))
    if parsed.value is None:
        return Refused("unreadable", parsed.error or "there is no JSON object in the reply")
    repaired: list[str] = []
    kept = task.previous.languages if task.previous is not None else task.pool
    languages = _languages(parsed.value, task, repaired) if task.choose else kept
    if not languages:
        return Refused("no_language", f"'language_names' names no corpus of the pool ({', '.join(task.pool)})")
    query = _query(parsed.value, task, repaired)
    last = task.previous
    if last is not None and {*languages} == {*last.languages} and _folded(query) == _folded(last.query):
        must = {(True, True): "corpora or query", (True, False): "corpora", (False, True): "query"}
        return Refused(
            "unchanged", f"this is the previous search again: the {must[task.choose, task.rewrite]} must change"
        )
    return Planned(Conditions(languages, query), tuple(dict.fromkeys(repaired)))


def _languages(value: Mapping[str, Any], task: PlanContext, repaired: list[str]) -> tuple[str, ...]:
    named = value["language_names"]
    if not isinstance(named, list):
        repaired.append("not_a_list")
        named = named.replace(",", " ").split() if isinstance(named, str) else []
    found: list[str] = []
    for name in named:
        code = in_pool(name, task.pool) if isinstance(name, str) else None
        if code is None:
            repaired.append("unknown_language")
        elif code not in found:
            found.append(code)
    if len(found) > task.max_corpora:
        repaired.append("too_many_languages")
    own = task.own if task.previous is None else None
    if own is not None and own not in found:
        repaired.append("no_query_language")
        found.insert(0, own)
    kept = found[: task.max_corpora]
    if own is not None and own not in kept:
        kept[-1] = own
    return tuple(kept)


def in_pool(code: str, pool: Sequence[str]) -> str | None:
    """Return the pool's code for a language in any spelling (``kor``, ``Korean``, ``zh-Hans``), or None."""
    if not is_language(code):
        return None
    wanted = normalize_language(code)
    return wanted if wanted in pool else next((held for held in pool if same_language(held, wanted)), None)


def _query(value: Mapping[str, Any], task: PlanContext, repaired: list[str]) -> str:
    """Return the query to search with; an empty one keeps the previous one."""
    if task.previous is None or not task.rewrite:
        return task.query
    found = value.get("rewritten_query")
    if not isinstance(found, str):
        repaired.append("no_query")
        return task.previous.query
    return found.strip() or task.previous.query


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
