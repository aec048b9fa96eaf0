"""The harness's command: its flags, an evaluation, and the table of scores."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, get_type_hints

from lm_eval.tasks import TaskManager

from mrag_eval.harness._result_files import hash_of, run_files
from mrag_eval.platform import ConfigError, UnwrittenError, beside, did_you_mean, keep_for_repetition, remove_ended

_FLAGS = "mrag-eval run --help   lists the flags used most, lm_eval run --help all of them"
_PLAN = "mrag-eval plan --tasks NAME   shows what a run needs and costs, without one"


class _Flags(ArgumentParser):
    """A parser that raises ConfigError for a wrong flag, instead of printing its usage."""

    def error(self, message: str) -> NoReturn:
        # the harness gives some values a type without a name
        message = re.sub(r"invalid functools\.partial\(.*\) value: ", "not a valid value: ", " ".join(message.split()))
        raise ConfigError(message.removeprefix("argument "), _PLAN if "--dry-run" in message else _FLAGS)


def run_parser() -> ArgumentParser:
    """Return a parser of ``run`` and its flags as the harness's command has them."""
    from lm_eval._cli.run import Run

    parser = _Flags(prog="mrag-eval", add_help=False)
    Run.create(parser.add_subparsers(dest="command"))
    return parser


def metadata_of_command() -> Mapping[str, Any]:
    """Return what ``--metadata`` of the harness's own command says; empty if that cannot be told."""
    words = sys.argv[1:]
    try:
        found = run_parser().parse_known_args(words if words[:1] == ["run"] else ["run", *words])[0].metadata
    except (ConfigError, ValueError, SystemExit):
        return {}
    return found if isinstance(found, Mapping) else {}


@cache
def setting_types() -> dict[str, Any]:
    """Return the settings of a run, as flags and as keys of a ``--config`` file, with the type of each."""
    from lm_eval.config.evaluate_config import EvaluatorConfig

    return get_type_hints(EvaluatorConfig)


def config_file_settings(path: str) -> dict[str, Any]:
    """Return the settings of a ``--config`` file; raise ConfigError if it cannot be read."""
    from lm_eval.config.evaluate_config import EvaluatorConfig

    fix = "write the flags of lm_eval run as YAML keys: mrag-eval run --help"
    try:
        found = dict(EvaluatorConfig.load_yaml_config(path))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"--config {path}: {' '.join(str(error).split())}{beside(Path(path))}", fix) from None
    known = setting_types()
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

    Without a device, the model takes the command's: the first GPU if there is one, else the CPU.

    Returns the results with their samples, None on every rank but the first. Raises UnwrittenError, after printing
    the scores, if the files cannot be written.
    """
    from lm_eval import evaluator, simple_evaluate
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.loggers import EvaluationTracker

    if settings.get("device") is None and "device" not in (settings.get("model_args") or {}):
        settings = {**settings, "device": EvaluatorConfig().device}
    # without a path: it would only log what it cannot write
    tracker = EvaluationTracker()
    evaluator.get_git_commit_hash = _commit
    results = simple_evaluate(**settings, task_manager=manager, evaluation_tracker=tracker)
    if results is None:
        return None
    found = dict(results)
    samples = found.pop("samples", None) if settings.get("log_samples") else None
    run = tracker.general_config_tracker
    run.log_end_time()
    found["task_hashes"] = {task: hash_of(rows) for task, rows in (samples or {}).items()}
    found |= asdict(run)
    if output_path:
        try:
            run_files(output_path, run.model_name_sanitized).write(found, samples or {})
        except UnwrittenError:
            keep_for_repetition()
            print(score_table(found))
            raise
    # a further run of this process may plan before it is known to the harness
    remove_ended()
    return found


def _commit() -> str | None:
    """Return the commit of the repository that holds the working folder.

    Git is not asked outside of one, where it prints an error.
    """
    from lm_eval.loggers.utils import get_git_commit_hash

    here = Path.cwd()
    inside = "GIT_DIR" in os.environ or any((folder / ".git").exists() for folder in (here, *here.parents))
    return get_git_commit_hash() if inside else None


def score_table(results: Mapping[str, Any], main: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the tasks' ``main`` metrics, the harness's table of scores, and that of the groups if there are any."""
    from lm_eval.utils import make_table

    found: dict[str, list[str]] = {}
    for task, metric in main.items():
        value = (results["results"].get(task) or {}).get(f"{metric},none")
        if isinstance(value, float):
            found.setdefault(metric, []).append(f"{task} {value:.4f}")
    parts = [*(f"main metric {metric}: {', '.join(values)}" for metric, values in found.items()), make_table(results)]
    if results.get("groups"):
        parts.append(make_table(results, "groups"))
    return "\n".join(parts)
