"""Translation by an auxiliary model of the config file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from mrag_eval.core import Wait, language_name
from mrag_eval.models._asking import generate_parsed
from mrag_eval.models._ledger import Ledger
from mrag_eval.models._model import AuxModel
from mrag_eval.models._replies import Parsed, parse_tag
from mrag_eval.models._spec import asked_args, identity
from mrag_eval.models.translate._backend import Outcome, Text
from mrag_eval.prompts import Conversation, load_template

_TAG = "translation"
# Batch size: answers are on disk before the next batch.
_BATCH = 512
# Identifies a prompt: its wording around this text.
_SAMPLE = Text("text", "de", "en")


class LmBackend:
    """Ask a model to translate every text, with the prompt ``prompt`` (built-in ``plain``, or the path of a template).

    Variables of a template, besides those of every prompt: ``text``, ``source_language`` and ``target_language`` (in
    English). The translation is the content of the last ``<translation>`` tag of the reply; a reply without one is
    requested once more.
    """

    def __init__(self, model: AuxModel, prompt: str = "plain", max_tokens: int | None = None) -> None:
        self._model = model
        self._template = load_template(prompt, role="translator")
        # not the model's own ledger, since others may use the same model
        self._ledger = Ledger()
        self._settings: dict[str, Any] = {} if max_tokens is None else {"max_tokens": max_tokens}

    def fingerprint(self, text: Text) -> Any:
        generation = {**self._model.spec.generation.model_dump(mode="json"), **self._settings}
        return ["lm", identity(self._model.spec), generation, self._conversation(text)]

    def identity(self) -> dict[str, Any]:
        spec = self._model.spec
        return {
            "backend": "lm",
            "model": spec.model,
            "model_args": asked_args(spec),
            "generation": {**spec.generation.model_dump(mode="json"), **self._settings},
            # the prompt may be a file, whose name does not identify it
            "prompt_sha256": sha256(json.dumps(self._conversation(_SAMPLE)).encode()).hexdigest(),
        }

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Outcome]]:
        with Wait(f"translating with {self._model.name}", len(texts), "texts") as wait:
            for start in range(0, len(texts), _BATCH):
                batch = texts[start : start + _BATCH]
                asked = [self._conversation(text) for text in batch]
                began = time.perf_counter()
                answers = generate_parsed(
                    self._model,
                    asked,
                    _translation,
                    seat="translator",
                    on_reply=lambda _, reply: wait.add(before=reply.cached),
                    waiting=None,
                    **self._settings,
                )
                replies = (reply for answer in answers for reply in answer.replies)
                self._ledger += Ledger.of(replies, time.perf_counter() - began)
                for position, answer in enumerate(answers, start):
                    reason = None if answer.value is not None else f"failed: {answer.error}"
                    yield position, Outcome(answer.value, reason)

    def _conversation(self, text: Text) -> Conversation:
        texts = {
            "text": text.text,
            "source_language": language_name(text.source),
            "target_language": language_name(text.target),
        }
        system, user = self._template.render({"query": "", "query_lang": text.target}, (), texts)
        turns = [{"role": "system", "content": system}] if system else []
        return [*turns, {"role": "user", "content": user}]

    def cost(self) -> dict[str, Any] | None:
        return self._ledger.as_dict()


def _translation(reply: str) -> Parsed[str]:
    return parse_tag(reply, _TAG)
