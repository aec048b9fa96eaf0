"""The interface of all backends: requests, cache, checks of translations, and counts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from mrag_eval.config import TableSpec
from mrag_eval.core import Failure, TextKind
from mrag_eval.models import Translation, Translator, build_translator, total_counts, write_table
from mrag_eval.models.translate._backend import Text, Translated
from mrag_eval.models.translate._table import load_table
from mrag_eval.models.translate._translator import OUTCOMES, counts_line
from mrag_eval.platform import DataError, Store

WORDS = {
    ("Wo liegt der alte Leuchtturm von Varn am Meer?", "en"): "Where is the old lighthouse of Varn by the sea?",
    ("Wo liegt der alte Leuchtturm von Varn am Meer?", "ru"): "Где у моря стоит старый маяк Варна, скажите?",
    ("Hund", "en"): "dog",
    ("leer", "en"): "  ",
    ("stumm", "en"): "Der Hund läuft heute sehr schnell durch den Garten.",
}


class Scripted:
    """Translates by the table above; a text that is missing from it fails. ``stops`` raises after that many texts."""

    def __init__(self, version: str = "1", stops: int | None = None) -> None:
        self.version, self.stops = version, stops
        self.asked: list[Text] = []

    def fingerprint(self, text: Text) -> Any:
        return ["scripted", self.version]

    def identity(self) -> dict[str, Any]:
        return {"backend": "scripted", "version": self.version}

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
        for position, text in enumerate(texts):
            if self.stops is not None and position == self.stops:
                raise KeyboardInterrupt
            self.asked.append(text)
            found = WORDS.get((text.text, text.target))
            yield position, Translated(found, None if found is not None else "failed: no such word")

    def cost(self) -> dict[str, Any] | None:
        return {"texts": len(self.asked)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "translations.sqlite")


LONG = "Wo liegt der alte Leuchtturm von Varn am Meer?"


def test_every_outcome_is_counted_and_failed_translations_fall_back_to_the_original() -> None:
    backend = Scripted()
    translator = Translator(backend, "scripted")
    texts = [LONG, "Hund", "leer", "stumm", "unbekannt", "Hello there", LONG]
    out = translator.translate(texts, ["de", "de", "de", "de", "de", "en_GB", "de"], "en")
    assert [t.outcome for t in out] == [
        "translated",
        "translated",
        "empty",
        "wrong_language",
        "failed",
        "same_language",
        "translated",
    ]
    assert [t.text for t in out] == [WORDS[LONG, "en"], "dog", "leer", "stumm", "unbekannt", "Hello there", out[0].text]
    assert [t.lang for t in out] == ["en", "en", "de", "de", "de", "en", "en"]
    assert [t.is_translation for t in out] == [True, True, False, False, False, False, True]
    assert out[4].detail == "no such word"
    # distinct texts are counted, and each is requested once; texts already in the language are not requested
    assert translator.counts["queries"] == {
        "translated": 2, "empty": 1, "wrong_language": 1, "failed": 1, "same_language": 1,
    }  # fmt: skip
    assert len(backend.asked) == 5


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_is_in_the_target_language_or_a_failure(outcome: str) -> None:
    """Return to this test with a new outcome: it is a failure until it is known to be none."""
    there = outcome in ("translated", "cached", "same_language")
    for texts in get_args(TextKind):
        done = Translation("Hund", "de", outcome, "timeout: 5 s", "lm m", texts)
        assert done.is_translation is (there and outcome != "same_language")
        reason = "timeout" if outcome == "failed" else outcome
        detail = "5 s" if outcome == "failed" else "timeout: 5 s"
        assert done.failure == (None if there else Failure("translation", "lm m", reason, detail, texts))
    # with no cause known, an outcome is a reason
    known = Translation("Hund", "de", outcome, by="lm m").failure
    assert known is None if there else known and (known.reason, known.detail) == (outcome, "")


def test_the_translator_names_itself_and_the_texts_in_a_failure() -> None:
    translator = Translator(Scripted(), "scripted")
    texts = ["leer", "stumm", "unbekannt", "Hund", "Hello there"]
    for kind in get_args(TextKind):
        out = translator.translate(texts, ["de"] * 4 + ["en"], "en", kind=kind)
        assert [done.failure for done in out] == [
            Failure("translation", "scripted", "empty", texts=kind),
            Failure("translation", "scripted", "wrong_language", texts=kind),
            Failure("translation", "scripted", "no such word", texts=kind),
            None,
            None,
        ]
        assert {done.outcome for done in out} <= {*OUTCOMES}


def test_a_second_run_repeats_only_failed_calls(store: Store) -> None:
    texts = [LONG, "Hund", "leer", "unbekannt"]
    Translator(Scripted(), "s", store=store).translate(texts, ["de"] * 4, "en")
    backend = Scripted()
    again = Translator(backend, "s", store=store)
    out = again.translate(texts, ["de"] * 4, "en")
    assert [t.outcome for t in out] == ["cached", "cached", "empty", "failed"]
    assert [t.text for t in backend.asked] == ["leer", "unbekannt"]
    # another target, other settings, another text: each is a different translation
    assert again.translate([LONG], ["de"], "ru")[0].outcome == "translated"
    assert Translator(Scripted("2"), "s", store=store).translate([LONG], ["de"], "en")[0].outcome == "translated"


def test_texts_that_are_asked_for_again_are_counted_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the failures, and without what was translated before: in sum, what a run without failures counts."""
    texts, sources = [LONG, "Hund", "Hello there", "neu"], ["de", "de", "en", "de"]
    first = Translator(Scripted(), "scripted", store=store)
    first.translate(texts, sources, "en")
    assert first.as_dict()["counts"] == {"queries": {"translated": 2, "same_language": 1, "failed": 1}}
    monkeypatch.setitem(WORDS, ("neu", "en"), "new")
    second = Translator(Scripted(), "scripted", store=store)
    second.translate(texts, sources, "en")
    earlier = second.asked_again(first.as_dict())
    whole = total_counts([second.as_dict(), earlier])
    assert whole is not None
    assert whole["counts"] == {"queries": {"translated": 3, "same_language": 1}}
    second.translate(["unbekannt"], ["de"], "en")
    assert second.as_dict()["counts"] == {"queries": {"translated": 1, "failed": 1}}


def test_a_stopped_run_keeps_its_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrag_eval.models.translate._translator._COMMIT", 1)
    with pytest.raises(KeyboardInterrupt):
        Translator(Scripted(stops=1), "s", store=store).translate([LONG, "Hund"], ["de", "de"], "en")
    backend = Scripted()
    Translator(backend, "s", store=store).translate([LONG, "Hund"], ["de", "de"], "en")
    assert [t.text for t in backend.asked] == ["Hund"]


def test_a_wrong_language_is_detected_only_in_long_texts_and_foreign_scripts() -> None:
    class Says:
        def __init__(self, text: str) -> None:
            self.text = text

        def fingerprint(self, text: Text) -> None: ...

        def identity(self) -> dict[str, Any]:
            return {}

        def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
            yield 0, Translated(self.text)

        def cost(self) -> None: ...

    def outcome(said: str, target: str, **options: Any) -> str:
        return Translator(Says(said), "s", **options).translate(["x y z"], ["hi"], target)[0].outcome

    english = "When did the old lighthouse of Varn fall into the sea?"
    assert outcome(english, "de") == "wrong_language"
    assert outcome(english, "de", check_language=False) == "translated"
    assert outcome("Old lighthouse", "de") == "translated"  # in the script of the language, and short
    assert outcome("Old lighthouse", "ru") == "wrong_language"  # not a letter in its script
    assert outcome("1841", "ru") == "translated"
    assert outcome("瓦恩灯塔建于哪一年，谁建造了它？", "zh-Hant") == "translated"


def test_counts_are_kept_by_kind_logged_and_added_over_ranks(caplog: pytest.LogCaptureFixture) -> None:
    translator = Translator(Scripted(), "scripted")
    with caplog.at_level(logging.INFO, logger="lm_eval"):
        translator.translate([LONG, "leer"], ["de", "de"], "en", kind="queries")
        translator.translate([LONG], ["de"], ["ru"], kind="documents")
    assert "queries, by scripted: 1 translated, 1 empty" in caplog.text
    assert "1 of 2 queries are left untranslated" in caplog.text
    assert translator.identity == {"backend": "scripted", "version": "1", "check_language": True}
    mine = translator.as_dict()
    assert mine == {
        "translator": "scripted",
        "counts": {"queries": {"translated": 1, "empty": 1}, "documents": {"translated": 1}},
        "cost": {"texts": 3},
    }
    other = {"translator": "scripted", "counts": {"queries": {"missing": 2, "empty": 1}}, "cost": {"texts": 4}}
    assert total_counts([mine, other]) == {
        "translator": "scripted",
        "counts": {"queries": {"translated": 1, "empty": 2, "missing": 2}, "documents": {"translated": 1}},
        "cost": {"texts": 7},
    }
    assert total_counts([]) is None
    assert counts_line({}) == "nothing to translate"


def test_used_translations_can_be_saved_as_a_table_and_reused(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "shared" / "table.jsonl"
    texts = [LONG, "Hund", "leer", "stumm", "unbekannt"]
    for _ in range(2):  # the second time everything comes from the cache, and nothing is written twice
        translator = Translator(Scripted(), "s", store=store, save=path)
        translator.translate(texts, ["de"] * 5, "en")
        translator.translate([LONG, "Hund"], ["de", "en"], ["ru", "en"])
    assert set(load_table(path)) == {(LONG, "de", "en"), ("Hund", "de", "en"), (LONG, "de", "ru")}
    assert len(path.read_text("utf-8").splitlines()) == 3
    again = build_translator(TableSpec(backend="table", path=path, strict=True))
    assert [t.text for t in again.translate([LONG, "Hund"], ["de"] * 2, "en")] == [WORDS[LONG, "en"], "dog"]
    write_table([{"de": "Hund", "en": "hound"}], path)
    with pytest.raises(DataError, match=r"table\.jsonl gives 'Hund' another translation"):
        Translator(Scripted(), "s", save=path).translate(["Hund"], ["de"], "en")
