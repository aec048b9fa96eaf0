"""The averages that the harness prints, over values gathered from all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval.api.metrics import mean


class _MeanOfScored:
    """The harness's mean, over lists in which the ranks left None where a row has no value.

    It equals the harness's own function, because that is how the harness finds the standard error of a mean; and it
    takes the None out of the list it is given, because the standard error is computed from the same list next. A list
    of nothing but None does not reach it: the first rank leaves such a metric out.
    """

    def __call__(self, values: list[float | None]) -> float:
        values[:] = [v for v in values if v is not None]
        return float(mean(values))

    def __eq__(self, other: object) -> bool:
        return other is self or other is mean

    def __hash__(self) -> int:
        return hash(mean)


mean_of_scored = _MeanOfScored()


def votes_cast(votes: Sequence[Mapping[str, Mapping[str, Any]]]) -> float:
    """The number of votes over all rows, abstentions aside."""
    return float(sum(vote["verdict"] is not None for row in votes for vote in row.values()))
