"""The HTML report: its content, and that no text is interpreted as part of the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.platform import DataError
from mrag_eval.report import page_data, score_table, write_report
from mrag_eval.report.page import sections
from mrag_eval.report.page._section import Chart, Section
from mrag_eval.report.page._sections import CHARTS, SECTIONS
from mrag_eval.report.page._write import charts
from mrag_eval.report.page.sections._citations import citation_rows
from mrag_eval.report.page.sections._cost import cost_points
from mrag_eval.report.page.sections._unscored import unscored_points
from tests.report.runs import row, write_full_run, write_run
from tests.tables import single_spaced


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_full_run(tmp_path / "out")


def test_scores_are_in_percent_and_keep_their_interval(runs: Path) -> None:
    data = page_data([runs])
    point = next(p for p in data.scores if (p["task"], p["metric"]) == ("qa_one", "match"))
    assert (point["value"], point["low"], point["high"], point["n"]) == (30.0, 20.0, 50.0, 23)
    assert [(p["question"], p["document"]) for p in data.points["pairs"] if p["task"] == "qa_one"] == [
        ("ar", "en"),
        ("zh", "en"),
        ("en", "en"),
    ]
    # both tasks of the system together
    assert {p["language"] for p in data.points["stages"]} == {"all languages"}
    assert {p["stage"]: (p["rows"], p["share"]) for p in data.points["stages"]} == {
        "correct": (16, 33.3),
        "not retrieved": (16, 33.3),
        "not used": (12, 25.0),
        "wrong language": (4, 8.3),
    }
    assert unscored_points(data)[0] == {
        "task": "qa_one, qa_two",
        "metric": "match",
        "reason": "the row has no reference answer",
        "rows": 1,
    }
    assert cost_points(data)[0]["failures"] == 2


def test_languages_are_means_over_the_samples(runs: Path) -> None:
    data = page_data([runs])
    # the two tasks have different rows and the same settings, so they are parts of one system
    assert [(system.mode, len(system.leaves)) for system in data.systems] == [("all", 2)]
    found = {p["language"]: (p["value"], p["n"]) for p in data.points["languages"] if p["metric"] == "match"}
    # rows i = 1, 5, 9, ... are Chinese; match is i % 6 > 3: of 1, 5, 9, 13, 17, 21 these are 5 and 17, in both tasks
    assert found["zh"] == (33.3, 12)
    # row 7 is English and unscored: of 3, 11, 15, 19, 23 these are 11 and 23
    assert found["en"] == (40.0, 10)


def test_losses_are_by_language_and_by_where_the_relevant_document_is(tmp_path: Path) -> None:
    folder = write_full_run(tmp_path / "out")
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    table = content["configs"]["qa_one"]["scores"]["attribution"]
    pairs = {"ar->ar": {"correct": 3, "not used": 1}, "ar->en": {"not shown": 4}, "en->en": {"correct": 2}}
    table["by_pair"] = {pair: {**table["overall"], "stages": stages} for pair, stages in pairs.items()}
    del content["configs"]["qa_two"]
    path.write_text(json.dumps(content), "utf-8")
    points = page_data([folder]).points["stages"]
    found = {(p["documents"], p["language"], p["stage"]): (p["rows"], p["share"]) for p in points}
    assert found["any language", "ar", "not shown"] == (4, 50.0)
    assert found["the question's language", "ar", "correct"] == (3, 75.0)
    assert found["the question's language", "all languages", "correct"] == (5, 83.3)
    # asked in one language alone: said once
    assert [key for key in found if key[0] == "another language"] == [
        ("another language", "all languages", "not shown")
    ]


REPLY = {
    # a character beyond the basic plane is one code point, and two units of a script
    "ar": ("🙂 المنارة في فارغا. ", "وهي حمراء", " جدا."),
    "en": ("It is 𝐢n Varga. ", "It is red", "."),
}


def test_the_spans_that_nothing_supports_are_told_as_scripts_count(tmp_path: Path) -> None:
    data = page_data([write_full_run(tmp_path / "out", reply=REPLY)])
    samples = {lang: [one for one in data.samples if one["lang"] == lang] for lang in ("ar", "en", "zh")}
    assert all("claims" not in one and "unsupported" not in one for one in samples["zh"])
    for lang, (_, span, _) in REPLY.items():
        for one in samples[lang]:
            units = one["reply"].encode("utf-16-le")
            assert [units[2 * start : 2 * end].decode("utf-16-le") for start, end in one["unsupported"]] == [span]
            assert one["claims"] == [["supported", 1, "en"], ["not_found", None, ""]]


def test_a_tier_is_the_mean_over_its_languages(tmp_path: Path) -> None:
    data = page_data([write_full_run(tmp_path / "out", benchmark="blend")])
    tiers = {p["tier"]: p for p in data.points["tiers"] if p["metric"] == "match"}
    # CORAL's high tier holds ar, en and zh (4 and 16 of 0, 4, ... 20 are right in Arabic); Hindi is in none
    assert tiers.keys() == {"high"}
    assert tiers["high"]["value"] == float(f"{100 * (2 / 6 + 2 / 5 + 2 / 6) / 3:.1f}")
    assert tiers["high"]["languages"] == "ar, en, zh"


def test_the_culture_asked_about_is_the_language_of_a_row(tmp_path: Path) -> None:
    write_full_run(tmp_path / "out", culture="su")
    points = page_data([tmp_path / "out"]).points["languages"]
    assert {p["language"] for p in points} == {"su"}


def test_a_passage_that_many_samples_show_is_kept_once(runs: Path) -> None:
    data = page_data([runs])
    assert len(data.samples) == 48
    assert len({json.dumps(p, sort_keys=True) for p in data.passages}) == len(data.passages) < 48
    assert all(data.passages[i]["lang"] for sample in data.samples for i, _, _ in sample["passages"])


@pytest.mark.slow
def test_twenty_tasks_stay_below_five_megabytes(tmp_path: Path) -> None:
    out = write_full_run(tmp_path / "out", tasks=20, rows=250, distinct="ظ" * 700)
    # 20 x 200 samples, each with its own passage of 1.4 kB, would exceed five megabytes
    data = write_report([out], tmp_path / "r.html")
    size = (tmp_path / "r.html").stat().st_size
    assert 4.5e6 < size < 5e6
    counts = Counter(sample["task"] for sample in data.samples)
    assert len(counts) == 20
    assert max(counts.values()) == min(counts.values()) < 200
    assert all(data.passages[i]["lang"] for sample in data.samples for i, _, _ in sample["passages"])
    assert '"drawn":5000' in (tmp_path / "r.html").read_text("utf-8")
    # a number can be requested
    assert len(write_report([out], tmp_path / "r.html", samples=200, text=False).samples) == 4000


def test_samples_are_drawn_with_the_seed(runs: Path) -> None:
    first, again, other = (page_data([runs], samples=5, seed=s).samples for s in (1, 1, 2))
    assert len(first) == 10
    assert first == again != other


def test_without_texts_passages_are_named_only(runs: Path, tmp_path: Path) -> None:
    write_report([runs], tmp_path / "r.html", text=False)
    assert "is in Varga" not in (tmp_path / "r.html").read_text("utf-8")


def test_the_same_task_of_two_models_and_two_modes_stays_separate(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_full_run(out / "a", "model-a")
    write_full_run(out / "b", "model-b", mode="qlang")
    write_full_run(out / "c", "model-a", mode="qlang")
    data = page_data([out])
    labels = [leaf.label for leaf in data.leaves]
    assert len(labels) == len(set(labels)) == 6
    assert "qa_one (all) · model-a" in labels
    assert "qa_one · model-b" in labels
    assert [(s.run, s.mode) for s in data.systems] == [("model-a", "qlang"), ("model-a", "all"), ("model-b", "qlang")]


def test_runs_with_other_settings_or_scores_stay_separate_and_repeated_ones_do_not(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_full_run(out / "a")
    write_full_run(out / "b", k=10)
    write_full_run(out / "c", k=10)
    data = page_data([out])
    assert [leaf.label for leaf in data.leaves] == ["qa_one (k=5)", "qa_one (k=10)", "qa_two (k=5)", "qa_two (k=10)"]
    assert {leaf.samples.parts[-3] for leaf in data.leaves if leaf.samples and "k=10" in leaf.label} == {"c"}
    results = next(write_full_run(out / "d", k=10).rglob("results_*.json"))
    results.write_text(results.read_text("utf-8").replace('"value": 0.45', '"value": 0.46'), "utf-8")
    labels = [re.sub(r" [\d: -]+\)$", ")", leaf.label) for leaf in page_data([out]).leaves]
    assert labels[:3] == ["qa_one (k=5)", "qa_one (k=10 c)", "qa_one (k=10 d)"]


def test_every_chart_compiles(tmp_path: Path) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    specs = charts(page_data([write_full_run(tmp_path / "out", benchmark="blend")]))
    assert set(specs) == {"scores", "languages", "tiers", "pairs", "stages", "retrieved"}
    for spec in specs.values():
        svg = vl_convert.vegalite_to_svg({**spec, "width": 500})
        assert svg.startswith("<svg")
        assert svg.count("<path") + svg.count("<text") > 5


def test_every_chart_of_other_benchmarks_compiles(tmp_path: Path) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    out = tmp_path / "out"
    for model in ("model-a", "model-b"):
        write_full_run(out / model, model, mode="coral", loop=True)
        write_full_run(out / f"{model}-cites", model, mode="rel_langs", citations=True)
    specs = charts(page_data([out]))
    agents = {"planned", "planner_shown", "selection", "relevance", "sufficiency"}
    assert {"scores", "answers", "cited", *agents} <= set(specs)
    for spec in specs.values():
        assert vl_convert.vegalite_to_svg({**spec, "width": 500}).count("<path") > 3
        # every field of the table is in the values
        assert set(spec["usermeta"]["columns"]) <= set(spec["data"]["values"][0])


def test_every_declared_chart_is_drawn_in_its_section(tmp_path: Path) -> None:
    modules = [import_module(f"{sections.__name__}.{found.name}") for found in iter_modules(sections.__path__)]
    found = {id(value) for module in modules for value in vars(module).values() if isinstance(value, Section)}
    assert found == {*map(id, SECTIONS)}
    declared = {id(value) for module in modules for value in vars(module).values() if isinstance(value, Chart)}
    assert declared <= {id(chart) for chart in CHARTS}
    for model in ("model-a", "model-b"):
        write_full_run(tmp_path / "out" / model, model, mode="coral", loop=True, citations=True, benchmark="blend")
    write_report([tmp_path / "out"], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    drawn = re.findall(r'<div class="chart" id="plot-(\w+)"', text)
    assert drawn == [chart.id for chart in CHARTS]
    payload = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert payload is not None
    assert list(json.loads(payload[1])["charts"]) == drawn
    # the list at the top names what is there
    anchors = re.findall(r'<a href="#([\w-]+)">', text.partition("</nav>")[0].partition("<nav")[2])
    assert len(anchors) == len(set(anchors))
    # these runs have no controls, and none before them; folded sections have one link
    open_ones = [section.id for section in SECTIONS if not section.folded and section.id != "changed"]
    assert anchors == [*open_ones, "measured"]
    folded = re.findall(r'<h3 id="([\w-]+)">', text.partition('<details id="measured">')[2])
    assert folded == [section.id for section in SECTIONS if section.folded and section.id != "controls"]
    assert [anchor for anchor in anchors if f'id="{anchor}"' not in text] == []


def test_a_critic_without_a_decision_is_counted_apart(tmp_path: Path) -> None:
    """Of 48 first rounds, 24 are said to be enough; of the other 24 the first is made one without a decision."""
    path = write_full_run(tmp_path / "out", mode="coral", loop=True)
    samples = next(file for file in path.rglob("samples_*.jsonl") if "trace" in file.read_text("utf-8"))
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    rounds = next(line["doc"]["trace"]["rounds"] for line in lines if len(line["doc"]["trace"]["rounds"]) == 2)
    del rounds[0]["enough_documents"], rounds[0]["reason"]
    rounds[0]["faults"] = {"sufficiency: unreadable (asked again)": 1, "sufficiency: unreadable (insufficient)": 1}
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    data = page_data([path])
    said = {(p["round"], p["verdict"]): p["n"] for p in data.points["sufficiency"]}
    ends = {(1, "enough"): 24, (1, "not enough"): 23, (1, "no decision"): 1, (2, "ended: max rounds"): 24}
    assert said == ends
    assert '"no decision"' in json.dumps(charts(data)["sufficiency"])


def test_what_the_agents_did_is_counted_by_round(tmp_path: Path) -> None:
    data = page_data([write_full_run(tmp_path / "out", mode="coral", loop=True)])
    planned = {(p["question"], p["round"], p["language"]): (p["times"], p["share"]) for p in data.points["planned"]}
    # 12 Arabic rows: the first round searches Arabic; the second, of every other row, Arabic and English
    assert planned["ar", 1, "ar"] == (12, 100.0)
    assert planned["ar", 2, "ar"] == planned["ar", 2, "en"] == (6, 50.0)
    kept = {(p["round"], p["passages"]): p["n"] for p in data.points["selection"]}
    assert kept == {(1, "kept"): 48, (1, "discarded"): 48, (2, "discarded"): 24}
    scored = {(p["round"], p["criterion"]): (p["value"], p["n"]) for p in data.points["relevance"]}
    # a kept document has 5, a discarded one 2
    assert scored[1, "relevance"] == (3.5, 96)
    assert scored[2, "clarity specificity"] == (2.0, 24)
    said = {(p["round"], p["verdict"]): p["n"] for p in data.points["sufficiency"]}
    assert said == {(1, "enough"): 24, (1, "not enough"): 24, (2, "ended: max rounds"): 24}
    trace = next(sample["trace"] for sample in data.samples if len(sample["trace"]["rounds"]) == 2)
    (index, score, new, valid, critic), _ = trace["rounds"][0]["hits"]
    assert (data.passages[index]["title"], score, new, valid, critic["relevance"]) == ("Harbour", 0.9, True, True, 5)


def test_what_came_back_from_each_seat_is_among_the_cost(tmp_path: Path) -> None:
    path = write_full_run(tmp_path / "out", mode="coral", loop=True)
    (file,) = path.rglob("results_*.json")
    content = json.loads(file.read_text("utf-8"))
    counts = {"answered_by": {"m-2026": 3}, "ends": {"stop": 3}, "tokens_in": 720, "tokens_out": 9}
    for config in content["configs"].values():
        config["measurement"]["outcome"] = {"seats": {"planner": counts}}
    file.write_text(json.dumps(content), "utf-8")
    (found,) = [point for point in cost_points(page_data([path])) if point["model"] == "planner"][:1]
    assert (found["about"], found["tokens_in"], found["tokens_out"]) == ("all replies, kept ones among them", 720, 9)


def test_citations_and_replies_by_language(tmp_path: Path) -> None:
    data = page_data([write_full_run(tmp_path / "out", citations=True)])
    cited = {(p["source"], p["question"], p["document"], p["share"]): p["value"] for p in data.points["cited"]}
    assert cited["inline", "ar", "en", "of the documents shown"] == 50.0
    assert cited["inline", "ar", "en", "of the citations"] == 75.0
    assert citation_rows(data.leaves[0])[0]["citing"] == 20
    # Figure 10: 60 and 20 of 80 citations
    assert {p["document"]: p["share"] for p in data.points["distribution"] if p["task"] == "qa_one"} == {
        "en": 75.0,
        "ar": 25.0,
    }
    # Figure 4: of Arabic questions half of the documents and a quarter of the citations are Arabic; no Chinese is shown
    own = {(p["group"], p["question"], p["share"]): p["value"] for p in data.points["resources"]}
    assert own == {
        ("high-resource", "ar", "of the documents shown"): 50.0,
        ("high-resource", "ar", "of the citations"): 25.0,
        ("high-resource", "zh", "of the documents shown"): 0.0,
        ("high-resource", "zh", "of the citations"): 0.0,
    }
    replies = {(p["question"], p["answer"]): p["share"] for p in data.points["answers"] if p["task"] == "qa_one"}
    # if i % 6 > 3 the reply is one word, otherwise English: of rows 0, 4, 8, ... 20 these are 4 and 16
    assert replies["ar", "en"] == 66.7
    assert replies["ar", "too short to tell"] == 33.3


def test_charts_without_data_are_left_out(tmp_path: Path) -> None:
    out = write_run(tmp_path, {"qa": [row(0, match=1.0)]})
    with pytest.raises(DataError, match="no task of ours"):
        page_data([out])


def test_no_text_ends_the_script_or_becomes_markup(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    write_report([runs], page, title="<i>mine</i>")
    text = page.read_text("utf-8")
    assert text.count("</script") == 3
    assert "<i>mine" not in text
    assert "<b>lighthouse" not in text
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    samples = json.loads(found[1])["samples"]
    assert any("<b>lighthouse</b>" in sample["question"] for sample in samples)
    # nothing is loaded from the network
    assert not re.findall(r'(?:src|href)="https?:', text)


def test_the_page_says_what_is_missing(runs: Path, tmp_path: Path) -> None:
    write_report([runs], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    # of the headline, in the findings; of every metric, in the table of unscored rows
    assert "2 rows of 48 without a score (the row has no reference answer 2)" in text


def test_a_table_of_scores(runs: Path) -> None:
    table = score_table([runs])
    assert table.columns == ("match", "char3gram_recall")
    assert [cell.value for cell in table.rows[0].cells] == [30.0, 45.0]


def test_the_command(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = CliRunner().invoke(app, ["report", str(runs), "-o", str(page)], obj=Session())
    assert done.exit_code == 0, done.output
    assert re.fullmatch(rf"{re.escape(str(page))}: 2 tasks, 48 samples, \d\.\d MB", done.stdout.strip())
    assert page.stat().st_size < 5e6
    assert "<h1>x: some-model</h1>" in page.read_text("utf-8")
    titled = ["report", str(runs), "-o", str(page), "--title", "Lighthouses & towns"]
    assert CliRunner().invoke(app, titled, obj=Session()).exit_code == 0
    assert "<h1>Lighthouses &amp; towns</h1>" in page.read_text("utf-8")
    done = CliRunner().invoke(app, ["report", str(runs), "--metrics", "all"], obj=Session())
    assert "| qa_one | some-model | 30.0 [20.0, 50.0] (n=23) | 45.0 [20.0, 50.0] (n=24) |" in single_spaced(done.output)
    done = CliRunner().invoke(app, ["report", str(runs), "-o", str(page), "--layout", "xrag"], obj=Session())
    assert "no task of this paper is among the results" in str(done.exception)


def test_systems_stand_in_the_order_of_their_ranks_with_a_colour_each(tmp_path: Path) -> None:
    for i in range(12):
        rows = [row(j, "en" if j % 2 else "ar", match=float(j % 12 < i)) for j in range(48)]
        run = write_run(tmp_path / str(i), {"qa": rows})
        path = next(run.rglob("results_*.json"))
        scores = {"rows": 48, "metrics": {"match": {"value": i / 12, "n": 48, "method": "Wilson"}}}
        content = json.loads(path.read_text("utf-8"))
        content["configs"]["qa"]["scores"] = scores
        path.write_text(json.dumps({**content, "model_name": f"model-{i:02}"}), "utf-8")
    data = page_data([tmp_path])
    best_first = [f"model-{i:02}" for i in reversed(range(12))]
    assert [one.run for one in data.boards[0].entries] == [one.run for one in data.systems] == best_first
    assert [*dict.fromkeys(p["system"] for p in data.points["languages"])] == best_first
    assert len({p["colour"] for p in data.points["languages"]}) == 12
    # one task of several systems is on their board, and needs no chart
    assert data.points["scores"] == []


def test_a_log_has_the_chart_of_its_pairs_and_none_of_replies_that_are_too_short(tmp_path: Path) -> None:
    cell = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 10, "method": "Wilson"}
    by = {"context_pair": {"ar->ar": cell, "ar->en": {**cell, "value": 0.25}, "en->several": cell}}
    scores = {"rows": 30, "metrics": {"match": {**cell, "by": by}}}
    rows = [row(i, "ar", match=1.0) | {"unscored": {"correct_language": "too short"}} for i in range(30)]
    data = page_data([write_run(tmp_path, {"log": rows}, config={"scores": scores})])
    found = {(p["question"], p["document"]): p["value"] for p in data.points["pairs"]}
    assert found == {("ar", "ar"): 50.0, ("ar", "en"): 25.0, ("en", "several"): 50.0}
    assert data.points["answers"] == []
