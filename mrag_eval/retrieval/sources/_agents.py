"""The agents' loop (mode ``coral``): languages and queries are chosen round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrag_eval import models
from mrag_eval.core import RagDoc, Retrieved
from mrag_eval.retrieval._corpora import held_languages
from mrag_eval.retrieval._own_index import OwnIndex
from mrag_eval.retrieval.agents._loop import check_fixed_scope, retrieve_by_agents
from mrag_eval.retrieval.agents._seats import Agents, agents_for
from mrag_eval.retrieval.sources._index import IndexSearch
from mrag_eval.retrieval.sources._source import Lacking, Setup


class AgentLoop(IndexSearch):
    """Retrieve by a planner and a critic over the index that the block names."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._agents: Agents | None = None

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Raise if corpus, planner or critic are missing, or a language of the pool."""
        super().check(docs, missing)
        agent = self._setup.agent
        with missing.allowed("agent.planner", "agent.critic"):
            agents = agents_for(agent)
            if missing.tolerant:
                # the harness tells nothing of the model that it is about to evaluate
                _ = agents.identities
            self._agents = agents
        if "corpus" not in missing.names:
            self._check_fixed(docs)

    def _check_fixed(self, docs: Sequence[RagDoc]) -> None:
        """Raise CorpusError for a language of a fixed scope that the corpus lacks."""
        retrieval = self._retrieval
        check_fixed_scope(retrieval, self._setup.agent, docs, held_languages(retrieval, self._benchmark.corpus))

    def check_models(self) -> None:
        """Raise ConfigError for a prompt that cannot be read, and a planner or critic that cannot be reached."""
        super().check_models()
        self._models().check()

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Run the loop for all rows at once; raise ConfigError if the evaluated model has no room to plan."""
        setup, agents = self._setup, self._models()
        agents.check_room()
        return retrieve_by_agents(
            docs,
            self._retrieval,
            setup.agent,
            agents,
            corpus=self._benchmark.corpus,
            retriever=self._retriever(),
            use_cache=setup.use_cache,
        )

    def _retriever(self) -> OwnIndex | None:
        """Return the retriever of the user's; None: an index is searched."""
        return None

    def identity(self) -> dict[str, Any]:
        """Return corpus and agents: decoding and prompts are those of the seats."""
        block = self._setup.agent.model_dump(mode="json", exclude={"planner", "critic", "generation", "prompts"})
        return {**super().identity(), "agent": {**block, **self.models()}}

    def record(self) -> dict[str, Any]:
        """Return index and agents, for the results."""
        out = super().record()
        if self._agents is not None:
            out["agent"] = self._setup.agent.model_dump(mode="json") | self._agents.names
        return out

    @property
    def evaluated(self) -> models.EvaluatedModel | None:
        """Return the evaluated model, if it plans or criticises."""
        return None if self._agents is None else self._agents.evaluated

    def seats(self) -> dict[str, models.Seat]:
        """Return planner, critic, and the critic that decides whether documents are enough."""
        agents = self._agents
        if agents is None:
            return {}
        return {"planner": agents.planner, "critic": agents.critic, "sufficiency": agents.sufficiency}

    def models(self) -> dict[str, Any]:
        """Return planner and critic; empty if this machine has none."""
        return {} if self._agents is None else self._agents.identities

    def _models(self) -> Agents:
        if self._agents is None:
            self._agents = agents_for(self._setup.agent)
        return self._agents


def open_source(setup: Setup) -> AgentLoop:
    """Return the source of the mode ``coral``."""
    return AgentLoop(setup)
