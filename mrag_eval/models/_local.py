"""Models that run in this process (hf, vllm, ...) or have their own client: the harness calls them in a batch."""

from __future__ import annotations

import inspect
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mrag_eval.config import Generation, ModelSpec
from mrag_eval.core import split_thinking
from mrag_eval.models._reply import Reply
from mrag_eval.platform import ConfigError, number_of, redact
from mrag_eval.prompts import Conversation, renderer

log = logging.getLogger(__name__)

# Receives the answer at a position of the batch; may be called from the worker thread.
Take = Callable[[int, Reply], None]


@dataclass(frozen=True)
class LocalModel:
    """The harness's object, used by one caller at a time, and the conversion of conversations to its prompts."""

    lm: Any
    render: Callable[[Conversation], str]
    turn: threading.Lock = field(default_factory=threading.Lock)

    def generate(self, conversations: Sequence[Conversation], settings: Generation, take: Take) -> None:
        """Answer all conversations; ``take`` receives each answer as soon as the model gives it."""
        from mrag_eval.harness import Instance

        waiting: dict[str, list[int]] = {}
        for position, conversation in enumerate(conversations):
            prompt = self.render(conversation)
            too_long = self._too_long(prompt, settings)
            if too_long is None:
                waiting.setdefault(prompt, []).append(position)
            else:
                take(position, Reply("", attempts=0, error=too_long))
        if not waiting:
            return

        def answered(prompt: str, text: Any) -> None:
            for position in waiting.pop(prompt, ()):
                take(position, self._reply(prompt, text))

        wanted = _wanted(type(self.lm), settings)
        requests = [
            Instance("generate_until", {}, (prompt, dict(wanted)), index) for index, prompt in enumerate(list(waiting))
        ]
        with self.turn, _seeded(self.lm, settings):
            before = self.lm.cache_hook
            self.lm.set_cache_hook(_Hook(answered))
            # our own wait is shown already
            takes = inspect.signature(self.lm.generate_until).parameters
            try:
                texts = self.lm.generate_until(requests, **({"disable_tqdm": True} if "disable_tqdm" in takes else {}))
                for request, text in zip(requests, texts, strict=False):
                    answered(request.args[0], text)
                error = "model: it gave fewer answers than it was asked for"
            except Exception as err:  # an error of whatever library runs the model; finished answers are kept
                error = redact(f"model: {type(err).__name__}: {' '.join(str(err).split())[:300]}")
                log.warning("%s to a local model failed (%s)", number_of(len(waiting), "call"), error)
            finally:
                self.lm.set_cache_hook(before)
        for positions in list(waiting.values()):
            for position in positions:
                take(position, Reply("", error=error))

    def _too_long(self, prompt: str, settings: Generation) -> str | None:
        """Return an error for a prompt that the harness would silently cut on the left, where the instructions are."""
        limit = getattr(self.lm, "max_length", None)
        if not isinstance(limit, int) or len(prompt) + settings.max_tokens <= limit // 4:
            return None
        tokens = self._count(prompt)
        if tokens is None or tokens + settings.max_tokens <= limit:
            return None
        return f"too_long: {tokens} tokens and {settings.max_tokens} to generate, the model's context is {limit}"

    def _count(self, text: str) -> int | None:
        if not _is_a(type(self.lm), "TemplateLM"):
            return None
        try:
            return len(self.lm.tok_encode(text))
        except Exception:  # a model without its own tokenizer: the count is unknown
            return None

    def _reply(self, prompt: str, text: Any) -> Reply:
        if not isinstance(text, str):
            return Reply("", error=f"malformed: the model gave {type(text).__name__} instead of text")
        answer, thinking, _ = split_thinking(text, quotes=True)
        if not answer.strip():
            return Reply("", error="empty: the answer is empty" + (", all of it thinking" if thinking else ""))
        return Reply(answer, None, self._count(prompt), self._count(text), thinking=thinking)


class _Hook:
    """The harness's cache hook, called with every single answer."""

    dbdict = None

    def __init__(self, answered: Callable[[str, Any], None]) -> None:
        self._answered = answered

    def add_partial(self, attr: str, req: Sequence[Any], res: Any) -> None:
        if attr == "generate_until":
            self._answered(req[0], res)


def _is_a(kind: type[Any], name: str) -> bool:
    return any(base.__name__ == name for base in kind.__mro__)


def _wanted(kind: type[Any], settings: Generation) -> dict[str, Any]:
    """Return the settings of a request as the harness's class takes them."""
    wanted: dict[str, Any] = {
        "until": list(settings.stop),
        "max_gen_toks": settings.max_tokens,
        "do_sample": settings.temperature > 0,
        **settings.extra,
    }
    if settings.temperature > 0:
        wanted["temperature"] = settings.temperature
        if settings.top_p is not None:
            wanted["top_p"] = settings.top_p
        if settings.seed is not None and _is_a(kind, "VLLM"):
            wanted["seed"] = settings.seed
    return wanted


def handed_over(kind: type[Any], settings: Generation) -> dict[str, Any]:
    """Return the settings that the harness's class hands to its weights, and the seed of torch's sampling."""
    from mrag_eval.harness import settings_of_weights

    wanted = _wanted(kind, settings)
    if not runs_weights(kind):
        return wanted
    seed = {"seed": settings.seed} if _samples_by_seed(kind, settings) else {}
    return {**settings_of_weights(wanted, settings.max_tokens), **seed}


def runs_weights(kind: type[Any]) -> bool:
    """Return whether a class of the harness hands settings to weights as :func:`handed_over` says."""
    return _is_a(kind, "HFLM") or _is_a(kind, "VLLM")


def _samples_by_seed(kind: type[Any], settings: Generation) -> bool:
    return settings.temperature > 0 and settings.seed is not None and _is_a(kind, "HFLM")


@contextmanager
def _seeded(lm: Any, settings: Generation) -> Iterator[None]:
    """Seed torch's sampling within the block, and restore the process's random state afterwards."""
    if not _samples_by_seed(type(lm), settings):
        yield
        return
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        yield


def local_model(spec: ModelSpec, name: str) -> LocalModel:
    """Return the model with its weights loaded, once per process for all users of the same one."""
    try:
        try:
            args = json.dumps(spec.model_args, sort_keys=True)
        except TypeError:  # arguments that are objects, passed by a program: they cannot be compared
            return _load(spec.model, spec.model_args)
        return _loaded(spec.model, args)
    except (TypeError, ValueError, OSError, ImportError, RuntimeError, NotImplementedError) as err:
        raise ConfigError(
            f"model '{name}': {redact(' '.join(str(err).split())[:400])}",
            "correct its model_args in mrag.yaml, then: mrag-eval doctor",
        ) from err


@lru_cache(maxsize=4)
def _loaded(model: str, args: str) -> LocalModel:
    return _load(model, json.loads(args))


def _load(model: str, args: Mapping[str, Any]) -> LocalModel:
    from mrag_eval.harness import model_class

    return around(model_class(model).create_from_arg_obj(dict(args)))


def around(lm: Any) -> LocalModel:
    """Return the model of a loaded object, with its own chat template."""
    return LocalModel(lm, renderer(lm.apply_chat_template))
