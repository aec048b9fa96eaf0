"""Relevance by a panel or by n-grams: votes, faults, names of measures, and records in results and samples."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lm_eval.utils import handle_non_serializable

from mrag_eval.config import Judge
from mrag_eval.core import Labels, Passage, RagDoc, Ranked, Scored
from mrag_eval.judging import Panel
from mrag_eval.judging import _relevance as labelling
from mrag_eval.judging._recount import OTHER_LANGUAGE
from mrag_eval.judging._relevance import Labeller, labelled, labeller_for
from mrag_eval.platform import ConfigError, to_json
from mrag_eval.scoring import NO_ANSWERS, LabellingShare, LabelRecord, RowRecord, label_line, score_rows
from mrag_eval.scoring._relevance_table import label_table
from tests.task.test_hook import knows_everything, run, run_ranks
from tests.worlds.judges import ScriptedJudge, failing, lists_answers
from tests.worlds.small import BASE, write_task

IDS = ("a", "b", "c", "d")
TEXTS = {
    "a": Passage("a", "en", "The bridge is closed in winter.", "Varn"),
    "b": Passage("b", "en", "The ferry leaves at seven from the old pier.", "Varn"),
    "c": Passage("c", "de", "Die Fähre legt um sieben ab.", "Varn"),
    "d": Passage("d", "en", "Ferries leave at seven, from the old pier.", "Sund"),
}


def row(answers: tuple[str, ...] = ("It leaves at seven from the old pier.",), **doc: Any) -> Scored:
    ranking = tuple(Ranked(name, f"doc-{name}", TEXTS[name].lang, 1.0 - i / 10) for i, name in enumerate(IDS))
    return Scored(RagDoc("q", "When does the ferry leave?", "en", answers, **doc), "At seven.", ranking)


def by_panel(scored: Scored, *scripts: Any, tie: Any = "incorrect") -> Labels:
    judges = {f"j{i}": ScriptedJudge(script) for i, script in enumerate(scripts, 1)}
    labeller = Labeller("judge", Judge(tie=tie), Panel(judges))  # type: ignore[arg-type]
    (found,), _ = labelled([scored], TEXTS, labeller)
    assert found.labels is not None
    return found.labels


# ------------------------------------------------------------------ the panel


def test_one_judge_lists_passages_by_their_number() -> None:
    labels = by_panel(row(), lambda prompt: "[2, 4]")
    assert labels.relevant == {"b", "d"}
    assert labels.grades == {"a": 0, "b": 1, "c": 0, "d": 1}
    assert to_json(LabelRecord.of(labels)) == {"by": "judge", "judged": 4, "relevant": [2, 4], "votes": {"j1": [2, 4]}}


def test_the_judge_reads_question_answer_and_every_passage() -> None:
    judge = ScriptedJudge(lambda prompt: "[]")
    labelled([row()], TEXTS, Labeller("judge", Judge(), Panel({"j": judge})))  # type: ignore[dict-item]
    (conversation,) = judge.asked
    shown = conversation[-1]["content"]
    assert "When does the ferry leave?" in shown
    assert "It leaves at seven from the old pier." in shown
    assert "At seven." not in shown, "the model's answer has no say in it"
    places = [shown.index(f"<passage_{n}>\n") for n in (1, 2, 3, 4)]
    assert places == sorted(places)
    assert all(TEXTS[name].text in shown for name in IDS)
    assert "Varn\n" + TEXTS["a"].text in shown


def test_a_passage_needs_more_than_half_of_the_panel() -> None:
    labels = by_panel(row(), lambda p: "[1, 2]", lambda p: "[2, 3]", lambda p: "[2, 3]")
    assert labels.relevant == {"b", "c"}


@pytest.mark.parametrize(
    ("scripts", "tie", "fault"),
    [
        ((failing(), failing()), "incorrect", "relevance: no majority: 2 of 2 judges gave no verdict"),
        ((lambda p: "none of them",), "incorrect", "relevance: no majority: 1 of 1 judge gave no verdict"),
        ((lambda p: "[2]", lambda p: "[]"), "abstain", "relevance: unjudged (tie)"),
        # passage 2 would be decided by the judge that failed
        (
            (lambda p: "[2, 4]", lambda p: "[4]", failing()),
            "incorrect",
            "relevance: no majority: 1 of 3 judges gave no verdict",
        ),
    ],
)
def test_without_a_majority_the_row_has_no_labels(scripts: Any, tie: str, fault: str) -> None:
    labels = by_panel(row(), *scripts, tie=tie)
    assert labels.fault == fault
    (scores,) = score_rows([with_labels(labels)], ["hit@4", "ndcg@4"], searched=True)
    assert scores.values == {}
    assert scores.unscored == {"hit@4": fault, "ndcg@4": fault}


def test_an_even_split_leaves_a_passage_out() -> None:
    assert by_panel(row(), lambda p: "[2, 4]", lambda p: "[4]").relevant == {"d"}


def test_a_row_without_an_answer_is_not_asked_about() -> None:
    labels = by_panel(row(answers=()), lambda p: "[1]")
    assert (labels.fault, labels.relevant) == (NO_ANSWERS, frozenset())


# ------------------------------------------------------------------ the measures


def with_labels(labels: Labels, scored: Scored | None = None) -> Scored:
    from dataclasses import replace

    return replace(scored or row(), labels=labels)


def test_measures_by_hand() -> None:
    labels = Labels("judge", IDS, frozenset({"b", "d"}))
    (scores,) = score_rows([with_labels(labels)], ["hit@1", "hit@4", "mrr@4", "ndcg@4", "recall@2"], searched=True)
    # ranks 2 and 4; the ideal ranking has the two known relevant passages at 1 and 2
    ideal = 1 + 1 / math.log2(3)
    assert scores.values == pytest.approx(
        {
            "hit@1": 0.0,
            "hit@4": 1.0,
            "mrr@4": 0.5,
            "recall@2": 0.5,
            "ndcg@4": (1 / math.log2(3) + 1 / math.log2(5)) / ideal,
        }
    )


def test_nothing_relevant_is_zero_and_not_unknown() -> None:
    for labels in (Labels("judge", IDS), Labels("judge", ())):
        (scores,) = score_rows([with_labels(labels)], ["hit@4", "ndcg@4", "mrr@4"], searched=True)
        assert scores.values == {"hit@4": 0.0, "ndcg@4": 0.0, "mrr@4": 0.0}


def test_measures_by_the_proxy_say_so() -> None:
    labels = Labels("proxy", IDS, frozenset({"a"}))
    (scores,) = score_rows([with_labels(labels)], ["hit@1", "mrr@4"], searched=True, quota_depth=4)
    assert scores.values == {"hit@1_score_merged_proxy": 1.0, "mrr@4_score_merged_proxy": 1.0}
    assert set(scores.unscored) == {"hit@1_proxy", "mrr@4_proxy"}


# ------------------------------------------------------------------ the proxy


def by_proxy(scored: Scored, threshold: float = 0.6) -> Labels:
    block = Judge.model_validate({"relevance": {"labels": "proxy", "threshold": threshold}})
    (found,), share = labelled([scored], TEXTS, Labeller("proxy", block))
    assert share == LabellingShare("proxy", threshold, 3)
    assert found.labels is not None
    return found.labels


def test_the_proxy_counts_the_grams_of_the_answer() -> None:
    # "seven" has the 3-grams sev, eve, ven: all of them in b and d, none in a; c is in another language
    assert by_proxy(row(("seven",)), 1.0).relevant == {"b", "d"}
    # it, leaves (lea eav ave ves), at, seven, from (fro rom), old, pier (pie ier): 14 items without the article. b
    # holds all but "it", 13/14; d has "leave", without ves: 12/14
    assert by_proxy(row(), 13 / 14).relevant == {"b"}
    assert by_proxy(row(), 12 / 14).relevant == {"b", "d"}
    assert by_proxy(row(), 0.93).relevant == frozenset()


def test_the_proxy_says_nothing_across_languages() -> None:
    assert by_proxy(row(gold_doc_lang="en")).fault is None
    assert by_proxy(row(gold_doc_lang="de")).fault == OTHER_LANGUAGE
    assert by_proxy(row(answers=())).fault == NO_ANSWERS


# ------------------------------------------------------------------ who labels


def block(labels: str, **more: Any) -> Judge:
    return Judge.model_validate({"relevance": {"labels": labels, **more}})


def test_who_labels(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert labeller_for(Judge()) is None
    labelling._warn_once.cache_clear()
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: None)
    found = labeller_for(block("auto"))
    assert found is not None
    assert found.by == "proxy"
    assert any("end in _proxy" in record.getMessage() for record in caplog.records)
    with pytest.raises(ConfigError, match="labels is 'judge', but no judge is configured"):
        labeller_for(block("judge"))
    panel = Panel({"j": ScriptedJudge(lambda p: "[]")})  # type: ignore[dict-item]
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: panel)
    for source in ("auto", "judge"):
        found = labeller_for(block(source))
        assert found is not None
        assert found.panel is panel
    proxy = labeller_for(block("proxy"))
    assert proxy is not None
    assert proxy.panel is None
    with pytest.raises(ConfigError, match="no built-in template and no file 'relevence'; did you mean 'relevance'"):
        labeller_for(block("auto", prompt="relevence"))


# ------------------------------------------------------------------ a run


@pytest.fixture
def unknown(world: Path) -> Path:
    """The task ``unknown``: rows that name no relevant documents, with six passages retrieved and two shown."""
    lines = [json.loads(line) for line in (world / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    text = "".join(json.dumps({k: v for k, v in line.items() if k != "relevant_ids"}) + "\n" for line in lines)
    (world / "unlabelled.jsonl").write_text(text, encoding="utf-8")
    data = {"benchmark": "jsonl", "path": str(world / "unlabelled.jsonl"), "corpus": str(world / "corpus.jsonl")}
    keys = {**BASE, "metrics": ["match", "hit@6", "mrr@6", "ndcg@6"]}
    retrieval = {"mode": "all", "k": 2, "depth": 6, "kind": "bm25"}
    write_task(world, "unknown", **keys, data=data, retrieval=retrieval, judge={"relevance": {"labels": "auto"}})
    return world


@pytest.fixture
def lister(monkeypatch: pytest.MonkeyPatch) -> ScriptedJudge:
    judge = ScriptedJudge(lists_answers)
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: Panel({"lister": judge}))  # type: ignore[dict-item]
    return judge


def test_a_run_with_a_judge(unknown: Path, lister: ScriptedJudge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    results = run(unknown, "unknown")
    leaf, scores = results["results"]["unknown"], results["configs"]["unknown"]["scores"]
    assert len(lister.asked) == 15
    assert "hit@6_proxy,none" not in leaf
    table = scores["relevance"]
    assert (table["by"], table["labelled"], table["unlabelled"]) == ("judge", 15, {})
    assert table["judges"] == {"lister": "acme/judge-1"}
    assert table["ledger"]["lister"]["calls"] == 15
    for sample in results["samples"]["unknown"]:
        texts = {p["id"]: p["text"] for p in corpus(unknown)}
        ids = sample["doc"]["ranking"]["ids"]
        answer = sample["doc"]["answers"][0]
        expected = [n for n, name in enumerate(ids, 1) if answer in texts[name]]
        record = sample["rows"]["relevance"]
        assert record["relevant"] == expected
        assert sample["hit@6"] == float(bool(expected))
        assert sample["mrr@6"] == (1 / expected[0] if expected else 0.0)
        assert sample["rows"]["retrieved"] == int(bool(expected))
        assert sample["rows"]["kept"] == int(any(n <= 2 for n in expected))
    # "match" counts every answer as right
    attribution = scores["attribution"]
    assert attribution["correct_by"] == "match"
    assert attribution["overall"]["retrieved"]["value"] == leaf["hit@6,none"] > 0
    assert any("rankings labelled by one judge" in record.getMessage() for record in caplog.records)
    json.dumps(results, default=handle_non_serializable, allow_nan=False)


def corpus(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_run_without_a_judge(unknown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: None)
    results = run(unknown, "unknown")
    leaf, scores = results["results"]["unknown"], results["configs"]["unknown"]["scores"]
    assert not {"hit@6,none", "mrr@6,none"} & set(leaf)
    # in this world the document is never in the question's language
    assert scores["relevance"] == {
        "by": "proxy",
        "labelled": 0,
        "unlabelled": {OTHER_LANGUAGE: 15},
        "relevant": None,
        "none": 0,
        "threshold": 0.6,
        "n": 3,
    }
    assert scores["unscored"]["hit@6_proxy"] == {OTHER_LANGUAGE: 15}


def test_kept_passages_are_reported_without_a_verdict(unknown: Path, lister: ScriptedJudge) -> None:
    results = run(unknown, "unknown", metadata={"metrics": ["hit@6"]})
    scores = results["configs"]["unknown"]["scores"]
    assert "attribution" not in scores
    kept = [s["rows"]["kept"] for s in results["samples"]["unknown"] if s["rows"]["retrieved"]]
    assert scores["selection"]["overall"]["kept_if_retrieved"]["value"] == pytest.approx(sum(kept) / len(kept))
    assert scores["selection"]["overall"]["retrieved"]["value"] == pytest.approx(len(kept) / 15)
    assert scores["selection"]["overall"]["in_prompt"]["value"] == pytest.approx(sum(kept) / 15)
    assert set(scores["selection"]["by_pair"]) == set(scores["metrics"]["hit@6"]["by"]["pair"])


def test_nothing_is_labelled_where_nothing_is_searched(unknown: Path, lister: ScriptedJudge) -> None:
    results = run(unknown, "unknown", metadata={"retrieval": {"mode": "no_ir"}})
    assert lister.asked == []
    assert "relevance" not in results["configs"]["unknown"]["scores"]


def test_predict_only_asks_no_judge(unknown: Path, lister: ScriptedJudge) -> None:
    run(unknown, "unknown", predict_only=True)
    assert lister.asked == []


def test_two_ranks_share_the_work(unknown: Path, lister: ScriptedJudge) -> None:
    alone = run(unknown, "unknown")["configs"]["unknown"]["scores"]
    lister.asked.clear()
    results, _ = run_ranks(unknown, knows_everything, name="unknown")
    together = results["configs"]["unknown"]["scores"]
    for name in ("hit@6", "mrr@6", "ndcg@6"):
        assert together["metrics"][name]["value"] == pytest.approx(alone["metrics"][name]["value"])
    assert together["relevance"]["labelled"] == 15
    # rows that pad a rank are judged once more
    assert together["relevance"]["ledger"]["lister"]["calls"] == len(lister.asked) >= 15


# ------------------------------------------------------------------ the table


def test_the_table_in_one_line() -> None:
    labels = [
        ("1", LabelRecord("proxy", 2, relevant=(1, 2))),
        ("2", LabelRecord("proxy", 2, relevant=())),
        ("3", LabelRecord("proxy", 2, fault="why")),
        ("3", LabelRecord("proxy", 2, fault="why")),
    ]
    records = [RowRecord(row, {}, {}, relevance=found) for row, found in labels]
    assert label_table(records) is None
    share = LabellingShare("proxy", threshold=0.6, n=3)
    table = label_table([replace(records[0], labelling=share), *records[1:]])
    assert table is not None
    assert (table.labelled, table.relevant, table.none, table.unlabelled) == (2, 1.0, 1, {"why": 1})
    assert label_line(table) == (
        "relevance of 2 rankings guessed by 3-grams (at least 0.6 of the answer's) · 1.0 relevant passages a row "
        "· 1 not (why)"
    )
