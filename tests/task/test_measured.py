"""The record of what a task's numbers measure: that everything that decides them arrives in it, and nothing else."""

from __future__ import annotations

import inspect
import json
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any, Union, get_args, get_origin

import lm_eval
import pytest
from lm_eval.config.task import TaskConfig
from lm_eval.tasks import TaskManager
from pydantic import BaseModel

from mrag_eval.cli import main
from mrag_eval.config import (
    CONTEXT_METADATA,
    DECIDING,
    NAMING_METADATA,
    ROLES,
    Agent,
    Harmless,
    Judge,
    Measurement,
    ModelSpec,
    Prompt,
    Retrieval,
    TaskBlocks,
    differences,
    harmless,
    harmless_keys,
    judges_of,
    read_task_yaml,
    setting_of,
    split_config,
    undotted,
    unread,
)
from mrag_eval.datasets import LOADERS, validate_data
from mrag_eval.judging import Panel, prompt_texts
from mrag_eval.models import AuxModel
from mrag_eval.planning import deviations, shipped
from mrag_eval.platform import tasks_folder
from mrag_eval.report import read_results
from mrag_eval.scoring import METRIC_NAMES, panel_of
from tests.programs import Programs
from tests.task.test_hook import build
from tests.task.test_hook import run as run_small
from tests.worlds.judges import ScriptedJudge, supports
from tests.worlds.measured import PUBLISHED
from tests.worlds.small import BASE, ScriptedLM, write_task


def measured(content: Mapping[str, Any], name: str = "small") -> Measurement:
    """Return the record of a task as a result file with this content has it."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "results_2026-01-01T00-00-00.000000.json")
        file.write_text(json.dumps(content), "utf-8")
        (read,) = read_results([file])
    return read.leaves[name].measurement


def record_of(tasks: Path, name: str = "small", **kwargs: Any) -> Measurement:
    """Return the record of a run as its result file gives it."""
    content = json.loads(json.dumps(run_small(tasks, name, **kwargs), default=str))
    return measured(content, name)


def keys(one: Measurement, other: Measurement) -> set[str]:
    return {found.key for found in differences(one, other)}


# ------------------------------------------------------------------ blocks


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the blocks that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType) or hasattr(annotation, "__metadata__"):
        for inner in get_args(annotation):
            yield from _models_in(inner)


def _paths(block: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yield the dotted path of every field of a block, and of the blocks in it, of each kind of them."""
    for name, field in block.model_fields.items():
        inner = [path for model in _models_in(field.annotation) for path in _paths(model, f"{above}{name}.")]
        yield from inner or [f"{above}{name}"]


_BLOCKS: Mapping[str, type[BaseModel]] = {"retrieval": Retrieval, "agent": Agent, "prompt": Prompt, "judge": Judge}
_FIELDS = [(name, path) for name, block in _BLOCKS.items() for path in dict.fromkeys(_paths(block))]


def _changed(block: BaseModel, path: str) -> BaseModel:
    """Return the block with another value at the path, valid or not: what matters is that it is recorded."""
    name, _, rest = path.partition(".")
    if not rest:
        return block.model_copy(update={name: "another value"})
    held = getattr(block, name)
    kinds = [model for model in _models_in(type(block).model_fields[name].annotation) if path_exists(model, rest)]
    inner = held if held is not None and path_exists(type(held), rest) else kinds[0].model_construct()
    return block.model_copy(update={name: _changed(inner, rest)})


def path_exists(model: type[BaseModel], path: str) -> bool:
    return path in set(_paths(model))


@pytest.mark.parametrize("mode", ["all", "coral"])
@pytest.mark.parametrize(("name", "path"), _FIELDS)
def test_each_field_of_each_block_arrives(mode: str, name: str, path: str) -> None:
    """A field that is new tomorrow is in this walk by itself."""
    if mode == "all" and name == "agent":
        return
    blocks = TaskBlocks(Retrieval(mode=mode), Agent(), Prompt(), Judge(), {"benchmark": "x"}, ("match",))
    with warnings.catch_warnings():
        # pydantic warns of the value's type
        warnings.simplefilter("ignore")
        if path == "mode" and name == "retrieval":
            other = replace(blocks, retrieval=Retrieval(mode="qlang"))
        elif path == "scale" and name == "judge":
            other = replace(blocks, judge=Judge.model_validate({"scale": [0, 1]}))
        else:
            other = replace(blocks, **{name: _changed(getattr(blocks, name), path)})
        one, two = (Measurement("t", setting=setting_of(each, {}, {}, {})) for each in (blocks, other))
    key = f"{name}.{path}"
    assert {key} & {*two.flat(["setting"])}, f"{key} is not in the record"
    assert key in keys(one, two) or harmless(key), f"{key} is compared nowhere, and not declared harmless"


# What decides how passages that come with their rows are shown, or which rows run.
_WITHOUT_A_SEARCH = {
    "k",
    "mode",
    "document_translation",
    "seed",
    "shuffle",
    "unanswerable",
    "given.subset",
    "given.n",
    "run_may_differ",
}


@pytest.mark.parametrize("path", [path for name, path in _FIELDS if name == "retrieval"])
def test_settings_of_a_search_count_for_an_oracle_that_searched(path: str) -> None:
    """Its rows come with their passages, or an index or the benchmark's own corpus was searched for them."""
    blocks = TaskBlocks(Retrieval(mode="oracle"), Agent(), Prompt(), Judge(), {"benchmark": "x"}, ("match",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = replace(blocks, retrieval=_changed(blocks.retrieval, path))
        if path == "mode":
            other = replace(blocks, retrieval=Retrieval(mode="all"))
        one, two = (Measurement("t", setting=setting_of(each, {}, {}, {})) for each in (blocks, other))
    key = f"retrieval.{path}"
    for data in ({"index": {"kind": "bm25"}}, {"source": {"corpus": {"place": "here"}}}):
        # the blocks name nothing beside the address
        counts = harmless(key) is None or path in ("rerank.url", "retriever.url")
        assert (key in keys(replace(one, data=data), replace(two, data=data))) == counts
    left = keys(one, two)
    assert (key in left) == (path in _WITHOUT_A_SEARCH and harmless(key) is None)
    assert (one.sha256 == two.sha256) == (not left)


@pytest.mark.parametrize("benchmark", sorted(LOADERS))
def test_each_field_of_each_benchmark_s_data_arrives(benchmark: str) -> None:
    block = LOADERS[benchmark].block
    for path in _paths(block):
        name = path.partition(".")[0]
        blocks = TaskBlocks(Retrieval(), Agent(), Prompt(), Judge(), {}, ())
        one, two = (
            Measurement("t", setting=setting_of(blocks, {name: value}, {}, {})) for value in ("a value", "another")
        )
        assert f"data.{name}" in keys(one, two) or harmless(f"data.{name}"), f"{benchmark}: data.{name}"


def test_what_is_declared_harmless_exists() -> None:
    """An entry that names nothing would hide a key that is called so tomorrow."""
    known = {f"{name}.{path}" for name, path in _FIELDS}
    known |= {f"data.{path}" for loader in LOADERS.values() for path in _paths(loader.block)}
    known |= {f"run.{name}" for name in inspect.signature(lm_eval.evaluate).parameters}
    blocks = {key.rpartition(".")[0] for key in known}
    # not settings of ours: of the harness's record, of models, and of the records of rows and corpora
    elsewhere = ("model_args.", "source.", "index.", "retrieved", "left_out")
    of_the_run = {
        "transport",
        "batch_size",
        "batch_sizes",
        "bootstrap_iters",
        "device",
        "gen_kwargs",
        "limit",
        "use_cache",
    }
    for one in harmless_keys():
        key = one.key
        if not key.startswith("*."):
            assert key in known | blocks | of_the_run | {"metrics"} or key.startswith(elsewhere), key


@pytest.mark.parametrize("one", harmless_keys(), ids=lambda one: one.key)
def test_a_harmless_entry_means_what_it_says_and_no_more(one: Harmless) -> None:
    """Plant a marker in its leaf, below it, beside it, and in another role: the entry's reason, or a difference."""
    roles = [one.role] if one.role is not None else DECIDING
    name = one.key.replace("*.", "planted.").replace("{secret}", "Authorization")
    places = {name: True, f"{name}.below": one.block, f"{name}.below.further": one.block, f"{name}x": False}
    if "{secret}" in one.key:
        places = {name: True, "planted.header.X-Model-Variant": False, "planted.header.X-Api-Key": True}
    for role in DECIDING:
        for place, may in places.items():
            first, other = (Measurement("t").adding(role, undotted({place: text})) for text in ("A", "B"))
            wanted = may and role in roles
            found = keys(first, other)
            # an address counts where no model is named beside it
            alone = place.rpartition(".")[2] in ("base_url", "url")
            assert (found == set()) == (wanted and not alone), (role, place, found)
            assert (first.sha256 == other.sha256) == (wanted and not alone)
            assert (harmless(place, role) == one.reason) == wanted


@pytest.mark.parametrize("key", [*CONTEXT_METADATA, *NAMING_METADATA])
def test_what_bounds_prompts_is_a_setting_once(key: str, tasks: Path) -> None:
    content = json.loads(json.dumps(run_small(tasks, limit=1), default=str))
    found = []
    for value in ("512", "4096"):
        content["configs"]["small"]["metadata"][key] = value
        found.append(measured(content))
    one, other = found
    assert keys(one, other) == {f"{'context' if key in CONTEXT_METADATA else 'named'}.{key}"}
    content["config"] = {"model": "hf", "model_args": {key: 4096}}
    as_argument = measured(content)
    held = {**as_argument.setting.get("context", {}), **as_argument.subject.get("named", {})}
    # a bound is a setting wherever it stands; what names the model is the argument alone
    assert held == ({key: "4096"} if key in ("max_length", "max_model_len") else {})


@pytest.mark.parametrize(
    ("key", "close"),
    [
        ("language_instruction", "prompt.name_language"),
        ("max_tokens", "prompt.max_tokens"),
        ("modes", "retrieval.mode"),
        ("panels", "judge.panel"),
        ("xyzzy", None),
    ],
)
def test_metadata_that_nobody_reads_is_named_with_its_neighbours(key: str, close: str | None) -> None:
    (found,) = unread({key: "en", "retrieval.k": 3, "small": {"retrieval.k": 4}, "max_length": 5}, {"small"}).values()
    assert (close in found) if close else found == []


def test_a_run_refuses_metadata_that_nobody_reads(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], programs: Programs
) -> None:
    """The stock command, which reads it for other tasks, names it."""
    monkeypatch.chdir(tasks)
    words = ["--model", "oracle_answer", "--tasks", "small", "--include_path", ".", "--limit", "1"]
    words += ["--metadata", "language_instruction=en"]
    with pytest.raises(SystemExit) as done:
        main(["run", *words])
    assert done.value.code == 2
    said = capsys.readouterr().err
    assert "--metadata language_instruction: no task reads it; did you mean " in said
    assert "prompt.name_language" in said
    stock = [str(programs / "lm_eval"), "run", "--model", "dummy", *words[2:]]
    shown = subprocess.run(stock, capture_output=True, text=True, cwd=tasks, check=False)
    assert shown.stderr.count("--metadata language_instruction: none of our tasks reads it") == 1, shown.stderr


def test_no_name_stands_for_two_roles(tasks: Path) -> None:
    """``--differs`` names blocks without their roles."""
    record = record_of(tasks, limit=1)
    names = [name for role in ROLES for name in getattr(record, role)]
    assert len(names) == len(set(names))


# ------------------------------------------------------------------ flags of the harness


def _lm() -> ScriptedLM:
    return ScriptedLM(lambda prompt: "?")


# parameter of simple_evaluate -> (another value, the keys in which the record differs); None: it is not a flag of a run
_FLAGS: Mapping[str, tuple[Any, set[str]] | None] = {
    "model": None,
    "model_args": None,  # with a model by name; see the test below
    "tasks": None,
    "task_manager": None,
    "evaluation_tracker": None,
    "verbosity": None,
    "metadata": None,  # settings of our blocks
    "num_fewshot": None,  # refused: tasks say 0, and take no shots
    "apply_chat_template": None,  # with a model that has a template; see the test below
    "predict_only": None,  # nothing is scored
    "check_integrity": None,  # the harness's own tests of tasks
    "delete_requests_cache": None,
    "batch_size": (2, set()),
    "max_batch_size": (2, set()),
    "device": ("cpu", set()),
    "use_cache": ("replies", set()),
    "cache_requests": (True, set()),
    "rewrite_requests_cache": (True, set()),
    "limit": (2, {"ran.ids", "ran.rows"}),
    "samples": ({"small": [1, 2]}, {"ran.ids", "ran.rows"}),
    "bootstrap_iters": None,  # of the harness's own standard errors; the small runs set it
    "write_out": (True, set()),
    "log_samples": (False, set()),
    "fewshot_as_multiturn": (False, set()),
    "confirm_run_unsafe_code": (True, set()),
    "system_instruction": ("Be brief.", {"run.system_instruction"}),
    "gen_kwargs": ("max_gen_toks=7", {"generation_kwargs.max_gen_toks"}),
    "random_seed": (7, set()),  # replies are not sampled
    "numpy_random_seed": (7, set()),
    "torch_random_seed": (7, set()),
    "fewshot_random_seed": (7, set()),
}


def test_every_flag_of_the_harness_is_in_the_table() -> None:
    assert set(inspect.signature(lm_eval.simple_evaluate).parameters) == set(_FLAGS)


@pytest.mark.parametrize("flag", [name for name, entry in _FLAGS.items() if entry is not None])
def test_each_flag_arrives(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    entry = _FLAGS[flag]
    assert entry is not None
    value, expected = entry
    monkeypatch.chdir(tmp_path)
    assert keys(record_of(tasks, lm=_lm()), record_of(tasks, lm=_lm(), **{flag: value})) == expected


def test_the_seeds_that_count_as_unset_are_the_harness_s_defaults(tasks: Path) -> None:
    sampled = {"gen_kwargs": "do_sample=True,temperature=0.7"}
    content = json.loads(json.dumps(run_small(tasks, lm=_lm(), limit=1, **sampled), default=str))
    plain = measured(content)
    assert "seeds" not in plain.setting
    seeds = {key: value for key, value in content["config"].items() if key.endswith("_seed")}
    # those of the command, by the names of its record
    given = [name for name in inspect.signature(lm_eval.simple_evaluate).parameters if name.endswith("_seed")]
    assert [name.replace("_random", "") if name != "random_seed" else name for name in given] == [*seeds]
    for name, default in seeds.items():
        assert default is not None
        content["config"] = {**content["config"], **seeds, name: default + 1}
        assert keys(plain, measured(content)) == {f"seeds.{name}"}


def test_seeds_count_where_replies_are_sampled(tasks: Path) -> None:
    sampled = {"gen_kwargs": "do_sample=True,temperature=0.7"}
    one, other = (record_of(tasks, lm=_lm(), torch_random_seed=seed, **sampled) for seed in (1, 2))
    assert keys(one, other) == {"seeds.torch_seed"}


def test_a_chat_template_is_known_by_its_text(tasks: Path) -> None:
    class Templated(ScriptedLM):
        template = "{{ messages }}"

        def chat_template(self, chat_template: bool | str = False) -> str:
            return self.template

        def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> str:
            return json.dumps(chat_history)

        @property
        def tokenizer_name(self) -> str:
            return "one"

    plain = record_of(tasks, lm=Templated(lambda prompt: "?"))
    applied = record_of(tasks, lm=Templated(lambda prompt: "?"), apply_chat_template=True)
    assert keys(plain, applied) == {"chat_template_applied", "chat_template_sha256"}
    other = Templated(lambda prompt: "?")
    other.template = "{{ messages | upper }}"
    assert keys(applied, record_of(tasks, lm=other, apply_chat_template=True)) == {"chat_template_sha256"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"model_args": {"pretrained": "a/b"}}, {"model_args": "pretrained=a/c"}, {"model_args.pretrained"}),
        ({"model_args": {"pretrained": "/here/m"}}, {"model_args": "pretrained=/there/m"}, {"model_args.pretrained"}),
        ({"model_args": "dtype=float16,batch_size=2"}, {"model_args": {"dtype": "float16"}}, set()),
        ({"model_args": {"max_length": 512}}, {"model_args": "max_length=1024"}, {"model_args.max_length"}),
        ({"model": "hf"}, {"model": "vllm"}, {"model"}),
        ({"model_sha": "a"}, {"model_sha": "b"}, {"model_sha"}),
        ({"an argument of tomorrow": 1}, {"an argument of tomorrow": 2}, {"an argument of tomorrow"}),
    ],
)
def test_the_model_is_everything_that_the_harness_says_of_it(
    tasks: Path, one: dict[str, Any], other: dict[str, Any], expected: set[str]
) -> None:
    content = json.loads(json.dumps(run_small(tasks, limit=1), default=str))
    records = []
    for change in (one, other):
        content["config"] = {"model": "hf", "model_args": {}, **change}
        records.append(measured(content))
    assert {found.key for found in differences(*records)} == expected


# ------------------------------------------------------------------ instruments


def test_judges_are_known_by_what_they_are(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the alias nor the address of a judge is the judge."""
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    write_task(tasks, "judged", **{**BASE, "metrics": ["judged_accuracy"]}, data=data)
    config = tasks / "mrag.yaml"
    monkeypatch.setenv("MRAG_CONFIG", str(config))

    def record(alias: str, model: str, port: int) -> Measurement:
        spec = {"model": "local-chat-completions", "max_in_flight": port, "model_args": {"model": model}}
        spec["model_args"]["base_url"] = f"http://localhost:{port}/v1/chat/completions"
        config.write_text(json.dumps({"models": {alias: spec}, "judges": [alias]}), "utf-8")
        return Measurement.from_dict(build(tasks, "judged").dump_config()["measurement"], "here")

    first = record("gpt", "a/b", 1)
    assert (list(first.instrument["judges"]), list(first.judges)) == (["gpt"], ["a/b"])
    assert keys(first, record("other", "a/b", 2)) == set()
    assert keys(first, record("gpt", "a/c", 1)) == {"judges"}
    assert "localhost" not in json.dumps(first.to_dict())


# ------------------------------------------------------------------ texts and places

# Pairs of texts that are easily taken for one: of paths, of a home, of an address, of a switch of thinking.
_TWO_TEXTS = [
    ("/ckpt/a/final", "/ckpt/b/final"),
    ("/no_think Answer in one word", "/think Answer in one word"),
    ("~ be brief/word", "~ be long/word"),
    ("Cite as name@http://a", "Cite as name@http://b"),
    ("See http://a?key=1", "See http://a?key=2"),
    ("1", 1),
]


def _texts_in(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping):
            yield from _texts_in(value, f"{key}.")
        elif isinstance(value, str):
            yield key


def _with(values: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    name, _, rest = key.partition(".")
    return {**values, name: _with(values[name], rest, value) if rest else value}


@pytest.mark.parametrize("pair", _TWO_TEXTS)
def test_two_texts_are_never_one(tasks: Path, pair: tuple[Any, Any]) -> None:
    """Of every field of a record that holds a text, a field of tomorrow among them."""
    arguments = dict.fromkeys(("model", "pretrained", "peft", "tokenizer"), "x")
    rerank = {"kind": "cross_encoder", "model": "x", "prompt": "x"}
    record = record_of(tasks, lm=_lm(), limit=1, system_instruction="x")
    record = record.adding("subject", {"model_args": arguments})
    record = record.adding("instrument", {"judges": {"x": {"model": "x", "args": arguments}}, "planner": arguments})
    record = record.adding("setting", {"retrieval": {**record.setting["retrieval"], "rerank": rerank}})
    walked = 0
    for role in DECIDING:
        for key in _texts_in(getattr(record, role)):
            one, other = (replace(record, **{role: _with(getattr(record, role), key, text)}) for text in pair)
            if harmless(key, role) is None:
                # of a judge it is the name
                named = {key}
                if key == "judges.x.args.model":
                    named = {"judges.1.args.model"} if str(pair[0]) == str(pair[1]) else {"judges"}
                assert keys(one, other) == named, key
                assert one.sha256 != other.sha256, key
                assert keys(*(Measurement.from_dict(each.portable(), "here") for each in (one, other))) == named
                walked += 1
    assert walked > 20


@pytest.mark.parametrize("name", ["base_url", "url"])
@pytest.mark.parametrize(
    ("role", "above"),
    [("subject", ("model_args",)), ("setting", ("retrieval", "rerank")), ("setting", ("retrieval", "embedder")),
     ("instrument", ("planner", "args"))],
)  # fmt: skip
def test_an_address_counts_where_no_model_is_named_beside_it(role: Any, above: tuple[str, ...], name: str) -> None:
    def served(host: str, **named: str) -> Measurement:
        block: Any = {name: f"http://{host}/x", **named}
        for part in reversed(above):
            block = {part: block}
        return Measurement("t").adding(role, block)

    key = ".".join((*above, name))
    assert keys(served("a"), served("b")) == {key}
    assert served("a").sha256 != served("b").sha256
    assert keys(served("user:pass@a"), served("a")) == set()
    if harmless(key) is not None:
        assert keys(served("a", model="m"), served("b", model="m")) == set()


def test_judges_without_a_name_are_told_apart_by_their_address() -> None:
    def judge(host: str, **named: str) -> Measurement:
        spec = ModelSpec(model="local-chat-completions", model_args={"base_url": f"http://{host}/v1", **named})
        return Measurement("t", instrument={"judges": judges_of({"seat": AuxModel(spec).seat().identity})})

    assert keys(judge("a"), judge("b")) == {"judges.local-chat-completions.args.base_url"}
    assert keys(judge("a", model="m"), judge("b", model="m")) == set()


@pytest.mark.parametrize("repeats", [1, 2, 3])
@pytest.mark.parametrize("metric", [False, True])
def test_seats_have_one_name_wherever_they_are_named(repeats: int, metric: bool) -> None:
    def judged(*names: str) -> tuple[Measurement, list[str]]:
        specs = {name: ModelSpec(model="openai-chat-completions", model_args={"model": name}) for name in names}
        panel = Panel({name: ScriptedJudge(supports) for name in names}, repeats)
        seats = {seat: AuxModel(specs[seat.partition("#")[0]]).seat().identity for seat in panel.seats}
        own = {"judges": judges_of(seats)}
        return Measurement("t", instrument={"metric:grounded": own} if metric else own), sorted(panel.seats)

    (first, mine), (second, theirs) = judged("a", "b", "c"), judged("a", "b")
    (found,) = differences(first, second)
    assert (found.first, found.second) == (mine, theirs)
    assert panel_of(mine) == "a panel of 3" + (f", {repeats} votes each" if repeats > 1 else "")


def test_a_place_is_what_it_holds(tmp_path: Path) -> None:
    """A model or a file of the user's is the same wherever it lies, and another one under its name is not."""
    model = {"a": "one", "b": "one", "c": "two"}
    for name, content in model.items():
        (tmp_path / name / "final").mkdir(parents=True)
        (tmp_path / name / "final" / "weights.bin").write_text(content, "utf-8")

    def setting(place: str) -> Measurement:
        retrieval = Retrieval(mode="all", embedder=str(tmp_path / place / "final"))
        blocks = TaskBlocks(retrieval, Agent(), Prompt(), Judge(), {"benchmark": "x"}, ())
        return Measurement("t", setting=setting_of(blocks, {}, {}, {}))

    def judge(place: str) -> Measurement:
        args = {"pretrained": str(tmp_path / place / "final"), "peft": str(tmp_path / place / "final")}
        seat = AuxModel(ModelSpec(model="hf", model_args=args)).seat().identity
        return Measurement("t", instrument={"judges": judges_of({"seat": seat})})

    for made, changed in ((setting, {"retrieval.embedder"}), (judge, {"judges.final.files.pretrained",
                                                                      "judges.final.files.peft"})):  # fmt: skip
        assert keys(made("a"), made("b")) == set()
        assert keys(made("a"), made("c")) == changed
        assert keys(made("a"), made("not here"))


# ------------------------------------------------------------------ the task as shipped


@pytest.mark.slow
def test_each_task_of_the_package_is_as_the_harness_reads_it() -> None:
    """The shipped settings are resolved without the harness; the harness must come to the same."""
    defaults = TaskConfig(task="t", output_type="loglikelihood").to_dict()
    seen = 0
    for path in sorted(tasks_folder().rglob("*.yaml")):
        official = shipped(path.stem)
        if official is None:
            continue
        raw = read_task_yaml(path)
        metadata = {**raw["metadata"], "config_source": str(path)}
        rest, blocks = split_config({**raw, "metadata": metadata}, METRIC_NAMES)
        found = TaskConfig(**rest).to_dict()
        chosen = {key: value for key, value in found.items() if key in rest or value != defaults.get(key)}
        data = validate_data(blocks.data).model_dump(mode="json")
        record = Measurement(path.stem, setting=setting_of(blocks, data, chosen, prompt_texts(blocks)))
        assert differences(record, official.measurement) == [], path.stem
        seen += 1
    assert seen > 400


def test_a_run_of_a_task_as_shipped_deviates_in_nothing() -> None:
    manager = TaskManager(include_path=str(tasks_folder()), include_defaults=False)
    results = lm_eval.simple_evaluate(model=_lm(), tasks=["mrag_demo_norag"], task_manager=manager, bootstrap_iters=0)
    assert results is not None
    record = Measurement.from_dict(results["configs"]["mrag_demo_norag"]["measurement"], "here")
    assert deviations(record) == []
    flags: dict[str, Any] = {"limit": 3, "system_instruction": "Lie."}
    part = lm_eval.simple_evaluate(
        model=_lm(), tasks=["mrag_demo_norag"], task_manager=manager, bootstrap_iters=0, **flags
    )
    assert part is not None
    record = Measurement.from_dict(part["configs"]["mrag_demo_norag"]["measurement"], "here")
    assert [found.key for found in deviations(record)] == ["run.system_instruction", "rows"]


def test_a_later_edit_of_the_file_makes_a_run_one_of_an_earlier_version() -> None:
    official = shipped("mrag_demo_norag")
    assert official is not None
    data = {"ran": {"rows": 1, "of": 1}, "source": PUBLISHED}
    whole = replace(official.measurement, data=data, shipped=official.sha256)
    assert deviations(whole) == []
    (found,) = deviations(replace(whole, shipped="0" * 64))
    assert found.text == "task=of another version of the task's file, not of this one"
    (found,) = deviations(None)
    assert (found.role, found.key) == (None, "identity")


def test_the_record_reads_back_the_same(tasks: Path) -> None:
    record = record_of(tasks, limit=2)
    assert Measurement.from_dict(json.loads(json.dumps(record.to_dict())), "here") == record
    assert set(DECIDING) < set(ROLES)


def test_a_file_of_a_language_of_the_users_is_an_instrument(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with other words are not compared, with a file in both or in one; other languages do not matter."""

    def record(name: str, **files: str) -> Measurement:
        own = tasks / name
        own.mkdir()
        for code, text in files.items():
            (own / f"{code}.yaml").write_text(text, "utf-8")
        config = tasks / f"{name}.mrag.yaml"
        config.write_text(f"languages: {own}\n", "utf-8")
        monkeypatch.setenv("MRAG_CONFIG", str(config))
        return Measurement.from_dict(build(tasks, "small").dump_config()["measurement"], "here")

    without = record("without")
    assert "languages" not in without.instrument
    one = record("one", de="words: {yes: jo}\n", fi="words: {yes: jo}\n")
    assert set(one.instrument["languages"]) == {"de"}
    assert keys(without, one) == keys(one, without) == {"languages.de"}
    assert keys(one, record("same", de="written_by: another\nwords: {yes: jo}\n")) == set()
    assert keys(one, record("other", de='words: {yes: "jo, joo"}\n')) == {"languages.de"}
    assert keys(one, record("english", de="words: {yes: jo}\n", en="labels: [z y]\n")) == {"languages.en"}
