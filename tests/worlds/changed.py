"""Two runs of one task of which rows change for known reasons, in Arabic, Hindi and Chinese."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.report.runs import write_run

METRIC = "judged_accuracy"
# place -> what becomes of its rows; all others stay as they are. Each number is the rows that the tests count on.
PLAN: Mapping[str, Mapping[str, int]] = {
    "ar->en": {"retrieval": 10, "reading": 1, "language": 1, "won": 2},
    "hi->hi": {"unknown": 1, "reading": 2, "won": 3},
    "zh->en": {"judging": 2},
}
ROWS = 40
QUESTIONS = {
    "ar": "في أي مدينة تقع المنارة رقم {} التي بُنيت عام 1907؟",
    "hi": "सन् 1907 में बना प्रकाशस्तंभ संख्या {} किस शहर में है?",
    "zh": "1907年建造的第{}号灯塔位于哪座城市?",
}
RIGHT = {"ar": "تقع المنارة في مدينة فارغا.", "hi": "प्रकाशस्तंभ वर्गा शहर में है।", "zh": "灯塔位于瓦尔加市。"}
WRONG = {"ar": "لا أعرف في أي مدينة تقع.", "hi": "यह मीरा शहर में है।", "zh": "灯塔位于米拉市。"}
ENGLISH = "The lighthouse stands in the town of Varga, by the old harbour."
RELEVANT = {
    "en": ("Varga Light", "The lighthouse of Varga was built in 1907 on the western pier."),
    "hi": ("वर्गा प्रकाशस्तंभ", "वर्गा का प्रकाशस्तंभ 1907 में पश्चिमी घाट पर बना था।"),
}
OTHER = {
    "ar": ("ميناء ميرا", "يقع ميناء ميرا على الساحل الشرقي، ولا توجد فيه منارة."),
    "hi": ("मीरा बंदरगाह", "मीरा का बंदरगाह पूर्वी तट पर है।"),
    "zh": ("米拉港", "米拉港位于东海岸,没有灯塔。"),
}


def _passage(kind: str, lang: str, number: int, relevant: bool | None) -> dict[str, Any]:
    title, text = (RELEVANT if kind == "relevant" else OTHER)[lang]
    made = {"id": f"{lang}-{kind}-{number}", "lang": lang, "title": title, "text": text, "score": 0.5, "rank": 1}
    return made if relevant is None else made | {"is_gold": relevant}


def _sample(place: str, number: int, fate: str, after: bool) -> dict[str, Any]:
    """Return a row in the baseline or, ``after`` it, in the candidate."""
    lang, _, document = place.partition("->")
    right = fate not in ("wrong", "won") if not after else fate in ("same", "won")
    lost = after and fate == "retrieval"
    known = fate != "unknown"
    second = _passage("other", lang, number if not (after and fate == "unknown") else 900 + number, False)
    passages = [_passage("other" if lost else "relevant", lang if lost else document, 500 + number, not lost), second]
    if not known:
        passages = [{key: value for key, value in p.items() if key != "is_gold"} for p in passages]
    answer = RIGHT[lang] if right else WRONG[lang]
    if after and fate == "language":
        answer = ENGLISH
    if fate == "judging":
        answer = RIGHT[lang]
    record: dict[str, Any] = {
        "row": f"{lang}/{number:03}",
        "cell": {"query_lang": lang, "doc_lang": document},
        "values": {METRIC: float(right), "correct_language": float(answer != ENGLISH)},
        "judge": {
            "verdict": right,
            "outcome": "unanimous",
            "disagreement": 0.0,
            "votes": {"judge-a": right, "judge-b": right},
        },
    }
    if known:
        record |= {"retrieved": int(not lost), "kept": int(not lost)}
    doc = {
        "id": record["row"],
        "query": QUESTIONS[lang].format(number),
        "query_lang": lang,
        "answers": [RIGHT[lang]],
        "passages": passages,
    }
    return {"doc": doc, "rows": record, "filtered_resps": [answer]}


def fates(place: str, rows: int = ROWS) -> list[str]:
    """Return what becomes of each row of a place: the planned changes, then five that stay wrong, then the rest."""
    found = [fate for fate, n in PLAN[place].items() for _ in range(n)]
    return [*found, *(["wrong"] * 5), *(["same"] * (rows - len(found) - 5))]


def write_changed(folder: Path, task: str = "qa") -> tuple[Path, Path]:
    """Write the baseline and the candidate below ``folder``; return their folders."""
    out = []
    for name in ("before", "after"):
        samples = [
            _sample(place, number, fate, name == "after")
            for place in PLAN
            for number, fate in enumerate(fates(place), 1)
        ]
        run = write_run(folder / name, {task: [sample["rows"] for sample in samples]})
        (path,) = run.rglob(f"samples_{task}_*.jsonl")
        path.write_text("".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples), "utf-8")
        out.append(run)
    return out[0], out[1]
