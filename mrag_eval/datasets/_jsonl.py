"""A user's own benchmark: questions as JSON Lines, documents (if any) as a second file.

docs/own_benchmark.md has the keys of both. Any other key of a question is kept in ``extra``, so that each comes once;
``data.breakdowns`` names those that scores are broken down by. A document's text is searched and shown after its title.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrag_eval import systems
from mrag_eval.config import AbsolutePath
from mrag_eval.core import GivenPassage, Passage, RagDoc, check_id, normalize_language, same_language, titled
from mrag_eval.datasets._base import Benchmark, DataBlock, LoaderSpec, option_facts
from mrag_eval.datasets._content import parts_by
from mrag_eval.datasets._declaration import Declaration
from mrag_eval.datasets._files import iter_jsonl, read_squad, require_columns, require_path, require_text, sha256_file
from mrag_eval.datasets._origin import Origin
from mrag_eval.datasets._relevant import Held, read_judgements, refuse_absent, with_grades
from mrag_eval.datasets._versions import Version, imbalanced, parallel_texts
from mrag_eval.platform import (
    ConfigError,
    DataError,
    check_keys,
    close_match,
    number_of,
    part_files,
    suggesting,
    text_at,
)

BENCHMARK = Declaration(
    name="jsonl",
    title="Your own benchmark",
    asks="questions and documents in JSON Lines files of yours",
    sources=(),
    shareable=False,
    languages=(),
    needs=("files",),
    own={},
)
# The keys of a question that are not kept as they are.
QUESTION_KEYS = {"id", "query", "lang", "answers", "choices", "gold_choice", "relevant_ids", "group_id"}
QUESTION_KEYS |= {"gold_doc_lang", "culture_lang", "relevant_langs", "given_passages"}
DOCUMENT_KEYS = {"id", "_id", "docid", "lang", "text", "title", "doc_id", "parallel_id"}
# Keys of other formats with the meaning of one of ours; a question would silently lose them to `extra`.
_ALIASES = {"question": "query", "language": "lang", "query_lang": "lang", "answer": "answers", "options": "choices"}


class JsonlBlock(DataBlock):
    """``path`` is the file of questions, ``corpus`` that of documents; ``language`` filters the questions.

    It is also the language of questions and documents that name none, as those of BEIR and SQuAD do. A folder as BEIR
    and MTEB have it is both: the questions that are judged in ``split``, with grades, and the corpus.
    """

    corpus: AbsolutePath | None = None
    language: str | None = None


def load(block: JsonlBlock) -> Benchmark:
    """Load a user's own questions and documents; every fault names file, line and key."""
    if block.path is None:
        raise ConfigError(
            "data (benchmark 'jsonl'): 'path' is missing", "name your questions: --metadata data.path=FILE"
        )
    path = _file(block.path, "path")
    language = None if block.language is None else normalize_language(block.language)
    seen: dict[str, str] = {}
    docs = []
    for where, row in _questions(path, block):
        doc = as_question(row, where)
        if doc.id in seen:
            raise DataError(f"{where}: id '{doc.id}' was used before, on {seen[doc.id].rpartition(', ')[2]}")
        seen[doc.id] = where
        if language is None or same_language(doc.query_lang, language):
            docs.append(doc)
    if not docs:
        raise DataError(f"{path}: holds no question" + (f" in language '{language}'" if language else ""))
    notes = [number_of(len(docs), "question") + (f" of {len(seen)}" if len(docs) < len(seen) else "")]
    parts = parts_by(docs, lambda doc: doc.query_lang)
    settings: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    corpus, parallel = None, []
    own = block.corpus is None and path.is_dir() and part_files(path, "corpus")
    if own or block.corpus is not None:
        corpus_file = _file(block.corpus or path, "corpus")
        corpus, versions = _corpus(corpus_file, block.language)
        parallel = parallel_texts(versions)
        beside["corpus"] = _place(corpus_file, "corpus")
        spoken = number_of(len({passage.lang for passage in corpus}), "language")
        notes.append(f"{number_of(len(corpus), 'document')} in {spoken}")
        refuse_absent(docs, Held.among("the corpus", corpus), str(path))
        if block.imbalance is not None:
            docs, corpus, note = imbalanced(docs, corpus, versions, block.imbalance, block.seed)
            notes.append(note)
            settings["imbalance"] = {"seed": block.seed} | block.imbalance.model_dump(exclude_none=True)
    elif block.imbalance is not None:
        raise ConfigError(
            "data (benchmark 'jsonl'): imbalance requires documents, but 'corpus' is missing",
            "data.corpus names the file of documents",
        )
    origin = Origin(_place(path, "queries", "qrels"), settings, parts, beside=beside)
    return Benchmark("jsonl", docs, corpus, tuple(notes), origin, parallel=parallel)


def read_passages(path: Path) -> list[Passage]:
    """Return the documents of a corpus file, without the questions; every fault names file, line and key."""
    with suggesting("correct that line, or leave it out; every line has id, lang and text"):
        return _corpus(path)[0]


def as_question(row: Mapping[str, Any], where: str) -> RagDoc:
    """Return a question from its object. Raises DataError naming ``where`` and the key at fault."""
    _check_characters(row, where)
    return _question(row, where)


# every row has the same keys
@lru_cache(maxsize=1024)
def _misspelt(key: str) -> str:
    return close_match(key, QUESTION_KEYS, cutoff=0.8)


def _file(path: Path, key: str) -> Path:
    require_path(path, "jsonl")
    part = "queries" if key == "path" else "corpus"
    if not part_files(path, part):
        raise DataError(f"jsonl: data.{key}={path} is a folder without {part}.jsonl", "name a JSON Lines file")
    return path


def _place(path: Path, *parts: str) -> dict[str, str]:
    digests = [sha256_file(file) for part in parts for file in part_files(path, part)]
    whole = sha256("".join(digests).encode()).hexdigest() if path.is_dir() else digests[0]
    return {"path": str(path), "sha256": whole}


def _rows(path: Path, part: str, keys: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a file, or of a part of a folder, each with its place."""
    for file in part_files(path, part):
        if file.name.endswith((".parquet", ".json", ".json.gz")):
            from mrag_eval.datasets._log_files import log_rows

            for where, row in log_rows(file, str(file), documents=part == "corpus"):
                check_keys(row, row if keys is None else keys, where)
                yield where, row
        else:
            yield from ((f"{file}, line {number}", row) for number, row in iter_jsonl(file, keys))


def _question(row: Mapping[str, Any], where: str) -> RagDoc:
    for wrong, right in _ALIASES.items():
        if wrong in row and right not in row:
            raise DataError(f"{where}: the key '{wrong}' is called '{right}' here")
    require_columns(row, ("id", "query"), where)
    require_columns(row, ("lang",), where, _LANGUAGE)
    for key in row.keys() - QUESTION_KEYS:
        if close := _misspelt(key):
            raise DataError(
                f"{where}: unknown key '{key}'{close}",
                "correct it; a key of your own needs a name that is less like one of ours",
            )
    choices = None if row.get("choices") is None else _texts(row["choices"], where, "choices")
    gold = None if choices is None else _gold(row.get("gold_choice"), choices, where)
    answers = _texts(row.get("answers") or [], where, "answers")
    if choices is not None and gold is not None and not answers:
        answers = (choices[gold],)
    extra = {key: value for key, value in row.items() if key not in QUESTION_KEYS}
    listed, judged = row.get("relevant_ids") or [], None
    if isinstance(listed, Mapping) or (isinstance(listed, list) and any(isinstance(one, Mapping) for one in listed)):
        judged, listed = systems.grades_in(listed, f"{where}, relevant_ids"), []
    if choices is not None:
        extra |= option_facts(choices)
    doc = RagDoc(
        id=_id(row["id"], where),
        query=require_text(row["query"], where, "query").strip(),
        query_lang=_lang(row["lang"], where, "lang"),
        answers=answers,
        choices=choices,
        gold_choice=gold,
        given_passages=tuple(_given(row, where)),
        gold_doc_lang=_optional_lang(row, where, "gold_doc_lang"),
        culture_lang=_optional_lang(row, where, "culture_lang"),
        relevant_langs=tuple(
            _lang(code, where, "relevant_langs")
            for code in _texts(row.get("relevant_langs") or [], where, "relevant_langs")
        ),
        relevant_ids=_texts(listed, where, "relevant_ids"),
        group_id=None if row.get("group_id") is None else text_at(row, "group_id", where),
        extra=extra,
    )
    return doc if judged is None else with_grades(doc, judged)


def _given(row: Mapping[str, Any], where: str) -> list[GivenPassage]:
    value = row.get("given_passages") or []
    if not isinstance(value, list):
        raise DataError(f"{where}: 'given_passages' must be a list, found {type(value).__name__}")
    passages = []
    for index, item in enumerate(value):
        place = f"{where}, given_passages[{index}]"
        if not isinstance(item, dict):
            raise DataError(f"{place}: expected a JSON object, found {type(item).__name__}")
        require_columns(item, ("text", "lang"), place)
        name = check_id(text_at(item, "id", place) or f"{row['id']}-{index}", place)
        passages.append(
            GivenPassage(
                id=name,
                lang=_lang(item["lang"], place, "lang"),
                text=require_text(item["text"], place, "text"),
                title=text_at(item, "title", place),
                doc_id=text_at(item, "doc_id", place) or name,
                is_gold=item.get("is_gold") is True,
                date=text_at(item, "date", place),
            )
        )
    return passages


def _questions(path: Path, block: JsonlBlock) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the questions of a file or a folder, each with its place: ours, BEIR's and MTEB's, or SQuAD's JSON.

    Those of SQuAD have their paragraph as relevant if their file is the corpus too.
    """
    if path.name.endswith((".json", ".json.gz")):
        rows, _ = read_squad(path)
        for number, row in enumerate(rows, 1):
            named = {"id": row["id"], "query": row["question"], "answers": row["answers"]["text"]}
            named |= {"relevant_ids": [row["paragraph"]]} if block.corpus == path else {}
            yield f"{path}, question {number}", _in_our_keys(named, {}, block.language)
        return
    for where, row in questions_of(path, block.split) if path.is_dir() else _rows(path, "queries"):
        yield where, _in_our_keys(row, _ASKED, block.language)


_ASKED = {"id": ("_id", "qid", "query_id", "query-id"), "query": ("text",)}


def questions_of(folder: Path, split: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the questions of a folder as BEIR and MTEB have it that are judged in a split, with their grades."""
    judged = read_judgements(folder, split)
    for where, row in _rows(folder, "queries"):
        asked = _in_our_keys(row, _ASKED, None)
        if (grades := judged.get(str(asked.get("id")))) is not None:
            yield where, {**asked, "relevant_ids": grades}


def _in_our_keys(row: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], language: str | None) -> dict[str, Any]:
    """Return a row with our keys for those of the field's own layouts, and the language of all where it names none."""
    found = {
        key: next((name for name in others if name in row), None) for key, others in names.items() if key not in row
    }
    ours = {name: key for key, name in found.items() if name is not None}
    told = {"lang": language} if language is not None and "lang" not in row else {}
    return {**told, **{ours.get(key, key): value for key, value in row.items()}}


def _corpus(path: Path, language: str | None = None) -> tuple[list[Passage], list[Version]]:
    """Return the passages and, aligned with them, the document that each is a version of."""
    passages: list[Passage] = []
    versions: list[Version] = []
    seen: dict[str, str] = {}
    for where, record in _rows(path, "corpus", DOCUMENT_KEYS):
        row = _in_our_keys(record, {"id": ("_id", "docid")}, language)
        _check_characters(row, where)
        require_columns(row, ("id", "text"), where)
        require_columns(row, ("lang",), where, _LANGUAGE)
        name = _id(row["id"], where)
        if name in seen:
            raise DataError(f"{where}: id '{name}' was used before, on {seen[name].rpartition(', ')[2]}")
        seen[name] = where
        title, text = text_at(row, "title", where), require_text(row["text"], where, "text")
        passages.append(
            Passage(
                id=name,
                lang=_lang(row["lang"], where, "lang"),
                text=titled(title, text),
                title=title,
                doc_id=check_id(text_at(row, "doc_id", where) or name, where),
            )
        )
        document = row.get("parallel_id")
        versions.append(Version(None if document is None else _id(document, where), passages[-1], title, text))
    if not passages:
        raise DataError(f"{path}: holds no document")
    return passages, versions


_LANGUAGE = "add it, or name the language of all rows that have none: --metadata data.language=CODE"


def _check_characters(row: Mapping[str, Any], where: str) -> None:
    try:
        json.dumps(row, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, TypeError):
        pass
    else:
        return
    for key, value in row.items():
        try:
            json.dumps([key, value], ensure_ascii=False).encode("utf-8")
        except TypeError as error:
            raise DataError(f"{where}: '{key}' is not a value of JSON ({error})", "write it as text") from None
        except UnicodeEncodeError:
            shown = key.encode("utf-8", "backslashreplace").decode("utf-8")
            raise DataError(
                f"{where}: '{shown}' holds half a surrogate pair, which is not text",
                "write the character itself, or both halves of its escape",
            ) from None


def _id(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise DataError(f"{where}: 'id' must be text or a whole number, found {value!r:.40}")
    return check_id(str(value), where)


def _texts(value: Any, where: str, key: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise DataError(f"{where}: '{key}' must be a list of texts, none of them empty")
    return tuple(value)


def _lang(value: Any, where: str, key: str) -> str:
    try:
        return normalize_language(require_text(value, where, key))
    except ConfigError as error:
        raise DataError(f"{where}: '{key}': {error.message}", error.next_step) from None


def _optional_lang(row: Mapping[str, Any], where: str, key: str) -> str | None:
    return None if row.get(key) is None else _lang(row[key], where, key)


def _gold(value: Any, choices: tuple[str, ...], where: str) -> int:
    """Return the position of the right option, given as a position, a letter or the option's text."""
    if len(choices) < 2:
        raise DataError(f"{where}: 'choices' must hold at least two options")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return value
    if isinstance(value, str):
        if value in choices:
            return choices.index(value)
        if len(value) == 1 and 0 <= ord(value) - ord("A") < len(choices):
            return ord(value) - ord("A")
    raise DataError(
        f"{where}: gold_choice = {value!r} names none of the {len(choices)} choices",
        "give its position from 0, its letter from A, or its text",
    )


LOADER = LoaderSpec(BENCHMARK, JsonlBlock, load, versions=True)
