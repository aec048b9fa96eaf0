"""Starter corpora: the editions of a preset, each reduced to the pages that are near its topics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mrag_eval.platform import ConfigError, DataError, JsonFault, Wait, content_key, json_value, write_whole
from mrag_eval.retrieval._corpus_build import CorpusSettings, OnPart, build_corpus

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Index, Starter

T = TypeVar("T")

_NEARNESS = {"3": "subject", "2": "place", "1": "near", "0": "other"}
_RULE = "nearest to the topics of '{}' by title, categories and links, then the longest, up to {:,} passages"
_EVERY = 1_000
# The name by which tasks look for the whole.
_WHOLE = "wikipedia"


def build_starter(
    preset: Starter,
    langs: Sequence[str] = (),
    settings: CorpusSettings | None = None,
    *,
    name: str | None = None,
    dump: str | None = None,
    source: Path | None = None,
    most: int | None = None,
    add: bool = False,
    overwrite: bool = False,
    on_part: OnPart | None = None,
) -> Index:
    """Build a preset's corpus under its own name, or another, and open it; the same call goes on after an interruption.

    Args:
        preset: the languages, budgets and topics.
        langs: some of its languages; by default all.
        settings: as in :func:`build_corpus`; kind and size of passages are the preset's where they are None.
        name: the name by which tasks find the corpus. It must not be that of the whole Wikipedia.
        dump, source: as in ``wikipedia_edition``.
        most: the most passages of every language, instead of the preset's budgets.
        add, overwrite, on_part: as in :func:`build_corpus`.

    Raises ConfigError for a language that the preset lacks, DataError naming all languages without a dump; and as
    :func:`build_corpus`.
    """
    chosen = settings or CorpusSettings()
    if name == _WHOLE:
        raise ConfigError(
            f"'{preset.name}' is a part of Wikipedia, which tasks must not take for the whole", "give another --name"
        )
    if most is not None and most < 1:
        raise ConfigError(f"the number of passages is {most}, it must be at least 1", "leave it out for the preset's")
    size = chosen.size or preset.size
    if not add:
        chosen = replace(chosen, kind=chosen.kind or preset.kind, size=size)
    editions = _editions(preset, langs, dump=dump, source=source)
    return build_corpus(
        name or preset.name,
        editions,
        chosen,
        add=add,
        overwrite=overwrite,
        on_part=on_part,
        prepare=lambda edition, parts: _selected(edition, preset, parts, most, size),
    )


def _editions(preset: Starter, langs: Sequence[str], *, dump: str | None, source: Path | None) -> list[Edition]:
    """Return the editions of a preset's languages (default: all), or of some of them.

    Raises ConfigError for a language that the preset lacks, DataError naming all languages without a dump.
    """
    from mrag_eval.retrievers import NoDumpError, wikipedia_edition

    editions, missing = [], []
    for lang in preset.languages(langs):
        try:
            editions.append(wikipedia_edition(lang, dump=dump, source=source))
        except NoDumpError:
            missing.append(lang)
    if missing:
        there = ",".join(edition.lang for edition in editions)
        others = f", or build the other languages: --langs {there}" if there else "   (docs/corpora.md)"
        raise DataError(f"{source}: no dump of {', '.join(missing)}, for '{preset.name}'", f"fetch them{others}")
    return editions


def _selected(edition: Edition, preset: Starter, folder: Path, most: int | None, size: int) -> Edition:
    """Return the part of an edition that the preset holds.

    The choice is kept in ``folder``, so that a build that goes on reads it instead of choosing again. ``most`` replaces
    the preset's budget; ``size`` is that of a passage.
    """
    from mrag_eval.retrievers import SelectionRecord

    budget = preset.passages[edition.lang] if most is None else most
    if budget is None:
        record = SelectionRecord(preset=preset.name, rule="the whole edition")
        return replace(edition, source=f"{edition.source}, whole, for {preset.name}", selection=record)
    assert edition.pages is not None
    pages, read, nearness = _choice(edition, preset, folder, budget, size)
    record = SelectionRecord(
        preset=preset.name,
        rule=_RULE.format(preset.name, budget),
        chosen=len(pages),
        read=read,
        nearness={_NEARNESS[number]: count for number, count in nearness.items()},
    )
    source = f"{edition.source}, {preset.name}: {len(pages):,} of {read:,} pages"
    reader = edition.pages
    return replace(edition, source=source, selection=record, documents=lambda: reader.documents(pages), pages=None)


def _choice(
    edition: Edition, preset: Starter, folder: Path, budget: int, size: int
) -> tuple[frozenset[str], int, dict[str, int]]:
    from mrag_eval.retrievers import STARTER_VERSION, choose

    assert edition.pages is not None
    key = content_key(edition.source, preset.name, STARTER_VERSION, preset.places, preset.subjects, budget, size)
    file = folder / f"{edition.lang}-{key[:8]}.pages.json"
    held = _held(file)
    if held is None:
        with Wait(f"choosing pages of {edition.lang}", unit="pages") as wait:
            found = choose(_counted(edition.pages.outlines(), wait), preset.topics(edition.lang), budget, size)
        nearness = {str(number): count for number, count in found.nearness.items()}
        held = {"pages": sorted(found.pages), "read": found.read, "nearness": nearness}
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(held))
    return frozenset(held["pages"]), held["read"], held["nearness"]


def _held(file: Path) -> dict[str, Any] | None:
    """Return the choice of an earlier attempt, if there is a whole one."""
    try:
        held = json_value(file.read_bytes())
    except (OSError, JsonFault, ValueError):
        return None
    fits = {"pages": list, "read": int, "nearness": dict}
    whole = isinstance(held, dict) and all(isinstance(held.get(key), kind) for key, kind in fits.items())
    return held if whole else None


def _counted(items: Iterator[T], wait: Wait) -> Iterator[T]:
    for number, item in enumerate(items, start=1):
        if number % _EVERY == 0:
            wait.add(_EVERY)
        yield item
