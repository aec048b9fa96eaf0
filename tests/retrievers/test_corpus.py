"""Readers: valid input, and wrong files named with their line."""

from __future__ import annotations

import gzip
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrievers import Document, read_corpus

ROWS = [
    {"id": "1", "lang": "en", "title": "River", "text": "A river."},
    {"id": "1", "lang": "ko", "title": "강", "text": "강이다."},
    {"id": "2", "lang": "zh_tw", "text": "河流"},
]
DOCUMENTS = [
    Document("1", "en", "A river.", "River"),
    Document("1", "ko", "강이다.", "강"),
    Document("2", "zh-Hant", "河流", ""),
]


def write_jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_jsonl(tmp_path: Path) -> None:
    assert list(read_corpus(write_jsonl(tmp_path / "c.jsonl", ROWS))) == DOCUMENTS


def test_jsonl_gzip_blank_lines_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    lines = "\ufeff" + json.dumps(ROWS[0]) + "\n\n" + json.dumps(ROWS[1]) + "\r\n"
    path.write_bytes(gzip.compress(lines.encode()))
    assert list(read_corpus(path)) == DOCUMENTS[:2]


def test_parquet(tmp_path: Path) -> None:
    rows = [{"title": "", **row} for row in ROWS]
    assert list(read_corpus(write_parquet(tmp_path / "c.parquet", rows))) == DOCUMENTS


def test_keys_can_be_renamed_and_the_language_given(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "c.jsonl", [{"nr": 7, "body": "text", "lang": "not read"}])
    assert list(read_corpus(path, keys={"id": "nr", "text": "body"}, lang="arabic")) == [Document("7", "ar", "text")]


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "ko").mkdir()
    (tmp_path / "en").mkdir()
    (tmp_path / "ko" / "서울.md").write_text("# 서울", encoding="utf-8")
    (tmp_path / "en" / "seoul.txt").write_text("Seoul", encoding="utf-8")
    (tmp_path / "en" / "notes.pdf").write_bytes(b"\x80")
    expected = [Document("en/seoul.txt", "en", "Seoul", "seoul"), Document("ko/서울.md", "ko", "# 서울", "서울")]
    assert list(read_corpus(tmp_path)) == expected
    assert [document.lang for document in read_corpus(tmp_path, lang="en")] == ["en", "en"]


def test_the_name_of_a_file_tells_its_language_where_no_folder_does(tmp_path: Path) -> None:
    for name in ("seoul.ko.txt", "plain.txt", "ko/notes.to.txt", "manuals/seoul.zh_TW.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    asked: list[tuple[str, str]] = []

    def tell(text: str, where: str) -> str:
        asked.append((text, where))
        return "de"

    found = {document.id: (document.lang, document.title) for document in read_corpus(tmp_path, tell=tell)}
    assert found == {
        "ko/notes.to.txt": ("ko", "notes.to"),
        "manuals/seoul.zh_TW.md": ("zh-Hant", "seoul"),
        "plain.txt": ("de", "plain"),
        "seoul.ko.txt": ("ko", "seoul"),
    }
    assert asked == [("x", str(tmp_path / "plain.txt"))]
    (tmp_path / "manuals" / "plain.txt").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match="unknown language 'manuals'"):
        list(read_corpus(tmp_path, tell=tell))


PLACES = {
    # path: the language by its place alone, and with a text that is told to be German, or not to be told
    "de/x.txt": ("de", "de", "de"),
    "sub/de/x.txt": ("de", "de", "de"),
    "de/sub/x.txt": ("de", "de", "de"),
    "new/DE/sub/x.txt": ("de", "de", "de"),
    "docs/api/de/x.txt": ("de", "de", "de"),
    "docs/x.de.txt": ("de", "de", "de"),
    "it/de/x.txt": ("it", "de", "it"),
    "it/x.de.txt": ("it", "it", "it"),
    "zh-Hant/x.txt": ("zh-Hant", "zh-Hant", "zh-Hant"),
    "new/x.txt": ("new", "de", "new"),
    "x.bak.txt": ("ba", "de", "ba"),
    "deu/x.txt": ("de", "de", "de"),
    "nds/x.txt": ("nds", "de", "nds"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_word_that_is_also_a_code_is_no_language_beside_one_or_a_text_that_is_told(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("x", encoding="utf-8")

    def untold(text: str, where: str) -> str:
        raise DataError(where)

    for tell, wanted in zip((None, lambda text, where: "de", untold), PLACES[place], strict=True):
        (found,) = read_corpus(tmp_path, tell=tell)
        assert found.lang == wanted
        assert found.title == ("x.bak" if place == "x.bak.txt" and wanted == "de" else found.title)


def test_a_record_without_a_language_is_told(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "c.jsonl", [{"id": "a", "text": "Hallo"}, {"id": "b", "text": "Hi", "lang": "en"}])
    assert [document.lang for document in read_corpus(path, tell=lambda text, where: "de")] == ["de", "en"]


def test_folder_of_records(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", ROWS[:1])
    write_parquet(tmp_path / "b.parquet", ROWS[1:2])
    assert list(read_corpus(tmp_path)) == DOCUMENTS[:2]


def test_template_syntax_is_only_text(tmp_path: Path) -> None:
    text = "{{ 7 * 7 }} {% for x in y %} {# no #}"
    (document,) = read_corpus(write_jsonl(tmp_path / "c.jsonl", [{"id": "1", "lang": "en", "text": text}]))
    assert document.text == text


def _hub(monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]) -> None:
    module = types.ModuleType("datasets")
    module.load_dataset = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_hub_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def load(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return iter([{"id": 12, "url": "u", "title": "T", "text": "x"}])

    _hub(monkeypatch, load)
    assert list(read_corpus("hub:some/wiki:20231101.ko@abc", lang="ko")) == [Document("12", "ko", "x", "T")]
    assert calls == [(("some/wiki", "20231101.ko"), {"split": "train", "revision": "abc", "streaming": True})]


class ClientError(Exception):
    """An exception that a client raises instead of Python's own for such errors."""


@pytest.mark.parametrize("kind", [ValueError, ClientError])
def test_hub_failure_is_one_line(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    def load(*args: Any, **kwargs: Any) -> Any:
        raise kind("BuilderConfig 'xx' not found.\nAvailable: ...")

    _hub(monkeypatch, load)
    with pytest.raises(DataError, match=r"some/wiki, xx cannot be opened: BuilderConfig 'xx' not found") as caught:
        list(read_corpus("hub:some/wiki:xx"))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"lang": "en", "text": "t"}',
            r"line 2: no 'id' or 'doc_id' or '_id' or 'docid' \(keys present: lang, text\)",
        ),
        ('{"id": "2", "lang": "en"}', "line 2: no 'text' or 'content' or 'contents'"),
        ('{"id": "2", "text": "t"}', "line 2: no 'lang' or 'language'"),
        ('{"id": "2", "lang": "xx", "text": "t"}', "line 2: unknown language 'xx'"),
        ('{"id": "1", "lang": "eng", "text": "t"}', r"line 2: document id '1' \(en\) appears a second time"),
        ('{"id": "2", "lang": "en", "text": 5}', "line 2: 'text' is int, expected text"),
        ('{"id": "", "lang": "en", "text": "t"}', "line 2: the document id is empty"),
        ('{"id": "2", "lang": "en", "text": "\\ud800"}', "line 2: 'text' holds half a surrogate pair"),
        ('{"id": "2", "lang": "en", "text": "t"', "line 2: not valid JSON"),
        ('["2", "en", "t"]', "line 2: expected a JSON object, found list"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, expected: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=expected) as caught:
        list(read_corpus(path))
    assert str(path) in caught.value.message


def test_repetition_is_seen_across_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write_jsonl(tmp_path / name, ROWS[:1])
    with pytest.raises(DataError, match=r"b\.jsonl, line 1: document id '1'"):
        list(read_corpus(tmp_path))


def test_invalid_utf8(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(json.dumps(ROWS[0]).encode() + b'\n{"id": "2", "lang": "en", "text": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"c\.jsonl, line 2: not valid UTF-8"):
        list(read_corpus(path))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x.txt").write_bytes(b"one\ntwo\ncaf\xe9")
    with pytest.raises(DataError, match=r"x\.txt: not valid UTF-8 \(line 3, "):
        list(read_corpus(tmp_path / "t", lang="fr"))


def test_truncated_gzip(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps({**ROWS[0], "id": i}) + "\n" for i in range(999)).encode())[:-30])
    with pytest.raises(DataError, match="cannot be read after line"):
        list(read_corpus(path))


def test_not_parquet(tmp_path: Path) -> None:
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"c\.parquet: cannot be read"):
        list(read_corpus(tmp_path / "c.parquet"))


def test_a_wrong_parquet_row_is_named(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "c.parquet", [{"id": "1", "lang": "en", "text": "t"}, {"id": "2", "lang": "en"}])
    with pytest.raises(DataError, match="row 2: no 'text'"):
        list(read_corpus(path))


def test_empty_corpora(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "folder").mkdir()
    for source in (tmp_path / "empty.jsonl", tmp_path / "folder"):
        with pytest.raises(DataError, match="holds no documents"):
            list(read_corpus(source))


def test_unusable_sources(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,text\n")
    with pytest.raises(DataError, match="unknown kind of file"):
        list(read_corpus(tmp_path / "c.csv"))
    with pytest.raises(DataError, match="does not exist"):
        list(read_corpus(tmp_path / "nothing.jsonl"))
    (tmp_path / "loose.txt").write_text("x")
    with pytest.raises(DataError, match="its language is unknown"):
        list(read_corpus(tmp_path))
    with pytest.raises(ConfigError, match="unknown field 'txt'; did you mean 'text'"):
        list(read_corpus(tmp_path / "c.csv", keys={"txt": "body"}))


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    data = gzip.compress("".join(json.dumps({**ROWS[0], "id": i}) + "\n" for i in range(999)).encode())
    path.write_bytes(data[:20] + b"\xff" * 50 + data[70:])
    with pytest.raises(DataError, match="cannot be read after line"):
        list(read_corpus(path))
