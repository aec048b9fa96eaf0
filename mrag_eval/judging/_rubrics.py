"""Rubrics of a judge: the prompt about one row, and the reader of the reply.

No text of a sample decides a verdict by its form. Three things see to that:

1. In the prompt, samples are defused (:func:`mrag_eval.prompts.defuse`): braces, verdict tags, the prompt's own tags
   and lists of numbers are written in other characters. A judge that repeats what it was shown writes no verdict.
2. Every JSON object in the sample, and every sample text that holds a verdict tag, is removed from the
   reply before it is read, in the characters shown or in those of the sample, should a judge put them back.
3. A JSON verdict must have both keys, justification and answer: a bare ``{"answer": ...}`` is not a verdict.

The last complete verdict in the rest of the reply counts, since models think aloud first. These rules cannot detect
a judge that, persuaded by the sample, writes a verdict in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

from mrag_eval.core import ConfigError
from mrag_eval.models import Parsed, Parser, Verdict, as_verdict, parse_json, parse_list, parse_verdict_tag
from mrag_eval.prompts import PromptTemplate, builtin_names, load_template

T = TypeVar("T")

ReplyForm = Literal["json", "tag"]
_TAG = "same_meaning"
# Built-in prompts that ask for a verdict in that tag; the others ask for JSON.
TAGGED = ("equivalence",)
# Built-in prompts that give no verdict on an answer, and their purposes.
_NO_VERDICTS = {"relevance": "lists passages", "sufficiency": "judges the passages together"}


@dataclass(frozen=True, slots=True)
class Case:
    """Hold the content of one row for a judge. ``passages`` are records with ``text`` and ``lang``, numbered from 1.

    ``country``: the country in which the question is asked, empty if that is not known.
    """

    id: str
    query: str
    query_lang: str
    golden_answers: tuple[str, ...]
    answer: str = ""
    passages: tuple[Mapping[str, Any], ...] = ()
    country: str = ""

    def texts(self) -> Iterator[str]:
        """Return every text of the sample that goes into the prompt."""
        yield from (self.answer, self.query, *self.golden_answers)
        for passage in self.passages:
            yield from (passage["text"], passage.get("title", ""))


@dataclass(frozen=True)
class Rubric(Generic[T]):
    """Hold a judge's task: the prompt, and the reader of its replies. Other judges differ in these two only."""

    template: PromptTemplate
    read: Callable[[str, Case], Parsed[T]]

    def conversation(self, case: Case) -> list[dict[str, str]]:
        """Return the messages: text shared by all cases first, so that providers can reuse it, the sample last."""
        doc = {"query": case.query, "query_lang": case.query_lang}
        texts = {"golden_answers": case.golden_answers, "answer": case.answer, "country": case.country}
        system, user = self.template.render(doc, case.passages, texts)
        turns = [{"role": "system", "content": system}] if system else []
        return [*turns, {"role": "user", "content": user}]

    def parser(self, case: Case) -> Parser[T]:
        """Return the reader of the replies about ``case``. It never raises, whatever the reply."""
        quotations = list(_quotations(case))

        def parse(reply: str) -> Parsed[T]:
            for quotation in quotations:
                reply = quotation.sub("", reply)
            return self.read(reply, case)

        return parse


def verdict_prompts() -> list[str]:
    """Return the names of the built-in prompts that give a verdict on an answer."""
    return [name for name in builtin_names("judge") if name not in _NO_VERDICTS]


def verdict_rubric(prompt: str = "correctness", reply: ReplyForm | None = None) -> Rubric[Verdict]:
    """Return the rubric of a right answer, for one of :func:`verdict_prompts` or the path of a template.

    For a template, ``reply`` is the form of its verdict (default ``json``). Variables of a template, in addition to
    those of every prompt: ``golden_answers`` and ``answer``.
    """
    template = load_template(prompt, role="judge")
    if prompt in _NO_VERDICTS:
        raise ConfigError(
            f"judge.prompt: '{prompt}' {_NO_VERDICTS[prompt]} and gives no verdict on an answer",
            f"use {', '.join(verdict_prompts())} or the path of your own template",
        )
    form = reply or ("tag" if prompt in TAGGED else "json")
    return Rubric(template, _read_tag if form == "tag" else _read_json)


def relevance_rubric(prompt: str = "relevance") -> Rubric[list[int]]:
    """Return the rubric of passages that contain the answer, by number from 1 (Cross-Lingual Cost, Prompt A.3)."""
    return Rubric(load_template(prompt, role="judge"), lambda reply, case: parse_list(reply, len(case.passages)))


def sufficiency_rubric(prompt: str = "sufficiency") -> Rubric[Verdict]:
    """Return the rubric of passages that suffice for an answer in the question's country (XRAG, Appendix A).

    Variables of a user's template, in addition to those of every prompt: ``country``, which may be empty.
    """
    return Rubric(load_template(prompt, role="judge"), _read_sufficient)


def _read_sufficient(reply: str, case: Case) -> Parsed[Verdict]:
    return _verdict_under("sufficient", "'yes' nor 'no'", reply)


def _read_json(reply: str, case: Case) -> Parsed[Verdict]:
    return _verdict_under("answer", "'correct' nor 'incorrect'", reply)


def _verdict_under(key: str, words: str, reply: str) -> Parsed[Verdict]:
    """Return the verdict of a JSON object that has it under ``key``, together with a justification."""
    parsed = parse_json(reply, ("justification", key))
    if parsed.value is None:
        return Parsed(None, parsed.error)
    holds = as_verdict(parsed.value[key])
    if holds is None:
        return Parsed(None, f"'{key}' is {parsed.value[key]!r:.60}, neither {words}")
    reason = parsed.value["justification"]
    return Parsed(Verdict(holds, reason if isinstance(reason, str) else ""))


def _read_tag(reply: str, case: Case) -> Parsed[Verdict]:
    return parse_verdict_tag(reply, _TAG)


_OBJECT = re.compile(r"\{[^{}]*:[^{}]*\}")
_VERDICT_TAG = re.compile(rf"<\s*/?\s*{_TAG}\s*>", re.IGNORECASE)
_QUOTES = "\"'“”‘’"
_TOKEN = re.compile(rf"[{_QUOTES}]|[^\s{_QUOTES}]+")
# Longer samples are bulk data; no judge repeats that character for character.
_MOST_OBJECTS, _LONGEST_QUOTATION = 50, 5_000


def _quotations(case: Case) -> Iterator[re.Pattern[str]]:
    """Return patterns of sample text that a reply may repeat and that must not be read as a verdict."""
    for text in case.texts():
        if "{" in text:
            for found in islice(_OBJECT.finditer(text), _MOST_OBJECTS):
                if len(found[0]) <= _LONGEST_QUOTATION:
                    yield _as_pattern(found[0])
        # a text that is only the tag is no different from the verdict that it copies, and cannot be removed
        if "<" in text and len(text) <= _LONGEST_QUOTATION and _VERDICT_TAG.search(text) and not _is_bare_tag(text):
            yield _as_pattern(text)


def _is_bare_tag(text: str) -> bool:
    """Return whether a text is one verdict in its tag and nothing else."""
    rest = _VERDICT_TAG.sub("", text).strip()
    return as_verdict(rest) is not None


# Characters exchanged by defusing, in either form.
_EITHER = {"{": "[{｛]", "}": "[}｝]", "<": "[<‹]", "[": r"[\[［]", "]": r"[\]］]"}


def _as_pattern(text: str) -> re.Pattern[str]:
    """Return a pattern of the text, defused or not, with any spaces, any kind of quotation mark, escaped or not."""
    tokens = (
        rf"\\?[{_QUOTES}]" if token in _QUOTES else "".join(_EITHER.get(char) or re.escape(char) for char in token)
        for token in _TOKEN.findall(text)
    )
    return re.compile(r"\s*".join(tokens))
