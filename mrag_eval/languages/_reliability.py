"""How well detectors recognise languages, as ``scripts/detector_reliability.py`` measured it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

RELIABILITY_FILE: Final = Path(__file__).parent / "detectors.csv"
# The lengths, in code points, from which texts are counted apart.
BANDS: Final = (1, 20, 50, 100)
# From this number of texts on, a share counts as measured: its 95 % interval is then at most .36 wide.
MEASURED_FROM: Final = 30


@dataclass(frozen=True, slots=True)
class Reliability:
    """What a detector makes of the texts of one language and band of lengths.

    Attributes:
        detector: its name.
        language: a BCP 47 code without a script.
        length_from: the least number of code points; the next of :data:`BANDS` is the first beyond.
        texts: number of texts in the language.
        recognised: how many of them the detector takes for it.
        others: number of texts in the other languages that were measured.
        taken: how many of those the detector takes for this language.
        sources: the benchmarks whose texts were used.
    """

    detector: str
    language: str
    length_from: int
    texts: int
    recognised: int
    others: int
    taken: int
    sources: tuple[str, ...]

    @property
    def share(self) -> float:
        """Return the recognised share, in 0..1."""
        return self.recognised / self.texts

    @property
    def lengths(self) -> str:
        """Return the lengths as people read them: ``20 to 49 characters``."""
        last = dict(pairwise(BANDS)).get(self.length_from)
        return (
            f"{self.length_from} characters or more" if last is None else f"{self.length_from} to {last - 1} characters"
        )


def band_of(length: int) -> int:
    """Return the band of a text of ``length`` code points; the first for an empty one."""
    return max((start for start in BANDS if start <= length), default=BANDS[0])


@cache
def reliabilities() -> tuple[Reliability, ...]:
    """Return everything that was measured, by detector, language and length."""
    with RELIABILITY_FILE.open(encoding="utf-8", newline="") as rows:
        return tuple(
            Reliability(
                detector=row["detector"],
                language=row["language"],
                length_from=int(row["from"]),
                texts=int(row["texts"]),
                recognised=int(row["recognised"]),
                others=int(row["others"]),
                taken=int(row["taken"]),
                sources=tuple(row["sources"].split()),
            )
            for row in csv.DictReader(rows)
        )


@cache
def _measured() -> Mapping[tuple[str, str], tuple[Reliability, ...]]:
    found: dict[tuple[str, str], tuple[Reliability, ...]] = {}
    for each in reliabilities():
        if each.texts >= MEASURED_FROM:
            key = (each.detector, each.language)
            found[key] = (*found.get(key, ()), each)
    return found


def reliability(detector: str, language: str, length: int | None = None) -> Reliability | None:
    """Return what is known of a detector and a language (a base code) at the length of a text in code points.

    A length with fewer than :data:`MEASURED_FROM` texts goes by the nearest that has them, the shorter of two. Without
    a length, the most texts count. None if nothing was measured.
    """
    known = _measured().get((detector, language), ())
    if not known:
        return None
    if length is None:
        return max(known, key=lambda each: each.texts)
    band = BANDS.index(band_of(length))
    return min(known, key=lambda each: (abs(BANDS.index(each.length_from) - band), each.length_from))
