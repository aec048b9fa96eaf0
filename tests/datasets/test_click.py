"""CLIcK: all options, the subject by folder and by id, counts compared with the published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets._click import CATEGORY_SIZES, category_of
from mrag_eval.platform import DataError


def question(name: str, choices: list[str], answer: str, paragraph: str = "") -> dict[str, Any]:
    return {"id": name, "paragraph": paragraph, "question": "다음 중 옳은 것은? ", "choices": choices, "answer": answer}


ECONOMY = [
    question("KIIP_economy_1", ["은행", "시장", "학교", "병원"], "시장"),
    question("KIIP_economy_2", ["가", "나", "나", "다"], "나", paragraph="지문"),
]
GEOGRAPHY = [question("CSAT_geography_21_4", ["산", "강", "바다", "섬", "들"], "들")]


def write(folder: Path, economy: list[Any] | None = None) -> Path:
    for subject, name, rows in (
        ("Economy", "Economy_KIIP.json", ECONOMY if economy is None else economy),
        ("Geography", "Geography_CSAT.json", GEOGRAPHY),
        # some copies contain an older version of a file
        ("Economy", "Economy_KIIP_new.json", ECONOMY),
    ):
        target = folder / "Culture" / f"Korean {subject}" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(rows), encoding="utf-8")
    return folder


def load(folder: Path, **block: object) -> Benchmark:
    return load_benchmark({"benchmark": "click", "path": str(folder), **block})


def test_rows_become_documents(tmp_path: Path) -> None:
    loaded = load(write(tmp_path))
    assert [doc.id for doc in loaded.docs] == ["KIIP_economy_1", "KIIP_economy_2", "CSAT_geography_21_4"]
    first, second, third = loaded.docs
    assert first.choices == ("은행", "시장", "학교", "병원")
    assert (first.gold_choice, first.answers) == (1, ("시장",))
    assert (first.query, first.query_lang, first.culture_lang) == ("다음 중 옳은 것은?", "ko", "ko")
    assert first.extra == {"category": "economy", "exam": "KIIP"}
    assert second.query == "지문\n\n다음 중 옳은 것은?"
    # two options have the same text: the first is gold, and the row records it
    assert (second.gold_choice, second.extra["equal_choices"]) == (1, True)
    assert third.choices is not None
    assert (len(third.choices), third.gold_choice) == (5, 4)
    assert loaded.corpus is None


def test_a_cut_copy_is_a_note_not_an_error(tmp_path: Path) -> None:
    notes = " ".join(load(write(tmp_path)).notes)
    assert "economy 2 of 59" in notes
    assert "geography 1 of 131" in notes
    assert "two options of the same text" in notes


def test_the_category_filter(tmp_path: Path) -> None:
    write(tmp_path)
    assert [doc.id for doc in load(tmp_path, category="geography").docs] == ["CSAT_geography_21_4"]
    with pytest.raises(DataError, match="no question of category 'law'"):
        load(tmp_path, category="law")


def test_repeated_ids_stay_apart(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, [ECONOMY[0], ECONOMY[0]]), category="economy")
    assert [doc.id for doc in loaded.docs] == ["KIIP_economy_1", "KIIP_economy_1~2"]
    assert any("1 repeated" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{**ECONOMY[0], "answer": "없음"}], "question 0: the answer of KIIP_economy_1 is not among its choices"),
        ([ECONOMY[0], {**ECONOMY[1], "question": " "}], "question 1: 'question' is empty"),
        ([{k: v for k, v in ECONOMY[0].items() if k != "choices"}], "question 0: key 'choices' is missing"),
        ([{**ECONOMY[0], "choices": ["시장"]}], "at least two options"),
        (["text"], "expected a JSON object, found str"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, rows: list[Any], expected: str) -> None:
    with pytest.raises(DataError, match=r"Economy_KIIP\.json") as caught:
        load(write(tmp_path, rows))
    assert expected in caught.value.message


def test_a_wrong_folder_names_the_expected_files(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert "Korean <Subject>" in caught.value.message
    assert "Dataset" in str(caught.value.next_step)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("KIIP_society_84", "society"),
        ("Kedu_Society_3", "society"),
        ("PSE_history_44_2", "history"),
        ("KHB_50_12", "history"),
        ("PSAT_14_2", "law"),
        # the Language half
        ("CSAT_korean_13_11", None),
        ("Kedu_16_1", None),
        ("TK_1_5", None),
        ("PSE_korean_1_1", None),
    ],
)
def test_the_subject_is_read_off_the_id(name: str, expected: str | None) -> None:
    assert category_of(name) == expected


def test_the_hub_copy_has_the_same_culture_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    language_half = question("CSAT_korean_13_11", ["가", "나", "다", "라", "마"], "마", paragraph="글")
    rows = datasets.Dataset.from_list([language_half, *ECONOMY, *GEOGRAPHY])
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    hub = load_benchmark({"benchmark": "click", "seed": 8})
    assert hub.docs == load(write(tmp_path)).docs
    assert hub.source["place"]["hub"] == "EunsuKim/CLIcK"


# --- the real files


def test_ids_and_folders_agree_on_every_question(test_data: Path) -> None:
    count = 0
    for path in (test_data / "click").glob("Culture/*/*.json"):
        folder = path.parent.name.removeprefix("Korean ").lower()
        for row in json.loads(path.read_text(encoding="utf-8")):
            assert category_of(row["id"]) == folder
            count += 1
    assert count in (1211, 1345)


def test_the_published_set(test_data: Path) -> None:
    loaded = load(test_data / "click")
    whole = len(loaded.docs) == 1345
    by_category = {name: len(load(test_data / "click", category=name).docs) for name in CATEGORY_SIZES}
    assert sum(by_category.values()) == len(loaded.docs)
    for name, size in CATEGORY_SIZES.items():
        # a cut copy lacks about a tenth of each subject
        assert by_category[name] == size or (not whole and 0.85 * size < by_category[name] < size)
    five = [doc for doc in loaded.docs if doc.choices is not None and len(doc.choices) == 5]
    assert {doc.extra["exam"] for doc in five} == {"CSAT"}
    assert len(five) == (30 if whole else 27)
    assert [doc.id for doc in loaded.docs if "equal_choices" in doc.extra] == ["KIIP_society_84"]
    assert all(doc.choices is not None and doc.answers == (doc.choices[doc.gold_choice or 0],) for doc in loaded.docs)
