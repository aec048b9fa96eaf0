"""Which retrieval strategy to use: every feasible one, measured on the user's own questions and documents."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from mrag_eval._front._arguments import Block, folder_for
from mrag_eval._front._evaluate import evaluate
from mrag_eval._front._strategy_data import OwnData, read_own
from mrag_eval._front._strategy_grid import Strategy, strategies_of
from mrag_eval._front._strategy_merges import merge_gains
from mrag_eval._front._strategy_verdict import Measured, Strategies, ranked
from mrag_eval.config import RAG, SHOWN, check_metrics, deep_merge, listed_by, relevance_measures, undotted
from mrag_eval.datasets import OWN_ROWS
from mrag_eval.platform import ConfigError, Count, DataError, MragError, Natural, content_key, json_from, write_whole

if TYPE_CHECKING:
    from mrag_eval.planning import Plan
    from mrag_eval.report import ResultFile
    from mrag_eval.scoring import RowRecord, TaskScores
    from mrag_eval.task import RagTask

# Questions that are searched for one at a time, to see how long it takes; the first one loads what has to be loaded.
_TIMED = 10
_NO_MODEL = "dummy"
# Blocks that the command writes itself.
_OWN = {"metrics": "name one with --metric", "data": "name questions and documents as arguments"}
_TASK = {
    "output_type": "generate_until",
    "num_fewshot": 0,
    "generation_kwargs": {"do_sample": False, "max_gen_toks": 64, "until": ["\n\n"]},
    "metadata": {"version": 1},
}


def strategies(
    questions: Any,
    documents: str | Path,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    settings: Block | None = None,
    model: str | None = None,
    model_args: str | Mapping[str, Any] | None = None,
    metric: str | None = None,
    pilot: Count = 20,
    max_calls: Natural | None = None,
    columns: Mapping[str, str] | None = None,
    lang: str | None = None,
    chunker: str = "words",
    size: Count = 100,
    output: str | Path | None = None,
    apply_chat_template: bool | str = True,
    device: str | None = None,
    batch_size: int | str = 1,
    seed: Natural = 0,
) -> Strategies:
    """Measure retrieval strategies on questions and documents of yours, and say which one to use.

    Every strategy retrieves for every question, as ``mrag-eval retrieve`` does, and with ``model`` answers it. What is
    in ``output`` already is neither searched nor asked for again.

    Args:
        questions: a JSON Lines, JSON, CSV or Parquet file, a DataFrame, or dictionaries: ``query``, ``relevant_ids``
            (ids, file names or titles), and as far as they are known ``id``, ``lang`` and ``answers``.
        documents: a folder of texts, or JSON Lines with ``id``, ``lang`` and ``text``.
        vary: key of the ``retrieval`` block -> its values, the default's first; by default every mode, and the kinds
            dense, bm25 and hybrid.
        settings: blocks that all strategies have, such as ``{"retrieval": {"k": 3}}``.
        model: The type of a model that answers. Without it, none is asked.
        model_args: Its arguments, as in `mrag-eval run`.
        metric: The metric that decides. The default is shown@k, with a model char3gram_recall.
        pilot: With --max_calls: how many questions every strategy is tried on first.
        max_calls: The most calls to models, as `mrag-eval plan` counts them.
        columns: the columns of questions of another shape, as in :func:`score`.
        lang: The language of questions that name none. By default it is detected.
        chunker: How documents are cut, as in `mrag-eval index build`.
        size: Words or tokens of a passage.
        output: the folder for everything, and to go on with; a temporary one by default.
        apply_chat_template: Whether the model has a chat template.
        device: Where the model runs.
        batch_size: The model's batch size.
        seed: Random seed of the pilot's questions, and of resampling.

    Raises:
        ConfigError, DataError: with the next step, for data that cannot be read and if no strategy can run.
    """
    from mrag_eval.models import register_model_types

    register_model_types()
    name = metric or OWN_ROWS.in_order((SHOWN, *(() if model is None else ("char3gram_recall",))))[0]
    _check(name, model, pilot)
    blocks = undotted(settings or {})
    for key, step in _OWN.items():
        if key in blocks:
            raise ConfigError(f"--metadata {key}: strategies share their {key}, which the command sets", step)
    asked, refused = strategies_of(vary or {}, answered=model is not None, fixed=blocks.get("retrieval") or {})
    read = Path(documents).expanduser().resolve()
    if output is not None and read.is_dir() and Path(output).expanduser().resolve().is_relative_to(read):
        raise ConfigError(f"output={output} is in {documents}, and would be read as documents", "name another folder")
    data = read_own(questions, documents, columns=columns, lang=lang, chunker=chunker, size=size)
    folder = folder_for(output)
    arguments = {
        "model": model or _NO_MODEL,
        "model_args": model_args,
        "apply_chat_template": apply_chat_template if model is not None else False,
        "device": device,
        "batch_size": batch_size,
        "use_cache": None if model is None else folder / "replies",
    }
    order = f"mrr@{blocks.get('retrieval', {}).get('depth', 20)}"
    metrics = list(dict.fromkeys([name, SHOWN, order, *(["correct_language"] if model is not None else [])]))
    study = _Study(folder, data, data.write(folder), name, arguments, order)
    for one in asked:
        try:
            study.add(one, deep_merge(_TASK, {"metrics": metrics}, blocks))
        except MragError as error:
            refused[one.name] = error
    reasons = {one: _why(one, fault) for one, fault in refused.items()}
    study.check_any(reasons)
    if max_calls is not None:
        study.keep_within(max_calls, pilot, seed, reasons)
    return study.outcome(reasons, seed)


def _check(metric: str, model: str | None, pilot: int) -> None:
    from mrag_eval.scoring import METRIC_NAMES, more_is_better

    check_metrics([metric], METRIC_NAMES, "--metric")
    if model is None and not relevance_measures([metric]):
        raise ConfigError(f"--metric {metric}: it measures answers", "name a --model, or a measure such as shown@k")
    if more_is_better(metric) is not True:
        raise ConfigError(f"--metric {metric}: more of it is not better", "name one of which more is, such as shown@k")
    if model == RAG:
        raise ConfigError("--model rag: a system that retrieves by itself has no strategy of ours", "docs/score.md")
    if pilot < 1:
        raise ConfigError(f"--pilot {pilot}: expected a number of questions from 1", "--pilot 20")


def _why(name: str, error: MragError) -> str:
    """Return a reason in one line, without the name."""
    message = error.message.partition("\n")[0].removeprefix("task ").removeprefix(f"{name}: ")
    step = (error.next_step or "").partition("\n")[0]
    return f"{message} ({step})" if step else message


@dataclass
class _Study:
    """The strategies that can run, and what they are measured with."""

    folder: Path
    data: OwnData
    block: Mapping[str, str]
    metric: str
    arguments: Mapping[str, Any]
    order: str
    asked: dict[str, Strategy] = field(default_factory=dict)
    tasks: dict[str, RagTask] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    bodies: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, one: Strategy, config: Mapping[str, Any]) -> None:
        """Write the task of a strategy, and build it. Raises MragError if it cannot run here."""
        from mrag_eval.harness import load_tasks, task_manager
        from mrag_eval.planning import plan_for

        body = {"task": one.name, **config, "data": dict(self.block), "retrieval": dict(one.block)}
        path = self.folder / "tasks" / f"{one.name}.yaml"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, f"class: !function mrag_eval.task.RagTask\n{_yaml(body)}")
        manager = task_manager([str(path.parent)])
        spec = (str(self.arguments["model"]), _pairs(self.arguments["model_args"]))
        plan = plan_for([one.name], listed_by(manager), {}, model=spec)
        plan.check()
        task = load_tasks(manager, [one.name])[1][one.name]
        if task.supply.skipped:
            skipped = f"the mode skips {len(task.supply.skipped)} of the questions"
            raise DataError(f"{one.name}: {skipped}", "docs/ir_modes.md says what it needs of them")
        self.asked[one.name], self.plans[one.name], self.tasks[one.name] = one, plan, task
        # the name of the folder of questions and documents is a hash of what they hold
        self.bodies[one.name] = body | {"data": Path(self.block["path"]).parent.name}

    def calls(self, name: str) -> float:
        """Return the calls of a question to models."""
        costs = [cost for cost in self.plans[name].costs if cost.of_model]
        return sum(c.calls for c in costs if self.arguments["model"] != _NO_MODEL or c.role != "evaluated") / self._rows

    @property
    def _rows(self) -> int:
        return len(self.data.questions)

    def keep_within(self, most: int, pilot: int, seed: int, refused: dict[str, str]) -> None:
        """Refuse all but the strategies that the calls are enough for: the default, then the best of the pilot.

        Raises ConfigError, before any call, if they are not enough for the pilot and one strategy.
        """
        from mrag_eval.datasets import shared

        rows = [doc.id for doc in shared(self.data.questions, min(1.0, pilot / self._rows), seed)]
        spent = sum(self.calls(name) for name in self.tasks) * len(rows)
        rest = {name: self.calls(name) * (self._rows - len(rows)) for name in self.tasks}
        if spent + min(rest.values()) > most:
            what = f"{len(self.tasks)} strategies make {spent:,.0f} calls for {len(rows)} questions"
            more = f", and one of them {min(rest.values()):,.0f} for the others" if spent <= most else ""
            raise ConfigError(
                f"--max_calls {most}: {what}{more}",
                "allow more, take fewer questions for the --pilot, or name fewer strategies: --vary mode=all,balanced",
            )
        self.retrieve(refused, rows)
        names = [name for name in self.tasks if name not in refused]
        left = most - sum(self.calls(name) for name in names) * len(rows)
        found = self.on_common(self.scores(names, rows), {})[0]
        values = {name: scores.metrics[self.metric].or_else(0.0) for name, scores in found.items()}
        default, *others = names
        for name in (default, *sorted(others, key=lambda name: -values.get(name, 0.0))):
            if rest[name] <= left:
                left -= rest[name]
                continue
            refused[name] = (
                f"the budget leaves {left:,.0f} of the {rest[name]:,.0f} calls that its other questions take"
            )
        self.check_any(refused)

    def retrieve(self, refused: dict[str, str], rows: Sequence[str] | None = None) -> None:
        """Retrieve what is not there yet; a strategy that cannot is refused, and the others go on.

        Raises ConfigError if none is left.
        """
        from mrag_eval.retrieval import open_folder, retrieve_into

        retrieved = open_folder(self.folder / "retrieved")
        for name, task in [*self.tasks.items()]:
            if name in refused:
                continue
            try:
                self.seconds(name)
                if task.supply.blocks.retrieval.retrieves:
                    there, ids = retrieved.tasks.get(name), rows or task.rows_to_run()
                    other = there is not None and there.fingerprint != task.supply.entry().fingerprint
                    retrieve_into(retrieved, name, task.supply, ids, overwrite=other)
            except MragError as error:
                refused[name] = _why(name, error)
        self.check_any(refused)

    def check_any(self, refused: Mapping[str, str]) -> None:
        """Raise ConfigError if no strategy is left."""
        if not self.tasks.keys() - refused.keys():
            name, why = next(iter(refused.items()))
            raise ConfigError(f"no strategy can run here: {name}: {why}", "correct it, or --vary other settings")

    def scores(self, names: Sequence[str], rows: Sequence[str] | None = None) -> ResultFile:
        """Answer what is not there yet; return the results."""
        from mrag_eval.report import read_results

        made = [self.tasks[name].supply.entry().fingerprint for name in names]
        shown = {key: self.arguments[key] for key in ("model", "model_args", "apply_chat_template")}
        key = content_key(made, [self.bodies[name] for name in names], rows, shown)[:12]
        place = self.folder / ("results" if rows is None else "pilot") / key
        files = read_results(sorted(place.rglob("results_*.json"), key=lambda path: path.name)[-1:])
        # what failed is asked again
        if not files or any(leaf.scores.failures for leaf in files[0].leaves.values()):
            numbers = {name: _numbers(self.tasks[name], rows) for name in names} if rows is not None else None
            path = evaluate(
                tasks=list(names),
                include=self.folder / "tasks",
                retrieval={"run_folder": str(self.folder / "retrieved")},
                samples=numbers,
                output=place,
                **self.arguments,
            ).path
            files = read_results([path])
        return files[0]

    def on_common(self, file: ResultFile, refused: dict[str, str]) -> tuple[dict[str, TaskScores], set[str]]:
        """Return the scores of the strategies over the questions that all of them have a value for, and these ids.

        A strategy without a value is refused; if no question is common to all, so is the one with the fewest.
        """
        from mrag_eval.scoring import summarize

        rows, valued = {}, {}
        for name, leaf in file.leaves.items():
            rows[name] = _records(file, name)
            valued[name] = {row.row for row in rows[name] if self.metric in row.values}
            if not valued[name]:
                reasons = leaf.unscored.get(self.metric, ())
                refused[name] = f"no question is scored: {', '.join(reasons) or f'none has {self.metric}'}"
        kept = {name: ids for name, ids in valued.items() if ids}
        while kept and not (common := set.intersection(*kept.values())):
            fewest = min(kept, key=lambda name: len(kept[name]))
            refused[fewest] = f"{len(kept.pop(fewest)):,} questions are scored, none of them for all other strategies"
        if not kept:
            return {}, set()
        found = {}
        for name in kept:
            seed, scores = self.tasks[name].blocks.retrieval.seed, file.leaves[name].scores
            whole = len(rows[name]) == len(common)
            found[name] = scores if whole else summarize([row for row in rows[name] if row.row in common], seed)
        return found, common

    def seconds(self, name: str) -> tuple[float, bool]:
        """Return the seconds of retrieval for one question, and whether a cache answered for a translator.

        They are measured once, one question at a time, without the cache of searches.
        """
        from mrag_eval.retrieval import retrieve

        supply = self.tasks[name].supply
        if not supply.blocks.retrieval.retrieves:
            return 0.0, False
        path, key = self.folder / "seconds.json", supply.entry().fingerprint
        known = json_from(path.read_text("utf-8"), str(path)) if path.exists() else {}
        if key not in known:
            spent = []
            docs = list(supply.docs.values())[: _TIMED + 1]
            # what the first one loads is not counted
            for doc in docs if len(docs) > 1 else docs * 2:
                start = time.perf_counter()
                retrieve(
                    [doc],
                    supply.blocks.retrieval,
                    corpus=supply.benchmark.corpus,
                    siblings=supply.benchmark.docs,
                    agent=supply.blocks.agent,
                    translator=supply.translator,
                    use_cache=False,
                )
                spent.append(time.perf_counter() - start)
            counts = {} if supply.translator is None else supply.translator.counts
            cached = any(count["cached"] for count in counts.values())
            known[key] = [median(spent[1:]), cached]
            write_whole(path, json.dumps(known))
        return float(known[key][0]), bool(known[key][1])

    def outcome(self, refused: dict[str, str], seed: int) -> Strategies:
        """Run the strategies on all questions, and test any two of them."""
        from mrag_eval.report import compare_tasks

        self.retrieve(refused)
        names = [name for name in self.tasks if name not in refused]
        file = self.scores(names)
        found, common = self.on_common(file, refused)
        rows = {name: [row for row in _records(file, name) if row.row in common] for name in names if name in found}
        gains = merge_gains({name: self.asked[name].settings for name in rows}, rows, self.metric, seed)
        measured = [self._measured(name, found[name]) for name in names if name in found]
        if not measured:
            raise DataError(
                f"no strategy is scored: {next(iter(refused.values()))}", "correct it, and give the command again"
            )
        ordered = [one.name for one in ranked(measured)]
        tests = compare_tasks(file.path.parent, ordered, self.metric, only=common, seed=seed)
        failed = [
            f"{name}: {count:,} of {self._rows:,} questions: {step} failed ({reason})"
            for name in names
            if name in file.leaves
            for step, reasons in file.leaves[name].scores.failures.items()
            for reason, count in reasons.items()
        ]
        part = f"scored      the {len(common):,} questions of {self._rows:,} that every strategy has a value for"
        notes = (*self.data.notes, *([part] if len(common) < self._rows else []), *failed)
        return Strategies(self.metric, tuple(measured), tests, refused, notes, file.path, self.folder / "tasks", gains)

    def _measured(self, name: str, scores: TaskScores) -> Measured:
        quality, plan = scores.metrics[self.metric], self.plans[name]
        costs = [cost.money for cost in plan.costs if cost.of_model]
        money = [cost for cost in costs if cost is not None]
        seconds, at_least = self.seconds(name)
        return Measured(
            name,
            self.asked[name].settings,
            quality,
            scores.metrics.get(self.order),
            quality.cells("pair"),
            seconds,
            at_least,
            sum(cost.tokens_in + cost.tokens_out for cost in plan.costs) / self._rows,
            sum(money) / self._rows if costs and len(money) == len(costs) else None,
            any(cost.basis == "at most" and cost.of_model for cost in plan.costs),
        )


def _records(file: ResultFile, name: str) -> list[RowRecord]:
    from mrag_eval.report import open_samples

    path = file.samples(name)
    return [] if path is None else [sample.record for sample in open_samples(path)]


def _numbers(task: RagTask, rows: Sequence[str]) -> list[int]:
    wanted = {*rows}
    return [number for number, row in enumerate(task.supply.docs) if row in wanted]


def _pairs(given: Any) -> dict[str, Any]:
    from mrag_eval.harness import parse_arguments

    return parse_arguments(given) if isinstance(given, str) else dict(given or {})


def _yaml(body: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(body, sort_keys=False, allow_unicode=True))
