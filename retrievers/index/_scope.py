"""The scope of a search: languages and candidates per query."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import language_name, matching_languages, normalize_language
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrievers.index._passages import PassageRows, Rows

logger = logging.getLogger(__name__)

Scope = Sequence[str] | Sequence[Sequence[str] | None] | None
"""None (all languages), codes for all queries, or one collection of codes (or None) per query."""

Candidates = Sequence[Collection[str] | None] | None
"""Per query the document or passage ids to search in, or None."""


def resolve(path: Path | str, shards: tuple[str, ...], languages: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sorted shards of a scope; see ``Index.resolve``."""
    if languages is None:
        return shards
    found: set[str] = set()
    for language in [languages] if isinstance(languages, str) else languages:
        code = normalize_language(language)
        matches = matching_languages(code, shards)
        if not matches:
            raise CorpusError(
                f"index {path} has no {language_name(code)} shard '{code}' (it holds: {', '.join(shards)})",
                f"build one with {code} passages: mrag-eval index build ...   or choose another retrieval.mode",
            )
        found |= matches
    if not found:
        raise ConfigError("the scope names no language", "languages=None searches all of them")
    return tuple(sorted(found))


def queries_by_language(path: Path | str, shards: tuple[str, ...], languages: Scope, count: int) -> dict[str, Rows]:
    """Return, for every shard in scope, the positions of its queries."""
    if languages is None or isinstance(languages, str):
        return dict.fromkeys(resolve(path, shards, languages), np.arange(count))
    codes = [code for code in languages if isinstance(code, str)]
    if codes and len(codes) == len(languages):
        return dict.fromkeys(resolve(path, shards, codes), np.arange(count))
    _same_length("languages", languages, count)
    resolved: dict[tuple[str, ...] | None, tuple[str, ...]] = {}
    members: dict[str, list[int]] = {}
    for position, scope in enumerate(languages):
        key = None if scope is None else (scope,) if isinstance(scope, str) else tuple(scope)
        if key not in resolved:
            resolved[key] = resolve(path, shards, key)
        for shard in resolved[key]:
            members.setdefault(shard, []).append(position)
    return {shard: np.asarray(members[shard], dtype=np.int64) for shard in sorted(members)}


def candidate_rows(store: PassageRows, candidates: Sequence[Collection[str] | None], count: int) -> list[Rows | None]:
    """Return the rows of every query's candidates; unknown ids are ignored with a warning."""
    _same_length("candidates", candidates, count)
    if any(isinstance(ids, str) for ids in candidates):
        raise DataError(
            "candidates holds a text, expected one collection of ids (or None) per query",
            "candidates=[['id1', 'id2'], None]",
        )
    named = store.rows_named(dict.fromkeys(i for ids in candidates if ids is not None for i in ids))
    unknown = [identifier for identifier, rows in named.items() if not len(rows)]
    if unknown:
        what = "%s: %d of %d candidate ids are not in the index, '%s' among them"
        logger.warning(what, store.folder, len(unknown), len(named), unknown[0])
    return [None if ids is None else _together(named, ids) for ids in candidates]


def candidate_counts(store: PassageRows, candidates: Sequence[Collection[str]]) -> list[dict[str, int]]:
    """Count distinct passages per language in each collection of ids; unknown ids count zero."""
    named = store.rows_named(dict.fromkeys(i for ids in candidates for i in ids))
    return [store.counts_of(_together(named, ids)) for ids in candidates]


def _together(named: Mapping[str, Rows], ids: Collection[str]) -> Rows:
    nothing = np.empty(0, dtype=np.int64)
    return np.unique(np.concatenate([nothing, *(named[identifier] for identifier in ids)]))


def _same_length(what: str, values: Sequence[Any], count: int) -> None:
    if len(values) != count:
        raise DataError(f"{what} has {len(values)} entries for {count} queries", "give one entry per query")
