"""Every metric declares its controls, and marks a language where its ends are not what they should be."""

from __future__ import annotations

import pytest

from mrag_eval.scoring import CONTROLS, KINDS, METRICS, TASK_MEASURES, ControlRecord, control_marks, control_of


@pytest.mark.parametrize(
    "name", [*METRICS, *TASK_MEASURES, "citations", "hit@20", "rerank_ndcg@5", "mrr@5_score_merged"]
)
def test_every_metric_has_controls_or_says_why_not(name: str) -> None:
    control = control_of(name)
    if control.kind == "none":
        assert control.why
        assert control.names == ()
    else:
        assert control.ceilings
        assert {*control.names} <= {*CONTROLS}
        assert {*control.names} == {*KINDS[control.kind]}


def test_a_metric_cannot_be_declared_without() -> None:
    with pytest.raises(TypeError, match="control"):
        type(METRICS["match"])("new", lambda rows: [], True, "a new one", needs=frozenset())  # type: ignore[call-arg]


def test_every_control_is_of_a_metric() -> None:
    assert {name for names in KINDS.values() for name in names} == {*CONTROLS}


@pytest.mark.parametrize(("metric", "means", "mark"), [
    ("char3gram_recall", {"sentence": 0.9, "bare": 0.2, "other": 0.1}, None),
    ("char3gram_recall", {"sentence": 0.45, "bare": 1.0, "other": 0.0}, "first reference in a sentence scores 45.0"),
    ("exact_match", {"sentence": 0.0, "bare": 1.0, "other": 0.135}, "another row's answer scores 13.5"),
    ("correct_language", {"question": 0.338, "foreign": 0.5}, "the question itself scores 33.8"),
    ("language_mix", {"question": 0.05}, None),
    ("language_mix", {"question": 0.35}, "the question itself scores 35.0"),
    ("answered_in_english", {"question": 0.35}, None),
    ("hit@20", {"random": 0.5}, None),
    ("char3gram_recall", {"sentence": 0.5, "other": 0.5},
     "first reference in a sentence scores 50.0, another row's answer scores 50.0"),
])  # fmt: skip
def test_marks(metric: str, means: dict[str, float], mark: str | None) -> None:
    record = ControlRecord({control: {metric: value} for control, value in means.items()})
    assert control_marks([("ko", record)], metric) == ({} if mark is None else {"ko": mark})


def test_marks_of_rows_are_of_their_language() -> None:
    def record(value: float) -> ControlRecord:
        return ControlRecord({"sentence": {"match": value}})

    rows = [("ko", record(1.0)), ("ko", record(0.0)), ("de", record(1.0)), ("fr", ControlRecord())]
    assert control_marks(rows, "match") == {"ko": "first reference in a sentence scores 50.0"}
    assert control_marks(rows, "f1") == control_marks([], "match") == {}
