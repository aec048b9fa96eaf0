"""Replies that this machine has kept of a model: nothing is sent, and nothing is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.config import ModelSpec
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._model import AuxModel, Settle
from mrag_eval.models._reply import Call, Reply
from mrag_eval.models._run_model import replies_file
from mrag_eval.platform import shared_store

# The reason of a reply that is not in the cache.
NOT_KEPT = "not kept"


class KeptReplies(AuxModel):
    """A model that replies from the cache of this machine, and to anything else with the reason :data:`NOT_KEPT`."""

    @classmethod
    def of(cls, spec: ModelSpec, name: str) -> KeptReplies:
        """Return the kept replies of a model; none, if this machine has no cache."""
        path = replies_file()
        return cls(spec, name=name, cache=shared_store(path) if path.is_file() else None)

    def _ask(self, calls: Sequence[Call], keeper: Keeper, settle: Settle) -> None:
        for call in calls:
            settle(call.key, Reply("", attempts=0, error=NOT_KEPT))
