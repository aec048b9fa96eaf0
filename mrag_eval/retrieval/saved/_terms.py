"""Licences of the texts in a run folder: of its passages, and of the questions that queries and traces repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.config import PUBLISHED, Retrieval, TaskBlocks
from mrag_eval.datasets import Benchmark, declaration_of
from mrag_eval.platform import ConfigError

# Beginnings of the origins that our readers of Wikipedia and KILT write into an index.
_WIKIPEDIA = ("wikimedia", "kilt")
WIKIPEDIA_LICENCE = "CC-BY-SA-4.0"


def terms_of(blocks: TaskBlocks, benchmark: Benchmark, documents: Mapping[str, str]) -> dict[str, Any]:
    """Return the licences of ``questions`` and ``passages``, each with the ``name`` of what they come from.

    ``licence`` is an SPDX identifier, or None; ``shareable`` is None where nothing is known, which is up to the user.
    ``documents`` are the origins of an index's documents by language.
    """
    questions = _of_benchmark(blocks.data)
    retrieval = blocks.retrieval
    if retrieval.searches and retrieval.run is not None and retrieval.run_holds_texts:
        return {"questions": questions, "passages": _of_corpus(retrieval.run.name, {})}
    own = not retrieval.searches or retrieval.corpus in ("benchmark", PUBLISHED)
    own = own or (retrieval.preset.source == "gold" and any(doc.given_passages for doc in benchmark.docs))
    return {"questions": questions, "passages": questions if own else _of_corpus(retrieval.corpus, documents)}


def _of_benchmark(data: Mapping[str, Any]) -> dict[str, Any]:
    declared = declaration_of(data)
    if declared is None or declared.is_own(data):
        return {"name": "rows of one's own", "licence": None, "shareable": None}
    return {"name": declared.title, "licence": declared.licence, "shareable": declared.shareable}


def _of_corpus(corpus: str, documents: Mapping[str, str]) -> dict[str, Any]:
    known = bool(documents) and all(origin.lower().startswith(_WIKIPEDIA) for origin in documents.values())
    # the last part of a path: the rest is of this machine
    name = corpus.rstrip("/").rpartition("/")[2]
    if not known:
        return {"name": name, "licence": None, "shareable": None}
    origins = sorted(set(documents.values()))
    shown = ", ".join(origins[:3]) + (f", and {len(origins) - 3} more" if len(origins) > 3 else "")
    return {"name": f"{name} ({shown})", "licence": WIKIPEDIA_LICENCE, "shareable": True}


def check_terms(task: str, terms: Mapping[str, Any], licence: str | None, *, questions: bool) -> None:
    """Raise ConfigError unless the texts of a task may be shared.

    ``licence`` is the user's word for texts whose licence is not known. ``questions``: whether rows repeat texts of the
    questions.
    """
    for kind in ("passages", "questions") if questions else ("passages",):
        source = terms.get(kind) or {"name": "an earlier version's rows", "licence": None, "shareable": None}
        if source["shareable"] is False:
            stated = f"licence {source['licence']}" if source["licence"] else "no licence is stated"
            raise ConfigError(
                f"--push: task {task}: its {kind} are those of {source['name']}, which may not be passed on ({stated})",
                "keep the folder; others get the same rows with the same settings: mrag-eval retrieve",
            )
        if source["shareable"] is None and licence is None:
            raise ConfigError(
                f"--push: task {task}: the licence of its {kind} ({source['name']}) is not known",
                "if they may be shared, say under which licence: --licence CC-BY-4.0, or another SPDX identifier",
            )


def repeats_questions(retrieval: Retrieval) -> bool:
    """Return whether the rows of a block will repeat their questions: translated for the search, or in a trace."""
    return retrieval.queries_in != "none" or retrieval.preset.source == "agents"


def licence_of(terms: Mapping[str, Any], licence: str | None) -> str | None:
    """Return the licence of a task's passages: the known one, else the user's."""
    return (terms.get("passages") or {}).get("licence") or licence
