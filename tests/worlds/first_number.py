"""What a stranger has on the first afternoon: copies of the data, dumps in 13 languages, one server of models."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mrag_eval.core import CORAL_POOL
from tests.docs.blocks import ROOT
from tests.worlds.model_server import Answer, ModelServer, asked, said

PAGES = 40
# The town in every answer of the evaluated model to XRAG; a judge takes it for right where it is the golden answer.
TOWN = "Varga"
# A word of each language's questions, and the answer to them.
_ANSWERS = {
    "Welche": f"Die Stadt {TOWN} pflanzt in diesem Jahr mehr neue Bäume am alten Kanal.",
    "ciudad": f"La ciudad de {TOWN} planta este año más árboles nuevos junto al antiguo canal.",
    "城市": f"{TOWN}今年在旧运河沿岸种植的新树更多。",
    "مدينة": f"مدينة {TOWN} تزرع هذا العام أشجارًا جديدة أكثر على طول القناة القديمة.",
}
_SCORES = {"relevance": 4, "usefulness": 4, "clarity_specificity": 4, "compatibility": 4}


def write_files(folder: Path, copies: Path) -> None:
    """Write copies of both benchmarks and the dumps, one page of which answers a question of BLEnD."""
    for name in ("xrag", "blend"):
        (folder / name).symlink_to(copies / name)
    facts = [
        {"title": "Fruit of the United Kingdom", "lang": "en", "text": "The most popular fruit is the apple. " * 20}
    ]
    (folder / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts), "utf-8")
    command = [sys.executable, str(ROOT / "scripts" / "write_dumps.py"), "dumps", "--pages", str(PAGES)]
    subprocess.run([*command, "--facts", "facts.jsonl"], cwd=folder, check=True, capture_output=True)


def model(body: dict[str, Any], attempt: int) -> Answer:
    """Reply as the model that the request names: a judge, or the evaluated one as planner, critic and generator."""
    whole = json.dumps(body["messages"], ensure_ascii=False)
    if str(body["model"]).startswith("judge"):
        golden = re.search(r"<golden_answer>\s*(.*?)\s*</golden_answer>", asked(body), re.DOTALL)
        right = golden is not None and golden[1] == TOWN
        # one of three never agrees
        verdict = "correct" if right != (body["model"] == "judge-c") else "incorrect"
        return said(json.dumps({"justification": "The towns were compared.", "answer": verdict}))
    if "clarity_specificity" in whole:
        return said(json.dumps({"scores": _SCORES, "critique": "It is about the country."}))
    if "enough_documents" in whole:
        return said(json.dumps({"enough_documents": True, "reason": "The fruit is named."}))
    if "language_names" in whole:
        return said(json.dumps({"language_names": ["en", "ko"], "rewritten_query": "popular fruit"}))
    if "<options>" in whole:
        return said("Answer: A")
    return said(f"<answer>{next(answer for word, answer in _ANSWERS.items() if word in asked(body))}</answer>")


def server() -> ModelServer:
    """Return the running server."""
    return ModelServer(model)


def check(folder: Path) -> None:
    """Check what the commands of the page left: rows judged, planned by the evaluated model, over the starter."""
    (path,) = (folder / "out").rglob("results_*.json")
    tasks = json.loads(path.read_text("utf-8"))["configs"]
    assert len(tasks) == 17
    for name, config in tasks.items():
        rows = [json.loads(line) for file in path.parent.glob(f"samples_{name}_*.jsonl") for line in file.open("rb")]
        assert len(rows) == 2, name
        scores = config["scores"]["metrics"]
        if name.startswith("xrag"):
            # two of three judges find an answer right exactly where it is
            right = [row["doc"]["answers"][0] == TOWN for row in rows]
            assert scores["judged_accuracy"]["value"] == sum(right) / len(right), name
            continue
        assert (
            config["measurement"]["setting"]["agent"]["planner"]
            == config["measurement"]["setting"]["agent"]["critic"]
            == "evaluated"
        )
        assert config["measurement"]["instrument"]["planner"]["args"]["model"] == "my-model"
        assert set(config["measurement"]["data"]["index"]["part"]) == set(CORAL_POOL)
        assert {part["preset"] for part in config["measurement"]["data"]["index"]["part"].values()} == {"coral-small"}
        # the script always chooses A
        assert scores["acc"]["value"] == sum(row["doc"]["gold_choice"] == 0 for row in rows) / 2, name
    assert "coral-small, a part of Wikipedia" in (folder / "report.html").read_text("utf-8")
