"""Concurrence where the harness, ``compare`` and ``gate`` look: in the results, and territory by territory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from mrag_eval.harness import score_table
from mrag_eval.platform import tasks_folder
from mrag_eval.report import (
    compare,
    comparison_text,
    gate,
    layout_tables,
    read_rules,
    starter_rules,
    unsupported,
    write_baseline,
)
from tests.task.test_bordirlines_task import answers_of, lines, replay
from tests.task.test_hook import run
from tests.worlds.bordirlines import real_queries
from tests.worlds.small import ScriptedLM

TASK = "bordirlines_no_ir_direct"
STAMP = "2026-01-01T00-00-00.000000"
REPORTED = ("KB_CS", "Con_CS", "Non_CS", "delta_CS_ratio", "delta_CS_difference", "Cst_CS_unk", "Cst_CS_all")


def results_of(test_data: Path, name: str) -> dict[str, Any]:
    model = ScriptedLM(replay(test_data, answers_of(test_data, name)))
    return run(tasks_folder(), TASK, lm=model, metadata=lines(test_data))


@pytest.fixture(scope="module")
def before(test_data: Path) -> dict[str, Any]:
    return results_of(test_data, "always_controller")


@pytest.fixture(scope="module")
def after(test_data: Path) -> dict[str, Any]:
    return results_of(test_data, "noisy_controller")


def written(results: dict[str, Any], folder: Path) -> Path:
    """Write the files of a run as the harness does."""
    folder.mkdir(parents=True)
    for task, samples in results["samples"].items():
        text = "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
        (folder / f"samples_{task}_{STAMP}.jsonl").write_text(text, "utf-8")
    rest = {key: value for key, value in results.items() if key != "samples"}
    (folder / f"results_{STAMP}.json").write_text(json.dumps(rest, default=str), "utf-8")
    return folder


def control_answers(test_data: Path, name: str) -> dict[str, float]:
    """Return territory -> whether its English control answer is the controller, of territories that have one."""
    given = answers_of(test_data, name)
    return {
        q["territory"]: float(q["claimants"][given[q["query_id"]]] == q["controller"])
        for q in real_queries(test_data)
        if q["control_query"] and q["controller"] != "Unknown"
    }


def test_the_harness_has_the_scores_over_territories(test_data: Path, after: dict[str, Any]) -> None:
    found = after["results"][TASK]
    scores = after["configs"][TASK]["scores"]["concurrence"]["scores"]
    for name in REPORTED:
        assert found[f"concurrence.{name},none"] == pytest.approx(scores[name], abs=1e-12), name
    # the standard error is over territories, each of which has one control answer
    right = list(control_answers(test_data, "noisy_controller").values())
    assert found["concurrence.KB_CS,none"] == pytest.approx(fmean(right))
    assert found["concurrence.KB_CS_stderr,none"] == pytest.approx(stdev(right) / len(right) ** 0.5)
    assert found["concurrence.delta_CS_ratio_stderr,none"] == "N/A"
    assert after["higher_is_better"][TASK]["concurrence.KB_CS"] is True
    assert after["higher_is_better"][TASK]["concurrence.Con_CS"] is None
    table = score_table(after)
    assert "concurrence.Cst_CS_all" in table
    assert "option_read" in table
    # no row has such a score
    assert after["samples"][TASK][0]["concurrence.KB_CS"] is None


def test_a_score_that_is_undefined_has_no_value_in_the_results(test_data: Path) -> None:
    """Only English is asked about: no territory has answers in two languages."""
    queries = real_queries(test_data)
    model = ScriptedLM(replay(test_data, answers_of(test_data, "always_controller")))
    results = run(tasks_folder(), TASK, lm=model, metadata={**lines(test_data), "data.languages": ["en"]})
    assert results["results"][TASK]["concurrence.Cst_CS_all,none"] is None
    assert results["results"][TASK]["concurrence.KB_CS,none"] == pytest.approx(
        fmean(control_answers(test_data, "always_controller").values())
    )
    assert score_table(results)
    assert len(results["samples"][TASK]) == sum(q["query_lang"] == "en" for q in queries)


@pytest.mark.slow
def test_compare_pairs_territories(
    test_data: Path, before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> None:
    a, b = written(before, tmp_path / "a"), written(after, tmp_path / "b")
    found = {d.metric: d for d in compare([a], [b]).differences if d.metric.startswith("concurrence.")}
    first, second = (control_answers(test_data, name) for name in ("always_controller", "noisy_controller"))
    kb = found["concurrence.KB_CS"]
    assert (kb.n, kb.language) == (len(first), None)
    assert kb.difference == pytest.approx(fmean(second.values()) - fmean(first.values()))
    lost = sorted(f"territory {name}" for name in first if second[name] < first[name])
    assert sorted(kb.worse) == lost
    assert kb.low is not None
    assert kb.high is not None
    assert kb.low < (kb.difference or 0.0) < kb.high
    # every score that is a mean over territories differs by what the two results differ
    for name in ("Con_CS", "Non_CS", "delta_CS_difference", "Cst_CS_all", "Cst_CS_unk", "countries_mean"):
        ours = found[f"concurrence.{name}"]
        scores = [run["configs"][TASK]["scores"]["concurrence"]["scores"][name] for run in (before, after)]
        assert ours.first == pytest.approx(scores[0]), name
        assert ours.second == pytest.approx(scores[1]), name
    text = comparison_text(compare([a], [b], metrics=["concurrence.countries_mean"]))
    assert "### concurrence.countries_mean (countries)" in text


@pytest.mark.slow
@pytest.mark.parametrize("baseline", [False, True])
def test_a_gate_takes_scores_over_territories(
    before: dict[str, Any], after: dict[str, Any], tmp_path: Path, baseline: bool
) -> None:
    a, b = written(before, tmp_path / "a"), written(after, tmp_path / "b")
    if baseline:
        write_baseline([a], tmp_path / "baseline.json")
        a = tmp_path / "baseline.json"
    path = tmp_path / "gate.yaml"
    rules: Sequence[str] = ("KB_CS", "Cst_CS_all", "delta_CS_difference")
    path.write_text("rules:\n" + "".join(f"- {{metric: concurrence.{name}, min_n: 20}}\n" for name in rules), "utf-8")
    drop = gate([a], [b], read_rules(path))
    verdicts = {check.metric.rpartition(".")[2]: check.verdict for check in drop.checks}
    assert (verdicts["KB_CS"], verdicts["Cst_CS_all"]) == ("fail", "fail")
    same = gate([a], [written(before, tmp_path / "c")], read_rules(path))
    assert {check.verdict for check in same.checks} == {"no drop shown"}, same


@pytest.mark.slow
def test_a_first_gate_stops_silence_and_a_constant_option(
    test_data: Path, before: dict[str, Any], tmp_path: Path
) -> None:
    """Both have a Cst of 1, as the model before them. The rules of a first gate are on the main metric."""
    a = written(before, tmp_path / "before")
    rules = tmp_path / "gate.yaml"
    rules.write_text(starter_rules([a]), "utf-8")
    assert [rule.metric for rule in read_rules(rules).rules] == ["concurrence.controller_share"]
    for name, reply in (("silent", ""), ("only_a", "A)")):
        results = run(tasks_folder(), TASK, lm=ScriptedLM(lambda _, reply=reply: reply), metadata=lines(test_data))
        assert results["results"][TASK]["concurrence.Cst_CS_all,none"] == 1.0
        (check,) = gate([a], [written(results, tmp_path / name)], read_rules(rules)).checks
        assert (check.verdict, check.n) == ("fail", 161), name
        # one controller is no claimant
        assert check.baseline == pytest.approx(160 / 161)
        assert check.candidate == pytest.approx(0.0 if name == "silent" else 62 / 161)


def test_a_floor_counts_the_rows_that_its_metric_is_of(before: dict[str, Any], tmp_path: Path) -> None:
    """A question has no score over territories, and a territory none of a reply: neither is an unscored row."""
    a = written(before, tmp_path / "a")
    path = tmp_path / "gate.yaml"
    metrics = ("concurrence.KB_CS", "option_read")
    path.write_text("rules:\n" + "".join(f"- {{metric: {m}, min_score: 0.5, min_n: 20}}\n" for m in metrics), "utf-8")
    checks = gate([a], [a], read_rules(path)).checks
    assert [(check.verdict, check.reason) for check in checks] == [("holds", None)] * 2
    assert checks[1].n == len(before["samples"][TASK])


def test_territories_that_one_run_lacks_are_a_share_of_the_territories(before: dict[str, Any], tmp_path: Path) -> None:
    """The candidate does not know who controls five territories: below 1% of the rows, but 3% of those with a score."""
    a, b = written(before, tmp_path / "a"), written(before, tmp_path / "b")
    (file,) = b.glob("samples_*.jsonl")
    kept = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    answers = [line["rows"]["concurrence"] for line in kept]
    changed = [answer["territory"] for answer in answers if answer["control_query"]][:5]
    for answer in answers:
        if answer["territory"] in changed:
            answer["controller"] = "Unknown"
    file.write_text("".join(json.dumps(line) + "\n" for line in kept), "utf-8")
    path = tmp_path / "gate.yaml"
    path.write_text("rules: [{metric: concurrence.KB_CS, min_n: 20, max_unpaired: 0.02}]\n", "utf-8")
    (check,) = gate([a], [b], read_rules(path)).checks
    assert check.verdict == "cannot tell"
    assert "are scored in one run only" in str(check.reason)


@pytest.mark.parametrize("part", ["results", "scores"])
def test_a_score_over_territories_that_was_set_by_hand_is_noticed(
    after: dict[str, Any], tmp_path: Path, part: str
) -> None:
    folder = written(after, tmp_path / "out")
    assert unsupported([folder]) == []
    (path,) = folder.glob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    if part == "results":
        content["results"][TASK]["concurrence.KB_CS,none"] = 0.99
    else:
        content["configs"][TASK]["scores"]["concurrence"]["intervals"]["KB_CS"]["value"] = 0.99
    path.write_text(json.dumps(content), "utf-8")
    (line,) = unsupported([folder])
    assert "concurrence.KB_CS is 0.99" in line


@pytest.mark.parametrize("share", ["read", "refused", "unread"])
def test_one_figure_has_one_interval(share: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Rows of a territory are resampled together, whether the share is a metric of rows or of the whole."""
    for results in (before, after):
        scores = results["configs"][TASK]["scores"]
        of_rows = scores["metrics"][f"option_{share}"]
        whole = scores["concurrence"]["rates"][share]
        assert {key: of_rows.get(key) for key in whole} == whole


# Mode -> of 52 territories, in how many the controller's language names the controller, and in how many the other
# claimant's does: by the relevant ones of the ten documents shown, and by all that are stored.
NAMED = {"qlang": ((50, 44), (51, 50)), "rel_langs": ((52, 47), (39, 45))}


def stored_beyond_ten(folder: Path, questions: Sequence[dict[str, Any]]) -> Path:
    """Write twelve hits to a question and mode: one of the first ten is relevant, and both of the last two.

    The first names the answer by the ten, and the last two, which outvote it, the answer by all. ``questions`` are
    those of a territory one after the other, that in the controller's language first.
    """
    data = folder / "data"
    texts: dict[str, dict[str, str]] = {}
    hits: dict[tuple[str, str], list[list[Any]]] = {}
    names, labels = [["query_id", "query_text", "territory", "language"]], [
        ["query_id", "doc_id", "relevant_fewshot", "territory_fewshot"]
    ]  # fmt: skip
    for number, q in enumerate(questions):
        code, holder = q["query_lang"], q["claimants"].index(q["controller"])
        names.append([f"Q{number}", q["query"], q["territory"], code])
        for mode, counts in NAMED.items():
            by_ten, by_all = (holder if number // 2 < n[number % 2] else 1 - holder for n in counts)
            for rank in range(12):
                named = by_ten if rank == 0 else by_all if rank > 9 else None
                document = f"{number}{mode.replace('_', '')}_p{rank}"
                text = f"Map {rank} shows rain." if named is None else f"Map {rank}: [{q['claimants_native'][named]}]."
                texts.setdefault(code, {})[document] = text
                view = [] if named is None else [f"A) {q['claimants'][named]}"]
                labels.append([f"Q{number}", document, *(["Yes", *view] if view else ["No", ""])])
                hits.setdefault((code, mode), []).append([f"Q{number}", rank, 1 - rank / 20, document, code])
    files = {(code, "openai", mode, f"{code}_query_hits.tsv"): rows for (code, mode), rows in hits.items()}
    columns = ["query_id", "rank", "score", "doc_id", "doc_lang"]
    tables = {("queries.tsv",): names, ("llm_annotations.tsv",): labels}
    for place, rows in {**tables, **{place: [columns, *found] for place, found in files.items()}}.items():
        file = data.joinpath(*place)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), "utf-8")
    (data / "all_docs.json").write_text(json.dumps(texts, ensure_ascii=False), "utf-8")
    return folder


def most_named(prompt: str) -> str:
    """Return the option that most documents name."""
    documents, _, listed = prompt.rpartition("Options:\n")
    options = listed.partition("\n\n")[0].strip().split("\n")
    return max(options, key=lambda option: documents.count(f"[{option.partition(') ')[2]}]"))


def test_figure_6_filters_the_ten_documents_that_its_condition_shows(test_data: Path, tmp_path: Path) -> None:
    """Of the ten: (50 - 44) / 44 = 13.6% and (52 - 47) / 47 = 10.6%; of all twelve hits 1 / 50 = 2.0% and
    (39 - 45) / 45 = -13.3%.

    Each of the 52 territories has two claimants with one language each, one of whom holds it.
    """
    of_territory: dict[str, list[dict[str, Any]]] = {}
    for q in real_queries(test_data):
        two = len(q["claimants"]) == len({*q["claimant_langs"]}) == 2 and "en" not in q["claimant_langs"]
        if two and q["controller"] in q["claimants"] and not q["control_query"]:
            of_territory.setdefault(q["territory"], []).append(q)
    pairs = [pair for pair in of_territory.values() if len(pair) == 2][:52]
    assert len(pairs) == 52
    ordered = [q for pair in pairs for q in sorted(pair, key=lambda q: q["query_lang"] != q["controller_lang"])]
    home = stored_beyond_ten(tmp_path / "hub", ordered)
    found: dict[int, dict[str, str]] = {}
    for k in (10, 12):
        names = [f"bordirlines_{mode}_direct_openai" for mode in NAMED]
        metadata = {**lines(test_data), "data.path": str(home), "data.documents": "relevant", "retrieval.k": k}
        results = run(tasks_folder(), names, lm=ScriptedLM(most_named), metadata=metadata)
        folder = written(results, tmp_path / f"of_{k}")
        (figure,) = (table for table in layout_tables("bordirlines", [folder]) if table.id == "Figure 6")
        column = list(figure.columns).index("ΔCS")
        found[k] = {
            row.labels[0]: f"{row.cells[column].value:.1f} (n={row.cells[column].n})"
            for row in figure.rows
            if row.labels[1] not in ("GPT-4o", "not run")
        }
    assert found == {
        10: {"qlang, relevant": "13.6 (n=52)", "rel_langs, relevant": "10.6 (n=52)"},
        12: {"qlang, relevant": "2.0 (n=52)", "rel_langs, relevant": "-13.3 (n=52)"},
    }
