"""Measure starter corpora: the time and memory of choosing pages, the disk of an index, and what a part loses.

- Choosing: pages of an invented dump (scripts/write_dumps.py), as parquet and as XML, against reading the same pages
  without choosing; peak memory at a quarter of the pages and at all.
- Disk: bytes of a passage's BM25 index and of its text, on XQuAD's paragraphs, by kind of script (--xquad).
- Loss: pages that hold the answers of real questions (XQuAD's English articles, AfriQA's gold passages), reduced to
  parts of their passages by coral-small's rule, by length alone and at random; how many questions keep their page, and
  find a passage of it with the answer among 20 (--xquad, --afriqa).

    python benchmarks/starter_corpus.py                                      100,000 pages
    python benchmarks/starter_corpus.py --xquad XQUAD --afriqa AFRIQA        and the loss
    python benchmarks/starter_corpus.py --quick                              a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _builds import in_a_process, peak_bytes
from _rows import arguments, row, write_rows

from mrag_eval.core import pipe_table
from mrag_eval.retrievers import (
    ChunkConfig,
    Document,
    build_index,
    choose,
    chunk_documents,
    starters,
    wikipedia_edition,
)
from mrag_eval.retrievers.corpora._outlines import Outline, outline_of_text

CORAL = starters()["coral-small"]
WRITER = Path(__file__).resolve().parents[1] / "scripts" / "write_dumps.py"
FORMS = {"parquet": "20231101", "xml": "20251020"}
DEPTH = 20
SHARES = (0.1, 0.25, 0.5, 1.0)


# ---------------------------------------------------------------- choosing


def one(step: str, folder: Path, dump: str) -> None:
    """Read or choose the pages in this process; print seconds of its CPU, pages and peak memory."""
    pages = wikipedia_edition("en", dump=dump, source=folder).pages
    assert pages is not None
    start = time.process_time()
    if step == "read":
        count = sum(1 for _ in pages.outlines())
    else:
        count = choose(pages.outlines(), CORAL.topics("en"), 10_000, CORAL.size).read
    print(json.dumps({"cpu": time.process_time() - start, "pages": count, "peak": peak_bytes()}))


def choosing(form: str, count: int, judged: bool) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Mapping[str, Any]]] = {}
    for pages in (count // 4, count):
        with tempfile.TemporaryDirectory() as folder:
            write = [sys.executable, str(WRITER), folder, "--langs", "en", "--pages", str(pages), "--form", form]
            subprocess.run(write, check=True, stdout=subprocess.DEVNULL)
            size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
            command = [__file__, "--folder", folder, "--dump", FORMS[form], "--step"]
            found[pages] = {step: in_a_process([*command, step]) for step in ("read", "choose")}
    small, large = (found[pages]["choose"] for pages in (count // 4, count))
    ratio = float(large["cpu"]) / float(found[count]["read"]["cpu"])
    a_page = (float(large["peak"]) - float(small["peak"])) / (count - count // 4)
    figures = {
        "cpu_seconds": float(large["cpu"]),
        "mb": size / 1e6,
        "peak_mb": float(large["peak"]) / 1e6,
        "bytes_a_page": a_page,
    }
    print(
        f"{form}, {count:,} pages, {size / 1e6:,.0f} MB: chosen in {figures['cpu_seconds']:.1f} CPU seconds "
        f"({ratio:.2f} of reading them), peak {figures['peak_mb']:,.0f} MB, {a_page:,.0f} bytes a page more"
    )
    against = "reading the same pages"
    return [row(f"choose {count:,} pages, {form}", against, ratio, at_most=2.0, judged=judged, figures=figures)]


# ---------------------------------------------------------------- disk


def opened(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def disk(folder: Path) -> str:
    """Return a table of bytes a passage by language."""
    lines = []
    for path in sorted(folder.glob("xquad.*.json.gz")):
        lang = path.name.split(".")[1]
        texts = [paragraph["context"] for article in opened(path)["data"] for paragraph in article["paragraphs"]]
        passages = list(chunk_documents((Document(str(n), lang, text) for n, text in enumerate(texts)), "words"))
        with tempfile.TemporaryDirectory() as scratch:
            build_index(passages, Path(scratch) / "i", kind="bm25", progress=False)
            size = sum(file.stat().st_size for file in Path(scratch).rglob("*") if file.is_file())
        text = sum(len(passage.text.encode()) for passage in passages)
        lines.append((lang, f"{len(passages):,}", f"{text / len(passages):,.0f}", f"{size / len(passages):,.0f}"))
    return pipe_table(("language", "passages", "bytes of text", "bytes of index"), lines)


# ---------------------------------------------------------------- loss


@dataclass(frozen=True)
class Question:
    text: str
    page: str
    answers: tuple[str, ...]
    source: str


def world(xquad: Path, afriqa: Path) -> tuple[list[Document], list[Question]]:
    """Return the pages and questions: XQuAD's English articles, and AfriQA's gold passages joined by title."""
    texts: dict[str, list[str]] = {}
    asked: list[tuple[str, str, tuple[str, ...], str]] = []
    for article in opened(xquad / "xquad.en.json.gz")["data"]:
        title = article["title"].replace("_", " ")
        for paragraph in article["paragraphs"]:
            texts.setdefault(title, []).append(paragraph["context"])
            for question in paragraph["qas"]:
                answers = tuple(answer["text"] for answer in question["answers"])
                asked.append((question["question"], title, answers, "XQuAD"))
    for path in sorted(afriqa.glob("gold_span_passages.afriqa.*.en.test.json.gz")):
        for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
            found = json.loads(line)
            if not found["title"]:
                continue
            if found["context"] not in texts.setdefault(found["title"], []):
                texts[found["title"]].append(found["context"])
            asked.append((found["question_translated"], found["title"], tuple(found["answer_pivot"]["text"]), "AfriQA"))
    number = {title: str(at) for at, title in enumerate(texts)}
    pages = [Document(number[title], "en", "\n\n".join(parts), title) for title, parts in texts.items()]
    return pages, [Question(text, number[title], answers, source) for text, title, answers, source in asked]


def rules(outlines: list[Outline]) -> dict[str, Callable[[int], Collection[str]]]:
    """Return the rules: from a number of passages to the pages kept."""
    shuffled = np.random.default_rng(0).permutation(len(outlines))

    def by_order(order: Iterable[Outline]) -> Callable[[int], Collection[str]]:
        held = list(order)

        def kept(budget: int) -> Collection[str]:
            sizes = np.cumsum([max(1, -(-one.length // CORAL.size)) for one in held])
            return {one.page for one, size in zip(held, sizes, strict=True) if size <= budget}

        return kept

    return {
        "coral-small": lambda budget: choose(outlines, CORAL.topics("en"), budget, CORAL.size).pages,
        "longest": by_order(sorted(outlines, key=lambda one: -one.length)),
        "random": by_order(outlines[at] for at in shuffled),
    }


def loss(xquad: Path, afriqa: Path) -> str:
    """Return a table of questions that keep their page and find their answer, by rule and share of the passages."""
    pages, questions = world(xquad, afriqa)
    outlines = [outline_of_text(page.id, page.title, page.text, "en") for page in pages]
    topics = CORAL.topics("en")
    whole = sum(max(1, -(-one.length // CORAL.size)) for one in outlines)
    groups = {
        "XQuAD": [q for q in questions if q.source == "XQuAD"],
        "AfriQA": [q for q in questions if q.source == "AfriQA"],
        "naming a place of BLEnD": [q for q in questions if topics.near(Outline("0", q.text, "", 0))[0]],
    }
    named = (f"{name} ({len(held):,}): page kept, hit@{DEPTH}" for name, held in groups.items())
    lines = []
    for name, rule in rules(outlines).items():
        for share in SHARES:
            kept = rule(round(share * whole) + (len(pages) if share == 1 else 0))
            found = hits([page for page in pages if page.id in kept], questions)
            cells = [
                f"{sum(q.page in kept for q in held) / len(held):.1%}, {sum(found[q] for q in held) / len(held):.1%}"
                for held in groups.values()
            ]
            lines.append((name, f"{share:.0%}", *cells))
    return pipe_table(("rule", "passages", *named), lines)


def hits(pages: list[Document], questions: list[Question]) -> dict[Question, bool]:
    """Return whether each question finds, among 20 passages, one of its page that holds an answer."""
    passages = list(chunk_documents(pages, ChunkConfig("words", CORAL.size)))
    with tempfile.TemporaryDirectory() as scratch:
        index = build_index(passages, Path(scratch) / "i", kind="bm25", progress=False)
        ranked = index.search([question.text for question in questions], DEPTH)
    return {
        question: any(
            hit.doc_id == question.page and any(answer.casefold() in hit.text.casefold() for answer in question.answers)
            for hit in ranking
        )
        for question, ranking in zip(questions, ranked, strict=True)
    }


def parsed() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--xquad", type=Path, help="folder of XQuAD's files")
    parser.add_argument("--afriqa", type=Path, help="folder of AfriQA's gold passages")
    for hidden in ("--step", "--dump", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    return parser.parse_args()


def tables(options: argparse.Namespace) -> Iterator[str]:
    if options.xquad is not None:
        yield disk(options.xquad)
    if options.xquad is not None and options.afriqa is not None:
        yield loss(options.xquad, options.afriqa)


def main() -> None:
    options = parsed()
    if options.step:
        one(options.step, Path(options.folder), options.dump)
        return
    count = 2_000 if options.quick else options.pages
    rows = [line for form in FORMS for line in choosing(form, count, not options.quick)]
    for table in tables(options):
        print(f"\n{table}")
    write_rows(options.json, rows)
    if not all(one["ok"] for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
