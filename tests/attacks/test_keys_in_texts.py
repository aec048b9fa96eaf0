"""Keys whose text is in questions and documents, or in names and numbers: nothing that is read back is damaged."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mrag_eval.platform import close_stores
from tests.attacks.test_planted_secrets import run
from tests.programs import Programs
from tests.worlds.embedding_server import serving
from tests.worlds.model_server import ModelServer, said
from tests.worlds.small import BASE, write_task, write_world

KEY = "plantedEvaluated/0+1="


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to run in, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield tmp_path
    close_stores()


def written(folder: Path, pattern: str) -> str:
    """Return what the files of these names hold."""
    return "\n".join(p.read_bytes().decode("utf-8", "replace") for p in sorted(folder.rglob(pattern)) if p.is_file())


def strings(value: Any) -> Iterator[str]:
    """Yield every string among the values of a document."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)
    if isinstance(value, str):
        yield value


def outputs(folder: Path) -> list[Any]:
    """Return the results and the samples in a folder, parsed."""
    results = [json.loads(path.read_bytes()) for path in sorted(folder.rglob("results_*.json"))]
    lines = [line for path in sorted(folder.rglob("samples_*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    assert results
    assert lines
    return results + [json.loads(line) for line in lines]


def mention(place: Path) -> None:
    """Have the questions and documents of the small world mention the key."""
    for name, text in (("questions.jsonl", "query"), ("corpus.jsonl", "text")):
        path = place / name
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for row in rows:
            row[text] += f" The code is {KEY}."
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def small_task(place: Path, **retrieval: Any) -> None:
    write_world(place)
    data = {"benchmark": "jsonl", "path": str(place / "questions.jsonl"), "corpus": str(place / "corpus.jsonl")}
    write_task(place, "mine", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25", **retrieval})


def flags_of(model: ModelServer, limit: int = 1) -> str:
    return (
        f"--model local-chat-completions --model_args model=m,base_url={model.url},api_key_env=OPENAI_API_KEY "
        f"--apply_chat_template --tasks mine --include_path . --limit {limit} --log_samples"
    )


def process(program: Path, command: str, **variables: str | None) -> str:
    """Run a command in a process of its own, with these variables; None unsets one. Return what it shows."""
    inherited = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    environment = {name: value for name, value in inherited.items() if value is not None}
    words = [program, *shlex.split(command)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_key_in_texts_damages_nothing_that_is_read_back(
    place: Path, start: Callable[..., ModelServer], capfd: pytest.CaptureFixture[str]
) -> None:
    model = start()
    small_task(place)
    mention(place)
    screen, codes = run(
        [
            "index build corpus.jsonl indexed --kind bm25",
            "retrieve --tasks mine --include_path . --limit 1 -o rows",
            f"run {flags_of(model)} --output_path out --metadata retrieval.run_folder=rows",
            # another request, since replies to the same one are kept
            f"run {flags_of(model)} --output_path out --metadata retrieval.corpus=indexed --gen_kwargs max_gen_toks=17",
        ],
        capfd,
    )
    assert codes == [0, 0, 0, 0], screen
    # the question and its documents reach the model as they are, from a run folder and from an index
    assert len(model.requests) == 2
    for _, headers, body in model.requests:
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert body["messages"][-1]["content"].count(f"The code is {KEY}.") == 3
    assert f"The code is {KEY}." in written(place / "rows", "mine.jsonl")
    for document in outputs(place / "out"):
        assert not [text for text in strings(document) if KEY in text]
    assert "The code is (hidden)." in written(place / "out", "samples_*")


# values that are in texts, numbers, metrics and manifests, under names that keys have
NAMED_LIKE_KEYS = {
    "DB_PASSWORD": "lighthouse",
    "TEST_PASSWORD": "11111111",
    "CACHE_KEY": "char3gram_recall",
    "SORT_KEY": "passages",
    "MY_SECRET": "retrieval",
    "AUTH_TOKEN": "provenance",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["mrag-eval", "lm_eval"])
def test_variables_named_like_keys_change_nothing(
    program: str, place: Path, start: Callable[..., ModelServer], programs: Programs
) -> None:
    model = start()
    small_task(place)
    for folder, variables in {"with": NAMED_LIKE_KEYS, "without": {}}.items():
        # a cache of its own, so that the second run asks as well
        own = {**variables, "MRAG_CACHE": str(place / f"cache {folder}")}
        process(programs / program, f"run {flags_of(model, 3)} --output_path {folder}", **own)
    (results, *samples), (as_before, *samples_before) = outputs(place / "with"), outputs(place / "without")
    assert samples == samples_before
    assert results["results"] == as_before["results"]
    assert results["configs"]["mine"]["scores"] == as_before["configs"]["mine"]["scores"]
    bodies = [body for _, _, body in model.requests]
    assert len(bodies) == 6
    assert bodies[:3] == bodies[3:]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["variable", "header"])
@pytest.mark.parametrize("program", ["mrag-eval", "lm_eval"])
def test_the_key_of_the_evaluated_model_is_hidden_in_what_it_replies(
    program: str, by: str, place: Path, start: Callable[..., ModelServer], programs: Programs
) -> None:
    model = start(lambda body, attempt: said(f"1841, and your key is {KEY}, {quote(KEY, safe='')}"))
    small_task(place)
    command = f"run {flags_of(model)} --output_path out"
    if by == "header":
        args = {"model": "m", "base_url": model.url, "header": {"Authorization": f"Bearer {KEY}"}}
        command = command.replace(
            f"model=m,base_url={model.url},api_key_env=OPENAI_API_KEY", shlex.quote(json.dumps(args))
        )
    screen = process(programs / program, command, OPENAI_API_KEY=KEY if by == "variable" else None)
    assert model.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    # the harness's own command prints the arguments that it was given
    assert KEY not in screen or (program, by) == ("lm_eval", "header")
    assert "your key is (hidden), (hidden)" in written(place / "out", "samples_*")
    for document in outputs(place / "out"):
        assert not [text for text in strings(document) if KEY in text]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["engineer", "11111111", "char3gram_recall", "passages", "none", "EMPTY"])
def test_a_common_word_is_a_key_of_the_evaluated_model(
    key: str,
    place: Path,
    start: Callable[..., ModelServer],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = start()
    small_task(place)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    screen, codes = run([f"run {flags_of(model)} --output_path out"], capfd)
    assert codes == [0], screen
    assert model.requests[0][1]["Authorization"] == f"Bearer {key}"
    assert f"Bearer {key}" not in screen + written(place / "out", "*")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["token-abc123", "sk-1234", "a-Typed-key-9f27ab1c44"])
def test_a_key_that_is_typed_is_sent_and_written_nowhere(
    key: str, place: Path, start: Callable[..., ModelServer], capfd: pytest.CaptureFixture[str]
) -> None:
    model = start()
    small_task(place)
    typed = flags_of(model).replace("api_key_env=OPENAI_API_KEY", f"api_key={key}")
    screen, codes = run([f"run {typed} --output_path out"], capfd)
    assert codes == [0], screen
    assert model.requests[0][1]["Authorization"] == f"Bearer {key}"
    assert key not in screen + written(place / "out", "*")


def test_a_rotated_password_of_an_embedder_is_no_other_setting(
    place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_task(place, kind="dense")
    monkeypatch.setenv("EMBEDS", "0ne-embedder-key")
    monkeypatch.setenv("EMBEDS_TOO", "an0ther-embedder-key")

    def settings(password: str, variable: str = "EMBEDS", **more: str) -> str:
        address = endpoint.url.replace("//", f"//user:{password}@") if password else endpoint.url
        embedder = {"model": f"openai:enc@{address}", "api_key_env": variable, "normalize": True}
        return f"--metadata {shlex.quote(json.dumps({'retrieval': {'embedder': embedder, **more}}))}"

    first, second = "the-1st-Passw0rd", "r0tated-Password"
    folder = "retrieve --tasks mine --include_path . -o rows --limit"
    model = "run --model oracle_answer --tasks mine --include_path . --limit 2 --log_samples --output_path out"
    with serving() as endpoint:
        commands = [f"{folder} 1 {settings(first)}", f"{folder} 2 {settings(second, 'EMBEDS_TOO')}"]
        commands += [f"{model} {settings(password, run_folder='rows')}" for password in (first, "pw", "")]
        screen, codes = run(commands, capfd)
    assert codes == [0] * 5, screen
    assert "mine: 2 rows, 1 of " in screen
    texts = screen + written(place / "rows", "*") + written(place / "out", "*")
    assert not [password for password in (first, second, ":pw@") if password in texts]
