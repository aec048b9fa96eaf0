"""Which side of a metric is better: exports, ranks and colours read it where the metric declares it."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import yaml
from huggingface_hub.repocard import metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results

from mrag_eval.metrics import Estimate
from mrag_eval.report import EXPORTS, Options, export, page_data
from mrag_eval.report.exports._latex import escaped, latex_table
from mrag_eval.report.exports._runs import runs_of
from mrag_eval.report.page._shapes import shade
from mrag_eval.report.page.sections._leaderboard import _board
from mrag_eval.report.tables._leaderboard import Board, Entry, boards
from mrag_eval.scoring import METRICS, TASK_MEASURES, direction_lines, more_is_better, scale_of
from tests.report.test_export import write_run
from tests.report.test_leaderboard import LANGUAGES, row
from tests.report.test_leaderboard import _write as write_system

# Every metric by the names that results have for it: of rows, of the task as a whole, of rankings, by a labeller.
ROW_METRICS = (
    *METRICS,
    "judge_label.supported",
    "hit@20",
    "mrr@20",
    "ndcg@20",
    "reranked_hit@5",
    "shown@3",
    "hit@20 (judged)",
)
NAMES = tuple(dict.fromkeys((*ROW_METRICS, *TASK_MEASURES)))
# Written by hand; whatever is not here is better the higher it is.
LOWER = {"option_unread", "language_mix", "code_switch", "concurrence.unread", "quote_stitched", "quote_nowhere",
         "abstention_error", "abstention_hallucination", "nomiracl_error", "nomiracl_hallucination",
         "nomiracl_invalid", "wrong_supported", "wrong_unsupported"}  # fmt: skip
NEITHER = {"answered_in_english", "declined", "sem_lemma_rule", "option_refused", "concurrence.Con_CS",
           "concurrence.Non_CS", "concurrence.refused",
           "refused", "quote_elsewhere", "copied", "passages_in_language", "right_unsupported", "judge_label",
           "judge_label.supported",
           *(name for name in NAMES if ".countries" in name)}  # fmt: skip
NEARER_ZERO = {name for name in NAMES if ".delta_CS" in name}
SIDES = dict.fromkeys(NAMES, "higher") | dict.fromkeys(LOWER, "lower") | dict.fromkeys(NEITHER, "neither")
SIDES |= dict.fromkeys(NEARER_ZERO, "nearer_zero")


def value_of(name: str) -> float:
    """Return a value within the metric's range."""
    low, high = scale_of(name).low, scale_of(name).high
    return (0.25 if low is None else low) + (2.0 if high is None else 0.5 * (high - (low or 0.0)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with every metric."""
    scores = {"metrics": {name: {"value": value_of(name), "n": 4} for name in NAMES}}
    return write_run(tmp_path / "run", scores=scores)


def test_the_metrics_of_which_less_is_better_are_those_of_this_list() -> None:
    assert {name: more_is_better(name) for name in NAMES} == {
        name: {"higher": True, "lower": False}.get(side) for name, side in SIDES.items()
    }


def read_csv(path: Path) -> dict[str, tuple[str, str]]:
    lines = [line for line in csv.DictReader(path.open(encoding="utf-8")) if line["task"] == "rag_de"]
    said = {"lower": "True", "higher": "False"}
    assert all(line["lower_is_better"] == said.get(line["better"], "") for line in lines)
    return {line["metric"]: (line["better"], line["unit"]) for line in lines}


def read_mteb(path: Path) -> dict[str, tuple[str, str]]:
    content = json.loads((path.parent / "rag_de.json").read_text("utf-8"))
    return {name: (one["better"], one["unit"]) for name, one in content["metrics"].items()}


def read_record(path: Path) -> dict[str, tuple[str, str]]:
    found = {}
    for result in json.loads(path.read_text("utf-8"))["evaluation_results"]:
        config = result["metric_config"]
        if result["evaluation_name"] == "rag_de":
            better = config["additional_details"]["better"]
            assert config["lower_is_better"] is (better == "lower")
            assert ("evaluation_description" in config) == (better in ("neither", "nearer_zero"))
            found[config["metric_name"]] = (better, config["metric_unit"].replace("proportion", "share"))
    return found


def read_card(path: Path) -> dict[str, tuple[str, str]]:
    metadata = metadata_load(path)
    assert metadata is not None
    _, results = model_index_to_eval_results(metadata["model-index"])
    args = {r.metric_type: r.metric_args or {} for r in results if r.dataset_config == "rag_de"}
    return {name: (found["better"], found["unit"]) for name, found in args.items()}


def read_entries(path: Path) -> dict[str, tuple[str, str]]:
    """A file of the hub has one number an entry, and notes in words."""
    found = {}
    for entry in yaml.safe_load(path.read_text("utf-8")):
        notes = entry["notes"]
        if not entry["dataset"]["task_id"].startswith("rag_de"):
            continue
        named = re.match(r"(.+?) -?\d", notes)
        assert named is not None
        name = named[1]
        sides = {"neither more nor less is better: ": "neither", "less is better: ": "lower",
                 "nearer to 0 is better: ": "nearer_zero"}  # fmt: skip
        side = next((side for text, side in sides.items() if f"{text}{name}" in notes), "higher")
        unit = re.search(r"in (countries|\w+)", notes.partition("; ")[0])
        found[name] = (side, scale_of(name).unit if unit is None else unit[1])
        assert (unit is not None) == (scale_of(name).unit not in ("share", "ratio"))
    return found


def read_latex(path: Path) -> dict[str, tuple[str, str]]:
    text = path.read_text("utf-8")
    below = text.splitlines()[-1]
    found = {}
    for name in NAMES:
        lines = {"lower": "(?<!nor )less is better: ", "neither": "neither more nor less is better: ",
                 "nearer_zero": "nearer to 0 is better: "}  # fmt: skip
        listed = {side: re.search(f"{line}([^;]*)", below) for side, line in lines.items()}
        names = {side: set(hit[1].rstrip(".}").split(", ")) if hit else set() for side, hit in listed.items()}
        side = next((side for side, own in names.items() if escaped(name) in own), "higher")
        assert f"{escaped(name + scale_of(name).note)} " in text
        found[name] = (side, scale_of(name).unit)
    return found


READERS = {
    "csv": read_csv, "mteb": read_mteb, "eee": read_record, "model-index": read_card, "eval-results": read_entries,
    "latex": read_latex,
}  # fmt: skip


def test_every_export_is_walked() -> None:
    assert set(READERS) == set(EXPORTS)


@pytest.mark.parametrize("form", sorted(READERS))
def test_every_export_has_the_direction_and_the_unit_of_every_metric(form: str, run: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / (EXPORTS[form].file or "")
    files = export([run], form, Options(output=output)).files
    assert READERS[form](files[0]) == {name: (SIDES[name], scale_of(name).unit) for name in NAMES}


def test_every_eval_ever_s_export_says_what_the_schema_cannot(run: Path, tmp_path: Path) -> None:
    notes = export([run], "eee", Options(output=tmp_path / "out")).notes
    (said,) = (note for note in notes if "neither more nor less is better: the schema" in note)
    assert all(name in said for name in NEITHER | NEARER_ZERO)


@pytest.mark.parametrize("name", NAMES)
def test_the_best_of_a_latex_table_is_on_the_better_side(name: str, tmp_path: Path) -> None:
    low, high = value_of(name), value_of(name) + 0.1
    for model, value in (("org/low", low), ("org/high", high)):
        write_run(tmp_path, model, scores={"metrics": {"match": {"value": None}, name: {"value": value, "n": 4}}})
    lines = latex_table(runs_of([tmp_path], [name])[0], bold=True).splitlines()
    bold = {model for model in ("low", "high") for line in lines if f"org/{model} &" in line and r"\textbf" in line}
    assert bold == {"higher": {"high"}, "lower": {"low"}}.get(SIDES[name], set())


@pytest.mark.parametrize("name", ROW_METRICS)
def test_ranks_are_on_the_better_side(name: str, tmp_path: Path) -> None:
    """One system has .9 on every row, the other .1: a rank is the metric's or none."""
    for model, value in (("much", 0.9), ("little", 0.1)):
        rows = [row(i, lang, **{name: value}) for lang in LANGUAGES for i in range(20)]
        scores = {"rows": 60, "metrics": {name: {"value": value, "n": 60}}, "query_langs": dict.fromkeys(LANGUAGES, 20)}
        write_system(tmp_path, model, {"qa": rows}, scores=scores)
    (board,) = (board for board in boards(page_data([tmp_path]).systems) if board.metric == name)
    first = {"higher": "much", "lower": "little", "neither": None}[SIDES[name]]
    ranks = {entry.run: entry.best for entry in board.entries}
    if first is None:
        assert set(ranks.values()) == {None}
        assert [entry.run for entry in board.entries] == ["little", "much"]  # by name
        assert not any(entry.behind for entry in board.entries)
    else:
        assert ranks[first] == 1
        assert board.entries[0].run == first
        behind = board.entries[1].behind
        assert behind is not None
        assert behind.value == pytest.approx(-0.8 if first == "much" else 0.8)
    note = _board(board)["note"]
    assert ("less is better" in note) == (first != "much")
    assert ("no ranks" in note) == (first is None)


@pytest.mark.parametrize("name", sorted(TASK_MEASURES))
def test_scores_of_the_task_as_a_whole_are_listed_on_the_better_side(name: str, tmp_path: Path) -> None:
    from mrag_eval.report.tables._leaderboard import _order

    entries = [Entry("high", "m", Estimate(value_of(name) + 0.1), 0), Entry("low", "m", Estimate(value_of(name)), 0)]
    entries.sort(key=lambda entry: _order(entry, more_is_better(name)))
    assert [entry.run for entry in entries] == (["low", "high"] if SIDES[name] == "lower" else ["high", "low"])
    board = Board("b", name, 0, (), (), tuple(entries), higher=more_is_better(name))
    assert ("no ranks" in _board(board)["note"]) == (SIDES[name] not in ("higher", "lower"))


@pytest.mark.parametrize("name", NAMES)
def test_colours_are_on_the_better_side(name: str) -> None:
    """The darkest is the best end of the metric's range; without a better side or without a range, there is none."""
    scale = scale_of(name)
    if SIDES[name] not in ("higher", "lower") or scale.low is None or scale.high is None:
        assert shade(name, value_of(name) * scale.factor) is None
        return
    ends = [shade(name, end * scale.factor) for end in (scale.low, scale.high)]
    assert ends == ([0.0, 100.0] if SIDES[name] == "higher" else [100.0, 0.0])
    assert shade(name, None) is None


def test_a_quarter_of_the_range_from_the_worst(tmp_path: Path) -> None:
    """25 % are a quarter of the way for match, three quarters for language_mix."""
    assert (shade("match", 25.0), shade("language_mix", 25.0)) == (25.0, 75.0)
    assert direction_lines(["match"]) == []
    assert direction_lines(["declined", "match", "language_mix", "concurrence.delta_CS_ratio"]) == [
        "less is better: language_mix",
        "nearer to 0 is better: concurrence.delta_CS_ratio",
        "neither more nor less is better: declined",
    ]
