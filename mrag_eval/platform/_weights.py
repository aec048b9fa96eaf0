"""A check that the weights of a model can be loaded, before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._hub import hub_lacks_model

# A model has one of them: transformers, an adapter, Mistral's own format.
_DESCRIPTIONS = ("config.json", "adapter_config.json", "params.json")
# Arguments of a model whose weights are in other files, or are not read from files.
OTHER_FILES = ("gguf_file", "subfolder", "cache_dir", "download_dir", "load_format")
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def check_weights(name: str, where: str, revision: str | None = None) -> None:
    """Raise ConfigError, starting with ``where``, for weights that are not there; nothing is loaded or downloaded.

    ``name`` is a folder, or a model of the hub. One that is not in the hub's cache is asked for once: the loader asks
    again and again, for half a minute and each of several files, and its error fills a screen.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not any((folder / file).is_file() for file in _DESCRIPTIONS):
            raise ConfigError(f"{where}: the folder {name} holds no model (config.json)", "name the folder of a model")
        return
    if folder.is_file() or "://" in name:
        return
    if name.startswith(("/", ".", "~")) or name.count("/") > 1:
        raise ConfigError(f"{where}: no folder {name}", "name the folder of a model, or a model of the hub (ORG/NAME)")
    if _is_cached(name, revision):
        return
    offline = next((key for key in _OFFLINE if os.environ.get(key, "").lower() in ("1", "true", "yes", "on")), None)
    if offline is not None:
        raise ConfigError(
            f"{where}: {name} is neither a folder nor in the cache of the hub, and {offline} is set",
            f"go online (unset {offline}), or name a folder with the model",
        )
    fault = hub_lacks_model(name, _DESCRIPTIONS[0], revision)
    if fault is not None:
        raise ConfigError(f"{where}: {name} is neither a folder nor in the cache of the hub, and {fault[0]}", fault[1])


def _is_cached(name: str, revision: str | None) -> bool:
    from huggingface_hub import try_to_load_from_cache

    try:
        return any(isinstance(try_to_load_from_cache(name, file, revision=revision), str) for file in _DESCRIPTIONS)
    except ValueError:
        # not a name that the hub could have
        return False
