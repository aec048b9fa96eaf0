"""The Python interface: names loaded on demand, the same numbers as the commands, errors with a next step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval import MragError, Results, evaluate, load_results, retrieve, score
from mrag_eval.cli import main
from mrag_eval.metrics import ranking_metrics
from mrag_eval.platform import DataError
from mrag_eval.report import compare
from tests.report.runs import row as row_of
from tests.report.runs import write_run
from tests.worlds.small import BASE, write_task
from tests.worlds.tiny_families import byte_tokenizer

RETRIEVAL = {"mode": "qlang", "k": 2}
ROWS = [
    {
        "query": "When was the lighthouse of Varn built?",
        "lang": "en",
        "answers": ["1841"],
        "reply": "It was built in 1841.",
        "relevant_ids": ["lighthouse"],
        "passages": [
            {"id": "p1", "lang": "en", "doc_id": "bakery"},
            {"id": "p2", "lang": "en", "doc_id": "lighthouse"},
        ],
    },
    {
        "id": "b",
        "query": "Was verkauft die Bäckerei in Olm?",
        "lang": "de",
        "answers": ["Roggenbrot"],
        "reply": "<b>Brezeln</b>",
        "relevant_ids": ["bakery"],
        "passages": [],
    },
]


def runs_of(folder: Path) -> tuple[Path, Path]:
    """Return the folders of two runs, of which the second loses 20 of 60 answers."""
    first = [row_of(i, lang, match=1.0) for lang in ("de", "th") for i in range(30)]
    second = [row_of(i, lang, match=float(i >= 10)) for lang in ("de", "th") for i in range(30)]
    return write_run(folder / "a", {"qa": first}), write_run(folder / "b", {"qa": second})


@pytest.fixture
def small(world: Path) -> Path:
    """Tasks ``small``, which retrieves, and ``bare``, which does not."""
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    write_task(world, "bare", **{**BASE, "metrics": ["match"]}, data=data)
    return world


# ------------------------------------------------------------------- names


def test_importing_the_package_loads_none_of_its_rooms() -> None:
    code = "import sys, mrag_eval; print(*[m for m in sys.modules if m.startswith('mrag_eval.') or m == 'numpy'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {f"mrag_eval.platform{part}" for part in ("", "._collection", "._doors")}


def test_every_name_exists_and_is_listed() -> None:
    assert {"evaluate", "retrieve", "score", "load_results", "load_benchmark", "load_index"} <= set(mrag_eval.__all__)
    assert {"RagDoc", "Passage", "Hit", "Estimate", "Results"} <= set(mrag_eval.__all__)
    for name in mrag_eval.__all__:
        assert getattr(mrag_eval, name) is not None
        assert name in dir(mrag_eval)
    assert mrag_eval.load_benchmark({"benchmark": "demo"}).docs
    with pytest.raises(AttributeError, match="evaluat"):
        _ = mrag_eval.evaluat  # type: ignore[attr-defined]


# ---------------------------------------------------------------- evaluate


def command(*arguments: str) -> None:
    """Call ``mrag-eval run`` in this process."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "--no-retrieve-first"])
    assert not ended.value.code


def written(folder: Path) -> dict[str, Any]:
    (file,) = folder.rglob("results_*.json")
    return {name: config["scores"] for name, config in json.loads(file.read_text("utf-8"))["configs"].items()}


def test_the_numbers_are_those_of_the_command(small: Path, tmp_path: Path) -> None:
    flags = ["--model", "oracle_answer", "--tasks", "small", "--include_path", str(small), "--limit", "9"]
    settings = ["--apply_chat_template", "--metadata", json.dumps({"retrieval": RETRIEVAL})]
    command(*flags, *settings, "--log_samples", "--output_path", str(tmp_path / "a"))
    output = tmp_path / "b"
    found = evaluate("oracle_answer", "small", include=small, limit=9, retrieval=RETRIEVAL, output=output)
    assert written(output) == written(tmp_path / "a")
    assert found.path.is_relative_to(output)
    whole = found.frame[(found.frame.dimension == "") & (found.frame.metric == "char3gram_recall")].iloc[0]
    assert (whole["name"], whole.value, whole.n) == ("small", 1.0, 9)
    columns = ["value", "low", "high", "n", "cell"]
    assert found.frame[columns].equals(load_results(tmp_path / "a")[columns])


@pytest.fixture
def causal(tmp_path: Path) -> str:
    """The folder of a tiny causal model with untrained weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = byte_tokenizer(["<pad>", "<s>", "</s>"], before="<s>")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.mark.parametrize("args", [{}, {"device": "cpu"}])
def test_a_local_model_runs_on_the_device_that_the_command_chooses(
    small: Path, causal: str, tmp_path: Path, args: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = evaluate(
        "hf", "bare", model_args={"pretrained": causal, **args}, include=small, limit=1, apply_chat_template=False
    )
    flags = ["--model", "hf", "--model_args", f"pretrained={causal}", "--tasks", "bare", "--include_path", str(small)]
    command(*flags, "--limit", "1", "--output_path", str(tmp_path / "out"))
    (path,) = (tmp_path / "out").rglob("results_*.json")
    placed = [json.loads(one.read_text("utf-8"))["config"]["device"] for one in (found.path, path)]
    assert placed == [None if args else placed[1], placed[1]]


def test_a_gpu_that_is_not_there_is_named_before_the_model_is_loaded(small: Path, causal: str) -> None:
    with pytest.raises(MragError, match="device 'cuda:99': this machine has no such GPU"):
        evaluate("hf", "bare", model_args={"pretrained": causal}, include=small, device="cuda:99")


def test_results_show_themselves_in_a_notebook_and_a_terminal(small: Path) -> None:
    found = evaluate("oracle_answer", ["small", "bare"], include=str(small), limit=3)
    assert "small" in repr(found)
    assert "100.0 n=3" in repr(found)
    assert str(found.path) in repr(found)
    html = found._repr_html_()
    assert html.count("<tr") == 3
    assert len(found.samples) == 6
    samples = found.samples.set_index(["task", "id"]).sort_index()
    assert list(samples.loc["small"].reply) == list(samples.loc["bare"].reply)
    assert set(samples.loc["small"].char3gram_recall) == {1.0}


def test_runs_are_compared_as_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a notebook has no columns that a table would be cut for
    monkeypatch.setenv("COLUMNS", "1000")
    a, b = runs_of(tmp_path)
    with pytest.raises(SystemExit):
        main(["compare", str(a), str(b)])
    printed = capsys.readouterr().out.rstrip("\n")
    found = mrag_eval.compare(a, str(b))
    assert found.text == str(found) == printed
    assert [*found.frame.metric] == [one.metric for one in found.differences]
    results = [Results(next(run.rglob("results_*.json"))) for run in (a, b)]
    for one, other in (results, ([a], [results[1]]), (results[0].path, [str(b)])):
        # files and folders of one model are named by their own names
        assert mrag_eval.compare(one, other).frame.equals(found.frame)
    assert found.verdict == "worse"
    assert mrag_eval.compare(b, a).verdict == "better"
    assert mrag_eval.compare(a, a, metrics="match").verdict == "no difference"
    html = found._repr_html_()
    assert "<h4>match</h4><table>" in html
    assert html.count("<tr>") == len(found.differences) + len({one.metric for one in found.differences})
    with pytest.raises(MragError, match="no such file or folder"):
        mrag_eval.compare(tmp_path / "nowhere", b)


def test_a_run_is_checked_as_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = runs_of(tmp_path)
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{metric: match, max_drop: 0.01}]\nmin_n: 5\n", "utf-8")
    content: dict[str, Any] = {"rules": [{"metric": "match", "max_drop": 0.01}], "min_n": 5}
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--baseline", str(a), "--candidate", str(b), "--rules", str(rules)])
    printed = capsys.readouterr().out.rstrip("\n")
    given: tuple[Any, ...] = (rules, str(rules), content)
    for one in given:
        checked = mrag_eval.gate(a, [b], one)
        assert checked.text == str(checked) == printed
        assert (checked.verdict, checked.exit_code) == ("fail", ended.value.code)
    assert mrag_eval.gate(a, a, content).verdict == "pass"
    assert mrag_eval.gate(a, a, content["rules"], pinned=b).verdict == "not decided"
    assert [*checked.frame.verdict] == [check.verdict for check in checked.checks]
    assert all(text in checked._repr_html_() for text in ("FAIL", "<table>", "exit code 1"))
    wrong: tuple[tuple[Any, str], ...] = (
        ([{"metric": "match", "max_dorp": 1}], "unknown key 'max_dorp'"),
        ({"alpha": 0.1}, "field required"),
        ([], "rules"),
        ("no.yaml", "no.yaml"),
    )
    for one, what in wrong:
        with pytest.raises(MragError, match=what):
            mrag_eval.gate(a, b, one)


def test_every_chart_of_the_report_is_drawn_by_itself(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    results = evaluate("oracle_answer", "small", include=small, output=tmp_path / "out")
    with pytest.raises(MragError) as named:
        results.plot("no such chart")
    drawn = []
    for name in named.value.message.partition("allowed: ")[2].split(", "):
        try:
            chart = results.plot(name)
        except MragError as error:
            if "has no values" not in error.message:
                raise
            continue
        drawn.append(name)
        assert chart._repr_svg_().startswith("<svg")
        assert not any("bind" in param for param in chart.spec["params"])
    assert {"scores", "languages", "pairs"} <= {*drawn}


def test_what_a_chart_draws_can_be_chosen_and_written(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    results = evaluate("oracle_answer", "small", include=small, output=tmp_path / "out")
    chosen = results.plot("scores", metric="hit@2")
    assert "hit@2" in chosen.spec["title"]["subtitle"]
    assert mrag_eval.plot(str(tmp_path / "out"), metric="hit@2").spec == chosen.spec
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}
    for form, first in begins.items():
        assert chosen.save(tmp_path / f"chart.{form}").read_bytes().startswith(first)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: results.plot("scores", metric="hit@3"), "did you mean 'hit@2'"),
        (lambda: results.plot("scores", metrics="hit@2"), "did you mean 'metric'"),
        (lambda: results.plot("scores", metric="faithfulness"), "grounded, the share of claims"),
        (lambda: chosen.save(tmp_path / "chart.bmp"), ".bmp"),
    ]
    for call, said in refused:
        with pytest.raises(MragError, match=said):
            call()


def test_the_report_is_that_of_the_command(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    results = evaluate("oracle_answer", "small", include=small, output=tmp_path / "out")
    page = results.report(tmp_path / "page.html", samples=1, text=False)
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "same.html"), "--samples", "1", "--no-text"])
    assert page.read_bytes() == (tmp_path / "same.html").read_bytes()


def test_the_retrieved_places_are_rows_of_a_frame(small: Path) -> None:
    found = retrieve("small", include=small)
    frame, run, qrels = found.frame(), found.run(), found.qrels()
    assert list(frame.groupby("id", sort=False).size()) == [len(row.ranking) for row in found.rows.values()]
    for row in found.docs:
        places = frame[frame.id == row]
        assert list(places["rank"]) == [*range(1, len(places) + 1)]
        assert {*places[places.shown].passage} == {hit.id for hit in found.rows[row].passages}
        assert bool(places.relevant.any()) == bool({*qrels[row]} & {*run[row]})


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda tasks: evaluate("hff", "small", include=tasks), "no model type 'hff'.*did you mean 'hf'"),
        (lambda tasks: evaluate("oracle_answer", "smal", include=tasks), "no task 'smal'.*did you mean 'small'"),
        (lambda tasks: evaluate("oracle_answer", [], include=tasks), "no task is named"),
        (lambda tasks: evaluate("oracle_answer", "small", include=tasks / "x"), "x is not a folder"),
        (lambda tasks: evaluate("oracle_answer", "small", include=tasks, retrieval="all"), "expected a dictionary"),
        (lambda tasks: evaluate("oracle_answer", "small", include=tasks, retrieval={"kk": 1}), "unknown key 'kk'"),
        (lambda tasks: evaluate("oracle_answer", "small", include=tasks, limit=1, samples={"small": [1]}), "samples"),
        (lambda tasks: evaluate("oracle_answer", "small", include=tasks, output=tasks / "small.yaml"), "is a file"),
        (lambda tasks: evaluate("oracle_answer", "small", include=tasks, output="no.json"), "the ending of a file"),
        (lambda tasks: retrieve("bare", include=tasks), "mode 'no_ir' retrieves nothing"),
        (lambda tasks: retrieve("mrag_demo"), "is the name of 3 tasks"),
        (lambda tasks: retrieve({"benchmark": "demoo"}, retrieval=RETRIEVAL), "unknown benchmark 'demoo'"),
        (lambda tasks: load_results(tasks / "nowhere"), "no such file or folder"),
    ],
)  # fmt: skip
def test_an_error_says_what_and_what_next(small: Path, call: Callable[[Path], Any], what: str) -> None:
    with pytest.raises(MragError, match=what) as caught:
        call(small)
    assert "\n" not in caught.value.message
    assert caught.value.next_step or "did you mean" in caught.value.message or "allowed" in caught.value.message


# ---------------------------------------------------------------- retrieve


def test_the_retrieval_serves_other_tools_and_later_runs(small: Path, tmp_path: Path) -> None:
    found = retrieve("small", include=small, limit=6, retrieval=RETRIEVAL, output=tmp_path / "rows")
    assert list(found.rows) == list(found.docs)
    assert len(found.rows) == 6
    assert all(len(row.passages) <= 2 for row in found.rows.values())
    measured = ranking_metrics(found.qrels(), found.run(), measures=("hit@2", "mrr@2"))
    kept = {**RETRIEVAL, "run_folder": str(found.path)}
    scored = evaluate("oracle_answer", "small", include=small, limit=6, retrieval=kept).samples.set_index("id")
    for row, values in measured.items():
        assert values == {name: scored.loc[row, name] for name in values}


def test_a_benchmark_needs_no_task(small: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(small / "questions.jsonl"), "corpus": str(small / "corpus.jsonl")}
    block = {"mode": "all", "k": 2, "kind": "bm25"}
    own, task = retrieve(data, retrieval=block, limit=4), retrieve("small", include=small, limit=4)
    assert own.rows == task.rows
    assert own.run() == task.run()


# ------------------------------------------------------------------- score


def test_rows_are_scored_as_a_task_scores_them(small: Path, tmp_path: Path) -> None:
    found = evaluate("oracle_answer", "small", include=small).samples
    keep = {"query_lang": "lang"}
    rows = found[["id", "query", "query_lang", "answers", "reply"]].rename(columns=keep).to_dict("records")
    again = score(rows, "char3gram_recall", output=tmp_path / "again", model="again")
    assert list(again.samples.char3gram_recall) == list(found.char3gram_recall)
    frame = load_results(tmp_path / "again")
    assert set(frame.model) == {"again"}
    assert set(frame.cell[frame.dimension == "query_lang"]) == {"de", "en", "es", "ru", "zh"}


def test_dictionaries_a_frame_and_a_file_give_the_same(tmp_path: Path) -> None:
    from pandas import DataFrame

    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    metrics = ["match", "hit@1", "hit@2", "mrr@2"]
    results = [score(rows, metrics) for rows in (ROWS, DataFrame(ROWS), file)]
    for found in results:
        # the first row is answered, and its document is second; nothing was retrieved for the second row
        assert found.samples[metrics].to_numpy().tolist() == [[1.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, 0.0]]
        assert "<b>" not in found._repr_html_()


def test_the_answer_is_read_off_the_reply() -> None:
    row = {**ROWS[0], "reply": "Let me see. <answer>1841</answer>"}
    assert score([row], "exact_match", answer="tag").samples.exact_match[0] == 1.0
    assert score([row], "exact_match").samples.exact_match[0] == 0.0


def test_half_a_surrogate_pair_in_a_reply_is_kept(tmp_path: Path) -> None:
    reply = "1841 \ud83d"
    score([{**ROWS[0], "reply": reply}], "match", output=tmp_path)
    (samples,) = tmp_path.glob("samples_*.jsonl")
    assert json.loads(samples.read_text("utf-8"))["filtered_resps"] == [reply]


@pytest.mark.parametrize(
    ("rows", "metrics", "what"),
    [
        ([], ["match"], "there are no rows"),
        (ROWS, [], "no metric is named"),
        (ROWS, ["matc"], "unknown metric 'matc'; did you mean 'match'"),
        (ROWS, ["judged_accuracy"], "'judged_accuracy' needs a model"),
        (ROWS, ["match_translated"], "'match_translated' needs a model"),
        (ROWS, ["rerank_hit@5"], "'rerank_hit@5' needs a reranked list"),
        (["text"], ["match"], r"rows\[0\]: expected a dictionary"),
        ([{**ROWS[0], "reply": None}], ["match"], r"rows\[0\]: 'reply' is missing"),
        ([{**ROWS[0], "reply": 3}], ["match"], "'reply' must be text"),
        ([ROWS[0], {**ROWS[1], "passages": None}], ["hit@1"], r"rows\[1\]: 'passages' is missing"),
        ([{**ROWS[0], "passages": [{"pid": "p1"}]}], ["hit@1"], r"rows\[0\], passages\[0\]"),
        ([{**ROWS[0], "passages": 3}], ["hit@1"], r"rows\[0\], passages\[0\]: expected a text, or a dictionary"),
        ([{**ROWS[0], "passages": [{"id": "p", "lang": "en", "score": "high"}]}], ["hit@1"], "'score': 'high'"),
        ([{**ROWS[0], "lang": "nonsense"}], ["match"], r"rows\[0\]: 'lang'"),
        ([ROWS[1], ROWS[1]], ["match"], "two rows have the id 'b'"),
        (Path("nowhere.jsonl: no such file"), ["match"], "nowhere.jsonl: no such file"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named(rows: Any, metrics: list[str], what: str) -> None:
    with pytest.raises(MragError, match=what) as caught:
        score(rows, metrics)
    assert "\n" not in caught.value.message


# ------------------------------------------------------------------- settings by name


def test_settings_of_a_name_are_for_its_tasks_alone(small: Path) -> None:
    found = evaluate(
        "oracle_answer",
        ["small", "bare"],
        include=small,
        limit=2,
        retrieval={"seed": 4},
        settings={"small": {"retrieval": {"k": 1}}, "jsonl": {"data": {"seed": 3}}},
    )
    configs = json.loads(found.path.read_text("utf-8"))["configs"]
    settings = {name: config["measurement"]["setting"] for name, config in configs.items()}
    assert {name: own["retrieval"]["k"] for name, own in settings.items()} == {"small": 1, "bare": 5}
    assert all(own["data"]["seed"] == 3 and own["retrieval"]["seed"] == 4 for own in settings.values())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"smal": {"retrieval": {"k": 1}}}, "'smal'; did you mean 'small'"),
        ({"retrieval": {"k": 1}}, "'retrieval' is a block"),
        ({"small": {"k": 1}}, r"settings\['small'\]: expected blocks"),
        ({"small": 5}, r"settings\['small'\]: expected blocks"),
        ([("small", 5)], "settings: expected a dictionary"),
    ],
)
def test_settings_of_no_name_and_of_no_block_are_refused(settings: Any, said: str, small: Path) -> None:
    with pytest.raises(MragError, match=said):
        evaluate("oracle_answer", "small", include=small, settings=settings)


def test_scored_systems_compare_over_the_same_rows_read_the_same_way(tmp_path: Path) -> None:
    questions = [{"id": f"r{i}", "query": "Where?", "lang": "en", "answers": ["pier"]} for i in range(4)]

    def scored(name: str, reply: str, rows: Sequence[Mapping[str, Any]] = questions, **how: Any) -> Path:
        made = [{**row, "reply": reply} for row in rows]
        return mrag_eval.score(made, "match", model=name, output=tmp_path / name, **how).path

    first, second = scored("a", "the pier"), scored("b", "the tower")
    (difference,) = compare([first.parent], [second.parent]).differences
    assert (difference.first, difference.second, difference.n) == (1.0, 0.0, 4)
    edited = [{**questions[0], "answers": ["tower"]}, *questions[1:]]
    with pytest.raises(DataError, match=r"source\.content"):
        compare([first.parent], [scored("c", "the tower", edited).parent])
    with pytest.raises(DataError, match=r"prompt\.answer: plain \| line"):
        compare([first.parent], [scored("d", "Answer: pier", answer="line").parent])
