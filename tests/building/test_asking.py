"""Asking about many items: settled one by one, faults returned once, failures counted apart."""

from __future__ import annotations

from typing import Any

from mrag_eval.building.steps._asking import Ask, ask_items, failure, fault
from mrag_eval.building.steps._records import Outcome, Record, dropped, kept
from mrag_eval.models import Answered, Parsed
from tests.building.scripted import ScriptedModel, failed


def read(reply: str) -> Parsed[str]:
    return fault("too long", "it has more than 5 letters, at most 5 are allowed") if len(reply) > 5 else Parsed(reply)


def asked(item: Record) -> list[Ask[str]]:
    return [Ask([{"role": "user", "content": text}], read) for text in item["texts"]]


def make(item: Record, answers: list[Answered[str]]) -> Outcome:
    lost = failure(answers)
    if lost is not None:
        return Outcome(drops=(lost,))
    return kept({"id": item["id"], "said": [answer.value for answer in answers]})


def outcomes(script: Any, *items: dict[str, Any], maker: Any = make) -> dict[str, Outcome]:
    settled: dict[str, Outcome] = {}

    def settle(item: str, outcome: Outcome) -> None:
        assert item not in settled
        settled[item] = outcome

    model: Any = ScriptedModel(script)
    ask_items(model, items, asked, maker, settle, seat="test")
    return settled


def test_answers_come_to_the_item_they_belong_to() -> None:
    got = outcomes(lambda p: p.upper(), {"id": "a", "texts": ["x", "y"]}, {"id": "b", "texts": ["z"]})
    assert got["a"].made == ({"id": "a", "said": ["X", "Y"]},)
    assert got["b"].made == ({"id": "b", "said": ["Z"]},)


def test_an_item_is_settled_before_the_next_is_asked() -> None:
    order: list[str] = []

    def script(prompt: str) -> str:
        order.append(f"asked {prompt}")
        return prompt

    def noting(item: Record, answers: list[Answered[str]]) -> Outcome:
        order.append(f"settled {item['id']}")
        return make(item, answers)

    outcomes(script, {"id": "a", "texts": ["x"]}, {"id": "b", "texts": ["y"]}, maker=noting)
    assert order == ["asked x", "settled a", "asked y", "settled b"]


def test_a_broken_rule_goes_back_once_and_then_names_the_drop() -> None:
    said: list[str] = []

    def script(prompt: str) -> str:
        said.append(prompt)
        return "short" if "more than 5 letters" in prompt and "twice" not in said[0] else "much longer"

    got = outcomes(script, {"id": "a", "texts": ["once"]})
    assert got["a"].made == ({"id": "a", "said": ["short"]},)
    assert "at most 5 are allowed" in said[1]
    said.clear()
    (drop,) = outcomes(script, {"id": "a", "texts": ["twice"]})["a"].drops
    assert (drop.reason, drop.passing) == ("too long", False)
    assert "at most 5" in drop.detail


def test_an_unreadable_reply_differs_from_a_failed_call() -> None:
    def unreadable(reply: str) -> Parsed[str]:
        return Parsed(None, "there is no <x> in the reply")

    model: Any = ScriptedModel(lambda prompt: failed() if prompt == "down" else "hm")
    settled: dict[str, Outcome] = {}
    items = [{"id": "a", "texts": ["down"]}, {"id": "b", "texts": ["up"]}]
    ask_items(
        model,
        items,
        lambda item: [Ask([{"role": "user", "content": t}], unreadable) for t in item["texts"]],
        make,
        settled.__setitem__,
        seat="test",
    )
    assert settled["a"].drops[0].reason == "call failed: timeout"
    assert settled["a"].drops[0].passing
    assert settled["b"].drops[0].reason == "unreadable reply"
    assert not settled["b"].drops[0].passing


def test_one_item_that_raises_takes_no_other_down() -> None:
    def raising(item: Record, answers: list[Answered[str]]) -> Outcome:
        if item["id"] == "a":
            raise KeyError("title")
        return make(item, answers)

    got = outcomes(lambda p: p, {"id": "a", "texts": ["x"]}, {"id": "b", "texts": ["y"]}, maker=raising)
    assert got["a"].drops[0].reason == "error"
    assert "KeyError" in got["a"].drops[0].detail
    assert got["b"].made
    # and one whose questions cannot even be written
    settled: dict[str, Outcome] = {}
    model: Any = ScriptedModel(lambda prompt: prompt)
    ask_items(model, [{"id": "c"}], asked, make, settled.__setitem__, seat="test")
    assert settled["c"].drops[0].reason == "error"


def test_an_item_with_nothing_to_ask_is_settled_too() -> None:
    got = outcomes(lambda p: p, {"id": "a", "texts": []}, maker=lambda item, answers: dropped("nothing to ask"))
    assert got["a"].drops[0].reason == "nothing to ask"


def test_many_items_are_asked_in_batches(monkeypatch: Any) -> None:
    monkeypatch.setattr("mrag_eval.building.steps._asking._AT_A_TIME", 3)
    got = outcomes(lambda p: p, *({"id": str(n), "texts": [f"t{n}"]} for n in range(8)))
    assert {name: outcome.made[0]["said"] for name, outcome in got.items()} == {str(n): [f"t{n}"] for n in range(8)}
