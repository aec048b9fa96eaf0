"""Values that no table, text or number is: every reader refuses them in one line that names the place, or has none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrag_eval.datasets import as_question, load_benchmark, log_rows, read_judgements
from mrag_eval.models.translate._table import load_table
from mrag_eval.platform import DataError, HttpFault, MragError, json_answer, json_body, read_sheet
from mrag_eval.retrieval import read_run
from mrag_eval.retrieval.sources._ctxs_file import read_ctxs
from mrag_eval.retrievers import read_corpus
from mrag_eval.systems import Columns, hits_of, in_own_terms, reply_of

# A record: its fields in order, each with its value as JSON writes it.
Record = dict[str, str]
LOG = {
    "id": '"q1"',
    "question": '"When was it built?"',
    "answer": '"In 1841."',
    "reference": '"1841"',
    "lang": '"en"',
    "note": '"unread"',
}
DEEP = "[" * 150 + "]" * 150
NUMBERS = {"nan": "NaN", "infinite": "Infinity", "minus infinite": "-Infinity", "huge": "1e999", "long": "9" * 4500}
OBJECT = '{"inner": ["1841"]}'


_ASKED = ("id", "query", "lang")


def in_lines(fields: Sequence[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{key}": {value}' for key, value in fields) + "}\n"


def in_table(mark: str) -> Callable[[Sequence[tuple[str, str]]], str]:
    def written(fields: Sequence[tuple[str, str]]) -> str:
        cells = [json.loads(value) if value.startswith('"') else value for _, value in fields]
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        return f"{mark.join(key for key, _ in fields)}\n{mark.join(quoted)}\n"

    return written


def read_log(path: Path) -> list[Any]:
    found = [*log_rows(path, path.name)]
    columns = Columns()
    for where, row in found:
        columns.add(where, row)
    reading = columns.reading(path.name)
    own = [in_own_terms(row, reading, where) for where, row in found]
    for (where, _), row in zip(found, own, strict=True):
        as_question({"id": "1", "query": "Q?", "lang": "en"} | {key: row[key] for key in _ASKED if key in row}, where)
    return [own, hits_of([(where, "en", row.get("passages")) for (where, _), row in zip(found, own, strict=True)])]


def read_questions(path: Path) -> list[Any]:
    return [*load_benchmark({"benchmark": "jsonl", "path": str(path)}).docs]


def read_documents(path: Path) -> list[Any]:
    questions = path.with_name("questions.jsonl")
    questions.write_text('{"id": "q", "query": "Q?", "lang": "en"}\n')
    return [*(load_benchmark({"benchmark": "jsonl", "path": str(questions), "corpus": str(path)}).corpus or ())]


def read_labels(path: Path) -> list[Any]:
    return [row.cells for row in read_sheet(path, ("id", "label"))]


PASSAGES = '[{{"id": {id}, "text": {text}, "title": {title}, "lang": "en", "score": {score}}}]'
QUESTION = {
    "id": '"q1"',
    "query": '"When?"',
    "lang": '"en"',
    "answers": '["1841"]',
    "group_id": '"g"',
    "relevant_ids": '["d1"]',
    "note": '"unread"',
}
DOCUMENT = {"id": '"d1"', "lang": '"en"', "text": '"Built in 1841."', "title": '"Bridge"', "doc_id": '"d"'}
JUDGED = {"query-id": '"q1"', "corpus-id": '"d1"', "score": "1", "note": '"unread"'}
SHEET = {"id": '"q1"', "label": '"yes"', "note": '"unread"'}
PAIR = {"source": '"Bridge"', "source_lang": '"en"', "target": '"Brücke"', "target_lang": '"de"', "note": '"unread"'}
FOUND = {"id": '"q1"', "query": '"When?"', "ctxs": '[{"id": "d1", "text": "Built.", "title": "T", "lang": "en"}]'}

# Reader -> the ending of its file, how a record is written, how it is read, the record, its unread fields.
READERS: dict[str, tuple[str, Callable[[Any], str], Callable[[Path], list[Any]], Record, set[str]]] = {
    "log, lines": ("jsonl", in_lines, read_log, LOG, {"note"}),
    "log, JSON": ("json", lambda fields: f"[{in_lines(fields)}]", read_log, LOG, {"note"}),
    "log, CSV": ("csv", in_table(","), read_log, LOG, {"note"}),
    "log, TSV": ("tsv", in_table("\t"), read_log, LOG, {"note"}),
    "questions": ("jsonl", in_lines, read_questions, QUESTION, {"note"}),
    "documents": ("jsonl", in_lines, read_documents, DOCUMENT, set()),
    "corpus": ("jsonl", in_lines, lambda path: [*read_corpus(path)], DOCUMENT, {"doc_id"}),
    "judgements, lines": ("jsonl", in_lines, lambda path: [read_judgements(path)], JUDGED, {"note"}),
    "labels, CSV": ("csv", in_table(","), read_labels, SHEET, {"note"}),
    "translations": ("jsonl", in_lines, lambda path: [dict(load_table(path))], PAIR, {"note"}),
    "contexts": ("jsonl", in_lines, lambda path: [read_ctxs(path, 5, None).asked], FOUND, set()),
}


def plainly(value: Any) -> Iterator[Any]:
    """Yield the texts and numbers of what was read."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    if isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from plainly(inner)
    else:
        yield value


def refused(read: Callable[[Any], Any], given: Any, place: str) -> str | None:
    """Return the line that refuses it, which names the place; None if what was read is texts and finite numbers."""
    said: str | None = None
    try:
        found = read(given)
    except MragError as error:
        found, said = [], error.message
    if said is not None:
        assert place in said
        assert "\n" not in said
        assert len(said) < 400
        return said
    for value in plainly(found):
        assert not (isinstance(value, float) and not math.isfinite(value)), found
        # in a table, a word is a text, whatever it says
        words = (
            ()
            if isinstance(given, Path) and given.name.endswith(("csv", "tsv"))
            else ("nan", "inf", "-inf", "infinity")
        )
        assert not (isinstance(value, str) and value.lower() in words), found
        assert not (isinstance(value, str) and "{'" in value), found
    return None


def write(folder: Path, reader: str, fields: Sequence[tuple[str, str]]) -> Path:
    ending, written, _, _, _ = READERS[reader]
    # a benchmark is loaded once
    path = folder / f"file{len([*folder.iterdir()])}.{ending}"
    path.write_text(written(fields), "utf-8")
    return path


# A key that comes twice, in an object further down.
WITHIN = ('{"inner": "a", "inner": "b"}', '[[], {"outer": [{"inner": "a", "inner": "b"}]}]')


@pytest.mark.parametrize("reader", READERS)
def test_a_column_that_is_read_comes_once(reader: str, tmp_path: Path) -> None:
    ending, _, read, record, unread = READERS[reader]
    assert refused(read, write(tmp_path, reader, [*record.items()]), "") is None
    for key in record:
        path = write(tmp_path, reader, [*record.items(), (key, '"another"')])
        said = refused(read, path, path.name)
        # what is no key of ours is kept with a question, for plans, prompts and breakdowns
        cannot_fail = key in unread and reader != "questions"
        assert (said is None) is cannot_fail, (key, said)
        assert said is None or key in said, said
        for value in WITHIN if cannot_fail and ending not in ("csv", "tsv") else ():
            assert refused(read, write(tmp_path, reader, [*{**record, key: value}.items()]), "") is None, key
        path = write(tmp_path, reader, [*record.items(), (key, record[key])])
        same = refused(read, path, path.name)
        assert same is None or ending in ("csv", "tsv"), key
        assert same is None or not cannot_fail, key


@pytest.mark.parametrize("fault", [*NUMBERS, "too deep", "an object", "a list of objects"])
@pytest.mark.parametrize("reader", READERS)
def test_no_value_becomes_another(reader: str, fault: str, tmp_path: Path) -> None:
    ending, _, read, record, unread = READERS[reader]
    value = NUMBERS.get(fault) or {"too deep": DEEP, "an object": OBJECT}.get(fault, f"[{OBJECT}]")
    for key in record:
        path = write(tmp_path, reader, [*{**record, key: value}.items()])
        said = refused(read, path, path.name)
        if ending not in ("csv", "tsv") and fault in ("huge", "long", "too deep"):
            assert said is not None, key
        if fault in ("an object", "a list of objects") and key in unread:
            assert said is None, key


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "9" * 400, "high", ""])
def test_a_grade_and_a_score_are_finite_numbers(text: str, tmp_path: Path) -> None:
    """In lines of text, and in JSON as a literal and as a text."""
    for number, (read, content) in enumerate(
        [
            (read_judgements, f"q1 0 d0 1\nq1 0 d1 {text}\n"),
            (read_judgements, f"query-id\tcorpus-id\tscore\nq1\td1\t{text}\n"),
            (read_judgements, f'{{"q1": {{"d1": "{text}"}}}}'),
            (read_judgements, f'{{"q1": {{"d1": {text or "null"}}}}}'),
            (read_run, f"q1 Q0 d1 1 {text} tag\n"),
            (read_run, f'{{"q1": {{"d1": "{text}"}}}}'),
            (read_run, f'{{"q1": {{"d1": {text or "null"}}}}}'),
        ]
    ):
        path = tmp_path / f"judged{number}.txt"
        path.write_text(content, "utf-8")
        assert refused(lambda given, read=read: [read(given)], path, path.name) is not None, content


@pytest.mark.parametrize(
    "row",
    [
        '{"question": "Q?", "answer": "A.", "contexts": [{"text": "a", "text": "b"}]}',
        '{"question": "Q?", "answer": {"text": "A.", "text": "B."}}',
        '{"question": "Q?", "outputs": {"answer": "A.", "answer": "B."}}',
        '{"question": "Q?", "reference": ["A", {"value": "a", "value": "b"}], "answer": "A."}',
        '{"messages": [{"role": "user", "content": "Q?", "content": "R?"}], "answer": "A."}',
    ],
)
@pytest.mark.parametrize("within", ["{}\n", "[{}]", '{{"note": 1, "rows": [{}, {}]}}'])
def test_what_is_read_comes_once_however_deep(row: str, within: str, tmp_path: Path) -> None:
    path = tmp_path / ("log.jsonl" if within.endswith("\n") else "log.json")
    path.write_text(within.format(row, row.replace("?", "!")), "utf-8")
    assert "comes twice with different values" in str(refused(read_log, path, path.name))


@pytest.mark.parametrize(
    "content",
    [
        '{"rows": [{"question": "Q?"}, {"question": "R?"}], "rows": [{"question": "S?"}, {"question": "T?"}]}',
        '{"question": ["Q?", "R?"], "question": ["S?", "T?"], "answer": ["a", "b"]}',
        '{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "Q?", "question": "R?"}]}]}]}',
    ],
)
def test_what_rows_are_made_of_comes_once(content: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(content, "utf-8")
    assert "comes twice with different values" in str(refused(read_log, tmp_path / "log.json", "log.json"))


# What servers answer with status 200, the key of it that is read, and its reader.
ANSWERS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "a completion": ("choices", '[{"message": {"content": "yes"}}]', json_answer),
    "embeddings": ("data", '[{"embedding": [1.0]}]', json_answer),
    "a reranker": ("results", '[{"index": 0, "relevance_score": 1.0}]', json_answer),
    "a retriever": ("found", '[{"text": "a passage"}]', lambda body: json_answer(body, {"found"})),
    "a system": ("answer", '"yes"', lambda body: reply_of(json_body(body))),
    "a format of its own": ("said", '"yes"', json_answer),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_read_of_an_answer_comes_once(kind: str) -> None:
    key, value, read = ANSWERS[kind]
    for twice in (f'"{key}": "no"', f'"{key}": [{{"a": 1, "a": 2}}]', '"error": 1, "error": 2', '"note": 1, "note": 2'):
        body = f'{{"{key}": {value}, {twice}}}'
        if "note" in twice and kind != "a format of its own":
            assert read(body), body
            continue
        with pytest.raises((HttpFault, DataError), match="comes twice with different values"):
            read(body)


def test_judgements_have_each_column_once(tmp_path: Path) -> None:
    path = tmp_path / "qrels.csv"
    path.write_text("query-id,corpus-id,score,score\nq1,d1,0,1\n", "utf-8")
    assert "two columns are called 'score'" in str(refused(read_judgements, path, path.name))


# The fields of a log as columns of Parquet, and what no text or number is.
FAULTY = {
    "a date out of range": pa.array([2**62], pa.timestamp("us")),
    "dates out of range": pa.array([[2**62]], pa.list_(pa.timestamp("us"))),
    "nan": pa.array([math.nan]),
    "infinite": pa.array([math.inf]),
    "an object": pa.array([{"inner": ["1841"]}]),
    "a list of objects": pa.array([[{"inner": "1841"}]]),
    "no UTF-8": pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    ),
    "a number of many digits": pa.array([Decimal("9" * 38)]),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_column_of_parquet_that_is_not_read_cannot_fail(fault: str, tmp_path: Path) -> None:
    """One that is read is refused, or has no value; a name that comes twice counts where it is read."""
    for reader, record, unread in ((read_log, LOG, "note"), (lambda path: [read_judgements(path)], JUDGED, "note")):
        good = {key: pa.array([json.loads(value)]) for key, value in record.items()}
        for key in record:
            path = tmp_path / f"{reader.__name__}-{key}.parquet"
            pq.write_table(pa.table({**good, key: FAULTY[fault]}), path)
            said = refused(reader, path, path.name)
            assert said is None or key != unread, said
            arrays = [*good.values(), pa.array(["another"])]
            pq.write_table(pa.Table.from_arrays(arrays, names=[*good, key]), path)
            said = refused(reader, path, path.name)
            assert (said is None) is (key == unread), (key, said)


class Itself:
    """An object whose dictionary holds itself."""

    def to_dict(self) -> dict[str, Any]:
        return {"answer": self}


REPLIES = {
    "nan": math.nan,
    "infinite": math.inf,
    "an array": np.array([math.inf]),
    "a long number": 10**5000,
    "an object": {"inner": ["1841"]},
    "a list of objects": [{"inner": "1841"}],
    "too deep": json.loads(DEEP),
    "itself": Itself(),
    "a type": int,
    "bytes": b"1841",
}


@pytest.mark.parametrize("fault", REPLIES)
def test_a_reply_is_texts_and_finite_numbers(fault: str) -> None:
    good = {"text": "Built.", "id": "d1", "title": "T", "lang": "en", "score": 1.0, "doc_id": "d"}
    assert refused(reply_of, {"answer": "In 1841.", "contexts": [good]}, "") is None
    for key in good:
        refused(reply_of, {"answer": "In 1841.", "contexts": [{**good, key: REPLIES[fault]}]}, "reply")
    assert refused(reply_of, {"answer": REPLIES[fault], "contexts": [good]}, "reply") is not None
    # NaN is a missing value
    assert fault == "nan" or refused(reply_of, {"answer": "In 1841.", "contexts": REPLIES[fault]}, "reply") is not None
    beside = refused(reply_of, {"answer": "In 1841.", "contexts": [good], "note": REPLIES[fault]}, "reply")
    assert beside is None or fault in ("too deep", "itself"), "what is not read fails only by its depth"
