"""The ``agent`` block of a task: planner, critic and limits of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mrag_eval.config._block import Block, KeyRule
from mrag_eval.platform import did_you_mean

# CORAL's ablations and similar variants: a name for several settings, each of which may still be overridden.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "coral": {},
    "no_rewriting": {"rewrite": False},
    "fixed_own": {"corpora": "own"},
    "fixed_own_en": {"corpora": "own+en"},
    "fixed_all": {"corpora": "all"},
    "no_filter": {"filter": "none"},
}
# The name of the evaluated model as planner or critic.
EVALUATED = "evaluated"
# The highest score of a criterion.
TOP_SCORE = 5


class Weights(Block):
    """The weight of each criterion in a document's total; the defaults are CORAL's equation 1."""

    relevance: float = Field(default=1.0, ge=0)
    usefulness: float = Field(default=0.5, ge=0)
    clarity_specificity: float = Field(default=0.5, ge=0)
    compatibility: float = Field(default=0.5, ge=0)


class AgentBudget(Block):
    """The most that one question may take; None: no limit.

    Calls are conversations with planner and critic, those answered from the cache among them, so that a rerun stops
    where the first run did; a call is not begun once ``calls_per_question`` is reached, but a reply that cannot be
    read may be asked for once more. ``tokens_per_question`` (in and out) is looked at before each step.
    """

    calls_per_question: int | None = Field(default=None, ge=1)
    tokens_per_question: int | None = Field(default=None, ge=1)


class Stop(Block):
    """The condition that ends the loop before ``max_rounds``.

    ``sufficient``: the critic has enough documents. ``marginal``: also after a round, from the second one on, that
    added no valid document.
    """

    when: Literal["sufficient", "marginal"] = "sufficient"


# The decoding of planner and critic where neither the task nor the config file has one (CORAL, appendix C.2).
AGENT_DECODING: Mapping[str, Any] = {"temperature": 0.6, "max_tokens": 32_768}


class AgentGeneration(Block):
    """Decoding of planner and critic.

    A key that is not set here is taken from the model in the config file, else from the paper: temperature 0.6, 32,768
    tokens.
    """

    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)


class AgentPrompts(Block):
    """The agents' prompts: built-in names, or paths of template files."""

    plan: str = "plan"
    replan: str = "replan"
    critique: str = "critique"
    sufficiency: str = "sufficiency"


class Agent(Block):
    """The ``agent`` block; it requires ``retrieval.mode: coral``.

    ``preset`` is one of :data:`PRESETS`.

    ``planner`` and ``critic`` name models of the config file, or the evaluated model itself (``evaluated``); without
    them the config file's own ``planner`` and ``critic`` are taken, and the planner where no critic is named. In each
    round ``k`` documents are retrieved from each of at most ``max_corpora`` languages of ``retrieval.pool``. A document
    is valid if each score is at least ``min_score`` and the weighted total at least ``min_total``.

    ``corpora`` other than ``dynamic`` fixes the scope of the search, with ``k`` documents in all: then the planner
    chooses no languages, and is only asked for a rewritten query. ``rewrite: false`` keeps the query.
    ``filter: none`` keeps every document, unscored and in the order of retrieval. If no document is valid, the
    question is answered without documents (``fallback: none``) or with the best that were scored (``best_scored``).
    """

    preset: str = "coral"
    planner: str | None = None
    critic: str | None = None
    max_rounds: int = Field(default=3, ge=1)
    max_corpora: int = Field(default=3, ge=1)
    k: int = Field(default=5, ge=1)
    corpora: Literal["dynamic", "query", "own", "own+en", "all"] = "dynamic"
    rewrite: bool = True
    filter: Annotated[
        Literal["critic", "none"],
        KeyRule("none", refuses={"fallback=best_scored": "no critic scores anything"}),
    ] = "critic"
    min_score: int = Field(default=2, ge=0, le=TOP_SCORE)
    min_total: float = Field(default=6.0, ge=0)
    weights: Weights = Weights()
    fallback: Literal["none", "best_scored"] = "none"
    stop: Stop = Stop()
    budget: AgentBudget = AgentBudget()
    generation: AgentGeneration = AgentGeneration()
    prompts: AgentPrompts = AgentPrompts()

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        name = value.get("preset", "coral")
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"no preset '{name}'{did_you_mean(str(name), PRESETS)}")
        return {**PRESETS[name], **value}

    @model_validator(mode="after")
    def _possible(self) -> Agent:
        if self.corpora != "dynamic" and not self.rewrite and self.max_rounds > 1:
            raise ValueError(
                f"with corpora '{self.corpora}' and no rewriting nothing can change in a second round: set max_rounds=1"
            )
        weights: dict[str, Any] = self.weights.model_dump()
        reachable = TOP_SCORE * sum(weights.values())
        if self.min_total > reachable:
            raise ValueError(
                f"min_total {self.min_total:g} cannot be reached: with these weights {reachable:g} is the most"
            )
        return self
