"""Findings on planted worlds: what is planted is said, and what is not there is not."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.config import deep_merge
from mrag_eval.report import Finding, finding_lines, findings_of, write_report
from mrag_eval.report.findings._tests import Questions, association_p, confirmed, flip_p, peel, share_level, tail_p
from tests.report.runs import CONFIG, row, write_full_run
from tests.worlds.measured import with_all_records

LANGUAGES = ("ar", "de", "en", "hi", "th")


def _rows(shares: Mapping[str, float], n: int = 60, *, seed: int = 0, same: bool = False) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        row(i, lang, f"q{i}" if same else None, match=float(rng.random() < share))
        for lang, share in shares.items()
        for i in range(n)
    ]


def write_scored(
    folder: Path, tasks: Mapping[str, Sequence[Mapping[str, Any]]], model: str = "one", **config: Any
) -> Path:
    """Write a run whose scores are the means of its rows."""
    folder.mkdir(parents=True)
    date = "2026-01-01T00-00-00.000000"
    configs = {}
    for task, rows in tasks.items():
        lines = [json.dumps({"doc": {"id": r["row"]}, "rows": r}) + "\n" for r in rows]
        (folder / f"samples_{task}_{date}.jsonl").write_text("".join(lines), "utf-8")
        values = [r["values"]["match"] for r in rows if "match" in r["values"]]
        score = {"value": float(np.mean(values)), "n": len(values), "method": "Wilson"}
        scores = {"rows": len(rows), "metrics": {"match": score}, "query_langs": {"en": len(rows)}}
        configs[task] = deep_merge(CONFIG, deep_merge({"scores": scores}, config))
    content = {"configs": configs, "model_name": model, "date": 1_700_000_000 + len(model)}
    (folder / f"results_{date}.json").write_text(json.dumps(with_all_records(content)), "utf-8")
    return folder


def _found(*runs: Path) -> dict[str, Finding]:
    found = findings_of(runs)
    assert len(found) <= 5
    return {finding.kind: finding for finding in found}


def test_a_language_that_fails_is_named_and_no_other(tmp_path: Path) -> None:
    shares = dict.fromkeys(LANGUAGES, 0.7) | {"th": 0.2}
    found = _found(write_scored(tmp_path / "a", {"qa": _rows(shares)}))
    assert found["whom"].subjects == ("th",)
    assert found["whom"].sentence.startswith("Questions in Thai score worse than the others: ")
    assert found["whom"].rows["language"] == "th"
    same = _found(write_scored(tmp_path / "b", {"qa": _rows(shares, same=True)}))
    assert same["whom"].sentence.startswith("Thai falls behind the other languages: ")


def test_nothing_is_said_where_nothing_is_there(tmp_path: Path) -> None:
    found = _found(write_scored(tmp_path / "a", {"qa": _rows(dict.fromkeys(LANGUAGES, 0.7))}))
    assert [*found] == ["good", "unsaid"]
    assert "a language whose distance from the others is below" in found["unsaid"].sentence


@pytest.mark.parametrize(("share", "template"), [(0.3, "best"), (0.68, "tied")])
def test_two_systems(share: float, template: str, tmp_path: Path) -> None:
    one = write_scored(tmp_path / "one", {"qa": _rows(dict.fromkeys(LANGUAGES, 0.7))}, model="one")
    two = write_scored(tmp_path / "two", {"qa": _rows(dict.fromkeys(LANGUAGES, share), seed=1)}, model="two")
    found = _found(one, two)
    assert found["good"].template == template
    assert {*found["good"].subjects} == {"one", "two"}
    assert found["good"].sentence.startswith("one is best: ") == (template == "best")


def test_a_language_that_fails_in_every_benchmark_is_named_over_all_of_them(tmp_path: Path) -> None:
    # 20 questions a language say little in one task, and enough over six
    shares = dict.fromkeys(LANGUAGES, 0.7) | {"hi": 0.4}
    for i in range(6):
        own = {"data": {"benchmark": f"b{i}", "path": "/here"}}
        write_scored(tmp_path / str(i), {f"qa{i}": _rows(shares, 20, seed=i)}, **own)
    found = _found(tmp_path)
    assert "Questions in Hindi score worse than the others over 6 benchmarks" in found["whom"].sentence


def test_every_output_opens_with_the_findings(tmp_path: Path) -> None:
    run = write_scored(tmp_path / "a", {"qa": _rows(dict.fromkeys(LANGUAGES, 0.7) | {"th": 0.2})})
    sentence = _found(run)["whom"].sentence

    def report(*flags: str) -> str:
        done = CliRunner().invoke(app, ["report", str(run), *flags], obj=Session(), env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        return done.stdout

    assert sentence in report().split("### Scores")[0]
    assert json.loads(report("--format", "json"))[0]["findings"][1]["sentence"] == sentence
    report("-o", str(tmp_path / "r.md"))
    assert f"- {sentence}" in (tmp_path / "r.md").read_text("utf-8").split("### Scores")[0]
    report("-o", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text("utf-8")
    assert sentence.replace("<", "&lt;") in page.split("<main")[0]
    assert "scores are missing" not in page


@pytest.mark.parametrize(("share", "template"), [(0.3, "changed"), (0.7, "unchanged")])
def test_a_system_that_was_run_again_is_compared_with_its_run_before(
    share: float, template: str, tmp_path: Path
) -> None:
    even = dict.fromkeys(LANGUAGES, 0.7)
    write_scored(tmp_path / "a", {"qa": _rows(even)})
    write_scored(tmp_path / "b", {"qa": _rows(dict.fromkeys(LANGUAGES, share), seed=1)}, retrieval={"k": 7})
    first, *rest = findings_of([tmp_path])
    assert (first.kind, first.template) == ("changed", template)
    assert first.sentence.startswith("one is worse than in its run before: ") == (share == 0.3)
    assert first.sentence.endswith("what differs: retrieval.k (5 → 7).")
    assert [one.kind for one in rest if one.kind != "whom"] == ["good", "unsaid"]
    write_report([tmp_path], tmp_path / "page.html")
    table = (tmp_path / "page.html").read_text("utf-8").partition(' id="changed"')[2].partition("</table>")[0]
    shown = re.findall(r"<t[hd]\b[^>]*>([^<]*)", table)
    assert shown[6] == "what differs"
    assert shown[-7:-5] == ["one", "match"]
    assert shown[-1] == "retrieval.k (5 → 7)"


def test_of_systems_that_score_alike_on_every_question_no_least_difference_is_named(tmp_path: Path) -> None:
    rows = {"qa": _rows(dict.fromkeys(LANGUAGES, 0.7))}
    write_scored(tmp_path / "a", rows)
    write_scored(tmp_path / "b", rows, retrieval={"k": 7})
    first = findings_of([tmp_path])[0]
    score = f"{first.numbers['score']}"
    assert first.sentence == (
        f"one scores as in its run before on every question: {score} by match; what differs: retrieval.k (5 → 7)."
    )
    two = _found(write_scored(tmp_path / "one", rows), write_scored(tmp_path / "two", rows, model="two"))
    assert two["good"].sentence == f"one and two score alike on every question: {score} by match."


def test_a_change_is_claimed_no_more_often_than_the_level(tmp_path: Path) -> None:
    # 40 pages at 2.5 %, as another kind tests too: one expected, four or fewer with 99.6 %
    said = 0
    for seed in range(40):
        folder = tmp_path / str(seed)
        for run in (0, 1):
            rows = _rows(dict.fromkeys(LANGUAGES, 0.7), 20, seed=2 * seed + run)
            write_scored(folder / str(run), {"qa": rows}, retrieval={"k": 5 + run})
        said += any(one.template == "changed" for one in findings_of([folder]))
    assert said <= 4


def test_the_stage_at_which_most_answers_are_lost_is_said(tmp_path: Path) -> None:
    found = {one.kind: one for one in findings_of([write_full_run(tmp_path)])}
    # two tasks of 8 answers not retrieved, 6 not used and 2 in another language
    assert found["lost"].sentence == (
        "Of 32 wrong answers that can be told, 16 were given without a relevant passage in the search's list; 12 "
        "did not use the relevant passage that was shown."
    )
    assert found["lost"].subjects == ("not retrieved",)
    # whether they are in reach of a search in their own language is known by the oracle
    assert found["lost"].next.endswith("""--metadata '{"retrieval": {"mode": "gold_lang"}}' --output_path OUT""")


def _staged(shares: Mapping[str, float], n: int = 40, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return rows of which a share is wrong, as its relevant passage was not retrieved."""
    return [
        one | {"retrieved": int(one["values"]["match"]), "kept": int(one["values"]["match"])}
        for one in _rows({code: 1 - share for code, share in shares.items()}, n, seed=seed)
    ]


def _write_staged(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    stages = Counter("correct" if one["retrieved"] else "not retrieved" for one in rows)
    blank = {"value": None, "reason": "no such row"}
    names = ("retrieved", "kept_if_retrieved", "correct_if_kept", "product", "end_to_end")
    whole = dict.fromkeys((*names, "correct_if_not_retrieved", "correct_if_retrieved"), blank)
    table = {"overall": {**whole, "stages": dict(stages), "unscored": 0}, "correct_by": "match"}
    return write_scored(folder, {"qa": rows}, scores={"attribution": table})


def test_the_language_in_which_most_is_lost_is_named_where_it_stands_out(tmp_path: Path) -> None:
    shares = dict.fromkeys(LANGUAGES, 0.2) | {"hi": 0.8}
    (lost,) = (one for one in findings_of([_write_staged(tmp_path / "a", _staged(shares))]) if one.kind == "lost")
    assert lost.subjects == ("not retrieved", "hi")
    assert "; they stand out in Hindi: " in lost.sentence
    assert lost.numbers["share"].n == 40
    # a language that loses less does not stand out
    shares = dict.fromkeys(LANGUAGES, 0.8) | {"hi": 0.2}
    (lost,) = (one for one in findings_of([_write_staged(tmp_path / "b", _staged(shares))]) if one.kind == "lost")
    assert "stand out" not in lost.sentence


def test_no_language_stands_out_where_answers_are_lost_more_often_than_the_level(tmp_path: Path) -> None:
    # 40 pages at 1.7 %, as two other kinds test too: one expected, four or fewer with 99.9 %
    pages = (
        findings_of([_write_staged(tmp_path / str(seed), _staged(dict.fromkeys(LANGUAGES, 0.4), 20, seed=seed))])
        for seed in range(40)
    )
    assert sum("stand out" in one.sentence for page in pages for one in page) <= 4


def _logged(lost: Mapping[bool, float], *, seed: int = 0, **values: float) -> list[dict[str, Any]]:
    """Return rows whose contexts are in another language or not, and the share of each that is wrong."""
    rng = np.random.default_rng(seed)
    out = []
    for code in ("ar", "de"):
        for i in range(80):
            apart = bool(rng.random() < (0.3 if code == "ar" else 0.7))
            one = row(i, code, match=float(rng.random() >= lost[apart]), **values)
            out.append(one | {"cell": {"query_lang": code, "context_pair": f"{code}->{'en' if apart else code}"}})
    return out


def test_what_the_wrong_answers_of_a_log_go_with_is_said_as_an_association(tmp_path: Path) -> None:
    rows = _logged({True: 0.8, False: 0.2})
    found = _found(write_scored(tmp_path / "a", {"log": rows}))["lost"]
    apart = [one["cell"]["context_pair"].endswith("->en") for one in rows]
    wrong = [one["values"]["match"] == 0.0 for one in rows]
    n, m = (sum(a for a, w in zip(apart, wrong, strict=True) if w is side) for side in (True, False))
    assert found.sentence.startswith(
        f"Of {sum(wrong)} wrong answers {n} had contexts in another language, of {len(rows) - sum(wrong)} right ones "
        f"{m} (an association within languages, p "
    )
    # a language whose questions are harder, and meet other contexts more often, is no association within languages
    assert "lost" not in _found(write_scored(tmp_path / "b", {"log": _logged({True: 0.5, False: 0.5})}))


def test_replies_in_another_language_are_an_association_too(tmp_path: Path) -> None:
    rows = [
        one | {"values": {**one["values"], "correct_language": one["values"]["match"] if i % 3 else 1.0}}
        for i, one in enumerate(_logged({True: 0.5, False: 0.5}))
    ]
    assert (
        "were in another language than the question"
        in _found(write_scored(tmp_path / "a", {"log": rows}))["lost"].sentence
    )


def test_an_association_is_that_within_strata() -> None:
    # 2 of 4 wrong and both apart in one stratum: 1 of 6 draws has both, as many have neither: p = 2/6
    one = [(True, True), (True, True), (False, False), (False, False)]
    assert association_p([one]) == pytest.approx(1 / 3, abs=0.02)
    # strata that differ in both marks, and in neither within: nothing can differ
    assert association_p([[(True, True)] * 30, [(False, False)] * 30]) == 1.0
    rng = np.random.default_rng(0)
    pairs = [
        [[(bool(rng.random() < 0.5), bool(rng.random() < 0.5)) for _ in range(40)] for _ in range(3)]
        for _ in range(100)
    ]
    # 5 of 100 expected, 11 or fewer with 99.5 %
    assert sum(association_p(strata) <= 0.05 for strata in pairs) <= 11


@pytest.mark.parametrize("width", range(20, 100, 7))
def test_a_p_value_stays_on_its_line(width: int) -> None:
    words = {"parts": "a word; p < .0001, another; p .011, and one more; p < .05"}
    lines = finding_lines([Finding("unsaid", "unsaid", words)], width)
    assert " ".join(lines) == f"Not shown here: {words['parts']}."
    assert not [line for line in lines if line.endswith((" p", "p <"))]


def test_findings_do_not_depend_on_the_order_of_rows_or_on_the_call(tmp_path: Path) -> None:
    rows = _rows(dict.fromkeys(LANGUAGES, 0.7) | {"th": 0.35})
    one = write_scored(tmp_path / "a", {"qa": rows})
    two = write_scored(tmp_path / "b", {"qa": rows[::-1]})
    # the next command names the folder
    first, second = ([{**f.to_dict(), "next": ""} for f in findings_of([run])] for run in (one, two))
    assert first == second


def test_rows_without_samples_are_scored_all_the_same(tmp_path: Path) -> None:
    run = write_scored(tmp_path / "a", {"qa": _rows({"en": 0.7})})
    for path in run.glob("samples_*"):
        path.unlink()
    assert _found(run)["good"].sentence.startswith("one scores ")


def test_peeling_names_the_better_ones_and_not_the_rest_as_worse() -> None:
    # four better languages of ten pull the mean of the others up: the six are not behind
    said: list[bool] = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shares = {f"l{i}": 0.8 if i < 4 else 0.5 for i in range(10)}
        rows = [Questions.of((c, f"{c}{i}", float(rng.random() < p)) for c, p in shares.items() for i in range(100))]
        said.append(any(step.side < 0 for step in confirmed(rows, peel(rows), 0.05)))
    assert sum(said) <= 4


def test_nothing_stands_out_among_equal_languages_more_often_than_the_level() -> None:
    # 200 worlds at 5 %: 10 expected, 17 or fewer with 97.5 %
    for same in (False, True):
        hits = 0
        for seed in range(200):
            rng = np.random.default_rng(seed)
            easy = rng.random(40)
            rows = [
                (f"l{c}", f"q{i}" if same else f"{c} {i}", float(rng.random() < (easy[i] if same else 0.6)))
                for c in range(6)
                for i in range(40)
            ]
            hits += bool(peel([Questions.of(rows)]))
        assert hits <= 17, same


def test_the_fitted_tail_is_that_of_a_normal() -> None:
    # two-sided normal tails, within a factor of three down to one in a hundred thousand
    draws = np.abs(np.random.default_rng(0).normal(size=10_000))
    for z, p in ((2.0, 0.0455), (3.0, 0.0027), (4.0, 6.3e-5), (4.42, 1e-5)):
        assert p / 3 < tail_p(z, draws) < 4 * p


def test_sign_flips_are_exact_for_few_units() -> None:
    # six of six up: 2 of 2^6
    (p,) = flip_p(np.ones((6, 1)))
    assert p == pytest.approx(2 / 64, abs=0.005)
    assert flip_p(np.zeros((5, 2))) == [1.0, 1.0]


def test_a_kind_that_shows_everything_passes_its_share_on() -> None:
    never, always = (lambda level: False), (lambda level: True)
    assert share_level({"a": never, "b": never}) == {"a": 0.025, "b": 0.025}
    assert share_level({"a": always, "b": never}) == {"a": 0.025, "b": 0.05}
    assert share_level({"a": always}) == {"a": 0.05}


def test_every_finding_has_a_command_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In runs of their own folders and of one; a page of text ends with one such line."""
    monkeypatch.chdir(tmp_path)
    good, bad = (dict.fromkeys(LANGUAGES, share) for share in (0.7, 0.3))
    write_scored(Path("again/a"), {"qa": _rows(good)})
    write_scored(Path("again/b"), {"qa": _rows({**bad, "de": 0.9}, seed=1)}, retrieval={"k": 7})
    write_scored(Path("two systems/a"), {"qa": _rows(good)})
    write_scored(Path("two systems/b"), {"qa": _rows(bad, seed=1)}, model="two")
    seen = set()
    for folder in map(Path, ("again", "two systems", "again/a")):
        for one in findings_of([folder]):
            seen.add((one.kind, one.next.split()[1]))
            assert one.to_dict()["next"] == one.next
            command = shlex.split(one.next)[1:]
            if command[0] == "verify":  # these rows are not whole ones
                assert all(Path(name).is_dir() for name in command[1:]), one.next
                continue
            done = CliRunner().invoke(app, command, obj=Session())
            assert done.exit_code == 0, (one.next, done.output)
        text = CliRunner().invoke(app, ["report", str(folder)], obj=Session()).stdout
        assert [line.split()[2] for line in text.splitlines() if line.startswith("next")] == [
            "report" if folder.name == "a" else "compare"
        ]
    assert {("changed", "compare"), ("good", "compare"), ("good", "report"), ("unsaid", "verify")} <= seen
