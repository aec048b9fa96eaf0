"""A language model as reranker: it sees numbered passages and replies with their order (RankGPT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mrag_eval.core import Failure
from mrag_eval.models import AuxModel, Reply, generate_parsed, parse_order
from mrag_eval.platform import Wait
from mrag_eval.prompts import load_template

Passages = Sequence[Mapping[str, Any]]


@dataclass
class Ordered:
    """One query's order: places in the given list, best first.

    ``fault`` says why the model could not order it; ``failure`` is set if that was a call that failed.
    """

    order: list[int]
    windows: int = 0
    repaired: int = 0
    fault: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class ListQuery:
    """One row's passages to order: records with ``text``, ``title`` and ``lang``, best first by the search."""

    text: str
    lang: str
    passages: Passages = field(default_factory=tuple)


class ListwiseReranker:
    """Order ``window`` passages at a time, from the end of the list to its head, by ``step`` (Sun et al., 2023).

    So the best of the end move upwards, and the head of the list is right after one pass. All queries are sent at once,
    window by window. A reply that is not a permutation is repaired and counted: duplicate and unknown numbers are
    dropped, missing ones follow in their previous order. After a reply that cannot be read, the model is asked once
    more. If that or the call fails, the query keeps its order and ``fault`` says why.
    """

    def __init__(self, model: AuxModel, *, window: int = 20, step: int = 10, prompt: str = "listwise") -> None:
        self.model = model
        self._window, self._step = window, step
        self._template = load_template(prompt, role="rerank")
        self.seat = model.seat("reranker", prompts={"rerank": self._template.sha256})

    def order(self, queries: Sequence[ListQuery]) -> list[Ordered]:
        """Return the order of every query's passages; a list of one passage or none is already in order."""
        out = [Ordered(list(range(len(query.passages)))) for query in queries]
        spans = [_spans(len(query.passages), self._window, self._step) for query in queries]
        with Wait(f"reranking with {self.model.name}", sum(map(len, spans)), "lists") as wait:
            for turn in range(max(map(len, spans), default=0)):
                due = [i for i, windows in enumerate(spans) if turn < len(windows)]
                asked = [i for i in due if out[i].fault is None]
                wait.add(len(due) - len(asked), before=True)
                self._turn([(queries[i], out[i], spans[i][turn]) for i in asked], wait)
        return out

    def _turn(self, asked: Sequence[tuple[ListQuery, Ordered, tuple[int, int]]], wait: Wait) -> None:
        conversations = []
        for query, ordered, (start, end) in asked:
            shown = [query.passages[i] for i in ordered.order[start:end]]
            system, user = self._template.render({"query": query.text, "query_lang": query.lang}, shown)
            turns = [{"role": "system", "content": system}] if system else []
            conversations.append([*turns, {"role": "user", "content": user}])
        readers = [partial(parse_order, n=end - start) for _, _, (start, end) in asked]

        def count(_position: int, reply: Reply) -> None:
            wait.add(before=reply.cached)

        answers = generate_parsed(self.seat, conversations, readers, on_reply=count, waiting=None)
        for (_, ordered, (start, end)), answer in zip(asked, answers, strict=True):
            ordered.windows += 1
            if answer.value is None:
                ordered.fault = f"the reranker gave no order ({answer.reason})"
                if answer.reason != "unreadable":
                    ordered.failure = Failure.of("rerank", self.model.name, answer.error or "")
                ordered.order = list(range(len(ordered.order)))
                continue
            places, repaired = permutation(answer.value, end - start)
            ordered.repaired += repaired
            ordered.order[start:end] = [ordered.order[start + place] for place in places]


def _spans(count: int, window: int, step: int) -> list[tuple[int, int]]:
    """Return the windows ``[start, end)`` over a list of ``count``, the last of the list first."""
    spans = []
    end = count
    while count > 1:
        start = max(0, end - window)
        spans.append((start, end))
        if start == 0:
            break
        end -= step
    return spans


def permutation(numbers: Sequence[int], n: int) -> tuple[list[int], bool]:
    """Return ``(places from 0, whether a repair was needed)`` from numbers 1 to ``n`` in the order of a reply."""
    named = list(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= n))
    rest = sorted(set(range(n)).difference(named))
    return named + rest, len(numbers) != n or bool(rest)
