"""Lists of several languages, or of several versions of one query, as one list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mrag_eval.config import CENTERED, NO_MEANS, Retrieval
from mrag_eval.core import Hit
from mrag_eval.platform import ConfigError

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index, LanguageMeans

# Merges that make the scores of each language comparable by its list. They read this many hits of each language, so
# that the first places do not depend on the number of hits requested.
_NORMALISED = ("zscore", "rank_norm", "turns")
_DEPTH = 100
# Merges whose results have changed, with the version in force.
_VERSIONS = {"zscore": 2}


class Sizes(Protocol):
    """The passages and the documents of each language of what is searched."""

    @property
    def counts(self) -> Mapping[str, int]: ...

    @property
    def documents(self) -> Mapping[str, int]: ...


def merge_version(merge: str) -> dict[str, int]:
    """Return the version of a merge, for results and cache keys; empty for one that has never changed."""
    return {"merge_version": _VERSIONS[merge]} if merge in _VERSIONS else {}


def means_for(index: Index, retrieval: Retrieval) -> LanguageMeans | None:
    """Return the means of the languages if the block's merge subtracts them; None if it does not, or needs none.

    Raises ConfigError for an index that cannot be ranked by vectors alone, and for one whose means say nothing;
    CorpusError for one without means.
    """
    merge = retrieval.merged_by
    if merge not in CENTERED:
        return None
    if index.kind != "dense":
        raise ConfigError(
            f"retrieval.merge={merge}: index {index.path} is of kind '{index.kind}': {NO_MEANS[index.kind]}",
            "leave merge out, or name a dense index",
        )
    if len(index.languages) == 1:
        return None
    if max(index.counts.values()) == 1:
        raise ConfigError(
            f"retrieval.merge={merge}: index {index.path} has one passage a language, whose mean says nothing",
            "set merge=score, or add passages",
        )
    return index.means


def depth_of_lists(merge: str, depth: int) -> int:
    """Return how many hits of each language a merge reads for a ranking of ``depth``."""
    return max(depth, _DEPTH) if merge in _NORMALISED else depth


def of_versions(lists: Sequence[list[Hit]], depth: int, *, by_score: bool, text: str) -> list[Hit]:
    """Return the lists of one query's versions as one list; ties by its ``text``.

    Lists are merged by score (a passage counts with its highest one) if scores compare, else by reciprocal rank.
    """
    from mrag_eval.retrievers import merge_by_score, query_turn, reciprocal_rank_fusion

    if len(lists) == 1:
        return lists[0]
    turn = query_turn(text)
    return merge_by_score(lists, depth, turn) if by_score else reciprocal_rank_fusion(lists, depth, turn=turn)


def merged(
    merge: str,
    by_language: Mapping[str, Sequence[Hit]],
    n: int,
    sizes: Sizes,
    seed: int,
    text: str,
    centered: Mapping[str, Sequence[Hit]] | None = None,
) -> list[Hit]:
    """Return the lists of all languages as one of ``n`` places.

    Seed and question decide which language is first among equals, and which get the places left over. ``centered``
    are the lists with the scores of the languages' means subtracted.
    """
    from mrag_eval import retrievers

    turn = retrievers.query_turn(text, seed)
    if merge == "score":
        return retrievers.merge_by_score(list(by_language.values()), n, turn)
    if merge in CENTERED:
        assert centered is not None
        by_center = retrievers.merge_by_score(centered.values(), n, turn)
        if merge == "centered":
            return by_center
        by_score = retrievers.merge_by_score(by_language.values(), max(n, sum(map(len, by_language.values()))), turn)
        by_zscore = retrievers.merge_by_zscore(by_language, n, turn)
        return retrievers.merge_by_turns([by_score, by_center, by_zscore], n, turn)
    if merge == "rrf":
        return retrievers.reciprocal_rank_fusion(list(by_language.values()), n, turn=turn)
    if merge == "zscore":
        return retrievers.merge_by_zscore(by_language, n, turn)
    if merge == "rank_norm":
        return retrievers.merge_by_rank_share(by_language, sizes.counts, n, turn)
    if merge == "quota":
        quotas = retrievers.equal_quotas(by_language, n, turn)
    else:
        held = sizes.documents if merge == "quota_documents" else sizes.counts
        quotas = retrievers.share_quotas({lang: held[lang] for lang in by_language}, n, turn)
    return retrievers.merge_by_quota(by_language, quotas, n, turn)
