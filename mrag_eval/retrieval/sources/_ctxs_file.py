"""Retrieval files of RAG-evaluation-harnesses and of DPR: JSON Lines of a question and its passages (``ctxs``)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage, check_id, normalize_language
from mrag_eval.datasets import iter_jsonl, sha256_file
from mrag_eval.platform import ConfigError, DataError, JsonFault, content_key, finite_number, suggesting, text_at

_IDS = ("id", "q_id", "qid", "query_id", "example_id")
_QUESTIONS = ("question", "raw_query", "query")
_TEXTS, _SCORES = ("retrieval text", "text"), ("retrieval score", "score")
_FORM = (
    "a line is an object with 'query' (or 'question') and 'ctxs', a list of objects with 'retrieval text' (or 'text')"
)
# "Question: " before a question of the fork's prompts, and "Answer:" below it, in any language.
_LABEL_BEFORE = re.compile(r"^[^\n:：]{1,24}[:：]\s*")
_LABEL_AFTER = re.compile(r"\n[^\n:：]{1,24}[:：]\s*$")


@dataclass(frozen=True, slots=True)
class ContextsLine:
    """One line: its number, the id and the question it names, if any, and its passages, best first."""

    line: int
    id: str | None
    question: str | None
    hits: tuple[tuple[Passage, float], ...]


@dataclass(frozen=True)
class CtxsFile:
    """A file, with lists as deep as asked for; ``repeated`` counts passages that a list has twice."""

    path: Path
    sha256: str
    asked: tuple[ContextsLine, ...]
    repeated: int

    @cached_property
    def by_id(self) -> Mapping[str, ContextsLine]:
        """Return the lines that name an id."""
        return {asked.id: asked for asked in self.asked if asked.id is not None}

    @cached_property
    def by_question(self) -> Mapping[str, list[ContextsLine]]:
        """Return the lines of a question, under each form that it may have."""
        found: dict[str, list[ContextsLine]] = {}
        for asked in self.asked:
            for form in dict.fromkeys(forms_of(asked.question or "")):
                found.setdefault(form, []).append(asked)
        return found


def read_ctxs(path: str | Path, depth: int, language: str | None) -> CtxsFile:
    """Read a file (``.gz`` too), once per process while it does not change.

    A passage without an id is named by its text. ``language`` is that of passages that name none. A list without scores
    has the order of the file.

    Raises DataError, naming file and line, for a line of another form, an id that has two texts, and passages without
    a language.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"retrieval.run: there is no file {file}", "name a TREC run, or JSON Lines with 'ctxs'")
    stat = file.stat()
    return _read(file.resolve(), depth, language, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, depth: int, language: str | None, _modified: int, _size: int) -> CtxsFile:
    reader = PassageReader(language)
    with suggesting(_FORM):
        asked = tuple(
            _asked(record, number, f"{path}, line {number}", depth, reader) for number, record in iter_jsonl(path)
        )
    if not asked:
        raise DataError(f"{path}: the file is empty", _FORM)
    return CtxsFile(path, sha256_file(path), asked, reader.repeated)


class PassageReader:
    """Read lists of another system; a passage of several lists is one object, so that long files fit into memory."""

    def __init__(self, language: str | None, key: str = "run_language", *, asked: bool = False) -> None:
        """``language`` is that of passages that name none, by the key ``key`` of the block. Of a retriever that is
        ``asked``, no text may be empty, and equal scores are scores; in a file they stand for none.
        """
        self.repeated = 0
        self._language, self._key, self._asked = language, key, asked
        self._known: dict[str, Passage] = {}

    def passage(self, value: Any, where: str) -> Passage:
        """Return a passage of ``ctxs``."""
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: {value!r:.60} among the passages is no object", _FORM)
        text = next((value[key] for key in _TEXTS if key in value), None)
        if not isinstance(text, str):
            raise DataError(f"{where}: a passage has no text", _FORM)
        title = text_at(value, "title", where)
        name = check_id(_name(value, title, text, where), where)
        if self._asked and not text.strip():
            raise DataError(f"{where}: the text of passage '{name}' is empty", _FORM)
        if name not in self._known:
            doc_id = check_id(text_at(value, "doc_id", where) or name, where)
            self._known[name] = Passage(name, self._lang(value, where), text, title, doc_id)
        if self._known[name].text != text:
            raise DataError(
                f"{where}: passage '{name}' has another text than before", "correct the ids, or leave them out"
            )
        return self._known[name]

    def hits(self, listed: Sequence[Any], where: str) -> tuple[tuple[Passage, float], ...]:
        """Return the passages of a list with their scores, best first, each once.

        Where scores are missing or rise, places in the list take their place.
        """
        hits: dict[str, tuple[Passage, float]] = {}
        for value in listed:
            passage = self.passage(value, where)
            self.repeated += passage.id in hits
            hits.setdefault(passage.id, (passage, _score(value, where)))
        scores = [score for _, score in hits.values()]
        found = [passage for passage, _ in hits.values()]
        rising = any(later > earlier for earlier, later in pairwise(scores))
        scored = any(_given(value) is not None for value in listed) if self._asked else len({*scores}) > 1
        if rising or (len(scores) > 1 and not scored):
            scores = [float(len(found) - place) for place in range(len(found))]
        return tuple(zip(found, scores, strict=True))

    def _lang(self, value: Mapping[str, Any], where: str) -> str:
        named = value.get("lang") or value.get("language") or self._language
        if named is None:
            raise DataError(
                f"{where}: its passages do not say their language ('lang')",
                f"if they are all in one language, name it: --metadata retrieval.{self._key}=en",
            )
        try:
            return normalize_language(text_at({"lang": named}, "lang", where))
        except ConfigError as error:
            raise DataError(f"{where}: {error.message}", error.next_step) from None


def _asked(record: Mapping[str, Any], number: int, where: str, depth: int, reader: PassageReader) -> ContextsLine:
    name = next((text_at(record, key, where) for key in _IDS if record.get(key) is not None), None)
    question = next((record[key] for key in _QUESTIONS if record.get(key) is not None), None)
    if not (question is None or isinstance(question, str)) or (question is None and name is None):
        raise DataError(f"{where}: neither a question nor an id is there; keys: {', '.join(map(str, record))}", _FORM)
    listed = record.get("ctxs")
    if not isinstance(listed, list):
        raise DataError(f"{where}: 'ctxs' is no list of passages", _FORM)
    # a question without results has one entry, null
    hits = reader.hits([] if listed == [None] else listed[:depth], where)
    return ContextsLine(number, name, question, hits)


def _name(value: Mapping[str, Any], title: str, text: str, where: str) -> str:
    """Return a passage's id, with the corpus before it if it names one."""
    key = "id" if "id" in value else "docid"
    given = value.get(key)
    given = "-".join(map(str, given)) if isinstance(given, list) else text_at(value, key, where)
    if not given:
        return f"text-{content_key(title, text)[:16]}"
    source = value.get("source")
    return f"{source}:{given}" if isinstance(source, str) and source else given


def _given(value: Mapping[str, Any]) -> Any:
    return next((value[key] for key in _SCORES if value.get(key) is not None), None)


def _score(value: Mapping[str, Any], where: str) -> float:
    try:
        # written as text by the fork's search
        return finite_number(0.0 if _given(value) is None else _given(value))
    except JsonFault as fault:
        raise DataError(f"{where}: the score {fault}", "correct it, or leave the scores out") from None


def form_of_question(text: str) -> str:
    """Return a question as it is compared: one Unicode form, single blanks, no question marks at its end."""
    return " ".join(unicodedata.normalize("NFC", text).split()).rstrip("?？؟ ")


def forms_of(prompt: str) -> Iterator[str]:
    """Yield the questions that a line's ``query`` may hold: in the fork it is a prompt, ``Question: ...\\nAnswer:``."""
    block = prompt.strip().rsplit("\n\n", 1)[-1]
    body = _LABEL_AFTER.sub("", block)
    for text in (prompt, block, body, body.partition("\n")[0]):
        yield form_of_question(text)
        yield form_of_question(_LABEL_BEFORE.sub("", text))
