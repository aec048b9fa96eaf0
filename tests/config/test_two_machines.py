"""Hidden parts of addresses: on one machine two stay two, those of two machines do not compare; users do not count."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.config import Measurement, differences
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.small import BASE, write_task, write_world

HOST = "http://search.example"
# An address with a key that is hidden, and the same one with another key.
ADDRESSES = {
    "a parameter": (f"{HOST}/find?code=Qm9yZGVycy1vZi1h", f"{HOST}/find?code=eWV0LWFub3RoZXIt"),
    "a common word": (f"{HOST}/find?code=winter", f"{HOST}/find?code=summer"),
    "behind the hash": (f"{HOST}/find#token=Qm9yZGVycy1vZi1h", f"{HOST}/find#token=eWV0LWFub3RoZXIt"),
    "a part of the path": (f"{HOST}/9fK2mQ7xL4vB8nT3/find", f"{HOST}/4hJ8pR1wZ6cD0sY5/find"),
}
# Where an address of the user's stands in a record.
SEATS = {
    "retrieval.retriever.url": lambda url: {"retrieval": {"retriever": {"url": url}}},
    "retrieval.rerank.url": lambda url: {"retrieval": {"rerank": {"url": url}}},
    "retrieval.embedder.base_url": lambda url: {"retrieval": {"embedder": {"base_url": url}}},
}
RECORDED = """
import json, sys
from mrag_eval.config import Measurement
from mrag_eval.platform import hidden, keep_secrets_of
settings = json.loads(sys.argv[1])
keep_secrets_of(settings)
print(json.dumps([hidden(Measurement("t", setting=setting).to_dict()) for setting in settings]))
"""


def recorded(machine: Path, settings: list[Any]) -> list[Measurement]:
    """Return the records of settings as a process on a machine, which has a cache of its own, writes them."""
    variables = {**os.environ, "MRAG_CACHE": str(machine), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", RECORDED, json.dumps(settings)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    for part in ("Qm9yZ", "eWV0L", "winter", "summer", "9fK2mQ", "4hJ8pR", "alice", "Passw0rd"):
        assert part not in done.stdout
    return [Measurement.from_dict(one, "a file") for one in json.loads(done.stdout)]


def test_a_hidden_key_is_compared_on_its_machine_alone(tmp_path: Path) -> None:
    """Walk over the seats of addresses and the places of keys."""
    cases = [(key, made, pair) for key, made in SEATS.items() for pair in ADDRESSES.values()]
    settings = [made(url) for _, made, pair in cases for url in (pair[0], pair[0], pair[1])]
    here, there = recorded(tmp_path / "here", settings), recorded(tmp_path / "there", settings)
    for number, (key, _, _) in enumerate(cases):
        first, again, other = here[3 * number : 3 * number + 3]
        elsewhere, _, _ = there[3 * number : 3 * number + 3]
        assert differences(first, again) == [], key
        (found,) = differences(first, other)
        assert found.key == key
        assert found.text.startswith(f"{key}={HOST}/")
        assert "(hidden:" in found.text
        (found,) = differences(first, elsewhere)
        assert found.text == f"{key} not comparable: hidden"
    # the marks of one machine are the same in every process
    (again,) = recorded(tmp_path / "here", settings[:1])
    assert differences(here[0], again) == []


@pytest.mark.slow
def test_compare_and_gate_say_so(
    tmp_path: Path,
    start: Callable[..., ModelServer],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of one run here and the same on another machine, whose marks have another beginning."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    world = write_world(tmp_path)
    found = start(lambda body, n: Answer(body={"hits": [{"id": "d1", "text": "It was built.", "lang": "en"}]}))
    service = {"url": f"{found.url}?code=Qm9yZGVycy1vZi1h", "body": {"q": "{query}"}, "passages": "hits"}
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl")}
    write_task(world, "asked", **BASE, data=data, retrieval={"mode": "all", "k": 1, "retriever": service})
    here, there = tmp_path / "here", tmp_path / "there"
    made = ["run", "--model", "oracle_answer", "--tasks", "asked", "--include_path", str(world), "--log_samples"]
    run([*made, "--output_path", str(here)])
    for path in here.rglob("*.json*"):
        copy = there / path.relative_to(here)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(re.sub(r"\(hidden:\w{4}\.", "(hidden:0000.", path.read_text("utf-8")), "utf-8")
        assert "Qm9yZ" not in path.read_text("utf-8")
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{metric: char3gram_recall, max_drop: 0.1}]\n", "utf-8")
    capsys.readouterr()
    for command in (
        ["compare", str(here), str(there)],
        ["gate", "--baseline", str(here), "--candidate", str(there), "--rules", str(rules)],
    ):
        assert run(command) == 2
        assert "retrieval.retriever.url: not comparable: hidden" in "".join(capsys.readouterr())


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize("seat", SEATS)
def test_two_users_at_one_address_ask_the_same_place(seat: str, tmp_path: Path) -> None:
    users = ("alice:the-1st-Passw0rd@", "bob:an0ther-Passw0rd@", "aToken0fS0mebody17@", "")
    found = recorded(tmp_path, [SEATS[seat](f"http://{user}search.example/find?k=5") for user in users])
    for one, other in combinations(found, 2):
        assert differences(one, other) == []
