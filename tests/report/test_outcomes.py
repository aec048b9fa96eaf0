"""What came of a run stands in its label, wherever it is shown, and changes nothing of what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import deep_merge, differences
from mrag_eval.platform import DataError
from mrag_eval.report import (
    EXPORTS,
    OUTCOMES,
    Options,
    compare,
    comparison_text,
    export,
    read_results,
    render,
    score_tables,
    write_report,
)
from mrag_eval.report.tables._layouts import layout_tables
from tests.report.runs import CONFIG, row
from tests.tables import told
from tests.worlds.measured import placed, recorded

# Outcome -> what the scores and the record say of one just at its share, and of one above; its text.
SEEN: Mapping[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "prompts cut": (
        {"prompts": {"prompts": 40, "shortened": 0}},
        {"prompts": {"prompts": 40, "shortened": 1}},
        "1 of 40 prompts cut",
    ),
    "passages untranslated": (
        {"translation": {"counts": {"documents": {"translated": 60, "cached": 10, "same_language": 10}}}},
        {"translation": {"counts": {"documents": {"translated": 76, "failed": 3, "wrong_language": 1}}}},
        "4 of 80 passages untranslated",
    ),
    "replies cut": (
        {"finish_reasons": {"stop": 38, "length": 2}},
        {"finish_reasons": {"stop": 37, "max_tokens": 2, "length": 1}},
        "3 of 40 replies cut",
    ),
    "rows unscored": (
        {"metrics": {"match": {"value": 0.5, "n": 38, "failed": 2}}},
        {"metrics": {"match": {"value": 0.5, "n": 37, "failed": 3}}},
        "3 of 40 rows unscored",
    ),
}


def write(folder: Path, came: Mapping[str, Any], *, task: str = "qa", date: int = 1, **blocks: Any) -> Path:
    """Write a run over 40 rows; ``came`` are entries of its scores, or the ends of its replies."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = f"2026-01-0{date}T00-00-00.000000"
    rows = [row(i, match=float(i < 20)) for i in range(40)]
    lines = [json.dumps({"doc": {"id": one["row"]}, "rows": one, "filtered_resps": ["x"]}) + "\n" for one in rows]
    (folder / f"samples_{task}_{stamp}.jsonl").write_text("".join(lines), "utf-8")
    scores: dict[str, Any] = {"rows": 40, "metrics": {"match": {"value": 0.5, "n": 40}}, "query_langs": {"en": 40}}
    ends = {key: value for key, value in came.items() if key == "finish_reasons"}
    scores |= {key: value for key, value in came.items() if key not in ends}
    config = deep_merge(CONFIG if task == "qa" else {}, {"scores": scores, **blocks})
    content = {
        "configs": {task: placed(config, recorded(task, config, outcome=ends))},
        "model_name": "m",
        "date": 1_767_225_600.0 + date,
        "config": {"model": "hf", "model_args": "pretrained=m"},
    }
    (folder / f"results_{stamp}.json").write_text(json.dumps(content), "utf-8")
    return folder


def test_every_outcome_of_the_table_is_tested_here() -> None:
    assert SEEN.keys() == OUTCOMES.keys()


@pytest.mark.parametrize("name", SEEN)
def test_an_outcome_counts_above_its_share(name: str, tmp_path: Path) -> None:
    within, above, text = SEEN[name]
    for folder, came, said in (("within", within, None), ("above", above, text)):
        (file,) = read_results([write(tmp_path / folder, came)])
        assert file.remark("qa") == said
        assert [one.name for one in file.leaves["qa"].outcomes] == ([name] if said else [])
    records = [file.leaves["qa"].measurement for file in read_results([tmp_path])]
    assert differences(*records) == []


@pytest.mark.parametrize("name", SEEN)
def test_every_view_says_it(name: str, tmp_path: Path) -> None:
    within, above, text = SEEN[name]
    plain, cut = write(tmp_path / "a", within), write(tmp_path / "b", above)
    for export_name in EXPORTS:
        for folder, said in ((plain, False), (cut, True)):
            options = Options(output=tmp_path / export_name / folder.name, dataset="me/bench", metrics=("match",))
            if said and name == "rows unscored" and EXPORTS[export_name].ranked:
                with pytest.raises(DataError, match=r"match is no headline \(3 of 40 rows failed"):
                    export([folder], export_name, options)
                continue
            written = "\n".join(path.read_text("utf-8") for path in export([folder], export_name, options).files)
            assert (text in written) is said, (export_name, folder)
    page = tmp_path / "page.html"
    write_report([cut], page)
    assert text in page.read_text("utf-8")
    assert text in render(score_tables([cut]))
    assert text in comparison_text(compare([plain], [cut]))


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("cut_last", [True, False])
def test_a_layout_names_it_and_shows_the_run_without(name: str, cut_last: bool, tmp_path: Path) -> None:
    """Two runs of one task under the same settings: the one of which nothing was lost is shown, whichever is newer."""
    within, above, text = SEEN[name]
    task, dates = "bordirlines_no_ir_direct", (1, 2) if cut_last else (2, 1)
    whole = {"concurrence": {"intervals": {"KB_CS": {"value": 0.5, "n": 161}}}}
    write(tmp_path / "cut", deep_merge(whole, above), task=task, date=dates[1])
    (table,) = [one for one in layout_tables("bordirlines", [tmp_path / "cut"]) if one.id == "4"]
    (ours,) = [one for one in table.rows if one.labels == ("no_ir", "m")]
    assert told(ours) == f"run with {text}"
    write(tmp_path / "whole", deep_merge(whole, within), task=task, date=dates[0])
    (table,) = [one for one in layout_tables("bordirlines", [tmp_path]) if one.id == "4"]
    (ours,) = [one for one in table.rows if one.labels == ("no_ir", "m")]
    assert told(ours) == "this run"
    assert any(f"a run with the same settings, and {text}, is left out" in note for note in table.notes)
