"""The case view: one territory in two modes, answers changed by retrieval, viewpoints of the documents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import DataError
from mrag_eval.report import read_case, shown_case
from tests.tables import single_spaced
from tests.worlds.measured import with_records


def sample(lang: str, index: int, views: tuple[str, ...] = (), territory: str = "Islet") -> dict[str, Any]:
    record = {
        "query_id": f"{territory}_{lang}",
        "territory": territory,
        "query_lang": lang,
        "claimants": ["Spain", "Peru"],
        "claimant_langs": ["es", "qu"],
        "controller": "Unknown",
        "controller_lang": "",
        "control_query": lang == "en",
        "claimant_ind": index,
        "outcome": "chosen" if index >= 0 else "unread",
    }
    passages = [
        {"id": str(i), "labels": {"viewpoint": view}} if view else {"id": str(i)} for i, view in enumerate(views)
    ]
    doc = {"passages": passages} if views else {}
    rows = {"row": record["query_id"], "cell": {"query_lang": lang}, "concurrence": record, "values": {}}
    return {"doc": doc, "rows": rows, "filtered_resps": [f"reply in {lang}"]}


def write(folder: Path, task: str, mode: str, samples: list[dict[str, Any]], **data: Any) -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(s) + "\n" for s in samples)
    (folder / f"samples_{task}_2026-01-01.jsonl").write_text(text, encoding="utf-8")
    file = folder / "results_2026-01-01.json"
    content = json.loads(file.read_text("utf-8")) if file.is_file() else {"configs": {}, "model_name": "org/tiny"}
    content["config"] = {"model": "hf", "model_args": {"pretrained": "org/tiny"}}
    config = {"retrieval": {"mode": mode, **({"corpus": "published"} if data else {})}, "data": data}
    content["configs"][task] = with_records({task: config})[task]
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    other = sample("en", 0, territory="Ceuta")
    write(tmp_path, "bordirlines_no_ir_direct", "no_ir", [sample("en", 0), sample("es", 0), other])
    views = ("Peru", "Peru", "Neutral", "")
    write(tmp_path, "bordirlines_qlang_direct_openai", "qlang", [sample("en", -1), sample("es", 1, views)])
    return tmp_path


def test_answers_and_documents(runs: Path) -> None:
    case = read_case("Islet", [runs])
    assert [(run.model, run.mode, run.form) for run in case.runs] == [
        ("org/tiny", "no_ir", "direct"),
        ("org/tiny", "qlang", "direct"),
    ]
    assert case.runs[1].answers == {"en": None, "es": "Peru"}
    assert case.runs[1].replies["es"] == "reply in es"
    assert case.runs[1].documents["es"] == {"Peru": 2, "Neutral": 1, "no label": 1}
    text = single_spaced(shown_case(case))
    assert "claimed by Spain, Peru · controlled by nobody known" in text
    assert "| org/tiny | no_ir | direct | Spain | Spain |" in text
    assert "| org/tiny | qlang (openai) | direct | (none)* | Peru* |" in text
    assert "| mode | question | for Peru | Neutral | no label |" in text
    assert "| qlang (openai) | es | 2 | 1 | 1 |" in text
    json.dumps(case.as_dict())
    assert "`*` another answer" in text
    assert "`(none)`" in text
    # a legend explains the marks that are there
    plain = single_spaced(shown_case(replace(case, runs=case.runs[:1])))
    assert "`" not in plain


def test_ways_of_scoring_are_compared_with_their_own_run_without_retrieval(runs: Path) -> None:
    write(runs, "bordirlines_no_ir_likelihood", "no_ir", [sample("en", 1), sample("es", 1)])
    write(runs, "bordirlines_qlang_likelihood_openai", "qlang", [sample("en", 1), sample("es", 0)])
    text = single_spaced(shown_case(read_case("Islet", [runs])))
    assert "| org/tiny | no_ir | likelihood | Peru | Peru |" in text
    assert "| org/tiny | qlang (openai) | likelihood | Peru | Spain* |" in text


def test_runs_of_one_mode_are_told_apart(tmp_path: Path) -> None:
    """Both retrievers' documents, those of one with another filter, and no documents: each run is named."""
    published = {"benchmark": "bordirlines"}
    write(tmp_path / "a", "bordirlines_no_ir_direct", "no_ir", [sample("en", 0)], **published)
    for folder, embedder, answer, view, more in (
        ("a", "openai", 0, "Peru", {}),
        ("a", "m3", 1, "Spain", {}),
        ("b", "openai", 1, "Neutral", {"documents": "relevant"}),
    ):
        data = {**published, "embedder": embedder, **more}
        write(
            tmp_path / folder, f"bordirlines_qlang_direct_{embedder}", "qlang", [sample("en", answer, (view,))], **data
        )
    case = read_case("Islet", [tmp_path])
    text = single_spaced(shown_case(case))
    for label, answer, views in (
        ("qlang (m3)", "Peru*", "1 | 0 | 0"),
        ("qlang (openai, documents=all)", "Spain", "0 | 1 | 0"),
        ("qlang (openai, documents=relevant)", "Peru*", "0 | 0 | 1"),
    ):
        assert f"| org/tiny | {label} | direct | {answer} |" in text
        assert f"| {label} | en | {views} |" in text
    assert "| org/tiny | no_ir | direct | Spain |" in text
    assert {(run.retriever, run.variant) for run in case.runs} >= {(None, ""), ("m3", "")}
    assert len({json.dumps(run["retriever"]) + run["variant"] + run["mode"] for run in case.as_dict()["runs"]}) == 4


def test_runs_without_results_are_numbered(tmp_path: Path) -> None:
    """Two runs of which nothing is known but their samples."""
    for number in (0, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        line = json.dumps(sample("en", number)) + "\n"
        (folder / "samples_bordirlines_qlang_direct_m3_2026-02-01.jsonl").write_text(line, "utf-8")
    text = single_spaced(shown_case(read_case("Islet", [tmp_path])))
    assert "| unnamed model | ? (identity=unknown #1) | direct | Spain |" in text
    assert "| unnamed model | ? (identity=unknown #2) | direct | Peru |" in text


def test_the_documents_that_each_language_cites(tmp_path: Path) -> None:
    """Document b is shown to both languages, in other places: es cites it twice, en not; nobody is shown more."""
    samples = [sample("en", 0, ("Peru", "Peru")), sample("es", 1, ("Peru", "Peru"))]
    replies = {
        "en": "Chosen Option: A) Spain\nExplanation: because <doc0>, <doc7>.",
        "es": "Explanation: <doc0> <doc0,1>",
    }
    for line, names in zip(samples, (("a", "b"), ("b", "c")), strict=True):
        lang = line["rows"]["cell"]["query_lang"]
        line["doc"]["passages"] = [{"id": name, "lang": "en", "labels": {}} for name in names]
        line["filtered_resps"] = [replies[lang]]
        line["rows"]["citations"] = {"answer": replies[lang], "document_langs": ["en", "en"]}
    write(tmp_path, "bordirlines_en_only_citation_openai", "en_only", samples)
    case = read_case("Islet", [tmp_path])
    assert case.as_dict()["runs"][0]["citations"] == {
        "a": {"en": {"document": 0, "times": 1}},
        "b": {"en": {"document": 1, "times": 0}, "es": {"document": 0, "times": 2}},
        "c": {"es": {"document": 1, "times": 1}},
    }
    text = single_spaced(shown_case(case))
    assert "Documents that org/tiny cites in en_only (openai), by language of the question" in text
    assert "| document | en | es | cited by |" in text
    assert "| b | 1 | 0 (2 x) | 1 of 2 |" in text
    assert "| a | 0 (1 x) | | 1 of 1 |" in text
    json.dumps(case.as_dict())


def test_an_unknown_territory_names_the_nearest(runs: Path) -> None:
    with pytest.raises(DataError, match="no sample on 'Ilset'; did you mean 'Islet'"):
        read_case("Ilset", [runs])
    with pytest.raises(DataError, match="no such file or folder"):
        read_case("Islet", [runs / "nowhere"])
