"""Reading the harness's result files: one run of one model, its tasks and their scores."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.core import DataError

# The model arguments that the harness takes a model's name from.
_NAMING_ARGUMENTS = {"peft", "delta", "pretrained", "model", "path", "engine"}
_CELL = re.compile(r"(.+)\[(.+)\]")
_CHAINS = ("selection", "attribution")


@dataclass(frozen=True)
class LeafResult:
    """One task of a run: its metrics (0 to 1, with interval and n), what is unscored and why, and how it was run.

    ``directions``: metric -> whether more is better, None where more is neither better nor worse.
    """

    task: str
    metrics: Mapping[str, Mapping[str, Any]]
    unscored: Mapping[str, Mapping[str, int]]
    config: Mapping[str, Any] = field(repr=False)
    directions: Mapping[str, bool | None] = field(default_factory=dict, repr=False)

    def higher_is_better(self, metric: str) -> bool | None:
        """The metric's direction; where the results name no directions at all, more is taken for better."""
        return self.directions.get(metric) if self.directions else True

    def score(self, name: str) -> Mapping[str, Any] | None:
        """A metric's score, or a part of one; None where there is none.

        ``hit@20[en->ar]`` is the score of a pair of question and document language, ``hit@20[cross_language]`` a mean
        over such pairs; ``selection.retrieved`` and ``attribution.correct_if_kept`` are links of the chain from
        retrieval to the answer.
        """
        if name in self.metrics:
            return self.metrics[name]
        cell = _CELL.fullmatch(name)
        if cell is not None:
            parts = self.metrics.get(cell[1]) or {}
            pairs = (parts.get("by") or {}).get("pair") or {}
            return pairs.get(cell[2]) or (parts.get("macro") or {}).get(cell[2])
        chain, _, link = name.partition(".")
        if chain not in _CHAINS:
            return None
        return ((self.config["scores"].get(chain) or {}).get("overall") or {}).get(link)


@dataclass(frozen=True)
class ResultFile:
    """One ``results_*.json``: the model by its name, when it ran (UNIX seconds), and its tasks."""

    path: Path
    model: str
    date: float
    leaves: Mapping[str, LeafResult]


def read_results(paths: Sequence[Path]) -> list[ResultFile]:
    """The result files at ``paths`` (files, or folders searched for ``results_*.json``), in order of their date.

    Raises DataError naming the path that is missing, holds no result file or is not one.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("results_*.json"))
            if not found:
                raise DataError(f"{path}: no results_*.json in this folder", "name the --output_path of a run")
            files |= dict.fromkeys(found)
        elif path.is_file():
            files[path] = None
        else:
            raise DataError(f"{path}: no such file or folder", "name the --output_path of a run")
    return sorted((_read(path) for path in files), key=lambda result: (result.date, str(result.path)))


def _read(path: Path) -> ResultFile:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as err:
        raise DataError(
            f"{path}: not readable as JSON ({err})",
            "the run may have been cut off: run it again, or name another file",
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get("configs"), dict):
        raise DataError(f"{path}: not a result file of lm_eval (no 'configs')", "name the results_*.json of a run")
    leaves = {}
    for task, config in content["configs"].items():
        if isinstance(config, dict) and isinstance(config.get("scores"), dict):
            scores = config["scores"]
            metrics = {**(scores.get("metrics") or {}), **_of_the_task(scores)}
            leaves[task] = LeafResult(
                task,
                metrics,
                scores.get("unscored") or {},
                config | _of_the_run(content, config),
                (content.get("higher_is_better") or {}).get(task) or {},
            )
    date = content.get("date")
    return ResultFile(path, model_name(content), float(date) if isinstance(date, int | float) else 0.0, leaves)


def _of_the_task(scores: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Scores of the task as a whole under names of their own: ``concurrence.KB_CS``, ``concurrence.random.KB_CS``."""
    found = scores.get("concurrence")
    if not isinstance(found, Mapping):
        return {}
    out = {f"concurrence.{name}": score for name, score in (found.get("intervals") or {}).items()}
    out |= {f"concurrence.{name}": score for name, score in (found.get("rates") or {}).items()}
    out |= {f"concurrence.random.{name}": {"value": value} for name, value in (found.get("random") or {}).items()}
    return out


def _of_the_run(content: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What a leaf takes from its run: the seed, and how options were scored where the model decides that."""
    run = content.get("config") or {}
    generation = run.get("gen_kwargs")
    seed = (generation.get("seed") if isinstance(generation, Mapping) else None) or run.get("torch_seed")
    by_path = config.get("scored_by") == "likelihood" and run.get("model") == "hf-greedy-path"
    return {"seed": seed} | ({"scored_by": "greedy path"} if by_path else {})


def model_name(content: Mapping[str, Any]) -> str:
    """The evaluated model's name; of a local folder its last part.

    For a model whose arguments name none (``oracle_answer``) the harness makes up a name, another one in each run.
    """
    run = content.get("config") or {}
    args = run.get("model_args") or {}
    keys = [part.partition("=")[0].strip() for part in args.split(",")] if isinstance(args, str) else list(args)
    if isinstance(run.get("model"), str) and not set(keys) & _NAMING_ARGUMENTS:
        return str(run["model"])
    named = args.get("pretrained") or args.get("model") if isinstance(args, dict) else None
    name = str(content.get("model_name") or named or run.get("model") or "unnamed model")
    return Path(name).name if name.startswith(("/", ".", "~")) else name
