"""The scripted server, and models that call it."""

from tests.models.conftest import model_of, start, store

__all__ = ["model_of", "start", "store"]
