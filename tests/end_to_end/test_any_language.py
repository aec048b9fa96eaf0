"""Languages outside the first 81, from the question file to the report: nothing refuses one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Judge, Retrieval
from mrag_eval.core import Passage, RagDoc, Scored, language_name
from mrag_eval.datasets import load_benchmark
from mrag_eval.judging import language_check
from mrag_eval.models import Translator
from mrag_eval.models.translate._backend import Text
from mrag_eval.models.translate._lm import LmBackend
from mrag_eval.models.translate._nllb import NllbBackend
from mrag_eval.platform import ConfigError
from mrag_eval.prompts import load_template, system_prompts
from mrag_eval.report.page._samples import directions
from mrag_eval.report.page._spec import language
from mrag_eval.retrieval.agents._planner import in_pool
from mrag_eval.retrievers import Document, build_index, chunk_documents, read_corpus
from mrag_eval.retrievers.corpora._wikipedia import edition_code
from tests.core.test_languages import NEW
from tests.task.test_hook import run
from tests.worlds.judges import ScriptedJudge
from tests.worlds.small import BASE, ScriptedLM, write_task

IGBO = "Ụgbọ mmiri na-apụ n'ọdụ ụgbọ mmiri nke asaa."


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A question and a document in every language; the keyword is the code."""
    questions = [
        {
            "id": f"q-{code}",
            "query": f"word{code}?",
            "lang": code,
            "answers": [code],
            "culture_lang": language_name(code),
        }
        | {"relevant_ids": [f"d-{code}"], "gold_doc_lang": f"{code}_ZZ", "relevant_langs": [code, "en"]}
        for code in NEW
    ]
    documents = [{"id": f"d-{code}", "lang": f"__label__{code}", "text": f"word{code} here."} for code in NEW]
    return _write(tmp_path / "questions.jsonl", questions), _write(tmp_path / "corpus.jsonl", documents)


def test_questions_documents_and_an_index_of_35_languages(files: tuple[Path, Path], tmp_path: Path) -> None:
    questions, documents = files
    assert len(NEW) == 35
    benchmark = load_benchmark({"benchmark": "jsonl", "path": str(questions), "corpus": str(documents)})
    for doc, code in zip(benchmark.docs, NEW, strict=True):
        assert (doc.query_lang, doc.gold_doc_lang, doc.culture_lang) == (code, code, code)
        assert doc.relevant_langs == (code, "en")
    assert [passage.lang for passage in benchmark.corpus] == list(NEW)
    one = load_benchmark({"benchmark": "jsonl", "path": str(questions), "language": "Igbo"})
    assert [doc.query_lang for doc in one.docs] == ["ig"]

    read = list(read_corpus(documents))
    assert [document.lang for document in read] == list(NEW)
    assert {document.lang for document in read_corpus(documents, lang="mal_Mlym")} == {"ml"}

    index = build_index(read, tmp_path / "index", kind="bm25", progress=False)
    assert index.counts == dict.fromkeys(sorted(NEW), 1)
    for code in NEW:
        ((hit,),) = index.search([f"word{code}"], 1, languages=[f"{code}-Latn"])
        assert (hit.id.split("#")[0], hit.lang) == (index.search([f"word{code}"], 1)[0][0].id, code)


@pytest.mark.parametrize("method", ["words", "sentences", "llamaindex", "paragraphs", "none"])
def test_every_chunker_takes_every_language(method: str) -> None:
    settings = {"method": method} | ({"size": 50} if method not in ("paragraphs", "none") else {})
    text = "An old bridge leads over the river. " * 9
    for code in NEW:
        passages = list(chunk_documents([Document("d", code, text)], settings))
        assert {passage.lang for passage in passages} == {code}
        assert " ".join(passage.text for passage in passages).split() == text.split() or code == "bo"


def test_a_language_without_spaces_is_cut_into_characters() -> None:
    pieces = list(chunk_documents([Document("d", "bo", "བོད་སྐད་ཡིག" * 40)], {"method": "words", "size": 100}))
    assert len(pieces) == 5


def test_blocks_take_every_language() -> None:
    codes = tuple(NEW)
    assert Retrieval(mode="all", languages=[language_name(code) for code in codes]).languages == codes
    assert Judge(languages=codes).languages == codes
    assert Retrieval(pool=codes).pool == codes
    assert in_pool("Malayalam", codes) == in_pool("mal", codes) == "ml"
    for block in (Judge, Retrieval):
        with pytest.raises(ValueError, match=r"unknown language 'jp'; did you mean ja \(Japanese\)"):
            block(**{"languages" if block is Judge else "pool": ("jp",)})


def test_prompts_and_reports_name_every_language() -> None:
    template = load_template("short_answer")
    for code, (english, _) in NEW.items():
        assert english in system_prompts()["short_in_ul_en"].text(code, with_documents=True)
        assert template.render({"query": "?", "query_lang": code, "choices": None}, ())
    encoding = language([{"language": code} for code in (*NEW, "und")], "language", "language")
    assert all(json.dumps(english)[1:-1] in encoding["axis"]["labelExpr"] for english, _ in NEW.values())
    assert directions([*NEW, "quy", "und"]) == dict.fromkeys(("ckb", "ps", "sd", "yi", "ug"), "rtl")
    with pytest.raises(ConfigError, match="no text in Igbo") as caught:
        system_prompts()["short_in_ul_ul"].text("ig", with_documents=True)
    assert "short_in_ul_en" in str(caught.value.next_step)


def test_translators_take_every_language_or_say_that_they_do_not_have_it() -> None:
    judge: Any = ScriptedJudge(lambda prompt: "<translation>x</translation>")
    done = Translator(LmBackend(judge), "lm", check_language=False).translate(["word"] * 35, list(NEW), "en")
    assert {each.outcome for each in done} == {"translated"}
    asked = " ".join(turn["content"] for turns in judge.asked for turn in turns)
    assert all(english in asked for english, _ in NEW.values())
    # NLLB has all 35, but not Breton
    backend = NllbBackend("none")
    (only,) = backend.translate([Text("ur", "br", "en")])
    assert only[1].reason == "unsupported: br"


def test_a_judges_detector_that_does_not_know_a_language_leaves_its_rows_unscored() -> None:
    pytest.importorskip("lingua")
    rows = [Scored(RagDoc("a", "?", "ig"), IGBO), Scored(RagDoc("b", "?", "eu"), "Ontzia zazpigarren moilatik.")]
    check = language_check(Judge(language_check="lingua"), ["ig", "eu"])
    assert check is not None
    assert [row.in_language for row in check.of(rows)] == ["the detector lingua does not know Igbo", 1.0]
    # only English would be left to choose from
    check = language_check(Judge(language_check="lingua"), ["ig"])
    assert check is not None
    assert check.note == "language by fasttext (lingua needs two languages to tell apart, and does not know Igbo)"
    assert [row.in_language for row in check.of(rows[:1])] == ["the detector fasttext does not know Igbo"]


def test_a_run_in_languages_that_the_detector_knows_and_does_not(tmp_path: Path) -> None:
    malayalam = "ഏഴാം നമ്പർ കടവിൽ നിന്നാണ് കടത്തുവള്ളം പുറപ്പെടുന്നത്."
    questions = [
        {"id": "1", "query": "Ebee?", "lang": "ig", "answers": [IGBO], "relevant_ids": ["d1"]},
        {"id": "2", "query": "എവിടെ?", "lang": "ml", "answers": [malayalam], "relevant_ids": ["d2"]},
    ]
    documents = [{"id": "d1", "lang": "ibo_Latn", "text": IGBO}, {"id": "d2", "lang": "mal", "text": malayalam}]
    data = {
        "benchmark": "jsonl",
        "path": str(_write(tmp_path / "q.jsonl", questions)),
        "corpus": str(_write(tmp_path / "c.jsonl", documents)),
    }
    names = ["char3gram_recall", "correct_language", "code_switch", "language_mix"]
    retrieval = {"mode": "qlang", "k": 1, "kind": "bm25"}
    write_task(tmp_path, "small", **{**BASE, "metrics": names}, data=data, retrieval=retrieval)
    results = run(tmp_path, lm=ScriptedLM(lambda prompt: IGBO if "Ebee" in prompt else malayalam))
    scores = results["configs"]["small"]["scores"]
    assert scores["query_langs"] == {"ig": 1, "ml": 1}
    assert results["results"]["small"]["correct_language,none"] == 1.0
    assert results["results"]["small"]["code_switch,none"] == 0.0
    reason = {"the detector fasttext does not know Igbo": 1}
    assert (scores["unscored"]["correct_language"], scores["unscored"]["language_mix"]) == (reason, reason)


def test_editions_of_wikipedia() -> None:
    codes = ("ml", "nan", "gsw", "no", "bcl", "pnb", "tw")
    assert [edition_code(code) for code in codes] == ["ml", "zh-min-nan", "als", "no", "bcl", "pnb", "tw"]


def test_a_passage_without_a_language_is_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"passage 'p': unknown language 'und'\n    use a BCP 47 code"):
        build_index([Passage("p", "und", "text")], tmp_path / "i", kind="bm25", progress=False)
