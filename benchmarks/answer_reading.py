"""Time the reader of choices beside lm-eval's filter ``multi_choice_regex``, and reading all files of languages.

    python benchmarks/answer_reading.py            10,000 replies
    python benchmarks/answer_reading.py --quick    300 replies

The replies are those of tests/metrics/replies/dev in 30 languages, put together to 500 characters. The filter looks for
a letter in parentheses and then for any option or letter: it answers more replies and reads fewer of them rightly. The
files of languages are read beside the C loader of PyYAML alone, on the same files. All in one process.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import yaml
from lm_eval.filters.extraction import MultiChoiceRegexFilter

from mrag_eval.metrics import extract_choice

REPLIES = Path(__file__).resolve().parent.parent / "tests" / "metrics" / "replies" / "dev"
LENGTH = 500
ROUNDS = 3


def replies(count: int, seed: int) -> list[dict[str, Any]]:
    """Return cases whose replies have 500 characters: other replies of the language stand before their own."""
    rng = random.Random(seed)
    found = []
    by_language = {
        path.stem: [case for case in map(json.loads, path.read_text("utf-8").splitlines()) if case["options"]]
        for path in sorted(REPLIES.glob("*.jsonl"))
    }
    for at in range(count):
        language = list(by_language)[at % len(by_language)]
        case = dict(rng.choice(by_language[language]), language=language)
        while len(case["reply"]) < LENGTH:
            case["reply"] = f"{rng.choice(by_language[language])['reply']} {case['reply']}"
        found.append({**case, "reply": case["reply"][-LENGTH:]})
    return found


def languages() -> tuple[int, list[tuple[float, float]]]:
    """Return the number of files of languages, and the seconds of reading all, ours and the loader's, by round."""
    from mrag_eval.languages import PACKAGE, known_languages, language
    from mrag_eval.languages._files import _language, _read

    codes, paths, found = known_languages(), sorted(PACKAGE.glob("*.yaml")), []
    for _ in range(ROUNDS):
        _language.cache_clear()
        _read.cache_clear()
        start = time.process_time()
        for code in codes:
            language(code)
        middle = time.process_time()
        for path in paths:
            yaml.load(path.read_text("utf-8"), Loader=yaml.CBaseLoader)
        found.append((middle - start, time.process_time() - middle))
    return len(paths), found


def main() -> None:
    """Time both in turn, so that a busy machine slows both alike."""
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="300 replies")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = replies(300 if options.quick else 10_000, options.seed)
    peer = MultiChoiceRegexFilter(regex_pattern=r"(\([A-Z]\))", ignore_case=True)
    for case in cases[:60]:  # read the words of every language
        extract_choice(case["reply"], len(case["options"]), case["options"], case["language"])
    seconds, ratios = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        for case in cases:
            extract_choice(case["reply"], len(case["options"]), case["options"], case["language"])
        middle = time.process_time()
        peer.apply([[case["reply"]] for case in cases], [{"choices": case["options"]} for case in cases])
        seconds.append(middle - start)
        ratios.append(seconds[-1] / (time.process_time() - middle))
    print(
        f"{len(cases):,} replies of {LENGTH} characters: {min(seconds):.2f} s (CPU), {min(ratios):.2f} x the filter's"
    )
    files, loading = languages()
    print(f"{files} files of languages: {min(ours for ours, _ in loading) * 1_000:.1f} ms (CPU)")
    work = f"choices read from {len(cases):,} replies of {LENGTH} characters"
    rows = [
        row(work, "lm-eval's multi_choice_regex", ratios, figures={"seconds": min(seconds)}),
        row(
            f"all {files} files of languages read", "PyYAML's C loader alone",
            [ours / theirs for ours, theirs in loading], figures={"seconds": min(ours for ours, _ in loading)},
        ),
    ]  # fmt: skip
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
