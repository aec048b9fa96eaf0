"""Replies in the wrong language, translated before they are scored: which ones, into which language, and the counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.config import TableSpec
from mrag_eval.core import Failure, RagDoc, Scored, TextKind
from mrag_eval.models import Translation, Translator, build_translator
from mrag_eval.platform import ConfigError
from mrag_eval.scoring import score_rows, with_translated_answers
from tests.worlds.small import BASE, TOPICS, ScriptedLM, write_task

ENGLISH, GERMAN = "The bakery in Olm sells rye bread and nothing else.", "Die Bäckerei in Olm verkauft nur Roggenbrot."
WRONG, FALSCH = "The bakery in Olm sells cakes and nothing else.", "Die Bäckerei in Olm verkauft nur Kuchen."
LINES = [(ENGLISH, "en", GERMAN, "de"), (WRONG, "en", FALSCH, "de"), ("rye bread", "en", "ржаной хлеб", "ru")]
METRICS = ("match", "match_translated", "char3gram_recall_translated")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.jsonl"
    keys = ("source", "source_lang", "target", "target_lang")
    path.write_text("".join(json.dumps(dict(zip(keys, line, strict=True))) + "\n" for line in LINES), "utf-8")
    return path


def translator(path: Path) -> Translator:
    return build_translator(TableSpec(backend="table", path=path))


def asked(lang: str, reply: str, answer: str | None = None, **more: Any) -> Scored:
    return Scored(RagDoc(f"{lang}-{reply}", "?", lang, (answer,) if answer else ()), reply, **more)


def one(row: Scored, path: Path) -> dict[str, float | str]:
    (scores,) = score_rows(with_translated_answers([row], translator(path)), METRICS, searched=False)
    return {**scores.unscored, **scores.values}


@pytest.mark.parametrize(
    ("row", "plain", "translated"),
    [
        # right, in the wrong language; wrong, in the wrong language
        (asked("de", ENGLISH, "Roggenbrot"), 0.0, 1.0),
        (asked("de", WRONG, "Roggenbrot"), 0.0, 0.0),
        # already in the language: unchanged
        (asked("de", GERMAN, "Roggenbrot"), 1.0, 1.0),
        (asked("de", "Roggenbrot", "Roggenbrot"), 1.0, 1.0),
        (asked("ru", "ржаной хлеб", "ржаной хлеб"), 1.0, 1.0),
        # short: identified by its script; Latin letters count as English
        (asked("ru", "rye bread", "ржаной хлеб"), 0.0, 1.0),
        # in every language, or an empty reply
        (asked("ru", "1841", "1841"), 1.0, 1.0),
        (asked("ru", "", "1841"), 0.0, 0.0),
        (asked("ru", "None", "1841", tagged=True, declined=True), 0.0, 0.0),
    ],
)
def test_a_right_answer_in_the_wrong_language_differs_from_a_wrong_one(
    row: Scored, plain: float, translated: float, table: Path
) -> None:
    found = one(row, table)
    assert (found["match"], found["match_translated"]) == (plain, translated)


def test_recall_is_that_of_the_translation(table: Path) -> None:
    # the 3-grams of "kuchen" are kuc, uch, che, hen; the reply's are those of "nur kuchen" and more
    assert one(asked("de", WRONG, "Kuchen"), table)["char3gram_recall_translated"] == 1.0
    assert one(asked("de", ENGLISH, "Kuchen"), table)["char3gram_recall_translated"] == 0.0


def test_untranslatable_replies_are_unscored_with_the_reason(table: Path) -> None:
    missing = one(asked("de", "There is nothing of the kind in the table at all.", "Roggenbrot"), table)
    assert missing["match"] == 0.0
    assert missing["match_translated"] == "translation of answers failed (missing)"
    assert one(asked("de", ENGLISH), table)["match_translated"] == "the row has no reference answer"
    (scores,) = score_rows([asked("de", ENGLISH, "x")], METRICS, searched=False)
    assert scores.unscored["match_translated"] == "the reply was not translated"


class Broken:
    """Stands in for a translator: fails on every text, and records its calls."""

    label = "broken"

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], list[str], list[str], str]] = []

    def translate(
        self, texts: Sequence[str], sources: Sequence[str], targets: Sequence[str], *, kind: TextKind
    ) -> list[Translation]:
        self.calls.append((list(texts), list(sources), list(targets), kind))
        why = ("failed", "timeout: none in 5 s", "broken", kind)
        return [Translation(text, source, *why) for text, source in zip(texts, sources, strict=True)]


def test_all_answers_go_in_one_batch_and_failures_are_few_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Any = Broken()
    rows = [
        asked("de", ENGLISH, "x"),
        asked("de", GERMAN, "x"),
        asked("ru", "rye bread", "x"),
        asked("de", WRONG),
    ]
    out = with_translated_answers(rows, broken)
    assert broken.calls == [([ENGLISH, "rye bread"], ["en", "en"], ["de", "ru"], "answers")]
    reason = "translation of answers failed (timeout)"
    assert [row.untranslated for row in out] == [reason, None, reason, None]
    assert [row.translated for row in out] == [None, GERMAN, None, None]
    failure = Failure("translation", "broken", "timeout", "none in 5 s", "answers")
    assert [row.failures for row in out] == [(failure,), (), (failure,), ()]


def test_a_row_without_an_answer_to_translate_is_left_alone() -> None:
    broken: Any = Broken()
    dead = Failure("answer", "m", "timeout")
    (row,) = with_translated_answers([asked("de", ENGLISH, "x", failures=(dead,))], broken)
    assert broken.calls == [([], [], [], "answers")]
    assert (row.translated, row.failures) == (None, (dead,))


@pytest.mark.parametrize(
    ("lang", "reply"),
    [
        # the script of Nahuatl is not known, so that a short reply says nothing
        ("nah", "rye bread"),
        # the detector does not know Coptic, and is not asked
        ("cop", ENGLISH),
    ],
)
def test_a_language_that_cannot_be_told_is_a_reason(lang: str, reply: str) -> None:
    broken: Any = Broken()
    (row,) = with_translated_answers([asked(lang, reply, "x")], broken)
    assert broken.calls == [([], [], [], "answers")]
    assert (row.translated, row.untranslated) == (None, "the language of the reply cannot be told")


def run(folder: Path, name: str, answer: Any) -> Mapping[str, Any]:
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    results = lm_eval.simple_evaluate(ScriptedLM(answer), tasks=[name], task_manager=manager, log_samples=True)
    assert results is not None
    return results


@pytest.mark.parametrize("mode", ["no_ir", "all"])
def test_a_task_that_names_the_metric_translates_its_replies(world: Path, table: Path, mode: str) -> None:
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    retrieval = {"mode": mode, "k": 2, "kind": "bm25", "translator": {"backend": "table", "path": str(table)}}
    write_task(world, "t", **BASE | {"metrics": list(METRICS)}, data=data, retrieval=retrieval)
    question = TOPICS["bakery"]["ru"][1]
    results = run(world, "t", lambda prompt: "rye bread" if question in prompt else "1841")
    (sample,) = [s for s in results["samples"]["t"] if s["doc"]["id"] == "q-bakery-ru"]
    assert sample["rows"]["answer_translated"] == "ржаной хлеб"
    assert (sample["match"], sample["match_translated"]) == (0.0, 1.0)
    scores = results["configs"]["t"]["scores"]
    # five replies give the year of the lighthouse, and one of them is right only in translation
    assert scores["metrics"]["match_translated"]["value"] == pytest.approx(6 / 15)
    assert scores["metrics"]["match"]["value"] == pytest.approx(5 / 15)
    assert scores["translation"]["counts"] == {"answers": {"translated": 1}}
    assert all("original_text" not in p for s in results["samples"]["t"] for p in s["doc"]["passages"])


def test_without_a_translator_the_task_says_so_before_anything_runs(world: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl")}
    write_task(world, "t", **BASE | {"metrics": ["match_translated"]}, data=data, retrieval={"mode": "no_ir"})
    with pytest.raises(ConfigError, match="task t: metric 'match_translated' needs a translator") as error:
        run(world, "t", lambda prompt: "x")
    assert "\n" not in error.value.message
