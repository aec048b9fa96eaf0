"""BorderLines' questions compared with a join made by hand, and BordIRlines' files in the published layout."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrag_eval.core import Passage, is_language, normalize_language
from mrag_eval.datasets import Benchmark, Label, load_benchmark, majority, read_viewpoint, subjects, validate_data
from mrag_eval.datasets._bordirlines import _searchable
from mrag_eval.metrics import concurrence_scores
from mrag_eval.platform import ConfigError, DataError
from tests.worlds.bordirlines import TERRITORIES, K, real_queries, write_bordirlines


@pytest.fixture(scope="module")
def copy(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder ``data`` as on the hub."""
    return write_bordirlines(tmp_path_factory.mktemp("bordirlines"), real_queries(test_data))


def read(test_data: Path, **keys: Any) -> Benchmark:
    return load_benchmark({"benchmark": "bordirlines", "borderlines": str(test_data / "borderlines"), **keys})


def test_the_questions_are_those_of_the_join(test_data: Path) -> None:
    benchmark = read(test_data)
    by_id = {doc.id: doc for doc in benchmark.docs}
    queries = real_queries(test_data)
    assert (len(by_id), len({doc.group_id for doc in benchmark.docs})) == (720, 251)
    assert by_id.keys() == {q["query_id"] for q in queries}

    def code(language: str) -> str:
        return normalize_language(language) if is_language(language) else language

    for q in queries:
        doc = by_id[q["query_id"]]
        assert (doc.query, list(doc.choices or ())) == (q["query"], q["claimants_native"])
        assert (doc.query_lang, doc.group_id) == (code(q["query_lang"]), q["territory"])
        for key in ("territory", "claimants", "controller", "control_query", "region"):
            assert doc.extra[key] == q[key], (q["query_id"], key)
        assert doc.extra["claimant_langs"] == [code(c) for c in q["claimant_langs"]]
        assert doc.extra["controller_lang"] == code(q["controller_lang"])
        # dz, mfe and to are claimants' languages without a question; no documents are in them
        assert set(doc.relevant_langs) == {code(c) for c in q["relevant_langs"]} - {"dz", "mfe", "to"}
    assert "the controller is not a claimant, so no answer can name it: Lachin corridor" in benchmark.notes
    assert "added to the table of countries: Suriname" in benchmark.notes
    assert not any("differs" in note for note in benchmark.notes)


def test_published_hits_by_mode(test_data: Path, copy: Path) -> None:
    published = read(test_data, path=str(copy), embedder="m3").published
    assert published is not None
    assert set(published.runs) == {"qlang", "qlang+en", "en_only", "rel_langs"}
    asked = {q["query_id"] for q in real_queries(test_data) if q["territory"] in TERRITORIES}
    for rows in published.runs.values():
        assert rows.keys() == asked
        assert {len(run) for run in rows.values()} == {K}
    crimea = published.runs["rel_langs"]["Crimea_ru"]
    # m3 has the query's language first, then the others by code, document by document
    assert [published.passages[passage].lang for passage, _ in crimea[:4]] == ["ru", "en", "uk", "ru"]
    assert [score for _, score in crimea[:3]] == [0.9, 0.85, 0.8]
    chinese = published.passages[published.runs["qlang"]["Yalu_River_zhs"][0][0]]
    assert (chinese.lang, chinese.id) == ("zh-Hans", "zh-Hans:zhs.1712_p0")
    assert chinese.text.startswith("Yalu River是")
    # in some mode, ten documents each in Russian, Ukrainian and English were retrieved
    assert published.searchable["Crimea_uk"] == {"ru": 10, "en": 10, "uk": 10}
    assert published.labels["Crimea_ru", crimea[0][0]] == {"relevant": "yes", "viewpoint": "Russia"}


def test_paragraphs_that_no_retriever_found_were_searched_too(test_data: Path, copy: Path, tmp_path: Path) -> None:
    """Crimea's Russian page has five further paragraphs, one of Yalu River's has two without their prefix.

    A page that no retriever found for a territory does not count.
    """
    whole = tmp_path / "copy"
    shutil.copytree(copy, whole)
    file = whole / "data" / "all_docs.json"
    texts = json.loads(file.read_text("utf-8"))
    page = next(iter(texts["ru"])).rpartition("_p")[0]
    texts["ru"] |= {f"{page}_p{n}": "unread" for n in range(20, 25)} | {"9999_p0": "another page"}
    chinese = next(name for name in texts["zhs"] if "1712" in name).rpartition("_p")[0].rpartition(".")[2]
    texts["zhs"] |= {f"{chinese}_p{n}": "unread" for n in (20, 21)}
    file.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    found = read(test_data, path=str(whole), embedder="m3")
    assert found.published is not None
    assert found.published.searchable["Crimea_uk"] == {"ru": 15, "en": 10, "uk": 10}
    assert found.published.searchable["Yalu_River_ko"]["zh-Hans"] == 12
    assert found.source["searchable"] == "all paragraphs of the pages found"
    known = read(test_data, path=str(copy), embedder="m3")
    assert known.source["searchable"] == "the paragraphs found by either retriever in any mode"


def test_a_page_that_two_territories_share_does_not_make_its_paragraphs_all_known() -> None:
    """A retriever found paragraph 0 for one and 1 for the other, and the files hold these two alone."""
    passages = {f"en:China_p{n}": Passage(f"en:China_p{n}", "en", "text", doc_id="en:China") for n in (0, 1)}
    documents: Any = SimpleNamespace(passages=passages, paragraphs=lambda: Counter({"en:China": 2}))
    hits: Any = {"qlang": {f"q{n}": [SimpleNamespace(passage=f"en:China_p{n}")] for n in (0, 1)}}
    questions: Any = {f"q{n}": SimpleNamespace(territory=SimpleNamespace(name=f"T{n}")) for n in (0, 1)}
    counts, pool = _searchable({"m3": hits}, questions, documents)
    assert counts == {"q0": {"en": 1}, "q1": {"en": 1}}
    assert pool == "the paragraphs found by either retriever in any mode"


def test_embedders_differ(test_data: Path, copy: Path) -> None:
    published = read(test_data, path=str(copy / "data"), embedder="openai").published
    assert published is not None
    assert published.passages[published.runs["rel_langs"]["Crimea_ru"][0][0]].lang == "en"


@pytest.mark.parametrize(("documents", "kept"), [("relevant", 5), ("non_relevant", 5)])
def test_documents_by_relevance(test_data: Path, copy: Path, documents: str, kept: int) -> None:
    """Of ten documents in one language, the four claims and the one on the dispute are relevant, and five are not."""
    benchmark = read(test_data, path=str(copy), embedder="openai", documents=documents)
    assert benchmark.published is not None
    assert {len(run) for run in benchmark.published.shown("qlang", K).values()} == {kept}
    # ten hits over three languages: the first three or four of each, all relevant
    rel_langs = benchmark.published.shown("rel_langs", K)
    assert ("Crimea_ru" in rel_langs) == (documents == "relevant")
    assert benchmark.source["queries_with_documents"]["qlang"] == 26


@pytest.mark.parametrize("documents", ["relevant", "non_relevant"])
def test_relevance_divides_the_ten_that_are_shown(test_data: Path, copy: Path, tmp_path: Path, documents: str) -> None:
    """Whatever else is stored: in every mode, for every question, the same documents are kept."""
    deeper = write_bordirlines(tmp_path, real_queries(test_data), stored=3 * K)
    runs = []
    for path in (copy, deeper):
        for embedder in ("openai", "m3"):
            published = read(test_data, path=str(path), embedder=embedder, documents=documents).published
            assert published is not None
            runs.append({mode: {row: [p for p, _ in run] for row, run in published.shown(mode, K).items()} for mode in
                         published.runs})  # fmt: skip
    assert runs[:2] == runs[2:]


def test_delta_of_the_documents_that_are_shown(test_data: Path, tmp_path: Path) -> None:
    """A reader that answers with the side of most documents, on Ceuta (held by Spain; Spanish, Arabic).

    Of the relevant ones among ten, 2 say Spain and 2 say Morocco, and a tie is Spain's, in each language: Con and Non
    are 1, the delta is 0. Three more for Morocco are stored for the Spanish question, at ranks 11 to 13. With those it
    would be 2 to 5, Con 0, and the delta (0 - 1) / 1 = -1.
    """
    home = write_bordirlines(tmp_path, real_queries(test_data)) / "data"
    listed = (home / "es" / "openai" / "qlang" / "es_query_hits.tsv").read_text("utf-8").splitlines()
    asked = next(line.split("\t") for line in listed if line.split("\t")[1] == "Ceuta")
    labels = (home / "llm_annotations.tsv").read_text("utf-8").splitlines()
    # Morocco's claims in Arabic and in English
    further = [label for label in labels if label.startswith(f"{asked[0]}\t") and label.endswith("A) Morocco")]
    others = [label.split("\t")[1] for label in further if not label.split("\t")[1].startswith(asked[4].split("_")[0])]
    assert len(others) >= 3
    texts = json.loads((home / "all_docs.json").read_text("utf-8"))
    more = [
        "\t".join([*asked[:2], str(10 + n), "0.1", doc, next(lang for lang, there in texts.items() if doc in there)])
        for n, doc in enumerate(others[:3])
    ]
    (home / "es" / "openai" / "qlang" / "es_query_hits.tsv").write_text("\n".join([*listed, *more]) + "\n", "utf-8")
    scores = {}
    for documents in ("relevant", "all"):
        benchmark = read(test_data, path=str(tmp_path), embedder="openai", documents=documents, territories=["Ceuta"])
        published = benchmark.published
        assert published is not None
        replies = []
        for doc in benchmark.docs:
            sides = Counter(published.labels.get((doc.id, name), {}).get("viewpoint") for name, _ in
                            published.shown("qlang", K)[doc.id])  # fmt: skip
            side = "Morocco" if sides["Morocco"] > sides["Spain"] else "Spain"
            claimants = next(q for q in real_queries(test_data) if q["query_id"] == doc.id)["claimants"]
            replies.append({"query_id": doc.id, "territory": "Ceuta", "query_lang": doc.query_lang, "answer": side,
                            "claimant_ind": claimants.index(side)})  # fmt: skip
        territories = [q for q in real_queries(test_data) if q["territory"] == "Ceuta"]
        scores[documents] = concurrence_scores(territories, replies)["delta_CS_ratio"]
    assert scores == {"relevant": 0.0, "all": -1.0}


def test_askers_are_of_the_claimant_that_speaks_the_language(test_data: Path) -> None:
    docs = {doc.id: doc for doc in read(test_data, persona="nationalist", territories=["Crimea", "Abyei"]).docs}
    assert docs["Crimea_ru"].extra["country"] == "Russia"
    assert docs["Abyei_en"].extra["country"] == "South Sudan"
    assert "country" not in docs["Crimea_en"].extra


def test_one_folder_may_hold_both_copies(test_data: Path, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "borderlines").symlink_to(test_data / "borderlines")
    (tmp_path / "data").symlink_to(copy / "data")
    benchmark = load_benchmark({"benchmark": "bordirlines", "path": str(tmp_path), "embedder": "m3"})
    assert len(benchmark.docs) == 720
    assert benchmark.published is not None


def test_the_hub_that_does_not_answer_names_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError) as caught:
        load_benchmark({"benchmark": "bordirlines", "seed": 987})
    assert "ConnectionError: no route to host" in caught.value.message
    assert "--metadata data.borderlines=PATH" in (caught.value.next_step or "")


def test_subjects_split_names() -> None:
    assert subjects("Imia/Kardak", ["Greece", "Turkey"]) == ["Imia", "Kardak", "Greece", "Turkey"]


def test_languages_and_territories_are_chosen(test_data: Path) -> None:
    docs = read(test_data, languages=["iw", "ko"]).docs
    assert {doc.query_lang for doc in docs} == {"he", "ko"}
    with pytest.raises(DataError, match="no territory 'Crimae'; did you mean 'Crimea'"):
        read(test_data, territories=["Crimae"])


# ------------------------------------------------------------------------------------------------------- damage


def broken(copy: Path, tmp_path: Path, name: str, change: Any) -> Path:
    shutil.copytree(copy, tmp_path / "broken")
    file = tmp_path / "broken" / "data" / name
    with file.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle, delimiter="\t"))
    change(rows)
    with file.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle, delimiter="\t", lineterminator="\n").writerows(rows)
    return tmp_path / "broken"


def set_cell(row: int, column: int, value: str) -> Any:
    def change(rows: list[list[str]]) -> None:
        rows[row][column] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("ru/m3/qlang/ru_query_hits.tsv", set_cell(2, 4, "9_p9"), "row 2: document '9_p9' in 'ru' is not in"),
        ("ru/m3/qlang/ru_query_hits.tsv", set_cell(1, 0, "Q9999"), "row 1: query 'Q9999' is not in queries.tsv"),
        ("ru/m3/qlang/ru_query_hits.tsv", set_cell(1, 2, "first"), "row 1: 'rank' is not a number: 'first'"),
        ("llm_annotations.tsv", set_cell(1, 3, "Perhaps"), "row 1: relevance label 'Perhaps' is neither yes nor no"),
        ("llm_annotations.tsv", set_cell(1, 5, "C) Spain"), "viewpoint label 'C) Spain' is not one of this query's"),
        ("queries.tsv", set_cell(3, 0, "Q0"), "row 3: query id 'Q0' occurs twice"),
    ],
)
def test_a_damaged_file_is_named(
    test_data: Path, copy: Path, tmp_path: Path, name: str, change: Any, expected: str
) -> None:
    path = broken(copy, tmp_path, name, change)
    with pytest.raises(DataError, match=re.escape(expected)) as caught:
        read(test_data, path=str(path), embedder="m3")
    assert name.rpartition("/")[2] in caught.value.message


def test_a_territory_spelt_otherwise_is_found_by_its_question(test_data: Path, copy: Path, tmp_path: Path) -> None:
    path = broken(copy, tmp_path, "queries.tsv", set_cell(1, 2, "Abyei Area"))
    assert read(test_data, path=str(path), embedder="m3").published is not None
    both = broken(path, tmp_path / "again", "queries.tsv", set_cell(1, 1, "Whose is it?"))
    with pytest.raises(DataError, match="row 1: no BorderLines question on 'Abyei Area' in 'control'"):
        read(test_data, path=str(both), embedder="m3")


def test_borderlines_that_does_not_fit(test_data: Path, tmp_path: Path) -> None:
    root = shutil.copytree(test_data / "borderlines" / "original", tmp_path / "lines")
    choices = root / "translate" / "prompts_mc_q" / "choices.ko"
    lines = choices.read_text(encoding="utf-8").split("\n")
    choices.write_text("\n".join(['["대한민국"]', *lines[1:]]), encoding="utf-8")
    with pytest.raises(DataError, match=r"choices\.ko, line 1: 1 options for the 2 claimants of Korean Peninsula"):
        load_benchmark({"benchmark": "bordirlines", "borderlines": str(root)})
    choices.unlink()
    with pytest.raises(DataError, match=r"choices\.ko: no such file"):
        load_benchmark({"benchmark": "bordirlines", "borderlines": str(root), "seed": 1})


def test_the_hub_copy_is_read_the_same_way(test_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's tables store claimants as lists, options as JSON text and countries as rows."""
    root = test_data / "borderlines" / "original"
    with (root / "disputed_territories.csv").open(encoding="utf-8", newline="") as handle:
        territories: list[dict[str, Any]] = [dict(row) for row in csv.DictReader(handle)]
    for row in territories:
        row["Claimants"] = row["Claimants"].split(";")
    countries = json.loads((root / "countries_info.json").read_text(encoding="utf-8"))

    def table(benchmark: str, repo: str, config: str, split: str, revision: str | None, columns: Any, key: str) -> Any:
        assert (benchmark, repo) == ("bordirlines", "manestay/borderlines")
        if config == "territories":
            return territories
        if config == "countries":
            return [{"Country": name, **facts} for name, facts in countries.items()]
        folder = root / "translate"
        prompts, choices = (
            (folder / "prompts_mc_q" / f"{kind}.{split}").read_text(encoding="utf-8").rstrip("\n").split("\n")
            for kind in ("prompts", "choices")
        )
        places = json.loads((folder / "terms" / f"line_inds.{split}.txt").read_text(encoding="utf-8"))
        keys = ("Query_Native", "Claimants_Native", "Index_Territory")
        return [dict(zip(keys, row, strict=True)) for row in zip(prompts, choices, places, strict=True)]

    monkeypatch.setattr("mrag_eval.datasets._borderlines.hub_dataset", table)
    from_hub = load_benchmark({"benchmark": "bordirlines", "seed": 7})
    assert from_hub.docs == read(test_data).docs
    assert from_hub.source["place"] == {"borderlines": {"hub": "manestay/borderlines", "revision": None}}
    assert from_hub.source["content"] == read(test_data).source["content"]


def test_a_shorter_copy_says_so(test_data: Path, tmp_path: Path) -> None:
    root = shutil.copytree(test_data / "borderlines" / "original", tmp_path / "lines")
    for part in ("prompts", "choices"):
        (file,) = (root / "translate" / "prompts_mc_q").glob(f"{part}.ka")
        file.write_text("", encoding="utf-8")
    (root / "translate" / "terms" / "line_inds.ka.txt").write_text("[]", encoding="utf-8")
    notes = load_benchmark({"benchmark": "bordirlines", "borderlines": str(root)}).notes
    assert any("differs from the published counts: questions 719 of 720" in n for n in notes)


def test_filters_without_hits_are_refused() -> None:
    with pytest.raises(ConfigError, match="documents = relevant requires published hits"):
        validate_data({"benchmark": "bordirlines", "documents": "relevant"})


# ------------------------------------------------------------------------------------------------------- labels


def test_people_decide_by_majority_and_contradictions_are_dropped(test_data: Path, copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy, tmp_path / "c")
    number = next(i for i, q in enumerate(real_queries(test_data)) if q["query_id"] == "Crimea_ru")
    pair = [f"Q{number}", "1103_p0"]
    rows = [
        [*pair, "TRUE", "Russia"],
        [*pair, "TRUE", "Russia"],
        [*pair, "FALSE", "Russia"],  # contradictory
        # relevant, and no majority for a viewpoint
        [pair[0], "1103_p1", "TRUE", "Russia"],
        [pair[0], "1103_p1", "TRUE", "Ukraine"],
        [pair[0], "1103_p2", "TRUE", "Russia"],
        [pair[0], "1103_p2", "FALSE", ""],
    ]
    text = "\n".join("\t".join(row) for row in [["query_id", "doc_id", "relevant", "territory"], *rows])
    (tmp_path / "c" / "data" / "human_annotations.tsv").write_text(text + "\n", encoding="utf-8")
    benchmark = read(test_data, path=str(tmp_path / "c"), embedder="m3", annotations="human")
    assert benchmark.published is not None
    assert dict(benchmark.published.labels) == {
        ("Crimea_ru", "ru:1103_p0"): {"relevant": "yes", "viewpoint": "Russia"},
        ("Crimea_ru", "ru:1103_p1"): {"relevant": "yes"},
    }
    assert "left out: 1 contradictory labels, 1 pairs without majority" in benchmark.notes
    assert "1 relevant pairs have no majority for a viewpoint, and so none" in benchmark.notes


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["yes Spain", "yes Spain", "yes Neutral"], "yes Spain"),
        # each question has a majority of its own
        (["yes Spain", "yes Neutral"], "yes"),
        (["yes Spain", "yes Morocco", "yes Neutral"], "yes"),
        (["yes Spain", "yes Morocco", "no Not relevant"], "yes"),
        (["no Not relevant", "no Not relevant", "yes Spain"], "no Not relevant"),
        # one against one is none
        (["yes Spain", "no Not relevant"], None),
        # contradictory labels do not count
        (["yes Not relevant", "yes Spain"], "yes Spain"),
        (["yes Not relevant", "no Spain"], None),
        ([], None),
        # questions about no territory have no viewpoint
        (["yes", "no", "yes"], "yes"),
    ],
)
def test_majority_needs_more_than_half(labels: list[str], expected: str | None) -> None:
    def label(text: str) -> Label:
        relevant, _, viewpoint = text.partition(" ")
        return Label(relevant == "yes", viewpoint)

    assert majority([label(text) for text in labels]) == (None if expected is None else label(expected))


def test_viewpoints_are_read_in_either_language() -> None:
    claimants, native = ["Spain", "Morocco"], ["España", "Marruecos"]
    read_ = {v: read_viewpoint(v, claimants, "here", native) for v in ("A) Spain", "Marruecos", "X) Neutral", "", "B)")}
    assert read_ == {
        "A) Spain": "Spain",
        "Marruecos": "Morocco",
        "X) Neutral": "Neutral",
        "": "Not relevant",
        "B)": "Morocco",
    }
    json.dumps(Label(True, "Spain").as_labels())
