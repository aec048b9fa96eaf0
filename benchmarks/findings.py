"""Simulate pages of findings: how often one claims what is not so, and how often what was planted is found.

    python benchmarks/findings.py              300 pages a world
    python benchmarks/findings.py --quick      3, for a smoke test

A page has two models and ten tasks of six languages with 40 questions each, right or wrong. A world plants something in
it, or nothing; half of the worlds ask all languages the same questions. A claim is false if it names a language or a
model that was not planted, or the wrong side of one. In some worlds each model ran every task once before, and
"changed" or "unchanged" opens the page; the shift of that run is planted too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from mrag_eval.config import Measurement
from mrag_eval.core import pipe_table
from mrag_eval.report import Finding, LeafResult, ResultFile, TaskConfig
from mrag_eval.report.files._leaves import Leaf, PageRow
from mrag_eval.report.findings._find import findings
from mrag_eval.scoring import TaskScores

LANGUAGES = ("ar", "de", "en", "hi", "th", "zh")
MODELS, TASKS, QUESTIONS, RIGHT = ("one", "two"), 10, 40, 0.6
Shift = Callable[[str, int, str], float]


@dataclass(frozen=True)
class World:
    """What is planted: the shift of a model's share of right answers in a task and language, and what may be said.

    ``named`` maps a language to -1 or 1, the side that it is on. ``best`` is the model that may be called best.
    ``before`` is the shift of the run before of each model, if there is one, and ``changed`` the model that it may be
    said of, with the side of its newest run.
    """

    name: str
    shift: Shift
    named: Mapping[str, int]
    best: str = ""
    before: Shift | None = None
    changed: tuple[str, str] = ("", "")


def _in(languages: Sequence[str], by: float, tasks: Sequence[int] = range(TASKS)) -> Shift:
    return lambda _model, task, language: by if language in languages and task in tasks else 0.0


WORLDS = (
    World("nothing", lambda *_: 0.0, {}),
    World("a language 20 points below", _in(["th"], -0.2), {"th": -1}),
    World("a language 40 points below in one task", _in(["th"], -0.4, [3]), {"th": -1}),
    World("one language 20 points above", _in(["en"], 0.2), {"en": 1}),
    World("two languages 20 points above", _in(["en", "de"], 0.2), {"en": 1, "de": 1}),
    World("a model 5 points ahead", lambda model, *_: 0.05 * (model == "one"), {}, "one"),
    World("a model 20 points ahead", lambda model, *_: 0.2 * (model == "one"), {}, "one"),
    World("run again, nothing", lambda *_: 0.0, {}, before=lambda *_: 0.0),
    World(
        "run again, a model 20 points better in one task",
        lambda *_: 0.0,
        {},
        before=lambda model, task, _: -0.2 * (model == "one" and task == 3),
        changed=("one", "better"),
    ),
    World(
        "run again, a model 20 points worse in every task",
        lambda *_: 0.0,
        {},
        before=lambda model, *_: 0.2 * (model == "one"),
        changed=("one", "worse"),
    ),
)


def page(world: World, rng: np.random.Generator, *, same: bool) -> list[Finding]:
    """Return the findings of a page of this world."""
    runs, rows = [], {}
    shifts = [world.shift] if world.before is None else [world.before, world.shift]
    for task in range(TASKS):
        easy = rng.uniform(-0.3, 0.3, size=QUESTIONS if same else (len(LANGUAGES), QUESTIONS))
        for model, (time, shift) in product(MODELS, enumerate(shifts)):
            name = f"task{task}"
            score = {"rows": len(LANGUAGES) * QUESTIONS, "metrics": {"match": {"value": 0.5, "n": 1}}}
            record = Measurement(name, {}, {"data": {"benchmark": name}, "retrieval": {"mode": "qlang"}}, {}, {})
            result = LeafResult(name, TaskScores.from_dict(score), TaskConfig({}, record), record)
            leaf = Leaf(model, name, f"{name} {model} {time}", "qlang", name, "", result, None)
            runs.append((leaf, ResultFile(Path(model) / f"results{time}.json", model, float(time), {name: result})))
            rows[leaf.label] = [
                PageRow((code, f"{code}{i}"), code, f"{i}" if same else f"{code}{i}", {"match": float(hit)}, {})
                for at, code in enumerate(LANGUAGES)
                for i, hit in enumerate(
                    rng.random(QUESTIONS) < RIGHT + (easy if same else easy[at]) + shift(model, task, code)
                )
            ]
    return findings(runs, rows)


def judged(found: Sequence[Finding], world: World) -> tuple[bool, bool]:
    """Return whether a page claims what is not so, and whether it says all that was planted."""
    false, said = False, set()
    for one in found:
        if one.kind == "whom":
            side = -1 if one.words["side"] in ("falls behind", "worse than") else 1
            false = false or any(world.named.get(code) != side for code in one.subjects)
            said |= {*one.subjects}
        if one.kind == "good" and one.template in ("best", "counted"):
            false = false or any(model != world.best for model in one.subjects)
            said |= {*one.subjects}
        if one.kind == "changed" and one.template == "changed":
            false = false or (one.subjects[0], one.words["side"]) != world.changed
            said |= {*one.subjects}
    wanted = {*world.named, *filter(None, (world.best, world.changed[0]))}
    return false, bool(wanted) and wanted <= said


def main() -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 pages a world")
    pages = 3 if parser.parse_args().quick else 300
    lines = []
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng([2026, number])
        outcomes = [judged(page(world, rng, same=bool(i % 2)), world) for i in range(pages)]
        false, power = (100 * sum(part) / pages for part in zip(*outcomes, strict=True))
        lines.append(
            [world.name, f"{false:.0f}", f"{power:.0f}" if world.named or world.best or world.changed[0] else "-"]
        )
    print(pipe_table(("planted", "false claims, % of pages", "said, % of pages"), lines, "lrr"))


if __name__ == "__main__":
    main()
