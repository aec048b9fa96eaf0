"""The hook, run by the harness's own evaluator: which rows are retrieved, what is scored, what the results record."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml
from lm_eval.utils import handle_non_serializable, make_table

from mrag_eval.config import tasks_being_loaded
from mrag_eval.core import Scored, Value
from mrag_eval.platform import ConfigError, DataError, MragError
from mrag_eval.retrieval import TaskRows
from mrag_eval.scoring import METRICS
from mrag_eval.task import RagTask
from tests.worlds.small import BASE, TOPICS, Hub, ScriptedLM, write_task

ANSWERS = {question: answer for versions in TOPICS.values() for _, question, answer in versions.values()}


def knows_everything(prompt: str) -> str:
    return next((answer for question, answer in ANSWERS.items() if question in prompt), "?")


def run(tasks: Path, name: str | list[str] = "small", lm: Any = None, metadata: Any = None, **kwargs: Any) -> Any:
    manager = TaskManager(include_path=str(tasks), include_defaults=False, metadata=metadata)
    names = [name] if isinstance(name, str) else name
    return lm_eval.simple_evaluate(
        model=lm or ScriptedLM(knows_everything), tasks=names, task_manager=manager, bootstrap_iters=100, **kwargs
    )


def build(tasks: Path, name: str = "small", metadata: Any = None) -> RagTask:
    manager = TaskManager(include_path=str(tasks), include_defaults=False, metadata=metadata)
    return manager.load([name])["tasks"][name]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the row ids of every call of the retrieval, in order."""
    calls: list[list[str]] = []
    real = TaskRows.retrieved

    def spy(self: TaskRows, docs: Any) -> Any:
        calls.append([doc.id for doc in docs])
        return real(self, docs)

    monkeypatch.setattr(TaskRows, "retrieved", spy)
    return calls


# ------------------------------------------------------------------ which tasks are asked for


def test_a_task_knows_all_that_are_loaded_with_it(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tasks / "other.yaml").write_text("include: small.yaml\ntask: other\ntag: some\n", "utf-8")
    (tasks / "both.yaml").write_text("group: both\ntask: [small, other]\n", "utf-8")
    seen: list[set[str]] = []
    real = RagTask.load_rows

    def load_rows(self: RagTask) -> list[dict[str, Any]]:
        seen.append(set(tasks_being_loaded().names))
        return real(self)

    monkeypatch.setattr(RagTask, "load_rows", load_rows)
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    path = str(tasks / "other.yaml")
    for asked, names in (
        (["both"], {"other", "small"}),
        ("small", {"small"}),
        (["small", "some"], {"other", "small"}),
        ([path], {"other"}),
        ([load_yaml(path, resolve_func=True), build(tasks)], {"other", "small"}),
    ):
        seen.clear()
        manager.load(asked)
        assert seen
        assert all(found == names for found in seen)
    assert tasks_being_loaded() is None
    # the same list, grown, and with another manager
    same = ["small"]
    for more in (manager, manager, TaskManager(include_path=str(tasks), include_defaults=False)):
        more.load(same)
        assert seen[-1] == {*same}
        same += ["other"][: 2 - len(same)]


# ------------------------------------------------------------------ which rows are retrieved


def test_building_a_task_retrieves_nothing(tasks: Path, searched: list[list[str]]) -> None:
    build(tasks)
    assert searched == []


@pytest.mark.parametrize("cache", [False, True])
def test_limit_touches_only_its_rows(tasks: Path, searched: list[list[str]], cache: bool) -> None:
    results = run(tasks, limit=5, cache_requests=cache, rewrite_requests_cache=cache)
    assert [len(call) for call in searched] == [5]
    assert results["n-samples"]["small"] == {"original": 15, "effective": 5}
    assert len(results["samples"]["small"]) == 5


def test_the_request_cache_is_refused_aloud(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    saved: list[str] = []
    monkeypatch.setattr("lm_eval.api.task.save_to_cache", lambda file_name, obj: saved.append(file_name))
    run(tasks, limit=2, cache_requests=True)
    assert saved == []
    assert sum("request cache is not used" in r.getMessage() for r in caplog.records) == 1


@pytest.mark.parametrize("numbers", [[3, 0, 11], [14, 2], [5]])
def test_samples_in_any_order_are_scored_against_their_own_rows(
    tasks: Path, searched: list[list[str]], numbers: list[int]
) -> None:
    rows = [json.loads(line)["id"] for line in (tasks / "questions.jsonl").read_text("utf-8").splitlines()]
    results = run(tasks, samples={"small": numbers})
    assert searched == [[rows[n] for n in numbers]]
    assert [(s["doc_id"], s["doc"]["id"]) for s in results["samples"]["small"]] == [(n, rows[n]) for n in numbers]
    assert results["results"]["small"]["char3gram_recall,none"] == 1.0


@pytest.mark.parametrize(("numbers", "message"), [([3, 3], "twice"), ([99], "there are 15")])
def test_wrong_samples_are_named(tasks: Path, numbers: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        run(tasks, samples={"small": numbers})


def test_zero_rows_are_an_error_before_anything_runs(tasks: Path) -> None:
    (tasks / "questions.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(MragError, match=r"questions\.jsonl|no rows"):
        build(tasks)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"retrieval.corpus": "wikipedia"}, "no corpus named 'wikipedia'"),
        ({"retrieval.corpus": "wikipedia_splade"}, "mrag-eval corpus kilt .* --kind sparse"),
        ({"retrieval.corpus": "./nowhere"}, "no index at ./nowhere"),
        ({"retrieval": {"mode": "en_only", "languages": ["ko"]}}, "no Korean shard"),
    ],
)
def test_a_corpus_that_cannot_serve_is_an_error_while_the_task_is_built(
    tasks: Path, searched: list[list[str]], metadata: dict[str, Any], message: str
) -> None:
    with pytest.raises(MragError, match=message) as caught:
        build(tasks, metadata=metadata)
    assert str(caught.value).startswith("task small: ")
    assert searched == []


def test_passages_change_the_document_hash_but_not_the_row_id(tasks: Path) -> None:
    one = run(tasks, limit=3)["samples"]["small"]
    other = run(tasks, limit=3, metadata={"retrieval.mode": "no_ir", "metrics": ["char3gram_recall"]})["samples"][
        "small"
    ]
    assert all(a["doc_hash"] != b["doc_hash"] for a, b in zip(one, other, strict=True))
    assert [a["doc"]["id"] for a in one] == [b["doc"]["id"] for b in other]


# ------------------------------------------------------------------ two ranks


def run_ranks(tasks: Path, answer: Any, size: int = 2, **kwargs: Any) -> tuple[Any, list[ScriptedLM]]:
    hub = Hub(size)
    models = [ScriptedLM(answer, rank, hub) for rank in range(size)]
    found: dict[int, Any] = {}

    def work(rank: int) -> None:
        try:
            found[rank] = run(tasks, lm=models[rank], **kwargs)
        except BaseException as err:
            found[rank] = err
            hub._barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for value in found.values():
        if isinstance(value, BaseException):
            raise value
    assert all(found[rank] is None for rank in range(1, size))
    return found[0], models


def test_two_ranks_search_disjoint_rows_and_are_summed_once(tasks: Path, searched: list[list[str]]) -> None:
    results, models = run_ranks(tasks, knows_everything)
    assert sorted(len(call) for call in searched) == [7, 8]
    assert not set(searched[0]) & set(searched[1])
    # the shorter rank is padded with a repeat of its last prompt, which is not counted
    assert sorted(len(m.prompts) for m in models) == [8, 8]
    assert results["configs"]["small"]["scores"]["rows"] == 15
    assert results["configs"]["small"]["scores"]["metrics"]["char3gram_recall"]["n"] == 15
    alone = run(tasks)
    for key in ("char3gram_recall,none", "hit@2,none", "mrr@2,none", "hit@2_stderr,none", "mrr@2_stderr,none"):
        assert results["results"]["small"][key] == pytest.approx(alone["results"]["small"][key])


def test_a_row_without_answers_costs_two_ranks_nothing_but_its_value(tasks: Path) -> None:
    rows = [json.loads(line) for line in (tasks / "questions.jsonl").read_text("utf-8").splitlines()]
    for row in rows[2:6]:
        row["answers"] = []
    (tasks / "questions.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    results, _ = run_ranks(tasks, knows_everything)
    alone = run(tasks)
    for key in ("char3gram_recall,none", "char3gram_recall_stderr,none", "hit@2,none", "hit@2_stderr,none"):
        assert results["results"]["small"][key] == pytest.approx(alone["results"]["small"][key])
    assert results["configs"]["small"]["scores"]["metrics"]["char3gram_recall"]["n"] == 11


@pytest.mark.parametrize("kwargs", [{"limit": 5}, {"samples": {"small": [9, 1, 4]}}, {"predict_only": True}])
def test_two_ranks_run_the_rows_that_one_would(tasks: Path, searched: list[list[str]], kwargs: dict[str, Any]) -> None:
    results, _ = run_ranks(tasks, knows_everything, **kwargs)
    together = {s["doc"]["id"] for s in results["samples"]["small"]}
    assert not set(searched[0]) & set(searched[1])
    assert together == {s["doc"]["id"] for s in run(tasks, **kwargs)["samples"]["small"]}


@pytest.mark.parametrize("long_on", [0, 1])
def test_a_metric_that_one_rank_cannot_score_breaks_no_other(tasks: Path, long_on: int) -> None:
    """Only the rows of one rank get replies long enough for language detection."""
    questions = [json.loads(line)["query"] for line in (tasks / "questions.jsonl").read_text("utf-8").splitlines()]

    def answer(prompt: str) -> str:
        row = next(i for i, q in enumerate(questions) if q in prompt)
        return "This is an English sentence, long enough." if row % 2 == long_on else "short"

    metrics = {"metrics": ["char3gram_recall", "correct_language"]}
    results, _ = run_ranks(tasks, answer, metadata=metrics)
    scores = results["configs"]["small"]["scores"]
    assert scores["metrics"]["correct_language"]["n"] == (8 if long_on == 0 else 7)
    assert sum(scores["unscored"]["correct_language"].values()) == (7 if long_on == 0 else 8)
    if long_on == 0:
        value = results["results"]["small"]["correct_language,none"]
        assert value == pytest.approx(scores["metrics"]["correct_language"]["value"])


# ------------------------------------------------------------------ results and samples


def test_the_harness_table_has_metrics_only(tasks: Path) -> None:
    results = run(tasks)
    shown = {line.split("|")[5].strip() for line in make_table(results).splitlines()[2:]}
    assert shown == {"unscored", "char3gram_recall", "hit@2", "mrr@2"}
    # the record of a row is in its sample, and measures nothing
    assert "rows" in results["samples"]["small"][0]


def test_the_table_shows_the_largest_share_of_rows_that_a_metric_could_not_score(tasks: Path) -> None:
    file = tasks / "questions.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows[:3]:
        row["answers"] = []
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    results = run(tasks, metadata={"metrics": ["char3gram_recall", "correct_language"]})
    # short replies are left out of correct_language by its rule, and are no failures
    assert results["configs"]["small"]["scores"]["unscored"]["correct_language"] == {
        "too short to tell the language": 15
    }
    leaf = results["results"]["small"]
    assert leaf["unscored,none"] == 3 / 15
    assert leaf["char3gram_recall,none"] == 1.0


def test_plain_means_keep_the_stderr_and_scores_carry_intervals(tasks: Path) -> None:
    results = run(tasks)
    leaf = results["results"]["small"]
    assert leaf["char3gram_recall,none"] == 1.0
    assert isinstance(leaf["hit@2_stderr,none"], float)
    scores = results["configs"]["small"]["scores"]
    assert results["n-samples"]["small"] == {"original": 15, "effective": 15}
    hit = scores["metrics"]["hit@2"]
    assert hit["value"] == pytest.approx(leaf["hit@2,none"])
    assert hit["low"] <= hit["value"] <= hit["high"]
    assert hit["n"] == 15
    assert set(hit["by"]["query_lang"]) == {"en", "de", "es", "ru", "zh"}
    assert hit["macro"]["cross_language"]["n"] == 15
    assert hit["macro"]["same_language"]["value"] is None
    config = results["configs"]["small"]
    assert config["measurement"]["setting"]["retrieval"]["mode"] == "all"
    assert config["measurement"]["setting"]["prompt"]["template"] == "short_answer"
    assert config["measurement"]["data"]["source"]


def test_everything_is_json_and_contains_no_nan(tasks: Path) -> None:
    results = run(tasks, limit=4)
    text = json.dumps(results, default=handle_non_serializable, ensure_ascii=False, allow_nan=False)
    assert "1841" in text


def test_a_sample_holds_each_document_once(tasks: Path) -> None:
    sample = run(tasks, limit=1)["samples"]["small"][0]
    document = sample["doc"]["passages"][0]["text"]
    rest = {key: value for key, value in sample.items() if key != "arguments"}
    assert json.dumps(rest, default=str, ensure_ascii=False).count(document) == 1
    assert sample["rows"]["row"] == sample["doc"]["id"]
    assert sample["rows"]["values"]["hit@2"] == sample["hit@2"]


def test_a_metric_nothing_could_be_scored_by_leaves_its_key_out(tasks: Path, caplog: pytest.LogCaptureFixture) -> None:
    results = run(tasks, metadata={"metrics": ["char3gram_recall", "correct_language"]}, limit=5)
    leaf = results["results"]["small"]
    assert "correct_language,none" not in leaf
    assert sum(results["configs"]["small"]["scores"]["unscored"]["correct_language"].values()) == 5
    assert any("5 of 5 rows unscored" in r.getMessage() for r in caplog.records)


def test_a_metric_that_was_asked_for_and_cannot_be_measured_is_named(
    tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    metadata = {"metrics": ["char3gram_recall", "hit@2", "mrr@2"], "retrieval": {"mode": "no_ir"}}
    run(tasks, metadata=metadata, limit=2)
    said = "[small] hit@2, mrr@2: not measured, as mode no_ir searches no corpus"
    assert said in [record.getMessage() for record in caplog.records]


def test_predict_only_skips_metrics(tasks: Path) -> None:
    results = run(tasks, limit=3, predict_only=True)
    assert [s["resps"][0][0] for s in results["samples"]["small"]] == ["1841"] * 3
    assert not [s for s in results["samples"]["small"] if "rows" in s]
    assert results["results"]["small"]["bypass,none"] == 999


def test_all_answers_of_a_task_are_scored_in_one_batch(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    # one without controls, whose replies are scored apart
    declared = METRICS["passages_in_language"]

    def spy(rows: Sequence[Scored]) -> list[Value]:
        sizes.append(len(rows))
        return declared.score(rows)

    monkeypatch.setitem(METRICS, declared.name, replace(declared, score=spy))
    run(tasks, metadata={"metrics": [declared.name]})
    assert sizes == [15]


def test_quota_modes_have_no_ranking(tasks: Path) -> None:
    metrics = ["hit@5", "hit@2", "mrr@2"]
    results = run(tasks, metadata={"retrieval": {"mode": "balanced", "k": 5}, "metrics": metrics})
    leaf = results["results"]["small"]
    assert "mrr@2,none" not in leaf
    assert "mrr@2_score_merged,none" in leaf
    assert "hit@2,none" not in leaf
    assert "hit@2_score_merged,none" in leaf
    assert "hit@5,none" in leaf
    reasons = results["configs"]["small"]["scores"]["unscored"]["mrr@2"]
    assert sum(reasons.values()) == 15
    assert leaf["unscored,none"] == 0.0


# ------------------------------------------------------------------ configuration


def test_blocks_are_merged_in_depth_through_includes_group_and_metadata(tasks: Path) -> None:
    source = yaml_block(tasks)
    base = tasks / "_base_yaml"
    base.write_text("class: !function mrag_eval.task.RagTask\n" + source, encoding="utf-8")
    (tasks / "leaf.yaml").write_text("include: _base_yaml\ntask: leaf\nretrieval: {mode: qlang}\n", encoding="utf-8")
    (tasks / "group.yaml").write_text(
        "group: few\ntask:\n  - task: leaf\n    retrieval: {k: 1}\n    prompt: {max_tokens: 4000}\n", encoding="utf-8"
    )
    leaf = build(tasks, "leaf")
    assert (leaf.blocks.retrieval.mode, leaf.blocks.retrieval.k, leaf.blocks.retrieval.kind) == ("qlang", 2, "bm25")
    manager = TaskManager(include_path=str(tasks), include_defaults=False, metadata={"retrieval.mode": "all"})
    grouped = manager.load(["few"])["tasks"]["leaf"]
    assert (grouped.blocks.retrieval.mode, grouped.blocks.retrieval.k) == ("all", 1)
    assert grouped.blocks.retrieval.kind == "bm25"
    assert grouped.blocks.prompt.max_tokens == 4000


def yaml_block(tasks: Path) -> str:
    text = (tasks / "small.yaml").read_text("utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("class:", "task:")))


@pytest.mark.parametrize(
    "metadata",
    [
        {"retrieval": {"mode": "en_only"}},
        {"retrieval.mode": "en_only"},
        {"retrieval": {"k": 1}, "retrieval.mode": "en_only"},
    ],
)
def test_metadata_may_be_json_or_dotted(tasks: Path, metadata: dict[str, Any]) -> None:
    task = build(tasks, metadata=metadata)
    assert task.blocks.retrieval.mode == "en_only"
    assert task.blocks.retrieval.kind == "bm25"


def test_the_stock_command_line_takes_both_forms_of_metadata() -> None:
    from lm_eval._cli.harness import HarnessCLI

    cli = HarnessCLI()
    argv = ["run", "--model", "dummy", "--tasks", "x", "--metadata"]
    dotted = cli._parser.parse_args([*argv, "retrieval.mode=all,retrieval.k=3"]).metadata
    assert dotted == {"retrieval.mode": "all", "retrieval.k": 3}
    nested = cli._parser.parse_args([*argv, '{"retrieval": {"mode": "all"}}']).metadata
    assert nested == {"retrieval": {"mode": "all"}}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"retrieval.mode": "qlangs"}, "unknown mode 'qlangs'; did you mean 'qlang'"),
        ({"retrieval.modes": "all"}, "unknown key 'modes'; did you mean 'mode'"),
        ({"retreival.mode": "all"}, "no block 'retreival'; did you mean 'retrieval'"),
        ({"metrics": ["char3gram_recal"]}, "unknown metric 'char3gram_recal'; did you mean 'char3gram_recall'"),
        ({"retrieval.depth": 1, "retrieval.k": 1}, "too few for a metric at 2"),
        ({"prompt.template": "short"}, "no built-in template"),
        ({"data.benchmark": "xqad"}, "unknown benchmark 'xqad'"),
    ],
)
def test_wrong_keys_and_values_are_named(tasks: Path, metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        build(tasks, metadata=metadata)
    assert "small" in str(caught.value) or "prompt.template" in str(caught.value)


def test_an_unknown_top_level_key_is_named(tasks: Path) -> None:
    write_task(tasks, "typo", **BASE, data={"benchmark": "jsonl"}, retrievel={"mode": "all"})
    with pytest.raises(ConfigError, match="task typo: unknown key 'retrievel'; did you mean 'retrieval'"):
        build(tasks, "typo")


@pytest.mark.parametrize(
    ("key", "setting"),
    [
        ("doc_to_text", "{{query}}"),
        ("metric_list", [{"metric": "acc"}]),
        ("repeats", 2),
        ("output_type", "loglikelihood"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(tasks: Path, key: str, setting: Any) -> None:
    write_task(tasks, "idle", **{**BASE, key: setting}, data={"benchmark": "jsonl"})
    with pytest.raises(ConfigError, match=f"task idle: .*{key}"):
        build(tasks, "idle")


def test_a_second_filter_is_refused(tasks: Path) -> None:
    filters = [{"name": n, "filter": [{"function": "take_first"}]} for n in ("a", "b")]
    write_task(tasks, "twice", **BASE, data={"benchmark": "jsonl"}, filter_list=filters)
    with pytest.raises(ConfigError, match="2 filters"):
        build(tasks, "twice")


def test_model_arguments_do_not_reach_the_results(tasks: Path) -> None:
    secret = {"api_key": "sk-planted-0123456789", "pretrained": "org/model", "max_length": 4096}
    task = build(tasks, metadata=secret)
    dumped = json.dumps(task.dump_config(), default=str)
    assert "sk-planted" not in dumped
    assert task.config.metadata["max_length"] == 4096
    assert task.VERSION == 1.0


def test_the_harness_does_not_log_the_key_of_an_evaluated_model(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    build(tasks)
    headers = {"Authorization": "Bearer sk-planted-0123456789"}
    logging.getLogger("lm_eval.models.api_models").warning("request failed, headers %s", headers)
    assert "sk-planted" not in caplog.text


def test_a_task_that_asks_for_shots_is_refused(tasks: Path) -> None:
    task = build(tasks)
    with pytest.raises(DataError, match="shots"):
        task.fewshot_context(task.eval_docs[0], 2)
    # the harness keeps a configured 0 whatever --num_fewshot says
    assert run(tasks, limit=1, num_fewshot=3)["n-shot"]["small"] == 0
