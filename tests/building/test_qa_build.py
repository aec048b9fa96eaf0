"""``build qa`` from the corpus to a run of the task: drops with reasons, resuming, reviewing, wrong corpora."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building import QaBuilt, build_qa
from mrag_eval.building.qa._qa_config import QaConfig
from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import DataError, read_sheet, write_sheet
from tests.building.qa_world import Paragraphs, pair, records, verdict
from tests.building.scripted import ScriptedModel, failed
from tests.tables import single_spaced

SUND = "The police of Sund answer at 7731, and taxis are yellow there all through the long winter nights, people say."
TEXTS = {
    "sund": {"en": SUND, "ar": "رقم الشرطة في سوند هو 7731 وسيارات الأجرة صفراء اللون."},
    "olm": {"en": SUND.replace("Sund", "Olm"), "ar": "رقم الشرطة في أولم هو 5512 وسيارات الأجرة خضراء."},
    "varn": {"en": SUND.replace("Sund", "Varn")},
}
QUESTIONS = {"English": "What is the number of the police in {}?", "Arabic": "ما هو رقم الشرطة في {}؟"}


def corpus(folder: Path, texts: dict[str, dict[str, str]] = TEXTS) -> Path:
    rows = [{"id": d, "language": lang, "content": t} for d, versions in texts.items() for lang, t in versions.items()]
    path = folder / "documents.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def place(prompt: str) -> str:
    names = {"Sund": "Sund", "سوند": "Sund", "Olm": "Olm", "أولم": "Olm", "Varn": "Varn"}
    return next(found for spelt, found in names.items() if spelt in prompt)


def answers(prompt: str) -> str:
    if "<question>" in prompt:
        return verdict()
    language = "Arabic" if "are in Arabic" in prompt else "English"
    return pair(QUESTIONS[language].format(place(prompt)), "7731")


EVEN = QaConfig.model_validate({"balance": "none", "min_words": 5, "per_document": 2, "seed": 3})


def build(folder: Path, script: Any = answers, config: QaConfig = EVEN, **more: Any) -> tuple[QaBuilt, Any, list[str]]:
    model: Any = ScriptedModel(script)
    said: list[str] = []
    source = more.pop("source", None) or corpus(folder)
    built = build_qa(source, folder / "out", config, model, kind="bm25", say=said.append, **more)
    return built, model, said


def drops(built: QaBuilt) -> dict[str, dict[str, int]]:
    return {report.name: dict(report.dropped) for report in built.reports if report.dropped}


def test_the_files_are_those_of_the_task(tmp_path: Path) -> None:
    built, _, _ = build(tmp_path)
    # nothing but the folder is named: the passages are cut as the build cut them
    loaded = load_benchmark({"benchmark": "xlcost", "domain": "own", "path": str(built.folder)})
    assert loaded.source["corpus"]["chunker"] == {
        "method": "llamaindex",
        "size": 100,
        "tokenizer": "model_free",
        "version": 2,
    }
    assert len(loaded.docs) == built.rows
    assert loaded.source["pairs"]["kept"] == built.pairs
    drawn = {r["id"]: r["lang"] for r in records(built.folder / "steps" / "01_documents.jsonl")}
    assert drawn["varn"] == "en"
    for doc in loaded.docs:
        assert doc.gold_doc_lang == drawn[doc.relevant_ids[0]]
        assert {"formulation", "similarity", "question_type", "q_type"} <= doc.extra.keys()
    # the index holds the passages that the task itself would cut
    from mrag_eval.retrievers import load_index

    assert loaded.corpus is not None
    index = load_index(built.folder / "index")
    assert [p.text for p in index.passages([p.id for p in loaded.corpus])] == [p.text for p in loaded.corpus]
    assert {p.doc_id: p.lang for p in loaded.corpus} == drawn


def test_the_datasheet_describes_the_construction(tmp_path: Path) -> None:
    built, _, said = build(tmp_path)
    sheet = json.loads((built.folder / "datasheet.json").read_text(encoding="utf-8"))
    assert sheet["questions"] == built.rows
    assert (sheet["seed"], sheet["balance"]) == (3, "none")
    assert sheet["models"]["writer"]["name"] == "scripted"
    assert set(sheet["prompts_sha256"]) == {"qa_write", "qa_check"}
    assert set(sheet["files_sha256"]) == {"own_benchmark.parquet", "own_corpus.parquet"}
    page = single_spaced((built.folder / "datasheet.md").read_text(encoding="utf-8"))
    assert "| formulation | concise | 40.0 |" in page
    assert "| question | document | count |" in page
    assert [line.split()[0] for line in said] == [
        "documents",
        "draw",
        "write",
        "check",
        "distinct",
        "review",
        "balance",
    ]


def test_every_loss_has_its_reason(tmp_path: Path) -> None:
    texts = {f"{name.lower()}": {"en": SUND.replace("Sund", name)} for name in "ABCDEFGH"}
    texts["tiny"] = {"en": "Too little."}
    config = EVEN.model_copy(update={"per_document": 1})

    def script(prompt: str) -> Any:
        if "<document>" not in prompt:
            return "I still cannot." if "no <question>" in prompt else pair(QUESTIONS["Arabic"].format("C"), "7731")
        name = prompt.split("police of ")[1][0]
        if "<question>" in prompt:
            refused = {"D": "answerable", "E": "faithful", "F": "self_contained"}.get(name)
            return verdict(**{refused: "no"}) if refused else verdict()
        if name == "A":
            return "I cannot."
        if name == "B":
            return failed("timeout")
        if name == "C":
            return pair(QUESTIONS["Arabic"].format("C"), "7731")
        return pair(QUESTIONS["English"].format(name if name < "G" else "G"), "7731")

    built, model, _ = build(tmp_path, script, config, source=corpus(tmp_path, texts))
    assert drops(built) == {
        "documents": {"too short": 1},
        "write": {"unreadable reply": 1, "call failed: timeout": 1, "question in another language": 1},
        "check": {"not answerable": 1, "not faithful": 1, "not self-contained": 1},
        "distinct": {"duplicate": 1},
    }
    assert built.rows == 1
    # each unreadable or wrong-language reply was returned once
    assert sum("could not be read" in prompt for prompt in model.asked) == 2
    listed = records(built.folder / "steps" / "04_check.dropped.jsonl")
    assert {entry["reason"] for entry in listed} == {"not answerable", "not faithful", "not self-contained"}


def test_a_second_call_asks_nothing_and_a_failed_call_is_tried_again(tmp_path: Path) -> None:
    broken = ["sund"]

    def script(prompt: str) -> Any:
        return failed() if broken and place(prompt) == "Sund" else answers(prompt)

    first, _, _ = build(tmp_path, script)
    broken.clear()
    second, model, _ = build(tmp_path, script)
    assert (second.rows or 0) > (first.rows or 0)
    assert all(place(prompt) == "Sund" for prompt in model.asked if "<question>" not in prompt)
    _, third, said = build(tmp_path, script)
    assert third.asked == []
    assert all(line.endswith("reused") for line in said)


def test_the_seed_decides_every_draw(tmp_path: Path) -> None:
    drawn = []
    for seed, name in ((3, "a"), (3, "b"), (4, "c")):
        (tmp_path / name).mkdir()
        built, _, _ = build(tmp_path / name, config=EVEN.model_copy(update={"seed": seed, "per_document": 5}))
        drawn.append([(r["doc_lang"], r["categories"]) for r in records(built.folder / "steps" / "02_draw.jsonl")])
    assert drawn[0] == drawn[1] != drawn[2]


def test_questions_on_some_documents_all_of_them_searched(tmp_path: Path) -> None:
    built, _, _ = build(tmp_path, config=EVEN.model_copy(update={"sample": 1}))
    assert drops(built)["draw"] == {"not sampled": 2}
    assert len(records(built.folder / "steps" / "02_draw.jsonl")) == 2
    sheet = json.loads((built.folder / "datasheet.json").read_text(encoding="utf-8"))
    assert sum(sheet["index"]["passages"].values()) == 3


def test_a_long_document_is_asked_about_in_parts(tmp_path: Path) -> None:
    long = " ".join(f"Sund has a police station number {i}." for i in range(40))
    config = EVEN.model_copy(update={"excerpt_words": 35, "per_document": 8})
    built, _, _ = build(tmp_path, config=config, source=corpus(tmp_path, {"sund": {"en": long}}))
    excerpts = {r["excerpt"] for r in records(built.folder / "steps" / "02_draw.jsonl")}
    assert len(excerpts) > 2
    assert all(len(text.split()) == 35 for text in excerpts)


def test_parts_of_a_text_without_spaces_are_as_long(tmp_path: Path) -> None:
    """One and a half characters count as a word, so six sentences of ten characters are forty words."""
    config = EVEN.model_copy(update={"excerpt_words": 40, "per_document": 8})
    source = corpus(tmp_path, {"sund": {"zh": "苏恩德警察的电话号码。" * 30}})
    with pytest.raises(DataError):
        build(tmp_path, lambda prompt: "no", config, source=source)
    excerpts = {r["excerpt"] for r in records(tmp_path / "out" / "steps" / "02_draw.jsonl")}
    assert {text.count("。") for text in excerpts} <= {5, 6}
    assert all(text.startswith("苏恩德") for text in excerpts)


# ------------------------------------------------------------ people's review


def test_only_reviewed_questions_pass(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    waiting, _, _ = build(tmp_path, sheets=[sheet])
    assert waiting.rows is None
    assert not (waiting.folder / "own_benchmark.parquet").exists()
    rows = [dict(row.cells) for row in read_sheet(sheet, ())]
    yes = {"natural": "yes", "answerable": "yes", "correct": "yes"}
    filled = [rows[0] | yes, rows[1] | yes | {"correct": "no", "corrected_answer": "5512"}]
    write_sheet(sheet, list(rows[0]), [*filled, *(row | {"natural": "no"} for row in rows[2:])])
    built, _, _ = build(tmp_path, sheets=[sheet])
    assert built.rows == 2
    assert drops(built)["review"] == {"review: unnatural": len(rows) - 2}
    loaded = load_benchmark({"benchmark": "xlcost", "domain": "own", "path": str(built.folder), "corpus": "none"})
    assert sorted(doc.answers[0] for doc in loaded.docs) == ["5512", "7731"]
    facts = json.loads((built.folder / "datasheet.json").read_text(encoding="utf-8"))
    assert (facts["review"]["accepted"], facts["review"]["corrected"]) == (1, 1)
    again, model, said = build(tmp_path, sheets=[sheet])
    assert again.review is not None
    assert (again.rows, again.review.counts, model.asked) == (2, built.review.counts if built.review else None, [])
    assert all(line.endswith("reused") for line in said)
    # the same folder again, without the sheet
    assert (build(tmp_path)[0].rows or 0) > 2


# ------------------------------------------------------------ corpora that yield nothing


def test_a_checker_that_refuses_everything_ends_with_the_counts(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        build(tmp_path, lambda p: verdict(faithful="no") if "<question>" in p else answers(p))
    assert "no question is left" in caught.value.message
    assert "check: not faithful" in caught.value.message
    # and the datasheet says so too
    sheet = json.loads((tmp_path / "out" / "datasheet.json").read_text(encoding="utf-8"))
    assert sheet["questions"] == 0
    assert [step["name"] for step in sheet["steps"]][3] == "check"


def test_a_corpus_of_one_language_is_noted(tmp_path: Path) -> None:
    built, _, said = build(tmp_path, source=corpus(tmp_path, {"varn": TEXTS["varn"]}))
    assert built.pairs.keys() == {"en->en"}
    assert said[0].startswith("note         all documents and all questions are in 'en'")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "language": "xx", "text": SUND}], "line 1: unknown language 'xx'"),
        ([{"id": "a", "text": SUND}], "no 'lang' or 'language'"),
        ([], "holds no documents"),
    ],
)
def test_wrong_corpora(tmp_path: Path, rows: list[dict[str, str]], message: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        build(tmp_path, source=path)


# ------------------------------------------------------------ XQuAD's paragraphs, and a run


def test_xquad_paragraphs_become_a_benchmark_that_runs(test_data: Path, tmp_path: Path) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    tasks = Path(__file__).resolve().parents[2] / "tasks" / "xlcost"
    world = Paragraphs(test_data / "xquad", 30, ("ar", "en", "zh"))
    model: Any = ScriptedModel(world.answers)
    config = QaConfig.model_validate({"per_document": 4, "balance": "pairs", "seed": 1})
    built = build_qa(world.write(tmp_path / "xquad.jsonl"), tmp_path / "out", config, model, kind="bm25")
    assert len(built.pairs) == 9
    assert len(set(built.pairs.values())) == 1
    assert drops(built)["check"]["not self-contained"] > 0
    metadata = {
        "data": {"path": str(built.folder), "corpus": "none"},
        "retrieval": {"corpus": str(built.folder / "index"), "rerank": None},
        "judge": {"relevance": {"labels": "ids"}},
    }
    manager = TaskManager(include_path=str(tasks), include_defaults=False, metadata=metadata)
    names = ["xlcost_own", "xlcost_own_norag", "xlcost_own_oracle"]
    results = lm_eval.simple_evaluate(model="dummy", tasks=names, task_manager=manager, bootstrap_iters=100)
    scores = {name: results["configs"][name]["scores"] for name in names}
    assert {s["rows"] for s in scores.values()} == {built.rows}
    hits = scores["xlcost_own"]["metrics"]["hit@20"]
    # a lexical search finds documents in the question's own language, and others at best by names and numbers
    assert hits["macro"]["same_language"]["value"] > 0.8
    assert hits["macro"]["cross_language"]["value"] < 0.5
    for sample in results["samples"]["xlcost_own_oracle"]:
        shown = {passage["doc_id"] for passage in sample["doc"]["passages"]}
        assert shown == set(sample["doc"]["relevant_ids"])
    kinds = Counter(sample["doc"]["extra"]["q_type"] for sample in results["samples"]["xlcost_own"])
    assert set(kinds) == {"factoid", "open"}
