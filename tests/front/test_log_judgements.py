"""Judgements and rankings in every layout of the field: grades, ties as trec_eval, own benchmarks and corpora."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import MragError, load_benchmark, score
from mrag_eval._front import read_log
from mrag_eval.datasets import iter_csv, iter_jsonl, read_bytes, read_judgements, read_table
from mrag_eval.metrics import ranking_metrics
from mrag_eval.platform import DataError, read_sheet
from mrag_eval.retrieval import read_run
from mrag_eval.retrievers import read_corpus
from tests.front.test_score import found
from tests.worlds.logs import write_log

GRADES = {"q1": {"d1": 3, "d2": 1, "d4": 0}, "q2": {"d1": 1, "d2": 0}}
PAIRS = [(query, document, grade) for query, grades in GRADES.items() for document, grade in grades.items()]
ROWS = [{"id": "q1", "query": "Wann wurde die Mühle gebaut?"}, {"id": "q2", "query": "Wo liegt Tarn?"}]


def write_judgements(folder: Path, layout: str) -> Path:
    """Write :data:`GRADES` in a layout of the field."""
    path = folder / {"trec": "a.qrels", "beir": "a.tsv", "comma": "a.csv", "json": "a.json"}.get(layout, f"a.{layout}")
    if layout in ("jsonl", "parquet"):
        keys = ("query-id", "corpus-id", "score") if layout == "jsonl" else ("qid", "docid", "relevance")
        return write_log(path, [dict(zip(keys, pair, strict=True)) for pair in PAIRS])
    text = json.dumps({"name": "tarn", **GRADES})
    if layout == "trec":
        text = "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in PAIRS)
    elif layout != "json":
        mark = "\t" if layout == "beir" else ","
        text = "\n".join(mark.join(map(str, row)) for row in [("query-id", "corpus-id", "score"), *PAIRS])
    path.write_text(text, "utf-8")
    return path


LAYOUTS = ["trec", "beir", "comma", "json", "jsonl", "parquet"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_grades_are_gains_in_every_layout(layout: str, tmp_path: Path) -> None:
    qrels = write_judgements(tmp_path, layout)
    assert read_judgements(qrels) == GRADES
    run = tmp_path / "a.run"
    run.write_text("".join(f"{q} Q0 {d} {n} {9 - n}.0 x\n" for q in ("q1", "q2") for n, d in ((1, "d2"), (2, "d1"))))
    values = {
        name: row["values"] for name, row in found(score(ROWS, ["ndcg@10", "hit@1"], qrels=qrels, run=run)).items()
    }
    # q1: (1 + 3 / log2(3)) / (3 + 1 / log2(3)); q2: 1 / log2(3)
    assert values["q1"]["ndcg@10"] == pytest.approx(0.7967075809905066, abs=1e-12)
    assert values["q2"]["ndcg@10"] == pytest.approx(0.6309297535714575, abs=1e-12)
    assert [row["hit@1"] for row in values.values()] == [1.0, 0.0]
    strict = found(score(ROWS, ["ndcg@10", "hit@1"], qrels=qrels, run=run, relevant_from=2))
    assert strict["q1"]["values"] == {"ndcg@10": values["q1"]["ndcg@10"], "hit@1": 0.0}
    assert "hit@1" in strict["q2"]["unscored"]


@pytest.mark.parametrize("layout", ["trec", "beir", "comma", "jsonl", "parquet"])
def test_two_grades_of_one_pair_are_refused(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PAIRS", [*PAIRS, ("q1", "d1", 2)])
    with pytest.raises(MragError, match="query 'q1': 'd1' has the grades 3 and 2") as caught:
        read_judgements(write_judgements(tmp_path, layout))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("line", [1, 2])
@pytest.mark.parametrize("grade", ["nan", "-inf", "Infinity"])
def test_a_grade_that_is_not_finite_is_refused_on_every_line(grade: str, line: int, tmp_path: Path) -> None:
    lines = ["q1 0 d1 1", "q1 0 d2 2"]
    lines[line - 1] = f"q1 0 d3 {grade}"
    (tmp_path / "a.qrels").write_text("\n".join(lines), "utf-8")
    with pytest.raises(MragError, match=f"line {line}: the grade .* is not a finite number"):
        read_judgements(tmp_path / "a.qrels")


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("key", ["relevant_ids", "gold_doc_ids", "qrels"])
def test_rows_have_grades_of_their_own(key: str, as_list: bool) -> None:
    for row in ROWS:
        grades: Any = GRADES[row["id"]]
        given = [{"docid": name, "grade": grade} for name, grade in grades.items()] if as_list else grades
        (doc,) = read_log([{**row, key: given, "retrieved_ids": ["d2", "d1"]}]).docs.values()
        relevant = {name: grade for name, grade in grades.items() if grade}
        assert doc.relevant_ids == (*relevant,)
        assert doc.grades == (relevant if max(relevant.values()) > 1 else {})


def random_run(ties: bool) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    rng = random.Random(3)
    names = [f"d{n}" for n in range(40)]
    qrels = {f"q{q}": {name: rng.choice([0, 0, 1, 2, 3]) for name in rng.sample(names, 15)} for q in range(40)}
    run = {
        query: {name: float(rng.randint(1, 6)) if ties else rng.random() for name in rng.sample(names, 30)}
        for query in qrels
    }
    return {query: {**grades, "d0": 2} for query, grades in qrels.items()}, run


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("layout", ["trec", "json"])
def test_graded_judgements_with_ties_are_measured_as_trec_eval_does(ties: bool, layout: str, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = random_run(ties)
    named = {"ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "precision@10": "P_10", "mrr@30": "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {*named.values()}).evaluate(run)
    ours = ranking_metrics(qrels, run, [*named])
    (tmp_path / "a.json").write_text(json.dumps(qrels), "utf-8")
    lines = [f"{q} Q0 {d} {n} {s!r} x" for q, scores in run.items() for n, (d, s) in enumerate(scores.items(), 1)]
    (tmp_path / "run").write_text(json.dumps(run) if layout == "json" else "\n".join(lines), "utf-8")
    rows = [{"id": query, "query": "Wann?", "lang": "de"} for query in qrels]
    logged = found(score(rows, [*named], qrels=tmp_path / "a.json", run=tmp_path / "run"))
    for query, values in theirs.items():
        for name, other in named.items():
            assert ours[query][name] == pytest.approx(values[other], abs=1e-9)
            assert logged[query]["values"][name] == pytest.approx(values[other], abs=1e-9)


def test_what_is_shown_of_ties_goes_by_the_ranks_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q1 Q0 d1 2 1.0 x\nq1 Q0 d3 1 1.0 x\nq1 Q0 d9 3 0.5 x\nq1 Q0 d2 4 0.5 x\n")
    run = read_run(tmp_path / "run")
    assert [line.passage for line in run.lists["q1"]] == ["d3", "d1", "d9", "d2"]
    (tmp_path / "other").write_text("q1 Q0 d1 1 1.0 x\nq1 Q0 d3 2 1.0 x\n")
    run = read_run(tmp_path / "other")
    assert [line.passage for line in run.lists["q1"]] == ["d3", "d1"]
    assert [line.passage for line in run.shown("q1", 1)] == ["d1"]


# ------------------------------------------------- ids alone, and the field's own layouts


@pytest.mark.parametrize("ids", ["retrieved_context_ids", "retrieved_doc_ids", "context_ids", "doc_ids"])
@pytest.mark.parametrize("gold", ["reference_context_ids", "source_doc", "gold_ids", "relevant_docs"])
def test_ids_suffice_for_every_measure_of_retrieval(ids: str, gold: str) -> None:
    rows = [
        {"query": "Qaysi yili tegirmon qurilgan?", "query_lang": "uz", ids: ["d7", "d1"], gold: ["d1"]},
        {"query": "Qaysi port?", "query_lang": "uz", ids: ["d3", "d4"], gold: "d2"},
    ]
    names = ["hit@1", "hit@2", "mrr@10", "shown@k"]
    values = [[row["values"][name] for name in names] for row in found(score(rows, names)).values()]
    assert values == [[0.0, 1.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]]
    # of ids alone the language is not known
    defaults, left = read_log(rows).default_metrics()
    assert defaults[0] == "shown@k"
    assert left["language of a context"] == ["passages_in_language"]
    # nor is a question needed
    bare = [{key: value for key, value in row.items() if key != "query"} | {"id": n} for n, row in enumerate(rows)]
    assert [row["values"]["hit@2"] for row in found(score(bare, "hit@2")).values()] == [1.0, 0.0]


@pytest.mark.parametrize("key", ["_id", "docid", "id"])
def test_corpora_and_questions_have_the_ids_of_their_layouts(key: str, tmp_path: Path) -> None:
    texts = {"d1": "Die Mühle von Tarn ist von 1764.", "d2": "Der Hafen von Tarn ist von 1902."}
    corpus = write_log(
        tmp_path / "corpus.jsonl", [{key: name, "title": "", "text": text} for name, text in texts.items()]
    )
    assert [one.id for one in read_corpus(corpus, lang="de")] == ["d1", "d2"]
    asked = write_log(tmp_path / "queries.jsonl", [{"_id": "q1", "text": "Wann wurde die Mühle gebaut?"}])
    block = {"benchmark": "jsonl", "path": str(asked), "corpus": str(corpus), "language": "de"}
    loaded = load_benchmark(block)
    assert [(doc.id, doc.query_lang) for doc in loaded.docs] == [("q1", "de")]
    assert [one.id for one in loaded.corpus or ()] == ["d1", "d2"]


def test_questions_in_the_shape_of_squad_are_a_benchmark_and_a_log(tmp_path: Path) -> None:
    asked = {"id": "a1", "question": "Wann wurde die Mühle gebaut?", "answers": [{"text": "1764", "answer_start": 3}]}
    paragraph = {"context": "Die Mühle von Tarn ist von 1764.", "qas": [asked]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "Tarn", "paragraphs": [paragraph]}]}), "utf-8")
    (doc,) = load_benchmark({"benchmark": "jsonl", "path": str(path), "language": "de"}).docs
    assert (doc.id, doc.query, doc.answers) == ("a1", asked["question"], ("1764",))
    (doc,) = read_log(path).docs.values()
    assert (doc.id, doc.query, doc.answers) == ("a1", asked["question"], ("1764",))


@pytest.mark.parametrize(("language", "text"), [("de", "Die Mühle."), ("am", "ወፍጮው።"), ("zh", "石磨。")])
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_paragraphs_in_the_shape_of_squad_are_a_corpus(language: str, text: str, ending: str, tmp_path: Path) -> None:
    asked = [{"id": f"a{n}", "question": "?", "answers": [{"text": "1764"}]} for n in (1, 2)]
    paragraphs = [{"context": text, "qas": asked[:1]}, {"context": f"{text} 2", "qas": asked[1:]}]
    path = tmp_path / f"squad.{ending}"
    raw = json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}).encode()
    path.write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
    documents = list(read_corpus(path, lang=language))
    assert [(one.id, one.lang, one.text, one.title) for one in documents] == [
        ("p1", language, text, "T"),
        ("p2", language, f"{text} 2", "T"),
    ]
    loaded = load_benchmark({"benchmark": "jsonl", "path": str(path), "corpus": str(path), "language": language})
    assert [doc.relevant_ids for doc in loaded.docs] == [("p1",), ("p2",)]
    assert [one.id for one in loaded.corpus or ()] == ["p1", "p2"]
    # and the texts of a log that has its contexts by their ids
    ids = [{"question": "?", "answer": "a", "retrieved_ids": ["p2"], "gold_ids": ["p2"], "lang": language}]
    ((row,),) = read_log(ids, corpus=path).given()
    assert [hit.text for hit in row.passages or ()] == [f"{text} 2"]


TEXTS = {"d1": "Die Mühle von Tarn ist von 1764.", "d2": "Der Hafen von Tarn ist von 1902.", "d4": "Tarn liegt am See."}
FOLDERS = ["beir", "packed", "mteb", "default"]


def write_folder(folder: Path, layout: str, keys: tuple[str, str] = ("_id", "_id")) -> Path:
    """Write :data:`TEXTS`, :data:`ROWS` and one that nobody judged, and :data:`GRADES`, as the field has them."""
    folder.mkdir()
    corpus = [{keys[0]: name, "title": "", "text": text} for name, text in TEXTS.items()]
    queries = [{keys[1]: row["id"], "text": row["query"]} for row in [*ROWS, {"id": "q3", "query": "Wer?"}]]
    if layout in ("mteb", "default"):
        for part, rows in (("corpus", corpus), ("queries", queries)):
            for number, row in enumerate(rows):
                (folder / part).mkdir(exist_ok=True)
                write_log(folder / part / f"test-{number:05}-of-{len(rows):05}.parquet", [row])
        (folder / ("qrels" if layout == "mteb" else "default")).mkdir()
        pairs = [dict(zip(("query-id", "corpus-id", "score"), pair, strict=True)) for pair in PAIRS]
        write_log(folder / ("qrels" if layout == "mteb" else "default") / "test-00000-of-00001.parquet", pairs)
        return folder
    for part, rows in (("corpus", corpus), ("queries", queries)):
        path = write_log(folder / f"{part}.jsonl", rows)
        if layout == "packed":
            path.with_name(f"{part}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    (folder / "qrels").mkdir()
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, pair)) for pair in PAIRS)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines), "utf-8")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td1\t1\n", "utf-8")
    return folder


@pytest.mark.parametrize("keys", [("_id", "_id"), ("docid", "query_id"), ("id", "id"), ("docid", "qid")])
@pytest.mark.parametrize("layout", FOLDERS)
def test_a_folder_of_the_field_is_a_benchmark_a_log_and_a_corpus(
    layout: str, keys: tuple[str, str], tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tarn", layout, keys)
    loaded = load_benchmark({"benchmark": "jsonl", "path": str(folder), "language": "de"})
    assert [(doc.id, doc.query, dict(doc.grades)) for doc in loaded.docs] == [
        ("q1", ROWS[0]["query"], {"d1": 3, "d2": 1}),
        ("q2", ROWS[1]["query"], {}),
    ]
    assert [doc.relevant_ids for doc in loaded.docs] == [("d1", "d2"), ("d1",)]
    assert {one.id: one.text for one in loaded.corpus or ()} == TEXTS
    assert {one.id: one.text for one in read_corpus(folder, lang="de")} == TEXTS
    assert read_judgements(folder) == GRADES
    run = tmp_path / "a.run"
    run.write_text("".join(f"{q} Q0 {d} {n} {9 - n}.0 x\n" for q in ("q1", "q2") for n, d in ((1, "d2"), (2, "d1"))))
    # q1: (1 + 3 / log2(3)) / (3 + 1 / log2(3)); q2: 1 / log2(3)
    wanted = [pytest.approx(0.7967075809905066, abs=1e-12), pytest.approx(0.6309297535714575, abs=1e-12)]
    for results in (
        score(folder, "ndcg@10", run=run, lang="de"),
        score(run, "ndcg@10", qrels=folder, corpus=folder),
        score(ROWS, "ndcg@10", qrels=folder, run=run),
    ):
        assert [row["values"]["ndcg@10"] for row in found(results).values()] == wanted
    # the texts of contexts come from its corpus
    (rows,) = read_log(folder, run=run, lang="de").given()
    assert [[hit.text for hit in row.passages or ()] for row in rows] == [[TEXTS["d2"], TEXTS["d1"]]] * 2


def test_a_folder_names_its_splits_and_what_it_lacks(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tarn", "beir")
    block = {"benchmark": "jsonl", "path": str(folder), "language": "de"}
    assert [doc.id for doc in load_benchmark({**block, "split": "dev"}).docs] == ["q3"]
    with pytest.raises(MragError, match="no judgements qrels/train; there: dev, test"):
        load_benchmark({**block, "split": "train"})
    (folder / "qrels" / "test.tsv").write_text("q1\td9\t1\n", "utf-8")
    with pytest.raises(MragError, match="question 'q1': relevant id 'd9' is not in the corpus"):
        load_benchmark(block)
    with pytest.raises(MragError, match="key 'lang' is missing") as caught:
        load_benchmark({key: block[key] for key in ("benchmark", "path")})
    assert "data.language=CODE" in str(caught.value.next_step)
    (folder / "corpus.jsonl").unlink()
    assert load_benchmark(block).corpus is None
    (folder / "queries.jsonl").unlink()
    with pytest.raises(MragError, match=r"is a folder without queries\.jsonl"):
        load_benchmark({**block, "seed": 1})
    with pytest.raises(MragError, match="a folder, not a file"):
        read_log(folder)


@pytest.mark.parametrize("form", ["trec", "tabs", "gz", "json", "lines of json"])
def test_a_run_is_a_log_as_it_lies(form: str, tmp_path: Path) -> None:
    run = tmp_path / {"gz": "a.run.gz", "json": "a.json", "lines of json": "b.json"}.get(form, "a.run")
    mark = "\t" if form == "tabs" else " "
    lists = {"q1": {"d2": 2.5, "d1": 2.0}, "q9": {"d1": 1}}
    lines = [
        mark.join([q, "Q0", d, "1" if d == "d2" else "2", str(s), "x"]) for q in lists for d, s in lists[q].items()
    ]
    text = "\n".join(lines)
    if "json" in form:
        text = json.dumps(lists, indent=1 if form == "lines of json" else None)
    run.write_bytes(gzip.compress(text.encode()) if form == "gz" else text.encode())
    qrels = write_judgements(tmp_path, "trec")
    (judged, other) = found(score(run, ["ndcg@10", "hit@1"], qrels=qrels)).values()
    assert judged["values"]["ndcg@10"] == pytest.approx(0.7967075809905066, abs=1e-12)
    # nobody judged q9
    assert "hit@1" in other["unscored"]
    with pytest.raises(MragError, match="no column is the question"):
        read_log(run)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "jsonl", "json"])
@pytest.mark.parametrize("read", [read_bytes, read_table, iter_jsonl, iter_csv, read_sheet])
def test_no_reader_of_files_waits_for_a_pipe(read: Callable[..., Any], ending: str, tmp_path: Path) -> None:
    pipe = tmp_path / f"pipe.{ending}"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="a pipe or a device, not a file") as caught:
        list(read(pipe) if read in (read_bytes, iter_jsonl) else read(pipe, ["id"]))
    assert caught.value.next_step


def test_a_pipe_is_refused_and_so_are_two_runs(tmp_path: Path) -> None:
    """A pipe would be waited for, or read once where logs are read twice."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (read_log, read_judgements):
        with pytest.raises(MragError, match="a pipe or a device, not a file"):
            read(pipe)
    run = tmp_path / "a.run"
    run.write_text("q1 Q0 d1 1 2.0 x\n")
    with pytest.raises(MragError, match="it is a run itself"):
        read_log(run, run=run, qrels=write_judgements(tmp_path, "trec"))


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Wann?", "answer": "1764", "usage": {"tokens": 5}},
        {"usage": {"tokens": 5}, "question": "Wann wurde die Mühle gebaut?", "answer": "1764"},
    ],
)
def test_a_log_is_no_run(row: dict[str, Any], tmp_path: Path) -> None:
    for ending in ("json", "jsonl"):
        path = tmp_path / f"a.{ending}"
        path.write_text(json.dumps(row), "utf-8")
        assert [doc.query for doc in read_log(path).docs.values()] == [row["question"]]


def test_rows_that_cannot_be_read_do_not_hide_that_others_have_contexts() -> None:
    bad = {"query": "?", "lang": "nonsense", "retrieved_ids": ["d1"], "gold_ids": ["d1"]}
    rows = [{**bad, "lang": "de"}, bad]
    assert [row["values"] for row in found(score(rows, "hit@1")).values()] == [{"hit@1": 1.0}, {}]
    with pytest.raises(MragError, match=r"rows\[1\]: 'retrieved_ids' is missing"):
        score([rows[0], {"query": "?", "lang": "de", "gold_ids": ["d1"]}, bad], "hit@1")


@pytest.mark.parametrize("ids", [["p1"], ["p1", "p2", "p3"]])
def test_fewer_ids_than_contexts_are_no_ids_of_them(ids: list[str]) -> None:
    good = {"question": "Wann?", "answer": "a", "contexts": ["x", "y"], "context_ids": ["p1", "p2"]}
    survey = read_log([good, {**good, "context_ids": ids}])
    assert len(survey.unread) == (len(ids) < 2)
    for error in survey.unread.values():
        assert "2 contexts, and ids of 1" in error.message
