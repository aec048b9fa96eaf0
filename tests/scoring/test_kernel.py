"""A row from what is given to its record: the same is read of the same, whatever the source."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mrag_eval
from mrag_eval.config import Judge, Retrieval
from mrag_eval.core import (
    FATES,
    OUTCOMES,
    Claim,
    Failure,
    Grounding,
    Hit,
    Labels,
    ModelReply,
    RagDoc,
    Ranked,
    Reranking,
    Retrieved,
    Scored,
    Vote,
)
from mrag_eval.judging import Decided, Panel, Recount
from mrag_eval.platform import DataError
from mrag_eval.report import Sample, read_results, read_samples, verify
from mrag_eval.scoring import Given, Missing, Read, RowRecord, Rules, read, records, row_scores, with_claims
from tests.worlds.judges import ScriptedJudge, supports
from tests.worlds.small import ScriptedLM

ROOT = Path(mrag_eval.__file__).resolve().parents[1]
FORMS = ("plain", "tag", "line", "choice", "citation")
LOST = Failure("answer", "m", "timeout", "no reply in 3 s")
SEARCH = Failure("search", "index", "broken")
TOWER = Hit("p", "de", "the old tower of Kiel", 1.0, 1, doc_id="d")
CHOICES = ("Berlin", "Kiel", "Bonn")
PIECES = (
    *("", " ", "Kiel", "1841", "<answer>", "</answer>", "None", "Answer: B", "**Answer:** Kiel", "\n", "B) Kiel"),
    *("<think>", "</think>", "so", "Chosen Option: B) Kiel\n", "Explanation: x", "I do not know.", "“the old tower”"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(max_size=20)
RETRIEVED = st.sampled_from(
    [
        Retrieved(),
        Retrieved(
            (Hit("p", "de", "the old tower of Kiel", 1.0, 1, doc_id="d"),), (Ranked("p", "d", "de", 1.0),), {"de": 4}
        ),
        Retrieved(failures=(SEARCH,)),
        Retrieved(
            (Hit("p", "en", "x", 1.0, 1),), (Ranked("q", "e", "en", 1.0),), {"en": 2}, reranked=Reranking((), "timeout")
        ),
    ]
)
RULES = st.builds(
    Rules,
    metrics=st.just(("match", "acc", "answer_tag", "declined", "option_read", "refused", "copied", "shown@k", "hit@5")),
    form=st.sampled_from(FORMS),
    retrieval=st.sampled_from([None, Retrieval(mode="all", k=5, kind="bm25")]),
    breakdowns=st.sampled_from([(), ("country",)]),
    elsewhere=st.sampled_from([None, frozenset({"the old tower"})]),
)


@st.composite
def rows(draw: st.DrawFn) -> Given:
    choices = draw(st.sampled_from([None, CHOICES]))
    doc = RagDoc("r", "Wo?", "de", ("Kiel",), choices, 1 if choices else None, extra={"country": "DE"})
    reply = ModelReply.of(draw(TEXTS), draw(st.sampled_from(FATES)), LOST)
    likely = bool(choices) and draw(st.booleans())
    values = draw(st.lists(st.floats(-50, 0), min_size=3, max_size=3)) if likely else []
    if likely and reply.came:
        reply = ModelReply("")
    return Given(doc, draw(RETRIEVED), reply, draw(st.booleans()), tuple(values) if reply.came else ())


def sample_of(row: Given, record: RowRecord) -> Sample:
    """Return the row as its line of a sample file is read again."""
    said: list[Any] = [[str(value), "False"] for value in row.likelihoods] or [str(row.reply)]
    line = json.loads(json.dumps({"doc": row.doc.to_dict(), "filtered_resps": said, "rows": record.to_dict()}))
    return Sample(RowRecord.from_dict(line["rows"]), line)


def as_read(one: Read) -> tuple[Any, ...]:
    assert one.given.reply is not None
    return one.row, one.answer, one.outcome, one.given.reply.fate, one.given.offered


@settings(max_examples=120)
@given(row=rows(), rules=RULES)
def test_the_same_is_read_of_the_same_and_of_its_sample(row: Given, rules: Rules) -> None:
    one = read(row, rules)
    assert as_read(one) == as_read(read(row, rules))
    (record,) = records([one], [one.row], rules)
    sample = sample_of(row, record)
    again = sample.given(row.doc, row.retrieved)
    assert (again.reply, again.offered, again.likelihoods) == (row.reply, row.offered, row.likelihoods)
    other = read(again, rules)
    assert as_read(other) == as_read(one)
    assert records([other], [other.row], rules) == [record]
    # later judges read it without the prompt's form
    blind = read(again, Rules(form=Missing("not here"))).row
    assert (blind.answer, blind.tagged, blind.declined) == (one.row.answer, one.row.tagged, one.row.declined)


@settings(max_examples=120)
@given(row=rows(), rules=RULES)
def test_what_is_read_is_the_reply_and_its_fate(row: Given, rules: Rules) -> None:
    one = read(row, rules)
    reply, seen = row.reply, one.row
    assert reply is not None
    assert (seen.doc, seen.ranking, seen.reranked) == (row.doc, row.retrieved.ranking, row.retrieved.reranked)
    assert (seen.passages, seen.elsewhere) == (row.retrieved.passages, rules.elsewhere)
    lost = () if reply.failure is None else (LOST,)
    assert seen.failures == (*row.retrieved.failures, *lost)
    (record,) = records([one], [seen], rules)
    assert (record.fate, record.offered, record.failures) == (reply.fate, row.offered, seen.failures)
    if not reply.came:
        # nothing is read where nothing came, and that is no outcome of the model
        assert (seen.answer, one.outcome, record.outcome) == ("", None, None)
        assert not record.values.keys() & {"match", "acc", "refused"} or not seen.failures
    elif row.likelihoods:
        best = max(range(3), key=lambda i: row.likelihoods[i])
        assert seen.answer == f"{'ABC'[best]}) {CHOICES[best]}"
        assert one.answer is not None
        assert (one.answer.text, one.answer.loglikelihoods) == (seen.answer, row.likelihoods)
        assert one.outcome is None
    else:
        assert seen.form == rules.form
        assert (seen.declined is not None) == (rules.form == "tag" and row.offered)
        assert (seen.tagged is not None) == (rules.form == "tag")
        if reply.outcome is not None:
            assert one.outcome == reply.outcome
        else:
            assert (one.outcome in OUTCOMES) == (not seen.answer.strip())


def test_a_row_that_asks_for_no_reply_has_none() -> None:
    found = Retrieved((), (Ranked("d", "d", "de", 1.0),), {"de": 3})
    rules = Rules(("hit@5",), "tag", Retrieval(mode="all", kind="bm25"))
    one = read(Given(RagDoc("r", "?", "de", relevant_ids=("d",)), found), rules)
    (record,) = records([one], [one.row], rules)
    assert (one.row.tagged, one.outcome, one.answer) == (None, None, None)
    assert (record.values, record.fate, record.retrieved) == ({"hit@5": 1.0}, None, 1)
    assert "fate" not in record.to_dict()


def test_of_a_step_that_failed_nothing_is_counted() -> None:
    """A relevant passage was found, and none is shown; a reranker that failed may have kept it."""
    places, doc = (Ranked("d", "d", "de", 1.0),), RagDoc("r", "?", "de", relevant_ids=("d",))
    for failures, counted_as in (
        ((), (1, 0)),
        ((Failure("rerank", "m", "server"),), (1, None)),
        ((SEARCH,), (None, None)),
    ):
        one = read(Given(doc, Retrieved((), places, {"de": 3}, failures=failures)), Rules(()))
        (record,) = records([one], [one.row], Rules(()))
        assert (record.languages is None) == (counted_as[0] is None)
        assert (record.retrieved, record.kept) == counted_as


def test_values_that_cannot_be_computed_here_are_left_to_the_caller() -> None:
    rules = Rules(("match", "acc"), missing={"acc": Missing("no options here")})
    one = read(Given(RagDoc("r", "?", "de", ("Kiel",), CHOICES, 1), reply=ModelReply("Kiel")), rules)
    (scores,) = row_scores([one.row], rules)
    assert (scores.values, scores.unscored) == ({"match": 1.0}, {})


def test_a_choice_is_read_from_a_reply_that_was_cut_off_only_if_it_is_announced() -> None:
    doc = RagDoc("r", "?", "de", choices=("Kiel", "Rom"), gold_choice=0)
    for text, cut, whole in (("Die Antwort ist A, weil", 1.0, 1.0), ("Kiel liegt an der", 0.0, 1.0)):
        for cut_off, parsed in ((True, cut), (False, whole)):
            reply = ModelReply(text)
            reply.cut_off = cut_off
            rules = Rules(("acc", "choice_parsed"))
            one = read(Given(doc, reply=reply), rules)
            (record,) = records([one], [one.row], rules)
            assert record.values == {"acc": parsed, "choice_parsed": parsed}
            assert record.fate == ("cut off" if cut_off else "replied")


def test_the_first_of_equally_likely_options_is_chosen() -> None:
    doc = RagDoc("r", "?", "de", ("Kiel",), CHOICES, 1)
    one = read(Given(doc, reply=ModelReply(""), likelihoods=(-2.0, -1.0, -1.0)), Rules())
    assert one.row.answer == "B) Kiel"


def test_what_is_between_the_marks_of_the_model_is_no_answer() -> None:
    reply = ModelReply("[[Berlin? No.]] Kiel")
    for own, answer in ((None, "[[Berlin? No.]] Kiel"), (("[[", "]]"), "Kiel")):
        for form in ("plain", "line"):
            one = read(Given(RagDoc("r", "?", "de", ("Kiel",)), reply=reply), Rules(form=form, thinking=own))
            assert one.row.answer == answer
    alone = read(Given(RagDoc("r", "?", "de", ("Kiel",)), reply=ModelReply("[[Berlin?")), Rules(thinking=("[[", "]]")))
    assert alone.outcome == "thinking cut"


def test_a_reply_that_declines_where_an_option_is_asked_for_is_a_refusal() -> None:
    facts = {"territory": "X", "claimants": ["A", "B"], "claimant_langs": ["en", "de"], "controller": "A"}
    doc = RagDoc("r", "?", "en", choices=("A", "B"), extra={**facts, "controller_lang": "en", "control_query": "q"})
    for text, outcome in (("I cannot answer this question.", "refusal"), ("A) A", None)):
        one = read(Given(doc, reply=ModelReply(text)), Rules(("concurrence",)))
        (record,) = records([one], [one.row], Rules(("concurrence",)))
        assert (one.outcome, record.outcome) == (None, outcome)


@pytest.mark.parametrize(("said", "kept"), [("Kiel", None), ("Kiel city", "Kiel city"), (None, None)])
def test_a_translation_is_recorded_where_it_is_another_text(said: str | None, kept: str | None) -> None:
    one = read(Given(RagDoc("r", "?", "de", ("Kiel",)), reply=ModelReply("Kiel")), Rules())
    (row,) = Recount(Judge()).of([one.row], [Decided(translated=said)])
    (record,) = records([one], [row], Rules())
    assert record.answer_translated == kept
    assert ("answer_translated" in record.to_dict()) is (kept is not None)


def test_the_languages_of_question_and_context_are_not_taken_from_a_key_of_the_row() -> None:
    found = Retrieved((TOWER,), (Ranked("p", "d", "de", 1.0),), {"de": 1})
    doc = RagDoc("r", "?", "en", ("Kiel",), extra={"context_pair": "mine", "country": "DE"})
    rules = Rules(breakdowns=("context_pair", "country", "nothing"))
    (record,) = records([one := read(Given(doc, found, ModelReply("Kiel")), rules)], [one.row], rules)
    assert record.cell == {"query_lang": "en", "context_pair": "en->de", "country": "DE"}


def test_a_row_is_counted_at_the_first_and_at_the_last_place_of_a_supporting_passage() -> None:
    shown = [Hit(f"p{rank}", "de", "x", 1.0, rank, is_gold=rank in (2, 4)) for rank in range(1, 6)]
    (record,) = records(
        [one := read(Given(RagDoc("r", "?", "de"), Retrieved(tuple(shown))), Rules())], [one.row], Rules()
    )
    assert record.gold_positions == (2, 4)
    assert record.cell == {"query_lang": "de", "gold_first": "2", "gold_last": "4"}


@pytest.mark.parametrize(
    ("found", "counted"),
    [
        (Retrieved((TOWER,), (Ranked("p", "d", "de", 1.0),), {"de": 1}), (1, 1)),
        (Retrieved((), (Ranked("p", "d", "de", 1.0),), {"de": 1}), (1, 0)),
        # a quota took it from below the list
        (Retrieved((TOWER,), (Ranked("q", "e", "de", 1.0),), {"de": 1}), (1, 1)),
        # what was withheld says nothing of the search
        (Retrieved((TOWER,), (Ranked("p", "d", "de", 1.0),), {"de": 1}, withheld=True), (None, None)),
        (Retrieved((TOWER,), (Ranked("p", "d", "de", 1.0),), {"de": 1}, withheld=False), (1, 1)),
    ],
)
def test_a_relevant_passage_is_counted_where_it_was_found_and_where_it_was_kept(
    found: Retrieved, counted: tuple[int | None, int | None]
) -> None:
    doc = RagDoc("r", "?", "de", ("Kiel",), relevant_ids=("d",))
    rules = Rules(retrieval=Retrieval(mode="all", kind="bm25"))
    (record,) = records([one := read(Given(doc, found, ModelReply("Kiel")), rules)], [one.row], rules)
    assert (record.retrieved, record.kept) == counted


@pytest.mark.parametrize(
    ("second", "recorded"),
    [
        (None, None),
        (Reranking(()), None),
        (Reranking((), "timeout"), (0, "timeout")),
        (Reranking((), None, 3), (3, None)),
    ],
)
def test_a_second_stage_is_recorded_where_it_asked_or_failed(second: Reranking | None, recorded: Any) -> None:
    found = Retrieved((TOWER,), (Ranked("p", "d", "de", 1.0),), {"de": 1}, reranked=second)
    one = read(Given(RagDoc("r", "?", "de", ("Kiel",)), found, ModelReply("Kiel")), Rules())
    (record,) = records([one], [one.row], Rules())
    assert (None if record.rerank is None else (record.rerank.lists, record.rerank.fault)) == recorded


# ------------------------------------------------------------------ what is decided


LATE = Vote(None, error="timeout: 5 s")
VOTES = {
    "j1": Vote(True),
    "j2": Vote(False),
    "j3": Vote(None, error="timeout: 3 s, first"),
    "j4": Vote(None, error="timeout: 9 s"),
}
ON_CLAIM = {**VOTES, "j1": Vote("supported", passage=1), "j2": Vote("not_found")}
DECIDED = Decided(
    VOTES,
    VOTES,
    Grounding(
        "de",
        (
            Claim(0, 2, None, 0.0, votes=ON_CLAIM),
            Claim(2, 4, None, 0.0, votes={"j1": LATE}),
        ),
    ),
    Labels("judge", votes={"j1": (1,), "j2": "timeout: 7 s", "j3": "timeout: 8 s"}),
    untranslated="translation of answers failed (timeout)",
    failures=(Failure("translation", "t", "timeout", "2 s", "answers"),),
)


def counted(decided: Decided, tie: str = "incorrect") -> Scored:
    doc = RagDoc("r", "?", "de", ("Kiel",))
    row = read(
        Given(
            doc,
            Retrieved((Hit("p", "de", "x", 1.0, 1),), (Ranked("p", "d", "de", 1.0),), failures=(SEARCH,)),
            ModelReply("Kiel"),
        ),
        Rules(),
    ).row
    return Recount(Judge(tie=tie)).of([row], [decided])[0]  # type: ignore[arg-type]


def test_every_failure_keeps_its_words_in_one_order() -> None:
    # two of the same kind differ in their words alone
    said = [(one.stage, one.model, one.detail) for one in counted(DECIDED).failures]
    votes = [("judge", "j3", "3 s, first"), ("judge", "j4", "9 s")]
    assert said == [
        ("search", "index", ""),
        ("translation", "t", "2 s"),
        *votes,
        *votes,
        *[("grounding", seat, words) for _, seat, words in votes],
        ("grounding", "j1", "5 s"),
        ("label", "j2", "7 s"),
        ("label", "j3", "8 s"),
    ]


def test_it_does_not_matter_whether_stages_are_counted_together_or_one_after_another() -> None:
    whole = counted(DECIDED)
    assert whole.untranslated == DECIDED.untranslated
    row = counted(Decided())
    parts = (
        Decided(untranslated=DECIDED.untranslated, failures=DECIDED.failures),
        Decided(answer=VOTES),
        Decided(passages=VOTES),
        Decided(claims=DECIDED.claims),
        Decided(labels=DECIDED.labels),
    )
    for part in parts:
        (row,) = Recount(Judge()).of([row], [part])
    assert row == whole
    # and nothing that was not asked is decided
    assert Recount(Judge()).of([row], [Decided()]) == [row]


def test_of_labels_that_abstained_the_reason_is_kept_and_the_failure_has_the_words() -> None:
    row = counted(DECIDED)
    assert row.labels is not None
    assert row.labels.votes == {"j1": (1,), "j2": "timeout", "j3": "timeout"}
    assert row.labels.fault == "relevance: no majority: 2 of 3 judges gave no verdict"


def test_claims_that_were_judged_before_leave_nothing_behind() -> None:
    one = read(Given(RagDoc("r", "?", "de", ("Kiel",)), Retrieved((TOWER,)), ModelReply("Kiel")), Rules())
    (plain,) = records([one], [one.row], Rules())
    judged = with_claims(plain, DECIDED.claims, (TOWER,))
    assert judged.cell == {**plain.cell, "answer_evidence": "de->de"}
    assert with_claims(judged, None, (TOWER,)) == with_claims(plain, None, (TOWER,)) == plain


# ------------------------------------------------------------------ sources


def calls(name: str) -> Iterator[tuple[str, int]]:
    for folder in ("mrag_eval", "metrics", "retrievers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text("utf-8")
            for node in ast.walk(ast.parse(text)) if name in text else ():
                called = node.func if isinstance(node, ast.Call) else None
                if name in (getattr(called, "id", None), getattr(called, "attr", None)):
                    yield path.relative_to(ROOT).as_posix(), node.lineno


def test_one_module_makes_the_input_of_metrics_and_scores_it() -> None:
    for name in ("Scored", "score_rows", "parse_answer", "outcome_of"):
        assert [path for path, _ in calls(name)] == ["mrag_eval/scoring/_kernel.py"], name
    # only a row of controls, which no model answers, is recorded without being read
    assert {path for path, _ in calls("row_record")} == {"mrag_eval/scoring/_kernel.py", "mrag_eval/task/_hook.py"}


REPLIES: dict[str, str] = {
    **{f"plain-{i}": text for i, text in enumerate(("Kiel", "<answer>Kiel</answer>", "<answer>None</answer>", ""))},
    **{f"thought-{i}": text for i, text in enumerate(("<think>so", "<think>so</think>Answer: Kiel", "Answer: Kiel"))},
}


def as_given() -> dict[str, ModelReply]:
    """Return replies of every fate."""
    out = {name: ModelReply(text) for name, text in REPLIES.items()}
    out |= {fate: ModelReply.of("Kiel, or not", fate, LOST) for fate in FATES if fate != "not asked"}
    return out


class Says(ScriptedLM):
    """A model that replies with what each question asks for, and with what a provider says of it."""

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        said = as_given()
        return [next(reply for name, reply in said.items() if f"[{name}]" in str(one.args[0])) for one in requests]


@pytest.mark.parametrize("form", ["plain", "tag", "line"])
def test_a_run_a_log_and_their_samples_say_the_same(form: str, tmp_path: Path) -> None:
    from tests.worlds.finished_runs import run
    from tests.worlds.small import BASE, write_task

    questions = [
        {"id": name, "query": f"Which town? [{name}]", "lang": "en", "answers": ["Kiel"]} for name in as_given()
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in questions), "utf-8")
    metrics = ["match", "answer_tag", "declined", "refused"]
    keys = {**BASE, "metrics": metrics, "retrieval": {"mode": "no_ir"}, "prompt": {"answer": form}}
    write_task(tmp_path, "asked", **keys, data={"benchmark": "jsonl", "path": str(path)})
    run(tmp_path, ["asked"], str, {}, include=tmp_path, lm=Says(str))
    said = as_given()
    log = [{**one, "reply": said[str(one["id"])]} for one in questions]
    mrag_eval.score(log, metrics, answer=form, task="asked", model="m", output=tmp_path / "log")
    seen = []
    for folder in ("out", "log"):
        (file,) = read_results([tmp_path / folder])
        samples = read_samples(next((tmp_path / folder).rglob("samples_*.jsonl")))
        faults = [found.text for found in verify([file.path], tmp_path)[0].of("fault")]
        # of a model that nobody asked over our transport no provider says how its replies ended
        assert all(text.startswith(("fate of 4", "outcome of 3")) for text in faults if folder == "out")
        assert folder == "out" or not faults
        seen.append({one.record.row: one for one in samples})
    for name, ran in seen[0].items():
        logged = seen[1][name].record
        keep = ("fate", "outcome")
        assert [getattr(ran.record, part) for part in keep] == [getattr(logged, part) for part in keep], name
        assert ran.record.fate == said[name].fate
        assert [one.reason for one in ran.record.failures] == [one.reason for one in logged.failures]
        if form != "tag":
            # a log without contexts may pass a question on, this prompt does not offer it
            assert (ran.record.answer, ran.record.values) == (logged.answer, logged.values), name
            assert ran.record.unscored == logged.unscored


# ------------------------------------------------------------------ bad input


ROW = {"query": "Where?", "lang": "en", "answers": ["Kiel"], "reply": "Kiel"}


@pytest.mark.parametrize(
    ("fate", "said"), [(None, "is missing"), ("gone", "is 'gone', not one of replied, cut off, refusal")]
)
def test_a_sample_without_the_fate_of_its_reply_is_refused_in_a_line(
    fate: str | None, said: str, tmp_path: Path
) -> None:
    mrag_eval.score([ROW], ["match"], output=tmp_path)
    path = next(tmp_path.glob("samples_*.jsonl"))
    line = json.loads(path.read_text("utf-8"))
    del line["rows"]["fate"]
    line["rows"] |= {} if fate is None else {"fate": fate}
    path.write_text(json.dumps(line) + "\n", "utf-8")
    with pytest.raises(DataError) as refused:
        verify([tmp_path], tmp_path)
    assert refused.value.message.startswith(f"{path}, line 1: 'rows.fate' {said}")


def test_a_fate_that_the_failures_contradict_is_a_fault(tmp_path: Path) -> None:
    mrag_eval.score([ROW], ["match"], output=tmp_path)
    path = next(tmp_path.glob("samples_*.jsonl"))
    text = path.read_text("utf-8")
    for fate in [name for name in FATES if name != "replied"]:
        line = json.loads(text)
        line["rows"]["fate"] = fate
        path.write_text(json.dumps(line) + "\n", "utf-8")
        (found,) = verify([tmp_path], tmp_path)
        assert found.of("fault"), fate


def test_a_panel_is_asked_about_a_log_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = ScriptedJudge(supports)
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: Panel({"j": judge}))  # type: ignore[dict-item]
    shown = [{"id": "p", "text": "The tower of Kiel is old."}]
    log = [{**ROW, "id": f"r{number}", "passages": shown} for number in range(501)]
    results = mrag_eval.score(log, ["grounded"], output=tmp_path, grounded="panel")
    (file,) = read_results([results.path])
    samples = read_samples(next(tmp_path.glob("samples_*.jsonl")))
    # the calls of each batch are counted with its first row, and together in the scores
    shares = [one.record.row for one in samples if one.record.claims_panel is not None]
    assert shares == ["r0", "r500"]
    table = file.leaves["rows"].scores.claims
    assert table is not None
    assert sum(ledger.calls for ledger in table.ledger.values()) == len(judge.asked) == 501
    assert not verify([file.path], tmp_path)[0].of("fault")


def test_of_no_passages_none_are_judged_and_no_vote_counts() -> None:
    row = read(Given(RagDoc("r", "?", "de"), reply=ModelReply("Kiel")), Rules()).row
    (done,) = Recount(Judge()).of([row], [Decided(passages={"j1": Vote(True)})])
    assert done.sufficiency is not None
    assert (done.sufficiency.verdict, done.sufficiency.outcome, done.sufficiency.votes) == (False, "empty", {})


@pytest.mark.parametrize("fate", FATES)
def test_each_fate_is_kept_with_the_reply_and_in_the_record(fate: str) -> None:
    # a filter may make a text even of a reply that never came
    reply = ModelReply.of("B) Kiel", fate, LOST).with_text("B) Kiel")
    assert reply.fate == fate
    assert reply.outcome == (fate if fate in OUTCOMES else None)
    assert reply.failure == (LOST if fate == "failed" else None)
    doc = RagDoc("r", "?", "de", ("Kiel",), CHOICES, 1)
    one = read(Given(doc, Retrieved(failures=(SEARCH,)), reply), Rules(("acc",)))
    (record,) = records([one], [one.row], Rules(("acc",)))
    assert one.row.answer == ("" if fate in ("failed", "not asked") else "B) Kiel")
    assert (record.fate, record.outcome) == (fate, reply.outcome)
    assert record.failures == ((SEARCH, LOST) if fate == "failed" else (SEARCH,))
    # nor is an option, whatever likelihoods a sample has beside it
    likely = read(Given(doc, reply=reply, likelihoods=(-3.0, -1.0, -2.0)), Rules(("acc",)))
    assert likely.row.answer == ("" if fate in ("failed", "not asked") else f"B) {CHOICES[1]}")


def test_answers_that_settle_themselves_have_no_votes_counted() -> None:
    asked = RagDoc("r", "?", "de", ("Kiel",))
    rows = {
        "declined": read(Given(asked, reply=ModelReply("<answer>None</answer>"), offered=True), Rules(form="tag")).row,
        "empty": read(Given(asked, reply=ModelReply(" ")), Rules()).row,
        "no reference": read(Given(RagDoc("r", "?", "de"), reply=ModelReply("Kiel")), Rules()).row,
        "unanimous": read(Given(asked, reply=ModelReply("Kiel")), Rules()).row,
    }
    done = Recount(Judge()).of([*rows.values()], [Decided(answer={"j1": Vote(True)})] * 4)
    assert [row.judgement.outcome for row in done if row.judgement is not None] == [*rows]
    assert [bool(row.judgement.votes) for row in done if row.judgement is not None] == [False, False, False, True]


def test_failures_are_in_the_order_of_the_stages_whoever_was_asked_first() -> None:
    late, early = Failure("label", "t", "no translation"), Failure("translation", "t", "timeout", "", "answers")
    assert counted(Decided(answer=VOTES, failures=(late, early))).failures[1::3] == (early, late)
