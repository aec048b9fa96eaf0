"""The HTML report in a real browser: it draws, filters and opens, without errors and without a network."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import (
    compare,
    comparison_changes,
    score_tables,
    write_changes,
    write_report,
    write_tables,
)
from mrag_eval.report.page._sections import CHARTS
from tests.report.browser import Opened, barriers, browser, opened
from tests.report.runs import row, write_full_run
from tests.report.test_findings import write_scored
from tests.report.test_page import REPLY
from tests.worlds.changed import write_changed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHECKS = Path(__file__).parent / "checks"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on two models, with agents and citations."""
    folder = tmp_path_factory.mktemp("report")
    write_full_run(folder / "out" / "a")
    write_full_run(folder / "out" / "b", "another-model", right=True)
    # a benchmark that declares groups of languages, on a board of its own
    write_full_run(folder / "out" / "c", mode="coral", loop=True, benchmark="blend")
    write_full_run(folder / "out" / "d", mode="rel_langs", citations=True)
    write_report([folder / "out"], folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def report(context: Any, file: Path) -> Iterator[Opened]:
    found = opened(context, file)
    yield found
    found.page.close()


def _check(name: str) -> str:
    """Return a function of JavaScript without the comment above it."""
    return (CHECKS / f"{name}.js").read_text("utf-8").partition("*/")[2].strip()


def _count(page: Any) -> str:
    return str(page.inner_text("#count"))


def _choose(page: Any, name: str, value: str) -> None:
    page.select_option(f"#sample-filters select[name={name}]", value)


def test_it_loads_without_an_error_or_a_request(report: Opened) -> None:
    assert report.said == []
    assert report.page.locator(".chart svg").count() == report.page.locator(".chart").count() == len(CHARTS)


def test_filters_and_search_narrow_the_samples(report: Opened) -> None:
    page = report.page
    assert _count(page) == "192 of 192 samples"
    _choose(page, "model", "some-model")
    _choose(page, "mode", "all")
    assert _count(page) == "48 of 192 samples"
    _choose(page, "language", "ar")
    assert _count(page) == "12 of 192 samples"
    _choose(page, "outcome", "right")
    # rows 0, 4, ... 20 are Arabic; right where i % 6 > 3: 4 and 16, in both tasks
    assert _count(page) == "4 of 192 samples"
    page.fill("input[name=words]", "qa_two-16")
    assert _count(page) == "1 of 192 samples"
    page.fill("input[name=words]", "")
    _choose(page, "outcome", "")
    _choose(page, "retrieved", "not retrieved")
    # i % 3 == 0: rows 0 and 12
    assert _count(page) == "4 of 192 samples"


def test_a_sample_can_be_reached_by_keyboard(report: Opened) -> None:
    page = report.page
    page.locator("#sample-filters input[name=words]").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    body = page.locator("#samples details[open] .body")
    body.wait_for()
    assert "judge-b: abstains (timeout)" in body.inner_text()
    # a passage that tries to end the script is text
    assert "</script>" in body.inner_text()
    assert "score 0.9 · supporting" in body.inner_text()


def test_arabic_runs_from_right_to_left_and_chinese_does_not(report: Opened) -> None:
    page = report.page
    for language, direction in (("ar", "rtl"), ("zh", "ltr")):
        _choose(page, "language", language)
        page.locator("#samples summary").first.click()
        text = page.locator("#samples details[open] .body p.text").first
        assert text.get_attribute("lang") == language
        assert text.evaluate("node => getComputedStyle(node).direction") == direction
        # the text is aligned to the side where its lines begin
        rest = text.evaluate(
            """(node) => { const range = document.createRange(); range.selectNodeContents(node);
            const [line, box] = [range.getBoundingClientRect(), node.getBoundingClientRect()];
            return [line.left - box.left, box.right - line.right]; }"""
        )
        assert (rest[0] > rest[1]) == (direction == "rtl")


def test_what_no_passage_supports_is_marked_within_the_direction_of_the_reply(context: Any, tmp_path: Path) -> None:
    write_report([write_full_run(tmp_path / "out", reply=REPLY)], tmp_path / "report.html")
    found = opened(context, tmp_path / "report.html")
    page = found.page
    for lang, direction in (("ar", "rtl"), ("en", "ltr")):
        _choose(page, "language", lang)
        page.locator("#samples summary").first.click()
        mark = page.locator("#samples details[open] .body mark[title*=supports]")
        assert mark.inner_text() == REPLY[lang][1]
        reply = mark.locator("xpath=..")
        assert reply.inner_text() == "".join(REPLY[lang])
        # the reply runs on one line, and the mark stands where its words are read
        rest = mark.evaluate(
            """(node) => { const [mark, box] = [node.getBoundingClientRect(), node.parentNode.getBoundingClientRect()];
            return [mark.left - box.left, box.right - mark.right]; }"""
        )
        assert (rest[0] > rest[1]) == (direction == "rtl")
        said = page.locator("#samples details[open] .body").inner_text()
        assert "1 supported by passage 1 (English) · 2 not found" in said
    assert found.said == []
    page.close()


def test_a_cell_of_the_heat_map_opens_its_samples(report: Opened) -> None:
    page = report.page
    # with the mouse
    cell = page.locator("#plot-languages .mark-rect.role-mark path").first
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#samples details[open] .body")
    first = _count(page)
    assert first.endswith("of 192 samples")
    assert first != "192 of 192 samples"
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    # and with keys, in the table
    page.locator("details.data[data-chart=languages] > summary").press("Enter")
    button = page.locator("details.data[data-chart=languages] button.open").first
    button.focus()
    assert "open the samples" in button.get_attribute("aria-label")
    page.keyboard.press("Enter")
    assert page.input_value("#sample-filters select[name=mode]") == "all"
    assert page.input_value("#sample-filters select[name=language]") == "ar"
    assert _count(page) == "12 of 192 samples"


def test_every_chart_has_a_table_of_its_values(report: Opened) -> None:
    page = report.page
    names = page.eval_on_selector_all("details.data[data-chart]", "nodes => nodes.map((node) => node.dataset.chart)")
    assert names == [chart.id for chart in CHARTS]
    for name in names:
        page.locator(f"details.data[data-chart={name}] > summary").click()
        page.locator(f"details.data[data-chart={name}] tbody tr").first.wait_for(state="attached")
    page.select_option("#plot-languages select[name=metric]", "char3gram_recall")
    page.wait_for_timeout(200)
    assert "char3gram_recall" in page.inner_text("details.data[data-chart=languages] caption")
    assert report.said == []


def test_the_leaderboard_shows_one_metric_at_a_time_and_sorts(report: Opened) -> None:
    page = report.page
    board = page.locator(".board:visible")
    assert board.count() == 1
    assert board.locator("tbody tr").count() == 3
    page.select_option("#board-choice select[name=metric]", "char3gram_recall")
    assert "char3gram_recall" in page.locator(".board:visible caption").inner_text()
    head = page.locator(".board:visible thead th").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator(".board:visible tbody th").first.inner_text() == "some-model"
    head.locator("button").press("Enter")
    assert page.locator(".board:visible tbody th").first.inner_text() == "another-model"


def test_the_trace_of_the_agents_can_be_read(report: Opened) -> None:
    page = report.page
    _choose(page, "mode", "coral")
    page.fill("input[name=words]", "qa_one-4")
    page.locator("#samples summary").first.click()
    said = page.locator("#samples details[open] .body").inner_text()
    assert "Round 2" in said
    assert "critic 5/5/5/5" in said
    assert "A second source is missing." in said


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_screen_needs_no_sideways_scrolling(report: Opened, width: int) -> None:
    page = report.page
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.wait_for_selector("html[data-drawn]")
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # and no control overlaps another
    boxes = [box.bounding_box() for box in page.locator("#sample-filters select:visible").all()]
    for a, b in itertools.combinations(boxes, 2):
        aside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
        assert aside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
    page.set_viewport_size({"width": 1100, "height": 900})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read_in_both_colour_schemes(report: Opened, scheme: str) -> None:
    page = report.page
    page.emulate_media(color_scheme=scheme)
    _choose(page, "model", "some-model")
    page.locator("#samples summary").first.click()
    papers = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == papers[scheme]
    texts = (
        "body",
        "p.soft",
        ".findings li",
        ".findings .soft",
        "nav a",
        "td small",
        "select",
        "label",
        ".more",
        "#samples .text",
    )
    for part in (*texts, ".tag.good", ".tag.bad"):
        ratio = page.locator(part).first.evaluate(_check("contrast"))
        assert ratio >= 4.5, (scheme, part, ratio)
    # the text of the charts has the page's text colour
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert page.locator("#plot-stages .role-axis-label text").first.evaluate("n => getComputedStyle(n).fill") == ink


def test_screen_readers_get_names_and_roles(report: Opened) -> None:
    page = report.page
    page.locator("#samples summary").first.click()
    page.evaluate("document.querySelectorAll('details.data').forEach((node) => { node.open = true; })")
    page.wait_for_timeout(200)
    assert page.evaluate(_check("faults")) == []
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("#count").get_attribute("aria-live") == "polite"


def _kinds(folder: Path) -> dict[str, Path]:
    """Return a page of each kind beside the report on several systems."""
    pages = {name: folder / f"{name}.html" for name in ("one model", "log", "run again", "changed rows", "tables")}
    run = write_full_run(folder / "one", citations=True)
    write_report([run], pages["one model"])
    rows = [row(i, code, match=float(i % 3 > 0)) for code in ("ar", "en", "hi") for i in range(30)]
    logged = [
        one | {"cell": {**one["cell"], "context_pair": f"{one['cell']['query_lang']}->{('ar', 'en', 'hi')[i % 3]}"}}
        for i, one in enumerate(rows)
    ]
    write_report([write_scored(folder / "log", {"log": logged})], pages["log"])
    write_scored(folder / "again" / "b", {"qa": rows[::-1]}, retrieval={"k": 7})
    write_scored(folder / "again" / "a", {"qa": rows})
    write_report([folder / "again"], pages["run again"])
    before, after = write_changed(folder / "changed")
    write_changes(comparison_changes(compare([before], [after]), [before], [after]), pages["changed rows"], "Changed")
    write_tables(score_tables([run]), pages["tables"], "Tables")
    return pages


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier_on_any_kind_of_page(context: Any, file: Path, tmp_path: Path, scheme: str) -> None:
    for kind, path in {"several systems": file, **_kinds(tmp_path)}.items():
        found = opened(context, path)
        found.page.emulate_media(color_scheme=scheme)
        # all that can be unfolded, and the first samples
        found.page.evaluate(
            """document.querySelectorAll("details").forEach((node) => { node.open = !node.closest("#samples"); });
            for (const node of [...document.querySelectorAll("#samples > details")].slice(0, 3)) node.open = true;"""
        )
        found.page.wait_for_timeout(300)
        assert barriers(found.page) == [], kind
        found.page.set_viewport_size({"width": 390, "height": 800})
        found.page.reload()
        found.page.wait_for_selector("html[data-drawn]")
        assert barriers(found.page) == [], f"{kind}, narrow"
        assert found.page.evaluate("document.documentElement.scrollWidth") <= 390, kind
        assert found.said == []
        found.page.close()


def test_a_narrow_heat_map_keeps_its_figures_apart_and_names_keep_their_ends(context: Any, tmp_path: Path) -> None:
    codes = ("ar", "de", "en", "es", "fr", "hi", "ja", "ru", "tr", "zh")
    models = [f"a-maker-of-models/a-long-name-{size}b-instruct" for size in (1, 3)]
    for model in models:
        rows = [row(i, code, match=float(i % 3 > 0)) for code in codes for i in range(12)]
        write_scored(tmp_path / "out" / model.partition("/")[2], {"qa": rows}, model=model)
    write_report([tmp_path / "out"], tmp_path / "report.html")
    found = opened(context, tmp_path / "report.html")
    page = found.page
    page.set_viewport_size({"width": 390, "height": 800})
    page.reload()
    page.wait_for_selector("html[data-drawn]")
    boxes = [one.bounding_box() for one in page.locator("#plot-languages .mark-text.role-mark text").all()]
    for a, b in itertools.combinations(boxes, 2):
        aside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
        assert aside or a["y"] + a["height"] <= b["y"] + 2 or b["y"] + b["height"] <= a["y"] + 2
    named = page.locator("#plot-languages .role-axis-label text").all_text_contents()
    assert {one[-11:] for one in named if "instruct" in one} == {"1b-instruct", "3b-instruct"}
    page.set_viewport_size({"width": 1100, "height": 900})
    page.close()


def test_a_chart_drawn_for_a_wide_screen_fits_a_narrow_sheet(report: Opened) -> None:
    """A printer lays the page out again before any script runs."""
    page = report.page
    page.add_init_script("window.addEventListener('resize', (event) => event.stopImmediatePropagation())")
    page.reload()
    page.wait_for_selector("html[data-drawn]")
    drawn = page.locator(".chart svg").first.get_attribute("width")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 794, "height": 1123})
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    assert page.locator(".chart svg").first.get_attribute("width") == drawn


def test_it_prints(report: Opened) -> None:
    page = report.page
    page.emulate_media(color_scheme="dark", media="print")
    page.locator("#samples details").nth(1).evaluate("(node) => { node.open = true; }")
    assert page.locator("#sample-filters").is_hidden()
    assert page.locator("nav").is_hidden()
    # charts are readable on paper
    assert page.locator("#plot-languages select[name=metric]").is_visible()
    assert page.locator("#samples details").nth(0).is_hidden()
    assert page.locator("#samples details").nth(1).is_visible()
    # what is folded on a screen
    assert page.locator("#measured table").first.is_visible()
    # dark screens also print dark on white
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')").strip() == "#ffffff"
    assert page.locator(".scroll").first.evaluate("node => getComputedStyle(node).overflowX") == "visible"
    page.set_viewport_size({"width": 794, "height": 1123})
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    page.set_viewport_size({"width": 1100, "height": 900})
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_no_script_but_ours_runs_on_the_page(context: Any, file: Path, tmp_path: Path) -> None:
    planted = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'><script src=x.js></script>"
    (tmp_path / "x.js").write_text("window.ran = 3", "utf-8")
    page = file.read_text("utf-8").replace('<main id="main">', f'<main id="main">{planted}')
    (tmp_path / "report.html").write_text(page, "utf-8")
    found = opened(context, tmp_path / "report.html")
    assert found.page.evaluate("window.ran") is None
    assert len([said for said in found.said if "Content Security Policy" in said]) >= 3
    found.page.close()


def test_an_address_opens_what_it_names(context: Any, file: Path) -> None:
    """Every filter, sample, row and choice of a chart has an address, which a new page of the browser opens."""
    found = opened(context, file)
    page = found.page
    _choose(page, "language", "ar")
    _choose(page, "outcome", "right")
    assert page.evaluate("location.hash") == "#browser?language=ar&outcome=right"
    page.locator("#samples summary").nth(1).click()
    asked = page.locator("#samples > details").nth(1).get_attribute("data-row")
    sample = page.locator("#samples details[open] a").get_attribute("href")
    page.select_option("#plot-scores select[name=metric]", "char3gram_recall")
    page.wait_for_function("location.hash.includes('chart-scores')")
    chart = page.evaluate("location.hash")
    rows = page.eval_on_selector_all("tr[id]", "nodes => nodes.map((node) => node.id)")
    assert len(rows) == len(set(rows)) == page.locator("main tbody tr").count()
    folded = page.locator("#measured tr[id]").first.get_attribute("id")
    hidden = page.locator(".board[hidden] tr[id]").first.get_attribute("id")

    def at(address: str) -> Any:
        page.goto("about:blank")
        page.goto(f"{file.as_uri()}{address}")
        page.wait_for_selector("html[data-drawn]")
        return page

    assert at(str(sample)).locator("#samples details[open]").first.get_attribute("data-row") == asked
    assert at(str(chart)).input_value("#plot-scores select[name=metric]") == "char3gram_recall"
    for one in (folded, hidden):
        assert at(f"#{one}").locator(f"[id='{one}']").is_visible()
    assert at("#browser?language=zh").input_value("#sample-filters select[name=language]") == "zh"
    # what is no address of this page, or no value of a list, changes nothing
    for wrong in ("#nothing", "#%E0%A4%A", "#chart-scores?__proto__=x&toString=y", "#browser?language=xx&row=none"):
        at(wrong)
    assert found.said == []
    page.close()


def test_a_sample_has_the_replies_of_other_systems_beside_it(report: Opened) -> None:
    page = report.page
    _choose(page, "systems", "differ")
    _choose(page, "model", "some-model")
    _choose(page, "mode", "all")
    page.locator("#samples summary").first.click()
    beside = page.locator("#samples details[open] .two > div")
    said = beside.all_inner_texts()
    assert said[0].startswith("some-model · all wrong")
    assert any(one.startswith("another-model · all right") for one in said[1:])
    # one colour a system, wherever it is named
    colour = "node => getComputedStyle(node).backgroundColor"
    shown = beside.first.locator(".swatch").evaluate(colour)
    assert page.locator("#samples > details[open] > summary .swatch").first.evaluate(colour) == shown
    named = page.locator(".board:visible tbody tr", has_text="some-model").filter(has_text="all").locator(".swatch")
    assert shown in [one.evaluate(colour) for one in named.all()]


def test_a_row_without_a_reply_says_why_and_the_answer_is_marked_in_its_passage(context: Any, tmp_path: Path) -> None:
    folder = write_full_run(tmp_path / "out")
    path = next(folder.rglob("samples_qa_one_*.jsonl"))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows[0]["filtered_resps"] = [""]
    rows[0]["rows"]["fate"] = "failed"
    rows[0]["rows"]["failures"] = [{"stage": "answer", "model": "m", "reason": "timeout", "detail": "after 60 s"}]
    rows[0]["arguments"] = {"gen_args_0": {"arg_0": ["Answer.\n" + rows[0]["doc"]["passages"][0]["text"]]}}
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    write_report([folder], tmp_path / "report.html")
    found = opened(context, tmp_path / "report.html")
    page = found.page
    page.fill("input[name=words]", "qa_one-0")
    page.locator("#samples summary").first.click()
    said = page.locator("#samples details[open] .body").first.inner_text()
    assert "No reply came. answer failed (timeout): after 60 s" in said
    assert page.locator("#samples .passage.gold mark").first.inner_text() == "Varga"
    page.locator("#samples .body details summary", has_text="Prompt").click()
    assert "Answer.\n[passage 1]" in page.locator("#samples .body details").inner_text()
    assert found.said == []
    page.close()
