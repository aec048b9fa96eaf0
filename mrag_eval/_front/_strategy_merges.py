"""What the merges of several languages' lists gain and lose beside ``score``: by language, and within one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mrag_eval.config import SHOWN
from mrag_eval.core import decimal, interval_text, pipe_table, points, same_language
from mrag_eval.scoring import scale_of

if TYPE_CHECKING:
    from mrag_eval.metrics import PairedTest
    from mrag_eval.scoring import RowRecord

# The merge that the others are compared with, and those that are tried beside it where nothing is said of merges.
SCORE = "score"
TRIED = ("zscore", "centered", "turns")
_ALL, _SAME, _ACROSS = "all", "their document's language", "another language"


@dataclass(frozen=True)
class MergeGain:
    """A merge beside ``score`` with the same other settings.

    Attributes:
        name, base: the two strategies.
        merge: its name.
        metric: what is compared.
        parts: all questions, those whose document is in their language, those whose document is in another, and
            ``in de`` for each language -> the merge less ``score``, with a 95% interval.
        score: the same parts -> the mean of ``score`` over the questions that both have a value for.
    """

    name: str
    base: str
    merge: str
    metric: str
    parts: Mapping[str, PairedTest]
    score: Mapping[str, float | None]

    @property
    def is_shown(self) -> bool:
        """Return whether the whole interval of the gain is above 0, so that the merge may be recommended."""
        low = self.parts[_ALL].low
        return low is not None and low > 0

    @property
    def gain(self) -> float:
        return self.parts[_ALL].difference or 0.0

    @property
    def crossing(self) -> float | None:
        """Return the share of questions whose document is in another language; None if no document's is known."""
        across, same = (self.parts[part].n if part in self.parts else 0 for part in (_ACROSS, _SAME))
        return across / (across + same) if across + same else None

    @property
    def break_even(self) -> float | None:
        """Return the share of crossing questions at which gain and loss are equal; None if it is not known.

        With a loss l within one language and a gain g across, the merge gains p · g - (1 - p) · l at a share p. It is 0
        where nothing is lost, and 1 where nothing is gained.
        """
        if _SAME not in self.parts or _ACROSS not in self.parts:
            return None
        loss, gain = (-(self.parts[_SAME].difference or 0.0), self.parts[_ACROSS].difference or 0.0)
        return 0.0 if loss <= 0 else 1.0 if gain <= 0 else loss / (loss + gain)

    @property
    def losing(self) -> list[str]:
        """Return the languages of questions for which the whole interval is below 0."""
        return [
            part.removeprefix("in ")
            for part, test in self.parts.items()
            if part.startswith("in ") and test.high is not None and test.high < 0
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        figures = ("n", "difference", "low", "high")
        parts = {
            part: {key: getattr(test, key) for key in figures} | {"score": self.score[part]}
            for part, test in self.parts.items()
        }
        named = {key: getattr(self, key) for key in ("name", "base", "merge", "crossing", "break_even", "is_shown")}
        return {**named, "parts": parts}


def merge_gains(
    settings: Mapping[str, Mapping[str, Any]], rows: Mapping[str, Sequence[RowRecord]], metric: str, seed: int
) -> tuple[MergeGain, ...]:
    """Return what every merge gains beside ``score``.

    Args:
        settings: strategy -> the settings that tell it from others.
        rows: strategy -> its rows, the same for all.
        metric: what is compared.
        seed: of resampling.
    """
    from mrag_eval.metrics import PairedCell, paired_tests

    def others(name: str) -> dict[str, Any]:
        return {key: value for key, value in settings[name].items() if key != "merge"}

    bases = [name for name in rows if settings[name].get("merge") in (None, SCORE)]
    out = []
    for name in rows:
        base = next((one for one in bases if others(one) == others(name)), None)
        if base is None or base == name or name in bases:
            continue
        values = {row.row: row.values.get(metric) for row in rows[base]}
        cells = {
            part: PairedCell(
                [row.values.get(metric) for row in own],
                [values.get(row.row) for row in own],
                [row.resampled_with for row in own],
                bounds=scale_of(metric).bounds,
            )
            for part, own in _parts(rows[name]).items()
        }
        # one by one: every interval is one of its part alone
        tests = {part: paired_tests([cell], seed=seed)[0] for part, cell in cells.items()}
        score = {
            part: fmean(before)
            if (before := [b for a, b in zip(cell.first, cell.second, strict=True) if a is not None and b is not None])
            else None
            for part, cell in cells.items()
        }
        out.append(MergeGain(name, base, str(settings[name]["merge"]), metric, tests, score))
    return tuple(out)


def _parts(rows: Sequence[RowRecord]) -> dict[str, list[RowRecord]]:
    known = [(row, row.cell["doc_lang"]) for row in rows if row.cell.get("doc_lang")]
    parts = {
        _ALL: list(rows),
        _SAME: [row for row, lang in known if same_language(row.query_lang, lang)],
        _ACROSS: [row for row, lang in known if not same_language(row.query_lang, lang)],
    }
    langs = sorted({row.query_lang for row in rows})
    if len(langs) > 1:
        parts |= {f"in {lang}": [row for row in rows if row.query_lang == lang] for lang in langs}
    return {part: own for part, own in parts.items() if own}


def merges_text(gains: Sequence[MergeGain]) -> str:
    """Return a table for each strategy that merges were compared with; "" without any."""
    return "\n\n".join(
        _table([gain for gain in gains if gain.base == base]) for base in dict.fromkeys(gain.base for gain in gains)
    )


def _table(gains: Sequence[MergeGain]) -> str:
    scale = scale_of(gains[0].metric)
    body = []
    for part, first in gains[0].parts.items():
        tests = [gain.parts[part] for gain in gains]
        cells = [f"{points(t.difference, '+', scale)} {interval_text(t.low, t.high, scale)}".strip() for t in tests]
        body.append([part, f"{first.n:,}", points(gains[0].score[part], scale=scale), *cells])
    if any(gain.break_even is not None for gain in gains):
        body.append(["breaks even at crossing", "", "", *(_share(gain.break_even) for gain in gains)])
    head = ("questions", "n", SCORE, *(gain.merge for gain in gains))
    crossing = gains[0].crossing
    here = "" if crossing is None else f"; {_share(crossing)} of the questions cross here"
    title = f"merges of {gains[0].base}: {gains[0].metric} less that of score, 95% intervals{here}"
    return f"{title}\n{pipe_table(head, body, 'l' + 'r' * (len(head) - 1))}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{decimal(value, 0, scale=100)} %"


def merges_sentence(gains: Sequence[MergeGain], base: str) -> str:
    """Return which merge to use in the place of ``score``, and what it costs: one whose gain is shown, or none."""
    own = [gain for gain in gains if gain.base == base]
    scale = scale_of(own[0].metric)

    def told(gain: MergeGain, part: str = _ALL) -> str:
        test = gain.parts[part]
        return f"{points(test.difference, '+', scale)} {interval_text(test.low, test.high, scale)}".strip()

    shown = sorted((gain for gain in own if gain.is_shown), key=lambda gain: -gain.gain)
    if not shown:
        every = ", ".join(f"{gain.merge} {told(gain)}" for gain in own)
        return f"merge of {base}: keep score; no gain over it is shown ({every})"
    best = shown[0]
    what = "points" if best.metric == SHOWN or scale.percent else best.metric
    loss = f"; within one language {told(best, _SAME)}" if _SAME in best.parts else ""
    even, crossing = best.break_even, best.crossing
    pays = "" if even is None else f"; it pays from {_share(even)} of questions that cross ({_share(crossing)} do here)"
    losing = f"; it loses for questions in {', '.join(best.losing)}" if best.losing else ""
    return f"merge of {base}: {best.merge}, {told(best)} {what} over score{loss}{pays}{losing}"
