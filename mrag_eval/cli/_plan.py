"""``mrag-eval plan``: everything that tasks need, at once, and what a run of them costs."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._options import Limit, command
from mrag_eval.core import columns
from mrag_eval.platform import DataError, number_of, repeated_later

if TYPE_CHECKING:
    from mrag_eval.planning import Cost, Need, Observed, Pilot, Plan, PlannedTask, Spent
    from mrag_eval.report import LeafResult, Sample


@command()
def plan(
    context: typer.Context,
    *,
    tasks: str | None = None,
    metadata: list[str] | None = None,
    model: str | None = None,
    model_args: list[str] | None = None,
    gen_kwargs: list[str] | None = None,
    include_path: str | None = None,
    limit: Limit | None = None,
    pilot: str | None = None,
    as_json: bool = False,
) -> None:
    """Show what a run of these tasks needs: data, corpora, models, keys and disk, and its calls, tokens and cost.

    For everything that is missing, one command or line that provides it is printed. Rows that lie on this machine are
    read, and a system of yours is imported; no model is loaded, and nothing is downloaded or asked, except by --pilot.
    The exit code is 1 if something is missing without which the tasks do not run.

    Args:
        tasks (-t): Names of tasks, groups or tags, wildcards or files, as in `run`.
        model (-M): The type of the evaluated model.
        model_args (--model_args -a): Its arguments, as in `mrag-eval run`.
        gen_kwargs (--gen_kwargs): Its decoding, as in `mrag-eval run`.
        pilot (N|FOLDER): Estimate from rows that ran: run N rows of each task that has a loop or judges (further
            options of `run` are passed on), or read the results of a finished run.
        as_json (--json): Print the plan as JSON.
    """
    from mrag_eval.cli._flags import check_flags
    from mrag_eval.cli._task_files import expanded
    from mrag_eval.config import RAG, ModelSpec, listed_in, unknown_name
    from mrag_eval.models import behind_api, rag_system, register_model_types, system_arguments, task_settings
    from mrag_eval.planning import leaves_of, plan_for
    from mrag_eval.platform import ConfigError, MragError, tasks_folder

    if context.args and (pilot is None or not pilot.isdecimal()):
        raise typer.BadParameter(f"{context.args[0]}: unknown; options of a run go with --pilot N")
    check_flags({"tasks": tasks, "limit": limit})
    if model is not None:
        register_model_types()
        behind_api(ModelSpec(model=model), model)  # no other type of model exists
    given = None if include_path is None else Path(include_path)
    if given is not None and not given.is_dir():
        raise ConfigError(f"--include_path {given} is not a folder", "name the folder that holds your task files")
    known = listed_in([tasks_folder(), *([] if given is None else [given])])
    names = [name.strip() for name in (tasks or "").split(",") if name.strip()]
    names = expanded(names, known, with_functions=False)
    unknown = unknown_name(names, known)
    if unknown is not None:
        raise unknown
    arguments = pairs_given("--model_args", model_args)
    arguments = system_arguments(arguments) if model == RAG else arguments
    settings = {**task_settings(model, arguments), **pairs_given("--metadata", metadata)}
    measured = None
    if pilot is not None:
        leaves = leaves_of(names, known, settings, limit)
        flags = {"--model_args": model_args, "--metadata": metadata, "--gen_kwargs": gen_kwargs}
        words = [word for flag, values in flags.items() for value in values or () for word in (flag, value)]
        measured = _measured(context, pilot, leaves, model, words, include_path)
    asked, faults = None if model is None else (model, arguments), None
    if model == RAG:
        faults = []
        try:
            rag_system(arguments)
        except MragError as fault:
            faults.append(fault)
    decoding = pairs_given("--gen_kwargs", gen_kwargs)
    more: Any = {"faults": faults, "generation": decoding, "pilot": measured, "built": False}
    found = plan_for(names, known, settings, limit=limit, model=asked, **more)
    typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if as_json else plan_text(found))
    if found.missing:
        raise typer.Exit(1)


def pairs_given(flag: str, given: Sequence[str] | None) -> Mapping[str, Any]:
    """Return the keys and values of a repeated flag, as the harness reads them; it is not imported without any."""
    if not given:
        return {}
    from mrag_eval.cli._flags import check_flags, pairs_of
    from mrag_eval.cli._harness import settings_of

    asked = settings_of(["--tasks", "x", *(word for value in given for word in (flag, value))])
    check_flags(asked)
    return pairs_of(asked.get(flag.removeprefix("--")))


def _measured(
    context: typer.Context,
    pilot: str,
    leaves: Sequence[PlannedTask],
    model: str | None,
    given: Sequence[str],
    include_path: str | None,
) -> Pilot | None:
    """Return what a pilot took: the finished run in a folder, or one of N rows that is made now."""
    from mrag_eval.planning import worth_a_pilot

    if not pilot.isdecimal():
        return read_pilot(Path(pilot))
    chosen = worth_a_pilot(leaves)
    if not chosen:
        return None
    if model is None or int(pilot) < 1:
        raise typer.BadParameter(
            "needs a number of rows from 1, and --model with its --model_args", param_hint="--pilot"
        )
    words = ["--tasks", ",".join(chosen), "--limit", pilot, "--model", model, *context.args, *given]
    if include_path is not None:
        words += ["--include_path", include_path]
    return run_pilot(words, debug=context.obj.debug)


_TOPICS = ("tasks", "data", "corpora", "models")


def plan_text(plan: Plan) -> str:
    """Return the plan in sections, and what to do next in the last line."""
    lines = [_head(plan)]
    for topic in _TOPICS:
        needs = [need for need in plan.needs if need.topic == topic]
        if needs:
            lines += ["", topic, *(line for need in needs for line in _need(need))]
    lines += ["", "estimate", *_estimate(plan), "", _disk(plan), _last(plan)]
    return "\n".join(lines)


def _head(plan: Plan) -> str:
    tasks = number_of(len(plan.tasks), "task")
    rows = "rows not known" if plan.rows is None else f"{'' if plan.read else '~'}{plan.rows:,} rows"
    return f"{', '.join(plan.asked)}: {tasks}, {rows}"


def _need(need: Need) -> Iterator[str]:
    from mrag_eval.planning import ways

    mark = "ok " if need.ok else "   " if need.comes else "-  "
    yield f"  {mark}{need.what}" + ("" if need.needed or need.ok else "   (optional)")
    if not need.ok:
        yield from (f"       {line}" for line in ways(need))


def _estimate(plan: Plan) -> Iterator[str]:
    if plan.uncounted:
        yield f"  without {', '.join(plan.uncounted)}: how many rows they have is known when they are read"
    if plan.costs:
        yield from (f"  {line}" for line in columns([_cost(cost) for cost in plan.costs], "llrrrr"))
    models = [cost for cost in plan.costs if cost.of_model]
    prices = [cost.money for cost in models]
    known = [price for price in prices if price is not None]
    if known:
        rest = f", and {len(prices) - len(known)} models without a price" if len(known) < len(prices) else ""
        yield f"  ~{_money(sum(known))} in all{rest}"
    if plan.hours is not None:
        yield f"  ~{plan.hours:,.1f} hours, at the pace of the pilot"
        return
    ranges = {cost.role for cost in models if cost.basis == "at most"}
    whys = {"planner": "the loop may end early", "judge": "judges are asked once about equal replies"}
    if why := " and ".join(said for role, said in whys.items() if role in ranges):
        yield f"  {why}: --pilot 20 estimates from 20 rows of each task, hours too"


def _cost(cost: Cost) -> Sequence[str]:
    if not cost.of_model:
        least, most = cost.hours or (0.0, 0.0)
        took = f"~{least:,.1f} to {most:,.1f} hours, by machine" if most >= 0.05 else ""
        return cost.role, cost.model, cost.counted, f"~{_tokens(cost.tokens_in)} tokens" if took else "", took, ""
    return (
        cost.role,
        cost.model,
        cost.counted,
        f"~{_tokens(cost.tokens_in)} tokens in",
        f"~{_tokens(cost.tokens_out)} out",
        "" if cost.money is None else f"~{_money(cost.money)}",
    )


def _tokens(count: int) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,}"


def _money(dollars: float) -> str:
    return f"{dollars:,.2f} USD"


def _disk(plan: Plan) -> str:
    fetched = sum(need.megabytes or 0 for need in plan.needs if not need.ok)
    return f"disk   {plan.free:,.1f} GB free at {plan.folder}" + (
        f", ~{fetched:,.0f} MB to download" if fetched else ""
    )


def _last(plan: Plan) -> str:
    if not plan.missing:
        return f"ready  mrag-eval run --tasks {','.join(plan.asked)} ..."
    things = "1 thing is" if len(plan.missing) == 1 else f"{len(plan.missing)} things are"
    return f"not ready: {things} missing (marked -, without those that are optional)"


def run_pilot(words: Sequence[str], *, debug: bool = False) -> Pilot:
    """Run ``mrag-eval run`` with these options; return what the rows took.

    Its files are not kept. The calls are in the cache, so that the run that follows does not make them again.
    """
    from mrag_eval.cli._harness import run

    with TemporaryDirectory(prefix="mrag-pilot-") as folder:
        start = time.perf_counter()
        with repeated_later():
            run([*words, "--log_samples", "--output_path", folder], debug=debug)
        return replace(read_pilot(Path(folder)), seconds=time.perf_counter() - start)


def read_pilot(folder: Path) -> Pilot:
    """Return what the rows of a finished run took, from its samples and results; its time is not taken from there.

    Raises DataError if the folder holds no samples of our tasks.
    """
    from mrag_eval.planning import Pilot
    from mrag_eval.report import read_results, read_samples

    by_task: dict[str, Observed] = {}
    for file in read_results([folder]):
        for task, leaf in file.leaves.items():
            samples = file.samples(task)
            if samples is not None:
                by_task[task] = _observed(leaf, read_samples(samples))
    if not by_task:
        raise DataError(
            f"--pilot {folder}: no samples of our tasks", "name the --output_path of a run with --log_samples"
        )
    return Pilot(by_task)


def _observed(leaf: LeafResult, samples: Sequence[Sample]) -> Observed:
    from mrag_eval.planning import Observed, Spent
    from mrag_eval.text import estimated_tokens

    spent: dict[str, Spent] = defaultdict(Spent)
    for sample in samples:
        replies = sample.replies
        written = sum(map(estimated_tokens, replies)) if leaf.config.scored_by != "likelihood" else 0
        spent["evaluated"] += Spent(len(replies), len(replies) * estimated_tokens(sample.prompt or ""), written)
        for traced in () if sample.trace is None else sample.trace.rounds:
            for role, usage in traced.usage.items():
                who = "planner" if role == "planner" else "critic"
                spent[who] += Spent(usage.calls, usage.tokens_in, usage.tokens_out)
    scores = leaf.scores
    for table in (*scores.panels.values(), scores.relevance):
        for judge, ledger in ((table and table.ledger) or {}).items():
            spent[judge] += Spent(ledger.calls + ledger.cached)
    for seat, came_back in (leaf.config.outcome.get("seats") or {}).items():
        if (judge := seat.partition("#")[0]) not in leaf.measurement.instrument and judge in spent:
            spent[judge] += Spent(0, came_back["tokens_in"], came_back["tokens_out"])
    return Observed(len(samples), dict(spent))
