"""Consistency over languages and flips between modes, for answers counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import DataError
from mrag_eval.report import consistency, flips, shown_consistency, shown_flips
from tests.tables import single_spaced
from tests.worlds.measured import placed, recorded


def sample(row: str, lang: str, answer: str, *, group: str | None = None, right: bool | None = None) -> dict[str, Any]:
    rows: dict[str, Any] = {"row": row, "cell": {"query_lang": lang}, "values": {}}
    if group is not None:
        rows["group"] = group
    if right is not None:
        rows["values"] = {"match": float(right)}
    return {"doc": {}, "rows": rows, "filtered_resps": [answer]}


def write(folder: Path, task: str, samples: list[dict[str, Any]], mode: str = "qlang", model: str = "org/tiny") -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(s, ensure_ascii=False) + "\n" for s in samples)
    (folder / f"samples_{task}_2026-01-01.jsonl").write_text(text, encoding="utf-8")
    file = folder / "results_2026-01-01.json"
    content = json.loads(file.read_text("utf-8")) if file.is_file() else {"configs": {}}
    content |= {"model_name": model, "config": {"model": "hf", "model_args": {"pretrained": model}}}
    content["configs"][task] = {"retrieval": {"mode": mode}, "data": {"benchmark": "mkqa"}}
    file.write_text(json.dumps(content), encoding="utf-8")


def test_consistency_over_tasks_of_several_languages(tmp_path: Path) -> None:
    """q1: 1841 / 1841 / 1842: one pair of three agrees; q2: Paris / paris (normalised alike); q3 in one language."""
    write(tmp_path, "mkqa_en", [sample("en1", "en", "1841", group="q1", right=True),
                                sample("en2", "en", "Paris", group="q2", right=True),
                                sample("en3", "en", "no", group="q3")])  # fmt: skip
    write(tmp_path, "mkqa_de", [sample("de1", "de", "1841.", group="q1", right=True),
                                sample("de2", "de", "paris", group="q2", right=False)])  # fmt: skip
    write(tmp_path, "mkqa_fr", [sample("fr1", "fr", "1842", group="q1", right=False)])
    (found,) = consistency([tmp_path])
    assert (found.questions, found.single, found.ambiguous, found.languages) == (2, 1, 0, ("de", "en", "fr"))
    assert found.answers.value == pytest.approx((1 / 3 + 1) / 2)
    # correctness: q1 right right wrong: 1/3; q2 right wrong: 0
    assert found.correctness.value == pytest.approx((1 / 3 + 0) / 2)
    assert "66.7 [" in shown_consistency([found])
    assert "1 in one language" in shown_consistency([found])


def test_questions_on_one_paragraph_are_not_versions_of_each_other(tmp_path: Path) -> None:
    write(tmp_path, "mkqa_en", [sample("a", "en", "x", group="p"), sample("b", "en", "y", group="p")])
    write(tmp_path, "mkqa_de", [sample("a", "de", "x", group="p")])
    with pytest.raises(DataError, match="no question is answered in two languages"):
        consistency([tmp_path])
    (found,) = consistency([tmp_path], by="row")
    assert (found.questions, found.answers.value) == (1, 1.0)


# What runs may differ in besides their mode, by role.
_UNLIKE: list[tuple[str, dict[str, Any], str]] = [
    ("subject", {"model_args": {"peft": "/ckpt/b/final"}}, "model_args.peft"),
    ("setting", {"run": {"system_instruction": "/no_think Be brief."}}, "run.system_instruction"),
    ("setting", {"prompt": {"template": "another"}}, "prompt.template"),
    ("instrument", {"reranker": {"model": "another"}}, "reranker.model"),
]


def measured(folder: Path, task: str, **roles: dict[str, Any]) -> None:
    """Add a record of what was measured to the results of a task."""
    file = folder / "results_2026-01-01.json"
    content = json.loads(file.read_text("utf-8"))
    content["config"]["model_args"] |= roles.pop("subject", {}).get("model_args", {})
    config = content["configs"][task]
    content["configs"][task] = placed(config, recorded(task, config, **roles))
    file.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize(("role", "values", "key"), _UNLIKE)
def test_runs_that_differ_are_not_pooled(tmp_path: Path, role: str, values: dict[str, Any], key: str) -> None:
    usual = {"instrument": {"reranker": {"model": "usual"}}} if role == "instrument" else {}
    for name, changes in (("one", usual), ("two", {role: values})):
        for lang in ("en", "de"):
            write(tmp_path / name, f"mkqa_{lang}", [sample(f"{lang}1", lang, "1" if lang == "en" else name, group="q")])
            measured(tmp_path / name, f"mkqa_{lang}", **changes)
    found = consistency([tmp_path])
    assert [(entry.questions, entry.ambiguous, entry.languages) for entry in found] == [(1, 0, ("de", "en"))] * 2
    assert len({entry.variant for entry in found}) == 2
    assert any(key.rpartition(".")[2] in entry.variant for entry in found)
    assert len({line for line in shown_consistency(found).splitlines() if "org/tiny" in line}) == 2
    (changed,) = [entry for entry in flips([tmp_path]) if entry.before == entry.after == "mkqa_de"]
    assert key in changed.differs
    assert f"differ in {key}" in shown_flips([changed])
    with pytest.raises(DataError, match=r"by one of org/tiny, qlang"):
        consistency([tmp_path / "one" / "samples_mkqa_en_2026-01-01.jsonl",
                     tmp_path / "two" / "samples_mkqa_de_2026-01-01.jsonl"])  # fmt: skip


def test_prompts_in_words_of_their_own_are_pooled_and_named(tmp_path: Path) -> None:
    for lang, system in (("en", "Be brief."), ("de", "Be long.")):
        write(tmp_path, f"mkqa_{lang}", [sample(lang, lang, "1", group="q")])
        measured(tmp_path, f"mkqa_{lang}", setting={"prompt": {"system": system}})
    (found,) = consistency([tmp_path])
    assert found.differs == {"prompt.system": "Be long. | Be brief."}
    assert "differ in prompt.system: Be long. | Be brief." in shown_consistency([found])


def test_rows_without_an_answer_are_counted_with_the_reason(tmp_path: Path) -> None:
    def lost(row: str, lang: str) -> dict[str, Any]:
        found = sample(row, lang, "", group=row)
        found["rows"]["failures"] = [{"stage": "answer", "model": "m", "reason": "server", "detail": "HTTP 500"}]
        return found

    write(tmp_path, "mkqa_en", [sample("q1", "en", "1", group="q1"), sample("q2", "en", "1", group="q2")])
    write(tmp_path, "mkqa_de", [sample("q1", "de", "1", group="q1"), lost("q2", "de")])
    (found,) = consistency([tmp_path])
    assert (found.failed, found.single) == ({"answer failed (server)": 1}, 1)
    assert "1 row without an answer (answer failed (server))" in shown_consistency([found])
    (pair,) = flips([tmp_path])
    assert (pair.rows, pair.failed) == (1, {"answer failed (server)": 1})
    assert "1 without an answer (answer failed (server))" in shown_flips([pair])


def test_flips_of_one_territory_count_as_one(tmp_path: Path) -> None:
    """12 territories in 6 languages: in two of them all six answers become right, in the others none changes."""
    parts = [
        [
            sample(f"{t}-{lang}", lang, "new" if after and t < 2 else "old", group=f"t{t}", right=after and t < 2)
            for t in range(12)
            for lang in ("ar", "en", "es", "fr", "ru", "zh")
        ]
        for after in (False, True)
    ]
    write(tmp_path, "mkqa_norag", parts[0], mode="no_ir")
    write(tmp_path, "mkqa", parts[1], mode="all")
    (found,) = flips([tmp_path])
    assert (found.rows, found.units, found.gained, found.lost) == (72, 12, 12, 0)
    # a test over rows would say 2 * .5^12 = .0005; two territories of twelve are no evidence
    assert found.test == "exact test of two paired shares"
    assert found.p is not None
    assert found.p > 0.05
    # as wide as the interval of 2 of 12, not of 12 of 72 (.10 to .27)
    assert found.changed.low is not None
    assert found.changed.high is not None
    assert found.changed.value == pytest.approx(1 / 6)
    assert found.changed.low < 0.05
    assert found.changed.high > 0.4
    assert (found.changed.groups, found.changed.design_effect) == (12, pytest.approx(6 * 71 / (6 * 11)))
    assert "| 72 in 12 groups | 16.7 [" in single_spaced(shown_flips([found]))


def test_flips_between_modes(tmp_path: Path) -> None:
    """Four rows: one keeps its answer, one becomes right, one becomes wrong, one changes among wrong ones."""
    before = [("a", "1", True), ("b", "2", False), ("c", "3", True), ("d", "4", False)]
    after = [("a", "1", True), ("b", "9", True), ("c", "8", False), ("d", "7", False)]
    samples = [
        [sample(row, "en", text, group=row.upper(), right=right) for row, text, right in part]
        for part in (before, after)
    ]
    write(tmp_path, "mkqa_norag_en", samples[0], mode="no_ir")
    write(tmp_path, "mkqa_en", [*samples[1], sample("z", "en", "?", right=True)], mode="all")
    (found,) = flips([tmp_path])
    assert (found.before, found.after, found.rows, found.unpaired) == ("mkqa_norag_en", "mkqa_en", 4, 1)
    assert found.changed.value == pytest.approx(3 / 4)
    assert (found.gained, found.lost, found.judged, found.p) == (1, 1, 4, 1.0)
    assert found.groups == {"B": 1, "C": 1, "D": 1}
    assert found.transitions["2", "9"] == 1
    assert (found.test, found.units, found.changed.method) == ("exact test of two paired shares", 4, "Wilson")
    text = single_spaced(shown_flips([found], most=2))
    assert "| org/tiny | mkqa_norag_en | mkqa_en | 4 | 75.0 [" in text
    assert "mkqa_norag_en -> mkqa_en: B (1), C (1), and 1 more" in text
    json.dumps(found.as_dict())


def test_a_single_task_has_no_flips(tmp_path: Path) -> None:
    write(tmp_path, "mkqa_en", [sample("a", "en", "1")])
    with pytest.raises(DataError, match="no two tasks of one model answer the same questions"):
        flips([tmp_path])
