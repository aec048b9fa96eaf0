"""Readers of corpora."""
