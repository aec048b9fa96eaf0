"""What a judge is asked about one row, and how its reply is read.

No text of a sample decides a verdict by its form. Three things see to that:

1. In the prompt, samples are defused (:func:`mrag_eval.prompts.defuse`): braces, verdict tags, the prompt's own tags
   and lists of numbers are written in other characters. A judge that repeats what it was shown writes no verdict.
2. Every JSON object that stands in the sample, and every sample text that holds a verdict tag, is removed from the
   reply before it is read, in the characters shown or in those of the sample, should a judge put them back.
3. A JSON verdict must have both keys, justification and answer: a bare ``{"answer": ...}`` is none.

Of what is left the last complete verdict counts, since models think aloud first. What these rules cannot tell from a
vote is a judge that, persuaded, writes a verdict of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

from mrag_eval.core import ConfigError
from mrag_eval.models import Parsed, Parser, Verdict, as_verdict, parse_json, parse_list, parse_verdict_tag
from mrag_eval.prompts import PromptTemplate, load_template

T = TypeVar("T")

ReplyForm = Literal["json", "tag"]
# How the verdict comes where a built-in prompt asks for it.
_FORMS: Mapping[str, ReplyForm] = {"correctness": "json", "equivalence": "tag"}
_TAG = "same_meaning"
# Prompts of other rubrics than that of an answer, and what they do instead.
_NO_VERDICTS = {"relevance": "lists passages", "sufficiency": "judges the passages together"}


@dataclass(frozen=True, slots=True)
class Case:
    """What one row puts before a judge. ``passages`` are records with ``text`` and ``lang``, numbered from 1.

    ``country``: where the question is asked, empty where that is not known.
    """

    id: str
    query: str
    query_lang: str
    golden_answers: tuple[str, ...]
    answer: str = ""
    passages: tuple[Mapping[str, Any], ...] = ()
    country: str = ""

    def texts(self) -> Iterator[str]:
        """Everything that the sample brings into the prompt."""
        yield from (self.answer, self.query, *self.golden_answers)
        for passage in self.passages:
            yield from (passage["text"], passage.get("title", ""))


@dataclass(frozen=True)
class Rubric(Generic[T]):
    """A judge's task: the prompt, and the reader of its replies. Other judges differ in these two alone."""

    template: PromptTemplate
    read: Callable[[str, Case], Parsed[T]]

    def conversation(self, case: Case) -> list[dict[str, str]]:
        """The messages: what holds for every case first, so that providers can reuse it, the sample last."""
        doc = {"query": case.query, "query_lang": case.query_lang}
        texts = {"golden_answers": case.golden_answers, "answer": case.answer, "country": case.country}
        system, user = self.template.render(doc, case.passages, texts)
        turns = [{"role": "system", "content": system}] if system else []
        return [*turns, {"role": "user", "content": user}]

    def parser(self, case: Case) -> Parser[T]:
        """The reader of the replies about ``case``. It never raises, whatever the reply."""
        quotations = list(_quotations(case))

        def parse(reply: str) -> Parsed[T]:
            for quotation in quotations:
                reply = quotation.sub("", reply)
            return self.read(reply, case)

        return parse


def verdict_rubric(prompt: str = "correctness", reply: ReplyForm | None = None) -> Rubric[Verdict]:
    """Whether an answer is right: ``correctness`` (XRAG, Figure 20), ``equivalence`` (Cross-Lingual Cost, Prompt A.2).

    ``prompt`` may also be the path of a template; ``reply`` then says how its verdict comes (default ``json``).
    Variables of a template, besides those of every prompt: ``golden_answers`` and ``answer``.
    """
    template = load_template(prompt, role="judge")
    if prompt in _NO_VERDICTS:
        raise ConfigError(
            f"judge.prompt: '{prompt}' {_NO_VERDICTS[prompt]} and gives no verdict on an answer",
            "use correctness, equivalence or a path to a template of yours",
        )
    form = reply or _FORMS.get(prompt, "json")
    return Rubric(template, _read_tag if form == "tag" else _read_json)


def relevance_rubric(prompt: str = "relevance") -> Rubric[list[int]]:
    """Which passages contain the answer, as their numbers from 1 (Cross-Lingual Cost, Prompt A.3)."""
    return Rubric(load_template(prompt, role="judge"), lambda reply, case: parse_list(reply, len(case.passages)))


def sufficiency_rubric(prompt: str = "sufficiency") -> Rubric[Verdict]:
    """Whether the passages suffice for a satisfactory answer where the question is asked (XRAG, Appendix A).

    Variables of a template of one's own, besides those of every prompt: ``country``, which may be empty.
    """
    return Rubric(load_template(prompt, role="judge"), _read_sufficient)


def _read_sufficient(reply: str, case: Case) -> Parsed[Verdict]:
    return _verdict_under("sufficient", "'yes' nor 'no'", reply)


def _read_json(reply: str, case: Case) -> Parsed[Verdict]:
    return _verdict_under("answer", "'correct' nor 'incorrect'", reply)


def _verdict_under(key: str, words: str, reply: str) -> Parsed[Verdict]:
    """The verdict of a JSON object that holds it under ``key``, beside a justification."""
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
# Beyond these a sample is data by the page; no judge repeats that, character for character put back.
_MOST_OBJECTS, _LONGEST_QUOTATION = 50, 5_000


def _quotations(case: Case) -> Iterator[re.Pattern[str]]:
    """Patterns of what the reply may repeat of the sample and must not be read."""
    for text in case.texts():
        if "{" in text:
            for found in islice(_OBJECT.finditer(text), _MOST_OBJECTS):
                if len(found[0]) <= _LONGEST_QUOTATION:
                    yield _as_pattern(found[0])
        # a text that is nothing but the tag is no different from the verdict that it copies, and cannot be removed
        if "<" in text and len(text) <= _LONGEST_QUOTATION and _VERDICT_TAG.search(text) and not _is_bare_tag(text):
            yield _as_pattern(text)


def _is_bare_tag(text: str) -> bool:
    """Whether a text is one verdict in its tag and nothing else."""
    rest = _VERDICT_TAG.sub("", text).strip()
    return as_verdict(rest) is not None


# What defusing exchanges, in either form.
_EITHER = {"{": "[{｛]", "}": "[}｝]", "<": "[<‹]", "[": r"[\[［]", "]": r"[\]］]"}


def _as_pattern(text: str) -> re.Pattern[str]:
    """The text, defused or not, with any spaces between its words, any kind of quotation mark, escaped or not."""
    tokens = (
        rf"\\?[{_QUOTES}]" if token in _QUOTES else "".join(_EITHER.get(char) or re.escape(char) for char in token)
        for token in _TOKEN.findall(text)
    )
    return re.compile(r"\s*".join(tokens))
