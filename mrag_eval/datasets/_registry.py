"""Benchmarks, read into one schema: from the Hugging Face hub, or from a local copy of the same files.

    benchmark = load_benchmark({"benchmark": "xquad", "question_language": "de", "path": "data/xquad"})

``data`` is the ``data:`` block of a task's YAML. Every block has ``benchmark`` and may have ``path``, ``split``,
``revision`` and ``seed``; the further keys are the loader's own (``LOADERS[name].block.model_fields``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import ConfigError, did_you_mean, suggesting
from mrag_eval.datasets import (
    _blend as blend,
)
from mrag_eval.datasets import (
    _blend_saq as blend_saq,
)
from mrag_eval.datasets import (
    _bordirlines as bordirlines,
)
from mrag_eval.datasets import (
    _click as click,
)
from mrag_eval.datasets import (
    _demo as demo,
)
from mrag_eval.datasets import (
    _jsonl as jsonl,
)
from mrag_eval.datasets import (
    _mkqa as mkqa,
)
from mrag_eval.datasets import (
    _tydiqa as tydiqa,
)
from mrag_eval.datasets import (
    _xlcost as xlcost,
)
from mrag_eval.datasets import (
    _xor_tydi as xor_tydi,
)
from mrag_eval.datasets import (
    _xquad as xquad,
)
from mrag_eval.datasets import (
    _xrag as xrag,
)
from mrag_eval.datasets._base import Benchmark, DataBlock, LoaderSpec, validate_block
from mrag_eval.datasets._files import iter_csv, iter_jsonl
from mrag_eval.datasets._imbalance import refuse_imbalance
from mrag_eval.datasets._published import Published

__all__ = [
    "LOADERS",
    "Benchmark",
    "DataBlock",
    "LoaderSpec",
    "Published",
    "load_benchmark",
    "read_lines",
    "read_table",
    "validate_data",
]

LOADERS: dict[str, LoaderSpec] = {
    "xquad": LoaderSpec(
        xquad.XquadBlock, xquad.load, "XQuAD, paragraphs and questions in languages drawn at random", versions=True
    ),
    "click": LoaderSpec(click.ClickBlock, click.load, "CLIcK, Korean culture, multiple choice"),
    "blend": LoaderSpec(blend.BlendBlock, blend.load, "BLEnD, everyday culture of 16 countries, multiple choice"),
    "blend_saq": LoaderSpec(
        blend_saq.BlendSaqBlock, blend_saq.load, "BLEnD, short answers with the annotators' votes, in 13 languages"
    ),
    "xrag": LoaderSpec(xrag.XragBlock, xrag.load, "XRAG, questions over eight given news articles"),
    "mkqa": LoaderSpec(mkqa.MkqaBlock, mkqa.load, "MKQA, Natural Questions in 13 languages, with KILT's pages"),
    "xor_tydi": LoaderSpec(xor_tydi.XorTydiBlock, xor_tydi.load, "XOR-TyDi QA, questions asked in five languages"),
    "tydiqa": LoaderSpec(tydiqa.TydiqaBlock, tydiqa.load, "TyDi QA, the English gold passage questions"),
    "xlcost": LoaderSpec(xlcost.XlcostBlock, xlcost.load, "The Cross-Lingual Cost, Arabic-English travel and law"),
    "bordirlines": LoaderSpec(
        bordirlines.BordirlinesBlock,
        bordirlines.load,
        "BordIRlines, disputed territories in their claimants' languages",
    ),
    "demo": LoaderSpec(demo.DemoBlock, demo.load, "the demo's own questions and passages, eight languages"),
    "jsonl": LoaderSpec(jsonl.JsonlBlock, jsonl.load, "a benchmark of one's own, from JSON Lines files", versions=True),
}


# Of a file that the reader has written.
_CORRECT = "correct the file, and run the same command again"


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) of a JSON Lines file; DataError for a line that is none."""
    with suggesting(_CORRECT):
        yield from iter_jsonl(path)


def read_table(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(row number from 1, record) of a CSV file, or of a TSV file by its name; DataError for a missing column."""
    with suggesting(_CORRECT):
        yield from iter_csv(path, columns, delimiter="\t" if path.suffix == ".tsv" else ",")


def validate_data(data: Mapping[str, Any]) -> DataBlock:
    """The validated ``data:`` block of a task, with defaults filled in.

    Raises :class:`~mrag_eval.core.ConfigError` for an unknown benchmark, an unknown key or a value out of range.
    """
    name = data.get("benchmark")
    if name is None:
        raise ConfigError("data: the key 'benchmark' is missing", f"allowed: {', '.join(LOADERS)}")
    if name not in LOADERS:
        raise ConfigError(f"data: unknown benchmark '{name}'{did_you_mean(str(name), LOADERS)}")
    block = validate_block(LOADERS[name].block, data)
    if block.imbalance is not None and not LOADERS[name].versions:
        raise refuse_imbalance(str(name))
    return block


def load_benchmark(data: Mapping[str, Any]) -> Benchmark:
    """Load the benchmark that a ``data:`` block describes; once per process for equal blocks.

    The result is shared: do not change its lists. Raises :class:`~mrag_eval.core.ConfigError` for a wrong block and
    :class:`~mrag_eval.core.DataError` for files that are missing or not what they should be.
    """
    return _load(validate_data(data).model_dump_json())


# Leaves of one group and the ranks of one process ask for the same block several times.
@lru_cache(maxsize=32)
def _load(block_json: str) -> Benchmark:
    spec = LOADERS[json.loads(block_json)["benchmark"]]
    block = spec.block.model_validate_json(block_json)
    with suggesting(_next_step(block)):
        return spec.load(block)


def _next_step(block: DataBlock) -> str:
    """What to do about rows that are not what they should be, or not there: by whose files they are."""
    keys = ", ".join(key for key in type(block).model_fields if key != "benchmark")
    if block.benchmark == "jsonl":
        return f"correct the file, or choose other rows by the keys of the block 'data': {keys}"
    if block.path is not None:
        return f"compare your copy with the published files, or leave data.path out; keys that choose rows: {keys}"
    return f"--metadata data.path=FOLDER reads a copy of your own; keys of the block 'data' that choose rows: {keys}"
