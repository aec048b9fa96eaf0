"""The control that writes a reference in other forms of its words, and the metric that compares lemmas."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mrag_eval.controls import ControlPool, ControlRule, reply_controls
from mrag_eval.core import RagDoc, RowScores
from mrag_eval.metrics import lemma_match, match
from mrag_eval.platform import MissingExtraError
from mrag_eval.scoring import (
    METRICS,
    MetricControls,
    ceilings,
    control_marks,
    control_of,
    control_table,
    marked_by_controls,
    row_record,
    words_of,
)
from mrag_eval.text import _segmenters

TABLE = """
SUPPORTED_LANGUAGES = {"cs", "tl", "hbs"}
WORDS = {"Praha": "Praha", "Praze": "Praha", "Prahy": "Praha", "nové": "nový", "nový": "nový", "Brno": "Brno"}
class DEFAULT_DICTIONARY_FACTORY:
    get_dictionary = staticmethod(lambda code: WORDS)
"""
LEMMATIZE = """
from simplemma.strategies.dictionaries.dictionary_factory import WORDS
def lemmatize(word, lang):
    return WORDS.get(word, word)
"""


def forget() -> None:
    _segmenters._forms.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "simplemma"]:
        del sys.modules[name]


@pytest.fixture
def simplemma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a table of six forms in the place of simplemma's."""
    folder = tmp_path / "simplemma" / "strategies" / "dictionaries"
    folder.mkdir(parents=True)
    for parent in (folder, folder.parent):
        (parent / "__init__.py").touch()
    (tmp_path / "simplemma" / "__init__.py").write_text(LEMMATIZE, "utf-8")
    (folder / "dictionary_factory.py").write_text(TABLE, "utf-8")
    (tmp_path / "simplemma-2.0.0.dist-info").mkdir()
    (tmp_path / "simplemma-2.0.0.dist-info" / "METADATA").write_text("Name: simplemma\nVersion: 2.0.0\n", "utf-8")
    forget()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    forget()


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave simplemma out, wherever it is installed."""
    forget()
    monkeypatch.setattr(_segmenters, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "simplemma", None)
    yield
    _segmenters._forms.cache_clear()


def doc(row: str, lang: str, answer: str) -> RagDoc:
    return RagDoc(row, f"query {row}", lang, (answer,))


DOCS = [
    doc("c1", "cs", "Praha"),
    doc("c2", "cs", "Praha 1890"),
    # a word with one form, and one that no table has
    doc("c3", "cs", "Brno"),
    doc("c4", "cs", "Praha, Plzeň"),
    # no table has forms of Bengali; Chinese words have one form
    doc("b1", "bn", "ঢাকা"),
    doc("z1", "zh", "北京"),
]


def table(metric: str) -> dict[str, MetricControls]:
    found = reply_controls(DOCS, ControlPool(DOCS), ControlRule([metric]))
    rows = [replace(row_record(one, RowScores({metric: 1.0})), controls=found[one.id]) for one in DOCS]
    records = [(one.query_lang, found[one.id]) for one in DOCS]
    assert control_marks(records, metric) == marked_by_controls(control_table(rows), metric)
    measured = {
        code: own.means[control_of(metric).ceiling(own.found)] for code, own in control_table(rows)[metric].items()
    }
    assert {code: mean for code, (_, mean) in ceilings(records, metric).items()} == {
        code: mean for code, mean in measured.items() if mean is not None
    }
    return control_table(rows)[metric]


@pytest.mark.usefixtures("simplemma")
@pytest.mark.parametrize("metric", [name for name, own in METRICS.items() if own.control.kind == "reference"])
def test_every_metric_of_references_has_the_control(metric: str) -> None:
    assert "inflected" in METRICS[metric].control.ceilings


@pytest.mark.usefixtures("simplemma")
def test_an_inflected_reference_shows_what_a_metric_loses() -> None:
    found = table("match_unicode")
    # "Praha" and "Praha 1890" have two other forms each, which are not found; the numbers stay
    assert (found["cs"].means["sentence"], found["cs"].means["inflected"]) == (1.0, 0.0)
    assert found["cs"].found["inflected"].n == 2
    assert found["zh"].means["inflected"] == found["zh"].means["sentence"] == 1.0
    assert table("match_lemmas")["cs"].means["inflected"] == 1.0


@pytest.mark.usefixtures("simplemma")
def test_a_language_without_forms_is_marked_and_has_no_share() -> None:
    found = table("match_unicode")
    assert found["bn"].found["inflected"].reason == "no table has forms of Bengali"
    assert found["bn"].share is not None
    assert found["bn"].share.value is None
    assert set(marked_by_controls({"match_unicode": found}, "match_unicode")) == {"cs", "bn"}
    assert "is not known" in marked_by_controls({"match_unicode": found}, "match_unicode")["bn"]
    # a metric that compares whole replies is held against the bare reference
    assert marked_by_controls({"exact_match": table("exact_match")}, "exact_match") == {}


@pytest.mark.usefixtures("lacking")
def test_without_tables_the_control_is_not_measured() -> None:
    found = table("match_unicode")
    assert all("inflected" not in own.found for own in found.values())
    assert marked_by_controls({"match_unicode": found}, "match_unicode") == {"cs": "another row's answer scores 25.0"}
    with pytest.raises(MissingExtraError, match="lemmas"):
        lemma_match("Praze", ["Praha"], lang="cs")
    assert words_of(["match_lemmas"])["lemmas"] == {"simplemma": None}


@pytest.mark.usefixtures("simplemma")
@pytest.mark.parametrize(
    ("reply", "answer", "lang", "found"),
    [
        ("Bylo to v Praze.", "Praha", "cs", 1.0),
        ("v nové Praze", "nový Praha", "cs", 1.0),
        ("v Brně", "Praha", "cs", 0.0),
        ("Praha 1891", "Praha 1890", "cs", 0.0),
        ("Praha -5", "Praha 5", "cs", 0.0),
        # a language without a table is compared by words alone
        ("Praze", "Praha", "de", 0.0),
        ("Praha!", "Praha", "de", 1.0),
        # Croatian and Filipino have tables under other codes
        ("Praze", "Praha", "hr", 1.0),
        ("Praze", "Praha", "fil", 1.0),
    ],
)
def test_lemmas_meet_where_words_do_not(reply: str, answer: str, lang: str, found: float) -> None:
    assert lemma_match(reply, [answer], lang=lang) == found
    assert match(reply, [answer], normalize="unicode", lang=lang) <= found


@pytest.mark.parametrize(
    ("reply", "answer", "lang", "found"),
    [
        ("Это было в Москве.", "Москва", "ru", 1.0),
        ("у Києві", "Київ", "uk", 1.0),
        ("Lontoossa", "Lontoo", "fi", 1.0),
        ("Vilniuje", "Vilnius", "lt", 1.0),
        ("թբილისში", "თბილისი", "ka", 0.0),
        ("თბილისში", "თბილისი", "ka", 1.0),
        # countries and their languages or neighbours, numbers, signs and units stay apart
        ("Словакия", "Словения", "ru", 0.0),
        ("по-французски", "Франция", "ru", 0.0),
        ("Österreich", "Australien", "de", 0.0),
        ("5 km", "5 m", "cs", 0.0),
        ("C++", "C", "de", 0.0),
    ],
)
def test_lemmas_of_simplemma(reply: str, answer: str, lang: str, found: float) -> None:
    pytest.importorskip("simplemma")
    assert lemma_match(reply, [answer], lang=lang) == found
