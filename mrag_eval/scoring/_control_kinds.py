"""Controls: replies and rankings that need no model, which show what a metric gives in a language on a task's own rows.

Every metric declares the controls that it has, in :data:`mrag_eval.scoring.METRICS`. A ceiling is what a perfect system
can expect, a floor what one that knows nothing gets. docs/statistics.md describes them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from mrag_eval.core import Scale, points

# Control -> what is scored, as tables name it.
CONTROLS: Final[Mapping[str, str]] = {
    "bare": "first reference",
    "sentence": "first reference in a sentence",
    "inflected": "first reference in other forms of its words, in a sentence",
    "form": "right answer in the demanded form",
    "question": "the question itself",
    "passage": "a sentence of a relevant passage as query",
    "held": "relevant ids in the corpus",
    "other": "another row's answer",
    "english": "the answer in English",
    "chance": "an option at random",
    "foreign": "a question in another language",
    "random": "a ranking at random",
    "beside": "first reference beside a relevant passage",
    "aside": "another row's answer beside it",
}
# Controls that are computed, not measured: they have no interval.
CLOSED_FORM: Final = frozenset({"chance", "random"})
# A ceiling that is further than this from the best value marks its language, and so does a reference metric's floor
# that is further than this from the worst: ten points of a difference are then the instrument's.
MOST_LOST: Final = 0.10
# With a smaller gap between ceiling and floor, a score is not shown as a share of it: errors would grow fivefold.
LEAST_GAP: Final = 0.20


@dataclass(frozen=True, slots=True)
class Control:
    """The controls of a metric.

    Attributes:
        kind: what the metric reads: reference, choice, form, language, ranking, judged, support, or none.
        ceilings: names of controls, the one first that a score is held against. ``inflected`` is known where
            simplemma is installed.
        floors: likewise.
        why: why the metric has none.
    """

    kind: str
    ceilings: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    why: str = ""

    def ceiling(self, known: Container[str]) -> str:
        """Return the ceiling that a score is held against: the first one of which something is ``known``."""
        return next((name for name in self.ceilings if name in known), "")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the controls, ceilings first."""
        return (*self.ceilings, *self.floors)


# A metric that looks for a reference in the reply: words around it should not matter.
HOLDS = Control("reference", ("inflected", "sentence", "bare"), ("other", "english"))
# A metric that compares the whole reply with a reference.
EQUALS = Control("reference", ("bare", "sentence", "inflected"), ("other", "english"))
CHOICE = Control("choice", ("form",), ("chance",))
# A metric that asks whether the reply has the form that the prompt demands.
FORM = Control("form", ("form",))
LANGUAGE = Control("language", ("question", "bare"), ("foreign",))
RANKING = Control("ranking", ("passage", "held"), ("random",))
# ``mrag-eval controls`` measures these, in each language that a relevant passage has; a run does not.
SUPPORT = Control("support", ("beside",), ("aside",))
# Judges cost money, so that only ``mrag-eval controls --judge`` asks them.
JUDGED = Control("judged", ("bare", "sentence"), ("other",))


# Kind -> its controls, in the order of tables.
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    one.kind: tuple(name for name in CONTROLS if name in one.names)
    for one in (HOLDS, CHOICE, FORM, LANGUAGE, RANKING, JUDGED, SUPPORT)
}


def uncontrolled(why: str) -> Control:
    """Return the controls of a metric that has none, with the reason."""
    return Control("none", why=why)


def control_mark(control: Control, scale: Scale, more: bool | None, means: Mapping[str, float | None]) -> str | None:
    """Return why scores of a language are marked, from the ``means`` of its controls; None if they are not.

    ``more``: whether more of the metric is better; None if neither is, and then nothing is marked. Where no
    reference could be inflected, the loss on such answers is not known, and the language marked.
    """
    low, high = scale.bounds
    if more is None or not control.ceilings:
        return None
    best, worst = (high, low) if more else (low, high)
    ends = [(control.ceiling(means), best)]
    if control.kind == "reference":
        ends.append((control.floors[0], worst))
    said = [
        f"{CONTROLS[name]} scores {points(found, scale=scale)}"
        for name, end in ends
        if (found := means.get(name)) is not None and abs(end - found) > MOST_LOST
    ]
    if ends[0][0] == "inflected" and means["inflected"] is None:
        said.append(f"{CONTROLS['inflected']}, is not known")
    return ", ".join(said) or None
