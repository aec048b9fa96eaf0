"""Indexes, run folders and results from elsewhere: nothing in them runs code, asks a host, sends a key or leaves its
folder."""

from __future__ import annotations

import json
import pickle
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.cli import main
from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError, MragError
from mrag_eval.report.labels._rejudge import _check_prompt
from mrag_eval.retrieval import RunFolder
from mrag_eval.retrieval.saved._manifest import MANIFEST, ManifestEntry
from mrag_eval.retrievers import add_documents, build_index, load_index, merge_indexes
from mrag_eval.retrievers.shards._manifest import file_record
from tests.report.test_rerun import results_file
from tests.worlds.model_server import Answer, ModelServer

PASSAGES = [Passage(id=str(n), lang="en", text="bridge " * n) for n in range(1, 5)]
SECRET = "planted-secret-of-the-cloud"


def embeds(body: dict[str, Any], attempt: int) -> Answer:
    return Answer(
        body={"data": [{"index": i, "embedding": [len(t), 1.0]} for i, t in enumerate(body.get("input") or [])]}
    )


@pytest.fixture
def own(start: Callable[..., ModelServer]) -> str:
    """The base URL of the user's own endpoint."""
    return start(embeds).url.removesuffix("/chat/completions")


@pytest.fixture
def index(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    build_index(PASSAGES, tmp_path / "index", embedder=f"openai:m@{own}", progress=False)
    return tmp_path / "index"


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Change the manifest, as somebody who passes an index on can."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    return folder


def named(spec: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda content: content["embedder"].update(name=spec["model"], spec=spec)


def fails(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Run a command that must fail; return its message and its next step."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2, lines
    return lines[0], lines[1]


def works(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    shown = capsys.readouterr()
    assert done.value.code == 0, shown.err
    return shown.out


def test_a_manifest_sends_no_key_to_its_host(
    index: Path, start: Callable[..., ModelServer], capsys: pytest.CaptureFixture[str]
) -> None:
    attacker = start(embeds)
    url = attacker.url.removesuffix("/chat/completions")
    spec = {"model": "m", "kind": "openai", "base_url": url, "api_key_env": "AWS_SECRET_ACCESS_KEY"}
    changed(index, lambda content: content["embedder"].update(spec=spec))
    message, step = fails(["index", "search", "index", "bridge"], capsys)
    assert "manifest.json, embedder.spec.base_url" in message
    assert url in message
    assert "--embedder" in step
    with pytest.raises(CorpusError, match=r"embedder\.spec\.base_url"):
        add_documents(index, [Passage(id="x", lang="en", text="river")], progress=False)
    assert attacker.requests == []


def test_a_manifest_runs_no_code(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]), "utf-8")
    (model / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n", "utf-8")
    for spec in (
        {"model": str(model), "trust_remote_code": True},
        {"model": str(model)},  # the library runs the code of a folder without being told to
        {"model": "model", "kind": "sentence-transformers"},
        {"model": "someone/model", "trust_remote_code": True},
        {"model": "someone/model", "model_kwargs": {"x": 1}},
    ):
        changed(index, named(spec))
        message, _ = fails(["index", "search", "index", "bridge"], capsys)
        assert "manifest.json, embedder.spec." in message
    assert not (tmp_path / "ran").exists()


def test_an_index_over_an_endpoint_of_the_user_needs_what_the_error_says(
    index: Path, own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, step = fails(["index", "search", "index", "bridge"], capsys)
    flag = shlex.split(re.search(r"--embedder (.+?)   \(", step)[1])[0]  # type: ignore[index]
    assert flag == f"openai:m@{own}"
    assert works(["index", "search", "index", "bridge", "--embedder", flag], capsys).startswith(" 1  ")
    metadata = json.loads(shlex.split(re.search(r"--metadata (.+?); for", step)[1])[0])  # type: ignore[index]
    assert metadata == {"retrieval": {"embedder": flag}}
    Path("mrag.yaml").write_text(re.search(r"(embedders: .*) in mrag.yaml", step)[1], "utf-8")  # type: ignore[index]
    assert works(["index", "search", "index", "bridge"], capsys).startswith(" 1  ")
    Path("more.jsonl").write_text('{"id": "x", "lang": "en", "text": "river"}\n', "utf-8")
    assert works(["index", "build", "more.jsonl", "index", "--add"], capsys)
    Path("mrag.yaml").unlink()
    Path("more.jsonl").write_text('{"id": "y", "lang": "en", "text": "boat"}\n', "utf-8")
    assert works(["index", "build", "more.jsonl", "index", "--add", "--embedder", flag], capsys)


def test_the_key_is_the_one_that_the_user_names(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[..., ModelServer]
) -> None:
    server = start(embeds)
    url = server.url.removesuffix("/chat/completions")
    monkeypatch.setenv("MINE", "key-of-m1ne")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    spec = {"model": f"openai:m@{url}", "api_key_env": "MINE"}
    build_index(PASSAGES, tmp_path / "i", embedder=spec, progress=False)
    changed(tmp_path / "i", lambda content: content["embedder"]["spec"].update(api_key_env="AWS_SECRET_ACCESS_KEY"))
    assert load_index(tmp_path / "i", embedders=[spec]).search(["bridge"], 1)[0]
    assert {request[1].get("Authorization") for request in server.requests} == {"Bearer key-of-m1ne"}


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "dense/../../outside", "a\\b", "a\nb", ""])
def test_a_file_of_an_index_is_in_its_folder(index: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_text("x", "utf-8")
    record = file_record(tmp_path / "outside").model_dump()
    changed(index, lambda content: content["files"].update({name: record}))
    with pytest.raises(CorpusError, match=r"manifest\.json, files: "):
        load_index(index)
    with pytest.raises(CorpusError, match=r"manifest\.json, files: "):
        merge_indexes([index], tmp_path / "merged" / "deep", factory="flat")
    assert not (tmp_path / "merged" / "outside").exists()


@pytest.mark.parametrize("code", ["../../outside", "/etc", "en/..", "e n", ""])
def test_a_language_of_an_index_is_no_path(index: Path, code: str) -> None:
    changed(index, lambda content: content["languages"].update({code: content["languages"]["en"]}))
    with pytest.raises(CorpusError, match=r"manifest\.json, languages: "):
        load_index(index)


def test_a_link_out_of_an_index_is_refused(index: Path, tmp_path: Path) -> None:
    file = index / "passages" / "en.text"
    file.rename(tmp_path / "private")
    file.symlink_to(tmp_path / "private")
    with pytest.raises(CorpusError, match=r"passages/en\.text'? is a link out of the folder"):
        load_index(index)


class Opened:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("ran"),)


def test_an_array_is_never_a_pickle(index: Path) -> None:
    path = index / "passages" / "lookup.hashes.npy"
    if not path.exists():
        path = next((index / "passages").glob("*.npy"))
    np.save(path, np.array([Opened()], dtype=object), allow_pickle=True)
    changed(index, lambda content: content["files"].update({f"passages/{path.name}": file_record(path).model_dump()}))
    with pytest.raises(MragError, match="is not an array of numbers"):
        load_index(index).passages(["1"])
    path.write_bytes(pickle.dumps(Opened()))
    changed(index, lambda content: content["files"].update({f"passages/{path.name}": file_record(path).model_dump()}))
    with pytest.raises(MragError, match="is not an array of numbers"):
        load_index(index, mmap=False).passages(["1"])
    assert not Path("ran").exists()


def entry(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "file": "t.jsonl",
        "fingerprint": "f",
        "settings": {},
        "corpus": None,
        "dataset": "d",
        "seeds": {},
    }
    return {**record, **changes}


@pytest.mark.parametrize("file", ["../secret.jsonl", "/etc/passwd", 5, "", "link.jsonl"])
def test_a_file_of_a_run_folder_is_in_it(tmp_path: Path, file: Any) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret.jsonl").write_text("{}\n", "utf-8")
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    body = {"format": "mrag_eval retrieved rows/1", "tasks": {"t": entry(file=file)}}
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    with pytest.raises(DataError, match=r"manifest\.json, tasks: t\.file: "):
        RunFolder(folder)


@pytest.mark.parametrize("name", ["t.jsonl", "t.trec", "t.reranked.trec"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_retrieving_replaces_no_file_of_others(tmp_path: Path, name: str, overwrite: bool) -> None:
    (tmp_path / name).write_text("mine", "utf-8")
    with pytest.raises(ConfigError, match="so it is not replaced"):
        RunFolder(tmp_path).begin("t", ManifestEntry(**entry()), overwrite=overwrite)
    assert (tmp_path / name).read_text("utf-8") == "mine"


def test_retrieving_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "mine").write_text("mine\nand more", "utf-8")
    (tmp_path / "run" / "t.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(ConfigError, match="is a link out of the folder"):
        RunFolder(tmp_path / "run").begin("t", ManifestEntry(**entry()))
    assert (tmp_path / "mine").read_text("utf-8") == "mine\nand more"


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ({"pretrained": "x/y", "trust_remote_code": True}, "model_args.trust_remote_code"),
        ({"model": "m", "base_url": "http://attacker/v1"}, "model_args.base_url"),
        ("pretrained=x/y,trust_remote_code=True", "model_args.trust_remote_code"),
    ],
)
def test_results_are_not_run_again_unseen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: Any, key: str
) -> None:
    path = results_file(tmp_path)
    content = json.loads(path.read_text("utf-8"))
    content["config"]["model_args"] = args
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(SystemExit) as done:
        main(["rerun", str(path), "--run", "-o", str(tmp_path / "again")])
    shown = capsys.readouterr()
    assert done.value.code == 2
    assert shown.out.startswith("mrag-eval run ")
    assert key.removeprefix("model_args.") not in shown.out
    assert f"{path}: {key}, include_path: only you can allow" in shown.err
    assert "add --trust" in shown.err


@pytest.mark.parametrize("part", [None, "sufficiency", "grounded"])
@pytest.mark.parametrize("prompt", ["/etc/passwd", "./x.jinja", "x.jinja", "../x", "~/x", "\\\\host\\x", "a b"])
def test_results_name_no_template(tmp_path: Path, prompt: str, part: Any) -> None:
    def block(prompt: str) -> dict[str, Any]:
        return {"prompt": prompt} if part is None else {part: {"prompt": prompt}}

    path = tmp_path / "samples.jsonl"
    with pytest.raises(DataError, match="which is not for a file to decide"):
        _check_prompt(path, block(prompt), {}, part)
    _check_prompt(path, block(prompt), block("mine.jinja"), part)
    _check_prompt(path, block("correctness"), {}, part)


def test_an_id_forges_no_line_of_a_ranking(tmp_path: Path) -> None:
    from mrag_eval.core import Ranked
    from mrag_eval.retrieval.saved._folder import write_trec

    place = Ranked("d\t9\tx\ny", "", "en", 1.0)
    write_trec(tmp_path / "x.trec", [("q\nq2\tQ0\tforged\t1\t9\tt", [place])], "tag\0")
    (line,) = (tmp_path / "x.trec").read_text("utf-8").splitlines()
    assert len(line.split("\t")) == 6


@pytest.mark.parametrize("identifier", ["a\nb", "a\tb", "a\0b", "a\u2028b"])
def test_an_id_with_a_line_end_is_refused_where_it_is_read(tmp_path: Path, identifier: str) -> None:
    from mrag_eval.datasets import as_question, read_passages
    from mrag_eval.retrievers import read_corpus

    question = {"id": identifier, "query": "x?", "lang": "en"}
    with pytest.raises(DataError, match=r"row 3: the id .* control character"):
        as_question(question, "row 3")
    path = tmp_path / "documents.jsonl"
    path.write_text(json.dumps({"id": identifier, "lang": "en", "text": "x"}) + "\n", "utf-8")
    with pytest.raises(DataError, match=r"documents\.jsonl, line 1: the id"):
        read_passages(path)
    with pytest.raises(DataError, match=r"documents\.jsonl, line 1: the id"):
        list(read_corpus(path))
    with pytest.raises(DataError, match="passage: the id"):
        build_index([Passage(id=identifier, lang="en", text="x")], tmp_path / "i", kind="bm25", progress=False)
