"""Agents that decide what is retrieved: CORAL's planner and critic."""

from mrag_eval.agents.block import Agent
from mrag_eval.agents.coral import Coral, Start
from mrag_eval.agents.loop import Agents, agents_for, check_pool, retrieve_by_agents
from mrag_eval.agents.records import (
    CRITERIA,
    Candidate,
    Conditions,
    Critique,
    Fault,
    Outcome,
    Round,
    Sufficiency,
    Usage,
)

__all__ = [
    "CRITERIA",
    "Agent",
    "Agents",
    "Candidate",
    "Conditions",
    "Coral",
    "Critique",
    "Fault",
    "Outcome",
    "Round",
    "Start",
    "Sufficiency",
    "Usage",
    "agents_for",
    "check_pool",
    "retrieve_by_agents",
]
