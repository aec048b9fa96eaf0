"""Relevant ids against a corpus: those that it does not hold, and the refusal if it holds none."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mrag_eval.core import Hit, Passage, RagDoc, same_language
from mrag_eval.platform import DataError

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
