"""Keys that the ``data`` block of a benchmark must have beside its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEEDED: Mapping[str, dict[str, Any]] = {
    "afriqa": {"language": "ha"},
    "mkqa": {"language": "de"},
    "nomiracl": {"language": "de"},
    "xor_tydi": {"language": "ko"},
    "xrag": {"setting": "mono", "language": "de"},
}
