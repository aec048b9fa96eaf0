"""Code that a file from elsewhere names: nothing that reads the file imports it, whatever the key."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.cli import _harness as harness
from mrag_eval.cli import main
from mrag_eval.config import (
    ModelSpec,
    SystemSpec,
    load_config,
    read_task_yaml,
    split_config,
    system_spec,
)
from mrag_eval.config._file import FileConfig
from mrag_eval.core import Passage
from mrag_eval.datasets import LOADERS, load_benchmark
from mrag_eval.models import RagSystem
from mrag_eval.platform import ConfigError, MragError, close_stores, reading_back, tasks_folder
from mrag_eval.report import read_samples, rerun, verify
from mrag_eval.retrievers import build_index, load_index
from mrag_eval.scoring import METRIC_NAMES
from mrag_eval.systems import ask_with, reply_of
from tests.report.test_rerun import results_file
from tests.task.test_hook import run
from tests.worlds import afriqa, finished_runs, mkqa, nomiracl, xlcost, xrag
from tests.worlds.data_blocks import NEEDED
from tests.worlds.small import BASE, write_task, write_world

# Each leaves its mark once it is imported; the last two are there on every machine, and are only looked for.
NAMES = ("planted:ask", "received/planted.py:ask", "received/planted.ask", "subprocess:getoutput", "os:system")
PLANTED = "from pathlib import Path\nPath('imported').touch()\ndef ask(*given, **named):\n    return 'x'\n"
# A command that holds one of these says where code is.
CODE = re.compile(r"planted|subprocess|os:system")
Key = tuple[str | int, ...]


def leaves(value: Any, path: Key = ()) -> Iterator[Key]:
    """Yield where the values of a file are; of a list, the list and its first."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
        return
    yield path
    if isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))


def planted(content: Any, path: Key, name: str) -> Any:
    """Return the content with the name at one place, in a list where there is one."""
    changed = deepcopy(content)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = [name] if isinstance(at[path[-1]], list) else name
    return changed


@pytest.fixture(scope="module")
def received(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Path:
    """Return a folder with a run of one of our tasks in ``received``, and the code that is planted beside it."""
    folder = tmp_path_factory.mktemp("elsewhere")
    finished_runs.xquad(folder, test_data)
    (folder / "out").rename(folder / "received")
    for place in (folder, folder / "received"):
        (place / "planted.py").write_text(PLANTED, "utf-8")
    return folder


@pytest.fixture
def _there(received: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(received)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return a folder of tasks in which there is that of :func:`results_file`."""
    (tmp_path / "own" / "xquad").mkdir(parents=True)
    (tmp_path / "own" / "xquad" / "xquad_rag.yaml").write_text("", "utf-8")
    return tmp_path / "own"


def read(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    close_stores()


@pytest.mark.slow
@pytest.mark.usefixtures("_there")
def test_no_key_of_results_that_are_read_back_runs_code(received: Path) -> None:
    """Walk over every key of a result file: what repeats the run, verifies it or compares it with its task."""
    (path,) = received.rglob("results_*.json")
    text = path.read_text("utf-8")
    content = json.loads(text)
    walked = 0
    try:
        for key in leaves(content):
            if "scores" in key or key[0] in ("results", "n-samples", "versions"):
                continue  # numbers
            for name in NAMES[:3]:
                path.write_text(json.dumps(planted(content, key, name)), "utf-8")
                readers: list[Callable[[], Any]] = [lambda: rerun(path, Path("again"), tasks_folder())]
                if name == NAMES[0] and key[0] in ("configs", "config", "group_subtasks"):
                    readers.append(lambda: verify([path], tasks_folder()))
                for reader in readers:
                    try:
                        found = reader()
                    except MragError:
                        # a value of another kind ends the reading, before or after
                        continue
                    assert not CODE.search(getattr(found, "command", "")), (key, name, found)
                assert not Path("imported").exists(), (key, name)
                walked += 1
    finally:
        path.write_text(text, "utf-8")
    assert walked > 500


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("command", ["report", "export --format latex -o new", "judge inspect", "verify", "rerun"])
def test_no_reader_of_results_runs_code(command: str, received: Path) -> None:
    """Plant the name in every setting at once, each in its place."""
    (path,) = received.rglob("results_*.json")
    text = path.read_text("utf-8")
    content = json.loads(text)
    try:
        for key in leaves(content):
            if key[0] == "configs" and {*key} & {"retrieval", "metrics", "agent", "judge", "prompt", "overrides"}:
                content = planted(content, key, "planted:ask")
        for part in ("retrieval", "metrics", "agent", "judge", "prompt"):
            changed = json.loads(text)
            changed["configs"]["xquad_rag_de"]["measurement"]["setting"][part] = ["planted:ask"]
            path.write_text(json.dumps(changed), "utf-8")
            read([*shlex.split(command), "received"])
            assert not Path("imported").exists(), part
    finally:
        path.write_text(text, "utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("_there")
def test_no_key_of_a_run_folder_runs_code(received: Path, tmp_path: Path) -> None:
    """Walk over the manifest of rows that somebody retrieved, and over the first row, while a task takes them."""
    world = write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    mrag_eval.retrieve("small", include=world, limit=2, output=world / "rows")
    walked = 0
    for name in ("manifest.json", "small.jsonl"):
        file = world / "rows" / name
        text = file.read_text("utf-8")
        first, *rest = [text] if name == "manifest.json" else text.splitlines()
        content = json.loads(first)
        for key in leaves(content):
            file.write_text("\n".join([json.dumps(planted(content, key, "planted:ask")), *rest]) + "\n", "utf-8")
            with suppress(MragError):
                run(world, limit=2, metadata={"retrieval.run_folder": str(world / "rows")})
            assert not Path("imported").exists(), (name, key)
            walked += 1
        file.write_text(text, "utf-8")
    assert walked > 50, walked


SAID: dict[str, Callable[[str], dict[str, Any]]] = {
    "a metric": lambda name: {"given": {"metrics": [name]}},
    "a metric among others": lambda name: {"given": {"metrics": [name, "match"]}},
    "a retriever": lambda name: {"given": {"retrieval": {"retriever": name}}},
    "a retriever's function": lambda name: {"given": {"retrieval": {"retriever": {"function": name}}}},
    "of the config file": lambda name: {"from_file": {"data": {"path": name}}},
    "a system": lambda name: {"config": {"model": "rag", "model_args": {"system": name}}},
    "a system in a text": lambda name: {"config": {"model": "rag", "model_args": f'system="{name}"'}},
    "a type of model": lambda name: {"config": {"model": name}},
    "an argument": lambda name: {"config": {"model_args": {"dtype": name}}},
    "an argument that nobody knows": lambda name: {"config": {"model_args": {"custom_pipeline": name}}},
    "decoding": lambda name: {"config": {"gen_kwargs": {"custom_generate": name}}},
    "a device": lambda name: {"config": {"device": name}},
    "a batch size": lambda name: {"config": {"batch_size": name}},
    "a seed": lambda name: {"config": dict.fromkeys(("random_seed", "numpy_seed", "torch_seed", "fewshot_seed"), name)},
    "a task": lambda name: {"group_subtasks": {name: ["xquad_rag"]}},
    "an instruction": lambda name: {"system_instruction": name},
}


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", SAID)
def test_the_command_to_paste_names_no_code(key: str, name: str, tmp_path: Path, own: Path) -> None:
    """The note has it, and the command only if the reader trusts the file."""
    path = results_file(tmp_path, **SAID[key](name))
    found = rerun(path, Path("again"), own)
    assert not CODE.search(found.command)
    assert found.withheld
    assert name in found.notes[0]
    assert "--trust" in found.notes[0]
    trusted = rerun(path, Path("again"), own, trust=True)
    assert (name in trusted.command, trusted.withheld) == (True, ())


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"model_args": {"pretrained": "org/model", "trust_remote_code": True}}, False),
        ({"model_args": {"pretrained": "received"}}, False),
        ({"model_args": {"pretrained": "./model"}}, False),
        ({"model_args": {"pretrained": "org/model", "use_safetensors": False}}, False),
        ({"model_args": {"model": "m", "base_url": "http://h/v1"}}, False),
        ({"model_args": {"model": "m", "header": {"X-Part": "x"}}}, False),
        ({"gen_kwargs": {"assistant_model": "org/model"}}, False),
        ({"model_args": {"pretrained": "org/model", "dtype": "bfloat16", "max_length": 4096}}, True),
        ({"gen_kwargs": {"temperature": 0.6, "until": ["\n\n", "."]}}, True),
    ],
)
def test_hosts_folders_and_permissions_are_withheld_too(
    settings: Any, allowed: bool, tmp_path: Path, own: Path
) -> None:
    found = rerun(results_file(tmp_path, config=settings), Path("again"), own)
    assert (found.withheld == ()) is allowed


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_back_imports_nothing(name: str) -> None:
    """One importer serves tasks, metrics and systems, and refuses what the user did not name."""
    config = read_task_yaml(next(tasks_folder().rglob("xquad_rag_de.yaml"))) | {"metrics": [name]}
    refused = pytest.raises(ConfigError, match="a file from elsewhere runs none")
    with reading_back(Path("received/results.json")), refused:
        split_config(config, METRIC_NAMES)
    assert not Path("imported").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("_there")
def test_nothing_received_runs_until_it_is_trusted(received: Path) -> None:
    """The whole command, in a process of its own: refused, and run once the user says so."""
    (first,) = received.rglob("results_*.json")
    content = json.loads(first.read_text("utf-8"))
    content |= {"fewshot_as_multiturn": False}
    content["config"] |= {"model": "rag", "model_args": {"system": "received/planted.py:ask"}}
    (received / "system").mkdir()
    path = received / "system" / first.name
    path.write_text(json.dumps(content), "utf-8")
    command = [sys.executable, "-m", "mrag_eval.cli", "rerun", str(path), "--run", "-o", "again"]
    done = subprocess.run(command, cwd=received, capture_output=True, text=True, check=False)
    assert (done.returncode, (received / "imported").exists()) == (2, False), done.stderr
    assert "model_args.system" in done.stderr
    done = subprocess.run([*command, "--trust"], cwd=received, capture_output=True, text=True, check=False)
    assert (received / "imported").exists(), done.stderr
    (received / "imported").unlink()
    shutil.rmtree(path.parent)


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("key", SystemSpec.model_fields)
def test_no_key_of_a_service_file_runs_code(key: str, received: Path) -> None:
    """But for ``system``, which may name a function in a file beside it."""
    file = received / "service" / "service.yaml"
    file.parent.mkdir(exist_ok=True)
    for name in NAMES:
        for value in (name, [name], {"x": name}):
            file.write_text(json.dumps({key: value}), "utf-8")
            with suppress(MragError):
                RagSystem(system_spec({"system": str(file)}))
            assert not Path("imported").exists(), (key, value)


@pytest.mark.slow
@pytest.mark.usefixtures("_there")
def test_no_key_of_samples_runs_code(received: Path) -> None:
    """Walk over every key of the first sample, with what reads samples again: tables, checks, judges and labels."""
    (path,) = received.rglob("samples_xquad_rag_de_*.jsonl")
    text = path.read_text("utf-8")
    first, *rest = text.splitlines()
    content = json.loads(first)
    walked = 0
    try:
        for key in leaves(content):
            path.write_text("\n".join([json.dumps(planted(content, key, "planted:ask")), *rest]) + "\n", "utf-8")
            with suppress(MragError):
                read_samples(path)
            walked += 1
        assert walked > 50, walked
        for part in sorted({key[0] for key in leaves(content)}, key=str):
            content = planted(content, (part,), "planted:ask") if part not in ("doc_id", "resps") else content
        path.write_text("\n".join([json.dumps(content), *rest]) + "\n", "utf-8")
        for command in ("report", "verify", "judge inspect", "score"):
            read([*shlex.split(command), "received" if command != "score" else str(path)])
    finally:
        path.write_text(text, "utf-8")
    assert not Path("imported").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("_there")
def test_no_key_of_an_index_runs_code(tmp_path: Path) -> None:
    """Walk over every key of the manifest of an index, which is opened and searched."""
    index = tmp_path / "index"
    build_index([Passage(id=str(n), lang="en", text="bridge " * n) for n in range(1, 5)], index, progress=False)
    walked = 0
    for path in sorted(index.rglob("*.json")):
        text = path.read_text("utf-8")
        content = json.loads(text)
        for key in leaves(content):
            for name in NAMES[:3]:
                path.write_text(json.dumps(planted(content, key, name)), "utf-8")
                with suppress(MragError):
                    load_index(index).search(["bridge"], 1)
                assert not Path("imported").exists(), (path.name, key, name)
            walked += 1
        path.write_text(text, "utf-8")
    assert walked > 20, walked


CONFIG = {
    "corpora": {"c": {"path": "x", "kind": "x", "embedder": "x", "uri": "x", "collection": "x", "token_env": "x"}},
    "models": {"m": dict.fromkeys(ModelSpec.model_fields, "x") | {"model_args": {"system": "x", "model": "x"}}},
    "judges": ["x"],
    "translator": {"model": "x", "kind": "x", "function": "x"},
    "planner": "x",
    "critic": "x",
    "embedders": ["x"],
    "data": {"jsonl": {"path": "x", "corpus": "x"}, "other": {"function": "x"}},
    "languages": "x",
}


@pytest.mark.usefixtures("_there")
def test_no_key_of_a_config_file_runs_code_while_it_is_read(
    received: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Walk over the keys of ``mrag.yaml``, which may lie in a folder that somebody made, with commands that read it."""
    file = received / "mrag.yaml"
    monkeypatch.setenv("MRAG_CONFIG", str(file))
    assert {*CONFIG} | {"retrieve_first"} == {*FileConfig.model_fields}
    for key in leaves(CONFIG):
        for name in NAMES:
            # among the other keys, and alone, as a block is refused for the first that is wrong
            alone: Any = name
            for inner in reversed(key):
                alone = [alone] if isinstance(inner, int) else {inner: alone}
            for content in ({key[0]: planted(CONFIG, key, name)[key[0]]}, alone):
                file.write_text(json.dumps(content), "utf-8")
                with suppress(MragError):
                    load_config()
        assert not Path("imported").exists(), key
    for content in (CONFIG, *({key: value} for key, value in CONFIG.items())):
        file.write_text(json.dumps(content).replace('"x"', '"planted:ask"'), "utf-8")
        for command in ("doctor --config", "plan --tasks xquad_rag_de", "report received"):
            read(shlex.split(command))
        assert not Path("imported").exists(), content
    file.unlink()


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("benchmark", sorted(LOADERS))
def test_no_key_of_a_data_block_runs_code(benchmark: str) -> None:
    """Whatever loader reads the block: its keys name files, languages and parts of a benchmark."""
    block = {"benchmark": benchmark, **NEEDED.get(benchmark, {})}
    for key in LOADERS[benchmark].block.model_fields:
        for name in NAMES if key != "benchmark" else ():
            for value in (name, [name], {"function": name}):
                with suppress(MragError):
                    load_benchmark({**block, key: value})
                assert not Path("imported").exists(), (key, value)


def _own(folder: Path) -> None:
    passages = [{"id": "d1", "lang": "en", "text": "Varn was built in 1841.", "is_gold": True}]
    question = {"id": "q1", "query": "When?", "lang": "en", "answers": ["1841"], "relevant_ids": {"d1": 1}}
    (folder / "questions.jsonl").write_text(json.dumps({**question, "given_passages": passages}), "utf-8")
    (folder / "corpus.jsonl").write_text(json.dumps({**passages[0], "title": "Varn", "doc_id": "d"}), "utf-8")


# The files of benchmarks as their makers write them, and the blocks that read them.
WRITTEN: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "afriqa": (afriqa.write, {"path": "", "language": "ha", "languages": ["fon", "ha"]}),
    "jsonl": (_own, {"path": "questions.jsonl", "corpus": "corpus.jsonl"}),
    "mkqa": (mkqa.write_all, {"path": "", "language": "fr", "subset": "all"}),
    "nomiracl": (nomiracl.write, {"path": "", "language": "de"}),
    "tydiqa": (mkqa.write_all, {"path": ""}),
    "xlcost": (xlcost.write, {"path": "", "tokenizer": "model_free"}),
    "xor_tydi": (mkqa.write_all, {"path": "", "language": "ko"}),
    "xrag": (xrag.write, {"path": "", "setting": "mono", "language": "de"}),
}


@pytest.mark.slow
@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("benchmark", WRITTEN)
def test_no_key_of_a_row_runs_code(benchmark: str, tmp_path: Path) -> None:
    """Walk over the keys of each file's first record, while the loader of the benchmark reads it."""
    write, keys = WRITTEN[benchmark]
    write(tmp_path)
    block = {key: str(tmp_path / value) if key in ("path", "corpus") else value for key, value in keys.items()}
    walked = 0
    for file in sorted(path for path in tmp_path.rglob("*.json*") if path.suffix in (".json", ".jsonl")):
        text = file.read_text("utf-8")
        # a file of KILT has lines, whatever its ending says
        first, *rest = text.splitlines() if text.startswith("{") and "}\n{" in text else [text]
        content = json.loads(first)
        for key in leaves(content):
            file.write_text("\n".join([json.dumps(planted(content, key, NAMES[0])), *rest]), "utf-8")
            with suppress(MragError):
                load_benchmark({"benchmark": benchmark, **block})
            assert not Path("imported").exists(), (file.name, key)
            walked += 1
        file.write_text(text, "utf-8")
    assert walked or benchmark not in ("jsonl", "mkqa", "xrag")


@pytest.mark.usefixtures("_there")
@pytest.mark.parametrize("name", NAMES)
def test_no_part_of_a_reply_runs_code(name: str) -> None:
    """Walk over what a system replies, whatever adapter asked it; a name is no system either."""
    context = {"id": "d1", "text": "t", "title": "T", "lang": "en", "score": 1.0, "doc_id": "d", "metadata": {"a": "b"}}
    choice = {"message": {"content": "c", "refusal": None, "tool_calls": ["x"]}, "finish_reason": "stop"}
    reply = {"answer": "a", "question": "q", "contexts": [context], "usage": {"prompt_tokens": 1}, "error": None}
    for whole in (reply, {"choices": [choice], "context": {"citations": [context]}}, {"result": "a", "outputs": reply}):
        for key in leaves(whole):
            with suppress(MragError):
                reply_of(planted(whole, key, name))
            assert not Path("imported").exists(), key
    with pytest.raises(ConfigError, match="is no system that can be asked"):
        ask_with(name)


def test_arguments_are_read_back_as_they_were(tmp_path: Path, own: Path) -> None:
    given = {"pretrained": "org/model", "dtype": "float16", "chat_template_args": {"enable_thinking": False}}
    found = rerun(results_file(tmp_path, config={"model_args": given}), Path("again"), own)
    _, _, *arguments = shlex.split(found.command)
    assert harness._settings(harness._parse(arguments))["model_args"] == given
