"""The critic: scores for one document at a time, then a decision on whether all valid documents are enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.config import TOP_SCORE, Agent
from mrag_eval.core import CRITERIA, Hit, as_verdict
from mrag_eval.models import Parsed, parse_json
from mrag_eval.prompts import PromptTemplate
from mrag_eval.retrieval.agents._records import Candidate, Critique, SufficiencyVerdict

# Critiques are requested in a sentence or two; longer ones are cut before they are put into further prompts.
_LONGEST = 2_000


def critique_conversation(template: PromptTemplate, doc: Mapping[str, Any], hit: Hit) -> list[dict[str, str]]:
    """Return the messages about one document; text that all documents of a question share comes first."""
    return _messages(*template.render(doc, [_passage(hit)]))


def sufficiency_conversation(
    template: PromptTemplate, doc: Mapping[str, Any], valid: Sequence[Candidate]
) -> list[dict[str, str]]:
    """Return the messages about all valid documents, with their totals and critiques if they have any."""
    scored = [candidate for candidate in valid if candidate.critique is not None]
    complete = len(scored) == len(valid)
    texts: dict[str, str | Sequence[str]] = {
        "scores": [f"{candidate.total:g}" for candidate in scored] if complete else [],
        "remarks": [candidate.critique.text for candidate in scored if candidate.critique] if complete else [],
    }
    return _messages(*template.render(doc, [_passage(candidate.hit) for candidate in valid], texts))


def _messages(system: str, user: str) -> list[dict[str, str]]:
    turns = [{"role": "system", "content": system}] if system else []
    return [*turns, {"role": "user", "content": user}]


def _passage(hit: Hit) -> dict[str, str]:
    return {"title": hit.title, "text": hit.text, "lang": hit.lang}


def read_critique(reply: str) -> Parsed[Critique]:
    """Return four integers from 0 to 5 under ``scores``, and the ``critique``; never raise.

    A whole number written as text or with a zero fraction counts as that number. Anything else is refused, since a
    guessed score would decide what the generator sees.
    """
    parsed = parse_json(reply, ("scores",))
    if parsed.value is None:
        return Parsed(None, parsed.error)
    scores = parsed.value["scores"]
    if not isinstance(scores, Mapping):
        return Parsed(None, f"'scores' is {scores!r:.60}, not an object")
    values = []
    for name in CRITERIA:
        if name not in scores:
            return Parsed(None, f"'scores' lacks '{name}'")
        value = _whole(scores[name])
        if value is None or not 0 <= value <= TOP_SCORE:
            return Parsed(None, f"'{name}' is {scores[name]!r:.60}, not an integer from 0 to {TOP_SCORE}")
        values.append(value)
    text = parsed.value.get("critique")
    first, second, third, fourth = values
    return Parsed(Critique((first, second, third, fourth), _cut(text) if isinstance(text, str) else ""))


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.strip()
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 4 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def read_sufficiency(reply: str) -> Parsed[SufficiencyVerdict]:
    """Return ``enough_documents`` and its ``reason``; never raise."""
    parsed = parse_json(reply, ("enough_documents",))
    if parsed.value is None:
        return Parsed(None, parsed.error)
    enough = as_verdict(parsed.value["enough_documents"])
    if enough is None:
        return Parsed(None, f"'enough_documents' is {parsed.value['enough_documents']!r:.60}, neither true nor false")
    reason = parsed.value.get("reason")
    return Parsed(SufficiencyVerdict(enough, _cut(reason) if isinstance(reason, str) else ""))


def is_valid(critique: Critique, settings: Agent) -> bool:
    """Return CORAL's validity (section 4.3): each score at least 2, weighted total at least 6, unless set otherwise."""
    return min(critique.scores) >= settings.min_score and total_of(critique, settings) >= settings.min_total


def total_of(critique: Critique, settings: Agent) -> float:
    """Return the document's total, by the block's weights."""
    return critique.total(settings.weights.model_dump())


def nothing_valid(candidates: Sequence[Candidate], languages: Sequence[str]) -> str:
    """Return the rule-made reason for the planner if no document is valid: the critic's words on the best three."""
    where = ", ".join(languages)
    if not candidates:
        return f"No document was found in the corpora {where}."
    best = sorted((c for c in candidates if c.critique is not None), key=Candidate.order)[:3]
    said = " ".join(f"({c.hit.lang}) {c.critique.text}" for c in best if c.critique is not None and c.critique.text)
    start = f"None of the {len(candidates)} documents found in the corpora {where} is good enough to answer from."
    return f"{start} The critic on the best of them: {said}" if said else start
