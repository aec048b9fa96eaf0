"""The commands for indexes."""

from __future__ import annotations

from mrag_eval.cli._index_build import build
from mrag_eval.cli._index_import import import_
from mrag_eval.cli._index_use import center, info, merge, milvus, search
from mrag_eval.cli._options import App

index_app = App(help="Build, import, merge, inspect and search the indexes of passages.", no_args_is_help=True)
index_app.command(short_help="Build an index from documents, or add documents to one.")(build)
index_app.command("import", short_help="Make an index from vectors that exist already, and check them.")(import_)
index_app.command(short_help="Merge several indexes into one.")(merge)
index_app.command(short_help="Compute the mean vector of each language of an index.")(center)
index_app.command(short_help="Load an index into Milvus.")(milvus)
index_app.command(short_help="Show what an index contains; --verify checks its files.")(info)
index_app.command(short_help="Search an index and print the passages.")(search)
