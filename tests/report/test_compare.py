"""Comparison of two runs over the same rows, by their sample files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from typer.testing import CliRunner

from mrag_eval.datasets import sha256_file
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import compare, comparison_text, read_results
from mrag_eval.report.files._results import LaterVerdicts
from mrag_eval.scoring import RowRecord, summarize
from tests.report.runs import row, write_run
from tests.tables import single_spaced


def pair(tmp_path: Path, first: Sequence[float], second: Sequence[float], **changes: Any) -> tuple[Path, Path]:
    a = write_run(tmp_path / "a", {"qa": [row(i, acc=x) for i, x in enumerate(first)]})
    b = write_run(tmp_path / "b", {"qa": [row(i, acc=x) for i, x in enumerate(second)]}, **changes)
    return a, b


def test_a_difference_of_right_and_wrong_answers(tmp_path: Path) -> None:
    # 40 rows: 3 gained, 9 lost, 20 right in both, 8 wrong in both
    first = [0] * 3 + [1] * 9 + [1] * 20 + [0] * 8
    second = [1] * 3 + [0] * 9 + [1] * 20 + [0] * 8
    found = compare(*([path] for path in pair(tmp_path, first, second))).differences
    (one,) = found
    assert (one.n, one.language) == (40, None)
    assert one.first == pytest.approx(29 / 40)
    assert one.second == pytest.approx(23 / 40)
    assert one.difference == pytest.approx(-6 / 40)
    # McNemar's exact test says .146; the exact test over all outcomes has more power
    assert one.p_value == pytest.approx(0.0994, abs=5e-5)
    assert one.p_adjusted == one.p_value
    assert one.better == ("r0", "r1", "r2")
    assert len(one.worse) == 9
    assert one.low is not None
    assert one.high is not None
    assert one.low < -6 / 40 < 0 < one.high < 0.04


def test_languages_are_compared_separately_and_corrected_together(tmp_path: Path) -> None:
    rows = [row(i, lang=lang, acc=1.0) for lang in ("de", "th") for i in range(30)]
    worse = [dict(r) for r in rows]
    lost = [row(i, lang="th", acc=0.0) for i in range(8)]
    worse[30:38] = lost
    a = write_run(tmp_path / "a", {"qa": rows})
    b = write_run(tmp_path / "b", {"qa": worse})
    by_language = {d.language: d for d in compare([a], [b]).differences}
    assert list(by_language) == [None, "de", "th"]
    assert by_language["de"].p_value == 1.0
    raw = [by_language[key].p_value for key in (None, "th")]
    assert max(raw) < binomtest(0, 8).pvalue
    # the whole has half of the level, a language a quarter; the whole is rejected first, and passes them a quarter each
    whole, thai = raw
    assert 2 * whole < 4 * thai
    assert by_language[None].p_adjusted == pytest.approx(2 * whole)
    assert by_language["th"].p_adjusted == pytest.approx(max(2 * whole, 2 * thai))


def test_metrics_that_decide_nothing_have_intervals_alone(tmp_path: Path) -> None:
    made = [row(i, acc=float(i < 20), f1=0.5, correct_language=1.0, choice_parsed=1.0) for i in range(40)]
    lost = [row(i, acc=float(i < 2), f1=0.4, correct_language=float(i > 20), choice_parsed=1.0) for i in range(40)]
    a, b = write_run(tmp_path / "a", {"qa": made}), write_run(tmp_path / "b", {"qa": lost})
    found = {d.metric: d for d in compare([a], [b]).differences}
    assert [name for name, d in found.items() if d.p_adjusted is not None] == ["acc", "correct_language"]
    assert all(d.low is not None for d in found.values())
    assert compare([a], [b], metrics=["f1"]).differences[0].p_adjusted is not None
    text = comparison_text(compare([a], [b]))
    assert text.splitlines()[-1].startswith("b is worse than a: 5.0 against 50.0 by acc, -45.0 [")
    assert "Worse in all languages (correct_language): -52.5 [" in text.splitlines()[-1]


def test_pairs_and_both_kinds_of_them_are_tested_where_rows_know_them(tmp_path: Path) -> None:
    def made(lost: int) -> list[dict[str, Any]]:
        rows = []
        for lang in ("de", "th"):
            for i in range(80):
                one = row(i, lang, acc=float(lang == "de" or i % 2 == 0 or i // 2 >= lost))
                one["cell"]["doc_lang"] = "en" if i % 2 else lang
                rows.append(one)
        few = row(99, "th", acc=1.0)
        few["cell"]["doc_lang"] = "ja"
        return [*rows, few]

    a, b = write_run(tmp_path / "a", {"qa": made(0)}), write_run(tmp_path / "b", {"qa": made(24)})
    found = compare([a], [b])
    by = {d.language: d for d in found.differences}
    assert [*by] == [None, "de", "th", "de->de", "de->en", "th->en", "th->th", "same language", "cross language"]
    # one row could show nothing
    assert found.left_out == 1
    shown = {name for name, d in by.items() if d.p_adjusted is not None and d.p_adjusted <= 0.05}
    assert shown == {None, "th", "th->en", "cross language"}
    assert (by["same language"].n, by["cross language"].n) == (80, 81)


def test_the_tasks_of_a_group_are_compared_together_too(tmp_path: Path) -> None:
    """Each task has one language of questions, so only the group can tell same from cross language."""

    def made(lost: int) -> dict[str, list[dict[str, Any]]]:
        tasks: dict[str, list[dict[str, Any]]] = {}
        for lang in ("de", "th", "ja"):
            rows = [row(i, lang, acc=float(i % 2 == 0 or i // 2 >= lost)) for i in range(80)]
            for i, one in enumerate(rows):
                one["cell"]["doc_lang"] = "en" if i % 2 else lang
            tasks[f"qa_{lang}"] = rows
        return tasks

    names = ["qa_de", "qa_th", "qa_ja"]
    groups = {"qa": names, "qa_asian": names[1:], "other": ["x"]}
    a = write_run(tmp_path / "a", made(0), groups=groups)
    b = write_run(tmp_path / "b", made(10), groups=groups)
    found = compare([a], [b])
    assert found.groups == {"qa": sorted(names)}
    by = {d.language: d for d in found.differences if d.task == "qa"}
    assert {None, "same language", "cross language", "de->en"} <= by.keys()
    assert (by[None].n, by["cross language"].n) == (240, 120)
    # 30 of 240 lost, all of them across languages
    assert by[None].difference == pytest.approx(-0.125)
    assert by["cross language"].difference == pytest.approx(-0.25)
    assert by["same language"].difference == 0
    said = comparison_text(found)
    assert "is worse than" in said
    assert "over qa: 87.5 against 100.0 by acc" in said
    # the group is no task of its own in the count, and its rows are listed once
    assert "of 3 tasks" in said
    assert comparison_text(found, flips=True).count("rows that changed") == 3


def test_two_runs_of_one_name_stand_by_folder_and_time(tmp_path: Path) -> None:
    a, b = pair(tmp_path, [1] * 10, [1] * 10, date="2026-01-02T00-00-00.000000")
    assert compare([a], [b]).runs == ("a", "b")
    again = write_run(tmp_path / "other" / "a", {"qa": [row(i, acc=1.0) for i in range(10)]})
    first, second = compare([a], [again]).runs
    assert (first, second) == (str(a), str(again))


def test_a_margin_of_the_whole_range_is_refused(tmp_path: Path) -> None:
    a, b = pair(tmp_path, [1] * 10, [1] * 10)
    with pytest.raises(ConfigError, match="--equivalent: 2 decides nothing") as caught:
        compare([a], [b], equivalent=2)
    assert "0.02 for 2 points" in str(caught.value.next_step)


def test_a_row_without_a_score_in_one_run_is_left_out(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"qa": [row(0, acc=1.0), row(1, acc=1.0), row(2, acc=0.0)]})
    b = write_run(tmp_path / "b", {"qa": [row(0, acc=0.0), row(1), row(2, acc=0.0)]})
    (one,) = compare([a], [b]).differences
    assert one.n == 2
    assert one.difference == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"retrieval": {"mode": "all", "k": 5}}, "retrieval.mode: qlang | all"),
        ({"source": {"sha256": "other"}}, "source.sha256"),
        ({"metadata": {"version": 2.0}}, "version: 1.0 | 2.0"),
        ({"prompt": {"template": "cot"}}, "prompt.template"),
        ({"judge": {"prompt": "equivalence"}}, "judge.prompt"),
        ({"index": {"content_hash": "abc"}}, "index.content_hash: not set | abc"),
        ({"agent": {"max_rounds": 2}}, "agent.max_rounds"),
    ],
)
def test_other_settings_are_refused_until_named(tmp_path: Path, changes: Mapping[str, Any], key: str) -> None:
    a, b = pair(tmp_path, [1, 0], [1, 1], config=changes)
    with pytest.raises(DataError, match="differ") as err:
        compare([a], [b])
    assert key in str(err.value)
    block = key.partition(":")[0].partition(".")[0]
    assert f"--differs {block}" in str(err.value)
    found = compare([a], [b], differs=[block])
    assert found.differs["qa"]


@pytest.mark.parametrize(
    ("block", "one", "other", "said"),
    [
        (
            "translation",
            {"translator": "nllb", "identity": {"model": "a"}},
            {"translator": "nllb", "identity": {"model": "b"}},
            "translator.model: a | b",
        ),
        ("judge", {"judges": {"s": {"model": "x"}}}, {"judges": {"s": {"model": "y"}}}, "judges: x | y"),
        ("relevance", {"by": "judge", "judges": {"s": "x"}}, {"by": "judge", "judges": {"s": "y"}}, "judges: x | y"),
    ],
)
def test_who_translated_and_judged_is_a_setting_too(
    tmp_path: Path, block: str, one: Mapping[str, Any], other: Mapping[str, Any], said: str
) -> None:
    # named in the config file, so no block of the task contains it
    def made(name: str, scores: Mapping[str, Any] | None) -> Path:
        config = {"scores": {block: scores}} if scores else {}
        return write_run(tmp_path / name, {"qa": [row(0, acc=1.0), row(1, acc=0.0)]}, config=config)

    a, b, neither = made("a", one), made("b", other), made("c", None)
    with pytest.raises(DataError, match="differ") as err:
        compare([a], [b])
    assert said in str(err.value)
    assert compare([a], [b], differs=[said.partition(":")[0].partition(".")[0]]).differs["qa"]
    assert compare([a], [a]).differs == compare([a], [neither]).differs == {}


def test_a_table_of_translations_is_identified_by_its_hash(tmp_path: Path) -> None:
    def made(name: str, label: str, content: str) -> Path:
        told = {"translator": label, "identity": {"backend": "table", "sha256": content}}
        config = {
            "scores": {"translation": told},
            "retrieval": {"translator": {"backend": "table", "path": f"/{name}/{label}"}},
        }
        return write_run(tmp_path / name, {"qa": [row(0, acc=1.0), row(1, acc=0.0)]}, config=config)

    first, changed = made("a", "table t.jsonl", "abc"), made("b", "table t.jsonl", "def")
    moved = made("c", "table u.jsonl", "abc")
    with pytest.raises(DataError, match=r"translator\.sha256: abc \| def"):
        compare([first], [changed])
    assert compare([first], [moved]).differs == {}


def test_locations_of_files_make_no_difference(tmp_path: Path) -> None:
    elsewhere = {"data": {"path": "/elsewhere"}, "retrieval": {"corpus": "/elsewhere/index"}}
    a, b = pair(tmp_path, [1, 0], [1, 1], config=elsewhere)
    assert compare([a], [b]).differs == {}


def test_tasks_of_other_names_are_paired_by_request(tmp_path: Path) -> None:
    out = write_run(tmp_path, {"norag": [row(0, acc=0.0)], "rag": [row(0, acc=1.0)]})
    (one,) = compare([out], [out], pairs={"norag": "rag"}).differences
    assert (one.task, one.difference) == ("norag / rag", 1.0)
    with pytest.raises(DataError, match="no task 'mono' in the second run"):
        compare([out], [out], pairs={"norag": "mono"})


def test_runs_over_other_rows_do_not_pair(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"qa": [row(0, acc=1.0)]})
    b = write_run(tmp_path / "b", {"qa": [row(1, acc=1.0)]})
    with pytest.raises(DataError, match="share no row"):
        compare([a], [b])
    c = write_run(tmp_path / "c", {"other": [row(0, acc=1.0)]})
    with pytest.raises(DataError, match="share no task"):
        compare([a], [c])


def test_rows_of_only_one_run_are_noted(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"qa": [row(0, acc=1.0), row(1, acc=1.0)], "old": [row(0, acc=1.0)]})
    b = write_run(tmp_path / "b", {"qa": [row(0, acc=1.0)], "new": [row(0, acc=1.0)]})
    assert set(compare([a], [b]).notes) == {
        "qa: 1 row only in the first run",
        "old: only in the first run",
        "new: only in the second run",
    }


def test_without_its_result_file_a_run_is_not_compared_unasked(tmp_path: Path) -> None:
    a, b = pair(tmp_path, [1, 0], [1, 1])
    next(b.rglob("results_*.json")).unlink()
    with pytest.raises(DataError, match="what it measures is unknown"):
        compare([a], [b])
    assert compare([a], [b], differs=["all"]).differences[0].difference == 0.5


def test_a_judged_file_counts_before_its_original(tmp_path: Path) -> None:
    b = write_run(tmp_path / "b", {"qa": [row(0, acc=0.0)]})
    original = next(b.rglob("samples_*.jsonl"))
    sample = {"rows": row(0, acc=0.0, judged_accuracy=1.0)}
    judged = original.with_name(f"judged_{original.name}")
    judged.write_text(json.dumps(sample) + "\n", "utf-8")
    # alone they are no part of the run
    assert [d.metric for d in compare([b], [b]).differences] == ["acc"]
    (file,) = read_results([b])
    scores = summarize([RowRecord.from_dict(sample["rows"])])
    measured = file.measurement("qa")
    assert measured is not None
    LaterVerdicts(scores, sha256_file(judged), measured).write(file.path, "qa")
    found = compare([b], [b]).differences
    assert [d.metric for d in found] == ["acc", "judged_accuracy"]


def test_a_file_judged_twice_belongs_to_its_task_and_its_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", {"qa": [row(0, acc=0.0)]})
    original = next(run.rglob("samples_*.jsonl"))
    for prefix in ("contexts_judged_", "judged_contexts_"):
        twice = original.with_name(f"{prefix}{original.name}")
        twice.write_text(json.dumps({"rows": row(0, acc=1.0)}) + "\n", "utf-8")
        (difference,) = compare([original], [twice]).differences
        assert (difference.task, difference.difference) == ("qa", 1.0)
    (difference,) = compare([original], [run]).differences
    assert (difference.task, difference.difference) == ("qa", 1.0)


def test_as_text_as_csv_and_as_json(tmp_path: Path) -> None:
    a, b = pair(tmp_path, [1] * 30, [0] * 12 + [1] * 18)
    found = compare([a], [b])
    text = single_spaced(comparison_text(found, flips=True))
    assert "| qa | all | 30 | 100.0 | 60.0 | -40.0 |" in text
    assert "worse (12): r0, r1" in text
    rows = list(csv.DictReader(io.StringIO(comparison_text(found, "csv"))))
    assert float(rows[0]["difference"]) == pytest.approx(-0.4)
    assert "worse" not in rows[0]
    assert json.loads(comparison_text(found, "json"))["differences"][0]["worse"][0] == "r0"


def test_the_command(tmp_path: Path) -> None:
    from mrag_eval.cli import Session, app

    a, b = pair(tmp_path, [1, 0], [1, 1])
    done = CliRunner().invoke(app, ["compare", str(a), str(b), "--format", "json"], obj=Session())
    assert done.exit_code == 0
    assert json.loads(done.stdout)["differences"][0]["difference"] == 0.5
    bad = CliRunner().invoke(app, ["compare", str(a), str(b), "--pair", "qa"], obj=Session())
    assert bad.exit_code == 2
