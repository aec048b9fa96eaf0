"""Metrics by name in the shape of evaluate, and the package's exports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mrag_eval.metrics
from mrag_eval.core import MetricError
from mrag_eval.metrics import as_evaluate, char_ngram_recall
from mrag_eval.metrics._evaluate_front import _METRICS

GERMAN = "Das Museum wurde im Frühjahr eröffnet."


@pytest.mark.parametrize(
    ("name", "predictions", "references", "options", "expected"),
    [
        ("exact_match", ["Paris", "Rome"], ["paris", ["Berlin", "Bonn"]], {}, {"scored": 2, "exact_match": 0.5}),
        ("match", ["In Paris"], [["Paris"]], {}, {"scored": 1, "match": 1.0}),
        ("word_f1", ["york york york york"], ["york"], {}, {"scored": 1, "word_f1": 0.4}),
        ("word_recall", ["北京是"], ["北京"], {"normalize": "unicode"}, {"scored": 1, "word_recall": 1.0}),
        ("char_ngram_recall", ["banana"], ["bananas"], {"n": 3}, {"scored": 1, "char_ngram_recall": 4 / 5}),
        ("char_ngram_precision", ["bananas"], ["banana"], {}, {"scored": 1, "char_ngram_precision": 4 / 5}),
        ("char_ngram_f1", ["bananas"], ["banana"], {}, {"scored": 1, "char_ngram_f1": 8 / 9}),
        (
            "correct_language_rate",
            [GERMAN, "Ja", GERMAN],
            ["de", "de", "en"],
            {},
            {"scored": 2, "skipped": 1, "correct_language_rate": 0.5},
        ),
        (
            "code_switch_share",
            ["Париж Paris", "1969"],
            ["ru", "ru"],
            {},
            {"scored": 1, "skipped": 1, "code_switch_share": 0.5},
        ),
        (
            "choice_accuracy",
            ["B", "Answer: A", "?"],
            [1, "B", 0],
            {"n_choices": 2},
            {"scored": 3, "choice_accuracy": 1 / 3, "unreadable": 1},
        ),
        ("choice_accuracy", ["x2"], ["B"], {"options": [["x1", "x2"]]}, {"scored": 1, "choice_accuracy": 1.0}),
        ("cohen_kappa", [1, 0, 1, 1, None], [1, 0, 0, 1, 1], {}, {"scored": 4, "skipped": 1, "cohen_kappa": 0.5}),
        ("label_f1", [1, 1, 0, 0], [1, 0, 1, 0], {}, {"scored": 4, "label_f1": 0.5}),
    ],
)
def test_compute(name: str, predictions: Any, references: Any, options: Any, expected: dict[str, float]) -> None:
    metric = as_evaluate(name)
    found = metric.compute(predictions=predictions, references=references, **options)
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, abs=1e-12), key
    assert metric.name == name
    assert metric.description.endswith(".")


def test_it_is_the_same_metric() -> None:
    found = as_evaluate("char_ngram_recall").compute(
        predictions=["Sofia Kovalevskaia"], references=["Sofya Kovalevskaya"]
    )
    assert found["char_ngram_recall"] == char_ngram_recall("Sofia Kovalevskaia", ["Sofya Kovalevskaya"]) == 9 / 13


def test_nothing_scored_has_a_reason() -> None:
    assert as_evaluate("match").compute(predictions=[], references=[]) == {
        "match": None,
        "scored": 0,
        "reason": "no rows",
    }
    found = as_evaluate("correct_language_rate").compute(predictions=["Ja"], references=["de"])
    assert found["correct_language_rate"] is None
    assert "20 code points" in found["reason"]
    found = as_evaluate("cohen_kappa").compute(predictions=[1, 1], references=[1, 1])
    assert found["cohen_kappa"] is None
    assert found["reason"]


def test_every_name_is_covered_above() -> None:
    named = {mark.args[1][index][0] for mark in test_compute.pytestmark for index in range(len(mark.args[1]))}
    assert set(_METRICS) - named == {"word_precision"}
    assert as_evaluate("word_precision").compute(predictions=["a1 b1"], references=["b1"])["word_precision"] == 0.5


def test_bad_input() -> None:
    with pytest.raises(MetricError, match="did you mean 'char_ngram_recall'"):
        as_evaluate("char_ngram_recal")
    metric = as_evaluate("match")
    with pytest.raises(MetricError, match="1 predictions but 2 references"):
        metric.compute(predictions=["x"], references=["x", "y"])
    with pytest.raises(MetricError, match="unknown option 'normalise'; did you mean 'normalize'"):
        metric.compute(predictions=["x"], references=["x"], normalise="unicode")
    with pytest.raises(MetricError, match="counts and"):
        as_evaluate("choice_accuracy").compute(predictions=["A"], references=[0], n_choices=[2, 3])


def test_exports_agree() -> None:
    path = Path(mrag_eval.metrics.__file__)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        (node.module.rpartition(".")[2], alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mrag_eval.metrics.")
        for alias in node.names
    }
    listed = {(module, name) for module, names in mrag_eval.metrics._EXPORTS.items() for name in names}
    assert typed == listed
    assert sorted(name for _, name in listed) == sorted(mrag_eval.metrics.__all__)
    for module, name in listed:
        value = getattr(mrag_eval.metrics, name)
        assert getattr(value, "__module__", "").rpartition(".")[2] == module or not callable(value), name
        assert (getattr(value, "__doc__", None) or "").strip(), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mrag_eval.metrics.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, mrag_eval, mrag_eval.metrics;"
        "heavy = {'torch', 'faiss', 'ray', 'pymilvus', 'lm_eval', 'numpy', 'scipy', 'sklearn', 'fasttext'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
