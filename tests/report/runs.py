"""Runs as the harness leaves them on disk, with the values that a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.validation import deep_merge

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
    """The record of a row; its id tells its language where that is not English."""
    key = f"r{number}" if lang == "en" else f"{lang}{number}"
    made: dict[str, Any] = {"row": key, "cell": {"query_lang": lang}, "values": values}
    return made if group is None else made | {"group": group}


def write_run(
    folder: Path,
    tasks: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    config: Mapping[str, Any] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    date: str = "2026-01-01T00-00-00.000000",
) -> Path:
    """Sample files and the result file of one run in ``folder``, which is returned."""
    model = folder / "some-model"
    model.mkdir(parents=True, exist_ok=True)
    for task, rows in tasks.items():
        text = "".join(json.dumps({"doc": {"id": r["row"]}, "rows": r}) + "\n" for r in rows)
        (model / f"samples_{task}_{date}.jsonl").write_text(text, "utf-8")
    configs = {task: deep_merge(CONFIG, config or {}) for task in tasks}
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
            "stages": {"correct": 8, "not retrieved": 8, "lost in reranking": 0, "not used": 6, "wrong language": 2}
        }
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
    "prompts": {"prompts": 24, "shortened": 3},
}


def write_full_run(folder: Path, model: str = "some-model", mode: str = "all") -> Path:
    """A run with everything a report shows: two tasks, four languages, passages, votes, error sources."""
    date = "2026-01-01T00-00-00.000000"
    home = folder / model
    home.mkdir(parents=True, exist_ok=True)
    tasks = ("qa_one", "qa_two")
    for task in tasks:
        lines = [json.dumps(_full_sample(task, i), ensure_ascii=False) + "\n" for i in range(24)]
        (home / f"samples_{task}_{date}.jsonl").write_text("".join(lines), "utf-8")
    config = deep_merge(CONFIG, {"retrieval": {"mode": mode}, "scores": _SCORES})
    results = {"configs": dict.fromkeys(tasks, config), "model_name": model, "date": 1_767_225_600.0}
    (home / f"results_{date}.json").write_text(json.dumps(results), "utf-8")
    return folder


def _full_sample(task: str, i: int) -> dict[str, Any]:
    lang = ("ar", "zh", "hi", "en")[i % 4]
    match = float(i % 6 > 3)
    record = row(i, lang, f"g{i // 2}", match=match, char3gram_recall=0.1 * (i % 10))
    record |= {"row": f"{task}-{i}", "retrieved": int(i % 3 > 0), "kept": int(i % 3 > 0 and match)}
    record["cell"]["doc_lang"] = "en"
    if i == 7:
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
    reply = "Varga" if match else "nowhere"
    return {"doc": {**doc, "passages": [gold, other]}, "rows": record, "filtered_resps": [reply], "votes": votes}
