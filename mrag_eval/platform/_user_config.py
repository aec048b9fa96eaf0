"""The user's config file: where it is."""

from __future__ import annotations

import os
from pathlib import Path

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._paths import user_path


def config_path() -> Path | None:
    """Return the config file, if any.

    It is ``$MRAG_CONFIG``, else ``./mrag.yaml``, else ``~/.config/mrag_eval/config.yaml``. Raises ConfigError if
    ``$MRAG_CONFIG`` names a file that does not exist.
    """
    named = os.environ.get("MRAG_CONFIG")
    if named:
        path = user_path(named, "MRAG_CONFIG")
        if not path.is_file():
            raise ConfigError(f"$MRAG_CONFIG names {path}, which is not a file", "create it, or unset MRAG_CONFIG")
        return path
    home = Path.home() / ".config" / "mrag_eval" / "config.yaml"
    return next((p for p in (Path("mrag.yaml"), home) if p.is_file()), None)
