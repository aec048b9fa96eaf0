"""Coverage of an interval by simulation: a population with a known value, and how often intervals contain it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mrag_eval.metrics import Estimate

RESAMPLES = 1000
Draw = Callable[[np.random.Generator], Estimate]
# Coverage that a case must have: large samples of regular data, and small or skewed ones, where more is no fault.
LARGE = (0.93, 0.97)
AT_LEAST = (0.93, 1.0)


@dataclass(frozen=True)
class Case:
    """A population with a known value, and an interval from one sample of it; ``held`` bounds its coverage."""

    name: str
    truth: float
    draw: Draw
    held: tuple[float, float] | None = None


class Simulated(NamedTuple):
    """``coverage`` and mean ``width`` of the intervals of a case, and the share of samples that have one."""

    coverage: float
    width: float
    given: float
    method: str

    def error(self, simulations: int) -> float:
        """Return the simulation's own error: half a 95% interval."""
        if not self.given:
            return 0.0
        return 1.96 * math.sqrt(self.coverage * (1 - self.coverage) / (self.given * simulations))


def simulate(case: Case, simulations: int, rng: np.random.Generator) -> Simulated:
    """Return the coverage and width of simulated intervals; samples without an interval count in ``given`` only."""
    hits, given, width, method = 0, 0, 0.0, ""
    for _ in range(simulations):
        found = case.draw(rng)
        method = found.method
        if found.low is not None and found.high is not None:
            given += 1
            hits += found.low - 1e-12 <= case.truth <= found.high + 1e-12
            width += found.high - found.low
    return Simulated(hits / given if given else math.nan, width / max(1, given), given / simulations, method)


def known(function: Callable[..., Any], **settings: Any) -> dict[str, Any]:
    """Return the settings that a function has, so that the cases run with older versions of the package, too."""
    return {name: value for name, value in settings.items() if name in inspect.signature(function).parameters}
