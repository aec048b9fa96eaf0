"""Planted secrets: given in every place that takes one, quoted back by a server, and found in nothing that is written.

Every command is the real one. Its server answers with whatever it was sent, in several encodings, as errors and as
replies. Afterwards all files and the screen are searched for every secret by value.
"""

from __future__ import annotations

import base64
import json
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from mrag_eval.cli import main
from mrag_eval.platform import close_stores
from tests.worlds.small import BASE, write_task, write_world

# name -> value; none has a form by which a key could be recognised
SECRETS = {
    "key of the evaluated model": "plantedEvaluated/0+1=",
    "header of the evaluated model": "planted evaluated header",
    "password of the evaluated model": "plantedPass0Evaluated",
    "key of a judge": 'planted"judge7\\k3y%',
    "header of a judge": "planted-judge-header",
    "key of the reranker": "planted-reranker-key",
    "key of the embedder": "planted-embedder-key",
    "password of the embedder": "plantedPass0Embedder",
    "password of Milvus": "plantedPass0Milvus",
    "token of Milvus": "plantedToken0Milvus",
}
_LOCK = threading.Lock()


@dataclass
class Quoting:
    """A server that quotes the headers it was sent, in several encodings; ``refuses`` with status 401, or replies."""

    refuses: bool = False
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = outer.quoted([value for name, value in self.headers.items() if name not in _PLAIN])
                status, answer = (401, {"error": text}) if outer.refuses else (200, outer.answer(self.path, body, text))
                raw = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def quoted(self, values: list[str]) -> str:
        said = []
        for value in values:
            key = value.split(" ", 1)[-1] if value.startswith(("Bearer ", "Basic ")) else value
            if value.startswith("Basic "):
                said.append(base64.b64decode(key).decode())
            said += [value, key, quote(key, safe=""), base64.b64encode(key.encode()).decode(), json.dumps(key)]
        with _LOCK:
            self.seen += said
        return " | ".join(said)

    @staticmethod
    def answer(path: str, body: dict[str, Any], text: str) -> dict[str, Any]:
        if path.endswith("/embeddings"):
            data = [{"index": i, "embedding": [len(t), 1.0], "note": text} for i, t in enumerate(body["input"])]
            return {"data": data, "note": text}
        if path.endswith("/rerank"):
            results = [{"index": i, "relevance_score": 1 / (i + 1)} for i in range(len(body["documents"]))]
            return {"results": results, "note": text}
        verdict = {"justification": text, "answer": "correct"}
        message = {"role": "assistant", "content": f"{text} {json.dumps(verdict)}"}
        return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


_PLAIN = ("Host", "Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Content-Length", "Connection")


@pytest.fixture
def server() -> Iterator[Callable[..., Quoting]]:
    made: list[Quoting] = []

    def begin(**settings: Any) -> Quoting:
        made.append(Quoting(**settings))
        return made[-1]

    yield begin
    for each in made:
        each.server.shutdown()
        each.server.server_close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to run in, in which everything is written: output, caches, home."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    for name, folder in {"HOME": "home", "MRAG_CACHE": "cache", "TMPDIR": "tmp", "HF_HOME": "hf"}.items():
        (place / folder).mkdir()
        monkeypatch.setenv(name, str(place / folder))
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRETS["key of the evaluated model"])
    monkeypatch.setenv("JUDGES", SECRETS["key of a judge"])
    monkeypatch.setenv("RERANKS", SECRETS["key of the reranker"])
    monkeypatch.setenv("EMBEDS", SECRETS["key of the embedder"])
    monkeypatch.setenv("MILVUS_TOKEN", f"root:{SECRETS['token of Milvus']}")
    yield place
    close_stores()


def configure(tmp_path: Path, host: str) -> None:
    judge = {
        "model": "local-chat-completions",
        "model_args": {"model": "m", "base_url": f"http://{host}/v1/chat/completions"},
        "retries": 0,
    }
    header = {"X-Team-Token": SECRETS["header of a judge"]}
    with_header = {**judge, "model_args": {**judge["model_args"], "header": header}}  # type: ignore[dict-item]
    config = {
        "models": {
            "keyed": {**judge, "api_key_env": "JUDGES"},
            "headed": with_header,
        },
        "judges": ["keyed", "headed"],
        "corpora": {"remote": {"kind": "milvus", "uri": f"http://root:{SECRETS['password of Milvus']}@{host}"}},
        "embedders": [
            {
                "model": f"openai:enc@http://user:{SECRETS['password of the embedder']}@{host}/v1",
                "api_key_env": "EMBEDS",
            }
        ],
    }
    (tmp_path / "mrag.yaml").write_text(yaml.safe_dump(config), "utf-8")


def world(place: Path, host: str) -> None:
    write_world(place)
    data = {"benchmark": "jsonl", "path": str(place / "questions.jsonl"), "corpus": str(place / "corpus.jsonl")}
    rerank = {"kind": "api", "model": "r", "url": f"http://{host}/v1/rerank", "api_key_env": "RERANKS", "retries": 0}
    keys = {**BASE, "metrics": ["judge_correct", "char3gram_recall"]}
    write_task(place, "mine", **keys, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25", "rerank": rerank})


def evaluated(host: str) -> str:
    args = {
        "model": "m",
        "base_url": f"http://user:{SECRETS['password of the evaluated model']}@{host}/v1/chat/completions",
        "max_retries": 1,
        "num_concurrent": 1,
        "tokenized_requests": False,
        "header": {
            "X-Team-Token": SECRETS["header of the evaluated model"],
            "Authorization": f"Bearer {SECRETS['key of the evaluated model']}",
        },
    }
    return shlex.quote(json.dumps(args))


def findings(place: Path, screen: str) -> tuple[list[str], int]:
    """Return where each secret was found, and the number of files searched.

    The cache, which only its user can read, keeps replies as they came.
    """
    texts = {"the screen": screen}
    cache = place / "cache"
    files = [path for path in sorted(place.rglob("*")) if path.is_file() and not path.is_relative_to(cache)]
    texts |= {str(path.relative_to(place)): path.read_bytes().decode("utf-8", "replace") for path in files}
    found = []
    for name, secret in SECRETS.items():
        coded = base64.b64encode(secret.encode()).decode()
        pair = [base64.b64encode(f"user:{secret}".encode()).decode()] if "password" in name else []
        forms = {secret, quote(secret, safe=""), coded, coded.rstrip("="), json.dumps(secret)[1:-1], *pair}
        found += [f"{name}: in {where}" for where, text in texts.items() if any(form in text for form in forms)]
    return found, len(files)


def run(commands: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[str, list[int]]:
    codes = []
    for command in commands:
        with pytest.raises(SystemExit) as done:
            main(shlex.split(command))
        codes.append(int(done.value.code or 0))
    shown = capfd.readouterr()
    return shown.out + shown.err, codes


@pytest.mark.slow
@pytest.mark.parametrize("refuses", [False, True], ids=["replies that quote", "errors that quote"])
def test_no_planted_secret_is_written(
    place: Path, tmp_path: Path, server: Callable[..., Quoting], capfd: pytest.CaptureFixture[str], refuses: bool
) -> None:
    good = server()
    quoting = server(refuses=refuses)
    configure(tmp_path, quoting.host)
    world(place, quoting.host if not refuses else good.host)
    flags = "--model local-chat-completions --apply_chat_template --include_path . --limit 3 --seed 0 --model_args {}"
    logged = f"{flags} --log_samples --tasks mine --output_path"
    answered, quoted = (logged.format(evaluated(host)) for host in (good.host, quoting.host))
    embedder = yaml.safe_load((tmp_path / "mrag.yaml").read_text("utf-8"))["embedders"][0]
    commands = [
        f"run {answered} out",
        f"run {quoted} evaluated --no-retrieve-first --verbosity DEBUG",
        f"index build corpus.jsonl indexed --embedder {shlex.quote(json.dumps(embedder))}",
        "doctor --config",
        "corpus list",
    ]
    commands += [
        "retrieve --tasks mine --include_path . --limit 2 -o retrieved",
        "corpus list --json",
        "index search indexed lighthouse",
        f"--debug run {answered} dense --metadata retrieval.corpus=indexed,retrieval.kind=dense",
        "report out -o report.html",
        "report out -o report.csv",
        "export out --format csv -o exported",
        "rerun out",
    ] * (not refuses)
    screen, codes = run(commands, capfd)
    close_stores()
    found, files = findings(place, screen)
    with capfd.disabled():
        print(f"\n{len(commands)} commands, exit codes {codes}; {files} files written, findings {len(found)}")
    assert not found, "\n".join(found)
    said = " ".join(quoting.seen + good.seen)
    used = {name for name, secret in SECRETS.items() if secret in said}
    # the planted secrets did travel, and the runs did write
    assert {"key of a judge", "header of a judge", "key of the reranker"} <= used
    assert {"header of the evaluated model", "key of the embedder"} <= used
    assert list((place / "out").rglob("samples_*.jsonl"))
    assert "(hidden)" in "".join(path.read_text("utf-8") for path in (place / "out").rglob("*.json*"))
