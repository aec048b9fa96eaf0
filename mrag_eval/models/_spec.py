"""Named models of the config file, and what identifies a model in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrag_eval.config import Generation, ModelSpec, config_path, load_config, validated
from mrag_eval.core import ConfigError, did_you_mean

# Model types by how their names begin, and the variable that the harness looks for their key in.
_KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "azure": "AZURE_OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}

EXAMPLE = """models:
      gpt:
        model: openai-chat-completions
        model_args: {model: gpt-4o-2024-08-06}"""

# How a request travels, as opposed to what is asked: without influence on the answer.
_TRAVEL = frozenset(
    {
        "num_concurrent", "max_retries", "timeout", "batch_size", "max_batch_size", "device", "device_map",
        "verify_certificate", "ca_cert_path", "max_gen_toks", "seed", "tensor_parallel_size", "data_parallel_size",
        "gpu_memory_utilization", "trust_remote_code", "tokenized_requests",
    }
)  # fmt: skip


def named_spec(name: str) -> ModelSpec:
    """The model of that name in the config file; ConfigError with those there are, or an example."""
    models = load_config().models
    if name in models:
        return models[name]
    path = config_path()
    if not models:
        why = f"{path} names no models" if path else "there is no config file"
        raise ConfigError(f"no model '{name}': {why}", EXAMPLE)
    raise ConfigError(f"{path}: models has no '{name}'{did_you_mean(name, models)}")


def behind_api(spec: ModelSpec, name: str) -> bool:
    """Whether the model is asked over HTTP, so that nothing of it is loaded here; ConfigError for an unknown type."""
    from mrag_eval.models._api import is_api, model_class

    return is_api(model_class(spec, name))


def key_variable(spec: ModelSpec) -> str | None:
    """The environment variable that must hold the model's key; None where it needs none, as far as its type tells."""
    if spec.api_key_env is not None:
        return spec.api_key_env
    return next((variable for start, variable in _KEY_VARIABLES.items() if spec.model.startswith(start)), None)


def settings_for(spec: ModelSpec, changes: Mapping[str, Any], where: str) -> Generation:
    """The model's own generation settings with this call's changes, validated."""
    if not changes:
        return spec.generation
    return validated(Generation, {**spec.generation.model_dump(), **changes}, where)


def asked_args(spec: ModelSpec) -> dict[str, Any]:
    """The model's arguments that decide its answers; secrets are not among them (they are refused in a spec)."""
    return {key: value for key, value in spec.model_args.items() if key not in _TRAVEL}


def identity(spec: ModelSpec) -> dict[str, Any]:
    """What decides a model's answers besides prompt and settings: type and arguments, for local weights their files."""
    args = asked_args(spec)
    found: dict[str, Any] = {"model": spec.model, "args": args}
    folder = Path(str(args.get("pretrained") or args.get("model") or ""))
    if str(folder) != "." and folder.is_dir():
        stats = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
        found["files"] = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return found


def portable_identity(spec: ModelSpec) -> dict[str, Any]:
    """What decides a model's answers, in words that hold on any machine: no addresses, of a local folder its files."""
    args = {key: value for key, value in asked_args(spec).items() if key != "base_url"}
    found: dict[str, Any] = {"model": spec.model, "generation": spec.generation.model_dump(mode="json")}
    for key in ("pretrained", "model"):
        folder = Path(str(args.get(key) or "")).expanduser()
        if args.get(key) and folder.is_dir():
            args[key] = folder.resolve().name
            found["files"] = {file.name: file.stat().st_size for file in sorted(folder.iterdir()) if file.is_file()}
    return {**found, "args": args}
