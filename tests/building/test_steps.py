"""The step runner: what is kept, what is repeated, what is counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building.steps._records import Outcome, Settle, dropped, each, kept
from mrag_eval.building.steps._steps import Step, read_records, run_steps, step_records
from mrag_eval.platform import ConfigError, CorpusError
from tests.building.scripted import ScriptedModel


@dataclass(frozen=True)
class Item:
    id: str
    n: int = 0


@dataclass(frozen=True)
class Article(Item):
    text: str = "long"


def source(count: int = 4) -> Step:
    def read(_: Sequence[Item], settle: Settle) -> None:
        for n in range(count):
            settle(f"line {n}", kept(Article(f"a{n}", n)))

    return Step("articles", read, {"count": count})


class Doubling:
    """A step that remembers the items it received."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, items: Sequence[Item], settle: Settle) -> None:
        def make(item: Item) -> Outcome:
            self.given.append(item.id)
            if item.n == 1:
                return dropped("odd", "one is odd")
            return kept(*(Item(f"{item.id}-{i}", item.n) for i in range(2)))

        each(items, make, settle)


def step(name: str, work: Any, settings: Any = None, **more: Any) -> Step:
    return Step(name, work, settings or {}, Item, **more)


def records(folder: Path, name: str) -> list[Item]:
    return list(read_records(step_records(folder, name), Item))


def test_every_step_leaves_its_records_its_drops_and_its_counts(tmp_path: Path) -> None:
    said: list[str] = []
    reports = run_steps([source(), step("double", Doubling())], tmp_path, say=said.append)
    assert [(r.taken, r.made, dict(r.dropped)) for r in reports] == [(4, 4, {}), (4, 6, {"odd": 1})]
    assert [r.id for r in records(tmp_path, "double")] == ["a0-0", "a0-1", "a2-0", "a2-1", "a3-0", "a3-1"]
    drops = (tmp_path / "02_double.dropped.jsonl").read_text()
    assert json.loads(drops) == {"id": "a1", "reason": "odd", "detail": "one is odd"}
    assert json.loads((tmp_path / "02_double.json").read_text())["dropped"] == {"odd": 1}
    assert said[1].startswith("double       4 in, 6 out · dropped 1 (odd 1)")
    # neither journals nor partial files remain
    assert not [p.name for p in tmp_path.iterdir() if "journal" in p.name or "partial" in p.name]


def test_finished_work_is_not_repeated(tmp_path: Path) -> None:
    run_steps([source(), step("double", Doubling())], tmp_path)
    again = Doubling()
    said: list[str] = []
    reports = run_steps([source(), step("double", again)], tmp_path, say=said.append)
    assert again.given == []
    assert reports[1].made == 6
    assert all(line.endswith("reused") for line in said)


def test_a_changed_setting_redoes_that_step_and_the_later_ones_and_says_so(tmp_path: Path) -> None:
    def steps(limit: int) -> tuple[Doubling, Doubling, list[Step]]:
        first, second = Doubling(), Doubling()
        return first, second, [source(), step("one", first, {"limit": limit}), step("two", second)]

    run_steps(steps(1)[2], tmp_path)
    first, second, changed = steps(2)
    said: list[str] = []
    run_steps(changed, tmp_path, say=said.append)
    assert first.given
    assert second.given
    assert said[0].endswith("reused")
    assert "one          its settings, or a step before it, changed: repeating the step" in said
    assert "two          its settings, or a step before it, changed: repeating the step" in said


def test_records_that_were_edited_by_hand_are_noticed(tmp_path: Path) -> None:
    run_steps([source(), step("one", Doubling())], tmp_path)
    path = step_records(tmp_path, "articles")
    path.write_text(path.read_text().replace('"n": 2', '"n": 1'))
    assert run_steps([source(), step("one", Doubling())], tmp_path)[1].dropped == {"odd": 2}


class KilledError(BaseException):
    pass


def test_a_killed_step_resumes_where_it_stopped(tmp_path: Path) -> None:
    def killed(items: Sequence[Item], settle: Settle) -> None:
        settle("a0", kept(Item("a0")))
        settle("a1", dropped("odd"))
        raise KilledError

    with pytest.raises(KilledError):
        run_steps([source(), step("double", killed)], tmp_path)
    # the kill came in the middle of a line
    with (tmp_path / "02_double.journal.jsonl").open("ab") as handle:
        handle.write(b'{"item": "a2", "made": [{"id": "a')
    assert not (tmp_path / "02_double.jsonl").exists()
    again = Doubling()
    report = run_steps([source(), step("double", again)], tmp_path)[1]
    assert again.given == ["a2", "a3"]
    assert (report.resumed, report.made, dict(report.dropped)) == (2, 5, {"odd": 1})
    assert [r.id for r in records(tmp_path, "double")] == ["a0", "a2-0", "a2-1", "a3-0", "a3-1"]


def test_a_journal_of_other_settings_is_started_over(tmp_path: Path) -> None:
    def killed(items: Sequence[Item], settle: Settle) -> None:
        settle("a0", kept(Item("a0")))
        raise KilledError

    with pytest.raises(KilledError):
        run_steps([source(), step("double", killed, {"limit": 1})], tmp_path)
    again = Doubling()
    said: list[str] = []
    run_steps([source(), step("double", again, {"limit": 2})], tmp_path, say=said.append)
    assert again.given == ["a0", "a1", "a2", "a3"]
    assert "double       settings or input changed since it was interrupted: restarted" in said


def test_a_step_with_dependent_items_starts_over(tmp_path: Path) -> None:
    def killed(items: Sequence[Item], settle: Settle) -> None:
        settle("a0", kept(Item("a0")))
        raise KilledError

    with pytest.raises(KilledError):
        run_steps([source(), step("pairs", killed, whole=True)], tmp_path)
    again = Doubling()
    run_steps([source(), step("pairs", again, whole=True)], tmp_path)
    assert again.given == ["a0", "a1", "a2", "a3"]


def test_only_transient_failures_are_retried(tmp_path: Path) -> None:
    def failing(items: Sequence[Item], settle: Settle) -> None:
        for item in items:
            lost = dropped("call failed: timeout", passing=True)
            settle(item.id, lost if item.n == 2 else kept(item))

    first = run_steps([source(), step("ask", failing)], tmp_path)
    assert (first[1].made, first[1].failed) == (3, 1)
    again = Doubling()
    said: list[str] = []
    second = run_steps([source(), step("ask", again)], tmp_path, say=said.append)
    assert again.given == ["a2"]
    assert (second[1].made, second[1].failed) == (5, 0)
    assert "ask          1 calls had failed: retrying those items" in said
    assert run_steps([source(), step("ask", Doubling())], tmp_path)[1].reused


def test_an_item_that_raises_is_dropped_and_one_left_alone_is_too(tmp_path: Path) -> None:
    def work(items: Sequence[Item], settle: Settle) -> None:
        each(items[:2], lambda item: kept(Item(item.id, 1 // item.n)), settle)

    report = run_steps([source(), step("divide", work)], tmp_path)[1]
    assert report.dropped == {"no result": 2, "error": 1}
    assert "ZeroDivisionError" in (tmp_path / "02_divide.dropped.jsonl").read_text()


def test_a_setting_that_concerns_every_item_ends_the_run(tmp_path: Path) -> None:
    def work(items: Sequence[Item], settle: Settle) -> None:
        def make(_: Item) -> Outcome:
            raise ConfigError("no such model")

        each(items, make, settle)

    with pytest.raises(ConfigError):
        run_steps([source(), step("ask", work)], tmp_path)


def test_a_step_that_leaves_nothing_lets_the_others_count_nothing(tmp_path: Path) -> None:
    def nothing(items: Sequence[Item], settle: Settle) -> None:
        each(items, lambda item: dropped("unrelated"), settle)

    reports = run_steps([source(), step("none", nothing), step("after", Doubling())], tmp_path)
    assert [(r.taken, r.made) for r in reports] == [(4, 4), (4, 0), (0, 0)]


def test_two_records_of_one_id_are_refused(tmp_path: Path) -> None:
    def same(items: Sequence[Item], settle: Settle) -> None:
        each(items, lambda item: kept(Item("x")), settle)

    with pytest.raises(ValueError, match="two records with the id 'x'"):
        run_steps([source(), step("same", same)], tmp_path)


def test_only_the_fields_of_the_kind_are_read(tmp_path: Path) -> None:
    seen: list[Item] = []

    def look(items: Sequence[Item], settle: Settle) -> None:
        seen.extend(items)
        each(items, lambda item: Outcome(), settle)

    report = run_steps([source(1), step("look", look)], tmp_path)[1]
    assert seen == [Item("a0")]
    assert (report.made, dict(report.dropped)) == (0, {})


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    def inner(items: Sequence[Item], settle: Settle) -> None:
        run_steps([source()], tmp_path)

    with pytest.raises(CorpusError, match="another process"):
        run_steps([source(), step("inner", inner)], tmp_path)


def test_calls_are_counted_by_step(tmp_path: Path) -> None:
    model: Any = ScriptedModel(lambda prompt: "yes")

    def ask(items: Sequence[Item], settle: Settle) -> None:
        model.seat().generate([[{"role": "user", "content": item.id}] for item in items])
        each(items, lambda item: kept(item), settle)

    steps = [source(), step("one", ask, models=(model,)), step("two", ask, models=(model,))]
    reports = run_steps(steps, tmp_path)
    assert [r.ledgers.get("scripted", {}).get("calls") for r in reports] == [None, 4, 4]
    assert reports[2].ledgers["scripted"]["tokens_in"] == 40
    assert reports[2].came_back["scripted"]["tokens_in"] == 40
