"""BLEnD's short answers: which questions count, answers in order of votes, and the published counts."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import AgentUsage, RagDoc, Retrieved, RowScores, Scored, Trace
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets._blend import COUNTRIES
from mrag_eval.datasets._blend_saq import SOURCES, why_invalid
from mrag_eval.platform import ConfigError, DataError, tasks_folder
from mrag_eval.prompts import load_template
from mrag_eval.scoring import row_record, score_rows, summarize
from mrag_eval.scoring._reasons import NO_VOTES
from tests.task.test_hook import run
from tests.worlds.small import ScriptedLM

CAKE = {"answers": ["케이크", "케익"], "en_answers": ["cake"], "count": 2}
RICE = {"answers": ["떡"], "en_answers": ["rice cake", "cake"], "count": 4}
NOBODY = {"idk": 0, "no-answer": 0, "not-applicable": 0}


def record(annotations: list[dict[str, Any]] | None = None, **idks: int) -> dict[str, Any]:
    return {
        "question": "생일에 무엇을 먹나요?",
        "en_question": "What is eaten on birthdays in South Korea?",
        "annotations": [CAKE, RICE] if annotations is None else annotations,
        "idks": {**NOBODY, **{key.replace("_", "-"): count for key, count in idks.items()}},
    }


def write(folder: Path, country: str, records: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{country}_data.json.gz"
    path.write_bytes(gzip.compress(json.dumps(records).encode()))
    return path


def load(path: Path, **block: Any) -> Benchmark:
    return load_benchmark({"benchmark": "blend_saq", "path": str(path), **block})


@pytest.mark.parametrize(
    ("idks", "valid"),
    [
        ({}, True),
        ({"no_answer": 2}, True),
        ({"no_answer": 3}, False),
        ({"no_answer": 1, "not_applicable": 2}, False),
        ({"not_applicable": 2, "idk": 4}, True),
        ({"idk": 5}, False),
        # free text of annotators: 152 of the 8,000 pairs have such a key
        ({"not sure": 9}, True),
    ],
)
def test_which_questions_count(idks: dict[str, int], valid: bool) -> None:
    assert (why_invalid(record(**idks)) is None) is valid


def test_a_question_without_annotations_does_not_count() -> None:
    assert why_invalid(record([])) == "without an annotation"
    # on the hub a count may be null
    assert why_invalid({**record(), "idks": {"idk": None, "no-answer": None, "not-applicable": None}}) is None


def test_rows_answers_and_votes(tmp_path: Path) -> None:
    bare = {"answers": ["미역국"], "en_answers": [], "count": 1}
    path = write(tmp_path, "South_Korea", {"Al-en-01": record([CAKE, RICE, bare]), "Al-en-02": record(idk=5)})
    loaded = load(path, country="South_Korea")
    (doc,) = loaded.docs
    assert (doc.id, doc.group_id) == ("South_Korea/Al-en-01", "Al-en-01")
    assert (doc.query, doc.query_lang, doc.culture_lang) == ("생일에 무엇을 먹나요?", "ko", "ko")
    assert doc.answers == ("떡", "케이크", "케익", "미역국", "rice cake", "cake")
    assert [entry["count"] for entry in doc.extra["votes"]] == [4, 2, 1]
    assert doc.extra["tier"] == "mid"
    assert loaded.notes[0] == "1 of 2 questions are valid, left out: 1 unknown to the annotators"
    assert "South_Korea 1 of 475" in loaded.notes[1]
    english = load(tmp_path, country="South_Korea", question_language="en").docs[0]
    assert (english.query_lang, english.culture_lang) == ("en", "ko")
    assert english.query.startswith("What is eaten")


def test_a_question_without_its_own_text_is_asked_in_english(tmp_path: Path) -> None:
    path = write(tmp_path, "China", {"a": {**record(), "question": "  "}, "b": record()})
    loaded = load(path, country="China")
    assert [(doc.query_lang, doc.culture_lang) for doc in loaded.docs] == [("en", "zh"), ("zh", "zh")]
    assert loaded.notes[1].endswith("own language: China/a")


def test_the_hub_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load_dataset(repo: str, config: str, *, split: str, revision: str | None) -> datasets.Dataset:
        asked.append((repo, config, split))
        return datasets.Dataset.from_list([{"ID": "Al-en-01", **record()}])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    hub = load_benchmark({"benchmark": "blend_saq", "language": "ko"})
    assert asked == [("nayeon212/BLEnD", "annotations", "KR"), ("nayeon212/BLEnD", "annotations", "KP")]
    assert hub.docs[0] == load(write(tmp_path, "South_Korea", {"Al-en-01": record()}), country="South_Korea").docs[0]


def test_faulty_files_and_keys(tmp_path: Path) -> None:
    path = write(tmp_path, "Iran", {"a": record([{**CAKE, "count": 0}])})
    with pytest.raises(DataError, match=r"question a: 'count' must be a number of votes, found 0"):
        load(path, country="Iran")
    with pytest.raises(DataError, match=r"no file Greece_data.json"):
        load(tmp_path, country="Greece")
    with pytest.raises(ConfigError, match="did you mean 'Iran'"):
        load(tmp_path, country="Iraan")
    with pytest.raises(DataError, match="no question of country 'Iran' in language 'ko'"):
        load(tmp_path, country="Iran", language="ko")


def test_both_prompts_ask_for_one_answer_without_explanation() -> None:
    doc = {"query": "Q", "query_lang": "ko", "extra": {"country": "South_Korea"}}
    for name in ("single_answer", "single_answer_persona"):
        system, user = load_template(name).render(doc, [])
        assert "one answer" in system
        assert "Do not explain" in system
        assert "Korean" not in system
        assert ("South Korea" in system) == (name == "single_answer_persona")
        assert "Reference Evidence" not in user


def test_scores_of_rows() -> None:
    doc = RagDoc("r", "Q", "en", ("떡",), culture_lang="ko", extra={"votes": [RICE, CAKE]})
    other = RagDoc("s", "Q", "en", ("떡",))
    names = ("sem_b", "sem_w", "sem_lemma_rule")
    first, second = score_rows([Scored(doc, "케이크"), Scored(other, "x")], names, searched=False)
    assert first.values == {"sem_b": 1.0, "sem_w": 0.5, "sem_lemma_rule": 0.0}
    assert second.unscored == dict.fromkeys(names, NO_VOTES)


def test_the_loop_s_accuracy_is_that_of_sem_b() -> None:
    trace = Trace("sufficient", 0, (), False, {}, AgentUsage(3, 0, 10, 2), ())
    doc = RagDoc("r", "Q", "ko", culture_lang="ko")
    scores = RowScores(values={"sem_w": 0.5, "sem_b": 1.0})
    loop = summarize([row_record(doc, scores, Retrieved(trace=trace))]).loop
    assert loop is not None
    assert loop.correct_by == "sem_b"
    assert loop.by_calls is not None
    assert loop.by_calls["3"].value == 1.0


def test_a_task_takes_another_country_or_all_of_them(tmp_path: Path) -> None:
    for country in COUNTRIES:
        write(tmp_path, country, {"q1": record(), "q2": record([CAKE])})

    def scores(country: str | None) -> Any:
        metadata = {"data": {"path": str(tmp_path), "country": country}}
        out = run(tasks_folder(), "blend_saq_norag_iran", lm=ScriptedLM(lambda _: "떡"), metadata=metadata)
        return out["configs"]["blend_saq_norag_iran"]["scores"]

    alone = scores("South_Korea")
    assert (alone["rows"], alone["query_langs"], alone["metrics"]["sem_b"]["value"]) == (2, {"ko": 2}, 0.5)
    everywhere = scores(None)
    cells = everywhere["metrics"]["sem_b"]["by"]["country"]
    assert everywhere["rows"] == 32
    assert {country: (cell["value"], cell["n"]) for country, cell in cells.items()} == dict.fromkeys(
        COUNTRIES, (0.5, 2)
    )


# --- the real files


def test_the_published_counts_of_valid_questions(test_data: Path) -> None:
    folder = test_data / "blend" / "annotations"
    loaded = load(folder)
    counts = Counter(doc.extra["country"] for doc in loaded.docs)
    asked = len(json.loads(gzip.decompress((folder / "UK_data.json.gz").read_bytes())))
    assert set(counts) == set(COUNTRIES) == set(SOURCES)
    for country, (_, published) in SOURCES.items():
        # equal on the full data; a copy that lacks some questions misses at most those
        assert published - (500 - asked) <= counts[country] <= published
    if asked == 450:
        # counted by an independent implementation
        assert (counts["UK"], counts["US"], counts["North_Korea"], counts["Algeria"]) == (412, 415, 403, 394)


def test_an_annotator_s_own_answer_gets_its_votes(test_data: Path) -> None:
    """A reply with the top answer scores 1, since the answer is a substring of itself."""
    docs = load(test_data / "blend" / "annotations").docs
    with_local = [doc for doc in docs if doc.extra["votes"][0]["answers"]]
    assert len(with_local) > 6_000
    replies = [Scored(doc, doc.extra["votes"][0]["answers"][0]) for doc in with_local]
    scored = score_rows(replies, ("sem_b", "sem_w"), searched=False)
    assert {row.values["sem_w"] for row in scored} == {1.0}
