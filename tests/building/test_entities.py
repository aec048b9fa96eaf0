"""Entity recognition in titles: stand-ins for stanza and spaCy with their interfaces, and tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mrag_eval.building.xrag._events import by_recogniser, described, recogniser
from mrag_eval.building.xrag._xrag_records import Headline
from mrag_eval.building.xrag._xrag_settings import EntityBlock
from mrag_eval.platform import ConfigError, DataError, MissingExtraError

TITLE = "Walmart helps after Hurricane Helene on Monday"
FOUND = [("Walmart", "ORG"), ("Hurricane Helene", "EVENT"), ("Monday", "DATE")]


def module(name: str, **parts: Any) -> ModuleType:
    made = ModuleType(name)
    for key, value in parts.items():
        setattr(made, key, value)
    return made


def test_stanza_is_asked_for_names_and_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Pipeline:
        def __init__(self, lang: str, **options: Any) -> None:
            seen.append((lang, options))

        def bulk_process(self, titles: list[str]) -> list[Any]:
            ents = [SimpleNamespace(text=text, type=kind) for text, kind in FOUND]
            return [SimpleNamespace(ents=ents if title == TITLE else []) for title in titles]

    monkeypatch.setitem(sys.modules, "stanza", module("stanza", Pipeline=Pipeline))
    found = recogniser(EntityBlock(backend="stanza"))
    assert found.entities([TITLE, "other"]) == [["Walmart", "Hurricane Helene"], []]
    assert found.entities([]) == []
    assert seen == [("en", {"processors": "tokenize,ner", "verbose": False, "download_method": None})]


def test_stanza_without_its_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def pipeline(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("resources.json")

    monkeypatch.setitem(sys.modules, "stanza", module("stanza", Pipeline=pipeline))
    with pytest.raises(ConfigError, match=r"stanza\.download"):
        recogniser(EntityBlock(backend="stanza"))


def test_spacy_labels_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        if name != "en_core_web_sm":
            raise OSError("can't find model")
        ents = [SimpleNamespace(text=text, label_=kind) for text, kind in FOUND]
        return SimpleNamespace(pipe=lambda titles: [SimpleNamespace(ents=ents) for _ in titles])

    monkeypatch.setitem(sys.modules, "spacy", module("spacy", load=load))
    block = EntityBlock(backend="spacy", model="en_core_web_sm")
    assert recogniser(block).entities([TITLE]) == [["Walmart", "Hurricane Helene"]]
    assert recogniser(block.model_copy(update={"kinds": ("DATE",)})).entities([TITLE]) == [["Monday"]]
    with pytest.raises(ConfigError, match="spacy download xx_ent_wiki_sm"):
        recogniser(EntityBlock(backend="spacy"))


@pytest.mark.parametrize("backend", ["stanza", "spacy"])
def test_a_missing_package_names_its_extra(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(MissingExtraError, match=rf"mrag-eval\[{backend}\]"):
        recogniser(EntityBlock(backend=backend))


def test_a_table_of_another_system(tmp_path: Path) -> None:
    path = tmp_path / "entities.jsonl"
    path.write_text(json.dumps({"title": TITLE, "entities": ["Walmart", "walmart's", "Helene", "H"]}))
    block = EntityBlock(backend="table", path=path)
    out: dict[str, Any] = {}
    items = [Headline(n, "en", t, "2024-06-01") for n, t in (("a", TITLE.replace(" ", "  ")), ("b", "unknown"))]
    by_recogniser(recogniser(block), items, out.__setitem__)
    # mentions of one entity count once; single letters do not count
    assert out["a"].made[0].entities == ("walmart", "helene")
    assert out["b"].made[0].entities == ()
    before = described(block)["sha256"]
    path.write_text(json.dumps({"title": TITLE, "entities": []}))
    assert described(block)["sha256"] != before
    path.write_text(json.dumps({"title": TITLE, "entities": "Walmart"}))
    with pytest.raises(DataError, match=r"line 1: 'entities' must be a list of texts"):
        recogniser(block)
    with pytest.raises(DataError, match="does not exist"):
        recogniser(EntityBlock(backend="table", path=tmp_path / "none.jsonl"))
