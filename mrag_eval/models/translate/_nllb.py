"""Translation by NLLB-200 (or a similar model) on this machine, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from mrag_eval.models.translate._backend import Text, Translated
from mrag_eval.models.translate._codes import flores
from mrag_eval.models.translate._pieces import PIECES_VERSION, halves, sentences, whole
from mrag_eval.platform import ConfigError, Wait, content_of_folder, name_of_model, placed
from mrag_eval.retrievers import loading, transformers_library, with_weights

# Batch size: translations are on disk before the next batch.
_CHUNK = 128


class NllbBackend:
    """A sequence-to-sequence model whose tokenizer knows FLORES-200 labels, loaded on first use.

    The model was trained on sentences and drops some if given several, so texts are translated sentence by sentence;
    in Thai and Lao, which have no full stop, line by line. ``max_tokens`` bounds a sentence and its translation; a
    longer one is cut into pieces as long as fit, after a comma, else at a space. A sentence whose translation does not
    end within them is translated in two halves; if that does not end either, the text has no translation.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        max_tokens: int = 256,
        num_beams: int = 1,
        batch_size: int = 16,
        device: str = "cpu",
    ) -> None:
        self._model, self._revision, self._device = model, revision, device
        self._max_tokens, self._num_beams, self._batch_size = max_tokens, num_beams, batch_size

    def fingerprint(self, text: Text) -> Any:
        content = self._content()
        # a hub id is its name; a folder is what it holds, wherever it is
        named = [self._model, self._revision, None] if content is None else ["", content, None]
        return ["nllb", *named, self._max_tokens, self._num_beams, PIECES_VERSION]

    def identity(self) -> dict[str, Any]:
        settings = {"max_tokens": self._max_tokens, "num_beams": self._num_beams, "pieces": PIECES_VERSION}
        named = {"model": name_of_model(self._model), "revision": self._content() or self._revision}
        return {"backend": "nllb", **named, **settings}

    def _content(self) -> str | None:
        """Return the hash of the model's files; None for a hub id."""
        folder = Path(self._model).expanduser()
        return content_of_folder(folder) if folder.is_dir() else None

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
        able: list[tuple[int, Text]] = []
        for position, text in enumerate(texts):
            lacking = next((code for code in (text.source, text.target) if flores(code) is None), None)
            if lacking is None:
                able.append((position, text))
            else:
                yield position, Translated(None, f"unsupported: {lacking}")
        # one pair of languages at a time, as the tokenizer is set to one source
        by_pair = groupby(sorted(able, key=lambda t: (t[1].source, t[1].target)), lambda t: (t[1].source, t[1].target))
        with Wait(f"translating with {self._model}", len(able), "texts") as wait:
            for (source, target), members in by_pair:
                waiting = list(members)
                for start in range(0, len(waiting), _CHUNK):
                    chunk = waiting[start : start + _CHUNK]
                    found = self._chunk([text.text for _, text in chunk], source, target)
                    wait.add(len(chunk))
                    yield from ((position, outcome) for (position, _), outcome in zip(chunk, found, strict=True))

    def _chunk(self, texts: Sequence[str], source: str, target: str) -> list[Translated]:
        tokenizer, model = _loaded(self._model, self._revision, self._device)
        tokenizer.src_lang = flores(source)
        # two positions are used by the language label and the end of the sentence
        room = self._max_tokens - 2

        def fits(piece: str) -> bool:
            return len(tokenizer(piece, add_special_tokens=False)["input_ids"]) <= room

        pieces = [sentences(text, source, fits) for text in texts]
        done = self._translated(tokenizer, model, {p.strip() for parts in pieces for p in parts}, target)
        cut = {piece: halves(piece, source) for piece, outcome in done.items() if outcome.text is None}
        again = self._translated(tokenizer, model, {p.strip() for parts in cut.values() for p in parts}, target)
        done |= {piece: whole(parts, [again[p.strip()] for p in parts], target) for piece, parts in cut.items()}
        return [whole(parts, [done[p.strip()] for p in parts], target) for parts in pieces]

    def _translated(self, tokenizer: Any, model: Any, pieces: Set[str], target: str) -> dict[str, Translated]:
        # sorting sentences by length reduces padding
        order = sorted(pieces, key=lambda piece: (len(piece), piece))
        done: dict[str, Translated] = {}
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            done |= zip(batch, self._batch(tokenizer, model, batch, str(flores(target))), strict=True)
        return done

    def _batch(self, tokenizer: Any, model: Any, batch: list[str], label: str) -> list[Translated]:
        import torch

        first = tokenizer.convert_tokens_to_ids(label)
        if first is None or first == tokenizer.unk_token_id:
            raise ConfigError(
                f"retrieval.translator.model: {self._model} lacks the language label {label}",
                "choose an NLLB model, or a translator that knows the language (docs/ir_modes.md)",
            )
        tokens = tokenizer(batch, return_tensors="pt", padding=True).to(model.device)
        with torch.inference_mode():
            out = model.generate(
                **tokens,
                forced_bos_token_id=first,
                max_length=self._max_tokens,
                num_beams=self._num_beams,
                do_sample=False,
            )
        # the first token is the end of a sentence, too
        ended = (out[:, 1:] == tokenizer.eos_token_id).any(dim=1).tolist()
        cut_off = Translated(None, f"failed: length: a translation was cut off at max_tokens={self._max_tokens}")
        texts = tokenizer.batch_decode(out, skip_special_tokens=True)
        return [Translated(text) if complete else cut_off for text, complete in zip(texts, ended, strict=True)]

    def cost(self) -> dict[str, Any] | None:
        return None


@lru_cache(maxsize=1)
def _loaded(model: str, revision: str | None, device: str) -> tuple[Any, Any]:
    library, what = transformers_library(), f"translator {model}"
    with Wait(f"loading the {what}"):
        with loading(what):
            tokenizer = library.AutoTokenizer.from_pretrained(model, revision=revision)
        network = with_weights(library.AutoModelForSeq2SeqLM, model, what, revision=revision)
    placed(network, device, f"translator {model}")
    return tokenizer, network
