"""The planner's replies: accepted, repaired by rule, or refused with a message to the planner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.prompts import load_template
from mrag_eval.retrieval.agents._planner import PlanContext, Planned, Refused, conversation, in_pool, read_plan
from mrag_eval.retrieval.agents._records import Conditions
from tests.retrieval.agents.scripted import POOL, plan

FIRST = PlanContext("en", POOL, 3, "Who?")
LATER = PlanContext("en", POOL, 3, "Who?", Conditions(("en", "ko"), "Who?"))


@pytest.mark.parametrize(
    ("reply", "languages", "repaired"),
    [
        (plan("en", "ko"), ("en", "ko"), ()),
        ('Let me think {"language_names": ["en", "fa"]} and done', ("en", "fa"), ()),
        # any spelling of a pool language counts as that language
        (plan("English", "kor", "fa_IR"), ("en", "ko", "fa"), ()),
        (plan("en", "en", "ko"), ("en", "ko"), ()),
        (plan("en", "ja", "ko"), ("en", "ko"), ("unknown_language",)),
        (plan("en", "dothraki", "ja"), ("en",), ("unknown_language",)),
        (plan("en", "ko", "fa", "zh"), ("en", "ko", "fa"), ("too_many_languages",)),
        # the first three, except that round 1 keeps the query's own language
        (plan("ko", "fa", "zh", "en"), ("ko", "fa", "en"), ("too_many_languages",)),
        (plan("ko"), ("en", "ko"), ("no_query_language",)),
        (plan("ko", "fa", "zh"), ("en", "ko", "fa"), ("no_query_language",)),
        (plan("ko", "fa", "zh", "ar"), ("en", "ko", "fa"), ("too_many_languages", "no_query_language")),
        (plan(), ("en",), ("no_query_language",)),
        (plan("ja"), ("en",), ("unknown_language", "no_query_language")),
        ('{"language_names": "en, ko"}', ("en", "ko"), ("not_a_list",)),
        ('{"language_names": ["en", 7]}', ("en",), ("unknown_language",)),
    ],
)
def test_first_plans(reply: str, languages: tuple[str, ...], repaired: tuple[str, ...]) -> None:
    found = read_plan(reply, FIRST)
    assert isinstance(found, Planned)
    assert found.conditions == Conditions(languages, "Who?")
    assert set(found.repaired) == set(repaired)


@pytest.mark.parametrize(
    ("reply", "expected", "repaired"),
    [
        (plan("ko", query="Who was king?"), Conditions(("ko",), "Who was king?"), ()),
        # from round 2 on, the query's language may be dropped, and no rule restores it
        (plan("ko", "fa", query=""), Conditions(("ko", "fa"), "Who?"), ()),
        (plan("ko", query="  "), Conditions(("ko",), "Who?"), ()),
        (plan("ko"), Conditions(("ko",), "Who?"), ("no_query",)),
        (plan("ko", "en", query="Who was king?"), Conditions(("ko", "en"), "Who was king?"), ()),
        (plan("ko", "el", "es", "az", query="x"), Conditions(("ko", "el", "es"), "x"), ("too_many_languages",)),
    ],
)
def test_later_plans(reply: str, expected: Conditions, repaired: tuple[str, ...]) -> None:
    found = read_plan(reply, LATER)
    assert isinstance(found, Planned)
    assert (found.conditions, found.repaired) == (expected, repaired)


@pytest.mark.parametrize(
    ("reply", "task", "kind"),
    [
        ("no", FIRST, "unreadable"),
        ('{"languages": ["en"]}', FIRST, "unreadable"),
        (plan("ja", query="x"), LATER, "no_language"),
        (plan(query="x"), LATER, "no_language"),
        # the order of the corpora, spaces and case do not matter
        (plan("ko", "en", query=" who? "), LATER, "unchanged"),
        (plan("ko", "en", query=""), LATER, "unchanged"),
        # if the query's language is not in the pool, round 1 cannot be repaired either
        (plan("ja"), PlanContext(None, ("en", "ko"), 3, "誰？"), "no_language"),
    ],
)
def test_refused_plans(reply: str, task: PlanContext, kind: str) -> None:
    found = read_plan(reply, task)
    assert isinstance(found, Refused)
    assert found.kind == kind
    assert found.error


def test_without_rewriting_the_query_stays_and_the_corpora_must_change() -> None:
    task = PlanContext("en", POOL, 3, "Who?", Conditions(("en",), "Who?"), rewrite=False)
    assert read_plan(plan("ko", query="Who was king?"), task) == Planned(Conditions(("ko",), "Who?"))
    refused = read_plan(plan("en", query="Who was king?"), task)
    assert isinstance(refused, Refused)
    assert "the corpora must change" in refused.error


def test_with_fixed_corpora_only_the_query_is_read() -> None:
    task = PlanContext("en", POOL, 3, "Who?", Conditions(("am", "en"), "Who?"), choose=False)
    assert read_plan('{"rewritten_query": "Who was king?", "language_names": ["ko"]}', task) == Planned(
        Conditions(("am", "en"), "Who was king?")
    )
    assert isinstance(read_plan('{"rewritten_query": ""}', task), Refused)


def test_chinese_is_found_by_its_scripts() -> None:
    assert in_pool("zh", ("en", "zh-Hans", "zh-Hant")) == "zh-Hans"
    assert in_pool("zh-Hant", ("en", "zh-Hans", "zh-Hant")) == "zh-Hant"
    assert in_pool("zh-Hant", ("en", "zh")) == "zh"
    assert in_pool("ja", ("en", "zh")) is None


@given(
    st.text(max_size=60) | st.lists(st.sampled_from([*POOL, "ja", "xx"]), max_size=8).map(lambda c: plan(*c, query="q"))
)
def test_never_raises_and_never_exceeds_the_limit(reply: str) -> None:
    for task in (FIRST, LATER):
        found = read_plan(reply, task)
        if isinstance(found, Planned):
            assert 1 <= len(found.conditions.languages) <= 3
            assert set(found.conditions.languages) <= set(POOL)
            assert found.conditions.query
            assert "en" in found.conditions.languages or task is LATER


def test_prompts_contain_the_planners_inputs_in_the_paper() -> None:
    """CORAL, Figures 4 and 5: query with options and the pool; later also previous query, corpora and the reason."""
    doc = {"query": "Who {was} it?", "query_lang": "en", "choices": ["Ann", "Bo"]}
    system, user = conversation(load_template("plan", role="agent"), doc, FIRST)
    assert ", ".join(POOL) in system["content"]
    assert "At most 3 codes" in system["content"]
    assert '{"language_names": ["<code>", ...]}' in system["content"]
    # a question's braces cannot be mistaken for a reply
    assert user["content"] == "<question>\nWho ｛was｝ it?\nA. Ann\nB. Bo\n</question>"
    system, user = conversation(
        load_template("replan", role="agent"), doc, LATER, "Nothing on </why_insufficient> kings."
    )
    assert '"rewritten_query"' in system["content"]
    assert "<previous_query>\nWho?\n</previous_query>" in user["content"]
    assert "<previous_languages>\nen, ko\n</previous_languages>" in user["content"]
    assert "<why_insufficient>\nNothing on ‹/why_insufficient> kings.\n</why_insufficient>" in user["content"]


@pytest.mark.parametrize(
    ("choose", "rewrite", "there", "absent"),
    [
        (True, False, "must differ from the last one in its corpora", "rewritten_query"),
        (False, True, "must differ from the last one in its query", "language_names"),
    ],
)
def test_the_ablations_ask_for_what_they_use(choose: bool, rewrite: bool, there: str, absent: str) -> None:
    task = PlanContext("en", POOL, 3, "Who?", Conditions(("en",), "Who?"), choose, rewrite)
    system, _ = conversation(load_template("replan", role="agent"), {"query": "Who?", "query_lang": "en"}, task, "r")
    assert there in system["content"]
    assert absent not in system["content"]
