"""A real model through the harness: the results equal the scores of the replies in the sample file."""

from __future__ import annotations

from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval import metrics
from mrag_eval.cli._demo import MODEL_FILE, find_model
from mrag_eval.platform import tasks_folder
from mrag_eval.scoring import METRICS

pytestmark = [pytest.mark.slow, pytest.mark.model]

LEXICAL = {
    "char3gram_recall": metrics.char_ngram_recall,
    "char3gram_precision": metrics.char_ngram_precision,
    "char3gram_f1": metrics.char_ngram_f1,
    "exact_match": metrics.exact_match,
    "match": metrics.match,
    "f1": metrics.word_f1,
    "word_recall": metrics.word_recall,
    "word_precision": metrics.word_precision,
}
OTHERS = ["char3gram_recall_unicode", "correct_language", "answered_in_english", "code_switch", "hit@3", "mrr@3"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRAG_CACHE", str(tmp_path_factory.mktemp("cache")))
        metadata = {"metrics": [*LEXICAL, *OTHERS], "retrieval": {"kind": "bm25", "mode": "qlang", "embedder": None}}
        manager = TaskManager(include_path=str(tasks_folder()), include_defaults=False, metadata=metadata)
        return lm_eval.simple_evaluate(
            model="hf",
            model_args={"pretrained": str(find_model()), "gguf_file": MODEL_FILE, "device": "cpu"},
            tasks=["mrag_demo_monorag"],
            task_manager=manager,
            samples={"mrag_demo_monorag": [0, 13, 21, 35]},
            apply_chat_template=True,
            bootstrap_iters=100,
        )


def test_scores_are_those_of_the_replies(results: Any) -> None:
    samples = results["samples"]["mrag_demo_monorag"]
    leaf = results["results"]["mrag_demo_monorag"]
    assert len(samples) == 4
    assert any(s["filtered_resps"][0].strip() for s in samples)
    for name, function in LEXICAL.items():
        own = [float(function(s["filtered_resps"][0].strip(), s["doc"]["answers"])) for s in samples]
        assert [s[name] for s in samples] == pytest.approx(own, abs=1e-12)
        assert leaf[f"{name},none"] == pytest.approx(sum(own) / 4, abs=1e-12)
    rate = metrics.correct_language_rate(
        [s["filtered_resps"][0].strip() for s in samples], [s["doc"]["query_lang"] for s in samples]
    )
    scores = results["configs"]["mrag_demo_monorag"]["scores"]
    if rate.scored:
        assert leaf["correct_language,none"] == pytest.approx(rate.rate)
        assert scores["metrics"]["correct_language"]["n"] == rate.scored
    else:
        assert "correct_language,none" not in leaf


def test_every_metric_has_its_interval_and_the_chain_of_errors_adds_up(results: Any) -> None:
    scores = results["configs"]["mrag_demo_monorag"]["scores"]
    for name, entry in scores["metrics"].items():
        assert name in METRICS or "@" in name
        assert entry["low"] is None or entry["low"] <= entry["value"] <= entry["high"]
    overall = scores["attribution"]["overall"]
    assert scores["attribution"]["correct_by"] == "match"
    assert sum(overall["stages"].values()) == 4
    assert set(scores["languages"]["preference"]) >= {"overall"}


def test_the_prompt_went_through_the_chat_template(results: Any) -> None:
    sample = results["samples"]["mrag_demo_monorag"][0]
    prompt = sample["arguments"][0][0]
    assert prompt.count("<|im_start|>") == 3
    assert sample["doc"]["query"] in prompt
    assert all(passage["text"] in prompt for passage in sample["doc"]["passages"])
