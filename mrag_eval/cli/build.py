"""The commands that build benchmarks."""

from __future__ import annotations

import typer

build_app = typer.Typer(help="Build fresh benchmarks from your own documents.", no_args_is_help=True)
