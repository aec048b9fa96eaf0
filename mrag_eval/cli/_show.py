"""The config file as text, with secrets hidden."""

from __future__ import annotations

import re
from typing import Any

_SECRET = re.compile(r"api_?key|token|secret|passw|authorization|credential", re.IGNORECASE)
_NOT_SECRET = re.compile(r"max_.*tokens?$|tokenizer", re.IGNORECASE)
HIDDEN = "(hidden)"


def redacted(value: Any) -> Any:
    """Return a copy of nested mappings and lists in which every value under a secret-looking key is replaced."""
    if isinstance(value, dict):
        return {
            key: HIDDEN if _SECRET.search(str(key)) and not _NOT_SECRET.search(str(key)) and inner else redacted(inner)
            for key, inner in value.items()
        }
    return [redacted(item) for item in value] if isinstance(value, list) else value


def shown_config() -> str:
    """Return the config file as YAML, with a comment that names its path.

    Raises ConfigError for an invalid file.
    """
    import yaml

    from mrag_eval.config import config_path, load_config

    path = config_path()
    if path is None:
        return (
            "# no config file: $MRAG_CONFIG is not set, and neither ./mrag.yaml nor\n"
            "# ~/.config/mrag_eval/config.yaml exists; none is needed"
        )
    content = redacted(load_config().model_dump(mode="json"))
    return f"# {path.resolve()}\n{yaml.safe_dump(content, allow_unicode=True, sort_keys=False).rstrip()}"
