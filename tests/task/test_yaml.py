"""The committed task YAML: as written by scripts/write_tasks.py, readable by the harness, valid, complete, unique."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lm_eval.tasks._yaml_loader import load_yaml

from mrag_eval.config import MODES, load_config, split_config
from mrag_eval.core import CORAL_POOL
from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.datasets import validate_data
from mrag_eval.datasets._blend import COUNTRIES, BlendBlock
from mrag_eval.datasets._click import CATEGORY_SIZES, ClickBlock
from mrag_eval.datasets._xrag import XragBlock
from mrag_eval.prompts import load_template
from mrag_eval.scoring import METRIC_NAMES

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "tasks"
FILES = sorted(TASKS.glob("**/*.yaml"))


def read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = load_yaml(path, resolve_func=False)
    return config


@pytest.fixture(scope="module")
def configs() -> dict[str, dict[str, Any]]:
    """Every YAML by the name of its task or group."""
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


def leaves(configs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: config for name, config in configs.items() if "group" not in config}


def test_the_committed_files_are_those_of_the_script(writer: ModuleType) -> None:
    assert writer.stale() == []


def test_the_check_sees_a_changed_a_missing_and_a_superfluous_file(writer: ModuleType, tmp_path: Path) -> None:
    for path, content in writer.all_files():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_leaf_is_a_sound_task(path: Path) -> None:
    config = read(path)
    if "group" in config:
        for entry in config.get("aggregate_metric_list") or []:
            members = _leaf_names(config["group"])
            assert all(entry["metric"] in split_leaf(name).metrics for name in members)
        return
    # with resolve_func=False the harness leaves a function as its path, relative to the file's folder
    assert config["class"].endswith("mrag_eval.task.RagTask")
    assert config["output_type"] in ("generate_until", "multiple_choice")
    # else the question under test turns up among its own shots
    assert config["num_fewshot"] == 0
    assert not config.get("metric_list")
    if config["output_type"] == "multiple_choice":
        assert "generation_kwargs" not in config
    else:
        assert isinstance(config["generation_kwargs"]["until"], list)
        assert config["generation_kwargs"]["do_sample"] is False
        assert not config["generation_kwargs"].get("temperature")
        assert config["generation_kwargs"]["max_gen_toks"] > 0
    assert config["metadata"]["version"] == 1.0
    blocks = split_leaf(config["task"])
    validate_data(blocks.data)
    load_template(blocks.prompt.template, blocks.prompt.system)
    assert blocks.retrieval.mode in MODES


def _paths() -> dict[str, Path]:
    return {str(config.get("group", config.get("task"))): path for path in FILES for config in [read(path)]}


_PATHS = _paths()


def split_leaf(name: str) -> Any:
    """The merged and validated blocks of a leaf, as the task itself sees them."""
    config = read(_PATHS[name])
    config["metadata"] = {**config["metadata"], "config_source": str(_PATHS[name])}
    return split_config(config, METRIC_NAMES)[1]


def _leaf_names(group: str) -> list[str]:
    out = []
    for member in read(_PATHS[group])["task"]:
        out += _leaf_names(member) if "group" in read(_PATHS[member]) else [member]
    return out


@pytest.mark.parametrize("folder", sorted({path.parent for path in TASKS.glob("*/*yaml")}), ids=lambda path: path.name)
def test_every_benchmark_has_a_readme_that_states_its_licence(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"licen[cs]e", text)
    assert "### Tasks" in text


def test_the_blocks_of_a_leaf_are_those_of_its_bases_and_its_own() -> None:
    blocks = split_leaf("click_monorag_law")
    assert blocks.data == {"benchmark": "click", "category": "law"}
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
def test_click_and_blend_cover_every_part_once_in_each_mode(
    short: str, mode: str, configs: dict[str, dict[str, Any]]
) -> None:
    click = [split_leaf(name) for name in _leaf_names(f"click_{short}")]
    assert [ClickBlock(**blocks.data).category for blocks in click] == list(CATEGORY_SIZES)
    countries = []
    if short not in ("own", "ownen", "coral_norewrite"):
        countries = [split_leaf(name) for name in _leaf_names(f"blend_{short}_countries")]
        assert [BlendBlock(**blocks.data).country for blocks in countries] == list(COUNTRIES)
    languages = [split_leaf(name) for name in _leaf_names(f"blend_{short}")]
    asked = [BlendBlock(**blocks.data).language for blocks in languages]
    assert asked == [code for tier in ("low", "mid", "high") for code in CORAL_TIERS[tier]]
    assert {blocks.retrieval.mode for blocks in (*click, *countries, *languages)} == {mode}


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
    for name in ("click_coral_law", "blend_coral_su"):
        blocks = split_leaf(name)
        agent = blocks.agent
        assert agent.pool == CORAL_POOL
        assert len(agent.pool) == 13
        assert (agent.k, agent.max_corpora, blocks.retrieval.k) == (5, 3, 5)
        assert (agent.min_score, agent.min_total, agent.rewrite) == (2, 6.0, True)
        assert (agent.generation.temperature, agent.generation.max_tokens) == (0.6, 32_768)
    assert split_leaf("blend_coral_norewrite_su").agent.rewrite is False
    assert split_leaf("blend_coral_norewrite_su").agent.pool == CORAL_POOL


def test_short_answers_cover_every_country_in_each_mode(configs: dict[str, dict[str, Any]]) -> None:
    modes = {"norag": "no_ir", "monorag": "qlang", "multirag": "all", "crossrag": "crossrag", "coral": "coral"}
    assert configs["blend_saq_coral_suite"]["task"] == [f"blend_saq_{short}" for short in modes]
    for short, mode in modes.items():
        leaves = [split_leaf(name) for name in _leaf_names(f"blend_saq_{short}")]
        assert [blocks.data["country"] for blocks in leaves] == list(COUNTRIES)
        assert {blocks.retrieval.mode for blocks in leaves} == {mode}
        assert {blocks.metrics for blocks in leaves} == {("sem_b", "sem_w", "sem_lemma_rule")}
    assert split_leaf("blend_saq_coral_iran").agent.pool == CORAL_POOL
    assert configs["blend_saq_iran"]["task"] == [f"blend_saq_{short}_iran" for short in modes]
    assert all(not entry["weight_by_size"] for entry in configs["blend_saq_coral"]["aggregate_metric_list"])


def test_the_loop_on_open_questions_ends_on_a_line_and_reranks_nothing() -> None:
    for name in ("xquad_rag_coral", "mkqa_coral_ja"):
        blocks = split_leaf(name)
        assert (blocks.retrieval.mode, blocks.retrieval.rerank) == ("coral", None)
        assert (blocks.prompt.template, blocks.prompt.system) == ("short_answer_line", None)
        assert "char3gram_recall" in blocks.metrics


def test_click_alone_has_translated_questions(configs: dict[str, dict[str, Any]]) -> None:
    names = _leaf_names("click_trag")
    assert [split_leaf(name).retrieval.mode for name in names] == ["trag"] * len(CATEGORY_SIZES)
    assert not [name for name in configs if name.startswith("blend_trag")]


def test_xrag_has_the_papers_conditions_and_no_name_twice() -> None:
    languages = ["de", "es", "zh", "ar"]
    for group, english in {
        "xrag_multi": (),
        "xrag_multi_eq": ("question",),
        "xrag_multi_eqes": ("question", "supporting"),
        "xrag_multi_eqesed": ("question", "supporting", "distracting"),
    }.items():
        found = [XragBlock(**split_leaf(name).data) for name in _leaf_names(group)]
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
            assert XragBlock(**blocks.data).language == name[-2:]
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
            # English stands apart: not every setting has it, and means are taken over equal sets
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
        # KILT's pages are English: recall of pages means something where English alone is searched
        assert ("recall@5" in blocks.metrics) == (name.startswith("mkqa") and mode in ("en_only", "oracle", "trag"))
        assert retrieval.rerank is not None
        assert (retrieval.rerank.model, retrieval.rerank.max_length) == ("BAAI/bge-reranker-v2-m3", 256)
        assert (retrieval.kind, retrieval.corpus) == (
            ("sparse", "wikipedia_splade") if variant == "sparse_trag_" else (None, "wikipedia")
        )
        assert {"char3gram_recall", "correct_language"} <= set(blocks.metrics)


def test_blend_averages_over_languages_and_click_over_questions(configs: dict[str, dict[str, Any]]) -> None:
    def weights(group: str) -> dict[str, bool]:
        return {entry["metric"]: entry["weight_by_size"] for entry in configs[group]["aggregate_metric_list"]}

    for group in ("blend_norag", "blend_norag_low", "blend_norag_countries"):
        assert (weights(group)["acc"], weights(group)["acc_micro"]) == (False, True)
    assert weights("click_multirag")["acc"] is True
    assert configs["xrag_mono"]["task"] == [f"xrag_mono_{code}" for code in ("de", "es", "zh", "ar")]


@pytest.mark.slow
def test_the_harness_finds_every_task_and_no_name_is_taken(configs: dict[str, dict[str, Any]]) -> None:
    import lm_eval.tasks
    from lm_eval.tasks._index import TaskIndex

    ours = TaskIndex.build([TASKS])
    assert set(ours) == set(configs)
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
