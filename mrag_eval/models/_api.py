"""API models of the harness: built by its registry, called with our own requests.

The harness's classes know each provider's format of requests and responses. The rest is done here: theirs lose a whole
batch to one permanent failure, ignore Retry-After, give no token counts, and log the key with every failed request.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.config import ModelSpec
from mrag_eval.core import (
    ConfigError,
    Endpoint,
    HttpFault,
    JsonFault,
    did_you_mean,
    json_value,
    key_in,
    key_variable_of,
    missing_extra,
)
from mrag_eval.models._lenient_json import storable
from mrag_eval.models._reply import Call, Reply, split_thinking
from mrag_eval.prompts import plain_prompt

# A model sometimes gives an empty or broken body to a request that succeeds on the second attempt.
_BROKEN_AGAIN = 2


def model_class(spec: ModelSpec, name: str) -> type[Any]:
    """Return the harness's class of a model type; raise ConfigError for an unknown type."""
    from mrag_eval import harness

    try:
        return harness.model_class(spec.model)
    except (KeyError, ValueError):
        known = harness.known_model_types()
        raise ConfigError(
            f"model '{name}': unknown model type '{spec.model}'{did_you_mean(spec.model, known)}"
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


@dataclass(frozen=True)
class ApiModel:
    """One API model: the harness's object, which knows the format of requests and responses, and its endpoint."""

    lm: Any = field(repr=False)
    endpoint: Endpoint
    chat: bool

    def payload(self, call: Call) -> dict[str, Any]:
        """Return the JSON body in the provider's format."""
        settings = call.settings
        turns = [dict(message) for message in call.conversation]
        messages: Any = turns if self.chat else self._as_text(turns)
        wanted: dict[str, Any] = {
            "max_gen_toks": settings.max_tokens,
            "temperature": settings.temperature,
            "until": list(settings.stop),
            **settings.extra,
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
        try:
            outputs = json_value(body, lax=True)
        except JsonFault:
            raise HttpFault("malformed", f"the answer is not JSON: {body[:80]!r}", again=_BROKEN_AGAIN) from None
        if not isinstance(outputs, dict):
            raise HttpFault(
                "malformed", f"the answer is a JSON {type(outputs).__name__}, not an object", again=_BROKEN_AGAIN
            )
        thinking, finish, outputs = _split_outputs(outputs)
        try:
            texts = self.lm.parse_generations(outputs)
        except Exception as err:  # any failure of a provider's parser is a fault of this one response
            detail = f"no text in the answer ({type(err).__name__}: {err})"
            raise HttpFault("malformed", detail, again=_BROKEN_AGAIN) from None
        if "choices" not in outputs and isinstance(outputs.get("content"), list):
            texts = ["".join(texts)] if texts else [""]
        if len(texts) != 1:
            raise HttpFault("malformed", f"{len(texts)} choices in the answer instead of 1", again=_BROKEN_AGAIN)
        text, thought = split_thinking(texts[0]) if isinstance(texts[0], str) else ("", "")
        if not text.strip():
            never = finish in ("length", "max_tokens", "content_filter", "refusal")
            why = f"finish reason '{finish}'" + (", all of it thinking" if thinking or thought else "")
            raise HttpFault("empty", f"the answer is empty ({why})", again=0 if never else _BROKEN_AGAIN)
        tokens_in, tokens_out = _usage(outputs.get("usage"))
        whole_thinking = "\n".join(part for part in (thinking, thought) if part)
        return Reply(storable(text), finish, tokens_in, tokens_out, thinking=storable(whole_thinking))


def _split_outputs(outputs: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """Return ``(thinking, finish reason, outputs with text parts only)`` for the two formats that providers use."""
    content = outputs.get("content")
    if "choices" not in outputs and isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
        thinking = "\n".join(str(block.get("thinking", "")) for block in blocks if block.get("type") == "thinking")
        text_blocks = [block for block in blocks if isinstance(block.get("text"), str)]
        return thinking, _text_or_none(outputs.get("stop_reason")), {**outputs, "content": text_blocks}
    choices = outputs.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    thought = next((message[k] for k in ("reasoning_content", "reasoning") if isinstance(message.get(k), str)), "")
    return thought, _text_or_none(choice.get("finish_reason")), outputs


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _usage(usage: Any) -> tuple[int | None, int | None]:
    if not isinstance(usage, dict):
        return None, None

    def count(*names: str) -> int | None:
        return next((usage[n] for n in names if type(usage.get(n)) is int and usage[n] >= 0), None)

    return count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens")


def build_api(cls: type[Any], spec: ModelSpec, name: str) -> ApiModel:
    """Build the harness's object; no request is sent.

    Raises ConfigError for an unknown argument, a missing base_url, or a key that is not in the environment.
    """
    from mrag_eval.harness import warnings_only

    args = dict(spec.model_args)
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
            lm = _keyed(cls, spec, name)(**args)
        headers = dict(lm.header)
    except ModuleNotFoundError as err:
        raise missing_extra("api", err.name or "one of aiohttp, requests, tenacity") from err
    except (TypeError, ValueError, OSError) as err:
        raise ConfigError(
            f"model '{name}': {' '.join(str(err).split())}",
            "correct its model_args or export its key; for a model of mrag.yaml: mrag-eval doctor",
        ) from None
    if not lm.base_url:
        raise ConfigError(
            f"model '{name}': model_args lacks base_url, the address of '{spec.model}'",
            "e.g. base_url: http://localhost:8000/v1/chat/completions",
        )
    if headers.get("Authorization") == "Bearer ":
        del headers["Authorization"]  # a local server without a key; an empty one is not a valid header
    verify: bool | str = (lm.ca_cert_path or True) if lm.verify_certificate else False
    return ApiModel(lm, Endpoint(f"model '{name}'", lm.base_url, headers, verify), "chat" in spec.model)


def _keyed(cls: type[Any], spec: ModelSpec, name: str) -> type[Any]:
    """Return a class whose key comes from the variable that ``api_key_env`` names, or that of its type if it is set."""
    variable = spec.api_key_env
    if variable is None and not spec.model_args.get("header"):
        variable = key_variable_of(spec.model)
        variable = variable if variable is not None and os.environ.get(variable, "").strip() else None
    if variable is None:
        return cls
    return type(cls.__name__, (cls,), {"api_key": key_in(variable, f"model '{name}'")})
