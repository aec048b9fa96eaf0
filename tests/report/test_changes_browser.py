"""The page of changed rows in a real browser: links to rows, directions of texts, and no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import compare, comparison_changes, write_changes
from tests.report.browser import browser, opened
from tests.worlds.changed import write_changed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def test_a_link_leads_to_its_row_and_arabic_runs_from_right_to_left(context: Any, tmp_path: Path) -> None:
    before, after = write_changed(tmp_path)
    changes = comparison_changes(compare([before], [after]), [before], [after])
    write_changes(changes, tmp_path / "changes.html", "Changed")
    row = next(row for row in changes.worse if row.place == "ar->en" and row.cause == "reading")
    found = opened(context, tmp_path / "changes.html", f"#{row.anchor}")
    page = found.page
    try:
        card = page.locator(":target")
        assert card.get_attribute("id") == row.anchor
        assert "ar/011" in card.inner_text()
        assert card.evaluate("node => { const { top } = node.getBoundingClientRect(); return top < innerHeight; }")
        side = "node => getComputedStyle(node).direction"
        assert card.locator(".question").evaluate(side) == "rtl"
        before_, now = (card.locator(".two > div").nth(i) for i in (0, 1))
        assert before_.locator(".text").evaluate(side) == "rtl"
        # side by side
        assert before_.bounding_box()["y"] == now.bounding_box()["y"]
        hindi = page.locator(f"#{next(r.anchor for r in changes.worse if r.place == 'hi->hi')}")
        assert hindi.locator(".question").evaluate(side) == "ltr"
        assert found.said == []
    finally:
        page.close()
