"""Scripted in-process agents, and a search over a few made-up documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.config import Agent, Generation, ModelSpec
from mrag_eval.core import Hit, RagDoc
from mrag_eval.models import AuxModel, Reply, Seat
from mrag_eval.prompts import Conversation
from mrag_eval.retrieval.agents._coral import Coral, Start
from mrag_eval.retrieval.agents._records import LoopResult
from mrag_eval.retrieval.agents._seats import Agents

POOL = ("id", "am", "su", "ar", "ha", "en", "zh", "ko", "as", "el", "fa", "es", "az")


def plan(*languages: str, query: str | None = None) -> str:
    said: dict[str, Any] = {"language_names": list(languages)}
    return json.dumps(said if query is None else said | {"rewritten_query": query}, ensure_ascii=False)


def scores(rel: Any, use: Any, spec: Any, comp: Any, critique: str = "because") -> str:
    said = {"relevance": rel, "usefulness": use, "clarity_specificity": spec, "compatibility": comp}
    return json.dumps({"scores": said, "critique": critique}, ensure_ascii=False)


def enough(answer: Any, reason: str = "so it is") -> str:
    return json.dumps({"enough_documents": answer, "reason": reason}, ensure_ascii=False)


GOOD, BAD = scores(5, 5, 5, 5, "on the subject"), scores(1, 1, 1, 1, "beside the point")


def tagged(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


@dataclass
class Asked:
    """One call to an agent: its role, the question, and the rest of the prompt."""

    role: str
    question: str
    user: str
    seat: str
    settings: dict[str, Any]
    again: bool

    def part(self, tag: str) -> str:
        return tagged(self.user, tag)


Script = Callable[[Asked], "str | Reply"]


def _replies(answer: str | Reply) -> Reply:
    return answer if isinstance(answer, Reply) else Reply(answer, tokens_in=100, tokens_out=10, seconds=0.5)


@dataclass(eq=False)
class ScriptedAgent(AuxModel):
    """Stands in for an AuxModel as planner, critic or both; remembers its prompts, batch by batch."""

    planner: Script = lambda asked: plan("en")
    critic: Script = lambda asked: GOOD
    sufficiency: Script = lambda asked: enough(True)
    name: str = "scripted"
    batches: list[list[Asked]] = field(default_factory=list)
    behind_api: bool = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__init__(ModelSpec(model="dummy"), name=self.name)

    @property
    def asked(self) -> list[Asked]:
        return [asked for batch in self.batches for asked in batch]

    def of(self, role: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.role == role]

    def check(self) -> None:
        pass

    def check_ahead(self) -> None:
        pass

    def answer(
        self, seat: Seat, conversations: Sequence[Conversation], decoding: Generation, purpose: str, *_: Any
    ) -> list[Reply]:
        if not conversations:
            return []
        self.batches.append([self._asked(c, purpose, decoding.model_dump()) for c in conversations])
        scripts = {"plan": self.planner, "replan": self.planner, "critic": self.critic, "sufficiency": self.sufficiency}
        return [_replies(scripts[asked.role](asked)) for asked in self.batches[-1]]

    def _asked(self, conversation: Conversation, seat: str, settings: dict[str, Any]) -> Asked:
        user = next(turn["content"] for turn in conversation if turn["role"] == "user")
        role = (
            "replan"
            if "<previous_query>" in user
            else "sufficiency"
            if "<documents>" in user
            else "critic"
            if "<document>" in user
            else "plan"
        )
        again = conversation[-1]["content"] != user
        return Asked(role, tagged(user, "question").split("\n")[0], user, seat, settings, again)


class Shelf:
    """A search with documents ``(id, score)`` for every language, in any order; the query is recorded and ignored."""

    def __init__(self, by_language: dict[str, Sequence[tuple[str, float]]], k: int = 5) -> None:
        self._by_language, self._k = by_language, k
        self.requests: list[tuple[str, tuple[str, ...]]] = []
        self.calls = 0

    def __call__(self, requests: Sequence[tuple[str, tuple[str, ...], str]]) -> list[list[Hit]]:
        self.calls += 1
        self.requests += [(text, languages) for text, languages, _ in requests]
        return [self._found(text, languages) for text, languages, _ in requests]

    def documents(self, text: str, language: str) -> Sequence[tuple[str, float]]:
        return self._by_language.get(language, ())

    def _found(self, text: str, languages: tuple[str, ...]) -> list[Hit]:
        found = [(pid, lang, score) for lang in languages for pid, score in self.documents(text, lang)]
        best = sorted(found, key=lambda f: (-f[2], f[0]))[: self._k]
        return [Hit(pid, lang, f"Text of {pid}.", score, rank) for rank, (pid, lang, score) in enumerate(best, 1)]


def shelf(*languages: str, each: int = 5) -> Shelf:
    """Return a shelf with ``each`` documents (``en1``, ``en2``, ...) in each language, best first."""
    return Shelf({code: [(f"{code}{n}", 1.0 - n / 100) for n in range(1, each + 1)] for code in languages})


def question(text: str = "Who was it?", lang: str = "en", **changes: Any) -> Start:
    doc = RagDoc(id=changes.pop("id", text), query=text, query_lang=lang, **changes)
    return Start(doc, text)


def run(
    agent: ScriptedAgent, search: Any, *starts: Start, pool: Sequence[str] = POOL, k: int = 5, **settings: Any
) -> list[LoopResult]:
    """Run the loop with one scripted agent as planner and critic."""
    block = Agent(**settings)
    return Coral(block, Agents.of(block, agent, agent), search, pool=pool, k=k).run(starts or [question()])


def ids(candidates: Sequence[Any]) -> list[str]:
    return [candidate.hit.id for candidate in candidates]
