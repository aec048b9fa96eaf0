"""Every file that the package writes: what goes out has keys hidden in its strings, what is read back is as it was.

The lists are compared with the code, so that a new writer, or a new place where something is hidden, fails here.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.loggers import EvaluationTracker

from mrag_eval.building.steps._records import Outcome
from mrag_eval.building.steps._steps import Journal
from mrag_eval.core import Hit
from mrag_eval.harness._result_files import watch_trackers
from mrag_eval.models import write_table
from mrag_eval.platform import HIDDEN, RunFiles, Store, hidden, keep_key, write_whole
from mrag_eval.report.files._samples import write_samples
from tests.retrieval.shared_folder import DOCS, FOUND, write_folder

ROOT = Path(__file__).resolve().parents[2]
KEY = 'k3y"of\\a/server+1='

# Modules that write files: "out" for whoever gets a run; "made" from files that went out and from counts, which hold
# no key; "back" for us alone, or for whoever goes on with it: written as it is.
WRITERS = {
    "mrag_eval/_front/_strategies.py": "back",
    "mrag_eval/_front/_strategy_data.py": "back",
    "mrag_eval/building/qa/_qa_build.py": "back",
    "mrag_eval/building/steps/_steps.py": "back",
    "mrag_eval/building/territories/_territories.py": "back",
    "mrag_eval/building/xrag/_xrag_rows.py": "back",
    "mrag_eval/cli/_compare.py": "made",
    "mrag_eval/cli/_options.py": "made",
    "mrag_eval/controls/_task.py": "back",
    "mrag_eval/platform/_address.py": "back",
    "mrag_eval/platform/_disk.py": "back",
    "mrag_eval/platform/_ended_runs.py": "back",
    "mrag_eval/platform/_files.py": "back",
    "mrag_eval/platform/_run_files.py": "out",
    "mrag_eval/platform/_sharing.py": "back",
    "mrag_eval/platform/_sheets.py": "made",
    "mrag_eval/platform/_store.py": "back",
    "mrag_eval/datasets/_files.py": "back",
    "mrag_eval/datasets/_kilt.py": "back",
    "mrag_eval/models/_answering.py": "back",
    "mrag_eval/models/_bodies.py": "back",
    "mrag_eval/models/_evaluated.py": "back",
    "mrag_eval/models/_keeper.py": "back",
    "mrag_eval/models/_services.py": "back",
    "mrag_eval/models/_shared.py": "back",
    "mrag_eval/models/_systems.py": "back",
    "mrag_eval/models/translate/_build.py": "back",
    "mrag_eval/models/translate/_table.py": "back",
    "mrag_eval/models/translate/_translator.py": "back",
    "mrag_eval/report/comparison/_baseline.py": "made",
    "mrag_eval/report/exports/_csv.py": "made",
    "mrag_eval/report/exports/_eval_results.py": "made",
    "mrag_eval/report/exports/_every_eval_ever.py": "made",
    "mrag_eval/report/exports/_latex.py": "made",
    "mrag_eval/report/exports/_model_card.py": "made",
    "mrag_eval/report/exports/_per_language.py": "made",
    "mrag_eval/report/exports/_push.py": "made",
    "mrag_eval/report/files/_records.py": "made",
    "mrag_eval/report/files/_results.py": "out",
    "mrag_eval/report/files/_samples.py": "out",
    "mrag_eval/report/labels/_rewrites.py": "made",
    "mrag_eval/report/labels/_runs.py": "made",
    "mrag_eval/report/page/_changes.py": "made",
    "mrag_eval/report/page/_plot.py": "made",
    "mrag_eval/report/page/_write.py": "made",
    "mrag_eval/retrieval/_own_index.py": "back",
    "mrag_eval/retrieval/_search.py": "back",
    "mrag_eval/retrieval/_starters.py": "back",
    "mrag_eval/retrieval/ahead/_process.py": "back",
    "mrag_eval/retrieval/rerank/_rerank.py": "back",
    "mrag_eval/retrieval/saved/_folder.py": "back",
    "mrag_eval/retrieval/saved/_push.py": "back",
    "mrag_eval/scoring/_grounding.py": "back",
    "retrievers/build/_approximating.py": "back",
    "retrievers/build/_building.py": "back",
    "retrievers/build/_centering.py": "back",
    "retrievers/build/_dense_files.py": "back",
    "retrievers/build/_merging.py": "back",
    "retrievers/build/_passages_finish.py": "back",
    "retrievers/build/_stored_recall.py": "back",
    "retrievers/build/_windows.py": "back",
    "retrievers/imports/_sources.py": "back",
    "retrievers/imports/_drawn.py": "back",
    "retrievers/index/_lengths.py": "back",
    "retrievers/index/_passages.py": "back",
    "retrievers/milvus/_milvus_client.py": "back",
    "retrievers/shards/_bm25_shard.py": "back",
    "retrievers/shards/_codes.py": "back",
    "retrievers/shards/_faiss_shard.py": "back",
    "retrievers/shards/_manifest.py": "back",
    "retrievers/shards/_sparse_shard.py": "back",
}
# Places that hide something, or look for it: what it is.
HIDERS = {
    "mrag_eval/cli/_main.py": "screen",
    "mrag_eval/cli/_doctor.py": "screen",
    "mrag_eval/platform/_errors.py": "message",
    "mrag_eval/platform/_keys.py": "looked for",
    "mrag_eval/platform/_attempts.py": "message",
    "mrag_eval/platform/_redaction.py": "log and screen",
    "mrag_eval/platform/_run_files.py": "results and samples",
    "mrag_eval/platform/_secrets.py": "itself",
    "mrag_eval/harness/_result_files.py": "results and samples",
    "mrag_eval/config/_measurement.py": "identity",
    "mrag_eval/config/_model.py": "looked for",
    "mrag_eval/models/_local.py": "message",
    "mrag_eval/models/_model.py": "message",
    "mrag_eval/models/_outputs.py": "message",
    "mrag_eval/models/_spec.py": "identity",
    "mrag_eval/models/translate/_google.py": "message",
    "mrag_eval/report/files/_results.py": "results and samples",
    "mrag_eval/report/files/_samples.py": "results and samples",
    "mrag_eval/retrieval/ahead/_process.py": "screen",
    "mrag_eval/report/exports/_formats.py": "looked for",
    "mrag_eval/retrieval/saved/_folder.py": "addresses of a manifest",
    "mrag_eval/retrieval/saved/_push.py": "looked for",
    "mrag_eval/report/comparison/_shown_text.py": "comment and page",
    "mrag_eval/report/files/_row_texts.py": "baseline with answers",
}
_HIDING = {"hide", "hidden", "redact", "guarded_screen"}
_WRITING = {
    "write_whole", "replaced", "write_text", "write_bytes", "put_many", "save_array", "save_faiss", "ParquetWriter",
    "write_table", "to_csv", "to_parquet", "copyfile", "memmap", "open_memmap", "mkstemp", "Store", "shared_store",
}  # fmt: skip


def calls(tree: ast.AST) -> set[str]:
    """Return the names of the functions that a module calls; ``open`` only where it opens for writing."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        modes = [text for text in texts if isinstance(text, str) and text and set(text) <= set("rwaxbt+")]
        if name != "open" or any(set(mode) & set("wax+") for mode in modes):
            found.add(name)
    return found


@pytest.fixture(scope="module")
def called() -> dict[str, set[str]]:
    """Return what every module calls, by its path."""
    modules = [path for room in ("mrag_eval", "retrievers", "metrics") for path in sorted((ROOT / room).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): calls(ast.parse(path.read_text("utf-8"))) for path in modules}


def test_every_module_that_writes_is_listed(called: dict[str, set[str]]) -> None:
    assert {path for path, names in called.items() if names & {*_WRITING, "open"}} == set(WRITERS)


def test_every_module_that_hides_is_listed(called: dict[str, set[str]]) -> None:
    assert {path for path, names in called.items() if names & _HIDING} == set(HIDERS)


def test_what_goes_out_is_hidden_and_what_is_read_back_is_not() -> None:
    out = {path for path, kind in WRITERS.items() if kind == "out"}
    assert out == {path for path, what in HIDERS.items() if what == "results and samples"} & set(WRITERS)
    for path in set(WRITERS) & set(HIDERS) - out:
        # it says something, shows something or looks for something besides writing, or hides addresses and no data
        assert HIDERS[path] in ("message", "screen", "looked for", "addresses of a manifest"), path


# ------------------------------------------------------------------------------------------- the writers themselves

LINE: dict[str, Any] = {f"a {KEY}": f"b {KEY}", "n": 31, "list": [KEY, {KEY: None}]}


def through_a_file(folder: Path) -> Any:
    return json.loads(write_whole(folder / "x.json", json.dumps(LINE)).read_text("utf-8"))


def through_a_store(folder: Path) -> Any:
    store = Store(folder / "x.sqlite")
    store.put_many({KEY: LINE})
    return store.get_many([KEY])[KEY]


def through_a_journal(folder: Path) -> Any:
    journal = Journal(folder / "x.jsonl", KEY)
    line: Any = LINE
    journal.settle("item", Outcome(made=[line]))
    ((_, made, _),) = Journal(folder / "x.jsonl", KEY).outcomes(["item"])
    return made[0]


def through_a_table_of_translations(folder: Path) -> Any:
    write_table([{"en": KEY, "de": f"auf {KEY}"}], folder / "x.jsonl")
    lines = [json.loads(line) for line in (folder / "x.jsonl").open(encoding="utf-8")]
    return LINE if {tuple(line.values()) for line in lines} == {
        (KEY, "en", f"auf {KEY}", "de"), (f"auf {KEY}", "de", KEY, "en")
    } else lines  # fmt: skip


def through_a_run_folder(folder: Path) -> Any:
    shown = [replace(FOUND[0], passages=(Hit("p", "en", f"It holds {KEY}.", 0.5, 1),), queries=(KEY,)), FOUND[1]]
    written = write_folder(folder / "run", found=shown, seeds={KEY: KEY})
    again = type(written)(folder / "run")
    assert again.tasks["t"].seeds == {KEY: KEY}
    return LINE if again.rows("t", again.tasks["t"], DOCS) == shown else None


def through_results(folder: Path) -> Any:
    files = RunFiles(folder)
    files.write(LINE, {})
    return json.loads(files.results.read_bytes())


def through_samples(folder: Path) -> Any:
    files = RunFiles(folder)
    files.write({}, {"t": [LINE]})
    return json.loads(files.samples("t").read_bytes())


def through_samples_written_again(folder: Path) -> Any:
    samples: Any = [SimpleNamespace(line=LINE)]
    write_samples(folder / "x.jsonl", samples)
    return json.loads((folder / "x.jsonl").read_bytes())


def tracked(folder: Path) -> EvaluationTracker:
    watch_trackers()
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.model_name_sanitized = "model"
    return tracker


def through_the_harness(folder: Path) -> Any:
    tracked(folder).save_results_aggregated(dict(LINE))
    (path,) = folder.rglob("results_*.json")
    found = json.loads(path.read_bytes())
    return {key: found[key] for key in found if key in LINE}


def through_the_samples_of_the_harness(folder: Path) -> Any:
    tracker = tracked(folder)
    tracker.date_id = "now"
    tracker.save_results_samples("t", [{**LINE, "arguments": [], "resps": [], "filtered_resps": [], "target": ""}])
    (path,) = folder.rglob("samples_t_*.jsonl")
    found = json.loads(path.read_bytes())
    return {key: found[key] for key in found if key in LINE}


BACK = [
    through_a_file,
    through_a_store,
    through_a_journal,
    through_a_table_of_translations,
    through_a_run_folder,
]
OUT = [
    through_results,
    through_samples,
    through_samples_written_again,
    through_the_harness,
    through_the_samples_of_the_harness,
]


@pytest.mark.parametrize("through", BACK)
def test_what_is_read_back_is_as_it_was(through: Callable[[Path], Any], tmp_path: Path) -> None:
    keep_key(KEY, "a test")
    assert through(tmp_path) == LINE


@pytest.mark.parametrize("through", OUT)
def test_what_goes_out_is_hidden_in_strings(through: Callable[[Path], Any], tmp_path: Path) -> None:
    keep_key(KEY, "a test")
    found = through(tmp_path)
    assert found == hidden(LINE)
    assert list(found) == list(LINE)
    assert found["list"] == [HIDDEN, {KEY: None}]
