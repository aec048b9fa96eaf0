"""A plan as text: what is there, what is missing, what is optional, and an estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mrag_eval.core import columns
from mrag_eval.platform import number_of

if TYPE_CHECKING:
    from mrag_eval.planning import Cost, Need, Plan

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
