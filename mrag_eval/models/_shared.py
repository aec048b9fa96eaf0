"""Models of this process: every caller gets the same object, cache and budget for a name or spec."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from mrag_eval.config import ModelSpec
from mrag_eval.models._keeper import Keeper
from mrag_eval.models._ledger import Spending
from mrag_eval.models._model import AuxModel, Settle
from mrag_eval.models._reply import Call, Reply
from mrag_eval.models._run_model import replies_file
from mrag_eval.models._spec import named_spec
from mrag_eval.platform import close_stores, content_key, shared_store

_TURN = threading.Lock()
# The process is part of every key: a forked one lacks its parent's connections and threads.
_MODELS: dict[tuple[int, str, str, Path], AuxModel] = {}
_SPENDING: dict[tuple[int, str], Spending] = {}
# The reason of a reply that is not in the cache.
NOT_KEPT = "not kept"


def get(model: str | ModelSpec, name: str = "") -> AuxModel:
    """Return this process's model for a name in the config file, or for a spec, with ``name`` as its name.

    Judges, planners, rerankers, translators, labelling and building all get the same object, so that the limits of its
    budget apply to all of them together.

    Spending is counted by the whole spec, not by the name. Two names for one spec share one budget, so that a panel
    which writes out a model of the config file does not double it. A changed entry of the config file is another model,
    and its budget starts at zero. Every name has a separate object, since results and messages identify a model by its
    name.

    Raises ConfigError for a name that is not in the config file, and for a cache folder that cannot be written to.
    """
    spec = named_spec(model) if isinstance(model, str) else model
    called = name or (model if isinstance(model, str) else "")
    process, asked, path = os.getpid(), content_key(spec.model_dump()), replies_file()
    with _TURN:
        spending = _SPENDING.setdefault((process, asked), Spending(spec.budget))
        place = (process, asked, called, path)
        if place not in _MODELS:
            _MODELS[place] = AuxModel(spec, name=called, cache=shared_store(path), spending=spending)
        return _MODELS[place]


def clear() -> None:
    """Forget all models and their spending, and close this process's stores: for tests."""
    with _TURN:
        _MODELS.clear()
        _SPENDING.clear()
    close_stores()


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
