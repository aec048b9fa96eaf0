"""Time the controls of XQuAD's rows beside the metrics' own functions on the same replies, in one process.

    MRAG_TEST_DATA=... python benchmarks/controls.py     1,190 rows in each of ten languages
    python benchmarks/controls.py --quick                ten rows of our own in two, to see that it runs

Controls are replies that need no model: the first reference bare and in a sentence, another row's answer, the answer in
English, the question, a question in another language. What they cost beyond the metrics is drawing the replies, keeping
records of rows, and telling lengths apart. The peer calls the functions of the metrics on the texts in plain loops.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from mrag_eval.controls import ControlPool, ControlRule, reply_controls
from mrag_eval.controls._replies import control_replies
from mrag_eval.core import RagDoc
from mrag_eval.metrics import char_ngram_recall, correct_language_rate, match

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
METRICS = ("char3gram_recall", "match", "correct_language")
ROUNDS = 3


def rows(folder: Path | None) -> Iterator[RagDoc]:
    """Yield the rows of XQuAD in all languages, or a few of our own."""
    if folder is None:
        for language, question, place in (
            ("en", "Where is ship", "the harbour"),
            ("de", "Wo liegt Schiff", "im Hafen"),
        ):
            for number in range(10):
                yield RagDoc(f"{language}-{number}", f"{question} {number}?", language, (f"{place} {number}",))
        return
    for language in LANGUAGES:
        with gzip.open(folder / "xquad" / f"xquad.{language}.json.gz", "rt", encoding="utf-8") as file:
            for article in json.load(file)["data"]:
                for entry in article["paragraphs"]:
                    for qa in entry["qas"]:
                        answers = tuple(answer["text"] for answer in qa["answers"])
                        yield RagDoc(f"{language}-{qa['id']}", qa["question"], language, answers)


def loops(docs: list[RagDoc], pool: ControlPool, rule: ControlRule) -> float:
    """Return the CPU seconds of the metrics' functions on the replies of all controls."""
    drawn = control_replies(rule.names, docs, pool)
    began = time.process_time()
    for control, replies in drawn.items():
        said = [(doc, reply.text) for doc, reply in zip(docs, replies, strict=True) if reply.text is not None]
        metrics = rule.of(control)
        for doc, text in said:
            if "match" in metrics:
                match(text, doc.answers)
            if "char3gram_recall" in metrics:
                char_ngram_recall(text, doc.answers)
        if "correct_language" in metrics:
            correct_language_rate([text for _, text in said], [doc.query_lang for doc, _ in said])
    return time.process_time() - began


def main() -> None:
    """Time both in turn, so that a busy machine slows both alike."""
    from _rows import arguments, row, write_rows

    options = arguments(__doc__, quick="ten rows of our own in two languages").parse_args()
    docs = list(rows(None if options.quick else Path(os.environ["MRAG_TEST_DATA"])))
    english = {doc.id.partition("-")[2]: doc.answers[0] for doc in docs if doc.query_lang == "en"}
    pool = ControlPool(docs, {doc.id: english[doc.id.partition("-")[2]] for doc in docs})
    rule = ControlRule(METRICS)
    reply_controls(docs[:20], pool, rule)
    seconds, ratios = [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        found = reply_controls(docs, pool, rule)
        seconds.append(time.process_time() - began)
        ratios.append(seconds[-1] / loops(docs, pool, rule))
    scored = sum(len(values) for record in found.values() for values in record.values.values())
    print(f"{len(docs):,} rows, {scored:,} scores: {min(seconds):.1f} s (CPU), {min(ratios):.2f} x the metrics alone")
    work = f"controls of {len(docs):,} rows in {len({doc.query_lang for doc in docs})} languages"
    write_rows(options.json, [row(work, "the metrics' functions in loops", ratios, figures={"seconds": min(seconds)})])


if __name__ == "__main__":
    main()
