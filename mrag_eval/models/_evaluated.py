"""The evaluated model of a run, asked for more than its answers: as planner and critic of its own retrieval."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mrag_eval.config import EVALUATED, Generation, ModelSpec, secret_in, validated
from mrag_eval.models._api import ApiModel, with_key
from mrag_eval.models._bodies import api_identity
from mrag_eval.models._local import LocalModel, around
from mrag_eval.models._model import AuxModel
from mrag_eval.models._run_model import ASKED, Evaluated, evaluated, replies_file
from mrag_eval.models._spec import behind_api, name_of
from mrag_eval.platform import ConfigError, shared_store

# Model types whose replies cannot be a plan.
_NO_PLANNERS = ("dummy", "oracle_answer")
# What the harness calls the limits of a ModelSpec.
_LIMITS = {"max_in_flight": "num_concurrent", "timeout": "timeout", "retries": "max_retries"}
_NAMED = "name a model of mrag.yaml instead: --metadata agent.planner=NAME,agent.critic=NAME"


class EvaluatedModel(AuxModel):
    """The evaluated model: behind an API, or the object that the harness has loaded for the run.

    Nothing is loaded a second time, so that one which is not ``behind_api`` can only be asked once the harness runs. In
    a run of :func:`evaluating` its type and arguments are those of the run. In one of the harness's own, which tells
    its tasks neither, everything is taken from the object that the harness evaluates, at the first use. ``spec`` names
    it in results. One whose settings are not known has no cache.
    """

    def __init__(self, role: str, run: Evaluated | None) -> None:
        self._role, self._run, self._lm = role, run, None
        super().__init__(ModelSpec(model=EVALUATED), name=EVALUATED)
        self._spec: ModelSpec | None = None
        if run is not None:
            self._become(*_asked_for(role, run))

    def _become(self, spec: ModelSpec, behind_api: bool, cached: bool) -> None:
        self._spec, self._behind_api, self.name = spec, behind_api, name_of(spec)
        self._cache = shared_store(replies_file()) if cached else None

    @property
    def spec(self) -> ModelSpec:
        """Return what it is; raise ConfigError while no model is evaluated."""
        if self._spec is None:
            lm = _running(f"{self._role} '{EVALUATED}': no model is evaluated here", f"use mrag-eval run, or {_NAMED}")
            self._become(*_seen(self._role, lm))
            self._lm = with_key(lm, self.name) if self._behind_api else lm
        assert self._spec is not None
        return self._spec

    @spec.setter
    def spec(self, spec: ModelSpec) -> None:
        self._spec = spec

    @property
    def behind_api(self) -> bool:
        """Return whether the model is called over HTTP."""
        return self.spec is not None and self._behind_api

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

    def _cached(self, keys: Iterable[str]) -> None:
        if self.behind_api:
            ASKED.update(keys)

    def _built(self) -> Any:
        if self._backend is None and not self.behind_api:
            self._backend = self._loaded()
        return super()._built()

    def _loaded(self) -> LocalModel:
        """Return the object that the harness has loaded."""
        lm = _running(f"{self.name} is the evaluated model, which is not loaded yet", _NAMED)
        if lm.world_size > 1:
            raise ConfigError(
                f"the evaluated model cannot plan on {lm.world_size} ranks: the ranks take turns of unequal length, "
                "and the first would give up waiting for the last",
                f"start one process (hf: parallelize=True, vllm: tensor_parallel_size=N), or {_NAMED}",
            )
        return around(lm)

    @property
    def generation(self) -> Generation:
        """Return no settings: those of its answers are none of its plans'."""
        return Generation()

    def _kind(self) -> type[Any]:
        if self._lm is not None or self._run is None or isinstance(self._run.model, str):
            return type(self._lm) if self._lm is not None else super()._kind()
        return type(self._run.model)

    def _api(self) -> ApiModel:
        return super()._api() if self._lm is None else ApiModel(self._lm, self.name)

    def _place(self) -> Any:
        """Return where the model is asked; of an object of the harness also what its arguments do not tell."""
        return super()._place(), self._told_by_object()

    def _older_identity(self) -> dict[str, Any]:
        return super()._older_identity() | self._told_by_object()

    def _told_by_object(self) -> dict[str, Any]:
        if self.behind_api and self._lm is None:
            return {}
        lm = self._lm if self.behind_api else self._built().lm
        config = getattr(getattr(lm, "model", None), "config", None)
        template = getattr(getattr(lm, "tokenizer", None), "chat_template", None)
        found: dict[str, Any] = api_identity(lm) if self.behind_api else {}
        return {**found, "commit": getattr(config, "_commit_hash", None), "chat_template": template}


def evaluated_model(role: str) -> EvaluatedModel:
    """Return the model of the run under way as ``role`` (``planner``, ``critic``).

    Raises ConfigError if its replies are no plans, or if its arguments hold a secret. Outside of a run, every use of it
    raises ConfigError.
    """
    return EvaluatedModel(role, evaluated())


def _running(why_not: str, next_step: str) -> Any:
    """Return the object that the harness evaluates; raise ConfigError outside of its evaluation."""
    from mrag_eval.harness import running

    now = running()
    if now is None:
        raise ConfigError(why_not, next_step)
    return now.lm


def _seen(role: str, lm: Any) -> tuple[ModelSpec, bool, bool]:
    """Return what an object of the harness is, whether it is behind an API, and whether its replies can be kept."""
    from mrag_eval.harness import model_type_of, sends_by_http

    kind = model_type_of(type(lm))
    _check_planner(role, kind)
    if not sends_by_http(type(lm)):
        weights = getattr(lm, "pretrained", None)
        args = {"pretrained": weights} if isinstance(weights, str) else {}
        return ModelSpec(model=kind, model_args=args), False, False
    args = {"model": lm.model, "base_url": lm.base_url}
    limits = {"max_in_flight": max(1, lm._concurrent), "timeout": lm.timeout, "retries": lm.max_retries}
    return validated(ModelSpec, {"model": kind, "model_args": args, **limits}, "--model_args"), True, True


def _asked_for(role: str, run: Evaluated) -> tuple[ModelSpec, bool, bool]:
    """Return the same of the model of a run whose arguments are known."""
    _check_planner(role, run.model)
    if not isinstance(run.model, str):
        return ModelSpec(model=type(run.model).__name__), False, False
    if not behind_api(ModelSpec(model=run.model), run.model):
        plain = {key: value for key, value in run.args.items() if secret_in({key: value}) is None}
        spec = ModelSpec(model=run.model, model_args={key: _named(value) for key, value in plain.items()})
        return spec, False, all(_is_json(value) for value in plain.values())
    secret = secret_in(run.args)
    if secret is not None:
        raise ConfigError(
            f"{role} '{EVALUATED}': --model_args {secret} holds a secret, which is not passed on",
            f"export OPENAI_API_KEY or ANTHROPIC_API_KEY, whichever --model {run.model} reads",
        )
    named = {key: value for key, value in run.args.items() if key == "api_key_env"}
    args = {key: value for key, value in run.args.items() if key not in named}
    limits = {ours: run.args[theirs] for ours, theirs in _LIMITS.items() if theirs in run.args}
    return (
        validated(ModelSpec, {"model": run.model, "model_args": args, **named, **limits}, "--model_args"),
        True,
        True,
    )


def _check_planner(role: str, kind: Any) -> None:
    if kind in _NO_PLANNERS:
        raise ConfigError(f"{role} '{EVALUATED}': --model {kind} cannot plan", _NAMED)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _named(value: Any) -> Any:
    """Return an argument as results show it; for an object of a program's, its type."""
    return value if _is_json(value) else type(value).__name__
