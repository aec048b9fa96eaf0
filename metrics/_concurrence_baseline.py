"""Expected concurrence scores of random answers: the RANDOM row of a table, computed."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.metrics._response_sets import Row, TerritoryQueries, read_territories


def random_concurrence(territories: Sequence[Row]) -> dict[str, float | None]:
    """Return the expected concurrence scores if every question is answered by a random option, independently.

    ``territories`` as in :func:`~mrag_eval.metrics.concurrence_scores`. With k claimants and m languages asked, an
    answer is the controller with probability 1/k (0 if the controller is not a claimant), two answers concur with 1/k,
    and k (1 - (1 - 1/k)^m) countries are named on average. The deltas are those of the two expected means. None if no
    territory counts. The published tables print the constant 43.5 in this row instead.
    """
    known = read_territories(territories)
    with_controller = [t for t in known if t.controller is not None]
    con = _mean([_hit(t) for t in with_controller if t.controller_lang in t.query_ids])
    non = _mean([_hit(t) for t in with_controller if any(code != t.controller_lang for code in t.query_ids)])
    asked_twice = [t for t in known if len(t.query_ids) > 1]
    difference = None if con is None or non is None else con - non
    return {
        "KB_CS": _mean([_hit(t) for t in with_controller]),
        "controller_share": _mean([_hit(t) for t in with_controller]),
        "Con_CS": con,
        "Non_CS": non,
        "delta_CS_ratio": difference / non if difference is not None and non else None,
        "delta_CS_difference": difference,
        "Cst_CS_unk": _mean([1 / len(t.claimants) for t in asked_twice if t.controller is None]),
        "Cst_CS_all": _mean([1 / len(t.claimants) for t in asked_twice]),
        "countries_mean": _mean([_distinct(len(t.claimants), len(t.query_ids)) for t in known]),
    }


def _hit(territory: TerritoryQueries) -> float:
    return 1 / len(territory.claimants) if territory.controller in territory.claimants else 0.0


def _distinct(options: int, draws: int) -> float:
    return float(options * (1 - (1 - 1 / options) ** draws))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
