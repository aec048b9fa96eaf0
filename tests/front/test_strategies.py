"""Which retrieval strategy to use: what is tried, what it is compared by, and what follows."""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval import MragError, harness, strategies
from mrag_eval._front import Measured, _strategy_verdict, strategies_of
from mrag_eval.cli import main
from mrag_eval.config import MODES, Retrieval
from mrag_eval.core import RagDoc
from mrag_eval.metrics import Estimate
from mrag_eval.report import Difference, compare
from mrag_eval.retrieval import TaskRows
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.tiny_models import bert_folder

LANGS = ("de", "en", "es")
# A sentence on a town, and a question about its tower, in each language; written for these tests.
ABOUT = {
    "de": "Der alte Turm von {0} wurde im Jahr {1} von den Fischern am Hafen gebaut.",
    "en": "The old tower of {0} was built in the year {1} by the fishermen at the harbour.",
    "es": "La vieja torre de {0} fue construida en el año {1} por los pescadores del puerto.",
}
ASKS = {
    "de": "In welchem Jahr wurde der Turm von {0} gebaut?",
    "en": "In which year was the tower of {0} built?",
    "es": "¿En qué año se construyó la torre de {0}?",
}
TOWNS = [f"{a}{b}" for a in ("Var", "Ol", "Sund", "Brak", "Nor", "Tes") for b in ("mora", "nick", "veld", "hagen")]


@pytest.fixture
def towns(tmp_path: Path) -> tuple[Path, Path]:
    """24 documents in three languages, told by folder, name and text; each is asked about in another language."""
    folder, questions = tmp_path / "texts", tmp_path / "questions.csv"
    with questions.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "language", "relevant", "answer"])
        for number, town in enumerate(TOWNS):
            lang, other = LANGS[number % 3], LANGS[(number + 1) % 3]
            places = {"de": f"de/{town}.txt", "en": f"{town}.txt", "es": f"{town}.es.md"}
            path = folder / places[lang]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(ABOUT[lang].format(town, 1500 + number), encoding="utf-8")
            # with a language and without, by id, file name and title
            name = (places[lang], path.name, town)[number % 3]
            rows.writerow([ASKS[other].format(town), other if number % 2 else "", name, str(1500 + number)])
    return questions, folder


def lexical(*modes: str, **vary: Sequence[Any]) -> dict[str, Sequence[Any]]:
    return {"mode": modes, "kind": ["bm25"], **vary}


def test_the_winner_is_named_beside_the_default(towns: tuple[Path, Path], tmp_path: Path) -> None:
    found = strategies(*towns, vary=lexical("qlang", "all"), output=tmp_path / "out")
    frame = found.frame.set_index("strategy")
    assert list(frame.value) == [0.0, 1.0]
    assert list(frame.n) == [24, 24]
    assert found.best.name == "all_bm25"
    assert [one.name for one in found.good_enough] == ["all_bm25"]
    assert frame.p_adjusted["qlang_bm25"] < 0.001
    assert frame.less_best["qlang_bm25"] == -1.0
    assert frame.less_best_high["qlang_bm25"] < 0
    said = found.sentences
    # every pair of languages gains as much
    assert said[0] == "all_bm25 shows the document for 100.0 %, qlang_bm25 (the default) 0.0 %; +0.0 s"
    assert said[1] == "winner: all_bm25; every other is shown to be worse (p <= .05, corrected for 1 pair)"
    assert found.notes == (
        "questions   24: de 8, en 8, es 8, 12 of them detected",
        "documents   24: de 8, en 8, es 8, 8 of them detected; 24 passages",
    )
    assert all(text in str(found) for text in (*found.notes, *said, "| all_bm25 *"))


def test_every_score_is_that_of_the_run_it_names(towns: tuple[Path, Path], tmp_path: Path) -> None:
    found = strategies(*towns, vary=lexical("all", "balanced", k=[1, 4]), output=tmp_path / "out")
    scores = mrag_eval.load_results(found.path)
    whole = scores[(scores.metric == "shown@k") & (scores.dimension == "")].set_index("name")
    for row in found.frame.itertuples():
        assert (row.value, row.low, row.high, row.n) == tuple(whole.loc[row.strategy, ["value", "low", "high", "n"]])
        assert (found.tasks / f"{row.strategy}.yaml").is_file()
    for (one, other), tested in found.tests.items():
        (alone,) = compare(
            [found.path.parent], [found.path.parent], metrics=["shown@k"], pairs={one: other}, differs=["all"]
        ).differences[:1]
        assert (alone.difference, alone.low, alone.high) == (tested.difference, tested.low, tested.high)
        # each is a float of its own family
        assert alone.p_adjusted <= tested.p_adjusted + 1e-12
    assert len(found.tests) == 6
    again = mrag_eval.retrieve("balanced_bm25_k4", include=found.tasks)
    hits = found.frame.set_index("strategy").value["balanced_bm25_k4"]
    assert (
        hits
        == sum(any(p.doc_id in again.docs[r].relevant_ids for p in row.passages) for r, row in again.rows.items()) / 24
    )


def test_equal_strategies_have_no_winner(towns: tuple[Path, Path]) -> None:
    found = strategies(*towns, vary=lexical("balanced", "balanced_weighted", "balanced_passages"))
    assert found.frame.value.nunique() == 1
    assert len(found.good_enough) == 3
    assert found.sentences[1].startswith(
        "no winner: balanced_bm25, balanced_weighted_bm25, balanced_passages_bm25 are equal"
    )
    assert found.frame.front.all()


def test_a_cheaper_strategy_that_is_not_shown_to_be_worse_is_good_enough(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = strategies(world / "questions.jsonl", world / "corpus.jsonl", vary=lexical("all", k=[4, 1]))
    frame = found.frame.set_index("strategy")
    assert frame.value["all_bm25_k1"] < frame.value["all_bm25_k4"]
    assert frame.tokens["all_bm25_k1"] < frame.tokens["all_bm25_k4"]
    # of five groups of questions all may differ: 2 / 2^5 > .05
    assert found.sentences[1] == (
        "no winner: too few questions to tell all_bm25_k4 from all_bm25_k1; no difference at all would be seen"
    )
    monkeypatch.setattr(_strategy_verdict, "COARSE", inf)
    assert found.good_enough[0].name == "all_bm25_k1"
    assert found.sentences[1].startswith("no winner: all_bm25_k1 is cheaper than all_bm25_k4 and is good enough: ")
    assert found.sentences[1].endswith("is no significant difference (p = 1.000); no difference at all would be seen")


def test_too_few_questions_make_nothing_good_enough(towns: tuple[Path, Path]) -> None:
    lines = towns[0].read_text("utf-8").splitlines()
    towns[0].write_text("\n".join(lines[:4]), "utf-8")
    found = strategies(*towns, vary=lexical("qlang", "all"))
    assert found.frame.p_adjusted[0] > 0.05
    assert list(found.frame.value) == [0.0, 1.0]
    assert [one.name for one in found.good_enough] == ["all_bm25"]
    assert found.sentences[1].startswith("no winner: too few questions to tell all_bm25 from qlang_bm25; ")


def test_what_cannot_run_is_named_with_its_reason(towns: tuple[Path, Path]) -> None:
    found = strategies(*towns, vary={"kind": ["bm25"]})
    assert {one.settings["mode"] for one in found.measured} == {
        *("all", "qlang", "en_only", "qlang+en", "balanced", "balanced_weighted", "balanced_passages")
    }
    for name, why in {
        "trag_bm25": "no translator",
        "gold_lang_bm25": "upper bound",
        "coral_bm25": "no planner and critic",
        "rel_langs_bm25": "has no relevant_langs",
        "no_ir": "answers alone can judge it",
        "system": "--model rag",
    }.items():
        assert why in found.refused[name]
        assert why in str(found)
    ran = {one.name for one in found.measured}
    assert len(ran | found.refused.keys()) == len(ran) + len(found.refused) == len(MODES)
    with pytest.raises(MragError, match="no strategy can run here: trag_bm25: no translator"):
        strategies(*towns, vary=lexical("trag"))


@pytest.mark.slow
def test_kinds_embedders_and_rerankers_are_combined(world: Path, tmp_path: Path) -> None:
    embedder, reranker = bert_folder(tmp_path / "small", "BertModel"), bert_folder(tmp_path / "cross")
    vary = {"mode": ["all"], "kind": ["dense", "hybrid"], "embedder": [str(embedder)], "rerank": [None, str(reranker)]}
    found = strategies(world / "questions.jsonl", world / "corpus.jsonl", vary=vary)
    assert [one.name for one in found.measured] == [
        *("all_dense_no-rerank", "all_dense_rerank-cross", "all_hybrid_no-rerank", "all_hybrid_rerank-cross")
    ]
    assert not found.refused
    assert [one.settings["rerank"] for one in found.measured] == [None, str(reranker)] * 2
    assert found.frame.mrr.notna().all()
    assert all(one.seconds > 0 for one in found.measured)


@pytest.mark.parametrize("questions", [1, 2, 3])
def test_what_the_first_question_loads_is_not_in_the_seconds(
    questions: int, towns: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mrag_eval.retrieval

    spent, clock = iter([100.0, *(float(n) for n in range(1, 9))]), [0.0]

    def retrieve(*docs: Any, **settings: Any) -> None:
        clock[0] += next(spent)

    few = tmp_path / "few.csv"
    few.write_text("".join(towns[0].read_text("utf-8").splitlines(keepends=True)[: questions + 1]), "utf-8")
    monkeypatch.setattr(mrag_eval.retrieval, "retrieve", retrieve)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    found = strategies(few, towns[1], vary=lexical("all"), output=tmp_path / "out")
    assert [one.seconds for one in found.measured] == [{1: 1.0, 2: 1.0, 3: 1.5}[questions]]


def test_every_mode_is_tried_or_refused_and_each_strategy_has_a_name() -> None:
    for answered in (False, True):
        found, refused = strategies_of({"k": [1, 2]}, answered=answered, fixed={})
        named = [one.name for one in found] + [*refused]
        assert len(named) == len({*named})
        assert found[0].settings == {"mode": "all", "kind": "dense", "k": 1}
        searching = [mode for mode in MODES.values() if mode.searches]
        # dense search over all languages is tried with other merges, too
        merges = [one.block["merge"] for one in found if "merge" in one.settings]
        assert sorted(merges) == sorted(["zscore", "centered", "turns"] * 2)
        assert len(named) == 3 * 2 * len(searching) + len(MODES) - len(searching) + len(merges)
        assert ("no_ir" in refused) is not answered


def test_what_is_fixed_is_not_varied() -> None:
    for name, value in {**Retrieval().model_dump(mode="json"), "mode": "balanced", "kind": "bm25"}.items():
        for one in strategies_of({}, answered=True, fixed={name: value})[0]:
            assert one.block[name] == value
    (only,), refused = strategies_of({}, answered=False, fixed={"mode": "qlang", "kind": "bm25"})
    assert (only.name, only.settings, refused) == ("qlang_bm25", {"mode": "qlang", "kind": "bm25"}, {})


def test_a_retriever_of_ones_own_is_a_kind_beside_ours(
    towns: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, refused = strategies_of({}, answered=True, fixed={"retriever": "mine:search"})
    assert (found[0].name, found[0].block["retriever"]) == ("all_own", "mine:search")
    assert {"all_dense", "all_bm25", "all_hybrid", "given", "no_ir"} <= {one.name for one in found}
    assert all(("retriever" in one.block) is (one.settings.get("kind") == "own") for one in found)
    assert {"oracle_own", "balanced_weighted_own", "translation_own"} <= refused.keys()
    vary = {"mode": ["all"], "kind": ["own", "bm25"], "retriever": ["mine:search", "mine:other"]}
    names = [one.name for one in strategies_of(vary, answered=False, fixed={})[0]]
    assert names == ["all_own_retriever-mine_search", "all_own_retriever-mine_other", "all_bm25"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def search(query, lang, k, languages=None):\n    return [{'id': 'none', 'text': 'nothing', 'lang': 'en'}]\n",
        "utf-8",
    )
    settings = {"retrieval": {"retriever": "mine:search", "pool": ["de", "en"]}}
    tried = strategies(
        *towns, vary={"mode": ["all"], "kind": ["own", "bm25"], "k": [1]}, settings=settings, max_calls=0
    )
    own, ours = tried.measured
    assert (own.name, own.quality.value, ours.name) == ("all_own", 0.0, "all_bm25")
    assert (ours.quality.value or 0.0) > 0


def test_searched_and_answered_once(towns: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    real, answer = TaskRows.retrieved, harness.evaluate

    def counted(supply: TaskRows, docs: Sequence[RagDoc]) -> Any:
        # the run that follows takes its rows from the folder
        if supply.blocks.retrieval.run_folder is None:
            searched.append(len(docs))
            if len(searched) == stop:
                raise KeyboardInterrupt
        return real(supply, docs)

    def ask() -> Any:
        return strategies(*towns, vary=lexical("all", "qlang", "en_only"), output=tmp_path / "out")

    monkeypatch.setattr(TaskRows, "retrieved", counted)
    stop = 2
    with pytest.raises(KeyboardInterrupt):
        ask()
    stop = 0
    monkeypatch.setattr(harness, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask()
    monkeypatch.setattr(harness, "evaluate", answer)
    # the search that was stopped is made again, no other
    assert searched == [24, 24, 24, 24]
    first = ask()
    monkeypatch.setattr(harness, "evaluate", interrupted)
    again = ask()
    assert searched == [24] * 4
    assert again == first


def interrupted(*args: Any, **asked: Any) -> Any:
    raise KeyboardInterrupt


def test_other_questions_do_not_take_the_results_of_a_folder(towns: tuple[Path, Path], tmp_path: Path) -> None:
    vary = lexical("all")
    strategies(*towns, vary=vary, output=tmp_path / "out")
    lines = towns[0].read_text("utf-8").splitlines()
    towns[0].write_text("\n".join(lines[:12]), "utf-8")
    assert strategies(*towns, vary=vary, output=tmp_path / "out").best.quality.n == 11
    fewer = strategies(*towns, vary=vary, settings={"retrieval.k": 1}, output=tmp_path / "out")
    assert fewer.frame.tokens[0] < 700


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"prompt.system": "Be brief."},
        {"generation_kwargs.max_gen_toks": 8},
        {"retrieval.k": 2},
        {"metadata.version": 2},
    ],
)
def test_another_setting_of_the_task_is_measured_again(
    settings: Mapping[str, Any], towns: tuple[Path, Path], tmp_path: Path
) -> None:
    asked = {"model": "oracle_answer", "apply_chat_template": False, "vary": lexical("all"), "output": tmp_path / "out"}
    paths = [strategies(*towns, **asked, settings=one).path for one in ({}, settings, {}, settings)]
    assert paths[0] == paths[2] != paths[1] == paths[3]


def test_changed_gold_answers_are_scored_again_and_no_reply_is_asked_for_twice(
    towns: tuple[Path, Path], hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    sent = []

    def script(body: dict[str, Any], attempt: int) -> Answer:
        sent.append(body)
        return said("7777")

    asked: dict[str, Any] = {**hosted(script), "vary": lexical("all"), "output": tmp_path / "out"}
    first = strategies(*towns, **asked)
    towns[0].write_text(towns[0].read_text("utf-8").replace(",15", ",7777 15"), "utf-8")
    second = strategies(*towns, **asked)
    assert first.best.value == 0.0 < second.best.value
    assert len(sent) == 24


def test_the_same_command_asks_again_for_what_failed(
    towns: tuple[Path, Path], hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    sent, down = [], True

    def script(body: dict[str, Any], attempt: int) -> Answer:
        number, _ = town_of(body)
        sent.append(number)
        return FAILED if down and number < 5 else said(str(1500 + number))

    asked: dict[str, Any] = {**hosted(script), "vary": lexical("all"), "output": tmp_path / "out"}
    assert strategies(*towns, **asked).best.quality.n == 19
    down = False
    sent.clear()
    found = strategies(*towns, **asked)
    assert sorted(sent) == [0, 1, 2, 3, 4]
    assert (found.best.value, found.best.quality.n) == (1.0, 24)
    assert len(found.notes) == 2
    sent.clear()
    assert strategies(*towns, **asked) == found
    assert not sent


@pytest.mark.slow
def test_a_model_answers_and_a_budget_ends_what_the_pilot_ranks_last(towns: tuple[Path, Path], tmp_path: Path) -> None:
    asked = {"model": "oracle_answer", "apply_chat_template": False, "vary": lexical("all", "qlang", "no_ir")}
    found = strategies(*towns, **asked, metric="shown@k", pilot=4, max_calls=60, output=tmp_path / "out")
    # twelve calls for the pilot, twenty for the rest of each
    assert [one.name for one in found.measured] == ["all_bm25", "qlang_bm25"]
    assert found.refused["no_ir"] == "the budget leaves 8 of the 20 calls that its other questions take"
    assert strategies(*towns, **asked, metric="shown@k", pilot=4, max_calls=60, output=tmp_path / "out") == found
    assert len([*(tmp_path / "out").glob("replies-*.db")]) == 1
    free = strategies(*towns, **asked, output=tmp_path / "out")
    assert free.metric == "char3gram_recall"
    assert list(free.frame.value) == [1.0, 1.0, 1.0]
    # nothing is retrieved for it
    assert free.best.name == "no_ir"
    with pytest.raises(MragError, match=r"--max_calls 11: 3 strategies make 12 calls for 4 questions"):
        strategies(*towns, **asked, pilot=4, max_calls=11, output=tmp_path / "out")


def test_a_budget_that_is_enough_for_no_strategy_spends_no_call(
    towns: tuple[Path, Path], hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    sent = []

    def script(body: dict[str, Any], attempt: int) -> Answer:
        sent.append(body)
        return said("1501")

    asked: dict[str, Any] = {**hosted(script), "vary": lexical("all", "no_ir"), "pilot": 4, "output": tmp_path / "out"}
    # eight calls for the pilot, twenty for the rest of either
    for most, why in {7: "8 calls for 4 questions", 27: "8 calls for 4 questions, and one of them 20"}.items():
        with pytest.raises(MragError, match=f"--max_calls {most}: 2 strategies make {why}"):
            strategies(*towns, **asked, max_calls=most)
        assert not sent
    assert [one.name for one in strategies(*towns, **asked, max_calls=28).measured] == ["all_bm25"]
    assert len(sent) == 28


@pytest.mark.parametrize("budget", [{}, {"model": "oracle_answer", "apply_chat_template": False, "max_calls": 90}])
def test_a_strategy_that_fails_while_it_retrieves_does_not_end_the_others(
    budget: dict[str, Any], towns: tuple[Path, Path], tmp_path: Path
) -> None:
    asked = {"output": tmp_path / "out", **budget}
    found = strategies(*towns, **asked, vary=lexical("qlang+en", merge=["score", "rrf"]))
    assert [one.name for one in found.measured] == ["qlang_en_bm25_rrf"]
    assert found.refused["qlang_en_bm25_score"].startswith("retrieval.merge=score: bm25 scores do not compare")
    with pytest.raises(MragError, match=r"no strategy can run here: qlang_en_bm25: retrieval\.merge=score: bm25"):
        strategies(*towns, **asked, vary=lexical("qlang+en", merge=["score"]))


def test_nothing_is_written_among_the_documents(towns: tuple[Path, Path]) -> None:
    held = sorted(towns[1].rglob("*"))
    for inside in (towns[1], towns[1] / "out", towns[1] / "de" / ".." / "out"):
        with pytest.raises(MragError, match="and would be read as documents"):
            strategies(*towns, vary=lexical("all"), output=inside)
    assert sorted(towns[1].rglob("*")) == held


def test_no_question_is_asked_twice(
    towns: tuple[Path, Path], tmp_path: Path, start: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = start(lambda body, attempt: said("In 1501."))
    found = strategies(
        *towns,
        vary=lexical("all", "no_ir"),
        model="local-chat-completions",
        model_args={"model": "m", "base_url": server.url},
        pilot=4,
        max_calls=48,
        output=tmp_path / "out",
    )
    assert len(found.measured) == 2
    assert len(server.requests) == len({json.dumps(body) for _, _, body in server.requests}) == 48


def town_of(body: dict[str, Any]) -> tuple[int, bool]:
    """Return the number of the town that a request asks about, and whether it shows passages."""
    text = asked(body)
    town = max(TOWNS, key=text.rfind)
    return TOWNS.index(town), any(about.partition("{")[0] in text for about in ABOUT.values())


@pytest.fixture
def hosted(start: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return the arguments of a model that is asked by way of a server with this script."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def arguments(script: Callable[..., Answer]) -> dict[str, Any]:
        url = start(script).url
        return {"model": "local-chat-completions", "model_args": {"model": "m", "base_url": url, "max_retries": 1}}

    return arguments


FAILED = Answer(400, {"error": {"message": "content filter"}})


@pytest.mark.parametrize("failing", [range(12, 24), range(0, 24, 2), [1], range(23)])
def test_strategies_are_ranked_by_the_questions_that_all_of_them_answered(
    failing: Sequence[int], towns: tuple[Path, Path], hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        number, shows = town_of(body)
        if not shows and number in failing:
            return FAILED
        right = number not in failing if shows else number % 4 != 0
        return said(str(1500 + number) if right else "no idea")

    found = strategies(*towns, **hosted(script), vary=lexical("no_ir", "all"), output=tmp_path / "out")
    common = [number for number in range(24) if number not in failing]
    share = sum(number % 4 != 0 for number in common) / len(common)
    assert [(one.value, one.quality.n) for one in found.measured] == [(share, len(common)), (1.0, len(common))]
    assert not found.refused
    if share < 1:
        assert found.best.name == "all_bm25"
    for (_, other), tested in found.tests.items():
        assert tested.n == len(common)
        assert tested.difference == pytest.approx(min(share - 1, 0.0))
        assert other in ("no_ir", "all_bm25")
    assert f"scored      the {len(common)} questions of 24 that every strategy has a value for" in str(found)
    assert any(note.startswith(f"no_ir: {len(failing)} of 24 questions: answer failed (") for note in found.notes)
    assert not any(note.startswith("all_bm25") for note in found.notes)


def test_a_strategy_that_answers_nothing_in_common_with_others_is_refused(
    towns: tuple[Path, Path], hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        number, shows = town_of(body)
        return said(str(1500 + number)) if shows is (number >= 6) else FAILED

    found = strategies(*towns, **hosted(script), vary=lexical("no_ir", "all"), output=tmp_path / "out")
    assert [(one.name, one.quality.n) for one in found.measured] == [("all_bm25", 18)]
    assert found.refused == {"no_ir": "6 questions are scored, none of them for all other strategies"}


def test_a_strategy_of_which_every_answer_failed_is_named_with_the_reason(
    towns: tuple[Path, Path], hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        number, shows = town_of(body)
        return said(str(1500 + number)) if shows else FAILED

    found = strategies(*towns, **hosted(script), vary=lexical("no_ir", "all"), output=tmp_path / "out")
    assert [(one.name, one.quality.n) for one in found.measured] == [("all_bm25", 24)]
    assert found.refused == {"no_ir": "no question is scored: answer failed (rejected)"}
    assert "no_ir: 24 of 24 questions: answer failed (rejected)" in found.notes
    assert "p: paired" not in str(found)


def test_a_model_whose_files_the_hub_does_not_give_is_named_in_one_line(
    towns: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.models.dummy import DummyLM

    def template(*_: Any, **__: Any) -> str:
        raise OSError("We couldn't connect to the hub.\nSee its page.")

    monkeypatch.setattr(DummyLM, "apply_chat_template", template)
    with pytest.raises(MragError, match=r"^model dummy: We couldn't connect to the hub") as caught:
        strategies(*towns, model="dummy", vary=lexical("all"), output=tmp_path / "out")
    assert "\n" not in caught.value.message
    assert "--no-chat" in str(caught.value.next_step)
    found = strategies(*towns, model="dummy", vary=lexical("all"), apply_chat_template=False)
    assert found.measured


def less(difference: float, p: float) -> Difference:
    """Return a tested difference of this size, where one of five points would be seen."""
    return Difference(
        *("t", "shown@k", None, 9, 0.5, 0.5 + difference, difference, None, None, p, p, 0.05, "test"),
        better=("a",) if difference > 0 else (),
        worse=("a",) if difference < 0 else (),
    )


def verdict(*measured: Measured, tests: Mapping[tuple[str, str], Difference]) -> mrag_eval.Strategies:
    return mrag_eval.Strategies("shown@k", measured, tests, {}, (), Path(), Path())


def test_no_strategy_whose_difference_is_positive_is_worse() -> None:
    a, b = (Measured(name, {}, Estimate(value, n=9)) for name, value in (("a", 0.9), ("b", 0.5)))
    for difference in (-0.4, 0.0, 0.4):
        found = verdict(a, b, tests={("a", "b"): less(difference, 0.001)})
        assert found.sentences[1].startswith("winner: a") is (difference < 0)


def test_what_is_named_first_is_on_the_front_and_equals_in_price_go_by_quality() -> None:
    draw = random.Random(1)
    for _ in range(200):
        measured = [
            Measured(
                f"s{i}",
                {},
                Estimate(0.5 + draw.randint(0, 4) / 100, n=9),
                seconds=draw.choice((0.02, 0.049, 0.051, 0.09, 1.0)),
                tokens=draw.randint(1, 2),
            )
            for i in range(draw.randint(1, 6))
        ]
        best = verdict(*measured, tests={}).best
        tests = {
            (best.name, one.name): less(one.value - best.value, draw.choice((0.01, 0.9)))
            for one in measured
            if one is not best
        }
        found = verdict(*measured, tests=tests)
        first, *others = found.good_enough
        assert first in found.front
        assert found.best in found.good_enough
        for one in others:
            apart = one.tokens != first.tokens or abs(one.seconds - first.seconds) >= 0.1
            assert apart or one.value <= first.value


@pytest.mark.parametrize(
    ("pairs", "p", "half", "said"),
    [
        ({"de->en": 0.9, "en->de": 0.8}, 0.001, 0.2, True),
        ({"de->en": 0.9, "en->de": 0.8}, 0.2, 0.2, False),
        ({"de->en": 0.9, "en->de": 0.9}, 0.001, 0.2, False),
        ({"de->en": 0.9}, 0.001, 0.2, False),
        ({"de->en": 0.1, "en->de": 0.2}, 0.001, 0.2, False),
        # the intervals of the pair meet, or there are none: too few questions
        ({"de->en": 0.9, "en->de": 0.8}, 0.001, 0.4, False),
        ({"de->en": 0.9, "en->de": 0.8}, 0.001, None, False),
        ({}, 0.001, 0.2, False),
    ],
)
def test_a_gap_is_named_where_it_is_shown_and_the_largest(
    pairs: Mapping[str, float], p: float, half: float | None, said: bool
) -> None:
    def cells(values: Mapping[str, float]) -> dict[str, Estimate]:
        bounds = {
            pair: (None, None) if half is None else (value - half, value + half) for pair, value in values.items()
        }
        return {pair: Estimate(value, *bounds[pair], n=9) for pair, value in values.items()}

    default = Measured("default", {}, Estimate(0.5, n=9), pairs=cells(dict.fromkeys(pairs, 0.3)))
    best = Measured("best", {}, Estimate(0.9, n=9), pairs=cells(pairs))
    found = verdict(default, best, tests={("best", "default"): less(-0.4, p)})
    assert ("the gap is de -> en;" in found.sentences[0]) is ("the gap is" in found.sentences[0]) is said


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


TEXT = ABOUT["en"].format("Varn", 1841)
GOOD = {"query": ASKS["en"].format("Varn"), "lang": "en", "relevant_ids": ["en/varn.txt"]}


@pytest.mark.parametrize(
    ("texts", "questions", "said"),
    [
        ({}, [GOOD], "holds no documents"),
        ({"en/varn.txt": " "}, [GOOD], "the documents have no text"),
        ({"xq/varn.txt": TEXT}, [GOOD], "unknown language 'xq'"),
        ({"varn.txt": "1841"}, [GOOD], "varn.txt: its language is not named, and the text does not tell it"),
        (
            {"en/varn.txt": TEXT},
            [GOOD | {"relevant_ids": ["en/vorn.txt"]}],
            "there is no document 'en/vorn.txt'; did you",
        ),
        ({"en/varn.txt": TEXT}, [GOOD | {"relevant_ids": []}], "line 1: question '0' names no relevant document"),
        (
            {"en/varn.txt": TEXT, "de/varn.txt": TEXT},
            [GOOD | {"relevant_ids": ["varn"]}],
            "2 documents are called 'varn'",
        ),
        ({"en/varn.txt": TEXT}, [GOOD | {"id": "a"}, GOOD | {"id": "a"}], "two rows have the id 'a'"),
        ({"en/varn.txt": TEXT}, [GOOD | {"lang": "qq"}], "line 1: 'lang': unknown language 'qq'"),
        ({"en/varn.txt": TEXT}, [{"kysymys": "?"}], "no column is the question"),
        ({"en/varn.txt": TEXT}, [], "there are no rows in"),
    ],
)
def test_data_that_cannot_be_used_is_refused_in_a_line(
    texts: Mapping[str, str], questions: Sequence[Mapping[str, Any]], said: str, tmp_path: Path
) -> None:
    (tmp_path / "texts").mkdir()
    for name, text in texts.items():
        (tmp_path / "texts" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text(text, "utf-8")
    write(tmp_path / "questions.jsonl", questions)
    with pytest.raises(MragError) as refused:
        strategies(tmp_path / "questions.jsonl", tmp_path / "texts", output=tmp_path / "out")
    assert said in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.next_step


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"vary": {"modus": ["all"]}}, "--vary modus: no setting that strategies vary"),
        ({"vary": {"corpus": ["a", "b"]}}, "--vary corpus: no setting that strategies vary"),
        ({"vary": {"mode": ["al"]}}, "--vary mode: unknown mode 'al'; did you mean 'all'?"),
        (
            {"vary": {"kind": ["bm25", "dense"]}, "settings": {"retrieval.kind": "bm25"}},
            "--vary kind: --metadata retrieval.kind fixes it",
        ),
        ({"settings": {"metrics": ["hit@3"]}}, "--metadata metrics: strategies share their metrics"),
        ({"settings": {"data.languages": ["de"]}}, "--metadata data: strategies share their data"),
        ({"metric": "match"}, "--metric match: it measures answers"),
        ({"metric": "copied", "model": "dummy"}, "--metric copied: more of it is not better"),
        ({"metric": "macth", "model": "dummy"}, "--metric: unknown metric 'macth'; did you mean 'match'?"),
        ({"model": "rag"}, "--model rag: a system that retrieves by itself"),
        ({"pilot": 0}, "--pilot 0: expected a number of questions from 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    asked: dict[str, Any], said: str, towns: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(MragError) as refused:
        strategies(*towns, output=tmp_path / "out", **asked)
    assert said in refused.value.message
    assert refused.value.next_step or "did you mean" in refused.value.message


def test_no_strategy_of_the_front_is_beaten_and_every_other_is() -> None:
    draw = random.Random(0)
    for _ in range(50):
        measured = tuple(
            Measured(
                f"s{i}",
                {},
                Estimate(draw.randint(0, 4) / 4, n=9),
                seconds=draw.randint(0, 3),
                tokens=draw.randint(1, 4),
            )
            for i in range(draw.randint(1, 9))
        )
        found = mrag_eval.Strategies("shown@k", measured, {}, {}, (), Path(), Path())

        def beats(a: Measured, b: Measured) -> bool:
            mine, theirs = ((-one.value, one.seconds, one.tokens) for one in (a, b))
            return mine != theirs and all(x <= y for x, y in zip(mine, theirs, strict=True))

        for one in measured:
            assert (one in found.front) is not any(beats(other, one) for other in measured)
        assert found.best in found.front or any(one.value == found.best.value for one in found.front)


def test_the_command_prints_what_python_returns(
    towns: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["strategies", *map(str, towns), "-o", str(tmp_path / "out")]
    words += ["--vary", "kind=bm25", "--vary", "mode=qlang,all"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    found = strategies(*towns, vary=lexical("qlang", "all"), output=tmp_path / "out")
    assert shown.startswith(f"{found}\n")
    assert f"mrag-eval run --tasks {found.tasks / 'all_bm25.yaml'}" in shown
    with pytest.raises(SystemExit):
        main([*words, "--json"])
    whole = json.loads(capsys.readouterr().out)
    assert [(row["strategy"], row["value"]) for row in whole["strategies"]] == [("qlang_bm25", 0.0), ("all_bm25", 1.0)]
    assert (whole["notes"], whole["said"]) == ([*found.notes], [*found.sentences])
    for wrong in (["k"], ["k="], ["k=1", "k=2"]):
        with pytest.raises(SystemExit) as ended:
            main([*words[:5], *(word for text in wrong for word in ("--vary", text))])
        assert ended.value.code == 2
        assert "is not KEY=VALUE,VALUE, each key once" in capsys.readouterr().err


@pytest.mark.slow
def test_on_xquad_translated_questions_win_over_the_default(test_data: Path, tmp_path: Path) -> None:
    from mrag_eval.datasets import load_benchmark

    langs = ["ar", "en", "ru", "zh"]
    found = load_benchmark({"benchmark": "xquad", "path": str(test_data / "xquad"), "languages": langs})
    for passage in found.corpus or ():
        path = tmp_path / "texts" / passage.lang / f"{passage.doc_id}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(passage.text, "utf-8")
    asked = [{"id": d.id, "query": d.query, "lang": d.query_lang, "relevant": [*d.relevant_ids]} for d in found.docs]
    groups = [{"group_id": d.group_id} for d in found.docs]
    write(tmp_path / "questions.jsonl", [a | b for a, b in zip(asked, groups, strict=True)])
    translations = {
        (texts[a].strip(), a, b): {"source": texts[a], "source_lang": a, "target": texts[b], "target_lang": b}
        for texts in found.parallel
        for a in langs
        for b in langs
        if a != b
    }
    write(tmp_path / "table.jsonl", [*translations.values()])
    translator = {"backend": "table", "path": str(tmp_path / "table.jsonl")}
    said = strategies(
        tmp_path / "questions.jsonl",
        tmp_path / "texts",
        vary=lexical("all", "balanced", "translation"),
        settings={"retrieval": {"translator": translator}},
        output=tmp_path / "out",
    )
    frame = said.frame.set_index("strategy")
    assert frame.n.to_list() == [1190] * 3
    assert frame.value["translation_bm25"] > 0.8
    assert frame.value["all_bm25"] < 0.6
    assert said.sentences[0].startswith("translation_bm25 shows the document for 8")
    assert said.sentences[1].startswith("winner: translation_bm25; every other is shown to be worse")


def test_none_leaves_a_key_unset_unless_it_is_a_word_of_that_key() -> None:
    for vary, wanted in (
        ({"rerank": ["none", {"model": "a/reranker"}]}, ["all_bm25_no-rerank", "all_bm25_rerank-reranker"]),
        ({"depth": ["none", 5]}, ["all_bm25_no-depth", "all_bm25_depth5"]),
        ({"query_translation": ["none"]}, ["all_bm25"]),
    ):
        found, refused = strategies_of({"mode": ["all"], "kind": ["bm25"], **vary}, answered=False, fixed={})
        assert ([one.name for one in found], refused) == (wanted, {})
    assert (
        strategies_of({"mode": ["all"], "query_translation": ["none"]}, answered=False, fixed={})[0][0].block[
            "query_translation"
        ]
        == "none"
    )
    with pytest.raises(MragError, match="--vary k:"):
        strategies_of({"k": ["none"]}, answered=False, fixed={})
