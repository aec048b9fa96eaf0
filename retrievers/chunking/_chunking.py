"""Cutting documents into passages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from mrag_eval.core import NO_SPACES, Passage, base_language, titled
from mrag_eval.platform import ConfigError, CorpusError, did_you_mean
from mrag_eval.retrievers.chunking._sentence_splitter import split_sentences
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.index._hashing import passage_id
from mrag_eval.text import BETWEEN_WORDS, estimated_tokens, fitting_spans, sentence_spans

METHODS = ("words", "sentences", "llamaindex", "paragraphs", "none")

TokenCounter = Callable[[str], int]

# Of the sentence ends, cuts and token estimates of the methods named; the others have not changed. Version 1 was not
# recorded.
CHUNKING_VERSION = 2
_VERSIONED = ("sentences", "llamaindex")

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


def count_tokens(text: str) -> int:
    """Estimate the tokens of XLM-RoBERTa, whose vocabulary most multilingual embedders share, without a model.

    The estimate is the same on every machine. To count with a model's tokenizer, pass it as ``token_counter``.
    """
    return estimated_tokens(text, "xlm-r")


@dataclass(frozen=True, slots=True)
class ChunkConfig:
    """Settings for cutting documents into passages; stored in the index's manifest.

    - ``words``: ``size`` (100) whitespace words, or as many characters for languages written without spaces (a
      combining mark stays with its letter); whitespace becomes single spaces. The split of KILT, and of Retrieval-
      augmented generation in multilingual settings (section 3), with ``title_in_front``.
    - ``sentences``: whole sentences, in any script, up to ``size`` (100) tokens, no overlap; a longer sentence is cut
      between words, a longer word between letters. Thai and Lao are cut at spaces. The prepended title is not counted.
    - ``llamaindex``: up to ``size`` (100) tokens, cut like LlamaIndex's ``SentenceSplitter``. The split of The
      Cross-Lingual Cost (section 3). Only ``.``, ``?`` and ``!`` end sentences.
    - ``paragraphs``: cut at blank lines; paragraphs shorter than ``min_chars`` characters are left out.
    - ``none``: one passage per document.

    ``title_in_front`` prepends ``<title>. `` to every passage, so that it can be found by its title; with
    ``paragraphs`` and ``none`` only if the text does not begin with the title. Documents and pieces without text give
    no passage.
    """

    method: str = "none"
    size: int = 100
    title_in_front: bool = True
    min_chars: int = 1
    version: int = CHUNKING_VERSION

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"chunker: unknown method '{self.method}'{did_you_mean(self.method, METHODS)}")
        if self.size < 1:
            raise ConfigError(f"chunker.size is {self.size}, it must be at least 1", "e.g. 100")
        if self.min_chars < 1:
            raise ConfigError(
                f"chunker.min_chars is {self.min_chars}, it must be at least 1", "leave it out for the default"
            )

    @classmethod
    def of(cls, spec: str | Mapping[str, Any] | ChunkConfig) -> ChunkConfig:
        """Return the config for a method's name or a mapping of the fields; raise ConfigError for a wrong key."""
        if isinstance(spec, ChunkConfig):
            return spec
        if isinstance(spec, str):
            return cls(method=spec)
        allowed = {field.name: field.type for field in fields(cls) if field.name != "version"}
        for key, value in spec.items():
            if key not in allowed:
                raise ConfigError(f"chunker: unknown key '{key}'{did_you_mean(key, allowed)}")
            expected = {"method": str, "title_in_front": bool}.get(key, int)
            if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
                raise ConfigError(
                    f"chunker.{key} is {value!r}, expected {expected.__name__}",
                    "mrag-eval index build --help   lists the settings of chunkers",
                )
        return cls(**spec)

    @classmethod
    def recorded(cls, record: Mapping[str, Any]) -> ChunkConfig:
        """Return the config of a manifest, with the version of the rules that cut its documents."""
        config = cls.of({key: value for key, value in record.items() if key != "version"})
        return replace(config, version=record.get("version", 1)) if config.method in _VERSIONED else config

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for the manifest, with the version of the rules if the method has a second one."""
        settings = asdict(self)
        if self.method not in _VERSIONED or self.version == 1:
            del settings["version"]
        return settings


def chunk_documents(
    documents: Iterable[Document],
    config: str | Mapping[str, Any] | ChunkConfig = "words",
    *,
    token_counter: TokenCounter = count_tokens,
) -> Iterator[Passage]:
    """Yield the passages of ``documents``, one document at a time.

    ``Passage.doc_id`` is the document's id; ``Passage.id`` is a hash of document id, language, position and text, so
    unchanged passages keep their ids in a rebuild. ``token_counter`` is used by ``sentences`` and ``llamaindex``.
    Raises CorpusError for the config of an index that was cut by other rules.
    """
    settings = ChunkConfig.of(config)
    if settings.version != CHUNKING_VERSION:
        raise CorpusError(
            f"documents of the index were cut by '{settings.method}' version {settings.version}, this mrag-eval has "
            f"version {CHUNKING_VERSION}",
            "rebuild the index: mrag-eval index build --overwrite ...",
        )
    for document in documents:
        for position, piece in enumerate(_pieces(document, settings, token_counter)):
            text = _behind_title(document.title, piece, settings)
            yield Passage(
                id=passage_id(document.id, document.lang, position, text),
                lang=document.lang,
                text=text,
                title=document.title,
                doc_id=document.id,
            )


def _behind_title(title: str, piece: str, settings: ChunkConfig) -> str:
    if not settings.title_in_front:
        return piece
    # the papers' splits prepend the title to every piece
    if settings.method in ("words", "sentences", "llamaindex"):
        return f"{title}. {piece}" if title else piece
    return titled(title, piece)


def _pieces(document: Document, settings: ChunkConfig, count: TokenCounter) -> Iterator[str]:
    if not document.text.strip():
        return
    if settings.method == "none":
        yield document.text
    elif settings.method == "paragraphs":
        for paragraph in _BLANK_LINES.split(document.text.replace("\r\n", "\n")):
            if len(paragraph.strip()) >= settings.min_chars:
                yield paragraph.strip()
    elif settings.method == "words":
        if base_language(document.lang) in NO_SPACES:
            yield from _characters(" ".join(document.text.split()), settings.size)
        else:
            words = document.text.split()
            for start in range(0, len(words), settings.size):
                yield " ".join(words[start : start + settings.size])
    elif settings.method == "llamaindex":
        yield from split_sentences(document.text, settings.size, count)
    else:
        yield from _sentences(document, settings.size, count)


def _characters(text: str, size: int) -> Iterator[str]:
    """Yield pieces of ``size`` code points, or longer ones to keep combining marks with their letters."""
    start = 0
    while start < len(text):
        end = start + size
        while end < len(text) and unicodedata.category(text[end])[0] == "M":
            end += 1
        if piece := text[start:end].strip():
            yield piece
        start = end


def _sentences(document: Document, size: int, count: TokenCounter) -> Iterator[str]:
    """Yield whole sentences up to the limit. A sentence over the limit is cut between words, a word between letters."""
    text = document.text
    start = end = used = 0
    for low, high in sentence_spans(text, document.lang, phrases=True):
        tokens = count(text[low:high])
        if start < end and used + tokens > size:
            yield text[start:end].strip()
            start, used = low, 0
        end, used = high, used + tokens
        if tokens > size:
            spans = fitting_spans(text, low, high, lambda piece: count(piece) <= size, [BETWEEN_WORDS])
            yield from (piece for first, last in spans if (piece := text[first:last].strip()))
            start, used = high, 0
    if piece := text[start:end].strip():
        yield piece
