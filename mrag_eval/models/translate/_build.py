"""Construction of a :class:`Translator` from a validated ``translator`` block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mrag_eval.config import DEFAULT_NLLB, TableSpec, TranslatorSpec, load_config
from mrag_eval.models.translate._backend import Backend
from mrag_eval.models.translate._translator import Translator
from mrag_eval.platform import ConfigError, cache_dir, shared_store

_EXAMPLE = """name one in the task or under --metadata:  retrieval.translator.backend=nllb
    or for all tasks in mrag.yaml:  translator: {backend: lm, model: NAME}   (backends: lm, nllb, google, table)"""


def build_translator(
    spec: TranslatorSpec | None, *, needed_by: str = "", parallel: Iterable[Mapping[str, str]] = ()
) -> Translator:
    """Return the translator of a block, else the one that the config file names for all tasks.

    ``parallel`` are the benchmark's own parallel texts, which serve as a ``table`` without a path; ``needed_by`` names
    the feature in the error. Loads no model and opens no connection. Raises ConfigError if there is no translator, or
    no model of that name, and DataError for a missing or invalid table.
    """
    found = spec or load_config().translator
    if found is None:
        raise ConfigError(f"{needed_by or 'this'} needs a translator, and none is configured", _EXAMPLE)
    backend = _backend(found, parallel)
    if found.backend == "table":
        return Translator(backend, found.described(), check_language=found.check_language)
    store = shared_store(cache_dir() / "translations.sqlite")
    return Translator(backend, found.described(), store=store, check_language=found.check_language, save=found.save)


def _backend(spec: TranslatorSpec, parallel: Iterable[Mapping[str, str]]) -> Backend:
    if spec.backend == "lm":
        from mrag_eval.models._shared import get
        from mrag_eval.models.translate._lm import LmBackend

        return LmBackend(get(spec.model), spec.prompt, spec.max_tokens)
    if spec.backend == "nllb":
        from mrag_eval.models.translate._nllb import NllbBackend

        return NllbBackend(
            spec.model or DEFAULT_NLLB,
            revision=spec.revision,
            max_tokens=spec.max_tokens or 256,
            num_beams=spec.num_beams,
            batch_size=spec.batch_size,
            device=spec.device,
        )
    if spec.backend == "google":
        from mrag_eval.models.translate._google import GoogleBackend

        return GoogleBackend(spec.model)
    return _table(spec, parallel)


def _table(spec: TableSpec, parallel: Iterable[Mapping[str, str]]) -> Backend:
    from mrag_eval.models.translate._table import TableBackend, load_table, table_hash

    if spec.path is not None:
        return TableBackend(load_table(spec.path), str(spec.path), spec.strict, content=table_hash(spec.path))
    texts = list(parallel)
    if not texts:
        raise ConfigError(
            "retrieval.translator: backend 'table' has no 'path', and this benchmark has no parallel texts",
            "name a file: retrieval.translator.path=FILE.jsonl",
        )
    return TableBackend.of(texts, "the benchmark's parallel texts", spec.strict)
