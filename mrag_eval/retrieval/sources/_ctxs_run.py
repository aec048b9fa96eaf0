"""Retrieval by another system (``kind: precomputed``) in a file that holds the texts: JSON Lines with ``ctxs``."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mrag_eval.core import RagDoc, Searched
from mrag_eval.datasets import Held
from mrag_eval.platform import DataError, number_of
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._texts import PassageTable
from mrag_eval.retrieval.sources._ctxs_file import ContextsLine, CtxsFile, form_of_question, forms_of, read_ctxs
from mrag_eval.retrieval.sources._lists import Lists, warn_of_missing
from mrag_eval.retrieval.sources._source import Lacking, Setup

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


class CtxsRun(Lists):
    """Return the lists and texts of a file whose lines name rows by id or by question."""

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Raise if the file cannot be read, or belongs to other rows."""
        with missing.allowed("corpus"):
            file = self._file()
            _aligned(file, docs)
            self._index = {"kind": "precomputed", "sha256": file.sha256}

    def held(self, docs: Sequence[RagDoc]) -> Held:
        """Return the passages of the file, which are those that the other system found."""
        return Held.among(f"the run {self._file().path}", self._texts(), complete=False)

    def _found(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> tuple[list[Searched], PassageTable]:
        file = self._file()
        aligned = _aligned(file, docs)
        _log_coverage(file, docs, aligned)
        texts = self._texts()
        lists = (() if asked is None else asked.hits for asked in aligned)
        return [self._searched(hits, texts.counts) for hits in lists], texts

    def _file(self) -> CtxsFile:
        retrieval = self._retrieval
        return read_ctxs(str(retrieval.run), retrieval.search_depth, retrieval.run_language)

    def _texts(self) -> PassageTable:
        file = self._file()
        return PassageTable((passage for asked in file.asked for passage, _ in asked.hits), str(file.path))


def open_source(setup: Setup) -> CtxsRun:
    """Return the source of ``retrieval.kind: precomputed`` for a file of JSON Lines."""
    return CtxsRun(setup)


def _aligned(file: CtxsFile, docs: Sequence[RagDoc]) -> list[ContextsLine | None]:
    """Return each row's line: the one with its id, else the one with its question.

    Raises DataError if no row is there, if a line has a row's id with another question, and if two lines have different
    passages for one question.
    """
    found = [_line_of(file, doc) for doc in docs]
    if not any(found):
        first = file.asked[0]
        raise DataError(
            f"{file.path}: none of the {len(docs)} rows is among its {len(file.asked)} lines (the first row is "
            f"'{docs[0].id}', {docs[0].query!r:.60}; the first line '{first.id}', {first.question!r:.60})",
            "a line names its row by 'id', or by 'question' or 'query', the row's question in the task's language",
        )
    return found


def _line_of(file: CtxsFile, doc: RagDoc) -> ContextsLine | None:
    form = form_of_question(doc.query)
    named = file.by_id.get(doc.id)
    if named is not None:
        if named.question is not None and form not in {*forms_of(named.question)}:
            raise DataError(
                f"{file.path}, line {named.line}: its question is not that of row '{doc.id}' "
                f"({named.question!r:.60} | {doc.query!r:.60})",
                "name the file that belongs to this task's language and revision",
            )
        return named
    lines = file.by_question.get(form, [])
    other = next((line for line in lines if line.hits != lines[0].hits), None)
    if other is not None:
        raise DataError(
            f"{file.path}, lines {lines[0].line} and {other.line}: other passages for one question, row '{doc.id}'",
            "keep one of them, or name the rows by 'id'",
        )
    return lines[0] if lines else None


def _log_coverage(file: CtxsFile, docs: Sequence[RagDoc], aligned: Sequence[ContextsLine | None]) -> None:
    missing = [doc.id for doc, asked in zip(docs, aligned, strict=True) if asked is None]
    by_id = sum(asked is not None and asked.id == doc.id for doc, asked in zip(docs, aligned, strict=True))
    log.info(
        "run %s (sha256 %s): %s, %s found by id, %d by question",
        file.path,
        file.sha256[:12],
        number_of(len(file.asked), "line"),
        number_of(by_id, "row"),
        len(docs) - len(missing) - by_id,
    )
    warn_of_missing(file.path, missing, docs)
    if file.repeated:
        log.warning("run %s: %d passages are in their list twice, and count once", file.path, file.repeated)
