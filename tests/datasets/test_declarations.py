"""Declarations of the benchmarks, compared with their loaders, rows, tasks, READMEs and published figures."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.licenses import canonicalize_license_expression
from pydantic import ValidationError

import mrag_eval.datasets
from mrag_eval.cli._catalog import list_benchmarks, list_tasks
from mrag_eval.config import judged_metrics
from mrag_eval.core import RowScores
from mrag_eval.datasets import (
    LOADERS,
    Benchmark,
    Declaration,
    GitHubFiles,
    HubDataset,
    LoaderSpec,
    PackagedFiles,
    WebFile,
    declaration_of,
    load_benchmark,
)
from mrag_eval.datasets._declaration import OWN_BREAKDOWNS
from mrag_eval.platform import ConfigError, DataError, tasks_folder
from mrag_eval.scoring import METRICS, row_record, summarize
from tests.worlds import afriqa as afriqa_files
from tests.worlds import mkqa as mkqa_rows
from tests.worlds import nomiracl as nomiracl_files
from tests.worlds import xlcost as xlcost_files
from tests.worlds import xrag as xrag_rows
from tests.worlds.data_blocks import NEEDED

ROOT = Path(__file__).resolve().parents[2]
DECLARED = [loader.declaration for loader in LOADERS.values()]
WITH_TASKS = [declared for declared in DECLARED if declared.tasks is not None]


def each(declared: list[Declaration]) -> Any:
    return pytest.mark.parametrize("declared", declared, ids=lambda one: one.name)


# ------------------------------------------------------------------ the records


def test_every_loader_in_the_folder_is_found_under_its_own_name() -> None:
    modules = [
        importlib.import_module(f"mrag_eval.datasets.{m.name}")
        for m in pkgutil.iter_modules(mrag_eval.datasets.__path__)
    ]
    found = [module.LOADER for module in modules if isinstance(getattr(module, "LOADER", None), LoaderSpec)]
    assert sorted(loader.declaration.name for loader in found) == list(LOADERS)
    for name, loader in LOADERS.items():
        assert declaration_of({"benchmark": name}) is loader.declaration
        assert loader.declaration.name == name
    assert declaration_of({"benchmark": "nowhere"}) is None
    assert declaration_of({}) is None


@each(WITH_TASKS)
def test_every_field_is_filled(declared: Declaration) -> None:
    assert declared.sources
    assert declared.languages
    assert declared.main_metric
    assert set(declared.needs) <= {"download", "index", "judge"}
    ours = all(isinstance(source, PackagedFiles) for source in declared.sources)
    assert bool(declared.citations) is not ours
    assert ("download" in declared.needs) is not ours


@each(DECLARED)
def test_licences_are_spdx_and_decide_what_may_be_passed_on(declared: Declaration) -> None:
    for source in declared.sources:
        assert source.licence is None or canonicalize_license_expression(source.licence) == source.licence
    restricted = declared.licence is None or "-NC" in declared.licence or "-ND" in declared.licence
    assert declared.shareable is not restricted


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shareable": True, "sources": ()}, "without a licence may not be passed on"),
        ({"languages": ("iw",)}, "language 'iw' is written 'he'"),
        ({"needs": ("judge", "judge")}, "'needs' names something twice"),
        ({"main_metric": None}, "has sources, languages and a main metric"),
        ({"needs": ("money",)}, "needs"),
        ({"asks": "two\nlines"}, "asks"),
        ({"asks": "A sentence."}, "asks"),
        ({"name": "X-RAG"}, "name"),
        ({"homepage": "https://x"}, "homepage"),
    ],
)
def test_a_wrong_declaration_is_refused(change: dict[str, Any], expected: str) -> None:
    fields = {name: getattr(LOADERS["xrag"].declaration, name) for name in Declaration.model_fields}
    Declaration(**fields)
    with pytest.raises(ValidationError, match=expected):
        Declaration(**{**fields, **change})


@pytest.mark.parametrize("change", [{"id": "xquad"}, {"revision": "main"}, {"licence": "CC BY 4.0"}])
def test_a_wrong_source_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        HubDataset(**{"id": "google/xquad", "licence": "MIT", **change})


# ------------------------------------------------------------------ loaders


class _Asked(Exception):
    pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """Record requests to the hub (id, revision), to GitHub (URL, None) and to other sites, and answer none."""
    import urllib.request

    import datasets
    import huggingface_hub

    out: list[tuple[str, str | None]] = []

    def of_hub(repo: str, *_: Any, revision: str | None = None, **__: Any) -> None:
        out.append((repo, revision))
        raise _Asked

    def of_url(url: str, **_: Any) -> None:
        out.append((url, None))
        raise OSError(url)

    class Downloads:
        def download_and_extract(self, url: str) -> None:
            of_url(url)

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(datasets, "load_dataset", of_hub)
    monkeypatch.setattr(datasets, "DownloadManager", Downloads)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", of_hub)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", of_hub)
    monkeypatch.setattr(urllib.request, "urlopen", of_url)
    return out


BLOCKS: dict[str, dict[str, Any]] = {**NEEDED, "bordirlines": {"embedder": "m3"}}


@each([declared for declared in WITH_TASKS if "download" in declared.needs])
def test_loaders_read_the_declared_sources(
    declared: Declaration, asked: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    block = {"benchmark": declared.name, "seed": 4_711, **BLOCKS.get(declared.name, {})}
    # a local copy of one source leads to the next request
    copies: dict[str, list[dict[str, str]]] = {
        "bordirlines": [{"borderlines": str(_lines(tmp_path))}],
        "mkqa": [{"path": str(mkqa_rows.write_all(tmp_path) / "mkqa.jsonl")}],
    }
    for more in ({}, *copies.get(declared.name, [])):
        with pytest.raises(DataError):
            load_benchmark({**block, **more})
    hubs = {(s.id, s.revision) for s in declared.sources if isinstance(s, HubDataset)}
    others = [s for s in declared.sources if not isinstance(s, HubDataset)]
    assert {(repo, revision) for repo, revision in asked if not repo.startswith("https://")} == hubs
    for url, _ in asked:
        if url.startswith("https://"):
            assert any(
                url.startswith(f"https://raw.githubusercontent.com/{s.id}/{s.revision}/")
                if isinstance(s, GitHubFiles)
                else isinstance(s, WebFile) and url == s.url
                for s in others
            ), url


def _lines(folder: Path) -> Path:
    """A small BorderLines: one territory with two claimants, and questions in English only."""
    home = folder / "lines"
    (home / "translate" / "prompts_mc_q").mkdir(parents=True)
    (home / "translate" / "terms").mkdir()
    row = "Territory,Claimants,Controller,Region,QueryID,Query\nCeuta,Spain;Morocco,Spain,Africa,Ceuta,Whose is it?\n"
    (home / "disputed_territories.csv").write_text(row, encoding="utf-8")
    countries = {"Spain": {"Lang_Code": "es"}, "Morocco": {"Lang_Code": "ar"}}
    (home / "countries_info.json").write_text(json.dumps(countries), encoding="utf-8")
    (home / "languages.json").write_text("[]", encoding="utf-8")
    return home


@each([declared for declared in WITH_TASKS if declared.hub is not None])
def test_the_pinned_revision_is_the_default_of_the_block(declared: Declaration) -> None:
    first = declared.sources[0]
    assert isinstance(first, HubDataset)
    assert LOADERS[declared.name].block.model_fields["revision"].default == first.revision


# ------------------------------------------------------------------ rows


@pytest.fixture
def rows_of(test_data: Path, tmp_path: Path) -> Any:
    """Return the ``data:`` blocks that give rows of a benchmark, with everything that breakdowns may need."""
    xrag_rows.write(tmp_path)
    mkqa_rows.write_all(tmp_path)
    nomiracl_files.write(tmp_path)
    xlcost_files.write(tmp_path)
    afriqa_files.write(tmp_path)
    lines = str(test_data / "borderlines")
    small = str(tmp_path)
    blocks: dict[str, list[dict[str, Any]]] = {
        "afriqa": [{"path": small, "language": code, "languages": ["fon", "ha"]} for code in afriqa_files.CODES],
        "blend": [{"path": str(test_data / "blend")}],
        "blend_saq": [{"path": str(test_data / "blend" / "annotations")}],
        "bordirlines": [{"borderlines": lines, "persona": persona} for persona in ("plain", "demographic")],
        "click": [{"path": str(test_data / "click")}],
        "demo": [{}],
        "mkqa": [{"path": small, "language": code, "subset": "all"} for code in ("fr", "ja")],
        "nomiracl": [{"path": small, "language": code} for code in nomiracl_files.FOLDERS],
        "tydiqa": [{"path": small}],
        "xlcost": [{"path": small, "tokenizer": "model_free"}],
        "xor_tydi": [{"path": small, "language": code} for code in ("ko", "ru")],
        "xquad": [{"path": str(test_data / "xquad")}],
        "xrag": [
            {"path": small, "setting": setting, "language": code}
            for setting, code in (("mono", "de"), ("mono", "en"), ("multi", "zh"))
        ],
    }

    def loaded(name: str) -> list[Benchmark]:
        assert name in blocks, "say here how rows of the new benchmark are made"
        return [load_benchmark({"benchmark": name, **block}) for block in blocks[name]]

    return loaded


@each(WITH_TASKS)
def test_declared_breakdowns_and_languages_are_those_of_the_rows(declared: Declaration, rows_of: Any) -> None:
    loaded = rows_of(declared.name)
    docs = [doc for benchmark in loaded for doc in benchmark.docs]
    assert {benchmark.breakdowns for benchmark in loaded} == {declared.breakdowns}
    for key in declared.breakdowns:
        assert any(doc.extra.get(key) is not None for doc in docs), key
    # a benchmark's rows have every key that a user's rows are broken down by
    assert [key for key in OWN_BREAKDOWNS if any(doc.extra.get(key) is not None for doc in docs)] == list(
        declared.breakdowns
    )
    assert {doc.query_lang for doc in docs} <= set(declared.languages)
    if declared.name in ("blend", "blend_saq", "bordirlines", "click", "demo", "tydiqa", "xlcost", "xquad"):
        assert {doc.query_lang for doc in docs} == set(declared.languages)


# ------------------------------------------------------------------ a user's own rows


def own(tmp_path: Path, **block: Any) -> Any:
    lines = [
        {"id": "1", "query": "Wo?", "lang": "de", "domain": "law", "category": "a", "tags": ["x"]},
        {"id": "2", "query": "Wann?", "lang": "de", "domain": "travel", "category": "b"},
        {"id": "3", "query": "Wie?", "lang": "de"},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return load_benchmark({"benchmark": "jsonl", "path": str(path), **block})


def test_scores_of_own_rows_are_broken_down_by_the_usual_keys_or_by_those_named(tmp_path: Path) -> None:
    usual = own(tmp_path)
    assert usual.breakdowns == OWN_BREAKDOWNS
    assert _cells(usual) == [{"category": "a"}, {"category": "b"}, {}]
    named = own(tmp_path, breakdowns="domain")
    assert named.breakdowns == ("domain",)
    assert named.docs is usual.docs
    assert _cells(named) == [{"domain": "law"}, {"domain": "travel"}, {}]
    records = [row_record(doc, RowScores(values={"acc": 1.0}), breakdowns=named.breakdowns) for doc in named.docs]
    assert set(summarize(records).metrics["acc"].cells("domain")) == {"law", "travel"}
    assert _cells(own(tmp_path, breakdowns=["domain", "category"]))[0] == {"domain": "law", "category": "a"}
    assert _cells(own(tmp_path, breakdowns=[])) == [{}, {}, {}]


def _cells(benchmark: Any) -> list[dict[str, str]]:
    records = [row_record(doc, RowScores(), breakdowns=benchmark.breakdowns) for doc in benchmark.docs]
    return [{key: value for key, value in record.cell.items() if key != "query_lang"} for record in records]


@pytest.mark.parametrize(
    ("names", "error", "expected"),
    [
        ("domian", ConfigError, "no row has the key 'domian'; did you mean 'domain'"),
        (["domain", "tags"], DataError, "'tags' of row '1' is a list or an object"),
        ("query_lang", ConfigError, "always broken down by 'query_lang'"),
    ],
)
def test_wrong_breakdowns_are_named(names: Any, error: type[Exception], expected: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=re.escape(expected)):
        own(tmp_path, breakdowns=names)


def test_a_benchmark_may_be_broken_down_by_other_keys_than_it_declares(test_data: Path) -> None:
    loaded = load_benchmark({"benchmark": "click", "path": str(test_data / "click"), "breakdowns": ["exam"]})
    assert loaded.breakdowns == ("exam",)
    assert {cell["exam"] for cell in _cells(loaded)} >= {"KIIP", "PSE"}


def test_your_own_rows_in_the_files_of_a_benchmark(tmp_path: Path) -> None:
    declared = LOADERS["xlcost"].declaration
    assert declared.is_own({"benchmark": "xlcost", "domain": "own"})
    assert not declared.is_own({"benchmark": "xlcost"})
    assert LOADERS["jsonl"].declaration.is_own({"benchmark": "jsonl"})
    assert not LOADERS["xrag"].declaration.is_own({"benchmark": "xrag"})
    more = {"document": "1", "categories": json.dumps({"need": "visit", "country": "Sund"}), "q_type": "open"}
    folder = xlcost_files.write(tmp_path, [{**xlcost_files.question_rows()[0], **more}], domain="own")
    block = {"benchmark": "xlcost", "domain": "own", "path": str(folder), "tokenizer": "model_free"}
    assert _cells(load_benchmark(block)) == [{"doc_lang": "en", "country": "Sund", "q_type": "open"}]
    assert _cells(load_benchmark({**block, "breakdowns": ["need"]})) == [{"doc_lang": "en", "need": "visit"}]


# ------------------------------------------------------------------ tasks, READMEs, published figures


def test_every_folder_of_tasks_is_declared_once_and_exists() -> None:
    folders = [declared.tasks for declared in WITH_TASKS]
    assert len(set(folders)) == len(folders)
    assert set(folders) == {path.parent.name for path in tasks_folder().glob("*/README.md")}


def test_tasks_are_counted_as_they_are_listed() -> None:
    for entry in list_benchmarks():
        if entry.declaration.tasks is None:
            assert (entry.tasks, entry.groups) == (0, 0)
            continue
        listed = list_tasks(tasks_folder() / entry.declaration.tasks)
        assert entry.tasks == sum(task.kind == "task" for task in listed)
        assert entry.groups == sum(task.kind == "group" for task in listed)


@each(WITH_TASKS)
def test_main_metric_and_needs_are_those_of_the_tasks(declared: Declaration) -> None:
    folder = tasks_folder() / str(declared.tasks)
    files = list(folder.rglob("*_yaml")) or list(folder.rglob("*.yaml"))
    bases = [yaml.load(file.read_text("utf-8"), _Loader) for file in files]
    metrics = {name for base in bases for name in base.get("metrics") or ()}
    benchmarks = {(base.get("data") or {}).get("benchmark") for base in bases} - {None}
    corpora = {(base.get("retrieval") or {}).get("corpus") for base in bases} - {None}
    score, part, _ = str(declared.main_metric).partition(".")
    assert score in metrics
    assert score in METRICS or (score == "concurrence" and part)
    assert benchmarks == {declared.name}
    assert ("judge" in declared.needs) == bool(judged_metrics([declared.main_metric or ""]))
    assert ("index" in declared.needs) == bool(corpora - {"benchmark", "published"})


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_multi_constructor("!", lambda loader, suffix, node: str(node.value))


@each([declared for declared in WITH_TASKS if declared.citations])
def test_a_paper_is_cited_under_its_key_in_the_readme(declared: Declaration) -> None:
    readme = (tasks_folder() / str(declared.tasks) / "README.md").read_text("utf-8")
    entries = dict(re.findall(r"@\w+\{([^,]+),(.*?)\n\}", readme, re.DOTALL))
    cited = [paper for paper in declared.citations if paper.key in entries]
    assert cited
    for paper in cited:
        assert re.search(rf"year\s*=\s*\{{{paper.year}\}}", entries[paper.key])
        title = re.search(r"title\s*=\s*\{(.*)\},?$", entries[paper.key], re.MULTILINE)
        assert title is not None
        assert re.sub(r"[{}]", "", title[1]) == paper.title


def test_published_figures_are_those_of_the_tasks() -> None:
    folder = ROOT / "mrag_eval" / "report" / "published"
    texts = {path.stem: path.read_text("utf-8") for path in folder.glob("*.yaml")}
    assert {name for declared in DECLARED for name in declared.published} == set(texts)
    for declared in WITH_TASKS:
        named = {name for name, text in texts.items() if re.search(rf'[ "]{declared.tasks}_(?!saq)', text)}
        assert named == set(declared.published), declared.name
