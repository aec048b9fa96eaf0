"""Questions and documents of the user's as the files of an own benchmark: languages told, relevant documents found."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrag_eval._front._survey import LANG_BY, read_log
from mrag_eval.core import UNSURE_LANGUAGE, Passage, RagDoc
from mrag_eval.platform import DataError, close_match, content_key, write_whole
from mrag_eval.systems import told_languages

# Keys of an own benchmark's questions that other shapes of rows have no name for.
_KEPT = ("gold_doc_lang", "culture_lang", "relevant_langs", "group_id")
_NAME_IT = "put it into a folder of its language (de/x.txt), or name it so (x.de.txt); in JSON Lines, give it 'lang'"


@dataclass(frozen=True)
class OwnData:
    """Questions and passages as they were read, and lines on what was read."""

    questions: tuple[RagDoc, ...]
    passages: tuple[Passage, ...]
    notes: tuple[str, ...]

    def write(self, folder: Path) -> dict[str, str]:
        """Write ``questions.jsonl`` and ``documents.jsonl`` below a folder; return the ``data`` block of a task."""
        texts = {
            "path": "".join(map(_line_of_question, self.questions)),
            # the text begins with its title already
            "corpus": "".join(
                _line((key, getattr(one, key)) for key in ("id", "lang", "text", "doc_id")) for one in self.passages
            ),
        }
        # a process reads a file once
        place = (folder / "data" / content_key(texts)[:12]).absolute()
        place.mkdir(parents=True, exist_ok=True)
        files = {"path": place / "questions.jsonl", "corpus": place / "documents.jsonl"}
        for key, text in texts.items():
            write_whole(files[key], text, errors="surrogatepass")
        return {"benchmark": "jsonl"} | {key: str(path) for key, path in files.items()}


def read_own(
    questions: Any,
    documents: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    lang: str | None = None,
    chunker: str = "words",
    size: int = 100,
) -> OwnData:
    """Return questions and documents from files in the shapes that we read.

    A question names its relevant documents by id, file name or title. Raises DataError for a document whose language
    is not told, a question that names no relevant document, and a name that no document has, or several have.
    """
    passages, notes = _passages(documents, chunker, size)
    found = read_log(questions, columns=columns, lang=lang, breakdowns=_KEPT, asked=True)
    names = _Names(passages)
    docs = [_resolved(where, found.docs[str(row["id"])], names) for where, row in found.rows()]
    asked = Counter(doc.query_lang for doc in docs)
    by_detector = f", {found.counts['detected']} of them detected" if found.counts["detected"] else ""
    return OwnData(tuple(docs), tuple(passages), (f"questions   {len(docs):,}: {_listed(asked)}{by_detector}", notes))


def _passages(source: str | Path, chunker: str, size: int) -> tuple[list[Passage], str]:
    from mrag_eval.retrievers import ChunkConfig, chunk_documents, read_corpus

    detected = 0

    def tell(text: str, where: str) -> str:
        nonlocal detected
        ((code, unsure),) = told_languages([text])
        if unsure:
            raise DataError(f"{where}: its language is not named, and the text does not tell it", _NAME_IT)
        detected += 1
        return code

    documents = list(read_corpus(source, tell=tell))
    passages = list(chunk_documents(documents, ChunkConfig(chunker, size)))
    if not passages:
        raise DataError(f"{source}: the documents have no text", "name a folder of texts, or JSON Lines")
    by_detector = f", {detected} of them detected" if detected else ""
    counted = _listed(Counter(document.lang for document in documents))
    return passages, f"documents   {len(documents):,}: {counted}{by_detector}; {len(passages):,} passages"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{lang} {count:,}" for lang, count in sorted(counts.items()))


class _Names:
    """The ids of documents by what a question may call them, and their languages."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.langs: dict[str, set[str]] = defaultdict(set)
        self._called: dict[str, dict[str, None]] = defaultdict(dict)
        for passage in passages:
            self.langs[passage.doc_id].add(passage.lang)
            for name in {passage.doc_id.rpartition("/")[2], passage.title} - {""}:
                self._called[name][passage.doc_id] = None

    def id_of(self, name: str, where: str) -> str:
        if name in self.langs:
            return name
        called = [*self._called.get(name, ())]
        if len(called) > 1:
            raise DataError(f"{where}: {len(called)} documents are called '{name}'", f"name one: {', '.join(called)}")
        if not called:
            first = next(iter(self.langs))
            raise DataError(
                f"{where}: there is no document '{name}'{close_match(name, self.langs)}",
                f"name it by its id, such as '{first}', its file's name or its title",
            )
        return called[0]


def _resolved(where: str, doc: RagDoc, names: _Names) -> RagDoc:
    if not doc.relevant_ids:
        raise DataError(
            f"{where}: question '{doc.id}' names no relevant document",
            'add "relevant_ids": ["ID"], or leave the question out',
        )
    ids = tuple(dict.fromkeys(names.id_of(name, where) for name in doc.relevant_ids))
    langs = sorted(set.union(*(names.langs[name] for name in ids)))
    return replace(doc, relevant_ids=ids, gold_doc_lang=doc.gold_doc_lang or (langs[0] if len(langs) == 1 else None))


def _line_of_question(doc: RagDoc) -> str:
    row = {
        "id": doc.id,
        "query": doc.query,
        "lang": doc.query_lang,
        "answers": doc.answers,
        "relevant_ids": doc.relevant_ids,
        **{key: getattr(doc, key) for key in _KEPT},
        **{key: doc.extra[key] for key in (LANG_BY, UNSURE_LANGUAGE) if key in doc.extra},
    }
    return _line((key, value) for key, value in row.items() if value)


def _line(items: Iterable[tuple[str, Any]]) -> str:
    return json.dumps(dict(items), ensure_ascii=False) + "\n"
