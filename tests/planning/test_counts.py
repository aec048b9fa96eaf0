"""What a plan counts is what a run asks: every benchmark, in every mode of its tasks, over rows that lie here."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

import pytest

from mrag_eval.cli import _harness as harness
from mrag_eval.config import listed_in
from mrag_eval.core import CORAL_POOL, Passage
from mrag_eval.planning import Plan, PlannedTask, leaves_of, plan_for
from mrag_eval.platform import tasks_folder
from mrag_eval.prompts import load_template
from mrag_eval.text import estimated_tokens
from tests.worlds import afriqa, bordirlines, mkqa, nomiracl, xlcost, xrag
from tests.worlds.model_server import Answer, ModelServer, asked, said

KNOWN = listed_in([tasks_folder()])
# Languages of the corpus that stands for every corpus that a task names.
LANGUAGES = (
    *CORAL_POOL,
    "ar",
    "de",
    "fi",
    "fr",
    "it",
    "ja",
    "ms",
    "nl",
    "pt",
    "ru",
    "th",
    "tl",
    "tr",
    "uk",
    "vi",
    "hi",
)
# Benchmark -> settings of its rows; COPY is the folder of the hand-written files, REAL that of the real ones.
WORLDS = {
    "demo": {},
    "mkqa": {"data": {"path": "COPY/mrag/mkqa.jsonl", "kilt": "COPY/mrag/nq-train-kilt.jsonl"}},
    "tydiqa": {"data": {"path": "COPY/mrag"}},
    "xor_tydi": {"data": {"path": "COPY/mrag"}},
    "xlcost": {"data": {"path": "COPY/xlcost", "tokenizer": "model_free"}},
    "xrag": {"data": {"path": "COPY/xrag"}},
    "nomiracl": {"data": {"path": "COPY/nomiracl"}},
    "afriqa": {
        "data": {"path": "COPY/afriqa", "languages": ["fon", "ha"]},
        "retrieval": {"kind": "bm25", "translator": None},
    },
    "bordirlines": {"data": {"path": "COPY/bordirlines", "borderlines": "REAL/borderlines"}},
    "xquad": {"data": {"path": "REAL/xquad", "share": 0.02}, "retrieval": {"kind": "bm25"}},
    "blend": {"data": {"path": "REAL/blend"}},
    "blend_saq": {"data": {"path": "REAL/blend/annotations"}},
    "click": {"data": {"path": "REAL/click"}},
}
_FAST = ("demo", "mkqa", "xlcost")
_MKQA = {"path": "mkqa.jsonl", "kilt": "nq-train-kilt.jsonl"}
# Tasks whose corpora or files no world has: SPLADE's index, KILT's paragraphs, rows of one's own.
_WITHOUT = re.compile(r"sparse|mkqa_oracle_(?!pages)|xlcost_(own|legal)|oracle_pages")
_MODELS = (
    "models: {%s}\njudges: [judge]\nplanner: planner\ncritic: critic\ntranslator: {backend: lm, model: translator}\n"
)
_ROLES = ("judge", "planner", "critic", "translator")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Path:
    """Return a folder with the hand-written files, and an index with a passage in each language."""
    from mrag_eval.retrievers import build_index

    home = tmp_path_factory.mktemp("copies")
    mkqa.write_all(home / "mrag")
    xlcost.write(home / "xlcost")
    xrag.write(home / "xrag")
    nomiracl.write(home / "nomiracl")
    afriqa.write(home / "afriqa")
    bordirlines.write_bordirlines(home / "bordirlines", bordirlines.real_queries(test_data))
    passages = [Passage(f"{code}-1", code, f"1890 {code}", "", f"{code}-1") for code in dict.fromkeys(LANGUAGES)]
    # those of the questions whose pages are to be found
    passages += [Passage(f"{p['lang']}-{p['id']}", p["lang"], p["text"], p["title"], p["id"]) for p in mkqa.pages()]
    build_index(passages, home / "all", kind="bm25")
    return home


def reply(body: dict[str, Any], attempt: int) -> Answer:
    """Return a reply that can be read, whatever is asked for."""
    prompt, code = str(body), re.findall(r"label_([0-9a-f]{8})", str(body))
    if body["model"] == "planner":
        # the previous search again would be refused, and the planner asked once more
        changed = f', "rewritten_query": "when {crc32(prompt.encode())}"'
        again = changed if "<previous_query>" in asked(body) else ""
        return said(f'{{"language_names": ["English"]{again}}}')
    if body["model"] == "translator":
        return said("<translation>when was it</translation>")
    if body["model"] == "critic":
        if "enough_documents" in prompt:
            return said('{"enough_documents": false, "reason": "so"}')
        scores = dict.fromkeys(("relevance", "usefulness", "clarity_specificity", "compatibility"), 4)
        return said(json.dumps({"scores": scores, "critique": "so"}))
    if "<passage_1>" in asked(body):
        return said("[1]")
    if "<same_meaning>" in prompt:
        return said("<same_meaning>False</same_meaning>")
    label = f'"label_{code[0]}": "not_found"' if code else '"answer": "incorrect"'
    return said(f'{{"justification": "so", {label}}}')


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Serve judge, planner, critic and translator, which the config file names."""
    server = ModelServer(reply)
    one = "{model: local-chat-completions, model_args: {model: %s, base_url: '%s'}}"
    models = ", ".join(f"{role}: {one % (role, server.url)}" for role in _ROLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "mrag.yaml").write_text(_MODELS % models, "utf-8")
    yield server
    server.close()


def settings_of(benchmark: str, copies: Path, test_data: Path) -> dict[str, Any]:
    text = json.dumps(WORLDS[benchmark]).replace("COPY", str(copies)).replace("REAL", str(test_data))
    given = json.loads(text)
    return {**given, "retrieval": {"rerank": None, **given.get("retrieval", {})}}


def chosen(benchmark: str, settings: dict[str, Any]) -> list[PlannedTask]:
    """Return a task of a benchmark for each mode and form of answer, in a language that the corpus has."""
    names = [
        name
        for name, one in KNOWN.items()
        if "task" in one.config and isinstance(one.config["task"], str) and not _WITHOUT.search(name)
    ]
    names = [leaf.name for leaf in leaves_of(names, KNOWN, {}) if leaf.declaration.name == benchmark]
    found: dict[tuple[Any, ...], PlannedTask] = {}
    for leaf in leaves_of(names, KNOWN, settings):
        key = (leaf.blocks.retrieval.mode, leaf.blocks.prompt.template, leaf.longest_reply, leaf.blocks.metrics)
        if leaf.docs is not None and {*leaf.expected.languages} <= {*LANGUAGES}:
            found.setdefault(key, leaf)
    return list(found.values())


def requests(folder: Path, server: ModelServer) -> Counter[str]:
    """Return the calls of a finished run by role: those of the evaluated model are in its samples."""
    found = Counter(str(body["model"]) for _, _, body in server.requests)
    for path in folder.rglob("samples_*.jsonl"):
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        found["evaluated"] += sum(len(row["resps"]) for row in rows)
    return found


def check(plan: Plan, found: Counter[str]) -> None:
    """Compare the calls of a run with a plan: within each range, and equal where it gives one number."""
    planned = {cost.role: cost for cost in plan.costs if cost.of_model}
    assert {*found} <= {*planned}, (found, planned)
    for role, cost in planned.items():
        assert cost.least <= found[role] <= cost.calls, (role, cost, found)
        assert cost.basis != "exact" or cost.least == cost.calls


def test_local_rows_are_counted_and_judges_have_a_range(copies: Path, server: ModelServer) -> None:
    """Two tasks ask ten questions each, and judge from ten to twenty replies."""
    given = {"data": {key: str(copies / "mrag" / name) for key, name in _MKQA.items()}, "metrics": ["judge_correct"]}
    plan = plan_for(["mkqa_norag_ko", "mkqa_qlang_ko"], KNOWN, given | {"retrieval.mode": "no_ir"})
    costs = {cost.role: cost for cost in plan.costs}
    assert (costs["evaluated"].basis, costs["evaluated"].calls) == ("exact", plan.rows)
    assert (costs["judge"].least, costs["judge"].calls) == (plan.rows // 2, plan.rows)
    assert costs["judge"].counted == f"{plan.rows // 2} to {plan.rows} calls"
    # the prompts' own lengths, which are no 360 tokens
    (one,) = leaves_of(["mkqa_norag_ko"], KNOWN, given)
    template = load_template(one.blocks.prompt.template, one.blocks.prompt.system)
    lengths = [estimated_tokens("\n".join(template.render(doc.to_dict(), []))) for doc in one.docs or ()]
    assert costs["evaluated"].tokens_in == pytest.approx(plan.rows * fmean(lengths), abs=1)


@pytest.mark.parametrize(
    "benchmark", [pytest.param(name, marks=() if name in _FAST else pytest.mark.slow) for name in WORLDS]
)
def test_a_run_asks_as_often_as_planned(
    benchmark: str, copies: Path, test_data: Path, server: ModelServer, tmp_path: Path
) -> None:
    settings = settings_of(benchmark, copies, test_data)
    leaves = chosen(benchmark, settings)
    assert leaves
    given = {"retrieval": dict(settings["retrieval"])} | {"data": settings.get("data", {})}
    corpora = {leaf.blocks.retrieval.corpus for leaf in leaves if leaf.blocks.retrieval.searches}
    with (tmp_path / "mrag.yaml").open("a", encoding="utf-8") as config:
        named = sorted(corpora - {"benchmark", "published"})
        config.write(f"corpora: {json.dumps({name: str(copies / 'all') for name in named})}\n")
    limit = 3 if "REAL" in str(WORLDS[benchmark]) else 40
    names = [leaf.name for leaf in leaves]
    plan = plan_for(names, KNOWN, given, limit=limit, model=("dummy", {}), built=False)
    assert plan.missing == []
    assert plan.read
    words = ["--model", "dummy", "--limit", str(limit), "--no-retrieve-first", "--log_samples", "--output_path", "out"]
    harness.run(["--tasks", ",".join(names), "--metadata", json.dumps(given), *words])
    check(plan, requests(tmp_path / "out", server))
