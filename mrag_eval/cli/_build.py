"""The commands that build benchmarks."""

from __future__ import annotations

import typer

from mrag_eval.cli._build_qa import qa
from mrag_eval.cli._build_report import report
from mrag_eval.cli._build_territories import territories
from mrag_eval.cli._build_xrag import xrag

build_app = typer.Typer(help="Build fresh benchmarks from your own documents.", no_args_is_help=True)
build_app.command(short_help="Questions over two news articles each, from a dated corpus in several languages.")(xrag)
build_app.command(short_help="Questions on your own documents, in languages drawn at random.")(qa)
build_app.command(short_help="Questions on disputed territories of your own, in their claimants' languages.")(
    territories
)
build_app.command(short_help="What a built set is like: types, languages, overlap, and how hard it is.")(report)
