"""Concurrence by territory: the value of each territory in every score that is a mean over territories."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.metrics._concurrence import _MEANS, _territory_sums
from mrag_eval.metrics._response_sets import Refusals, Row, read_response_sets


def concurrence_by_territory(
    territories: Sequence[Row], responses: Sequence[Row], *, refusals: Refusals = "official"
) -> dict[str, dict[str, float]]:
    """Return territory -> score -> value; the mean over the territories with a value is the score.

    So two runs can be compared territory by territory. Arguments, names and errors as in
    :func:`~mrag_eval.metrics.concurrence_scores`. A territory has no value of a score that does not count it.

    ``delta_CS_difference`` = Con_CS - Non_CS is a difference of means over different territories. Its values are T (c /
    C - d / D), where c and d are the territory's values in Con_CS and Non_CS (0 without one), C and D the numbers of
    territories with one, and T that of territories with either: their mean is the difference. ``delta_CS_ratio`` and
    the deviations are no means, and have no values.
    """
    answers = read_response_sets(territories, responses, refusals)
    sums, k, names = _territory_sums(answers), len(_MEANS), list(_MEANS)
    found: dict[str, dict[str, float]] = {}
    for entry, row in zip(answers.sets, sums.tolist(), strict=True):
        found[entry.territory.name] = {name: row[i] for i, name in enumerate(names) if row[k + i] > 0}
    counts = {name: sum(name in values for values in found.values()) for name in ("Con_CS", "Non_CS")}
    if all(counts.values()):
        either = [values for values in found.values() if not values.keys().isdisjoint(counts)]
        for values in either:
            con, non = (values.get(name, 0.0) / n for name, n in counts.items())
            values["delta_CS_difference"] = len(either) * (con - non)
    return found
