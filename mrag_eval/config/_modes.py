"""IR modes: named presets of the languages searched and the merge of their lists, in the papers' words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Hit = TypeVar("Hit")

# Words for languages that only the row knows; the rest of a language scope are BCP 47 codes.
LANGUAGE_ROLES = ("all", "query", "relevant", "culture", "gold", "sibling")
# Kinds of passages that a mode puts into the prompt, or that a RAG system has: none, those of the row, the supporting
# ones, or those found.
Shown = Literal["nothing", "given", "gold", "retrieved"]
# What annotators say of a document: that it is relevant, that it is not, or nothing.
Part = Literal["relevant", "non_relevant", "unlabelled"]


@dataclass(frozen=True, slots=True)
class Mode:
    """A preset, and everything that the rest of the package needs to know of it.

    Attributes:
        languages: roles (see :data:`LANGUAGE_ROLES`) or codes; empty: no search.
        merge: how the lists of several languages become one.
        summary: one line for lists of tasks.
        papers: who uses it, under which name.
        query_translation, document_translation: as in :class:`~mrag_eval.config.Retrieval`.
        source: the module of :mod:`mrag_eval.retrieval.sources` that finds the passages (``index``: ``_index.py``).
        searches: whether a corpus is searched.
        shows: which passages the prompt contains.
        takes_run: whether the run file of another system may take the place of the search.
        own: keys of the ``retrieval`` block that no other mode takes.
        asks_system: whether a RAG system that is asked as it is finds the passages, so that nothing of the task's own
            retrieval or prompt is used.
        breakdowns: keys of a row's cell that scores are broken down by, beside those of the benchmark.
        refuses: keys that this mode cannot take, as ``key`` (any value but the default) or ``key=value``, and why.
    """

    languages: tuple[str, ...]
    merge: str
    summary: str
    papers: str
    query_translation: str = "none"
    document_translation: str = "none"
    source: str = "index"
    searches: bool = True
    shows: Shown = "retrieved"
    takes_run: bool = False
    own: tuple[str, ...] = ()
    asks_system: bool = False
    breakdowns: tuple[str, ...] = ()
    refuses: Mapping[str, str] = field(default_factory=dict)

    @property
    def shows_passages(self) -> bool:
        """Return whether the prompt contains passages."""
        return self.shows != "nothing"

    @property
    def ranks(self) -> bool:
        """Return whether there is a ranking to measure: of a search, or of a system's contexts."""
        return self.searches or self.asks_system

    @property
    def swaps(self) -> bool:
        """Return whether a row is searched for with the question of its sibling."""
        return "sibling" in self.languages


# Key of a row's cell: the languages of its question and of the contexts shown, ``de->en``.
CONTEXT_PAIR = "context_pair"
_SEARCHES_NOTHING = "this mode searches nothing"
_AGENTS_CHOOSE = "agents choose the languages; set retrieval.pool or agent.corpora instead"
_NO_SIZES = "this mode goes by the size of each language, which is not known; take mode 'balanced'"
_NO_RUN = "this mode searches an index, with queries that a run made beforehand does not have"

MODES: Mapping[str, Mode] = {
    "no_ir": Mode(
        (),
        "score",
        "no retrieval (Non-RAG)",
        "all five papers",
        source="nothing",
        searches=False,
        shows="nothing",
        refuses={
            "languages": _SEARCHES_NOTHING,
            "query_translation": _SEARCHES_NOTHING,
            "document_translation": "this mode shows no passages",
        },
    ),
    "given": Mode(
        (),
        "score",
        "the passages that come with the row",
        "XRAG",
        source="given",
        searches=False,
        shows="given",
        own=("given",),
        refuses={
            "languages": _SEARCHES_NOTHING,
            "query_translation": _SEARCHES_NOTHING,
            "rerank": "the passages come with the row, unranked",
            "retriever": "the passages come with the row",
        },
    ),
    "system": Mode(
        (),
        "score",
        "the contexts of the evaluated RAG system itself (`--model rag`)",
        "ours",
        source="system",
        searches=False,
        asks_system=True,
        breakdowns=(CONTEXT_PAIR,),
        refuses=dict.fromkeys(
            (
                *("k", "rerank", "corpus", "kind", "embedder", "query_vectors", "languages", "pool", "merge"),
                *("query_translation", "document_translation", "candidates=row", "run_folder", "shuffle"),
            ),
            "the system retrieves",
        ),
    ),
    "qlang": Mode(("query",), "score", "the query's language (monoRAG)", "BordIRlines, CORAL, mRAG"),
    "en_only": Mode(("en",), "score", "English", "BordIRlines, mRAG"),
    "trag": Mode(
        ("en",), "score", "English, with the question in English (tRAG, +QT)", "CORAL, mRAG", query_translation="en"
    ),
    "qlang+en": Mode(("query", "en"), "score", "the query's language and English", "BordIRlines, mRAG"),
    "rel_langs": Mode(("relevant", "en"), "score", "the row's relevant languages and English", "BordIRlines"),
    "swap_docs": Mode(
        ("sibling",), "score", "a sibling query's documents in another claimant's language", "BordIRlines"
    ),
    "all": Mode(
        ("all",),
        "score",
        "every language of the corpus (multiRAG, direct)",
        "CORAL, Cross-Lingual Cost, mRAG",
        takes_run=True,
    ),
    "oracle": Mode(
        ("gold",),
        "score",
        "passages of the documents known to answer (upper bound)",
        "XRAG, mRAG, Cross-Lingual Cost",
        source="gold",
        shows="gold",
        refuses={"retriever": "it does not list the passages of a document"},
    ),
    "crossrag": Mode(
        ("all",),
        "score",
        "every language, the passages shown in English (crossRAG)",
        "CORAL",
        document_translation="en",
    ),
    "own": Mode(("culture",), "score", "the language of the row's culture", "CORAL ablation"),
    "own+en": Mode(("culture", "en"), "score", "the language of the row's culture and English", "CORAL ablation"),
    "coral": Mode(
        ("all",),
        "score",
        "languages and query chosen by agents, round by round (CORAL)",
        "CORAL",
        source="agents",
        refuses={
            "languages": _AGENTS_CHOOSE,
            "merge": _AGENTS_CHOOSE,
            "candidates": "this mode searches whole corpora; set it to all",
            "query_translation": "the planner writes the queries; set it to none",
            "query_vectors": "the planner writes the queries",
            "kind=precomputed": _NO_RUN,
            "corpus=published": _NO_RUN,
            "rerank": "the critic orders the documents",
            "unanswerable": "the agents have read what would be withheld",
        },
    ),
    "gold_lang": Mode(("gold",), "score", "the gold document's language (language oracle)", "Cross-Lingual Cost"),
    "balanced": Mode(("all",), "quota", "every language, the same number from each", "Cross-Lingual Cost"),
    "balanced_weighted": Mode(
        ("all",),
        "quota_documents",
        "every language, split by its share of the documents",
        "Cross-Lingual Cost",
        refuses={"retriever": _NO_SIZES},
    ),
    "balanced_passages": Mode(
        ("all",),
        "quota_passages",
        "every language, split by its share of the passages",
        "ours",
        refuses={"retriever": _NO_SIZES},
    ),
    "translation": Mode(
        ("all",),
        "score",
        "every language, searched with the question in each of them",
        "Cross-Lingual Cost",
        query_translation="each",
    ),
}
# The assumption about a mode that this version does not know.
_UNKNOWN = Mode(("all",), "score", "", "")


def mode_named(name: object) -> Mode:
    """Return the mode of this name; for a name that this version does not know, one that searches."""
    return MODES.get(str(name), _UNKNOWN)


# Models of ours that are told the answer.
ORACLE_MODELS = ("oracle_answer",)


def upper_bound(retrieval: Mapping[str, Any], model: object = None) -> str | None:
    """Return what makes scores an upper bound: knowledge of the answer that no system has; None for a system's own.

    ``retrieval`` is the block, as results hold it, and ``model`` the harness's name for the type of the model.
    """
    if model in ORACLE_MODELS:
        return "upper bound: the model replies with the reference answer"
    if passages_shown(retrieval) == "gold":
        return "upper bound: the passages shown are those known to answer"
    if "gold" in (retrieval.get("languages") or mode_named(retrieval.get("mode")).languages):
        return "upper bound: the search is told the language of the relevant document"
    return None


def passages_shown(retrieval: Mapping[str, Any]) -> Shown:
    """Return which passages a ``retrieval`` block, as results hold it, puts into the prompt."""
    shows = mode_named(retrieval.get("mode")).shows
    subset = (retrieval.get("given") or {}).get("subset")
    if shows == "given" and subset == "none":
        return "nothing"
    return "gold" if shows == "given" and subset == "gold" else shows


def unlisted(retrieval: Mapping[str, Any]) -> bool:
    """Return whether only what a search returns is known of what a ``retrieval`` block, as results hold it, searches:
    a retriever, or a whole system, of the user's.
    """
    return retrieval.get("kind") == "own" or mode_named(retrieval.get("mode")).asks_system


@dataclass(frozen=True, slots=True)
class Condition:
    """What decides which documents a prompt shows: ``k`` hits, then a filter, an exchange and what is withheld.

    Attributes:
        mode: the IR mode.
        k: the number of hits that the other steps start from; None if it is not known.
        kept: what a filter leaves of these: ``all``, or one :data:`Part`.
        flip: whether one of them is exchanged for a document of another side.
        withheld: whether relevant documents are withheld from some rows.
    """

    mode: str
    k: int | None = None
    kept: Literal["all", "relevant", "non_relevant"] = "all"
    flip: bool = False
    withheld: bool = False

    @classmethod
    def of(cls, setting: Mapping[str, Any], mode: str = "") -> Condition:
        """Return the condition behind the blocks of a task, as results hold them; ``mode`` stands in for a missing one.

        A block without a key has the key's default.
        """
        retrieval, data = setting.get("retrieval") or {}, setting.get("data") or {}
        shown = passages_shown(retrieval) if retrieval else "retrieved"
        return cls(
            str(retrieval.get("mode") or mode),
            retrieval.get("k"),
            "relevant" if shown == "gold" else data.get("documents") or "all",
            bool(data.get("flip")),
            retrieval.get("unanswerable") is not None,
        )

    @property
    def shows_own_ranks(self) -> bool:
        """Return whether the place of a document shown is its rank among the hits of its own question."""
        changed = self.kept != "all" or self.flip or self.withheld
        return not changed and not mode_named(self.mode).swaps

    def chosen(self, hits: Sequence[Hit], relevant: Sequence[bool | None]) -> tuple[Hit, ...]:
        """Return the hits that the filter leaves of the first ``k``; ``relevant`` has None for one without a label.

        Without a filter it is all hits, since measures look beyond those shown.
        """
        return tuple(hits) if self.kept == "all" else self.parts(hits, relevant)[self.kept]

    def parts(self, hits: Sequence[Hit], relevant: Sequence[bool | None]) -> dict[Part, tuple[Hit, ...]]:
        """Return the first ``k`` hits by what is known of their relevance: each of them is in one part."""
        names: dict[bool | None, Part] = {True: "relevant", False: "non_relevant", None: "unlabelled"}
        labelled = list(zip(hits, relevant, strict=True))[: self.k]
        return {name: tuple(hit for hit, label in labelled if label is value) for value, name in names.items()}
