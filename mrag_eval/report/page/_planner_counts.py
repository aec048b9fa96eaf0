"""Counts of what the agents did, over the traces in the samples."""

from __future__ import annotations

from collections import Counter, defaultdict

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.page._points import Point, shares

# The verdict of a critic that was asked and gave none.
NO_DECISION = "no decision"


class PlannerCounts:
    """Count the agents' choices by round, over the rows of a benchmark's tasks (CORAL, Figure 3)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.chosen: Counter[tuple[int, str, str]] = Counter()
        self.shown: Counter[tuple[str, str]] = Counter()
        self.found: Counter[tuple[int, str]] = Counter()
        self.verdicts: Counter[tuple[int, str]] = Counter()
        self.critic: dict[tuple[int, str], list[int]] = defaultdict(list)

    def add(self, leaf: Leaf, sample: Sample) -> None:
        """Count one row; rows without a trace are skipped."""
        trace = sample.trace
        if trace is None:
            return
        source = sample.source_language
        for each in trace.rounds:
            for code in each.languages:
                self.chosen[each.round, source, code] += 1
            for hit in each.hits:
                if hit.new:
                    self.found[each.round, "kept" if hit.valid else "discarded"] += 1
                    for name, score in hit.critic.by_criterion().items() if hit.critic is not None else ():
                        self.critic[each.round, name].append(score)
            if each.enough_documents is not None:
                self.verdicts[each.round, "enough" if each.enough_documents else "not enough"] += 1
            elif each.undecided is not None:
                self.verdicts[each.round, NO_DECISION] += 1
            elif each is trace.rounds[-1]:
                self.verdicts[each.round, f"ended: {trace.stopped.replace('_', ' ')}"] += 1
        for passage in sample.passages:
            self.shown[source, passage.original_lang or passage.lang] += 1

    def points(self) -> dict[str, list[Point]]:
        """Return points by chart: languages by round, documents found by round, verdicts by round."""
        base = {"run": self.name}
        sums: Counter[tuple[int, str]] = Counter()
        for (number, source, _), n in self.chosen.items():
            sums[number, source] += n
        planned = [
            base
            | {"round": number, "question": source, "language": code, "times": n}
            | {"share": round(100 * n / sums[number, source], 1)}
            for (number, source, code), n in sorted(self.chosen.items())
        ]
        shown = shares({f"{a}->{b}": n for (a, b), n in sorted(self.shown.items())}, base, "question", "document", "n")
        return {
            "planned": planned,
            "planner_shown": shown,
            "selection": [base | {"round": r, "passages": what, "n": n} for (r, what), n in sorted(self.found.items())],
            "relevance": [
                base
                | {"round": r, "criterion": name.replace("_", " "), "value": round(sum(v) / len(v), 2), "n": len(v)}
                for (r, name), v in sorted(self.critic.items())
            ],
            "sufficiency": [
                base | {"round": r, "verdict": what, "n": n} for (r, what), n in sorted(self.verdicts.items())
            ],
        }
