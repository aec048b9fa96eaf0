"""Concurrence scores of a multilingual response set, whole and by territory, beside those of guesses.

From BorderLines (Table 3) and BordIRlines (section 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mrag_eval.core import SHARE, Scale
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._intervals import Estimate, estimates, few_units, interval_for, undefined
from mrag_eval.metrics._resampling import Array
from mrag_eval.metrics._response_sets import (
    AnswerSet,
    Refusals,
    ResponseSets,
    Row,
    TerritoryQueries,
    read_response_sets,
    read_territories,
)

# means over territories, and the cause if each is undefined
_MEANS = {
    "KB_CS": "no territory with a known controller has a scored control answer",
    "Con_CS": "no answer in the language of a controller",
    "Non_CS": "no answer in a language other than the controller's",
    "Cst_CS_unk": "no territory without a controller has answers in two languages",
    "Cst_CS_all": "no territory has answers in two languages",
    "controller_share": "no answer on a territory with a known controller",
    "countries_mean": "no territories",
    "countries_with_en_mean": "no territories",
    "delta_CS_ratio_per_territory": "no territory has a Con_CS and a Non_CS above 0",
    "delta_CS_difference_per_territory": "no territory has a Con_CS and a Non_CS",
}
# functions of those means and of the sums of squares
_DERIVED = {
    "delta_CS_ratio": "Non_CS is 0 or undefined, the ratio would divide by it",
    "delta_CS_difference": "Con_CS or Non_CS is undefined",
    "countries_std": "a single territory has no deviation",
    "countries_with_en_std": "a single territory has no deviation",
}
_REASONS = _MEANS | _DERIVED
_COUNTRIES = Scale("countries", 0.0, None)
# (a - b) / b of two shares
_RATIO = Scale("ratio", -1.0, None)
_DIFFERENCE = Scale(low=-1.0)
# Units and ranges of the scores that are no shares.
CONCURRENCE_SCALES: Mapping[str, Scale] = {
    "countries_mean": _COUNTRIES,
    "countries_with_en_mean": _COUNTRIES,
    "countries_std": _COUNTRIES,
    "countries_with_en_std": _COUNTRIES,
    "delta_CS_ratio": _RATIO,
    "delta_CS_ratio_per_territory": _RATIO,
    "delta_CS_difference": _DIFFERENCE,
    "delta_CS_difference_per_territory": _DIFFERENCE,
}


@dataclass(frozen=True)
class ConcurrenceScores:
    """Concurrence scores as fractions (the papers print x 100); ``countries`` figures are plain counts.

    ``scores`` maps each name to its value, or to None with an entry in ``reasons``. ``numerators`` and ``denominators``
    are the totals of each mean over territories.
    """

    scores: Mapping[str, float | None]
    reasons: Mapping[str, str]
    numerators: Mapping[str, float]
    denominators: Mapping[str, int]
    n_territories: int
    n_answered: int
    n_missing: int
    n_refusals: int
    n_refused_controls: int
    refusals: Refusals

    def __getitem__(self, name: str) -> float | None:
        return self.scores[name]

    def as_dict(self) -> dict[str, Any]:
        """Return the scores under the names of the published tables' script; None if undefined."""
        entry: dict[str, Any] = {"num_queries_answered": self.n_answered, "num_territories": self.n_territories}
        for name in ("KB_CS", "Con_CS"):
            entry[name] = self.scores[name]
            entry[f"{name}_fraction"] = f"{round(self.numerators[name])}/{self.denominators[name]}"
        entry["Non_CS"] = self.scores["Non_CS"]
        entry["Non_CS_territories"] = self.denominators["Non_CS"]
        for name in ("delta_CS_ratio", "delta_CS_difference"):
            entry[name] = self.scores[name]
        for name in ("Cst_CS_unk", "Cst_CS_all"):
            entry[name] = self.scores[name]
            entry[f"{name}_territories"] = self.denominators[name]
        for name in ("countries_mean", "countries_std", "countries_with_en_mean", "countries_with_en_std"):
            entry[name] = self.scores[name]
        return entry


def concurrence_scores(
    territories: Sequence[Row], responses: Sequence[Row], *, refusals: Refusals = "official"
) -> ConcurrenceScores:
    """Score the answers about disputed territories for factuality, consistency and geopolitical bias.

    Two answers concur if they name the same country. A territory has one answer per language asked; the English control
    answer is separate, and is one of them only if English is a claimant's language. Means are over territories:

    - ``KB_CS``: the control answer is the controller; over territories with a known controller.
    - ``Con_CS``: the answer in the controller's language is the controller; over territories with such an answer.
    - ``Non_CS``: share of the answers in all other languages that are the controller; over territories with any.
    - ``delta_CS_ratio`` = (Con - Non) / Non and ``delta_CS_difference`` = Con - Non, of the two means above. The
      printed formula, applied to each territory that has both and then averaged, is
      ``delta_CS_ratio_per_territory`` (Non above 0 only) and ``delta_CS_difference_per_territory``.
    - ``Cst_CS_all``: share of concurring pairs of languages, over territories with two languages or more;
      ``Cst_CS_unk`` the same over the territories without a known controller.
    - ``controller_share``: share of the answers in every language, the control answer included, that are the
      controller; over territories with any. It is not in the papers: there a refusal counts as a claimant, so that
      silence and a constant option are perfectly consistent; here a refusal is no claimant, whatever ``refusals`` says
      of it, and a constant option is right by chance.
    - ``countries_mean``, ``countries_std``: distinct answers per territory, sample deviation (n - 1), all territories;
      ``_with_en`` sets the English answer to the control answer first (an official refusal counts as a country there).

    Args:
        territories: one row per query: ``query_id, territory, query_lang, control_query, claimants, claimant_langs,
            controller`` ("Unknown" if there is none), ``controller_lang`` ("" if unknown).
        responses: one row per response: ``query_id`` and ``claimant_ind``, an index into ``claimants``; -1 or None is a
            refusal. Without that key ``answer`` gives a claimant's English name, None for a refusal.
        refusals: ``official`` follows the published tables: a refused control answer counts as wrong, any other refusal
            as the FIRST claimant. ``exclude`` leaves refused and missing answers out of every numerator and
            denominator. With ``incorrect`` a refusal concurs with nothing, not even another refusal, and counts as no
            country.

    A missing control answer counts 0 in ``KB_CS`` (unless ``exclude``, or if the territory's control query is not among
    the rows). Any other missing answer is left out; a territory without answers counts 0 countries. An undefined score
    is None, with a reason.

    Raises:
        MetricError: no rows; a row without a required key; two responses to one query; a response to an unknown query;
            an index outside the claimants; territory rows that contradict each other.
    """
    answers = read_response_sets(territories, responses, refusals)
    return _scores(answers, _territory_sums(answers), refusals)


def concurrence_intervals(
    territories: Sequence[Row],
    responses: Sequence[Row],
    *,
    refusals: Refusals = "official",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> dict[str, Estimate]:
    """Return every score of :func:`concurrence_scores` with an interval over territories.

    A mean over territories has the interval of :func:`~mrag_eval.metrics.interval_for` over the territories that it
    counts, within its range: Wilson's for shares of 0 and 1. The corpus-level deltas and the deviations are resampled
    (BCa) over the territories that count for them, and need ten. ``n`` is the number of these territories. Arguments
    and errors as there.
    """
    _resampling.check_settings(confidence, n_resamples)
    answers = read_response_sets(territories, responses, refusals)
    sums = _territory_sums(answers)
    scores = _scores(answers, sums, refusals)
    rng = _resampling.generator(seed)
    settings: dict[str, Any] = {"confidence": confidence, "n_resamples": n_resamples, "seed": rng}
    k, names = len(_MEANS), list(_MEANS)
    found: dict[str, Estimate] = {}
    for column, name in enumerate(names):
        counted = sums[sums[:, k + column] > 0, column]
        found[name] = interval_for(counted, bounds=CONCURRENCE_SCALES.get(name, SHARE).bounds, **settings)
    with_country = sums[:, [k + names.index("Con_CS"), k + names.index("Non_CS")]].any(axis=1)
    derived = _resampled(sums[with_country], settings), _resampled(sums, settings)
    for column, name in enumerate(_DERIVED, k):
        found[name] = derived[name.startswith("countries")][column].within(CONCURRENCE_SCALES[name].bounds)
    return {
        name: undefined(scores.reasons[name], entry.method, entry.n) if scores[name] is None else entry
        for name, entry in found.items()
    }


def _resampled(sums: Array, settings: Mapping[str, Any]) -> list[Estimate]:
    """Return all scores with intervals that resample the given territories; without limits if they are too few."""
    n = len(sums)
    if not n:
        return [undefined("no territory", "cluster bootstrap")] * len(_REASONS)
    found = _resampling.limits(sums, _statistics, **settings)
    return [few_units(entry, n) for entry in estimates(found, [n] * len(_REASONS), "cluster bootstrap", n, "clusters")]


def _territory_sums(answers: ResponseSets) -> Array:
    """Return (territories, 2 x means + 2): numerators, denominators, then squares of the two country counts."""
    return np.array([_territory_row(entry) for entry in answers.sets], dtype=np.float64)


def _territory_row(entry: AnswerSet) -> list[float]:
    territory = entry.territory
    controller, language = territory.controller, territory.controller_lang
    given = entry.by_language
    sums: dict[str, tuple[float, float]] = dict.fromkeys(_MEANS, (0.0, 0.0))
    if controller is not None:
        if entry.control_scored:
            sums["KB_CS"] = (float(entry.control == controller), 1.0)
        if entry.given:
            sums["controller_share"] = (sum(answer == controller for answer in entry.given) / len(entry.given), 1.0)
        others = [answer == controller for asked, answer in given.items() if asked != language]
        non = sum(others) / len(others) if others else None
        if non is not None:
            sums["Non_CS"] = (non, 1.0)
        if language in given:
            con = float(given[language] == controller)
            sums["Con_CS"] = (con, 1.0)
            if non is not None:
                sums["delta_CS_difference_per_territory"] = (con - non, 1.0)
            if non:
                sums["delta_CS_ratio_per_territory"] = ((con - non) / non, 1.0)
    if len(given) > 1:
        pairs = [a is not None and a == b for a, b in combinations(given.values(), 2)]
        sums["Cst_CS_all"] = (sum(pairs) / len(pairs), 1.0)
        if controller is None:
            sums["Cst_CS_unk"] = sums["Cst_CS_all"]
    countries = set(given.values()) - {None}
    # a refused control answer is not the first claimant here, even if English is a claimant's language
    with_en = set({**given, "en": entry.control}.values()) - {None}
    sums["countries_mean"] = (len(countries), 1.0)
    sums["countries_with_en_mean"] = (len(with_en), 1.0)
    numerators, denominators = zip(*sums.values(), strict=True)
    return [*numerators, *denominators, len(countries) ** 2, len(with_en) ** 2]


def _statistics(totals: Array) -> Array:
    """Map (B, columns) totals to (B, scores) in the order of ``_REASONS``; NaN if undefined."""
    k = len(_MEANS)
    names = list(_MEANS)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(totals[:, k : 2 * k] > 0, totals[:, :k] / totals[:, k : 2 * k], np.nan)
        con, non = means[:, names.index("Con_CS")], means[:, names.index("Non_CS")]
        derived = [np.where(non > 0, (con - non) / non, np.nan), con - non]
        for column, name in enumerate(("countries_mean", "countries_with_en_mean")):
            at = names.index(name)
            n = totals[:, k + at]
            centred = np.maximum(totals[:, 2 * k + column] - totals[:, at] ** 2 / n, 0.0)
            derived.append(np.where(n > 1, np.sqrt(centred / (n - 1)), np.nan))
    return np.column_stack([means, *derived])


def _scores(answers: ResponseSets, sums: Array, refusals: Refusals) -> ConcurrenceScores:
    totals = sums.sum(axis=0)
    values = _statistics(totals[None])[0]
    scores = {name: None if np.isnan(value) else float(value) for name, value in zip(_REASONS, values, strict=True)}
    return ConcurrenceScores(
        scores=scores,
        reasons={name: _REASONS[name] for name, value in scores.items() if value is None},
        numerators={name: float(totals[i]) for i, name in enumerate(_MEANS)},
        denominators={name: int(totals[len(_MEANS) + i]) for i, name in enumerate(_MEANS)},
        n_territories=len(answers.sets),
        n_answered=answers.n_answered,
        n_missing=answers.n_missing,
        n_refusals=answers.n_refusals,
        n_refused_controls=answers.n_refused_controls,
        refusals=refusals,
    )


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
