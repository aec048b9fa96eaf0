"""Classifiers of support by name or folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from mrag_eval.config import Grounded
from mrag_eval.models.grounding._checker import Checker
from mrag_eval.models.grounding._entailment import EntailmentClassifier
from mrag_eval.models.grounding._tokens import TokenClassifier
from mrag_eval.platform import ConfigError, Wait
from mrag_eval.retrievers import loading, offline, transformers_library

_CLASSIFIERS = (TokenClassifier, EntailmentClassifier)


@lru_cache(maxsize=2)
def load_checker(block: Grounded) -> Checker:
    """Load the classifier of a block, once per process; its own configuration says of which kind it is.

    Raises ConfigError for a model that cannot be loaded or is neither kind, and MissingExtraError without transformers.
    """
    library, what = transformers_library(), f"classifier {block.model}"
    place = Path(block.model).expanduser()
    source = str(place) if place.is_dir() else block.model
    with loading(what):
        config = library.AutoConfig.from_pretrained(source, revision=block.revision, local_files_only=offline())
    names = list(getattr(config, "architectures", None) or ["no architecture"])
    for kind in _CLASSIFIERS:
        if names[0].endswith(kind.head):
            with Wait(f"loading the {what}"):
                return kind(block)
    wanted = " or ".join(f"...{kind.head}" for kind in _CLASSIFIERS)
    raise ConfigError(f"{what} is {names[0]}; expected {wanted}", "name a classifier of tokens or of entailment")
