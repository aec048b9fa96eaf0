"""Scripted in-process judges: no server, no cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from mrag_eval.config import Generation, ModelSpec
from mrag_eval.models import AuxModel, Reply, Seat, behind_api
from mrag_eval.prompts import Conversation

# Maps the last message of a conversation to a reply, or to the error of a failed call.
Script = Callable[[str], "str | Reply"]


def verdict(word: str, why: str = "because") -> str:
    return f'{{"justification": "{why}", "answer": "{word}"}}'


def always(word: str) -> Script:
    return lambda prompt: verdict(word)


def failing(reason: str = "timeout") -> Script:
    return lambda prompt: Reply("", error=f"{reason}: nothing came")


def exact(prompt: str) -> str:
    """Reply "correct" if the generated answer is exactly one of the golden ones."""
    golden = re.findall(r"<golden_answer>\n(.*?)\n</golden_answer>", prompt, re.DOTALL)
    (answer,) = re.findall(r"<generated_answer>\n(.*?)\n</generated_answer>", prompt, re.DOTALL)
    return verdict("correct" if answer in golden else "incorrect")


class ScriptedJudge(AuxModel):
    """Stands in for an AuxModel; remembers its prompts."""

    def __init__(self, script: Script, model: str = "acme/judge-1") -> None:
        super().__init__(ModelSpec(model="dummy", model_args={"model": model}), name="scripted")
        self.script = script
        self.asked: list[Conversation] = []
        self.seats: list[tuple[str, Any]] = []

    def check(self) -> None:
        pass

    def check_ahead(self) -> None:
        behind_api(self.spec, self.name)

    def answer(
        self, seat: Seat, conversations: Sequence[Conversation], decoding: Generation, purpose: str, *_: Any
    ) -> list[Reply]:
        self.asked += conversations
        if conversations:
            self.seats.append((purpose, decoding.seed))
        replies = [self.script(c[-1]["content"]) for c in conversations]
        return [r if isinstance(r, Reply) else Reply(r, tokens_in=10, tokens_out=5) for r in replies]


def lists_answers(prompt: str) -> str:
    """Reply with the numbers of the passages that contain a golden answer exactly."""
    golden = re.findall(r"<golden_answer>\n(.*?)\n</golden_answer>", prompt, re.DOTALL)
    passages = re.findall(r"<passage_(\d+)>\n(.*?)\n</passage_\1>", prompt, re.DOTALL)
    return str([int(number) for number, text in passages if any(answer in text for answer in golden)])


def on_claim(prompt: str, label: str, passage: int | None = None, why: str = "because") -> str:
    """Return a verdict on the claim of a prompt, or of a request to repeat one, under the code that is there last."""
    code = re.findall(r"(?:label|passage)_([0-9a-f]{8})", prompt)[-1]
    return json.dumps({"justification": why, f"label_{code}": label, f"passage_{code}": passage}, ensure_ascii=False)


def claim_of(prompt: str) -> tuple[str, list[str]]:
    """Return the claim that a prompt shows, and the texts of its passages."""
    (claim,) = re.findall(r"<claim>\n(.*?)\n</claim>", prompt, re.DOTALL)
    passages = re.findall(r"<passage_(\d+)>\n(.*?)\nLanguage: [\w-]+\n</passage_\1>", prompt, re.DOTALL)
    return claim, [text for _, text in passages]


def supports(prompt: str) -> str:
    """Say that the first passage supports the claim which holds it word by word, stops aside; none: not found."""
    claim, passages = claim_of(prompt)
    place = next((n for n, text in enumerate(passages, 1) if claim.strip(" .。") in text), None)
    return on_claim(prompt, "not_found" if place is None else "supported", place)
