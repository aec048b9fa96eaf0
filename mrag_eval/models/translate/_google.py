"""Translation by Google Cloud Translation, through its official client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

from mrag_eval.models.translate._backend import Text, Translated
from mrag_eval.models.translate._codes import google
from mrag_eval.models.translate._pieces import PIECES_VERSION, packed, whole
from mrag_eval.platform import ConfigError, Wait, missing_extra, redact

# Limits of one request: texts, and code points (the service's recommendation; more is slower and may be refused).
_MOST_TEXTS, _MOST_CHARACTERS = 128, 5_000


class Client(Protocol):
    """The part of ``google.cloud.translate_v2.Client`` that is used."""

    def translate(
        self, values: list[str], *, target_language: str, source_language: str, format_: str, model: str | None
    ) -> list[dict[str, Any]]: ...


class GoogleBackend:
    """The Basic edition (v2) of the service; the client finds the credentials (GOOGLE_APPLICATION_CREDENTIALS).

    A request that fails permanently leaves its texts untranslated, with the reason. The client library retries
    temporary faults by its own rules for two minutes.
    """

    def __init__(self, model: str | None = None, client: Client | None = None) -> None:
        self._model, self._client = model, client
        self._characters = 0

    def fingerprint(self, text: Text) -> Any:
        # a text of one piece is neither cut nor joined
        cut = [PIECES_VERSION] if len(text.text) > _MOST_CHARACTERS else []
        return ["google", self._model, *cut]

    def identity(self) -> dict[str, Any]:
        return {"backend": "google", "model": self._model, "pieces": PIECES_VERSION}

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
        client = self._client = self._client or _official_client()
        order = sorted(range(len(texts)), key=lambda i: (texts[i].source, texts[i].target))
        with Wait("translating with Google", len(texts), "texts") as wait:
            for (source, target), group in groupby(order, lambda i: (texts[i].source, texts[i].target)):
                for batch in _batches(list(group), texts):
                    yield from wait.over(self._batch(client, batch, source, target))

    def _batch(
        self, client: Client, batch: Sequence[tuple[int, list[str]]], source: str, target: str
    ) -> Iterator[tuple[int, Translated]]:
        done: list[str] = []
        values = [piece.strip() for _, pieces in batch for piece in pieces]
        try:
            for start, end in _requests(values):
                answer = client.translate(
                    values[start:end],
                    target_language=google(target),
                    source_language=google(source),
                    format_="text",
                    model=self._model,
                )
                self._characters += sum(map(len, values[start:end]))
                done += [str(entry["translatedText"]) for entry in answer]
        except Exception as error:  # any error of the client library concerns only these texts
            reason = redact(" ".join(str(error).split())[:200])
            yield from (
                (position, Translated(None, f"failed: {type(error).__name__}: {reason}")) for position, _ in batch
            )
            return
        found = iter(done)
        for position, pieces in batch:
            yield position, whole(pieces, [Translated(next(found)) for _ in pieces], target)

    def cost(self) -> dict[str, Any] | None:
        return {"characters": self._characters}


def _batches(positions: Sequence[int], texts: Sequence[Text]) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield texts, cut into pieces, that share one request; a text of several requests is alone."""
    batch: list[tuple[int, list[str]]] = []
    count = length = 0
    for position in positions:
        pieces = packed(texts[position].text, texts[position].source, _MOST_CHARACTERS)
        size = sum(map(len, pieces))
        if batch and (count + len(pieces) > _MOST_TEXTS or length + size > _MOST_CHARACTERS):
            yield batch
            batch, count, length = [], 0, 0
        batch.append((position, pieces))
        count, length = count + len(pieces), length + size
    if batch:
        yield batch


def _requests(values: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield half-open spans of the values for one request each."""
    start = length = 0
    for end, value in enumerate(values):
        if end > start and (end - start == _MOST_TEXTS or length + len(value) > _MOST_CHARACTERS):
            yield start, end
            start, length = end, 0
        length += len(value)
    if values:
        yield start, len(values)


def _official_client() -> Client:
    try:
        from google.api_core.retry import Retry
        from google.auth.exceptions import DefaultCredentialsError
        from google.cloud import translate_v2
    except ImportError as error:
        raise missing_extra("google", "google-cloud-translate") from error
    try:
        client = translate_v2.Client()
    except DefaultCredentialsError as error:
        raise ConfigError(
            f"retrieval.translator: google: {' '.join(str(error).split())[:160]}",
            "export GOOGLE_APPLICATION_CREDENTIALS=key.json, or choose another backend",
        ) from None
    return _RetryingClient(client, Retry(timeout=120.0))


class _RetryingClient:
    """The official client; the library retries transient errors by its own rules, with growing delays."""

    def __init__(self, client: Any, retry: Any) -> None:
        self._translate = retry(client.translate)

    def translate(
        self, values: list[str], *, target_language: str, source_language: str, format_: str, model: str | None
    ) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._translate(
            values, target_language=target_language, source_language=source_language, format_=format_, model=model
        )
        return answer
