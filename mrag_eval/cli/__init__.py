"""The command ``mrag-eval``."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.cli._app import Session, app
    from mrag_eval.cli._main import main
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["Session", "app", "main"]
