"""Identity of rows: by their content, wherever and however they lie; compared with what was published."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from mrag_eval.config import Measurement, differences, dotted, harmless
from mrag_eval.core import GivenPassage, RagDoc
from mrag_eval.datasets import (
    LOADERS,
    Benchmark,
    PublishedPart,
    PublishedRows,
    identity_of,
    load_benchmark,
    published_rows,
)
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._files import commit_of
from mrag_eval.datasets._identity import Status, published_record
from mrag_eval.platform import content_key
from scripts import published_rows as script
from tests.worlds import afriqa, mkqa, nomiracl, xlcost, xrag
from tests.worlds.bordirlines import real_queries, write_bordirlines
from tests.worlds.data_blocks import NEEDED

ALL = sorted(LOADERS)

# ------------------------------------------------------------------ the hash


DOC = RagDoc("1", "Wo?", "de", ("hier",), given_passages=(GivenPassage("p", "de", "Hier."),), extra={"a": [1]})


def changed(value: Any) -> Any:
    """Return another value of the same kind."""
    if value is None or isinstance(value, bool):
        return not value
    if isinstance(value, int | str):
        return value + type(value)(1)
    if isinstance(value, tuple):
        return (*value, "x")
    return {**value, "new": 1}


@pytest.mark.parametrize("name", [one.name for one in fields(RagDoc)])
def test_every_field_of_a_row_is_in_its_content(name: str) -> None:
    value = getattr(DOC, name)
    passage = DOC.given_passages[0]
    others = [replace(DOC, **{name: changed(value)})]
    if value and is_dataclass(value[0] if isinstance(value, tuple) else value):
        others = [replace(DOC, **{name: ()})] + [
            replace(DOC, given_passages=(replace(passage, **{one.name: changed(getattr(passage, one.name))}),))
            for one in fields(GivenPassage)
        ]
    found = {Part.of([doc]).content for doc in [DOC, *others]}
    assert len(found) == 1 + len(others)


def test_the_order_of_rows_and_of_keys_does_not_count_and_repetitions_do() -> None:
    rows = [replace(DOC, id=str(n), extra={"a": 1, "b": 2}) for n in range(5)]
    turned = [replace(row, extra={"b": 2, "a": 1}) for row in reversed(rows)]
    assert Part.of(rows).content == Part.of(turned).content
    assert Part.of([*rows, rows[0]]).content != Part.of(rows).content


def test_rows_are_hashed_once_and_only_when_asked() -> None:
    calls = []

    def records() -> list[RagDoc]:
        calls.append(1)
        return [DOC]

    part = Part(1, records)
    assert not calls
    assert part.content == part.content
    assert calls == [1]


def test_a_value_without_a_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="a row holds a value that JSON has no form for"):
        assert Part.of([replace(DOC, extra={"a": object()})]).content


# ------------------------------------------------------------------ every benchmark


def _borderlines(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    shutil.copytree(test_data / "borderlines" / "original", folder / "lines")
    hits = write_bordirlines(folder / "hits", real_queries(test_data))
    (folder / "groups.json").write_text(json.dumps({"all": ["en", "es"]}), encoding="utf-8")
    lines = {"borderlines": "lines"}
    more = {"path": str(hits.relative_to(folder)), "embedder": "m3", "resource_groups": "groups.json"}
    flipped = {"documents": "all", "flip": True, "annotations": "human"}
    return [lines, {**lines, "languages": ["ko"]}, {**lines, **more}, {**lines, **more, **flipped}]


def _afriqa(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    afriqa.write(folder)
    block = {"path": ".", "language": "ha", "languages": ["fon", "ha"]}
    return [block, {**block, "answers": "pivot"}, {**block, "corpus": "none"}]


def _blend(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    shutil.copytree(test_data / "blend", folder / "blend")
    return [{"path": "blend"}, {"path": "blend", "source": "annotations", "language": "ko"}]


def _blend_saq(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    shutil.copytree(test_data / "blend" / "annotations", folder / "annotations")
    return [{"path": "annotations", "language": "ko"}]


def _click(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    shutil.copytree(test_data / "click", folder / "click")
    return [{"path": "click"}, {"path": "click", "category": "law"}]


def _demo(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    shutil.copytree(Path(str(LOADERS["demo"].load.__globals__["FOLDER"])), folder / "demo")
    return [{}, {"path": "demo", "language": "de"}]


def _jsonl(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    mkqa.write_jsonl(folder / "q.jsonl", [{"id": "1", "query": "Wo?", "lang": "de", "relevant_ids": ["a"]}])
    texts = [
        {"id": "a", "lang": "en", "text": "Here.", "parallel_id": "1"},
        {"id": "b", "lang": "de", "text": "Hier.", "parallel_id": "1"},
    ]
    mkqa.write_jsonl(folder / "c.jsonl", texts)
    block = {"path": "q.jsonl", "corpus": "c.jsonl"}
    return [block, {**block, "imbalance": {"keep_english": 0}}]


def _mkqa(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    mkqa.write_all(folder)
    block = {"path": "mkqa.jsonl", "kilt": "nq-train-kilt.jsonl", "language": "fr"}
    return [block, {**block, "gold": "paragraph", "paragraphs": "kilt_knowledgesource.json"}]


def _nomiracl(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    nomiracl.write(folder)
    block = {"path": ".", "language": "de"}
    return [block, {**block, "subset": "relevant", "sample": 1}]


def _tydiqa(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    mkqa.write_all(folder)
    return [{"path": "."}]


def _xor_tydi(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    mkqa.write_all(folder)
    return [{"path": ".", "language": "ko"}]


def _xlcost(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    xlcost.write(folder)
    laws = [{"law_id": "8", "language": "en", "title": "Law", "content": "An article."}]
    mkqa.write_jsonl(folder / "laws.jsonl", laws)
    block = {"path": ".", "tokenizer": "model_free"}
    return [block, {**block, "sample": 2}, {**block, "corpus": "laws.jsonl"}, {**block, "corpus": "none"}]


def _xquad(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    shutil.copytree(test_data / "xquad", folder / "xquad")
    drawn = {
        "languages": ["de", "en"],
        "paragraph_language": ["de", "en"] * 120,
        "question_language": ["en", "de"] * 595,
    }
    (folder / "draw.json").write_text(json.dumps(drawn), encoding="utf-8")
    block = {"path": "xquad"}
    return [
        block,
        {**block, "languages": ["de", "en"], "parallel": True},
        {**block, "question_language": "de", "imbalance": {"keep_english": 0.5}},
        {**block, "assignment": "draw.json"},
    ]


def _xrag(folder: Path, test_data: Path) -> list[dict[str, Any]]:
    xrag.write(folder)
    xrag.write_translations(folder / "translations.jsonl")
    multi = {"path": ".", "setting": "multi", "language": "zh"}
    changed = {"english": ["question", "supporting", "distracting"], "translations": "translations.jsonl"}
    return [{"path": ".", "setting": "mono", "language": "de"}, multi, {**multi, **changed}]


# benchmark -> files in a folder, and data blocks whose paths are relative to it
COPIES: dict[str, Callable[[Path, Path], list[dict[str, Any]]]] = {
    "afriqa": _afriqa, "blend": _blend, "blend_saq": _blend_saq, "bordirlines": _borderlines, "click": _click,
    "demo": _demo, "jsonl": _jsonl, "mkqa": _mkqa, "nomiracl": _nomiracl, "tydiqa": _tydiqa, "xlcost": _xlcost,
    "xor_tydi": _xor_tydi, "xquad": _xquad, "xrag": _xrag,
}  # fmt: skip


def file_keys(name: str) -> set[str]:
    """Return the keys of a benchmark's block that name files."""

    def kinds(annotation: Any) -> set[Any]:
        return {annotation} | {kind for inner in get_args(annotation) for kind in kinds(inner)}

    return {key for key, one in LOADERS[name].block.model_fields.items() if Path in kinds(one.annotation)}


def placed(name: str, block: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the block with its paths in ``folder``."""
    keys = file_keys(name)
    files = {key: str(folder / value) for key, value in block.items() if key in keys and value != "none"}
    return {"benchmark": name, **block, **files}


def without_places(source: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in dotted({"source": source}).items() if not harmless(key)}


def record(name: str, block: dict[str, Any], loaded: Benchmark) -> Measurement:
    """Return the record of a run on these rows."""
    data = {key: str(value) for key, value in placed(name, block, _folder(loaded)).items()}
    return Measurement(name, setting={"data": data}, data={"source": loaded.source})


@pytest.fixture(scope="module")
def read(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[tuple[Any, ...]]]:
    """Return a function: benchmark -> blocks, each read from two folders with the same files."""

    def read(name: str) -> list[tuple[dict[str, Any], Benchmark, Benchmark]]:
        assert name in COPIES, "say here how rows of the new benchmark are made"
        folder = tmp_path_factory.mktemp(name) / "one"
        folder.mkdir()
        blocks = COPIES[name](folder, test_data)
        other = shutil.copytree(folder, folder.parent / "two")
        return [
            (block, load_benchmark(placed(name, block, folder)), load_benchmark(placed(name, block, other)))
            for block in blocks
        ]

    return read


@pytest.mark.parametrize("name", ALL)
def test_every_benchmark_says_what_its_rows_are_and_not_where_they_lie(
    name: str, read: Callable[[str], list[tuple[dict[str, Any], Benchmark, Benchmark]]]
) -> None:
    covered: set[str] = set()
    for block, here, there in read(name):
        covered |= block.keys()
        identity = identity_of(here.source)
        assert len(identity.content) == 64
        assert identity.rows is not None
        assert identity.rows > 0
        assert here.source["questions"] == len(here.docs)
        assert identity.status in get_args(Status)
        assert identity.status != "unknown"
        assert identity.reason
        assert json.loads(json.dumps(here.source)) == here.source
        # another folder is the same rows, and nothing but the place tells of it
        assert without_places(here.source) == without_places(there.source)
        assert differences(record(name, block, here), record(name, block, there)) == []
        assert "/one/" not in json.dumps(without_places(here.source))
        if here.corpus or here.published:
            corpus = identity_of(here.source["corpus"])
            assert len(corpus.content) == 64
            assert corpus.status in ("own", "local", "other", "official")
            assert here.source["corpus"]["recipe"]
            assert corpus.rows == here.source["corpus"]["passages"] > 0
        # the same questions as they were published, whatever is drawn from them
        if name != "blend":
            drawn = {**placed(name, block, _folder(here)), "seed": 4}
            assert load_benchmark(drawn).source["content"] == identity.content
    assert file_keys(name) <= covered, "read every key that names a file"


def _folder(loaded: Benchmark) -> Path:
    """Return the folder, ``one`` or ``two``, that the rows were read from."""
    paths = [Path(value) for key, value in dotted(loaded.source["place"]).items() if key.endswith("path")]
    return next((up for path in paths for up in (path, *path.parents) if up.name in ("one", "two")), Path("/one"))


@pytest.mark.parametrize("name", ALL)
def test_every_benchmark_tells_how_many_rows_were_published(name: str) -> None:
    loader = LOADERS[name]
    if loader.declaration.is_own({"benchmark": name}):
        assert published_rows({"benchmark": name, "path": "/nowhere/rows.jsonl"}) is None
        return
    if name == "nomiracl":
        # its paper gives the numbers of no language's subsets
        assert published_rows({"benchmark": name, **NEEDED[name]}) is None
        return
    known = published_rows({"benchmark": name, **NEEDED.get(name, {})})
    assert known is not None
    assert known.rows > 0


@pytest.mark.slow
def test_variants_of_a_benchmark_are_of_the_same_published_rows(
    read: Callable[[str], list[tuple[dict[str, Any], Benchmark, Benchmark]]],
) -> None:
    for name in ("bordirlines", "jsonl", "mkqa", "xlcost"):
        assert len({loaded.source["content"] for _, loaded, _ in read(name)}) == 1, name
    (_, every, _), (_, two, _), (_, unbalanced, _), (_, fixed, _) = read("xquad")
    assert every.source["content"] == unbalanced.source["content"] != two.source["content"]
    assert two.source["content"] == fixed.source["content"]
    # what was drawn is identified apart: by its own hash, its counts and its seed
    drawn = [each.source["corpus"] for each in (every, unbalanced, two, fixed)]
    assert len({one["content"] for one in drawn}) == 4
    assert drawn[1]["drawn"] == {"seed": 0, "keep_english": 0.5}
    assert sum(drawn[1]["languages"].values()) == drawn[1]["passages"] == 240
    assert (every.source["rows"], every.source["questions"], unbalanced.source["rows"]) == (11_900, 1_190, 11_900)
    _, (_, multi, _), (_, english, _) = read("xrag")
    assert multi.source["content"] == english.source["content"]
    assert "translations" in english.source


def test_a_file_that_decides_rows_is_known_by_its_content(tmp_path: Path, test_data: Path) -> None:
    blocks = {
        name: COPIES[name](tmp_path / name, test_data)
        for name in ("xquad", "xrag")
        if (tmp_path / name).mkdir() is None
    }
    fixed, translated = blocks["xquad"][3], blocks["xrag"][2]
    before = [
        load_benchmark(placed(name, block, tmp_path / name)).source
        for name, block in (("xquad", fixed), ("xrag", translated))
    ]
    file = tmp_path / "xquad" / "draw.json"
    file.write_text(
        file.read_text(encoding="utf-8").replace('"question_language": ["en"', '"question_language": ["de"')
    )
    changed_file = xrag.translations()
    changed_file[0]["text"] = "Other words."
    xrag.write_translations(tmp_path / "xrag" / "translations.jsonl", changed_file)
    after = [
        load_benchmark({**placed(name, block, tmp_path / name), "revision": "x"}).source
        for name, block in (("xquad", fixed), ("xrag", translated))
    ]
    assert before[0]["assignment"] != after[0]["assignment"]
    assert before[1]["translations"] != after[1]["translations"]
    assert [one["content"] for one in before] == [one["content"] for one in after]


# ------------------------------------------------------------------ official content


@pytest.fixture
def squad(test_data: Path, tmp_path: Path) -> Callable[..., Benchmark]:
    """Return a function that writes XQuAD's ten files, changed by a function, and reads them."""

    def write(change: Callable[[str, list[dict[str, Any]]], None], name: str = "copy", **block: Any) -> Benchmark:
        folder = tmp_path / name
        folder.mkdir()
        for file in sorted((test_data / "xquad").glob("xquad.*.json.gz")):
            content = json.loads(gzip.decompress(file.read_bytes()))
            change(file.name.split(".")[1], [p for article in content["data"] for p in article["paragraphs"]])
            # another file format, and other white space
            (folder / file.name.removesuffix(".gz")).write_text(json.dumps(content, indent=1), encoding="utf-8")
        return load_benchmark({"benchmark": "xquad", "path": str(folder), **block})

    return write


def test_a_copy_with_the_published_content_is_official_wherever_it_lies(
    squad: Callable[..., Benchmark], test_data: Path
) -> None:
    elsewhere = squad(lambda code, paragraphs: None)
    given = load_benchmark({"benchmark": "xquad", "path": str(test_data / "xquad")})
    assert identity_of(elsewhere.source) == identity_of(given.source)
    assert identity_of(given.source).status == "official"
    assert identity_of(given.source["corpus"]).status == "official"
    assert identity_of(given.source).content == published_rows({"benchmark": "xquad"}).content  # type: ignore[union-attr]


def edit_gold(code: str, paragraphs: list[dict[str, Any]]) -> None:
    if code == "de":
        paragraphs[7]["qas"][0]["answers"][0]["text"] = "42"


def edit_paragraph(code: str, paragraphs: list[dict[str, Any]]) -> None:
    if code == "de":
        paragraphs[7]["context"] += " Nein."


def edit_question(code: str, paragraphs: list[dict[str, Any]]) -> None:
    if code == "de":
        paragraphs[7]["qas"][0]["question"] = "Warum?"


def edit_order(code: str, paragraphs: list[dict[str, Any]]) -> None:
    paragraphs[0]["qas"], paragraphs[0]["context"], paragraphs[1]["qas"], paragraphs[1]["context"] = (
        *(paragraphs[1]["qas"], paragraphs[1]["context"]),
        *(paragraphs[0]["qas"], paragraphs[0]["context"]),
    )


def drop_rows(code: str, paragraphs: list[dict[str, Any]]) -> None:
    del paragraphs[7]["qas"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (edit_gold, "a copy whose rows differ from the published: de"),
        (edit_paragraph, "a copy whose rows differ from the published: de"),
        (edit_question, "a copy whose rows differ from the published: de"),
        # languages are drawn by position
        (edit_order, "a copy whose rows differ from the published: ar, de, el, en, es, hi, ru, tr, vi, zh"),
        (drop_rows, "a copy of 11,890 rows, not the published 11,900"),
    ],
)
def test_a_doctored_copy_is_not(change: Any, reason: str, squad: Callable[..., Benchmark]) -> None:
    found = squad(change)
    assert (identity_of(found.source).status, identity_of(found.source).reason) == ("other", reason)
    assert identity_of(found.source["corpus"]).status == "other"
    assert any("published counts" in note for note in found.notes) is (change is drop_rows)
    if change is edit_gold:
        # the other languages are as published, and known to be
        assert identity_of(squad(change, "again", languages=["en", "ar"]).source).status == "official"
    if change is drop_rows:
        one = squad(change, "again", languages=["en"])
        assert identity_of(one.source).reason == "a copy of 1,189 rows, not the published 1,190"


def test_a_language_that_is_not_declared_makes_a_copy_local(squad: Callable[..., Benchmark], tmp_path: Path) -> None:
    squad(lambda code, paragraphs: None)
    shutil.copy(tmp_path / "copy" / "xquad.en.json", tmp_path / "copy" / "xquad.th.json")
    found = load_benchmark({"benchmark": "xquad", "path": str(tmp_path / "copy"), "languages": ["en", "th"]})
    assert identity_of(found.source).status == "local"


@pytest.mark.parametrize("as_published", [False, True])
def test_legal_is_official_in_any_order(as_published: bool, test_data: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(test_data / "cross_lingual_cost" / "legal_benchmark.parquet").to_pylist()
    # repeated questions keep their order: the first answer is the one that counts
    turned = sorted(rows, key=lambda row: content_key(row["question"]))
    block = {"benchmark": "xlcost", "domain": "legal", "corpus": "none", "as_published": as_published}
    xlcost.write_parquet(tmp_path / "benchmarks" / "legal_benchmark.parquet", turned)
    found = load_benchmark({**block, "path": str(tmp_path)})
    assert identity_of(found.source).status == "official"
    assert identity_of(load_benchmark({**block, "path": str(tmp_path), "sample": 9}).source).status == "official"
    turned[0]["answer"] = "No."
    xlcost.write_parquet(tmp_path / "edited" / "legal_benchmark.parquet", turned)
    assert identity_of(load_benchmark({**block, "path": str(tmp_path / "edited")}).source).status == "other"
    xlcost.write_parquet(tmp_path / "part" / "legal_benchmark.parquet", turned[1:])
    part = identity_of(load_benchmark({**block, "path": str(tmp_path / "part")}).source)
    assert (part.status, "rows, not the published 1,28" in part.reason) == ("other", True)


@pytest.mark.slow
def test_travels_documents_are_official_in_another_format(test_data: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = test_data / "cross_lingual_cost"
    rows = pq.read_table(folder / "travel_corpus.parquet").to_pylist()
    random.Random(1).shuffle(rows)
    block = {"benchmark": "xlcost", "path": str(folder), "tokenizer": "model_free"}
    mkqa.write_jsonl(tmp_path / "travel.jsonl", rows)
    given = load_benchmark(block).source["corpus"]
    found = load_benchmark({**block, "corpus": str(tmp_path / "travel.jsonl")}).source["corpus"]
    assert identity_of(found).status == "official"
    assert (found["content"], found["recipe"]) == (given["content"], "The Cross-Lingual Cost")
    # English alone, as a corpus of one's own
    mkqa.write_jsonl(tmp_path / "mine.jsonl", [{**row, "language": "english"} for row in rows])
    mine = load_benchmark({**block, "corpus": str(tmp_path / "mine.jsonl")}).source["corpus"]
    assert identity_of(mine).status == "other"
    mkqa.write_jsonl(tmp_path / "fewer.jsonl", rows[1:])
    fewer = identity_of(load_benchmark({**block, "corpus": str(tmp_path / "fewer.jsonl")}).source["corpus"])
    assert (fewer.status, fewer.reason) == ("other", "a copy of 190 rows, not the published 191")


@pytest.mark.parametrize(
    "block",
    [
        {"benchmark": "click", "path": "click"},
        {"benchmark": "blend", "path": "blend"},
        {"benchmark": "blend_saq", "path": "blend/annotations"},
        {"benchmark": "xlcost", "path": "cross_lingual_cost", "corpus": "none"},
        {"benchmark": "mkqa", "path": "mkqa_sample/test_mkqa.jsonl.gz", "language": "de", "subset": "all"},
    ],
    ids=lambda block: block["benchmark"],
)
def test_of_a_copy_with_nothing_declared_nothing_is_said(block: dict[str, Any], test_data: Path) -> None:
    keys = file_keys(block["benchmark"]) - {"corpus"}
    found = load_benchmark({key: str(test_data / value) if key in keys else value for key, value in block.items()})
    assert identity_of(found.source).status == "local"
    assert published_rows(block).content is None  # type: ignore[union-attr]


def test_the_documented_copy_of_borderlines_is_official_and_a_changed_one_is_not(
    test_data: Path, tmp_path: Path
) -> None:
    """Whatever is drawn from the questions; a file whose text is changed makes other questions."""
    block = {"benchmark": "bordirlines", "borderlines": str(test_data / "borderlines")}
    for drawn in ({}, {"languages": ["ko"]}, {"persona": "un"}):
        assert identity_of(load_benchmark({**block, **drawn}).source).status == "official"
    shutil.copytree(test_data / "borderlines", tmp_path / "copy")
    file = tmp_path / "copy" / "original" / "translate" / "prompts_mc_q" / "prompts.ko"
    file.write_text(file.read_text("utf-8").replace("?", "？"), "utf-8")
    found = identity_of(load_benchmark({**block, "borderlines": str(tmp_path / "copy")}).source)
    assert (found.status, found.reason) == ("other", "a copy whose rows differ from the published")


def test_the_declared_hashes_are_those_of_the_complete_copies(test_data: Path) -> None:
    assert script.text_of(script.computed(test_data)) == script.FILE.read_text(encoding="utf-8"), (
        "run scripts/published_rows.py, and raise the versions of the tasks whose rows are now others"
    )


def test_rows_of_ones_own_are_named_as_such(tmp_path: Path) -> None:
    (block, _) = _jsonl(tmp_path, tmp_path)
    own = load_benchmark(placed("jsonl", block, tmp_path)).source
    assert (identity_of(own).status, identity_of(own["corpus"]).status) == ("own", "own")
    assert own["corpus"]["recipe"] == "own"
    folder = xlcost.write(tmp_path, domain="own")
    data = {"benchmark": "xlcost", "domain": "own", "path": str(folder), "tokenizer": "model_free"}
    built = load_benchmark(data).source
    assert (identity_of(built).status, identity_of(built["corpus"]).status) == ("own", "own")
    assert published_rows(data) is None
    lines = load_benchmark({"benchmark": "bordirlines", "borderlines": str(own_territories(tmp_path))})
    assert identity_of(lines.source).status == "own"
    assert not any("published counts" in note for note in lines.notes)


def own_territories(folder: Path) -> Path:
    """Write a table of territories as `mrag-eval build territories` does, with a list of languages."""
    home = folder / "lines"
    (home / "translate").mkdir(parents=True)
    row = "Territory,Claimants,Controller,Region,QueryID,Query\nSund,Nord;Ost,Nord,,Sund,Whose is it?\n"
    (home / "disputed_territories.csv").write_text(row, encoding="utf-8")
    countries = {"Nord": {"Lang_Code": "es"}, "Ost": {"Lang_Code": "ar"}}
    (home / "countries_info.json").write_text(json.dumps(countries), encoding="utf-8")
    (home / "languages.json").write_text("[]", encoding="utf-8")
    return home


# ------------------------------------------------------------------ by revision


COMMIT, OTHER = "a" * 40, "b" * 40
KNOWN = PublishedRows({"law": PublishedPart(2), "art": PublishedPart(1)})
ROWS = {"law": Part.of([1, 2]), "art": Part.of([3])}


@pytest.mark.parametrize(
    ("place", "pin", "status", "reason"),
    [
        ({"hub": "o/n", "revision": COMMIT}, COMMIT, "revision", "by revision aaaaaaaaaaaa, content not verified"),
        ({"hub": "o/n", "revision": "main", "commit": COMMIT}, COMMIT, "revision", "by revision aaaaaaaaaaaa"),
        (
            {"hub": "o/n", "revision": COMMIT, "commit": OTHER},
            COMMIT,
            "other",
            "revision bbbbbbbbbbbb, not the declared",
        ),
        ({"hub": "o/n", "revision": OTHER}, COMMIT, "other", "not the declared aaaaaaaaaaaa"),
        ({"hub": "o/n", "revision": None, "commit": OTHER}, None, "revision", "by revision bbbbbbbbbbbb"),
        ({"hub": "o/n", "revision": None}, None, "revision", "by revision, content not verified"),
        ({"hub": "o/n", "revision": "mine", "commit": OTHER}, None, "other", "not the declared newest one"),
        ({"repository": "o/n", "revision": COMMIT}, COMMIT, "revision", "content not verified"),
        ({"repository": "o/n", "revision": OTHER}, COMMIT, "other", "not the declared"),
        ({"url": "o/n"}, None, "revision", "by address, content not verified"),
        ({"path": "/here"}, COMMIT, "local", "a local copy, with nothing declared to compare it with"),
        ({"hub": "o/n", "revision": COMMIT, "kilt": {"path": "/x"}}, COMMIT, "local", "a local copy"),
        ({"hub": "o/n", "revision": COMMIT, "kilt": {"hub": "k/t", "revision": "z"}}, COMMIT, "other", "revision z"),
    ],
    ids=str,
)
def test_rows_of_the_publisher_are_known_by_revision(
    place: dict[str, Any], pin: str | None, status: str, reason: str
) -> None:
    found = published_record(ROWS, KNOWN, place, {"o/n": pin})
    assert found["status"] == status
    assert reason in found["reason"]
    assert found["rows"] == 3
    fewer = published_record({"law": ROWS["law"]}, KNOWN, place, {"o/n": pin})
    assert fewer["status"] == ("local" if status == "local" else "other")
    if status == "revision":
        assert fewer["reason"] == "2 rows, not the published 3: art 0 of 1"


def test_declared_content_decides_before_the_revision() -> None:
    content = {name: PublishedPart(part.rows, part.content) for name, part in ROWS.items()}
    place = {"hub": "o/n", "revision": OTHER}
    assert published_record(ROWS, PublishedRows(content), place, {"o/n": COMMIT})["status"] == "official"
    content["art"] = PublishedPart(1, "0" * 64)
    found = published_record(ROWS, PublishedRows(content), {"hub": "o/n", "revision": COMMIT}, {"o/n": COMMIT})
    assert (found["status"], found["reason"]) == ("other", "a copy whose rows differ from the published: art")


def test_the_newest_revision_may_be_another_than_that_of_the_declared_copy() -> None:
    """A publisher whose revision is not pinned: other content of the published number is no fault of the run's."""
    content = {name: PublishedPart(part.rows, "0" * 64) for name, part in ROWS.items()}
    found = published_record(ROWS, PublishedRows(content), {"hub": "o/n"}, {"o/n": None})
    assert (found["status"], found["reason"]) == ("revision", "by revision, content not verified")
    assert published_record(ROWS, PublishedRows(content), {"path": "copy"}, {"o/n": None})["status"] == "other"


def test_the_commit_is_that_of_what_was_read(tmp_path: Path) -> None:
    checksums = {f"hf://datasets/o/n@{COMMIT}/data/{OTHER}.parquet": {}}
    rows = SimpleNamespace(info=SimpleNamespace(download_checksums=checksums))
    assert commit_of(rows) == COMMIT
    assert commit_of([]) is None
    assert commit_of(tmp_path / "datasets--o--n" / "snapshots" / OTHER / "rows.jsonl") == OTHER
    assert commit_of(tmp_path / "rows.jsonl") is None


def test_rows_of_the_hub_are_known_by_revision_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    rows = [
        {"id": f"KIIP_economy_{n}", "paragraph": "", "question": f"{n}?", "choices": ["a", "b"], "answer": "a"}
        for n in range(59)
    ]
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.Dataset.from_list(rows))
    found = load_benchmark({"benchmark": "click", "category": "economy", "seed": 71})
    assert identity_of(found.source).is_published
    assert found.source["published"] == {
        "status": "revision",
        "reason": "by revision, content not verified",
        "rows": 59,
    }
    del rows[0]
    fewer = identity_of(load_benchmark({"benchmark": "click", "category": "economy", "seed": 72}).source)
    assert (fewer.status, fewer.reason) == ("other", "58 rows, not the published 59")


def test_results_without_an_identity_are_of_unknown_rows() -> None:
    for source in (
        {},
        {"sha256": "abc", "path": "x"},
        {"content": "a", "published": {"status": "gold"}},
        {"content": 1},
    ):
        found = identity_of(source)
        assert (found.status, found.content, found.rows, found.is_published) == ("unknown", "", None, False)
        assert found.reason == "the results record no identity of their rows"
