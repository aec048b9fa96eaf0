"""A panel of judges: every row goes to every judge at once, and their votes become one verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from mrag_eval.config import Judge, ModelSpec, load_config
from mrag_eval.core import Judgement, Vote
from mrag_eval.judging._rubrics import Case, Rubric
from mrag_eval.models import (
    LONGEST_REPLY,
    Answered,
    AuxModel,
    CallCounts,
    KeptReplies,
    Seat,
    Verdict,
    generate_parsed,
    get,
    name_of,
    named_spec,
    summed,
    total,
)
from mrag_eval.platform import ConfigError, at_once

T = TypeVar("T")

EXAMPLE = """judges:
      - model: openai-chat-completions
        model_args: {model: gpt-4o-2024-08-06}"""
# Prompts ask for justifications of a sentence or two.
_LONGEST_JUSTIFICATION = 2_000


@dataclass(frozen=True)
class PanelAnswers(Generic[T]):
    """The answers of every seat, aligned with the cases, and the questions and cost of each model."""

    answers: dict[str, list[Answered[T]]]
    ledgers: dict[str, CallCounts]


class Panel:
    """Judges under their names; with ``repeats`` > 1 each has that number of seats (``gpt#1``, ``gpt#2``, ...).

    The seats of one model differ in their seed and are cached apart; they share its calls in flight. Raises ConfigError
    without a judge.
    """

    def __init__(self, models: Mapping[str, AuxModel], repeats: int = 1) -> None:
        if not models:
            raise ConfigError(
                "a panel needs at least one judge", "list models under judges in mrag.yaml (docs/judges.md)"
            )
        self._seats = {
            # further seats of a model may differ from its first by their seed
            seat: (name, model.seat(seat, asked={"seed": (model.generation.seed or 0) + nth} if nth else {}))
            for name, model in models.items()
            for nth in range(repeats)
            for seat in [name if repeats == 1 else f"{name}#{nth + 1}"]
        }

    @property
    def seats(self) -> tuple[str, ...]:
        """Return the names of the seats; their number is the panel's size."""
        return tuple(self._seats)

    @property
    def model_names(self) -> dict[str, str]:
        """Return, for each seat, the provider's name of the model."""
        args = {seat: one.model.spec.model_args for seat, (_, one) in self._seats.items()}
        return {
            seat: str(args[seat].get("model") or args[seat].get("pretrained") or name)
            for seat, (name, _) in self._seats.items()
        }

    @property
    def identities(self) -> dict[str, Any]:
        """Return, for each seat, what decides its votes, the same on any machine."""
        return {name: seat.identity for name, (_, seat) in self._seats.items()}

    def take(self) -> dict[str, Any]:
        """Return, for each seat, what came back from it since this was asked last, if anything did."""
        return summed([{name: seat.take() for name, (_, seat) in self._seats.items()}])

    def check(self) -> None:
        """Raise the ConfigError that would leave a judge without answers (a missing key, for example)."""
        for model in dict.fromkeys(seat.model for _, seat in self._seats.values()):
            model.check_ahead()

    def ask(self, rubric: Rubric[T], cases: Sequence[Case]) -> PanelAnswers[T]:
        """Put every case to every seat, all models at once; ask once more after replies that cannot be read."""
        requests = [rubric.request(case) for case in cases]
        conversations, parsers = [turns for turns, _ in requests], [parser for _, parser in requests]
        seconds: dict[str, float] = {}

        def call(name: str, seat: Seat) -> Callable[[], list[Answered[T]]]:
            def work() -> list[Answered[T]]:
                start = time.perf_counter()
                answers = generate_parsed(seat, conversations, parsers, waiting=f"judge {name}")
                seconds[name] = time.perf_counter() - start
                return answers

            return work

        answers = at_once({name: call(name, seat) for name, (_, seat) in self._seats.items()})
        ledgers: dict[str, CallCounts] = {}
        for seat, (name, _) in self._seats.items():
            ledger = CallCounts.of((reply for answer in answers[seat] for reply in answer.replies), seconds[seat])
            ledgers[name] = total([ledgers[name], ledger]) if name in ledgers else ledger
        return PanelAnswers(answers, ledgers)

    def votes(
        self, rubric: Rubric[Verdict], cases: Sequence[Case | Judgement]
    ) -> tuple[list[Mapping[str, Vote]], dict[str, CallCounts]]:
        """Return the votes on each case by seat, in their order, and the ledger of every model.

        No judge is asked about a case that is a judgement already: it has no votes.
        """
        asked = self.ask(rubric, [case for case in cases if isinstance(case, Case)])
        by_case = zip(*asked.answers.values(), strict=True)
        found = (dict(zip(self._seats, map(vote_of, row), strict=True)) for row in by_case)
        return [next(found) if isinstance(case, Case) else {} for case in cases], asked.ledgers


def vote_of(answer: Answered[Verdict]) -> Vote:
    """Return the vote that a seat's replies about one case make, with the last of them."""
    said = None if answer.replies[-1].error is not None else answer.replies[-1].text[-LONGEST_REPLY:]
    if answer.value is None:
        return Vote(None, error=answer.error, reply=said)
    text = answer.value.justification
    return Vote(
        answer.value.verdict,
        text if len(text) <= _LONGEST_JUSTIFICATION else f"{text[:_LONGEST_JUSTIFICATION]}…",
        passage=answer.value.passage,
        reply=said,
    )


def build_panel(block: Judge) -> Panel | None:
    """Return the panel of a task's block: its own, else the config file's ``judges``; None if neither exists.

    Raises ConfigError for a name that the config file does not contain, and for a missing panel that is ``required``.
    """
    return _panel(block, get)


def kept_panel(block: Judge) -> Panel | None:
    """Return the same panel, of which each judge replies from the cache of this machine, and is asked nothing."""
    return _panel(block, KeptReplies.of)


def _panel(block: Judge, made: Callable[[ModelSpec, str], AuxModel]) -> Panel | None:
    entries: Sequence[str | ModelSpec] = load_config().judges if block.panel is None else block.panel
    if not entries:
        if block.required:
            raise ConfigError("judge.required is set, but no judge is configured: 'judges' in mrag.yaml", EXAMPLE)
        return None
    return Panel({name: made(spec, name) for name, spec in named_judges(entries).items()}, block.repeats)


def named_judges(entries: Sequence[str | ModelSpec]) -> dict[str, ModelSpec]:
    """Return the models of a panel under the names of their seats: those of the config file, else the model's."""
    found: dict[str, ModelSpec] = {}
    for entry in entries:
        spec = named_spec(entry) if isinstance(entry, str) else entry
        name = entry if isinstance(entry, str) else name_of(spec).rstrip("/").rpartition("/")[2]
        # several models written out may have the same name
        free = (name if nth == 1 else f"{name}-{nth}" for nth in count(1))
        found[next(one for one in free if one not in found)] = spec
    return found
