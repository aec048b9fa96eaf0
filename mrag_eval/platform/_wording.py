"""Numbers with their nouns, for lines that people read."""


def number_of(n: int, noun: str, plural: str = "") -> str:
    """Return ``1 row``, ``1,200 rows``; ``plural`` is that of a noun that takes more than an ``s``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
