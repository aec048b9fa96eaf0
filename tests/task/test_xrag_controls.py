"""XRAG's controls: English question, supporting and distracting articles; which articles are shown, and where."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import Failure, RagDoc, Retrieved, RowScores
from mrag_eval.datasets import Benchmark, load_benchmark, validate_data
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrieval import as_record, from_record, retrieve, row_hash
from mrag_eval.scoring import row_record, summarize
from tests.worlds.long_articles import articles, outline, source_of, translating
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.xrag import FOREIGN, LANGS, row, translations, write, write_translations


def read(
    folder: Path, english: tuple[str, ...] = (), setting: str = "multi", language: str = "de", **block: Any
) -> Any:
    return load_benchmark(
        {
            "benchmark": "xrag",
            "path": str(folder),
            "setting": setting,
            "language": language,
            "english": english,
            **block,
        }
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write the rows and their translations to one folder."""
    write(tmp_path)
    write_translations(tmp_path / "translations.jsonl")
    return tmp_path


def controlled(files: Path, english: tuple[str, ...], language: str = "de") -> Benchmark:
    loaded: Benchmark = read(files, english, language=language, translations=str(files / "translations.jsonl"))
    return loaded


@pytest.mark.parametrize("language", LANGS)
def test_an_english_question_asks_for_an_english_answer(files: Path, language: str) -> None:
    plain, changed = read(files, language=language), controlled(files, ("question",), language)
    for before, after in zip(plain.docs, changed.docs, strict=True):
        source = row(language, "multi", int(before.id.rpartition("-")[2]))
        assert (after.query, after.query_lang, after.answers) == (source["en_question"], "en", (source["en_answer"],))
        # the articles, their order and the pairing of runs stay the same
        assert after.given_passages == before.given_passages
        assert (after.id, after.group_id, after.extra) == (before.id, before.group_id, before.extra)


@pytest.mark.parametrize(
    ("english", "left"),
    [
        # one supporting and three distracting articles of a row are not in English
        (("question", "supporting"), 3),
        (("question", "supporting", "distracting"), 0),
        (("supporting",), 3),
        (("distracting",), 1),
    ],
)
@pytest.mark.parametrize("language", LANGS)
def test_translated_articles_take_the_place_of_their_originals(
    files: Path, language: str, english: tuple[str, ...], left: int
) -> None:
    plain, changed = read(files, language=language), controlled(files, english, language)
    texts = {(line["id"], line["article"]): line["text"] for line in translations()}
    for before, after in zip(plain.docs, changed.docs, strict=True):
        assert Counter(p.lang for p in after.given_passages)[language] == left
        assert [p.id for p in after.given_passages] == [p.id for p in before.given_passages]
        for old, new in zip(before.given_passages, after.given_passages, strict=True):
            part = "supporting" if old.is_gold else "distracting"
            if old.lang != "en" and part in english:
                article = int(new.id.rpartition("-a")[2])
                assert article in FOREIGN
                assert new.text == texts[after.id, article]
                assert (new.lang, new.original_lang, new.date) == ("en", language, old.date)
            else:
                assert new == old
        assert after.query_lang == ("en" if "question" in english else language)


def test_the_source_and_the_notes_name_the_translations(files: Path) -> None:
    loaded = controlled(files, ("question", "supporting"))
    assert set(loaded.source["place"]["sha256"]) == {"xrag.test.jsonl"}
    assert loaded.source["place"]["translations"]["path"].endswith("translations.jsonl")
    assert "in English: question, supporting" in loaded.notes
    assert not any("are not in English" in note for note in loaded.notes)


def test_translations_that_are_none_are_noted_and_fail_where_they_are_shown(files: Path) -> None:
    lines = translations()
    for line in lines:
        item = row("de", "multi", int(line["id"].rpartition("-")[2]))
        line["text"] = item["articles"][line["article"]]
    write_translations(files / "translations.jsonl", lines)
    loaded = controlled(files, ("supporting",))
    note = "12 of 12 translations are not in English by the detector: their rows have a failure"
    assert note in loaded.notes
    failure = Failure("translation", "translations.jsonl", "wrong_language", texts="documents")
    for found in shown(loaded.docs, subset="all"):
        assert found.failures == (failure,)
        # nothing is said to be English, or a translation, that is not
        assert all(hit.lang == ("de" if "Der Stadtrat" in hit.text else "en") for hit in found.passages)
        assert {hit.original_lang for hit in found.passages} == {None}
    assert all(found.failures == () for found in shown(loaded.docs, subset="none"))


@pytest.mark.parametrize("third_piece", ["translated", "down"])
def test_articles_of_their_real_length_are_shown_in_english_or_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, third_piece: str
) -> None:
    made = [row("de", "multi", n) for n in range(6)]
    german = articles("de", 4 * len(made))
    for item in made:
        item["articles"] = [next(german) if place in FOREIGN else text for place, text in enumerate(item["articles"])]
    pieces: dict[str, int] = {}

    def script(body: dict[str, Any], attempt: int) -> Answer:
        place = pieces.setdefault(source_of(body), len(pieces))
        return Answer(status=500) if third_piece == "down" and place % 9 == 8 else translating(4.5)(body, attempt)

    server = ModelServer(script)
    entry = f"{{model: local-chat-completions, model_args: {{model: m, base_url: '{server.url}'}}, retries: 0}}"
    (tmp_path / "mrag.yaml").write_text(f"models: {{mt: {entry}}}\ntranslator: {{backend: lm, model: mt}}\n", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    docs = read(write(tmp_path, made), ("supporting", "distracting")).docs
    try:
        found = shown(docs, subset="all")
    finally:
        server.close()
    assert len(pieces) > 2 * 4 * len(made)
    failed = 0
    for doc, got in zip(docs, found, strict=True):
        for hit, given in zip(got.passages, doc.given_passages, strict=True):
            if given.lang == "en":
                assert (hit.text, hit.original_text) == (given.text, None)
            elif hit.original_lang is None:
                failed += 1
                assert (hit.text, hit.lang) == (given.text, "de")
                assert [(f.step, f.model, f.reason) for f in got.failures] == [
                    ("translation of documents", "lm mt", "server")
                ]
            else:
                assert (hit.lang, hit.original_lang, hit.original_text) == ("en", "de", given.text)
                assert outline(hit.text) == outline(given.text)
        assert bool(got.failures) is any(hit.lang == "de" for hit in got.passages)
        assert from_record(json.loads(json.dumps(as_record(doc, got)))) == got
    assert (failed > 0) is (third_piece == "down")


def test_a_missing_translation_names_the_file_and_the_row(files: Path) -> None:
    # article 6 of a row is a distracting one: without it EQ+ES runs, but EQ+ES+ED does not
    lines = [line for line in translations() if (line["id"], line["article"]) != ("multi-de-3", 6)]
    write_translations(files / "translations.jsonl", lines)
    assert len(controlled(files, ("question", "supporting")).docs) == 12
    expected = r"translations\.jsonl: row 'multi-de-3' has no translation of its distracting article 6 \(de\)"
    with pytest.raises(DataError, match=expected) as caught:
        controlled(files, ("question", "supporting", "distracting"))
    assert caught.value.next_step is not None
    assert '"article"' in caught.value.next_step


@pytest.mark.parametrize("parts", [("supporting",), ("supporting", "distracting")])
def test_without_a_file_the_translator_translates_the_articles(files: Path, parts: tuple[str, ...]) -> None:
    plain, changed = read(files), read(files, ("question", *parts))
    texts = {p.text: f"In English: {p.id}" for doc in plain.docs for p in doc.given_passages if p.lang != "en"}
    table = files / "table.jsonl"
    lines = [
        {"source": text, "source_lang": "de", "target": english, "target_lang": "en"} for text, english in texts.items()
    ]
    table.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    translator = {"backend": "table", "path": str(table), "strict": True}
    block = validated(Retrieval, {"mode": "given", "translator": translator}, "test")
    before, after = shown(plain.docs), retrieve(changed.docs, block)
    for old_row, new_row in zip(before, after, strict=True):
        for old, new in zip(old_row.passages, new_row.passages, strict=True):
            part = "supporting" if old.is_gold else "distracting"
            if old.lang == "en" or part not in parts:
                assert new == old
            else:
                assert (new.id, new.lang, new.original_lang, new.text) == (old.id, "en", "de", texts[old.text])
    assert "the run's translator translates these articles (no data.translations)" in changed.notes
    # rows retrieved with and without the translation are not mistaken for each other
    english_question = read(files, ("question",))
    assert [row_hash(doc) for doc in changed.docs] != [row_hash(doc) for doc in english_question.docs]


def test_articles_in_english_without_a_file_or_a_translator_give_the_next_step(files: Path) -> None:
    docs = read(files, ("question", "supporting", "distracting")).docs
    with pytest.raises(ConfigError, match=r"data\.translations.* needs a translator, and none is configured"):
        shown(docs)
    with pytest.raises(DataError, match=r"data\.translations=.*nowhere\.jsonl is not a file"):
        read(files, ("supporting",), translations=str(files / "nowhere.jsonl"))
    # an English question needs no translation
    assert len(read(files, ("question",)).docs) == 12


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"article": 1, "text": "x"}, "line 2: key 'id' is missing"),
        ({"id": "a", "article": "1", "text": "x"}, "line 2: 'article' must be a whole number from 0, found '1'"),
        ({"id": "a", "article": True, "text": "x"}, "line 2: 'article' must be a whole number"),
        ({"id": "a", "article": -1, "text": "x"}, "line 2: 'article' must be a whole number"),
        ({"id": "a", "article": 1, "text": " "}, "line 2: 'text' is empty"),
        ({"id": "multi-de-0", "article": 1, "text": "x"}, "line 2: article 1 of row 'multi-de-0' is translated twice"),
    ],
)
def test_a_damaged_translation_is_named(files: Path, line: dict[str, Any], expected: str) -> None:
    write_translations(files / "translations.jsonl", [translations()[0], line])
    if "twice" in expected:
        write_translations(files / "translations.jsonl", [{**line, "text": "y"}, line])
    with pytest.raises(DataError, match=re.escape(expected)):
        controlled(files, ("supporting",))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"setting": "mono", "language": "de", "english": ["supporting"]}, "only 'question' can be replaced there"),
        ({"setting": "mono", "language": "en", "english": ["question"]}, "leave 'english' out"),
        ({"setting": "multi", "language": "de", "english": ["answer"]}, "english"),
    ],
)
def test_impossible_controls_are_refused(block: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        validate_data({"benchmark": "xrag", **block})


def test_one_part_may_be_written_without_a_list() -> None:
    block = validate_data({"benchmark": "xrag", "setting": "mono", "language": "de", "english": "question"})
    assert block.model_dump()["english"] == ("question",)


# ---------------------------------------------------------------- subsets


def shown(docs: list[RagDoc], **given: Any) -> list[Retrieved]:
    seed = given.pop("seed", 0)
    return retrieve(docs, validated(Retrieval, {"mode": "given", "given": given, "seed": seed}, "test"))


@pytest.mark.parametrize("language", LANGS)
def test_distractors_of_two_languages_take_turns(files: Path, language: str) -> None:
    docs = read(files, language=language).docs
    previous: list[set[str]] = [set() for _ in docs]
    first = Counter[str]()
    for n in range(7):
        for place, (doc, found) in enumerate(zip(docs, shown(docs, subset="distractors", n=n), strict=True)):
            ids = {hit.id for hit in found.passages}
            others = [hit for hit in found.passages if not hit.is_gold]
            counts = Counter(hit.lang for hit in others)
            assert len(others) == n
            assert abs(counts["en"] - counts[language]) == n % 2
            assert {p.id for p in doc.given_passages if p.is_gold} <= ids
            # the sweep adds articles one by one, and keeps the order of all eight
            assert previous[place] <= ids
            assert [hit.id for hit in found.passages] == [p.id for p in doc.given_passages if p.id in ids]
            assert [hit.rank for hit in found.passages] == list(range(1, n + 3))
            previous[place] = ids
            if n == 1:
                first[others[0].lang] += 1
    assert set(first) == {"en", language}


def test_distractors_do_not_depend_on_the_translated_parts(files: Path) -> None:
    plain = shown(read(files).docs, subset="distractors", n=3)
    changed = shown(controlled(files, ("question", "supporting", "distracting")).docs, subset="distractors", n=3)
    for before, after in zip(plain, changed, strict=True):
        assert [hit.id for hit in before.passages] == [hit.id for hit in after.passages]
        assert {hit.lang for hit in after.passages} == {"en"}
        assert [hit.original_lang for hit in after.passages] == [
            None if hit.lang == "en" else hit.lang for hit in before.passages
        ]


def test_another_seed_draws_other_distractors(files: Path) -> None:
    docs = read(files).docs
    draws = [
        [[hit.id for hit in found.passages] for found in shown(docs, subset="distractors", n=2, seed=seed)]
        for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


# -------------------------------------------------------------- positions


def test_the_places_of_the_supporting_articles_are_those_shown(files: Path) -> None:
    doc = read(files).docs[0]
    # article_order is 5 2 7 0 3 1 6 4: articles 0 and 1, the supporting ones, are in places 4 and 6
    everything = row_record(doc, RowScores(), shown([doc], subset="all")[0])
    assert everything.gold_positions == (4, 6)
    assert (everything.cell["gold_first"], everything.cell["gold_last"]) == ("4", "6")
    assert row_record(doc, RowScores(), shown([doc], subset="gold")[0]).gold_positions == (1, 2)
    assert "gold_positions" not in row_record(doc, RowScores(), shown([doc], subset="none")[0]).to_dict()
    assert "gold_positions" not in row_record(doc, RowScores()).to_dict()
    assert json.loads(json.dumps(everything.to_dict()))["gold_positions"] == [4, 6]


def test_a_drawn_order_never_puts_the_supporting_articles_in_front(tmp_path: Path) -> None:
    # of 28 orders one has both in front: expect about 14 of 400 rows
    made = []
    for n in range(400):
        item = row("de", "mono", n % 12) | {"id": f"r{n}"}
        del item["article_order"]
        made.append(item)
    docs = read(write(tmp_path, made), setting="mono").docs
    records = [row_record(doc, RowScores(), found) for doc, found in zip(docs, shown(docs), strict=True)]
    places = Counter(record.gold_positions for record in records)
    assert (1, 2) not in places
    assert len(places) == 27
    assert set(Counter(place for pair in places.elements() for place in pair)) == set(range(1, 9))


def test_accuracy_by_place_type_of_question_and_of_answer(files: Path) -> None:
    benchmark = read(files)
    docs = benchmark.docs
    found = shown(docs, subset="distractors", n=2)
    # right if the first supporting article comes first
    records = [
        row_record(
            doc,
            RowScores(values={"f1": float(retrieved.passages[0].is_gold or 0)}),
            retrieved,
            breakdowns=benchmark.breakdowns,
        )
        for doc, retrieved in zip(docs, found, strict=True)
    ]
    by = summarize(records).to_dict()["metrics"]["f1"]["by"]
    assert by["gold_first"]["1"]["value"] == 1.0
    assert {cell["value"] for place, cell in by["gold_first"].items() if place != "1"} == {0.0}
    assert sum(cell["n"] for cell in by["gold_last"].values()) == 12
    assert {place: cell["n"] for place, cell in by["q_type"].items()} == {
        "aggregation": 3,
        "comparison": 3,
        "multihop": 3,
        "set": 3,
    }
    # every fifth row from 0 on: 0, 5, 10
    assert {place: cell["n"] for place, cell in by["a_type"].items()} == {"corrected": 3, "original": 9}
    assert {place: cell["n"] for place, cell in by["crossdoc_type"].items()} == {"0": 4, "1": 4, "2": 4}
