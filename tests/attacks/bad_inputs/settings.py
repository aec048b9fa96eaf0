"""Wrong values of every setting: the keys come from the declared blocks, so that a new one cannot be forgotten.

Every key is given a value of another type, one out of its range, an empty one, and a neighbour that does not exist.
The message must contain the key, and the file that it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel

from mrag_eval.config import Agent, Judge, Prompt, Retrieval
from mrag_eval.config._file import FileConfig
from mrag_eval.datasets import LOADERS
from tests.attacks.bad_inputs.case import Case

# A list in a list is a value of no setting.
_OTHER_TYPE = [[1]]
_UNKNOWN = "nonsense_key"
_MODEL = {"model": "local-chat-completions"}
# What a member of a union needs in order to be one: its kind, and the keys that it requires.
_NEEDED: dict[str, dict[str, Any]] = {
    "CrossEncoderRerank": {"kind": "cross-encoder"},
    "BgeM3Rerank": {"kind": "bge-m3"},
    "ApiRerank": {"kind": "api", "url": "http://localhost/rerank", "model": "m"},
    "ListwiseRerank": {"kind": "listwise", "model": "writer"},
    "LmSpec": {"backend": "lm", "model": "writer"},
    "NllbSpec": {"backend": "nllb"},
    "GoogleSpec": {"backend": "google"},
    "TableSpec": {"backend": "table"},
    "MilvusCorpus": {"kind": "milvus", "uri": "x.db"},
    "ModelSpec": _MODEL,
    "Grounded": {"model": "m"},
    "Imbalance": {"keep_english": 0.5},
    "GivenVectors": {"source": "vectors.parquet"},
    "Price": {"input": 1.0, "output": 1.0},
}
# Values out of the range of settings whose range is not in their declaration.
_RANGES: dict[str, Any] = {
    "mode": "everywhere",
    "device": "gpu",
    "languages": "klingonese",
    "pool": "klingonese",
    "panel": [],
    "preset": "nope",
    "weights": [-1, 0, 0],
    "detector": "nope",
    "api_key_env": "sk-not a variable",
    "url": "nope",
    "uri": None,
    "planner": None,
    "critic": None,
}


def _blocks(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [block for part in get_args(annotation) for block in _blocks(part)]


def _literals(annotation: Any) -> bool:
    return get_origin(annotation) is Literal or any(map(_literals, get_args(annotation)))


def _types(annotation: Any) -> set[Any]:
    parts = get_args(annotation)
    return {annotation} if not parts or get_origin(annotation) is Literal else set().union(*map(_types, parts))


def _wrong(key: str, field: Any) -> Iterator[tuple[str, Any]]:
    """Yield values that the field must refuse, each with its kind."""
    yield "type", _OTHER_TYPE
    for rule in field.metadata:
        for name, step in (("ge", -1), ("gt", 0), ("le", 1), ("lt", 0)):
            if hasattr(rule, name):
                yield name, getattr(rule, name) + step
    if _RANGES.get(key) is not None:
        yield "range", _RANGES[key]
    types = _types(field.annotation)
    if _literals(field.annotation) and not types & {str, Path}:
        yield "choice", "nonsense_value"
    if types & {int, float, bool} and str not in types:
        yield "text", "many"
        yield "empty", ""
    if types & {int, float} and bool not in types:
        yield "truth", True
    elif str in types:
        yield "number", 5


def _faulty(model: type[BaseModel], base: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (key, kind of fault, block with that fault) for every key of a block, and of the blocks in it."""
    yield _UNKNOWN, "unknown", {**base, _UNKNOWN: 1}
    for key, field in model.model_fields.items():
        inner = _blocks(field.annotation)
        for kind, value in _wrong(key, field):
            yield key, kind, {**base, key: value}
        for block in inner:
            needed = _NEEDED.get(block.__name__, {})
            for name, kind, found in _faulty(block, needed):
                yield name, f"{key}.{name} of {block.__name__}: {kind}", {**base, key: _placed(key, found)}


def _placed(key: str, block: dict[str, Any]) -> Any:
    """Return a block in the way its key holds it: under a name, in a list, or as it is."""
    return {"x": block} if key in ("corpora", "models") else [block] if key == "judges" else block


_BLOCKS: dict[str, type[BaseModel]] = {"retrieval": Retrieval, "agent": Agent, "prompt": Prompt, "judge": Judge}
_TASK: dict[str, Any] = {"metrics": ["match"], "data": {"benchmark": "jsonl", "path": "questions.jsonl"}}
# Keys that a benchmark requires.
_DATA: dict[str, dict[str, Any]] = {
    "afriqa": {"language": "ha"},
    "blend": {"country": "Algeria"},
    "blend_saq": {"country": "Algeria"},
    "mkqa": {"language": "de"},
    "nomiracl": {"language": "de"},
    "xor_tydi": {"language": "ar"},
    "xrag": {"setting": "mono", "language": "de"},
    "xlcost": {"domain": "travel"},
    "demo": {"language": "en"},
}


def _task(number: int, blocks: Mapping[str, Any]) -> str:
    body = yaml.safe_dump({"task": f"wrong{number}", **_TASK, **deepcopy(dict(blocks))}, sort_keys=False)
    return f"class: !function mrag_eval.task.RagTask\n{body}"


def _task_faults() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, model in _BLOCKS.items():
        for key, kind, block in _faulty(model, {}):
            yield key, f"{name}.{key}: {kind}", {name: block}
    for name, loader in LOADERS.items():
        base = {"benchmark": name, **_DATA.get(name, {})}
        for key, kind, block in _faulty(loader.block, base):
            yield key, f"data of {name}, {key}: {kind}", {"data": block}


# Name of a task file -> (its content, the key that its fault must name, a title).
TASK_FILES: dict[str, tuple[str, str, str]] = {
    f"wrong{number}.yaml": (_task(number, blocks), key, title)
    for number, (key, title, blocks) in enumerate(_task_faults())
}


def _config_faults() -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield from _faulty(FileConfig, {})
    for name, loader in LOADERS.items():
        for key, kind, block in _faulty(loader.block, {}):
            yield key, f"data.{name}, {key}: {kind} of {name}", {"data": {name: block}}


CASES = [
    Case(
        "doctor --config",
        ["wrong.yaml", key],
        {"wrong.yaml": yaml.safe_dump({"models": {"writer": _MODEL}, **block})},
        {"MRAG_CONFIG": "wrong.yaml"},
        title=f"config file, {kind if ' of ' in kind else f'{key}: {kind}'}",
    )
    for key, kind, block in _config_faults()
]
