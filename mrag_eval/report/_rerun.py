"""The command that repeats a run, read from its result file, and the comparison of the two runs' numbers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.config import DECIDING, EVALUATED, deep_merge, differences, package_versions, secret_in
from mrag_eval.platform import (
    REPEATED_DECODING,
    REPEATED_MODEL,
    DataError,
    is_plain_name,
    names_secret,
    repeatable,
    to_json,
    visible,
)
from mrag_eval.report.files._results import ResultFile, read_results
from mrag_eval.report.files._task_config import TaskConfig

# Flags that need not be given.
_DEFAULTS: Mapping[str, tuple[Any, ...]] = {"batch_size": (None, 1), "device": (None, "cuda:0")}
_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
# Characters that end a value of the harness's key=value form, or begin another kind of value.
_NOT_PLAIN = frozenset(",=\"'{}[]() \n\t")


@dataclass(frozen=True)
class Rerun:
    """The arguments of ``mrag-eval run`` that repeat a run, and notes on what the result file does not contain.

    ``withheld`` names the settings that are not among them, for they may run code, or name a host, a file or a folder.
    """

    source: Path
    arguments: tuple[str, ...]
    notes: tuple[str, ...]
    withheld: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Return the command as one line for a shell."""
        return shlex.join(["mrag-eval", "run", *self.arguments])


def rerun(path: Path, output_path: Path, own_tasks: Path, *, trust: bool = False) -> Rerun:
    """Return the command that repeats the run of a result file (for a folder, its newest), writing to ``output_path``.

    Names, numbers, flags and texts for a model are repeated. What else the file says, such as code, hosts and folders,
    stands in a note, and in the command only if the user can ``trust`` the file.

    ``own_tasks`` is the folder of tasks that need no ``--include_path``. Secrets are never part of the command: an
    argument that looks like one is left out, and the notes name it. Raises DataError for a file that is not a result
    file, for results without a task of ours, and for a log that was scored: no model ran.
    """
    file = read_results([path], judged=False)[-1]
    if not file.leaves:
        raise DataError(f"{file.path}: no task of ours in these results", "name the results_*.json of a run of ours")
    if all(leaf.config.setting("replies") == "given" for leaf in file.leaves.values()):
        raise DataError(
            f"{file.path}: the replies are those of a log, so that there is no run to repeat",
            f"score the log again: mrag-eval score LOG --output_path {output_path}",
        )
    content = file.content
    configs = {task: leaf.config for task, leaf in file.leaves.items()}
    notes: list[str] = []
    said = _Said(trust)
    arguments = [
        *_model(file.run, notes, said),
        *("--tasks", ",".join(said.names("tasks", _asked_for(file)))),
        *_task_files(configs, own_tasks, notes, said),
        *_metadata(file, configs, notes, said),
        *_rows(file, configs),
        *_prompting(content, notes, said),
    ]
    if any(file.path.parent.glob(f"samples_*_{file.path.stem.removeprefix('results_')}.jsonl")):
        arguments.append("--log_samples")
    arguments += ["--output_path", str(output_path)]
    if said.withheld:
        told = "; ".join(f"{key}={value}" for key, value in said.withheld.items())
        notes.insert(0, f"left out, since only you can allow it (--trust): {visible(told)}")
    notes += _not_in_the_file(configs)
    return Rerun(file.path, tuple(arguments), tuple(notes), tuple(said.withheld))


@dataclass(frozen=True)
class _Said:
    """What a file says that its reader has to allow: ``withheld`` keeps it by its key, in one line."""

    trust: bool
    withheld: dict[str, str] = field(default_factory=dict)

    def settings(self, where: str, given: Mapping[str, Any], known: Collection[str] | None = None) -> dict[str, Any]:
        """Return the settings that may be repeated."""
        if self.trust:
            return dict(given)
        kept, rest = repeatable(given, known)
        self.withheld.update({f"{where}.{key}": _line(value) for key, value in rest})
        return kept

    def names(self, where: str, given: Sequence[str]) -> list[str]:
        """Return the texts that are plain names."""
        kept = [name for name in given if self.trust or is_plain_name(name)]
        if len(kept) < len(given):
            self.withheld[where] = _line([name for name in given if name not in kept])
        return kept


def _line(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)


def _arguments(args: Any) -> dict[str, Any]:
    if isinstance(args, str):
        from mrag_eval.harness import parse_arguments

        return parse_arguments(args)
    return dict(args or {})


def _model(run: Mapping[str, Any], notes: list[str], said: _Said) -> list[str]:
    out = [word for name in said.names("model", [str(run.get("model") or "hf")]) for word in ("--model", name)]
    kept = {}
    for key, value in _arguments(run.get("model_args")).items():
        # a stand-in for a key is none that this machine needs
        if secret_in({key: value}) is None and not names_secret(key):
            kept[key] = value
        else:
            notes.append(f"model_args {key} is left out: it holds a secret, which belongs in the environment")
    for flag, given, known in (
        ("model_args", kept, REPEATED_MODEL),
        ("gen_kwargs", _arguments(run.get("gen_kwargs")), REPEATED_DECODING),
    ):
        if found := said.settings(flag, given, known):
            out += [f"--{flag}", _key_values(found)]
    flags = {key: run[key] for key in ("batch_size", "device") if run.get(key) not in _DEFAULTS[key]}
    for key, value in said.settings("config", flags).items():
        out += [f"--{key}", str(value)]
    if all(key in run for key in _SEEDS):
        seeds = said.settings("config", {key: run[key] for key in _SEEDS})
        out += ["--seed", ",".join(str(seeds.get(key)) for key in _SEEDS)]
    if run.get("use_cache"):
        notes.append("replies may have come from a cache (--use_cache), which this command does not use")
    return out


def _key_values(values: Mapping[str, Any]) -> str:
    """Return ``key=value,...`` if the harness reads that back unchanged, else JSON."""
    plain = all(isinstance(v, bool | int | float | str) and not _NOT_PLAIN & set(str(v)) for v in values.values())
    if plain and not any(isinstance(v, str) and _reads_as_other(v) for v in values.values()):
        return ",".join(f"{key}={value}" for key, value in values.items())
    return json.dumps(dict(values), ensure_ascii=False)


def _reads_as_other(text: str) -> bool:
    """Return whether the harness would read the text as a number, a boolean or null."""
    try:
        float(text)
    except ValueError:
        return text.lower() in ("true", "false", "none", "")
    return True


def _asked_for(file: ResultFile) -> list[str]:
    """Return the tasks and groups that no other group contains."""
    inner = {child for children in file.groups.values() for child in children}
    named = [name for name in file.groups if name not in inner]
    return named + [task for task in file.configs if task not in inner and task not in named]


def _task_files(configs: Mapping[str, TaskConfig], own_tasks: Path, notes: list[str], said: _Said) -> list[str]:
    files = [config.file for config in configs.values() if config.file is not None]
    foreign = [file for file in files if not _is_own(file, own_tasks)]
    folders = sorted({str(file.parent) for file in foreign})
    missing = next((file for file in foreign if not file.is_file()), None)
    if missing is not None:
        notes.append(f"a task was read from {missing}, which is not there: name its folder with --include_path")
    if len(folders) > 1:
        notes.append(f"tasks were read from {len(folders)} folders, name one above them all: {', '.join(folders)}")
    if folders and not said.trust:
        said.withheld["include_path"] = _line(folders[0])
        return []
    return ["--include_path", folders[0]] if folders else []


def _is_own(file: Path, own_tasks: Path) -> bool:
    """Return whether the task file belongs to the package, wherever that was installed on the machine of the run."""
    if file.is_relative_to(own_tasks):
        return True
    parts = file.parts
    starts = [i + 1 for i, part in enumerate(parts) if part in ("tasks", "mrag_eval")]
    return any((own_tasks / Path(*parts[i:])).is_file() for i in starts if parts[i:])


def _metadata(file: ResultFile, configs: Mapping[str, TaskConfig], notes: list[str], said: _Said) -> list[str]:
    given = {task: deep_merge(config.from_file, config.overrides) for task, config in configs.items()}
    settings = list(given.values())
    # what all tasks were given, or each under its name
    same = all(other == settings[0] for other in settings)
    merged = dict(settings[0]) if same else {task: blocks for task, blocks in given.items() if blocks}
    args = file.run.get("model_args") or {}
    for config in configs.values():
        merged |= {key: value for key, value in config.context.items() if key not in args}
    merged = said.settings("metadata", merged)
    return ["--metadata", json.dumps(merged, ensure_ascii=False)] if merged else []


def _rows(file: ResultFile, configs: Mapping[str, TaskConfig]) -> list[str]:
    samples = {task: config.samples for task, config in configs.items() if config.samples}
    if samples:
        return ["--samples", json.dumps(samples)]
    limit = file.run.get("limit")
    if limit is not None:
        return ["--limit", str(int(limit)) if float(limit).is_integer() else str(limit)]
    return []


def _prompting(content: Mapping[str, Any], notes: list[str], said: _Said) -> list[str]:
    out: list[str] = []
    if content.get("system_instruction"):
        told = said.settings("system_instruction", {"system": str(content["system_instruction"])})
        out += [word for text in told.values() for word in ("--system_instruction", text)]
    if content.get("chat_template") is not None:
        out.append("--apply_chat_template")
        notes.append("a chat template was applied; if it was one of several by name, add the name")
    if content.get("fewshot_as_multiturn"):
        out += ["--fewshot_as_multiturn", "true"]
    shots = {n for n in (content.get("n-shot") or {}).values() if isinstance(n, int)}
    if shots - {0}:
        out += ["--num_fewshot", str(max(shots))] if len(shots) == 1 else []
        if len(shots) > 1:
            notes.append(f"tasks had different numbers of shots ({', '.join(map(str, sorted(shots)))})")
    if any("bypass,none" in scores for scores in (content.get("results") or {}).values()):
        out.append("--predict_only")
    return out


def _not_in_the_file(configs: Mapping[str, TaskConfig]) -> list[str]:
    notes = []
    models = {
        name: model
        for config in configs.values()
        for name, model in config.models.items()
        if config.agent.get(name) != EVALUATED
    }
    if models:
        named = ", ".join(f"{name} ({model})" for name, model in models.items())
        notes.append(f"models of the config file (mrag.yaml) that it needs: {named}")
    corpora = {config.corpus or "benchmark" for config in configs.values() if config.index} - {"benchmark"}
    if corpora:
        notes.append(f"corpora that it needs: {', '.join(sorted(corpora))}")
    there: Mapping[str, str] = next((config.versions for config in configs.values()), {})
    here = package_versions()
    other = [f"{name} {there.get(name, 'none')} (here {here.get(name, 'none')})" for name in sorted({*there, *here})
             if there and there.get(name) != here.get(name)]  # fmt: skip
    if other:
        notes.append(f"it ran with other versions: {', '.join(other)}")
    return notes


@dataclass(frozen=True)
class RepeatedTask:
    """One task of a run and of its repetition.

    ``differing`` names the keys in which they measure something else. ``numbers`` counts figures. ``other`` holds the
    figures that differ: metric -> (before, after).
    """

    task: str
    differing: tuple[str, ...]
    numbers: int
    other: Mapping[str, tuple[float | None, float | None]]

    @property
    def line(self) -> str:
        """Return the comparison as one line."""
        same = f"measured otherwise ({', '.join(self.differing)})" if self.differing else "the same measurement"
        if not self.other:
            return f"{self.task}: {same}, all {self.numbers} numbers equal"
        shown = "; ".join(f"{name} {_figure(a)}, now {_figure(b)}" for name, (a, b) in list(self.other.items())[:5])
        return f"{self.task}: {same}, {len(self.other)} of {self.numbers} numbers differ: {shown}"


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def repeated(first: Path, second: Path) -> list[RepeatedTask]:
    """Compare every task of the first result file with the same task of the second: values, intervals and counts."""
    before, after = (read_results([path], judged=False)[-1] for path in (first, second))
    out = []
    for task, leaf in before.leaves.items():
        again = after.leaves.get(task)
        if again is None:
            raise DataError(f"{after.path}: task '{task}' of {before.path} is missing", "run the whole command")
        unlike = differences(leaf.measurement, again.measurement, (*DECIDING, "environment"))
        differing = tuple(found.key for found in unlike)
        a, b = _numbers(to_json(leaf.metrics)), _numbers(to_json(again.metrics))
        names = list(dict.fromkeys([*a, *b]))
        unequal = {name: (a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)}
        out.append(RepeatedTask(task, differing, len(names), unequal))
    return out


def _numbers(value: Any, path: str = "") -> dict[str, float | None]:
    """Return every number in nested mappings under its dotted path."""
    if isinstance(value, Mapping):
        return {k: v for key in value for k, v in _numbers(value[key], f"{path}.{key}" if path else str(key)).items()}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {path: value}
    return {}
