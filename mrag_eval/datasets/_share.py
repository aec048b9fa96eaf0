"""A fixed share of a benchmark's questions, for runs that are repeated often."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from mrag_eval.core import RagDoc


def shared(docs: Sequence[RagDoc], share: float, seed: int) -> list[RagDoc]:
    """Return the rows of ``share`` of the questions (more than 0, up to 1), rounded up, in their order.

    The questions are those whose SHA-256 with ``seed`` is lowest. So all language versions of a question stay together,
    a smaller share is part of a larger one, and neither the order of the rows nor other rows decide.
    """
    units = [str(doc.extra.get("question_id") or doc.group_id or doc.id) for doc in docs]
    drawn = sorted(dict.fromkeys(units), key=lambda unit: hashlib.sha256(f"{seed} {unit}".encode()).digest())
    # rounding hides the last digits of the product
    kept = set(drawn[: math.ceil(round(share * len(drawn), 6))])
    return [doc for doc, unit in zip(docs, units, strict=True) if unit in kept]
