"""The hook into lm-evaluation-harness.

``RagTask`` is loaded when it is first used: it needs the harness, whose import takes seconds.
"""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.task._hook import RagTask
else:
    __getattr__, __dir__ = lazy_door(__name__)
