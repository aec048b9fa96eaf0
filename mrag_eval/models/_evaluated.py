"""The evaluated model of a run, asked for more than its answers: as planner and critic of its own retrieval."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mrag_eval.config import EVALUATED, ModelSpec, secret_in, validated
from mrag_eval.core import ConfigError, cache_dir, shared_store
from mrag_eval.models._local import LocalModel, around
from mrag_eval.models._model import AuxModel
from mrag_eval.models._spec import behind_api

# Model types whose replies cannot be a plan.
_NO_PLANNERS = ("dummy", "oracle_answer")
# What the harness calls the limits of a ModelSpec.
_LIMITS = {"max_in_flight": "num_concurrent", "timeout": "timeout", "retries": "max_retries"}
_NAMED = "name a model of mrag.yaml instead: --metadata agent.planner=NAME,agent.critic=NAME"


@dataclass(frozen=True)
class Evaluated:
    """Hold the model of a run: a model type of the harness, or an object that a program made, and its arguments."""

    model: Any
    args: Mapping[str, Any]


_RUN: ContextVar[Evaluated | None] = ContextVar("the model of the run", default=None)


@contextmanager
def evaluating(model: Any, args: Mapping[str, Any]) -> Iterator[None]:
    """Make a model known as the evaluated one to the tasks that are built within the block."""
    token = _RUN.set(Evaluated(model, args))
    try:
        yield
    finally:
        _RUN.reset(token)


class EvaluatedModel(AuxModel):
    """The evaluated model: behind an API, or the object that the harness has loaded for the run.

    Nothing is loaded a second time, so that one which is not ``behind_api`` can only be asked once the harness runs.
    ``spec`` names it in results. One that a program made, whose settings are not known, has no cache.
    """

    def __init__(self, spec: ModelSpec, *, behind_api: bool, cached: bool = True) -> None:
        super().__init__(spec, cache=shared_store(cache_dir() / "models.sqlite") if cached else None)
        self._behind_api = behind_api

    @property
    def behind_api(self) -> bool:
        """Return whether the model is called over HTTP."""
        return self._behind_api

    def check_ahead(self) -> None:
        """Raise the ConfigError that would leave every call to an API unanswered; a loaded model checks itself."""
        if self.behind_api:
            self.check()

    def check_room(self, max_tokens: int) -> None:
        """Raise ConfigError if a loaded model's context does not hold replies of ``max_tokens`` tokens."""
        limit = None if self.behind_api else getattr(self._built().lm, "max_length", None)
        if isinstance(limit, int) and max_tokens >= limit:
            raise ConfigError(
                f"agent.generation.max_tokens={max_tokens} leaves no room for a prompt: the context of the evaluated "
                f"model has {limit} tokens",
                f"--metadata agent.generation.max_tokens={min(2048, limit // 4)}",
            )

    def _built(self) -> Any:
        if self.behind_api:
            return super()._built()
        if self._backend is None:
            self._backend = self._loaded()
        return self._backend

    def _loaded(self) -> LocalModel:
        """Return the object that the harness has loaded."""
        from mrag_eval.harness import evaluated_now

        now = evaluated_now()
        if now is None:
            raise ConfigError(f"{self.name} is the evaluated model, which is not loaded yet", _NAMED)
        if now.loaded.world_size > 1:
            raise ConfigError(
                f"the evaluated model cannot plan on {now.loaded.world_size} ranks: the ranks take turns of unequal "
                "length, and the first would give up waiting for the last",
                f"start one process (hf: parallelize=True, vllm: tensor_parallel_size=N), or {_NAMED}",
            )
        return around(now.loaded)

    def _identity(self) -> dict[str, Any]:
        """Return what affects replies; of loaded weights also their commit on the hub, and the chat template."""
        found = super()._identity()
        if self.behind_api:
            return found
        lm = self._built().lm
        config = getattr(getattr(lm, "model", None), "config", None)
        template = getattr(getattr(lm, "tokenizer", None), "chat_template", None)
        return {**found, "commit": getattr(config, "_commit_hash", None), "chat_template": template}


def evaluated_model(role: str) -> EvaluatedModel:
    """Return the model of the run under way as ``role`` (``planner``, ``critic``).

    Raises ConfigError if no model is evaluated here, if its replies are no plans, or if its arguments hold a secret.
    """
    run = _RUN.get() or _of_harness()
    if run is None:
        raise ConfigError(f"{role} '{EVALUATED}': no model is evaluated here", f"use mrag-eval run, or {_NAMED}")
    if run.model in _NO_PLANNERS:
        raise ConfigError(f"{role} '{EVALUATED}': --model {run.model} cannot plan", _NAMED)
    if not isinstance(run.model, str):
        return EvaluatedModel(ModelSpec(model=type(run.model).__name__), behind_api=False, cached=False)
    if not behind_api(ModelSpec(model=run.model), run.model):
        plain = {key: value for key, value in run.args.items() if secret_in({key: value}) is None}
        spec = ModelSpec(model=run.model, model_args={key: _named(value) for key, value in plain.items()})
        return EvaluatedModel(spec, behind_api=False, cached=all(_is_json(value) for value in plain.values()))
    secret = secret_in(run.args)
    if secret is not None:
        raise ConfigError(
            f"{role} '{EVALUATED}': --model_args {secret} holds a secret, which is not passed on",
            f"export OPENAI_API_KEY or ANTHROPIC_API_KEY, whichever --model {run.model} reads",
        )
    limits = {ours: run.args[theirs] for ours, theirs in _LIMITS.items() if theirs in run.args}
    spec = validated(ModelSpec, {"model": run.model, "model_args": dict(run.args), **limits}, "--model_args")
    return EvaluatedModel(spec, behind_api=True)


def _of_harness() -> Evaluated | None:
    """Return the model of a run that the harness's own command began."""
    from mrag_eval.harness import evaluated_now

    now = evaluated_now()
    return None if now is None else Evaluated(now.model, now.args)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _named(value: Any) -> Any:
    """Return an argument as results show it; for an object of a program's, its type."""
    return value if _is_json(value) else type(value).__name__
