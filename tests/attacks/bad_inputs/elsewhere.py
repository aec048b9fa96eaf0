"""Folders and files from elsewhere that are built to hang, to mislead or to fill the memory."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator

from tests.attacks.bad_inputs.case import PIPE, Case

_RUN = "run --model oracle_answer --include_path tasks --tasks mine --metadata retrieval.run_folder=found"
_DATE = "2026-01-01T00-00-00.000000"
_RESULTS, _SAMPLES = f"full/some-model/results_{_DATE}.json", f"a/some-model/samples_qa_{_DATE}.jsonl"
# each line stands for ten of the line before
_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
BOMBS = {"aliases of aliases": _BOMB, "an alias inside itself": "models: &m {writer: *m}\n"}
_EMPTY_LINES = gzip.compress(b"\n" * 3_000_000) + gzip.compress(b'{"id": "a", "text": "x", "lang": "en"}\n')


def _yaml() -> Iterator[Case]:
    for what, text in BOMBS.items():
        for command, file in (
            ("doctor --config", "mrag.yaml"),
            ("gate --baseline a --candidate b --rules wrong.yaml", "wrong.yaml"),
            ("build qa corpus.jsonl -o new --model writer --settings wrong.yaml", "wrong.yaml"),
        ):
            env = {"MRAG_CONFIG": file} if file == "mrag.yaml" else {}
            yield Case(command, [file, "aliases"], {file: text}, env=env, title=f"{command}: {what}")


def _pipes() -> Iterator[Case]:
    for file in ("manifest.json", "mine.jsonl"):
        yield Case(_RUN, [file], {f"found/{file}": PIPE}, title=f"a pipe for {file} of a run folder")
    for file in ("manifest.json", "passages/en.text", "bm25/en/data.csc.index.npy"):
        yield Case("index search idx water", ["idx"], {f"idx/{file}": PIPE}, title=f"a pipe for {file} of an index")
    for command in ("report full", "verify full", "rerun full", "export full --format latex -o new"):
        yield Case(command, [_RESULTS], {_RESULTS: PIPE}, title=f"{command}: a pipe for the results")
    for command in ("compare a b --metric acc", "judge inspect a"):
        yield Case(command, [_SAMPLES], {_SAMPLES: PIPE}, title=f"{command}: a pipe for the samples")
    beside = {"rules.yaml": "rules: [{metric: acc, max_drop: 0.1}]\n", "log.jsonl": '{"query": "?", "reply": "!"}\n'}
    for command in (
        *("gate --baseline pipe --candidate b --rules rules.yaml", "compare pipe b --metric acc"),
        *("trace q1 pipe", "strategies pipe pipe -o new", "score pipe -o new"),
        *("score log.jsonl -o new --qrels pipe", "build qa pipe -o new --model writer"),
    ):
        yield Case(command, ["pipe"], {"pipe": PIPE, **beside}, title=f"{command}: a pipe that the user names")


def _rows(number: int) -> Callable[[str], str]:
    """Return a change of the manifest in which the task has another number of rows."""

    def changed(text: str) -> str:
        body = json.loads(text)
        assert body["tasks"]["mine"]["rows"] == 15
        body["tasks"]["mine"]["rows"] = number
        return json.dumps(body)

    return changed


def _counts(key: str, number: int) -> Callable[[str], str]:
    """Return a change of an index's manifest in which it, or its first language, has another number."""

    def changed(text: str) -> str:
        body = json.loads(text)
        for record in (body, *body["languages"].values()):
            if key in record:
                record[key] = number
                return json.dumps(body)
        raise AssertionError(key)

    return changed


def _numbers() -> Iterator[Case]:
    for number in (-1, 10**18, 14):
        yield Case(_RUN, ["found", "rows"], {"found/manifest.json": _rows(number)}, title=f"{number} rows")
    for number, key in ((-5, "passages"), (10**18, "passages"), (-5, "documents")):
        change = {"idx/manifest.json": _counts(key, number)}
        yield Case("index search idx water", ["idx"], change, title=f"an index of {number} {key}")


def _renamed(text: str) -> str:
    first, *rest = text.splitlines()
    return "\n".join([json.dumps(json.loads(first) | {"id": "q\n2 Q0 forged 1 9 x"}), *rest, ""])


def _first_again(text: str) -> str:
    return text + text.splitlines()[0] + "\n"


def _rest() -> Iterator[Case]:
    yield Case(
        _RUN, ["mine.jsonl, line 1", "control character"], {"found/mine.jsonl": _renamed}, title="an id of lines"
    )
    for command in ("compare a b --metric acc", "gate --save new.json a", "judge inspect a"):
        yield Case(command, [_SAMPLES, "1, such as"], {_SAMPLES: _first_again}, title=f"{command}: a row twice")
    yield Case(_RUN, ["found/mine.jsonl", "twice"], {"found/mine.jsonl": _first_again}, title="a retrieved row twice")
    for content in ("", "\n\n"):
        title = f"no pages in {len(content)} characters"
        yield Case("corpus kilt --from wrong.json", ["wrong.json", "no page"], {"wrong.json": content}, title=title)
    yield Case("retrieve --include_path tasks --tasks mine -o full", ["full", "results"], title="rows among results")
    empty = {"wrong.jsonl.gz": _EMPTY_LINES}
    yield Case("index build wrong.jsonl.gz new --kind bm25", ["wrong.jsonl.gz, line 1", "empty lines"], empty)
    for what, tasks in {
        "no settings": {"qa": {"rows": []}},
        "settings: a list": {"qa": {"settings": [], "rows": []}},
        "rows: a number": {"qa": {"settings": {"failed": []}, "rows": 5}},
        "tasks: a list": ["qa"],
    }.items():
        body = json.dumps({"format": 4, "tasks": tasks})
        gate = "gate --baseline base.json --candidate b --rules rules.yaml"
        yield Case(gate, ["base.json", "a damaged baseline file"], {"base.json": body}, title=f"a baseline, {what}")


CASES = [*_yaml(), *_pipes(), *_numbers(), *_rest()]
