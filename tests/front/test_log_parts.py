"""Parts of logs by the names of their columns, in every combination: read, or refused with both readings."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import MragError, load_benchmark, score
from mrag_eval._front import Log, log_lines, read_log
from mrag_eval.core import Passage
from mrag_eval.datasets import read_judgements
from mrag_eval.platform import DataError
from mrag_eval.retrieval import read_run
from mrag_eval.retrievers import build_index, read_corpus
from mrag_eval.systems import FIELDS, PASSAGE, names_of
from tests.front.test_score import found
from tests.worlds.logs import write_log

# Of each part the names that people give it most; a name that may be another part's comes last.
NAMES = {
    "question": ["question", "query", "user_input", "userQuery", "input", "prompt"],
    "answer": [
        "response",
        "prediction",
        "generated_answer",
        "Model Output",
        "result",
        "actualOutput",
        "output",
        "answer",
    ],
    "contexts": ["contexts", "retrieved_contexts", "context", "documents", "source_documents", "chunks", "passages"],
    "reference": [
        "reference",
        "ground_truth",
        "gold-answer",
        "expected_answer",
        "target",
        "answers",
        "label",
        "answer",
    ],
}
ASKED, SAID, RIGHT, SHOWN = (
    "Wann wurde die Mühle gebaut?",
    "Sie wurde 1764 gebaut.",
    "1764",
    ["Die Mühle ist von 1764."],
)


def parts_of(log: Log) -> dict[str, Any]:
    ((_, row),) = log.rows()
    texts = [item["text"] for item in row.get("passages", ())]
    return {
        "question": row.get("query"),
        "answer": row.get("reply"),
        "reference": row.get("answers"),
        "contexts": texts,
    }


def test_no_combination_of_names_loses_a_part() -> None:
    tried = 0
    for question, answer, contexts, reference in product(*NAMES.values()):
        if answer != reference:
            row = {reference: RIGHT, contexts: SHOWN, answer: SAID, question: ASKED}
            log = Log.of([row])
            wanted = {"question": ASKED, "answer": SAID, "reference": [RIGHT], "contexts": SHOWN}
            assert parts_of(log) == wanted, row
            assert log.unread == []
            tried += 1
    assert tried > 2_000


@pytest.mark.parametrize("part", ["question", "answer", "reference", "contexts", "context_ids", "relevant_ids"])
def test_every_name_of_the_table_is_read(part: str) -> None:
    value: Any = {"question": ASKED, "answer": SAID, "reference": RIGHT}.get(part, SHOWN)
    others = {"question": "question", "answer": "response", "reference": "gold_answer", "contexts": "contexts"}
    for name in names_of(part):
        row = {
            other: {"question": ASKED, "answer": SAID, "reference": RIGHT}.get(key, SHOWN)
            for key, other in others.items()
        }
        row.pop(others.get(part, ""), None)
        row.pop("contexts" if part == "context_ids" else "", None)
        said = [{"text": SAID, "citations": ["d1"]}] if name == "sentences" else value
        assert Log.of([row | {name: said}]).mapping[part] == name


@pytest.mark.parametrize("part", ["question", "answer", "reference", "contexts"])
def test_two_columns_for_one_part_are_one_if_they_say_the_same_and_refused_if_not(part: str) -> None:
    said: dict[str, Any] = {"question": ASKED, "answer": SAID, "reference": RIGHT, "contexts": SHOWN}
    usual = {"question": "question", "answer": "response", "reference": "reference", "contexts": "retrieved_contexts"}
    sure = [name for name in NAMES[part] if names_of(part)[name.lower().translate({32: None, 45: None, 95: None})]]
    for one, other in combinations(sure, 2):
        row = {usual[key]: value for key, value in said.items() if key != part}
        same = [said[part]] if part != "contexts" else [{"text": text} for text in SHOWN]
        log = Log.of([row | {one: said[part], other: said[part] if part == "question" else same}])
        assert log.reading.paths[part] in ((one, other), (other, one))
        wrong = ["Something else."] if part == "contexts" else "Something else."
        if (one, other) == ("context", "source_documents"):
            # a chain of LangChain shows the text that it made of its documents
            assert parts_of(Log.of([row | {one: wrong, other: SHOWN}]))["contexts"] == SHOWN
            continue
        with pytest.raises(
            DataError, match=rf"rows\[1\]: {one} or {other} may be the {part}, and they differ"
        ) as caught:
            list(Log.of([row | {one: said[part]}, row | {one: said[part], other: wrong}]).rows())
        step = str(caught.value.next_step)
        for name in (one, other):
            assert f"--columns {part}={name}" in step
            chosen = Log.of([row | {one: said[part], other: said[part]}], columns={part: name})
            assert parts_of(chosen) == said | {"reference": [RIGHT]}


@pytest.mark.parametrize("name", ["response", "prediction", "generated_answer", "llm_response", "Bot Reply"])
@pytest.mark.parametrize("gold", ["answer", "label"])
def test_a_name_that_can_only_be_a_reply_wins_over_one_that_may_be_gold(name: str, gold: str) -> None:
    rows = [
        {"question": ASKED, "contexts": SHOWN, gold: "1764", name: "Sie wurde 1902 gebaut."},
        {"question": "¿Qué molino es el más antiguo?", "contexts": SHOWN, gold: "Tarn", name: "El molino de Tarn."},
    ]
    survey = read_log(rows)
    assert f"{name} → answer, {gold} → reference" in log_lines(survey, ["match"], asked=True)[0]
    assert [row["values"]["match"] for row in found(score(rows, "match")).values()] == [0.0, 1.0]


def test_what_is_a_verdict_or_a_number_is_no_reference() -> None:
    for label in (3, True, "correct", "hallucinated", ["faithful"]):
        assert Log.of([{"question": ASKED, "answer": SAID, "label": label}]).unread == ["label"]


@pytest.mark.parametrize("holder", ["inputs", "vars", "example"])
@pytest.mark.parametrize("flat", [".", "/", None])
def test_parts_lie_within_objects_and_in_the_columns_of_tables_made_of_them(holder: str, flat: str | None) -> None:
    nested = {
        holder: {"question": ASKED, "contexts": SHOWN},
        "outputs": {"answer": SAID},
        "reference_outputs": {"answer": RIGHT},
    }
    row: dict[str, Any] = nested
    if flat is not None:
        row = {f"{outer}{flat}{key}": value for outer, inner in nested.items() for key, value in inner.items()}
    assert parts_of(Log.of([row])) == {"question": ASKED, "answer": SAID, "reference": [RIGHT], "contexts": SHOWN}


def test_one_part_is_named_alone_and_the_others_are_found() -> None:
    row = {"question": ASKED, "answer": SAID, "contexts": SHOWN, "soll": RIGHT}
    log = Log.of([row], columns={"reference": "soll"})
    assert parts_of(log) == {"question": ASKED, "answer": SAID, "reference": [RIGHT], "contexts": SHOWN}
    assert log.unread == []
    # a column that the user names is no other part
    assert parts_of(Log.of([row], columns={"reference": "answer"}))["answer"] is None


def test_python_says_what_was_not_read(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        score([{"question": ASKED, "answer": SAID, "faithfulness": 0.5, "latency": 3}], "refused")
    assert "rows: not read faithfulness, latency" in caplog.text


# ------------------------------------------------------------ rows that cannot be read


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_a_missing_value_is_missing_in_every_format(ending: str, tmp_path: Path) -> None:
    rows = [
        {"question": ASKED, "answer": SAID, "ground_truth": RIGHT, "faithfulness": float("nan")},
        {"question": ASKED, "answer": SAID, "ground_truth": float("nan"), "faithfulness": 0.5},
    ]
    path = tmp_path / f"log.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif ending == "json":
        path.write_text(json.dumps(rows), "utf-8")
    else:
        import pandas as pd

        frame = pd.DataFrame(rows)
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    scored = found(score(path, "match"))
    assert [row["values"].get("match") for row in scored.values()] == [1.0, None]


BAD: dict[str, str] = {
    "cut": '{"question": "Wann?", "ans',
    "a list": '["Wann?"]',
    "no question": '{"answer": "1764"}',
    "a language": '{"question": "Wann?", "answer": "1764", "lang": "nonsense"}',
    "a score": '{"question": "Wann?", "answer": "1764", "contexts": [{"text": "a", "score": "high"}]}',
    "a context": '{"question": "Wann?", "answer": "1764", "contexts": [3]}',
    "a reply": '{"question": "Wann?", "answer": {"a": 1}}',
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_row_is_unscored_with_its_reason_and_many_are_refused(kind: str, tmp_path: Path) -> None:
    good = [json.dumps({"question": f"{ASKED[:-1]} {n}?", "answer": SAID, "reference": RIGHT}) for n in range(20)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([*good[:7], BAD[kind], *good[7:]]), "utf-8")
    survey = read_log(path)
    assert "21 rows, 1 of them not read" in log_lines(survey, ["match"], asked=True)[0]
    results = score(path, ["match", "refused"])
    scored = found(results)
    assert len(scored) == 21
    (bad,) = (row for row in scored.values() if not row["values"])
    assert bad["unscored"]["refused"] == "search failed (row not read)"
    whole = results.frame[(results.frame.dimension == "") & (results.frame.metric == "match")].iloc[0]
    assert (whole.n, whole.unscored_rows) == (20, 1)
    with pytest.raises(MragError, match=r"log\.jsonl, line 8"):
        read_log(path, max_unread=0)
    path.write_text("\n".join([*good, *[BAD[kind]] * 11]), "utf-8")
    with pytest.raises(MragError, match=r"11 of 31 rows cannot be read, the first: .*line 21") as caught:
        read_log(path)
    assert "--max-unread 11" in str(caught.value.next_step)
    assert len(read_log(path, max_unread=11).unread) == 11


def test_a_hundredth_of_many_rows_may_be_bad(tmp_path: Path) -> None:
    rows = [{"question": "Wann?", "answer": "1764", "lang": "de"} for _ in range(1_500)]
    bad = [{"question": "Wann?", "answer": "1764", "lang": "nonsense"}]
    assert len(read_log([*rows, *bad * 15]).unread) == 15
    with pytest.raises(MragError, match="16 of 1,516 rows"):
        read_log([*rows, *bad * 16])


# ------------------------------------------------------------------- places


def test_rows_lie_at_a_path(tmp_path: Path) -> None:
    rows = [{"question": ASKED, "answer": SAID}, {"question": "Wo?", "answer": "In Tarn."}]
    wrapped = {"config": {"name": "mill"}, "results": [{"output": row, "seconds": 3} for row in rows]}
    (tmp_path / "log.json").write_text(json.dumps({"run": wrapped}), "utf-8")
    assert len(read_log(tmp_path / "log.json", at="run.results.*.output").docs) == 2
    with pytest.raises(MragError, match=r"nothing at 'run\.result'; its lists of rows: run\.results"):
        read_log(tmp_path / "log.json", at="run.result")
    write_log(tmp_path / "log.jsonl", [{"batch": [rows[0]]}, {"batch": [rows[1]]}])
    assert [doc.query for doc in read_log(tmp_path / "log.jsonl", at="batch").docs.values()] == [ASKED, "Wo?"]
    # the only list of rows with questions is found by itself
    deep = {
        "version": 3,
        "results": {"stats": [{"n": 1}], "results": [{"vars": {"question": ASKED}, "response": {"output": SAID}}]},
    }
    (tmp_path / "deep.json").write_text(json.dumps(deep), "utf-8")
    assert parts_of(Log.of(tmp_path / "deep.json"))["answer"] == SAID


def test_a_path_counts_from_the_end() -> None:
    turns = [{"kind": "frage", "text": ASKED}, {"kind": "antwort", "text": SAID}]
    rows = [{"id": n, "verlauf": [*turns[:1] * n, *turns]} for n in range(3)]
    columns = {"question": "verlauf.-2.text", "answer": "verlauf.-1.text"}
    assert [(row["query"], row["reply"]) for _, row in Log.of(rows, columns).rows()] == [(ASKED, SAID)] * 3


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_of_a_table_is_found(mark: str, tmp_path: Path) -> None:
    text = "\ufeff" + "\n".join(
        mark.join(f'"{cell}"' for cell in row)
        for row in [("question", "answer", "reference"), ("Wann, und wo?", "1764; in Tarn | am Fluss.", "1764")]
    )
    (tmp_path / "log.csv").write_text(text, "utf-8")
    assert parts_of(Log.of(tmp_path / "log.csv"))["answer"] == "1764; in Tarn | am Fluss."


def test_lines_of_one_question_are_joined_by_its_column(tmp_path: Path) -> None:
    keys = ("query_id", "query", "passage_id", "passage", "generated_answer")
    rows = [
        ("q1", ASKED, "p1", "Die Mühle ist von 1764.", SAID),
        ("q1", ASKED, "p2", "Der Hafen ist von 1902.", ""),
        ("q2", "¿Dónde está?", "p2", "Der Hafen ist von 1902.", "Allí."),
    ]
    lines = [dict(zip(keys, row, strict=True)) for row in rows]
    path = write_log(tmp_path / "log.csv", lines)
    with pytest.raises(MragError, match="two rows have the id 'q1'") as caught:
        read_log(path)
    assert "--join query_id" in str(caught.value.next_step)
    survey = read_log(path, join="query_id")
    rows = [
        (row.doc.id, row.reply, [hit.id for hit in row.passages or ()]) for chunk in survey.given() for row in chunk
    ]
    assert rows == [("q1", SAID, ["p1", "p2"]), ("q2", "Allí.", ["p2"])]


# -------------------------------------------------------------------- turns


@pytest.mark.parametrize("keys", [("role", "content"), ("speaker", "text"), ("from", "value"), ("type", "content")])
@pytest.mark.parametrize("name", ["input", "messages", "question", "conversation"])
def test_the_last_turn_of_the_user_is_the_question(keys: tuple[str, str], name: str) -> None:
    said = [("user", "Who built the mill of Tarn?"), ("assistant", "Two brothers."), ("user", "Und in welchem Jahr?")]
    turns = [dict(zip(keys, turn, strict=True)) for turn in said]
    row = {name: turns, "contexts": SHOWN, "prediction": SAID}
    survey = read_log([row])
    (doc,) = survey.docs.values()
    assert (doc.query, doc.query_lang) == ("Und in welchem Jahr?", "de")
    assert [turn["content"] for turn in doc.extra["history"]] == [text for _, text in said[:2]]
    # what the assistant said last is the reply, if nothing else is
    ((_, own),) = Log.of([{name: [*turns, dict(zip(keys, ("assistant", SAID), strict=True))]}]).rows()
    assert (own["query"], own["reply"]) == ("Und in welchem Jahr?", SAID)
    # beside a question of its own the turns are those before it
    ((_, own),) = Log.of([{"query": ASKED, "chat_history": turns[:2], "response": SAID}]).rows()
    assert (own["query"], len(own["history"])) == (ASKED, 2)


def test_sentences_with_citations_are_one_text_and_their_ids() -> None:
    parts = [
        {"text": "Sie wurde 1764 gebaut.", "citations": [0]},
        {"text": "Heute gehört sie zwei Brüdern.", "citations": [1, 0]},
    ]
    row = {"topic_id": "t1", "query": ASKED, "references": ["d1", "d9"], "answer": parts}
    ((_, own),) = Log.of([row]).rows()
    assert own["reply"] == "Sie wurde 1764 gebaut. Heute gehört sie zwei Brüdern."
    assert own["citations"] == [["d1"], ["d9", "d1"]]
    assert [item["id"] for item in own["passages"]] == ["d1", "d9"]
    assert Log.of([row]).unread == []
    # the ids may stand in the citations themselves
    named = [{"text": "Sie wurde 1764 gebaut.", "citations": {"d3": 0.5}}]
    ((_, own),) = Log.of([{"topic_id": "t1", "query": ASKED, "responses": named}]).rows()
    assert (own["citations"], own["passages"]) == ([["d3"]], [{"id": "d3"}])


# ------------------------------------------------- numbered columns, and texts by id


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@pytest.mark.parametrize("stem", ["context_", "passage", "Retrieved Doc ", "source-text-", "chunk_"])
def test_numbered_columns_are_one_list(stem: str, ending: str, tmp_path: Path) -> None:
    rows = [
        {"question": ASKED, **{f"{stem}{n}": f"Die Mühle {n}." for n in (1, 10, 2)}, "answer": SAID},
        {
            "question": "Wo liegt Tarn?",
            f"{stem}1": "Tarn liegt am See.",
            f"{stem}10": "",
            f"{stem}2": "",
            "answer": "Am See.",
        },
    ]
    path = write_log(tmp_path / "log.jsonl", rows)
    if ending == "csv":
        import pandas as pd

        path = tmp_path / "log.csv"
        pd.DataFrame(rows).to_csv(path, index=False)
    log = Log.of(path)
    assert log.mapping["contexts"] == f"{stem}*"
    assert log.unread == []
    shown = [[item["text"] for item in row["passages"]] for _, row in log.rows()]
    assert shown == [["Die Mühle 1.", "Die Mühle 2.", "Die Mühle 10."], ["Tarn liegt am See."]]
    # a column that the user names stays one
    named = Log.of(path, {"contexts": f"{stem}2"})
    assert [item["text"] for item in next(named.rows())[1]["passages"]] == ["Die Mühle 2."]


@pytest.mark.parametrize(
    ("part", "stem"), [("reference", "ground_truth_"), ("relevant_ids", "gold_id_"), ("context_ids", "doc_id_")]
)
def test_numbered_columns_of_other_parts_are_lists_and_replies_are_none(part: str, stem: str) -> None:
    row = {"question": ASKED, f"{stem}1": "a", f"{stem}2": "b", "response_1": "x", "response_2": "y"}
    log = Log.of([row])
    assert log.mapping[part] == f"{stem}*"
    assert log.unread == ["response_1", "response_2"]


CORPUS = [
    {"id": "p1", "doc_id": "d1", "lang": "de", "text": "Die Mühle von Tarn ist von 1764."},
    {"id": "p2", "doc_id": "d2", "lang": "en", "text": "The harbour of Tarn was dredged in 1902."},
]


@pytest.mark.parametrize("kind", ["file", "beir", "index"])
def test_contexts_that_are_ids_have_the_texts_of_the_corpus(kind: str, tmp_path: Path) -> None:
    corpus = write_log(tmp_path / "corpus.jsonl", CORPUS)
    if kind == "beir":
        write_log(corpus, [{"_id": one["id"], "lang": one["lang"], "text": one["text"]} for one in CORPUS])
    elif kind == "index":
        passages = [Passage(one["id"], one["lang"], one["text"], doc_id=one["doc_id"]) for one in CORPUS]
        corpus = tmp_path / "index"
        build_index(passages, corpus, kind="bm25", progress=False)
    rows = [
        {
            "query": ASKED,
            "response": "“Die Mühle von Tarn ist von 1764”.",
            "retrieved_ids": ["p2", "p1"],
            "gold_ids": ["p1"],
        },
        {"query": ASKED, "response": SAID, "retrieved_ids": ["p9"], "gold_ids": ["p2"]},
    ]
    bare = read_log(rows)
    assert bare.counts["text of a context"] == 0
    survey = read_log(rows, corpus=corpus)
    assert survey.counts["text of a context"] == 1
    (chunk,) = survey.given()
    assert [[(hit.id, hit.lang, hit.text) for hit in row.passages or ()] for row in chunk] == [
        [("p2", "en", CORPUS[1]["text"]), ("p1", "de", CORPUS[0]["text"])],
        [("p9", "", "")],
    ]
    scored = found(score(rows, ["verbatim_quote", "hit@2"], corpus=corpus))
    assert [row["values"].get("hit@2") for row in scored.values()] == [1.0, 0.0]
    assert next(iter(scored.values()))["values"]["verbatim_quote"] == 1.0


# what is wrong with a file -> its ending and its content
FAULTS: dict[str, tuple[str, str]] = {
    "cut": ("jsonl", '{"question": "Wann?", "ans\n'),
    "a list": ("jsonl", '["Wann?"]\n'),
    "no question": ("jsonl", '{"answer": "1764"}\n'),
    "empty": ("jsonl", ""),
    "two replies": ("jsonl", '{"question": "Wann?", "response": "a", "prediction": "b"}\n'),
    "two golds": ("jsonl", '{"question": "Wann?", "response": "a", "reference": "b", "ground_truth": "c"}\n'),
    "two questions": ("jsonl", '{"question": "Wann?", "query": "When?", "response": "a"}\n'),
    "two grades": (
        "jsonl",
        '{"question": "?", "ids": ["d"], "qrels": [{"id": "d", "grade": 1}, {"id": "d", "grade": 2}]}\n',
    ),
    "a grade": ("jsonl", '{"question": "Wann?", "answer": "a", "relevant_ids": {"d1": 1.5}}\n'),
    "a score": ("jsonl", '{"question": "Wann?", "answer": "a", "contexts": [{"text": "x", "score": "high"}]}\n'),
    "a language": ("jsonl", '{"question": "Wann?", "answer": "a", "lang": "nonsense"}\n'),
    "a context": ("jsonl", '{"question": "Wann?", "answer": "a", "contexts": [3]}\n'),
    "a reply": ("jsonl", '{"question": "Wann?", "answer": {"a": 1}}\n'),
    "an id twice": (
        "jsonl",
        '{"id": "1", "question": "?", "answer": "a"}\n{"id": "1", "question": "!", "answer": "b"}\n',
    ),
    "a long row": ("csv", "question,answer\nWann?,a,b\n"),
    "a column twice": ("csv", "question,answer,answer\nWann?,a,b\n"),
    "an array": ("json", '[{"question": "Wann?"'),
    "no table": ("parquet", "PAR"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_refusal_is_one_line_with_the_file_and_a_next_step(fault: str, tmp_path: Path) -> None:
    ending, text = FAULTS[fault]
    path = tmp_path / f"log.{ending}"
    path.write_text(text, "utf-8")
    check_refusal(read_log, path)


def check_refusal(read: Callable[[Path], Any], path: Path) -> None:
    """Assert that a file is refused in one line that names it, with a next step."""
    with pytest.raises(MragError) as caught:
        read(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.next_step


def own_questions(path: Path) -> Any:
    """Return the questions of a file of one's own."""
    return load_benchmark({"benchmark": "jsonl", "path": str(path)})


# what is wrong with a judgement, a run, a corpus or a question of one's own -> its reader, its ending and its content
CASE = '{"question": "Wann?", "answer": "1764"}'
OTHERS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "a judgement's columns": (read_judgements, "qrels", "q1 0 d1 1\nq1 d2\n"),
    "a judgement's grade": (read_judgements, "qrels", "q1 0 d1 high\nq1 0 d2 high\n"),
    "two grades": (read_judgements, "qrels", "q1 0 d1 1\nq1 0 d1 2\n"),
    "a grade in JSON": (read_judgements, "json", '{"q1": {"d1": "x"}}'),
    "a judgement's row": (read_judgements, "jsonl", '{"a": 1}\n'),
    "a run's columns": (read_run, "run", "q1 Q0 d1 1 2.0 x\nq1 Q0 d2\n"),
    "a run's score": (read_run, "run", "q1 Q0 d1 1 high x\n"),
    "a run's rank": (read_run, "run", "q1 Q0 d1 first 2.0 x\n"),
    "a passage twice": (read_run, "run", "q1 Q0 d1 1 2.0 x\nq1 Q0 d1 2 1.0 x\n"),
    "an empty run": (read_run, "run", ""),
    "a document's id": (lambda path: [*read_corpus(path)], "jsonl", '{"text": "x", "lang": "de"}\n'),
    "a document's language": (lambda path: [*read_corpus(path)], "jsonl", '{"id": "1", "text": "x"}\n'),
    "a document twice": (lambda path: [*read_corpus(path)], "jsonl", '{"id": "1", "lang": "de", "text": "x"}\n' * 2),
    "no paragraphs": (lambda path: [*read_corpus(path, lang="de")], "json", '{"data": [{"title": "x"}]}'),
    "no articles": (lambda path: [*read_corpus(path, lang="de")], "json", "[1]"),
    "an unknown kind": (lambda path: [*read_corpus(path, lang="de")], "pdf", "x"),
    "a question's key": (own_questions, "jsonl", '{"id": "1", "question": "?", "lang": "de"}\n'),
    "a question's language": (own_questions, "jsonl", '{"id": "1", "query": "?"}\n'),
    "a question twice": (own_questions, "jsonl", '{"id": "1", "query": "?", "lang": "de"}\n' * 2),
    "no text": (own_questions, "jsonl", '{"id": "1", "query": 3, "lang": "de"}\n'),
    "no SQuAD": (own_questions, "json", '{"data": 3}'),
    "no questions": (read_log, "json", '{"data": [{"paragraphs": [{"context": "x", "qas": null}]}]}'),
    "a question that is a text": (read_log, "json", '{"data": [{"paragraphs": [{"context": "x", "qas": ["?"]}]}]}'),
    "two lists": (read_log, "json", f'{{"dev": [{CASE}], "test": [{CASE}]}}'),
}


@pytest.mark.parametrize("fault", OTHERS)
def test_every_refusal_of_judgements_runs_corpora_and_questions_is_one_line(fault: str, tmp_path: Path) -> None:
    read, ending, text = OTHERS[fault]
    path = tmp_path / f"file.{ending}"
    path.write_text(text, "utf-8")
    check_refusal(read, path)


@pytest.mark.parametrize(
    "nested",
    [
        '{"runs": [{"cases": [%s]}]}',
        '{"a": {"runs": [{"x": {"cases": [%s]}}]}}',
        '{"runs": [{"cases": [%s]}, {"cases": [%s]}]}',
    ],
)
def test_rows_in_lists_of_lists_are_found_and_named(nested: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(nested.replace("%s", CASE), "utf-8")
    assert len(read_log(path).docs) == nested.count("%s")
    # a line for each run: the message names the list that holds the questions
    lines = tmp_path / "a.jsonl"
    lines.write_text(f'{{"tags": [{{"x": 1}}], "cases": [{CASE}]}}', "utf-8")
    with pytest.raises(MragError) as caught:
        read_log(lines)
    assert caught.value.next_step == "name the place of the rows: --rows cases"
    assert len(read_log(lines, at="cases").docs) == 1


# what no part can be, or not as it stands
VALUES: dict[str, Any] = {
    "a number": 3,
    "a fraction": 0.5,
    "a truth value": True,
    "an object": {"x": 1},
    "an object of objects": {"x": {"y": []}},
    "an empty object": {},
    "an empty list": [],
    "a list of numbers": [1, 2],
    "a list of objects": [{"x": 1}],
    "a list of lists": [[1], [[]]],
    "a list of nothing": [None, ""],
    "a broken list": "['a', ",
    "a broken object": '{"a": ',
    "half a character": "\ud800",
    "a blank": " \t",
    "a control character": "a\x00\x1b[2J\nb",
    "a huge number": 10**30,
    "not a number": float("nan"),
    "infinite": float("inf"),
}


@pytest.mark.parametrize("part", [*FIELDS, *(f"contexts.{name}" for name in PASSAGE)])
@pytest.mark.parametrize("named", [False, True])
def test_any_value_of_any_part_is_read_or_refused_in_one_line(part: str, named: bool, tmp_path: Path) -> None:
    names = {"question": "question", "answer": "response", "contexts": "contexts", "reference": "reference"}
    names |= {"lang": "lang", "turns": "turns", "error": "error", "id": "id", "relevant_ids": "relevant_ids"}
    names |= {"context_ids": "context_ids", "context_scores": "context_scores", "context_langs": "context_langs"}
    good = {"question": ASKED, "response": SAID, "reference": RIGHT}
    whole, _, inner = part.partition(".")
    for kind, value in VALUES.items():
        row = good | ({"contexts": [{"text": RIGHT, inner: value}]} if inner else {"contexts": SHOWN})
        row |= {} if inner else {names[whole]: value}
        path = tmp_path / "log.jsonl"
        path.write_text(json.dumps(row) + "\n", "utf-8")
        columns = {part: inner or names[whole]} if named else None
        refusal = None
        try:
            assert len(read_log(path, columns=columns, max_unread=0).docs) == 1
        except MragError as error:
            refusal = error
        if refusal is not None:
            assert str(path) in refusal.message, kind
            assert "\n" not in refusal.message, kind
            assert refusal.next_step, (kind, refusal.message)


LINE = {"question": ASKED, "answer": SAID, "contexts": SHOWN, "ground_truth": RIGHT}
# a file's JSON as programs write tables and nested rows
WRITTEN: dict[str, Any] = {
    "a table in columns and data": {"columns": [*LINE], "index": [0], "data": [[*LINE.values()]]},
    "columns of numbered rows": {key: {"0": value} for key, value in LINE.items()},
    "contexts beside the reply": [
        {"input": {"query": ASKED}, "output": {"response": SAID, "sources": [{"content": SHOWN[0]}]}, "gold": RIGHT}
    ],
    "what the gold is from, too": [
        {"input": ASKED, "actual_output": SAID, "expected_output": RIGHT, "retrieval_context": SHOWN, "context": ["x"]}
    ],
    "replies in the plural": [{"questions": ASKED, "contexts": SHOWN, "answers": RIGHT, "predicted_answers": SAID}],
    "inputs and outputs": [{"inputs": ASKED, "outputs": SAID, "ground_truth": RIGHT, "retrieved_context": SHOWN}],
    "headings in German": [{"Frage": ASKED, "Antwort": SAID, "Kontext": SHOWN, "Musterantwort": RIGHT}],
    "headings in French": [{"question": ASKED, "réponse": SAID, "contexte": SHOWN, "référence": RIGHT}],
    "headings in Spanish": [{"pregunta": ASKED, "respuesta": SAID, "contexto": SHOWN, "referencia": RIGHT}],
    "a report with citations": [
        {"problem_statement": ASKED, "sentences": [{"text": SAID, "citations": []}], "docs": SHOWN, "gold": RIGHT}
    ],
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_tables_and_nested_rows_are_read_as_programs_write_them(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(WRITTEN[kind]), "utf-8")
    wanted = {"question": ASKED, "answer": SAID, "reference": [RIGHT], "contexts": SHOWN}
    assert parts_of(Log.of(path)) == wanted


@pytest.mark.parametrize("name", ["retrieved", "docs", "retrieved_passages"])
@pytest.mark.parametrize("listed", [["d1", "d2"], ["17#0", "17#1"], "['d1', 'd2']"])
def test_contexts_that_are_words_with_digits_are_ids(name: str, listed: Any) -> None:
    log = Log.of([{"question": ASKED, name: listed, "positive_passages": [{"docid": "d2"}]}] * 2 + [{name: []}])
    assert log.mapping["context_ids"] == name
    (_, row), *_ = log.rows()
    assert [list(item) for item in row["passages"]] == [["id"], ["id"]]
    assert row["relevant_ids"] == ["d2"]
    texts = Log.of([{"question": ASKED, name: listed}, {"question": ASKED, name: SHOWN}])
    assert texts.mapping["contexts"] == name


def test_rows_of_one_kind_are_not_looked_at_again_and_ids_still_are() -> None:
    rows = [{"id": str(n), "no": str(n % 3), "question": ASKED, "response": SAID} for n in range(9)]
    assert Log.of(rows).mapping["id"] == "id"
    assert Log.of([{**row, "id": "1"} for row in rows]).mapping["id"] == "id"
    assert Log.of([{**row, "id": "1", "no": row["id"]} for row in rows]).mapping["id"] == "no"
    with pytest.raises(DataError, match=r"rows\[9\]: response or prediction may be the answer"):
        Log.of([*rows, {**rows[0], "prediction": "1902"}]).mapping  # noqa: B018
