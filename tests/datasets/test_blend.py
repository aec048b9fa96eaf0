"""BLEnD: one seeded version per question and country, the bare question, and questions made from annotations."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets._blend import COUNTRIES, LANGUAGES, bare_question
from mrag_eval.datasets._blend_mcq import generate, is_valid
from mrag_eval.platform import ConfigError, DataError, tasks_folder
from tests.task.test_hook import run
from tests.worlds.small import ScriptedLM

COLUMNS = ("MCQID", "ID", "country", "prompt", "choices", "choice_countries", "answer_idx")
INSTRUCTION = 'Pick the letter of one option (such as A or B) and reply in JSON: {"answer_choice":""}'


def mcq(
    country: str, question_id: str, number: int, options: Sequence[str] = ("bread", "rice", "soup"), gold: str = "B"
) -> dict[str, str]:
    choices = dict(zip("ABCD", options, strict=False))
    lines = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
    question = f"What is eaten first in {country.replace('_', ' ')}?"
    return {
        "MCQID": f"{question_id}_{number}",
        "ID": question_id,
        "country": country,
        "prompt": f"{question} {INSTRUCTION}\n\n{lines}\n\nAnswer:",
        "choices": json.dumps(choices, indent=4),
        "choice_countries": json.dumps(dict(zip(choices, (country, "Iran", "dummy", "US"), strict=False))),
        "answer_idx": gold,
    }


def rows() -> list[dict[str, str]]:
    """Three versions of two questions in each country, each with its own option."""
    return [
        mcq(country, question_id, number, ("bread", f"rice {number}", "soup"))
        for country in COUNTRIES
        for question_id in ("Al-en-01", "Ta-pe-10")
        for number in range(9, 12)
    ]


def write_csv(path: Path, made: Sequence[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows(made)
    return path


def load(path: Path, **block: object) -> Benchmark:
    return load_benchmark({"benchmark": "blend", "path": str(path), **block})


def test_one_version_of_every_question_and_country(tmp_path: Path) -> None:
    loaded = load(write_csv(tmp_path / "mc_questions_file-1.csv", rows()))
    assert len(loaded.docs) == 32
    assert Counter(doc.extra["country"] for doc in loaded.docs) == dict.fromkeys(COUNTRIES, 2)
    doc = next(doc for doc in loaded.docs if doc.id.startswith("West_Java/Al-en-01_"))
    number = doc.id.rpartition("_")[2]
    assert doc.query == "What is eaten first in West Java?"
    assert doc.choices == ("bread", f"rice {number}", "soup")
    assert (doc.gold_choice, doc.answers) == (1, (f"rice {number}",))
    assert (doc.query_lang, doc.culture_lang, doc.group_id) == ("en", "su", "Al-en-01")
    assert doc.extra == {"country": "West_Java", "tier": "low", "choice_countries": ["West_Java", "Iran", "dummy"]}


def test_the_version_depends_on_the_seed_and_on_nothing_else(tmp_path: Path) -> None:
    whole = load(write_csv(tmp_path / "whole.csv", rows()))
    turned = load(write_csv(tmp_path / "turned.csv", rows()[::-1]))
    part = load(write_csv(tmp_path / "part.csv", [row for row in rows() if row["ID"] == "Ta-pe-10"]))
    ids = {doc.id for doc in whole.docs}
    assert {doc.id for doc in turned.docs} == ids
    assert {doc.id for doc in part.docs} < ids
    other = {doc.id for doc in load(tmp_path / "whole.csv", seed=1).docs}
    assert other != ids
    # every version has a chance: 32 draws from three are very unlikely to take only one
    assert {name.rpartition("_")[2] for name in ids | other} == {"9", "10", "11"}


def test_two_parts_are_one_file(tmp_path: Path) -> None:
    made = rows()
    whole = load(write_csv(tmp_path / "whole.csv", made))
    folder = tmp_path / "evaluation" / "mc_data"
    folder.mkdir(parents=True)
    write_csv(folder / "mc_questions_file-1.csv", made[:50])
    write_csv(folder / "mc_questions_file-2.csv", made[50:])
    assert load(tmp_path / "evaluation").docs == whole.docs


@pytest.mark.parametrize("name", ["mc_questions_file_v1.1.json", "mc_questions_file_v1.1.jsonl"])
def test_json_and_hub_copies_give_the_same_rows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    made = rows()
    expected = load(write_csv(tmp_path / "whole.csv", made)).docs
    lines = [json.dumps(row) for row in made]
    text = "\n".join(lines) if name.endswith("l") else "[" + ",".join(lines) + "]"
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert load(tmp_path / name).docs == expected
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.Dataset.from_list(made))
    # each sets its own seed: loads are remembered by block
    revision = name
    hub = load_benchmark({"benchmark": "blend", "revision": revision})
    assert hub.docs == expected
    assert hub.source["place"]["config"] == "multiple-choice-questions"


def test_filters(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "whole.csv", rows())
    assert {doc.extra["country"] for doc in load(path, language="ko").docs} == {"South_Korea", "North_Korea"}
    assert {doc.extra["country"] for doc in load(path, country="UK").docs} == {"UK"}
    by_language = [load(path, language=code).docs for code in LANGUAGES]
    assert sum(map(len, by_language)) == 32
    with pytest.raises(ConfigError, match="did you mean 'North_Korea'"):
        load(path, country="NorthKorea")
    with pytest.raises(ConfigError, match="language = 'fr' is not one of its values"):
        load(path, language="fr")
    only_us = write_csv(tmp_path / "us.csv", [row for row in rows() if row["country"] == "US"])
    with pytest.raises(DataError, match="no question of language 'ko'"):
        load(only_us, language="ko")


def test_every_language_has_its_tier() -> None:
    assert sorted(code for codes in CORAL_TIERS.values() for code in codes) == sorted(LANGUAGES)
    assert sum(size for _, size in COUNTRIES.values()) == 5081


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"country": "France"}, "row 1: unknown country 'France'"),
        ({"choices": "{'A': 'bread'}"}, "row 1: 'choices' is not JSON"),
        ({"choices": '{"A": "bread"}'}, "row 1: 'choices' must map at least two letters"),
        ({"answer_idx": "E"}, "row 1: answer_idx 'E' is not among the options A, B, C"),
        ({"prompt": " "}, "row 1: 'prompt' is empty"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, change: dict[str, str], expected: str) -> None:
    path = write_csv(tmp_path / "bad.csv", [{**mcq("US", "Al-en-01", 1), **change}])
    with pytest.raises(DataError) as caught:
        load(path)
    assert f"{path}, {expected}" in caught.value.message


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("MCQID,ID\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'country' is missing; found: MCQID, ID"):
        load(path)
    path.write_text(",".join(COLUMNS) + "\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="row 1: 7 columns expected"):
        load(path)
    path.write_bytes(",".join(COLUMNS).encode() + b"\n\xff,1,1,1,1,1,1\n")
    with pytest.raises(DataError, match="not valid UTF-8 \\(line 2, byte"):
        load(path)
    with pytest.raises(DataError, match="source=annotations"):
        load(write_empty(tmp_path / "empty"))


def write_empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (f"Who eats first? {INSTRUCTION}\n\nA. you\nB. me\n\nAnswer:", "Who eats first?"),
        ("Who eats first?\n\nA. you\nB. me\n\nAnswer:", "Who eats first?"),
        (
            f"When is lunch? (Provide in HH:MM format (e.g., 18:00, 09:00).) {INSTRUCTION}\n\nA. 12:00\nB. 13:00\n",
            "When is lunch? (Provide in HH:MM format (e.g., 18:00, 09:00).)",
        ),
        (f"How long is it? (e.g., 1 month). {INSTRUCTION}\n\nA. 1\nB. 2", "How long is it? (e.g., 1 month)."),
        (f"Is it A. or B.? Or neither? {INSTRUCTION}\n\nA) x\nB) y", "Is it A. or B.? Or neither?"),
        (f"Name the first dish\n{INSTRUCTION}\n\nA. x\nB. y", "Name the first dish"),
    ],
)
def test_the_bare_question(prompt: str, expected: str) -> None:
    assert bare_question(prompt) == expected


# --- made from annotations


def record(question: str, answers: Sequence[tuple[str, int]], **idks: int) -> dict[str, Any]:
    return {
        "question": question,
        "en_question": question,
        "annotations": [{"answers": [a], "en_answers": [a] if a else [], "count": n} for a, n in answers],
        "idks": {"idk": 0, "no-answer": 0, "not-applicable": 0, **idks},
    }


def make(annotations: dict[str, Any], **options: Any) -> list[Any]:
    return generate(annotations, lambda *_: np.random.default_rng(0), **options)


def test_wrong_options_are_other_countries_answers_without_a_shared_word() -> None:
    made = make(
        {
            "US": {"q": record("Drink?", [("green tea", 4), ("milk", 1)])},
            "UK": {"q": record("Drink?", [("black tea", 5), ("beer", 3)])},
            "Iran": {"q": record("Drink?", [("milk", 5), ("doogh", 2)])},
            "China": {"q": record("Drink?", [("beer", 4), ("water", 1)])},
        },
        validity="own_country",
    )
    by_country = {item.country: item for item in made}
    us = by_country["US"]
    # black tea shares a word with the US's own answer, milk is also an answer there, water has one vote; beer has more
    # votes in China than in the UK, so it is China's, and the UK has nothing left
    assert dict(zip(us.choices, us.countries, strict=True)) == {"green tea": "US", "beer": "China", "doogh": "Iran"}
    assert us.choices == tuple(sorted(us.choices))
    assert us.choices[us.gold] == "green tea"
    uk = by_country["UK"]
    assert dict(zip(uk.choices, uk.countries, strict=True)) == {"black tea": "UK", "milk": "Iran"}


def test_options_per_country_are_levelled() -> None:
    annotations = {
        "US": {"q": record("Game?", [("chess", 3)])},
        "UK": {"q": record("Game?", [("darts", 3)])},
        "Iran": {"q": record("Game?", [("polo", 3)])},
        "Greece": {"q": record("Game?", [("polo chess", 3)])},
    }
    # Greece shares a word with the US and Iran, so only darts is left
    assert {item.country: len(item.choices) for item in make(annotations)} == dict.fromkeys(annotations, 2)
    alone = {item.country: len(item.choices) for item in make(annotations, validity="own_country")}
    assert alone == {"US": 3, "UK": 3, "Iran": 3, "Greece": 2}


@pytest.mark.parametrize(
    "bad",
    [
        record("Game?", [("polo", 3)], **{"not-applicable": 1}),
        record("Game?", [("polo", 3)], idk=2, **{"no-answer": 1}),
        record("Game?", [("polo", 3)], idk=2, **{"we do not play": 1}),
        record("Game?", [("polo", 1)]),
        record("Game?", []),
    ],
)
def test_one_failing_country_drops_a_question_everywhere_or_only_there(bad: dict[str, Any]) -> None:
    good = {"US": {"q": record("Game?", [("chess", 3)])}, "UK": {"q": record("Game?", [("darts", 3)])}}
    annotations = {**good, "Iran": {"q": bad}}
    assert not is_valid(bad)
    assert make(annotations) == []
    assert [item.country for item in make(annotations, validity="own_country")] == ["US", "UK"]


def test_a_question_that_asks_for_a_format_keeps_answers_in_it() -> None:
    made = make(
        {
            "US": {"q": record("When? (HH:MM)", [("12:00", 3), ("noon", 3)])},
            "UK": {"q": record("When? (HH:MM)", [("at one", 4), ("13:00", 2)])},
            "Iran": {"q": record("When? (HH:MM)", [("14:30", 2)])},
        }
    )
    assert {text for item in made for text in item.choices} == {"12:00", "13:00", "14:30"}
    months = {
        "US": {"q": record("Which month? (Arabic numerals)", [("May", 4)])},
        "UK": {"q": record("Which month? (Arabic numerals)", [("6", 4)])},
    }
    months["US"]["q"]["annotations"][0]["en_answers"] = ["May", "5"]
    assert {text for item in make(months) for text in item.choices} == {"5", "6"}


def test_annotation_files(tmp_path: Path) -> None:
    for number, country in enumerate(COUNTRIES):
        questions = {"q-1": record(f"Game in {country}?", [(f"game{number}", 4)])}
        questions["q-1"]["question"] = f"Local game in {country}?"
        (tmp_path / f"{country}_data.json.gz").write_bytes(gzip.compress(json.dumps(questions).encode()))
    loaded = load(tmp_path, source="annotations")
    assert {doc.id for doc in loaded.docs} == {f"{country}/q-1" for country in COUNTRIES}
    queries = {doc.extra["country"]: doc.query for doc in loaded.docs}
    # local English where English is the local language, the translation elsewhere
    assert (queries["UK"], queries["Iran"]) == ("Local game in UK?", "Game in Iran?")
    assert any("not the published" in note for note in loaded.notes)
    (tmp_path / "Iran_data.json.gz").unlink()
    with pytest.raises(DataError, match=r"Iran_data\.json"):
        load(tmp_path, source="annotations", seed=1)
    with pytest.raises(DataError, match=r"data\.path"):
        load_benchmark({"benchmark": "blend", "source": "annotations"})


# --- the real files


def test_the_derived_sample(test_data: Path) -> None:
    path = test_data / "blend" / "mcq_derived_sample.csv"
    if not path.is_file():
        pytest.skip("mcq_derived_sample.csv was made for these tests and is in no public repository")
    loaded = load(path)
    assert len(loaded.docs) == 981
    assert all(doc.query.rstrip(".)").endswith(("?", "only")) or "(" in doc.query for doc in loaded.docs)
    assert not any("Answer:" in doc.query or "\n" in doc.query for doc in loaded.docs)
    assert len({doc.group_id for doc in loaded.docs}) == 73


def test_the_authors_filter_on_the_real_annotations(test_data: Path) -> None:
    folder = test_data / "blend" / "annotations"
    annotations = {
        country: json.loads(gzip.decompress((folder / f"{country}_data.json.gz").read_bytes())) for country in COUNTRIES
    }
    questions = set.intersection(*(set(rows) for rows in annotations.values()))
    valid = sum(all(is_valid(annotations[country][name]) for country in COUNTRIES) for name in questions)
    # counted by an independent implementation: 87 of the 500 questions, 79 of the 450 of a cut copy
    assert {450: 79, 500: 87}[len(questions)] == valid
    loaded = load(test_data / "blend", source="annotations")
    counts = Counter(doc.extra["country"] for doc in loaded.docs)
    assert set(counts) == set(COUNTRIES)
    for doc in loaded.docs:
        assert doc.choices is not None
        assert doc.gold_choice is not None
        assert 2 <= len(doc.choices) <= 4
        assert doc.extra["choice_countries"][doc.gold_choice] == doc.extra["country"]
        assert doc.choices == tuple(sorted(doc.choices))


def test_a_country_is_a_cell_of_its_language_and_a_setting_of_its_task(tmp_path: Path) -> None:
    """English pools the US and the UK, where a model that answers B for one and A for the other is half right."""
    metadata = {"data.path": str(write_csv(tmp_path / "mc_questions_file-1.csv", rows()))}

    def reply(prompt: str) -> str:
        return "B" if "first in UK?" in prompt else "A"

    def scores(**more: str) -> Any:
        out = run(tasks_folder(), "blend_norag_en", lm=ScriptedLM(reply), metadata={**metadata, **more})
        return out["configs"]["blend_norag_en"]["scores"]

    both = scores()
    assert both["rows"] == 4
    by_country = both["metrics"]["acc"]["by"]["country"]
    assert {country: (cell["value"], cell["n"]) for country, cell in by_country.items()} == {
        "UK": (1.0, 2),
        "US": (0.0, 2),
    }
    alone = scores(**{"data.country": "UK"})
    assert (alone["rows"], alone["metrics"]["acc"]["value"]) == (2, 1.0)
    # no other task uses another country's language
    with pytest.raises(DataError, match="no question of country 'Iran', language 'en'"):
        scores(**{"data.country": "Iran"})
