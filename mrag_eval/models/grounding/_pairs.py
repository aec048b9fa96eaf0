"""Classifiers of pairs of texts: windows of passages beside pieces of an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mrag_eval.config import Grounded
from mrag_eval.core import Claim, Span
from mrag_eval.models.grounding._checker import Asked
from mrag_eval.platform import ConfigError, content_of_folder, name_of_model, placed
from mrag_eval.retrievers import commit_of, loading, offline, transformers_library, with_weights

# Tokens that a window may have more of where it is read beside other text.
_SLACK = 4
# Texts from elsewhere hold no control tokens.
_PLAIN: dict[str, Any] = {"split_special_tokens": True, "verbose": False}
_NO_TEXT = "no text: the passages hold nothing to read"
Offsets = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class WindowPair:
    """A window of a passage beside a piece of an answer.

    Attributes:
        row: the place of the answer among those asked about.
        passage: the passage's place in the prompt, from 1.
        start: the piece's place in the answer, in code points.
        texts: what the model reads first, the window among it, and the piece.
    """

    row: int
    passage: int
    start: int
    texts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class WindowRead:
    """What the model gives for a pair: its probabilities by label, of a text or of each token of the piece.

    ``offsets`` are the spans of these tokens in the piece.
    """

    pair: WindowPair
    probabilities: NDArray[np.float64]
    offsets: Offsets = ()


class PairClassifier(ABC):
    """A transformers model that reads windows of passages beside pieces of an answer.

    A passage that is longer than its room in ``max_length`` tokens is read in windows that overlap by a quarter, one
    without a letter or a digit not at all. Pairs are read in batches of about equal lengths. ``identity`` has name and
    commit, or of a folder the hash of its content alone, and the settings that decide a finding.

    Raises ConfigError for a model that cannot be loaded, has other labels, or does not say where its tokens stand, and
    MissingExtraError without transformers.
    """

    head: ClassVar[str]
    expected: ClassVar[str]

    def __init__(self, block: Grounded) -> None:
        library, what = transformers_library(), f"classifier {block.model}"
        options: dict[str, Any] = {"revision": block.revision, "local_files_only": offline()}
        place = Path(block.model).expanduser()
        source = str(place) if place.is_dir() else block.model
        with loading(what):
            self._tokenizer: Any = library.AutoTokenizer.from_pretrained(source, **options)
        self._model: Any = with_weights(getattr(library, f"AutoModel{self.head}"), source, what, **options)
        config = self._model.config
        labels = {int(number): str(name) for number, name in config.id2label.items()}
        if (numbers := self.numbers(labels)) is None:
            listed = ", ".join(f"{number} {name}" for number, name in sorted(labels.items()))
            raise ConfigError(f"{what} has the labels {listed}; expected {self.expected}", "name another classifier")
        if not self._tokenizer.is_fast:
            raise ConfigError(
                f"{what}: its tokenizer does not say where tokens stand", "name one with a fast tokenizer"
            )
        self.name, self._block, self._numbers = name_of_model(block.model), block, list(numbers)
        self._device = placed(self._model, block.device, what)
        known = (block.max_length, self._tokenizer.model_max_length, getattr(config, "max_position_embeddings", None))
        self._longest = min(int(n) for n in known if n)
        # a folder is what it holds, whatever it is called
        of_hub = {"model": self.name, "revision": commit_of(config) or block.revision}
        self.identity: Mapping[str, Any] = {
            **({"revision": content_of_folder(place)} if place.is_dir() else of_hub),
            "head": self.head,
            "max_length": self._longest,
            **self.settings(block),
        }

    @staticmethod
    @abstractmethod
    def numbers(labels: Mapping[int, str]) -> Sequence[int] | None:
        """Return the numbers of the labels that are read, in their order; None if the model has others."""

    @staticmethod
    def settings(block: Grounded) -> dict[str, Any]:
        """Return the settings that decide a finding beside the length."""
        return {}

    @abstractmethod
    def pieces(self, asked: Asked, most: int) -> Iterable[Span]:
        """Return the parts of an answer that are read at once, of at most ``most`` tokens where it can be cut."""

    def around(self, asked: Asked) -> tuple[str, str]:
        """Return what is read before and after a window."""
        return "", ""

    @abstractmethod
    def read(self, pair: WindowPair, encoding: Any, probabilities: NDArray[np.float64]) -> WindowRead:
        """Return what is read of a pair."""

    @abstractmethod
    def found(self, asked: Asked, read: Sequence[WindowRead]) -> tuple[Claim, ...]:
        """Return the verdicts on the claims of an answer, from all of its pairs."""

    def findings(self, asked: Sequence[Asked]) -> list[tuple[Claim, ...] | str]:
        faults: dict[int, str] = {}
        texts = dict.fromkeys(passage for one in asked for passage in one.passages)
        offsets = dict(zip(texts, map(self.offsets, texts), strict=True))
        pairs = [pair for row, one in enumerate(asked) for pair in self._pairs(row, one, offsets, faults)]
        reads: dict[int, list[WindowRead]] = {}
        for read in self._reads(pairs, faults):
            reads.setdefault(read.pair.row, []).append(read)
        faults |= {row: _NO_TEXT for row in range(len(asked)) if row not in faults and row not in reads}
        return [faults[row] if row in faults else self.found(one, reads[row]) for row, one in enumerate(asked)]

    def offsets(self, text: str) -> Offsets:
        """Return the spans of the tokens of a text."""
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, **_PLAIN)
        spans: Offsets = encoded["offset_mapping"]
        return spans

    def _pairs(
        self, row: int, asked: Asked, offsets: Mapping[str, Offsets], faults: dict[int, str]
    ) -> Iterator[WindowPair]:
        before, after = self.around(asked)
        special = self._tokenizer.num_special_tokens_to_add(pair=True)
        taken = special + len(self.offsets(before + after)) + _SLACK
        # an eighth of the length is the least room of a window
        most = min(self._longest // 2, self._longest - taken - self._longest // 8)
        for span in self.pieces(asked, most):
            piece = asked.answer[span.start : span.end]
            size = len(self.offsets(piece))
            if size > most:
                faults[row] = f"too long: {size} tokens of a claim and {taken} around it (judge.grounded.max_length)"
                return
            for place, passage in enumerate(asked.passages, 1):
                # beside a passage without text, the claim alone would say whether it is supported
                if not any(map(str.isalnum, passage)):
                    continue
                for start, end in windows(offsets[passage], self._longest - taken - size):
                    yield WindowPair(row, place, span.start, (before + passage[start:end] + after, piece))

    def _reads(self, pairs: Sequence[WindowPair], faults: dict[int, str]) -> Iterator[WindowRead]:
        import torch

        if not pairs:
            return
        first, second = zip(*(pair.texts for pair in pairs), strict=True)
        cut: dict[str, Any] = {"truncation": "only_first", "max_length": self._longest}
        given = self._tokenizer(list(first), list(second), **cut, **_PLAIN)
        names = [name for name in self._tokenizer.model_input_names if name in given]
        order = sorted(range(len(pairs)), key=lambda place: -len(given["input_ids"][place]))
        for at in range(0, len(order), self._block.batch_size):
            places = order[at : at + self._block.batch_size]
            batch = {name: [given[name][place] for place in places] for name in names}
            padded = self._tokenizer.pad(batch, return_tensors="pt").to(self._device)
            try:
                with torch.inference_mode():
                    values = self._model(**padded).logits.float().softmax(dim=-1).double().cpu().numpy()
            except RuntimeError as error:
                # what the device cannot hold leaves these rows without a finding, and no others
                reason = (str(error).splitlines() or [""])[0]
                faults |= {pairs[place].row: f"{type(error).__name__}: {reason}" for place in places}
                continue
            for place, found in zip(places, values, strict=True):
                read = self.read(pairs[place], given.encodings[place], found)
                if np.isfinite(read.probabilities).all():
                    yield read
                else:
                    faults[pairs[place].row] = "not a number: the classifier gave no finite probability"


def windows(offsets: Offsets, room: int) -> list[tuple[int, int]]:
    """Return spans of at most ``room`` tokens that cover a text and overlap by a quarter; of a short one, the whole."""
    if len(offsets) <= room:
        return [(0, offsets[-1][1])] if offsets else []
    overlap = room // 4
    starts = range(0, len(offsets) - overlap, room - overlap)
    return [(offsets[at][0], offsets[min(at + room, len(offsets)) - 1][1]) for at in starts]
