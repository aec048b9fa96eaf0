"""Token counters by name: model-free, or tiktoken's ``cl100k_base``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from mrag_eval.platform import ConfigError, did_you_mean

# LlamaIndex's default, the tokenizer of gpt-3.5-turbo.
CL100K = "cl100k_base"
MODEL_FREE = "model_free"
TOKENIZERS = (CL100K, MODEL_FREE)

_CACHE = "TIKTOKEN_CACHE_DIR"


def named_token_counter(name: str) -> Callable[[str], int]:
    """Return the counter called ``cl100k_base`` or ``model_free`` (``count_tokens``, an estimate).

    tiktoken reads the vocabulary of ``cl100k_base`` from ``$TIKTOKEN_CACHE_DIR``, else from the copy inside an
    installed LlamaIndex, else it downloads it. Raises ConfigError if none of this works.
    """
    if name == CL100K:
        return _cl100k()
    if name == MODEL_FREE:
        from mrag_eval.retrievers.chunking._chunking import count_tokens

        return count_tokens
    raise ConfigError(f"unknown tokenizer '{name}'{did_you_mean(name, TOKENIZERS)}")


@lru_cache(maxsize=1)
def _cl100k() -> Callable[[str], int]:
    way_out = 'pip install "mrag-eval[xlcost]" llama-index-core (brings the vocabulary), or data.tokenizer=model_free'
    try:
        import tiktoken

        with _bundled_vocabulary():
            encoding = tiktoken.get_encoding(CL100K)
    except Exception as error:  # no tiktoken, no network, a damaged copy: the same next step for all
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        raise ConfigError(f"the tokenizer {CL100K} cannot be loaded ({reason})", way_out) from None
    return lambda text: len(encoding.encode(text, allowed_special="all"))


@contextmanager
def _bundled_vocabulary() -> Iterator[None]:
    """Point tiktoken to LlamaIndex's copy of the vocabulary, if there is one and the user has set no folder."""
    found = find_spec("llama_index") if _CACHE not in os.environ else None
    folders = [] if found is None else [Path(part) for part in found.submodule_search_locations or ()]
    bundled = next((p for f in folders if (p := f / "core" / "_static" / "tiktoken_cache").is_dir()), None)
    if bundled is None:
        yield
        return
    os.environ[_CACHE] = str(bundled)
    try:
        yield
    finally:
        del os.environ[_CACHE]
