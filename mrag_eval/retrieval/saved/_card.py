"""The card of a pushed run folder: what it holds, how it was made, under which licence, and the line that uses it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mrag_eval.core import pipe_table
from mrag_eval.datasets import declaration_of
from mrag_eval.platform import HubPlace
from mrag_eval.retrieval.saved._manifest import MANIFEST, ManifestEntry
from mrag_eval.retrieval.saved._terms import licence_of

CARD = "README.md"
_MARK = "<!-- Written by mrag-eval. Without this line, the card is yours and is kept. -->"


def is_ours(card: Path) -> bool:
    """Return whether a card was written by this module, and not edited since its mark was removed."""
    return _MARK in card.read_text("utf-8", "replace")


def card_of(tasks: Mapping[str, ManifestEntry], place: HubPlace, licence: str | None) -> str:
    """Return the card of a folder with these tasks; ``licence`` is that of passages whose own is not known."""
    licences = sorted({licence_of(entry.terms, licence) or "unknown" for entry in tasks.values()})
    about = {
        "license": licences[0].lower() if len(licences) == 1 else [name.lower() for name in licences],
        "language": _languages(tasks),
        "tags": ["mrag-eval", "retrieval", "rag"],
        # its rows are nested differently from mode to mode
        "viewer": False,
    }
    head = yaml.safe_dump({key: value for key, value in about.items() if value != []}, sort_keys=False)
    names = ",".join(tasks)
    parts = [
        f"---\n{head}---\n",
        f"# {place.repo.partition('/')[2]}: retrieved passages\n",
        "Passages that mrag-eval retrieved for the questions of benchmarks. With them, any model is evaluated on the "
        "same passages, without corpus, index, embedder, reranker or planner.\n",
        f"```bash\nmrag-eval run --model hf --model_args pretrained=MODEL --tasks {names} \\\n"
        f"    --metadata retrieval.run_folder=hub:{place.repo}@COMMIT\n```\n",
        "`COMMIT` is a commit of this dataset (Files, History) or a tag. Without `@COMMIT` the newest one is read, and "
        "the results say which it was.\n",
        "## Tasks\n",
        _table(tasks),
        f"\n`{MANIFEST}` holds every setting, the hashes of corpus and questions, and the SHA-256 of each file. A run "
        "compares them with its own, and refuses a difference by name. The questions themselves come from the "
        "benchmark.\n",
        "## Licences\n",
        *_terms(tasks, licence),
        f"\n{_MARK}\n",
    ]
    return "\n".join(parts)


def _table(tasks: Mapping[str, ManifestEntry]) -> str:
    rows = [
        [f"`{task}`", f"{entry.rows:,}", _how(entry), f"`{entry.fingerprint[:12]}`"] for task, entry in tasks.items()
    ]
    return pipe_table(["task", "rows", "retrieval", "fingerprint"], rows)


def _how(entry: ManifestEntry) -> str:
    """Return a task's retrieval in a few words: mode, index and embedder, reranker, agents, translation."""
    chosen = entry.settings.get("retrieval") or {}
    corpus = entry.settings.get("corpus") or {}
    index = {**corpus, **(entry.index or {})}
    parts = [f"mode {chosen.get('mode')}", f"k {chosen.get('k')}", f"depth {chosen.get('depth')}"]
    if index.get("kind"):
        embedder = f" {index['embedder']} (revision {index.get('revision')})" if index.get("embedder") else ""
        parts.append(f"{index['kind']}{embedder}")
    if index.get("content_hash"):
        parts.append(f"corpus {index['content_hash'][:12]}")
    if chosen.get("rerank"):
        parts.append(f"reranked by {chosen['rerank'].get('name')}")
    asked = [(role, seat) for role, seats in entry.models.items() for seat in seats.values()]
    parts += [f"{role} {seat.get('model')}" for role, seat in asked if isinstance(seat, Mapping)]
    return ", ".join(parts)


def _terms(tasks: Mapping[str, ManifestEntry], licence: str | None) -> list[str]:
    lines: dict[str, None] = {}
    for entry in tasks.values():
        source: Mapping[str, Any] = entry.terms.get("passages") or {}
        stated = licence_of(entry.terms, licence) or "not known"
        lines[f"- Passages: {source.get('name', 'unknown')}, {stated}. Titles and ids name the documents."] = None
        declared = declaration_of(entry.settings.get("data") or {})
        if declared is not None and declared.citations:
            cited = "; ".join(f"[{one.authors}, {one.venue}]({one.url})" for one in declared.citations)
            lines[f"- Questions: {declared.title}, {declared.licence or 'no licence stated'} ({cited})."] = None
    return list(lines)


def _languages(tasks: Mapping[str, ManifestEntry]) -> list[str]:
    found: set[str] = set()
    for entry in tasks.values():
        counts = (entry.index or {}).get("passages")
        found |= set(counts) if isinstance(counts, Mapping) else set()
        declared = declaration_of(entry.settings.get("data") or {})
        found |= set() if declared is None else set(declared.languages)
    return sorted(code.partition("-")[0] for code in found)
