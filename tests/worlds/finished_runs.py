"""Finished runs of several benchmarks, as the harness writes them: scripted models, judges and agents, real tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import harness
from mrag_eval.judging import Panel
from mrag_eval.platform import tasks_folder
from mrag_eval.retrieval.agents._seats import Agents
from tests.retrieval.agents.scripted import ScriptedAgent, plan
from tests.worlds import xlcost, xrag
from tests.worlds.bordirlines import real_queries, write_bordirlines
from tests.worlds.judges import ScriptedJudge, always, exact, failing, lists_answers
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, TOPICS, ScriptedLM, write_task, write_world


class Likely(ScriptedLM):
    """A model whose likelihood of an option grows with the number of letters in it."""

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(-1.0 / len(request.args[1]), False) for request in requests]


def run(
    folder: Path,
    tasks: Sequence[str],
    reply: Callable[[str], str],
    metadata: Mapping[str, Any],
    *,
    include: Path | None = None,
    lm: Any = None,
    **settings: Any,
) -> Path:
    """Run tasks and write results and samples to ``folder / "out"``; return ``folder``."""
    manager = harness.task_manager([str(include or tasks_folder())], {"pretrained": "org/small", **metadata})
    given = {"model": lm or ScriptedLM(reply), "tasks": list(tasks), "bootstrap_iters": 100, "log_samples": True}
    harness.evaluate({**given, **settings}, manager, str(folder / "out"))
    return folder


def small(folder: Path, test_data: Path) -> Path:
    """A lexical search in the user's own corpus, and the same task over fewer rows in groups within a group."""
    world = write_world(folder)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    keys = {**BASE, "metrics": ["char3gram_recall", "match", "correct_language", "hit@2", "mrr@2"]}
    answers = {question: answer for versions in TOPICS.values() for _, question, answer in versions.values()}
    searched = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(world, "wide", **keys, data=data, retrieval=searched)
    write_task(world, "narrow", **keys, data={**data, "language": "de"}, retrieval=searched)
    write_task(world, "chinese", **keys, data={**data, "language": "zh"}, retrieval=searched)

    def means(plain: bool) -> list[dict[str, Any]]:
        return [{"metric": name, "weight_by_size": not plain} for name in ("match", "hit@2")]

    groups: dict[str, Any] = {
        "lower": {"task": ["narrow", "chinese"], "aggregate_metric_list": means(False)},
        "outer": {"task": ["wide", "lower"], "aggregate_metric_list": means(True), "metadata": {"version": 2}},
    }
    for name, content in groups.items():
        (world / f"{name}.yaml").write_text(json.dumps({"group": name, **content}), "utf-8")

    def reply(prompt: str) -> str:
        known = next((answer for question, answer in answers.items() if question in prompt), "?")
        return "I cannot tell, sorry." if "bakery" in prompt else known

    return run(world, ["outer"], reply, {}, include=world)


def xquad(folder: Path, test_data: Path) -> Path:
    """XQuAD's passages, searched lexically: measures of a ranking of twenty."""
    data = {"path": str(test_data / "xquad"), "languages": ["de", "en"]}
    return run(
        folder,
        ["xquad_rag_de"],
        lambda prompt: prompt[-60:-20],
        {"data": data, "retrieval": {"kind": "bm25", "mode": "all"}},
        limit=6,
    )


def _territories(test_data: Path, folder: Path) -> dict[str, Any]:
    copy = write_bordirlines(folder / "hub", real_queries(test_data))
    return {"borderlines": str(test_data / "borderlines"), "path": str(copy)}


def _cites(prompt: str) -> str:
    options = prompt.rpartition("Options:\n")[2].strip().split("\n")
    if len(prompt) % 5 == 0:
        return "I would rather not say."
    chosen = options[len(prompt) % len(options)]
    cited = " ".join(f"so it is <doc{(len(prompt) + n) % 10}>." for n in range(3))
    return f"Cited Documents: 0, {len(prompt) % 7}\nChosen Option: {chosen}\nExplanation: because {cited}"


def bordirlines(folder: Path, test_data: Path) -> Path:
    """Published documents, options in the second of three parts, citations."""
    data = {**_territories(test_data, folder), "territories": ["Crimea", "Ceuta"]}
    return run(folder, ["bordirlines_swap_docs_citation_openai"], _cites, {"data": data})


def likelihood(folder: Path, test_data: Path) -> Path:
    """Options of BordIRlines, compared by likelihood."""
    data = {**_territories(test_data, folder), "territories": ["Crimea", "Ceuta"]}
    return run(folder, ["bordirlines_no_ir_likelihood"], str, {"data": data}, lm=Likely(str))


def judged(folder: Path, test_data: Path) -> Path:
    """XRAG with three judges of answers and passages, one of which fails on a part of the rows, and short prompts."""

    def sick(prompt: str) -> Any:
        return failing()(prompt) if "Varga" in prompt else exact(prompt)

    def both(script: Callable[[str], Any]) -> Callable[[str], Any]:
        return lambda prompt: (
            '{"justification": "so", "sufficient": "yes"}' if "<golden" not in prompt else script(prompt)
        )

    scripts = (both(exact), both(sick), both(always("incorrect")))
    judges = {f"j{i}": ScriptedJudge(script, f"acme/judge-{i}") for i, script in enumerate(scripts, 1)}
    data = {"path": str(xrag.write(folder / "xrag"))}
    names = ["judged_accuracy", "judge_correct", "language_check", "declined", "answer_tag", "context_sufficiency"]

    def reply(prompt: str) -> str:
        towns = re.findall("|".join(xrag.TOWNS), prompt)
        return f"<answer>{towns[len(prompt) % len(towns)]}</answer>" if len(prompt) % 4 else "<answer>None</answer>"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrag_eval.judging.build_panel", lambda block: Panel(judges, block.repeats))  # type: ignore[arg-type]
        judge = {"language_check": "fasttext"}
        metadata = {"data": data, "metrics": names, "judge": judge, "prompt": {"max_tokens": 600}}
        return run(folder, ["xrag_multi_de"], reply, metadata, limit=6)


def labelled(folder: Path, test_data: Path) -> Path:
    """The Cross-Lingual Cost's questions, whose passages a judge labels, lexically searched and not reranked."""

    def reads(prompt: str) -> str:
        return lists_answers(prompt) if "<passage_1>" in prompt else _sameness(prompt)

    judges = {"reader": ScriptedJudge(reads), "other": ScriptedJudge(lambda _: "[1] <same_meaning>true</same_meaning>")}
    data = {"path": str(xlcost.write(folder / "travel")), "tokenizer": "model_free"}
    metadata = {"data": data, "retrieval": {"kind": "bm25", "rerank": None}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrag_eval.judging.build_panel", lambda block: Panel(judges))  # type: ignore[arg-type]
        return run(folder, ["xlcost_travel"], lambda prompt: prompt[100:180], metadata)


def _sameness(prompt: str) -> str:
    return f"They differ. <same_meaning>{str(len(prompt) % 2 == 0).lower()}</same_meaning>"


def looped(folder: Path, test_data: Path) -> Path:
    """The agents' loop over a small corpus, with its traces."""
    world = write_world(folder)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    retrieval = {"mode": "coral", "k": 2, "kind": "bm25"}
    keys = {**BASE, "metrics": ["match"]}
    write_task(world, "looped", **keys, data=data, agent={"k": 2, "max_rounds": 2}, retrieval=retrieval)
    agent = ScriptedAgent(planner=lambda asked: plan("en", "de"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrag_eval.retrieval.sources._agents.agents_for", lambda block: Agents.of(block, agent, agent))
        patch.setattr(Agents, "check", lambda self: None)
        return run(world, ["looped"], lambda prompt: "1841", {}, include=world, limit=3)


def answered(folder: Path, test_data: Path) -> Path:
    """A model behind an API, asked by two tasks: some calls fail, some replies are refusals, empty, or cut."""
    world = write_world(folder)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    keys = {**BASE, "metrics": ["match"], "retrieval": {"mode": "all", "k": 2, "kind": "bm25"}}
    write_task(world, "asked", **keys, data=data)
    write_task(world, "asked_de", **keys, data={**data, "language": "de"})
    fates = {
        **dict.fromkeys([("lighthouse", "de"), ("lighthouse", "en")], said(None, refusal="No.")),
        ("lighthouse", "es"): said("<think>so", finish="length"),
        **dict.fromkeys([("bakery", lang) for lang in ("de", "en", "es")], Answer(500, "broken")),
        **dict.fromkeys([("ferry", lang) for lang in ("de", "en", "es")], said("")),
    }
    asks = {question: (topic, lang) for topic, all_ in TOPICS.items() for lang, (_, question, _) in all_.items()}

    def script(body: dict[str, Any], attempt: int) -> Answer:
        row = next(row for question, row in asks.items() if question in asked(body))
        fate = fates.get(row, said("1841"))
        return fate if fate.status != 200 else Answer(body={**fate.body, "model": "m-2026"})

    server = ModelServer(script)
    args = {"model": "m", "base_url": server.url, "max_retries": 1, "num_concurrent": 2}
    try:
        return run(
            world, ["asked", "asked_de"], str, {"pretrained": "m"}, include=world, model="local-chat-completions",
            model_args=args, apply_chat_template=True,
        )  # fmt: skip
    finally:
        server.close()


def translated(folder: Path, test_data: Path) -> Path:
    """XQuAD's passages in the language of the question, by its parallel texts."""
    data = {"path": str(test_data / "xquad"), "languages": ["de", "en"]}
    retrieval = {"kind": "bm25", "translator": {"backend": "table"}, "document_translation": "en"}
    metadata = {"data": data, "retrieval": retrieval, "metrics": ["match"]}
    return run(folder, ["xquad_rag_de"], lambda prompt: "in the year 1066", metadata, limit=5)


def choices(folder: Path, test_data: Path) -> Path:
    """BLEnD's multiple choice without passages, in the five languages of one tier."""
    return _choices(folder, test_data, "blend_norag_low", limit=2)


def whole_benchmark(folder: Path, test_data: Path) -> Path:
    """BLEnD's multiple choice in thirteen languages, every row of the copy: three tiers of unequal size."""
    return _choices(folder, test_data, "blend_norag")


def _choices(folder: Path, test_data: Path, group: str, **settings: Any) -> Path:
    data = {"path": str(test_data / "blend" / "mcq_derived_sample.csv")}
    if not Path(data["path"]).is_file():
        pytest.skip("mcq_derived_sample.csv was made for these tests and is in no public repository")
    return run(folder, [group], lambda prompt: f"Answer: {'ABCD'[len(prompt) % 4]}", {"data": data}, **settings)


RUNS: Mapping[str, Callable[[Path, Path], Path]] = {
    made.__name__: made
    for made in (
        small,
        xquad,
        bordirlines,
        likelihood,
        judged,
        labelled,
        looped,
        answered,
        translated,
        choices,
        whole_benchmark,
    )
}
