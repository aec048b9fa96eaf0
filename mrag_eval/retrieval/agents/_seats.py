"""The seats of the agents' loop: planner, critic, and the critic where it decides whether documents are enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mrag_eval.config import AGENT_DECODING, EVALUATED, Agent, load_config
from mrag_eval.models import AuxModel, EvaluatedModel, Seat, evaluated_model, get
from mrag_eval.platform import ConfigError, config_path
from mrag_eval.prompts import PromptTemplate, load_template

EXAMPLE = """mrag.yaml (or $MRAG_CONFIG):
    models:
      qwen:
        model: local-chat-completions
        model_args: {model: Qwen/Qwen3-235B-A22B-Instruct-2507, base_url: http://localhost:8000/v1/chat/completions}
    planner: qwen
    critic: qwen"""


@dataclass(frozen=True)
class Agents:
    """Who is asked in a loop, and with what: the seats, and the templates of their prompts by name."""

    planner: Seat
    critic: Seat
    sufficiency: Seat
    templates: Mapping[str, PromptTemplate]

    @classmethod
    def of(cls, agent: Agent, planner: AuxModel, critic: AuxModel) -> Agents:
        """Return the seats of a block: each setting is the task's, else the model's own, else the paper's."""
        templates = {name: load_template(path, role="agent") for name, path in agent.prompts.model_dump().items()}
        asked = agent.generation.model_dump(exclude_none=True)

        def seat(model: AuxModel, role: str, *prompts: str, rounds: bool = False) -> Seat:
            hashes = {name: templates[name].sha256 for name in prompts}
            return model.seat(role, asked=asked, otherwise=AGENT_DECODING, prompts=hashes, rounds=rounds)

        return cls(
            # if a plan was kept, the next round's prompt is the same, and must not get the same reply
            seat(planner, "coral planner", "plan", "replan", rounds=True),
            seat(critic, "coral critic", "critique"),
            seat(critic, "coral sufficiency", "sufficiency"),
            templates,
        )

    @property
    def names(self) -> dict[str, str]:
        """Return the models' names in the config file, for results."""
        models = {"planner": self.planner.model, "critic": self.critic.model}
        return {r: EVALUATED if isinstance(model, EvaluatedModel) else model.name for r, model in models.items()}

    @property
    def behind_api(self) -> bool:
        """Return whether both models are called over HTTP."""
        return self.planner.model.behind_api and self.critic.model.behind_api

    @property
    def evaluated(self) -> EvaluatedModel | None:
        """Return the evaluated model, if it is one of the two."""
        models = (self.planner.model, self.critic.model)
        return next((model for model in models if isinstance(model, EvaluatedModel)), None)

    @property
    def identities(self) -> dict[str, Any]:
        """Return what decides the agents' replies, the same on any machine."""
        critic = self.critic.identity
        return {
            "planner": self.planner.identity,
            "critic": {**critic, "prompts": {**critic["prompts"], **self.sufficiency.prompts}},
        }

    def check_room(self) -> None:
        """Raise ConfigError if the context of the evaluated model does not hold its replies."""
        for seat in (self.planner, self.critic):
            if isinstance(seat.model, EvaluatedModel):
                seat.model.check_room(seat.decoding.max_tokens)

    def check(self) -> None:
        """Raise the ConfigError that would leave a model without answers (a missing key, for example)."""
        for model in dict.fromkeys((self.planner.model, self.critic.model)):
            model.check_ahead()


def agents_for(agent: Agent) -> Agents:
    """Return the seats of the planner and the critic that a block names, else of those of the config file.

    Raises ConfigError if none is named, with the lines to write into the config file.
    """
    config = load_config()
    planner = agent.planner or config.planner
    critic = agent.critic or config.critic or planner
    if planner is None or critic is None:
        path = config_path()
        where = f"{path} names none" if path else "there is no config file"
        raise ConfigError(
            f"retrieval.mode=coral needs a planner and a critic, and {where}",
            f"--metadata agent.planner={EVALUATED}   lets the evaluated model be both; for other models, in {EXAMPLE}",
        )
    models: dict[str, AuxModel] = {}
    for role, name in (("planner", planner), ("critic", critic)):
        if name not in models:
            models[name] = evaluated_model(role) if name == EVALUATED else get(name)
    return Agents.of(agent, models[planner], models[critic])
