"""Logs of systems that are there already: shapes, formats, what is wrong in them, and what reads the results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval import MragError, Results, score
from mrag_eval._front import Log, _survey, log_lines, measured_names, read_log
from mrag_eval._front._score import _indented
from mrag_eval.cli import main
from mrag_eval.config import GROUNDED, judged_metrics
from mrag_eval.core import MARKS
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import (
    gate,
    gate_lines,
    load_results,
    read_results,
    read_rules,
    read_samples,
    starter_rules,
    verify,
)
from mrag_eval.scoring import METRICS
from mrag_eval.systems import FIELDS, PASSAGE, decoded
from tests.worlds import logs
from tests.worlds.labelled import CONTEXTS, NO, OPEN, QUESTIONS, SENTENCES, YES, memerag, psiloqa
from tests.worlds.logs import COLUMNS, TURNS, Turn, rows_of, write_log

TASKS = Path(__file__).parents[2] / "tasks"


def found(results: Results) -> dict[str, dict[str, Any]]:
    """Return what the samples hold of each row, by id."""
    (file,) = read_results([results.path])
    path = file.samples("rows")
    assert path is not None
    return {
        one.record.row: {
            "values": one.record.values,
            "unscored": one.record.unscored,
            "cell": one.record.cell,
            "question": one.doc.query,
            "answers": one.doc.answers,
            "reply": one.reply,
            "passages": [(hit.id, hit.lang, hit.text) for hit in one.passages],
        }
        for one in read_samples(path)
    }


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, Any]]:
    return found(score(rows_of(logs.own)))


# ------------------------------------------------------------------ shapes


@pytest.mark.parametrize("name", [*logs.SHAPES, "described"])
def test_the_same_rows_in_every_shape_give_the_same_results(name: str, expected: Mapping[str, Any]) -> None:
    described = name == "described"
    rows = rows_of(logs.described if described else logs.SHAPES[name])
    results = score(rows, columns=COLUMNS if described else None)
    assert found(results) == expected
    (checked,) = verify([results.path], TASKS)
    assert checked.of("fault") == []


@pytest.mark.parametrize("first", ["without its answer", "with null", "with NaN"])
@pytest.mark.parametrize("name", [name for name in logs.SHAPES if "OpenInference" not in name])
def test_the_first_row_need_not_have_an_answer(name: str, first: str) -> None:
    rows = rows_of(logs.SHAPES[name])
    lists = {"Haystack": "answers", "Haystack, a pipeline": "llm", "OpenAI": "choices"}
    place = lists.get(name) or Log.of(rows).mapping["answer"]
    value = None if first == "with null" else float("nan")
    without = {key: part for key, part in rows[0].items() if key != place}
    log = Log.of([without if first == "without its answer" else {**without, place: value}, *rows[1:]])
    assert [row.get("reply") is None for _, row in log.rows()] == [True, *[False] * (len(rows) - 1)]


# MEMERAG's rows are told by their answers alone.
@pytest.mark.parametrize("name", [*logs.SHAPES, "BERGEN", "PsiloQA"])
def test_a_cell_without_a_value_is_missing_wherever_it_stands(name: str) -> None:
    import pandas as pd

    made = {"BERGEN": logs.bergen, "PsiloQA": lambda _: [psiloqa("a", "de", " Sie mahlt Roggen.", [])]}
    rows = (logs.SHAPES | made)[name](TURNS[0])
    heads = {path.partition(".")[0] for paths in Log.of(rows).reading.paths.values() for path in paths}
    for key in [key for key in rows[0] if key in heads and key not in ("attributes", "metadata", "context")]:
        for missing in (float("nan"), np.float32("nan"), pd.NA, pd.NaT):
            changed, wanted = ([*rows, {**rows[0], "id": "last", key: value}] for value in (missing, None))
            assert list(Log.of(changed).rows()) == list(Log.of(wanted).rows()), key


def test_a_frame_its_rows_and_its_files_give_the_same(tmp_path: Path) -> None:
    import pandas as pd

    rows = [{**row, "retrieved_contexts": np.array(row["retrieved_contexts"])} for row in rows_of(logs.ragas)]
    rows = [{**row, "retrieved_context_ids": np.array(row["retrieved_context_ids"])} for row in rows]
    frame = pd.DataFrame(rows)
    frame.loc[0, "response"], frame.loc[1, "reference"] = None, np.nan
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    pd.read_parquet(tmp_path / "log.parquet").to_csv(tmp_path / "again.csv", index=False)
    wanted = found(score(frame))
    assert [row["reply"] == "" for row in wanted.values()] == [True, *[False] * 4]
    for other in (frame.to_dict("records"), *sorted(tmp_path.iterdir())):
        assert found(score(other)) == wanted, other


def test_two_logs_of_one_model_are_two_systems_and_one_scored_twice_is_one(tmp_path: Path) -> None:
    rows = rows_of(logs.ragas)
    # other words, and no other score
    other = [{**row, "response": f"{row['response']} Indeed."} for row in rows]
    passages = [{**row, "retrieved_contexts": row["retrieved_contexts"][:1]} for row in rows]
    for name, log in (("one", rows), ("two", other), ("three", passages), ("again", rows)):
        score(log, output=tmp_path / name, model="m", metrics="match", task="qa")
    told = set(load_results(tmp_path)["task"])
    assert sorted(re.sub(r" [\d: -]+\)$", "", label) for label in told) == ["qa (again", "qa (three", "qa (two"]


@pytest.mark.parametrize("name", [*logs.SHAPES, "described"])
@pytest.mark.parametrize("text", ['["Paris", "Lyon"]', "[2, 3, 5]", "[1841]", "[]", "['a' 'b']", "{1, 2}", "[[1], {}]"])
def test_an_answer_that_looks_like_a_list_is_a_text(name: str, text: str) -> None:
    make = logs.described if name == "described" else logs.SHAPES[name]
    rows = make(replace(TURNS[0], answer=text))
    ((_, row),) = Log.of(rows, COLUMNS if name == "described" else None).rows()
    assert row["reply"] == text
    if name == "described":
        # the user says that it is one, and an object of unknown keys is one as well
        (found,) = make(replace(TURNS[0], answer='{"city": "Varn"}'))
        assert next(Log.of([found], COLUMNS).rows())[1]["reply"] == '{"city": "Varn"}'


# Answers as models that think, cite and call tools write them.
PARTS: dict[str, list[Any]] = {
    "texts": [{"type": "text", "text": "It was built "}, {"type": "text", "text": "in 1841."}],
    "a thought": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "It was built in 1841."}],
    "a thought last": [{"type": "text", "text": "It was built in 1841."}, {"type": "reasoning", "summary": []}],
    "citations": [{"type": "text", "text": "It was built ", "citations": [{"cited_text": "a"}]}, "in 1841."],
    "annotations": [{"type": "output_text", "text": {"value": "It was built in 1841.", "annotations": []}}],
    "turns": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "It was built in 1841."}],
    "a turn of parts": [
        {"type": "reasoning", "content": []},
        {"type": "message", "content": [{"type": "text", "text": "It was built "}, "in 1841."]},
    ],
    "a dumped message": [{"type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "It was built in 1841."}}],
}


@pytest.mark.parametrize("name", ["ragas", "deepeval", "LangChain", "LangChain, a chain", "LlamaIndex", "described"])
@pytest.mark.parametrize("kind", PARTS)
def test_an_answer_in_parts_is_all_of_them_in_every_shape(name: str, kind: str) -> None:
    (row,) = (logs.described if name == "described" else logs.SHAPES[name])(TURNS[0])
    columns = COLUMNS if name == "described" else None
    place = Log.of([row], columns).mapping["answer"]
    for value in (PARTS[kind], {"messages": PARTS[kind]}):
        for encoded in (False, True) if name == "described" else (False,):
            ((_, own),) = Log.of([{**row, place: json.dumps(value) if encoded else value}], columns).rows()
            if not (encoded and kind == "citations" and isinstance(value, list)):
                assert own["reply"] == "It was built in 1841."


@pytest.mark.parametrize("name", [name for name in logs.SHAPES if "OpenInference" not in name])
def test_an_empty_context_is_none(name: str) -> None:
    wanted = logs.SHAPES[name](TURNS[0])
    log = Log.of(wanted)
    for empty in ("", "  ", None, float("nan"), {"text": ""}, {"text": None, "score": 0.2}):
        rows = logs.SHAPES[name](TURNS[0])
        # behind the others, whose ids may stand in a list of their own
        log.reading.found(rows[0], "contexts")[1].append(empty)
        assert list(Log.of(rows).rows()) == list(log.rows())
    rows = logs.SHAPES[name](TURNS[0])
    _, shown = log.reading.found(rows[0], "contexts")
    shown[:] = ["", *(np.array([text for _, text in TURNS[0].contexts], dtype=object))]
    rows[0].pop("retrieved_context_ids", None)
    assert [item["text"] for item in next(Log.of(rows).rows())[1]["passages"]] == [
        text for _, text in TURNS[0].contexts
    ]


_KINDS = {
    "LLM": ({"messages": [{"role": "user", "content": "Answer."}], "model": "m"}, {"choices": []}),
    "EMBEDDING": ({"model": "e", "input": ["When?"]}, {"data": []}),
    "TOOL": ({"city": "Varn"}, {"weather": "sunny"}),
    "RETRIEVER": ({"k": 5}, {"documents": [{"document": {"content": "x"}}]}),
    "RERANKER": ([1, 2], []),
}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("name", [name for name in logs.SHAPES if "OpenInference" in name])
def test_of_the_spans_of_a_trace_only_the_outermost_needs_texts(kind: str, encoded: bool, name: str) -> None:
    rows = logs.SHAPES[name](TURNS[0])
    given, said = (json.dumps(value) if encoded else value for value in _KINDS[kind])
    child = {
        "OpenInference": {"attributes": {"input.value": given, "output.value": said}},
        "OpenInference, a frame": {"attributes.input.value": given, "attributes.output.value": said},
        "OpenInference, Langfuse": {"metadata": {"attributes": {}}, "input": given, "output": said},
    }[name]
    child |= {"context": {"trace_id": "q1"}, "parent_id": "a"}
    for place in range(len(rows) + 1):
        ((_, row),) = Log.of([*rows[:place], child, *rows[place:]]).rows()
        assert row == next(Log.of(rows).rows())[1]
    outermost = {**child, "parent_id": None}
    if kind != "RERANKER" or not encoded:
        with pytest.raises(DataError, match="holds no text"):
            list(Log.of([outermost]).rows())


@pytest.mark.parametrize("name", [name for name in logs.SHAPES if "OpenInference" in name])
def test_two_questions_in_one_trace_are_refused(name: str) -> None:
    first, second = (logs.SHAPES[name](replace(turn, id="q1")) for turn in TURNS[:2])
    with pytest.raises(DataError, match=r"rows\[\d\]: trace 'q1' has two outermost spans, the first is rows\[\d\]"):
        list(Log.of([*first, *second]).rows())
    assert len(list(Log.of([*first, *first]).rows())) == 1


def test_an_address_is_no_text_of_a_context() -> None:
    (row,) = logs.openai(TURNS[0])
    row["choices"][0]["message"].pop("context")
    row["citations"] = ["https://a.org/x", "see https://b.org"]
    shown = {"title": "A", "url": "https://a.org/x"}
    searched = [shown, {**shown, "snippet": "Built in 1841."}]
    read = [next(Log.of([{**row, **more}]).rows())[1]["passages"] for more in ({}, {"search_results": searched})]
    assert read == [
        [{"id": "https://a.org/x"}, {"text": "see https://b.org"}],
        [{"title": "A", "id": "https://a.org/x"}, {"title": "A", "text": "Built in 1841."}],
    ]


def test_an_extracted_answer_has_its_document() -> None:
    document = {"id": "p1", "content": "Varn."}
    row = {"answers": [{"data": "Varn", "query": "Where?", "document": document, "score": 0.9}]}
    assert next(Log.of([row]).rows())[1]["passages"] == [{"id": "p1", "text": "Varn."}]


def test_contexts_of_our_own_may_be_plain_texts() -> None:
    rows = [{**row, "passages": [item["text"] for item in row["passages"]]} for row in rows_of(logs.own)]
    plain = [
        {key: value for key, value in row.items() if key != "retrieved_context_ids"} for row in rows_of(logs.ragas)
    ]
    assert found(score(rows)) == found(score(plain))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_list_is_read_as_pandas_json_and_numpy_print_it(texts: list[str]) -> None:
    numbered = [{"id": n, "text": text} for n, text in enumerate(texts)]
    with np.printoptions(threshold=1 << 20):
        for value in (texts, numbered, list(range(len(texts)))):
            printed = [str(value), json.dumps(value), str(np.array(value, dtype=object)), str(np.array(value))]
            assert [decoded(text) for text in printed] == [value] * 4
    assert decoded("[np.str_('a'), np.int64(3), nan]") == ["a", 3, None]
    for text in ("[1] Varn", "[a b]", "{'a' 'b'", "['a", "[note] the 'text' 'here'"):
        assert decoded(text) == text


_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).map(lambda text: f"w{text}")
_TURN = st.builds(
    Turn,
    st.just("q1"),
    _TEXT,
    _TEXT,
    st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(tuple),
    _TEXT,
)


@given(_TURN)
@settings(max_examples=60, deadline=None)
def test_any_texts_come_out_of_every_shape_as_they_went_in(turn: Turn) -> None:
    wanted: dict[str, Any] = {"query": turn.question, "reply": turn.answer, "answers": [turn.reference]}
    for make in logs.SHAPES.values():
        ((_, row),) = Log.of(make(turn)).rows()
        passages = [(item["id"], item["text"]) for item in row["passages"]]
        assert ({key: row[key] for key in wanted}, passages) == (wanted, list(turn.contexts))
        assert str(row["id"]) == turn.id


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_every_format_of_a_file_gives_the_same(ending: str, tmp_path: Path, expected: Mapping[str, Any]) -> None:
    path = write_log(tmp_path / f"log.{ending}", rows_of(logs.ragas))
    assert found(score(path)) == expected
    columns = {"rows": rows_of(logs.ragas)}
    (tmp_path / "inner.json").write_text(json.dumps(columns), "utf-8")
    assert found(score(tmp_path / "inner.json")) == expected


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_answers_with_peoples_labels_are_logs_of_whole_answers_and_contexts(ending: str, tmp_path: Path) -> None:
    sentences = [memerag("7#0", "en", [[YES, NO], [NO, NO], [OPEN, NO]]), memerag("8#1", "de", [[YES, NO], [YES, YES]])]
    spans = [psiloqa("a", "de", " Sie mahlt Roggen.", [(11, 17)]), psiloqa("b", "en", "It grinds spelt.", [])]
    for rows, name in ((sentences, "MEMERAG"), (spans, "PsiloQA")):
        log = Log.of(write_log(tmp_path / f"{name}.{ending}", rows))
        read = [row for _, row in log.rows()]
        whole = [("".join(SENTENCES["en"]), "en"), ("".join(SENTENCES["de"][:2]), "de")]
        if name == "PsiloQA":
            whole = [(row["llm_answer"], row["lang"]) for row in spans]
            assert [(row["lang"], row["answers"]) for row in read] == [
                (lang, [SENTENCES[lang][0].strip()]) for lang in ("de", "en")
            ]
            assert "labels" in log.unread
        assert [(row["reply"], row["query"]) for row in read] == [(text, QUESTIONS[lang]) for text, lang in whole]
        shown = [[item["text"] for item in row["passages"]] for row in read]
        wanted = [list(CONTEXTS[lang]) for _, lang in whole]
        assert shown == ([[" ".join(texts)] for texts in wanted] if name == "PsiloQA" else wanted)
        assert [str(row["id"]) for row in read] == (["a", "b"] if name == "PsiloQA" else ["7#0", "8#1"])


def test_a_chat_completion_of_a_log_is_read_as_that_of_a_model_is(tmp_path: Path) -> None:
    whole = rows_of(logs.openai)[0]
    told: dict[str, tuple[Any, str, dict[str, Any]]] = {
        "refused": (None, "stop", {"refusal": f"I will not say {whole['reference']}"}),
        "in parts": ([{"type": "refusal", "refusal": "No."}], "stop", {}),
        "filtered": (None, "content_filter", {}),
        "broken": (whole["choices"][0]["message"]["content"], "abort", {}),
        "empty": ("", "stop", {}),
        "answered": (whole["choices"][0]["message"]["content"], "stop", {}),
    }
    rows = [
        {**whole, "error": None, "id": name, "choices": [{"finish_reason": end, "message": {"content": text, **more}}]}
        for name, (text, end, more) in told.items()
    ]
    rows.append({**rows[-1], "id": "error", "error": {"message": "overloaded"}})
    for ending in ("jsonl", "csv"):
        folder = tmp_path / f"out_{ending}"
        path = write_log(tmp_path / f"log.{ending}", rows)
        assert "error" not in Log.of(path).unread
        (read,) = read_results([score(path, ["char3gram_recall"], output=folder).path])
        samples = read.samples("rows")
        assert samples is not None
        records = {one.record.row: one.record for one in read_samples(samples)}
        outcomes = {name: record.outcome for name, record in records.items() if record.outcome}
        assert outcomes == {"refused": "refusal", "in parts": "refusal", "empty": "empty"}
        failed = {name: record.failures[0].reason for name, record in records.items() if record.failures}
        assert failed == {"filtered": "content_filter", "broken": "broken_off", "error": "server"}
        assert {name for name, record in records.items() if record.unscored} == failed.keys()
        (checked,) = verify([folder], tmp_path)
        assert checked.of("fault") == []


def test_contexts_without_ids_are_named_by_their_texts() -> None:
    rows = [{key: value for key, value in row.items() if key != "retrieved_context_ids"} for row in rows_of(logs.ragas)]
    ids = {text: name for row in found(score(rows)).values() for name, _, text in row["passages"]}
    assert len(set(ids.values())) == len(ids) == 4
    assert all(re.fullmatch(r"text-[0-9a-f]{16}", name) for name in ids.values())


# ---------------------------------------------------- what can be scored


def test_a_context_that_many_rows_show_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def held(quotes: Any, passages: Any) -> frozenset[str]:
        looked.extend(passages if quotes else ())
        return frozenset()

    monkeypatch.setattr("mrag_eval.metrics.held_elsewhere", held)
    row = {
        "user_input": "Who?",
        "response": "He said “nobody has ever seen it there”.",
        "retrieved_contexts": ["A.", "B."],
    }
    score([row, {**row, "retrieved_contexts": ["B.", "A.", "C."]}, row], ["verbatim_quote", "quote_elsewhere"])
    assert looked == ["A.", "B.", "C."]


def test_question_answer_and_plain_contexts_are_enough() -> None:
    rows = [{key: row[key] for key in ("user_input", "response", "retrieved_contexts")} for row in rows_of(logs.ragas)]
    survey = read_log(rows)
    names = measured_names(survey, None)
    values = {name: {row["values"].get(name) for row in found(score(rows)).values()} for name in names}
    assert {"correct_language", "language_mix", "refused", "verbatim_quote", "passages_in_language"} <= values.keys()
    by_row = found(score(rows))
    # one quote is shown, one is of another row's context, and one row has none
    assert [by_row[str(n)]["values"].get("verbatim_quote") for n in range(5)] == [1.0, None, None, 1.0, 0.0]
    assert by_row["4"]["values"]["quote_elsewhere"] == 1.0
    assert [by_row[str(n)]["values"]["refused"] for n in range(5)] == [0.0, 0.0, 1.0, 0.0, 0.0]
    assert [by_row[str(n)]["values"]["correct_language"] for n in (1, 2)] == [1.0, 0.0]
    pairs = [row["cell"]["context_pair"] for row in by_row.values()]
    assert pairs == ["en->several", "de->de", "es->en", "zh->zh", "ru->ru"]
    assert {row["cell"]["query_lang_by"] for row in by_row.values()} == {"detected"}
    said = "\n".join(log_lines(survey, names, asked=False))
    assert "char3gram_recall, match_unicode, f1_unicode: no reference" in said
    assert "shown@k, hit@5, mrr@10, ndcg@10: no relevant_ids" in said
    assert "acc: no choices" in said
    assert "judge_correct, context_sufficiency: no judge" in said


@pytest.mark.parametrize("lacking", range(3))
def test_rows_that_lack_something_are_counted_in_words(lacking: int) -> None:
    rows = [{"query": "Where is Varn?", "reply": "On the coast.", "passages": [{"text": "Varn."}]} for _ in range(4)]
    survey = read_log([{**row, **({"passages": []} if n < lacking else {})} for n, row in enumerate(rows)])
    said = "\n".join(log_lines(survey, ["refused"], asked=True))
    assert ("row has no context" in said, "rows have no context" in said) == (lacking == 1, lacking == 2)


def test_a_language_that_is_not_relied_on_leaves_its_metrics_unscored() -> None:
    rows = [
        {
            "query": "2 + 2 = ?",
            "reply": "It is four, as everybody in this town knows.",
            "passages": [{"text": "Four."}],
        },
        {
            "query": "Nígbà wo ni wọ́n kọ́ ilé ìmọ́lẹ̀ náà ní ìlú wa?",
            "reply": "Ilé ìmọ́lẹ̀ náà ni wọ́n kọ́ ní ọdún 1841 ní ìlú wa.",
        },
        {
            "query": "When was the lighthouse of the town built?",
            "reply": "It was built in 1841 by the harbour council.",
        },
    ]
    by_row = found(score(rows))
    assert "no letters" in by_row["0"]["unscored"]["correct_language"]
    assert "passages_in_language" in by_row["0"]["unscored"]
    assert by_row["2"]["values"]["correct_language"] == 1.0
    assert found(score(rows, lang="en"))["0"]["values"]["correct_language"] == 1.0
    assert [by_row[row]["values"].get("refused") for row in "012"] == [0.0, 0.0, 0.0]
    # Igbo has no words of refusal
    assert "refused" in found(score(rows, lang="ig"))["1"]["unscored"]


def test_what_a_run_says_of_languages_is_said_of_a_log(caplog: pytest.LogCaptureFixture) -> None:
    score([{"query": "q?", "reply": "The lighthouse was built in 1841 by the council."}], lang="ml")
    assert "detector for ml: the reliability of lid.176 is not measured" in caplog.text


def test_no_metric_fails_on_a_row_of_a_log() -> None:
    names = [name for name in METRICS if not judged_metrics([name]) and "translated" not in name]
    names = [name for name in names if name not in ("language_check", *GROUNDED)]
    rows = [
        *rows_of(logs.own),
        {"query": "?", "reply": "", "passages": []},
        {"query": "1?", "reply": None, "passages": []},
    ]
    by_row = found(score(rows, names))
    assert len(by_row) == 7
    for row in by_row.values():
        assert row["values"].keys() | row["unscored"].keys() == set(names)


def test_rows_without_an_answer_are_counted_and_not_scored() -> None:
    rows = [*rows_of(logs.ragas), {"id": "q6", "user_input": "Who built it, and when was that?", "response": None}]
    results = score([*rows, {"id": "q7", "user_input": "Who built it, and when was that?"}])
    by_row = found(results)
    assert len(by_row) == 7
    for name in ("q6", "q7"):
        assert by_row[name]["values"] == {}
        assert by_row[name]["unscored"]["correct_language"] == "answer failed (no answer in the log)"
    whole = results.frame[(results.frame.dimension == "") & (results.frame.metric == "refused")].iloc[0]
    assert (whole.n, whole.unscored_rows) == (5, 2)
    (checked,) = verify([results.path], TASKS)
    assert checked.of("fault") == []


def test_how_rows_are_cut_into_chunks_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, expected: Mapping[str, Any]
) -> None:
    for rows, characters in ((1, 1 << 20), (2, 1 << 20), (1000, 1)):
        monkeypatch.setattr(_survey, "ROWS", rows)
        monkeypatch.setattr(_survey, "CHARACTERS", characters)
        assert found(score(rows_of(logs.ragas))) == expected


def test_contexts_of_a_megabyte_are_scored(expected: Mapping[str, Any]) -> None:
    filler = "Nothing of interest stands here at all. " * 26_000
    rows = [
        {**row, "passages": [{**item, "text": f"{item['text']} {filler}"} for item in row["passages"]]}
        for row in rows_of(logs.own)
    ]
    by_row = found(score(rows))
    assert by_row["q1"]["values"]["verbatim_quote"] == expected["q1"]["values"]["verbatim_quote"] == 1.0
    assert by_row["q2"]["values"]["copied"] == expected["q2"]["values"]["copied"]


# ------------------------------------------------------------------- joins


def test_references_join_by_id_from_a_benchmark() -> None:
    from mrag_eval import load_benchmark

    docs = load_benchmark({"benchmark": "demo"}).docs[:6]
    rows: list[dict[str, Any]] = [
        {"id": doc.id, "user_input": doc.query, "response": doc.answers[0], "retrieved_contexts": ["a"], "team": "ours"}
        for doc in docs
    ]
    results = score(rows, "match", benchmark="demo", breakdowns=["team"])
    by_row = found(results)
    assert [by_row[doc.id]["question"] for doc in docs] == [doc.query for doc in docs]
    assert {(row["values"]["match"], row["cell"]["team"]) for row in by_row.values()} == {(1.0, "ours")}
    survey = read_log(rows, benchmark="demo")
    assert survey.counts["joined"] == 6
    assert "references      of demo: 6 of 6 rows, by id and language" in log_lines(survey, ["match"], asked=True)
    # contexts without ids are never relevant, which is said
    names, left = survey.default_metrics()
    assert "match_unicode" in names
    assert left["id of a context"] == ["shown@k", "hit@5", "mrr@10", "ndcg@10"]
    assert (
        measured_names(read_log([{**row, "retrieved_context_ids": ["x"]} for row in rows], benchmark="demo"), None)[-4:]
        == left["id of a context"]
    )
    with pytest.raises(MragError, match="no row has an id of demo"):
        score([{**row, "id": f"x{n}"} for n, row in enumerate(rows)], benchmark="demo")


_ASKED = {
    "de": ("Wann hat der Rat der Stadt den Leuchtturm von Varn gebaut?", "im Jahr 1841"),
    "en": ("When was the lighthouse of Varn built by the council of the town?", "in 1841"),
    "es": ("¿En qué año construyó el ayuntamiento de la ciudad el faro de Varn?", "en 1841"),
    "ru": ("В каком году городской совет построил маяк в городе Варн?", "в 1841 году"),
}


@pytest.fixture
def parallel(tmp_path: Path) -> list[dict[str, Any]]:
    """Write questions of which all languages share the ids, and return the blocks of benchmarks that hold them."""
    own = []
    for lang, (question, answer) in _ASKED.items():
        asked = [{"id": f"q{n}", "question": question, "answers": [{"text": answer}]} for n in range(8)]
        squad = {"data": [{"paragraphs": [{"context": question, "qas": [one]} for one in asked]}]}
        (tmp_path / f"xquad.{lang}.json").write_text(json.dumps(squad), "utf-8")
        own += [
            {
                "id": f"{one['id']}-{lang}",
                "query": question,
                "lang": lang,
                "answers": [answer],
                "question_id": one["id"],
            }
            for one in asked
        ]
    questions = write_log(tmp_path / "questions.jsonl", own)
    languages = {"languages": list(_ASKED)}
    return [
        {"benchmark": "xquad", "path": str(tmp_path), **languages},
        {"benchmark": "jsonl", "path": str(questions)},
    ]


@pytest.mark.parametrize("lang", _ASKED)
@pytest.mark.parametrize("told", ["row", "option", "detected", "words alone", "no question"])
def test_a_question_is_joined_in_the_language_in_which_it_was_asked(
    lang: str, told: str, parallel: list[dict[str, Any]]
) -> None:
    question, answer = _ASKED[lang]
    row: dict[str, Any] = {"response": answer, "user_input": question if told != "option" else f"{question} !!"}
    if told == "words alone":
        row["user_input"] = question.replace(" ", "  ")
    if told == "no question":
        row = {"reply": answer}
    row |= {"lang": lang} if told in ("row", "no question") else {}
    rows = [{**row, "id": f"q{n}"} for n in range(8)]
    for block in parallel:
        survey = read_log(rows, benchmark=block, lang=lang if told == "option" else None)
        assert survey.counts["joined"] == 8
        assert survey.counts["other words"] == (8 if told == "option" else 0)
        assert {(doc.query, doc.query_lang, doc.answers) for doc in survey.docs.values()} == {
            (question, lang, (answer,))
        }
        assert {row["values"]["match"] for row in found(score(survey, "match")).values()} == {1.0}


@pytest.mark.parametrize("lang", _ASKED)
def test_a_question_of_another_language_is_left_as_it_is_and_counted(lang: str, parallel: list[dict[str, Any]]) -> None:
    question, answer = _ASKED[lang]
    others = [code for code in _ASKED if code != lang]
    parallel[0]["languages"] = others
    rows = [
        {"id": "q0", "user_input": question, "response": answer},
        {"id": "q1", "user_input": question, "response": answer, "lang": lang},
        # of which no language can be told
        {"id": "q2", "user_input": "1841?", "response": answer},
        {"id": "q3", "user_input": _ASKED[others[0]][0], "response": answer},
    ]
    with pytest.raises(
        MragError, match=f"no row is of the language of its question in xquad .the first, 'q0', is {lang}"
    ):
        read_log(rows[:3], benchmark=parallel[0])
    survey = read_log(rows, benchmark=parallel[0])
    assert (survey.counts["joined"], survey.counts["other language"]) == (1, 3)
    assert [(doc.query, doc.answers) for doc in survey.docs.values()] == [
        *((row["user_input"], ()) for row in rows[:3]),
        (_ASKED[others[0]][0], (_ASKED[others[0]][1],)),
    ]
    said = "\n".join(log_lines(survey, ["match"], asked=True))
    assert "of xquad: 1 of 4 rows, by id and language" in said
    assert "3 rows not joined: their id is known, a question of their language is not" in said
    for key in ("reply", "response"):
        with pytest.raises(MragError, match=r"rows\[0\]: it has no question") as caught:
            read_log([{"id": "q0", key: answer, "user_input": None, "query": None}], benchmark=parallel[0])
        assert "--lang" in (caught.value.next_step or "")
    with pytest.raises(MragError, match=r"rows\[1\]: 'lang': unknown language 'nonsense'"):
        read_log(
            [{**row, "lang": "nonsense"} if row["id"] == "q1" else row for row in rows],
            benchmark=parallel[0],
            max_unread=0,
        )


def test_a_run_and_judgements_join_by_id(tmp_path: Path) -> None:
    write_log(tmp_path / "eval_dev_out.json", rows_of(logs.bergen))
    run = [f"{turn.id}\tQ0\tp{rank}\t{rank}\t{1 / rank}\tours" for turn in TURNS for rank in (1, 2, 3)]
    (tmp_path / "run.trec").write_text("\n".join(run) + "\n", "utf-8")
    judged = {
        "qrels.txt": "".join(f"{turn.id} 0 p2 1\n{turn.id} 0 p1 0\n" for turn in TURNS),
        "qrels.tsv": "query-id\tcorpus-id\tscore\n" + "".join(f"{turn.id}\tp2\t2\n" for turn in TURNS),
        "qrels.json": json.dumps({"doc_dataset_name": "kilt", **{turn.id: {"p2": 1, "p1": 0} for turn in TURNS}}),
    }
    for name, text in judged.items():
        (tmp_path / name).write_text(text, "utf-8")
        survey = read_log(rows_of(logs.ragas), qrels=tmp_path / name)
        assert {query: max(grades, key=grades.__getitem__) for query, grades in survey.qrels.items()} == {
            turn.id: "p2" for turn in TURNS
        }
        results = score(
            tmp_path / "eval_dev_out.json",
            ["mrr@10", "hit@1", "shown@k"],
            run=tmp_path / "run.trec",
            qrels=tmp_path / name,
        )
        assert {tuple(row["values"].values()) for row in found(results).values()} == {(1.0, 0.5, 0.0)}
        (checked,) = verify([results.path], TASKS)
        assert checked.of("fault") == []
    (tmp_path / "bad.txt").write_text("q1 0 p1\nq1 p1\n", "utf-8")
    with pytest.raises(MragError, match=r"bad\.txt, line 2: 2 columns"):
        read_log(rows_of(logs.ragas), qrels=tmp_path / "bad.txt")


def test_a_question_that_a_run_leaves_out_found_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("a Q0 p1 1 0.5 mine\n", "utf-8")
    rows = [{"id": name, "query": "Where?", "lang": "en", "reply": "There.", "relevant_ids": ["p1"]} for name in "abc"]
    for row in (rows, [{**row, "passages": None} for row in rows]):
        for names in (["shown@k"], None):
            values = [one["values"] for one in found(score(row, names, run=tmp_path / "run.trec")).values()]
            assert [one["shown@k"] for one in values] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("lines", [['{"_id": "p1", "title": "A", "text": "b"}'], ['{"id": "x#1", "doc_id": "p1"}']])
def test_a_corpus_is_known_by_its_ids_alone(lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), "utf-8")
    passages = [{"id": "p1", "text": "a"}]
    row = {"id": "a", "query": "Where?", "lang": "en", "reply": "There.", "relevant_ids": ["p1"], "passages": passages}
    rows = [row, {**row, "id": "b", "relevant_ids": ["p2"]}]
    values = [one["values"] for one in found(score(rows, "hit@1", corpus=tmp_path / "corpus.jsonl")).values()]
    assert values == [{"hit@1": 1.0}, {}]
    (tmp_path / "corpus.jsonl").write_text('{"text": "b"}\n', "utf-8")
    with pytest.raises(MragError, match=r"corpus\.jsonl, line 1: it has no id"):
        score(rows, "hit@1", corpus=tmp_path / "corpus.jsonl")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("qrels", '{"q": "no grades"}'),
        ("qrels", '{"other": {"d": 1}}'),
        ("qrels", "other 0 d 1\n"),
        ("qrels", ""),
        ("run", "other Q0 d 1 2.5 mine\n"),
    ],
)
def test_judgements_and_rankings_of_other_questions_are_refused(tmp_path: Path, option: str, text: str) -> None:
    file = tmp_path / "others"
    file.write_text(text, encoding="utf-8")
    rows = [{"id": "a", "query": "Where?", "lang": "en", "reply": "There."}]
    with pytest.raises(MragError, match=f"no row has an id of {file}"):
        read_log(rows, **{option: file})


def test_a_grade_that_is_no_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text('{"q": {"d": "1"}}', encoding="utf-8")
    with pytest.raises(MragError, match="query 'q': a grade is no number"):
        read_log(rows_of(logs.ragas), qrels=tmp_path / "q.json")


def test_contexts_of_which_no_language_is_known_leave_their_row_unscored_and_the_pair_unknown() -> None:
    texts = {"digits": ["1984: 45"], "english": ["The lighthouse of Varn was built by the council in 1841.", "12 - 13"]}
    rows = [
        {"id": name, "query": "Wann war das?", "lang": "de", "reply": "Das war im Jahr 1841.", "passages": passages}
        for name, passages in ((name, [{"text": text} for text in own]) for name, own in texts.items())
    ]
    rows.append({**rows[0], "id": "ids", "passages": [{"id": "x"}]})
    (read,) = read_results([score(rows, ["passages_in_language"]).path])
    samples = read.samples("rows")
    assert samples is not None
    found = {one.record.row: one.record for one in read_samples(samples)}
    assert found["digits"].unscored == {"passages_in_language": "the languages of the passages shown are not known"}
    assert found["english"].values["passages_in_language"] == 0.0
    assert found["ids"].unscored == {"passages_in_language": "no passage was shown"}
    pairs = {name: record.cell.get("context_pair") for name, record in found.items()}
    assert pairs == {"digits": "de->unknown", "english": "de->en", "ids": None}


def test_no_metric_needs_the_languages_of_passages() -> None:
    row = {"id": "a", "query": "Wann war das?", "lang": "de", "answers": ["1841"], "reply": "Das war 1841 [1][2]."}
    row |= {"relevant_ids": ["d1", "d2"], "gold_doc_lang": "de"}
    row["passages"] = [{"id": "d1", "text": "1984: 45"}, {"doc_id": "d2", "text": "1841"}, {"id": "d3"}]
    names = [*METRICS, "citations", "hit@2", "ndcg@3", "shown@k"]
    measured = []
    for name in names:
        try:
            read_results([score([row], [name], answer="citation" if "citation" in name else "plain").path])
        except (ConfigError, DataError):  # one that needs a model, or options
            continue
        measured.append(name)
    assert {"passages_in_language", "citations", "hit@2", "shown@k", "verbatim_quote"} <= {*measured}
    (read,) = read_results([score([row], ["hit@1", "recall@2"]).path])
    assert {name: one.value for name, one in read.leaves["rows"].scores.metrics.items()} == {"hit@1": 1, "recall@2": 1}


@pytest.mark.parametrize("shape", ["mrag-eval", "ragas"])
def test_a_column_that_is_not_read_is_listed_whatever_the_shape(shape: str) -> None:
    from mrag_eval.datasets import QUESTION_KEYS

    rows = rows_of(logs.SHAPES[shape])
    assert Log.of(rows).unread == []
    more = {"ranked_by": ["a"], "foo": 3, "response_time": 0.2}
    assert Log.of([{**row, **more} for row in rows], kept=["foo"]).unread == ["ranked_by", "response_time"]
    if shape == "mrag-eval":
        assert Log.of([{**dict.fromkeys(QUESTION_KEYS), **rows[0]}]).unread == []


def test_a_column_breaks_scores_down() -> None:
    rows = [{**row, "channel": "web" if n % 2 else "app"} for n, row in enumerate(rows_of(logs.ragas))]
    assert read_log(rows).log.unread == ["channel"]
    frame = score(rows, "refused", breakdowns=["channel"]).frame
    assert dict(frame[frame.dimension == "channel"][["cell", "n"]].values.tolist()) == {"app": 3, "web": 2}


def test_a_path_breaks_scores_down_in_every_shape() -> None:
    for make in logs.SHAPES.values():
        rows = [{**row, "meta": {"team": f"of {turn.id}"}} for turn in TURNS for row in make(turn)]
        frame = score(rows, "refused", breakdowns=["meta.team"]).frame
        cells = frame[frame.dimension == "meta.team"][["cell", "n"]].values.tolist()
        assert cells == [[f"of {turn.id}", 1] for turn in TURNS]


@pytest.mark.parametrize("field", [*FIELDS, *(f"contexts.{part}" for part in PASSAGE)])
def test_a_column_that_no_row_has_is_refused_whatever_its_field(field: str) -> None:
    rows = rows_of(logs.described)
    with pytest.raises(MragError, match=r"lacks .*nope|no row has 'nope'") as caught:
        score(rows, columns=COLUMNS | {field: "nope"})
    assert caught.value.next_step
    # one row is enough, wherever it stands
    (last,) = logs.described(replace(TURNS[0], id="last"))
    last |= {"belege": [{**item, "selten": "a"} for item in last["belege"]], "selten": "en"}
    if field not in ("id", "question", "answer", "contexts", "contexts.lang", "contexts.score"):
        assert len(read_log([*rows, last], columns=COLUMNS | {field: "selten"}).docs) == 6


def test_a_breakdown_that_no_row_has_is_refused() -> None:
    rows = [{**row, "channel": "web"} for row in rows_of(logs.described)]
    with pytest.raises(MragError, match="no row has 'chanel'; did you mean 'channel'"):
        score(rows, columns=COLUMNS, breakdowns=["chanel"])


def test_no_context_needs_no_part() -> None:
    rows = [{**row, "belege": []} for row in rows_of(logs.described)]
    assert read_log(rows, columns=COLUMNS).docs


@pytest.mark.parametrize("missing", [{}, {"id": None}, {"id": float("nan")}])
@pytest.mark.parametrize("first", [False, True])
def test_a_row_without_an_id_has_its_number(missing: dict[str, Any], first: bool) -> None:
    row = {"query": "Where?", "lang": "en", "reply": "There."}
    assert [*read_log([{**row, **missing}, {**row, "id": "a"}, {**row, **missing}]).docs] == ["0", "a", "2"]
    rows = [{**row, **missing}, {**row, "id": 0}] if first else [{**row, "id": 1}, {**row, **missing}]
    with pytest.raises(MragError, match=r"two rows have the id '\d', the second is rows\[1\]") as caught:
        read_log(rows)
    assert "a row without one has its number, from 0" in (caught.value.next_step or "")


@pytest.mark.parametrize("number", [np.int64(3), np.int32(3), np.uint8(3), 3, np.array(3), "3"])
def test_numbers_of_numpy_are_numbers(number: Any) -> None:
    row = {"id": number, "query": "Where?", "lang": "en", "reply": "There.", "note": np.float32(0.5)}
    assert [*found(score([row], "refused"))] == ["3"]


# --------------------------------------------------------------- bad input

# the first bytes of compressed files
PACKED = {"zstd": b"\x28\xb5\x2f\xfd", "xz": b"\xfd7zXZ", "bzip2": b"BZh", "zip": b"PK\x03\x04", "gzip": b"\x1f\x8b"}


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"kysymys": "?", "vastaus": "!"}], r"rows: no column is the question; its columns: kysymys, vastaus"),
        ([*rows_of(logs.ragas), rows_of(logs.ragas)[0]], r"two rows have the id 'q1', the second is rows\[5\]"),
        ([{"user_input": "?", "response": {"a": 1}}], r"rows\[0\]: 'response' holds no text, found dict"),
        ([{**memerag(1, "en", []), "answer": [{"sentence": "a"}, {"text": "b"}]}], "'answer' holds no text, found"),
        ([{"user_input": "Who?", "response": None}], r"rows\[0\]: 'reply' is missing"),
        ([{"user_input": None, "response": "!"}], r"rows: no column is the question; its columns: user_input"),
        ([{**rows_of(logs.ragas)[0], "retrieved_contexts": ["", 3]}], r"rows\[0\], retrieved_contexts\[1\]: expected"),
        ([{**rows_of(logs.own)[0], "passages": [{"page_content": "a"}]}], r"rows\[0\], passages\[0\]: expected"),
        ([{**rows_of(logs.own)[0], "note": {1, 2}}], r"rows\[0\]: .* JSON"),
        ([{**rows_of(logs.ragas)[0], "lang": "nonsense"}], r"rows\[0\]: 'lang'"),
        ([], "there are no rows"),
        ([3], r"rows\[0\]: expected a dictionary"),
    ],
)  # fmt: skip
def test_a_bad_row_is_one_line(rows: Any, what: str) -> None:
    with pytest.raises(MragError, match=what) as caught:
        score(rows)
    assert "\n" not in caught.value.message
    assert caught.value.next_step
    # among other rows it is the only one that is not scored
    if (
        len(rows) == 1
        and isinstance(rows[0], dict)
        and "rows:" not in what
        and "rows" in what
        and "'reply'" not in what
    ):
        others = [{**row, "id": f"other {n}"} for n, row in enumerate(rows_of(logs.own))]
        with pytest.raises(MragError, match=what.replace("0", "5", 1)):
            score([*others, *rows], max_unread=0)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("log.jsonl", b'{"user_input": "caf\xe9", "response": "a"}\n', "line 1: not valid UTF-8"),
        ("log.csv", "user_input,response\ncafé,a\n".encode("latin-1"), "not valid UTF-8"),
        ("log.json", b'[{"user_input": "a"', "not valid JSON"),
        ("log.parquet", b"PAR1 no more", "cannot be read as Parquet"),
        *(
            (name, packed + b"\x00\x9c" * 9, f"compressed with {program}")
            for name, (program, packed) in product(("log.jsonl", "log.csv"), PACKED.items())
        ),
        ("log.jsonl", b'{"user_input": "a", "response": NaN}', "line 1: 'reply' is missing"),
        ("log.json", b'[{"user_input": "a", "response": NaN}]', "entry 1: 'reply' is missing"),
        ("log.jsonl", b"", "there are no rows in"),
        ("log.csv", b"user_input,response\na,b,c\n", "row 1: 2 columns expected"),
    ],
)
def test_a_bad_file_is_one_line(name: str, content: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MragError, match=what) as caught:
        score(tmp_path / name)
    assert "\n" not in caught.value.message
    assert name in caught.value.message
    assert ("null" in (caught.value.next_step or "")) == (what == "not valid JSON")


def test_nothing_is_written_for_a_log_with_a_bad_row(tmp_path: Path) -> None:
    rows = [*rows_of(logs.own), {"query": "Who?", "reply": "He.", "passages": [{"text": "a", "score": "high"}]}]
    with pytest.raises(MragError, match=r"rows\[5\], passages\[0\]: 'score': 'high'"):
        score(rows, output=tmp_path / "out", max_unread=0)
    assert not list(tmp_path.rglob("*.json*"))


# ---------------------------------------------------------------- the files


def test_hashed_files_hold_no_text_and_verify(tmp_path: Path, expected: Mapping[str, Any]) -> None:
    rows = [{**row, "channel": "web", "question_id": row["id"], "note": row["query"]} for row in rows_of(logs.own)]
    results = score(rows, answer="line", output=tmp_path, hash_texts=True, breakdowns=["channel"])
    written = "".join(path.read_text("utf-8") for path in tmp_path.iterdir())
    texts = [(turn.question, turn.answer, turn.reference, *(text for _, text in turn.contexts)) for turn in TURNS]
    words = {word for text in texts for part in text for word in re.findall(r"[^\W\d_]{5,}", part)}
    assert {word for word in words if word in written} <= {"known", "language", "question"}
    assert {name: row["values"] for name, row in found(results).items()} == {
        name: row["values"] for name, row in expected.items()
    }
    (checked,) = verify([results.path], TASKS)
    assert checked.of("fault") == []
    assert any("texts are hashed" in finding.text for finding in checked.of("open"))
    with pytest.raises(MragError, match="--hash-texts: citations keeps"):
        score(rows_of(logs.own), ["citations"], hash_texts=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two systems over the same questions: the first answers fewer of them."""
    folder = tmp_path_factory.mktemp("runs")
    answers = ("It was built in 1841 by the council.", "I do not know that, I am sorry.")
    for name, share in (("first", 2), ("second", 3)):
        turns = [
            Turn(f"q{n}", f"When was tower {n} of the town built?", answers[n % share == 0], TURNS[0].contexts, "1841")
            for n in range(120)
        ]
        score(rows_of(logs.langchain, turns), model=name, output=folder / name)
    models = "models:\n  one: {model: dummy}\n  two: {model: dummy}\njudges: [one, two]\n"
    (folder / "mrag.yaml").write_text(models, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("report first second", "match_unicode"),
        ("report first -o page.html", "120 samples"),
        ("compare first second", "match_unicode"),
        ("gate --save base.json first", "base.json"),
        ("gate --init gate.yaml first", "gate.yaml"),
        ("verify first second --own-settings", "all scores follow from the samples"),
        ("judge answers SAMPLES --panel one,two", "one 120 of 120 (120 unreadable)"),
        ("judge passages SAMPLES --panel one,two", "two 120 of 120 (120 unreadable)"),
        ("judge inspect SAMPLES -o sheet.csv", "sheet.csv"),
        ("export first --format csv -o csv", "figures"),
        ("export first --format model-index -o card", "README.md"),
        ("export first --format mteb -o mteb", "rows.json"),
        ("export first --format latex -o latex", "latex"),
    ],
)
def test_every_command_reads_the_results_as_those_of_a_run(
    command: str, said: str, runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    monkeypatch.setenv("MRAG_CACHE", str(runs / "cache"))
    (samples,) = (runs / "first").glob("samples_*.jsonl")
    with pytest.raises(SystemExit) as ended:
        main(command.replace("SAMPLES", str(samples)).split())
    shown = capsys.readouterr()
    # the judges that stand in are asked about every row and give no vote
    silent = command.startswith(("judge answers", "judge passages"))
    assert ended.value.code == int(silent), shown.err
    assert said in shown.out + shown.err


def test_the_first_rules_of_a_log_find_what_one_language_lost(tmp_path: Path) -> None:
    """The German answers fall from 72 to 40 of 100 right ones; the others keep theirs."""
    asked = {
        "en": ("When was tower {n} of the town built by the council?", "It was built in {year} by the council."),
        "de": ("Wann wurde der Turm {n} der Stadt vom Rat gebaut?", "Er wurde {year} vom Rat der Stadt gebaut."),
        "ru": ("Когда городской совет построил башню {n}?", "Её построили в {year} году по решению городского совета."),
    }
    for name, kept in (("before", 72), ("after", 40)):
        turns = [
            Turn(
                f"{language}{n}",
                question.format(n=n),
                answer.format(year=1841 if n < (kept if language == "de" else 72) else 1700),
                TURNS[0].contexts,
                "1841",
            )
            for language, (question, answer) in asked.items()
            for n in range(100)
        ]
        score(rows_of(logs.langchain, turns), output=tmp_path / name)
    (tmp_path / "rules.yaml").write_text(starter_rules([tmp_path / "before"]), "utf-8")
    made = read_rules(tmp_path / "rules.yaml")
    assert {rule.metric for rule in made.rules} == {"match_unicode", "correct_language"}
    assert all(rule.per_language is not None and rule.per_language.only is None for rule in made.rules)
    found = gate([tmp_path / "before"], [tmp_path / "after"], made)
    assert {(one.metric, one.place) for one in found.checks if one.verdict == "fail"} >= {("match_unicode", "de")}
    assert gate_lines(found)[0].startswith("FAIL: German got worse in 32 of 100 rows and better in none (72.0 → 40.0")


def test_the_gate_and_controls_judge_them_as_well(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    rule = {"rules": [{"metric": "match_unicode", "task": "rows", "max_drop": 0.01}]}
    (runs / "rules.yaml").write_text(json.dumps(rule), "utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--baseline", "second", "--candidate", "first", "--rules", "rules.yaml"])
    assert ended.value.code in (1, 2)
    assert "match_unicode" in capsys.readouterr().out
    (file,) = read_results([runs / "first"])
    controls = file.leaves["rows"].scores.controls
    assert {"char3gram_recall", "correct_language", "language_mix"} <= controls.keys()


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"answers": [], "extra": {}, "passages": [{"text": 'é\n"\u2028', "score": 1e-7, "gold": None}, {}]},
        {"nested": [1, [2.5, [True, {"a": [{}]}]], ("b",)], "big": 1e22, "none": float("nan")},
        {3: "a", None: "b", True: "c", 2.5: {"half": "\ud800"}, "date": date(2020, 1, 1)},
    ],
)
def test_a_row_is_hashed_as_the_harness_dumps_it(row: dict[Any, Any]) -> None:
    assert _indented(row) == json.dumps(row, indent=2, ensure_ascii=False, default=str)


# ------------------------------------------------------------------ thinking

ANSWERED = "Er wurde 1902 gebaut."


def thought(marks: tuple[str, str], answer: str = ANSWERED) -> dict[str, str]:
    opens, closes = marks
    asked = {"question": "Wann wurde der Turm gebaut?", "lang": "de", "reference": "1841"}
    return {**asked, "answer": f"{opens}Perhaps 1841?{closes}{answer}"}


def test_a_thought_is_no_answer_whatever_its_marks(tmp_path: Path) -> None:
    own = ("~~ thinks:", "~~ says:")
    rows = [{"id": str(n), **thought(marks)} for n, marks in enumerate([*MARKS, own])]
    results = score(rows, ["match", "correct_language"], thinking=own, output=tmp_path)
    assert [row["values"]["match"] for row in found(results).values()] == [0.0] * len(rows)
    (checked,) = verify([results.path], TASKS)
    assert checked.of("fault") == []
    assert next(iter(found(score(rows[-1:], ["match"])).values()))["values"]["match"] == 1.0
    with pytest.raises(ConfigError, match="a mark is empty"):
        score(rows, ["match"], thinking=("", "x"))


@pytest.mark.parametrize("also", [0, 1])
def test_a_log_of_cut_thoughts_says_so_first(also: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = {"question": "Wann?", "lang": "de", "reference": "1841", "answer": "[THINK]Perhaps 1841"}
    log = write_log(tmp_path / "log.jsonl", [cut, cut, *[thought(MARKS[0])] * also])
    with pytest.raises(SystemExit) as ended:
        main(["score", str(log), "-o", str(tmp_path / "out"), "--metrics", "match"])
    assert ended.value.code == (0 if also else 1)
    assert ("every reply ends within its thinking" in capsys.readouterr().out) is not bool(also)


def test_a_second_run_into_a_folder_says_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said() -> str:
        with pytest.raises(SystemExit) as ended:
            main(["score", str(tmp_path / "log.jsonl"), "-o", str(tmp_path / "out"), "--metrics", "match"])
        assert ended.value.code == 0
        return " ".join(capsys.readouterr().out.split())

    for right in (30, 5):
        answers = ["1841" if i < right else "1" for i in range(40)]
        asked = {"question": "Wann?", "lang": "de", "reference": "1841"}
        write_log(tmp_path / "log.jsonl", [{"id": str(i), **asked, "answer": one} for i, one in enumerate(answers)])
        assert ("log is worse than in its run before: 12.5 " in said()) == (right == 5)
    # a broken file beside it is no fault of this run's
    (tmp_path / "out" / "results_2020.json").write_text("{", encoding="utf-8")
    assert "log scores 12.5 " in said()
