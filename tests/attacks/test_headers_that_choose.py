"""Headers of requests: one that may choose what answers is written and compared, one that carries a key is hidden."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mrag_eval.config import Measurement, ModelSpec, differences, system_spec
from mrag_eval.models import AuxModel, RagSystem
from mrag_eval.platform import hidden, keep_secrets_of
from mrag_eval.report.files._measured import measurement_of

# Name, and the values of two runs.
CHOOSE = [
    ("X-Model-Variant", "variant-a", "variant-b"),
    ("X-Model-Variant", "fp8-2024-q4-r17", "fp8-2024-q4-r18"),
    ("X-Route", "eu-west/7f3a9c21", "us-east/11c0ffee"),
    ("X-Tokenizer", "one, and another 7", "one, and another 8"),
    ("anthropic-beta", "tools-2024-04-04", "tools-2024-05-05"),
]
CARRY = [
    ("Authorization", "Bearer pl4nted-first-9", "Bearer pl4nted-other-9"),
    ("X-Api-Key", "pl4nted-third-93", "pl4nted-fourth-94"),
    ("Cookie", "session=pl4nted-5", "session=pl4nted-6"),
    ("X-Team-Token", "pl4nted-seventh-7", "pl4nted-eighth-8"),
    ("X-Custom", "Bearer pl4nted-ninth-9", "Bearer pl4nted-tenth-10"),
    ("X-Custom", "sk-pl4nted0123456789ab", "sk-pl4nted0123456789cd"),
    ("X-Custom", "pl4nted-variable-1", "pl4nted-variable-2"),
]


def _evaluated(header: Any) -> Measurement:
    record = Measurement("t", subject={"code": "x"}).to_dict()
    args = {"model": "m", "header": header}
    content = {"configs": {"t": {"measurement": record}}, "config": {"model": "api", "model_args": args}}
    found = measurement_of(json.loads(json.dumps(hidden(content))), "t", "results")
    assert found is not None
    return found


def _seat(role: str) -> Callable[[Any], Measurement]:
    def record(header: Any) -> Measurement:
        args = {"model": "m", "base_url": "http://h/v1", "header": header}
        identity = AuxModel(ModelSpec(model="local-chat-completions", model_args=args), name="n").seat(role).identity
        return Measurement("t", instrument={role: hidden(identity)})

    return record


def _system(header: Any) -> Measurement:
    system = RagSystem(system_spec({"url": "http://h/ask", "header": header}))
    return Measurement("t", subject=hidden({"asked": system.identity()}))


PLACES: Mapping[str, Callable[[Any], Measurement]] = {
    "evaluated": _evaluated,
    "evaluated, in a text": lambda header: _evaluated(json.dumps(header)),
    **{role: _seat(role) for role in ("judge", "coral planner", "coral critic", "translator", "reranker", "labeller")},
    "judge, in a text": lambda header: _seat("judge")(json.dumps(header)),
    "system": _system,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("name", "one", "other"), [*CHOOSE, *CARRY])
def test_runs_differ_in_what_may_choose_the_model_and_not_in_a_key(
    place: str, name: str, one: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST_API_KEY", "pl4nted-variable-1")
    monkeypatch.setenv("OTHER_API_KEY", "pl4nted-variable-2")
    records, refused = [], []
    for value in (one, other):
        header = {name: value, "Accept": "*/*"}
        # as the config file, and the arguments of a run, are read
        keep_secrets_of({"header": json.dumps(header) if "text" in place else header})
        try:
            records.append(PLACES[place](header))
        except ValueError as fault:
            refused.append(str(fault))
    if refused:
        # a key by its name or its shape stands in no config file
        assert (name, one, other) in CARRY
        assert all("holds a secret" in text for text in refused)
        return
    texts = json.dumps([record.to_dict() for record in records])
    found = differences(*records)
    if (name, one, other) in CARRY:
        assert found == []
        assert "pl4nted" not in texts
    else:
        assert [name.lower() in each.key.lower() for each in found] == [True]
        assert one in texts
        assert other in texts
