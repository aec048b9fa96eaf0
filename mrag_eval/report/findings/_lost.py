"""Where answers are lost: the largest stage and the language that loses most there, or of a log what goes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mrag_eval.config import mode_named
from mrag_eval.core import same_language
from mrag_eval.platform import number_of
from mrag_eval.report.files._leaves import PageRow
from mrag_eval.report.findings._languages import named
from mrag_eval.report.findings._record import Finding, Number, sentences
from mrag_eval.report.findings._systems import Seen, ranked
from mrag_eval.report.findings._tests import LEVEL, Array, Questions, association_p, confirmed, peel
from mrag_eval.report.tables._policies import run_with
from mrag_eval.scoring import right_language

# What the wrong answers of a log may go with, as it is said of them.
_CONTEXTS, _REPLY = "had contexts in another language", "were in another language than the question"


def _apart(row: PageRow, what: str) -> bool | None:
    """Return whether the languages of a row's question and of its contexts, or reply, differ; None if unknown."""
    if what == _REPLY:
        return None if (same := right_language(row.values)) is None else same == 0.0
    asked, _, other = row.contexts.partition("->")
    return None if other in ("", "several", "unknown") else asked != other


class Lost:
    """Look at the stage at which most answers are lost, by language; of a log at the languages beside its answers."""

    def __init__(self, shown: Sequence[Seen]) -> None:
        self._shown, known = ranked(shown), sentences()["stages"]
        self._leaves = [leaf for one in self._shown for leaf in one.system.leaves]
        tables = {leaf.label: own for leaf in self._leaves if (own := leaf.result.scores.attribution) is not None}
        self._counts = Counter(
            {name: sum(own.overall.stages.get(name, 0) for own in tables.values()) for name in known}
        )
        self._tasks, ((stage, most), *_) = [*tables], self._counts.most_common()
        marked = [
            (one, [(key[0], row.group, float(row.stage == stage)) for key, row in one.rows.items() if row.stage])
            for one in self._shown
            if most
        ]
        self._looks = [(one, rows) for one, units in marked if len((rows := Questions.of(units)).names) > 1]
        logs = [one for one in self._shown if not {leaf.label for leaf in one.system.leaves} & {*tables}]
        pairs = [(one, what, self._marks(one, what)) for one in logs for what in (_CONTEXTS, _REPLY)]
        self._beside = [(association_p([*marks.values()]), one, what, marks) for one, what, marks in pairs if marks]
        self.tests = len(self._looks) + len(self._beside)

    @staticmethod
    def _marks(one: Seen, what: str) -> dict[str, list[tuple[bool, bool]]]:
        """Return by language of the question whether each answer is wrong, and whether its languages differ."""
        # questions that belong together count once
        rows = {row.group: (key[0], row.values[one.metric], _apart(row, what)) for key, row in one.rows.items()}
        out: dict[str, list[tuple[bool, bool]]] = {}
        for language, value, apart in rows.values():
            if value not in (0.0, 1.0):
                return {}
            if apart is not None:
                out.setdefault(language, []).append(((value == 0.0) == (one.sign > 0), apart))
        return out

    def say(self, level: float) -> list[Finding]:
        """Return the stage with most wrong answers and a language that stands out there, or what goes with them."""
        share, corrected = level / max(1, self.tests), f", corrected for {self.tests} looks" if self.tests > 1 else ""
        return [*self._stage(share, corrected), *self._association(share, corrected)]

    def _stage(self, share: float, corrected: str) -> list[Finding]:
        known, ((stage, n), *others) = sentences()["stages"], self._counts.most_common()
        if not n:
            return []
        words = {
            "wrong": number_of(self._counts.total(), "wrong answer"),
            "n": f"{n:,}",
            "why": known[stage],
            "where": "",
        }
        words["second"] = f"; {others[0][1]:,} {known[others[0][0]]}" if others[0][1] else ""
        words["whose"] = " of all systems" if len(self._shown) > 1 else ""
        direct, oracle = mode_named("all"), mode_named("gold_lang")
        leaves = [leaf for leaf in self._leaves if mode_named(leaf.mode) is direct and stage == "not retrieved"]
        found = [(leaf.task, score.by) for leaf in leaves for score in leaf.result.metrics.values()]
        # what lies in reach of a search in another language is known by the language oracle alone
        crossing = (
            task for task, by in found if any(not same_language(*one.split("->")) for one in by.get("pair", ()))
        )
        told = any(mode_named(leaf.mode) is oracle for leaf in self._leaves)
        command = "" if told else next((run_with(task, mode="gold_lang") for task in crossing), "")
        looks = [(one, own, confirmed([own], peel([own]), share)) for one, own in self._looks]
        claims = [(step.p, step.language, one, own) for one, own, steps in looks for step in steps if step.side > 0]
        if not claims:
            return [Finding("lost", "lost", words, subjects=(stage,), rows={"tasks": self._tasks}, next=command)]
        p, code, one, own = min(claims, key=lambda claim: claim[0])
        numbers = self._shares(own.values, own.languages == code, one.metric, p * LEVEL / share)
        words["where"] = (
            f"; they stand out in {named(code)}{f' with {one.name}' * bool(words['whose'])}: {numbers['share']:value} "
            f"of 100 questions against {numbers['others']:value} (p {numbers['share']:p}{corrected})"
        )
        rows = {"tasks": self._tasks, "language": code}
        return [Finding("lost", "lost", words, numbers, (stage, code), "peeling by permutation", rows, command)]

    def _association(self, share: float, corrected: str) -> list[Finding]:
        said = [found for found in self._beside if found[0] <= share]
        if not said:
            return []
        p, one, what, marks = min(said, key=lambda found: found[0])
        wrong, apart = np.array([pair for own in marks.values() for pair in own]).T
        numbers = self._shares(apart.astype(np.float64), wrong, one.metric, p * LEVEL / share)
        words = {"wrong": number_of(int(wrong.sum()), "wrong answer"), "right": f"{int((~wrong).sum()):,}", "why": what}
        words |= {
            "n": f"{int((apart & wrong).sum()):,}",
            "m": f"{int((apart & ~wrong).sum()):,}",
            "corrected": corrected,
        }
        words["whose"] = f" of {one.name}" if len(self._shown) > 1 else ""
        rows = {"tasks": [leaf.label for leaf in one.system.leaves]}
        return [Finding("lost", "beside", words, numbers, (one.name,), "hypergeometric within languages", rows)]

    @staticmethod
    def _shares(values: Array, here: NDArray[np.bool_], metric: str, p: float) -> dict[str, Number]:
        """Return the means of the values that are meant, with their p-value, and of the others."""
        parts = {"share": values[here], "others": values[~here]}
        return {
            name: Number(float(own.mean()), metric, n=len(own), p=min(1.0, p) if name == "share" else None)
            for name, own in parts.items()
        }
