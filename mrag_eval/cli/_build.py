"""The commands that build benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._options import App, NewFile, command, form_of, write_or_print
from mrag_eval.platform import Natural

if TYPE_CHECKING:
    from mrag_eval.building import QaBuilt


@command()
def xrag(
    corpus: Path,
    *,
    output: Path,
    settings: Path | None = None,
    model: str | None = None,
    review: list[Path] | None = None,
    review_translations: list[Path] | None = None,
) -> None:
    """Build questions on two news articles each, from dated articles in several languages.

    The tasks `xrag_mono_*` and `xrag_multi_*` can read the set. Run the command again to continue after an
    interruption.

    Args:
        corpus (ARTICLES): The articles: a .jsonl, .jsonl.gz, .parquet or .json file, or a folder of such files.
        output (-o): The folder of the set, its datasheet and its steps.
        settings: A YAML file of settings: languages, limits, models, prompts, ...
        model: The model of the config file for every step that the settings name no model for.
        review: A sheet for a person: written if the file does not exist, otherwise read. Repeat it for each person.
        review_translations: The same for the translations, which are reviewed after the questions.
    """
    from mrag_eval.building import build_xrag, read_settings, yield_table

    changes: dict[str, Any] = {} if model is None else {"models": {"default": model}}
    built = build_xrag(
        corpus,
        output,
        read_settings(settings, **changes),
        review_sheets=tuple(review or ()),
        translation_sheets=tuple(review_translations or ()),
        say=typer.echo,
    )
    typer.echo(yield_table(built.reports))
    typer.echo(f"datasheet  {built.datasheet}")
    if built.sheet is not None:
        typer.echo(f"review     {built.sheet}: fill it in, then run the same command again")
        return
    typer.echo(f"set        {built.output}: {built.rows:,} rows")
    typer.echo(f"use it     mrag-eval run ... --tasks xrag_multi --metadata data.path={output}")


@command("corpus output model checker settings seed review kind embedder device", "mrag_eval.building:build_qa")
def qa(
    corpus: Path,
    *,
    output: Path,
    model: str,
    checker: str | None = None,
    settings: Path | None = None,
    seed: Natural | None = None,
    review: list[Path] | None = None,
    **index: Any,
) -> None:
    """Build questions on your own documents. The language of each question is drawn independently of its document's
    (The Cross-Lingual Cost, section 3.2).

    Run the command again to continue after an interruption. The steps and dropped items are in OUTPUT/steps.

    Args:
        corpus: The documents: a .jsonl or .parquet file, or a folder of such files (id, lang, title, text).
        output (-o): The folder of the benchmark. An unfinished one is continued.
        model: The model of the config file that writes questions and answers.
        checker: The model that checks them. The default is the same model.
        settings: A YAML file of settings: categories and their shares, sizes, balance.
        seed: Random seed of the draws of languages, categories and questions.
        review: A sheet for annotators: written if the file does not exist, otherwise read. May be repeated.
    """
    from mrag_eval.building import build_qa, read_qa_config
    from mrag_eval.models import get
    from mrag_eval.platform import known_device, one_of

    one_of("--kind", index["kind"], ("dense", "bm25", "hybrid"))
    known_device(index["device"])
    config = read_qa_config(settings)
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    built = build_qa(
        corpus, output, config, get(model), get(checker or model), sheets=review or (), say=typer.echo, **index
    )
    _print(built, review or [])


def _print(built: QaBuilt, sheets: list[Path]) -> None:
    from mrag_eval.building import yield_table

    if built.rows is None:
        typer.echo(f"review     {sheets[0]}: fill it in, then run the same command again")
        return
    typer.echo(yield_table(built.reports))
    for line in built.review.lines() if built.review is not None else ():
        typer.echo(line)
    pairs = ", ".join(f"{pair} {n:,}" for pair, n in list(built.pairs.items())[:12])
    typer.echo(f"set        {built.folder}: {built.rows:,} questions ({pairs}{', …' if len(built.pairs) > 12 else ''})")
    for note in built.notes:
        typer.echo(f"note       {note}")
    typer.echo(f"datasheet  {built.folder / 'datasheet.md'}")
    typer.echo(f"use it     {built.command()} --model …")


@command("source output model kind embedder device", "mrag_eval.building:build_territories")
def territories(source: Path, *, output: Path, model: str | None = None, **index: Any) -> None:
    """Build questions on disputed territories in English and every claimant's language, and an index of the passages.

    The set has the layout of BordIRlines.

    Args:
        source: A folder of tables (.csv, .tsv or .jsonl): territories, claimants, names, passages.
        output (-o): The folder of the set.
        model: The model of the config file that writes names and questions missing from the tables.
    """
    from mrag_eval.building import build_territories
    from mrag_eval.models import get
    from mrag_eval.platform import known_device, one_of

    one_of("--kind", index["kind"], ("dense", "bm25", "hybrid"))
    known_device(index["device"])
    built = build_territories(source, output, get(model) if model is not None else None, say=typer.echo, **index)
    asked = ", ".join(f"{lang} {n:,}" for lang, n in built.questions.items())
    typer.echo(
        f"{built.folder}: {sum(built.questions.values()):,} questions on {built.territories:,} territories ({asked})"
    )
    typer.echo(f"passages   {', '.join(f'{lang} {n:,}' for lang, n in sorted(built.passages.items()))}")
    if built.missing:
        first = ", ".join(f"{subject} ({lang})" for subject, lang in built.missing[:3])
        typer.echo(f"missing    {len(built.missing):,} of {built.wanted:,} subjects and languages, e.g. {first}")
    typer.echo(f"datasheet  {built.folder / 'datasheet.md'}")
    typer.echo(f"use it     {built.command()} --model …")


@command()
def report(
    folder: Path,
    results: list[Path] | None = None,
    *,
    metric: str | None = None,
    form: str | None = None,
    output: NewFile | None = None,
) -> None:
    """Describe a set that was built: its types, languages and lengths, and the overlap with its sources.

    With results, the report adds accuracy with and without documents.

    Args:
        folder: The folder of the set (--output of the build).
        results: Result files of runs on the set, or folders that contain them (--output_path).
        metric: The metric that decides whether an answer is right. The default is the judges' if there are any.
        form (--format): The format of the tables: md, csv or json. The default is md.
        output (-o): Write to this file. Its extension sets the format: .md, .csv or .json.
    """
    from mrag_eval.building import quality_tables
    from mrag_eval.report import render

    form = form_of(form, output)
    write_or_print(render(quality_tables(folder, results or (), metric), form), output)


build_app = App(help="Build new benchmarks from your own documents.", no_args_is_help=True)
build_app.command(short_help="Build questions on two news articles each, like XRAG.")(xrag)
build_app.command(short_help="Build questions on your own documents.")(qa)
build_app.command(short_help="Build questions on disputed territories, like BordIRlines.")(territories)
build_app.command(short_help="Describe a set that was built, and how hard it is.")(report)
