"""Comparison of runs: paired tests, the gate, flips and consistency."""
