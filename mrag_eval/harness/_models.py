"""The harness's model types, and what a model needs before it can be loaded."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lm_eval.api import registry
from lm_eval.utils import simple_parse_args_string

from mrag_eval.platform import (
    OTHER_FILES,
    ConfigError,
    check_address,
    check_weights,
    did_you_mean,
    headers_in,
    keep_header,
    keep_key,
    keep_secrets_of,
    key_of,
    key_variable_of,
    present_device,
)

# Model types whose weights are loaded here.
LOCAL_TYPES = ("hf", "hf-auto", "huggingface", "hf-greedy-path", "vllm")
# The harness's modules whose models ask a service with a client of their own.
_OWN_CLIENTS = frozenset(f"lm_eval.models.{name}" for name in ("anthropic_llms", "gguf", "ibm_watsonx_ai", "textsynth"))
# The argument without which a model of this type ends, after the retrieval.
_REQUIRED = {
    **dict.fromkeys(LOCAL_TYPES, "pretrained"),
    **dict.fromkeys(("local-completions", "local-chat-completions"), "base_url"),
}


def model_class(model_type: str) -> type[Any]:
    """Return the class of a model type; raise KeyError, ValueError or ImportError as the registry does."""
    found: type[Any] = registry.get_model(model_type)
    return found


@contextmanager
def warnings_only() -> Iterator[None]:
    """Leave out what the harness tells of an API model that it makes: a run makes many judges and planners."""
    logger = logging.getLogger("lm_eval.models.api_models")

    def is_warning(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING

    logger.addFilter(is_warning)
    try:
        yield
    finally:
        logger.removeFilter(is_warning)


def known_model_types() -> list[str]:
    """Return the names of all model types, of the harness and of other packages."""
    return list(registry.model_registry.keys())


def check_model(name: str, args: Mapping[str, Any], hint: str, device: str | None = None) -> None:
    """Raise ConfigError for an evaluated model that cannot be built or called.

    That is a name of no model type (with the closest one and a ``hint``), a missing argument, a GPU that is not there,
    and what :func:`check_keys` refuses.
    """
    if name not in registry.model_registry:
        raise ConfigError(f"no model type '{name}'{did_you_mean(name, known_model_types())}", hint)
    required = _REQUIRED.get(name)
    if required and not args.get(required):
        raise ConfigError(f"--model {name}: its argument '{required}' is missing", f"--model_args {required}=...")
    if name in LOCAL_TYPES and (device or "").startswith(("cuda", "mps")):
        present_device("mps" if device == "mps:0" else str(device))
    check_keys(name, args)


def check_keys(name: str, args: Mapping[str, Any]) -> None:
    """Hide the keys that a model of this type and these arguments reads from now on.

    Raises ConfigError for an address or a key that no request can carry.
    """
    keep_secrets_of(args, "--model_args")
    if args.get("base_url") is not None:
        check_address(str(args["base_url"]), "--model_args base_url")
    key_of(name, args, f"--model {name}")


def keep_keys_of(loaded: Any) -> None:
    """Hide the keys that a loaded model holds from now on; raise ConfigError as :func:`check_keys` does."""
    kind = f"the evaluated model ({type(loaded).__name__})"
    for name in ("header", "headers", "api_key"):
        try:
            held = headers_in(getattr(loaded, name, None))
        except Exception:  # a property of any package: without a key it may raise whatever it likes
            continue
        if isinstance(held, Mapping):
            for header, value in held.items():
                keep_header(str(header), str(value), f"{kind}, header {header}")
            return
        if isinstance(held, str):
            keep_key(held, f"{kind}, {name}")


def model_faults(name: str, args: Mapping[str, Any]) -> list[ConfigError]:
    """Return the errors for what a model lacks that a run would miss after its retrieval: its key, its weights.

    Nothing is loaded.
    """
    faults = []
    key = key_variable_of(name, args, needed=True)
    if key is not None and not os.environ.get(key):
        faults.append(ConfigError(f"--model {name}: the environment variable {key} is not set", f"export {key}=..."))
    try:
        check_local_weights(name, args, f"--model {name}")
    except ConfigError as fault:
        faults.append(fault)
    return faults


def check_local_weights(name: str, args: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError, starting with ``where``, for a model with local weights that are not there."""
    if name in LOCAL_TYPES and args.get("pretrained") and not {*OTHER_FILES} & {*args}:
        check_weights(str(args["pretrained"]), f"{where}, pretrained", args.get("revision"))


def register_model_type(name: str, place: str) -> None:
    """Make the model at ``place`` (``module:class``) known to ``--model``, unless the name is taken."""
    if name not in registry.model_registry:
        registry.model_registry.register(name, target=place)


def sends_by_http(model: type[Any]) -> bool:
    """Return whether a model class only describes HTTP requests and leaves sending them to its base class."""
    sending = ("generate_until", "get_batched_requests", "model_call", "amodel_call")
    template = _template_of(model)
    return template is not None and all(getattr(model, n) is getattr(template, n) for n in sending)


def runs_here(model: type[Any]) -> bool:
    """Return whether a model class is known to run its weights itself, and asks no service."""
    places = [base.__module__ for base in model.__mro__]
    known = any(place.startswith(("lm_eval.models.", "mrag_eval.models.")) for place in places)
    return known and _template_of(model) is None and not _OWN_CLIENTS & {*places}


def _template_of(model: type[Any]) -> type[Any] | None:
    """Return the harness's class for APIs that a model class derives from, without loading it for those that do not."""
    of_an_api = (base for base in model.__mro__ if base.__module__ == "lm_eval.models.api_models")
    return next((base for base in of_an_api if base.__name__ == "TemplateAPI"), None)


def model_type_of(model: type[Any]) -> str:
    """Return the name under which a model class is registered; its own name if it is not."""
    places = (model, f"{model.__module__}:{model.__qualname__}")
    return next((name for name, known in registry.model_registry.items() if known in places), model.__name__)


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse ``key=value,key=value`` as ``--model_args`` and ``--metadata`` are parsed."""
    return dict(simple_parse_args_string(text))


def settings_of_weights(wanted: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Return settings as the harness's classes hand them to weights; ``longest`` is the length if none is set."""
    from lm_eval.models.utils import normalize_gen_kwargs

    return dict(normalize_gen_kwargs(dict(wanted), longest))
