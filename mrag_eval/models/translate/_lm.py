"""Translation by an auxiliary model of the config file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unicodedata import category

from mrag_eval.languages import name_in_prompts
from mrag_eval.models._asking import Answered, generate_parsed
from mrag_eval.models._ledger import CallCounts
from mrag_eval.models._model import AuxModel
from mrag_eval.models._replies import parse_tag
from mrag_eval.models._reply import Reply
from mrag_eval.models._seat import OnReply
from mrag_eval.models.translate._backend import Text, Translated
from mrag_eval.models.translate._pieces import PIECES_VERSION, halves, packed, whole
from mrag_eval.models.translate._reply_size import expected_tokens, longest_piece, longest_sentence
from mrag_eval.platform import Wait
from mrag_eval.prompts import Conversation, load_template
from mrag_eval.text import estimated_tokens

_TAG = "translation"
# Pieces asked for at a time: their texts are on disk before the next ones.
_BATCH = 512
# A piece that needs less than this part of the longest reply did not fill it: the model strayed, and is asked again.
_SHORT = 8
# Tokens of a refusal at most, signs that close a text, and the ends of one that goes on or asks.
_LONGEST_REFUSAL = 40
_CLOSING = "\"'”’»」』)）*"
_NO_END = "?？؟;\u037e՞፧:：,،、"


class LmBackend:
    """Ask a model to translate every text, with the prompt ``prompt`` (built-in ``plain``, or the path of a template).

    Variables of a template, besides those of every prompt: ``text``, ``source_language`` and ``target_language`` (in
    English). The translation is the content of the last ``<translation>`` tag of the reply; a reply without one is
    requested once more. A refusal in the tag is no translation.

    A reply ends at ``max_tokens``, so a text whose translation may be longer is cut into pieces of whole sentences,
    which are asked for at the same time. A piece whose reply is cut off nevertheless is asked for in two halves. A text
    is translated whole or not at all.
    """

    def __init__(self, model: AuxModel, prompt: str = "plain", max_tokens: int | None = None) -> None:
        self._template = load_template(prompt, role="translator")
        # not the model's own ledger, since others may use the same model
        self._ledger = CallCounts()
        asked = {} if max_tokens is None else {"max_tokens": max_tokens}
        self.seat = model.seat("translator", asked=asked, prompts={"translation": self._template.sha256})
        self._max_tokens = self.seat.decoding.max_tokens
        self._limit, self._alone = longest_piece(self._max_tokens), longest_sentence(self._max_tokens)

    def fingerprint(self, text: Text) -> None:
        """Return None: the model keeps its replies, with what came back."""

    def identity(self) -> dict[str, Any]:
        return {"backend": "lm", **self.seat.identity, "pieces": PIECES_VERSION}

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
        cut = [self._pieces(text) for text in texts]
        total = sum(map(len, cut))
        with Wait(f"translating with {self.seat.name}", total, "texts" if total == len(texts) else "pieces") as wait:
            for start, end in _batches(cut):
                asked = [piece for pieces in cut[start:end] for piece in (_stripped(pieces) if pieces[1:] else pieces)]
                done = iter(self._translated(asked, wait))
                for position, pieces in enumerate(cut[start:end], start):
                    found = [next(done) for _ in pieces]
                    yield position, whole([piece.text for piece in pieces], found, texts[position].target)

    def cost(self) -> dict[str, Any] | None:
        return self._ledger.as_dict()

    def _pieces(self, text: Text) -> list[Text]:
        def size(piece: str) -> int:
            return expected_tokens(piece, text.target)

        if size(text.text) <= self._limit:
            return [text]
        return [replace(text, text=p) for p in packed(text.text, text.source, self._limit, size, alone=self._alone)]

    def _translated(self, pieces: Sequence[Text], wait: Wait) -> list[Translated]:
        """Return the outcome of every piece, after a second attempt in halves at those that were cut off."""
        answers = self._answers(pieces, lambda _, reply: wait.add(before=reply.cached))
        outcomes = [self._outcome(piece, answer) for piece, answer in zip(pieces, answers, strict=True)]
        cut = {
            i: [replace(piece, text=half) for half in halves(piece.text, piece.source)]
            for i, (piece, answer) in enumerate(zip(pieces, answers, strict=True))
            if answer.value is None and self._may_be_halved(piece, answer.replies[-1])
        }
        left = [half for parts in cut.values() for half in _stripped(parts)]
        found = iter([self._outcome(half, answer) for half, answer in zip(left, self._answers(left), strict=True)])
        for i, parts in cut.items():
            outcomes[i] = whole([half.text for half in parts], [next(found) for _ in parts], pieces[i].target)
        return outcomes

    def _may_be_halved(self, piece: Text, reply: Reply) -> bool:
        return reply.cut_off and _SHORT * expected_tokens(piece.text, piece.target) > self._alone

    def _answers(self, pieces: Sequence[Text], on_reply: OnReply | None = None) -> list[Answered[str]]:
        began = time.perf_counter()
        answers = generate_parsed(
            self.seat,
            [self._conversation(piece) for piece in pieces],
            partial(parse_tag, tag=_TAG),
            on_reply=on_reply,
            # asked again for all of it, a model would leave something out
            final=lambda position, reply: self._may_be_halved(pieces[position], reply),
            waiting=None,
        )
        replies = (reply for answer in answers for reply in answer.replies)
        self._ledger += CallCounts.of(replies, time.perf_counter() - began)
        return answers

    def _outcome(self, piece: Text, answer: Answered[str]) -> Translated:
        if answer.value is not None and _refuses(piece, answer.value):
            return Translated(None, f"refusal: {answer.value}")
        if answer.value is None and answer.replies[-1].cut_off:
            return Translated(None, f"failed: length: a reply was cut off at max_tokens={self._max_tokens}")
        if answer.value is None:
            return Translated(None, f"failed: {answer.error}")
        return Translated(answer.value, kept=all(reply.cached for reply in answer.replies))

    def _conversation(self, text: Text) -> Conversation:
        texts = {
            "text": text.text,
            "source_language": name_in_prompts(text.source),
            "target_language": name_in_prompts(text.target),
        }
        system, user = self._template.render({"query": "", "query_lang": text.target}, (), texts)
        turns = [{"role": "system", "content": system}] if system else []
        return [*turns, {"role": "user", "content": user}]


def _refuses(text: Text, translation: str) -> bool:
    """Return whether a reply in place of a translation is a refusal, in its language or English, and its text is none.

    A refusal is a short sentence and no question: words such as "unknown" are in titles and questions, too. Of 128,700
    pairs of the same text in XQuAD's ten languages, questions and paragraphs, none is taken for one.
    """
    from mrag_eval.metrics import declines

    said = translation.strip().rstrip(_CLOSING)
    if category(said[-1:] or " ") != "Po" or said[-1] in _NO_END or estimated_tokens(said) > _LONGEST_REFUSAL:
        return False
    return declines(said, text.target) and not declines(text.text, text.source)


def _batches(cut: Sequence[Sequence[Text]]) -> Iterator[tuple[int, int]]:
    """Yield half-open spans of texts with at most :data:`_BATCH` pieces together, or of one text."""
    start = count = 0
    for end, pieces in enumerate(cut):
        if end > start and count + len(pieces) > _BATCH:
            yield start, end
            start, count = end, 0
        count += len(pieces)
    if cut:
        yield start, len(cut)


def _stripped(pieces: Sequence[Text]) -> list[Text]:
    return [replace(piece, text=piece.text.strip()) for piece in pieces]
