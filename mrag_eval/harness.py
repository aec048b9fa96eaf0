"""The one module that knows lm-evaluation-harness: its task class, its registry, its command and its result files.

Everything here was written against lm-eval 0.4.13. Nothing else in this package imports ``lm_eval``; a new release of
the harness is met here first. The model objects that it builds are also used in :mod:`mrag_eval.models`. Importing this
module takes seconds; import it inside functions.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import sys
from abc import abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import lru_cache, partial
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

# first: the harness looks for its own models only while none is registered
import lm_eval.models  # noqa: F401
from lm_eval.api import registry
from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean
from lm_eval.api.model import LM, CachingLM
from lm_eval.api.registry import register_model
from lm_eval.api.task import ConfigurableTask
from lm_eval.config.task import TaskConfig
from lm_eval.evaluator_utils import get_sample_size
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import Entry, Kind, TaskIndex
from lm_eval.tasks._yaml_loader import load_yaml
from lm_eval.utils import handle_non_serializable, hash_string, sanitize_list, setup_logging, simple_parse_args_string

from mrag_eval.core import (
    ConfigError,
    DataError,
    MragError,
    RunFiles,
    UnwrittenError,
    Wait,
    check_file_name,
    check_output,
    check_weights,
    did_you_mean,
    hide,
)

if TYPE_CHECKING:
    from lm_eval.models.huggingface import HFLM

__all__ = [
    "HFLM",
    "LM",
    "LOCAL_TYPES",
    "HarnessTask",
    "Instance",
    "Loaded",
    "RowResult",
    "TaskManager",
    "asked_tasks",
    "check_local_weights",
    "check_model",
    "check_tasks",
    "config_file_settings",
    "evaluate",
    "evaluated_now",
    "hide_secrets_in_results",
    "known_model_types",
    "listed_tasks",
    "load_tasks",
    "loaded_together",
    "model_class",
    "parse_arguments",
    "read_task_file",
    "register_model",
    "register_model_type",
    "run_parser",
    "run_settings",
    "score_table",
    "sends_by_http",
    "setup_logging",
    "stock_run",
    "task_keys",
    "task_manager",
]

_FLAGS = "mrag-eval run --help   lists the flags used most, lm_eval run --help all of them"
# Model types whose weights are loaded here.
LOCAL_TYPES = ("hf", "hf-auto", "huggingface", "hf-greedy-path", "vllm")
# The argument without which a model of this type ends, after the retrieval.
_REQUIRED = {
    **dict.fromkeys(LOCAL_TYPES, "pretrained"),
    **dict.fromkeys(("local-completions", "local-chat-completions"), "base_url"),
}
# The variable without which a model whose type begins so refuses every call.
_KEYS = {"openai-": "OPENAI_API_KEY", "anthropic-": "ANTHROPIC_API_KEY"}
# Arguments with which the weights are in other files, or are not read from files.
_OTHER_FILES = ("gguf_file", "subfolder", "cache_dir", "download_dir", "load_format")
# Gathers the ranks' records. Its value is the largest share of rows that a metric could not score.
UNSCORED = "unscored"
# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


def __getattr__(name: str) -> Any:
    # loads torch
    if name != "HFLM":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lm_eval.models.huggingface import HFLM

    return HFLM


# ------------------------------------------------------------------ models


def model_class(model_type: str) -> type[Any]:
    """Return the class of a model type; raise KeyError, ValueError or ImportError as the registry does."""
    found: type[Any] = registry.get_model(model_type)
    return found


def known_model_types() -> list[str]:
    """Return the names of all model types, of the harness and of other packages."""
    return list(registry.model_registry.keys())


def check_model(name: str, args: Mapping[str, Any], hint: str) -> None:
    """Raise ConfigError for a model that a run would fail to load, after its retrieval; nothing is loaded here.

    That is a name of no model type (with the closest one and a ``hint``), and an argument, a key or weights that are
    missing.
    """
    if name not in registry.model_registry:
        raise ConfigError(f"no model type '{name}'{did_you_mean(name, known_model_types())}", hint)
    required = _REQUIRED.get(name)
    if required and not args.get(required):
        raise ConfigError(f"--model {name}: its argument '{required}' is missing", f"--model_args {required}=...")
    key = next((variable for start, variable in _KEYS.items() if name.startswith(start)), None)
    if key is not None and not os.environ.get(key) and not args.get("header"):
        raise ConfigError(f"--model {name}: the environment variable {key} is not set", f"export {key}=...")
    check_local_weights(name, args, f"--model {name}")


def check_local_weights(name: str, args: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError, starting with ``where``, for a model with local weights that are not there."""
    if name in LOCAL_TYPES and args.get("pretrained") and not {*_OTHER_FILES} & {*args}:
        check_weights(str(args["pretrained"]), f"{where}, pretrained", args.get("revision"))


def register_model_type(name: str, place: str) -> None:
    """Make the model at ``place`` (``module:class``) known to ``--model``, unless the name is taken."""
    if name not in registry.model_registry:
        registry.model_registry.register(name, target=place)


def sends_by_http(model: type[Any]) -> bool:
    """Return whether a model class only describes HTTP requests and leaves sending them to its base class."""
    from lm_eval.models.api_models import TemplateAPI

    sending = ("generate_until", "model_call", "amodel_call")
    return issubclass(model, TemplateAPI) and all(getattr(model, n) is getattr(TemplateAPI, n) for n in sending)


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse ``key=value,key=value`` as ``--model_args`` and ``--metadata`` are parsed."""
    return dict(simple_parse_args_string(text))


class EvaluatedNow(NamedTuple):
    """The model of a run under way: its type (or an object from a program), its arguments, and the loaded object."""

    model: Any
    args: Mapping[str, Any]
    loaded: Any


def evaluated_now() -> EvaluatedNow | None:
    """Return the model that the harness evaluates while this is called; None outside of a run.

    Its cache of replies (``--use_cache``) is left aside: it would keep whatever the object is asked besides.
    """
    run = _run_variables()
    loaded = run.get("lm")
    if loaded is None:
        return None
    args = run.get("model_args") or {}
    return EvaluatedNow(
        run["model"],
        parse_arguments(args) if isinstance(args, str) else dict(args),
        loaded.lm if isinstance(loaded, CachingLM) else loaded,
    )


def _run_variables() -> Mapping[str, Any]:
    """Return the variables of the ``simple_evaluate`` under way, which hands neither tracker nor model to its tasks."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "simple_evaluate":
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


# ------------------------------------------------------------------- files


def read_task_file(path: Path, *, with_includes: bool = True, with_functions: bool = False) -> dict[str, Any]:
    """Read a task's YAML, with the files it includes or without; functions are left as names, or imported."""
    return dict(load_yaml(path, resolve_func=with_functions, recursive=with_includes))


def task_keys() -> set[str]:
    """Return the keys that a task's YAML may have, ours aside."""
    return {field.name for field in fields(TaskConfig)}


def task_manager(folders: Sequence[str], metadata: dict[str, Any] | None = None) -> TaskManager:
    """Return a task manager over ``folders`` alone: indexing the built-in tasks takes over ten seconds."""
    return TaskManager(include_path=list(folders), include_defaults=False, metadata=metadata or {})


def asked_tasks() -> list[str] | None:
    """Return the names of all tasks, groups and tags that are being loaded together; None while none is loaded.

    A wildcard is replaced by what it matches; a task from a file of its own has the name in the file, or the path. A
    task learns of the others only here: it is built inside ``TaskManager.load``, whose argument they are.
    """
    frame = _loading()
    return None if frame is None else [_name_of(asked) for asked in frame.f_locals["task_list"]]


class Loaded(NamedTuple):
    """Hold the groups and tags that hold a task, and its file, or its configuration if it is loaded without a file."""

    holders: frozenset[str]
    file: Path | None = None
    config: Mapping[str, Any] | None = None


def loaded_together() -> dict[str, Loaded] | None:
    """Return the tasks of a class of their own, as ours are, that are being loaded together; None while none is."""
    frame = _loading()
    if frame is None:
        return None
    asked = frame.f_locals["task_list"]
    found = dict(_loaded(frame.f_locals["self"], tuple(map(_name_of, asked))))
    for spec in asked:
        # the harness's command reads a task file itself
        if isinstance(spec, Mapping) and "class" in spec:
            tags = spec.get("tag") or ()
            found.setdefault(_name_of(spec), Loaded(frozenset([tags] if isinstance(tags, str) else tags), config=spec))
    return found


# Each task that is loaded asks for all of them.
@lru_cache(maxsize=1)
def _loaded(manager: TaskManager, asked: tuple[str, ...]) -> dict[str, Loaded]:
    index = manager.task_index
    holders: dict[str, set[str]] = {}
    for holder in (*manager.all_groups, *manager.all_tags):
        for leaf in _leaves(holder, index):
            holders.setdefault(leaf, set()).add(holder)
    found = {}
    for name in (leaf for one in asked for leaf in _leaves(one, index)):
        entry = _entry(name, index)
        if entry is not None and entry.kind is Kind.PY_TASK:
            found[entry.name] = Loaded(frozenset(holders.get(entry.name, set()) | entry.tags), entry.yaml_path)
    return found


def _loading() -> FrameType | None:
    """Return the call of ``TaskManager.load`` from which this function is called."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not TaskManager.load.__code__:
        frame = frame.f_back
    return frame


def _entry(name: str, index: Mapping[str, Entry]) -> Entry | None:
    """Return the harness's entry of a name, or of a task file; None if there is no such name or file."""
    if name in index or not name.endswith(".yaml") or not Path(name).is_file():
        return index.get(name)
    found: dict[str, Entry] = {}
    TaskIndex.process_cfg(read_task_file(Path(name)), Path(name), found)
    return next(iter(found.values()))


def _leaves(name: str, index: Mapping[str, Entry], above: Sequence[str] = ()) -> Iterator[str]:
    """Yield the tasks of a group or tag, of groups within it too; of any other name, itself."""
    entry = _entry(name, index)
    if entry is not None and entry.kind is Kind.TAG:
        yield from sorted(entry.tags)
    elif entry is None or entry.kind is not Kind.GROUP:
        yield name
    elif name not in above:
        yield from _leaves_of((entry.cfg or {}).get("task"), index, (*above, name))


def _leaves_of(members: Any, index: Mapping[str, Entry], above: Sequence[str]) -> Iterator[str]:
    for member in members if isinstance(members, list) else ():
        given = member if isinstance(member, Mapping) else {"task": member}
        name = str(given.get("group", given.get("task")))
        if "group" in given and name not in index:
            # a group that is written within another
            yield from _leaves_of(given.get("task"), index, above)
        else:
            yield from _leaves(name, index, above)


def _name_of(asked: Any) -> str:
    """Return the name of a task as the harness is asked for it: by name, by configuration, or built."""
    if isinstance(asked, Mapping):
        return str(asked.get("task"))
    return str(asked if isinstance(asked, str) else getattr(asked, "task_name", None) or asked.name)


def listed_tasks(manager: TaskManager) -> dict[str, tuple[Path | None, Mapping[str, Any]]]:
    """Return the file and the content of every task and group that a task manager knows, by name; not the tags."""
    return {name: (entry.yaml_path, entry.cfg) for name, entry in manager.task_index.items() if entry.cfg is not None}


class StockRun(NamedTuple):
    """A run of the harness's own command: its tasks, as names and configurations, and who loads them."""

    asked: list[str | Mapping[str, Any]]
    manager: TaskManager


def stock_run() -> StockRun | None:
    """Return what the harness's own command loads, when its first task is built; None for any other, and elsewhere.

    From then on an error that a user can act on ends that command in its own lines, without a traceback.
    """
    load, frame = _loading(), sys._getframe().f_back
    while frame is not None and not _is_stock_command(frame):
        frame = frame.f_back
    if load is None or frame is None or hasattr(load.f_locals["self"], "mrag_eval_planned"):
        return None
    manager: Any = load.f_locals["self"]
    manager.mrag_eval_planned = True
    sys.excepthook = partial(_say_mistake, sys.excepthook)
    asked = [one for one in load.f_locals["task_list"] if isinstance(one, str | Mapping)]
    return StockRun(asked, manager)


def _is_stock_command(frame: FrameType) -> bool:
    """Return whether a frame is the harness's command, started as a program or with ``python -m``."""
    code = frame.f_code
    return code.co_name == "cli_evaluate" and Path(code.co_filename).parts[-2:] == ("lm_eval", "__main__.py")


def _say_mistake(
    otherwise: Callable[[type[BaseException], BaseException, Any], Any],
    kind: type[BaseException],
    error: BaseException,
    trace: Any,
) -> None:
    """Print an error that a user can act on as ``mrag-eval`` does; leave any other to the hook that was there."""
    if isinstance(error, MragError):
        print(f"mrag-eval: {error.message}", file=sys.stderr)
        print(f"    {error.next_step or 'change it, and run the same command again'}", file=sys.stderr)
    else:
        otherwise(kind, error, trace)


def load_tasks(manager: TaskManager, names: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the tasks and groups of these names, built, and all their tasks by name."""
    loaded = manager.load(list(names))
    groups = loaded.get("groups", {})
    inner = {child for group in groups.values() for child in group.child_names}
    items = [item for name, item in [*groups.items(), *loaded["tasks"].items()] if name not in inner]
    return items, loaded["tasks"]


def check_tasks(tasks: Iterable[Any], *, judged: bool) -> None:
    """Check those of the tasks that are ours, before anything is retrieved for the first of them."""
    for task in tasks:
        if isinstance(task, HarnessTask):
            task.check_once(judged=judged)


# --------------------------------------------------------------------- run


class _Flags(ArgumentParser):
    """A parser that raises ConfigError for a wrong flag, instead of printing its usage."""

    def error(self, message: str) -> NoReturn:
        # the harness gives some values a type without a name
        message = re.sub(r"invalid functools\.partial\(.*\) value: ", "not a valid value: ", " ".join(message.split()))
        raise ConfigError(message.removeprefix("argument "), _FLAGS)


def run_parser() -> ArgumentParser:
    """Return a parser of ``run`` and its flags as the harness's command has them."""
    from lm_eval._cli.run import Run

    parser = _Flags(prog="mrag-eval", add_help=False)
    Run.create(parser.add_subparsers(dest="command"))
    return parser


def config_file_settings(path: str) -> dict[str, Any]:
    """Return the settings of a ``--config`` file; raise ConfigError if it cannot be read."""
    from lm_eval.config.evaluate_config import EvaluatorConfig

    fix = "write the flags of lm_eval run as YAML keys: mrag-eval run --help"
    try:
        found = dict(EvaluatorConfig.load_yaml_config(path))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"--config {path}: {' '.join(str(error).split())}", fix) from None
    known = {field.name for field in fields(EvaluatorConfig)}
    for key in found:
        if key not in known:
            raise ConfigError(f"--config {path}: unknown key '{key}'{did_you_mean(str(key), known)}", fix)
    return found


def run_settings(args: Namespace) -> tuple[dict[str, Any], Any]:
    """Return the arguments of :func:`evaluate` that parsed flags ask for, and the harness's own record of them."""
    from lm_eval import simple_evaluate
    from lm_eval.config.evaluate_config import EvaluatorConfig

    try:
        config = EvaluatorConfig.from_cli(args)
    except ValueError as error:
        raise ConfigError(" ".join(str(error).split()), _FLAGS) from None
    settings = {name: getattr(config, name) for name in signature(simple_evaluate).parameters if hasattr(config, name)}
    requests: dict[str, Any] = config.cache_requests or {}
    for name in ("cache_requests", "rewrite_requests_cache", "delete_requests_cache"):
        settings[name] = requests.get(name, False)
    seeds = zip(("random", "numpy_random", "torch_random", "fewshot_random"), config.seed or [None] * 4, strict=True)
    return settings | {f"{name}_seed": seed for name, seed in seeds}, config


def evaluate(settings: dict[str, Any], manager: TaskManager, output_path: str | None) -> dict[str, Any] | None:
    """Run ``lm_eval.simple_evaluate`` and write its result files as the harness's own command does.

    Returns the results with their samples, None on every rank but the first. Raises UnwrittenError, after printing
    the scores, if the files cannot be written.
    """
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker

    # without a path: it would only log what it cannot write
    tracker = EvaluationTracker()
    with _last_wait_named():
        results = simple_evaluate(**settings, task_manager=manager, evaluation_tracker=tracker)
    if results is None:
        return None
    found = dict(results)
    samples = found.pop("samples", None) if settings.get("log_samples") else None
    run = tracker.general_config_tracker
    run.log_end_time()
    found["task_hashes"] = {task: _hash_of(rows) for task, rows in (samples or {}).items()}
    found |= asdict(run)
    if output_path:
        try:
            _run_files(output_path, run.model_name_sanitized).write(found, samples or {})
        except UnwrittenError:
            print(score_table(found))
            raise
    return found


@contextmanager
def _last_wait_named() -> Iterator[None]:
    """Name the wait for the description of this machine, which the harness makes after every run."""
    from lm_eval import evaluator

    describe = evaluator.add_env_info

    def described(results: dict[str, Any]) -> None:
        with Wait("recording versions and hardware of this machine"):
            describe(results)

    evaluator.add_env_info = described
    try:
        yield
    finally:
        evaluator.add_env_info = describe


class _HidingJson:
    """The module ``json``, whose texts have known secrets hidden."""

    def dumps(self, *args: Any, **kwargs: Any) -> str:
        return hide(json.dumps(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(json, name)


def hide_secrets_in_results() -> None:
    """Hide known secrets in the results and samples that the harness writes; calling it again changes nothing.

    The results hold the model's arguments, headers and address included, and a reply may quote the key.
    """
    from lm_eval.loggers import evaluation_tracker

    if not isinstance(evaluation_tracker.json, _HidingJson):
        evaluation_tracker.json = _HidingJson()


def _run_files(output_path: str, model: str | None, **rest: Any) -> RunFiles:
    return RunFiles.below(Path(output_path), str(model), row=_sample_row, value=handle_non_serializable, **rest)


def _hash_of(samples: Sequence[Mapping[str, Any]]) -> str:
    return hash_string("".join(row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in samples))


def _sample_row(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample in the form of the harness's files; one that has that form stays as it is."""
    arguments = sample["arguments"]
    if not isinstance(arguments, Mapping):
        arguments = {
            f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(given)} for i, given in enumerate(arguments)
        }
    replies = {key: sanitize_list(sample[key]) for key in ("resps", "filtered_resps")}
    return {**sample, **replies, "arguments": arguments, "target": str(sample["target"])}


def _watch_tracker() -> None:
    """Have the harness's own command write what its tracker fails to write, and exit with 1 if that fails, too.

    A task learns of the tracker only here: it is built inside ``simple_evaluate``, whose argument the tracker is.
    """
    tracker = _run_variables().get("evaluation_tracker")
    if tracker is None or not tracker.output_path or hasattr(tracker, "mrag_eval_watched"):
        return
    check_output(Path(tracker.output_path), "--output_path")
    tracker.mrag_eval_watched = True
    results_of, samples_of = tracker.save_results_aggregated, tracker.save_results_samples

    def complete(results: Mapping[str, Any], samples: Mapping[str, Sequence[Any]]) -> None:
        named = {"stamp": tracker.date_id} if hasattr(tracker, "date_id") else {}
        files = _run_files(tracker.output_path, tracker.general_config_tracker.model_name_sanitized, **named)
        tracker.date_id = files.stamp
        missing = files.missing({task: len(rows) for task, rows in samples.items()})
        try:
            files.write({} if files.has_results() else results, {task: samples[task] for task in missing})
        except UnwrittenError as error:
            log.error("%s", error)
            atexit.register(_exit_with_1)

    def aggregated(results: dict[str, Any], samples: dict[str, Any] | None = None) -> None:
        results_of(results=results, samples=samples)
        complete(results, {})

    def of_task(task_name: str, samples: Any) -> None:
        samples_of(task_name=task_name, samples=samples)
        complete({}, {task_name: samples})

    tracker.save_results_aggregated, tracker.save_results_samples = aggregated, of_task


def _exit_with_1() -> None:
    # the exit code is decided already; only this changes it
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def score_table(results: Mapping[str, Any]) -> str:
    """Return the harness's table of scores, and that of the groups if there are any."""
    from lm_eval.utils import make_table

    parts = [make_table(results)]
    if results.get("groups"):
        parts.append(make_table(results, "groups"))
    return "\n".join(parts)


def _ask_git_only_in_a_work_tree() -> None:
    """Keep the harness from calling git outside a work tree, where git prints ``fatal: not a git repository``.

    The harness asks for the commit of the current folder after every run, and passes on whatever git prints. Inside a
    work tree it still does.
    """
    from lm_eval import evaluator
    from lm_eval.loggers.utils import get_git_commit_hash

    def commit() -> str | None:
        here = Path.cwd()
        inside = "GIT_DIR" in os.environ or any((folder / ".git").exists() for folder in (here, *here.parents))
        found: str | None = get_git_commit_hash() if inside else None
        return found

    evaluator.get_git_commit_hash = commit


# -------------------------------------------------------------------- task


class _Rows(list[dict[str, Any]]):
    """The rows as the harness handles them: a list with the one attribute that it asks of a dataset."""

    features: Mapping[str, Any] = {}


class RowResult(NamedTuple):
    """The scores of one row: its record, the judges' votes on it if there are any, its values by metric."""

    record: dict[str, Any]
    votes: dict[str, Any] | None
    values: Mapping[str, float]


class _MeanOfScored:
    """The harness's mean, over lists in which the ranks left None where a row has no value.

    It equals the harness's own function, because that is how the harness finds the standard error of a mean; and it
    takes the None out of the list it is given, because the standard error is computed from the same list next. A list
    of nothing but None does not reach it: the first rank leaves such a metric out.
    """

    def __call__(self, values: list[float | None]) -> float:
        values[:] = [v for v in values if v is not None]
        return float(mean(values))

    def __eq__(self, other: object) -> bool:
        return other is self or other is mean

    def __hash__(self) -> int:
        return hash(mean)


mean_of_scored = _MeanOfScored()


class _OfTheTask:
    """The score of a task as a whole, which no row has: every row leaves None in the list.

    ``found`` gives the score and the values whose mean it is. These take the place of the rows, and the aggregation
    equals the harness's mean, so that the harness computes the standard error over them.
    """

    def __init__(self, found: Callable[[], tuple[float | None, list[float]]]) -> None:
        self._found = found

    def __call__(self, values: list[float | None]) -> float | None:
        score, values[:] = self._found()
        return score

    def __eq__(self, other: object) -> bool:
        return other is self or other is mean

    def __hash__(self) -> int:
        return hash(mean)


def _run_together() -> list[Any]:
    """Return the tasks that the harness evaluates together; none while it evaluates none.

    It prepares them one by one, each with its retrieval, and passes them on nowhere.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "evaluate" and "eval_tasks" in frame.f_locals):
        frame = frame.f_back
    return [] if frame is None else list(frame.f_locals["eval_tasks"].values())


class _SampleValues(dict[str, Any]):
    """The values of a row as its sample shows them.

    The harness updates its sample from this mapping, and averages its ``items()``: the row's values and, under
    :data:`UNSCORED`, its record. In the sample, the record and the votes have names of their own, which are no metrics.
    """

    def __init__(self, row: RowResult, values: Mapping[str, float | None]) -> None:
        super().__init__(rows=row.record, **({} if row.votes is None else {"votes": row.votes}), **values)
        self._averaged = {UNSCORED: row.record, **values}

    def items(self) -> Any:
        return self._averaged.items()


class HarnessTask(ConfigurableTask):
    """A task of the harness that asks its subclass for rows, prompts and scores.

    The harness builds a task, iterates over its rows, renders a prompt for each, filters the replies, scores row by
    row and averages. Its callbacks run several times, on all rows, and in its own order; the abstract methods
    are asked once for each thing they do.
    """

    _rows: _Rows
    _results: Mapping[str, RowResult]
    # the rows that --samples names, and (rank, world size)
    _samples: list[int] | None = None
    _checked = False
    _world: tuple[int, int] = (0, 1)

    def __init__(self, config: dict[str, Any]) -> None:
        self._name = str(config.get("task", "?"))
        check_file_name(self._name, "the task's name")
        _watch_tracker()
        super().__init__(config=config)

    # ------------------------------------------------- asked of the subclass

    @abstractmethod
    def load_rows(self) -> list[dict[str, Any]]:
        """Load the benchmark; return its rows, each with a unique ``id``."""

    @abstractmethod
    def retrieved_rows(self, rows: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows of these ids with their passages."""

    @abstractmethod
    def check(self, *, judged: bool = True) -> None:
        """Raise for what would end the run after a retrieval; ``judged``: replies are scored, too."""

    @abstractmethod
    def begin(self, model: Any) -> None:
        """Prepare for a run; ``model`` is the harness's object, None where it is unknown."""

    @abstractmethod
    def rendered(self) -> None:
        """Note that all prompts are rendered."""

    @abstractmethod
    def conversation(
        self, row: Mapping[str, Any], system: str | None, chat_template: Callable[..., Any] | None, prefix: str | None
    ) -> Any:
        """Return the prompt of a row: a string, or what ``chat_template`` makes of its turns."""

    @abstractmethod
    def option_texts(self, row: Mapping[str, Any]) -> list[str]:
        """Return the texts whose likelihoods are compared (``output_type: multiple_choice``)."""

    @abstractmethod
    def user_turn(self, row: Mapping[str, Any]) -> str:
        """Return the user turn of a row, without its passages if it has none yet."""

    @abstractmethod
    def reference(self, row: Mapping[str, Any]) -> str:
        """Return the answer that the sample file shows as the target."""

    @abstractmethod
    def score_replies(self, replies: Mapping[str, Sequence[Any]]) -> dict[str, RowResult]:
        """Score all rows of this rank, given each row's filtered replies by id."""

    @abstractmethod
    def value_names(self) -> dict[str, bool | None]:
        """Return the metrics that the harness averages, each with whether higher is better."""

    @abstractmethod
    def summarize_records(self, records: Sequence[Mapping[str, Any]]) -> float:
        """Compute all scores from the gathered records; return the share of rows without a score (:data:`UNSCORED`)."""

    @abstractmethod
    def task_score_names(self) -> dict[str, bool | None]:
        """Return the scores that only the task as a whole has, each with whether higher is better."""

    @abstractmethod
    def task_score(self, name: str) -> tuple[float | None, list[float]]:
        """Return such a score, and the values whose mean it is, if any; asked after :meth:`summarize_records`."""

    @abstractmethod
    def published_config(self, harness: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the result file shows in addition to the harness's own configuration of the task."""

    # ------------------------------------------------------------------ rows

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Load the benchmark (called by the base class while it is built)."""
        self._rows = _Rows(self.load_rows())
        self.dataset = {"test": self._rows}

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return True

    def test_docs(self) -> _Rows:
        return self._rows

    def fewshot_docs(self) -> None:
        """Return None: the base class would load and keep every row for shots that this task never takes."""

    def doc_iterator(
        self, *, rank: int = 0, limit: int | None = None, world_size: int = 1, samples: list[int] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Iterate over the base class's rows, with their passages; retrieval runs once, for those rows alone.

        ``samples`` keep the order they are given in, which is the order in which the harness names them afterwards.
        """
        self._samples = list(samples) if samples else None
        numbered = self._numbered(rank, limit, world_size, samples)
        rows = self.retrieved_rows([row for _, row in numbered])
        return iter(list(zip((number for number, _ in numbered), rows, strict=True)))

    def _numbered(
        self, rank: int, limit: int | None, world_size: int, samples: list[int] | None
    ) -> list[tuple[int, str]]:
        """Return the rows' ids under the numbers that the harness gives them."""
        if samples:
            numbered: list[tuple[int, Any]] = list(enumerate(self._chosen(samples)))[rank::world_size]
        else:
            numbered = list(super().doc_iterator(rank=rank, limit=limit, world_size=world_size))
        return [(number, str(row["id"])) for number, row in numbered]

    def rows_to_run(self, limit: float | None = None, samples: Mapping[str, list[int]] | None = None) -> list[str]:
        """Return the ids of the rows that a run with these flags of the harness has; nothing is retrieved for them."""
        chosen = (samples or {}).get(self._name)
        return [row for _, row in self._numbered(0, get_sample_size(self, limit), 1, chosen)]

    def _chosen(self, samples: Sequence[int]) -> list[dict[str, Any]]:
        n = len(self._rows)
        if len(set(samples)) < len(samples):
            twice = next(s for i, s in enumerate(samples) if s in samples[:i])
            raise DataError(f"task {self._name}: --samples names row {twice} twice", "name every row once")
        for number in samples:
            if not 0 <= number < n:
                raise DataError(f"task {self._name}: --samples names row {number}, there are {n}", f"use 0 to {n - 1}")
        return [self._rows[number] for number in samples]

    # --------------------------------------------------------------- prompts

    def build_all_requests(self, **kwargs: Any) -> None:
        """Render the prompts of this rank's rows.

        The harness's request cache is never used: it ignores ``--samples`` and knows nothing of the passages.
        """
        asked = kwargs.pop("cache_requests", False), kwargs.pop("rewrite_requests_cache", False)
        if any(asked):
            log.warning("[%s] the request cache is not used: prompts depend on what is retrieved", self._name)
        check_tasks(_run_together() or [self], judged=not self.predict_only)
        self._world = (kwargs.get("rank", 0), kwargs.get("world_size", 1))
        self._results = {}
        self.begin(getattr(kwargs.get("chat_template"), "__self__", None))
        super().build_all_requests(cache_requests=False, rewrite_requests_cache=False, **kwargs)
        self.rendered()

    def check_once(self, *, judged: bool) -> None:
        """Check the task, unless it was checked together with one before it."""
        if not self._checked:
            self.check(judged=judged)
            self._checked = True

    def fewshot_context(
        self,
        doc: Mapping[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., Any] | None = None,
        gen_prefix: str | None = None,
    ) -> Any:
        """Return the prompt of one row; as chat turns where a chat template is applied."""
        if num_fewshot:
            raise DataError(
                f"task {self._name}: {num_fewshot} shots asked for, but a retrieval task has none to draw from",
                "leave --num_fewshot out",
            )
        return self.conversation(doc, system_instruction, chat_template if apply_chat_template else None, gen_prefix)

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> Any:
        """Return one request a row for its reply, or one an option for their likelihoods."""
        if not self.by_likelihood:
            return super().construct_requests(doc, ctx, **kwargs)
        kept = {key: kwargs[key] for key in ("metadata",) if key in kwargs}
        return [
            Instance(request_type="loglikelihood", doc=dict(doc), arguments=(ctx, text), idx=i, **kept)
            for i, text in enumerate(self.option_texts(doc))
        ]

    def doc_to_text(self, doc: Mapping[str, Any], doc_to_text: Any = None) -> str:
        return self.user_turn(doc)

    def doc_to_target(self, doc: Mapping[str, Any], doc_to_target: Any = None) -> str:
        return self.reference(doc)

    # --------------------------------------------------------------- scoring

    @property
    def by_likelihood(self) -> bool:
        """Return whether the options' likelihoods are compared instead of reading a reply."""
        return bool(self.OUTPUT_TYPE == "multiple_choice")

    @property
    def predict_only(self) -> bool:
        """Return whether replies are only written to the samples (``--predict_only``)."""
        return "bypass" in self._metric_fn_list

    @property
    def prompts(self) -> int:
        """Return the number of requests of this rank."""
        return len(self._instances or ())

    def apply_filters(self) -> Any:
        """Filter the replies, then judge and score all rows of this rank in one batch."""
        out = super().apply_filters()
        if self.predict_only or not self._instances:
            return out
        replies: dict[str, list[Any]] = {}
        for instance in self._instances:
            (reply,) = instance.filtered_resps.values()
            replies.setdefault(instance.doc["id"], []).append(reply)
        self._results = self.score_replies(replies)
        return out

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Return the row's values: numbers for the harness's averages, one record for ours, and the judges' votes."""
        if self.predict_only:
            return {"bypass": 999}
        row = self._results[doc["id"]]
        out: dict[str, float | None] = {}
        rank, world_size = self._world
        for name in self.value_names():
            if name in row.values:
                out[name] = row.values[name]
            elif world_size > 1 and (rank != 0 or any(name in other.values for other in self._results.values())):
                # The harness joins the ranks' lists by the first rank's keys, and breaks where another lacks one.
                out[name] = None
        return _SampleValues(row, out | dict.fromkeys(self.task_score_names()))

    def aggregation(self) -> dict[str, Callable[[Sequence[Any]], Any]]:
        """Return the harness's own mean where every value is a number (it brings ±), ours where ranks hold None."""
        if self.predict_only:
            return dict(self._aggregation_list)
        average: Callable[[Any], Any] = mean if self._world[1] == 1 else mean_of_scored
        averages: dict[str, Callable[[Any], Any]] = dict.fromkeys(self.value_names(), average)
        for name in self.task_score_names():
            averages[name] = _OfTheTask(partial(self.task_score, name))
        return {UNSCORED: self.summarize_records, **averages}

    def higher_is_better(self) -> dict[str, bool | None]:
        if self.predict_only:
            return dict(self._higher_is_better)
        return {UNSCORED: False, **self.value_names(), **self.task_score_names()}

    def dump_config(self) -> dict[str, Any]:
        """Return the harness's configuration of the task and ours; called after all rows are aggregated."""
        _ask_git_only_in_a_work_tree()
        out: dict[str, Any] = self.config.to_dict()
        return out | self.published_config(out)
