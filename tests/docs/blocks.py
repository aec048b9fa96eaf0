"""The fenced blocks of the pages, and the marks in the comments before them.

``<!-- file: NAME -->``       the block is the content of that file of the reader's
``<!-- not run: REASON -->``  commands that no test executes, and why
``<!-- fails: CODE -->``      a command and the error it prints, with its exit code; ``…`` stands for anything
``<!-- command: NAME -->``    commands that the project's own check runs from the page
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Written by hand; those that scripts/write_docs.py writes say the same again.
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in DOCS.glob("*.md") if page.name != "index.md"),
    *sorted((DOCS / "evidence").glob("*.md")),
    *sorted((ROOT / "tasks").glob("*/*.md")),
]

_FENCE = re.compile(r"(?:^<!-- ([\w ]+): (.+?) -->\n+)?^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block; ``mark`` and ``said`` are the two halves of its comment, or empty."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    said: str = ""

    @property
    def executed(self) -> bool:
        return (self.language == "bash" and not self.mark) or self.mark == "fails"

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    text = page.read_text("utf-8")
    found = []
    for match in _FENCE.finditer(text):
        mark, said, indent, language, body = match.groups()
        line = text.count("\n", 0, match.start(4)) + 1
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        found.append(Block(page, line, language, body, mark or "", said or ""))
    return found
