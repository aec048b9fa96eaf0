"""Ctrl-C and SIGTERM wherever a command waits for a server: it ends at once, and is repeated only for the rest."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.building.newsroom import Newsroom, write_corpus
from tests.building.newsroom import corpus as articles
from tests.building.test_qa_build import answers as writes_questions
from tests.building.test_qa_build import corpus as documents
from tests.building.test_territories import write as write_tables
from tests.programs import Programs
from tests.retrieval.agents.scripted import GOOD, enough, plan
from tests.worlds.judges import supports, verdict
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, write_task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc"),
]
# a second of ours, and what a busy machine adds
BOUND = 5.0
IN_FLIGHT = 2
DELAY = 0.2
# seconds from the server's last byte until a reply must be on disk
STORED = 0.15
SUFFICIENT = '{"justification": "because", "sufficient": "yes"}'


@dataclass(frozen=True)
class Place:
    """A command that waits for a server. ``after`` requests it is interrupted; ``again`` is added to repeat it.

    ``config`` are further keys of the config file.
    """

    words: Callable[[Path, str], list[str]]
    reply: Callable[[dict[str, Any]], Any]
    after: int = 6
    again: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)


def said_by(reply: Callable[[str], str]) -> Callable[[dict[str, Any]], Any]:
    return lambda body: said(reply(asked(body))).body


def agents(prompt: str) -> str:
    if "<documents>" in prompt:
        return enough(True)
    return GOOD if "<document>" in prompt else plan("en", "de")


def vectors(body: dict[str, Any]) -> Any:
    return {"data": [{"index": i, "embedding": [1.0, float(len(t))]} for i, t in enumerate(body["input"])]}


def scores(body: dict[str, Any]) -> Any:
    return [{"index": i, "score": float(len(text))} for i, text in enumerate(body["texts"])]


def order(prompt: str) -> str:
    return " > ".join(f"[{number}]" for number in range(1, 6))


def names(prompt: str) -> str:
    if "Question:" in prompt:
        return "<question>{territory}: {options}?</question><between>or</between>"
    found = re.search(r"Name: (.+)\nLanguage: (.+)", prompt)
    return f"<name>{found[1]}-{found[2][:2]}</name>" if found else "no"


def run(task: str, **retrieval: Any) -> Callable[[Path, str], list[str]]:
    """Return the words of a run of the small world, with this retrieval."""

    def words(folder: Path, url: str) -> list[str]:
        data = {name: str(folder / f"{file}.jsonl") for name, file in (("path", "questions"), ("corpus", "corpus"))}
        block = {"mode": "all", "k": 2, "kind": "bm25", **json.loads(json.dumps(retrieval).replace("URL", url))}
        agent = {"agent": {"k": 2, "max_rounds": 2}} if block["mode"] == "coral" else {}
        write_task(folder, task, **BASE, data={"benchmark": "jsonl", **data}, retrieval=block, **agent)
        flags = ["--model", "dummy", "--include_path", str(folder), "--seed", "0", "--output_path", str(folder / "out")]
        return ["run", "--tasks", task, *flags, "--log_samples"]

    return words


def judge(command: str) -> Callable[[Path, str], list[str]]:
    def words(folder: Path, url: str) -> list[str]:
        from mrag_eval import score

        rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
        passage = {"id": "p", "lang": "en", "text": "It was built in 1841.", "title": ""}
        for row in rows:
            row |= {"reply": f"An answer to {row['id']}.", "passages": [passage | {"id": f"p-{row['id']}"}]}
        score(rows, "char3gram_recall", output=folder / "scored")
        (samples,) = (folder / "scored").glob("samples_*.jsonl")
        panel = ["--model", "m"] if command == "documents" else ["--panel", "m,n"]
        extra = ["--country", "France"] if command == "passages" else []
        return ["judge", command, str(samples), *panel, *extra, "--output", str(folder / "judged")]

    return words


def claims(folder: Path, url: str) -> list[str]:
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        row["reply"] = f"It was built for {row['id']}. It was built in 1841."
        row["passages"] = [{"id": f"p-{row['id']}", "lang": "en", "text": "It was built in 1841."}]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    words = ["score", str(folder / "log.jsonl"), "--metrics", "grounded", "--grounded", "panel"]
    return [*words, "--output_path", str(folder / "scored")]


def index(folder: Path, url: str) -> list[str]:
    rows = [{"id": f"d{i}", "lang": "en", "title": "", "text": f"The {i}th bridge."} for i in range(900)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    spec = json.dumps({"kind": "openai", "model": "e", "base_url": url, "batch_size": 16, "dimensions": 2})
    return ["index", "build", str(folder / "documents.jsonl"), str(folder / "index"), "--embedder", spec]


def build(kind: str, source: Callable[[Path], Path], settings: dict[str, Any]) -> Callable[[Path, str], list[str]]:
    def words(folder: Path, url: str) -> list[str]:
        out = ["build", kind, str(source(folder)), "--output", str(folder / "set"), "--model", "m"]
        if kind != "xrag":
            out += ["--kind", "bm25"]
        if settings:
            (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
            out += ["--settings", str(folder / "settings.json")]
        return out

    return words


def strategies(folder: Path, url: str) -> list[str]:
    words = [
        "strategies",
        *(str(folder / f"{name}.jsonl") for name in ("questions", "corpus")),
        "-o",
        str(folder / "out"),
    ]
    model = ["--model", "local-chat-completions", "--model_args", f"model=m,base_url={url}/chat/completions"]
    return [*words, "--vary", "kind=bm25", "--vary", "mode=all,no_ir", *model]


def news(folder: Path) -> Path:
    found = articles(("en",))
    table = [{"title": entry["title"], "entities": [entry["title"].split()[0], "Halden"]} for entry in found]
    write_corpus(folder / "entities.jsonl", table)
    write_corpus(folder / "news.jsonl", found)
    return folder / "news.jsonl"


def tables(folder: Path) -> Path:
    """Write the tables without names in other languages, which the model then gives."""
    return write_tables(folder / "tables", lambda found: found.update(names=found["names"][:1]))


XRAG = {
    "languages": ["de"],
    "settings": ["mono"],
    "articles": {"min_words": 10},
    "models": {"closed_book": "m"},
    "entities": {"backend": "table", "path": "entities.jsonl"},
}
QA = {"balance": "none", "min_words": 5, "per_document": 2, "seed": 3}
RERANK = {"kind": "api", "shape": "tei", "url": "URL/rerank", "batch_size": 2, "max_in_flight": IN_FLIGHT}
EMBEDDER = {"kind": "openai", "model": "e", "base_url": "URL", "batch_size": 1, "dimensions": 2}
LISTWISE = {"kind": "listwise", "model": "m", "window": 5, "step": 3}

PLACES = {
    "the agents' loop": Place(run("looped", mode="coral"), said_by(agents), after=20),
    "passages of an index": Place(index, vectors, after=10, again=("--resume",)),
    "queries of a run": Place(run("dense", kind="dense", embedder=EMBEDDER), vectors, after=22),
    "a reranker": Place(run("reranked", rerank=RERANK), scores),
    "a listwise reranker": Place(run("ordered", rerank=LISTWISE), said_by(order)),
    "strategies": Place(strategies, said_by(lambda prompt: "In 1841."), after=12),
    "build qa": Place(build("qa", documents, QA), said_by(writes_questions)),
    "build xrag": Place(build("xrag", news, XRAG), lambda body: said(Newsroom()(body["messages"])).body, after=30),
    "build territories": Place(build("territories", tables, {}), said_by(names)),
    "judge answers": Place(judge("answers"), lambda _: said(verdict("correct")).body, after=12),
    "judge passages": Place(judge("passages"), lambda _: said(SUFFICIENT).body, after=12),
    "claims of a log": Place(claims, said_by(supports), after=12, config={"judges": ["m", "n"]}),
    "judge documents": Place(judge("documents"), lambda _: said('{"relevant": true}').body),
}


def living(cache: Path) -> list[str]:
    """Return the processes with this cache that have not ended, by what they run."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"MRAG_CACHE={cache}".encode() in (place / "environ").read_bytes().split(b"\0"):
                found.append((place / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended
            continue
    return found


def leftovers(folder: Path) -> list[str]:
    cache = folder / "cache"
    found = [*cache.rglob("*.part"), *cache.rglob(".*.lock"), *cache.glob("runs/*"), *cache.rglob("*.building")]
    found += [*folder.glob("*.building"), *folder.glob(".*.lock"), *folder.rglob("*.journal*")]
    return [str(path.relative_to(folder)) for path in found]


@pytest.mark.parametrize(("name", "number"), list(zip(PLACES, cycle([signal.SIGINT, signal.SIGTERM]))))
def test_a_command_that_waits_ends_and_goes_on_where_it_was(
    name: str, number: int, world: Path, start: Callable[..., ModelServer], programs: Programs
) -> None:
    place, slow = PLACES[name], True

    def script(body: dict[str, Any], attempt: int) -> Answer:
        return Answer(body=place.reply(body), delay=DELAY if slow else 0.0)

    server = start(script)
    model = {"model": "local-chat-completions", "max_in_flight": IN_FLIGHT}
    models = {name: model | {"model_args": {"model": name, "base_url": server.url}} for name in "mn"}
    config = {"models": models, "planner": "m", "critic": "n", **place.config}
    (world / "mrag.yaml").write_text(yaml.safe_dump(config), "utf-8")
    words = place.words(world, server.url.removesuffix("/chat/completions"))
    environment = {**os.environ, "MRAG_CACHE": str(world / "cache"), "MRAG_CONFIG": str(world / "mrag.yaml")}
    environment |= {"OPENAI_API_KEY": "none", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    options: dict[str, Any] = {"env": environment, "cwd": world, "text": True, "start_new_session": True}
    log = world / "shown.txt"
    with log.open("w") as shown:
        process = subprocess.Popen(
            [sys.executable, "-m", "mrag_eval.cli", *words],
            stdout=shown,
            stderr=subprocess.STDOUT,
            # a shell that runs the tests in the background makes them and their children ignore Ctrl-C
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            **options,
        )
        until = time.monotonic() + 120
        while len(server.requests) < place.after:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.005)
        sent = time.monotonic()
        if number == signal.SIGINT:  # as a terminal does
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        process.wait(60)
        while living(world / "cache") and time.monotonic() - sent < 60:
            time.sleep(0.01)
        seconds = time.monotonic() - sent
    said_then = log.read_text()
    paid = Counter(json.dumps(body) for at, _, body in server.requests if at + DELAY + STORED < sent)
    before, slow = len(server.requests), False

    done = subprocess.run(
        [programs / "mrag-eval", *words, *place.again], capture_output=True, timeout=300, check=False, **options
    )
    again = Counter(json.dumps(body) for _, _, body in server.requests[before:])
    twice = sum((paid & again).values())
    in_all = len({json.dumps(body) for _, _, body in server.requests})
    print(
        f"\n{name:<22} {signal.Signals(number).name:<8} ended after {seconds:.2f} s; answered {sum(paid.values())} of "
        f"{before} sent, asked again {twice}, {in_all} in all"
    )
    assert process.returncode == 128 + number, said_then
    assert "mrag-eval: interrupted\n    run the same command again" in said_then
    assert "Traceback" not in said_then
    assert done.returncode == 0, done.stdout + done.stderr
    assert 0 < before < in_all
    assert twice == 0
    assert leftovers(world) == []
    assert seconds < BOUND
