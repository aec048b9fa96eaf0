"""The command ``mrag-eval``."""

from mrag_eval.cli._main import main

__all__ = [
    "main",
]
