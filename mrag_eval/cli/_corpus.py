"""The commands for corpora that tasks find by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._index_use import echo_part, passages_of
from mrag_eval.cli._options import App, command
from mrag_eval.platform import Count

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Starter

corpus_app = App(help="Build and list the corpora that tasks find by name.", no_args_is_help=True)
_RECORDS = ("mrag_eval.retrieval:CorpusSettings", "mrag_eval.retrieval:build_corpus")


@corpus_app.command(short_help="Build a Wikipedia corpus from the hub or from XML dumps.")
@command(
    "langs dump source preset name kind embedder size device batch_size workers limit passages plan add overwrite",
    *_RECORDS,
)
def wikipedia(
    *,
    langs: str = "",
    dump: str | None = None,
    source: Path | None = None,
    preset: str | None = None,
    name: str | None = None,
    limit: Count | None = None,
    passages: Count | None = None,
    plan: bool = False,
    add: bool = False,
    overwrite: bool = False,
    **settings: Any,
) -> None:
    """Build a corpus of Wikipedia, in passages of 100 words with their titles.

    Run the command again to continue an interrupted build.

    Args:
        langs: The languages, separated by commas, such as en,ko,zh.
        dump (YYYYMMDD): The date of the dump. The default is 20231101, that of the hub.
        source (--from): Read a copy of the hub's dataset, a folder of XML dumps, or one dump.
        preset: Add the languages of a paper: coral (13 languages). Or build a starter, a part of Wikipedia for a first
            number: coral-small, mkqa-small or bordirlines-small; --langs then names some of its languages.
        name: The name of the corpus, for retrieval.corpus. The default is wikipedia, or the starter's.
        limit: Number of articles of each language to index, for a trial. The default is all.
        passages: The most passages of each language of a starter. The default is the starter's.
        plan: Print what a starter would take in pages, disk and time, and build nothing.
    """
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.retrieval import CorpusSettings, build_starter, preset_languages
    from mrag_eval.retrievers import starters, wikipedia_edition

    some = [lang.strip() for lang in langs.split(",") if lang.strip()]
    if preset is not None and preset in starters():
        if limit is not None:
            raise typer.BadParameter("cannot be combined with a starter; --passages is its limit", param_hint="--limit")
        starter = starters()[preset]
        if plan:
            _print_the_plan(starter, some, settings["kind"], passages)
            return
        lines_of_progress()
        index = build_starter(
            starter,
            some,
            CorpusSettings(**settings),
            name=name,
            dump=dump,
            source=source,
            most=passages,
            add=add,
            overwrite=overwrite,
            on_part=echo_part,
        )
        typer.echo(f"{index.path}: {len(index):,} passages in {len(index.counts)} languages, a part of Wikipedia")
        typer.echo(f"use it     --metadata retrieval.corpus={name or preset}")
        return
    for option, given in (("--passages", passages is not None), ("--plan", plan)):
        if given:
            raise typer.BadParameter(f"needs --preset {' or '.join(starters())}", param_hint=option)

    wanted = [*some, *preset_languages(preset)]
    editions = [wikipedia_edition(lang, dump=dump, source=source) for lang in dict.fromkeys(wanted)]
    _build(name or "wikipedia", editions, settings, limit, add, overwrite)


@corpus_app.command(short_help="Build a corpus of KILT, the English Wikipedia of 2019.")
@command("source name kind embedder size device batch_size workers limit add overwrite", *_RECORDS)
def kilt(
    *,
    source: Path,
    name: str = "kilt",
    limit: Count | None = None,
    add: bool = False,
    overwrite: bool = False,
    **settings: Any,
) -> None:
    """Build a corpus of KILT's knowledge source, the English Wikipedia of August 2019, in passages of 100 words.

    Its documents have the ids of Wikipedia's pages.

    Args:
        source (--from): The file kilt_knowledgesource.json, or its folder.
        name: The name of the corpus, for retrieval.corpus.
        limit: Number of articles of each language to index, for a trial. The default is all.
    """
    from mrag_eval.retrievers import kilt_edition

    _build(name, [kilt_edition(source)], settings, limit, add, overwrite)


@corpus_app.command(short_help="Build the corpus of BordIRlines from dumps of Wikipedia, or from pages.")
@command(
    "pages borderlines wikipedia dump titles(CSV) links(FILE) name kind embedder device overwrite",
    "mrag_eval.retrieval:build_bordirlines",
)
def bordirlines(
    *,
    pages: Path | None = None,
    borderlines: Path | None = None,
    wikipedia: Path | None = None,
    dump: str | None = None,
    links: Path | None = None,
    **settings: Any,
) -> None:
    """Build the corpus of pages on territories and claimants that the tasks bordirlines_..._own search.

    Pages are found in dumps by their titles, or given in a file. They are cut into paragraphs, and missing pages are
    named.

    Args:
        pages (--from): A JSON Lines file of pages: subject, lang, title, text. Without it, pages are looked up by
            title.
        borderlines: A copy of the dataset manestay/borderlines. The default reads the hub's.
        wikipedia: A folder of dumps of Wikipedia, in which pages are looked up by title.
        dump (YYYYMMDD): The date of the dumps.
    """
    from mrag_eval.retrieval import build_bordirlines
    from mrag_eval.retrievers import wikipedia_edition

    if pages is not None and (settings["titles"] is not None or links is not None):
        raise typer.BadParameter(
            "cannot be combined with --from, which names the pages", param_hint="--titles, --links"
        )
    if pages is None and links is None and wikipedia is not None:
        links = max(wikipedia.glob(f"enwiki-{dump or '*'}-langlinks.sql*"), default=None)

    def edition_of(lang: str) -> Edition:
        return wikipedia_edition(lang, dump=dump, source=wikipedia)

    found = build_bordirlines(
        pages,
        {} if borderlines is None else {"borderlines": str(borderlines)},
        edition_of=None if wikipedia is None and pages is None else edition_of,
        links=links,
        **settings,
    )
    typer.echo(f"{found.index.path}: {found.pages:,} pages, {len(found.index):,} paragraphs")
    if found.missing:
        first = ", ".join(f"{subject} ({lang})" for subject, lang in found.missing[:3])
        typer.echo(f"missing    {len(found.missing):,} of {found.wanted:,} pages, e.g. {first}")
    typer.echo("use it     mrag-eval run --tasks bordirlines_rel_langs_direct_own ...")


def _print_the_plan(preset: Starter, langs: Sequence[str], kind: str | None, most: int | None) -> None:
    """Print what a starter takes, by language and in all."""
    from mrag_eval.core import pipe_table
    from mrag_eval.retrieval import plan_starter

    kind = kind or preset.kind
    planned = plan_starter(preset, langs, kind=kind, most=most)
    head = ("language", "~pages read", "~passages there", "~passages kept", "~GB", "~minutes")
    rows = [
        (
            one.lang,
            f"{one.pages:,}",
            f"{one.whole:,}",
            f"{one.kept:,}" + (" (whole)" if one.kept == one.whole else ""),
            f"{one.gigabytes:,.2f}",
            f"{one.seconds / 60:,.1f}",
        )
        for one in planned
    ]
    kept, whole = sum(one.kept for one in planned), sum(one.whole for one in planned)
    size, hours = sum(one.gigabytes for one in planned), sum(one.seconds for one in planned) / 3600
    typer.echo(f"{preset.name}: a part of Wikipedia for {preset.benchmarks}; {kind}")
    typer.echo(pipe_table(head, rows))
    typer.echo(
        f"in all     ~{kept:,} of ~{whole:,} passages, ~{size:,.1f} GB, ~{hours:,.1f} hours from a copy of the hub's "
        "dataset, the download aside"
    )
    typer.echo("           sizes are those of November 2023, rounded or estimated; rates are of one core of a laptop")
    typer.echo(f"build it   mrag-eval corpus wikipedia --preset {preset.name} --from COPY   (docs/corpora.md)")


def _build(
    name: str, editions: list[Edition], settings: dict[str, Any], limit: int | None, add: bool, overwrite: bool
) -> None:
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.retrieval import CorpusSettings, build_corpus

    lines_of_progress()
    if limit is not None:
        editions = [edition.first(limit) for edition in editions]
    index = build_corpus(name, editions, CorpusSettings(**settings), add=add, overwrite=overwrite, on_part=echo_part)
    typer.echo(f"{index.path}: {passages_of(index)}")
    typer.echo(f"use it     --metadata retrieval.corpus={name}")


@corpus_app.command("list", short_help="List the corpora on this machine.")
@command()
def list_corpora(*, as_json: bool = False) -> None:
    """List every corpus with its languages, its settings, its dumps, its size and its folder.

    Args:
        as_json (--json): Print the list as JSON.
    """
    from mrag_eval.retrieval import corpora_folder, described, known_corpora, unfinished_corpora

    known = known_corpora()
    found = [described(name, where) for name, where in known.items()]
    unfinished = unfinished_corpora()
    if as_json:
        import json

        typer.echo(json.dumps({"corpora": found, "unfinished": {k: str(v) for k, v in unfinished.items()}}, indent=2))
        return
    if not found and not unfinished:
        typer.echo(f"no corpora in {corpora_folder()} or under corpora: in the config file")
        typer.echo("build one  mrag-eval corpus wikipedia --langs en,ko")
    for corpus in found:
        typer.echo(f"{corpus['name']}: {corpus['summary']}\n    {corpus['path']}")
        for lang, source in corpus.get("sources", {}).items():
            typer.echo(f"    {lang:<8} {source}")
    for name, folder in unfinished.items():
        if name in known:
            typer.echo(f"{name}: parts of a build are left ({folder}); the next --add or --overwrite clears them")
        else:
            typer.echo(f"{name}: unfinished ({folder}); run the command that began it again")
