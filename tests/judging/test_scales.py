"""Every kind of scale in every panel: settings, replies, votes, values, records, and a cache that is used again."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import walk_packages
from types import SimpleNamespace
from typing import Any

import pytest

import mrag_eval
from mrag_eval.config import Judge, validated
from mrag_eval.core import YES_NO, Judgement, RagDoc, RowScores, Scored, VerdictScale, VerdictValue, Vote
from mrag_eval.judging import Panel, case_of, judged, verdict_rubric
from mrag_eval.metrics import Estimate
from mrag_eval.models import AuxModel, CallCounts
from mrag_eval.models import Verdict as ReadVerdict
from mrag_eval.platform import ConfigError, Store, from_json, to_json
from mrag_eval.report import Sample
from mrag_eval.report.comparison._changed_rows import ChangedRow
from mrag_eval.report.comparison._changed_text import votes_text
from mrag_eval.report.files._row_texts import RowTexts
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.report.page.sections._judges import _agreement_points
from mrag_eval.scoring import (
    HumanAgreement,
    HumanLabel,
    JudgedRecord,
    PanelShare,
    PanelTable,
    RowRecord,
    against_human,
    row_record,
    score_rows,
    summarize,
)
from mrag_eval.scoring._row_records import Graded
from mrag_eval.scoring._score_records import JudgeAgreement
from tests.models.conftest import model_of, store  # noqa: F401 - fixtures of another folder
from tests.worlds.judges import ScriptedJudge, failing
from tests.worlds.model_server import ModelServer, said

SETTINGS: dict[str, Any] = {
    "yes or no": None,
    "numbers": [0, 1, 2],
    "uneven numbers": [-1, 0, 5],
    "two grades": [0, 1],
    "words in order": ["bad", "fair", "good"],
    "labels": {"labels": ["supported", "contradicted", "not_found"]},
    "two labels": {"labels": ["yes", "no"]},
    "labels of any script": {"labels": ["zutreffend", "неверно", "未提及"]},
}
SCALES = {name: YES_NO if setting is None else VerdictScale.of(setting) for name, setting in SETTINGS.items()}
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
UNREAD = "I would rather not say."


def template(scale: VerdictScale, folder: Path) -> str:
    path = folder / "mine.jinja"
    path.write_text(
        f'{{% block user %}}{{{{ query }}}} {{{{ answer }}}} "{scale.key}" <{scale.tag}>{{% endblock %}}', "utf-8"
    )
    return str(path)


def reply(scale: VerdictScale, said: Any) -> str:
    return json.dumps({"justification": "seen", scale.key: said}, ensure_ascii=False)


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize("scale", [value for value in SETTINGS.values() if value is not None] + ["yes/no"], ids=str)
@pytest.mark.parametrize(("part", "other"), [("sufficiency", {}), ("relevance", {}), ("grounded", {"by": "panel"})])
def test_other_judgements_than_of_answers_refuse_a_scale_and_say_what_is_possible(
    part: str, other: Any, scale: Any
) -> None:
    for block in ({part: {**other, "scale": scale}}, {part: {**other, "scale": scale, "prompt": "x"}, "scale": [0, 1]}):
        with pytest.raises(ConfigError) as error:
            validated(Judge, block, "task t, judge")
        assert error.value.message.startswith(f"task t, judge.{part}: ")
        assert "scale" in error.value.message
        assert f"judge.{'prompt' if part == 'grounded' else f'{part}.prompt'}" in error.value.message
        assert "\n" not in error.value.message
    with pytest.raises(ConfigError, match="unknown key 'scal'"):
        validated(Judge, {part: {**other, "scal": scale}}, "task t, judge")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_comes_back_as_it_was_written(name: str) -> None:
    block = Judge.model_validate({} if SETTINGS[name] is None else {"scale": SETTINGS[name]})
    written = block.model_dump(mode="json")
    assert written.get("scale") == SETTINGS[name]
    assert Judge.model_validate(written) == block
    assert from_json(VerdictScale, to_json(block.scale), "x", "y") == block.scale


@pytest.mark.parametrize(
    "setting",
    [
        "good",
        3,
        True,
        [],
        [1],
        {},
        {"labels": ["one"]},
        {"labels": ["a", "b"], "tie": "a"},
        {"grades": [0, 1]},
        [0, 2, 1],
        [0, 0, 1],
        [0, 0.5, 1],
        [0, "good"],
        [False, True],
        ["no", None],
        {"labels": [0, 1]},
        ["fair", "Fair"],
        ["so so", "good"],
        ["good.", "bad"],
        {"labels": ["not-found", "not-found"]},
        ["", "good"],
    ],
)
def test_a_scale_whose_verdicts_cannot_be_told_apart_is_refused(setting: Any) -> None:
    with pytest.raises(ValueError, match=r"grades|word|not one of its values"):
        Judge.model_validate({"scale": setting})


# ------------------------------------------------------------------ replies


@every_scale
@pytest.mark.parametrize("form", ["json", "tag"])
def test_a_reply_is_read_as_one_verdict_or_not_at_all(scale: VerdictScale, form: Any, tmp_path: Path) -> None:
    rubric = verdict_rubric(template(scale, tmp_path), form, scale)
    row = Scored(RagDoc(id="r", query="q", query_lang="de", answers=("a",)), "a")

    def read(said: Any) -> Any:
        text = reply(scale, said) if form == "json" else f"I think so.\n<{scale.tag}>{said}</{scale.tag}>"
        case = case_of(row, scale)
        assert not isinstance(case, Judgement)
        found = rubric.request(case)[1](text)
        assert (found.value is None) == (found.error is not None)
        return None if found.value is None else found.value.verdict

    for level in scale.levels:
        for word in (level, str(level), f" **{str(level).upper()}**. "):
            assert (type(read(word)), read(word)) == (type(level), level)
    for word in (
        "",
        "none of them",
        f"{scale.levels[0]} {scale.levels[1]}",
        f"{scale.levels[1]}/{scale.levels[-1]}",
        7,
    ):
        assert read(word) is None
    if scale != YES_NO and form == "json":
        assert [read(word) for word in (True, None, 1.0, [scale.levels[0]], {"is": scale.levels[0]})] == [None] * 5
    one, other = (str(level) for level in scale.levels[:2])
    assert read(f"{one}</{scale.tag}> or <{scale.tag}>{other}") is None
    assert read(one) == scale.levels[0]


# ------------------------------------------------------------------ votes


def plain_vote(scale: VerdictScale, verdicts: Sequence[VerdictValue]) -> VerdictValue | None:
    """Return the verdict of a full panel by the definition; None for a tie."""
    if scale.kind == "ordered":
        ranked = sorted(verdicts, key=scale.levels.index)
        low, high = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
        return low if low == high else None
    return next((level for level in scale.levels if verdicts.count(level) > len(verdicts) / 2), None)


@every_scale
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_missing_votes_never_decide_and_the_order_of_judges_does_not_matter(scale: VerdictScale, size: int) -> None:
    by_votes: dict[tuple[str, ...], Any] = {}
    for verdicts in product([*scale.levels, None], repeat=size):
        found, outcome = scale.vote(verdicts)
        assert by_votes.setdefault(tuple(sorted(map(str, verdicts))), (found, outcome)) == (found, outcome)
        cast = [verdict for verdict in verdicts if verdict is not None]
        missing = size - len(cast)
        # whatever the missing votes were
        possible = {plain_vote(scale, [*cast, *more]) for more in product(scale.levels, repeat=missing)}
        if len(possible) == 1 and None not in possible and cast:
            assert found == possible.pop()
            assert outcome in ("unanimous", "majority", "median")
            assert (outcome == "unanimous") == (len(set(cast)) == 1 and not missing)
        elif missing:
            assert (found, outcome) == (None, "unjudged")
        else:
            assert outcome == "tie"
            assert scale.vote(verdicts, "abstain") == (None, "tie")
            lower = sorted(cast, key=scale.levels.index)[(size - 1) // 2]
            assert found == (None if scale.kind == "labels" else lower)


# ------------------------------------------------------------------ panels

# What every judge says of four answers: a place on the scale, a reply that is not read, or None where the call fails.
Script = tuple[int | str | None, int | str | None, int | str | None, int | str | None]
PANELS: dict[str, list[Script]] = {
    "one judge": [(0, 1, -1, 0)],
    "odd": [(0, 1, -1, 0), (0, -1, -1, 1), (1, 1, 0, -1)],
    "even, with ties": [(0, 1, -1, 0), (-1, 1, 0, 1)],
    "unread votes": [(0, UNREAD, -1, UNREAD), (0, 1, UNREAD, UNREAD), (1, 1, -1, UNREAD)],
    "a failed judge": [(0, 1, -1, 0), (0, -1, -1, 1), (None, None, None, None)],
    "all failed": [(None, None, None, None), (None, None, None, None)],
}
ANSWERS = ("first", "second", "third", "fourth")


def rows() -> list[Scored]:
    docs = [RagDoc(id=f"r{i}", query=f"q {word}", query_lang="de", answers=("a",)) for i, word in enumerate(ANSWERS)]
    found = [Scored(doc, word) for doc, word in zip(docs, ANSWERS, strict=True)]
    declined = replace(found[0], doc=replace(docs[0], id="declined"), answer="None", declined=True)
    without = replace(found[0], doc=replace(docs[0], id="without", answers=()))
    return [*found, declined, without]


def said_of(scale: VerdictScale, script: Script, prompt: str) -> str | None:
    # a judge that is asked again sees the fault alone
    found = next((said for word, said in zip(ANSWERS, script, strict=True) if word in prompt), UNREAD)
    if isinstance(found, str):
        return found
    return None if found is None else reply(scale, scale.levels[found] if scale != YES_NO else bool(found))


def scripted(scale: VerdictScale, scripts: Sequence[Script]) -> Panel:
    def judge(script: Script) -> ScriptedJudge:
        return ScriptedJudge(lambda prompt: said_of(scale, script, prompt) or failing()(prompt))

    return Panel({f"j{i}": judge(script) for i, script in enumerate(scripts)})  # type: ignore[misc]


def block_of(scale: VerdictScale, folder: Path, **keys: Any) -> Judge:
    own = {} if scale == YES_NO else {"scale": scale.setting}
    return Judge.model_validate({"prompt": template(scale, folder), **own, **keys})


def records_of(scale: VerdictScale, panel: Panel, block: Judge) -> list[RowRecord]:
    done, share = judged(rows(), panel, block, None)
    scores = score_rows(done, scale.metrics, searched=False)
    records = [row_record(row.doc, score, judgement=row.judgement) for row, score in zip(done, scores, strict=True)]
    return [replace(records[0], panel=share), *records[1:]]


@every_scale
@pytest.mark.parametrize("tie", ["incorrect", "abstain"])
@pytest.mark.parametrize("scripts", PANELS.values(), ids=PANELS)
def test_values_counts_and_records_follow_from_the_votes(
    scale: VerdictScale, scripts: list[Script], tie: Any, tmp_path: Path
) -> None:
    records = records_of(scale, scripted(scale, scripts), block_of(scale, tmp_path, tie=tie))
    # a record reads back as it was, with the types of its verdicts
    assert [RowRecord.from_dict(json.loads(json.dumps(record.to_dict()))) for record in records] == records
    assert repr([RowRecord.from_dict(record.to_dict()) for record in records]) == repr(records)
    verdicts = {record.row: record.judge.verdict for record in records if record.judge is not None}
    assert verdicts["without"] is None
    assert verdicts["declined"] == scale.worst
    scored = [record for record in records if verdicts[record.row] is not None]
    for record in records:
        # a row has a value or a reason for every metric, never both
        assert {*record.values} ^ {*record.unscored} == {*scale.metrics}
        assert (record in scored) == bool(record.values)
    scores = summarize(records)
    table = scores.judge
    assert table is not None
    assert table.scale == scale
    assert sum(table.outcomes.values()) == len(records)
    for seat, judge in table.judges.items():
        cast = [record.judge.vote(seat) for record in records if record.judge is not None]
        assert judge.correct.n == sum(vote is not None for vote in cast)
        assert judge.correct.n + sum(judge.abstained.values()) == len(ANSWERS)
        assert judge.silent == (judge.correct.n == 0)
    if not scored:
        assert all(name not in scores.metrics or scores.metrics[name].value is None for name in scale.metrics)
    elif scale.kind == "labels":
        shares = [scores.metrics[name] for name in scale.metrics]
        assert {share.n for share in shares} == {len(scored)}
        assert sum(share.value or 0.0 for share in shares) == pytest.approx(1)
    else:
        mean = sum(scale.value(verdicts[record.row]) or 0.0 for record in scored) / len(scored)  # type: ignore[arg-type]
        assert scores.metrics[scale.metrics[-1]].value == pytest.approx(mean)
    if table.agreement is not None:
        (name,) = table.agreement.of_all
        assert name == ("Fleiss' kappa" if scale == YES_NO else "Krippendorff's alpha")
    # people's labels, which are the verdicts of the first judge
    people = {
        record.row: {"ida": HumanLabel(vote)}
        for record in records
        if record.judge is not None and (vote := record.judge.vote("j0")) is not None
    }
    found = against_human(records, people, scale=scale)
    assert found.rows == len(people)
    if people:
        assert found.judges["j0"].agreement.value == 1.0
        assert sum(share.value or 0.0 for share in found.human_labels.values()) == pytest.approx(
            float(scale.worst is None)
        )


@every_scale
def test_a_cache_that_is_used_again_gives_the_same_verdicts_without_a_call(
    scale: VerdictScale,
    tmp_path: Path,
    start: Callable[..., ModelServer],
    store: Store,  # noqa: F811
    model_of: Callable[..., AuxModel],  # noqa: F811
) -> None:
    scripts = dict(zip("abc", PANELS["unread votes"], strict=True))
    stopped = ["c"]

    def script(body: dict[str, Any], attempt: int) -> Any:
        if body["model"] in stopped:
            return 401, {}, "{}"
        return said(said_of(scale, scripts[body["model"]], body["messages"][-1]["content"]))

    server = start(script)
    block = block_of(scale, tmp_path)

    def again() -> tuple[int, list[RowRecord]]:
        before = len(server.requests)
        models = {name: model_of(server, store, model_args={"model": name}) for name in scripts}
        found = records_of(scale, Panel(models), block)
        return len(server.requests) - before, [replace(record, panel=None) for record in found]

    again()
    stopped.clear()
    # only what failed before is asked
    asked, whole = again()
    assert 0 < asked < len(scripts) * len(ANSWERS)
    assert again() == (0, whole)


# ------------------------------------------------------------------ records


def judgement_of(scale: VerdictScale) -> Judgement:
    votes = {f"j{i}": Vote(level, "seen") for i, level in enumerate(scale.levels)}
    votes["silent"] = Vote(None, error="timeout: nothing came")
    return Judgement(scale.levels[-1], "majority", votes, scale)


def table_of(scale: VerdictScale) -> PanelTable:
    record = row_record(rows()[0].doc, RowScores(), judgement=judgement_of(scale))
    seats = dict.fromkeys(judgement_of(scale).votes, "m")
    table = summarize([replace(record, panel=PanelShare(seats, {"m": CallCounts()}, scale=scale))]).judge
    assert table is not None
    return table


def people_of(scale: VerdictScale) -> HumanAgreement:
    record = row_record(rows()[0].doc, RowScores(), judgement=judgement_of(scale))
    return against_human([record], {"r0": {"ida": HumanLabel(scale.levels[-1])}}, scale=scale)


# Every record that holds a verdict or a scale, with one of it on a scale.
HOLDERS: dict[type, Callable[[VerdictScale], Any]] = {
    VerdictScale: lambda scale: scale,
    Vote: lambda scale: Vote(scale.levels[-1], "seen"),
    Judgement: judgement_of,
    ReadVerdict: lambda scale: ReadVerdict(scale.levels[0], "seen"),
    Graded: lambda scale: Graded("good" if scale == YES_NO else scale.levels[-1]),  # type: ignore[arg-type]
    JudgedRecord: lambda scale: JudgedRecord.of(judgement_of(scale)),
    PanelShare: lambda scale: PanelShare({"j": "m"}, {}, scale=scale),
    PanelTable: table_of,
    HumanAgreement: people_of,
    RowRecord: lambda scale: row_record(rows()[0].doc, RowScores(), judgement=judgement_of(scale)),
}
# Votes of something else, as text, or in memory alone.
OTHERS = {
    "Claim",
    "_PanelChecker",
    "Decided",
    "Labels",
    "LabelRecord",
    "VotedAnswer",
    "MadeAgain",
    "Check",
    "RowTexts",
}
_TYPES = re.compile(r"\b(VerdictValue|VerdictScale|Vote|Graded|JudgedRecord|Verdict)\b")


def holders() -> Iterator[type]:
    """Return every record of the package with a field for a verdict, votes or a scale, by its name or its type."""
    for module in walk_packages(mrag_eval.__path__, "mrag_eval."):
        if module.name.endswith("__main__"):
            continue
        try:
            found = vars(import_module(module.name))
        except ImportError:  # of an extra
            continue
        for kind in found.values():
            if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.name:
                fields = vars(kind).get("__annotations__", {}).items()
                if any(name in ("verdict", "votes") or _TYPES.search(str(hint)) for name, hint in fields):
                    yield kind


def test_every_record_of_a_verdict_is_among_those_tested() -> None:
    found = {kind for kind in holders() if not kind.__module__.startswith("mrag_eval.building")}
    assert {kind.__name__ for kind in found - {*HOLDERS}} == OTHERS
    assert not {*HOLDERS} - found


@every_scale
@pytest.mark.parametrize("kind", HOLDERS, ids=lambda kind: kind.__name__)
def test_a_record_of_a_verdict_comes_back_from_json_with_its_type(kind: type, scale: VerdictScale) -> None:
    record = HOLDERS[kind](scale)
    assert isinstance(record, kind)
    back = from_json(kind, json.loads(json.dumps(to_json(record))), "x", "y")
    assert back == record
    assert repr(to_json(back)) == repr(to_json(record))


@every_scale
def test_yes_and_no_alone_leave_no_trace_of_a_scale(scale: VerdictScale) -> None:
    for holder, make in HOLDERS.items():
        if holder not in (VerdictScale, Judgement):
            assert ("scale" in to_json(make(scale))) == (scale != YES_NO and "scale" in holder.__annotations__)


@every_scale
def test_a_baseline_with_answers_shows_what_every_judge_said(scale: VerdictScale) -> None:
    record = row_record(rows()[0].doc, RowScores(), judgement=judgement_of(scale))
    for line in ({"votes": to_json(judgement_of(scale).votes)}, {}):
        texts = RowTexts.of(Sample(record, line))
        _, back = RowTexts.from_kept(json.loads(json.dumps(texts.kept("r0"))))
        assert {**back.votes} == {**texts.votes}
        scored = ScoredRow.of(record)
        row = ChangedRow("t", "m", scored, scored, True, (texts, back), None)
        shown = votes_text(row)
        said = [scale.text(level) for level in scale.levels]
        assert shown[: len(said)] == [f"j{i}: {word} → {word}" for i, word in enumerate(said)]
        assert shown[-1].startswith("silent: timeout")


@every_scale
def test_the_page_names_the_agreement_of_all_judges(scale: VerdictScale) -> None:
    pair = {"a | b": Estimate(0.5, n=9)}
    every = {"fleiss" if scale == YES_NO else "alpha": Estimate(0.25, n=9)}
    table = PanelTable(agreement=JudgeAgreement(pair, **every), scale=scale)
    leaf = SimpleNamespace(label="t", result=SimpleNamespace(scores=SimpleNamespace(panels={"answers": table})))
    shown = {point["judges"]: point["kappa"] for point in _agreement_points(leaf)}  # type: ignore[arg-type]
    name = "Fleiss, all judges" if scale == YES_NO else "Krippendorff, all judges"
    assert shown == {"a | b": 0.5, name: 0.25}


# ------------------------------------------------------------------ scripts


def test_a_label_may_have_every_mark_of_every_script() -> None:
    marks = [one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) in ("Mn", "Mc")]
    assert len(marks) > 2000
    for mark in marks:
        assert VerdictScale.of({"labels": [f"क{mark}", "ख"]}).levels[0] == f"क{mark}"
        with pytest.raises(ValueError, match="no word"):
            VerdictScale.of({"labels": [f"{mark}क", "ख"]})
    for other in (" ", ".", "\n", "\u200b", "\u202e", "<", '"'):
        with pytest.raises(ValueError, match="no word"):
            VerdictScale.of({"labels": [f"क{other}", "ख"]})


@pytest.mark.parametrize("labels", [["सही", "गलत"], ["ถูกต้อง", "ผิด"], ["صَحيح", "خطأ"], ["đúng", "sai"]])
def test_a_label_is_read_in_either_form_of_its_marks(labels: list[str]) -> None:
    scale = VerdictScale.of({"labels": labels})
    for label in labels:
        for form in ("NFC", "NFD"):
            assert scale.read(unicodedata.normalize(form, label)) == label
            assert scale.read(f" **{unicodedata.normalize(form, label)}.** ") == label
    twice = [unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")]
    with pytest.raises(ValueError, match="the same word"):
        VerdictScale.of({"labels": twice})
