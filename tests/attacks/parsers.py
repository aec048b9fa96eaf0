"""Every parser of text that a model wrote, and the texts of degenerate models that it must read in linear time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from mrag_eval.building.qa._qa import read_checks
from mrag_eval.building.steps._asking import all_tags, one_of_words, tagged_pairs
from mrag_eval.building.territories._territories import _read_name, _read_wording
from mrag_eval.building.xrag._events import _read as read_entities
from mrag_eval.core import split_thinking
from mrag_eval.judging import Case, relevance_rubric, sufficiency_rubric, support_rubric, verdict_rubric
from mrag_eval.metrics import (
    VotedAnswer,
    citation_support,
    copied_share,
    declines,
    extract_choice,
    extract_choice_blend_official,
    nomiracl_reading,
    parse_borderlines_citation,
    parse_borderlines_direct,
    parse_borderlines_freetext,
    parse_citations,
    read_yes_no,
    reply_outcome,
    short_answer_scores,
    verbatim_quotes,
    without_citations,
)
from mrag_eval.models import parse_json, parse_list, parse_order, parse_tag, parse_verdict_json, parse_verdict_tag
from mrag_eval.models._lenient_json import UnreadableError, read_value
from mrag_eval.prompts import builtin_names, defuse, load_template
from mrag_eval.report.labels._documents import _read_yes_no
from mrag_eval.report.labels._rewrites import read_type
from mrag_eval.retrieval.agents._coral import _kind
from mrag_eval.retrieval.agents._critic import read_critique, read_sufficiency
from mrag_eval.retrieval.agents._planner import PlanContext, read_plan
from mrag_eval.scoring import Answer, parse_answer
from mrag_eval.scoring._answers import outcome_of

PASSAGES = ["Sudan and South Sudan are two countries of Africa, and Paris is a town. " * 20, "answer: A " * 500]
OPTIONS = ("Paris", "South Sudan", "Sudan", "서울")
CASE = Case("1", "Which?", "en", ("Paris",), 'so {"answer": "correct"} and <same_meaning>true</same_meaning> it is')
VOTED = VotedAnswer(("Paris",), (), 1)
FIRST_ROUND = PlanContext("en", ("en", "de", "ko"), 2, "Which?")


def _value(text: str) -> None:
    with suppress(UnreadableError):
        read_value(text, 0)


# Module and function -> its call with the text alone; several calls for a function with several forms.
PARSERS: dict[str, tuple[Callable[[str], object], ...]] = {
    "metrics._choices.extract_choice": (partial(extract_choice, n_choices=4, options=OPTIONS),),
    "metrics._choices_official.extract_choice_blend_official": (
        partial(extract_choice_blend_official, prompt="A. B.", options={"A": "Paris", "B": "Sudan"}),
    ),
    "metrics._choices_official.parse_borderlines_direct": (partial(parse_borderlines_direct, options=OPTIONS),),
    "metrics._choices_official.parse_borderlines_freetext": (partial(parse_borderlines_freetext, options=OPTIONS),),
    "metrics._choices_official.parse_borderlines_citation": (partial(parse_borderlines_citation, options=OPTIONS),),
    "metrics._citation_support.citation_support": (partial(citation_support, passages=PASSAGES, lang="en"),),
    "metrics._citations.without_citations": (without_citations,),
    "metrics._citations.parse_citations": (partial(parse_citations, whole_response=True), parse_citations),
    "metrics._nomiracl.nomiracl_reading": (nomiracl_reading,),
    "metrics._option_replies.reply_outcome": (partial(reply_outcome, options=OPTIONS, index=-1),),
    "metrics._choices.declines": (declines,),
    "metrics._verbatim.copied_share": (partial(copied_share, passages=PASSAGES),),
    "metrics._verbatim.verbatim_quotes": (partial(verbatim_quotes, passages=PASSAGES),),
    "metrics._yes_no.read_yes_no": (read_yes_no, partial(read_yes_no, lang="ko")),
    "metrics._short_answers.short_answer_scores": (
        partial(short_answer_scores, answers=[VotedAnswer(("Paris",), (), 1)], lang="en"),
    ),
    "building.qa._qa.read_checks": (read_checks,),
    "building.steps._asking.all_tags": (partial(all_tags, tag="answer"),),
    "building.steps._asking.tagged_pairs": (partial(tagged_pairs, first="answer", second="question"),),
    "building.steps._asking.one_of_words": (partial(one_of_words, tag="answer", words=("yes", "no")),),
    "building.territories._territories._read_name": (_read_name,),
    "building.territories._territories._read_wording": (_read_wording,),
    "building.xrag._events._read": (read_entities,),
    "judging._rubrics._read_json": (verdict_rubric().request(CASE)[1], sufficiency_rubric().request(CASE)[1]),
    "judging._rubrics._read_support": (support_rubric().request(CASE)[1],),
    "judging._rubrics._read_tag": (verdict_rubric("equivalence").request(CASE)[1],),
    "judging._rubrics._read_list": (relevance_rubric().request(CASE)[1],),
    "models._lenient_json.read_value": (_value,),
    "models._replies.parse_json": (parse_json, partial(parse_json, required=("answer",))),
    "models._replies.parse_tag": (partial(parse_tag, tag="answer"),),
    "models._replies.parse_list": (parse_list,),
    "models._replies.parse_order": (partial(parse_order, n=20),),
    "core._thinking.split_thinking": (split_thinking,),
    "models._verdicts.parse_verdict_json": (partial(parse_verdict_json, key="answer", words="'yes' nor 'no'"),),
    "models._verdicts.parse_verdict_tag": (partial(parse_verdict_tag, tag="answer"),),
    "prompts._render.defuse": (
        defuse,
        *(load_template(name, role=role).clean.__wrapped__ for role in ("", "judge") for name in builtin_names(role)),
    ),
    "report.labels._documents._read_yes_no": (_read_yes_no,),
    "report.labels._rewrites.read_type": (read_type,),
    "retrieval.agents._coral._kind": (partial(_kind, task=FIRST_ROUND),),
    "retrieval.agents._critic.read_critique": (read_critique,),
    "retrieval.agents._critic.read_sufficiency": (read_sufficiency,),
    "retrieval.agents._planner.read_plan": (partial(read_plan, task=FIRST_ROUND),),
    "scoring._answers.outcome_of": (partial(outcome_of, answer=Answer("")),),
    "scoring._answers.parse_answer": tuple(
        partial(parse_answer, form=form) for form in ("plain", "tag", "line", "choice", "citation")
    ),
}

# Found by the test as parsers, but not measured, and why.
EXEMPT = {
    "metrics._citations.cites_unread": "measured as without_citations",
    "metrics._choices._check": "looks at the type only",
    "metrics._citation_support.cited_statements": "measured as citation_support",
    "metrics._choices._prepared": "measured as extract_choice",
    "metrics._choices_official._check": "looks at the type only",
    "metrics._verbatim._quoted": "measured as verbatim_quotes",
    "harness._models.parse_arguments": "reads what the user wrote",
    "building.qa._qa.read_pair": "parse_tag twice, and a detector of languages",
}

# A text is its head, then the unit as often as it takes, then its tail.
TEXTS: dict[str, tuple[str, str, str]] = {
    unit: ("", unit, "")
    for unit in (
        "**A**", "(A)(B)", "A ", "a ", "A) ", "정답: ", "정답", "answer ", "answer: ", "answer is ",
        "answer foo ", "Answer: A ", "A and B ", "❌ A\n", "so A ", "if A, ",
        "选", "选 ", "故选", "答案是 ", "Paris ", "Sudan ", "South Sudan ", "south ", "서울",
        "not A ", "A or ", "or ", "(", "((A", "[", "]", "[1", "[1] ", "[1], ", "[1, 2] > ", "1, ",
        "passage ", "<", "< ", "</", "<answer>", "</answer>", "<answer>x", "<answer>x</answer>",
        "<same_meaning>", "<doc1", "<doc1,", "<think>", "</think>", "</think> ", "{", "}", "{}", "{{",
        "{a ", '{"a":', "{a: ", '{"a": 1} ', '"a": ', '{"answer": "A"} ', '{"answer": ', "\\boxed{",
        "\\boxed{A}", "\\text{", '"', "'", "\\", ":", ",", "Answer: ", "Answer:\n", "\n", "A.\n",
        "- A) x\n", "_", "*", "#", "-", "?!", "x", "1", "é", "ก็", "中", "לה", "وب", "Chosen Option:",
        "Explanation:", "Cited Documents: 1 ", "I cannot ", "＜", "｛",
    )
} | {
    "{ a a a }": ("{", "a ", "}"),
    "{ spaces :": ("{a", " ", "b: c}"),
    "{ quotes :": ("{", "\" '", ": c}"),
    "{ colons": ("{", ":", ""),
    "{ commas }": ("{", ", ", "}"),
    "< blanks": ("<", " ", "answer"),
    "</ blanks": ("</", " ", "x"),
    "answer: [ and ]": ("answer: ", "[A] and ", ""),
    "[1] blanks x": ("[1]", " ", "x[2]"),
    "(digits": ("(", "1", "x"),
    "(numbers": ("(", "1 ", "x"),
    "[names": ("[", "a1, ", "x"),
    "passage blanks": ("[passage", " ", "x]"),
    "{ nested lists": ('{"answer": ', "[", ""),
    "{ closed lists": ('{"answer": ', "[1],", "}"),
    "A and blanks": ("A", " ", "b"),
    "answer and blanks": ("answer", " ", "x"),
    "quoted text": ('{"justification": "', 'x "', "}"),
    "string": ('{"justification": "', "x ", ""),
    "digits": ('{"answer": ', "1", "}"),
    "option *": ("option ", "*", "x"),
}  # fmt: skip


def text_of(name: str, length: int) -> str:
    """Return the text of that name, ``length`` characters long."""
    head, unit, tail = TEXTS[name]
    body = max(length - len(head) - len(tail), 0)
    return head + (unit * (body // len(unit) + 1))[:body] + tail
