"""Parsers of model replies in ``mrag-eval build qa``: a question with its answer, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mrag_eval.building.steps._asking import fault
from mrag_eval.core import as_verdict, base_language, is_language, language_name
from mrag_eval.metrics import LanguageDetector, ScriptDetector, accepts, default_detector
from mrag_eval.models import Parsed, parse_json, parse_tag

# The checker's decisions, and the reason for dropping an item that fails one.
CHECKS = {
    "answerable": "not answerable",
    "faithful": "not faithful",
    "self_contained": "not self-contained",
    "natural": "not natural",
    "fits": "not as drawn",
}
# The language of shorter texts is identified by script or not at all: detectors guess there, especially on names in
# answers.
_MIN_CHARS = {"question": 20, "answer": 40}


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and its answer."""

    question: str
    answer: str


def read_pair(reply: str, lang: str, languages: Sequence[str]) -> Parsed[Pair]:
    """Parse the pair in a reply: two tags, both texts in ``lang`` if that can be detected (among ``languages``)."""
    texts = []
    for tag in ("question", "answer"):
        parsed = parse_tag(reply, tag)
        if parsed.value is None:
            return Parsed(None, parsed.error)
        text = " ".join(parsed.value.split())
        if not text:
            return Parsed(None, f"<{tag}> is empty")
        texts.append(text)
    for kind, text in zip(("question", "answer"), texts, strict=True):
        found = detected(text, tuple(languages), _MIN_CHARS[kind])
        if is_language(found) and not accepts(base_language(lang), found):
            return fault(
                f"{kind} in another language", f"the {kind} is in {language_name(found)}, not in {language_name(lang)}"
            )
    if texts[0].casefold() == texts[1].casefold():
        return fault("answer repeats the question", "the answer is the question again")
    return Parsed(Pair(*texts))


def read_checks(reply: str) -> Parsed[dict[str, bool]]:
    """Parse all verdicts in a reply."""
    tagged = parse_tag(reply, "verdict")
    if tagged.value is None:
        return Parsed(None, tagged.error)
    parsed = parse_json(tagged.value, tuple(CHECKS))
    if parsed.value is None:
        return Parsed(None, parsed.error)
    verdicts = {key: as_verdict(parsed.value[key]) for key in CHECKS}
    unclear = next((key for key, verdict in verdicts.items() if verdict is None), None)
    if unclear is not None:
        return Parsed(None, f"'{unclear}' is {parsed.value[unclear]!r:.60}, neither 'yes' nor 'no'")
    return Parsed({key: bool(verdict) for key, verdict in verdicts.items()})


def detected(text: str, languages: tuple[str, ...], min_chars: int) -> str:
    """Return the language of ``text``.

    The script decides if only one of ``languages`` uses it, else the default detector for texts of at least
    ``min_chars`` characters, else ``und``.
    """
    return _detector(languages, min_chars).detect([text])[0]


class _LongTexts:
    """The default detector, restricted to texts that are long enough for it."""

    supported = None

    def __init__(self, min_chars: int) -> None:
        self._min_chars = min_chars

    def detect(self, texts: Sequence[str]) -> list[str]:
        labels = default_detector().detect([text.replace("\n", " ") for text in texts])
        return [label if len(text) >= self._min_chars else "und" for text, label in zip(texts, labels, strict=True)]


@lru_cache(maxsize=16)
def _detector(languages: tuple[str, ...], min_chars: int) -> LanguageDetector:
    return ScriptDetector(languages, fallback=_LongTexts(min_chars))
