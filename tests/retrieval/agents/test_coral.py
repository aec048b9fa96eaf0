"""The loop, with a scripted planner and critic: every path through it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.config import ModelSpec
from mrag_eval.core import CriticScores, Hit, Trace, TracedQuestion
from mrag_eval.models import Reply
from mrag_eval.retrieval import shown_trace
from mrag_eval.retrieval.agents._records import Conditions, LoopResult
from tests.retrieval.agents.scripted import (
    BAD,
    GOOD,
    POOL,
    Asked,
    ScriptedAgent,
    Shelf,
    enough,
    ids,
    plan,
    question,
    run,
    scores,
    shelf,
)

DOWN = Reply("", error="timeout: nothing came")


def by_document(verdicts: dict[str, str], otherwise: str = BAD) -> object:
    """A critic that scores documents by their name, or by its prefix if the name has no number."""

    def critic(asked: Asked) -> str:
        starts = {name: f"Text of {name}{'.' if name[-1].isdigit() else ''}" for name in verdicts}
        return next((verdicts[name] for name, start in starts.items() if start in asked.user), otherwise)

    return critic


def step(*plans: str) -> object:
    """A planner that makes these plans in turn, the same for every question."""

    def planner(asked: Asked) -> str:
        return plans[int(asked.seat.rsplit(" ", 1)[1]) - 1]

    return planner


# ------------------------------------------------------------------ when it ends


def test_it_ends_in_round_one_with_the_best_five() -> None:
    agent = ScriptedAgent(
        planner=lambda a: plan("en", "ko"),
        critic=by_document({"ko1": scores(5, 5, 5, 5), "ko2": scores(4, 4, 4, 4), "en": GOOD}, scores(3, 2, 2, 2)),
    )
    search = shelf("en", "ko", "fa")
    (outcome,) = run(agent, search)
    assert outcome.stopped == "sufficient"
    # five from each chosen corpus, each searched separately with the question
    assert search.requests == [("Who was it?", ("en",)), ("Who was it?", ("ko",))]
    assert len(outcome.valid) == 10
    assert [len(batch) for batch in agent.batches] == [1, 10, 1]
    # 12.5 for en1 … en5 and ko1 (same score as en1, 0.99, so ordered by id), 10 for ko2, 6 for the others
    assert ids(outcome.shown) == ["en1", "ko1", "en2", "en3", "en4"]
    assert ids(outcome.valid)[-4:] == ["ko2", "ko3", "ko4", "ko5"]
    assert outcome.shown[0].scored() == CriticScores(5, 5, 5, 5, 12.5, "on the subject")
    assert outcome.usage.calls == 12
    assert outcome.usage.tokens == 12 * 110
    assert outcome.usage.seconds == 6.0


def test_it_ends_in_round_three_and_the_planner_is_told_why() -> None:
    agent = ScriptedAgent(
        planner=step(plan("en"), plan("en", "ko", query="Who was king?"), plan("ko", query="Who was king in 1400?")),
        sufficiency=lambda a: enough("ko1" in a.user and "ko6" in a.user, "a king is missing"),
    )
    search = Shelf({"en": [("en1", 0.9)], "ko": [("ko1", 0.8)]})
    # the last query finds another document
    search.documents = lambda text, lang: (  # type: ignore[method-assign]
        [("ko6", 0.7), ("ko1", 0.6)] if "1400" in text else Shelf.documents(search, text, lang)
    )
    (outcome,) = run(agent, search)
    assert (outcome.stopped, len(outcome.rounds)) == ("sufficient", 3)
    assert [r.conditions for r in outcome.rounds] == [
        Conditions(("en",), "Who was it?"),
        Conditions(("en", "ko"), "Who was king?"),
        Conditions(("ko",), "Who was king in 1400?"),
    ]
    second, third = agent.of("replan")
    assert (second.part("previous_query"), second.part("previous_languages")) == ("Who was it?", "en")
    assert third.part("previous_query") == "Who was king?"
    assert second.part("why_insufficient") == third.part("why_insufficient") == "a king is missing"
    # the critic and the decision keep using the original question
    assert {a.question for a in agent.of("critic") + agent.of("sufficiency") + agent.of("replan")} == {"Who was it?"}
    # no document is scored twice
    assert [len(r.candidates) for r in outcome.rounds] == [1, 2, 2]
    assert [len(r.new) for r in outcome.rounds] == [1, 1, 1]
    assert len(agent.of("critic")) == 3
    assert [r.added for r in outcome.rounds] == [1, 1, 1]
    # a document found again keeps its best retrieval score
    assert {c.hit.id: c.hit.score for c in outcome.valid} == {"en1": 0.9, "ko1": 0.8, "ko6": 0.7}


def test_never_enough_ends_with_the_rounds() -> None:
    agent = ScriptedAgent(
        planner=step(plan("en"), plan("ko", query=""), plan("fa", query="")),
        sufficiency=lambda a: enough(False, "more"),
    )
    (outcome,) = run(agent, shelf("en", "ko", "fa"))
    assert (outcome.stopped, len(outcome.rounds)) == ("max_rounds", 3)
    assert len(outcome.valid) == 15
    assert len(outcome.shown) == 5
    # an empty rewritten query keeps the previous one
    assert {r.conditions.query for r in outcome.rounds} == {"Who was it?"}


def test_nothing_valid_is_insufficient_without_asking_and_gives_no_documents() -> None:
    agent = ScriptedAgent(planner=step(plan("en"), plan("ko", query=""), plan("fa", query="")), critic=lambda a: BAD)
    (outcome,) = run(agent, shelf("en", "ko", "fa"))
    assert (outcome.stopped, outcome.shown, outcome.valid, outcome.fallback) == ("max_rounds", (), (), False)
    assert agent.of("sufficiency") == []
    reason = agent.of("replan")[0].part("why_insufficient")
    assert reason.startswith("None of the 5 documents found in the corpora en")
    assert "beside the point" in reason


def test_fallback_shows_the_best_scored() -> None:
    critic = by_document({"en3": scores(2, 2, 2, 2), "en5": scores(2, 2, 2, 1)})
    (outcome,) = run(ScriptedAgent(critic=critic), shelf("en"), max_rounds=1, fallback="best_scored", k=2)
    assert (ids(outcome.shown), outcome.valid, outcome.fallback) == (["en3", "en5"], (), True)


def test_fallback_has_nothing_to_show_where_nothing_was_scored() -> None:
    (outcome,) = run(ScriptedAgent(critic=lambda a: DOWN), shelf("en"), max_rounds=1, fallback="best_scored")
    assert (outcome.shown, outcome.fallback) == ((), False)


def test_an_empty_corpus_is_a_reason() -> None:
    agent = ScriptedAgent(planner=step(plan("en"), plan("ko", query="")))
    (outcome,) = run(agent, shelf("ko"), max_rounds=2)
    assert agent.of("replan")[0].part("why_insufficient") == "No document was found in the corpora en."
    assert outcome.stopped == "sufficient"


def test_marginal_ends_after_a_round_without_gain_but_not_after_the_first() -> None:
    plans = step(plan("en"), plan("ko", query=""), plan("fa", query=""), plan("zh", query=""))
    critic = by_document({"ko": GOOD})
    agent = ScriptedAgent(planner=plans, critic=critic, sufficiency=lambda a: enough(False))
    (outcome,) = run(agent, shelf("en", "ko", "fa", "zh"), max_rounds=4, stop={"when": "marginal"})
    # round 1 finds nothing, round 2 five, round 3 nothing more
    assert [r.added for r in outcome.rounds] == [0, 5, 0]
    assert outcome.stopped == "marginal"
    # and no second decision is requested on an unchanged set
    assert len(agent.of("sufficiency")) == 1


# ------------------------------------------------------------------ budgets


def test_calls_are_not_begun_beyond_the_budget() -> None:
    agent = ScriptedAgent(sufficiency=lambda a: enough(False))
    (outcome,) = run(agent, shelf("en"), budget={"calls_per_question": 4})
    # one plan, then the three best documents
    assert [a.role for a in agent.asked] == ["plan", "critic", "critic", "critic"]
    assert (ids(outcome.valid), outcome.stopped, outcome.usage.calls) == (["en1", "en2", "en3"], "budget", 4)
    assert [h.unscored for h in outcome.rounds[0].hits] == [None, None, None, "budget", "budget"]


def test_tokens_are_looked_at_before_each_step() -> None:
    agent = ScriptedAgent(sufficiency=lambda a: enough(False))
    # 110 for the plan, 550 for the critiques: no tokens left for the decision
    (outcome,) = run(agent, shelf("en"), budget={"tokens_per_question": 600})
    assert (outcome.stopped, outcome.usage.tokens, len(outcome.valid)) == ("budget", 660, 5)
    assert agent.of("sufficiency") == []


def test_replies_from_the_cache_count_towards_the_budget() -> None:
    """A rerun must stop at the same point as the first run."""
    cached = ScriptedAgent(
        planner=lambda a: Reply(plan("en"), tokens_in=100, tokens_out=10, cached=True, attempts=0),
        critic=lambda a: Reply(GOOD, tokens_in=100, tokens_out=10, cached=True, attempts=0),
    )
    (outcome,) = run(cached, shelf("en"), budget={"calls_per_question": 4})
    assert (outcome.usage.calls, outcome.usage.cached, outcome.stopped) == (4, 4, "budget")


# ------------------------------------------------------------------ faults


def test_a_plan_that_cannot_be_read_is_asked_for_again() -> None:
    agent = ScriptedAgent(planner=lambda a: plan("ko", "en") if a.again else "Korean, I think")
    (outcome,) = run(agent, shelf("en", "ko"))
    assert outcome.rounds[0].conditions.languages == ("ko", "en")
    assert [f.name for f in outcome.faults] == ["planner: unreadable (asked again)"]
    assert outcome.usage.calls == 2 + 10 + 1


def test_a_first_plan_that_stays_unreadable_becomes_the_query_language() -> None:
    (outcome,) = run(ScriptedAgent(planner=lambda a: "?"), shelf("en", "ko"), question(lang="ko"))
    assert outcome.rounds[0].conditions == Conditions(("ko",), "Who was it?")
    assert [f.name for f in outcome.faults] == [
        "planner: unreadable (asked again)",
        "planner: unreadable (kept previous)",
    ]


def test_a_plan_that_changes_nothing_is_asked_for_again_then_the_previous_one_is_kept() -> None:
    agent = ScriptedAgent(planner=lambda a: plan("en", query=""), sufficiency=lambda a: enough(False, "more"))
    (outcome,) = run(agent, shelf("en", "ko"), max_rounds=2)
    assert [r.conditions for r in outcome.rounds] == [Conditions(("en",), "Who was it?")] * 2
    assert [f.name for f in outcome.faults] == [
        "planner: unchanged (asked again)",
        "planner: unchanged (kept previous)",
    ]
    # nothing new was found, so nothing is scored and no new decision is made
    assert (len(agent.of("critic")), len(agent.of("sufficiency"))) == (5, 1)


def test_the_planner_is_asked_separately_in_every_round() -> None:
    """If a plan is kept, the prompt repeats: seat and seed must differ, or the cache gives the same reply."""
    agent = ScriptedAgent(planner=lambda a: "?", critic=lambda a: BAD)
    run(agent, shelf("en"))
    asked = [(a.seat, a.settings["seed"]) for a in agent.asked if a.role in ("plan", "replan") and not a.again]
    assert asked == [("coral planner 1", 0), ("coral planner 2", 1), ("coral planner 3", 2)]
    assert {a.seat for a in agent.of("critic")} == {"coral critic"}


def test_agents_decode_as_in_the_paper() -> None:
    agent = ScriptedAgent()
    run(agent, shelf("en"))
    assert {(a.settings["temperature"], a.settings["max_tokens"]) for a in agent.asked} == {(0.6, 32_768)}


def test_a_models_own_decoding_goes_before_the_papers_and_the_tasks_before_both() -> None:
    agent = ScriptedAgent()
    agent.spec = ModelSpec(model="dummy", generation={"max_tokens": 512, "seed": None})
    run(agent, shelf("en"))
    assert {(a.settings["temperature"], a.settings["max_tokens"]) for a in agent.asked} == {(0.6, 512)}
    # a provider without seeds receives none
    assert {a.settings["seed"] for a in agent.asked} == {None}
    run(agent, shelf("en"), question("Another?"), generation={"max_tokens": 64})
    assert agent.asked[-1].settings["max_tokens"] == 64


def test_a_planner_that_is_down_ends_the_loop_with_its_documents_so_far() -> None:
    agent = ScriptedAgent(
        planner=lambda a: plan("en") if a.role == "plan" else DOWN, sufficiency=lambda a: enough(False)
    )
    (outcome,) = run(agent, shelf("en"))
    assert (outcome.stopped, len(outcome.rounds), len(outcome.shown)) == ("planner: timeout", 1, 5)
    (never,) = run(ScriptedAgent(planner=lambda a: DOWN), shelf("en"))
    assert (never.stopped, never.rounds, never.shown) == ("planner: timeout", (), ())
    assert [f.name for f in never.faults] == ["planner: timeout (ended)"]
    assert never.trace().faults == {"planner: timeout (ended)": 1}


def test_one_question_without_planner_does_not_affect_the_others() -> None:
    agent = ScriptedAgent(planner=lambda a: DOWN if "Bad" in a.question else plan("en"))
    outcomes = run(agent, shelf("en"), question("Good?"), question("Bad?"), question("Fine?"))
    assert [o.stopped for o in outcomes] == ["sufficient", "planner: timeout", "sufficient"]
    assert [len(o.shown) for o in outcomes] == [5, 0, 5]


def test_scores_that_cannot_be_read_leave_a_document_out_and_are_not_asked_for_a_third_time() -> None:
    agent = ScriptedAgent(
        planner=step(plan("en"), plan("en", query="again")),
        critic=by_document({"en1": scores(9, 9, 9, 9), "en2": GOOD}),
        sufficiency=lambda a: enough(False),
    )
    (outcome,) = run(agent, shelf("en", each=2), max_rounds=2)
    assert ids(outcome.valid) == ["en2"]
    assert [f.name for f in outcome.faults] == ["critic: unreadable (asked again)", "critic: unreadable (unscored)"]
    assert len([a for a in agent.of("critic") if "en1" in a.user]) == 2
    assert outcome.rounds[1].hits[0].unscored == "unreadable"


def test_a_critic_that_was_down_is_asked_again_in_the_next_round() -> None:
    agent = ScriptedAgent(
        planner=step(plan("en"), plan("en", query="again")),
        critic=lambda a: DOWN if len(agent.of("critic")) <= 2 else GOOD,
        sufficiency=lambda a: enough(True),
    )
    (outcome,) = run(agent, shelf("en", each=2))
    assert (outcome.stopped, len(outcome.rounds)) == ("sufficient", 2)
    # the trace tells each round as it was
    assert [h.valid for h in outcome.rounds[0].hits] == [False, False]
    assert [h.valid for h in outcome.rounds[1].hits] == [True, True]


def test_a_decision_that_cannot_be_read_is_insufficient() -> None:
    agent = ScriptedAgent(planner=step(plan("en"), plan("ko", query="")), sufficiency=lambda a: enough("perhaps"))
    (outcome,) = run(agent, shelf("en", "ko"), max_rounds=2)
    assert outcome.stopped == "max_rounds"
    assert [f.name for f in outcome.faults].count("sufficiency: unreadable (insufficient)") == 2
    assert outcome.rounds[0].decision is None
    assert "could not be decided" in agent.of("replan")[0].part("why_insufficient")


@pytest.mark.parametrize(
    ("critic", "sufficiency", "undecided", "said"),
    [
        (BAD, enough(True), None, "enough      not asked"),
        (GOOD, enough(False, "no year"), None, "enough      False\nreason      no year"),
        (GOOD, enough("perhaps"), "unreadable", "enough      no decision (unreadable)"),
        (GOOD, "", "unreadable", "enough      no decision (unreadable)"),
        (GOOD, DOWN, "timeout", "enough      no decision (timeout)"),
    ],
)
def test_a_trace_tells_not_asked_from_asked_without_a_decision(
    critic: Reply | str, sufficiency: Reply | str, undecided: str | None, said: str
) -> None:
    agent = ScriptedAgent(critic=lambda a: critic, sufficiency=lambda a: sufficiency)
    (outcome,) = run(agent, shelf("en"), max_rounds=1)
    trace = Trace.from_dict(outcome.trace().to_dict(), "here")
    assert trace.rounds[0].undecided == undecided
    assert f"{said}\n" in shown_trace(TracedQuestion("t", 0, "r", "When?", "en", trace))


# ------------------------------------------------------------------ order


def test_ties_are_broken_by_retrieval_score_then_id() -> None:
    search = Shelf({"en": [("b", 0.5), ("a", 0.5), ("z", 0.9), ("c", 0.4)]})
    (outcome,) = run(ScriptedAgent(), search, k=3)
    assert ids(outcome.shown) == ["z", "a", "b"]


# ------------------------------------------------------------------ batches


def test_all_open_questions_move_through_a_round_together() -> None:
    agent = ScriptedAgent(
        planner=lambda a: plan("en") if a.role == "plan" else plan("ko", query=""),
        sufficiency=lambda a: enough("1" in a.question or "Text of ko" in a.user, "more"),
    )
    search = shelf("en", "ko", each=2)
    starts = [question(f"Question {n}?") for n in range(4)]
    outcomes = run(agent, search, *starts)
    # planner, critic, decision for four; then the same for the three that are still open
    assert [(batch[0].role, len(batch)) for batch in agent.batches] == [
        ("plan", 4), ("critic", 8), ("sufficiency", 4), ("replan", 3), ("critic", 6), ("sufficiency", 3)
    ]  # fmt: skip
    assert search.calls == 2
    assert [len(o.rounds) for o in outcomes] == [2, 1, 2, 2]


def test_with_models_behind_an_api_two_halves_move_side_by_side_to_the_same_end() -> None:
    def outcomes(behind_api: bool) -> tuple[ScriptedAgent, list[LoopResult]]:
        agent = ScriptedAgent(
            planner=lambda a: plan("en") if a.role == "plan" else plan("ko", query=""),
            sufficiency=lambda a: enough("1" in a.question or "Text of ko" in a.user, "more"),
            behind_api=behind_api,
        )
        return agent, run(agent, shelf("en", "ko", each=2), *(question(f"Question {n}?") for n in range(5)))

    together, alone = outcomes(False)
    halves, side_by_side = outcomes(True)
    assert [o.trace() for o in side_by_side] == [o.trace() for o in alone]
    assert sorted(a.user for a in halves.asked) == sorted(a.user for a in together.asked)
    assert sorted(len(batch) for batch in halves.batches if batch[0].role == "plan") == [2, 3]


def test_no_questions_ask_nothing() -> None:
    agent, search = ScriptedAgent(), shelf("en")
    from mrag_eval.config import Agent
    from mrag_eval.retrieval.agents._coral import Coral
    from mrag_eval.retrieval.agents._seats import Agents

    assert Coral(Agent(), Agents.of(Agent(), agent, agent), search, pool=POOL).run([]) == []
    assert (agent.batches, search.calls) == ([], 0)


# ------------------------------------------------------------------ ablations


def test_without_rewriting_only_corpora_change() -> None:
    agent = ScriptedAgent(
        planner=step(plan("en"), plan("ko", query="Another query")), sufficiency=lambda a: enough(False)
    )
    (outcome,) = run(agent, shelf("en", "ko"), max_rounds=2, rewrite=False)
    assert [r.conditions for r in outcome.rounds] == [
        Conditions(("en",), "Who was it?"),
        Conditions(("ko",), "Who was it?"),
    ]


def test_with_fixed_corpora_only_the_query_changes_and_the_scope_is_one() -> None:
    agent = ScriptedAgent(planner=step("", '{"rewritten_query": "Who was king?"}'), sufficiency=lambda a: enough(False))
    search = shelf("en", "su")
    (outcome,) = run(agent, search, _fixed("su", "en"), max_rounds=2, corpora="own+en")
    # five documents in total, and no planner in round 1
    assert search.requests == [("Who was it?", ("su", "en")), ("Who was king?", ("su", "en"))]
    assert len(outcome.rounds[0].candidates) == 5
    assert [a.role for a in agent.asked if "plan" in a.role] == ["replan"]


def _fixed(*languages: str) -> object:
    from dataclasses import replace

    return replace(question(), fixed=languages)


def test_without_the_filter_every_document_counts_in_the_order_of_retrieval() -> None:
    agent = ScriptedAgent(planner=lambda a: plan("en", "ko"))
    (outcome,) = run(agent, shelf("en", "ko", each=3), filter="none", k=4)
    assert agent.of("critic") == []
    assert ids(outcome.shown) == ["en1", "ko1", "en2", "ko2"]
    assert outcome.shown[0].scored() is None
    assert "critic_scores" not in agent.of("sufficiency")[0].user


# ------------------------------------------------------------------ properties

_LANGS = st.lists(st.sampled_from([*POOL[:5], "en", "ja"]), max_size=6)
_PLANS = st.one_of(
    st.builds(lambda codes, q: plan(*codes, query=q), _LANGS, st.sampled_from(["", "q1", "q2"])),
    st.sampled_from(["nothing", "{", DOWN]),
)
_SCORES = st.one_of(
    st.tuples(*[st.integers(0, 5)] * 4).map(lambda s: scores(*s)), st.sampled_from([scores(7, 0, 0, 0), "-", DOWN])
)


@settings(max_examples=150)
@given(
    st.lists(_PLANS, min_size=1, max_size=6),
    st.lists(_SCORES, min_size=1, max_size=9),
    st.lists(st.sampled_from([enough(True), enough(False), "?", DOWN]), min_size=1, max_size=4),
    st.sampled_from(["none", "best_scored"]),
    st.one_of(st.none(), st.integers(1, 12)),
    st.sampled_from(["sufficient", "marginal"]),
)
def test_invariants_hold_for_any_replies(
    plans: Sequence[object],
    critiques: Sequence[object],
    decisions: Sequence[object],
    fallback: str,
    calls: int | None,
    when: str,
) -> None:
    """At most three corpora; the valid set only grows; final documents are valid, five at most."""
    seen: list[int] = []

    def turn(of: Sequence[object]) -> object:
        return lambda asked: of[len(agent.asked) % len(of)]

    agent = ScriptedAgent(planner=turn(plans), critic=turn(critiques), sufficiency=turn(decisions))  # type: ignore[arg-type]
    outcomes = run(
        agent,
        shelf(*POOL, each=4),
        question("One?"),
        question("Two?", lang="id"),
        max_rounds=4,
        fallback=fallback,
        stop={"when": when},
        budget={"calls_per_question": calls},
    )
    for outcome in outcomes:
        assert outcome.stopped in ("sufficient", "max_rounds", "marginal", "budget", "planner: timeout")
        for number, each in enumerate(outcome.rounds, 1):
            assert 1 <= len(each.conditions.languages) <= 3
            assert each.conditions.query
            assert set(each.conditions.languages) <= set(POOL)
            seen.append(number)
        assert len(outcome.shown) <= 5
        totals = [(c.total, c.hit.score) for c in outcome.valid]
        assert totals == sorted(totals, reverse=True)
        assert len(outcome.valid) == sum(each.added for each in outcome.rounds) == len(set(ids(outcome.valid)))
        if outcome.fallback:
            assert fallback == "best_scored"
            assert not outcome.valid
        else:
            assert all(c.valid for c in outcome.shown)
            assert len(outcome.shown) == min(5, len(outcome.valid))
        for c in outcome.valid:
            assert c.critique is not None
            assert min(c.critique.scores) >= 2
            assert c.total is not None
            assert c.total >= 6
        if calls is not None:
            # every running call may be repeated once if its reply cannot be read
            assert outcome.usage.calls <= calls + sum("asked again" in fault.name for fault in outcome.faults)
        kept: list[set[str]] = [{h.id for h in each.hits if h.valid} for each in outcome.rounds]
        found = [{h.id for h in each.hits} for each in outcome.rounds]
        for earlier in range(len(kept)):
            for later in range(earlier, len(kept)):
                # documents retrieved again stay valid
                assert kept[earlier] & found[later] <= kept[later]


def test_a_question_in_a_language_outside_the_pool_needs_no_corpus() -> None:
    agent = ScriptedAgent(planner=lambda a: plan("ko"))
    (outcome,) = run(agent, shelf("en", "ko"), question(lang="ja"), pool=("en", "ko"))
    assert outcome.rounds[0].conditions.languages == ("ko",)
    (kept,) = run(ScriptedAgent(planner=lambda a: "?"), shelf("en", "ko"), question(lang="ja"), pool=("en", "ko"))
    assert kept.rounds[0].conditions.languages == ("en", "ko")


@pytest.mark.parametrize("hit", [Hit("x", "en", "T" * 500, 0.5, 1, title="Ti")])
def test_traces_cut_long_texts(hit: Hit) -> None:
    (outcome,) = run(ScriptedAgent(), lambda requests: [[hit] for _ in requests])
    shown = outcome.trace().rounds[0].hits[0]
    assert shown.text == "T" * 200 + "…"
    assert shown.critic is not None
    assert shown.critic.total == 12.5
