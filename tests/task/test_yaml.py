"""The committed task YAML: as scripts/write_tasks.py writes it, readable by the harness, valid, complete, unique."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import yaml
from lm_eval.tasks._index import Kind, TaskIndex
from lm_eval.tasks._yaml_loader import load_yaml

from mrag_eval.config import AGENT_DECODING, MODES, Measurement, differences, listed_in, load_config, split_config
from mrag_eval.core import CORAL_POOL, CORAL_TIERS, RagDoc
from mrag_eval.datasets import LOADERS, validate_data
from mrag_eval.prompts import load_template
from mrag_eval.report import layout_names, load_layout
from mrag_eval.retrieval import plan_rows
from mrag_eval.scoring import METRIC_NAMES
from tests.task.test_hook import run
from tests.worlds.small import BASE, write_task

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "tasks"
FILES = sorted(path for path in TASKS.glob("**/*.yaml") if path.name != "_matrix.yaml")


@cache
def read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = load_yaml(path, resolve_func=False)
    return config


def matrix(benchmark: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TASKS / benchmark / "_matrix.yaml").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def configs() -> dict[str, dict[str, Any]]:
    """Return every YAML by the name of its task or group."""
    return {str(config.get("group", config.get("task"))): config for config in map(read, FILES)}


@pytest.fixture(scope="module")
def writer() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("write_tasks", ROOT / "scripts" / "write_tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["write_tasks"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["write_tasks"]


def test_the_committed_files_are_those_of_the_matrices(writer: ModuleType) -> None:
    assert writer.stale() == []


def test_every_benchmark_but_the_demo_has_a_matrix() -> None:
    without = {path.name for path in TASKS.iterdir() if path.is_dir() and not (path / "_matrix.yaml").is_file()}
    assert without == {"demo"}


def test_the_check_sees_a_changed_a_missing_and_a_superfluous_file(writer: ModuleType, tmp_path: Path) -> None:
    for name in ("click", "xrag"):
        shutil.copytree(TASKS / name, tmp_path / name)
    assert writer.stale(tmp_path) == []
    (tmp_path / "xrag" / "xrag_mono_de.yaml").unlink()
    (tmp_path / "click" / "_click_yaml").write_text("k: 7\n", encoding="utf-8")
    (tmp_path / "xrag" / "xrag_mono_fr.yaml").write_text(writer.HEADER, encoding="utf-8")
    (tmp_path / "xrag" / "mine.yaml").write_text("task: mine\n", encoding="utf-8")
    assert sorted(writer.stale(tmp_path)) == [
        "click/_click_yaml",
        "xrag/xrag_mono_de.yaml",
        "xrag/xrag_mono_fr.yaml (no longer written)",
    ]


# Two modes, one of them without a word in the names; a language that YAML reads as false unless it is quoted.
QUIZ = """
version: 1.0
axes:
  mode:
    all: {called: "", tag: quiz_all, retrieval: {mode: all, k: 3}}
    norag: {retrieval: {mode: no_ir}}
  language: [de, "no"]
bases:
  quiz: {data: {benchmark: jsonl}, retrieval: {k: 5}, metrics: [match, f1]}
  quiz_{mode}: {include: quiz}
tasks:
  quiz_{mode}_{language}: {folder: "{mode}", include: "quiz_{mode}", data: {path: "/data/{language}.jsonl"}}
  quiz_short_{language}: {include: quiz, prompt: {template: short_answer}, only: {language: [de]}}
groups:
  quiz_{mode}: {folder: "{mode}", tasks: "quiz_{mode}_{language}", plain_mean: [match], weighted_mean: [f1]}
"""


def write_matrix(folder: Path, text: str) -> None:
    (folder / "quiz").mkdir(exist_ok=True)
    (folder / "quiz" / "_matrix.yaml").write_text(text, encoding="utf-8")


def test_a_benchmark_needs_nothing_but_its_matrix(writer: ModuleType, tmp_path: Path) -> None:
    write_matrix(tmp_path, QUIZ)
    assert writer.write(tmp_path) == 10
    assert writer.stale(tmp_path) == []
    index = TaskIndex.build([tmp_path])
    kinds = {name: entry.kind for name, entry in index.items()}
    leaf_names = ["quiz_de", "quiz_no", "quiz_norag_de", "quiz_norag_no", "quiz_short_de"]
    assert {name for name, kind in kinds.items() if kind is Kind.PY_TASK} == set(leaf_names)
    assert {name for name, kind in kinds.items() if kind is Kind.GROUP} == {"quiz", "quiz_norag"}
    assert index["quiz_all"].tags == {"quiz_de", "quiz_no"}
    text = (tmp_path / "quiz" / "all" / "quiz_no.yaml").read_text(encoding="utf-8")
    assert text == f"{writer.HEADER}include: ../_quiz_all_yaml\ntask: quiz_no\ndata: {{path: /data/no.jsonl}}\n"
    group = read(tmp_path / "quiz" / "norag" / "_quiz_norag.yaml")
    assert group["task"] == ["quiz_norag_de", "quiz_norag_no"]
    assert {entry["metric"]: entry["weight_by_size"] for entry in group["aggregate_metric_list"]} == {
        "match": False,
        "f1": True,
    }
    config = load_yaml(tmp_path / "quiz" / "all" / "quiz_no.yaml", resolve_func=False)
    path = tmp_path / "quiz" / "all" / "quiz_no.yaml"
    rest, blocks = split_config(
        {**config, "metadata": {**config["metadata"], "config_source": str(path)}}, METRIC_NAMES
    )
    assert (blocks.retrieval.mode, blocks.retrieval.k) == ("all", 3)
    assert blocks.data == {"benchmark": "jsonl", "path": "/data/no.jsonl"}
    assert (rest["num_fewshot"], rest["test_split"], rest["metric_list"]) == (0, "test", [])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"no"]', "no]", "does not read as text; put it in quotes"),
        ("  quiz_{mode}_{language}:", "  quiz_{mod}_{language}:", "tasks, quiz_{mod}_{language}: 'mod' is missing"),
        ("language: [de]}", "language: [fr]}", "tasks, quiz_short_{language}: 'fr' is missing, or is no axis or value"),
        ("language: [de]}", "lang: [de]}", "tasks, quiz_short_{language}: 'lang' is missing"),
        ("quiz_short_{language}", "quiz_{language}", "two entries write"),
        ("version: 1.0", "", "bases, quiz: 'version' is missing"),
        ("{include: quiz, prompt", "{prompt", "tasks, quiz_short_{language}: 'include' is missing"),
        ("plain_mean", "mean", "groups, quiz_{mode}: unknown key 'mean'; use folder, only, tasks, plain_mean"),
        ("groups:", "group:", "unknown key 'group'; expected version, axes, bases, tasks, groups"),
    ],
)
def test_faults_of_a_matrix_are_named(old: str, new: str, said: str, writer: ModuleType, tmp_path: Path) -> None:
    text = QUIZ.replace(old, new)
    if said.startswith("two entries"):
        text = text.replace('{folder: "{mode}", include: "quiz_{mode}", data', '{include: "quiz_{mode}", data')
    write_matrix(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        list(writer.all_files(tmp_path))
    assert "_matrix.yaml" in str(error.value)


def countries() -> list[str]:
    """Return the countries that BLEnD has questions of, as its loader lists them."""
    loader = LOADERS["blend_saq"]
    assert loader.published is not None
    return [*loader.published(loader.block(benchmark="blend_saq"))]


def test_the_axes_are_the_lists_of_the_loaders() -> None:
    def axis(benchmark: str, name: str) -> list[str]:
        return list(matrix(benchmark)["axes"][name])

    def languages(benchmark: str) -> list[str]:
        return sorted(LOADERS[benchmark].declaration.languages)

    assert sorted(axis("blend", "language")) == languages("blend_saq")
    assert axis("blend_saq", "country") == countries()
    # English has its own entries, since not every setting asks in it
    assert sorted([*axis("mkqa", "language"), "en"]) == languages("mkqa")
    assert sorted(axis("afriqa", "language")) == languages("afriqa")
    assert sorted(axis("xor_tydi", "language")) == languages("xor_tydi")
    assert sorted(axis("xquad_rag", "language")) == languages("xquad")
    assert sorted([*axis("xrag", "language"), "en"]) == languages("xrag")
    embedder = LOADERS["bordirlines"].block.model_fields["embedder"].annotation
    named = [name for part in get_args(embedder) for name in get_args(part)]
    assert axis("bordirlines", "hits") == [*named, "own"]
    for benchmark in ("click", "blend", "blend_saq"):
        assert tuple(matrix(benchmark)["bases"][benchmark]["retrieval"]["pool"]) == CORAL_POOL


def test_names_are_unique() -> None:
    names = [str(config.get("group", config.get("task"))) for config in map(read, FILES)]
    assert len(set(names)) == len(names)


def test_leaves_are_named_after_their_file(configs: dict[str, dict[str, Any]]) -> None:
    for path in FILES:
        config = read(path)
        if "group" not in config:
            assert path.stem == config["task"]


def test_groups_hold_no_class_and_their_members_exist(configs: dict[str, dict[str, Any]]) -> None:
    for name, config in configs.items():
        if "group" in config:
            # with `class` in it the harness takes a group for a task
            assert "class" not in config, name
            assert config["task"], name
            assert [member for member in config["task"] if member not in configs] == [], name


# In 1.0, a judge's abstention was a vote, choices and refusals were read otherwise, and system prompts were other ones.
# Replies are read by place since blend and click 1.2 and bordirlines 1.3, and by more words since 1.3 and 1.4.
# In 1.1, a page counted for a question of MKQA though KILT names it without an answer. Since the versions below, ties
# of several languages are in an order that favours none; xrag searches no corpus.
_VERSIONS = {
    "xrag": 1.2,
    "xlcost": 1.4,
    "blend": 1.7,
    "blend_saq": 1.1,
    "bordirlines": 1.8,
    "click": 1.7,
    "mkqa": 1.3,
    "tydi": 1.2,
    "xor_tydi": 1.2,
    "xquad_rag": 1.1,
}


def test_every_leaf_is_a_sound_task() -> None:
    faults = []
    for path in FILES:
        try:
            _check(read(path), _VERSIONS.get(path.relative_to(TASKS).parts[0], 1.0))
        except Exception as error:  # the other files are still checked
            faults.append(f"{path.relative_to(TASKS)}: {str(error).splitlines()[0] if str(error) else repr(error)}")
    assert faults == []


def _check(config: dict[str, Any], version: float) -> None:
    if "group" in config:
        for entry in config.get("aggregate_metric_list") or []:
            assert all(entry["metric"] in split_leaf(name).metrics for name in _leaf_names(config["group"]))
        return
    # with resolve_func=False the harness leaves a function as its path, relative to the file's folder
    assert config["class"].endswith("mrag_eval.task.RagTask")
    assert config["output_type"] in ("generate_until", "multiple_choice")
    if config["output_type"] == "multiple_choice":
        assert "generation_kwargs" not in config
    else:
        assert isinstance(config["generation_kwargs"]["until"], list)
        assert config["generation_kwargs"]["do_sample"] is False
        assert not config["generation_kwargs"].get("temperature")
        assert config["generation_kwargs"]["max_gen_toks"] > 0
    assert config["metadata"]["version"] == version
    rest, blocks = _split(config["task"])
    # otherwise the question under test would be among its own shots
    assert rest["num_fewshot"] == 0
    assert rest["metric_list"] == []
    validate_data(blocks.data)
    load_template(blocks.prompt.template, blocks.prompt.system)
    assert blocks.retrieval.mode in MODES


def _paths() -> dict[str, Path]:
    return {str(config.get("group", config.get("task"))): path for path in FILES for config in [read(path)]}


_PATHS = _paths()


@cache
def _split(name: str) -> Any:
    config = read(_PATHS[name])
    return split_config(
        {**config, "metadata": {**config["metadata"], "config_source": str(_PATHS[name])}}, METRIC_NAMES
    )


def split_leaf(name: str) -> Any:
    """Return the merged and validated blocks of a leaf, as the task itself sees them."""
    return _split(name)[1]


def _leaf_names(name: str) -> list[str]:
    config = read(_PATHS[name])
    return [leaf for member in config["task"] for leaf in _leaf_names(member)] if "group" in config else [name]


@pytest.mark.parametrize("folder", sorted({path.parent for path in TASKS.glob("*/*yaml")}), ids=lambda path: path.name)
def test_every_benchmark_has_a_readme_that_states_its_licence(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"licen[cs]e", text)
    assert "### Tasks" in text


def test_the_blocks_of_a_leaf_are_those_of_its_bases_and_its_own() -> None:
    blocks = split_leaf("click_monorag")
    assert blocks.data == {"benchmark": "click"}
    assert (blocks.retrieval.mode, blocks.retrieval.k, blocks.retrieval.corpus) == ("qlang", 5, "wikipedia")
    assert blocks.retrieval.query_text == "question+options"
    blocks = split_leaf("xquad_rag_tr")
    assert (blocks.retrieval.mode, blocks.retrieval.k, blocks.retrieval.search_depth) == ("all", 5, 20)
    assert blocks.data == {"benchmark": "xquad", "question_language": "tr"}
    assert split_leaf("xquad_rag_pooled").data == {"benchmark": "xquad"}


@pytest.mark.parametrize(
    ("short", "mode"),
    [
        ("norag", "no_ir"),
        ("monorag", "qlang"),
        ("multirag", "all"),
        ("crossrag", "crossrag"),
        ("coral", "coral"),
        ("own", "own"),
        ("ownen", "own+en"),
        ("coral_norewrite", "coral"),
    ],
)
def test_click_and_blend_ask_every_question_once_in_each_mode(short: str, mode: str) -> None:
    click = [split_leaf(f"click_{short}")]
    assert [LOADERS["click"].block(**blocks.data).category for blocks in click] == [None]
    languages = [split_leaf(name) for name in _leaf_names(f"blend_{short}")]
    asked = [LOADERS["blend"].block(**blocks.data).language for blocks in languages]
    place = {code: number for number, codes in enumerate(CORAL_TIERS.values()) for code in codes}
    assert asked == sorted(CORAL_POOL, key=lambda code: (place[code], code))
    assert {blocks.retrieval.mode for blocks in (*click, *languages)} == {mode}


def test_corals_comparison_and_ablations_are_groups_over_the_same_rows(configs: dict[str, dict[str, Any]]) -> None:
    assert configs["blend_coral_suite"]["task"] == [
        f"blend_{short}" for short in ("norag", "monorag", "multirag", "crossrag", "coral")
    ]
    assert configs["click_coral_suite"]["task"] == [
        f"click_{short}" for short in ("norag", "monorag", "trag", "multirag", "crossrag", "coral")
    ]
    for benchmark in ("blend", "click"):
        members = [_leaf_names(name) for name in configs[f"{benchmark}_coral_ablations"]["task"]]
        assert len({tuple(str(split_leaf(name).data) for name in names) for names in members}) == 1


def test_coral_runs_as_in_its_paper() -> None:
    """Sections 4.2, 4.3 and C.2: 13 corpora, five documents from each of at most three, five shown, temperature 0.6."""
    for name in ("click_coral", "blend_coral_su"):
        blocks = split_leaf(name)
        agent = blocks.agent
        assert blocks.retrieval.pool == CORAL_POOL
        assert len(CORAL_POOL) == 13
        assert (agent.k, agent.max_corpora, blocks.retrieval.k) == (5, 3, 5)
        assert (agent.min_score, agent.min_total, agent.rewrite) == (2, 6.0, True)
        assert agent.generation.model_dump(exclude_none=True) == {}
    assert AGENT_DECODING == {"temperature": 0.6, "max_tokens": 32_768}
    assert split_leaf("blend_coral_norewrite_su").agent.rewrite is False


@pytest.mark.parametrize("suite", ["blend_coral_suite", "click_coral_suite", "blend_saq_coral_suite"])
def test_all_rows_of_corals_comparison_search_the_same_pool(suite: str, configs: dict[str, dict[str, Any]]) -> None:
    """Section 4.3: the 13 Wikipedias are the corpus of multiRAG and crossRAG, and the planner's list."""
    seen = set()
    for group in configs[suite]["task"]:
        for name in _leaf_names(group):
            retrieval = split_leaf(name).retrieval
            if "all" in retrieval.preset.languages:
                seen.add(retrieval.mode)
                (plan,) = plan_rows([RagDoc("r", "what?", "en", culture_lang="su")], retrieval)
                assert plan.languages == CORAL_POOL
    assert seen == {"all", "crossrag", "coral"}


def test_short_answers_cover_every_country_in_each_mode(configs: dict[str, dict[str, Any]]) -> None:
    modes = {"norag": "no_ir", "monorag": "qlang", "multirag": "all", "crossrag": "crossrag", "coral": "coral"}
    assert configs["blend_saq_coral_suite"]["task"] == [f"blend_saq_{short}" for short in modes]
    for short, mode in modes.items():
        leaves = [split_leaf(name) for name in _leaf_names(f"blend_saq_{short}")]
        assert [blocks.data["country"] for blocks in leaves] == countries()
        assert {blocks.retrieval.mode for blocks in leaves} == {mode}
        assert {blocks.metrics for blocks in leaves} == {("sem_b", "sem_w", "sem_lemma_rule")}
    assert configs["blend_saq_iran"]["task"] == [f"blend_saq_{short}_iran" for short in modes]
    assert all(not entry["weight_by_size"] for entry in configs["blend_saq_coral"]["aggregate_metric_list"])


def test_the_loop_on_open_questions_ends_on_a_line_and_reranks_nothing() -> None:
    for name in ("xquad_rag_coral", "mkqa_coral_ja"):
        blocks = split_leaf(name)
        assert (blocks.retrieval.mode, blocks.retrieval.rerank) == ("coral", None)
        assert (blocks.prompt.template, blocks.prompt.system) == ("short_answer_line", None)
        assert "char3gram_recall" in blocks.metrics


def test_only_click_has_translated_questions(configs: dict[str, dict[str, Any]]) -> None:
    assert split_leaf("click_trag").retrieval.mode == "trag"
    assert not [name for name in configs if name.startswith("blend_trag")]


def test_xrag_has_the_papers_conditions_and_no_name_twice() -> None:
    languages = ["de", "es", "zh", "ar"]
    for group, english in {
        "xrag_multi": (),
        "xrag_multi_eq": ("question",),
        "xrag_multi_eqes": ("question", "supporting"),
        "xrag_multi_eqesed": ("question", "supporting", "distracting"),
    }.items():
        found = [LOADERS["xrag"].block(**split_leaf(name).data) for name in _leaf_names(group)]
        assert [(block.setting, block.language, block.english) for block in found] == [
            ("multi", code, english) for code in languages
        ]
    for group, mode, subset in (
        ("xrag_mono", "given", "all"),
        ("xrag_mono_oracle", "given", "gold"),
        ("xrag_mono_norag", "no_ir", "all"),
    ):
        names = _leaf_names(group)
        assert names == [f"{group}_{code}" for code in languages]
        for name in (*names, f"{group}_en"):
            blocks = split_leaf(name)
            assert LOADERS["xrag"].block(**blocks.data).language == name[-2:]
            assert (blocks.retrieval.mode, blocks.retrieval.given.subset) == (mode, subset)


@pytest.mark.parametrize(
    ("variant", "mode", "english"),
    [
        ("", "all", True),
        ("norag_", "no_ir", True),
        ("en_only_", "en_only", True),
        ("qlang_", "qlang", False),
        ("qlang_plus_en_", "qlang+en", False),
        ("oracle_", "oracle", True),
        ("trag_", "trag", False),
        ("sparse_trag_", "trag", True),
    ],
)
def test_mkqa_and_tydi_have_the_papers_settings(
    variant: str, mode: str, english: bool, configs: dict[str, dict[str, Any]]
) -> None:
    codes = ["ar", "de", "es", "fi", "fr", "it", "ja", "ko", "pt", "ru", "th", "zh"]
    expected = {"mkqa": codes, "xor_tydi": ["ar", "fi", "ja", "ko", "ru"] if mode not in ("oracle", "trag") else []}
    for name, members in expected.items():
        if members:
            # English is separate: not every setting has it, and means are taken over equal sets
            assert configs[f"{name}_{variant}".rstrip("_")]["task"] == [f"{name}_{variant}{code}" for code in members]
    names = [f"mkqa_{variant}{code}" for code in codes] + [f"xor_tydi_{variant}{code}" for code in expected["xor_tydi"]]
    in_english = [f"mkqa_{variant}en", *([] if mode == "trag" else [f"tydi_{variant}en"])]
    assert [name for name in in_english if name in configs] == (in_english if english else [])
    names += in_english if english else []
    for name in names:
        blocks = split_leaf(name)
        retrieval = blocks.retrieval
        assert blocks.data["language"] == name[-2:]
        assert (retrieval.mode, retrieval.k, retrieval.search_depth) == (mode, 5, 50)
        assert (blocks.prompt.template, blocks.prompt.system) == ("background", "short_in_ul_ul")
        assert read(_PATHS[name])["generation_kwargs"]["max_gen_toks"] == 128
        # KILT's pages are English: recall of pages is meaningful only if English is the only language searched
        assert ("recall@5" in blocks.metrics) == (name.startswith("mkqa") and mode in ("en_only", "oracle", "trag"))
        assert retrieval.rerank is not None
        # the paper's Table 7: SPLADE is coupled with MiniLM
        model = "cross-encoder/ms-marco-MiniLM-L-6-v2" if variant == "sparse_trag_" else "BAAI/bge-reranker-v2-m3"
        length = 512 if variant == "sparse_trag_" else 256
        assert (retrieval.rerank.model, retrieval.rerank.max_length) == (model, length)
        assert (retrieval.kind, retrieval.corpus) == (
            ("sparse", "wikipedia_splade") if variant == "sparse_trag_" else (None, "wikipedia")
        )
        assert {"char3gram_recall", "correct_language"} <= set(blocks.metrics)


def test_blend_averages_over_languages(configs: dict[str, dict[str, Any]]) -> None:
    def weights(group: str) -> dict[str, bool]:
        return {entry["metric"]: entry["weight_by_size"] for entry in configs[group]["aggregate_metric_list"]}

    for group in ("blend_norag", "blend_norag_low"):
        assert (weights(group)["acc"], weights(group)["acc_micro"]) == (False, True)
    assert configs["xrag_mono"]["task"] == [f"xrag_mono_{code}" for code in ("de", "es", "zh", "ar")]


def _tags_of_the_page() -> dict[str, tuple[str, set[str]]]:
    """Tag -> the IR mode of its tasks, and the titles of its benchmarks, by the table in docs/ir_modes.md."""
    page = (ROOT / "docs" / "ir_modes.md").read_text(encoding="utf-8")
    out = {}
    for tags, mode, benchmarks in re.findall(r"^\| (`mrag_.*) \| (.*) \| (.*) \|$", page, re.MULTILINE):
        modes = re.findall(r"`(.+?)`", mode)
        titles = {re.sub(r" \(.+\)$", "", title) for title in benchmarks.split(", ")}
        for place, tag in enumerate(re.findall(r"`(.+?)`", tags)):
            out[tag] = (modes[min(place, len(modes) - 1)], titles)
    return out


def test_a_tag_is_one_mode_over_all_benchmarks_that_have_it() -> None:
    tags = {name: entry.tags for name, entry in TaskIndex.build([TASKS]).items() if entry.kind is Kind.TAG}
    listed = listed_in([TASKS])
    assert {tag: {name for name, task in listed.items() if tag in task.tags} for tag in tags} == tags
    leaves = {name: split_leaf(name) for name, path in _PATHS.items() if "group" not in read(path)}
    # the demo has no tags, nor have tasks that need data or a corpus of the user's
    ready = {
        name: blocks
        for name, blocks in leaves.items()
        if blocks.data["benchmark"] != "demo"
        and blocks.data.get("domain") != "own"
        and blocks.retrieval.corpus != "bordirlines"
    }
    # XRAG has no documents to search: its upper bound shows the row's own supporting articles
    upper = {name for name, blocks in ready.items() if blocks.retrieval.given.subset == "gold"}
    benchmarks: dict[str, set[str]] = {}
    for name, blocks in ready.items():
        for mode in (blocks.retrieval.mode, *(["oracle"] if name in upper else [])):
            benchmarks.setdefault(mode, set()).add(blocks.data["benchmark"])
    page = _tags_of_the_page()
    assert set(tags) == set(page)
    assert {mode for mode, _ in page.values()} == set(benchmarks)
    for tag, (mode, titles) in page.items():
        assert tags[tag] <= set(ready), tag
        found = {name: ready[name] for name in tags[tag]}
        searched = {blocks.retrieval.mode for name, blocks in found.items() if mode != "oracle" or name not in upper}
        assert searched == {mode}, tag
        assert {blocks.data["benchmark"] for blocks in found.values()} == benchmarks[mode], tag
        assert {LOADERS[name].declaration.title for name in benchmarks[mode]} == titles, tag
        # no row is asked twice
        assert max(Counter(repr(sorted(blocks.data.items())) for blocks in found.values()).values()) == 1, tag


def test_the_readmes_example_of_a_matrix_is_written_as_it_says(writer: ModuleType, tmp_path: Path) -> None:
    text = (TASKS / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(version.*?)```", text, re.DOTALL)
    write_matrix(tmp_path, example)
    assert writer.write(tmp_path) == 3 + 6 + 2
    index = TaskIndex.build([tmp_path])
    assert Counter(entry.kind for entry in index.values()) == {Kind.PY_TASK: 6, Kind.GROUP: 2, Kind.TAG: 3}
    assert index["mrag_all"].tags == {f"quiz_multirag_{code}" for code in ("de", "fr", "no")}


def test_a_tag_gives_the_scores_of_its_tasks(tasks: Path) -> None:
    small = read(tasks / "small.yaml")
    for name, extra in (("tagged", {"tag": ["small_tag", "other_tag"]}), ("untagged", {})):
        write_task(tasks, name, **BASE, data=small["data"], retrieval=small["retrieval"], **extra)
    by_tag = run(tasks, "small_tag")
    alone = run(tasks, "untagged")
    assert list(by_tag["results"]) == ["tagged"]
    assert by_tag["configs"]["tagged"]["scores"] == alone["configs"]["untagged"]["scores"]
    one, other = (
        Measurement.from_dict(found["configs"][name]["measurement"], name)
        for found, name in ((by_tag, "tagged"), (alone, "untagged"))
    )
    assert differences(one, other) == []


def test_every_task_in_a_papers_tables_exists(configs: dict[str, dict[str, Any]]) -> None:
    wanted = set()
    for name in layout_names():
        for table in load_layout(name).tables:
            parts = [(condition.part, condition.without) for condition in table.conditions] or [("", ())]
            for part, without in parts:
                for column in table.columns:
                    named = [column.task] if column.task else column.tasks
                    wanted |= {task.replace("{part}", part) for task in named if column.name not in without}
    assert len(wanted) > 200
    assert sorted(wanted - set(configs)) == []


@pytest.mark.slow
def test_the_harness_finds_every_task_and_no_name_is_taken(configs: dict[str, dict[str, Any]]) -> None:
    import lm_eval.tasks

    ours = TaskIndex.build([TASKS])
    assert {name for name, entry in ours.items() if entry.kind is not Kind.TAG} == set(configs)
    builtin = [path for path in Path(lm_eval.tasks.__file__).parent.iterdir() if path.is_dir()]
    taken = TaskIndex.build([path for path in builtin if path.name != "mrag_eval"])
    assert len(taken) > 1000
    assert sorted(set(ours) & set(taken)) == []


def test_an_empty_list_of_stop_sequences_stays_one() -> None:
    from lm_eval.models.utils import handle_stop_sequences, normalize_gen_kwargs

    # how the hf, vLLM and API models read the generation settings
    settings = read(TASKS / "xrag" / "xrag_mono_de.yaml")["generation_kwargs"]
    normal = normalize_gen_kwargs(settings, default_max_gen_toks=7)
    assert (normal["until"], normal["max_gen_toks"], normal["temperature"]) == ([], 512, 0.0)
    assert handle_stop_sequences(normal["until"], eos="</s>") == ["</s>"]
    assert handle_stop_sequences([], eos=None) == []


def test_no_config_file_is_needed_to_read_them() -> None:
    assert load_config().corpora == {}
