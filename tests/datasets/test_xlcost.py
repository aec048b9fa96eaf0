"""The Cross-Lingual Cost: exclusions and relabelling, on the real files and on hand-written rows; wrong files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import PAGE, Passage, RagDoc
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets import _files as github
from mrag_eval.datasets._xlcost_corpus import _named, country_pages
from mrag_eval.platform import ConfigError, DataError
from tests.worlds.xlcost import corpus_rows, question_rows, write, write_parquet

# By the number of rows in the file: the authors' 2,066, or 1,856 if a tenth of the questions is held out. Facts about
# the files, counted independently of the loader: rows of the second half, rows and questions that occur again in the
# first half, and the remaining rows.
TRAVEL = {2066: (1033, 6, 8, 1019), 1856: (928, 5, 6, 917)}


SHORTER = "this copy differs from the published counts"


def load(folder: Path, **block: Any) -> Benchmark:
    return load_benchmark({"benchmark": "xlcost", "domain": "travel", "path": str(folder), **block})


def real(test_data: Path, **block: Any) -> Benchmark:
    return load(test_data / "cross_lingual_cost", **{"corpus": "none", **block})


# ------------------------------------------------------------ the real files


def test_travel_without_its_repetitions(test_data: Path) -> None:
    loaded = real(test_data)
    rows = loaded.source["counts"]
    half, repeated, questions, kept = TRAVEL[rows["file"]]
    assert (rows["repeated_half"], rows["repeated_rows"], rows["repeated_questions"]) == (half, repeated, questions)
    assert len(loaded.docs) == rows["kept"] == kept
    assert len({doc.query for doc in loaded.docs}) == len({doc.id for doc in loaded.docs}) == kept
    # 96 rows of a half upstream, 92 of the distinct rows here; one of them repeats a question
    assert 90 <= rows["relabelled"] <= 96
    assert sum("tagged_language" in doc.extra for doc in loaded.docs) == rows["relabelled"]
    assert sum(loaded.source["pairs"]["file"].values()) == rows["file"]
    assert sum(loaded.source["pairs"]["kept"].values()) == kept
    assert any(f"{rows['relabelled']} questions tagged with another language" in note for note in loaded.notes)


def test_every_question_is_in_the_script_of_its_language(test_data: Path) -> None:
    for doc in real(test_data).docs:
        arabic = any("\u0600" <= char <= "\u06ff" for char in doc.query)
        assert doc.query_lang == ("ar" if arabic else "en"), doc.query
        assert doc.extra.get("tagged_language") in (None, "ar")


def test_travel_as_published(test_data: Path) -> None:
    loaded = real(test_data, as_published=True)
    n = loaded.source["counts"]["file"]
    assert len(loaded.docs) == n
    ids = [doc.id for doc in loaded.docs]
    assert len(set(ids)) == n
    # the second half is tied to the first, so that intervals resample both together
    groups = [doc.group_id for doc in loaded.docs]
    assert groups[: n // 2] == groups[n // 2 :]
    tagged = Counter(doc.query_lang for doc in loaded.docs)
    corrected = Counter(doc.query_lang for doc in real(test_data).docs)
    assert tagged["ar"] / n > corrected["ar"] / len(real(test_data).docs)
    assert loaded.notes[0] == f"{n:,} questions of {n:,} rows, as published"
    assert loaded.notes[1:] == (() if n == 2066 else (f"{SHORTER}: travel, as published {n:,} of 2,066",))


def test_legal_has_the_counts_of_table_4(test_data: Path) -> None:
    loaded = real(test_data, domain="legal")
    assert loaded.source["pairs"]["kept"] == {"en->en": 318, "en->ar": 337, "ar->en": 324, "ar->ar": 303}
    assert loaded.source["counts"] == {
        "file": 1285,
        "repeated_half": 0,
        "repeated_rows": 0,
        "repeated_questions": 3,
        "relabelled": 0,
        "kept": 1282,
        "run": 1282,
    }


def test_the_legal_corpus_is_asked_for_in_one_line(test_data: Path) -> None:
    if (test_data / "cross_lingual_cost" / "legal_corpus.parquet").is_file():
        pytest.skip("the legal corpus is present")
    with pytest.raises(DataError) as caught:
        real(test_data, domain="legal", corpus=None)
    assert "the legal corpus is not available" in caught.value.message
    assert "\n" not in caught.value.message
    assert "data.corpus=FILE" in (caught.value.next_step or "")
    assert "data.corpus=none" in (caught.value.next_step or "")


def test_passages_of_the_travel_corpus(test_data: Path) -> None:
    loaded = real(test_data, corpus=None, tokenizer="model_free")
    source = loaded.source["corpus"]
    assert (source["documents"], source["languages"]) == (191, {"ar": 96, "en": 95})
    assert loaded.corpus is not None
    assert len(loaded.corpus) == source["passages"] == 3731
    assert len({passage.id for passage in loaded.corpus}) == 3731
    assert all(passage.text.startswith(f"{passage.title}. ") for passage in loaded.corpus)
    assert json.loads(json.dumps(loaded.source)) == loaded.source
    assert "3,731 passages of 191 documents" in loaded.notes


def test_a_sample_is_drawn_by_its_seed(test_data: Path) -> None:
    first, again, other = (real(test_data, sample=300, seed=seed) for seed in (1, 1, 2))
    assert [d.id for d in first.docs] == [d.id for d in again.docs] != [d.id for d in other.docs]
    assert len(first.docs) == first.source["counts"]["run"] == 300
    assert first.source["seed"] == 1
    assert any("300 of them drawn with seed 1" in note for note in first.notes)


# ------------------------------------------------------------ hand-written rows


def test_rows_become_questions(tmp_path: Path) -> None:
    loaded = load(write(tmp_path), tokenizer="model_free")
    assert [(d.query_lang, d.gold_doc_lang) for d in loaded.docs] == [
        ("en", "en"),
        ("ar", "en"),
        ("en", "ar"),
        ("ar", "ar"),
    ]
    assert loaded.docs[0].answers == ("You may bring up to 7,250 krona in cash.",)
    assert not any(doc.relevant_ids for doc in loaded.docs)
    assert loaded.corpus is not None
    assert [(p.lang, p.doc_id, p.title) for p in loaded.corpus] == [("en", "0", "Varnia"), ("ar", "1", "سوند")]
    assert loaded.corpus[0].text.startswith("Varnia. # Varnia\n\nVisitors may bring")
    small = load(tmp_path, tokenizer="model_free", passage_tokens=12)
    assert small.corpus is not None
    assert len(small.corpus) > 2


def test_repetitions_and_wrong_tags(tmp_path: Path) -> None:
    first = question_rows()
    wrong = {**first[0], "question": "When do shops close in Varnia?", "user_language": "arabic"}
    other_answer = {**first[1], "answer": "7,250"}
    undecided = {**first[3], "question": "112 ?"}
    half = [*first, first[2], wrong, other_answer, undecided]
    loaded = load(write(tmp_path, half + half), corpus="none")
    assert loaded.source["counts"] == {
        "file": 16,
        "repeated_half": 8,
        "repeated_rows": 1,
        "repeated_questions": 1,
        "relabelled": 1,
        "kept": 6,
        "run": 6,
    }
    assert [d.query for d in loaded.docs] == [r["question"] for r in [*first, wrong, undecided]]
    # the first answer is kept, the wrong tag corrected; a question without letters keeps its tag
    assert loaded.docs[1].answers == (first[1]["answer"],)
    assert (loaded.docs[4].query_lang, loaded.docs[4].extra) == ("en", {"tagged_language": "ar"})
    assert loaded.docs[5].query_lang == "ar"
    assert loaded.corpus is None
    # a row keeps its id in a copy that holds other rows
    (tmp_path / "part").mkdir()
    part = load(write(tmp_path / "part", [wrong]), corpus="none")
    assert part.docs[0].id == loaded.docs[4].id
    published = load(tmp_path, corpus="none", as_published=True)
    assert len({d.id for d in published.docs}) == 16
    assert len({d.group_id for d in published.docs}) == 6


def test_the_layout_of_the_repository_is_found(tmp_path: Path) -> None:
    write_parquet(tmp_path / "benchmarks" / "legal_benchmark.parquet", question_rows())
    write_parquet(tmp_path / "corpora" / "legal_corpus.parquet", corpus_rows())
    loaded = load(tmp_path, domain="legal", tokenizer="model_free")
    assert loaded.corpus is not None
    assert loaded.source["corpus"]["titles"] == "country"


def test_your_own_corpus(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "laws.jsonl"
    lines = [
        {"law_id": "7", "language": "ar", "title": "قانون", "content": "مادة."},
        {"law_id": "8", "language": "en", "title": "Law", "content": "An article."},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    loaded = load(tmp_path, corpus=str(path), tokenizer="model_free")
    assert loaded.corpus is not None
    assert [p.text for p in loaded.corpus] == ["قانون. مادة.", "Law. An article."]
    assert [p.doc_id for p in loaded.corpus] == ["7", "8"]


# ------------------------------------------------------------ your own benchmark


def own_rows() -> list[dict[str, str]]:
    """In three languages, given by code or by name; one row names its document and its categories."""
    texts = [("Wo liegt Sund?", "Am Meer.", "ar", "de"), ("苏恩德在哪里？", "海边。", "arabic", "zh")]
    rows = [dict(zip(question_rows()[0], text, strict=True)) for text in texts]
    rows.append({**question_rows()[2], "question": "112", "user_language": "arabic"})
    more = {"document": "1", "categories": json.dumps({"formulation": "short", "need": "visit"}), "q_type": "open"}
    return [{**rows[0], **more}, *({**row, "document": "", "categories": "", "q_type": ""} for row in rows[1:])]


def own(folder: Path, rows: list[dict[str, str]], **block: Any) -> Benchmark:
    return load(write(folder, rows, domain="own"), domain="own", tokenizer="model_free", **block)


def test_your_own_benchmark_may_be_in_any_language_and_know_its_documents(tmp_path: Path) -> None:
    loaded = own(tmp_path, own_rows())
    assert [(d.query_lang, d.gold_doc_lang) for d in loaded.docs] == [("de", "ar"), ("zh", "ar"), ("ar", "ar")]
    first, *others = loaded.docs
    assert (first.relevant_ids, first.relevant_documents) == (("1",), True)
    assert first.extra == {"formulation": "short", "need": "visit", "q_type": "open"}
    assert not any(doc.relevant_ids or doc.extra for doc in others)
    # the builder has checked the languages: no tag is changed or mistaken for another
    assert loaded.source["counts"]["relabelled"] == 0
    assert loaded.source["pairs"]["kept"] == {"ar->ar": 1, "de->ar": 1, "zh->ar": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"user_language": "dothraki"}, "user_language is 'dothraki', not a known language"),
        ({"categories": "[1]"}, "'categories' must be a JSON object of texts"),
        ({"categories": '{"a": 1}'}, "'categories' must be a JSON object of texts"),
        ({"categories": "formulation"}, "'categories' must be a JSON object of texts"),
    ],
)
def test_your_own_rows_with_faults(change: dict[str, str], expected: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"row 0: {expected}"):
        own(tmp_path, [{**own_rows()[0], **change}])


def test_your_own_benchmark_needs_a_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"set data\.path to its folder"):
        load_benchmark({"benchmark": "xlcost", "domain": "own"})
    with pytest.raises(DataError, match=r"has no file own_benchmark\.parquet") as caught:
        load(tmp_path, domain="own")
    assert "mrag-eval build qa" in (caught.value.next_step or "")


# ------------------------------------------------------------ wrong files


def without(key: str, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if k != key} for row in rows]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (without("answer", question_rows()), "column 'answer' is missing; found: question"),
        ([{**question_rows()[0], "user_language": "french"}], "row 0: user_language is 'french', neither 'arabic'"),
        ([question_rows()[0], {**question_rows()[1], "question": " "}], "row 1: 'question' is empty"),
    ],
)
def test_wrong_questions(rows: list[dict[str, str]], expected: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=expected):
        load(write(tmp_path, rows), corpus="none")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (without("content", corpus_rows()), "no 'text' or 'content'"),
        (without("doc_id", corpus_rows()), "no 'id' or 'doc_id'"),
        ([{**row, "language": "dothraki"} for row in corpus_rows()], "unknown language 'dothraki'"),
        ([{**row, "content": "  "} for row in corpus_rows()], "none of its 2 documents holds any text"),
        ([corpus_rows()[0], corpus_rows()[0]], "document id '0' .en. appears a second time"),
    ],
)
def test_wrong_corpora(rows: list[dict[str, str]], expected: str, tmp_path: Path) -> None:
    write(tmp_path)
    write_parquet(tmp_path / "travel_corpus.parquet", rows)
    with pytest.raises(DataError, match=expected):
        load(tmp_path, tokenizer="model_free")


def test_an_empty_corpus_and_an_empty_benchmark(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write(tmp_path)
    for name, expected in (("corpus", "holds no documents"), ("benchmark", "holds no question")):
        path = tmp_path / f"travel_{name}.parquet"
        pq.write_table(pq.read_table(path).slice(0, 0), path)
        with pytest.raises(DataError, match=expected):
            load(tmp_path, tokenizer="model_free", seed=len(name))
        write(tmp_path)


def test_files_that_are_missing_or_not_parquet(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "travel_corpus.parquet").write_text("question\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"travel_corpus.parquet: cannot be read as Parquet"):
        load(tmp_path, tokenizer="model_free")
    (tmp_path / "travel_benchmark.parquet").write_text("question\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"travel_benchmark.parquet: cannot be read as Parquet"):
        load(tmp_path, corpus="none")
    with pytest.raises(DataError, match=r"has no file legal_benchmark.parquet"):
        load(tmp_path, domain="legal", corpus="none")
    write(tmp_path)
    with pytest.raises(DataError, match=r"data.corpus=.*nowhere.jsonl is not a file"):
        load(tmp_path, corpus=str(tmp_path / "nowhere.jsonl"))
    with pytest.raises(ConfigError, match=r"domain: input should be .* \(got 'tax'\)"):
        load(tmp_path, domain="tax")


# ------------------------------------------------------------ without a local copy


def test_files_are_fetched_once_from_the_pinned_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "7e548b57935dbac3b8fa2cb0536cf76f863337eb"
    mirror = tmp_path / "mirror" / "chenamiraz" / "cross-lingual-cost" / commit
    write_parquet(mirror / "benchmarks" / "travel_benchmark.parquet", question_rows())
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(github, "BASE_URL", (tmp_path / "mirror").as_uri())
    block = {"benchmark": "xlcost", "domain": "travel", "corpus": "none"}
    assert len(load_benchmark({**block, "seed": 1}).docs) == 4
    (mirror / "benchmarks" / "travel_benchmark.parquet").unlink()
    again = load_benchmark({**block, "seed": 2})
    assert len(again.docs) == 4
    assert again.source["place"]["revision"] == commit
    with pytest.raises(DataError) as caught:
        load_benchmark({**block, "corpus": None})
    assert "GitHub did not give chenamiraz/cross-lingual-cost, file corpora/travel_corpus.parquet" in str(caught.value)
    assert "data.path=FOLDER" in str(caught.value)


def test_offline_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    with pytest.raises(DataError, match="not in the cache, and HF_HUB_OFFLINE is set"):
        load_benchmark({"benchmark": "xlcost", "domain": "legal", "corpus": "none"})


@pytest.mark.parametrize(
    ("question", "answer", "page"),
    [
        ("visa for Guinea-Bissau", "", "gw"),
        ("cash limit in Guinea", "", "gn"),
        ("How far is it from Niger to Nigeria?", "", None),
        ("do I need a visa, I am from Niger", "In Nigeria you do.", "ne"),
        ("drone rules colombo", "Drones are not allowed in Sri Lanka.", "lk"),
        ("ارقام الطوارئ لغينيا بيساو", "", "gw"),
        ("drone rules", "They are not allowed.", None),
        ("driving in Kenya", "", None),  # its page is in Arabic
    ],
)
def test_the_page_is_that_of_the_one_country_named(question: str, answer: str, page: str | None) -> None:
    titles = {"gw": "Republic of Guinea - Bissau", "gn": "Republic of Guinea", "ne": "Republic of the Niger"}
    titles |= {"ng": "Federal Republic of Nigeria", "lk": "Sri Lanka", "ke": "جمهورية كينيا"}
    passages = [
        Passage(id=name, lang="ar" if name == "ke" else "en", text=title, title=title, doc_id=name)
        for name, title in titles.items()
    ]
    row = RagDoc("1", question, "en", answers=(answer,), gold_doc_lang="en")
    assert country_pages([row], passages).get("1") == page


def test_every_title_of_the_travel_corpus_names_its_country(test_data: Path) -> None:
    found = load(test_data / "cross_lingual_cost", tokenizer="model_free")
    titles = {passage.doc_id: passage.title for passage in found.corpus or ()}
    named = {title: _named(title) for title in titles.values()}
    assert all(len(codes) == 1 for codes in named.values())
    assert len(set().union(*named.values())) == len(titles) == 191
    known = [doc for doc in found.docs if PAGE in doc.extra]
    assert len(known) / len(found.docs) > 0.95


# ------------------------------------------------- corpora in which one language dominates (A.5, Table 6)

LANDS = (("Kenya", "كينيا"), ("Ghana", "غانا"), ("Peru", "بيرو"), ("Chile", "تشيلي"))


def both_versions(folder: Path) -> Path:
    """Four questions on four countries, and a corpus with each country's page in both languages."""
    corpus = [
        {
            "doc_id": f"{number}-{language[:2]}",
            "language": language,
            "country": names[place],
            "content": f"{names[place]}: {90 + number}.",
            "parallel_id": str(number),
        }
        for number, names in enumerate(LANDS)
        for place, language in enumerate(("english", "arabic"))
    ]
    questions = [
        {
            "question": f"police number {english}",
            "answer": str(90 + number),
            "supporting_document_language": "arabic" if number % 2 else "english",
            "user_language": "english",
        }
        for number, (english, _) in enumerate(LANDS)
    ]
    questions.append({**questions[0], "question": "Which police number?"})
    write_parquet(folder / "travel_benchmark.parquet", questions)
    write_parquet(folder / "travel_corpus.parquet", corpus)
    return folder


@pytest.mark.parametrize("share", [0, 0.25, 0.75, 1])
def test_one_version_of_each_page_is_kept_and_the_questions_follow_it(share: float, tmp_path: Path) -> None:
    found = load(both_versions(tmp_path), tokenizer="model_free", imbalance={"keep_english": share, "seed": 2})
    assert found.corpus is not None
    kept = {str(p.doc_id).partition("-")[0]: p for p in found.corpus}
    assert len(kept) == len(found.corpus) == 4
    assert {0: {"ar"}, 1: {"en"}}.get(int(share) if share in (0, 1) else -1) in (None, {p.lang for p in kept.values()})
    assert len(found.docs) == 4
    for doc in found.docs:
        page = kept[str(int(doc.answers[0]) - 90)]
        assert (doc.gold_doc_lang, doc.extra[PAGE], doc.relevant_ids) == (page.lang, page.doc_id, ())
    assert "1 question left out: the document that answers is not known" in found.notes
    assert found.source["imbalance"] == {"seed": 2, "keep_english": share}
    assert found.source["corpus"]["languages"] == Counter(p.lang for p in found.corpus)


def test_the_questions_of_a_built_benchmark_follow_their_documents(tmp_path: Path) -> None:
    both_versions(tmp_path)
    rows = [{**row, "document": "2-en"} for row in [question_rows()[0]]]
    write_parquet(tmp_path / "own_benchmark.parquet", rows)
    (tmp_path / "travel_corpus.parquet").rename(tmp_path / "own_corpus.parquet")
    found = load(tmp_path, domain="own", tokenizer="model_free", imbalance={"keep_english": 0})
    assert [(doc.relevant_ids, doc.gold_doc_lang) for doc in found.docs] == [(("2-ar",), "ar")]


def test_a_corpus_with_one_version_of_each_page_has_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one version of each"):
        load(write(tmp_path), tokenizer="model_free", imbalance={"keep_english": 0.25})
