"""Hostile texts and scores that are no numbers, in the report as a real browser shows it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import compare, comparison_changes, write_changes, write_report
from tests.report.browser import browser, opened
from tests.report.runs import write_full_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HIT = "document.documentElement.dataset.hit='yes'"
FAR = "http://attacker.invalid/x"
TEXTS = {
    "a script": f"<script>{HIT}</script>",
    "the end of a script": f"</script><script>{HIT}</script>",
    "a comment in a script": f"<!--<script>{HIT}</script>-->",
    "an image": f"<img src=x onerror={HIT}><img src={FAR}><svg onload={HIT}>",
    "attributes": f'" onmouseover="{HIT}" autofocus onfocus="{HIT}" x=\'',
    "a style": f"</style><style>*{{display:none!important;background:url({FAR})}}</style>",
    "a frame": f"<iframe srcdoc='<script>parent.{HIT}</script>'></iframe><base href={FAR}><meta http-equiv=refresh>",
    "a link": f"[x]({FAR}) javascript:{HIT} data:text/html,<script>{HIT}</script>",
    "a template": "{{ 7 * 7 }}{% include '/etc/passwd' %}${7*7}#{7*7}<%= 7*7 %>",
    "an expression": f"datum.value; {HIT}; url(#x) \\u003cscript\\u003e",
    "directions": "\u202e\u2067\u2066gnp.exe\u061c\u200f",
    "line ends": "one\u2028two\u2029three\x0bfour\x85five\r\nsix",
    "one long word": "W" * 3000,
    "many marks": "Z" + "\u0335\u0353\u0349" * 200,
    "a property": "__proto__",
    "another property": "constructor",
    "control characters": "a\x00b\x08c\x1bd\ufffe\ud83d",
}


def everywhere(folder: Path, text: str) -> None:
    """Write a run with ``text`` wherever a file from elsewhere may have one."""
    write_full_run(folder, mode="coral", loop=True, citations=True)
    for path in folder.rglob("samples_qa_one_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for row in rows[:6]:
            record, doc = row["rows"], row["doc"]
            doc |= {"query": text, "answers": [text], "query_lang": text, "culture_lang": text}
            for passage in doc["passages"]:
                passage |= {"title": text, "text": text, "lang": text, "id": text}
            for nth, each in enumerate(doc["trace"]["rounds"]):
                each |= {"query": f"{text}{nth}", "reason": text, "languages": [text]}
            record["cell"] |= {"query_lang": text, "doc_lang": text}
            record["group"] = text
            record["values"][text] = 0.5
            record["unscored"] = {"match": text, text: text}
            record["values"].pop("match", None)
            row["filtered_resps"] = [text]
            row["votes"] = {text: {"verdict": True, "justification": text}, "judge-b": {"verdict": None, "error": text}}
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for path in folder.rglob("results_*.json"):
        content = json.loads(path.read_text("utf-8"))
        content |= {"model_name": text}
        config = json.loads(json.dumps(content["configs"]["qa_one"]))
        setting = config["measurement"]["setting"]
        setting["data"]["benchmark"] = config["metadata"]["pretrained"] = setting["agent"]["planner"] = text
        scores = config["scores"]
        scores["metrics"][text] = scores["metrics"]["match"]
        scores["metrics"]["match"]["by"]["pair"][f"{text}->en"] = {"value": 0.3, "low": 0.2, "high": 0.5, "n": 3}
        scores["unscored"] = {"match": {text: 3}}
        scores["judge"]["judges"][text] = {"model": text, "correct": {"value": 0.3}, "abstained": {text: 2}}
        scores["languages"]["retrieved"][f"{text}->{text}"] = 5
        scores["citations"]["inline"]["by_language"][text] = scores["citations"]["inline"]["by_language"]["en"]
        content["configs"]["qa_one"] = config
        path.write_text(json.dumps(content), "utf-8")


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


OPEN = "document.querySelectorAll('details').forEach((node) => { node.open = true; })"
# Text that runs into another element: an override of the direction that its own element does not end.
LEAKING = """() => [...document.querySelectorAll("#main *")].filter((node) =>
  [...node.childNodes].some((child) => child.nodeType === 3 && /[\\u202a-\\u202e\\u2066-\\u2069]/.test(child.data)) &&
  !/isolate|plaintext/.test(getComputedStyle(node).unicodeBidi) && getComputedStyle(node).display === "inline"
).map((node) => node.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("what", TEXTS)
def test_a_hostile_text_is_text_wherever_it_is(what: str, context: Any, tmp_path: Path) -> None:
    everywhere(tmp_path / "run", TEXTS[what])
    write_report([tmp_path / "run"], tmp_path / "report.html")
    shown_as_text(context, tmp_path / "report.html")


def shown_as_text(context: Any, file: Path) -> None:
    """The page runs nothing that a text holds, asks for nothing, and no text leaves its place."""
    found = opened(context, file)
    page = found.page
    try:
        for width in (1100, 360):
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate(OPEN)
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        for control in page.locator("select:visible").all():
            for option in control.locator("option").all()[:4]:
                control.select_option(index=option.evaluate("node => node.index"))
        page.wait_for_timeout(100)
        assert found.said == []
        assert page.evaluate("document.documentElement.dataset.hit") is None
        assert (
            page.locator("script").count() == 3
            if False
            else page.locator("script[src], iframe, base, img").count() == 0
        )
        assert page.locator("h1").is_visible()
        assert "function Object" not in page.locator("body").inner_text()
        assert page.evaluate(LEAKING) == []
    finally:
        page.close()


@pytest.mark.parametrize("what", TEXTS)
def test_a_hostile_text_is_text_on_the_page_of_changes(what: str, context: Any, tmp_path: Path) -> None:
    for name, value in (("a", 0.75), ("b", 0.25)):
        everywhere(tmp_path / name, TEXTS[what])
        for path in (tmp_path / name).rglob("samples_*.jsonl"):
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            for number, row in enumerate(rows[:6]):
                record = row["rows"]
                record["row"] = row["doc"]["id"] = f"{TEXTS[what]}{number}"
                # a document's language that is none is refused before any page is written
                record["cell"].pop("doc_lang")
                record["values"][TEXTS[what]] = value
                row["filtered_resps"] = [f"{TEXTS[what]} {name}"]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    a, b = [tmp_path / "a"], [tmp_path / "b"]
    changes = comparison_changes(compare(a, b, differs=["all"]), a, b)
    assert len(changes.worse) >= 6
    write_changes(changes, tmp_path / "changes.html", TEXTS[what])
    shown_as_text(context, tmp_path / "changes.html")


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308, None])
def test_no_score_is_shown_that_is_no_number(value: float | None, context: Any, tmp_path: Path) -> None:
    write_full_run(tmp_path / "run", mode="coral", loop=True, citations=True)
    (results,) = (tmp_path / "run").rglob("results_*.json")
    content = json.loads(results.read_text("utf-8"))
    scores = content["configs"]["qa_one"]["scores"]
    match = scores["metrics"]["match"]
    match |= {"value": value, "by": {"pair": {"ar->en": {**match, "value": value, "high": value}}}}
    match["by"]["pair"]["zh->en"] = {"value": 0.3, "low": 0.2, "high": value, "n": 23, "method": "Wilson"}
    content["date"] = content["total_evaluation_time_seconds"] = value
    content["configs"]["qa_one"]["measurement"]["setting"]["retrieval"]["k"] = value
    results.write_text(json.dumps(content), "utf-8")
    (samples,) = (tmp_path / "run").rglob("samples_qa_one_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    for row in rows[::2] if value is not None else ():
        row["rows"]["values"] = dict.fromkeys(row["rows"]["values"], value)
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write_report([tmp_path / "run"], tmp_path / "report.html")
    found = opened(context, tmp_path / "report.html")
    page = found.page
    try:
        page.evaluate(OPEN)
        page.wait_for_timeout(200)
        text = page.locator("body").inner_text().replace("which is not a finite number", "")
        text = re.sub(r"the score is (nan|inf)", "", text)
        assert re.findall(r"(?i)(?<![a-z])-?(?:nan|inf|infinity|undefined)(?![a-z])|e\+30[78]|\d{40}", text) == []
        assert found.said == []
        assert page.locator(".chart svg").count() == page.locator(".chart").count()
    finally:
        page.close()
