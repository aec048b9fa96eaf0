"""Runs as the harness writes them to disk, with values that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import deep_merge
from mrag_eval.platform import content_key
from tests.worlds.measured import placed, recorded

CONFIG: Mapping[str, Any] = {
    "data": {"benchmark": "x", "path": "/here"},
    "source": {"sha256": "abc"},
    "retrieval": {"mode": "qlang", "k": 5},
    "prompt": {"template": "short_answer"},
    "judge": {"prompt": "correctness"},
    "metadata": {"version": 1.0, "pretrained": "some-model"},
    "generation_kwargs": {"max_gen_toks": 16},
}


def row(number: int, lang: str = "en", group: str | None = None, **values: float) -> dict[str, Any]:
    """Return the record of a row; its id contains its language unless that is English."""
    key = f"r{number}" if lang == "en" else f"{lang}{number}"
    made: dict[str, Any] = {"row": key, "cell": {"query_lang": lang}, "values": values}
    return made if group is None else made | {"group": group}


def with_record(task: str, config: Mapping[str, Any], rows: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of a task with the record of a run over these rows, all that there are."""
    record = recorded(task, config, ran=len(rows), data={"ran": {"ids": content_key(sorted(rows))}})
    return placed(config, record)


def write_run(
    folder: Path,
    tasks: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    config: Mapping[str, Any] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    date: str = "2026-01-01T00-00-00.000000",
) -> Path:
    """Write the sample files and the result file of one run to ``folder``; return the folder."""
    model = folder / "some-model"
    model.mkdir(parents=True, exist_ok=True)
    for task, rows in tasks.items():
        text = "".join(json.dumps({"doc": {"id": r["row"]}, "rows": r}) + "\n" for r in rows)
        (model / f"samples_{task}_{date}.jsonl").write_text(text, "utf-8")
    configs = {
        task: with_record(task, deep_merge(CONFIG, config or {}), sorted(r["row"] for r in rows))
        for task, rows in tasks.items()
    }
    results = {"configs": configs, "group_subtasks": {name: list(inner) for name, inner in (groups or {}).items()}}
    (model / f"results_{date}.json").write_text(json.dumps(results), "utf-8")
    return folder


QUESTIONS = {
    "ar": "أي مدينة فيها المنارة؟",
    "zh": "灯塔在哪个城市?",
    "hi": "प्रकाशस्तंभ किस शहर में है?",
    "en": "Which town has the <b>lighthouse</b>?",
}
_CELL = {"value": 0.3, "low": 0.2, "high": 0.5, "n": 23, "method": "Wilson"}
_SCORES: Mapping[str, Any] = {
    "rows": 24,
    "metrics": {
        "match": {**_CELL, "by": {"pair": {"ar->en": _CELL, "zh->en": _CELL, "en->en": _CELL}}},
        "char3gram_recall": {**_CELL, "value": 0.45, "n": 24},
    },
    "unscored": {"match": {"the row has no reference answer": 1}},
    "attribution": {
        "overall": {
            "stages": {"correct": 8, "not retrieved": 8, "not shown": 0, "not used": 6, "wrong language": 2},
            "retrieved": {"value": 0.66, "low": 0.5, "high": 0.8, "n": 24},
            "kept_if_retrieved": {"value": 0.9, "low": 0.7, "high": 1.0, "n": 16},
            **{
                name: {"value": None, "reason": "no such row"}
                for name in (
                    *("correct_if_kept", "product", "end_to_end"),
                    *("correct_if_not_retrieved", "correct_if_retrieved"),
                )
            },
            "unscored": 0,
        },
        "correct_by": "match",
    },
    "languages": {"retrieved": {"ar->ar": 10, "ar->en": 14, "zh->en": 24}},
    "judge": {
        "judges": {
            "judge-a": {"model": "m", "correct": _CELL, "abstained": {}},
            "judge-b": {"model": "n", "correct": _CELL, "abstained": {"timeout": 24}},
        },
        "agreement": {"pairwise": {"judge-a | judge-b": {"value": 0.4}}, "fleiss": {"value": 0.41}},
        "ledger": {
            "m": {
                "calls": 24,
                "cached": 0,
                "retries": 1,
                "failures": {"timeout": 2},
                "tokens_in": 10,
                "tokens_out": 5,
                "seconds": 1.5,
            }
        },
    },
    "prompts": {"prompts": 24, "shortened": 0},
}


_TABLE = {"language": "en", "inclusion_mean": 0.5, "citation_mean": 0.75, "documents": 24, "citations": 16}
_TABLE |= {"inclusion_pooled": 0.5, "citation_pooled": 0.75}
_CITATIONS = {
    "inline": {
        "by_language": {"en": {**_TABLE, "citations": 60}, "ar": {**_TABLE, "language": "ar", "citations": 20}},
        "by_query_language": {"ar": {"en": _TABLE, "ar": {**_TABLE, "citation_mean": 0.25}}, "zh": {"en": _TABLE}},
        "queries": 24,
        "citing": 20,
        "unanswered": 0,
        "without_documents": 0,
        "out_of_range": 1,
    }
}
_LOOP = {
    "rows": 24,
    "rounds": {"1": 12, "2": 12},
    "stopped": {"sufficient": 12, "max_rounds": 12},
    "faults": {},
    "per_question": {"calls": 2.5, "tokens": 20.0, "valid": 1.0},
    "without_documents": {"value": 0.0},
}


def write_full_run(
    folder: Path,
    model: str = "some-model",
    mode: str = "all",
    *,
    tasks: int = 2,
    rows: int = 24,
    k: int = 5,
    right: bool = False,
    culture: str | None = None,
    loop: bool = False,
    citations: bool = False,
    distinct: str = "",
    reply: Mapping[str, tuple[str, str, str]] | None = None,
    benchmark: str = "x",
) -> Path:
    """Write a run with everything a report shows: tasks in four languages, passages, votes, error sources.

    Args:
        right: every answer is right.
        culture: the language that every question is about.
        loop: agents did the retrieval.
        citations: they were counted, and the language of replies was detected.
        distinct: a text that every sample has its own passage of.
        reply: language -> a reply in three parts, of which no passage supports the second.
        benchmark: the benchmark of the tasks, by default none that declares anything.
    """
    date = "2026-01-01T00-00-00.000000"
    home = folder / model
    home.mkdir(parents=True, exist_ok=True)
    names = ("qa_one", "qa_two") if tasks == 2 else tuple(f"qa_{i:02}" for i in range(tasks))
    for task in names:
        lines = []
        for i in range(rows):
            sample = _full_sample(task, i, right)
            doc = sample["doc"]
            if culture:
                doc["culture_lang"] = culture
            if loop:
                doc["trace"] = _trace(i, doc["query_lang"], doc["passages"])
            if citations:
                sample["rows"].setdefault("unscored", {})["correct_language"] = "too short to tell the language"
            if reply and doc["query_lang"] in reply:
                before, span, after = reply[doc["query_lang"]]
                sample["filtered_resps"] = [before + span + after]
                sample["rows"]["grounding"] = _grounding(doc["query_lang"], len(before), len(before + span))
            if distinct:
                doc["passages"].append({"id": f"{task}-{i}", "lang": "ar", "text": f"{task} {i} {distinct}"})
            lines.append(json.dumps(sample, ensure_ascii=False) + "\n")
        (home / f"samples_{task}_{date}.jsonl").write_text("".join(lines), "utf-8")
    scores = {**_SCORES, **({"loop": _LOOP} if loop else {}), **({"citations": _CITATIONS} if citations else {})}
    agent = {"agent": {"planner": "smith", "critic": "judy"}} if loop else {}
    config = deep_merge(
        CONFIG, {"data": {"benchmark": benchmark}, "retrieval": {"mode": mode, "k": k}, "scores": scores, **agent}
    )
    configs = {name: with_record(name, config, [str(i) for i in range(rows)]) for name in names}
    results = {"configs": configs, "model_name": model, "date": 1_767_225_600.0}
    (home / f"results_{date}.json").write_text(json.dumps(results), "utf-8")
    return folder


def _grounding(lang: str, start: int, end: int) -> dict[str, Any]:
    """Return a claim that the first passage supports, and one of which a span is supported by none."""
    claims = [
        {"start": 0, "end": 1, "verdict": "supported", "support": 0.9, "passage": 1, "id": "p0", "lang": "en"},
        {"start": start, "end": end, "verdict": "not_found", "support": 0.2}
        | {"unsupported": [{"start": start, "end": end}]},
    ]
    return {"lang": lang, "claims": claims}


def _trace(i: int, lang: str, passages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one round in the question's language; every other question has a second one, also in English."""

    def critic(score: int) -> dict[str, Any]:
        names = ("relevance", "usefulness", "clarity_specificity", "compatibility")
        return {**dict.fromkeys(names, score), "total": 2.5 * score, "critique": "It names the town."}

    gold, other = passages[:2]

    def hit(passage: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
        return {key: passage[key] for key in ("id", "lang", "title", "text", "score")} | rest

    def cost(tokens_in: int) -> dict[str, Any]:
        return {"calls": 1, "cached": 0, "tokens_in": tokens_in, "tokens_out": 0, "seconds": 0.0}

    hits = [
        hit(gold, new=True, valid=True, critic=critic(5)),
        hit(other, new=True, valid=False, critic=critic(2)),
    ]
    usage = {"planner": cost(10), "critic": cost(5)}
    more = i // 4 % 2 == 1
    rounds = [
        {"round": 1, "languages": [lang], "query": "lighthouse", "hits": hits, "added": 1, "enough_documents": not more}
        | {"usage": usage, "reason": "A second source is missing." if more else "It is there."}
    ]
    if more:
        again = [
            hit(gold, new=False, valid=True),
            hit({**other, "id": "n"}, new=True, valid=False, critic=critic(2)),
        ]
        second = {"round": 2, "languages": [*dict.fromkeys((lang, "en"))], "query": "town", "hits": again, "added": 0}
        rounds.append({**second, "usage": {"planner": usage["planner"]}})
    whole = {"stopped": "max_rounds" if more else "sufficient", "valid": 1, "shown": [gold["id"]], "fallback": False}
    return {**whole, "faults": {}, "usage": cost(15) | {"calls": 2}, "rounds": rounds}


def _full_sample(task: str, i: int, right: bool = False) -> dict[str, Any]:
    lang = ("ar", "zh", "hi", "en")[i % 4]
    match = float(right or i % 6 > 3)
    record = row(i, lang, f"g{i // 2}", match=match, char3gram_recall=0.1 * (i % 10))
    record |= {"fate": "replied", "row": f"{task}-{i}", "retrieved": int(i % 3 > 0), "kept": int(i % 3 > 0 and match)}
    record["cell"]["doc_lang"] = "en"
    if i == 7 and not right:
        del record["values"]["match"]
        record["unscored"] = {"match": "the row has no reference answer"}
    text = "The lighthouse </script> is in Varga. " * 3
    gold = {"id": f"p{i % 5}", "lang": "en", "title": "Harbour", "text": text, "score": 0.9, "rank": 1, "is_gold": True}
    other = {"id": f"q{i % 5}", "lang": lang, "title": "", "text": QUESTIONS[lang], "score": 0.5, "rank": 2}
    doc = {"id": record["row"], "query": QUESTIONS[lang], "query_lang": lang, "answers": ["Varga"]}
    votes = {
        "judge-a": {"verdict": bool(match), "justification": "It names the town."},
        "judge-b": {"verdict": None, "error": "timeout"},
    }
    reply = "Varga" if match else "The lighthouse stands in none of these towns."
    return {"doc": {**doc, "passages": [gold, other]}, "rows": record, "filtered_resps": [reply], "votes": votes}
