"""Translation by table: files, parallel texts, gaps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import TableSpec
from mrag_eval.models import build_translator, write_table
from mrag_eval.models.translate._table import load_table, table_lines
from mrag_eval.platform import ConfigError, DataError

PARALLEL = [
    {"en": "When was it built?", "de": "Wann wurde es gebaut?", "ru": "Когда это построили?"},
    {"en": "When was it built?", "de": "Wann hat man es gebaut?"},
]


def test_parallel_texts_become_a_table_that_translates_every_pair(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.jsonl"
    # 6 from the first text; of the second, en -> de already exists and de -> en is new
    assert write_table(PARALLEL, path) == 7
    assert len(list(table_lines(PARALLEL, ["en", "de"]))) == 3
    translator = build_translator(TableSpec(backend="table", path=path))
    out = translator.translate(
        [" When was it built? ", "Wann hat man es gebaut?", "Когда это построили?", "Wer?"],
        ["en", "de", "ru", "de"],
        ["de", "en", "de", "en"],
    )
    assert [t.text for t in out] == ["Wann wurde es gebaut?", "When was it built?", "Wann wurde es gebaut?", "Wer?"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert translator.identity == {"backend": "table", "sha256": digest, "check_language": True}
    assert translator.as_dict() == {
        "translator": "table table.jsonl",
        "counts": {"queries": {"translated": 3, "missing": 1}},
    }


def test_a_table_is_identified_by_its_content(tmp_path: Path) -> None:
    def told(path: Path | None, parallel: Sequence[Mapping[str, str]] = ()) -> Any:
        spec = TableSpec.model_validate({"backend": "table", "path": path} if path else {"backend": "table"})
        return build_translator(spec, parallel=parallel).identity["sha256"]

    path, copy = tmp_path / "table.jsonl", tmp_path / "copy.jsonl"
    write_table(PARALLEL, path)
    copy.write_bytes(path.read_bytes())
    first = told(path)
    assert told(copy) == first
    write_table([{"de": "Wer?", "en": "Whom?"}], path)
    assert told(path) != first
    # without a file, the benchmark's own texts are described the same way
    assert told(None, PARALLEL) == told(None, list(PARALLEL)) != told(None, PARALLEL[:1])


def test_a_strict_table_names_the_first_missing_text_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    write_table(PARALLEL, path)
    translator = build_translator(TableSpec(backend="table", path=path, strict=True))
    with pytest.raises(DataError, match=r"table\.jsonl: no translation from German into Russian of 'Wer\?'"):
        translator.translate(["Wann wurde es gebaut?", "Wer?", "Wo?"], ["de"] * 3, "ru")


def test_scripts_of_a_language_are_one_unless_the_table_has_both(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    write_table([{"zh-Hans": "灯塔", "en": "lighthouse"}], path)
    translator = build_translator(TableSpec(backend="table", path=path))
    assert translator.translate(["灯塔", "lighthouse"], ["zh", "en"], ["en", "zh"])[1].text == "灯塔"
    write_table([{"zh-Hans": "灯塔", "en": "lighthouse", "zh-Hant": "燈塔"}], path)
    translator = build_translator(TableSpec(backend="table", path=path))
    out = translator.translate(["lighthouse"] * 2, ["en"] * 2, ["zh-Hant", "zh-Hans"])
    assert [t.text for t in out] == ["燈塔", "灯塔"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not valid JSON"),
        ("[]", "line 2: expected a JSON object, found list"),
        ('{"source": "a", "source_lang": "en", "target": "b"}', "line 2: 'target_lang' is missing"),
        ('{"source": "a", "source_lang": "xx", "target": "b", "target_lang": "de"}', "line 2: 'source_lang': unknown"),
        ('{"source": "cat", "source_lang": "en", "target": "Kater", "target_lang": "de"}', "line 2: gives another"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "table.jsonl"
    good = {"source": "cat", "source_lang": "en", "target": "Katze", "target_lang": "de"}
    path.write_text(f"{json.dumps(good)}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_table(path)


def test_a_table_is_utf8_with_or_without_a_mark_in_front(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    line = {"source": "cat", "source_lang": "en", "target": "Käfer", "target_lang": "de"}
    path.write_text(json.dumps(line, ensure_ascii=False) + "\r\n", encoding="utf-8-sig")
    assert load_table(path) == {("cat", "en", "de"): "Käfer"}
    path.write_bytes(b"\n" + json.dumps(line, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(DataError, match=r"table\.jsonl, line 2: not valid UTF-8"):
        load_table(path)


def test_a_table_needs_a_file_or_a_benchmark_with_parallel_texts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not found"):
        build_translator(TableSpec(backend="table", path=tmp_path / "none.jsonl"))
    with pytest.raises(ConfigError, match="no parallel texts"):
        build_translator(TableSpec(backend="table"))
    translator = build_translator(TableSpec(backend="table"), parallel=PARALLEL)
    assert translator.translate(["Wann wurde es gebaut?"], ["de"], "en")[0].text == "When was it built?"


def test_xquad_is_parallel_in_all_of_its_languages(test_data: Path) -> None:
    from mrag_eval.datasets import load_benchmark

    data = {"benchmark": "xquad", "path": str(test_data / "xquad"), "languages": ["ar", "en", "es", "zh"]}
    benchmark = load_benchmark(data)
    spec = TableSpec(backend="table", strict=True, check_language=False)
    translator = build_translator(spec, parallel=benchmark.parallel)
    english = {doc.id: doc.query for doc in load_benchmark({**data, "languages": ["en"]}).docs}
    found = translator.translate([d.query for d in benchmark.docs], [d.query_lang for d in benchmark.docs], "en")
    assert len(found) == 1190
    # a question that is asked on two paragraphs has one translation, the first
    different = sum(t.text != english[d.id] for t, d in zip(found, benchmark.docs, strict=True))
    assert different <= 5
    corpus = benchmark.corpus or []
    documents = translator.translate([p.text for p in corpus], [p.lang for p in corpus], "zh", kind="documents")
    assert all(t.is_translation or p.lang == "zh" for t, p in zip(documents, corpus, strict=True))
