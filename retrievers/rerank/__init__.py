"""Rerankers that run locally."""
