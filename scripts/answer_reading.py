"""Measure how well replies are read, by language, and write the tables of docs/evidence/languages.md.

python scripts/answer_reading.py            writes the tables
python scripts/answer_reading.py --misses   prints what is misread in the sets that the reader may be fitted to
python scripts/answer_reading.py --prose F  counts choices and refusals read from XQuAD (files xquad.*.json.gz in F)
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PHRASINGS = ROOT / "tests" / "metrics" / "phrasings"
REPLIES = ROOT / "tests" / "metrics" / "replies"
PAGE = ROOT / "docs" / "evidence" / "languages.md"
SENTENCES, REASONED = ("first", "held_out"), ("dev", "unseen", "fresh")
# The reader is fitted to these. The replies of `fresh` are not to be read by whoever changes the reader.
FITTED = ("first", "held_out", "dev", "unseen")
LARGE = ("unseen", "fresh")
KINDS = ("end", "elimination_last", "discussed_after", "two_answers", "refusal")
_TABLES = re.compile(r"(<!-- tables -->\n).*(<!-- end of tables -->)", re.DOTALL)

# What is read, the kind of reply, its text, and the expected and the found reading.
Reading = tuple[str, str, str, object, object]


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

    def precision(self) -> str:
        return _share(self.right, self.read)

    def recall(self) -> str:
        return _share(self.right, self.says)

    def cells(self) -> str:
        return f"{self.says} | {self.precision()} | {self.recall()}"


def _share(part: int, whole: int) -> str:
    """Return a share in percent with its interval."""
    from mrag_eval.metrics import wilson

    if not whole:
        return "-"
    found = wilson(part, whole)
    return f"{100 * part / whole:.1f} [{100 * (found.low or 0):.1f}, {100 * (found.high or 0):.1f}]"


def languages(which: str) -> list[str]:
    """Return the languages of a set."""
    folder = PHRASINGS if which in SENTENCES else REPLIES
    return sorted(path.stem for path in (folder / which).iterdir())


def phrasings(which: str, code: str) -> dict[str, Any]:
    """Return the phrasings of a language in the set ``first`` or ``held_out``."""
    found: dict[str, Any] = yaml.safe_load((PHRASINGS / which / f"{code}.yaml").read_text("utf-8"))
    return found


def _cases(which: str, code: str) -> Iterator[dict[str, Any]]:
    """Yield the cases of a set: kind, options, reply, and the index, "refusal", "yes", "no" or None expected."""
    if which in REASONED:
        yield from map(json.loads, (REPLIES / which / f"{code}.jsonl").read_text("utf-8").splitlines())
        return
    entry = phrasings(which, code)
    for label, replies in entry["choices"].items():
        expected = None if label == "unreadable" else "ABCD".index(label)
        kind = "two_answers" if expected is None else "end"
        yield from ({"kind": kind, "options": entry["options"], "reply": r, "expected": expected} for r in replies)
    refused = {"kind": "refusal", "options": entry["options"], "expected": "refusal"}
    yield from (refused | {"reply": reply} for reply in entry["refusals"])
    for word, says in (("yes", "yes"), ("no", "no"), ("neither", None)):
        yield from ({"kind": "yes_no", "options": [], "reply": reply, "expected": says} for reply in entry[word])


def readings(which: str, code: str) -> Iterator[Reading]:
    """Yield the readings of a language in a set.

    A refusal is a reply that no choice is read from and that declines, as :func:`mrag_eval.metrics.declines` has it.
    """
    from mrag_eval.metrics import declines, extract_choice, read_yes_no

    for case in _cases(which, code):
        kind, options, reply, expected = case["kind"], case["options"], case["reply"], case["expected"]
        if kind == "yes_no":
            says = {"yes": True, "no": False}.get(expected)
            yield "yes_no", kind, reply, says, read_yes_no(reply, code)
            continue
        found = extract_choice(reply, len(options), options, code)
        yield "choices", kind, reply, expected if isinstance(expected, int) else None, found
        refused = True if found is None and declines(reply, code, options) else None
        yield "refusals", kind, reply, True if expected == "refusal" else None, refused


@cache
def figures(which: str) -> Mapping[tuple[str, str], Counts]:
    """Return the counts of a set: what is read, and a language, ``all`` or a kind of reply -> counts."""
    found: dict[tuple[str, str], Counts] = defaultdict(Counts)
    for code in languages(which):
        for what, kind, _, expected, read in readings(which, code):
            for group in (code, "all", f"kind {kind}"):
                found[what, group].add(expected, read)
    return found


def tables() -> str:
    """Return the tables in Markdown: all sets, the kinds of reasoned replies, and choices by language."""
    lines = ["| read | set | replies that say it | precision | recall |", "|---|---|---:|---:|---:|"]
    for what, name in (("choices", "choices"), ("refusals", "refusals"), ("yes_no", "yes or no")):
        lines += [
            f"| {name} | `{which}` | {figures(which)[what, 'all'].cells()} |" for which in (*SENTENCES, *REASONED)
        ]
    head = " | ".join(f"`{which}`: say a choice | read | right" for which in LARGE)
    lines += ["", f"| choices by kind | {head} |", "|---|" + "---:|" * (3 * len(LARGE))]
    for kind in KINDS:
        of = [figures(which)["choices", f"kind {kind}"] for which in LARGE]
        lines.append(f"| `{kind}` | " + " | ".join(f"{one.says} | {one.read} | {one.right}" for one in of) + " |")
    head = " | ".join(f"`{which}`: choices | precision | recall" for which in LARGE)
    lines += ["", f"| language | {head} |", "|---|" + "---:|" * (3 * len(LARGE))]
    for code in languages("unseen"):
        lines.append(f"| {_name(code)} | " + " | ".join(figures(w)["choices", code].cells() for w in LARGE) + " |")
    return "\n".join([*lines, ""])


def _name(code: str) -> str:
    from mrag_eval.core import language_name

    return f"{language_name(code)} ({code})"


def page() -> str:
    """Return the page with new tables."""
    return _TABLES.sub(lambda match: f"{match[1]}\n{tables()}\n{match[2]}", PAGE.read_text("utf-8"))


def prose(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield for each language of XQuAD what the reader finds in text that neither chooses nor declines.

    These are the choices and the refusals in 240 paragraphs, and the refusals in the 1,190 reference answers.
    """
    from mrag_eval.metrics import declines, extract_choice

    options = ["zxqv", "qqwx", "vvxz", "xxqq"]
    for path in sorted(folder.glob("xquad.*.json.gz")):
        code = path.name.split(".")[1]
        articles = json.loads(gzip.decompress(path.read_bytes()))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
        texts = [paragraph["context"] for paragraph in paragraphs]
        answers = [asked["answers"][0]["text"] for paragraph in paragraphs for asked in paragraph["qas"]]
        chosen = sum(extract_choice(text, len(options), options, code) is not None for text in texts)
        yield code, chosen, sum(declines(text, code) for text in texts), sum(declines(said, code) for said in answers)


def main() -> None:
    """Write the tables, or print what is misread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="print what is misread in the sets that may be fitted to")
    parser.add_argument("--prose", type=Path, help="count choices and refusals read from XQuAD in a folder")
    chosen = parser.parse_args()
    if chosen.prose is not None:
        print("language\tchoices and refusals in paragraphs, refusals in answers")
        for found in prose(chosen.prose):
            print(*found, sep="\t")
        return
    if not chosen.misses:
        PAGE.write_text(page(), "utf-8")
        return
    for which in FITTED:
        for code in languages(which):
            for what, kind, reply, expected, found in readings(which, code):
                if expected != found:
                    print(f"{which}/{code}\t{kind}\t{what}: expected {expected}, found {found}\t{reply!r}")


if __name__ == "__main__":
    main()
