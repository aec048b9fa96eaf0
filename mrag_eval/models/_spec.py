"""Named models of the config file, and what a model is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrag_eval.config import ModelSpec, load_config
from mrag_eval.platform import (
    ConfigError,
    config_path,
    content_of_folder,
    did_you_mean,
    headers_in,
    key_variable_of,
    marked,
    names_secret,
    redact,
)

EXAMPLE = """models:
      gpt:
        model: openai-chat-completions
        model_args: {model: gpt-4o-2024-08-06}"""

# Arguments that may be folders of this machine.
_FOLDERS = ("pretrained", "model", "peft", "delta", "tokenizer")
# Headers that say who pays, and nothing of what answers.
KEY_HEADERS = ("authorization", "x-api-key", "api-key")
# Arguments of transport, which do not affect the answer.
_TRAVEL = frozenset(
    {
        "num_concurrent", "max_retries", "timeout", "batch_size", "max_batch_size", "device", "device_map",
        "verify_certificate", "ca_cert_path", "max_gen_toks", "seed", "tensor_parallel_size", "data_parallel_size",
        "gpu_memory_utilization", "trust_remote_code", "tokenized_requests",
    }
)  # fmt: skip
# How a model is reached and let in.
_OURS = frozenset({"header", "api_key", "api_key_env"})


def named_spec(name: str) -> ModelSpec:
    """Return the model of that name in the config file; raise ConfigError with the known names, or an example."""
    models = load_config().models
    if name in models:
        return models[name]
    path = config_path()
    if not models:
        why = f"{path} names no models" if path else "there is no config file"
        raise ConfigError(f"no model '{name}': {why}", EXAMPLE)
    raise ConfigError(f"{path}: models has no '{name}'{did_you_mean(name, models)}")


def name_of(spec: ModelSpec) -> str:
    """Return the name of a model that the config file does not name: that of its weights, else its type."""
    return str(spec.model_args.get("model") or spec.model_args.get("pretrained") or spec.model)


def behind_api(spec: ModelSpec, name: str) -> bool:
    """Return whether the model is called over HTTP, so that nothing is loaded here; raise ConfigError for an unknown
    type.
    """
    from mrag_eval.models._api import is_api, model_class

    return is_api(model_class(spec, name))


def type_fault(spec: ModelSpec) -> str | None:
    """Return what is wrong with the type of a model, with the closest one; None if the harness knows it."""
    from mrag_eval.harness import known_model_types

    known = known_model_types()
    return None if spec.model in known else f"unknown model type '{spec.model}'{did_you_mean(spec.model, known)}"


def key_variable(spec: ModelSpec) -> str | None:
    """Return the environment variable for the model's key; None if its type is not known to need one."""
    return key_variable_of(spec.model, {**spec.model_args, "api_key_env": spec.api_key_env}, needed=True)


def asked_args(spec: ModelSpec) -> dict[str, Any]:
    """Return the model's arguments that affect its answers, as results may hold them: without secrets and headers."""
    return {key: value for key, value in spec.model_args.items() if key not in _TRAVEL | _OURS}


def identity(spec: ModelSpec) -> dict[str, Any]:
    """Return what a model is, the same on any machine: local folders by content, headers that hold no key, and an
    address only where no model is named.
    """
    args = asked_args(spec)
    if any(args.get(key) for key in _FOLDERS[:2]):
        args.pop("base_url", None)
    found: dict[str, Any] = {"model": spec.model}
    files: dict[str, str] = {}
    for key in _FOLDERS:
        folder = Path(str(args.get(key) or "")).expanduser()
        if args.get(key) and folder.is_dir():
            args[key], files[key] = folder.resolve().name, content_of_folder(folder)
    headers = _headers(headers_in(spec.model_args.get("header")) or {})
    return {
        **found,
        **({"files": files} if files else {}),
        **marked({**({"headers": headers} if headers else {}), "args": args}),
    }


def _headers(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of requests that may decide what answers, in lower case: those that hold no key."""
    plain = {str(name).lower(): redact(str(value)) for name, value in given.items()}
    return {name: value for name, value in plain.items() if name not in KEY_HEADERS and not names_secret(name)}


def older_identity(spec: ModelSpec) -> dict[str, Any]:
    """Return a model as keys of kept replies held it before seats; files of ``--use_cache`` are still named by it.

    Local weights are identified by names, sizes and times of their files.
    """
    args = asked_args(spec)
    asked = {key: value for key, value in spec.model_args.items() if key == "header"} | args
    found: dict[str, Any] = {"model": spec.model, "args": asked}
    folders = {"files": args.get("pretrained") or args.get("model")}
    folders |= {f"{key}_files": args.get(key) for key in ("peft", "delta", "tokenizer")}
    for key, name in folders.items():
        folder = Path(str(name or ""))
        if str(folder) != "." and folder.is_dir():
            stats = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
            found[key] = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return found
