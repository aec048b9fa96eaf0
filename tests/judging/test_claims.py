"""Claims of answers before a panel: votes, passages, ties, failures, and whole runs and logs that a panel checks."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import mrag_eval
from mrag_eval.config import GROUNDED, Grounded, GroundedByPanel, Judge, listed_in, validated
from mrag_eval.core import SUPPORT, Claim, Failure, Grounding, Hit, RagDoc, Scored, Vote
from mrag_eval.harness import _command
from mrag_eval.judging import Case, Decided, Panel, Recount, claims_judged, support_rubric
from mrag_eval.models import LASTING, Reply
from mrag_eval.planning import plan_for
from mrag_eval.platform import ConfigError, MragError, from_json, to_json
from mrag_eval.report import compare, gate, read_results, read_rules, read_samples, verify
from mrag_eval.scoring import RowRecord, row_record, score_rows, summarize
from tests.task.test_hook import build, knows_everything
from tests.worlds import logs
from tests.worlds.judges import Script, ScriptedJudge, claim_of, failing, on_claim, supports
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, ScriptedLM, write_task

TOWER = Hit("tower", "de", "Der Turm von Varn wurde 1841 gebaut.", 1.0, 1)
BREAD = Hit("bread", "en", "Olm sells rye bread.", 0.5, 2)
ANSWER = "Der Turm von Varn wurde 1841 gebaut. Olm sells rye bread. Er ist rot."


def row(answer: str = ANSWER, *passages: Hit, name: str = "r", **more: Any) -> Scored:
    doc = RagDoc(name, "Was?", "de", answers=("1841",))
    return Scored(doc, answer, **{"passages": passages or (TOWER, BREAD), **more})


def panel(*scripts: Script) -> Panel:
    return Panel({f"j{n}": ScriptedJudge(script) for n, script in enumerate(scripts)})  # type: ignore[misc]


def says(label: str, passage: Any = None) -> Script:
    return lambda prompt: on_claim(prompt, label, passage)


def checked(one: Scored, *scripts: Script, **block: Any) -> Scored:
    (found,), _ = claims_judged([one], panel(*scripts), Judge(**block))
    return found


def claims(one: Scored) -> list[tuple[Any, ...]]:
    assert one.grounding is not None
    return [(claim.verdict, claim.passage, claim.id, claim.lang) for claim in one.grounding.claims]


def value(one: Scored) -> Any:
    (scores,) = score_rows([one], ["grounded"], searched=False)
    return scores.values.get("grounded", scores.unscored.get("grounded"))


# ------------------------------------------------------------------ one row


def test_each_claim_is_one_request_and_has_the_verdict_of_most_judges() -> None:
    judges = panel(supports, supports, says("not_found"))
    (one,), share = claims_judged([row()], judges, Judge())
    told = [("supported", 1, "tower", "de"), ("supported", 2, "bread", "en"), ("not_found", None, "", "")]
    assert claims(one) == told
    assert value(one) == pytest.approx(2 / 3)
    assert one.grounding is not None
    assert [claim.support for claim in one.grounding.claims] == pytest.approx([2 / 3, 2 / 3, 0])
    assert [ANSWER[s.start : s.end] for claim in one.grounding.claims for s in claim.unsupported] == ["Er ist rot."]
    assert [ledger.calls for ledger in share.ledger.values()] == [3, 3, 3]
    assert share.scale == SUPPORT
    record = row_record(one.doc, score_rows([one], ["grounded"], searched=False)[0], grounding=one.grounding)
    assert RowRecord.from_dict(record.to_dict()) == record


def test_a_request_depends_on_its_claim_alone() -> None:
    """Neither the order of an answer's claims, nor that of the rows, changes what is said of a claim."""
    sentences = ["Der Turm von Varn wurde 1841 gebaut.", "Olm sells rye bread.", "Er ist rot."]
    for order in itertools.permutations(sentences):
        one = checked(row(" ".join(order)), supports)
        assert one.grounding is not None
        verdict = {sentences[0]: "supported", sentences[1]: "supported", sentences[2]: "not_found"}
        assert [claim.verdict for claim in one.grounding.claims] == [verdict[text] for text in order]
    rows = [row(name="a"), row("Er ist rot.", name="b"), row("Olm sells rye bread.", BREAD, name="c")]
    ways = [claims_judged(list(way), panel(supports), Judge())[0] for way in itertools.permutations(rows)]
    assert len({tuple(sorted((one.doc.id, str(one.grounding)) for one in way)) for way in ways}) == 1


def test_a_judge_sees_question_answer_claim_and_passages_with_their_languages() -> None:
    judge = ScriptedJudge(supports)
    hits = (Hit("a", "de", "Er ist alt.", 1.0, 1, title="Der Turm"), Hit("b", "en", "", 0.5, 2), replace(BREAD, rank=3))
    rubric_of = claims_judged([row("Er ist alt [1]. Und rot.", *hits)], Panel({"j": judge}), Judge())  # type: ignore[dict-item]
    assert rubric_of[0][0].grounding is not None
    first, second = (turns[-1]["content"] for turns in judge.asked)
    for shown in (first, second):
        assert "<question>\nWas?\n</question>" in shown
        assert "<passage_1>\nDer Turm. Er ist alt.\nLanguage: de\n</passage_1>" in shown
        assert "<passage_3>\nOlm sells rye bread.\nLanguage: en\n</passage_3>" in shown
        # a citation is no word of the answer
        assert "[1]" not in shown.partition("<answer>")[2]
    assert claim_of(first)[0].startswith("Er ist alt")
    assert claim_of(second)[0] == "Und rot."
    assert judge.asked[0][0] == judge.asked[1][0]


@pytest.mark.parametrize("number", [0, 3, -1, "2b", None, True, 1.5, [1], "", "two", 2], ids=repr)
def test_a_number_outside_the_list_is_an_unreadable_vote(number: Any) -> None:
    # the second passage holds no text
    one = row("Er ist rot.", TOWER, Hit("b", "en", " ", 0.5, 2))
    for label in ("supported", "contradicted"):
        found = checked(one, says(label, number))
        assert claims(found) == [(None, None, "", "")]
        assert found.failures[0].reason == "unreadable"
        assert "passage_" in found.failures[0].detail
    assert claims(checked(one, says("not_found", number))) == [("not_found", None, "", "")]
    for right in (1, "1"):
        assert claims(checked(one, says("contradicted", right))) == [("contradicted", 1, "tower", "de")]


def votes_of(*said: tuple[str | None, int | None]) -> dict[str, Vote]:
    return {
        f"j{n}": Vote(label, "why", None if label else "timeout: nothing", passage)
        for n, (label, passage) in enumerate(said)
    }


def counted(recount: Recount, *claims: Claim) -> Grounding:
    shown = tuple(Hit(f"p{number}", "de", "x", 1.0, number) for number in (1, 2, 3))
    asked = Scored(RagDoc("r", "?", "de"), "x", passages=shown)
    (row,) = recount.of([asked], [Decided(claims=Grounding("de", claims))])
    assert row.grounding is not None
    return row.grounding


@pytest.mark.parametrize(
    ("said", "verdict", "passage"),
    [
        ((("supported", 2), ("supported", 2), ("contradicted", 1)), "supported", 2),
        # the most frequent among those that agree with the verdict; the first of several
        ((("supported", 3), ("supported", 2), ("contradicted", 2)), "supported", 2),
        ((("supported", 3), ("supported", 2), ("supported", 3)), "supported", 3),
        ((("not_found", None), ("not_found", None), ("supported", 1)), "not_found", None),
        ((("supported", 1), ("supported", 1), (None, None)), "supported", 1),
        ((("supported", 1), ("contradicted", 1), (None, None)), None, None),
        (((None, None), (None, None), (None, None)), None, None),
        ((("supported", 1), ("contradicted", 1), ("not_found", None)), "tie", None),
        ((("supported", 1), ("not_found", None)), "tie", None),
    ],
)
def test_votes_make_a_verdict_and_a_passage_whatever_the_order_of_the_judges(
    said: tuple[tuple[str | None, int | None], ...], verdict: str | None, passage: int | None
) -> None:
    for order in itertools.permutations(said):
        votes = votes_of(*order)
        for tie in ("incorrect", "abstain"):
            recount, asked = Recount(Judge(tie=tie)), Claim(3, 9, None, 0.0, votes=votes)  # type: ignore[arg-type]
            (found,) = counted(recount, asked).claims
            assert found.verdict == ({"incorrect": "not_found", "abstain": None}[tie] if verdict == "tie" else verdict)
            assert found.passage == passage
            cast = [label for label, _ in said if label is not None]
            assert found.support == pytest.approx(cast.count("supported") / len(cast) if cast else 0)
            assert (found.id, found.lang) == (("", "") if passage is None else (f"p{passage}", "de"))
            grounding = Grounding("de", (found,))
            # recorded claims are counted as those that were just asked about
            assert counted(recount, found) == grounding
            assert from_json(Grounding, to_json(grounding), "a record", "") == grounding


def test_a_claim_without_a_verdict_leaves_its_row_unscored_with_the_reason() -> None:
    one = checked(row(), supports, failing("timeout"), failing("refusal"))
    assert [claim[0] for claim in claims(one)] == [None, None, None]
    # once for each seat, not for each claim
    assert one.failures == (
        Failure("grounding", "j1", "timeout", "nothing came"),
        Failure("grounding", "j2", "refusal", "nothing came"),
    )
    assert value(one) == "grounding failed (timeout)"
    # one failed vote decides nothing where the others agree
    fine = checked(row(), supports, supports, failing())
    assert (fine.failures, value(fine)) == ((), pytest.approx(2 / 3))
    # one claim of three is enough
    rocky = checked(row(), lambda p: Reply("", error="timeout: x") if claim_of(p)[0] == "Er ist rot." else supports(p))
    assert [claim[0] for claim in claims(rocky)] == ["supported", "supported", None]
    assert value(rocky) == "grounding failed (timeout)"
    tied = checked(row("Er ist rot."), says("supported", 1), says("not_found"), tie="abstain")
    assert (tied.failures, value(tied)) == ((), "unjudged (tie)")
    assert value(checked(row("Er ist rot."), says("supported", 1), says("not_found"))) == 0.0


@pytest.mark.parametrize("answer", ["", "None", " [1] ", "Das weiß ich nicht."])
def test_nobody_is_asked_about_an_answer_without_a_claim(answer: str) -> None:
    judge = ScriptedJudge(supports)
    (one,), _ = claims_judged([row(answer, declined=answer == "None")], Panel({"j": judge}), Judge())  # type: ignore[dict-item]
    assert judge.asked == []
    assert value(one) in ("the answer is empty", "the model declined to answer")


def test_a_template_must_have_the_code_behind_both_keys(tmp_path: Path) -> None:
    shown = '{{ claim }} {{ listed(passages, "<p_#>", "</p_#>") }} '
    own = shown + '"label_{{ code }}": "supported", "passage_{{ code }}": 1'
    ways = (
        (own, True),
        (own.replace("{{ code }}", "{{code}}"), True),
        (own.replace("_{{ code }}", ""), False),
        (own.replace('"label_{{ code }}"', '"label"'), False),
        (own.replace('"passage_{{ code }}"', '"passage"'), False),
    )
    for n, (text, fine) in enumerate(ways):
        path = tmp_path / f"{n}.jinja"
        path.write_text(f"{{% block user %}}{text}{{% endblock %}}", "utf-8")
        if fine:
            assert support_rubric(str(path)).request(Case("r", "?", "de", ()))[0]
            continue
        with pytest.raises(ConfigError, match="does not ask for the label of a claim") as error:
            support_rubric(str(path))
        assert "\n" not in error.value.message


# ------------------------------------------------------------------ the table


def test_the_table_of_claims_has_agreement_and_failed_votes_by_judge() -> None:
    rng = random.Random(1)
    coarse: Script = lambda p: supports(p) if rng.random() < 0.8 else on_claim(p, "contradicted", 1)  # noqa: E731
    rows = [row(" ".join(rng.sample(ANSWER.split(". "), 2)), name=str(n)) for n in range(30)]
    found, share = claims_judged(rows, panel(supports, coarse, failing()), Judge())
    records = [row_record(one.doc, score, grounding=one.grounding) for one, score in
               zip(found, score_rows(found, ["grounded"], searched=False), strict=True)]  # fmt: skip
    table = summarize([replace(records[0], claims_panel=share), *records[1:]]).claims
    assert table is not None
    count = sum(len(one.grounding.claims) for one in found if one.grounding is not None)
    assert sum(table.outcomes.values()) == count
    assert {seat: judge.abstained for seat, judge in table.judges.items()} == {
        "j0": {},
        "j1": {},
        "j2": {"timeout": count},
    }
    assert [judge.model for judge in table.judges.values() if judge.silent]
    assert table.agreement is not None
    assert table.agreement.alpha is not None
    assert {*table.agreement.pairwise} == {"j0 | j1", "j0 | j2", "j1 | j2"}
    # a row that two ranks have counts once
    twice = summarize([replace(records[0], claims_panel=share), *records[1:], *records[:9]]).claims
    assert twice is not None
    assert twice.outcomes == table.outcomes


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ({"by": "panel", "model": "x"}, "'model' requires by 'classifier'"),
        ({"by": "panel", "threshold": 0.4}, "'threshold' requires by 'classifier'"),
        ({"model": "x", "prompt": "support"}, "'prompt' requires by 'panel'"),
        ({"by": "panl"}, "unknown by 'panl'; did you mean 'panel'"),
        ({}, "needs 'model', a hub name or a folder"),
        ("panel", "judge.grounded"),
    ],
)
def test_the_settings_of_one_way_are_refused_beside_the_other(block: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        validated(Judge, {"grounded": block}, "task t, judge")
    assert fault in error.value.message
    assert "\n" not in error.value.message


def test_a_recorded_block_is_a_block_again() -> None:
    for grounded in (None, Grounded(model="x"), GroundedByPanel(prompt="./own.jinja")):
        judge = Judge(grounded=grounded)
        assert Judge.model_validate(judge.model_dump(mode="json")) == judge
    assert Judge.model_validate({"grounded": {"model": "x"}}).grounded == Grounded(model="x")


# ------------------------------------------------------------------ runs and logs


@pytest.fixture
def judges(start: Callable[..., ModelServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what writes a config file whose judges say what scripts say; it returns their servers."""

    def judged(*scripts: Script) -> list[ModelServer]:
        servers = [start(lambda body, attempt, script=script: _reply(script(asked(body)))) for script in scripts]
        models = {
            f"j{n}": {"model": "local-chat-completions", "model_args": {"model": f"m{n}", "base_url": server.url}}
            for n, server in enumerate(servers)
        }
        path = tmp_path / "judges.yaml"
        path.write_text(yaml.safe_dump({"models": models, "judges": [*models]}), "utf-8")
        monkeypatch.setenv("MRAG_CONFIG", str(path))
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        return servers

    return judged


def _reply(found: str | Reply) -> Answer:
    return Answer(status=400, body={"error": {"message": "no"}}) if isinstance(found, Reply) else said(found)


def task(tasks: Path, metrics: list[str], judge: Any) -> str:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    settings = {"retrieval": {"mode": "all", "k": 2, "kind": "bm25"}, "judge": judge}
    return str(write_task(tasks, "claims", **{**BASE, "metrics": metrics}, data=data, **settings))


def ran(tasks: Path, out: Path, judge: Any = None, metrics: Any = ("match", *GROUNDED)) -> Path:
    path = task(tasks, list(metrics), judge or {"grounded": {"by": "panel"}})
    mrag_eval.evaluate(ScriptedLM(knows_everything), path, output=out, apply_chat_template=False)
    return out


def test_a_run_is_checked_by_its_panel_and_verified_from_its_votes(
    tasks: Path, tmp_path: Path, judges: Any, caplog: pytest.LogCaptureFixture
) -> None:
    servers = judges(supports, supports)
    out = ran(tasks, tmp_path / "out")
    (file,) = read_results([out])
    scores = file.leaves["claims"].scores
    assert {name: scores.metrics[name].n for name in GROUNDED} == dict.fromkeys(GROUNDED, 15), scores.unscored
    assert scores.claims is not None
    assert scores.claims.outcomes == {"unanimous": sum(scores.claims.outcomes.values())}
    path = file.samples("claims")
    assert path is not None
    samples = [*read_samples(path)]
    for sample in samples:
        assert sample.record.grounding is not None
        for claim in sample.record.grounding.claims:
            assert {*claim.votes} == {"j0", "j1"}
            assert {vote.passage for vote in claim.votes.values()} == {claim.passage}
    (checked_again,) = verify([out], tasks)
    assert checked_again.findings == ()
    sent = [len(server.requests) for server in servers]
    # what was said is kept: the same again asks nobody
    ran(tasks, tmp_path / "again")
    assert [len(server.requests) for server in servers] == sent


def of_votes(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """Return what changes all votes on a claim and, if it names the passage, the claim with them."""

    def changed(claim: dict[str, Any]) -> None:
        for vote in claim["votes"].values():
            vote.update(changes)
        if "passage" in changes:
            claim["passage"] = changes["passage"]

    return changed


FORGED: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "verdict": lambda claim: claim.update(verdict="contradicted"),
    "support": lambda claim: claim.update(support=0.5),
    "passage": lambda claim: claim.update(passage=claim.get("passage", 0) % 2 + 1),
    "id": lambda claim: claim.update(id="nobody"),
    "lang": lambda claim: claim.update(lang="fr"),
    "unsupported": lambda claim: claim.update(unsupported=[{"start": 0, "end": 1}]),
    **{f"every passage {number}": of_votes(passage=number) for number in (99, 3, 0, -1, None)},
    "a passage for what is not found": of_votes(verdict="not_found"),
}


def test_a_claim_that_does_not_follow_from_its_votes_and_passages_is_a_fault(
    tasks: Path, tmp_path: Path, judges: Any
) -> None:
    judges(supports, supports)
    out = ran(tasks, tmp_path / "out")
    path = next(out.rglob("samples_claims_*.jsonl"))
    text = path.read_text("utf-8")
    for what, forge in FORGED.items():
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            for claim in line["rows"]["grounding"]["claims"]:
                forge(claim)
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
        (planted,) = verify([out], tasks)
        faults = [finding.text for finding in planted.of("fault")]
        assert any(fault.startswith("grounding.claims.") for fault in faults), what
        # votes follow from the judges' replies, and what they decide from the votes
        by_reply = [fault for fault in faults if "by its reply" in fault]
        assert all(fault.startswith("grounding.") for fault in by_reply), what
        assert bool(by_reply) == what.startswith(("every", "a passage")), what
        of_rows = [fault for fault in faults if " rows, first " in fault and fault.startswith(("grounding", *GROUNDED))]
        of_rows = [fault for fault in of_rows if fault not in by_reply]
        assert all("by its votes" in fault for fault in of_rows), what
        assert [line for line in planted.unchecked if "claims" in line and "classifier" in line] == []
        assert "which claims an answer makes" in planted.unchecked


def test_equal_rows_are_asked_about_once_and_each_has_its_votes(judges: Any, tmp_path: Path) -> None:
    servers = judges(supports)
    passage = {"id": "p", "lang": "en", "text": "It was built in 1841."}
    row = {"query": "When?", "lang": "en", "reply": "It was built in 1841.", "passages": [passage]}
    rows = [{**row, "id": name} for name in "abc"]
    results = mrag_eval.score(rows, ["grounded"], grounded="panel", output=tmp_path / "out")
    assert len(servers[0].requests) == 1
    scores = read_results([results.path])[0].leaves["rows"].scores
    assert scores.claims is not None
    assert scores.claims.outcomes == {"unanimous": 3}
    (checked_again,) = verify([results.path], Path(mrag_eval.__file__).parent.parent / "tasks")
    assert not [one for one in checked_again.findings if one.kind == "fault"]


def test_other_judges_or_another_prompt_are_another_metric(tasks: Path, tmp_path: Path, judges: Any) -> None:
    judges(supports)
    first = ran(tasks, tmp_path / "a")
    again = ran(tasks, tmp_path / "b")
    assert {one.metric for one in compare([first], [again]).differences} == {"match", *GROUNDED}
    own = tmp_path / "own.jinja"
    asks = '{"label_{{ code }}": "supported", "contradicted" or "not_found", "passage_{{ code }}": 1}'
    shown = '{{ listed(passages, "<passage_#>", "Language: x\n</passage_#>") }}<claim>\n{{ claim }}\n</claim>'
    own.write_text(f"{{% block user %}}{shown}\n{asks}{{% endblock %}}", "utf-8")
    other = ran(tasks, tmp_path / "c", {"grounded": {"by": "panel", "prompt": str(own)}})
    assert {one.metric for one in compare([first], [other]).differences} == {"match"}
    judges(supports, supports)
    more = ran(tasks, tmp_path / "d")
    with pytest.raises(MragError, match="the runs differ in judges"):
        compare([first], [more])
    rules = tmp_path / "gate.yaml"
    rules.write_text(json.dumps({"rules": [{"metric": "grounded", "max_drop": 0.5}]}), "utf-8")
    (check,) = gate([first], [again], read_rules(rules)).checks
    assert "another metric" not in str(check.reason)
    for changed, why in ((other, "grounded is another metric"), (more, "judges")):
        (check,) = gate([first], [changed], read_rules(rules)).checks
        assert why in str(check.reason)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [("grounded",), ("grounded", "wrong_supported"), ()], ids=len)
def test_a_metric_that_one_run_lacks_is_not_another_metric(
    tasks: Path, tmp_path: Path, judges: Any, kept: Sequence[str]
) -> None:
    judges(supports, supports, supports)
    first = ran(tasks, tmp_path / "a")
    judges(supports, supports)
    second = ran(tasks, tmp_path / "b", metrics=("match", *kept))
    gone = [name for name in GROUNDED if name not in kept]
    for one, other, where in ((first, second, "second"), (second, first, "first")):
        found = compare([one], [other], differs=["judges"])
        changed = [note.split("'")[1] for note in found.notes if "another metric" in note]
        assert changed == sorted(kept)
        (lacking,) = (note for note in found.notes if "no value" in note)
        assert lacking.startswith(f"claims: no value in the {where} run for {', '.join(gone)}")
        # who votes, in a line for each metric that both have
        differs = next(iter(found.differs.values()), {})
        own = {f"metric:{name}.judges" for name in kept}
        assert {*differs} == {*own, *({"judges"} if kept else ())}
        assert len({*differs.values()}) <= 1


def test_without_a_judge_a_run_leaves_out_what_the_panel_tells(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.yaml").write_text("{}", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "empty.yaml"))
    out = ran(tasks, tmp_path / "out")
    (file,) = read_results([out])
    assert not {*GROUNDED} & {*file.leaves["claims"].scores.metrics}
    assert "match" in file.leaves["claims"].scores.metrics
    assert verify([out], tasks)[0].findings == ()
    with pytest.raises(MragError, match=r"judge.required is set"):
        ran(tasks, tmp_path / "required", {"grounded": {"by": "panel"}, "required": True})
    with pytest.raises(ConfigError, match="no judge is configured") as error:
        mrag_eval.score(logs.rows_of(logs.own), grounded="panel")
    assert "\n" not in error.value.message


def test_a_plan_counts_the_requests_about_claims(tasks: Path, judges: Any) -> None:
    judges(supports)
    calls = {}
    for metrics, judge in ((["match"], {}), (["match", "grounded"], {"grounded": {"by": "panel"}})):
        task(tasks, metrics, judge)
        plan = plan_for(["claims"], listed_in([tasks]), {})
        calls[len(metrics)] = [cost.calls for cost in plan.costs if cost.role == "judge"]
        assert not [need for need in plan.needs if "classifier" in need.what]
    assert calls[1] == []
    (asked_for,) = calls[2]
    assert asked_for >= 15


def test_a_prompt_that_is_not_there_is_named_before_anything_is_generated(tasks: Path, judges: Any) -> None:
    judges(supports)
    task(tasks, ["grounded"], {"grounded": {"by": "panel", "prompt": "suport"}})
    with pytest.raises(ConfigError, match="suport"):
        build(tasks, "claims")


def test_a_log_is_checked_by_the_panel_with_everything_in_flight(judges: Any, tmp_path: Path) -> None:
    def quarrel(prompt: str) -> str | Reply:
        return Reply("", error="x") if "Olm" in claim_of(prompt)[0] else supports(prompt)

    servers = judges(supports, quarrel)
    rows = logs.rows_of(logs.own)
    results = mrag_eval.score(rows, ["match_unicode", "grounded"], grounded="panel", output=tmp_path / "out")
    (file,) = read_results([results.path])
    scores = file.leaves["rows"].scores
    assert scores.claims is not None
    assert scores.claims.judges["j1"].abstained
    assert scores.failures["grounding"]
    assert len({json.dumps(body) for _, _, body in servers[0].requests}) == sum(scores.claims.outcomes.values())
    with pytest.raises(ConfigError, match="--hash-texts: grounded keeps parts of the texts"):
        mrag_eval.score(rows, ["match_unicode", "grounded"], grounded="panel", hash_texts=True)
    (again,) = verify([results.path], Path(mrag_eval.__file__).parent.parent / "tasks")
    assert not [one for one in again.findings if one.kind == "fault"]


def test_a_log_names_the_settings_of_its_panel_in_one_block(judges: Any, tmp_path: Path) -> None:
    servers = judges(supports, says("not_found"))
    own = tmp_path / "own.jinja"
    asks = 'MINE {"label_{{ code }}": "supported", "contradicted" or "not_found", "passage_{{ code }}": 1}'
    shown = '{{ listed(passages, "<passage_#>", "Language: x\n</passage_#>") }}<claim>\n{{ claim }}\n</claim>'
    own.write_text(f"{{% block user %}}{shown}\n{asks}{{% endblock %}}", "utf-8")
    passage = {"id": "p", "lang": "en", "text": "It was built in 1841."}
    rows = [{"query": "When?", "lang": "en", "reply": "It was built in 1841.", "passages": [passage]}]

    def scored(grounded: Any) -> Any:
        results = mrag_eval.score(rows, ["grounded"], grounded=grounded, output=tmp_path / "out")
        (checked_again,) = verify([results.path], Path(mrag_eval.__file__).parent.parent / "tasks")
        assert not [one for one in checked_again.findings if one.kind == "fault"]
        return read_results([results.path])[0].leaves["rows"].scores

    plain = scored("panel")
    assert plain.metrics["grounded"].value == 0
    for block, values in (
        ({"tie": "incorrect"}, plain.metrics["grounded"]),
        ({"tie": "abstain"}, None),
        ({"panel": ["j0"]}, 1),
        ({"panel": ["j1"], "repeats": 2}, 0),
        ({"prompt": str(own)}, 0),
    ):
        for given in ({"by": "panel", **block}, json.dumps({"by": "panel", **block})):
            scores = scored(given)
            found = scores.metrics.get("grounded")
            assert (None if found is None else found.value) == getattr(values, "value", values)
            assert scores.claims is not None
            assert len(scores.claims.judges) == (1 if block.get("panel") == ["j0"] else 2)
    assert any("MINE" in json.dumps(body) for _, _, body in servers[0].requests)
    for wrong, fault in (
        ('{"by": "panel"', "--grounded: .* is not JSON"),
        ({"by": "panel", "tie": "abstian"}, "tie"),
        ({"by": "panel", "repeats": 0}, "repeats"),
        ({"model": "m", "tie": "abstain"}, "tie"),
        ({"by": "panel", "scale": [0, 1]}, "scale"),
        (5, "grounded"),
    ):
        with pytest.raises(ConfigError, match=fault) as error:
            scored(wrong)
        assert "\n" not in error.value.message


@pytest.mark.parametrize("program", ["mrag-eval", "mine.py"])
@pytest.mark.parametrize("dead", range(4))
def test_a_judge_of_a_log_whose_votes_all_failed_ends_the_command_with_1(
    judges: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    dead: int,
    program: str,
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(_command, "exit_with_1_at_the_end", lambda: ended.append("1"))
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", "score", "log.jsonl", "--grounded", "panel"])
    judges(*[failing()] * dead, *[supports] * (3 - dead))
    # an answer that the log lacks fails the row, and nobody can be asked for it again
    rows = [*logs.rows_of(logs.own), {**logs.rows_of(logs.own)[0], "id": "none", "reply": None}]
    results = mrag_eval.score(rows, ["grounded"], grounded="panel", output=tmp_path / "out")
    assert ended == ["1"] * (dead > 0 and program == "mrag-eval")
    scores = read_results([results.path])[0].leaves["rows"].scores
    assert [judge.model for judge in scores.silent_judges] == [f"m{n}" for n in range(dead)]
    said = [record for record in caplog.records if "failed votes on claims" in record.getMessage()]
    assert [record.levelname for record in said] == ["ERROR"] * (dead > 0)
    again = {"mrag-eval": "mrag-eval score log.jsonl --grounded panel", "mine.py": "the same call"}[program]
    for record in said:
        assert record.getMessage().endswith(f"this repeats the rest: {again}")
        assert "answer of" not in record.getMessage()


def test_replies_about_a_log_that_cannot_be_read_are_kept_and_the_command_says_so(
    judges: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    servers = judges(supports, lambda p: supports(p) if "<claim>" in p and "Olm" not in p else "no comment")
    sent = []
    for name in "ab":
        caplog.clear()
        mrag_eval.score(logs.rows_of(logs.own), ["grounded"], grounded="panel", output=tmp_path / name)
        (said,) = [record.getMessage() for record in caplog.records if "failed: grounding" in record.getMessage()]
        assert "unreadable" in said
        assert said.endswith(LASTING)
        sent.append([len(server.requests) for server in servers])
    assert sent[0] == sent[1]


# ------------------------------------------------------------------ XQuAD


@pytest.mark.parametrize("lang", ["en", "ar", "zh", "hi"])
def test_supported_answers_are_separated_from_those_to_shifted_passages(
    lang: str, test_data: Path, judges: Any, tmp_path: Path
) -> None:
    """The first sentence of a paragraph is shown its own paragraph, or the next one of the article, by whole logs."""
    from mrag_eval.text import sentence_spans

    judges(supports, supports, says("not_found"))
    with gzip.open(test_data / "xquad" / f"xquad.{lang}.json.gz", "rt", encoding="utf-8") as file:
        articles = [[one["context"] for one in article["paragraphs"]] for article in json.load(file)["data"]]
    rows = []
    for n, article in enumerate(articles[:12]):
        for shift in (0, 1):
            start, end = next(sentence_spans(article[0], lang))
            shown = {"id": f"{n}-{shift}", "lang": lang, "text": article[shift]}
            row = {
                "id": f"{n}-{shift}",
                "query": "?",
                "lang": lang,
                "reply": article[0][start:end],
                "passages": [shown],
            }
            rows.append(row)
    results = mrag_eval.score(rows, ["grounded"], grounded="panel", output=tmp_path / "out")
    path = read_results([results.path])[0].samples("rows")
    assert path is not None
    support: dict[str, list[float]] = {"0": [], "1": []}
    for sample in read_samples(path):
        assert sample.record.grounding is not None
        support[sample.record.row[-1]].append(sample.record.grounding.claims[0].support)
    pairs = [(high > low) + 0.5 * (high == low) for high in support["0"] for low in support["1"]]
    assert len(pairs) == 144
    assert sum(pairs) / len(pairs) >= 0.95
