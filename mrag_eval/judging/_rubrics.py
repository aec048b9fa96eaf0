"""Rubrics of a judge: the prompt about one row, and the reader of the reply.

No text of a sample decides a verdict by its form. A template that shows ``code`` asks for the verdict under a name of
this one request: the key ``"answer_{{ code }}"``, or the tag ``<grade_{{ code }}>``. The code is a hash of the request,
and one that nothing in the request contains. So no sample holds the name, in whatever characters, and nothing else in
a reply is read. Quotations need no rules there.

A template without it, as the papers' are, has three:

1. In the prompt, samples are defused (:func:`mrag_eval.prompts.defuse`): braces, verdict tags, the prompt's own tags
   and lists of numbers are written in other characters. A judge that repeats what it was shown writes no verdict.
2. What a reply quotes from the sample (:class:`Quotations`) is not read, whatever the characters and escapes in which
   the judge puts it back.
3. A reply with two different verdicts gives no verdict, and the judge is asked again. A JSON verdict must have both
   keys, justification and answer: a bare ``{"answer": ...}`` is not a verdict.

These rules do not distinguish a verdict in a tag, or a list, from a sample that is the same and nothing else. Neither
way detects a judge that is persuaded by the sample, and then gives a verdict of its own.
"""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import count
from typing import Any, Generic, Literal, TypeVar

from mrag_eval.core import SUPPORT, YES_NO, Hit, Passage, RagDoc, VerdictScale
from mrag_eval.languages import known_languages
from mrag_eval.models import (
    LONGEST_REPLY,
    Parsed,
    Parser,
    Verdict,
    json_objects,
    parse_json,
    parse_list,
    parse_verdict_json,
    parse_verdict_tag,
)
from mrag_eval.platform import ConfigError, content_key
from mrag_eval.prompts import PromptTemplate, builtin_names, load_template
from mrag_eval.text import fold

_BRACES = str.maketrans("｛｝﹛﹜", "{}{}")
# The start of an object in any form: a brace, an escape or an entity.
_BRACE = re.compile(r"[{｛﹛︷\\＼﹨&＆﹠]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[nrtbf])")
# Characters without width, which may be anywhere in a word.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_EMPTY_LIST = re.compile(r"\[\s*\]")
_WORD = re.compile(r"[^\W_]+")
# A word with the spaces and the markup around it is shorter than this; of a script without spaces, this many
# characters make a word.
_REACH, _ENDING = 200, 3


def _words(text: str) -> list[str]:
    """Return the folded words of a text: escapes, entities and everything but letters and digits make no difference."""
    plain = _ESCAPE.sub(lambda found: chr(int(code, 16)) if (code := found[1] or found[2]) else " ", _visible(text))
    return _WORD.findall(fold(_EMPTY_LIST.sub(" nothing ", _visible(html.unescape(plain))), search=True))


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


class Quotations:
    """The texts of a sample, to recognise them in replies."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)
        self._around: dict[str, tuple[set[str], set[str]]] = {}

    @cached_property
    def _samples(self) -> list[str]:
        return [f" {' '.join(_words(text))} " for text in self._texts]

    @cached_property
    def _with_objects(self) -> list[str]:
        return ["".join(_words(text)) for text in self._texts if _BRACE.search(text)]

    def without_objects(self, reply: str, keys: Collection[str]) -> str:
        """Return the end of the reply, with blanks for JSON objects that are in the sample.

        Complete ones without any of the keys may stay. Objects in full-width braces, as prompts show them, are
        recognised as well.
        """
        reply = reply[-LONGEST_REPLY:]
        objects, unreadable = json_objects(reply.translate(_BRACES))
        spans = [(found.start, found.end) for found in objects if not found.value.keys().isdisjoint(keys)]
        for start, end in [*spans, *((fault.start, fault.end) for fault in unreadable)] if self._with_objects else ():
            unspaced = "".join(_words(reply[start:end]))
            if any(unspaced in sample for sample in self._with_objects):
                reply = reply[:start] + " " * (end - start) + reply[end:]
        return reply

    def quotes(self, reply: str, start: int, end: int) -> bool:
        """Return whether a part of a reply is in the sample next to the same word as here.

        For parts so short that a judge may write them without quoting; one that is a whole text of the sample is not a
        quotation.
        """
        left = _words(reply[max(0, start - _REACH) : start])
        right = _words(reply[end : end + _REACH])
        if not left and not right:
            return False
        part = " ".join(_words(reply[start:end]))
        if part not in self._around:
            self._around[part] = self._neighbours(part)
        before, after = self._around[part]
        return bool((left and _ending(left[-1]) in before) or (right and _beginning(right[0]) in after))

    def _neighbours(self, part: str) -> tuple[set[str], set[str]]:
        """Return the words before and after a part, wherever it is in the sample."""
        before, after = set(), set()
        for sample in self._samples:
            at = sample.find(f" {part} ")
            while at >= 0:
                end = at + len(part) + 1
                left = sample[sample.rfind(" ", 0, at) + 1 : at]
                right = sample[end + 1 : sample.find(" ", end + 1)] if end + 1 < len(sample) else ""
                before |= {_ending(left)} - {""}
                after |= {_beginning(right)} - {""}
                at = sample.find(f" {part} ", at + 1)
        return before, after


def _ending(word: str) -> str:
    return word if word.isascii() else word[-_ENDING:]


def _beginning(word: str) -> str:
    return word if word.isascii() else word[:_ENDING]


T = TypeVar("T")

ReplyForm = Literal["json", "tag"]
# Built-in prompts that give no verdict on an answer, and their purposes.
_NO_VERDICTS = {
    "relevance": "lists passages",
    "sufficiency": "judges the passages together",
    "support": "judges claims",
}
# The key of the passage that decides a claim.
_PASSAGE = "passage"
# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# The number of hexadecimal digits of a request's code, and what stands for one until the code is known: a template may
# show something only where there is one.
_DIGITS, _ANY_CODE = 8, "c0dec0de"
# A digit of another script, and signs that are neither letters nor digits.
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_OTHER = bytes(n for n in range(128) if not chr(n).isalnum())


@dataclass(frozen=True, slots=True)
class Case:
    """The content of one row for a judge. ``passages`` are records with ``text`` and ``lang``, numbered from 1.

    ``country``: the country in which the question is asked, empty if that is not known. ``choices`` and ``extra`` are
    the row's own. ``claim`` is the part of the answer that is judged, empty for all of it.
    """

    id: str
    query: str
    query_lang: str
    golden_answers: tuple[str, ...]
    answer: str = ""
    passages: tuple[Mapping[str, Any], ...] = ()
    country: str = ""
    choices: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    claim: str = ""

    @classmethod
    def of(
        cls,
        doc: RagDoc,
        answers: tuple[str, ...] = (),
        answer: str = "",
        passages: Sequence[Hit | Passage] = (),
        country: str = "",
    ) -> Case:
        """Return the case of a row with these passages, in their order."""
        parts = ("text", "lang", "title", "date")
        shown = tuple({part: getattr(passage, part, "") for part in parts} for passage in passages)
        return cls(doc.id, doc.query, doc.query_lang, answers, answer, shown, country, doc.choices or (), doc.extra)

    def texts(self, variables: Collection[str]) -> Iterator[str]:
        """Return every text of the sample that goes into a prompt with these variables."""
        yield from (self.answer, self.query, *self.golden_answers)
        for passage in self.passages if "passages" in variables else ():
            yield from (part for part in passage.values() if isinstance(part, str))
        yield from self.choices if "options" in variables else ()
        yield from (v for v in self.extra.values() if "extra" in variables and isinstance(v, str))


# Reads a reply about a case, given its quotations, and what follows a name of the verdict: ``_`` and the code of the
# request, or nothing.
Reader = Callable[[str, Case, Quotations, str], Parsed[T]]


@dataclass(frozen=True)
class Rubric(Generic[T]):
    """A judge's task: the prompt, and the reader of its replies. Other judges differ in these two only.

    ``gives`` names the variables of the prompt beyond those of every template; with ``code`` among them, a template
    may show the code of a request. ``judges`` are those that it must show, as the verdict is about them. Raises
    ConfigError for a template with another variable, and for one that shows nothing of one of these.
    """

    template: PromptTemplate
    read: Reader[T]
    gives: tuple[str, ...]
    judges: tuple[str, ...]

    def __post_init__(self) -> None:
        self.template.check_variables(self.gives)
        turns = partial(_turns, self.template, self.gives)
        for name in self.judges:
            if not any(turns(case) != turns(_other(case, name)) for case in _probes()):
                raise ConfigError(
                    f"prompt template {self.template.name}: it does not show '{name}', about which the judge is asked",
                    "write it into the template; docs/extend.md has the variables",
                )

    def request(self, case: Case) -> tuple[list[dict[str, str]], Parser[T]]:
        """Return the messages about a case, and the reader of the replies, which never raises, whatever the reply.

        Text shared by all cases comes first in the messages, so that providers can reuse it, the sample last.
        """
        turns = _turns(self.template, self.gives, case)
        if "code" not in self.template.variables:
            quotations = Quotations(case.texts(self.template.variables))
            return turns, lambda reply: self.read(reply, case, quotations, "")
        code = _code(self.template.sha256, turns)
        turns = _turns(self.template, self.gives, case, code)
        return turns, lambda reply: self.read(reply, case, Quotations(()), f"_{code}")


def _turns(template: PromptTemplate, gives: Collection[str], case: Case, code: str = _ANY_CODE) -> list[dict[str, str]]:
    doc = {"query": case.query, "query_lang": case.query_lang, "choices": case.choices, "extra": case.extra}
    texts: dict[str, str | tuple[str, ...]] = {name: code if name == "code" else getattr(case, name) for name in gives}
    system, user = template.render(doc, case.passages, texts)
    turns = [{"role": "system", "content": system}] if system else []
    return [*turns, {"role": "user", "content": user}]


def _probes() -> Iterator[Case]:
    """Return a row with all that a template may show, in every language, as a template may have a text for each."""
    passage = {"text": "some text here", "lang": "en", "title": "title", "date": "1841"}
    shown: dict[str, Any] = {"passages": (passage,) * 99, "country": "Varn", "choices": ("choice",) * 26}
    for language in ("en", *known_languages()):
        yield Case("probe", "question", language, ("golden",), "answer", claim="claim", **shown)


def _other(case: Case, variable: str) -> Case:
    """Return a probe with other texts, as many and as long, in a variable that a judge may be asked about."""
    passages = tuple({**passage, "text": "the other text", "title": "other"} for passage in case.passages)
    others: dict[str, Any] = {"answer": "rewans", "claim": "other", "passages": passages}
    return replace(case, **{variable: others[variable]})


def _code(template: str, turns: Sequence[Mapping[str, str]]) -> str:
    """Return the code of a request, the same on any machine: a hash, and of several the first that it does not hold.

    Signs other than letters and digits, those without width, letters and digits of other scripts do not hide one.
    """
    text = unicodedata.normalize("NFKC", "".join(turn["content"] for turn in turns))
    held = _FOREIGN_DIGIT.sub(lambda digit: str(int(digit[0])), text)
    held = held.encode("ascii", "ignore").lower().translate(None, _OTHER).decode()
    codes = (content_key(template, turns, nth)[:_DIGITS] for nth in count())
    return next(code for code in codes if code not in held)


def verdict_prompts() -> list[str]:
    """Return the names of the built-in prompts that give a verdict on an answer."""
    return [name for name in builtin_names("judge") if name not in _NO_VERDICTS]


def verdict_rubric(
    prompt: str = "correctness", reply: ReplyForm | None = None, scale: VerdictScale = YES_NO
) -> Rubric[Verdict]:
    """Return the rubric of a right answer, for one of :func:`verdict_prompts` or the path of a template.

    ``reply`` is the form of its verdict: by default ``tag`` for a prompt that writes the tag alone, else ``json``.
    ``scale`` are the verdicts that a template asks for. Variables of a template, in addition to those of every prompt:
    ``golden_answers``, ``answer`` and ``code``. ``passages`` are those that were shown. Raises ConfigError for a
    template that does not ask for a verdict on the scale in the form.
    """
    template = load_template(prompt, role="judge")
    if prompt in _NO_VERDICTS:
        raise ConfigError(
            f"judge.prompt: '{prompt}' {_NO_VERDICTS[prompt]} and gives no verdict on an answer",
            f"use {', '.join(verdict_prompts())} or the path of your own template",
        )
    gives = ("golden_answers", "answer", "code")
    named: dict[ReplyForm, str] = {"json": f'"{scale.key}"', "tag": f"<{scale.tag}>"}
    asked = [form for form, name in named.items() if _asks(template, gives, name)]
    form = reply or (asked or ["json"])[0]
    _check_code(template, gives, named[form])
    if form not in asked:
        raise ConfigError(
            f"judge.scale: the prompt '{prompt}' does not ask for {named[form]}, in which a verdict of {scale.words} "
            "is read",
            f"it asks for {named[asked[0]]}: set judge.reply: {asked[0]} (judge answers --reply {asked[0]})"
            if asked
            else f"write {named[form]} into the template, or set judge.scale to the verdicts that it asks for: a list, "
            "or yes/no (judge answers --scale 0,1,2, --scale yes/no)",
        )
    words = {"json": "neither 'correct' nor 'incorrect'", "tag": "neither 'true' nor 'false'"}[form]
    if scale.kind != "yes/no":
        words = f"none of {scale.words}"
    if form == "tag":
        read: Reader[Verdict] = partial(_read_tag, words=words, scale=scale)
    else:
        read = partial(_read_json, key=scale.key, words=words, scale=scale)
    return Rubric(template, read, gives, judges=("answer",))


def relevance_rubric(prompt: str = "relevance") -> Rubric[list[int]]:
    """Return the rubric of passages that contain the answer, by number from 1 (Cross-Lingual Cost, Prompt A.3)."""
    return Rubric(load_template(prompt, role="judge"), _read_list, ("golden_answers",), judges=("passages",))


def sufficiency_rubric(prompt: str = "sufficiency") -> Rubric[Verdict]:
    """Return the rubric of passages that suffice for an answer in the question's country (XRAG, Appendix A).

    Variables of a user's template, in addition to those of every prompt: ``country``, which may be empty, and ``code``.
    """
    template, gives = load_template(prompt, role="judge"), ("country", "code")
    _check_code(template, gives, '"sufficient"')
    read = partial(_read_json, key="sufficient", words="neither 'yes' nor 'no'")
    return Rubric(template, read, gives, judges=("passages",))


def support_rubric(prompt: str = "support") -> Rubric[Verdict]:
    """Return the rubric of what passages say of a claim, and which of them decides it.

    Variables of a template, in addition to those of every prompt: ``answer``, ``claim`` and ``code``, which it must
    have behind both of its keys. Raises ConfigError for one that does not.
    """
    template, gives = load_template(prompt, role="judge"), ("answer", "claim", "code")
    keys = (f'"{SUPPORT.key}"', f'"{_PASSAGE}"')
    if "code" not in template.variables or not all(_asks(template, gives, key) for key in keys):
        raise ConfigError(
            f"judge.grounded.prompt: '{prompt}' does not ask for the label of a claim and the passage that decides it",
            f'write "{SUPPORT.key}_{{{{ code }}}}" and "{_PASSAGE}_{{{{ code }}}}" as the keys of its JSON',
        )
    return Rubric(template, _read_support, gives, judges=("claim", "passages"))


def _asks(template: PromptTemplate, gives: Collection[str], name: str) -> bool:
    """Return whether a prompt has a name in quotes or brackets; one that shows its code must have it in the name."""
    asked = f"{name[:-1]}_{_ANY_CODE}{name[-1]}" if "code" in template.variables else name
    return any(asked in turn["content"] for case in _probes() for turn in _turns(template, gives, case))


# a run makes its rubrics several times, and says it once
@lru_cache(maxsize=64)
def _check_code(template: PromptTemplate, gives: Collection[str], name: str) -> None:
    """Say of a user's template that shows no code that answers can forge its verdicts, as those of papers may be.

    Raises ConfigError for one that shows the code, but not in the name of its verdict.
    """
    if "code" not in template.variables and template.name not in builtin_names("judge"):
        asked = f"{name[:-1]}_{{{{ code }}}}{name[-1]}"
        log.warning("%s: an answer can forge its verdicts; ask for %s in place of %s", template.name, asked, name)
    if "code" in template.variables and not _asks(template, gives, name):
        raise ConfigError(
            f"prompt template {template.name}: it shows the code of a request, but asks for no verdict under it",
            f"write {name[:-1]}_{{{{ code }}}}{name[-1]} in place of {name}",
        )


def _read_json(
    reply: str, case: Case, quotations: Quotations, mark: str, key: str, words: str, scale: VerdictScale = YES_NO
) -> Parsed[Verdict]:
    required = (f"{key}{mark}",) if mark else ("justification", key)
    return parse_verdict_json(quotations.without_objects(reply, required), required[-1], words, scale, required)


def _read_support(reply: str, case: Case, quotations: Quotations, mark: str) -> Parsed[Verdict]:
    found = _read_json(reply, case, quotations, mark, SUPPORT.key, f"none of {SUPPORT.words}", SUPPORT)
    if found.value is None or found.value.verdict == "not_found":
        return found
    said = (parse_json(reply, (f"{SUPPORT.key}{mark}",)).value or {}).get(f"{_PASSAGE}{mark}")
    shown = {str(n): n for n, passage in enumerate(case.passages, 1) if passage["text"]}
    if isinstance(said, bool) or str(said) not in shown:
        numbers = ", ".join(shown)
        return Parsed(None, f"'{_PASSAGE}{mark}' is {said!r:.60}, not the number of a passage ({numbers})")
    return Parsed(replace(found.value, passage=shown[str(said)]))


def _read_tag(
    reply: str, case: Case, quotations: Quotations, mark: str, words: str, scale: VerdictScale
) -> Parsed[Verdict]:
    return parse_verdict_tag(reply, f"{scale.tag}{mark}", quotations.quotes, words, scale)


def _read_list(reply: str, case: Case, quotations: Quotations, mark: str) -> Parsed[list[int]]:
    return parse_list(reply, len(case.passages), quotations.quotes)
