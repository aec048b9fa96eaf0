"""The replies of the controls: texts of the task's own rows, and a plain sentence of the language around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mrag_eval.core import RagDoc, language_name, same_language
from mrag_eval.languages import in_sentence
from mrag_eval.platform import content_key
from mrag_eval.text import inflected, segmenters

NO_REFERENCE = "the row has no reference answer"


@dataclass(frozen=True, slots=True)
class ControlReply:
    """The reply of a control to one row; without a ``text``, ``missing`` says why."""

    text: str | None
    missing: str = ""


@dataclass(frozen=True)
class ControlPool:
    """What the replies of other rows are drawn from.

    Attributes:
        docs: all rows of the task, whichever of them run.
        english: row id -> an answer in English.
        seed: of the draw.
    """

    docs: Sequence[RagDoc]
    english: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0


def control_replies(
    names: Sequence[str], docs: Sequence[RagDoc], pool: ControlPool, form: str = "plain"
) -> dict[str, list[ControlReply]]:
    """Return the replies of those of the controls named that are replies, aligned with the rows.

    ``form`` is where the prompt demands the answer, as :func:`mrag_eval.scoring.parse_answer` takes it.
    """
    others = other_answers(pool.docs, pool.seed) if "other" in names else {}
    foreign = _foreign_questions(pool) if "foreign" in names else {}
    replies: dict[str, Callable[[RagDoc], ControlReply]] = {
        "form": lambda doc: demanded(doc, form),
        "bare": bare,
        "sentence": lambda doc: _in_sentence(doc, bare(doc).text),
        "question": lambda doc: ControlReply(doc.query),
        "english": lambda doc: _english(doc, pool.english),
        "other": lambda doc: others.get(doc.id, ControlReply(None, NO_REFERENCE)),
        "foreign": lambda doc: foreign.get(doc.id, ControlReply(None, "the row is not one of the task")),
    }
    if "inflected" in names and any(segmenters(["simplemma"]).values()):
        forms = _inflected(docs, pool.seed)
        replies["inflected"] = lambda doc: forms.get(doc.id, ControlReply(None, NO_REFERENCE))
    return {name: [replies[name](doc) for doc in docs] for name in names if name in replies}


def bare(doc: RagDoc) -> ControlReply:
    """Return the first reference of a row."""
    return ControlReply(doc.answers[0]) if doc.answers else ControlReply(None, NO_REFERENCE)


def _in_sentence(doc: RagDoc, answer: str | None) -> ControlReply:
    text = None if answer is None else in_sentence(answer, doc.query_lang)
    if text is None:
        why = f"no file of {language_name(doc.query_lang)} has a sentence"
        return ControlReply(None, NO_REFERENCE if answer is None else why)
    return ControlReply(text)


def _inflected(docs: Sequence[RagDoc], seed: int) -> dict[str, ControlReply]:
    """Return the first reference with each word in another form of its lemma, in a sentence, by row id."""
    out: dict[str, ControlReply] = {}
    for language, own in _by_language([doc for doc in docs if doc.answers]).items():
        forms = inflected({doc.id: doc.answers[0] for doc in own}, language, seed)
        why = f"no table has forms of {language_name(language) if forms is None else 'a word of the reference'}"
        found = {} if forms is None else forms
        out |= {d.id: _in_sentence(d, found[d.id]) if d.id in found else ControlReply(None, why) for d in own}
    return out


def _english(doc: RagDoc, english: Mapping[str, str]) -> ControlReply:
    if same_language(doc.query_lang, "en"):
        return ControlReply(None, "the question is in English")
    text = english.get(doc.id)
    return ControlReply(None, "the benchmark has no answer in English") if text is None else ControlReply(text)


def other_answers(docs: Sequence[RagDoc], seed: int) -> dict[str, ControlReply]:
    """Return the first reference of another row in the same language that shares no reference, by row id.

    The rows of a language stand in one order, drawn by ``seed``; each gets the answer of the next one that shares none.
    """
    out: dict[str, ControlReply] = {}
    for language, own in _by_language([doc for doc in docs if doc.answers]).items():
        rng = np.random.default_rng(int(content_key("controls", seed, language)[:16], 16))
        ordered = [own[i] for i in rng.permutation(len(own))]
        forms = [_forms(doc) for doc in ordered]
        for i, doc in enumerate(ordered):
            places = ((i + step) % len(ordered) for step in range(1, len(ordered)))
            found = next((ordered[j] for j in places if not forms[i] & forms[j]), None)
            missing = "no other row in its language has another answer"
            out[doc.id] = ControlReply(None, missing) if found is None else ControlReply(found.answers[0])
    return out


def _forms(doc: RagDoc) -> set[str]:
    """Return every spelling of a row's answer, aliases too."""
    return {" ".join(text.casefold().split()) for text in (*doc.answers, *doc.extra.get("aliases", ()))}


def _foreign_questions(pool: ControlPool) -> dict[str, ControlReply]:
    """Return a question in another language of the task, by row id."""
    rng = np.random.default_rng(int(content_key("controls", pool.seed, "foreign")[:16], 16))
    languages = _by_language(pool.docs)
    out = {}
    for language, own in languages.items():
        others = [doc.query for code, docs in languages.items() for doc in docs if not same_language(code, language)]
        places = rng.integers(0, len(others), size=len(own)).tolist() if others else [None] * len(own)
        for doc, place in zip(own, places, strict=True):
            missing = "all questions of the task are in one language"
            out[doc.id] = ControlReply(None, missing) if place is None else ControlReply(others[place])
    return out


def _by_language(docs: Sequence[RagDoc]) -> dict[str, list[RagDoc]]:
    found: dict[str, list[RagDoc]] = defaultdict(list)
    for doc in docs:
        found[doc.query_lang].append(doc)
    return dict(sorted(found.items()))


def in_form(text: str, form: str) -> str:
    """Return an answer as a prompt demands it (``plain``, ``tag``, ``line``, ``choice``, ``citation``)."""
    if form == "tag":
        return f"<answer>{text}</answer>"
    return f"Answer: {text}" if form in ("line", "choice") else text


def demanded(doc: RagDoc, form: str) -> ControlReply:
    """Return the right answer in the form that the prompt demands: of a row with choices, its option.

    ``choice`` demands the letter alone, other forms the letter with the option (``B) Chad``).
    """
    if not doc.choices:
        return ControlReply(in_form(doc.answers[0], form)) if doc.answers else ControlReply(None, NO_REFERENCE)
    # of a disputed territory no option is right
    gold = doc.gold_choice or 0
    option = f"{chr(65 + gold)}) {doc.choices[gold]}"
    if form == "citation":
        return ControlReply(f"Cited Documents:\nChosen Option: {option}\nExplanation: because")
    return ControlReply(in_form(option[0] if form == "choice" else option, form))
