"""The hook into lm-evaluation-harness.

``RagTask`` is loaded when it is first used: it needs the harness, whose import takes seconds.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrag_eval.task._hook import RagTask

__all__ = ["RagTask"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collects = gc.isenabled()
    # a collection would walk all that the harness has indexed, and free nothing of it
    gc.disable()
    try:
        from mrag_eval.task import _hook
    finally:
        if collects:
            gc.enable()
    return getattr(_hook, name)
