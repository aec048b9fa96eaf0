"""Where vectors are read from: the hub, arrays beside JSON Lines, torch chunks, and the name of a language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.platform import ConfigError, DataError, MragError
from mrag_eval.retrievers import ChunkConfig, Document, Index, chunk_documents, import_vectors
from mrag_eval.retrievers.imports import _sources
from mrag_eval.retrievers.imports._columns import vectors_of
from mrag_eval.retrievers.imports._presets import PRESETS
from mrag_eval.retrievers.imports._tables import language_of
from tests.retrievers.wiki_files import article, write_copy
from tests.worlds.hub_server import serving
from tests.worlds.vectors import Rows, made, write_f16bin, write_lines, write_upstash


@pytest.fixture
def rows(token_hash: Any) -> Rows:
    return made(token_hash.embed_passages, 15)


@pytest.fixture
def run(tmp_path: Path, token_hash: Any) -> Any:
    def call(source: Path | str | None, **options: Any) -> Index:
        settings = {"embedder": token_hash, "progress": False, **options}
        return import_vectors(None if source is None else str(source), tmp_path / "index", **settings)

    return call


# ---------------------------------------------------------------- the hub


def test_only_the_wanted_files_of_a_dataset_are_read(
    tmp_path: Path, rows: Rows, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_upstash(tmp_path / "set", rows)
    with serving() as hub:
        sha = hub.add("Upstash/wikipedia-2024-06-bge-m3", folder)
        hub.inside(monkeypatch, tmp_path / "home")
        index = run(None, preset="upstash-bge-m3", langs=("ko",))
        asked = [path for _, path in hub.requests if "/resolve/" in path]
        assert asked
        assert all(f"/resolve/{sha}/data/ko/" in path for path in asked)
        with pytest.raises(DataError, match="@nope cannot be read"):
            run("hub:Upstash/wikipedia-2024-06-bge-m3@nope", overwrite=True)
        hub.refuse = lambda method, path: 404 if "/resolve/" in path and "ko/0001" in path else None
        with pytest.raises(DataError, match=r"data/ko/0001.parquet: cannot be read after row 0") as failed:
            run(None, preset="upstash-bge-m3", langs=("ko",), overwrite=True)
        assert "--resume" in str(failed.value.next_step)
    assert index.counts == {"ko": 15}
    (record,) = index.manifest.imported
    assert (record.source, record.revision) == ("hub:Upstash/wikipedia-2024-06-bge-m3", sha)
    assert record.is_verified
    assert index.manifest.sources == {"ko": f"hub:Upstash/wikipedia-2024-06-bge-m3@{sha}"}


@pytest.mark.parametrize("source", ["hub:", "hub:name", "hub:a/b/c", "hub:/name"])
def test_a_dataset_has_an_organisation_and_a_name(run: Any, source: str) -> None:
    with pytest.raises(DataError, match="not the name of a dataset"):
        run(source)


def test_without_a_network_the_reason_is_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="HF_HUB_OFFLINE is set"):
        run("hub:org/name")


@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("data/ko/0000.parquet", "ko"),
        ("20231101.zh-min-nan/train-0.parquet", "nan"),
        ("en/part/7.parquet", "en"),
        ("data/train-0.parquet", None),
        ("no/0.parquet", "nb"),
        ("simple/0.parquet", None),
        ("ko.parquet", None),
    ],
)
def test_the_language_is_that_of_a_folder(name: str, lang: str | None) -> None:
    assert language_of(name) == lang


def test_a_single_file_has_the_language_of_its_folder(tmp_path: Path, rows: Rows, run: Any) -> None:
    folder = write_upstash(tmp_path / "set", rows) / "data" / "ko"
    assert run(folder / "0000.parquet").counts == {"ko": 10}
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "part.parquet").symlink_to(folder / "0001.parquet")
    assert run(tmp_path / "links", lang="ko", overwrite=True).counts == {"ko": 5}


def _arrow(kind: str, vectors: np.ndarray) -> Any:
    import pyarrow as pa

    flat = pa.array(vectors.ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    ends = np.arange(0, vectors.size + 1, vectors.shape[1])
    if kind == "large":
        return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), flat)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)


@pytest.mark.parametrize("kind", ["fixed", "large", "list"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_lists_of_numbers_are_read_without_a_copy(kind: str, dtype: Any) -> None:
    vectors = np.arange(24).reshape(6, 4).astype(dtype)
    column = _arrow(kind, vectors)
    for part, expected in ((column, vectors), (column.slice(2, 3), vectors[2:5])):
        found = vectors_of(part, "here")
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == dtype
        assert not found.flags.owndata


# ---------------------------------------------------------------- arrays beside JSON Lines


@pytest.mark.parametrize("ending", [".npy", ".f16bin"])
def test_an_array_beside_json_lines(
    tmp_path: Path, rows: Rows, run: Any, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sources, "BLOCK", 7)
    path = tmp_path / f"wiki{ending}"
    np.save(path, rows.vectors) if ending == ".npy" else write_f16bin(path, rows.vectors)
    write_lines(tmp_path / "wiki.jsonl", rows.passages)
    index = run(path)
    assert index.counts == {"en": 15, "ko": 15}
    assert index.manifest.imported[0].status == "verified 30 of 30 (title in front)"
    (found,) = index.passages(["ko-2_1"])
    assert (found.doc_id, found.text) == ("2", rows.of("ko")[0][7].text)


def _fewer_lines(folder: Path, rows: Rows) -> None:
    write_lines(folder / "wiki.jsonl", rows.passages[:-1])


def _more_lines(folder: Path, rows: Rows) -> None:
    write_lines(folder / "wiki.jsonl", rows.passages)
    np.save(folder / "wiki.npy", rows.vectors[:-1])


def _pickle(folder: Path, rows: Rows) -> None:
    np.save(folder / "wiki.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)


def _cut(folder: Path, rows: Rows) -> None:
    path = folder / "wiki.npy"
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_fewer_lines, r"wiki.npy has 30 rows, .*wiki.jsonl 29 passages"),
        (_more_lines, r"wiki.npy has 29 rows, .*wiki.jsonl more than 29 passages"),
        (_pickle, r"wiki.npy: no whole array of numbers"),
        (_cut, r"wiki.npy: no whole array of numbers"),
        (lambda folder, rows: np.save(folder / "wiki.npy", rows.vectors[0]), r"an array of shape \(32,\)"),
        (lambda folder, rows: (folder / "wiki.jsonl").unlink(), r"wiki.jsonl does not exist"),
        (lambda folder, rows: (folder / "wiki.jsonl").write_text("{", "utf-8"), r"line 1: not valid JSON"),
        (lambda folder, rows: (folder / "wiki.jsonl").write_text('{"id": "1"}\n'), r"line 1: no column 'text'"),
        (lambda folder, rows: (folder / "wiki.jsonl").write_text('{"text": "a"}\n'), r"line 1: no language"),
        (
            lambda folder, rows: (folder / "wiki.jsonl").write_text(
                '{"text": "a", "lang": "en"}\n\n{"text": "b", "lang": "no such"}\n'
            ),
            r"wiki.jsonl, line 3: .*no such",
        ),
        (lambda folder, rows: (folder / "wiki.jsonl").write_text('{"text": 3, "lang": "en"}\n'), r"the text is int"),
        (
            lambda folder, rows: (folder / "wiki.jsonl").write_text('{"text": "a\\ud800", "lang": "en"}\n'),
            r"line 1: holds half a surrogate pair",
        ),
    ],
)
def test_rows_and_lines_that_do_not_fit_are_one_line(
    tmp_path: Path, rows: Rows, run: Any, spoil: Any, said: str
) -> None:
    np.save(tmp_path / "wiki.npy", rows.vectors)
    write_lines(tmp_path / "wiki.jsonl", rows.passages)
    spoil(tmp_path, rows)
    with pytest.raises(DataError, match=said) as failed:
        run(tmp_path / "wiki.npy")
    assert failed.value.next_step
    assert not (tmp_path / "index").exists()


def test_a_header_that_does_not_fit_its_file(tmp_path: Path, rows: Rows, run: Any) -> None:
    path = write_f16bin(tmp_path / "wiki.f16bin", rows.vectors)
    path.write_bytes(path.read_bytes()[:-2])
    write_lines(tmp_path / "wiki.jsonl", rows.passages)
    with pytest.raises(DataError, match="do not fit its header"):
        run(path)


# ---------------------------------------------------------------- torch chunks


def _apart(text: str) -> str:
    return " ".join(text.replace(" ", ""))


@pytest.mark.slow
@pytest.mark.parametrize(("lang", "letters"), [("ko", "강 다리 "), ("zh", "河桥房")])
def test_torch_chunks_are_the_rows_of_our_100_words(
    tmp_path: Path, token_hash: Any, run: Any, lang: str, letters: str
) -> None:
    torch = pytest.importorskip("torch")
    articles = [article(n, f"Title {n}", letters * 40 + f" {n} ." * 30) for n in range(1, 9)]
    write_copy(tmp_path / "COPY", f"20231101.{lang}", articles)
    documents = [Document(f"{lang}:{a['id']}", lang, a["text"], a["title"]) for a in articles]
    cut = list(chunk_documents(documents, ChunkConfig(method="words", size=100)))
    # as BERGEN embeds them: a blank after every character of languages written without spaces
    fed = [
        passage.text if lang == "ko" else f"{passage.title}. {_apart(passage.text.removeprefix(f'{passage.title}. '))}"
        for passage in cut
    ]
    vectors = torch.from_numpy(token_hash.embed_passages(fed)).to(torch.float16)
    folder = tmp_path / "chunks"
    folder.mkdir()
    for number, part in enumerate(torch.split(vectors, 5)):
        torch.save(part.clone(), folder / f"embedding_chunk_{number}.pt")
    index = run(f"bergen:{folder}", preset="bergen", lang=lang, texts=str(tmp_path / "COPY"))
    assert index.counts == {lang: len(cut)}
    (record,) = index.manifest.imported
    assert (record.agree, record.form) == (len(cut), "text alone" if lang == "ko" else "characters apart")
    assert index.manifest.chunker == ChunkConfig(method="words", size=100).to_dict()
    assert index.passages([cut[3].id]) == [cut[3]]


@pytest.mark.slow
def test_chunks_that_are_missing_or_hold_code_are_refused(tmp_path: Path, run: Any) -> None:
    torch = pytest.importorskip("torch")
    write_copy(tmp_path / "COPY", "20231101.ko", [article(n, "Title", "다리") for n in (1, 2)])
    options = {"preset": "bergen", "lang": "ko", "texts": str(tmp_path / "COPY")}
    folder = tmp_path / "chunks"
    folder.mkdir()
    torch.save(torch.zeros(2, 3), folder / "embedding_chunk_1.pt")
    with pytest.raises(DataError, match=r"there is no embedding_chunk_0.pt"):
        run(folder, **options)
    torch.save({"model": Path("x")}, folder / "embedding_chunk_0.pt")
    with pytest.raises(DataError, match="no tensor that can be read safely"):
        run(folder, **options)
    with pytest.raises(ConfigError, match="--texts COPY is missing"):
        run(folder, preset="bergen", lang="ko")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_on_its_page_and_in_the_help(name: str) -> None:
    preset = PRESETS[name]
    root = Path(__file__).resolve().parents[2]
    (row,) = [
        line for line in (root / "docs" / "corpora.md").read_text("utf-8").splitlines() if f"| `{name}` |" in line
    ]
    source = (preset.source or "").removeprefix("hub:")
    assert source in row
    assert preset.embedder in row
    assert name in (root / "docs" / "reference" / "commands.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["nowhere", "file.txt", "empty"])
def test_a_source_that_is_none_is_one_line(tmp_path: Path, run: Any, name: str) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MragError, match=name) as failed:
        run(tmp_path / name)
    assert failed.value.next_step
