"""The HTML report in a real browser: it draws, filters and opens, without an error and without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from mrag_eval.report.page_file import write_report
from tests.report.runs import write_full_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, list[str]]]:
    """The page, and everything that it wrote to the console or asked the network for."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    folder = tmp_path_factory.mktemp("report")
    write_report([write_full_run(folder / "out")], folder / "report.html")
    said: list[str] = []
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
        )
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
        page.goto((folder / "report.html").as_uri())
        page.wait_for_selector("#chart-retrieved svg")
        yield page, said
        browser.close()


def test_it_loads_without_an_error_or_a_request(opened: tuple[Any, list[str]]) -> None:
    page, said = opened
    assert said == []
    assert page.locator(".chart svg").count() == 5


def test_filters_and_search_narrow_the_samples(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    assert page.inner_text("#count") == "48 of 48 samples"
    page.select_option("select[name=language]", "ar")
    assert page.inner_text("#count") == "12 of 48 samples"
    page.select_option("select[name=outcome]", "right")
    # rows 0, 4, ... 20 are Arabic; right where i % 6 > 3: 4 and 16, in both tasks
    assert page.inner_text("#count") == "4 of 48 samples"
    page.fill("input[name=words]", "qa_two-16")
    assert page.inner_text("#count") == "1 of 48 samples"
    page.fill("input[name=words]", "")
    page.select_option("select[name=outcome]", "")
    page.select_option("select[name=language]", "")


def test_a_sample_opens_by_keyboard_and_reads_in_its_own_direction(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    page.select_option("select[name=language]", "ar")
    page.locator("#samples summary").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#samples details[open] .body .passage")
    body = page.locator("#samples details[open] .body")
    assert "judge-b: abstains (timeout)" in body.inner_text()
    assert "</script>" in body.inner_text()
    question = body.locator("p.text").first
    assert question.evaluate("node => getComputedStyle(node).direction") == "rtl"
    assert question.get_attribute("lang") == "ar"
    page.select_option("select[name=language]", "")


def test_tables_sort(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    head = page.locator("table:has(caption:has-text('Every task and metric')) thead th").first
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    first = page.locator("table:has(caption:has-text('Every task and metric')) tbody tr th").first
    assert first.inner_text() == "qa_two"


def test_a_narrow_screen_needs_no_sideways_scrolling(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1100, "height": 900})


def test_dark(opened: tuple[Any, list[str]]) -> None:
    page, said = opened
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(300)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    assert said == []
