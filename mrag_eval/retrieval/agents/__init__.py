"""CORAL's agents: a planner and a critic that decide what is retrieved."""
