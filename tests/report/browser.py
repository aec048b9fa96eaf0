"""A real Chromium for the tests of the HTML report; they are skipped without one, unless MRAG_TEST_BROWSER is set."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Options that make Chromium as quiet and offline as possible.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _without(reason: str) -> None:
    """Skip the test with a reason, or fail if a browser is wanted."""
    wanted = os.environ.get("MRAG_TEST_BROWSER", "") not in ("", "0")
    pytest.fail(f"MRAG_TEST_BROWSER is set, and {reason}") if wanted else pytest.skip(reason)


def need_browser() -> Any:
    """Return Playwright's synchronous interface and Chromium's path; otherwise skip with the reason, or fail."""
    reason = None
    try:
        from playwright import sync_api
    except ImportError:
        reason = "playwright is not installed: pip install -c constraints.txt playwright"
    chromium = _chromium()
    if reason is None and chromium is None:
        reason = "no Chromium on this machine: apt-get install chromium"
    if reason is not None:
        _without(reason)
    return sync_api, chromium


def barriers(page: Any) -> list[str]:
    """Return what axe-core finds on a page that keeps people from reading it: rule, and the first such element."""
    if (found := find_spec("axe_playwright_python")) is None or found.origin is None:
        _without("axe-core is not installed: pip install -c constraints.txt axe-playwright-python")
        return []
    page.evaluate(Path(found.origin).with_name("axe.min.js").read_text("utf-8"))
    ran = page.evaluate("axe.run()")
    assert len(ran["passes"]) > 10
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in ran["violations"]]


@dataclass
class Opened:
    """A page, with everything that it wrote to the console or requested from the network."""

    page: Any
    said: list[str] = field(default_factory=list)


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """Start Chromium with a new profile in the folder ``profile``."""
    sync_api, chromium = need_browser()
    with sync_api.sync_playwright() as play:
        context = play.chromium.launch_persistent_context(
            str(profile), executable_path=chromium, args=list(_FLAGS), viewport={"width": 1100, "height": 900}
        )
        context.set_default_timeout(20_000)
        yield context
        context.close()


def opened(context: Any, file: Path, fragment: str = "") -> Opened:
    """Open the report at ``file`` in a new tab, with its charts drawn."""
    out = Opened(context.new_page())
    out.page.on("console", lambda message: out.said.append(f"{message.type}: {message.text}"))
    out.page.on("pageerror", lambda error: out.said.append(f"error: {error}"))
    out.page.on("request", lambda request: out.said.append(request.url) if request.url.startswith("http") else None)
    out.page.goto(file.as_uri() + fragment)
    out.page.wait_for_selector("html[data-drawn]")
    return out
