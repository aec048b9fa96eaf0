"""The evaluated model of a run: what is known of it before the harness has loaded it, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.config import ModelSpec
from mrag_eval.models._spec import older_identity
from mrag_eval.platform import cache_dir, content_key, remove_ended, run_ended


@dataclass(frozen=True)
class Evaluated:
    """The model of a run: a model type of the harness, or an object that a program made, and its arguments."""

    model: Any
    args: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Return a short key of what answers: the model's type, arguments and local files."""
        spec = ModelSpec.model_construct(model=str(self.model), model_args=dict(self.args))
        lengths = {name: self.args[name] for name in ("max_gen_toks", "seed") if name in self.args}
        return content_key(older_identity(spec), lengths)[:12]


def own_replies(path: str) -> str:
    """Return the path of the file of replies (``--use_cache``) of the run's model alone: the given one with its key."""
    run = _RUN.get()
    return path if run is None else f"{path}-{run.key}"


def are_own_replies(path: str) -> bool:
    """Return whether a file of replies holds those of the run's model alone: its name says so."""
    run = _RUN.get()
    return run is not None and f"-{run.key}_rank" in path


# Cache keys that only a repetition of this run may use, besides those of its answers: what the evaluated model behind
# an API, a RAG system and a retriever of the user's were asked.
ASKED: set[str] = set()
_RUN: ContextVar[Evaluated | None] = ContextVar("the model of the run", default=None)


def replies_file() -> Path:
    """Return the file that keeps the replies of models until their run has ended, and those of judges for good."""
    return cache_dir() / "models.sqlite"


def forget_asked() -> None:
    """Forget what a command that evaluates no model asked: the next one asks again."""
    run_ended(replies_file(), ASKED)
    remove_ended()
    ASKED.clear()


@contextmanager
def evaluating(model: Any, args: Mapping[str, Any]) -> Iterator[None]:
    """Make a model known as the evaluated one to the tasks that are built within the block."""
    token = _RUN.set(Evaluated(model, args))
    try:
        yield
    finally:
        _RUN.reset(token)


def evaluated() -> Evaluated | None:
    """Return the model of the run under way; None outside of :func:`evaluating`."""
    return _RUN.get()
