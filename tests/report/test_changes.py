"""Rows that got worse or better: their causes, the sentence, the Markdown, and the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from mrag_eval.platform import ConfigError
from mrag_eval.report import (
    Changes,
    GateRules,
    check_page_url,
    compare,
    comparison_changes,
    gate,
    gate_changes,
    gate_markdown,
    write_baseline,
    write_changes,
)
from mrag_eval.report.comparison._changed_gather import subject_of
from mrag_eval.report.comparison._changed_text import MOST_CHARS, changed_passages
from mrag_eval.report.comparison._changed_where import cause_tables, most_telling, where_worse
from mrag_eval.report.comparison._shown_text import cut_pair, in_markdown, table_within
from mrag_eval.scoring import METRICS, TASK_MEASURES, needs_of
from tests.report.runs import row, write_run
from tests.worlds.changed import METRIC, PLAN, write_changed

RULES = GateRules.model_validate(
    {"min_n": 20, "rules": [{"metric": METRIC, "per_pair": {"max_drop": 0.05, "min_n": 20}}]}
)
URL = "https://example.org/gate.html"


def changes_of(before: Path, after: Path, rules: GateRules = RULES) -> Changes:
    return gate_changes(gate([before], [after], rules), [before], [after], rules)


def of_metric(metric: str, **rule: Any) -> GateRules:
    return GateRules.model_validate({"min_n": 2, "rules": [{"metric": metric, **rule}]})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_changed(tmp_path_factory.mktemp("changed"))


@pytest.fixture(scope="module")
def changes(runs: tuple[Path, Path]) -> Changes:
    return changes_of(*runs)


# Causes and places


def test_each_row_that_got_worse_has_the_cause_that_was_planted(changes: Changes) -> None:
    found = {cell.place: Counter(row.cause for row in cell.worse) for cell in changes.cells}
    planned = {place: {cause: n for cause, n in fates.items() if cause != "won"} for place, fates in PLAN.items()}
    assert found == planned
    assert {cell.place: len(cell.better) for cell in changes.cells if cell.better} == {"ar->en": 2, "hi->hi": 3}
    assert all(row.cause is None for row in changes.better)


def test_every_metric_has_a_subject() -> None:
    """A metric that needs no answer is one of passages; a name that the package does not know is one of answers."""
    for metric in (*METRICS, *TASK_MEASURES, "hit@5", "rerank_mrr@10", "ndcg@20_score_merged", "recall@5_proxy"):
        expected = "answer" if "answer" in needs_of(metric) else "passages"
        expected = "language" if metric in ("correct_language", "language_check") else expected
        assert subject_of(metric) == expected, metric
    assert subject_of("a_metric_of_one_s_own") == "answer"


def test_the_sentence_names_the_cell_with_the_largest_excess(changes: Changes) -> None:
    # 12 lost and 2 won of 40; chance: P(12 or more of 14) = 106 / 2^14, times three cells .019
    assert where_worse(changes) == (
        "ar → en: 12 of 40 answers lost, 10 of them after the relevant passage was no longer shown "
        "(2 won; elsewhere 5 of 80)."
    )


def test_the_causes_of_each_language_add_up_to_its_change(changes: Changes) -> None:
    (table,) = cause_tables(changes)
    assert table.rows == (
        (
            "all languages",
            "120",
            "17 (-14.2)",
            "10 (-8.3)",
            "3 (-2.5)",
            "1 (-0.8)",
            "2 (-1.7)",
            "1 (-0.8)",
            "5 (+4.2)",
            "-10.0",
        ),
        ("ar → en", "40", "12 (-30.0)", "10 (-25.0)", "1 (-2.5)", "1 (-2.5)", "0", "0", "2 (+5.0)", "-25.0"),
        ("zh → en", "40", "2 (-5.0)", "0", "0", "0", "2 (-5.0)", "0", "0", "-5.0"),
        ("hi → hi", "40", "3 (-7.5)", "0", "2 (-5.0)", "0", "0", "1 (-2.5)", "3 (+7.5)", "+0.0"),
    )
    for line in table.rows:
        worse, *causes = (int(value.partition(" ")[0]) for value in line[2:8])
        assert sum(causes) == worse


def test_the_telling_rows_are_spread_and_have_a_known_cause(changes: Changes) -> None:
    rows = most_telling(changes, 10)
    # Sainte-Laguë over 12, 3 and 2 losses: 12, 4, 3, 2.4, 2, 1.71, 1.33, 1.09, 1, .92 are the ten largest quotients
    assert Counter(row.place for row in rows) == {"ar->en": 7, "hi->hi": 2, "zh->en": 1}
    assert all(row.cause != "unknown" for row in rows)
    assert [row.after.id for row in rows if row.place == "hi->hi"] == ["hi/002", "hi/003"]
    assert len(most_telling(changes)) == 17
    assert most_telling(changes, 10, worse=False) == most_telling(changes, worse=False)


def test_no_row_got_worse(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    assert where_worse(changes_of(runs[0], runs[0])) == "No row got worse; 0 rows got better."
    better = changes_of(*two(tmp_path, [0] * 5, [1] * 5, "acc"), of_metric("acc"))
    assert where_worse(better) == "No row got worse; 5 rows got better."
    assert list(cause_tables(changes_of(runs[0], runs[0]))) == []


def test_losses_that_gains_outweigh_are_not_called_worse(tmp_path: Path) -> None:
    found = changes_of(*two(tmp_path, [1, 0, 0, 1], [0, 1, 1, 1], "acc"), of_metric("acc"))
    assert where_worse(found) == "No language got worse on balance: 1 loss, 2 gains."


def test_what_chance_could_do_is_said(tmp_path: Path) -> None:
    found = changes_of(*two(tmp_path, [1, 1, 0, 1], [0, 0, 1, 1], "acc"), of_metric("acc"))
    # P(2 or more of 3) = 4/8
    assert where_worse(found) == (
        "en: 2 of 4 answers lost, the cause unknown (1 won; chance alone could do this, p .500)."
    )
    many = changes_of(*two(tmp_path / "many", [1] * 9, [0] * 6 + [1] * 3, "acc"), of_metric("acc"))
    assert where_worse(many) == "en: 6 of 9 answers lost, the cause unknown."


def test_chance_is_that_of_the_worst_of_several_cells(tmp_path: Path) -> None:
    """Five lost and none won have 2^-5 in one cell, twice that as the worst of two; in both, six of eight, .145."""
    before = [row(i, "ar", acc=1.0) for i in range(9)] + [row(i, "de", acc=float(i > 1)) for i in range(9)]
    after = [row(i, "ar", acc=float(i > 4)) for i in range(9)] + [row(i, "de", acc=float(i < 8)) for i in range(9)]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    assert where_worse(changes_of(a, b, of_metric("acc"))) == (
        "ar: 5 of 9 answers lost, the cause unknown "
        "(elsewhere 1 of 9; chance alone could do this, p .062 over 2 cells)."
    )


def test_a_loss_spread_over_all_languages_is_not_called_one_of_the_worst(tmp_path: Path) -> None:
    """Each of four languages loses two rows of ten: .25 in one, times four; 2^-8 in all."""
    languages = ("ar", "de", "en", "hi")
    before = [row(i, lang, acc=1.0) for lang in languages for i in range(10)]
    after = [row(i, lang, acc=float(i > 1)) for lang in languages for i in range(10)]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    found = where_worse(changes_of(a, b, of_metric("acc")))
    assert found == "all languages: 8 of 40 answers lost, the cause unknown (most in ar: 2 of 10)."
    with pytest.raises(ConfigError, match="no row has the languages x->y"):
        changes_of(a, b, of_metric("acc", pair="x->y"))


def test_rows_of_a_group_count_once_against_chance(tmp_path: Path) -> None:
    """Six losses in one group are one event, which chance alone brings about every other time."""
    before = [row(i, group="g", acc=1.0) for i in range(6)] + [row(9, group="h", acc=1.0)]
    after = [row(i, group="g", acc=0.0) for i in range(6)] + [row(9, group="h", acc=1.0)]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    found = changes_of(a, b, of_metric("acc"))
    assert where_worse(found).endswith("(chance alone could do this, p .500).")


def test_less_of_a_metric_can_be_better(tmp_path: Path) -> None:
    found = changes_of(*two(tmp_path, [0] * 8, [1] * 6 + [0] * 2, "option_unread"), of_metric("option_unread"))
    assert (len(found.worse), len(found.better)) == (6, 0)
    assert where_worse(found).startswith("en: 6 of 8 rows got worse")
    a, b = tmp_path / "a", tmp_path / "b"
    assert len(comparison_changes(compare([a], [b]), [a], [b]).worse) == 6


def test_a_difference_is_better_the_nearer_it_is_to_zero(tmp_path: Path) -> None:
    name = "concurrence.delta_CS_difference"
    a = write_run(tmp_path / "a", {"qa": [row(i, **{name: x}) for i, x in enumerate((0.1, -0.5, 0.2, 0.3))]})
    b = write_run(tmp_path / "b", {"qa": [row(i, **{name: x}) for i, x in enumerate((-0.5, 0.1, -0.2, 0.6))]})
    found = changes_of(a, b, of_metric(name))
    assert [row.after.id for row in found.worse] == ["r0", "r3"]
    assert [row.after.id for row in found.better] == ["r1"]
    # .4 and .3 farther from 0, of a range from -1 to 1
    assert [row.size for row in found.worse] == pytest.approx([0.2, 0.15])


def test_a_pinned_baseline_and_unscored_rows_are_not_looked_at(tmp_path: Path) -> None:
    """The candidate is as the baseline, but for three rows without a score; the pinned run was better."""
    older = write_run(tmp_path / "older", {"qa": [row(i, acc=1.0) for i in range(9)]})
    a = write_run(tmp_path / "a", {"qa": [row(i, acc=0.0) for i in range(9)]})
    b = write_run(tmp_path / "b", {"qa": [row(i, **({} if i < 3 else {"acc": 0.0})) for i in range(9)]})
    rules = of_metric("acc", max_unscored=0.01)
    result = gate([a], [b], rules, pinned=[older])
    assert any(check.against == "pinned" for check in result.checks)
    assert any(check.unscored for check in result.checks)
    found = gate_changes(result, [a], [b], rules)
    assert (found.worse, found.better) == ([], [])
    assert [(cell.n, cell.once) for cell in found.cells] == [(6, 3)]


@pytest.mark.parametrize("lower", [True, False])
def test_a_metric_without_a_side_has_that_of_its_rule(lower: bool, tmp_path: Path) -> None:
    a, b = two(tmp_path, [0] * 8, [1] * 6 + [0] * 2, "answered_in_english")
    found = changes_of(a, b, of_metric("answered_in_english", lower_is_better=lower))
    assert (len(found.worse), len(found.better)) == ((6, 0) if lower else (0, 6))


def test_a_failing_check_is_explained_before_a_larger_loss_elsewhere(tmp_path: Path) -> None:
    """Task ``one`` loses 9 of 10 under a floor that allows it; task ``two`` loses 8 of 10 and fails."""
    before = {name: [row(i, acc=1.0) for i in range(10)] for name in ("one", "two")}
    after = {
        "one": [row(i, acc=float(i > 8)) for i in range(10)],
        "two": [row(i, acc=float(i > 7)) for i in range(10)],
    }
    a, b = write_run(tmp_path / "a", before), write_run(tmp_path / "b", after)
    loose, strict = (
        {"metric": "acc", "task": name, **more} for name, more in (("one", {"max_drop": 0.95}), ("two", {}))
    )
    found = changes_of(a, b, GateRules.model_validate({"min_n": 2, "rules": [loose, strict]}))
    assert where_worse(found).startswith("en, two: 8 of 10 answers lost")
    assert most_telling(found, 1)[0].task == "two"


def test_only_the_rows_of_a_rule_are_looked_at(runs: tuple[Path, Path]) -> None:
    rules = GateRules.model_validate({"min_n": 2, "rules": [{"metric": METRIC, "pair": "*->en"}]})
    assert {cell.place for cell in changes_of(*runs, rules).cells} == {"ar->en", "zh->en"}
    floor = GateRules.model_validate({"min_n": 2, "rules": [{"metric": METRIC, "min_score": 0.1}]})
    assert where_worse(changes_of(*runs, floor)) == "No row was compared."


def test_scores_in_one_run_only_are_counted_apart(tmp_path: Path) -> None:
    before = [row(i, acc=1.0, match=1.0) for i in range(4)]
    after = [row(0, match=1.0), *(row(i, acc=0.0, match=1.0) for i in range(1, 4))]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    (cell,) = changes_of(a, b, of_metric("acc", max_unpaired=0.5)).cells
    assert (cell.n, cell.once, len(cell.worse)) == (3, 1, 3)


def two(folder: Path, before: list[int], after: list[int], metric: str) -> tuple[Path, Path]:
    a = write_run(folder / "a", {"qa": [row(i, **{metric: float(x)}) for i, x in enumerate(before)]})
    return a, write_run(folder / "b", {"qa": [row(i, **{metric: float(x)}) for i, x in enumerate(after)]})


def test_passages_are_sorted_by_what_became_of_them(changes: Changes) -> None:
    row = next(row for row in changes.worse if row.after.id == "ar/001")
    found = changed_passages(row)
    assert found is not None
    named = {what: [(p.id, p.relevant) for p in passages] for what, passages in found.items()}
    assert named == {
        "no longer shown": [("en-relevant-501", True)],
        "newly shown": [("ar-other-501", False)],
        "still shown": [("ar-other-1", False)],
    }


# Baselines


def test_a_baseline_with_answers_gives_the_same_view(runs: tuple[Path, Path], changes: Changes, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    write_baseline([runs[0]], file, answers=True)
    found = changes_of(file, runs[1])
    assert where_worse(found) == where_worse(changes)
    assert [(r.after.id, r.cause) for r in found.worse] == [(r.after.id, r.cause) for r in changes.worse]
    assert list(cause_tables(found)) == list(cause_tables(changes))
    for kept, full in zip(found.worse, changes.worse, strict=True):
        old, own = kept.texts[0], full.texts[0]
        assert old is not None
        assert own is not None
        assert (old.answer, old.votes, old.shown) == (own.answer, own.votes, own.shown)
        assert [(p.id, p.relevant) for p in old.passages] == [(p.id, p.relevant) for p in own.passages]
    # neither questions nor passages go into the file
    text = file.read_text("utf-8")
    assert "Varga Light" not in text
    assert "1907" not in text


def test_a_plain_baseline_has_no_answers_and_says_so(runs: tuple[Path, Path], tmp_path: Path) -> None:
    plain, kept = tmp_path / "plain.json", tmp_path / "kept.json"
    write_baseline([runs[0]], plain)
    write_baseline([runs[0]], kept, answers=True)
    content = json.loads(kept.read_bytes())
    answers = content["tasks"]["qa"].pop("answers")
    assert len(answers) == 120
    # the rest of the file is the plain one
    assert content == json.loads(plain.read_bytes())
    found = changes_of(plain, runs[1])
    assert found.answers == (False, True)
    assert {row.cause for row in found.worse} == {"unknown"}
    result = gate([plain], [runs[1]], RULES)
    text = gate_markdown(result, found)
    assert "The baseline keeps no answers" in text
    assert "<i>not kept</i>" in text
    # question and new answer come from the candidate
    assert "في أي مدينة تقع المنارة رقم 1 " in text


def test_a_plain_baseline_tells_causes_that_need_no_answers(tmp_path: Path) -> None:
    """``match`` is no verdict of a judge: a passage shown before, by ``shown@k``, explains its loss."""
    before = [row(i, **{"match": 1.0, "shown@k": 1.0}) for i in range(6)]
    after = [row(i, **{"match": 0.0, "shown@k": float(i > 3)}) for i in range(6)]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    file = tmp_path / "baseline.json"
    write_baseline([a], file)
    # a run with samples has answers, empty here and so the same: leave them out as well
    write_baseline([b], tmp_path / "candidate.json")
    found = changes_of(file, tmp_path / "candidate.json", of_metric("match"))
    assert Counter(row.cause for row in found.worse) == {"retrieval": 4, "reading": 2}


def test_a_damaged_answer_is_named(runs: tuple[Path, Path], tmp_path: Path) -> None:
    from mrag_eval.platform import DataError

    file = tmp_path / "baseline.json"
    write_baseline([runs[0]], file, answers=True)
    content = json.loads(file.read_bytes())
    content["tasks"]["qa"]["answers"][3][1] = 7
    file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(DataError, match="a damaged baseline file"):
        changes_of(file, runs[1])


# Markdown


class Tags(HTMLParser):
    """The tags, addresses and text of a rendered comment."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {str(value) for name, value in attrs if name in ("href", "src")}

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(text: str) -> Tags:
    return Tags(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


HOSTILE = {
    "html": "</td></table><script>x()</script><img src=http://bad.invalid/x onerror=y()>",
    "a link": "[x](http://bad.invalid/) <http://bad.invalid/> ![i](http://bad.invalid/i.png)",
    "code": "```\n# head\n```\n`a` ``b``",
    "blocks": "a\n\n# head\n\n- item\n\n> quote\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "emphasis": "**a** __b__ _c_ ~~d~~ \\*e",
    "entities": "&lt;b&gt; &amp; &#60;script&#62;",
    "control characters": "a\x00b\x1bc\u202ed\u2067e\ud83df\x85g\u2028h",
    "a comment": "<!-- x --> <![CDATA[ y ]]> <?php z ?>",
    "a template": "{{ 7 * 7 }} {% include '/etc/passwd' %} ${7*7}",
}


def planted(folder: Path, text: str) -> tuple[Path, Path]:
    """Write the two runs with ``text`` in every place that a model or a data set fills."""
    before, after = write_changed(folder)
    for run in (before, after):
        for path in run.rglob("samples_*.jsonl"):
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            for number, sample in enumerate(rows):
                record, doc = sample["rows"], sample["doc"]
                record["row"] = doc["id"] = f"{text}{number:03}"
                doc |= {"query": text, "answers": [text]}
                sample["filtered_resps"] = [f"{text} {sample['filtered_resps'][0]}"]
                record["judge"]["votes"] = {text: record["judge"]["verdict"], "judge-b": text}
                if number < 20:
                    record["cell"] = {"query_lang": text}
                for passage in doc["passages"]:
                    passage |= {"id": text + passage["id"], "title": text, "text": text, "lang": text}
            path.write_text("".join(json.dumps(sample) + "\n" for sample in rows), "utf-8")
    return before, after


@pytest.mark.parametrize("what", HOSTILE)
def test_no_text_becomes_markup_in_a_comment(what: str, tmp_path: Path) -> None:
    before, after = planted(tmp_path, HOSTILE[what])
    result = gate([before], [after], RULES)
    text = gate_markdown(result, gate_changes(result, [before], [after], RULES), URL)
    found = rendered(text)
    assert found.tags <= {
        *("h2", "h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "a", "bdi", "b", "br", "ul"),
        *("li", "i"),
    }
    assert {address.partition("#")[0] for address in found.addresses} == {URL}
    assert found.attributes <= {"dir", "colspan", "href", "style"}
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text) is None
    assert text.encode("utf-8")


def test_texts_read_as_they_were(tmp_path: Path) -> None:
    for text in (*HOSTILE.values(), "snake_case, a.b: c/d (e) [f] 50% – “g”", "دُبي (1907)؟"):
        shown = rendered(f"x {in_markdown(text)} y").text.strip()
        assert shown.replace("\u2060", "") == f"x {' '.join(plain_of(text).split())} y"


def plain_of(text: str) -> str:
    return re.sub("[\x00\x1b\u202e\u2067\ud83d]", "\ufffd", text.replace("\x85", "\n").replace("\u2028", "\n"))


@pytest.mark.parametrize(
    "text", ["@someone", "#12", "owner/repo#12", "GH-12", "a@b.cd", "www.bad.invalid", "http://x.y"]
)
def test_nobody_is_mentioned_and_nothing_is_referred_to(text: str) -> None:
    """GitHub looks for these in the finished page, so the text itself is interrupted; addresses lose their sign."""
    assert text not in rendered(in_markdown(text)).text or text[0] in "wh"
    assert text not in in_markdown(text)


@pytest.mark.slow
def test_a_comment_is_never_longer_than_github_takes(tmp_path: Path) -> None:
    before, after = planted(tmp_path, "[*`<" * 2000)
    result = gate([before], [after], RULES)
    many = type(result)(result.checks * 200, result.correction, result.tests, result.alpha)
    text = gate_markdown(many, gate_changes(result, [before], [after], RULES), URL)
    assert len(text) <= MOST_CHARS < 65_536
    assert len(text.encode("utf-8")) < 1 << 20
    assert "more are not listed here" in text
    assert "…" in text


def test_a_table_is_cut_to_the_rows_that_fit() -> None:
    rows = [(str(i), "x" * 50) for i in range(100)]
    assert table_within(("a", "b"), rows, "", 100_000).count("\n") == 101
    text = table_within(("a", "b"), rows, "", 3000)
    assert len(text) < 3100
    left = 100 - (text.count("\n") - 3)
    assert text.endswith(f"{left} more are not listed here.")


def test_long_answers_are_cut_around_their_first_difference() -> None:
    same = "s" * 1000
    first, second = cut_pair(same + "old", same + "new", 100)
    assert (first, second) == ("…" + "s" * 60 + "old", "…" + "s" * 60 + "new")
    assert cut_pair("short", "text", 100) == ("short", "text")
    assert cut_pair("a" * 200, "b" * 200, 100) == ("a" * 100 + "…", "b" * 100 + "…")


def test_right_to_left_rows_have_their_own_direction(runs: tuple[Path, Path], changes: Changes) -> None:
    text = gate_markdown(gate([runs[0]], [runs[1]], RULES), changes)
    assert '<td dir="auto">تقع المنارة في مدينة فارغا.</td><td dir="auto">لا أعرف في أي مدينة تقع.</td>' in text
    assert 'dir="auto"><b>relevant:</b> <bdi>Varga Light</bdi>' in text


def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    secret = "sk-" + "a1b2c3d4" * 4
    before, after = planted(tmp_path, f"{'x' * 470} {secret}")
    result = gate([before], [after], RULES)
    found = gate_changes(result, [before], [after], RULES)
    write_changes(found, tmp_path / "page.html", "x")
    for text in (gate_markdown(result, found), (tmp_path / "page.html").read_text("utf-8")):
        assert "sk-a1b2" not in text


# Page


def test_the_page_has_every_row_with_its_anchor(changes: Changes, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = write_changes(changes, page, "Changed")
    assert (shown.rows, shown.shown) == (22, 22)
    text = page.read_text("utf-8")
    anchors = re.findall(r'<article class="change(?: lost)?" id="([^"]+)"', text)
    assert sorted(anchors) == sorted(row.anchor for row in (*changes.worse, *changes.better))
    assert len({*anchors}) == 22
    assert where_worse(changes) in text
    assert text.count("<script") == 0
    for link in re.findall(r'href="#([^"]+)"', text):
        assert f'id="{link}"' in text


def test_the_links_of_the_markdown_lead_to_rows_of_the_page(runs: tuple[Path, Path], changes: Changes) -> None:
    text = gate_markdown(gate([runs[0]], [runs[1]], RULES), changes, URL)
    links = re.findall(rf"\[show\]\({re.escape(URL)}#([^)]+)\)", text)
    assert links == [row.anchor for row in most_telling(changes, 10)]
    assert "[show]" not in gate_markdown(gate([runs[0]], [runs[1]], RULES), changes)


def test_an_anchor_stays_and_is_safe_for_any_id(tmp_path: Path) -> None:
    ids = ["a b", "a-b", "a/b", "é", "", "x" * 500, '"><script>', "أ", "a\x00b", "a#b%20"]
    before = [{**row(0, acc=1.0), "row": name} for name in ids]
    after = [{**row(0, acc=0.0), "row": name} for name in ids]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    found = changes_of(a, b, of_metric("acc"))
    anchors = [row.anchor for row in found.worse]
    assert len({*anchors}) == len(ids)
    assert all(re.fullmatch(r"row-[A-Za-z0-9-]{0,40}-[0-9a-f]{12}", anchor) for anchor in anchors)
    # another run, another metric: the same anchor; another task: another one
    again = changes_of(b, a, of_metric("acc"))
    assert [row.anchor for row in again.better] == anchors
    assert [replace(row, metric="match").anchor for row in found.worse] == anchors
    assert not {replace(row, task="other").anchor for row in found.worse} & {*anchors}


def test_a_large_page_keeps_the_rows_that_tell_most(changes: Changes, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_changes(changes, page, "x")
    frame = len(page.read_bytes()) - sum(map(len, re.findall(rb"(?s)<article.*?</article>", page.read_bytes())))
    limit = frame + 12_000
    shown = write_changes(changes, page, "x", limit)
    assert 0 < shown.shown < shown.rows == 22
    assert page.stat().st_size <= limit + 1_000
    assert "more changed rows do not fit on this page" in page.read_text("utf-8")
    first = most_telling(changes, 1)[0]
    assert f'id="{first.anchor}"' in page.read_text("utf-8")


def test_a_row_of_several_metrics_is_one_card(tmp_path: Path) -> None:
    before = [row(i, acc=1.0, char3gram_recall=0.9) for i in range(3)]
    after = [row(i, acc=0.0, char3gram_recall=0.2) for i in range(3)]
    a, b = write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})
    found = comparison_changes(compare([a], [b]), [a], [b])
    page = tmp_path / "page.html"
    assert len(found.worse) == 6
    assert [row.metric for row in most_telling(found)] == ["acc"] * 3
    assert write_changes(found, page, "x").rows == 3
    assert page.read_text("utf-8").count("char3gram_recall 90.0 → 20.0") == 3
    assert where_worse(found).startswith("en, acc: 3 of 3 answers lost")


def test_tasks_of_two_names_are_paired(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"one": [row(i, acc=1.0) for i in range(3)]})
    b = write_run(tmp_path / "b", {"two": [row(i, acc=0.0) for i in range(3)]})
    found = compare([a], [b], pairs={"one": "two"}, differs=["all"])
    (cell,) = comparison_changes(found, [a], [b], {"one": "two"}).cells
    assert (cell.task, len(cell.worse)) == ("two", 3)


# Commands


def run(*words: Any, env: Mapping[str, str] | None = None) -> Any:
    from mrag_eval.cli import Session, app

    return CliRunner().invoke(app, [str(word) for word in words], obj=Session(), env=env)


def test_the_commands_write_page_comment_and_summary(runs: tuple[Path, Path], tmp_path: Path) -> None:
    rules = tmp_path / "gate.yaml"
    rules.write_text(f"min_n: 20\nrules:\n- metric: {METRIC}\n", "utf-8")
    baseline, page, comment, summary = (tmp_path / n for n in ("baseline.json", "gate.html", "gate.md", "summary.md"))
    done = run("gate", "--save", baseline, runs[0], "--answers")
    assert done.exit_code == 0, done.output
    check = ["gate", "--baseline", baseline, "--candidate", runs[1], "--rules", rules, "--html", page]
    done = run(
        *check,
        "--markdown",
        comment,
        "--page-url",
        URL,
        env={"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": ""},
    )
    assert done.exit_code == 1, done.output
    assert comment.read_text("utf-8") == summary.read_text("utf-8")
    assert summary.read_text("utf-8").count("[show](") == 10
    assert page.read_text("utf-8").count("<article") == 22
    done = run("compare", *runs, "--html", tmp_path / "compare.html")
    assert done.exit_code == 0, done.output
    assert "<article" in (tmp_path / "compare.html").read_text("utf-8")


@pytest.mark.parametrize("url", ["javascript:x()", "https://a b", "https://a/#x", "https://a)", "ftp://a", "//a", ""])
def test_an_address_that_is_none_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    from mrag_eval.cli import main

    with pytest.raises(ConfigError, match="--page-url"):
        check_page_url(url)
    assert check_page_url(URL) == URL
    with pytest.raises(SystemExit) as done:
        main(["gate", "--baseline", "a", "--candidate", "b", "--rules", "r", "--page-url", url])
    assert done.value.code == 2
    assert "is no address" in capsys.readouterr().err
