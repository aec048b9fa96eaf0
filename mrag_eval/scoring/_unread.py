"""Choices that could not be read: what they leave open of an accuracy, where some languages have more of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from mrag_eval.scoring._row_records import RowRecord

# Accuracy -> whether the reply's choice was read. A reply without a readable choice counts as wrong.
READ = {"acc": "choice_parsed", "acc_micro": "choice_parsed"}
# The key of the unweighted mean over languages.
MACRO = "macro"
_CONFIDENCE = 0.95


def unread_bounds(rows: Sequence[RowRecord], metric: str) -> dict[str, tuple[float, float]]:
    """Return an accuracy with all unread replies wrong, and right, by language and as mean over languages (``macro``).

    Empty for another metric, and unless the shares of unread replies differ by more than chance: intervals that hold
    for all languages at once (Sidak 1967) leave two of them apart. Then differences between the languages may be those
    of reading, not of answering. The bounds are Manski's (1989).
    """
    read = READ.get(metric)
    scored = [row for row in rows if read in row.values and metric in row.values]
    languages: dict[str, list[RowRecord]] = defaultdict(list)
    for row in scored:
        languages[row.query_lang].append(row)
    if read is None or len(languages) < 2 or not _differ(languages, read):
        return {}
    from mrag_eval.metrics import unscored_range

    def ends(chosen: Sequence[RowRecord]) -> tuple[float, float]:
        values = [row.values[metric] if row.values[read] else None for row in chosen]
        return unscored_range(values, [row.query_lang for row in chosen])

    return {language: ends(own) for language, own in sorted(languages.items())} | {MACRO: ends(scored)}


def _differ(languages: Mapping[str, Sequence[RowRecord]], read: str) -> bool:
    """Return whether the shares of read replies of two languages are apart beyond chance."""
    from mrag_eval.metrics import interval_for

    level = _CONFIDENCE ** (1 / len(languages))
    found = []
    for own in languages.values():
        groups = [row.resampled_with for row in own]
        found.append(
            interval_for(
                [row.values[read] for row in own],
                groups=groups if len(set(groups)) < len(groups) else None,
                confidence=level,
                bounds=(0.0, 1.0),
            )
        )
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    return bool(lows) and max(lows) > min(highs)
