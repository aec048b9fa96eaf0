"""Measure how well replies are read, by language, and write the tables of docs/answers.md.

python scripts/answer_reading.py            writes the tables
python scripts/answer_reading.py --misses   prints every phrasing that is not read as it should be
python scripts/answer_reading.py --prose F  counts choices read from paragraphs of XQuAD (files xquad.*.json.gz in F)
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PHRASINGS = ROOT / "tests" / "metrics" / "phrasings"
PAGE = ROOT / "docs" / "answers.md"
SETS = ("first", "held_out")
_TABLES = re.compile(r"(<!-- tables -->\n).*(<!-- end of tables -->)", re.DOTALL)


@dataclass
class Counts:
    """Replies that say something, those that were read, and those of them that were read rightly."""

    says: int = 0
    read: int = 0
    right: int = 0

    def add(self, expected: object, found: object) -> None:
        self.says += expected is not None
        self.read += found is not None
        self.right += found is not None and found == expected

    def plus(self, other: Counts) -> Counts:
        return Counts(self.says + other.says, self.read + other.read, self.right + other.right)

    def precision(self) -> str:
        return f"{100 * self.right / self.read:.0f}" if self.read else "-"

    def recall(self) -> str:
        return f"{100 * self.right / self.says:.0f}" if self.says else "-"


@dataclass
class Figures:
    """Counts of a language in one set of phrasings."""

    choices: Counts = field(default_factory=Counts)
    refusals: Counts = field(default_factory=Counts)
    yes_no: Counts = field(default_factory=Counts)

    def plus(self, other: Figures) -> Figures:
        return Figures(
            self.choices.plus(other.choices), self.refusals.plus(other.refusals), self.yes_no.plus(other.yes_no)
        )


def languages() -> list[str]:
    """Return the languages with phrasings: those of CORAL first."""
    from mrag_eval.core import CORAL_POOL

    found = sorted(path.stem for path in (PHRASINGS / "first").glob("*.yaml"))
    return sorted(found, key=lambda code: code not in CORAL_POOL)


def phrasings(which: str, code: str) -> dict[str, Any]:
    """Return the phrasings of a language in the set ``first`` or ``held_out``."""
    found: dict[str, Any] = yaml.safe_load((PHRASINGS / which / f"{code}.yaml").read_text("utf-8"))
    return found


def readings(which: str, code: str) -> Iterator[tuple[str, str, object, object]]:
    """Yield each phrasing: what is read from it, its text, and the expected and the found reading.

    A refusal is a reply that chooses nothing and declines, as :func:`mrag_eval.metrics.reply_outcome` has it.
    """
    from mrag_eval.metrics import declines, extract_choice, read_yes_no

    entry = phrasings(which, code)
    options: Sequence[str] = entry["options"]
    for label, replies in entry["choices"].items():
        expected = None if label == "unreadable" else "ABCD".index(label)
        for reply in replies:
            found = extract_choice(reply, len(options), options)
            yield "choices", reply, expected, found
            yield "refusals", reply, None, True if found is None and declines(reply) else None
    for reply in entry["refusals"]:
        found = extract_choice(reply, len(options), options)
        yield "choices", reply, None, found
        yield "refusals", reply, True, True if found is None and declines(reply) else None
    for word, says in (("yes", True), ("no", False), ("neither", None)):
        for reply in entry[word]:
            yield "yes_no", reply, says, read_yes_no(reply, code)


def figures(which: str, code: str) -> Figures:
    """Return the counts of a language in a set."""
    out = Figures()
    for what, _, expected, found in readings(which, code):
        getattr(out, what).add(expected, found)
    return out


def before() -> dict[str, dict[str, Figures]]:
    """Return the counts of the reader of version 1.0, measured once: set → language → counts."""
    saved = yaml.safe_load((PHRASINGS / "before.yaml").read_text("utf-8"))
    return {
        which: {code: Figures(Counts(*row["choices"]), Counts(*row["refusals"])) for code, row in rows.items()}
        for which, rows in saved.items()
    }


def tables() -> str:
    """Return the tables in Markdown: choices, then refusals and yes or no."""
    codes, old = languages(), before()
    now = {which: {code: figures(which, code) for code in codes} for which in SETS}
    choices = [
        "| language | phrasings | precision | recall | held out | precision | recall |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    others = [
        "| language | refusals | precision | recall | held out | precision | recall "
        "| yes or no | precision | recall | held out | precision | recall |",
        "|---|" + "---:|" * 12,
    ]
    for name, chosen in _rows(codes):
        first, held = ({key: _sum(each[which], chosen) for key, each in (("old", old), ("now", now))} for which in SETS)
        choices.append(f"| {name} | {_moves(first, 'choices')} | {_moves(held, 'choices')} |")
        said = " | ".join(_cells(each["now"].yes_no) for each in (first, held))
        others.append(f"| {name} | {_moves(first, 'refusals')} | {_moves(held, 'refusals')} | {said} |")
    return "\n".join(["### Choices", "", *choices, "", "### Refusals, yes and no", "", *others, ""])


def _rows(codes: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    from mrag_eval.core import CORAL_POOL, language_name

    for code in codes:
        yield f"{language_name(code)} ({code})", [code]
    yield "**CORAL's 13**", [code for code in codes if code in CORAL_POOL]
    yield "**all**", codes


def _sum(by_language: Mapping[str, Figures], codes: Sequence[str]) -> Figures:
    total = Figures()
    for code in codes:
        total = total.plus(by_language[code])
    return total


def _moves(both: Mapping[str, Figures], what: str) -> str:
    """Return the cells of a measure: the number of replies that say something, and both figures before and now."""
    old, now = getattr(both["old"], what), getattr(both["now"], what)
    return f"{now.says} | {old.precision()} → {now.precision()} | {old.recall()} → {now.recall()}"


def _cells(counts: Counts) -> str:
    return f"{counts.says} | {counts.precision()} | {counts.recall()}"


def page() -> str:
    """Return the page with new tables."""
    return _TABLES.sub(lambda match: f"{match[1]}\n{tables()}\n{match[2]}", PAGE.read_text("utf-8"))


def prose(folder: Path) -> None:
    """Print in how many paragraphs of XQuAD a choice is read: 240 of each language, which choose nothing."""
    from mrag_eval.metrics import extract_choice

    options = ["zxqv", "qqwx", "vvxz", "xxqq"]
    total = 0
    for path in sorted(folder.glob("xquad.*.json.gz")):
        articles = json.loads(gzip.decompress(path.read_bytes()))["data"]
        paragraphs = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]][:240]
        found = sum(extract_choice(paragraph, len(options), options) is not None for paragraph in paragraphs)
        print(f"{path.name}\t{found} of {len(paragraphs)}")
        total += found
    print(f"all\t{total}")


def main() -> None:
    """Write the tables, or print what is misread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="print every phrasing that is not read as it should be")
    parser.add_argument("--prose", type=Path, help="count choices read from the paragraphs of XQuAD in a folder")
    chosen = parser.parse_args()
    if chosen.prose is not None:
        prose(chosen.prose)
        return
    if not chosen.misses:
        PAGE.write_text(page(), "utf-8")
        return
    for which in SETS:
        for code in languages():
            for what, reply, expected, found in readings(which, code):
                if expected != found:
                    print(f"{which}/{code}\t{what}\texpected {expected}, found {found}\t{reply}")


if __name__ == "__main__":
    main()
