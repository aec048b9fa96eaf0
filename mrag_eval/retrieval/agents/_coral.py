"""CORAL's loop: plan, retrieve, criticise, decide, again; many questions move through a round together.

A round is one batch for the planner, one search, one batch of (question, document) pairs that have no scores yet, and
one batch for the decision whether the valid documents are enough. Critic, decision and generator always see the
original question; only the retriever sees a rewritten one. Round 1 searches with the original question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from mrag_eval.config import Agent
from mrag_eval.core import AgentUsage, Failure, Hit, RagDoc, Stage
from mrag_eval.models import Answered, EvaluatedModel, Parser, Seat, generate_parsed
from mrag_eval.platform import at_once
from mrag_eval.prompts import Conversation
from mrag_eval.retrieval.agents import _planner as planning
from mrag_eval.retrieval.agents._critic import (
    critique_conversation,
    is_valid,
    nothing_valid,
    read_critique,
    read_sufficiency,
    sufficiency_conversation,
    total_of,
)
from mrag_eval.retrieval.agents._records import Candidate, Conditions, Fault, LoopResult, Role, Round, usage_of
from mrag_eval.retrieval.agents._seats import Agents

T = TypeVar("T")

# (text, languages of one scope, language of the text) each -> its hits, best first, or why it was not searched for.
Search = Callable[[Sequence[tuple[str, tuple[str, ...], str]]], Sequence[Sequence[Hit] | Failure]]


@dataclass(frozen=True)
class Start:
    """A question before the loop: ``text`` is searched first, ``fixed`` is the scope if none is chosen."""

    doc: RagDoc
    text: str
    fixed: tuple[str, ...] = ()


@dataclass
class _Question:
    """One question in the loop. ``seen`` contains every document retrieved for it, in the order of retrieval."""

    start: Start
    shown: dict[str, Any]
    task: planning.PlanContext
    seen: dict[str, Candidate] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    usage: AgentUsage = field(default_factory=AgentUsage)
    reason: str = ""
    decided_on: int = 0
    stopped: str = ""
    ended: list[Fault] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def valid(self) -> list[Candidate]:
        return [candidate for candidate in self.seen.values() if candidate.valid]

    @property
    def round(self) -> Round:
        return self.rounds[-1]

    @property
    def previous(self) -> Conditions | None:
        return self.rounds[-1].conditions if self.rounds else None


class Coral:
    """Run the loop with its seats and its search.

    Args:
        settings: the task's ``agent`` block.
        agents: the seats that are asked; their models may be one.
        search: see :data:`Search`; each scope of a request gives its best documents.
        pool: codes of the corpora to choose from, as the search knows them.
        k: how many documents the generator is shown.
    """

    def __init__(self, settings: Agent, agents: Agents, search: Search, *, pool: Sequence[str], k: int = 5) -> None:
        self._settings = settings
        self._agents, self._search = agents, search
        self._pool, self._k = tuple(pool), k
        self._searching = Lock()

    def run(self, starts: Sequence[Start]) -> list[LoopResult]:
        """Return the outcome of every question, in order. A model that fails ends or shortens a loop, never the run.

        With models behind an API, two halves of the questions go through their rounds side by side: the calls of one
        fill the slots while the other prepares its next prompts.
        """
        if len(starts) < 2 or not self._agents.behind_api:
            return self._rounds(starts)
        halves = at_once({f"half {i}": partial(self._rounds, starts[i::2]) for i in range(2)})
        first, second = halves.values()
        return [(second if i % 2 else first)[i // 2] for i in range(len(starts))]

    def _rounds(self, starts: Sequence[Start]) -> list[LoopResult]:
        questions = [self._begun(start) for start in starts]
        for number in range(1, self._settings.max_rounds + 1):
            running = [question for question in questions if not question.stopped]
            if not running:
                break
            self._plan(running, number)
            running = [question for question in running if not question.stopped]
            self._retrieve(running)
            if self._settings.filter == "critic":
                self._criticise(running)
            self._decide(running)
            self._close(running, number)
        return [self._outcome(question) for question in questions]

    def _begun(self, start: Start) -> _Question:
        doc = start.doc
        shown: dict[str, Any] = {"query": doc.query, "query_lang": doc.query_lang, "choices": list(doc.choices or ())}
        task = planning.PlanContext(
            own=planning.in_pool(doc.query_lang, self._pool),
            pool=self._pool,
            max_corpora=self._settings.max_corpora,
            query=start.text,
            choose=self._settings.corpora == "dynamic",
            rewrite=self._settings.rewrite,
        )
        return _Question(start, shown, task)

    # ------------------------------------------------------------------ plan

    def _plan(self, questions: Sequence[_Question], number: int) -> None:
        """Begin the round of every question that gets a plan; the others are stopped."""
        if number == 1 and self._settings.corpora != "dynamic":
            for question in questions:
                question.rounds.append(Round(1, Conditions(question.start.fixed, question.start.text)))
            return
        tasks = [replace(question.task, previous=question.previous) for question in questions]
        template = self._agents.templates["plan" if number == 1 else "replan"]
        answers = self._ask(
            self._agents.planner,
            [
                planning.conversation(template, question.shown, task, question.reason)
                for question, task in zip(questions, tasks, strict=True)
            ],
            [planning.parser(task) for task in tasks],
            # if a plan was kept, the next round's prompt is the same, and must not get the same reply
            round=number,
        )
        for question, task, (answer, usage) in zip(questions, tasks, answers, strict=True):
            faults = _plan_faults(answer, task)
            question.failures += _failures("plan", self._agents.planner, answer)
            if answer.value is not None:
                conditions = answer.value.conditions
            elif answer.reason == "unreadable":
                conditions = question.previous or self._first(task)
            else:
                question.stopped, question.ended = f"planner: {answer.reason}", faults
                question.usage += usage
                continue
            question.rounds.append(Round(number, conditions, faults=faults))
            self._count(question, "planner", usage)

    def _first(self, task: planning.PlanContext) -> Conditions:
        """Return the plan used if the first one cannot be read: the query's own language, as its rule demands."""
        return Conditions((task.own,) if task.own is not None else task.pool[: task.max_corpora], task.query)

    # -------------------------------------------------------------- retrieve

    def _retrieve(self, questions: Sequence[_Question]) -> None:
        requests: list[tuple[str, tuple[str, ...], str]] = []
        for question in questions:
            requests += self._requests(question)
        with self._searching:
            found = iter(self._search(requests))
        for question in questions:
            for _ in self._requests(question):
                hits = next(found)
                if isinstance(hits, Failure):
                    question.failures.append(hits)
                    continue
                for hit in hits:
                    self._take(question, hit)

    def _requests(self, question: _Question) -> list[tuple[str, tuple[str, ...], str]]:
        """Return one request per chosen corpus, or one for a fixed scope as a whole.

        A rewritten query counts as one in the question's language.
        """
        conditions, lang = question.round.conditions, question.start.doc.query_lang
        if self._settings.corpora != "dynamic":
            return [(conditions.query, conditions.languages, lang)]
        return [(conditions.query, (language,), lang) for language in conditions.languages]

    def _take(self, question: _Question, hit: Hit) -> None:
        known = question.seen.get(hit.id)
        if known is None:
            known = question.seen[hit.id] = Candidate(hit, question.round.number)
            question.round.new.add(hit.id)
            if self._settings.filter == "none":
                known.valid = True
                question.round.added += 1
        elif hit.score > known.hit.score:
            known.hit = hit
        if known not in question.round.candidates:
            question.round.candidates.append(known)

    # ------------------------------------------------------------- criticise

    def _criticise(self, questions: Sequence[_Question]) -> None:
        pairs: list[tuple[_Question, Candidate]] = []
        for question in questions:
            # a reply that could not be read would come from the cache again; a call that failed may succeed now
            due = [c for c in question.round.candidates if c.critique is None and c.error != "unreadable"]
            due.sort(key=lambda c: (-c.hit.score, c.hit.id))
            calls, spent = self._settings.budget.calls_per_question, not self._affords(question)
            room = 0 if spent else len(due) if calls is None else calls - question.usage.calls
            for candidate in due[room:]:
                candidate.error = "budget"
            pairs += [(question, candidate) for candidate in due[:room]]
        answers = self._ask(
            self._agents.critic,
            [critique_conversation(self._agents.templates["critique"], q.shown, c.hit) for q, c in pairs],
            [read_critique] * len(pairs),
        )
        for (question, candidate), (answer, usage) in zip(pairs, answers, strict=True):
            self._count(question, "critic", usage)
            question.failures += _failures("critique", self._agents.critic, answer)
            if len(answer.replies) > 1:
                question.round.faults.append(Fault("critic", "unreadable", "asked again"))
            if answer.value is None:
                candidate.error = answer.reason
                question.round.faults.append(Fault("critic", answer.reason or "?", "unscored"))
                continue
            candidate.critique, candidate.error = answer.value, None
            candidate.total = total_of(answer.value, self._settings)
            candidate.valid = is_valid(answer.value, self._settings)
            question.round.added += candidate.valid

    # ---------------------------------------------------------------- decide

    def _decide(self, questions: Sequence[_Question]) -> None:
        """Ask whether the valid documents are enough, if there are any and the set has grown since the last time."""
        for question in questions:
            if not question.valid:
                question.reason = nothing_valid(list(question.seen.values()), question.round.conditions.languages)
        due = [q for q in questions if len(q.valid) > q.decided_on and self._affords(q)]
        answers = self._ask(
            self._agents.sufficiency,
            [sufficiency_conversation(self._agents.templates["sufficiency"], q.shown, self._best(q)) for q in due],
            [read_sufficiency] * len(due),
        )
        for question, (answer, usage) in zip(due, answers, strict=True):
            self._count(question, "sufficiency", usage)
            question.failures += _failures("critique", self._agents.sufficiency, answer)
            if len(answer.replies) > 1:
                question.round.faults.append(Fault("sufficiency", "unreadable", "asked again"))
            if answer.value is not None or answer.reason == "unreadable":
                question.decided_on = len(question.valid)
            if answer.value is None:
                question.round.faults.append(Fault("sufficiency", answer.reason or "?", "insufficient"))
                question.reason = "It could not be decided whether the documents are enough."
                continue
            question.round.decision = answer.value
            question.reason = answer.value.reason or "The documents found so far are not enough."
            if answer.value.enough:
                question.stopped = "sufficient"

    def _close(self, questions: Sequence[_Question], number: int) -> None:
        for question in questions:
            question.round.close()
            if question.stopped:
                continue
            if number == self._settings.max_rounds:
                question.stopped = "max_rounds"
            elif self._settings.stop.when == "marginal" and number > 1 and not question.round.added:
                question.stopped = "marginal"
            elif not self._affords(question):
                question.stopped = "budget"

    # --------------------------------------------------------------- outcome

    def _best(self, question: _Question) -> list[Candidate]:
        """Return the valid documents, best first: by total, then retrieval score, then id."""
        return sorted(question.valid, key=Candidate.order)

    def _outcome(self, question: _Question) -> LoopResult:
        valid = self._best(question)
        shown, fallback = valid[: self._k], False
        if not valid and self._settings.fallback == "best_scored":
            scored = sorted((c for c in question.seen.values() if c.critique is not None), key=Candidate.order)
            shown, fallback = scored[: self._k], bool(scored)
        faults = [*(fault for each in question.rounds for fault in each.faults), *question.ended]
        return LoopResult(
            tuple(shown),
            tuple(valid),
            tuple(question.rounds),
            question.stopped,
            tuple(faults),
            fallback,
            question.usage,
            tuple(question.failures),
        )

    # ---------------------------------------------------------------- asking

    def _ask(
        self, seat: Seat, conversations: Sequence[Conversation], parsers: Sequence[Parser[T]], round: int | None = None
    ) -> list[tuple[Answered[T], AgentUsage]]:
        if not conversations:
            return []
        answers = generate_parsed(seat, conversations, parsers, round=round)
        return [(each, usage_of(asked, each.replies)) for asked, each in zip(conversations, answers, strict=True)]

    def _count(self, question: _Question, role: Role, usage: AgentUsage) -> None:
        question.usage += usage
        spent = question.round.usage
        spent[role] = spent.get(role, AgentUsage()) + usage

    def _affords(self, question: _Question) -> bool:
        budget, usage = self._settings.budget, question.usage
        if budget.calls_per_question is not None and usage.calls >= budget.calls_per_question:
            return False
        return budget.tokens_per_question is None or usage.tokens < budget.tokens_per_question


def _failures(stage: Stage, seat: Seat, answer: Answered[Any]) -> list[Failure]:
    """Return the failure of a call, if it failed.

    A reply that cannot be read is none: CORAL's rules say what follows. Nor is the evaluated model's own empty reply,
    which would otherwise spare it the questions on which it gives none.
    """
    if answer.error is None or answer.reason == "unreadable":
        return []
    if answer.reason == "empty" and isinstance(seat.model, EvaluatedModel):
        return []
    return [Failure.of(stage, seat.name, answer.error)]


def _plan_faults(answer: Answered[planning.Planned], task: planning.PlanContext) -> list[Fault]:
    faults: list[Fault] = []
    if len(answer.replies) > 1:
        faults.append(Fault("planner", _kind(answer.replies[0].text, task), "asked again"))
    if answer.value is not None:
        return [*faults, *(Fault("planner", kind, "rule") for kind in answer.value.repaired)]
    if answer.reason == "unreadable":
        return [*faults, Fault("planner", _kind(answer.replies[-1].text, task), "kept previous")]
    return [*faults, Fault("planner", answer.reason or "?", "ended")]


def _kind(reply: str, task: planning.PlanContext) -> str:
    plan = planning.read_plan(reply, task)
    return plan.kind if isinstance(plan, planning.Refused) else "unreadable"
