"""What users write in a task: the blocks ``retrieval``, ``prompt`` and ``judge``, from YAML or ``--metadata``.

All of it is validated here: an unknown key, a value outside its set or an impossible combination is a
:class:`~mrag_eval.core.ConfigError` that names the key and what is allowed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from mrag_eval.config._modes import LANGUAGE_ROLES, MODES
from mrag_eval.config._rerank import Rerank
from mrag_eval.config._translator import TranslatorSpec
from mrag_eval.config._validation import Block, Device
from mrag_eval.core import ConfigError, did_you_mean, normalize_language

Merge = Literal["score", "rrf", "quota", "quota_share", "zscore", "rank_norm"]


class Given(Block):
    """Which of the row's own passages to show (mode ``given``).

    ``distractors`` keeps the gold passages and ``n`` distracting ones, drawn per row with the seed; where these are in
    several languages, the languages take turns.
    """

    subset: Literal["all", "gold", "none", "distractors"] = "all"
    n: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _n_belongs_to_distractors(self) -> Given:
        if (self.subset == "distractors") != (self.n is not None):
            raise ValueError("'n' goes with subset 'distractors', and subset 'distractors' needs it")
        return self


class Retrieval(Block):
    """The ``retrieval`` block of a task: what is searched, how lists are merged, how many passages are shown.

    ``mode`` names a preset (:data:`mrag_eval.config.MODES`); ``languages``, ``merge``, ``query_translation`` and
    ``document_translation`` override its choices. ``query_translation``: the corpus is searched with the query as it
    is (``none``), in English (``en``), or in every language of the scope (``each``). ``document_translation``: what is
    shown is as it is, in English (``en``) or in the query's language (``query``). The evaluated model always gets the
    original question. ``translator`` names who translates, by default that of the config file.
    ``k`` passages go into the prompt; ``depth`` (default ``k``) are retrieved for the ranking measures. ``rerank``
    orders them once more before ``k`` are taken (:class:`~mrag_eval.config.Rerank`; a name alone is that of a
    cross-encoder). ``kind`` says what kind of index is searched; ``milvus`` one that lies in Milvus at ``uri`` (a
    server, or a local file ending in ``.db``; without it an entry of the config file), where ``corpus`` is its
    collection; ``precomputed`` takes the lists of another system from the TREC file ``run``, and their passages from
    ``corpus``: an index, or a JSON Lines file.

    ``device`` is where embedder and reranker run: ``cpu``, ``cuda``, ``cuda:N``, ``mps``, or ``auto``, which takes a
    GPU only if it has room beside what is loaded there already.

    ``run_folder`` is a folder that ``mrag-eval retrieve`` wrote: rows are taken from there, and nothing is searched,
    reranked, translated or planned. Its settings must be this task's; ``run_may_differ`` names those that need not be
    (``retrieval.k``, ``corpus``, ``rows``), and the rows are taken as they are there.

    ``shuffle`` shows the passages in an order drawn by this seed and the row, to see whether their order matters.
    """

    mode: str = "no_ir"
    k: int = Field(default=5, ge=1)
    depth: int | None = Field(default=None, ge=1)
    rerank: Rerank | None = None
    corpus: str = "benchmark"
    kind: Literal["dense", "bm25", "hybrid", "sparse", "milvus", "precomputed"] | None = None
    uri: str | None = None
    run: Path | None = None
    run_folder: Path | None = None
    run_may_differ: tuple[str, ...] = ()
    embedder: str | dict[str, Any] | None = None
    languages: tuple[str, ...] | None = None
    merge: Merge | None = None
    query_translation: Literal["none", "en", "each"] | None = None
    document_translation: Literal["none", "en", "query"] | None = None
    translator: TranslatorSpec | None = None
    query_text: Literal["question", "question+options"] = "question+options"
    candidates: Literal["all", "row"] = "all"
    given: Given = Given()
    device: Device = "cpu"
    seed: int = Field(default=0, ge=0)
    shuffle: int | None = Field(default=None, ge=0)

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

    @field_validator("run_may_differ", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("rerank", mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value

    @field_validator("mode")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        if value not in MODES:
            raise ValueError(f"unknown mode '{value}'{did_you_mean(value, MODES)}")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Retrieval:
        if self.run_may_differ and self.run_folder is None:
            raise ValueError("'run_may_differ' goes with 'run_folder', from which rows are taken")
        if self.depth is not None and self.depth < self.k:
            raise ValueError(f"'depth' is {self.depth}, less than k = {self.k} passages that go into the prompt")
        if self.languages is not None and self.mode in ("no_ir", "given"):
            raise ValueError(f"mode '{self.mode}' searches nothing, so 'languages' has no meaning there")
        if self.query_translation not in (None, "none") and self.mode in ("no_ir", "given"):
            raise ValueError(f"mode '{self.mode}' searches nothing, so 'query_translation' has no meaning there")
        if self.document_translation not in (None, "none") and self.mode == "no_ir":
            raise ValueError("mode 'no_ir' shows no passages, so 'document_translation' has no meaning there")
        if self.merge == "rank_norm" and self.candidates == "row":
            raise ValueError("merge 'rank_norm' goes by the size of each language, which candidates 'row' do not have")
        if self.mode == "coral":
            if self.languages is not None or self.merge is not None:
                raise ValueError("in mode 'coral' agents choose the languages: set agent.pool or agent.corpora instead")
            if self.candidates != "all":
                raise ValueError("mode 'coral' searches whole corpora, 'candidates' must be all")
            if self.query_translation not in (None, "none"):
                raise ValueError("in mode 'coral' the planner writes the queries, 'query_translation' must be none")
            if self.kind == "precomputed" or self.corpus == "published":
                raise ValueError("mode 'coral' searches an index: a run made beforehand cannot answer its queries")
            if self.rerank is not None:
                raise ValueError("in mode 'coral' the critic orders the documents, 'rerank' has no place there")
        if self.given != Given() and self.mode != "given":
            raise ValueError(f"'given' goes with mode 'given', this task has mode '{self.mode}'")
        if (self.run is not None) != (self.kind == "precomputed"):
            raise ValueError("'run' goes with kind 'precomputed', and kind 'precomputed' needs it")
        if self.uri is not None and self.kind != "milvus":
            raise ValueError("'uri' goes with kind 'milvus'")
        if self.kind == "milvus" and self.corpus in ("benchmark", "published"):
            raise ValueError("kind 'milvus' needs 'corpus', the collection that is searched")
        if self.kind == "precomputed" and self.mode != "no_ir":
            self._takes_the_run_as_it_is()
        if self.rerank is not None:
            if self.mode == "given":
                raise ValueError("mode 'given' shows passages known beforehand, 'rerank' has no meaning")
            depth = self.rerank.depth
            if depth is not None and not self.k <= depth <= self.search_depth:
                raise ValueError(
                    f"'rerank.depth' is {depth}, outside k = {self.k} to depth = {self.search_depth} that are retrieved"
                )
        return self

    def _takes_the_run_as_it_is(self) -> None:
        if self.mode != "all":
            raise ValueError(f"a precomputed run is taken as it is, by mode 'all'; this task has mode '{self.mode}'")
        for key, unset in (("languages", None), ("merge", None), ("embedder", None), ("candidates", "all")):
            if getattr(self, key) != unset:
                raise ValueError(f"a precomputed run is taken as it is, so '{key}' has no meaning")
        if self.query_translation not in (None, "none"):
            raise ValueError("a precomputed run is taken as it is, so 'query_translation' has no meaning")

    @property
    def search_depth(self) -> int:
        """How many hits are kept for ranking measures."""
        return self.depth or self.k

    @property
    def rerank_depth(self) -> int:
        """How many hits are reranked; 0 without a reranker."""
        return 0 if self.rerank is None else self.rerank.depth or self.search_depth
