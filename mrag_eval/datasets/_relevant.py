"""Relevant ids: read with their grades from any file of judgements, and looked up in a corpus."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrag_eval.core import Hit, Passage, RagDoc, same_language
from mrag_eval.datasets._files import read_bytes
from mrag_eval.platform import DataError, check_keys, check_unique, decode, json_from, no_file, part_files
from mrag_eval.systems import add_grade

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_NEXT = "name documents or passages in relevant_ids as the corpus does"


@dataclass(frozen=True)
class Held:
    """A corpus, as far as it is known, in which relevant ids can be looked up.

    Attributes:
        corpus: its name in messages.
        holds: whether a row's relevant id is that of a passage or a document in it.
        example: a passage id and its document's id, to show what ids look like; empty without any passage.
        complete: whether all of it is known. Otherwise only what was retrieved is: an id that is absent there may be
            that of a document which was not found.
        next_step: the advice if it holds none.
    """

    corpus: str
    holds: Callable[[RagDoc, str], bool]
    example: tuple[str, ...] = ()
    complete: bool = True
    next_step: str = _NEXT

    @classmethod
    def among(cls, corpus: str, passages: Iterable[Passage | Hit], *, complete: bool = True, also: str = "") -> Held:
        """Return a corpus of these passages; ``also`` is appended to the advice."""
        ids: dict[str, str] = {}
        documents: dict[str, set[str]] = defaultdict(set)
        for passage in passages:
            ids.setdefault(passage.id, passage.doc_id)
            documents[passage.doc_id].add(passage.lang)
        first = next(iter(ids.items()), ())
        return cls(corpus, holder(documents, ids.__contains__), first, complete, _NEXT + also)


def holder(languages: Mapping[str, Iterable[str]], is_passage: Callable[[str], bool]) -> Callable[[RagDoc, str], bool]:
    """Return whether a row's relevant id is held; ``languages`` are those of the documents by id.

    A document in another known language than the row's relevant one is another document
    (:func:`mrag_eval.core.document_of`).
    """

    def holds(doc: RagDoc, name: str) -> bool:
        gold = doc.gold_doc_lang
        found = any(not lang or gold is None or same_language(lang, gold) for lang in languages.get(name, ()))
        return found or (not doc.relevant_documents and is_passage(name))

    return holds


def with_absent(docs: Sequence[RagDoc], held: Held, needed_by: Sequence[str], task: str = "") -> list[RagDoc]:
    """Return the rows with their relevant ids that the corpus does not hold (``absent_ids``), counted in a warning.

    A row of which it holds no relevant id is unscored by every measure that needs one; of a row of which it holds some,
    recall counts the others as missed, as trec_eval does. ``needed_by`` are the metrics, or the mode, that rest on the
    ids; ``task`` is named in the warning. If the corpus is not known as a whole, all rows are returned as they are.

    Raises:
        DataError: it holds no relevant id of any row, and something needs them.
    """
    absent = {doc.id: gone for doc in docs if (gone := tuple(n for n in doc.relevant_ids if not held.holds(doc, n)))}
    marked = [replace(doc, absent_ids=absent[doc.id]) if doc.id in absent else doc for doc in docs]
    known = [doc for doc in marked if doc.relevant_ids]
    lost = [doc for doc in known if not doc.findable]
    if known and len(lost) == len(known) and needed_by:
        row, own = known[0], " and ".join(f"'{name}'" for name in dict.fromkeys(held.example))
        rows = "the question's relevant ids" if len(known) == 1 else f"the relevant ids of {len(known):,} questions"
        raise DataError(
            f"none of {rows} is in {held.corpus} (question '{row.id}': '{row.relevant_ids[0]}'"
            + (f"; its first passage and document: {own})" if own else ")"),
            held.next_step,
        )
    if not held.complete:
        return list(docs)
    if absent and needed_by:
        row = next(doc for doc in known if doc.id in absent)
        missing, ids = sum(map(len, absent.values())), sum(len(doc.relevant_ids) for doc in known)
        log.warning(
            "%srelevant ids that are not in %s: %s of %s, first '%s' of row '%s'; rows without any there, unscored by "
            "%s: %s of %s",
            f"[{task}] " if task else "", held.corpus, f"{missing:,}", f"{ids:,}", absent[row.id][0], row.id,
            ", ".join(needed_by), f"{len(lost):,}", f"{len(known):,}",
        )  # fmt: skip
    return marked


def refuse_absent(docs: Sequence[RagDoc], held: Held, where: str) -> None:
    """Raise DataError for the first row with a relevant id that the corpus given with the rows does not hold."""
    for doc in docs:
        for name in doc.relevant_ids:
            if not held.holds(doc, name):
                raise DataError(f"{where}: question '{doc.id}': relevant id '{name}' is not in {held.corpus}", _NEXT)


# Columns of judgements, by the names that programs give them.
_JUDGED = {
    "query": ("query-id", "query_id", "qid", "q_id", "query", "topic", "topic_id", "question_id"),
    "document": ("corpus-id", "corpus_id", "docid", "doc_id", "document_id", "passage_id", "pid", "docno", "id", "_id"),
    "grade": ("score", "grade", "relevance", "rel", "label", "judgement", "judgment"),
}
_ONE_GRADE = "a line has query, iteration, document and grade (TREC), or query, document and grade (BEIR)"


def read_judgements(path: str | Path, split: str | None = None) -> dict[str, dict[str, int]]:
    """Return query id -> document id -> grade, of any file of judgements, or of a folder as BEIR and MTEB have it.

    Lines of four columns are TREC's (query, iteration, document, grade), those of three BEIR's (query-id, corpus-id,
    score), with or without their head, apart by white space, tabs or commas. JSON is query -> document -> grade, as
    BERGEN and evaluation packages write it; JSON Lines and Parquet have a row for each pair, as MTEB's do. Of a folder
    a ``split`` is read: the only one, or ``test``. Raises DataError naming the line, also for two grades of one pair.
    """
    file = Path(path).expanduser()
    if not (file.is_file() or file.is_dir()):
        raise DataError(f"{path}: {no_file(file)}", "name a file of judgements: --qrels FILE")
    found: dict[str, dict[str, int]] = {}
    for part in _of_split(file, split):
        ending = part.name.removesuffix(".gz").rpartition(".")[2].lower()
        for where, query, document, grade in _of_rows(part) if ending in ("jsonl", "parquet") else _of_text(part):
            add_grade(found.setdefault(query, {}), document, grade, f"{where}, query '{query}'")
    return found


def _of_split(folder: Path, split: str | None) -> list[Path]:
    splits: dict[str, list[Path]] = defaultdict(list)
    for file in part_files(folder, "qrels"):
        splits[file.name.partition(".")[0].partition("-")[0]].append(file)
    name = split or (next(iter(splits)) if len(splits) == 1 else "test")
    if name not in splits:
        there = ", ".join(sorted(splits)) or "none"
        raise DataError(f"{folder}: no judgements qrels/{name}; there: {there}", "name a file of it, or data.split")
    return splits[name]


def _of_rows(file: Path) -> Iterator[tuple[str, str, str, Any]]:
    from mrag_eval.datasets._log_files import log_rows

    for where, row in log_rows(file, str(file)):
        read = [key for keys in _JUDGED.values() for key in keys]
        check_unique(row, read, file)
        check_keys(row, read, where)
        parts = {part: next((row[key] for key in keys if key in row), None) for part, keys in _JUDGED.items()}
        if not all(isinstance(parts[part], str | int) for part in ("query", "document")):
            raise DataError(f"{where}: no judgement; its keys: {', '.join(map(str, row))}", _ONE_GRADE)
        yield where, str(parts["query"]), str(parts["document"]), 1 if parts["grade"] is None else parts["grade"]


def _of_text(file: Path) -> Iterator[tuple[str, str, str, Any]]:
    text = decode(read_bytes(file), str(file))
    if text.lstrip().startswith("{"):
        for query, grades in json_from(text, str(file)).items():
            # BERGEN's file also names its dataset
            if isinstance(grades, Mapping):
                if not all(isinstance(grade, int | float) for grade in grades.values()):
                    what = f"{file}, query '{query}': a grade is no number"
                    raise DataError(what, 'e.g. {"q1": {"d1": 1, "d2": 0}}')
                yield from ((str(file), str(query), str(name), grade) for name, grade in grades.items())
        return
    for number, line in enumerate(text.splitlines(), 1):
        mark = "\t" if "\t" in line else "," if file.suffix == ".csv" else None
        cells = [cell.strip().strip('"') for cell in line.split(mark)] if line.strip() else []
        is_number = bool(cells) and cells[-1].lstrip("+-.")[:1].isdigit()
        is_name = bool(cells) and cells[-1].lower().lstrip("+-") not in ("nan", "inf", "infinity")
        if not cells or (number == 1 and not is_number and is_name and len(cells) in (3, 4)):
            check_unique(cells, cells, file)
            continue
        if len(cells) not in (3, 4) or not is_number:
            no_grade = f"the grade '{cells[-1]:.40}' is not a finite number"
            what = no_grade if len(cells) in (3, 4) else f"{len(cells)} columns, judgements have three or four"
            raise DataError(f"{file}, line {number}: {what}", "correct that line, or leave it out")
        yield f"{file}, line {number}", cells[0], cells[-2], cells[-1]


def with_grades(doc: RagDoc, grades: Mapping[str, int], relevant_from: int = 1) -> RagDoc:
    """Return a row with judgements: relevant is what has a grade of ``relevant_from`` or more; grades are gains."""
    some = {name: grade for name, grade in grades.items() if grade > 0}
    kept = some if relevant_from != 1 or any(grade != 1 for grade in some.values()) else {}
    return replace(doc, relevant_ids=tuple(name for name in some if some[name] >= relevant_from), grades=kept)
