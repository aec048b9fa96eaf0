"""Asking about many items: settled one by one, faults returned once, failures counted apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrag_eval.building.steps._asking import Ask, ask_items, fault
from mrag_eval.building.steps._records import Outcome, dropped, kept
from mrag_eval.models import Parsed
from tests.building.scripted import ScriptedModel, failed


@dataclass(frozen=True)
class Item:
    id: str
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    id: str
    said: tuple[str, ...]


def read(reply: str) -> Parsed[str]:
    return fault("too long", "it has more than 5 letters, at most 5 are allowed") if len(reply) > 5 else Parsed(reply)


def asked(item: Item) -> list[Ask[str]]:
    return [Ask([{"role": "user", "content": text}], read) for text in item.texts]


def make(item: Item, answers: list[str]) -> Outcome:
    return kept(Said(item.id, tuple(answers)))


def outcomes(script: Any, *items: Item, maker: Any = make) -> dict[str, Outcome]:
    settled: dict[str, Outcome] = {}

    def settle(item: str, outcome: Outcome) -> None:
        assert item not in settled
        settled[item] = outcome

    model: Any = ScriptedModel(script)
    ask_items(model, items, asked, maker, settle, seat="test")
    return settled


def test_answers_come_to_the_item_they_belong_to() -> None:
    got = outcomes(
        lambda p: p.upper(),
        Item(
            "a",
            (
                "x",
                "y",
            ),
        ),
        Item("b", ("z",)),
    )
    assert got["a"].made == (
        Said(
            "a",
            (
                "X",
                "Y",
            ),
        ),
    )
    assert got["b"].made == (Said("b", ("Z",)),)


def test_an_item_is_settled_before_the_next_is_asked() -> None:
    order: list[str] = []

    def script(prompt: str) -> str:
        order.append(f"asked {prompt}")
        return prompt

    def noting(item: Item, answers: list[str]) -> Outcome:
        order.append(f"settled {item.id}")
        return make(item, answers)

    outcomes(script, Item("a", ("x",)), Item("b", ("y",)), maker=noting)
    assert order == ["asked x", "settled a", "asked y", "settled b"]


def test_a_broken_rule_goes_back_once_and_then_names_the_drop() -> None:
    said: list[str] = []

    def script(prompt: str) -> str:
        said.append(prompt)
        return "short" if "more than 5 letters" in prompt and "twice" not in said[0] else "much longer"

    got = outcomes(script, Item("a", ("once",)))
    assert got["a"].made == (Said("a", ("short",)),)
    assert "at most 5 are allowed" in said[1]
    said.clear()
    (drop,) = outcomes(script, Item("a", ("twice",)))["a"].drops
    assert (drop.reason, drop.passing) == ("too long", False)
    assert "at most 5" in drop.detail


def test_an_unreadable_reply_differs_from_a_failed_call() -> None:
    def unreadable(reply: str) -> Parsed[str]:
        return Parsed(None, "there is no <x> in the reply")

    model: Any = ScriptedModel(lambda prompt: failed() if prompt == "down" else "hm")
    settled: dict[str, Outcome] = {}
    items = [Item("a", ("down",)), Item("b", ("up",))]
    ask_items(
        model,
        items,
        lambda item: [Ask([{"role": "user", "content": t}], unreadable) for t in item.texts],
        make,
        settled.__setitem__,
        seat="test",
    )
    assert settled["a"].drops[0].reason == "call failed: timeout"
    assert settled["a"].drops[0].passing
    assert settled["b"].drops[0].reason == "unreadable reply"
    assert not settled["b"].drops[0].passing


def test_one_item_that_raises_takes_no_other_down() -> None:
    def raising(item: Item, answers: list[str]) -> Outcome:
        if item.id == "a":
            raise KeyError("title")
        return make(item, answers)

    got = outcomes(lambda p: p, Item("a", ("x",)), Item("b", ("y",)), maker=raising)
    assert got["a"].drops[0].reason == "error"
    assert "KeyError" in got["a"].drops[0].detail
    assert got["b"].made
    # and one whose questions cannot even be written
    settled: dict[str, Outcome] = {}
    model: Any = ScriptedModel(lambda prompt: prompt)
    broken: Any = Item("c", None)  # type: ignore[arg-type]
    ask_items(model, [broken], asked, make, settled.__setitem__, seat="test")
    assert settled["c"].drops[0].reason == "error"


def test_an_item_with_nothing_to_ask_is_settled_too() -> None:
    got = outcomes(lambda p: p, Item("a"), maker=lambda item, answers: dropped("nothing to ask"))
    assert got["a"].drops[0].reason == "nothing to ask"


def test_many_items_are_asked_in_batches(monkeypatch: Any) -> None:
    monkeypatch.setattr("mrag_eval.building.steps._asking._AT_A_TIME", 3)
    got = outcomes(lambda p: p, *(Item(str(n), (f"t{n}",)) for n in range(8)))
    assert {name: outcome.made[0].said for name, outcome in got.items()} == {str(n): (f"t{n}",) for n in range(8)}
