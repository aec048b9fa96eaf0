"""API models of the harness: built by its registry, called with our own requests.

The harness's classes know each provider's format of requests and responses. The rest is done here: theirs lose a whole
batch to one permanent failure, ignore Retry-After, give no token counts, and log the key with every failed request.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mrag_eval.config import Generation, ModelSpec
from mrag_eval.core import split_thinking
from mrag_eval.models._outputs import read_replies
from mrag_eval.models._reply import Call, Reply
from mrag_eval.models._run_model import evaluated
from mrag_eval.models._spec import type_fault
from mrag_eval.platform import (
    BROKEN_AGAIN,
    ConfigError,
    Endpoint,
    HttpFault,
    did_you_mean,
    headers_in,
    key_in,
    key_of,
    key_variable_of,
    missing_extra,
    with_variables,
)
from mrag_eval.prompts import plain_prompt


def model_class(spec: ModelSpec, name: str) -> type[Any]:
    """Return the harness's class of a model type; raise ConfigError for an unknown type."""
    from mrag_eval import harness

    try:
        return harness.model_class(spec.model)
    except (KeyError, ValueError) as err:
        raise ConfigError(
            f"model '{name}': {type_fault(spec) or err}", "mrag-eval doctor   checks every model"
        ) from None
    except ImportError as err:
        raise ConfigError(
            f"model '{name}': model type '{spec.model}' cannot be loaded: {err}",
            'pip install "mrag-eval[api]"   for models behind an API',
        ) from None


def is_api(cls: type[Any]) -> bool:
    """Return whether our transport can send its requests: one of the harness's HTTP classes that does not send its
    own.
    """
    from mrag_eval.harness import sends_by_http

    return sends_by_http(cls)


# Parts of a body that hold the conversation.
_CONVERSATION = ("messages", "prompt")


@dataclass(frozen=True)
class ApiModel:
    """One API model: the harness's object, which knows the format of requests and responses."""

    lm: Any = field(repr=False)
    name: str

    @cached_property
    def chat(self) -> bool:
        """Return whether it takes messages; the other ones take a text."""
        probe = [{"role": "user", "content": "?"}]
        return "messages" in self.lm._create_payload(probe, generate=True, gen_kwargs={}, seed=0)

    @property
    def endpoint(self) -> Endpoint:
        """Return where requests are sent; raise ConfigError if the model has no address or no key."""
        found = endpoint_of(self.lm, self.name)
        if found.headers.get("Authorization") != "Bearer ":
            return found
        # a local server without a key; an empty one is not a valid header
        return replace(found, headers={key: value for key, value in found.headers.items() if key != "Authorization"})

    def settings(self, decoding: Generation) -> dict[str, Any]:
        """Return all that a body holds besides model and conversation.

        Raises ConfigError for a model of which the harness's class cannot make a body.
        """
        try:
            body = self.payload(Call("", [{"role": "user", "content": ""}], decoding))
        except (AssertionError, TypeError, ValueError) as err:
            raise _unfit(self.name, err) from None
        return without_conversation(self.lm, body)

    def payload(self, call: Call) -> dict[str, Any]:
        """Return the JSON body in the provider's format."""
        settings = call.settings
        turns = [dict(message) for message in call.conversation]
        messages: Any = turns if self.chat else self._as_text(turns)
        wanted: dict[str, Any] = {
            "max_gen_toks": settings.max_tokens,
            "temperature": settings.temperature,
            "until": list(settings.stop),
            **with_variables(settings.extra, f"model '{self.name}'"),
        }
        if settings.top_p is not None:
            wanted["top_p"] = settings.top_p
        body: dict[str, Any] = self.lm._create_payload(
            messages, generate=True, gen_kwargs=wanted, seed=settings.seed or 0, eos=None
        )
        # some servers refuse an empty list of stop sequences, and the harness always adds one
        for key in ("stop", "stop_sequences"):
            if key in body:
                body[key] = [sequence for sequence in body[key] or () if sequence]
                if not body[key]:
                    del body[key]
        if settings.seed is None:
            body.pop("seed", None)
        return body

    def _as_text(self, turns: list[dict[str, str]]) -> str:
        template = getattr(self.lm.tokenizer, "apply_chat_template", None)
        if template is None or not getattr(self.lm.tokenizer, "chat_template", None):
            return plain_prompt(turns)
        return str(template(turns, tokenize=False, add_generation_prompt=True))

    def read(self, call: Call, body: str) -> Reply:
        """Return the reply in a body, with its thinking and token counts; raise HttpFault for a body without one."""
        (reply,) = read_replies(self.lm, body)
        if reply.outcome == "refusal":
            raise HttpFault("refusal", reply.text or f"finish reason '{reply.finish_reason}'", again=0)
        text, thought, _ = split_thinking(reply.text, quotes=True)
        thinking = "\n".join(part for part in (reply.thinking, thought) if part)
        if not text.strip():
            why = f"finish reason '{reply.finish_reason}'" + (", all of it thinking" if thinking else "")
            again = 0 if reply.cut_off else BROKEN_AGAIN
            raise HttpFault("empty", f"the answer is empty ({why})", again=again)
        return replace(reply, text=text, thinking=thinking, outcome=None)


def without_conversation(lm: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rest of a body; the name of the model only where it is not the object's."""
    left_out = (*_CONVERSATION, *(["model"] if body.get("model") == lm.model else ()))
    return {key: value for key, value in body.items() if key not in left_out}


def endpoint_of(lm: Any, name: str) -> Endpoint:
    """Return the address to which an API model of the harness sends, with its headers.

    Raises ConfigError if it has no address or no key.
    """
    try:
        headers = dict(headers_in(lm.header))
    except (TypeError, ValueError, OSError) as err:
        raise _unfit(name, err) from None
    if not lm.base_url:
        raise ConfigError(
            f"model '{name}': model_args lacks base_url, its address",
            "e.g. base_url: http://localhost:8000/v1/chat/completions",
        )
    verify: bool | str = (lm.ca_cert_path or True) if lm.verify_certificate else False
    return Endpoint(f"model '{name}'", lm.base_url, headers, verify)


def build_api(cls: type[Any], spec: ModelSpec, name: str) -> ApiModel:
    """Build the harness's object; no request is sent.

    Raises ConfigError for an unknown argument.
    """
    from mrag_eval.harness import warnings_only

    args = dict(spec.model_args)
    typed = args.pop("api_key", None)
    makers = [vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base) and base is not object]
    known = {parameter for maker in makers for parameter in inspect.signature(maker).parameters}
    for key in args:
        if key not in known:
            allowed = known - {"self", "kwargs", "args"}
            raise ConfigError(f"model '{name}': model_args has an unknown key '{key}'{did_you_mean(key, allowed)}")
    if not args.get("tokenizer"):
        args.setdefault("tokenizer_backend", "none")
    try:
        with warnings_only():
            keyed = _keyed(cls, spec.model, {**args, "api_key": typed, "api_key_env": spec.api_key_env}, name)
            lm = keyed(**args)
    except ModuleNotFoundError as err:
        raise missing_extra("api", err.name or "one of aiohttp, requests, tenacity") from err
    except (TypeError, ValueError, OSError) as err:
        raise _unfit(name, err) from None
    return ApiModel(lm, name)


def _unfit(name: str, err: Exception) -> ConfigError:
    return ConfigError(
        f"model '{name}': {' '.join(str(err).split())}",
        "correct its model_args or export its key; for a model of mrag.yaml: mrag-eval doctor",
    )


def with_key(lm: Any, name: str) -> Any:
    """Return a copy of the object that the harness made of the evaluated model, with the key that its arguments say.

    The harness's own classes take no key as an argument, and send a provider's key to any address. The object itself
    is left as it is: requests of other tasks are the harness's.
    """
    from mrag_eval.harness import model_type_of, running

    run, now = evaluated(), running()
    args = {"base_url": lm.base_url, "header": getattr(lm, "_header", None)}
    if run is not None and isinstance(run.model, str):
        args |= run.args
    elif now is not None:
        args |= now.key_args
    made = copy.copy(lm)
    made.__class__ = _keyed(type(lm), model_type_of(type(lm)), args, name)
    # cached properties
    for known in ("api_key", "header"):
        made.__dict__.pop(known, None)
    return made


def _keyed(cls: type[Any], kind: str, args: Mapping[str, Any], name: str) -> type[Any]:
    """Return a class whose key is that of a model's arguments, looked up when it is sent: a plan needs none."""
    owner = f"model '{name}'"

    def key(_: Any) -> str:
        found, needed = key_of(kind, args, owner), key_variable_of(kind, args, needed=True)
        return found or ("" if needed is None else key_in(needed, owner))

    return type(cls.__name__, (cls,), {"api_key": property(key), "__module__": cls.__module__})
