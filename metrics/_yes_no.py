"""Replies that say yes or no."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.core import split_thinking
from mrag_eval.metrics._choice_options import Lexicon, fold, lexicon
from mrag_eval.platform import MetricError
from mrag_eval.text import marks, sentence_spans

# Marks around a reply and between its words.
_MARKS = re.compile(r"[\s*_`\"'“”‘’«»<>\[\](){}$|~#\-–—=→:.,;!?¡¿。、，！；：؟،؛។۔።፣፤፡।॥…]*")
_LONGEST = 400
# Words that may stand between an announcement and what it announces.
_FEW = 2
# "Sí, es la capital. ¿No?"
_QUESTION = re.compile("[?؟፧]")
_NEITHER = ("refuses", "refuses_if_own", "refuses_if_alone", "unsettled")


def read_yes_no(reply: str, lang: str | None = None) -> bool | None:
    """Return whether a reply says yes (True) or no (False); None if it says neither, both, or that it does not know.

    The reply has to begin with the word, or with an announcement such as ``The answer is``. A reply whose last sentence
    is the opposite word, after at most two others, says both: ``Yes. Actually, no.`` Words are whole words: ``예술`` is
    no yes, ``Eiffel`` no no. The words of English count in every language, since models often reply in it.

    Args:
        reply: the model's answer.
        lang: its language (BCP 47); None for English.

    Raises:
        MetricError: the reply is not a string.
    """
    if not isinstance(reply, str):
        raise MetricError(f"reply must be a string, got {type(reply).__name__}")
    whole = unicodedata.normalize("NFKC", split_thinking(reply).answer).strip()
    whole = whole.replace("’", "'")
    text = whole[:_LONGEST]
    start = _skip(text, 0)
    said = _said(text, start, lang)
    neither = _patterns(lexicon(lang))[2].match(text, start)
    for _, end in lexicon(lang).spans(fold(text))["answer"]:
        if said is not None:
            break
        if neither is not None and end <= neither.end():
            continue
        said = _announced(text, end, lang)
    return None if said is not None and _ends_with(whole, not said, lang) else said


def _ends_with(text: str, says: bool, lang: str | None) -> bool:
    """Return whether the last of several sentences is this word, after at most two others."""
    start, end = deque(sentence_spans(text, lang or "en"), maxlen=1)[0]
    last = text[start:end]
    if start == 0 or _QUESTION.search(last) or (says and lexicon(lang).spans(fold(last))["rejects"]):
        return False
    wanted = _patterns(lexicon(lang))[0 if says else 1]
    words = list(_word().finditer(last))[: _FEW + 1]
    found = next(filter(None, (wanted.match(last, word.start()) for word in words)), None)
    return found is not None and _skip(last, found.end()) == len(last)


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    return re.compile(rf"[\w{marks()}]+")


def _announced(text: str, position: int, lang: str | None) -> bool | None:
    """Return what is said within a few words behind an announcement."""
    for _ in range(_FEW):
        position = _skip(text, position)
        said = _said(text, position, lang)
        word = _word().match(text, position)
        if said is not None or word is None:
            return said
        position = word.end()
    return None


def _skip(text: str, position: int) -> int:
    found = _MARKS.match(text, position)
    return found.end() if found else position


def _said(text: str, start: int, lang: str | None) -> bool | None:
    """Return what a text says that has yes or no at a position."""
    agrees, disagrees, unsettled, joins = _patterns(lexicon(lang))
    first = _longest(text, start, agrees, disagrees)
    if first is None:
        return None
    says, end = first
    neither = unsettled.match(text, start)
    if neither is not None and neither.end() > end:
        return None
    joined = joins.match(text, end)
    second = _longest(text, joined.end() if joined else _skip(text, end), agrees, disagrees)
    if second is not None and second[0] != says:
        if not says and not joined and not text[end : _skip(text, end)].strip():
            # "not right"
            return False
        behind = text[second[1] :].lstrip()
        if joined or not behind[:1].isalnum():
            return None
    return says


def _longest(text: str, at: int, agrees: re.Pattern[str], disagrees: re.Pattern[str]) -> tuple[bool, int] | None:
    """Return the word of agreement or disagreement that begins there, and its end; the longer one if both do."""
    found = [
        (match.end(), says) for says, each in ((True, agrees), (False, disagrees)) if (match := each.match(text, at))
    ]
    if not found:
        return None
    end, says = max(found)
    return says, end


@lru_cache(maxsize=64)
def _patterns(known: Lexicon) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    words = known.words
    joins = "|".join(map(re.escape, words["joins"]))
    return (
        re.compile(_whole_words(words["yes"]), re.IGNORECASE),
        re.compile(_whole_words(words["no"]), re.IGNORECASE),
        re.compile(_whole_words([word for field in _NEITHER for word in words[field]]), re.IGNORECASE),
        # "and" is written together with the next word in Arabic and Hebrew
        re.compile(rf"\s*[وו](?=\w)|[\s/,،]*(?:{joins})\s*|\s*/\s*", re.IGNORECASE),
    )


def _whole_words(words: Sequence[str]) -> str:
    """Return a pattern of words that no letter follows, also where a script has no spaces, unless they take endings."""
    return "|".join(re.escape(word.rstrip("~")) + ("" if word.endswith("~") else r"(?!\w)") for word in words)
