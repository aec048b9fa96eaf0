"""Score a log without judges, beside the metrics' own functions on the same texts in plain loops, in one process.

    python benchmarks/score_log.py [--quick] [--json FILE]

The log has 100,000 rows in ragas' shape: a question, an answer, a reference and three contexts as plain texts, in four
languages.
Scoring reads the file, tells languages, keeps records, computes intervals and writes results and samples. The peer
holds the texts in memory already: it calls what tells the languages of questions and contexts and how far they can be
relied on, each metric once for every reply and for the replies of the controls that have it, and the interval of each
metric as a whole, by language and by pair of languages. Processor times of both are compared.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from _rows import arguments, row, write_rows

WORDS = {
    "en": "the lighthouse was built in harbour by council after eight years of work near river bridge and market town",
    "de": "der leuchtturm wurde im hafen vom rat nach acht jahren arbeit neben dem fluss und der alten stadt gebaut",
    "es": "el faro fue construido en puerto por consejo tras ocho de trabajo cerca del viejo mercado junto al puente",
    "ru": "маяк был построен советом гавани после восьми лет работы рядом со старым рынком города и мостом через реку",
}
# More contexts than are remembered from one row to another that shows the same.
CONTEXTS, SHOWN = 20_000, 3


def rows(n: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the log; a tenth of the answers quote a context, or what is in none."""
    rng = random.Random(0)
    words = {lang: text.split() for lang, text in WORDS.items()}
    langs = list(words)
    contexts = [" ".join(rng.choices(words[langs[i % 4]], k=80)) for i in range(CONTEXTS)]
    for number in range(n):
        own = words[langs[number % 4]]
        shown = rng.choices(contexts, k=SHOWN)
        answer = " ".join(rng.choices(own, k=30))
        if number % 10 == 0:
            quote = " ".join(shown[0].split()[5:15]) if number % 20 else " ".join(rng.choices(own, k=8))
            answer = f"{answer} “{quote}”"
        yield {
            "user_input": " ".join(rng.choices(own, k=10)),
            "response": answer,
            "retrieved_contexts": shown,
            "reference": " ".join(rng.choices(own, k=5)),
        }


def loops(log: list[dict[str, Any]]) -> float:
    """Return the processor seconds of the metrics, detectors and intervals on the same texts."""
    from mrag_eval.languages import in_sentence
    from mrag_eval.metrics import (
        char_ngram_recall_batch,
        copied_share,
        correct_language_rate,
        declines,
        default_detector,
        held_elsewhere,
        is_unsure,
        language_mix,
        match,
        unreliable,
        verbatim_quotes,
        word_f1,
    )
    from mrag_eval.systems import told_languages

    began = time.process_time()
    detector = default_detector()
    questions, replies = [one["user_input"] for one in log], [one["response"] for one in log]
    references, contexts = [one["reference"] for one in log], [one["retrieved_contexts"] for one in log]
    asked = [code for code, _ in told_languages(questions)]
    texts = [text for shown in contexts for text in shown]
    beside = [lang for lang in asked for _ in range(SHOWN)]
    rate = correct_language_rate(texts, beside, min_chars=None, min_recognised=0.8, check_script=True)
    codes = [
        code if right or not (unreliable(detector, code, len(text), 0.8) or is_unsure(text)) else ""
        for text, code, right in zip(texts, rate.detected, rate.correct, strict=True)
    ]
    told = [codes[at : at + SHOWN] for at in range(0, len(codes), SHOWN)]
    pairs = [f"{lang}->{'several' if len({*codes}) > 1 else codes[0]}" for lang, codes in zip(asked, told, strict=True)]
    sentences = [in_sentence(text, lang) or "" for text, lang in zip(references, asked, strict=True)]
    foreign, others = questions[1:] + questions[:1], references[4:] + references[:4]
    for said in (replies, questions, foreign, references):
        cells = (asked, pairs) if said is replies else (asked,)
        right = correct_language_rate(said, asked, min_recognised=0.8, check_script=True).correct
        intervals(right, *cells)
        intervals(
            [language_mix(text, lang, min_recognised=0.8).share for text, lang in zip(said, asked, strict=True)], *cells
        )
    for said in (replies, references, sentences, others):
        cells = (asked, pairs) if said is replies else (asked,)
        compared = list(zip(said, references, asked, strict=True))
        intervals(char_ngram_recall_batch(said, [[text] for text in references]), *cells)
        intervals([match(text, [own], normalize="unicode", lang=lang) for text, own, lang in compared], *cells)
        intervals([word_f1(text, [own], normalize="unicode", lang=lang) for text, own, lang in compared], *cells)
    for said in (replies, references):
        intervals([declines(text, lang) for text, lang in zip(said, asked, strict=True)], asked)
    intervals([copied_share(text, shown) for text, shown in zip(replies, contexts, strict=True)], asked, pairs)
    own = [sum(code == lang for code in codes) / SHOWN for codes, lang in zip(told, asked, strict=True)]
    intervals(own, asked, pairs)
    quotes = [verbatim_quotes(text, shown) for text, shown in zip(replies, contexts, strict=True)]
    sought = [text for found in quotes for text, place in found.found if place != "shown"]
    held = held_elsewhere(sought, (text for shown in contexts for text in shown))
    quotes = [verbatim_quotes(text, shown, held) for text, shown in zip(replies, contexts, strict=True)]
    for place in ("shown", "elsewhere", "stitched", "nowhere"):
        intervals([found.share(place) for found in quotes], asked, pairs)
    return time.process_time() - began


def intervals(values: Iterable[float | None], *cells: Sequence[str]) -> None:
    """Compute the interval of the values, and of those of each cell."""
    from mrag_eval.metrics import interval_for

    listed = [None if value is None else float(value) for value in values]
    parts = [listed]
    for cell in cells:
        by: dict[str, list[float | None]] = {}
        for name, value in zip(cell, listed, strict=True):
            by.setdefault(name, []).append(value)
        parts += by.values()
    for part in parts:
        interval_for(part, n_resamples=2000, bounds=(0.0, 1.0))


def main() -> None:
    """Score the log and call the metrics, and print both times."""
    options = arguments(__doc__).parse_args()
    n = 400 if options.quick else 100_000
    import mrag_eval

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "log.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(one, ensure_ascii=False)}\n" for one in rows(n))
        warm = list(rows(40))
        mrag_eval.score(warm)
        loops(warm)
        began = time.process_time()
        results = mrag_eval.score(path, output=Path(place) / "out")
        spent = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = path.stat().st_size / 1e6
        scored = int(results.frame["n"].max())
    alone = loops(list(rows(n)))
    print(
        f"{n:,} rows, {size:.0f} MB: {spent:.1f} s, the metrics alone {alone:.1f} s of processor time; {peak:,.0f} MB"
    )
    figures = {"score_s": spent, "metrics_s": alone, "peak_mb": peak}
    bound: dict[str, Any] = {"judged": not options.quick, "holds": scored == n, "figures": figures}
    measured = [row(f"score a log of {n:,} rows", "the metrics alone, in loops", spent / alone, at_most=1.2, **bound)]
    write_rows(options.json, measured)


if __name__ == "__main__":
    main()
