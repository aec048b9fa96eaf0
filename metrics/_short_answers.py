"""SEM-B and SEM-W: short answers scored against annotators' answers with their votes (BLEnD, Myung et al., 2024)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mrag_eval.core import base_language
from mrag_eval.platform import MetricError
from mrag_eval.text import stemmer

# Languages whose words are compared by stem.
STEMMED = ("ar", "el", "en", "es", "fa", "id")
# Compared by unchanged words, as the authors do.
_UNSTEMMED = ("as",)
_ACUTE = "\N{COMBINING ACUTE ACCENT}"

Stem = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class VotedAnswer:
    """One answer of the annotators: its spellings in their language and in English, and its number of votes."""

    local: tuple[str, ...]
    english: tuple[str, ...]
    votes: int


class ShortAnswerScores(NamedTuple):
    """``binary``: 1.0 if an answer matched, else 0.0; ``weighted``: its votes over the top answer's, else 0.0."""

    binary: float
    weighted: float


def has_lemma_rule(lang: str) -> bool:
    """Return whether answers in this language are also compared word by word; elsewhere only as substrings."""
    return base_language(lang) in (*STEMMED, *_UNSTEMMED)


def short_answer_scores(reply: str, answers: Sequence[VotedAnswer], lang: str) -> ShortAnswerScores:
    """Return SEM-B and SEM-W of one reply; their means over valid questions are the scores that BLEnD reports.

    Answers are tried by descending votes (stable), each in its spellings in ``lang`` (BCP 47), then in English. A
    spelling matches if it is a substring of the reply, also with ``-`` for spaces or spaces for ``-``; else, in a
    language of :func:`has_lemma_rule`, if the stem of each of its words is that of a word of the reply. Case is
    ignored. An empty spelling matches nothing.

    Raises:
        MetricError: there are no answers, or one has no votes.
    """
    if not answers:
        raise MetricError("no annotated answers")
    if any(answer.votes < 1 for answer in answers):
        raise MetricError("an answer without votes")
    text = _folded(reply)
    local, english = _stems_of(lang), _stems_of("en")
    top = max(answer.votes for answer in answers)
    words: dict[bool, frozenset[str]] = {}
    for answer in sorted(answers, key=lambda each: -each.votes):
        tried = [(form, True) for form in answer.local] + [(form, False) for form in answer.english]
        for form, is_local in tried:
            stem = local if is_local else english
            if stem is not None and is_local not in words:
                words[is_local] = frozenset(_stems(text, stem))
            if _matches(_folded(form), text, stem, words.get(is_local, frozenset())):
                return ShortAnswerScores(1.0, answer.votes / top)
    return ShortAnswerScores(0.0, 0.0)


def _matches(answer: str, reply: str, stem: Stem | None, words: frozenset[str]) -> bool:
    if not answer:
        return False
    if any(form in reply for form in (answer, answer.replace("-", " "), answer.replace(" ", "-"))):
        return True
    if stem is None:
        return False
    wanted = list(_stems(answer, stem))
    return bool(wanted) and all(word in words for word in wanted)


def _folded(text: str) -> str:
    # the capital dotted I is lower-cased to two characters, which no i matches
    return unicodedata.normalize("NFC", text).replace("İ", "i").lower().strip()


def _stems(text: str, stem: Stem) -> Iterable[str]:
    """Return stems of the words of a text, without acute accents, which replies and answers use inconsistently."""
    bare = "".join(" " if unicodedata.category(char)[0] in "PSZ" else char for char in text)
    return (unicodedata.normalize("NFD", stem(word)).replace(_ACUTE, "") for word in bare.split())


def _stems_of(lang: str) -> Stem | None:
    code = base_language(lang)
    if code in _UNSTEMMED:
        return str
    return stemmer(code) if code in STEMMED else None
