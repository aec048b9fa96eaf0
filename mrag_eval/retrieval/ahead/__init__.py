"""Retrieval ahead of the evaluated model."""
