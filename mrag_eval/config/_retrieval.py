"""The ``retrieval`` block of a task, from YAML or ``--metadata``.

All of it is validated here: an unknown key, a value outside its set or an impossible combination is a
ConfigError that names the key and the allowed values.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mrag_eval.config._block import Block, Device, KeyRule, Languages, Names
from mrag_eval.config._model import EmbedderName
from mrag_eval.config._modes import LANGUAGE_ROLES, MODES, Mode, passages_shown, unlisted
from mrag_eval.config._rerank import Rerank, named_reranker
from mrag_eval.config._retriever import Retriever
from mrag_eval.config._translator import TranslatorSpec
from mrag_eval.core import normalize_language
from mrag_eval.platform import ConfigError, HubPlace, did_you_mean

Merge = Literal[
    "score", "rrf", "quota", "quota_documents", "quota_passages", "zscore", "rank_norm", "centered", "turns"
]
# Merges that make a set: they divide the places among languages, or among other merges.
_SETS = ("quota", "quota_documents", "quota_passages", "turns")
# Merges that subtract from a score that of the mean of the passage's language, and why a kind of index has none.
CENTERED = ("centered", "turns")
NO_MEANS = {
    "hybrid": "it fuses rankings by rank, which undoes the merge",
    "bm25": "BM25 gives scores, and no vectors",
    "sparse": "its vectors are of words, and languages share few",
}
# The corpus of search results that come with a benchmark.
PUBLISHED = "published"
_COLLECTION = "the collection that is searched"
# Keys that a run made beforehand cannot take.
_RUN_REFUSES = dict.fromkeys(
    ("languages", "merge", "embedder", "query_vectors", "candidates", "query_translation"), "the run is used as it is"
)

# Keys that a retriever of the user's cannot take.
_OWN_REFUSES = dict.fromkeys(
    ("embedder", "query_vectors", "candidates", "corpus", "stem", "segment", "simplified"),
    "the retriever finds passages by itself",
)
_SIZED = {"retriever": "it goes by the size of each language"}
_MEANS = {"retriever": "a retriever gives scores, and no vectors"} | {
    f"kind={kind}": why for kind, why in NO_MEANS.items()
}


class GivenChoice(Block):
    """The selection of the row's own passages to show (mode ``given``).

    ``distractors`` keeps the gold passages and ``n`` distracting ones, drawn per row with the seed; where these are in
    several languages, the languages take turns.
    """

    subset: Annotated[
        Literal["all", "gold", "none", "distractors"],
        KeyRule("distractors", needs={"n": "the number of distracting passages"}),
    ] = "all"
    n: Annotated[int | None, Field(ge=0), KeyRule(needs={"subset=distractors": ""})] = None


class GivenVectors(Block):
    """Where the vectors of the questions are read instead of being computed.

    ``source`` is a Parquet or JSON Lines file, a folder of Parquet files, or ``hub:ORG/NAME@REVISION``. ``vectors``,
    ``id`` and ``text`` name its columns, if they are not called ``emb``, ``id`` and ``query``. A row's vector is found
    by the row's id and language; if the file has texts, they must be the row's question.
    """

    source: str = Field(min_length=1)
    vectors: str | None = None
    id: str | None = None
    text: str | None = None


class Retrieval(Block):
    """The ``retrieval`` block of a task: the corpus, the merge of lists, and the number of passages shown.

    ``mode`` names a preset (:data:`mrag_eval.config.MODES`); ``languages``, ``merge``, ``query_translation`` and
    ``document_translation`` override its choices. ``query_translation``: the corpus is searched with the query as it
    is (``none``), in English (``en``), or in every language of the scope (``each``). ``document_translation``: what is
    shown is as it is, in English (``en``) or in the query's language (``query``). The evaluated model always gets the
    original question. ``translator`` is by default that of the config file.

    ``pool`` limits the search to these languages in modes that search all of them, and is the planner's list in mode
    ``coral``; by default every language of the corpus.

    ``k`` passages go into the prompt; ``depth`` (default ``k``) are retrieved for the ranking measures. ``rerank``
    orders the first ``rerank.depth`` of them (default: all) once more before ``k`` are taken; a name alone is that of a
    cross-encoder. ``rerank.query`` is the text that passages are compared with: the one that was ``searched`` with, or
    the row's ``question``.

    ``kind`` is the kind of index that is searched; ``milvus`` is an index in Milvus at ``uri`` (a server, or a local
    file ending in ``.db``; without it an entry of the config file), where ``corpus`` is its collection;
    ``precomputed`` takes the lists of another system from the file ``run``: a TREC run, with the passages from
    ``corpus`` (an index, a JSON Lines file, or documents of BERGEN), or JSON Lines with the passages in them
    (``ctxs``); ``run_language`` is the language of passages that do not say theirs.

    ``retriever`` is one of the user's, a function or a service, which takes the place of the search (``kind: own``).
    Its scores are compared across languages, or across translations of a query, only with ``merge: score``; by default
    such lists are merged by rank.

    ``query_vectors`` names published vectors of the questions, by the rows' ids, so that an index can be searched whose
    embedder cannot be run.

    ``stem``, ``segment`` and ``simplified`` are rules for the words of BM25, as in ``mrag-eval index build``; without
    them, a new index takes stems and dictionaries in the languages where they are its default, and an index that exists
    is searched with its own. One that was built with other rules than those asked for is an error.

    ``device`` is where embedder and reranker run: ``cpu``, ``cuda``, ``cuda:N``, ``mps``, or ``auto``, which takes a
    GPU only if it has enough free memory.

    ``run_folder`` is a folder that ``mrag-eval retrieve`` wrote, or a dataset of the hub that holds one
    (``hub:ORG/NAME@REVISION``): rows are taken from there, and nothing is searched, reranked, translated or planned.
    Its settings must be this task's; ``run_may_differ`` names those that need not be (``retrieval.k``, ``corpus``,
    ``rows``), and the rows are taken as they are there.

    ``shuffle`` shows the passages in an order drawn by this seed and the row, to see whether their order matters.

    ``unanswerable`` withholds the relevant passages of this share of the rows, drawn by seed and row, to see whether
    the model then declines. The next passages of the ranking take their places.
    """

    mode: str = "no_ir"
    k: int = Field(default=5, ge=1)
    depth: int | None = Field(default=None, ge=1)
    rerank: Rerank | None = None
    corpus: str = "benchmark"
    kind: Annotated[
        Literal["dense", "bm25", "hybrid", "sparse", "milvus", "precomputed", "own"] | None,
        KeyRule("precomputed", needs={"run": "a TREC file or JSON Lines"}),
        KeyRule("own", needs={"retriever": "a function, or a service"}, refuses=_OWN_REFUSES),
        KeyRule("milvus", needs={"corpus": _COLLECTION}, refuses={f"corpus={PUBLISHED}": f"it names {_COLLECTION}"}),
    ] = None
    uri: Annotated[str | None, KeyRule(needs={"kind=milvus": ""})] = None
    run: Annotated[Path | None, KeyRule(needs={"kind=precomputed": ""})] = None
    run_language: Annotated[str | None, KeyRule(needs={"run": "the file of another system"})] = None
    retriever: Retriever | None = None
    run_folder: str | None = None
    run_may_differ: Annotated[Names, KeyRule(needs={"run_folder": "the folder that rows are taken from"})] = ()
    embedder: EmbedderName | None = None
    query_vectors: GivenVectors | None = None
    stem: bool | None = None
    segment: bool | None = None
    simplified: bool = False
    languages: tuple[str, ...] | None = None
    pool: Languages | None = None
    merge: Annotated[
        Merge | None,
        KeyRule("rank_norm", refuses={"candidates=row": "it goes by the size of each language", **_SIZED}),
        KeyRule("quota_documents", refuses=_SIZED),
        KeyRule("quota_passages", refuses=_SIZED),
        KeyRule("centered", refuses=_MEANS),
        KeyRule("turns", refuses=_MEANS),
    ] = None
    query_translation: Literal["none", "en", "each"] | None = None
    document_translation: Literal["none", "en", "query"] | None = None
    translator: TranslatorSpec | None = None
    query_text: Literal["question", "question+options"] = "question+options"
    candidates: Literal["all", "row"] = "all"
    given: GivenChoice = GivenChoice()
    device: Device = "cpu"
    seed: int = Field(default=0, ge=0)
    shuffle: int | None = Field(default=None, ge=0)
    unanswerable: float | None = Field(default=None, gt=0, le=1)

    @field_validator("languages", mode="before")
    @classmethod
    def _known_languages(cls, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, str | list | tuple):
            raise ValueError(f"expected a language or a list of them, one of {', '.join(LANGUAGE_ROLES)} or a code")
        names = [value] if isinstance(value, str) else list(value)
        try:
            return tuple(n if n in LANGUAGE_ROLES else normalize_language(str(n)) for n in names)
        except ConfigError as err:
            raise ValueError(f"{err.message}; {err.next_step}, or one of {', '.join(LANGUAGE_ROLES)}") from None

    @field_validator("pool")
    @classmethod
    def _each_once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and not value:
            raise ValueError("a pool needs at least one language")
        return value and tuple(dict.fromkeys(value))

    @field_validator("query_vectors", mode="before")
    @classmethod
    def _source_alone(cls, value: Any) -> Any:
        return {"source": value} if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _of_ones_own(cls, value: Any) -> Any:
        own = isinstance(value, Mapping) and value.get("retriever") is not None and value.get("kind") is None
        return {**value, "kind": "own"} if own else value

    @field_validator("rerank", mode="before")
    @classmethod
    def _cross_encoder_by_default(cls, value: Any) -> Any:
        block = named_reranker(value) if isinstance(value, str) else value
        return {"kind": "cross-encoder", **block} if isinstance(block, Mapping) else block

    @field_validator("run_folder", mode="before")
    @classmethod
    def _folder_or_dataset(cls, value: Any) -> Any:
        text = str(value) if isinstance(value, Path) else value
        try:
            if isinstance(text, str):
                HubPlace.named(text, "retrieval.run_folder")
        except ConfigError:
            raise ValueError("expected a folder, or hub:ORG/NAME@REVISION with a commit or a tag") from None
        return text

    @field_validator("mode")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        if value not in MODES:
            raise ValueError(f"unknown mode '{value}'{did_you_mean(value, MODES)}")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Retrieval:
        self.refuse(self.preset.refuses, f"mode '{self.mode}'")
        for owner, mode in MODES.items():
            for key in mode.own:
                if mode is not self.preset and self.sets(key):
                    raise ValueError(f"'{key}' requires mode '{owner}'; this task has mode '{self.mode}'")
        shown = passages_shown({"mode": self.mode, "given": {"subset": self.given.subset}})
        if self.unanswerable is not None and shown in ("nothing", "gold"):
            what = "no passages" if shown == "nothing" else "relevant passages alone"
            raise ValueError(f"'unanswerable' withholds relevant passages, and mode '{self.mode}' shows {what} here")
        if self.depth is not None and self.depth < self.k:
            raise ValueError(f"'depth' is {self.depth}, less than k = {self.k} passages that go into the prompt")
        if self.query_vectors is not None and self.queries_in != "none":
            raise ValueError("'query_vectors' are those of the questions, and mode or block translate them")
        if self.retriever is not None and self.kind != "own":
            raise ValueError(f"'retriever' requires kind 'own'; here it is '{self.kind}'")
        if self.kind == "precomputed" and self.preset.shows_passages and not self.preset.takes_run:
            takers = " or ".join(f"'{name}'" for name, mode in MODES.items() if mode.takes_run)
            raise ValueError(f"kind '{self.kind}' requires mode {takers}; this task has mode '{self.mode}'")
        if self.kind == "own" and self.pool is None and self.lists_all:
            raise ValueError(f"mode '{self.mode}' needs 'pool' here, the languages to search: a retriever lists none")
        if self.kind == "precomputed" and self.preset.shows_passages:
            self.refuse(_RUN_REFUSES, "kind 'precomputed'")
        depth = None if self.rerank is None else self.rerank.depth
        if depth is not None and not self.k <= depth <= self.search_depth:
            raise ValueError(
                f"'rerank.depth' is {depth}, outside k = {self.k} to depth = {self.search_depth} that are retrieved"
            )
        return self

    @property
    def run_holds_texts(self) -> bool:
        """Return whether the run is JSON Lines, which hold the texts of passages; a TREC run names ids alone."""
        return self.run is not None and self.run.name.endswith((".jsonl", ".jsonl.gz"))

    @property
    def preset(self) -> Mode:
        """Return the mode that ``mode`` names."""
        return MODES[self.mode]

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the languages searched, as roles or codes: the block's own choice, else the mode's."""
        return self.languages or self.preset.languages

    @property
    def searches(self) -> bool:
        """Return whether a corpus is searched at all."""
        return self.preset.searches

    @property
    def unlisted(self) -> bool:
        """Return whether only what a search returns is known of what it searches."""
        return unlisted({"mode": self.mode, "kind": self.kind})

    @property
    def shows_passages(self) -> bool:
        """Return whether the prompt contains passages at all."""
        return passages_shown({"mode": self.mode, "given": {"subset": self.given.subset}}) != "nothing"

    @property
    def merged_by(self) -> str:
        """Return the merge of several languages' lists: the block's own choice, else the mode's."""
        return self.merge or self.preset.merge

    @property
    def lists_all(self) -> bool:
        """Return whether every language of what is searched has to be known by its name."""
        each = self.merged_by != "score" or self.queries_in == "each" or self.preset.source == "agents"
        return each and "all" in self.roles

    @property
    def has_single_ranking(self) -> bool:
        """Return whether there is an order to measure: some merges make a set, for which mrr and ndcg are undefined."""
        return self.merged_by not in _SETS

    @property
    def quota_depth(self) -> int | None:
        """Return the number of passages in the set that a merge makes; None if there is a single ranking."""
        return None if self.has_single_ranking else self.search_depth

    @property
    def queries_in(self) -> str:
        """Return the target of query translation before the search: the block's own choice, else the mode's."""
        return self.query_translation or self.preset.query_translation

    @property
    def documents_in(self) -> str:
        """Return the target of passage translation before display: the block's own choice, else the mode's."""
        return self.document_translation or self.preset.document_translation

    @property
    def translates(self) -> bool:
        """Return whether anything is translated, which requires a translator."""
        return (self.queries_in, self.documents_in) != ("none", "none")

    @property
    def retrieves(self) -> bool:
        """Return whether a row's prompt requires retrieval: a search, or a translation."""
        return self.searches or self.translates

    @property
    def search_depth(self) -> int:
        """Return the number of hits kept for ranking measures."""
        return self.depth or self.k

    @property
    def rerank_depth(self) -> int:
        """Return the number of hits reranked; 0 without a reranker."""
        return 0 if self.rerank is None else self.rerank.depth or self.search_depth
