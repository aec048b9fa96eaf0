"""Judgements and rankings in every layout of the field: grades, ties as trec_eval, own benchmarks and corpora."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import MragError, load_benchmark, score
from mrag_eval._front import read_log
from mrag_eval.datasets import read_judgements
from mrag_eval.metrics import ranking_metrics
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
