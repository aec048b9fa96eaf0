"""The config file as text, with secrets hidden."""

from __future__ import annotations

from typing import Any

from mrag_eval.platform import HIDDEN, hidden, names_secret


def redacted(value: Any) -> Any:
    """Return a copy of nested mappings and lists in which every header and every value of a secret key is replaced."""
    if isinstance(value, dict):
        return {
            key: HIDDEN
            if inner and names_secret(str(key))
            else dict.fromkeys(inner, HIDDEN)
            if str(key) in ("header", "headers") and isinstance(inner, dict)
            else redacted(inner)
            for key, inner in value.items()
        }
    return [redacted(item) for item in value] if isinstance(value, list) else value


def shown_config() -> str:
    """Return the config file as YAML, with a comment that names its path.

    Raises ConfigError for an invalid file.
    """
    import yaml

    from mrag_eval.config import load_config
    from mrag_eval.datasets import data_of_config
    from mrag_eval.platform import config_path

    path = config_path()
    if path is None:
        return (
            "# no config file: $MRAG_CONFIG is not set, and neither ./mrag.yaml nor\n"
            "# ~/.config/mrag_eval/config.yaml exists; none is needed"
        )
    data_of_config()
    content = hidden(redacted(load_config().model_dump(mode="json")))
    return f"# {path.resolve()}\n{yaml.safe_dump(content, allow_unicode=True, sort_keys=False).rstrip()}"
