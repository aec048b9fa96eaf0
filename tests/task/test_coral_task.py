"""Mode ``coral`` in a run: its effect on prompt, samples, results and traces, and what is refused before it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm_eval.utils import handle_non_serializable

from mrag_eval.cli import main
from mrag_eval.config import Agent, Retrieval, validated
from mrag_eval.core import Passage, RagDoc
from mrag_eval.models import AuxModel, Reply
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import agents_for, find_trace, retrieve, shown_trace
from tests.retrieval.agents.scripted import BAD, GOOD, Asked, ScriptedAgent, enough, plan
from tests.task.test_hook import build, knows_everything, run, run_ranks
from tests.worlds.small import BASE, TOPICS, ScriptedLM, write_task

ScriptedAgents = Callable[..., ScriptedAgent]


@pytest.fixture
def looped(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the task ``looped``: mode coral over the small corpus, with a folder for traces."""
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    agent = {"k": 2, "max_rounds": 2}
    write_task(tasks, "looped", **BASE, data=data, agent=agent, retrieval={"mode": "coral", "k": 2, "kind": "bm25"})
    return tasks


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedAgents:
    """Make a scripted agent planner and critic of every task that is built from now on."""
    config = tmp_path / "agents.yaml"
    config.write_text("models: {scripted: {model: dummy}}\nplanner: scripted\n", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(config))

    def place(**scripts: Any) -> ScriptedAgent:
        agent = ScriptedAgent(**scripts)
        monkeypatch.setattr(AuxModel, "answer", lambda _, *asked: agent.answer(*asked))
        return agent

    return place


def to_german(asked: Asked) -> str:
    """English first (the question's own language is added by rule), then German as well."""
    return plan("en") if asked.role == "plan" else plan("en", "de", query=asked.question)


def test_passages_scores_and_traces_are_in_samples_and_results(
    looped: Path, seat: ScriptedAgents, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    agent = seat(
        planner=to_german,
        critic=lambda a: GOOD if "1841" in a.user or "faro" in a.user else BAD,
        sufficiency=lambda a: enough(True, "the year is there"),
    )
    results = run(looped, "looped")
    samples = {s["doc"]["id"]: s for s in results["samples"]["looped"]}
    first = samples["q-lighthouse-en"]
    (passage,) = first["doc"]["passages"]
    assert passage["id"] == "lighthouse-en"
    assert passage["critic"]["total"] == 12.5
    assert passage["critic"]["critique"] == "on the subject"
    assert first["doc"]["ranking"]["scores"] == [12.5]
    assert first["doc"]["trace"]["stopped"] == "sufficient"
    assert first["rows"]["loop"]["calls"] == len(first["doc"]["trace"]["rounds"][0]["hits"]) + 2
    assert first["rows"]["loop"]["used"] == {"en": 1}
    # the model gets the original question, with the document
    assert "The lighthouse of Varn was built in 1841." in first["arguments"][0][0]
    table = results["configs"]["looped"]["scores"]["loop"]
    assert table["rows"] == 15
    assert sum(table["rounds"].values()) == sum(table["stopped"].values()) == 15
    bare = sum(s["rows"]["loop"]["shown"] == 0 for s in samples.values())
    assert table["without_documents"]["value"] == pytest.approx(bare / 15)
    assert 0 < bare < 15
    assert results["configs"]["looped"]["measurement"]["setting"]["agent"]["planner"] == "scripted"
    assert any(m.startswith("[looped] rounds: ") for m in (r.getMessage() for r in caplog.records))
    json.dumps(results, default=handle_non_serializable, allow_nan=False)
    assert len(agent.of("plan")) == 15


def test_the_ranking_is_measured_as_any_other(looped: Path, seat: ScriptedAgents) -> None:
    seat(planner=lambda a: plan("en", "de", "es"), critic=lambda a: GOOD)
    results = run(looped, "looped", samples={"looped": [0, 1]})
    for sample in results["samples"]["looped"]:
        hits = [p["id"] for p in sample["doc"]["passages"]]
        relevant = set(sample["doc"]["relevant_ids"])
        assert sample["hit@2"] == float(bool(relevant & set(hits)))
        assert sample["rows"]["languages"]["searchable"] == {"de": 3, "en": 3, "es": 3}


def test_the_final_documents_may_be_shown_in_translation(looped: Path, seat: ScriptedAgents, tmp_path: Path) -> None:
    german = TOPICS["lighthouse"]["de"][0]
    line = {"source": german, "source_lang": "de", "target": german.upper(), "target_lang": "en"}
    (tmp_path / "table.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    table = {"backend": "table", "path": str(tmp_path / "table.jsonl"), "strict": True}
    seat(planner=lambda a: plan("en", "de"), critic=lambda a: GOOD if "1841 gebaut" in a.user else BAD)
    metadata = {"retrieval": {"document_translation": "en", "translator": table}}
    results = run(looped, "looped", samples={"looped": [0]}, metadata=metadata)
    (passage,) = results["samples"]["looped"][0]["doc"]["passages"]
    assert (passage["text"], passage["lang"]) == ("DER LEUCHTTURM VON VARN WURDE 1841 GEBAUT.", "en")
    assert passage["critic"]["total"] == 12.5
    # the loop used only German
    assert results["samples"]["looped"][0]["rows"]["loop"]["used"] == {"de": 1}


def test_a_planner_that_is_down_leaves_rows_without_score_and_the_run_continues(
    looped: Path, seat: ScriptedAgents
) -> None:
    down = Reply("", error="timeout: nothing came")
    seat(planner=lambda a: down if "lighthouse" in a.question else plan("en"))
    results = run(looped, "looped", limit=3)
    scores = results["configs"]["looped"]["scores"]
    assert scores["loop"]["stopped"] == {"planner: timeout": 1, "sufficient": 2}
    assert scores["loop"]["faults"] == {"planner: timeout (ended)": 1, "planner: no_query_language (rule)": 2}
    # of the others alone: nobody knows which documents the first would have had
    assert (scores["loop"]["without_documents"]["value"], scores["loop"]["without_documents"]["n"]) == (0.0, 2)
    assert scores["failures"] == {"plan": {"timeout": 1}}
    for name in ("char3gram_recall", "hit@2", "mrr@2"):
        assert scores["unscored"][name] == {"plan failed (timeout)": 1}
        assert scores["metrics"][name]["n"] == 2
    assert sum(scores["languages"]["retrieved"].values()) == sum(
        len(sample["doc"]["ranking"]["ids"]) for sample in results["samples"]["looped"][1:]
    )


@pytest.mark.parametrize("role", ["critic", "sufficiency"])
def test_a_call_to_the_critic_that_fails_is_one_of_its_row(looped: Path, seat: ScriptedAgents, role: str) -> None:
    """The choice of documents cannot be trusted if a document was not judged, or their sufficiency."""
    down = Reply("", error="server: HTTP 500")
    seat(**{role: lambda a: down if "lighthouse" in a.question else GOOD if role == "critic" else enough(True)})
    scores = run(looped, "looped", limit=3)["configs"]["looped"]["scores"]
    assert scores["failures"] == {"critique": {"server": 1}}
    assert scores["unscored"]["hit@2"] == {"critique failed (server)": 1}


def test_replies_that_cannot_be_read_are_handled_by_the_loop_s_rules(looped: Path, seat: ScriptedAgents) -> None:
    seat(planner=lambda a: "?", critic=lambda a: "?")
    scores = run(looped, "looped", limit=3)["configs"]["looped"]["scores"]
    assert "failures" not in scores
    assert scores["metrics"]["char3gram_recall"]["n"] == 3


def test_two_ranks_count_together(looped: Path, seat: ScriptedAgents) -> None:
    seat(critic=lambda a: GOOD)
    results, _ = run_ranks(looped, knows_everything, name="looped")
    assert results["configs"]["looped"]["scores"]["loop"]["rows"] == 15


def test_a_run_leaves_nothing_in_the_working_directory(
    looped: Path, seat: ScriptedAgents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces are part of the samples, so that a later run overwrites none of them."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    seat()
    results = run(looped, "looped", limit=1)
    assert results["samples"]["looped"][0]["doc"]["trace"]["rounds"]
    assert list(here.iterdir()) == []


def test_an_agent_block_does_nothing_in_another_mode(looped: Path) -> None:
    """A suite sets its agents once, for all its modes."""
    results = run(looped, "looped", limit=1, metadata={"retrieval.mode": "all"})
    assert "agent" not in results["configs"]["looped"]["measurement"]["setting"]
    assert "trace" not in results["samples"]["looped"][0]["doc"]


# ------------------------------------------------------------------ refused before it starts


def test_without_a_planner_the_error_shows_what_to_write(
    looped: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"task looped: retrieval\.mode=coral needs a planner and a critic") as err:
        build(looped, "looped")
    assert "planner: qwen" in str(err.value)
    assert "\n" not in err.value.message


def test_agents_are_named_in_the_config_file_or_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mrag.yaml"
    config.write_text("models:\n  a: {model: dummy}\n  b: {model: dummy}\nplanner: a\n", encoding="utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    assert agents_for(Agent()).names == {"planner": "a", "critic": "a"}
    both = agents_for(Agent())
    # one object, so that a budget counts once
    assert both.planner.model is both.critic.model
    assert agents_for(Agent(critic="b")).names == {"planner": "a", "critic": "b"}
    with pytest.raises(ConfigError, match="models has no 'c'"):
        agents_for(Agent(planner="c"))
    config.write_text("models:\n  a: {model: dummy}\nplanner: aa\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"planner: no model 'aa' under models; did you mean 'a'\?"):
        agents_for(Agent())


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"agent": {"max_round": 2}}, ConfigError, r"agent: unknown key 'max_round'; did you mean 'max_rounds'\?"),
        ({"agent": {"max_rounds": 0}}, ConfigError, "agent.max_rounds"),
        ({"retrieval": {"pool": ["en", "xx"]}}, ConfigError, "unknown language 'xx'"),
        ({"retrieval": {"pool": ["en", "ko", "am"]}}, CorpusError, "has no Korean and no Amharic shard"),
        ({"agent": {"min_total": 13}}, ConfigError, r"min_total 13 cannot be reached: with these weights 12\.5"),
        ({"agent": {"corpora": "own", "rewrite": False}}, ConfigError, "set max_rounds=1"),
        ({"agent": {"preset": "fixed"}}, ConfigError, "no preset 'fixed'"),
        ({"agent": {"preset": "no_filter", "fallback": "best_scored"}}, ConfigError, "no critic scores"),
        ({"retrieval": {"languages": ["en"]}}, ConfigError, "set retrieval.pool or agent.corpora instead"),
        ({"retrieval": {"candidates": "row"}}, ConfigError, "searches whole corpora"),
        ({"retrieval": {"corpus": "published"}}, ConfigError, "searches an index"),
        ({"retrieval": {"rerank": {"model": "x"}}}, ConfigError, "the critic orders the documents"),
        ({"retrieval": {"query_translation": "en"}}, ConfigError, "the planner writes the queries"),
        ({"agent": {"prompts": {"plan": "nothing"}}}, ConfigError, "no built-in template and no file 'nothing'"),
    ],
)
def test_faults_of_the_block_are_named(
    looped: Path, seat: ScriptedAgents, metadata: dict[str, Any], error: type[Exception], message: str
) -> None:
    seat()
    with pytest.raises(error, match=message):
        run(looped, "looped", metadata=metadata, limit=1)


def test_a_fixed_scope_that_the_corpus_lacks_is_found_before_the_run(seat: ScriptedAgents) -> None:
    agent, corpus = seat(), [Passage("p", "en", "text")]
    rows, retrieval = [RagDoc("a", "q", "en", culture_lang="es")], Retrieval(mode="coral", kind="bm25")
    with pytest.raises(CorpusError, match="no Spanish shard"):
        retrieve(rows, retrieval, corpus=corpus, agent=Agent(preset="fixed_own"))
    with pytest.raises(DataError, match="row 'b' has no culture_lang"):
        retrieve([RagDoc("b", "q", "en")], retrieval, corpus=corpus, agent=Agent(preset="fixed_own"))
    assert agent.asked == []
    retrieve(rows, retrieval, corpus=corpus, agent=Agent())
    assert agent.asked


def test_the_loop_is_retrieved_with_as_any_other_mode_is(seat: ScriptedAgents) -> None:
    seat()
    retrieval = Retrieval(mode="coral", kind="bm25")
    (found,) = retrieve([RagDoc("a", "text", "en")], retrieval, corpus=[Passage("p", "en", "text")])
    assert [hit.id for hit in found.passages] == ["p"]
    assert found.trace is not None
    assert found.trace.stopped == "sufficient"


def test_an_empty_question_is_named(seat: ScriptedAgents) -> None:
    agent = seat()
    with pytest.raises(DataError, match="row 'a' has an empty query"):
        retrieve([RagDoc("a", " ", "en")], Retrieval(mode="coral", kind="bm25"), corpus=[Passage("p", "en", "text")])
    assert agent.asked == []


# ------------------------------------------------------------------ presets


def test_presets_are_settings_that_may_be_set_otherwise() -> None:
    assert validated(Agent, {"preset": "no_rewriting"}, "agent").rewrite is False
    assert validated(Agent, {"preset": "no_rewriting", "rewrite": True}, "agent").rewrite is True
    assert validated(Agent, {"preset": "fixed_own_en"}, "agent").corpora == "own+en"


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("coral", {}),
        ("no_rewriting", {"rewrite": False}),
        ("fixed_own", {"corpora": "own"}),
        ("fixed_own_en", {"corpora": "own+en"}),
        ("fixed_all", {"corpora": "all"}),
        ("no_filter", {"filter": "none"}),
    ],
)
def test_a_preset_changes_its_settings_alone(preset: str, changes: dict[str, Any]) -> None:
    found = validated(Agent, {"preset": preset}, "agent").model_dump()
    assert found == {**Agent().model_dump(), "preset": preset, **changes}


@pytest.mark.parametrize(
    ("preset", "scope"),
    [
        # q-lighthouse-en: asked in English, about a culture whose language is Spanish
        ("fixed_own", {"es": 3}),
        ("fixed_own_en", {"en": 3, "es": 3}),
        ("fixed_all", {"de": 3, "en": 3, "es": 3, "ru": 3, "zh": 3}),
    ],
)
def test_fixed_scopes_are_those_of_the_modes(
    looped: Path, seat: ScriptedAgents, preset: str, scope: dict[str, int]
) -> None:
    agent = seat(planner=lambda a: '{"rewritten_query": "lighthouse again"}', critic=lambda a: BAD)
    results = run(looped, "looped", samples={"looped": [0]}, metadata={"agent": {"preset": preset}})
    (sample,) = results["samples"]["looped"]
    assert sample["doc"]["id"] == "q-lighthouse-en"
    assert sample["rows"]["languages"]["searchable"] == scope
    assert [a.role for a in agent.asked if "plan" in a.role] == ["replan"]


# ------------------------------------------------------------------ traces


def written(results: Any, folder: Path) -> Path:
    """Write the samples of the task ``looped`` as the harness does, into the folder."""
    folder.mkdir()
    text = "".join(json.dumps(s, default=handle_non_serializable) + "\n" for s in results["samples"]["looped"])
    (folder / "samples_looped_2026-11-22.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def traced(looped: Path, seat: ScriptedAgents, tmp_path: Path) -> Path:
    """The folder with the samples of a run."""
    seat(
        planner=lambda a: plan("en") if a.role == "plan" else plan("de", "en", query="lighthouse of Varn, year"),
        critic=lambda a: GOOD if "Leuchtturm" in a.user else BAD,
        sufficiency=lambda a: enough(True, "the year is there"),
    )
    return written(run(looped, "looped", lm=ScriptedLM(knows_everything)), tmp_path / "out")


def test_a_trace_reads_like_the_papers_figure(traced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CORAL, Figure 9: the question, each round's documents, the decision with its reason, the rewritten query."""
    with pytest.raises(SystemExit) as done:
        main(["trace", "q-lighthouse-en", str(traced)])
    assert done.value.code == 0
    shown = capsys.readouterr().out
    order = [
        "When was the lighthouse of Varn built?",
        "Round 1",
        "corpora     en (English)",
        "query       the question",
        "Document 1  en  lighthouse-en  dropped  rel 1 use 1 spec 1 comp 1  total 2.5",
        "Critic: beside the point",
        "enough      not asked",
        "Round 2",
        "corpora     de (German), en (English)",
        "query       lighthouse of Varn, year",
        "lighthouse-en  seen before, dropped",
        "enough      True",
        "reason      the year is there",
    ]
    place = -1
    for part in order[:-3]:
        assert part in shown
        assert shown.index(part) > place
        place = shown.index(part)
    assert all(part in shown for part in order)
    assert "ended: " in shown.splitlines()[-1]


def test_a_rewritten_query_that_begins_like_the_question_is_shown(looped: Path, seat: ScriptedAgents) -> None:
    seat(
        planner=lambda a: plan("en") if a.role == "plan" else plan("en", query=f"{a.question}\nIn which year?"),
        critic=lambda a: BAD,
    )
    out = written(run(looped, "looped", samples={"looped": [0]}), looped / "out")
    shown = shown_trace(find_trace([out], "0"))
    assert "query       the question\n" in shown
    assert "query       When was the lighthouse of Varn built? In which year?" in shown


def test_a_trace_is_found_by_id_and_by_number(traced: Path) -> None:
    by_id = find_trace([traced], "q-lighthouse-en")
    assert find_trace([traced], str(by_id.doc_id)) == by_id
    assert shown_trace(by_id).startswith("looped · q-lighthouse-en")


def test_the_newest_trace_counts_and_tasks_stay_distinct(traced: Path) -> None:
    (samples,) = traced.iterdir()
    record = json.loads(samples.read_text("utf-8").splitlines()[0])
    row = record["doc"]["id"]
    changed = record | {"doc": record["doc"] | {"trace": record["doc"]["trace"] | {"stopped": "budget"}}}
    (traced / "samples_looped_2026-11-23.jsonl").write_text(json.dumps(changed) + "\n", encoding="utf-8")
    assert find_trace([traced], row).trace.stopped == "budget"
    (traced / "samples_other_2026-11-23.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="several tasks: looped, other"):
        find_trace([traced], row)
    assert find_trace([traced], row, "other").task == "other"


def test_a_missing_trace_is_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["trace", "x", "nowhere"])
    assert done.value.code == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_a_row_without_trace_names_the_tasks_that_have_some(traced: Path) -> None:
    with pytest.raises(DataError, match=r"no trace of row 'q-nothing' in .*; tasks there: looped"):
        find_trace([traced], "q-nothing")
