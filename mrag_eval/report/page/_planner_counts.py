"""Counts of what the agents did, over the traces in the samples."""

from __future__ import annotations

from collections import Counter, defaultdict

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._samples import Sample
from mrag_eval.report.page._points import Point, shares

# The critic's criteria, each scored from 1 to 5.
_CRITERIA = ("relevance", "usefulness", "clarity_specificity", "compatibility")
_COSTS = frozenset({"calls", "cached", "tokens_in", "tokens_out", "seconds"})


class PlannerCounts:
    """Count the agents' choices by round, over the rows of a benchmark's tasks (CORAL, Figure 3)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.models: dict[str, str] = {}
        self.chosen: Counter[tuple[int, str, str]] = Counter()
        self.shown: Counter[tuple[str, str]] = Counter()
        self.found: Counter[tuple[int, str]] = Counter()
        self.verdicts: Counter[tuple[int, str]] = Counter()
        self.critic: dict[tuple[int, str], list[float]] = defaultdict(list)
        self.cost: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, leaf: Leaf, sample: Sample) -> None:
        """Count one row; rows without a trace are skipped."""
        trace = sample.trace
        if not trace:
            return
        agent = leaf.result.config.agent
        self.models |= {role: str(agent.get(role) or "") for role in ("planner", "critic")}
        source = sample.source_language
        rounds = trace.get("rounds") or []
        for each in rounds:
            number = int(each["round"])
            for code in each.get("languages") or ():
                self.chosen[number, source, code] += 1
            for hit in each.get("hits") or ():
                if hit.get("new"):
                    self.found[number, "kept" if hit.get("valid") else "discarded"] += 1
                    for name in _CRITERIA:
                        if isinstance((hit.get("critic") or {}).get(name), int | float):
                            self.critic[number, name].append(float(hit["critic"][name]))
            for role, usage in (each.get("usage") or {}).items():
                self.cost[role].update({key: value for key, value in usage.items() if key in _COSTS})
            enough = each.get("enough_documents")
            if each is rounds[-1] and enough is None:
                self.verdicts[number, f"ended: {str(trace.get('stopped')).replace('_', ' ')}"] += 1
            elif enough is not None:
                self.verdicts[number, "enough" if enough else "not enough"] += 1
        for hit in sample.passages:
            self.shown[source, hit.original_lang or hit.lang] += 1

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

    def cost_points(self) -> list[Point]:
        """Return the cost of each of the agents."""
        return [
            {
                "task": self.name,
                "about": f"agents: {role}",
                "model": self.models.get(role, self.models["planner"]),
                **cost,
            }
            for role, cost in self.cost.items()
        ]
