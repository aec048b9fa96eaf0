"""The commands that build benchmarks."""

from __future__ import annotations

from mrag_eval.cli._build_qa import qa
from mrag_eval.cli._build_report import report
from mrag_eval.cli._build_territories import territories
from mrag_eval.cli._build_xrag import xrag
from mrag_eval.cli._options import App

build_app = App(help="Build new benchmarks from your own documents.", no_args_is_help=True)
build_app.command(short_help="Build questions on two news articles each, like XRAG.")(xrag)
build_app.command(short_help="Build questions on your own documents.")(qa)
build_app.command(short_help="Build questions on disputed territories, like BordIRlines.")(territories)
build_app.command(short_help="Describe a set that was built, and how hard it is.")(report)
