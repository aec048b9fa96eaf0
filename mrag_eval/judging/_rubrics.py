"""Rubrics of a judge: the prompt about one row, and the reader of the reply.

No text of a sample decides a verdict by its form. Three things see to that:

1. In the prompt, samples are defused (:func:`mrag_eval.prompts.defuse`): braces, verdict tags, the prompt's own tags
   and lists of numbers are written in other characters. A judge that repeats what it was shown writes no verdict.
2. What a reply quotes from the sample (:class:`Quotations`) is not read, whatever the characters and escapes in which
   the judge puts it back.
3. A reply with two different verdicts gives no verdict, and the judge is asked again. A JSON verdict must have both
   keys, justification and answer: a bare ``{"answer": ...}`` is not a verdict.

These rules cannot detect a judge that, persuaded by the sample, writes a verdict in its own words. Nor do they
distinguish a verdict in a tag, or a list, from a sample that is the same and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from mrag_eval.core import YES_NO, Hit, Passage, RagDoc, VerdictScale
from mrag_eval.judging._quotations import Quotations
from mrag_eval.models import Parsed, Parser, Verdict, parse_list, parse_verdict_json, parse_verdict_tag
from mrag_eval.platform import ConfigError
from mrag_eval.prompts import PromptTemplate, builtin_names, load_template

T = TypeVar("T")

ReplyForm = Literal["json", "tag"]
# Built-in prompts that give no verdict on an answer, and their purposes.
_NO_VERDICTS = {"relevance": "lists passages", "sufficiency": "judges the passages together"}


@dataclass(frozen=True, slots=True)
class Case:
    """The content of one row for a judge. ``passages`` are records with ``text`` and ``lang``, numbered from 1.

    ``country``: the country in which the question is asked, empty if that is not known. ``choices`` and ``extra`` are
    the row's own.
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


@dataclass(frozen=True)
class Rubric(Generic[T]):
    """A judge's task: the prompt, and the reader of its replies. Other judges differ in these two only.

    ``gives`` names the variables of the prompt beyond those of every template. Raises ConfigError for a template with
    another one.
    """

    template: PromptTemplate
    read: Callable[[str, Case, Quotations], Parsed[T]]
    gives: tuple[str, ...]

    def __post_init__(self) -> None:
        self.template.check_variables(self.gives)

    def conversation(self, case: Case) -> list[dict[str, str]]:
        """Return the messages: text shared by all cases first, so that providers can reuse it, the sample last."""
        doc = {"query": case.query, "query_lang": case.query_lang, "choices": case.choices, "extra": case.extra}
        texts: dict[str, str | tuple[str, ...]] = {name: getattr(case, name) for name in self.gives}
        system, user = self.template.render(doc, case.passages, texts)
        turns = [{"role": "system", "content": system}] if system else []
        return [*turns, {"role": "user", "content": user}]

    def parser(self, case: Case) -> Parser[T]:
        """Return the reader of the replies about ``case``. It never raises, whatever the reply."""
        quotations = Quotations(case.texts(self.template.variables))
        return lambda reply: self.read(reply, case, quotations)


def verdict_prompts() -> list[str]:
    """Return the names of the built-in prompts that give a verdict on an answer."""
    return [name for name in builtin_names("judge") if name not in _NO_VERDICTS]


def verdict_rubric(
    prompt: str = "correctness", reply: ReplyForm | None = None, scale: VerdictScale = YES_NO
) -> Rubric[Verdict]:
    """Return the rubric of a right answer, for one of :func:`verdict_prompts` or the path of a template.

    ``reply`` is the form of its verdict: by default ``tag`` for a prompt that writes the tag alone, else ``json``.
    ``scale`` are the verdicts that a template asks for. Variables of a template, in addition to those of every prompt:
    ``golden_answers`` and ``answer``. ``passages`` are those that were shown. Raises ConfigError for a template that
    does not ask for a verdict on the scale.
    """
    template = load_template(prompt, role="judge")
    if prompt in _NO_VERDICTS:
        raise ConfigError(
            f"judge.prompt: '{prompt}' {_NO_VERDICTS[prompt]} and gives no verdict on an answer",
            f"use {', '.join(verdict_prompts())} or the path of your own template",
        )
    named: dict[ReplyForm, str] = {"json": f'"{scale.key}"', "tag": f"<{scale.tag}>"}
    asked = [form for form, name in named.items() if name in template.source]
    form = reply or (asked or ["json"])[0]
    if scale.kind != "yes/no" and form not in asked:
        raise ConfigError(
            f"judge.scale: the prompt '{prompt}' does not ask for {named[form]}, in which a verdict of {scale.words} "
            "is read",
            f"it asks for {named[asked[0]]}: set judge.reply: {asked[0]} (judge answers --reply {asked[0]})"
            if asked
            else "give the path of a template of your own that does (docs/extend.md), or, if this one asks for yes or "
            "no, judge.scale: yes/no (judge answers --scale yes/no)",
        )
    read = partial(_read_tag if form == "tag" else _read_json, scale=scale)
    return Rubric(template, read, ("golden_answers", "answer"))


def relevance_rubric(prompt: str = "relevance") -> Rubric[list[int]]:
    """Return the rubric of passages that contain the answer, by number from 1 (Cross-Lingual Cost, Prompt A.3)."""
    return Rubric(load_template(prompt, role="judge"), _read_list, ("golden_answers",))


def sufficiency_rubric(prompt: str = "sufficiency") -> Rubric[Verdict]:
    """Return the rubric of passages that suffice for an answer in the question's country (XRAG, Appendix A).

    Variables of a user's template, in addition to those of every prompt: ``country``, which may be empty.
    """
    return Rubric(load_template(prompt, role="judge"), _read_sufficient, ("country",))


def _read_sufficient(reply: str, case: Case, quotations: Quotations) -> Parsed[Verdict]:
    own = quotations.without_objects(reply, ("justification", "sufficient"))
    return parse_verdict_json(own, "sufficient", "neither 'yes' nor 'no'")


def _read_json(reply: str, case: Case, quotations: Quotations, scale: VerdictScale) -> Parsed[Verdict]:
    own = quotations.without_objects(reply, ("justification", scale.key))
    return parse_verdict_json(own, scale.key, _otherwise(scale, "neither 'correct' nor 'incorrect'"), scale)


def _read_tag(reply: str, case: Case, quotations: Quotations, scale: VerdictScale) -> Parsed[Verdict]:
    words = _otherwise(scale, "neither 'true' nor 'false'")
    return parse_verdict_tag(reply, scale.tag, quotations.quotes, words, scale)


def _otherwise(scale: VerdictScale, yes_no: str) -> str:
    return yes_no if scale.kind == "yes/no" else f"none of {scale.words}"


def _read_list(reply: str, case: Case, quotations: Quotations) -> Parsed[list[int]]:
    return parse_list(reply, len(case.passages), quotations.quotes)
